"""The words in which upstreams are known to reject an image, as a table of patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sightline.model.profile import Limits

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
        r"unknown variant .(?:image_url|input_image|image)., expected .text\b",
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
        r"is not a (?:multi-?modal|vision) model",
        r"only supports? text inputs?\b",
        r"at most 0 image",
        r"不支持(?:图片|图像|视觉|多模态)(?!格式|类型|链接)",
    ),
)
