"""The seer port: a question about images, the answer, and the protocol of the models and readers that answer it."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

import pybase64

from sightline.model.geometry import Box
from sightline.model.image import Image
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.value import value_class

LOCAL_SEER = "local"
"""The name of the local reader, as a provider and as a model."""
READER_VERSION = 5
"""Changes with what the local reader writes, so that descriptions of an older one are not used."""
MAX_ANSWER_LENGTH = 30_000  # characters: a longer answer costs tokens and is not read
TRUNCATION_MARK = "[truncated — the model stopped at its longest answer]"
"""The end of an answer that ran into the model's token limit."""


@value_class
class Attachment:
    """A file that is sent to a model unchanged: a PDF or a video."""

    mime: str
    data: bytes = field(default=b"", repr=False)
    url: str = ""  # instead of the bytes, if the provider fetches it
    name: str = ""

    @property
    def base64(self) -> str:
        return pybase64.b64encode_as_string(self.data)

    @property
    def address(self) -> str:
        """Its own URL, or a data URL with its bytes."""
        return self.url or f"data:{self.mime};base64,{self.base64}"


@value_class
class Question:
    """A question to a seer."""

    text: str
    images: tuple[Image, ...] = ()  # in the order in which the text numbers them
    instructions: str = ""
    attachments: tuple[Attachment, ...] = ()
    schema: Json = None  # JSON schema of the answer
    max_tokens: int | None = None  # of the answer
    # The caller's own question without the prompt around it; "": a full description is wanted; None: same as `text`.
    user_question: str | None = None
    has_descriptions: bool = False  # the caller already has a description of each image


@value_class
class Usage:
    """Tokens as the provider counted them; None: it did not say."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None  # of the input, read from the provider's cache
    written: int | None = None  # of the input, written to it

    def __add__(self, other: Usage) -> Usage:
        def both(a: int | None, b: int | None) -> int | None:
            return None if a is None and b is None else (a or 0) + (b or 0)

        return Usage(
            both(self.input, other.input),
            both(self.output, other.output),
            both(self.cached, other.cached),
            both(self.written, other.written),
        )


@value_class
class LabelledBox:
    """A place that an answer mentions, in pixels of the image as the seer got it."""

    label: str
    box: Box
    image: int = 0  # index of the question's image


@value_class
class SeerAnswer:
    """What a seer answered."""

    text: str
    usage: Usage = Usage()
    seer: str = ""  # provider/model
    is_truncated: bool = False  # it ran into its token limit, and its text ends with `TRUNCATION_MARK`
    boxes: tuple[LabelledBox, ...] = ()  # measured by the seer, apart from coordinates in the text


class Seer(Protocol):
    """A model or reader that looks at images and answers with text."""

    @property
    def name(self) -> str:
        """provider/model, as shown to users and kept in the record."""
        ...

    @property
    def limits(self) -> ImageLimits:
        """What it accepts; images are fitted to it before it is asked."""
        ...

    async def ask(self, question: Question) -> SeerAnswer | Refusal:
        """Answer a question. An answer without text is a refusal."""
        ...


def truncate_answer(text: str, limit: int = MAX_ANSWER_LENGTH) -> str:
    """Cut an answer to a length, and say so at its end."""
    text = text.strip()
    return text if len(text) <= limit else f"{text[:limit]}\n[truncated — {len(text)} chars total]"


def is_truncated(text: str) -> bool:
    """Return whether a text is an answer that ran into the token limit; stored answers are texts only."""
    return TRUNCATION_MARK in text
