"""How the words of a command are told apart where no shell has done it, and how they are typed."""

from __future__ import annotations

import re

from sightline.model.refusal import Refusal

_QUOTES = {'"': '"', "'": "'", "“": "”"}
_ESCAPED = re.compile(r"""\\([\s\\"'“”])""")
_opening = re.compile(r"""(?:--[a-z]+=)?(?=["'“])""")
_plain = re.compile(r"(?:\\[\s\\\"'“”]|\S)+")
_within = {
    '"': re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL),
    "'": re.compile(r"([^']*)'"),
    "“": re.compile(r"((?:[^”\\]|\\.)*)”", re.DOTALL),
}


def split(text: str) -> list[str] | Refusal:
    """Words, with quotes around those that hold spaces. A quote opens only where a word begins, so that an apostrophe
    within one is just that; a backslash stands for itself but before a space, a quote or another one."""
    words, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif opened := _opening.match(text, at):
            quote = text[opened.end()]
            inner = _within[quote].match(text, opened.end() + 1)
            if inner is None:
                return Refusal("invalid_input", f"the quote {quote} is not closed", f"close it with {_QUOTES[quote]}")
            if inner.end() < len(text) and not text[inner.end()].isspace():
                return Refusal("invalid_input", f"there is no space after {quoted(inner[0])}", "put one there")
            words.append(opened[0] + (inner[1] if quote == "'" else _ESCAPED.sub(r"\1", inner[1])))
            at = inner.end()
        else:
            plain = _plain.match(text, at)
            assert plain
            words.append(_ESCAPED.sub(r"\1", plain[0]))
            at = plain.end()
    return words


def quoted(word: str) -> str:
    """A word for an error: one line, and not too long."""
    return repr(word if len(word) <= 60 else word[:59] + "…")


def typed(word: str) -> str:
    """A word as it has to be typed, so that `split` gives it back."""
    option = re.match(r"--[a-z]+=", word)
    head = option[0] if option else ""
    value = word[len(head) :]
    if value and not re.search(r"""[\s\\"'“”]""", value):
        return word
    return head + '"' + re.sub(r"""([\\"])""", r"\\\1", value) + '"'
