"""How model names are compared: globs over lower-case names, with and without what hosts append to them."""

from __future__ import annotations

import re
from functools import lru_cache

# What changes the price, the window, the host or the day, but not what the model can see.
_SUFFIX = re.compile(
    r"(?:\[\w+\]|:free|[:-]cloud|-highspeed|[-@]20\d{6}|-20\d\d-\d\d-\d\d)$",
)


def bare(model: str) -> str:
    """The lower-case name without a `models/` in front, a date, `[1m]`, `:free` and the like behind."""
    name = model.strip().lower().removeprefix("models/")
    while match := _SUFFIX.search(name):
        name = name[: match.start()]
    return name


def matches(pattern: str, model: str) -> bool:
    """Does the name, as it is or bare, match a pattern?"""
    return glob(pattern, model.strip()) or glob(pattern, bare(model))


def glob(pattern: str, text: str) -> bool:
    """Does the whole text match, in any case? `*` and `?` are wild; brackets stand for themselves."""
    return bool(_compiled(pattern.strip()).fullmatch(text))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    expression = "".join(wild.get(char) or re.escape(char) for char in pattern)
    return re.compile(expression, re.DOTALL | re.IGNORECASE)
