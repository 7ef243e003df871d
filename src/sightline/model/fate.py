"""What becomes of a sight this turn."""

from __future__ import annotations

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.value import value


@value
class Shown:
    """The model gets the pixels as the client sent them; `mime` corrects a declaration that lied."""

    mime: str | None = None


@value
class Refitted:
    """The model gets the pixels in another size or format."""

    image: Image
    why: str


@value
class Told:
    """The model gets words in the place of pixels."""

    words: str
    seer: str
    size: Size | None = None  # of what was described


@value
class Refused:
    """The model gets one honest sentence in the place of pixels."""

    words: str
    refusal: Refusal


@value
class Retired:
    """The model has seen it in an earlier step, and gets a line that says what it was and how to see it again."""

    words: str
    why: str


@value
class Repeated:
    """It is written into a text of a result that holds the same image once more: here the model gets a word."""


Fate = Shown | Refitted | Told | Retired | Refused | Repeated
