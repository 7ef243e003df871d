"""The doors: thin, and unknown to one another."""
