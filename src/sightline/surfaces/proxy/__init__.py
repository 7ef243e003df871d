"""The proxy: an HTTP server between any agent and any provider."""
