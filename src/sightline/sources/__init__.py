"""Where the bytes of an image come from: base64 in a body, a file, the record, the web. Each kind is one file."""
