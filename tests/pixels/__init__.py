"""Tests of pixels: headers, decoding, fitting, workers."""
