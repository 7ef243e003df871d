"""Who takes a request, and who wrote what stands in it, where turns with new images have a model of their own.

A fold over the body: in each turn, whatever is said behind its first image was said by the model that sees. So the
same beginning is divided the same way, on any machine, however the conversation goes on.
"""

from __future__ import annotations

from sightline.model.routing import Routing
from sightline.model.scene import Scene
from sightline.passes.together import turn_of, turns


def route(scene: Scene, image_model: str) -> Routing:
    """The way of a request, all of whose sights are images."""
    turn = turns(scene)
    first: dict[int, int] = {}  # by turn: the message in which its first image stands
    for sight in scene.sights:
        opened = turn_of(sight, turn)
        first[opened] = min(sight.message, first.get(opened, sight.message))
    now = turn[-1] if turn else -1
    to_images = now in first
    said = [index for index, message in enumerate(scene.messages) if message.role == "assistant"]
    seeing = {index for index in said if turn[index] in first and index > first[turn[index]]}
    strangers = frozenset(said) - seeing if to_images else frozenset(seeing)
    return Routing(image_model if to_images else scene.model, scene.model, now, strangers)
