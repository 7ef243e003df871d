"""Text recognition: find lines, recognise them, and say how certain that is."""
