"""The headings of a report, and how the text of an image is kept from looking like them."""

from __future__ import annotations

import re
from collections.abc import Iterable

NOTE = "Read on this machine: only text and shapes, without reasoning. Pictures and icons are not described."
HINT = "This is a lot of text: ask about a crop to get all the text of one part."
FINDINGS, POSITIONS = "Besides the text:", "Parts and positions:"
RELATED = "Related to the question, by shared words:"
ALL_TEXT = "All text:"
_MARKUP = re.compile(r"\s*(?:#{1,6}(?:\s|$)|\||---|- |```|~~~)")
_OURS = re.compile(
    rf"(?:{FINDINGS}|{POSITIONS}|{ALL_TEXT}|Image \d+:|Related to the question.*|Read on this machine:.*)",
    re.IGNORECASE,
)
_DOUBT_MARK = re.compile("[‹›]")


def escape_line(text: str) -> str:
    """Return a line of an image's text, after a backslash where it would be markup or a heading of the report."""
    is_ours = _OURS.fullmatch(_DOUBT_MARK.sub("", text).strip())
    return f"\\{text}" if is_ours or _MARKUP.match(text) else text


def fence_code(rows: Iterable[str]) -> str:
    """Return rows as a block of code, in a fence that is longer than any backticks in it."""
    text = "\n".join(rows)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"
