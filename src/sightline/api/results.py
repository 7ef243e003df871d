"""What the functions and tools of the library return: a result, or a `Refused`. All of it is JSON."""

from __future__ import annotations

import functools
import inspect
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, ParamSpec, TypeVar, cast, final, get_args

from sightline.grounding.parse import Placed
from sightline.model.asking import Usage, is_cut
from sightline.model.facts import Member
from sightline.model.fence import json_line, one_line
from sightline.model.geometry import Box, Size
from sightline.model.image import Image
from sightline.model.refusal import Code, Refusal, Stage
from sightline.model.scene import Json

_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")

MOST_OF_AN_IMAGE = 8_000  # characters of a whole envelope
MOST_OF_A_VIDEO = 30_000
_MOST_ERRORS = 10
_MARK = "[truncated — {} chars total]"

Reason = Literal[
    "invalid_input", "not_found", "unsupported_type", "too_large", "not_permitted", "corrupt", "render_unavailable"
]
REASONS: tuple[Reason, ...] = get_args(Reason)
Prefix = Literal[
    "INVALID_INPUT",
    "FILE_NOT_FOUND",
    "URL_BLOCKED",
    "FILE_TOO_LARGE",
    "UNSUPPORTED_FILE_TYPE",
    "VISION_NOT_SUPPORTED",
    "PDF_NOT_SUPPORTED",
    "VIDEO_NOT_SUPPORTED",
    "PDF_TOO_MANY_PAGES",
    "LLM_ERROR",
    "RESPONSE_NOT_JSON",
]
FailureCode = Literal["input_invalid", "not_available", "execution_failed"]
Tool = Literal["view", "analyze", "ask"]
"""The tools by how they report a refusal: files and images, questions about images, one question about one file."""

# view_image, read_file and the like: a refusal that is no fault of the file's is never blamed on it.
_REASONS: Mapping[Code, Reason] = {
    **{reason: reason for reason in REASONS},
    "no_consent": "not_permitted",
    "unavailable": "render_unavailable",
    "pending": "render_unavailable",
}

