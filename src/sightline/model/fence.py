"""Text from outside, made harmless: nothing of it opens or closes a fence of ours.

What a reader could take for `<vision_proxy_` or `</vision_proxy_` counts as that, however it is spelled (see
`lookalikes`), also with the backslashes of Markdown or orders for a terminal in it: its bracket is replaced and nothing
else is touched. No text is cut out, so none can close up into a fence, and what was made harmless stays as it is when
it is made harmless again.
Reading is linear in the length of the text: it goes on from a bracket only as long as the name of a fence goes on, and
no bracket is part of that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from sightline.model.lookalikes import BLANKS, BRACKETS, TAG_BRACKET, TAGS, read_as

_NAME = "vision_proxy_"
FEWEST = 8
"""Characters, at the least, that a reader could take for the name of a fence: some stand for two letters."""
_suspect = re.compile(f"[{re.escape(BRACKETS)}{TAGS}]")
_tagged = re.compile(f"[{TAGS}]")
SQUARE = r"\[\]\u2045\u2046\u27e6\u27e7\u301a\u301b\uff3b\uff3d"
"""Square brackets and what looks like them, for a class of a regular expression."""
_square = re.compile(f"[{SQUARE}]")
_json_escape = re.compile(r'\\(?:u[0-9a-f]{4}|[^"])')
# Colours and moves (CSI), titles and links (OSC), sets of letters. None begins within another, so each is read once.
_terminal_order = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\x9b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[()*+.#%-][0-~]"
)
_OF_ORDERS = {"\\u0007": "\x07", "\\u001b": "\x1b", "\\u009b": "\x9b", "\\u009c": "\x9c"}
_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
# What has no width, or turns the letters around it: by it a name reads like another one, or holds words that nobody
# sees. All that Unicode lets a reader ignore, but for the variation selectors of emoji.
_HIDES = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_unprintable = re.compile(f"[{_CONTROLS}]+")
_hides = re.compile(f"[{_HIDES}]")
_unseen = re.compile(f"[{_CONTROLS}{_HIDES}]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", **dict.fromkeys('"\uff02', "&quot;"), **dict.fromkeys(">\uff1e\ufe65", "&gt;")}
    | dict.fromkeys("<\uff1c\ufe64", "&lt;")
)


def neutral(text: str) -> str:
    """Return a text, of several lines perhaps, in which nothing opens or closes a fence of ours."""
    return _with_brackets(text, _openings(text), lambda bracket: "&lt;")


def one_line(text: str) -> str:
    """Return a name or another short word on one line: what hides in it is seen, as JSON would write it."""
    return _flat(neutral(text))


def in_brackets(text: str) -> str:
    """Return a name for a line of ours in square brackets, on one line, with nothing in it that ends those brackets."""
    return one_line(_square.sub("?", text))


def attribute(text: str) -> str:
    """Return the value of an attribute, for double quotes."""
    return _flat(_with_brackets(text, _openings(text), lambda bracket: "<")).translate(_ESCAPES)


def json_line(value: object) -> str:
    """Return JSON as it reads best, in which nothing hides or is a fence: what would be is escaped, and JSON reads back
    the same."""
    return _unseen.sub(_escaped, _without_fences(json.dumps(value, ensure_ascii=False)))


def _without_fences(written: str) -> str:
    """Return JSON in which the bracket of a fence is escaped."""
    read = _json_escape.sub(_unescaped, written) if "\\" in written else written
    return _with_brackets(written, _openings(read), _escape)


def _openings(text: str) -> list[int]:
    """Return where the brackets stand that a reader could take for the beginning of a fence of ours.

    A terminal shows nothing of an order such as `ESC[0m`; another reader sees its letters. Both count.
    """
    found = _find_openings(text)
    if "\x1b" in text or "\x9b" in text:
        shown = _terminal_order.sub(lambda order: "\0" * len(order[0]), text)
        found = sorted({*found, *_find_openings(shown)})
    return found


def _find_openings(text: str) -> list[int]:
    if text.isascii():
        return _opened(text, _unlike("<"), tags=False) if "<" in text else []
    if (first := _suspect.search(text)) is None:
        return []
    found = _opened(text, _unlike(BRACKETS), tags=False)
    if _tagged.search(text, first.start()):
        found = sorted({*found, *_opened(text, _unlike(BRACKETS + TAG_BRACKET), tags=True)})
    return found


def _candidate(brackets: str) -> str:
    """Return a pattern for brackets, without those that another one follows too soon for the name of a fence.

    A text of nothing but brackets would take a second per million otherwise.
    """
    any_of = re.escape(brackets)
    return f"[{any_of}](?![^{any_of}]{{0,{FEWEST - 1}}}[{any_of}])"


@cache
def _unlike(brackets: str) -> re.Pattern[str]:
    """Return a pattern for brackets, without those that other words in ASCII follow: that is nearly all of them."""
    ascii_letters = {chr(number): read_as(chr(number), tags=False) for number in range(ord("!"), ord("~") + 1)}
    other = ""
    for known in reversed(range(len(_NAME))):
        expected = {_NAME[known], "" if known else "/"}
        unlike = (each for each, plain in ascii_letters.items() if plain not in expected and each != "\\")
        others = re.escape("".join(unlike))
        fits = re.escape("".join(each for each, plain in ascii_letters.items() if plain == _NAME[known]))
        skipped = r"\0-\x20\x7f\\" + ("" if known else "/")
        other = f"[{skipped}]*+(?:[{others}{re.escape(brackets)}]" + (f"|[{fits}]{other})" if other else ")")
    return re.compile(f"{_candidate(brackets)}(?!{other})")


def _opened(text: str, bracket: re.Pattern[str], *, tags: bool) -> list[int]:
    return [found.start() for found in bracket.finditer(text) if _is_named(text, found.end(), tags=tags)]


def _is_named(text: str, start: int, *, tags: bool) -> bool:
    """Return whether a text goes on with the name of a fence, after slashes or none.

    A name behind a blank and no slash is compared with something, as in `n < vision_proxy_limit`.
    """
    known, blank, slash = 0, False, False
    for index in range(start, len(text)):
        blank = blank or text[index] in BLANKS
        for letter in read_as(text[index], tags=tags):
            if letter == _NAME[known]:
                if not known and blank and not slash:
                    return False
                known += 1
                if known == len(_NAME):
                    return True
            elif letter != "/" or (known and text[index] != "\\"):
                return False
            slash = True
    return False


def _with_brackets(text: str, places: Iterable[int], write: Callable[[str], str]) -> str:
    """Return a text whose brackets at `places` are written in another way."""
    pieces, done = [], 0
    for place in places:
        pieces += [text[done:place], write(text[place])]
        done = place + 1
    return "".join([*pieces, text[done:]]) if pieces else text


def _flat(text: str) -> str:
    if text.isascii() and text.isprintable():  # as it mostly is
        return text.strip()
    return _hides.sub(_escaped, _unprintable.sub(" ", text).strip())


def _unescaped(found: re.Match[str]) -> str:
    """Return what an escape in JSON is to a reader of the value, in as many characters."""
    if order := _OF_ORDERS.get(found[0].lower()):
        return order.rjust(len(found[0]), "\0")
    kind = found[0][1]
    return (" " if kind in "ntr" else "\\" if kind == "\\" else "\0").ljust(len(found[0]), "\0")


def _escaped(found: re.Match[str]) -> str:
    return _escape(found[0])


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if letter <= "\uffff" else json.dumps(letter)[1:-1]


def fenced(tag: str, attributes: Mapping[str, str | None], text: str, listed: Mapping[str, str] | None = None) -> str:
    """Text from outside between tags of ours. What has no value is left out; `listed` ones are JSON already."""
    given = {name: f'"{attribute(value)}"' for name, value in attributes.items() if value}
    quoted = {name: f"'{value}'" for name, value in (listed or {}).items()}
    order = [name for name in attributes if name in given or name in quoted]
    inner = "".join(f"\n    {name}={quoted.get(name) or given[name]}" for name in order)
    return f"<{_NAME}{tag}{inner}>\n{neutral(text.strip())}\n</{_NAME}{tag}>"


_INNER = re.compile(rf"['<>&\ufe64\uff1c]|{_unseen.pattern}")


def rows(entries: Iterable[Mapping[str, object]], indent: int) -> str:
    """A list of objects for an attribute in single quotes: JSON as it stands, an object a line, nothing to unescape."""
    written = (json.dumps(dict(entry), ensure_ascii=False, separators=(",", ":")) for entry in entries)
    escaped = (_INNER.sub(_escaped, _without_fences(row)) for row in written)
    return "[" + (",\n" + " " * indent).join(escaped) + "]"


def sound(text: str) -> str:
    """Text that can be written anywhere: half a letter, or a byte of a name that is no text, is a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(text: str) -> str:
    """One line for a terminal, which obeys what it cannot print."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)
