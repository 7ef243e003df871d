"""One file for each API on which a vision model can be asked."""
