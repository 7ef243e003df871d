"""Refusals: values with a code, what was refused, and what the caller can do about it."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Literal

from sightline.model.fence import to_one_line
from sightline.model.value import value_class

RefusalCode = Literal[
    "invalid_input",  # the caller's arguments are wrong
    "not_found",
    "unsupported_type",
    "too_large",
    "not_permitted",
    "corrupt",  # the bytes are not the image that they claim to be
    "render_unavailable",  # nothing installed can render this kind of file
    "unavailable",  # there is no seer, or it did not answer
    "no_consent",  # it would send the image to a provider that the user has not agreed to
    "pending",  # a description is being made, and comes with a later request
]

RefusalStage = Literal["", "file", "address", "model", "vision", "pdf", "video", "pages", "provider", "answer"]
"""Which part of a tool call was refused, for tools whose error codes distinguish these."""


# What only the user can do: run a shell command, or set a setting or a variable.
_FOR_USER = re.compile(r"(?<!ask the user to )(?:\brun: |(?:^|(?<=\bor )|(?<=; ))set )")


@value_class
class Refusal:
    """Why something was refused. The remedy is for a person: `run: COMMAND` and `set NAME` speak to the user."""

    code: RefusalCode
    what: str
    remedy: str = ""
    status: int = field(default=0, compare=False)  # HTTP status of the provider that refused
    stage: RefusalStage = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Make the text one harmless line, since it may quote names and text from outside."""
        for name in ("what", "remedy"):
            object.__setattr__(self, name, to_one_line(getattr(self, name)))

    def for_model(self) -> Refusal:
        """Return the refusal as a model reads it, which has to ask the user to run commands and to change settings."""
        return replace(self, remedy=_FOR_USER.sub(lambda found: f"ask the user to {found[0]}", self.remedy))

    def __str__(self) -> str:
        return f"{self.what} ({self.remedy})" if self.remedy else self.what
