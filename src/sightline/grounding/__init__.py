"""Coordinates in answers: how each family of models writes them, and where they are in the original image.

Pure: text and sizes in, boxes out. The family of the model decides in which space its numbers are. The numbers
themselves never decide that; they can only show that something does not fit.
"""
