"""Coordinates in answers: how each family of models writes them, and where they lie in the image that was looked at.

Pure: text and sizes in, boxes out. The family of the model decides in which space its numbers are; the numbers
themselves never do, they can only show that something does not fit.
"""
