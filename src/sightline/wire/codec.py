"""What the driver asks of a codec, and what the path of a request says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sightline.model.edit import Edit
from sightline.model.profile import Profile
from sightline.model.scene import Json, Scene
from sightline.wire.shape import Texts


@dataclass(frozen=True, slots=True)
class Endpoint:
    path: str  # as the upstream is asked for it
    counts: bool = False  # only tokens are counted there
    model: str | None = None  # None: the body says it
    stream: bool | None = None  # None: the body says it

    def of(self, scene: Scene) -> Scene:
        """A scene that was read from a body there."""
        if self.model is None and self.stream is None:
            return scene
        model = scene.model if self.model is None else self.model
        stream = scene.stream if self.stream is None else self.stream
        return replace(scene, model=model, stream=stream)


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
