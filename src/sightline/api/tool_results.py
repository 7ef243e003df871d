"""What the functions and tools of the library return if they succeed; `failure.py` has the other case.

Every result has `as_dict()`, its JSON; `content(wire)`, the blocks that carry it to a model on that wire; and `str()`,
the answer that a person wants.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, final, get_args

from sightline.grounding.parse import OriginalPlace
from sightline.model.facts import DescribedImage
from sightline.model.fence import dump_json_line, to_one_line
from sightline.model.geometry import Box, Size
from sightline.model.image import Image, PageOrigin
from sightline.model.scene import Json
from sightline.model.seer import Usage, is_truncated

Block = dict[str, Json]
Wire = Literal["anthropic", "gemini", "mcp", "openai", "openai_chat", "openai_responses"]
"""The APIs for which tools and results are written. `openai` is short for `openai_chat`, Chat Completions."""

# How each wire writes a text, and an image from its media type and base64.
_TEXT_BLOCKS: Mapping[Wire, Callable[[str], Block]] = {
    **dict.fromkeys(("anthropic", "mcp", "openai", "openai_chat"), lambda text: {"type": "text", "text": text}),
    "gemini": lambda text: {"text": text},
    "openai_responses": lambda text: {"type": "input_text", "text": text},
}
_IMAGE_BLOCKS: Mapping[Wire, Callable[[str, str], Block]] = {
    "anthropic": lambda mime, data: {
        "type": "image",
        "source": {"type": "base64", "media_type": mime, "data": data},
    },
    "gemini": lambda mime, data: {"inlineData": {"mimeType": mime, "data": data}},
    "mcp": lambda mime, data: {"type": "image", "data": data, "mimeType": mime},
    **dict.fromkeys(
        ("openai", "openai_chat"),
        lambda mime, data: {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}},
    ),
    "openai_responses": lambda mime, data: {"type": "input_image", "image_url": f"data:{mime};base64,{data}"},
}
_TOOLS: Mapping[Wire, Callable[[Block, Json], Block]] = {  # from its name and description, and its JSON Schema
    "anthropic": lambda tool, schema: {**tool, "input_schema": schema},
    "gemini": lambda tool, schema: {**tool, "parametersJsonSchema": schema},
    "mcp": lambda tool, schema: {
        **tool,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": tool["name"] != "edit_file"},
    },
    **dict.fromkeys(
        ("openai", "openai_chat"),
        lambda tool, schema: {"type": "function", "function": {**tool, "parameters": schema}},
    ),
    "openai_responses": lambda tool, schema: {"type": "function", **tool, "parameters": schema, "strict": False},
}


def check_wire(wire: str) -> Wire:
    """Return the wire of this name. Raise a ValueError for any other name: that is a mistake in the calling code."""
    if wire not in get_args(Wire):
        raise ValueError(f"there is no wire {wire!r}; use one of {', '.join(get_args(Wire))}")
    return cast("Wire", wire)


def write_content(wire: Wire, texts: Sequence[str], image: Image | None = None) -> list[Any]:
    """Return the blocks of a tool result: the texts first, then the image."""
    known = check_wire(wire)
    blocks = [_TEXT_BLOCKS[known](text) for text in texts]
    return [*blocks, _IMAGE_BLOCKS[known](image.mime, image.base64)] if image else blocks


def format_tools(tools: list[Block], wire: Wire) -> list[Block]:
    """Return tools in the shape that an API takes. For Gemini, that is one tool that declares all the functions."""
    write = _TOOLS[check_wire(wire)]
    written = [write({name: tool[name] for name in ("name", "description")}, tool["parameters"]) for tool in tools]
    return [{"functionDeclarations": [*written]}] if wire == "gemini" else written


def write_json(found: dict[str, Json]) -> str:
    """Write a result as JSON, with characters of all languages as they are."""
    return json.dumps(found, ensure_ascii=False)


IMAGE_ANSWER_CHARACTERS = 8_000  # of the JSON of a whole answer
VIDEO_ANSWER_CHARACTERS = 30_000
_MAX_ERRORS = 10
_MARK = "[truncated — {} chars total]"
_REPR_CHARACTERS = 40  # of a text in a repr


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _REPR_CHARACTERS else f"{text[:_REPR_CHARACTERS]}…")


@final
@dataclass(frozen=True, slots=True)
class View:
    """An image, or a page of a document, that was seen: what it is, and the pixels that were shown of it."""

    mime: str  # of the source, by its bytes
    size: Size  # of the source, upright; of a document, of the page that was rendered
    bytes: int  # of the source
    image: str  # `sha256:` and the hash of the source's bytes, or of the rendered page: every image argument takes it
    source: str  # as the caller named it
    pixels: Image  # what was shown
    crop: Box | None = None  # in pixels of the source, or of the rendered page
    note: str = ""  # what was done to the pixels, where a reader has to know that
    rendered: PageOrigin | None = None  # by what, and which page of how many; None: the source is an image

    def __str__(self) -> str:
        page = f", page {self.rendered.page} of {self.rendered.pages}" if self.rendered else ""
        part = f"{page}, crop {self.crop}" if self.crop else page
        note = f" ({self.note})" if self.note else ""
        return f"{self.source}: {self.mime}, {self.size} pixels, {self.bytes:,} bytes{part}{note}"

    def __repr__(self) -> str:
        return f"<View {self.image[:19]}… {self.mime} {self.size}>"

    def as_dict(self) -> dict[str, Json]:
        """Return the result with what a model reads from the blocks beside it: the format and the note."""
        shown: dict[str, Json] = {**self._describe_pixels(), "mime": self.pixels.mime}
        return {**self.as_result(), "shown": shown, **({"words": self.note} if self.note else {})}

    def as_result(self) -> dict[str, Json]:
        """Return the result as a model reads it, and as the record keeps it."""
        found: dict[str, Json] = {"ok": True, "mime": self.mime, **_write_size(self.size), "bytes": self.bytes}
        found |= {"image": self.image, "source": self.source}
        if self.crop is not None:
            found["crop"] = [self.crop.x, self.crop.y, self.crop.width, self.crop.height]
        if self.rendered is not None:
            found["rendered"] = {name: value for name, value in asdict(self.rendered).items() if value is not None}
        return {**found, "shown": self._describe_pixels()}

    def _describe_pixels(self) -> dict[str, Json]:
        return {**_write_size(self.pixels.size), "bytes": len(self.pixels.data)}

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this view to a model on `wire`: the result, the note if any, the pixels."""
        return write_content(wire, [dump_json_line(self.as_result()), *filter(None, [self.note])], self.pixels)


