"""How a value is declared of which a request makes many: a few for every image and every message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """A frozen dataclass, as far as the type checker knows, which lets nobody change one.

    At run time nothing guards it: with `frozen=True` it would take five times as long to make one.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
