"""Neutralize untrusted text, so that nothing in it can open or close one of our fences.

A fence is `<vision_proxy_…>` with its closing tag. Anything that a reader could take for `<vision_proxy_` or
`</vision_proxy_` counts as one, however it is spelled, even with Markdown backslashes or terminal escapes in it. Its
bracket is replaced, and nothing else changes. No text is removed, so nothing can join to form a fence, and
neutralizing is idempotent.

The time is linear in the length of the text: after a bracket, reading continues only while the name of a fence does,
and that name contains no bracket.

What a character looks like comes from Unicode: compatibility variants (full-width, mathematical, circled, raised
letters, …) and combining marks from normalisation form NFKD, look-alikes from the confusables of Unicode Technical
Standard 39, of which only those of the characters in `</vision_proxy_` are listed here. Added are characters that have
neither: small capitals, letters with a stroke or a hook, angle brackets of other scripts, mathematical signs that point
to the left, and outlined letters or letters in black circles and squares.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache

_LOOKALIKE_CODES = {
    "<": "AB 2C2 2F1 1438 16B2 2039 2264 2266 2268 226A 2272 2276 227A 227C 227E 22B0 22B2 22B4 22D6 22D8 22DA"
    " 22DC 2329 23F4 25C0 25C1 25C2 25C3 25C4 25C5 276C 276E 2770 27E8 27EA 2989 2991 2993 2996 29FC 2A79"
    " 2A7B 2A7D 2A7F 2A81 2A83 2A85 2A87 2A89 2A8B 2A8D 2A8F 2A91 2A95 2A97 2A99 2A9B 2A9D 2A9F 2AA1 2AA6"
    " 2AA8 2AAF 2AB1 2AB3 2AB5 2AB7 2AB9 2ABB 2AF7 2AF9 2B98 2B9C 2BC7 3008 300A FE3D 1D236 1F780",
    "/": "5C 1735 2041 2044 2215 2216 2571 2572 27CB 27CD 29F5 29F8 29F9 2CC6 2F03 3033 30CE 31D3 31D4 4E3F 1D20F"
    " 1D23A 1D23B",
    "_": "2CD 7FA 2017 203F 2054 23BD 2581",
    "v": "28B 3BD 3C5 474 475 5D8 667 6F7 142F 13D9 1D20 2228 22C1 2C74 2D38 A4E6 A6DF A75F ABA9 1051D 11706 118A0"
    " 118C0 16F08 1D20D",
    "i": "31 6C 7C 131 196 197 1C0 268 269 26A 2DB 399 3B9 406 456 4C0 4CF 5C0 5D5 5DF 627 661 6F1 7CA 13A5 16C1"
    " 1D7B 1D7C 2223 2373 23FD 2C92 2C93 2D4F A4F2 A647 AB75 FFE8 1028A 10309 10320 118C3 16F28 1CCF1 1E8C7",
    "s": "1BD 23F 282 405 455 54F 13D5 13DA 1D74 1D8A A4E2 A731 ABA5 ABAA 10296 10420 10448 118C1 16F3A",
    "o": "30 F8 19F 275 398 39F 3BF 3C3 3F4 41E 43E 472 473 4E8 4E9 555 585 5E1 647 665 6BE 6C1 6D5 6F5 7C0 966"
    " 9E6 A66 AE6 B20 B66 BE6 C66 CE6 D20 D66 E50 ED0 101D 1040 10FF 12D0 13BE 13EB 1D0F 1D11 2C9E 2C9F 2D41"
    " 2D54 3007 A4F3 A74A A74B AB3D AB3E AB8E ABBB 10292 102AB 10404 1042C 104C2 104EA 10516 114D0 118B5 118C8"
    " 118D7 118E0 1CCF0",
    "n": "14A 14B 19E 220 272 273 274 39D 3B7 43F 578 57C 1D28 1D70 1D87 2C9A 2C9B A4E0 10513",
    "p": "1A4 1A5 1BF 3A1 3C1 3F1 420 440 13E2 146D 1D18 1D7D 2374 2CA2 2CA3 A4D1 A750 A751 A752 A753 ABB2 10295",
    "r": "1A6 24C 24D 27C 27D 27E 280 433 491 13A1 13D2 1587 1D26 1D72 1D73 1D89 2C85 A4E3 AB47 AB48 AB71 AB81"
    " ABA2 104B4 16F35 1D216",
    "x": "D7 3A7 3C7 425 445 4B2 4B3 4FC 4FD 4FE 4FF 1541 157D 166D 166E 16B7 1D8D 2573 292B 292C 2A2F 2CAC 2CAD"
    " 2D5D A4EB A7B3 AB53 AB55 10290 102B4 10317 10322 10527 118EC",
    "y": "1B3 1B4 24E 24F 263 28F 3A5 3B3 3D2 423 443 4AE 4AF 4B0 4B1 10E7 13A9 13BD 1D8C 1EFE 1EFF 213D 2CA8 2CA9"
    " A4EC AB5A 102B2 118A4 118DC 16F43",
}  # fmt: skip
_LOOKALIKES = {chr(int(each, 16)): plain for plain, listed in _LOOKALIKE_CODES.items() for each in listed.split()}
# A to Z outlined (newer than Python's tables), in black circles and squares, and as regional indicators.
_ALPHABETS = (0x1CCD6, 0x1F150, 0x1F170, 0x1F1E6)
_INVISIBLE_LETTERS = "\u115f\u1160\u2800\u3164\uffa0\ufffc"  # invisible, but not marks, spaces or controls
_FIRST_TAG, _LAST_TAG = 0xE0020, 0xE007E  # copies of ASCII that are invisible, and that some models read

SPACES = frozenset(
    " \t\n\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
"""Characters that look like a gap between words or lines."""
OPENING_BRACKETS = "<\u226e\u2270\u2274\u2278\u2280\u22e0\u22ea\u22ec\ufe3f\ufe64\uff1c" + "".join(
    each for each, plain in _LOOKALIKES.items() if plain == "<"
)
"""All characters that look like `<`."""
TAG_RANGE = f"{chr(_FIRST_TAG)}-{chr(_LAST_TAG)}"
"""Tag characters, as a range in a regular expression."""
TAG_BRACKET = chr(_FIRST_TAG + ord("<") - ord(" "))


@lru_cache(4096)
def fold_character(letter: str, *, tags: bool) -> str:
    """Return the plain characters that a character looks like, in lower case; empty if it is invisible.

    Spaces, controls, combining marks and other ignorable characters count as invisible. With `tags`, tag characters
    count as the letters that they copy.
    """
    if tags and _FIRST_TAG <= ord(letter) <= _LAST_TAG:
        letter = chr(ord(letter) - _FIRST_TAG + ord(" "))
    if letter in _LOOKALIKES:
        return _LOOKALIKES[letter]
    start = next((first for first in _ALPHABETS if first <= ord(letter) < first + 26), 0)
    plain = chr(ord(letter) - start + ord("a")) if start else unicodedata.normalize("NFKD", letter)
    return "".join(map(_fold_letter, plain))


def _fold_letter(character: str) -> str:
    if character in _INVISIBLE_LETTERS or unicodedata.category(character)[0] in "MZC":
        return ""
    lower = character.lower()
    return _LOOKALIKES.get(character) or _LOOKALIKES.get(lower) or lower


_FENCE_PREFIX = "vision_proxy_"
MIN_NAME_LENGTH = 8
"""The least number of characters that can look like the name of a fence: some look like two letters."""
_suspect_character = re.compile(f"[{re.escape(OPENING_BRACKETS)}{TAG_RANGE}]")
_tag_character = re.compile(f"[{TAG_RANGE}]")
SQUARE_BRACKETS = r"\[\]\u2045\u2046\u27e6\u27e7\u301a\u301b\uff3b\uff3d"
"""Square brackets and their look-alikes, for a character class of a regular expression."""
_square_bracket = re.compile(f"[{SQUARE_BRACKETS}]")
_json_escape = re.compile(r'\\(?:u[0-9a-f]{4}|[^"])')
# Colours and cursor moves (CSI), titles and links (OSC), character sets. None begins inside another.
_terminal_escape = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\x9b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[()*+.#%-][0-~]"
)
_JSON_CONTROLS = {"\\u0007": "\x07", "\\u001b": "\x1b", "\\u009b": "\x9b", "\\u009c": "\x9c"}
_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
# Characters without a width, or that change the direction of text: with them a name can look like another one, or
# contain hidden words. All that Unicode calls ignorable, except the variation selectors of emoji.
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_control_characters = re.compile(f"[{_CONTROLS}]+")
_invisible_character = re.compile(f"[{_INVISIBLE}]")
_hidden_character = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", **dict.fromkeys('"\uff02', "&quot;"), **dict.fromkeys(">\uff1e\ufe65", "&gt;")}
    | dict.fromkeys("<\uff1c\ufe64", "&lt;")
)


def neutralize(text: str) -> str:
    """Return a text, of one or more lines, in which nothing opens or closes a fence."""
    return _replace_brackets(text, _find_openings(text), lambda bracket: "&lt;")


def to_one_line(text: str) -> str:
    """Return a name or another short text on one line, with invisible characters escaped as in JSON."""
    return _flatten(neutralize(text))


def escape_for_brackets(text: str) -> str:
    """Return a name on one line that can't close the square brackets around it."""
    return to_one_line(_square_bracket.sub("?", text))