# vision_analyze and video_analyze: the word that an error begins with depends on the stage at which it was refused,
# and for a file also on why.
_PREFIXES: Mapping[Stage, Prefix] = {
    "model": "VISION_NOT_SUPPORTED",
    "vision": "VISION_NOT_SUPPORTED",
    "pdf": "PDF_NOT_SUPPORTED",
    "video": "VIDEO_NOT_SUPPORTED",
    "pages": "PDF_TOO_MANY_PAGES",
    "answer": "RESPONSE_NOT_JSON",
}
_FILE_PREFIXES: Mapping[Code, Prefix] = {
    "invalid_input": "INVALID_INPUT",
    "not_found": "FILE_NOT_FOUND",
    "not_permitted": "FILE_NOT_FOUND",
    "too_large": "FILE_TOO_LARGE",
    "unsupported_type": "UNSUPPORTED_FILE_TYPE",
    "corrupt": "UNSUPPORTED_FILE_TYPE",
    "render_unavailable": "UNSUPPORTED_FILE_TYPE",
}
CODES: Mapping[Prefix, FailureCode] = {
    "INVALID_INPUT": "input_invalid",
    "FILE_NOT_FOUND": "input_invalid",
    "URL_BLOCKED": "input_invalid",
    "FILE_TOO_LARGE": "input_invalid",
    "UNSUPPORTED_FILE_TYPE": "input_invalid",
    "VISION_NOT_SUPPORTED": "not_available",
    "PDF_NOT_SUPPORTED": "not_available",
    "VIDEO_NOT_SUPPORTED": "not_available",
    "PDF_TOO_MANY_PAGES": "execution_failed",
    "LLM_ERROR": "execution_failed",
    "RESPONSE_NOT_JSON": "execution_failed",
}


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal as a tool returns it, in the shape that this tool has for errors. It is falsy."""

    refusal: Refusal
    tool: Tool = "view"

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return self.error if self.tool == "ask" else self.message

    @property
    def message(self) -> str:
        return str(self.refusal)

    @property
    def reason(self) -> Code:
        """The code that `view` and `analyze` report; `view` knows fewer of them."""
        return _REASONS[self.refusal.code] if self.tool == "view" else self.refusal.code

    @property
    def prefix(self) -> Prefix:
        """The word that an error of `ask` begins with."""
        code, stage = self.refusal.code, self.refusal.stage
        if stage in _PREFIXES:
            return _PREFIXES[stage]
        if stage == "address":
            return "FILE_TOO_LARGE" if code == "too_large" else "URL_BLOCKED"
        if stage == "file" or (stage == "" and code == "invalid_input"):
            return _FILE_PREFIXES.get(code, "LLM_ERROR")
        return "LLM_ERROR"

    @property
    def code(self) -> FailureCode:
        """The kind of failure that `ask` reports."""
        return CODES[self.prefix]

    @property
    def error(self) -> str:
        """The message of `ask`."""
        return f"{self.prefix}: {self.message}"

    def as_dict(self) -> dict[str, Json]:
        if self.tool == "ask":
            return {"ok": False, "error": self.error, "code": self.code}
        return {"ok": False, "reason": self.reason, "message": self.message}

    def content(self) -> list[Json]:
        if self.tool == "analyze":
            return [{"type": "text", "text": f"Error ({self.reason}): {self.message}"}]
        if self.tool == "ask":
            return [{"type": "text", "text": json.dumps(self.as_dict(), ensure_ascii=False)}]
        return [_words(self.as_dict())]


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


@final
@dataclass(frozen=True, slots=True)
class Analysis:
    images: tuple[Member, ...]
    question: str
    seer: str
    text: str
    fence: str  # as an agent reads it, with the boxes behind it
    boxes: tuple[Placed, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None  # None: the price is not known
    cached: bool = False

    def as_dict(self) -> dict[str, Json]:
        lost = sum(each.at is None for each in self.boxes)
        usage: dict[str, Json] = {each: getattr(self.usage, each) for each in ("input", "output", "cached")}
        return {
            "ok": True,
            "images": [each.id for each in self.images],
            "question": self.question,
            "seer": self.seer,
            "text": self.text,
            "fence": self.fence,
            "boxes": [_box(each) for each in self.boxes if each.at is not None],
            **({"misfits": lost} if lost else {}),  # places that the answer speaks of, and nobody can find
            "usage": usage,
            "cost_usd": self.cost_usd,
            "cached": self.cached,
        }

    def content(self) -> list[Json]:
        return [{"type": "text", "text": self.fence}]


@final
@dataclass(frozen=True, slots=True)
class Envelope:
    """One answer. The object holds all of it; as JSON it is clipped to `most` characters."""

    text: str
    model: str
    provider: str
    usage: Usage
    cost_usd: float | None  # None: the price is not known
    parsed: dict[str, Json] | None = None  # there where a schema was given
    schema_errors: tuple[str, ...] = ()
    cached: bool = False
    fitted: bool = False
    most: int = field(default=MOST_OF_AN_IMAGE, repr=False)

    @property
    def truncated(self) -> bool:
        return bool(self.as_dict()["truncated"])

    def as_dict(self) -> dict[str, Json]:
        whole = self._with(self.text, self.parsed, truncated=is_cut(self.text))
        if len(_written(whole)) <= self.most:
            return whole
        parsed = self.parsed
        if len(_written(self._with(_mark(self.text), parsed, truncated=True))) > self.most:
            parsed = None  # alone it is too much already, and half of it would be no JSON
        return self._with(self._clipped(parsed), parsed, truncated=True)

    def content(self) -> list[Json]:
        return [{"type": "text", "text": _written(self.as_dict())}]

    def _clipped(self, parsed: dict[str, Json] | None) -> str:
        """As much of the text as there is room for; JSON writes some letters longer than they are."""
        mark, low, high = _mark(self.text), 0, len(self.text)
        while low < high:
            middle = (low + high + 1) // 2
            tried = self._with(self.text[:middle] + mark, parsed, truncated=True)
            low, high = (middle, high) if len(_written(tried)) <= self.most else (low, middle - 1)
        return self.text[:low] + mark

    def _with(self, text: str, parsed: dict[str, Json] | None, *, truncated: bool) -> dict[str, Json]:
        shaped: dict[str, Json] = {} if self.parsed is None else {"parsed": cast("Json", parsed)}
        if self.schema_errors:
            shaped["schema_errors"] = [error[:200] for error in self.schema_errors[:_MOST_ERRORS]]
        return {
            "text": text,
            **shaped,
            "model": self.model,
            "provider": self.provider,
            "cost_usd": self.cost_usd,
            "input_tokens": self.usage.input,
            "output_tokens": self.usage.output,
            "cached": self.cached,
            "fitted": self.fitted,
            "truncated": truncated,
        }


def _mark(text: str) -> str:
    return _MARK.format(len(text))


def _written(found: dict[str, Json]) -> str:
    return json.dumps(found, ensure_ascii=False)


def _box(one: Placed) -> Json:
    assert one.at is not None
    box: list[Json] = [*one.at] if len(one.at) == 4 else [*one.at, *one.at]
    doubt: dict[str, Json] = {"doubtful": True} if one.flag == "doubtful" else {}
    return {"image": one.image, "label": one_line(one.label), "box": box, **doubt}


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
