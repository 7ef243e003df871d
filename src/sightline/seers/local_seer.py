"""The seer that reads images on this machine, in processes of its own. Nothing leaves the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sightline.model.asking import LOCAL, Answer, Question, Spot, Usage
from sightline.model.geometry import Box
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.seers.asking import no_place

TASK_NAME = "local"
_MOST_BYTES = 200 * 1024 * 1024  # of all images of a question together
_FORMATS = tuple(
    f"image/{kind}" for kind in "png jpeg webp gif bmp tiff avif x-icon vnd.adobe.photoshop".split()
)  # originals go in: a smaller copy is only harder to read
_HEAVY = Refusal("too_large", "the images are too many bytes to be read at once", "ask about fewer of them")
_NO_IMAGE = Refusal("invalid_input", "there is no image to read", "give one")


class Done(Protocol):
    @property
    def facts(self) -> Mapping[str, Any]: ...


class Work(Protocol):
    """Runs tasks in worker processes; a cancelled question ends its process."""

    async def run(self, task: str, data: bytes, arguments: dict[str, Any]) -> Done | Refusal: ...


@dataclass(frozen=True, slots=True)
class LocalSeer:
    work: Work = field(repr=False)
    folder: str = ""  # of the user's data, in which weights may lie
    name: str = LOCAL
    limits: Limits = field(default_factory=lambda: Limits(formats=_FORMATS))

    async def ask(self, question: Question) -> Answer | Refusal:
        if question.documents:
            return no_place(self.name, question.documents[0])
        if not question.images:
            return _NO_IMAGE
        if sum(len(image.data) for image in question.images) > _MOST_BYTES:
            return _HEAVY
        words = question.words if question.asked is None else question.asked
        found = await self.work.run(TASK_NAME, b"".join(image.data for image in question.images), {
            "question": words,
            "schema": question.schema,
            "images": [[image.sha256, len(image.data)] for image in question.images],
            "folder": self.folder,
            "described": question.described,
        })  # fmt: skip
        if isinstance(found, Refusal):
            return found
        spots = tuple(Spot(label, Box(*box), image) for label, box, image in found.facts["spots"])
        return Answer(found.facts["text"], Usage(0, 0), self.name, spots=spots)
