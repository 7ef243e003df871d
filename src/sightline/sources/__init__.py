"""Where the bytes of an image come from."""
