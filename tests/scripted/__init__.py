"""Scripted providers on loopback: they answer only from the pixels that stand in image position."""
