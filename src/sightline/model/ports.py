"""The ports: sending HTTP requests, persistent storage, and progress. (The port of the seers is in `seer`.)

Persistent storage, called the record, is a `Store` of five ports. A caller takes the narrowest one that it needs. Every
row belongs to a scope (a hash of the credential that made it), and nothing is read across scopes; the scope None is
that of the record's owner, who may read everything. Methods don't raise if the disk or the server fails: a read returns
the same as if nothing were stored, and a write is lost. Where the caller must know, the method returns a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from sightline.model.facts import Description
from sightline.model.image import Image, ImageSummary
from sightline.model.profile import Lesson
from sightline.model.records import (
    EntryKind,
    FiledReceipt,
    LedgerEntry,
    LoopAnswer,
    Omission,
    PinnedDescription,
    Spending,
    StoredView,
)
from sightline.model.refusal import Refusal
from sightline.model.request_trace import AnswerSlot, ConversationSummary
from sightline.model.scene import Json
from sightline.model.value import value_class

ReportProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many steps are done, and how many there are."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


@value_class
class HttpReply:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class HttpSender(Protocol):
    """Sends one request to a configured address. It gives up after `seconds` without a byte; errors are refusals."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> HttpReply | Refusal: ...


@value_class
class Lease:
    """The right to ask a seer one question: the question's name, which is the same for all callers, and its owner."""

    scope: str
    name: str
    owner: str


class ImageStore(Protocol):
    """The bytes of images, the paths where they were found, and the views that were made of them."""

    def keep(self, scope: str, image: Image) -> bool:
        """Store an image, and return whether it survives a crash. If not, nothing may refer to it."""
        ...

    def read(self, scope: str | None, sha256: str) -> Image | None: ...

    def find_kept_images(self, scope: str, hashes: Collection[str]) -> AbstractSet[str]:
        """Return which of the images, by sha256, are stored and will stay so. Each is marked as used."""
        ...

    def find_stored(self, hashes: Collection[str]) -> AbstractSet[str]:
        """Return which of the images, by sha256, are stored now, in any scope."""
        ...

    def find_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        """Return the sha256 of at most two images whose sha256 starts with a prefix, in order."""
        ...

    def list_newest(self, scope: str | None, folders: Sequence[str] | None, limit: int) -> Sequence[ImageSummary]:
        """Return the images that were found in one of the folders, newest first; None means all images."""
        ...

    def note_place(self, scope: str, sha256: str, path: str) -> None:
        """Store where an image was found; only the newest few paths are kept."""
        ...

    def keep_view(self, scope: str, view: StoredView) -> bool:
        """Store a view with its pixels, and return whether both survive a crash."""
        ...

    def read_view(self, scope: str, view_id: str) -> StoredView | None: ...

    def list_views(self, sha256: str, limit: int) -> Sequence[StoredView]:
        """Return the newest views of an image in every scope, the newest first, without their pixels' bytes."""
        ...

    def read_pixels(self, sha256: str) -> Image | None:
        """Return the pixels of a view in any scope, by their own sha256."""
        ...