def escape_attribute(text: str) -> str:
    """Escape the value of an attribute in double quotes."""
    return _flatten(_replace_brackets(text, _find_openings(text), lambda bracket: "<")).translate(_ESCAPES)


def dump_json_line(value: object) -> str:
    """Return readable JSON in which invisible characters and fences are escaped. It parses to the same value."""
    return _hidden_character.sub(_escape_match, _escape_fences(json.dumps(value, ensure_ascii=False)))


def _escape_fences(text: str) -> str:
    """Return JSON in which the bracket of a fence is escaped."""
    unescaped = _json_escape.sub(_unescape_json, text) if "\\" in text else text
    return _replace_brackets(text, _find_openings(unescaped), _escape_character)


def _find_openings(text: str) -> list[int]:
    """Return the positions of brackets that could look like the start of a fence.

    A terminal hides an escape such as `ESC[0m`; another reader sees its letters. Both readings count.
    """
    found = _find_literal_openings(text)
    if "\x1b" in text or "\x9b" in text:
        shown = _terminal_escape.sub(lambda escape: "\0" * len(escape[0]), text)
        found = sorted({*found, *_find_literal_openings(shown)})
    return found


def _find_literal_openings(text: str) -> list[int]:
    if text.isascii():
        return _match_openings(text, _compile_opening("<"), tags=False) if "<" in text else []
    if (first := _suspect_character.search(text)) is None:
        return []
    found = _match_openings(text, _compile_opening(OPENING_BRACKETS), tags=False)
    if _tag_character.search(text, first.start()):
        found = sorted({*found, *_match_openings(text, _compile_opening(OPENING_BRACKETS + TAG_BRACKET), tags=True)})
    return found


