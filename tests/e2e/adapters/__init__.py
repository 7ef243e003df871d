"""Programs that hold a conversation with a framework, each run in the environment of its framework."""
