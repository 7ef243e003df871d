"""Parse an upstream's error response: what it teaches about the model's images, and which images it names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, Literal

from sightline.model.profile import ImageLimits, Lesson
from sightline.model.scene import JsonPath
from sightline.model.value import value_class
from sightline.profiles import MIB

_MAX_LENGTH = 16_384  # a longer error quotes the request
_MAX_DEPTH = 16
_ECHOES = frozenset(
    {"input", "request", "body", "messages", "prompt", "tools"}
)  # keys under which errors quote the request
_ESCAPED_UNICODE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_ESCAPE = re.compile(r"(?<!\\)\\+([\"'`/])")
_BREAK = re.compile(r"(?:(?<!\\)\\+[nrt]|\s)+")
_EVENT = re.compile(r"^(?:event|data|id|retry):[ ]?", re.MULTILINE)


def extract_sentences(text: str) -> tuple[str, ...]:
    """Return all strings of an error body in order; a validator's location is put before its message."""
    text = text[:_MAX_LENGTH]
    lines = _EVENT.sub("", text).splitlines() if _EVENT.match(text) else [text]
    return tuple(plain for line in lines for leaf in _unwrap_json(line, 0) if (plain := _unescape_text(leaf)))


def _unwrap_json(text: str, depth: int) -> Iterator[str]:
    """Yield a text, or if it contains JSON, what is before it, the strings in it, and what is after it."""
    start = text.find("{")
    if start < 0 or depth > _MAX_DEPTH:
        yield text
        return
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        yield text
        return
    yield text[:start]
    yield from _walk_strings(value, depth + 1)
    yield text[end:]