@final
@dataclass(frozen=True, slots=True)
class FileText:
    """Lines of a text file, or of the text in a document, and the token that permits an edit of the file."""

    source: str
    text: str
    first: int  # line, from 1
    last: int
    lines: int  # in the whole file
    bytes: int  # of the whole file
    token: str  # empty: the text was extracted from a document, which cannot be edited
    character: int | None = None  # of the line to go on with, where one line alone was too long

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<FileText {self.source} lines {self.first}-{self.last} of {self.lines}>"

    def as_dict(self) -> dict[str, Json]:
        place: dict[str, Json] = {"first": self.first, "last": self.last, "lines": self.lines, "bytes": self.bytes}
        if self.character is not None:
            place["character"] = self.character
        token: dict[str, Json] = {"token": self.token} if self.token else {}
        return {"ok": True, "source": self.source, "text": self.text, **place, **token}

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this text to a model on `wire`."""
        return write_content(wire, [dump_json_line(self.as_dict())])


@final
@dataclass(frozen=True, slots=True)
class FileEdit:
    """An edit that was written."""

    source: str
    bytes: int  # of the whole file, as it is now

    def __str__(self) -> str:
        return f"edited {self.source}, which has {self.bytes:,} bytes now"

    def as_dict(self) -> dict[str, Json]:
        return {"ok": True, "source": self.source, "bytes": self.bytes}

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this edit to a model on `wire`."""
        return write_content(wire, [dump_json_line(self.as_dict())])


