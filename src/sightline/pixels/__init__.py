"""Pixels: what a header tells, whether every pixel is there, and how an image is made to fit."""
