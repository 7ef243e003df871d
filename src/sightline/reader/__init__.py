"""Reads images on this machine: text, layout, tables, charts, interface parts and barcodes.

It reports what it read and never reasons about it. Nothing here is imported before an image is read, except
`ocr.weights`, which needs no heavy library.
"""
