"""Errors of servers that the record is on, with what to do about them. Their texts contain no password."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(?i)(://[^:/@\s]*:)\S*@|((?:password|secret)[\w-]*\s*[=:]\s*)\S+")
_MAX_TEXT = 200


class ServerError(OSError):
    """A server has refused something, or can't be reached. `str` of it says what is wrong."""

    def __init__(self, what: str, remedy: str, *, is_down: bool = False) -> None:
        super().__init__(what)
        self.remedy = remedy
        self.outage = 0  # a number that errors of one outage share
        self.is_down = is_down  # nothing else can be expected of the server either, for now


def clean_text(error: object) -> str:
    """Return the text of an error as one short line, without passwords."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _PASSWORD.sub(_mask, lines[0])[:_MAX_TEXT].rstrip()


def _mask(found: re.Match[str]) -> str:
    return f"{found[1]}***@" if found[1] else f"{found[2]}***"
