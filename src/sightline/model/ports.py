"""The contracts of the outside world: what the driver may ask of it, in as few methods as will do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from sightline.model.asking import Answer, Question
from sightline.model.facts import Description
from sightline.model.image import Image, Kept
from sightline.model.profile import Lesson, Limits
from sightline.model.receipt import Filed, Omission
from sightline.model.records import Answered, Entry, EntryKind, Perception, Spent, Telling
from sightline.model.refusal import Refusal
from sightline.model.scene import Json


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class Http(Protocol):
    """One exchange with a configured address, of which nothing may come for so many seconds; trouble is a refusal."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> Reply | Refusal: ...


class Seer(Protocol):
    """Something that looks at images and answers in words."""

    @property
    def name(self) -> str:
        """provider/model, as it is shown to people and kept in the record."""
        ...

    @property
    def limits(self) -> Limits:
        """What it accepts; the driver refits before it asks."""
        ...

    async def ask(self, question: Question) -> Answer | Refusal:
        """An answer has words; one without any is a refusal."""
        ...


@dataclass(frozen=True, slots=True)
class Flight:
    """A look that somebody wants to make: what is asked, by a name that is the same for all who ask it, and who."""

    scope: str
    name: str
    owner: str


class Record(Protocol):
    """The durable memory. Every row belongs to a scope; nothing is read across scopes."""

    def keep_image(self, scope: str, image: Image) -> bool:
        """Store the bytes; True: they survive a crash. False: they are not kept, and nobody may be referred to them."""
        ...

    def image(self, scope: str | None, sha256: str) -> Image | None:
        """None is the scope of the record's owner, who may see everything in it."""
        ...

    def holds(self, scope: str, names: Collection[str]) -> AbstractSet[str]:
        """Of these, by their sha256, all that are kept and will be: to be referred to counts as a use."""
        ...

    def images_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        """The sha256 of every image that begins so, in order; two are enough to show that a prefix is not unique."""
        ...

    def place(self, scope: str, sha256: str, path: str) -> None:
        """An image that is kept was found there; of many places the newest few are remembered."""
        ...

    def images(self, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
        """Those that were found in one of the folders, or with None all, the newest first."""
        ...

    def keep_perception(self, scope: str, perception: Perception) -> bool:
        """Store a view with its pixels; True: both survive a crash."""
        ...

    def perception(self, scope: str, perception_id: str) -> Perception | None: ...

    def keep_description(self, scope: str, description: Description, prompt: str) -> None: ...

    def redescribe(self, scope: str, reach: str | None, description: Description, prompt: str) -> Refusal | None:
        """Keep a description, and say it from now on wherever the image was told: the user wants it so.

        `reach`: the scope whose conversations are changed; None: all. A refusal means that it was not written.
        """
        ...

    def description(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None: ...

    def tell(self, scope: str, telling: Telling) -> Telling:
        """What was said at a place, for good; a failure, until better words come. Gives what stands there now.

        Whoever was first counts, in whichever process.
        """
        ...

    def told(self, scope: str, turn: str, images: tuple[str, ...]) -> Telling | None: ...

    def looked(self, scope: str, turn: str) -> AbstractSet[str]:
        """The images for which somebody was asked in this turn."""
        ...

    def answers_in_legs(self, scope: str) -> bool:
        """Is there any answer in legs? Nearly nobody has one, and whoever has none need not be looked through."""
        ...

    def answered(self, scope: str, keys: Sequence[str]) -> Sequence[Answered]:
        """The answers that these keys may mean."""
        ...

    def keep_answered(self, scope: str, answered: Answered) -> None:
        """An answer in legs, before its client has all of it."""
        ...

    def settle(self, scope: str, answered: Answered, results: Sequence[Json]) -> None:
        """What the calls of its last leg brought; the first word counts."""
        ...

    def claim(self, flight: Flight, since: float, seconds: float) -> str | None:
        """None: for that long it is this owner's to make. Else who is ahead, in whichever process.

        One who has landed after `since` is ahead as well: what was asked for then is there by now.
        """
        ...

    def land(self, flight: Flight, answer: str | None) -> None:
        """It has come to its end; the answer is for those who wait. None: it failed, and another may try."""
        ...

    def landed(self, flight: Flight) -> tuple[bool, str | None]:
        """Whether this owner's flight is still known, and what came of it."""
        ...

    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> AbstractSet[str]:
        """A request has come, with a conversation whose messages have these names.

        `ends` are the indexes of those with which the requests before it ended, and it itself; `life` is how long a
        prompt cache lasts, in seconds. Gives the names of those whose request met a cold cache: nobody had asked for
        so long, or the client had changed what it said before. Once cold, always cold. Without `touch` it is only
        asked: where tokens are counted, nobody warms a cache.
        """
        ...

    def learn(self, upstream: str, model: str, lesson: Lesson, days: float) -> Refusal | None:
        """Remember a lesson for so many days; a refusal means that it was not written."""
        ...

    def lesson(self, upstream: str, model: str) -> Lesson | None: ...

    def lessons(self) -> Sequence[tuple[str, str, Lesson]]: ...

    def forget_lesson(self, upstream: str, model: str) -> bool | Refusal:
        """Return whether there was a lesson; a refusal means that it may still be there."""
        ...

    def remembered(self, prefix: str) -> Sequence[str] | Refusal:
        """The sha256 of all that begins so and of which anything is kept, in any scope; two will do."""
        ...

    def forget(self, sha256: str | None) -> int | Refusal:
        """Remove an image, or with None every image, and all that was said and shown of it, in every scope.

        Returns how many images and views of parts that were; a refusal where anything of it may still be there.
        """
        ...

    def trouble(self) -> Refusal | None:
        """Why what was kept cannot be read: then it is not known what is there and what is not."""
        ...

    def consent(self, provider: str, given: bool) -> Refusal | None:
        """Write down whether images may go to a provider; a refusal means that it was not written."""
        ...

    def consents(self) -> Mapping[str, bool]:
        """Return what the user has said about each provider.

        It is empty where that cannot be read (then `trouble` says why), or is not known to be what the user said last.
        """
        ...

    def note(self, scope: str, entry: Entry) -> None: ...

    def entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        """What was noted, in every scope, the oldest first."""
        ...

    def spent(self) -> Sequence[Spent] | Refusal:
        """By day and seer, in every scope."""
        ...

    def file(self, scope: str, filed: Filed) -> None:
        """Keep a receipt, without a wait: it is written a moment later, with others, and at the latest by `close`."""
        ...

    def receipts(self, most: int) -> Sequence[Filed]:
        """The newest of every scope, the newest first."""
        ...

    def omit(self, omission: Omission) -> None:
        """Keep that a client leaves images out, likewise without a wait."""
        ...

    def omissions(self) -> Sequence[Omission]: ...

    def scope_of(self, credential: str) -> str:
        """A keyed hash of a credential; the key never leaves the record."""
        ...

    def close(self) -> None: ...
