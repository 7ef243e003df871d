"""Needs: what a pass must know. Facts: what the driver found out. A need is its own cache key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sightline.model.geometry import Box, Size
from sightline.model.image import Image, Picture, Target
from sightline.model.refusal import Refusal
from sightline.model.source import Inline, Link, Source
from sightline.model.value import value

K = TypeVar("K")
T = TypeVar("T")
NO_FORM = "none"  # the way of writing coordinates of somebody who writes none


@value
class Probe:
    """What does the header say? Answered by `Picture`."""

    image: Inline


@value
class Check:
    """Can every pixel be decoded? Answered by `Picture`."""

    image: Inline


@value
class Refit:
    """The image, made to fit. Answered by `Image`."""

    image: Inline
    target: Target


@value
class Look:
    """What is to be seen there? Answered by `Description`."""

    image: Source
    remembered_only: bool = False  # nobody is paid for this look: only what is known already counts
    message: int = 0  # the first of its turn in which it stands
    beyond: bool = False  # there are more images than are looked at, and this is not among the newest


@value
class Compare:
    """What do several images of a turn show together? Answered by `Joint`; a refusal: nothing is said of that."""

    images: tuple[Inline, ...]
    names: tuple[str, ...]  # the file name of each, or nothing
    message: int  # in which the last of them stands
    remembered_only: bool = False
    whole: bool = True  # False: there is one more, which cannot be read


@value
class Keep:
    """The image, safe in the record before anything refers to it. Answered by `Kept`."""

    image: Inline


@value
class Kept:
    sha256: str
    picture: Picture


@value
class Fetch:
    """What an address holds, for a model that cannot be given the address. Answered by `Inline`."""

    link: Link


@value
class Present:
    """Was there a file at this path when the conversation had come to a message? Answered by `bool`."""

    path: str
    message: int


@value
class Recall:
    """What is known of the conversation beyond its words. Answered by `History`."""


@value
class History:
    """For each message, its length in tokens without images; and which requests met a cold cache."""

    tokens: tuple[int, ...]
    cold: frozenset[int] = frozenset()  # a request that ended with this message found nothing of it cached
    head: int = 0  # tokens in front of the first message: system and tools


@value
class Member:
    """One image of a look: which part of it was looked at, and in what size."""

    sha256: str
    size: Size  # of the whole image
    filename: str = ""
    sent: Size | None = None  # None: in its own
    box: Box | None = None  # None: all of it

    @property
    def region(self) -> Size:
        return self.box.size if self.box else self.size

    @property
    def seen(self) -> Size:
        """The size in which the image was given to whoever looked."""
        return self.sent or self.region

    @property
    def id(self) -> str:
        return f"sha256:{self.sha256}" + (f"#crop:{self.box}" if self.box else "")


@value
class Description:
    sha256: str
    size: Size
    text: str
    seer: str
    form: str = NO_FORM
    sent: Size | None = None  # None: in its own size
    boxes: str = ""  # all that the words point at, in pixels of the image, as it stands behind them

    @property
    def image(self) -> Member:
        return Member(self.sha256, self.size, sent=self.sent)


@value
class Joint:
    images: tuple[Member, ...]  # in the order in which the words speak of them
    text: str
    seer: str
    form: str = NO_FORM
    boxes: str = ""


Need = Probe | Check | Refit | Look | Compare | Keep | Fetch | Present | Recall
Answer = Picture | Image | Description | Joint | Kept | Inline | bool | History | Refusal


@value
class Needs:
    """What a pass lacks; the driver answers all of it at once and decides again."""

    needs: frozenset[Need]


class Facts:
    """The answers so far."""

    __slots__ = ("_answers",)

    def __init__(self, answers: Mapping[Need, Answer] | None = None) -> None:
        self._answers = dict(answers or {})

    def __contains__(self, need: Need) -> bool:
        return need in self._answers

    def answer(self, need: Need, kind: type[T]) -> T | Refusal | None:
        """The answer to `need`, or None while it is not known."""
        found = self._answers.get(need)
        assert found is None or isinstance(found, (kind, Refusal)), (need, found)
        return found

    def answers(self, needs: Mapping[K, Need], kind: type[T]) -> dict[K, T | Refusal] | Needs:
        """The answers to all of these, or those that are not known yet."""
        found: dict[K, T | Refusal] = {}
        for name, need in needs.items():
            if (answer := self.answer(need, kind)) is not None:
                found[name] = answer
        if len(found) == len(needs):
            return found
        return Needs(frozenset(need for name, need in needs.items() if name not in found))

    def with_answers(self, answers: Mapping[Need, Answer]) -> Facts:
        return Facts({**self._answers, **answers})
