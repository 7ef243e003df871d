"""How large an image may be, wherever it comes from. What a provider takes is in `profile`."""

from __future__ import annotations

MAX_BYTES = 64 * 1024 * 1024  # of a file
MAX_EDGE = 65_535
MAX_PIXELS = 300_000_000  # of an image that is decoded row by row, or shrunk by its decoder
MAX_WHOLE_PIXELS = 120_000_000  # of an image whose decoder holds all of it

WORKER_MEMORY = 528 * 1024 * 1024  # bytes of data; with the code of its libraries a worker stays below 600 MB
HELD_BYTES = 192_000_000  # of one bitmap