def _build_bracket_pattern(brackets: str) -> str:
    """Return a pattern for brackets, except those followed by another one too soon for the name of a fence.

    Without this, a million brackets in a row would take a second.
    """
    any_of = re.escape(brackets)
    return f"[{any_of}](?![^{any_of}]{{0,{MIN_NAME_LENGTH - 1}}}[{any_of}])"


@cache
def _compile_opening(brackets: str) -> re.Pattern[str]:
    """Return a pattern for brackets, except the many that are followed by another word in ASCII."""
    ascii_letters = {chr(number): fold_character(chr(number), tags=False) for number in range(ord("!"), ord("~") + 1)}
    other = ""
    for matched in reversed(range(len(_FENCE_PREFIX))):
        expected = {_FENCE_PREFIX[matched], "" if matched else "/"}
        mismatches = (each for each, plain in ascii_letters.items() if plain not in expected and each != "\\")
        others = re.escape("".join(mismatches))
        fits = re.escape("".join(each for each, plain in ascii_letters.items() if plain == _FENCE_PREFIX[matched]))
        skipped = r"\0-\x20\x7f\\" + ("" if matched else "/")
        other = f"[{skipped}]*+(?:[{others}{re.escape(brackets)}]" + (f"|[{fits}]{other})" if other else ")")
    return re.compile(f"{_build_bracket_pattern(brackets)}(?!{other})")


