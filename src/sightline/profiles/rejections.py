"""What an upstream's rejection of an image teaches about its model, and which images it names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from sightline.model.profile import Lesson, Limits
from sightline.model.scene import Path
from sightline.profiles.preset import MIB

_LONGEST = 16_384  # an error that says more than this quotes the request
_DEEPEST = 16
_ECHOES = frozenset({"input", "request", "body", "messages", "prompt", "tools"})  # the caller's own words
_ESCAPED_UNICODE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_ESCAPE = re.compile(r"(?<!\\)\\+([\"'`/])")
_BREAK = re.compile(r"(?:(?<!\\)\\+[nrt]|\s)+")
_EVENT = re.compile(r"^(?:event|data|id|retry):[ ]?", re.MULTILINE)


def sentences(text: str) -> tuple[str, ...]:
    """Every string of an error body, in order; a validator's place stands in front of its message."""
    text = text[:_LONGEST]
    lines = _EVENT.sub("", text).splitlines() if _EVENT.match(text) else [text]
    return tuple(said for line in lines for leaf in _unwrapped(line, 0) if (said := _plain(leaf)))


def _unwrapped(text: str, depth: int) -> Iterator[str]:
    """A text, or when JSON stands in it, what is before, in and behind the JSON."""
    start = text.find("{")
    if start < 0 or depth > _DEEPEST:
        yield text
        return
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        yield text
        return
    yield text[:start]
    yield from _strings(value, depth + 1)
    yield text[end:]


