"""What the path of a request says about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sightline.model.scene import Scene


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
