"""Images among words, in the forms in which libraries write them.

- AutoGen: `[Image: iVBORw0…]`
- a Python object: `ImageContent(type='image', data='iVBORw0…', mimeType='image/png')` (llama-index), without its name
  (crewai-tools, dspy), or with `data_uri='data:image/png;,iVBORw0…'` (semantic-kernel)
- a Python dictionary or JSON with words around it: `Screenshot taken\\n[{"type": "image", "data": "iVBORw0…"}]`
- dspy: `<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url", …}]<<CUSTOM-TYPE-END-IDENTIFIER>>`
- behind words, at the end: base64, a data URL, or JSON that has one of them as a value, on a line of its own or after
  a colon; also a data URL at the end of any line
- the same in the output of a shell, before the lines that Gemini CLI and Qwen Code add: `Output: iVBORw0…\\nError: …`
- Markdown: `![a page](data:image/png;base64,iVBORw0…)` on a line of its own
- XML: `<screenshot>iVBORw0…</screenshot>`
- bytes, in the forms of `image_bytes`

Other base64 counts only as the whole value of a field of an object that says that it is an image. A data URL in a page
or a program that an agent reads stays: the agent may be about to edit that file. The search takes linear time: each
image is skipped as a whole, and only a few characters around it are looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from sightline.model.image import BASE64_RUN_TABLE
from sightline.model.scene import InlineSource
from sightline.wire.image_blocks import MIN_BASE64, is_image_base64
from sightline.wire.image_bytes import PrintedImage, find_printed_images
from sightline.wire.json_tree import Texts, is_oversized

_NEARBY = 256  # characters around an image in which its object says what it is
_DSPY_START, _DSPY_END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"
_DSPY_FIELD = "[[ ## "  # before the name of each field of a message
_AUTOGEN_START = "[Image: "
_PYTHON_BEGINNINGS = ("{'", "['", "[{'", "({'", "('")

_LONG_RUN, _BREAK = b"A" * MIN_BASE64, b" "  # in a text that was translated with `BASE64_RUN_TABLE`
# How base64 begins for each image format; what else begins so is found out later.
_FIRST_LETTERS = ("iVBORw0KGg", "/9j/", "_9j_", "R0lGOD", "UklGR", "SUkqA", "TU0AK", "Qk", "AAAA", "AAABAA")
_MAX_LETTERS_BEFORE_TOKEN = 8
_find_url_prefix = re.compile(r"data:(?P<mime>[\w.+-]+/[\w.+-]+)?(?:;[\w=.-]*)*,\Z", re.IGNORECASE).search
_MAX_URL_PREFIX = 120
_QUOTES = ("'", '"')
_MAX_FIELD = 48  # characters of its key, and of what is between that and its value
# The field that the value in quotes belongs to: key='…' as Python writes an object, 'key': '…' as in a dictionary.
_find_field = re.compile(r"(?P<key>\w+)\\*(?P<mark>=b?|[\"']\s*:\s*b?)(?P<quote>\\*[\"'])\Z").search
_find_quote = re.compile(r"(?P<quote>\\*[\"'])\Z").search
_says_image = re.compile(
    r"(?:type|mime_?[tT]ype|media_?[tT]ype)(?:=|\\*[\"']\s*:\s*)\\*[\"'](?:image|media\\*[\"']|input_image|file-data)"
).search
# Where another object begins, or this one ends: behind its end, an object that it is part of may go on.
_split_at_bounds = re.compile(r"[{(]|[})](?!\s*[,}\])])").split
_says_mcp_image = re.compile(r"type='image'").search
_DATA_KEYS = frozenset({"data", "blob", "base64", "image"})
_URL_KEYS = frozenset({"data_uri", "url", "image_url", "uri"})

# Between two lines of wrapped base64, also as an escape in a text in quotes.
_match_line_break = re.compile(r"(?:(?:\\{1,15}r)?\\{1,15}n|\r?\n)(?=[A-Za-z0-9+/_=-])").match
_match_last_break = re.compile(r"(?:\\{1,15}r)?\\{1,15}n(?=\\{0,15}[\"'])").match
_drop_line_breaks = re.compile(r"\\+[rn]|[\r\n]").sub
_MAX_LINE = 128
_find_markdown = re.compile(r"(?:\A|(?<=\n))[ \t]*!\[[^\]\n]*\]\(\Z").search
_find_words = re.compile(r"(?:\n|(?<=\S)(?<!\]:)[ \t])\Z").search  # no indented line, no link of Markdown
_find_tag = re.compile(r"<(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>\s*\Z").search
_find_json_lines = re.compile(r"(?<=\n)[\[{]").finditer
_find_json_after_colons = re.compile(r"(?<=: )[\[{]").finditer
_MAX_JSON_STARTS = 4  # of each
# What Gemini CLI and Qwen Code write behind the output of a command.
_has_output = re.compile(r"^(?:Output|Stdout): ", re.MULTILINE).search
_find_command_end = re.compile(
    r"(?:\n(?:Error|Stderr|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*)+\s*\Z"
).search
_MAX_COMMAND_END = 512


def find_embedded_images(leaf: str, texts: Texts, path: str | None = None) -> Iterator[PrintedImage]:
    """Yield the images among the words of a tool's result, in their order; `path` is that of the file that it read."""
    # Nearly no text has an image. These searches take little of the time of the others.
    raw = leaf.encode("utf-8", "surrogatepass")
    found: list[PrintedImage] = [*find_printed_images(leaf, raw, path)]
    if texts.token in leaf or _LONG_RUN in raw.translate(BASE64_RUN_TABLE):
        found += _find_base64(leaf, texts, in_message=False)
    yield from sorted(found, key=lambda each: each[0])