def _walk_strings(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    match value:
        case str():
            yield from _unwrap_json(value, depth)
        case list():
            for each in value:
                yield from _walk_strings(each, depth + 1)
        case {"loc": [*place], "msg": str(message)}:
            yield f"{'.'.join(map(str, place))}: {message}"
        case dict():
            for key, each in value.items():
                if key not in _ECHOES:
                    yield from _walk_strings(each, depth + 1)


def _unescape_text(text: str) -> str:
    text = _ESCAPED_UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
    return _BREAK.sub(" ", _ESCAPE.sub(r"\1", text)).strip(" []")


RejectionKind = Literal[
    "blind",  # the model accepts no images
    "bytes",  # an image has too many bytes
    "edge",  # an image is too wide or too high
    "crowd_edge",  # too wide or too high in a request with many images
    "count",  # too many images
    "undecodable",  # an image could not be read
    "unclear",  # an image could not be read, or the model accepts none: the wording can mean either
    "media_type",  # the declared type of an image is wrong
    "format",  # the format of an image is not accepted
    "tool_images",  # a tool result may not contain an image; the model may have vision
    "tool_order",  # no message of a user may follow a tool result
    "request",  # the whole request has too many bytes
]

REJECTION_REASONS: dict[RejectionKind, str] = {
    "blind": "the upstream answered that this model takes no images",
    "bytes": "the upstream answered that an image has too many bytes",
    "edge": "the upstream answered that an image is too large",
    "crowd_edge": "the upstream answered that an image is too large among so many",
    "count": "the upstream answered that there are too many images",
    "undecodable": "the upstream could not read an image",
    "unclear": "the upstream rejected a readable image, with an unclear message",
    "media_type": "the upstream found an image with a wrong media type",
    "format": "the upstream does not take the format of an image",
    "tool_images": "the upstream takes no image in a tool result",
    "tool_order": "the upstream takes no message of a user after a tool result",
    "request": "the upstream answered that the request is too large",
}


@value_class
class RejectionWording:
    """A wording of a rejection. A group named after a field of `ImageLimits` matches its number; `size` and `unit`
    match a number with a unit; `listed` matches the accepted formats, `refused` the rejected one."""

    kind: RejectionKind
    pattern: str
    limits: ImageLimits  # what the wording implies beyond its numbers

    def search(self, text: str) -> re.Match[str] | None:
        return compile_pattern(self.pattern).search(text)


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: there are 80."""
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_NO_LIMITS = ImageLimits()


def _list_wordings(
    kind: RejectionKind, *patterns: str, limits: ImageLimits = _NO_LIMITS
) -> tuple[RejectionWording, ...]:
    return tuple(RejectionWording(kind, each, limits) for each in patterns)


_SIZE = r"(?P<size>\d{1,6}(?:\.\d{1,3})?)\s?(?P<unit>[KM])i?B"
_BYTES = (
    r"(?P<encoded_bytes>\d[\d,]{3,14}(?= ?bytes\b)|\d[\d,]{5,14}(?=\s*(?:$|[.)])))"  # without a unit: a long number
)
_IMAGES = r"['\"`]?(?:images?|image_url|input_image)\b['\"`]?"
_IMAGE_TYPE = r"(?:image_url|input_image|image)"  # of a content block
_PICTURE = r"(?:images?|pictures?|photos?|screenshots?)"
_PICTURE_SIZE = rf"\b(?<!number of )(?<!count of ){_PICTURE}(?: (?:files?|data|sizes?|payloads?|contents?|inputs?))*"
_ENDS = r"(?=\s*(?:$|[.,;:!?)(\"'`]|(?:inputs?|contents?|blocks?|parts?|modalit\w+|attachments?|or|and)\b))"

# The first match decides. "blind" is remembered longest, so it comes after everything that is more specific.
WORDINGS = (
    *_list_wordings(
        "crowd_edge",
        r"dimensions exceed max allowed size for many-image requests: (?P<crowd_edge>\d{2,6})",
        limits=ImageLimits(crowd=20),
    ),
    *_list_wordings(
        "edge",
        r"dimensions exceed max allowed size: (?P<edge>\d{2,6})",
        r"image (?:dimensions?|resolution|width|height)\b.{0,60}?"
        r"(?:exceed|larger|greater|at most|maximum).{0,40}?(?P<edge>\d{3,6}) ?(?:px|pixels)",
    ),
    *_list_wordings(
        "bytes",
        r"image exceeds .{1,10} maximum: [\d,]{1,15} bytes > (?P<encoded_bytes>\d[\d,]{0,14}) bytes",
        rf"image\b.{{0,40}}?(?:exceeds?|larger than|limit|less than|smaller than|at most|max(?:imum)?|under|below)\b"
        rf".{{0,30}}?{_SIZE}",
        rf"\b{_PICTURE}\b.{{0,60}}?(?:>|\b(?:limit|max(?:imum)?|at most|less than|smaller than|under|below|up to)\b)"
        rf"(?: (?:allowed|file|image|size|is|of|the))*:? ?{_BYTES}",
        rf"\bmax(?:imum)? (?:allowed )?image (?:file )?size(?: is| of)?:? {_BYTES}",
        rf"\b{_PICTURE}\b.{{0,40}}?\b(?:exceeds?|larger than|bigger than|over|above) (?:the )?{_BYTES}",
        rf"{_PICTURE_SIZE} (?:is |are )?too (?:large|big)\b(?! to send)",
        rf"{_PICTURE_SIZE} (?:is |are )?(?:exceed(?:s|ed|ing)?|above|over|(?:larger|bigger|greater) than)"
        r" (?:the |its )?(?:(?:maximum|max|allowed|permitted|size|file) )*(?:size|limit)\b",
        r"\bimage (?:dimensions?|resolution|size)s? (?:is |are )?too (?:large|big|high)\b",
        r"\bmax(?:imum)? (?:allowed )?image (?:file )?size (?:is |was |has been )?exceeded",
        r"图[片像](?:文件)?(?:大小|尺寸|体积)?(?:过大|太大|超过|超出)",
    ),
    *_list_wordings(
        "count",
        r"contains \d{1,6} images, exceeding the maximum of (?P<count>\d{1,6})",
        r"too many images.{0,80}?(?:maximum of|up to|at most|limit(?: is| of)?) (?P<count>\d{1,6})",
        r"too (?:many images|much media)\b.{0,60}?> (?P<count>\d{1,6})",
        r"at most (?P<count>[1-9]\d{0,5}) image(?:s|\(s\))? may be provided",
    ),
    *_list_wordings("count", r"only supports one image while more than one image", limits=ImageLimits(count=1)),
    *_list_wordings(
        "media_type",
        r"image does not match the provided media type",
        r"specified using the image/\w+ media type, but the image appears to be",
    ),
    *_list_wordings(
        "format",
        r"input should be (?P<listed>'image/.{1,200})",
        r"unsupported MIME type:? ?['\"`]?(?P<refused>image/[\w.+-]{1,30})",
        r"(?:image MIME type|data URL).{0,200}unsupported MIME type",
        r"unsupported image.{0,120}?one (?:of )?the following formats: (?P<listed>.{1,120})",
        r"(?:unsupported|invalid) image (?:format|type)\b",
        r"\bimage (?:format|type)\b.{0,40}(?:not supported|unsupported)",
        r"unsupported media type for base64 image",
    ),
    *_list_wordings(
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
    # Z.AI uses the first for a broken image and for some models without vision, the second for anything unexpected.
    *_list_wordings("unclear", r"图片输入格式/解析错误", r"^invalid api parameter"),
    *_list_wordings(
        "tool_images",
        r"multimodal function responses are not supported",
        # Gateways that accept only text in a tool result, also for models with vision.
        r"(?:^|\bcontent(?:\.str)?: )input should be a valid string",
        r"\bcontent['\"`]?:? (?:must be|should be|expected)(?: to be)? (?:a |an )?(?:valid )?string\b",
        r"\btool_result\b.{0,80}input tag 'image' found",
        r"role:tool\b.{0,80}\.content' : value must be a string",  # Groq
    ),
    *_list_wordings("tool_order", r"unexpected role 'user' after role 'tool'"),  # Mistral, code 3230
    *_list_wordings(
        "request",
        rf"too large to send natively.{{0,80}}?{_SIZE} limit",
        rf"request (?:body |entity |payload |size )?(?:is )?(?:too large|exceeds).{{0,60}}?{_SIZE}",
        r"request_too_large|payload too large|request entity too large",
        r"request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
    ),
    *_list_wordings(
        "blind",
        r"no endpoints found that support image",
        r"\b(?:no|none of the) (?:[\w-]+ ){0,4}?supports? (?:the )?image(?:s\b| inputs?| modalit)",
        rf"unknown variant .{_IMAGE_TYPE}., expected (?:one of )?.(?:input_)?text\b(?!(?:., .\w+)*., .{_IMAGE_TYPE})",
        # Pydantic (vLLM, LiteLLM and other servers in Python) and OpenAI, with a list of what is accepted.
        rf"input tag '{_IMAGE_TYPE}' found .{{1,40}} expected tags: (?!.*'{_IMAGE_TYPE}').*'(?:input_)?text'",
        r"input should be '(?:input_)?text'(?=\s*(?:$|[.;]))",
        rf"invalid value: '{_IMAGE_TYPE}'\. supported values are:? (?!.*'{_IMAGE_TYPE}').*'(?:input_)?text'",
        r"(?:unsupported|not support(?:ed)?)(?: the)?(?: input)? modalit(?:y|ies):? ['\"`]?image",
        r"(?:unsupported|unknown|unrecogni[sz]ed) (?:input|content)(?: part| block)? type:?"
        rf" ['\"`]?{_IMAGE_TYPE}\b(?!/)",
        r"(?:(?:do|does) not|don't|doesn't|cannot|can't) (?:support|accept|process|handle|take) (?:the )?"
        rf"{_IMAGES}{_ENDS}",
        r"(?:(?:do|does) not|don't|doesn't) (?:support|have)"
        r" (?:vision|multi-?modal|image (?:understanding|recognition))",
        r"\bmodel\b.{0,60} has no (?:vision|image|multi-?modal) (?:capabilit|support|input|understanding)",
        r"(?<!url )(?<!base64 )(?<!animated )(?<!output )(?<!output modality )"
        r"\b(?:images?|image[ _](?:inputs?|contents?|modality)|image_url|input_image|vision"
        r"|multi-?modal(?: (?:inputs?|contents?))?)['\"`]?"
        r" (?:is |are )?not (?:supported|enabled)\b"
        r"(?! (?:in|inside|within|for) (?:a |an |the )?(?:tool|function|system|assistant))",
        r"image_url is only supported by certain models",
        r"not supported for vision",
        r"image input modality is not (?:enabled|available)",  # Google
        r"\bimage (?:inputs?|contents?)(?: blocks?| parts?)? (?:is |are )?"
        r"(?:disabled|unavailable|not (?:available|allowed|accepted|permitted)) (?:for|by|with|on)"
        r" (?:this|the) (?:\w+ )?(?:model|endpoint|deployment)",
        r"is not a VLM\b",  # SiliconFlow
        r"content(?:\[\d{1,6}\])?\.type ?参数非法(?!.*image)",  # GLM
        r"missing data required for image input",  # Ollama
        r"unexpected item type in content\b",  # DashScope
        r"role:user\b.{0,80}\.content' : value must be a string",  # Groq
        r"(?:does not|doesn't) support the image field\b",  # Bedrock
        r"is not a (?:multi-?modal|vision) model",
        r"only supports? text inputs?\b",
        r"\b(?:model|endpoint|api)\b.{0,40} only (?:supports?|accepts?|takes?) text(?: (?:modalit\w+|contents?))?"
        r"(?=\s*(?:$|[.;)]))",
        r"\bcontent[.\[]\d{1,6}\]?\.type['\"`]?:? (?:must|should) be ['\"`](?:input_)?text['\"`](?=\s*(?:$|[.;)]))",
        r"\bmodel\b.{0,60} is (?:a )?text[- ]only\b",
        r"\bvision (?:is )?not available\b",
        r"at most 0 image",
        r"不支持(?:图片|图像|视觉|多模态)(?!格式|类型|链接)",
    ),
)


@value_class
class Rejection:
    kind: RejectionKind
    lesson: Lesson
    paths: tuple[JsonPath, ...] = ()  # of the image blocks that the error names


UNRELATED_STATUSES = frozenset({401, 402, 403, 408, 429})  # about the caller or the time, whatever their text
# Sentences that may contain any words: routing by policy, and schemas with descriptions of tools.
_ORDINARY = re.compile(r"data policy|^tools?[.\[]|input_schema|invalid (?:json )?schema", re.IGNORECASE)
_TOKENS = re.compile(r"tokens|\bTPM\b|rate limit|context (?:length|window)", re.IGNORECASE)


_SHAPE = (
    r"\b(?:messages|contents?|input|parts|tools?)(?:\[\d|\.\d)"
    r"|\b(?:unknown|unexpected|unrecogni[sz]ed|invalid|missing|extra|additional) (?:\w+ ){0,2}"
    r"['\"`]?(?:fields?|keys?|names?|variant|param(?:eter)?s?|propert(?:y|ies)|roles?|items?|types?|inputs?)\b"
    r"|\b(?:must|should) be (?:an? )?(?:valid )?(?:string|array|object|list|text|one of)\b"
    r"|\bexpected (?:an? |one of )?['\"`]?(?:string|array|object|list|text|map|sequence)\b"
    r"|\broles? must alternate|\brole\b.{0,40}\b(?:after|follow)"
    r"|validation error|deserialize|invalid json|\bschema\b"
    r"|tool_(?:use|result|call)|function (?:call|response)"
)


def is_about_shape(text: str) -> bool:
    """Return whether an error is about the form of a request: a field, its type, a role, or the order of messages."""
    return compile_pattern(_SHAPE).search("\n".join(extract_sentences(text))) is not None


def is_about_length(text: str) -> bool:
    """Return whether an error is about the number of tokens, which every change of a request changes."""
    return _TOKENS.search("\n".join(extract_sentences(text))) is not None


def parse_rejection(status: int, text: str) -> Rejection | None:
    """Return what an error response says about images, or None if it is about something else."""
    if status in UNRELATED_STATUSES:
        return None
    sentences = [sentence for sentence in extract_sentences(text) if not _ORDINARY.search(sentence)]
    text_searched = "\n".join(sentences)
    found = next(((each, match) for each in WORDINGS if (match := each.search(text_searched))), None)
    kind: RejectionKind = found[0].kind if found else "request"
    if kind == "request" and (_TOKENS.search(text_searched) or not (found or status == 413)):
        return None
    limits = _read_limits(*found) if found else ImageLimits()
    lesson = Lesson(blind=kind == "blind" or None, limits=limits, why=REJECTION_REASONS[kind])
    return Rejection(kind, lesson, _find_paths(sentences))


_NUMBERS = frozenset(each.name for each in fields(ImageLimits)) - {"formats"}
_UNITS = {"K": 1024, "M": MIB}


def _read_limits(wording: RejectionWording, match: re.Match[str]) -> ImageLimits:
    """Return the limits that a wording implies, with those that the matched sentence names."""
    groups = {name: value for name, value in match.groupdict().items() if value}
    named: dict[str, Any] = {name: int(value.replace(",", "")) for name, value in groups.items() if name in _NUMBERS}
    if "size" in groups:
        whose = "encoded_bytes" if wording.kind == "bytes" else "request_bytes"
        named[whose] = int(float(groups["size"]) * _UNITS[groups["unit"].upper()])
    return replace(wording.limits, formats=_read_formats(wording.limits.formats, groups), **named)


def _read_formats(known: tuple[str, ...], groups: Mapping[str, str]) -> tuple[str, ...]:
    """Return the formats that remain: those that were listed, or all but the rejected one."""
    listed = groups.get("listed", "").lower().replace("jpg", "jpeg")
    taken = tuple(mime for mime in known if mime.partition("/")[2] in listed)
    return taken or tuple(mime for mime in known if mime != groups.get("refused", "").lower())


_PLACE = re.compile(r"\b(?:messages|input|contents)(?:[.\[\]]+\w{1,40})+")
_STEP = re.compile(r"[A-Za-z_]\w*|\d{1,6}")
_LISTS = frozenset({"messages", "input", "contents", "content", "parts", "output"})


def _find_paths(sentences: Iterable[str]) -> tuple[JsonPath, ...]:
    """Return the blocks named like `messages.3.content.0.tool_result.content.1.image`, without the types."""
    found = (_parse_path(match[0]) for sentence in sentences for match in _PLACE.finditer(sentence))
    return tuple(dict.fromkeys(path for path in found if len(path) >= 4))  # a shorter path names a message, not a block


def _parse_path(place: str) -> JsonPath:
    steps = _STEP.findall(place)
    path: list[str | int] = []
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        if step.isdigit():
            path.append(int(step))
        elif step in _LISTS and following.isdigit():
            path.append(step)
    return tuple(path)


def compile_patterns() -> Iterator[None]:
    """Compile one pattern after the other, so that the first error response doesn't take the time for all."""
    for pattern in (_SHAPE, *(each.pattern for each in WORDINGS)):
        compile_pattern(pattern)
        yield


_WORD_ENDS = re.compile(r"_|(?<=[a-z])(?=[A-Z])")  # inside error codes such as too_many_pages
_PAGES = r"(?:pdf |document |input )*pages?\b"
_OVER = (
    r"\b(?:maximum|max|limit\w*|exceed\w*|over|above|cap|only|allow\w*|support\w*|at most|up to|within|too many|no more"
    r"|(?:more|fewer|less|greater|longer|larger) than|not be (?:greater|more|longer))\b"
)
# In Italian, Spanish, Portuguese, French, Dutch, German, Polish, Russian, Japanese and Korean.
_PAGES_ABROAD = r"(?:p[aá]gin(?:e|as|a's)\b|\bpages\b|\bseiten(?:zahl)?\b|\bstron\b|страниц\w*|ページ|페이지|頁)"
_OVER_ABROAD = (
    r"(?:\btropp[eo]\b|super[aoi]|eccede|oltre|massim[oai]|limite|límite|máxim[oa]|excede|demasiad|\btrop de\b|dépass"
    r"|te veel|meer dan|\bzu viele\b|überschr|maximal|höchstens|więcej niż|za dużo|превыш|слишком много|не более"
    r"|超|上限|まで|以下|초과|제한)"
)
PAGE_LIMIT = (
    rf"too many {_PAGES}"
    r"|\bpdf too long\b"
    rf"|max(?:imum)? (?:number of )?{_PAGES}"
    rf"|{_OVER}[^.;!?]{{0,60}}\b\d[\d,]*[ -]{_PAGES}"
    rf"|{_OVER} (?:the )?(?:number|count) of {_PAGES}"
    rf"|\b(?:pages|page (?:count|number|limit|quota)|\d[- ]page)\b[^.;!?]{{0,80}}{_OVER}"
    r"|\bpage (?:limit|quota|cap)\b"
    # The limit is in the next clause: "1200 pages; only 1000 are allowed".
    rf"|\d {_PAGES}[;,.] (?:but |and |the )?(?:only |cap |limit |max\w* )*(?:is )?(?:the first )?\d[\d,]*"
    r"(?: pages)?(?:\.|$| (?:are|is|can be|may be) (?:allow|permit|support|accept|process|read)\w*)"
    rf"|\d[- ]{_PAGES} or (?:fewer|less)\b"
    r"|\bpages?(?: count)?:? \d[\d,]* ?> ?\d"
    r"|\bpages?\b[^.;!?]{0,40}\bout of (?:the )?(?:allowed |valid )?(?:bounds|range)\b"
    r"|\bpage range[^.;!?]{0,20}(?:exceed|too (?:large|long|wide))"
    rf"|{_OVER_ABROAD}[^.;!?]{{0,30}}{_PAGES_ABROAD}"
    rf"|{_PAGES_ABROAD}[^.;!?]{{0,30}}{_OVER_ABROAD}"
    r"|页数.{0,20}(?:超|不能|不得|上限|限制|过多|太多|最多)"
    r"|(?:超过|超出|最多|上限|不超过).{0,20}\d\s*页"
)


def is_page_limit(status: int, text: str) -> bool:
    """Return whether an error response says that a document has too many pages."""
    if status in UNRELATED_STATUSES:
        return False
    sentences = (_WORD_ENDS.sub(" ", sentence) for sentence in extract_sentences(text))
    return any(compile_pattern(PAGE_LIMIT).search(sentence) for sentence in sentences)
