"""The library's front door."""