def _strings(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    match value:
        case str():
            yield from _unwrapped(value, depth)
        case list():
            for each in value:
                yield from _strings(each, depth + 1)
        case {"loc": [*place], "msg": str(message)}:
            yield f"{'.'.join(map(str, place))}: {message}"
        case dict():
            for key, each in value.items():
                if key not in _ECHOES:
                    yield from _strings(each, depth + 1)


def _plain(text: str) -> str:
    text = _ESCAPED_UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
    return _BREAK.sub(" ", _ESCAPE.sub(r"\1", text)).strip(" []")


Kind = Literal[
    "blind",  # the model takes no images
    "bytes",  # an image is too heavy
    "edge",  # an image is too wide or too high
    "crowd_edge",  # too wide or too high among so many images
    "count",  # too many images
    "undecodable",  # an image could not be read
    "unclear",  # an image could not be read, or the model takes none: the words mean either
    "media_type",  # an image is declared as what it is not
    "format",  # an image is of a format that is not taken
    "tool_images",  # a tool result may not hold an image; the model may well see
    "request",  # the whole request is too heavy
]

WHY: dict[Kind, str] = {
    "blind": "the upstream answered that this model takes no images",
    "bytes": "the upstream answered that an image is too heavy",
    "edge": "the upstream answered that an image is too large",
    "crowd_edge": "the upstream answered that an image is too large among so many",
    "count": "the upstream answered that there are too many images",
    "undecodable": "the upstream could not read an image",
    "unclear": "the upstream refused an image that can be read, in words that may mean any",
    "media_type": "the upstream found an image that is not what it is declared as",
    "format": "the upstream does not take an image's format",
    "tool_images": "the upstream takes no image in a tool result",
    "request": "the upstream answered that the request is too heavy",
}


@dataclass(frozen=True, slots=True)
class Wording:
    """A group named after a field of `Limits` holds its number; `size` and `unit` hold one with a unit;
    `listed` holds the formats that are taken, `refused` the one that is not."""

    kind: Kind
    pattern: re.Pattern[str]
    limits: Limits  # what the wording means beyond what it says


_NOTHING = Limits()


def _of(kind: Kind, *patterns: str, limits: Limits = _NOTHING) -> tuple[Wording, ...]:
    return tuple(Wording(kind, re.compile(each, re.IGNORECASE | re.MULTILINE), limits) for each in patterns)


_SIZE = r"(?P<size>\d{1,6}(?:\.\d{1,3})?)\s?(?P<unit>[KM])i?B"
_IMAGES = r"['\"`]?(?:images?|image_url|input_image)\b['\"`]?"
_ENDS = r"(?=\s*(?:$|[.,;:!?)(\"'`]|(?:inputs?|contents?|blocks?|parts?|modalit\w+|attachments?|or|and)\b))"

# The first that matches decides. Blindness is remembered longest, so it comes after all that is more exact.
WORDINGS = (
    *_of(
        "crowd_edge",
        r"dimensions exceed max allowed size for many-image requests: (?P<crowd_edge>\d{2,6})",
        limits=Limits(crowd=20),
    ),
    *_of(
        "edge",
        r"dimensions exceed max allowed size: (?P<edge>\d{2,6})",
        r"image (?:dimensions?|resolution|width|height)\b.{0,60}?"
        r"(?:exceed|larger|greater|at most|maximum).{0,40}?(?P<edge>\d{3,6}) ?(?:px|pixels)",
    ),
    *_of(
        "bytes",
        r"image exceeds .{1,10} maximum: [\d,]{1,15} bytes > (?P<encoded_bytes>\d[\d,]{0,14}) bytes",
        rf"image\b.{{0,40}}?(?:exceeds?|larger than|limit|less than|smaller than|at most)\b.{{0,30}}?{_SIZE}",
        r"\bimage (?:file )?(?:is )?too large(?! to send)",
    ),
    *_of(
        "count",
        r"contains \d{1,6} images, exceeding the maximum of (?P<count>\d{1,6})",
        r"too many images.{0,80}?(?:maximum of|up to|at most|limit(?: is| of)?) (?P<count>\d{1,6})",
        r"too (?:many images|much media)\b.{0,60}?> (?P<count>\d{1,6})",
        r"at most (?P<count>[1-9]\d{0,5}) image(?:s|\(s\))? may be provided",
    ),
    *_of("count", r"only supports one image while more than one image", limits=Limits(count=1)),
    *_of(
        "media_type",
        r"image does not match the provided media type",
        r"specified using the image/\w+ media type, but the image appears to be",
    ),
    *_of(
        "format",
        r"input should be (?P<listed>'image/.{1,200})",
        r"unsupported MIME type:? ?['\"`]?(?P<refused>image/[\w.+-]{1,30})",
        r"(?:image MIME type|data URL).{0,200}unsupported MIME type",
        r"unsupported image.{0,120}?one (?:of )?the following formats: (?P<listed>.{1,120})",
        r"(?:unsupported|invalid) image (?:format|type)\b",
        r"\bimage (?:format|type)\b.{0,40}(?:not supported|unsupported)",
        r"unsupported media type for base64 image",
    ),
    *_of(
        "undecodable",
        r"(?:could not|unable to|cannot|failed to) (?:process|decode|load|parse|identify|read)"
        r" (?:the |input |provided )*image\b",
        r"does not represent a valid image",
        r"provided image is not valid",
        r"invalid image (?:data|input)",
        r"image: unknown format",
        r"image cannot be empty",
        r"unsupported image\.",
    ),
    # Z.AI says the one for a broken image and from some blind models, the other for anything it does not expect.
    *_of("unclear", r"图片输入格式/解析错误", r"^invalid api parameter"),
    *_of(
        "tool_images",
        r"multimodal function responses are not supported",
        # A bridge that takes a tool result as text alone, also in front of models that see.
        r"(?:^|\bcontent(?:\.str)?: )input should be a valid string",
        r"role:tool\b.{0,80}\.content' : value must be a string",  # Groq
    ),
    *_of(
        "request",
        rf"too large to send natively.{{0,80}}?{_SIZE} limit",
        rf"request (?:body |entity |payload |size )?(?:is )?(?:too large|exceeds).{{0,60}}?{_SIZE}",
        r"request_too_large|payload too large|request entity too large",
        r"request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
    ),
    *_of(
        "blind",
        r"no endpoints found that support image",
        r"unknown variant .(?:image_url|input_image|image)., expected .(?:input_)?text\b",
        r"(?:(?:do|does) not|don't|doesn't|cannot|can't) (?:support|accept|process|handle|take) (?:the )?"
        rf"{_IMAGES}{_ENDS}",
        r"(?:(?:do|does) not|don't|doesn't) (?:support|have) (?:vision|multi-?modal)",
        r"(?<!url )(?<!base64 )(?<!animated )"
        r"\b(?:images?|image[ _]inputs?|image_url|input_image|vision|multi-?modal(?: inputs?)?)['\"`]?"
        r" (?:is |are )?not (?:supported|enabled)\b"
        r"(?! (?:in|inside|within|for) (?:a |an |the )?(?:tool|function|system|assistant))",
        r"unsupported content part type: .image",
        r"image_url is only supported by certain models",
        r"not supported for vision",
        r"image input modality is not enabled",  # Google
        r"is not a VLM\b",  # SiliconFlow
        r"content\.type 参数非法",  # GLM
        r"missing data required for image input",  # Ollama
        r"unexpected item type in content\b",  # DashScope
        r"role:user\b.{0,80}\.content' : value must be a string",  # Groq
        r"(?:does not|doesn't) support the image field\b",  # Bedrock
        r"is not a (?:multi-?modal|vision) model",
        r"only supports? text inputs?\b",
        r"at most 0 image",
        r"不支持(?:图片|图像|视觉|多模态)(?!格式|类型|链接)",
    ),
)


@dataclass(frozen=True, slots=True)
class Rejection:
    kind: Kind
    lesson: Lesson
    places: tuple[Path, ...] = ()  # of the image blocks that the upstream named


DENIED = frozenset({401, 402, 403, 408, 429})  # about the caller or the moment, whatever their words
# Sentences that may hold any words at all: routing by policy, and schemas with the tools' own descriptions.
_ORDINARY = re.compile(r"data policy|^tools?[.\[]|input_schema|invalid (?:json )?schema", re.IGNORECASE)
_TOKENS = re.compile(r"tokens|\bTPM\b|rate limit|context (?:length|window)", re.IGNORECASE)


def lesson(status: int, text: str) -> Rejection | None:
    """What an error answer says about images, or None where it is about something else."""
    if status in DENIED:
        return None
    said = [sentence for sentence in sentences(text) if not _ORDINARY.search(sentence)]
    whole = "\n".join(said)
    found = next(((each, match) for each in WORDINGS if (match := each.pattern.search(whole))), None)
    kind: Kind = found[0].kind if found else "request"
    if kind == "request" and (_TOKENS.search(whole) or not (found or status == 413)):
        return None
    limits = _limits(*found) if found else Limits()
    return Rejection(kind, Lesson(blind=kind == "blind" or None, limits=limits, why=WHY[kind]), _places(said))


_NUMBERS = frozenset(each.name for each in fields(Limits)) - {"formats"}
_UNITS = {"K": 1024, "M": MIB}


def _limits(wording: Wording, match: re.Match[str]) -> Limits:
    """The limits of the wording, with those that this sentence names."""
    groups = {name: value for name, value in match.groupdict().items() if value}
    named: dict[str, Any] = {name: int(value.replace(",", "")) for name, value in groups.items() if name in _NUMBERS}
    if "size" in groups:
        whose = "encoded_bytes" if wording.kind == "bytes" else "request_bytes"
        named[whose] = int(float(groups["size"]) * _UNITS[groups["unit"].upper()])
    return replace(wording.limits, formats=_formats(wording.limits.formats, groups), **named)


def _formats(known: tuple[str, ...], groups: Mapping[str, str]) -> tuple[str, ...]:
    """The formats that are left: those that were listed, or all but the refused one."""
    listed = groups.get("listed", "").lower().replace("jpg", "jpeg")
    taken = tuple(mime for mime in known if mime.partition("/")[2] in listed)
    return taken or tuple(mime for mime in known if mime != groups.get("refused", "").lower())


_PLACE = re.compile(r"\b(?:messages|input|contents)(?:[.\[\]]+\w{1,40})+")
_STEP = re.compile(r"[A-Za-z_]\w*|\d{1,6}")
_LISTS = frozenset({"messages", "input", "contents", "content", "parts", "output"})


def _places(said: Iterable[str]) -> tuple[Path, ...]:
    """The blocks that are named like `messages.3.content.0.tool_result.content.1.image`, without types."""
    found = (_path(match[0]) for sentence in said for match in _PLACE.finditer(sentence))
    return tuple(dict.fromkeys(path for path in found if len(path) >= 4))  # a message alone names no block


def _path(place: str) -> Path:
    steps = _STEP.findall(place)
    path: list[str | int] = []
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        if step.isdigit():
            path.append(int(step))
        elif step in _LISTS and following.isdigit():
            path.append(step)
    return tuple(path)
