"""What looking, reading and editing answer: a result with its pixels or its text, or a no. All of it is JSON."""

from __future__ import annotations

import functools
import inspect
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, ParamSpec, TypeVar, final, get_args

from sightline.model.fence import json_line
from sightline.model.geometry import Box, Size
from sightline.model.image import Image
from sightline.model.refusal import Code, Refusal
from sightline.model.scene import Json

_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")

Reason = Literal[
    "invalid_input", "not_found", "unsupported_type", "too_large", "not_permitted", "corrupt", "render_unavailable"
]
REASONS: tuple[Reason, ...] = get_args(Reason)
_OURS: dict[Code, Reason] = {"no_consent": "not_permitted"}  # the others: nobody here could look


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """A no that a model reads and adapts to. It is false, as every no is."""

    reason: Reason
    message: str

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return self.message

    def as_dict(self) -> dict[str, Json]:
        return {"ok": False, "reason": self.reason, "message": self.message}

    def content(self) -> list[Json]:
        return [_words(self.as_dict())]

    @staticmethod
    def of(refusal: Refusal) -> Refused:
        """What could not be done for a reason of ours is never blamed on the file."""
        known = next((reason for reason in REASONS if reason == refusal.code), None)
        return Refused(known or _OURS.get(refusal.code, "render_unavailable"), str(refusal))


@final
@dataclass(frozen=True, slots=True)
class View:
    """Something seen: what it is, and the pixels that were shown of it."""

    mime: str  # of the source, by its bytes
    size: Size  # of the source, upright
    bytes: int  # of the source
    image: str  # sha256 of the source's bytes
    source: str  # as it was asked for
    pixels: Image = field(repr=False)  # what was shown
    crop: Box | None = None  # in pixels of the source
    words: str = ""  # what was done to the pixels, where that has to be known to understand them

    def as_dict(self) -> dict[str, Json]:
        """With all that stands beside the words of a tool result, for who has no pixels there to ask."""
        shown: dict[str, Json] = {**self._shown(), "mime": self.pixels.mime}
        return {**self.result(), "shown": shown, **({"words": self.words} if self.words else {})}

    def result(self) -> dict[str, Json]:
        """As a model reads it, and as the record keeps it."""
        found: dict[str, Json] = {"ok": True, "mime": self.mime, **_sides(self.size), "bytes": self.bytes}
        found |= {"image": f"sha256:{self.image}", "source": self.source}
        if self.crop is not None:
            found["crop"] = [self.crop.x, self.crop.y, self.crop.width, self.crop.height]
        return {**found, "shown": self._shown()}

    def _shown(self) -> dict[str, Json]:
        return {**_sides(self.pixels.size), "bytes": len(self.pixels.data)}

    def content(self) -> list[Json]:
        """As a tool result carries it to a model: words first, then the pixels, each a block of its own."""
        beside: list[Json] = [{"type": "text", "text": self.words}] if self.words else []
        pixels: Json = {"type": "image", "data": self.pixels.base64, "mimeType": self.pixels.mime}
        return [_words(self.result()), *beside, pixels]


@final
@dataclass(frozen=True, slots=True)
class Text:
    """Lines of a text, and the token that permits an edit of it."""

    source: str
    text: str
    first: int  # line, from 1
    last: int
    lines: int  # in all
    bytes: int  # of the whole file
    token: str
    character: int | None = None  # of the line to go on with, where one line alone was too long

    def as_dict(self) -> dict[str, Json]:
        place: dict[str, Json] = {"first": self.first, "last": self.last, "lines": self.lines, "bytes": self.bytes}
        if self.character is not None:
            place["character"] = self.character
        return {"ok": True, "source": self.source, "text": self.text, **place, "token": self.token}

    def content(self) -> list[Json]:
        return [_words(self.as_dict())]


@final
@dataclass(frozen=True, slots=True)
class Edited:
    source: str
    bytes: int  # of the whole file, as it is now

    def as_dict(self) -> dict[str, Json]:
        return {"ok": True, "source": self.source, "bytes": self.bytes}

    def content(self) -> list[Json]:
        return [_words(self.as_dict())]


Result = View | Text | Edited | Refused


def promised(instead: F) -> Callable[[Callable[P, T]], Callable[P, T | F]]:
    """The caller was promised a result, whatever a source, a setting or a library does. A wrong call is a TypeError."""

    def promise(core: Callable[P, T]) -> Callable[P, T | F]:
        @functools.wraps(core)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T | F:
            try:
                return core(*args, **kwargs)
            except Exception:  # the outermost edge of the library
                if not _fits(core, *args, **kwargs):
                    raise  # by the caller's own mistake, and no source's
                _log.warning("a fault of Sightline's own", exc_info=True)
                return instead

        return kept

    return promise


def _fits(core: Callable[..., object], *args: object, **kwargs: object) -> bool:
    """Whether a function can be called so at all."""
    try:
        inspect.signature(core).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


FAULT = Refusal("unavailable", "Sightline itself failed over it", "give it in another format")


def written(result: dict[str, Json]) -> str:
    """A result as the record keeps it: the same text for the same object, whatever the order of its keys."""
    return json.dumps(result, sort_keys=True)


def _words(result: dict[str, Json]) -> dict[str, Json]:
    return {"type": "text", "text": json_line(result)}


def _sides(size: Size) -> dict[str, Json]:
    return {"width": size.width, "height": size.height}
