"""Pixels: headers, decoding and refitting."""
