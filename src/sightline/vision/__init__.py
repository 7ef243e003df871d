"""Ask a vision model, or the local reader, about images."""