def find_message_images(leaf: str, texts: Texts) -> Iterable[PrintedImage]:
    """Return the images that a library has written into the words of a user's message.

    Only forms count that no person writes: a person may paste JSON, to ask about it.
    """
    if "[" not in leaf and "<" not in leaf:  # most texts; single characters are found ten times as fast as words
        return ()
    if any(mark in leaf for mark in (_DSPY_START, _AUTOGEN_START)) or (_DSPY_FIELD in leaf and "type='image'" in leaf):
        return _find_base64(leaf, texts, in_message=True)
    return ()


def _find_base64(leaf: str, texts: Texts, *, in_message: bool) -> Iterator[PrintedImage]:
    leaf = leaf if in_message else _drop_command_end(leaf)
    values_start = None if in_message else _find_values(leaf)
    for start, end in _find_runs(leaf, texts):
        is_behind_comma = leaf[start - 1 : start] == ","
        prefix = _find_url_prefix(leaf, max(0, start - _MAX_URL_PREFIX), start) if is_behind_comma else None
        begin = prefix.start() if prefix else start
        is_value = values_start is not None and values_start <= begin
        place = _find_form(leaf, begin, end, is_url=prefix is not None, in_message=in_message, is_value=is_value)
        if place is None:
            continue
        declared = (prefix["mime"] or "").lower() if prefix else ""
        letters = _drop_line_breaks("", leaf[start:end])
        source = InlineSource(declared, texts.expand_text(letters), letters)
        if is_image_base64(source):
            yield *place, source


def _find_runs(leaf: str, texts: Texts) -> Iterator[tuple[int, int]]:
    """Yield the runs of base64 that may be an image, each with its start and end; a run may be a placeholder."""
    flat = leaf.encode("ascii", "replace").translate(BASE64_RUN_TABLE)  # with one byte for each character
    at = 0
    run_at, token_at = flat.find(_LONG_RUN), leaf.find(texts.token)
    while run_at >= 0 or token_at >= 0:
        is_lifted = token_at >= 0 and (run_at < 0 or token_at < run_at)
        start = _extend_to_left(flat, token_at, at) if is_lifted else run_at
        end = flat.find(_BREAK, start)
        end = len(leaf) if end < 0 else end
        if is_lifted:
            end += leaf[end : end + 1] == ";"  # a placeholder ends with it
            token_at = leaf.find(texts.token, end)
        if is_lifted:
            yield start, end
        elif leaf.startswith(_FIRST_LETTERS, start):
            end = _extend_over_lines(leaf, flat, start, end)
            yield start, end
        at = max(end, start + 1)
        run_at = flat.find(_LONG_RUN, at) if 0 <= run_at < at else run_at


def _extend_to_left(flat: bytes, at: int, floor: int) -> int:
    """Return where a run with a placeholder begins: a few of its letters may not have been lifted out."""
    floor = max(floor, at - _MAX_LETTERS_BEFORE_TOKEN)
    return max(floor, flat.rfind(_BREAK, floor, at) + 1)


