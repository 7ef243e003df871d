"""What a question is about: an image, a PDF or a video; who can take it, and what of it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from sightline.look.ask_envelope import Unanswered
from sightline.look.ask_model import Chosen
from sightline.look.ask_source import Fit, Taken, as_taken
from sightline.look.doors import Door
from sightline.model.asking import Document
from sightline.model.image import Image
from sightline.model.ports import Seer
from sightline.passes.fit import target

Method = Literal["auto", "native", "frames"]
_PAGES = "nothing here draws its pages: name a model that takes PDFs, as gemini/gemini-2.5-pro does"
_SAY = "the setting `models` says what is not known: {0}"
_FILM = "name a model that takes videos themselves"


@dataclass(frozen=True, slots=True)
class Sent:
    """What goes to the provider."""

    sha256: str
    images: tuple[Image, ...] = ()
    documents: tuple[Document, ...] = ()
    fitted: bool = False


class Subject(Protocol):
    """What a question is about."""

    def beyond(self, who: Chosen) -> Unanswered | None:
        """Why somebody cannot take it."""
        ...

    def sent(self, seer: Seer) -> Sent | Unanswered: ...


@dataclass(frozen=True, slots=True)
class Picture:
    door: Door
    image: Image
    fit: Fit

    def beyond(self, who: Chosen) -> Unanswered | None:
        if who.vision:
            return None
        return Unanswered("VISION_NOT_SUPPORTED", f"{who.shown} is not known to see images ({_SAY.format('vision')})")

    def sent(self, seer: Seer) -> Sent | Unanswered:
        made = self.image if self.fit == "never" else as_taken(self.door, self.image, target(seer.limits))
        if isinstance(made, Unanswered):
            return made
        return Sent(self.image.sha256, (made,), fitted=made is not self.image)


@dataclass(frozen=True, slots=True)
class Paper:
    file: Taken
    fit: Fit

    def beyond(self, who: Chosen) -> Unanswered | None:
        if who.pdf:
            return None
        why = _PAGES if self.fit == "auto" and who.vision else _SAY.format("pdf")
        return Unanswered("PDF_NOT_SUPPORTED", f"{who.shown} is not known to take PDFs ({why})")

    def sent(self, seer: Seer) -> Sent:
        return _as_it_is(self.file)


@dataclass(frozen=True, slots=True)
class Film:
    file: Taken
    method: Method

    def beyond(self, who: Chosen) -> Unanswered | None:
        if who.absent:
            return Unanswered("VIDEO_NOT_SUPPORTED", f"{who.absent}, and takes no videos: {_FILM}")
        if self.method == "frames" or (self.method == "auto" and not who.video and who.vision):
            return Unanswered("VIDEO_NOT_SUPPORTED", f"nothing here makes stills of a video for {who.shown} ({_FILM})")
        if not who.video:
            return Unanswered(
                "VIDEO_NOT_SUPPORTED", f"{who.shown} is not known to take videos ({_SAY.format('video')})"
            )
        return None

    def sent(self, seer: Seer) -> Sent:
        return _as_it_is(self.file)


def _as_it_is(file: Taken) -> Sent:
    return Sent(file.sha256, documents=(Document(file.kind.mime, file.data, name=file.name),))
