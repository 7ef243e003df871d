"""A question to somebody who sees, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass, field

import pybase64

from sightline.model.geometry import Box
from sightline.model.image import Image
from sightline.model.scene import Json

LOCAL = "local"
"""The provider whose model is Sightline's own; and the name of that model."""
LONGEST = 30_000  # characters of an answer: nobody reads more, and everybody pays for it
CUT = "[truncated — the model stopped at its longest answer]"
"""Stands at the end of an answer that the model could not bring to its own."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that goes to a model as it is: a PDF, or a video."""

    mime: str
    data: bytes = field(default=b"", repr=False)
    url: str = ""  # instead of the bytes, where the provider opens it itself
    name: str = ""

    @property
    def base64(self) -> str:
        return pybase64.b64encode_as_string(self.data)

    @property
    def address(self) -> str:
        """Where it is: its own address, or one that holds its bytes."""
        return self.url or f"data:{self.mime};base64,{self.base64}"


@dataclass(frozen=True, slots=True)
class Question:
    words: str
    images: tuple[Image, ...] = ()  # in the order in which the words speak of them
    instructions: str = ""
    documents: tuple[Document, ...] = ()
    schema: Json = None  # the answer is asked for as JSON of this shape
    longest: int | None = None  # tokens of the answer
    asked: str | None = None  # without what explains it to a model; empty: all that is to be seen. None: as `words`
    described: bool = False  # the caller has a description of each image already


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counted them; None: it did not say."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None

    def __add__(self, other: Usage) -> Usage:
        def both(a: int | None, b: int | None) -> int | None:
            return None if a is None and b is None else (a or 0) + (b or 0)

        return Usage(both(self.input, other.input), both(self.output, other.output), both(self.cached, other.cached))


@dataclass(frozen=True, slots=True)
class Spot:
    """A place that an answer speaks of, in the pixels of an image as it was given."""

    label: str
    box: Box
    image: int = 0  # which of the question's images


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    usage: Usage = Usage()
    seer: str = ""  # provider/model, as it was asked
    cut: bool = False  # it ran into the longest answer allowed, and ends there: so does its text, with a mark
    spots: tuple[Spot, ...] = ()  # told beside the words, by a seer that measures instead of guessing


def bounded(text: str, most: int = LONGEST) -> str:
    """No more of an answer than anybody reads; whoever reads it learns that there was more."""
    text = text.strip()
    return text if len(text) <= most else f"{text[:most]}\n[truncated — {len(text)} chars total]"


def is_cut(text: str) -> bool:
    """Is this an answer that the model could not bring to its end? Kept and shared answers are texts alone."""
    return CUT in text