@final
@dataclass(frozen=True, slots=True)
class Analysis:
    """What a vision model, or the local reader, said about images."""

    members: tuple[DescribedImage, ...]  # the images that were looked at, with their crops and sizes
    question: str  # empty: a description was asked for
    seer: str
    text: str
    fence: str  # the text as an agent reads it, followed by the boxes
    boxes: tuple[OriginalPlace, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None  # None: the price is not known
    cached: bool = False

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"<Analysis by {self.seer} of {', '.join(each[:19] + '…' for each in self.images)}: {_shorten(self.text)}>"
        )

    @property
    def images(self) -> tuple[str, ...]:
        """The `sha256:` references of the images, which every image argument takes."""
        return tuple(each.id for each in self.members)

    def as_dict(self) -> dict[str, Json]:
        lost = sum(each.coordinates is None for each in self.boxes)
        usage: dict[str, Json] = {each: getattr(self.usage, each) for each in ("input", "output", "cached")}
        return {
            "ok": True,
            "images": [*self.images],
            "question": self.question,
            "seer": self.seer,
            "text": self.text,
            "fence": self.fence,
            "boxes": [_write_box(each) for each in self.boxes if each.coordinates is not None],
            **({"misfits": lost} if lost else {}),  # places in the answer that are in none of the images
            "usage": usage,
            "cost_usd": self.cost_usd,
            "cached": self.cached,
        }

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this analysis to a model on `wire`."""
        return write_content(wire, [self.fence])


@final
@dataclass(frozen=True, slots=True)
class FileAnswer:
    """One answer about one file. The object holds all of it; its JSON is clipped to `max_characters`."""

    text: str
    model: str
    provider: str
    usage: Usage
    cost_usd: float | None  # None: the price is not known
    parsed: dict[str, Json] | None = None  # the answer as JSON, where a schema was given
    schema_errors: tuple[str, ...] = ()
    cached: bool = False
    fitted: bool = False
    pages: tuple[int, int] | None = None  # of a PDF, if its pages were sent as images: how many, and of how many
    max_characters: int = IMAGE_ANSWER_CHARACTERS
    frames: tuple[str, ...] = ()  # the times of the stills that were sent instead of a video

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<FileAnswer by {self.provider}/{self.model}: {_shorten(self.text)}>"

    @property
    def truncated(self) -> bool:
        """Whether its JSON has only a part of the text."""
        return bool(self.as_dict()["truncated"])

    def as_dict(self) -> dict[str, Json]:
        whole = self._build_dict(self.text, self.parsed, truncated=is_truncated(self.text))
        if len(write_json(whole)) <= self.max_characters:
            return whole
        parsed = self.parsed
        if len(write_json(self._build_dict(_build_mark(self.text), parsed, truncated=True))) > self.max_characters:
            parsed = None  # it is too long even without the text, and a part of it would not be JSON
        return self._build_dict(self._clip_text(parsed), parsed, truncated=True)

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this answer to a model on `wire`."""
        return write_content(wire, [write_json(self.as_dict())])

    def _clip_text(self, parsed: dict[str, Json] | None) -> str:
        """Return as much of the text as there is room for. JSON escapes make some characters longer."""
        mark, low, high = _build_mark(self.text), 0, len(self.text)
        while low < high:
            middle = (low + high + 1) // 2
            tried = self._build_dict(self.text[:middle] + mark, parsed, truncated=True)
            low, high = (middle, high) if len(write_json(tried)) <= self.max_characters else (low, middle - 1)
        return self.text[:low] + mark

    def _build_dict(self, text: str, parsed: dict[str, Json] | None, *, truncated: bool) -> dict[str, Json]:
        shaped: dict[str, Json] = {} if self.parsed is None else {"parsed": cast("Json", parsed)}
        if self.schema_errors:
            shaped["schema_errors"] = [error[:200] for error in self.schema_errors[:_MAX_ERRORS]]
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
            **({"method": "frames", "frames": [*self.frames]} if self.frames else {}),
            **({"pages": {"sent": self.pages[0], "total": self.pages[1]}} if self.pages else {}),
            "truncated": truncated,
        }


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image of the record, without its bytes."""

    image: str  # `sha256:` and its hash: every image argument takes it
    mime: str
    size: Size
    bytes: int
    path: str = ""  # where it was found last; empty: it was not found in a file that may be read

    def __str__(self) -> str:
        return " ".join(filter(None, [self.image, self.mime, str(self.size), self.path]))

    def as_dict(self) -> dict[str, Json]:
        entry: dict[str, Json] = {"image": self.image, "mime": self.mime, **_write_size(self.size)}
        return {**entry, "bytes": self.bytes, **({"path": self.path} if self.path else {})}


@final
@dataclass(frozen=True, slots=True)
class ImageList:
    """Images of the record, newest first."""

    images: tuple[ListedImage, ...]
    more: bool = False  # there are older ones

    def __str__(self) -> str:
        return "\n".join(map(str, self.images))

    def __repr__(self) -> str:
        return f"<ImageList of {len(self.images)} images>"

    def as_dict(self) -> dict[str, Json]:
        return {"ok": True, "images": [each.as_dict() for each in self.images], "more": self.more}

    def content(self, wire: Wire = "mcp") -> list[Any]:
        """Return the blocks that carry this list to a model on `wire`."""
        return write_content(wire, [dump_json_line(self.as_dict())])


def _build_mark(text: str) -> str:
    return _MARK.format(len(text))


def _write_box(one: OriginalPlace) -> Json:
    assert one.coordinates is not None
    box: list[Json] = [*one.coordinates] if len(one.coordinates) == 4 else [*one.coordinates, *one.coordinates]
    doubt: dict[str, Json] = {"doubtful": True} if one.flag == "doubtful" else {}
    return {"image": one.image, "label": to_one_line(one.label), "box": box, **doubt}


def _write_size(size: Size) -> dict[str, Json]:
    return {"width": size.width, "height": size.height}


def write_result(result: dict[str, Json]) -> str:
    """Write a result as the record keeps it: the same text for the same object, whatever the order of its keys."""
    return json.dumps(result, sort_keys=True)
