"""What the composition root hands to the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.model.rules import Mode, Retention
from sightline.profiles.lookup import Override
from sightline.sources.file import Policy
from sightline.sources.web import Grant

_NOWHERE = Policy(())


@dataclass(frozen=True, slots=True)
class Options:
    """What the user's settings lay down for every request."""

    instructions: str  # what a seer is told …
    question: str  # … and asked
    mode: Mode = "fallback"
    max_images: int = 20  # looked at in one turn; 0: no limit
    context: bool = False  # whoever looks at a new image is told what was said before
    max_batch: int = 1  # images of a turn that are looked at together as well; 1: none are
    alike: float = 0.8  # how much two of them have to be alike for that to be said
    joint_turns: bool = False  # what was said of them together goes with its turn
    boxes: bool = True  # what an answer points at stands behind it, in pixels of the image
    retention: Retention = Retention()  # noqa: RUF009
    overrides: Sequence[Override] = ()  # what the user says of models
    hoist: bool = False  # no image stays in a tool's result, unless an upstream says otherwise
    web: Grant | None = None  # how addresses are opened for models that take no images; None: they are not
    reach: Callable[[], Policy] = lambda: _NOWHERE  # the folders in which a file may be looked for
    references: bool = False  # a pasted image gets its reference beside it
    image_model: str = ""  # in the mode `route`: who takes the requests of a turn with new images
    patience: float = 45.0  # seconds for all the descriptions of one request
