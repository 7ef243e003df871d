"""The sources of image bytes."""
