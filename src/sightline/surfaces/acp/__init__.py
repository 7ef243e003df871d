"""The relay between an ACP editor and its agent."""
