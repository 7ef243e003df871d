"""Where the bytes of an image come from: a local file or the web; and references, which name an image."""
