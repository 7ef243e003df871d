"""A no: a value with a code, what was refused and what the caller can do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline.model.fence import one_line

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

Stage = Literal["", "file", "address", "model", "vision", "pdf", "video", "pages", "provider", "answer"]
"""What was refused: the file, its address, the model's choice, a kind of file, the provider's answer, its form."""


@dataclass(frozen=True, slots=True)
class Refusal:
    code: Code
    what: str
    remedy: str = ""
    status: int = field(default=0, compare=False)  # of the answer of the provider that said no
    stage: Stage = field(default="", compare=False)  # for tools whose error codes tell the stages apart

    def __post_init__(self) -> None:
        """Names and words of others may be in it: it is one line, whatever they are."""
        for name in ("what", "remedy"):
            object.__setattr__(self, name, one_line(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.what} ({self.remedy})" if self.remedy else self.what
