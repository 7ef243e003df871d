"""What the driver asks of a codec, whether a provider is asked in its shape or programs only hand it to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sightline.model.edit import Edit
from sightline.model.profile import Profile
from sightline.model.scene import Json, Scene
from sightline.wire.shape import Texts


class Codec(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def read(self) -> Callable[[Json, Texts], Scene]: ...

    @property
    def lower(self) -> Callable[[Scene, Json, Profile], list[Edit]]: ...

    @property
    def head(self) -> Sequence[str]:
        """The keys of what stands before the first message."""
        ...

    @property
    def items(self) -> str:
        """The key of the messages."""
        ...
