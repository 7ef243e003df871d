"""The sights of one request, and the conversation they stand in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from sightline.model.fate import Fate, Refitted, Shown
from sightline.model.source import Source
from sightline.model.value import value

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the root of a body to a value in it."""

_LONGEST_NAME = 255


@value
class Call:
    """The tool call that brought a sight."""

    id: str
    name: str = ""
    path: str | None = None  # of the file that it was asked to open
    arguments: Mapping[str, Json] = field(default_factory=dict, compare=False, repr=False)

    @property
    def filename(self) -> str | None:
        """The last part of its path."""
        last = (self.path or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
        return last if 0 < len(last) <= _LONGEST_NAME else None


@value
class Sight:
    place: Path  # of the image block; of the string, where a library has written the image into one
    source: Source
    role: Literal["user", "tool"]  # who brought it: pasted, or by a tool call
    call: Call | None = None
    message: int = 0  # index of the message that it stands in
    within: Path | None = None  # in a string: the way through the JSON that it holds; (): it is the whole string
    hoisted: bool = False  # a tool brought it, and it stands in a user message already
    fixed: bool = False  # its pixels may be refitted, but nothing else may stand there
    label: str = ""  # words that stand before it: whose it is, where it is moved; its reference, where it was pasted
    fate: Fate | None = None

    @property
    def filename(self) -> str | None:
        return self.call.filename if self.call else None

    @property
    def held(self) -> bool:
        """Does it stand in the result of a tool?"""
        return self.role == "tool" and not self.hoisted

    def meets(self, fate: Fate) -> Sight:
        """The sight with its fate; where nothing else may stand, its pixels stay."""
        return self.revised(self.label, fate if not self.fixed or isinstance(fate, Shown | Refitted) else Shown())

    def revised(self, label: str, fate: Fate | None) -> Sight:
        """The same sight with another label and fate; `replace` takes three times as long, and this is done a lot."""
        return Sight(
            self.place, self.source, self.role, self.call, self.message, self.within, self.hoisted, self.fixed,
            label, fate,
        )  # fmt: skip


Role: TypeAlias = Literal["user", "assistant", "tool", "other"]


@value
class Message:
    """One item of a conversation, in the words that all wires share."""

    role: Role
    opens: bool = False  # a turn begins here: a person has said something


@value
class Scene:
    model: str
    sights: tuple[Sight, ...] = ()
    stream: bool = False
    messages: tuple[Message, ...] = ()
    tools: frozenset[str] = frozenset()  # the names of those that the model may call
    partial: bool = False  # the provider holds a part of the conversation that is not in the body
    calls: tuple[tuple[int, Call], ...] = ()  # those that name a file, each with the message that makes it
    ours: frozenset[str] = frozenset()  # of the tools, those that we offer and answer ourselves

    def with_sights(self, sights: tuple[Sight, ...]) -> Scene:
        return Scene(self.model, sights, self.stream, self.messages, self.tools, self.partial, self.calls, self.ours)

    def with_ours(self, names: frozenset[str]) -> Scene:
        """With tools of ours among those that the model may call."""
        tools = self.tools | names
        return Scene(self.model, self.sights, self.stream, self.messages, tools, self.partial, self.calls, names)

    @property
    def ends(self) -> tuple[int, ...]:
        """The last messages of the requests that it has grown from, one for each step, and of this one."""
        speaks = [message.role == "assistant" for message in self.messages]
        steps = (i for i in range(len(speaks) - 1) if speaks[i + 1] and not speaks[i])
        return (*steps, *([len(speaks) - 1] if speaks else []))
