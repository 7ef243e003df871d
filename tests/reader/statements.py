"""Compare what the reader states by its facts (quoted text, boxes, numbers, colours), not by its sentences.

The sentences themselves are in `tests/golden/wording/reader.txt`.
"""

from __future__ import annotations

from sightline.model.geometry import Box, Size
from sightline.reader.describe import describe_image, transcribe
from sightline.reader.reading import ImageReading

EMPTY = ImageReading(Size(640, 480))
NO_TEXT = transcribe(EMPTY)
UNREAD_TEXT = transcribe(ImageReading(Size(640, 480), unread=(Box(10, 20, 90, 12),)))


def find_statement(text: str, *facts: str) -> str:
    """Return the one line of a text that has all these facts."""
    (found,) = [line for line in text.splitlines() if all(fact in line for fact in facts)]
    return found


def list_added(before: ImageReading, after: ImageReading) -> list[str]:
    """Return the lines in the description of `after` that are not in that of `before`."""
    known = describe_image(before).text.splitlines()
    return [line for line in describe_image(after).text.splitlines() if line not in known]