class DescriptionStore(Protocol):
    """Descriptions of images, the ones pinned to places in conversations, and leases to ask a seer."""

    def keep(
        self,
        scope: str,
        description: Description,
        prompt: str,
        lease: Lease | None = None,
        *,
        image_stored: bool = False,
    ) -> None:
        """Store a description. If it was made under a lease that another owner has now, it replaces no other one.

        `image_stored`: the record had the image when it was described; nothing is stored if it was forgotten meanwhile.
        """
        ...

    def read(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None: ...

    def list_texts(self, sha256: str) -> Sequence[tuple[str, str]]:
        """Return the seer and the text of each description of an image in every scope, for the record's owner."""
        ...

    def find_openings(self, hashes: Collection[str], length: int) -> Mapping[str, str]:
        """Return, by sha256, how a description of each image begins, in any scope, for the record's owner."""
        ...

    def find_seers(self, scope: str, sha256: str) -> AbstractSet[str]:
        """Return the seers whose descriptions of an image are stored."""
        ...

    def save(self, reach: str | None, description: Description) -> Refusal | None:
        """Make a description the one that its image has at every place, now and later, until the next one is saved.

        `reach`: the scope whose conversations get it; None: all. A refusal means that it was not written.
        """
        ...

    def read_saved(self, scope: str, sha256: str) -> Description | None:
        """Return the description of an image that was last saved for a scope."""
        ...

    def pin(self, scope: str, pinned: PinnedDescription, *, images_stored: bool = False) -> PinnedDescription:
        """Pin a description to a place permanently, and return what is pinned there now.

        The first writer wins, across processes. Only a failure is replaced later. `images_stored`: the record had all
        its images when they were described; nothing is pinned if one of them was forgotten meanwhile.
        """
        ...

    def read_pin(self, scope: str, turn: str, images: tuple[str, ...]) -> PinnedDescription | None: ...

    def find_asked_images(self, scope: str, turn: str) -> AbstractSet[str]:
        """Return the images for which a seer was asked in a turn."""
        ...

    def claim_lease(self, lease: Lease, since: float, seconds: float) -> str | None:
        """Take or renew a lease and return None, or return its current owner, which may be in another process.

        An owner that has finished after `since` is returned too, because its answer can be read.
        """
        ...

    def finish_lease(self, lease: Lease, answer: str | None) -> None:
        """End a lease, and store the answer for waiting callers; None: it failed, and another caller may try."""
        ...

    def read_lease(self, lease: Lease) -> tuple[bool, str | None]:
        """Return whether the lease of this owner is still known, and its answer."""
        ...

    def has_open_lease(self, scope: str, part: str) -> bool:
        """Return whether an owner works under a lease whose name contains `part`."""
        ...


class ConversationStore(Protocol):
    """What is needed to continue a conversation: visits to prompt caches, and our own tool calls; also omissions."""

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
        """Return whether any answer with our own calls is stored: most scopes have none."""
        ...

    def read_answers(self, scope: str, keys: Sequence[str]) -> Sequence[LoopAnswer]:
        """Return the answers stored under these keys."""
        ...

    def expect_answer(self, scope: str) -> None:
        """Tell other processes that there will be an answer with our own calls, so that its client won't wait later."""
        ...

    def keep_answer(self, scope: str, answer: LoopAnswer) -> float:
        """Store an answer with our own calls, before its client has received all of it.

        Returns for how many seconds the client must not get the end of it, since another process may not find it yet.
        """
        ...

    def keep_results(self, scope: str, answer: LoopAnswer, results: Sequence[Json]) -> None:
        """Store the results of the calls in the last leg of an answer; the first writer wins."""
        ...

    def note_omission(self, omission: Omission) -> None:
        """Store, without waiting, that a client omits images: see `Ledger.file_receipt`."""
        ...

    def list_omissions(self) -> Sequence[Omission]: ...


class Ledger(Protocol):
    """What was asked, what it cost, and what was done to each request."""

    def add_entry(self, scope: str, entry: LedgerEntry) -> None: ...

    def list_entries(self, kind: EntryKind | None = None) -> Sequence[LedgerEntry]:
        """Return the entries of every scope, the oldest first."""
        ...

    def sum_spending(self) -> Sequence[Spending] | Refusal:
        """Return what was spent in every scope, by day and seer."""
        ...

    def file_receipt(self, scope: str, filed: FiledReceipt) -> None:
        """Store a receipt without waiting. It is written with others, at the latest by `Store.close`."""
        ...

    def add_usage(self, answer: AnswerSlot) -> None:
        """Add the usage of an answer to its receipt, without waiting, if it was written before."""
        ...

    def list_receipts(self, limit: int) -> Sequence[FiledReceipt]:
        """Return the newest receipts of every scope, the newest first."""
        ...

    def list_conversations(self, limit: int, offset: int = 0) -> Sequence[ConversationSummary]:
        """Return the conversations of every scope that the receipts are about, the newest first."""
        ...

    def find_conversation(self, conversation: str) -> ConversationSummary | None: ...

    def read_conversation(self, conversation: str, limit: int, after: int = 0) -> Sequence[FiledReceipt]:
        """Return the receipts of a conversation, the oldest first, that were filed later than the one with this id."""
        ...

    def list_entries_about(self, sha256: str) -> Sequence[LedgerEntry]:
        """Return the entries of every scope that name an image, the oldest first."""
        ...


@value_class
class ModelListing:
    """What an upstream publishes: for each model, whether it takes "vision", "pdf" or "video"."""

    models: Mapping[str, Mapping[str, bool]]
    model: str = ""  # the only model that was asked about; empty: all of them


class PolicyStore(Protocol):
    """What the user has consented to, and what was learnt about the models of upstreams."""

    @property
    def may_wait(self) -> bool:
        """Whether a read may have to wait for a server."""
        ...

    def set_consent(self, provider: str, given: bool) -> Refusal | None:
        """Store whether images may go to a provider; a refusal means that it was not written."""
        ...

    def read_consents(self) -> Mapping[str, bool]:
        """Return what the user has said about each provider.

        It is empty if the record can't be read (`Store.find_trouble` says why), or may be out of date.
        """
        ...

    def keep_lesson(self, upstream: str, model: str, lesson: Lesson, days: float) -> Refusal | None:
        """Store a lesson for this many days; a refusal means that it was not written."""
        ...

    def read_lesson(self, upstream: str, model: str) -> Lesson | None: ...

    def list_lessons(self) -> Sequence[tuple[str, str, Lesson]]: ...

    def keep_listing(self, upstream: str, listing: ModelListing, fresh_days: float) -> None:
        """Store what an upstream publishes about its models; it counts longer than it is fresh."""
        ...

    def has_fresh_listing(self, upstream: str, model: str) -> bool:
        """Return whether a listing of all models (`model` is empty) or of this one doesn't have to be fetched yet."""
        ...

    def forget_lesson(self, upstream: str, model: str) -> bool | Refusal:
        """Return whether there was a lesson; a refusal means that it may still be there."""
        ...


class Store(Protocol):
    """Persistent storage: five ports, and operations that concern all of them."""

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

    def compute_scope(self, credential: str) -> str:
        """Return a keyed hash of a credential; the key never leaves the store."""
        ...

    def find_trouble(self) -> Refusal | None:
        """Return why the record can't be read, or None. If it can't, nothing is known about its content."""
        ...

    def find_known_images(self, prefix: str) -> Sequence[str] | Refusal:
        """Return the sha256 of at most two images, by a prefix, of which anything is stored in any scope."""
        ...

    def forget(self, sha256: str | None, *, usage: bool = False) -> int | Refusal:
        """Delete an image, or every image for None, with its descriptions and views, in every scope.

        What seers cost stays in the ledger, without images and words, unless all is deleted with `usage`. Return how
        many images and views were deleted; a refusal means that something may still be there.
        """
        ...

    def close(self) -> None: ...
