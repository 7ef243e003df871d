"""The inputs of a decision besides the scene: needs and facts, and the rules of a request.

A need is what a pass must know; a fact is what the engine found out. A need is its own cache key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from sightline.model.geometry import Box, Size
from sightline.model.image import FitPart, ImageInfo, ImageTarget
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import DamagedSource, InlineSource, LinkSource, Source
from sightline.model.value import value_class

K = TypeVar("K")
T = TypeVar("T")
NO_COORDINATES = "none"  # the coordinate format of a seer that gives no coordinates


@value_class
class Probe:
    """Read the header of an image. Answered by `ImageInfo`."""

    image: InlineSource


@value_class
class Check:
    """Decode every pixel of an image. Answered by `ImageInfo`."""

    image: InlineSource


@value_class
class Refit:
    """Fit an image to a target, as one image. Answered by `FitPart`."""

    image: InlineSource
    target: ImageTarget


@value_class
class DescribeImage:
    """Describe an image. Answered by `Description`."""

    image: Source
    cached_only: bool = False  # only a stored description counts; no seer is asked
    message: int = 0  # the first of its turn that contains the image
    over_limit: bool = False  # the turn has more images than may be described, and this is not one of the newest


@value_class
class DescribeTogether:
    """Describe several images of a turn together. Answered by `JointDescription`; a refusal is not shown."""

    images: tuple[InlineSource, ...]
    names: tuple[str, ...]  # file names, empty if unknown
    message: int  # of the last image
    cached_only: bool = False
    is_complete: bool = True  # False: the turn has another image, which cannot be read


@value_class
class Keep:
    """Store an image in the record before anything refers to it. Answered by `KeptImage`."""

    image: InlineSource

    def __hash__(self) -> int:
        return ~hash(self.image)  # unlike that of a `Probe`: most facts are about both, and would be compared


@value_class
class KeptImage:
    sha256: str
    info: ImageInfo

    def __hash__(self) -> int:
        return hash(self.sha256)


@value_class
class Fetch:
    """Fetch an address, for a model that gets a description. Answered by `InlineSource`."""

    link: LinkSource


@value_class
class ReopenFile:
    """Open the file of an image that was damaged in a message of the conversation. Answered by `InlineSource`."""

    image: DamagedSource
    message: int


@value_class
class CompareFile:
    """Find out whether a file had the bytes of an image at a message of the conversation. Answered by `bool`."""

    path: str
    image: InlineSource
    message: int


@value_class
class RecallHistory:
    """Find out what is known of the conversation beyond its body. Answered by `ConversationHistory`."""


@value_class
class ConversationHistory:
    """The tokens of each message without images, and the requests that met a cold cache."""

    tokens: tuple[int, ...]
    cold_messages: frozenset[int] = frozenset()  # requests that ended with these messages found nothing cached
    head_tokens: int = 0  # before the first message: system prompt and tools
    chain: str = ""  # the name of the last message


@value_class
class DescribedImage:
    """One image that a seer described: which part of it, and in what size."""

    sha256: str
    size: Size  # of the whole image
    filename: str = ""
    sent_size: Size | None = None  # None: the region's own size
    box: Box | None = None  # None: the whole image

    @property
    def region_size(self) -> Size:
        return self.box.size if self.box else self.size

    @property
    def seen_size(self) -> Size:
        """The size in which the seer got the image."""
        return self.sent_size or self.region_size

    @property
    def id(self) -> str:
        return f"sha256:{self.sha256}" + (f"#crop:{self.box}" if self.box else "")


@value_class
class Description:
    sha256: str
    size: Size
    text: str
    seer: str
    coordinate_format: str = NO_COORDINATES
    sent_size: Size | None = None  # None: the image's own size
    boxes_block: str = ""  # the places that the text mentions, in pixels of the image, written behind the text

    @property
    def image(self) -> DescribedImage:
        return DescribedImage(self.sha256, self.size, sent_size=self.sent_size)


@value_class
class JointDescription:
    images: tuple[DescribedImage, ...]  # in the order in which the text numbers them
    text: str
    seer: str
    coordinate_format: str = NO_COORDINATES
    boxes_block: str = ""


Need = (
    Probe | Check | Refit | DescribeImage | DescribeTogether | Keep | Fetch | ReopenFile | CompareFile | RecallHistory
)
Fact = (
    ImageInfo
    | FitPart
    | Description
    | JointDescription
    | KeptImage
    | InlineSource
    | bool
    | ConversationHistory
    | Refusal
)


@value_class
class Needs:
    """What a pass needs to know; the engine finds out all of it concurrently and decides again."""

    needs: frozenset[Need]


class Facts:
    """What the engine has found out so far, by need."""

    __slots__ = ("_facts", "_infos", "_kept")

    def __init__(
        self,
        facts: Mapping[Need, Fact] | None = None,
        kept: Mapping[InlineSource, KeptImage] | None = None,
        infos: Mapping[InlineSource, ImageInfo | Refusal] | None = None,
    ) -> None:
        """`kept` answers the needs `Keep` and `Probe` of these images, `infos` the latter of others.

        They are found in a quarter of the time of other facts, as they are known of nearly every image.
        """
        self._facts = dict(facts or {})
        self._kept = kept or {}
        self._infos = infos or {}

    def __contains__(self, need: Need) -> bool:
        return self._find(need) is not None

    def get(self, need: Need, kind: type[T]) -> T | Refusal | None:
        """Return the fact for `need`, or None if it is not known yet."""
        found = self._find(need)
        assert found is None or isinstance(found, (kind, Refusal)), (need, found)
        return found

    def _find(self, need: Need) -> Fact | None:
        found = self._facts.get(need) if self._facts else None
        if found is None and isinstance(need, (Keep, Probe)):
            kept = self._kept.get(need.image)
            if isinstance(need, Keep):
                return kept
            return self._infos.get(need.image) if kept is None else kept.info
        return found

    def find_kept(self, image: InlineSource) -> KeptImage | Refusal | None:
        """Return the fact for `Keep` of this image."""
        kept = self._kept.get(image) if self._kept else None
        return self.get(Keep(image), KeptImage) if kept is None and self._facts else kept

    def find_info(self, image: InlineSource) -> ImageInfo | Refusal | None:
        """Return the fact for `Probe` of this image."""
        if self._kept and (kept := self._kept.get(image)) is not None:
            return kept.info
        info = self._infos.get(image) if self._infos else None
        return self.get(Probe(image), ImageInfo) if info is None and self._facts else info

    def get_all(self, needs: Mapping[K, Need], kind: type[T]) -> dict[K, T | Refusal] | Needs:
        """Return the facts for all needs, or the needs that are not known yet."""
        found: dict[K, T | Refusal] = {}
        for name, need in needs.items():
            if (answer := self.get(need, kind)) is not None:
                found[name] = answer
        if len(found) == len(needs):
            return found
        return Needs(frozenset(need for name, need in needs.items() if name not in found))

    def with_facts(self, facts: Mapping[Need, Fact]) -> Facts:
        return Facts({**self._facts, **facts}, self._kept, self._infos)


@value_class
class Routing:
    """Which of two models gets a request, and which messages the other one wrote."""

    model: str  # gets this request
    requested_model: str  # named by the client
    turn_start: int = -1  # the message that opens the newest turn
    foreign_messages: frozenset[int] = frozenset()  # written by the other model

    @property
    def is_rerouted(self) -> bool:
        """Whether the request goes to another model than the client named."""
        return self.model != self.requested_model


ProxyMode = Literal["fallback", "always", "off", "route"]


@value_class
class Retention:
    """When an image that the model has seen is replaced by a line."""

    kept_turns: int | None = None  # images of this many earlier turns stay; None: the cost of the cache decides
    is_off: bool = False
    includes_pasted: bool = False  # pasted images are retired too, if they can be seen again


@value_class
class Rules:
    """What settings, profile and earlier rejections prescribe for one request."""

    profile: Profile
    mode: ProxyMode = "fallback"
    retention: Retention = Retention()
    max_images: int = 20  # described in one turn; 0: no limit
    max_joint_images: int = 1  # images of a turn that are also described together; 1: off
    joint_by_turn: bool = False  # joint descriptions are removed when their turn ends, not when retention says
    may_pay: bool = True  # False: tokens are only counted, so no seer is asked
    check_all_images: bool = False  # the upstream could not read some image, so each is decoded before it is resent
    reencode: bool = False  # … and encoded again
    unreadable_keys: frozenset[str] = frozenset()  # keys of the images that the upstream could not read
    fold_pages: bool = False  # a tall page that the provider would make illegible is folded, if nothing has coordinates
    add_references: bool = False  # a pasted image gets its reference beside it, once the record has it
    pixels_this_turn_only: bool = False  # images of earlier turns are described

    @property
    def is_blind(self) -> bool:
        """Whether the model gets text instead of pixels."""
        return self.mode == "always" or self.profile.vision is False
