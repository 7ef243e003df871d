"""Bar and line charts, read against their axes."""