def _extend_over_lines(leaf: str, flat: bytes, start: int, end: int) -> int:
    """Return where base64 ends that may be wrapped: on lines of one length, of which the last may be shorter."""
    length = end - start
    while end - start == length <= _MAX_LINE and (line_break := _match_line_break(leaf, end)):
        start = line_break.end()
        end = flat.find(_BREAK, start, start + length + 1)
        end = min(len(leaf), start + length) if end < 0 else end
    last_break = _match_last_break(leaf, end)
    return last_break.end() if last_break else end


def _find_form(
    leaf: str, begin: int, end: int, *, is_url: bool, in_message: bool, is_value: bool
) -> tuple[int, int] | None:
    """Return the characters that an image's form takes up, or None if no library writes base64 like that."""
    before, after = leaf[max(0, begin - _NEARBY) : begin], leaf[end : end + _NEARBY]
    if before.endswith(_AUTOGEN_START) and after.startswith("]"):
        return begin - len(_AUTOGEN_START), end + 1
    if _DSPY_START in before and _DSPY_END in after and _DSPY_END not in before.rpartition(_DSPY_START)[2]:
        start = begin - len(before) + before.rindex(_DSPY_START)
        return start, end + after.index(_DSPY_END) + len(_DSPY_END)
    if before[-1:] not in _QUOTES:
        is_end = (is_url and after[:1] in ("\r", "\n")) or (not after.strip() and len(leaf) <= end + _NEARBY)
        return None if in_message else _find_bare_form(before, after, begin, end, is_end=is_end)
    field = _find_field(before, max(0, len(before) - _MAX_FIELD))
    quote = field or _find_quote(before, max(0, len(before) - _MAX_FIELD))
    if quote is None or not after.startswith(quote["quote"]):
        return None
    if is_value or (field is not None and _is_image_field(field, before, after, is_url=is_url, in_message=in_message)):
        return begin, end
    return None


def _find_bare_form(before: str, after: str, begin: int, end: int, *, is_end: bool) -> tuple[int, int] | None:
    """Return the characters that an image without quotes takes up, in one of the forms that have none.

    `is_end`: the text, or the line of a data URL, ends with it.
    """
    if is_end and _find_words(before):
        return begin, end
    if after.startswith(")") and (markdown := _find_markdown(before)):
        return (begin - len(markdown[0]), end + 1) if after[1:2] in ("", "\n", "\r") else None
    if before.rstrip().endswith(">") and (tag := _find_tag(before)):
        return (begin, end) if after.lstrip().startswith(f"</{tag['name']}>") else None
    return None


def _is_image_field(field: re.Match[str], before: str, after: str, *, is_url: bool, in_message: bool) -> bool:
    """Return whether a field is one that libraries put an image into, of an object that says that it is an image.

    HTML has such fields too: `<link type="image/png" href="data:…">`, `<object type="image/png" data="data:…">`.
    """
    # Only the image's own object counts, which neither ends before the image nor begins behind it.
    before = before[max(before.rfind("}"), before.rfind(")")) + 1 :]
    after = _split_at_bounds(after, 1)[0]
    is_object = field["mark"].startswith("=")
    known_key = field["key"] in (_URL_KEYS if is_url else _DATA_KEYS)
    if in_message:
        return is_object and known_key and bool(_says_mcp_image(before) or _says_mcp_image(after))
    says_image = bool(_says_image(before) or _says_image(after))
    return (known_key or not is_object) and (says_image or field["key"] == "data_uri")


def _drop_command_end(leaf: str) -> str:
    """Return the result of a shell tool up to the end of the command's output; any other text as it is."""
    end = _find_command_end(leaf, max(0, len(leaf) - _MAX_COMMAND_END))
    return leaf[: end.start()] if end and _has_output(leaf) else leaf


def _find_values(leaf: str) -> int | None:
    """Return where the values begin that a text consists of, or ends with; None if it is anything else.

    They are a list or a dictionary that Python wrote, which isn't JSON, or JSON behind words.
    """
    if leaf.rstrip()[-1:] not in ("}", "]", ")"):
        return None
    if leaf.startswith(_PYTHON_BEGINNINGS):
        return 0
    starts = (islice(find(leaf), _MAX_JSON_STARTS) for find in (_find_json_lines, _find_json_after_colons))
    return next((found.start() for found in chain(*starts) if _is_json(leaf[found.start() :])), None)


def _is_json(text: str) -> bool:
    try:
        return not is_oversized(text) and json.loads(text) is not None
    except (ValueError, RecursionError):
        return False
