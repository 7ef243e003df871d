"""The headings of a report, and how the text of an image is kept from looking like them."""

from __future__ import annotations

import re
from collections.abc import Iterable

NOTE = "Read on this machine: text and shapes, without reasoning or what pictures show."
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
# Characters for private use mark toggles until all text is written, so that no text of an image can look like them.
TOGGLE_MARKS = {
    ("check", True): ("\ue0f0", "[x] "),
    ("check", False): ("\ue0f1", "[ ] "),
    ("radio", True): ("\ue0f2", "(x) "),
    ("radio", False): ("\ue0f3", "( ) "),
    ("switch", True): ("\ue0f4", "[on] "),
    ("switch", False): ("\ue0f5", "[off] "),
}
TOGGLE_LETTERS = frozenset(mark for mark, _ in TOGGLE_MARKS.values())
PALE_MARK = ("\ue0f6", " (pale, perhaps disabled)")
_ALL_MARKS = (*TOGGLE_MARKS.values(), PALE_MARK)
_WRITTEN = frozenset(written.replace(" ", "") for _, written in _ALL_MARKS)
# Marks stand apart from the text before them, f(x) and a[x] don't.
_BRACKETS = re.compile(r"(?<!\w)(?<!\w[‹›])‹?[\[(][^\[\]()]+[\])]")


def write_marks(text: str) -> str:
    """Return a text in which the marks of toggles are written out."""
    for mark, written in _ALL_MARKS:
        text = text.replace(mark, written)
    return text


def escape_line(text: str) -> str:
    """Return a line of an image's text, after a backslash where it would be markup or a heading of the report."""
    plain = _DOUBT_MARK.sub("", text)
    is_markup = _OURS.fullmatch(plain.strip()) or _MARKUP.match(plain)
    return f"\\{escape_marks(text)}" if is_markup else escape_marks(text)


def escape_marks(text: str) -> str:
    """Return text of an image, with a backslash before all that would look like the mark of a toggle."""
    return _BRACKETS.sub(_escape_mark, text)


def _escape_mark(found: re.Match[str]) -> str:
    plain = "".join(_DOUBT_MARK.sub("", found[0]).lower().split())
    return f"\\{found[0]}" if plain in _WRITTEN else found[0]


def fence_code(rows: Iterable[str]) -> str:
    """Return rows as a block of code, in a fence that is longer than any backticks in it."""
    text = "\n".join(rows)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"
