"""A no: a value with a code, what was refused and what the caller can do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Code = Literal[
    "invalid_input",  # the caller's words do not make sense
    "not_found",
    "unsupported_type",
    "too_large",
    "not_permitted",
    "corrupt",  # the bytes claim to be a picture and are none
    "render_unavailable",  # it could be seen if something drew it, and nothing here does
    "unavailable",  # nobody could look, or the one who looks did not answer
    "no_consent",  # looking would send the image to somebody the user has not agreed to
    "pending",  # a look is under way; its answer comes with a later request
]


@dataclass(frozen=True, slots=True)
class Refusal:
    code: Code
    what: str
    remedy: str = ""
    status: int = field(default=0, compare=False)  # of the answer of the provider that said no

    def __str__(self) -> str:
        return f"{self.what} ({self.remedy})" if self.remedy else self.what