def _match_openings(text: str, bracket: re.Pattern[str], *, tags: bool) -> list[int]:
    return [found.start() for found in bracket.finditer(text) if _has_fence_name(text, found.end(), tags=tags)]


def _has_fence_name(text: str, start: int, *, tags: bool) -> bool:
    """Return whether a text continues with the name of a fence, perhaps after slashes.

    A name after a space and no slash is a comparison, as in `n < vision_proxy_limit`.
    """
    matched, blank, slash = 0, False, False
    for index in range(start, len(text)):
        blank = blank or text[index] in SPACES
        for letter in fold_character(text[index], tags=tags):
            if letter == _FENCE_PREFIX[matched]:
                if not matched and blank and not slash:
                    return False
                matched += 1
                if matched == len(_FENCE_PREFIX):
                    return True
            elif letter != "/" or (matched and text[index] != "\\"):
                return False
            slash = True
    return False


def _replace_brackets(text: str, positions: Iterable[int], replace: Callable[[str], str]) -> str:
    """Replace the brackets at `positions` by what `replace` returns for them."""
    pieces, done = [], 0
    for position in positions:
        pieces += [text[done:position], replace(text[position])]
        done = position + 1
    return "".join([*pieces, text[done:]]) if pieces else text


def _flatten(text: str) -> str:
    if text.isascii() and text.isprintable():  # the usual case
        return text.strip()
    return _invisible_character.sub(_escape_match, _control_characters.sub(" ", text).strip())


def _unescape_json(found: re.Match[str]) -> str:
    """Return what a JSON escape means to a reader of the value, padded to the same length."""
    if control := _JSON_CONTROLS.get(found[0].lower()):
        return control.rjust(len(found[0]), "\0")
    kind = found[0][1]
    return (" " if kind in "ntr" else "\\" if kind == "\\" else "\0").ljust(len(found[0]), "\0")


def _escape_match(found: re.Match[str]) -> str:
    return _escape_character(found[0])


def _escape_character(character: str) -> str:
    return f"\\u{ord(character):04x}" if character <= "\uffff" else json.dumps(character)[1:-1]


def build_fence(
    tag: str, attributes: Mapping[str, str | None], text: str, json_attributes: Mapping[str, str] | None = None
) -> str:
    """Return an untrusted text in a fence. Attributes without a value are left out."""
    escaped = {name: f'"{escape_attribute(value)}"' for name, value in attributes.items() if value}
    quoted = {name: f"'{value}'" for name, value in (json_attributes or {}).items()}
    order = [name for name in attributes if name in escaped or name in quoted]
    inner = "".join(f"\n    {name}={quoted.get(name) or escaped[name]}" for name in order)
    return f"<{_FENCE_PREFIX}{tag}{inner}>\n{neutralize(text.strip())}\n</{_FENCE_PREFIX}{tag}>"


_attribute_special = re.compile(rf"['<>&\ufe64\uff1c]|{_hidden_character.pattern}")


def dump_rows(entries: Iterable[Mapping[str, object]], indent: int) -> str:
    """Return a JSON list for an attribute in single quotes, one object per line, that needs no unescaping."""
    rows = (json.dumps(dict(entry), ensure_ascii=False, separators=(",", ":")) for entry in entries)
    escaped = (_attribute_special.sub(_escape_match, _escape_fences(row)) for row in rows)
    return "[" + (",\n" + " " * indent).join(escaped) + "]"


def replace_surrogates(text: str) -> str:
    """Return a text with question marks for lone surrogates, so that it can be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def to_printable(text: str) -> str:
    """Return a text for a terminal, with question marks for characters that are not printable."""
    return text if text.isprintable() else "".join(character if character.isprintable() else "?" for character in text)
