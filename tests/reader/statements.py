"""Compare what the reader states by its facts (quoted text, boxes, numbers, colours), not by its sentences.

The sentences themselves are in `tests/golden/wording/reader.txt`.
"""

from __future__ import annotations

import numpy as np

from sightline.model.geometry import Box, Size
from sightline.reader.describe import Report, transcribe
from sightline.reader.reading import ImageReading
from sightline.reader.report import ReadImage, report_images

EMPTY = ImageReading(Size(640, 480))
NO_TEXT = transcribe(EMPTY)
UNREAD_TEXT = transcribe(ImageReading(Size(640, 480), unread=(Box(10, 20, 90, 12),)))


def describe_reading(reading: ImageReading, *, positions: bool = False) -> Report:
    """Return the description of an image, or the answer to a question about nothing but places."""
    question = "Where?" if positions else ""
    return report_images(question, None, [ReadImage(reading, np.zeros((8, 8, 3), np.uint8))])


def find_statement(text: str, *facts: str) -> str:
    """Return the one line of a text that has all these facts."""
    (found,) = [line for line in text.splitlines() if all(fact in line for fact in facts)]
    return found


def list_added(before: ImageReading, after: ImageReading) -> list[str]:
    """Return the lines in the description of `after` that are not in that of `before`."""
    known = describe_reading(before).text.splitlines()
    return [line for line in describe_reading(after).text.splitlines() if line not in known]
