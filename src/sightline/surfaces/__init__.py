"""The surfaces through which Sightline is used. They are thin, and independent of each other."""
