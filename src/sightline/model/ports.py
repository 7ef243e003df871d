"""The contracts of the outside world: HTTP, the seers, and the durable memory.

The durable memory, called the record, is a `Store` of five ports. A caller takes the narrowest of them that it needs.
Every row belongs to a scope (a hash of the credential that made it), and nothing is read across scopes; a scope of None
is that of the record's owner, who may read everything. Methods do not raise where the disk or the server fails. A read
returns what it returns where nothing was kept; a write is lost, and requests go on. Where the caller must know, the
method returns a refusal.
"""

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
class Lease:
    """The right to make one look: what is asked, by a name that is the same for all who ask it, and who makes it."""

    scope: str
    name: str
    owner: str


class ImageStore(Protocol):
    """The bytes of images, where they were found, and the views that were made of them."""

    def keep(self, scope: str, image: Image) -> bool:
        """Store an image, and return whether it survives a crash. If not, nothing may refer to it."""
        ...

    def read(self, scope: str | None, sha256: str) -> Image | None: ...

    def find_kept(self, scope: str, names: Collection[str]) -> AbstractSet[str]:
        """Return those of the images, by their sha256, that are kept and will be. Each counts as used."""
        ...

    def find_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        """Return the sha256 of the images that begin with a prefix, in order, and at most two of them."""
        ...

    def list_newest(self, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
        """Return the images that were found in one of the folders, or all for None, the newest first."""
        ...

    def note_place(self, scope: str, sha256: str, path: str) -> None:
        """Note where an image was found; of many places the newest few are kept."""
        ...

    def keep_view(self, scope: str, view: Perception) -> bool:
        """Store a view with its pixels, and return whether both survive a crash."""
        ...

    def read_view(self, scope: str, view_id: str) -> Perception | None: ...


class DescriptionStore(Protocol):
    """What seers said about images, what was said at which place of a conversation, and leases to ask a seer."""

    def keep(self, scope: str, description: Description, prompt: str) -> None: ...

    def read(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None: ...

    def replace(self, scope: str, reach: str | None, description: Description, prompt: str) -> Refusal | None:
        """Store a description, and use it from now on wherever the image was described.

        `reach`: the scope whose conversations are changed; None: all. A refusal means that it was not written.
        """
        ...

    def pin(self, scope: str, telling: Telling) -> Telling:
        """Store for good what was said at a place, and return what is pinned there now.

        The first writer wins, in whichever process. Only a failure is replaced by a later one.
        """
        ...

    def read_pinned(self, scope: str, turn: str, images: tuple[str, ...]) -> Telling | None: ...

    def find_asked(self, scope: str, turn: str) -> AbstractSet[str]:
        """Return the images for which a seer was asked in a turn."""
        ...

    def claim_lease(self, lease: Lease, since: float, seconds: float) -> str | None:
        """Take or prolong a lease, and return None; or return its owner, in whichever process.

        An owner that has finished after `since` is returned as well: the answer is there by now.
        """
        ...

    def finish_lease(self, lease: Lease, answer: str | None) -> None:
        """End a lease, and leave the answer for those who wait; None: it failed, and another may try."""
        ...

    def read_lease(self, lease: Lease) -> tuple[bool, str | None]:
        """Return whether the lease of this owner is still known, and its answer."""
        ...


class ConversationStore(Protocol):
    """What a conversation needs to be continued: visits to prompt caches, our own tool calls; and omissions."""

    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> AbstractSet[str]:
        """Note a request with a conversation whose messages have these names, and find out which caches were cold.

        `ends` are the indexes of the messages with which the requests before it ended, and it itself; `life` is how
        long a prompt cache lasts, in seconds. Returns the names of those whose request met a cold cache: the last one
        was too long ago, or the client had changed earlier messages. Once cold, always cold. Without `touch` nothing
        is noted: counting tokens does not warm a cache.
        """
        ...

    def has_answers(self, scope: str) -> bool:
        """Return whether there is any answer with calls of our own: most scopes have none."""
        ...

    def read_answers(self, scope: str, keys: Sequence[str]) -> Sequence[Answered]:
        """Return the answers that these keys may mean."""
        ...

    def keep_answer(self, scope: str, answered: Answered) -> None:
        """Store an answer with calls of our own, before its client has all of it."""
        ...

    def keep_results(self, scope: str, answered: Answered, results: Sequence[Json]) -> None:
        """Store the results of the calls in the last leg of an answer; the first writer wins."""
        ...

    def note_omission(self, omission: Omission) -> None:
        """Store without a wait that a client leaves images out: see `Ledger.file_receipt`."""
        ...

    def list_omissions(self) -> Sequence[Omission]: ...


class Ledger(Protocol):
    """What was asked and what it cost, and what was done to each request."""

    def add_entry(self, scope: str, entry: Entry) -> None: ...

    def list_entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        """Return the entries of every scope, the oldest first."""
        ...

    def sum_spending(self) -> Sequence[Spent] | Refusal:
        """Return what was spent in every scope, by day and seer."""
        ...

    def file_receipt(self, scope: str, filed: Filed) -> None:
        """Store a receipt without a wait: it is written a moment later with others, at the latest by `Store.close`."""
        ...

    def list_receipts(self, most: int) -> Sequence[Filed]:
        """Return the newest receipts of every scope, the newest first."""
        ...


class PolicyStore(Protocol):
    """What the user has consented to, and what was learnt about the models of upstreams."""

    def set_consent(self, provider: str, given: bool) -> Refusal | None:
        """Store whether images may go to a provider; a refusal means that it was not written."""
        ...

    def read_consents(self) -> Mapping[str, bool]:
        """Return what the user has said about each provider.

        It is empty where that cannot be read (then `Store.find_trouble` says why), or may be out of date.
        """
        ...

    def keep_lesson(self, upstream: str, model: str, lesson: Lesson, days: float) -> Refusal | None:
        """Store a lesson for so many days; a refusal means that it was not written."""
        ...

    def read_lesson(self, upstream: str, model: str) -> Lesson | None: ...

    def list_lessons(self) -> Sequence[tuple[str, str, Lesson]]: ...

    def forget_lesson(self, upstream: str, model: str) -> bool | Refusal:
        """Return whether there was a lesson; a refusal means that it may still be there."""
        ...


class Store(Protocol):
    """The durable memory: five ports, and what concerns all of them."""

    @property
    def images(self) -> ImageStore: ...

    @property
    def descriptions(self) -> DescriptionStore: ...

    @property
    def conversations(self) -> ConversationStore: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def policy(self) -> PolicyStore: ...

    def scope_of(self, credential: str) -> str:
        """Return a keyed hash of a credential; the key never leaves the store."""
        ...

    def find_trouble(self) -> Refusal | None:
        """Return why what was kept cannot be read, or None. With trouble, nothing is known about what is kept."""
        ...

    def find_remembered(self, prefix: str) -> Sequence[str] | Refusal:
        """Return the sha256 of images of which anything is kept in any scope, by a prefix, and at most two of them."""
        ...

    def forget(self, sha256: str | None) -> int | Refusal:
        """Remove an image, or every image for None, with all that was said and shown of it, in every scope.

        Returns how many images and views of parts there were; a refusal means that something may still be there.
        """
        ...

    def close(self) -> None: ...
