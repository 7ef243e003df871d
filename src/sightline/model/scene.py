"""The scene of one request: its images (sights), the conversation around them, and the edits that change its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from blake3 import blake3

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonPath: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the root of a body to a value in it."""

TOOLSET_NAME = "vision"
TOOL_NAMES = (
    "view_image",
    "read_file",
    "edit_file",
    "analyze_image",
    "list_images",
    "vision_analyze",
    "video_analyze",
)
"""The tools that Sightline offers to models."""

_match_server_tool = re.compile(r"(?:.*[._:/-])?sightline(?:__|[._:/-])(?P<name>\w+)").fullmatch
_MAX_FILENAME = 255
NO_TURN = -1
_SAMPLE = 32
_HASHED_ENTIRELY = 4096  # bytes; longer texts are hashed by samples


class NamedText(bytes):
    """A base64 text with what an `InlineSource` computes of it, which outlives a request."""

    key: str
    sample_hash: int

    def __bytes__(self) -> bytes:
        return self  # it can't change; without this method, `bytes(text)` would copy megabytes of a subclass of `bytes`


class InlineSource:
    """Base64 text in the body, not decoded yet. Two sources are equal if their texts and declared types are."""

    def __init__(self, declared_mime: str, text: bytes | bytearray | memoryview, leaf: str = "") -> None:
        self.declared_mime: Final = declared_mime  # the media type that the client declares; it may be wrong or empty
        self.text: Final = text
        self.leaf: Final = leaf  # the string in the parsed body, which may be a placeholder for the text
        # The key and the hash are computed once, when they are asked for.
        self._key: str | None = None
        self._hash: int | None = None
        if isinstance(text, NamedText):
            self._key, self._hash = text.key, text.sample_hash

    def __repr__(self) -> str:
        return f"InlineSource(declared_mime={self.declared_mime!r})"

    @property
    def key(self) -> str:
        """The name of the image across requests: a hash of its text. Computed on demand, since it reads every byte."""
        if self._key is None:
            self._key = blake3(self.text).hexdigest()
        return self._key

    @property
    def has_key(self) -> bool:
        return self._key is not None

    def set_key(self, key: str) -> None:
        """Set the key without hashing, for callers that know it already."""
        self._key = key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(_sample_text(self.text))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, InlineSource) and (self.declared_mime, self.key) == (other.declared_mime, other.key)


def _sample_text(text: bytes | bytearray | memoryview) -> tuple[int | bytes, ...]:
    """Return a value that differs for nearly all texts. Short texts are used in full, because many may be alike."""
    size = len(text)
    if size <= _HASHED_ENTIRELY:
        return size, bytes(text)
    middle = size // 2
    return size, bytes(text[:_SAMPLE]), bytes(text[middle : middle + _SAMPLE]), bytes(text[-_SAMPLE:])


@value_class
class LinkSource:
    """An address that the provider should fetch. It is never fetched only to measure the image."""

    url: str


@value_class
class OpaqueSource:
    """A reference that only the provider can resolve, such as the id of an uploaded file."""

    reference: str


@value_class
class DamagedSource:
    """An image whose bytes a client has read as text, and of which too little is left. Its file may still be there."""

    path: str | None  # of the file that the client has read, if it is known
    remains: bytes = field(repr=False)  # what is left of its bytes, to recognize the file


Source = InlineSource | LinkSource | OpaqueSource | DamagedSource


@value_class
class Shown:
    """The model gets the pixels as the client sent them; `mime` corrects a wrong declaration."""

    mime: str | None = None


AS_SENT: Final = Shown()
"""The fate of nearly every image that the model gets. Others may be equal to it."""


@value_class
class Refitted:
    """The model gets the pixels in another size or format."""

    image: Image
    why: str
    note: str = ""  # what was done, for the model; empty if it is the whole image in its own layout


@value_class
class Told:
    """The model gets a description instead of pixels."""

    text: str
    seer: str
    size: Size | None = None  # of the image that was described
    why: str = ""  # the model does not get the pixels


@value_class
class Refused:
    """The model gets one sentence that says why there are no pixels."""

    text: str
    refusal: Refusal


@value_class
class Retired:
    """The model saw the image in an earlier step, and gets a line that says what it was and how to see it again."""

    text: str
    why: str
    message: int = field(default=0, compare=False)  # the last one of the first request without the image


@value_class
class Repeated:
    """The same tool result already contains this image, so this copy in a text becomes a short marker."""


Fate = Shown | Refitted | Told | Retired | Refused | Repeated


def get_last_component(path: str) -> str | None:
    """Return the last component of a path; None if there is none or it is too long to be a file name."""
    last = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return last if 0 < len(last) <= _MAX_FILENAME else None


@value_class
class ToolCall:
    """A tool call whose result contains a sight."""

    id: str
    name: str = ""
    path: str | None = None  # of the file that the tool was asked to open
    arguments: Mapping[str, Json] = field(default_factory=dict, compare=False, repr=False)

    @property
    def filename(self) -> str | None:
        """The last component of the path; None if there is none or it is too long to be a file name."""
        return get_last_component(self.path or "")


@value_class
class Sight:
    """One occurrence of an image in a request."""

    place: JsonPath  # of the image block, or of the string that contains the image
    source: Source
    role: Literal["user", "tool"]  # pasted by a user, or from a tool
    call: ToolCall | None = None
    message: int = 0  # index of its message
    # For an image inside a string: its path in the JSON that the string holds, () if it is the whole string.
    path_in_text: JsonPath | None = None
    hoisted: bool = False  # from a tool, but already in a user message
    pixels_only: bool = False  # the wire accepts nothing but an image here: it may be refitted, not replaced by text
    label: str = ""  # text before it: the tool call of a moved image, or the reference of a pasted one
    fate: Fate | None = None
    pasted_name: str | None = None  # file name that the client gives for a pasted image

    @property
    def filename(self) -> str | None:
        return self.call.filename if self.call else self.pasted_name

    @property
    def is_in_tool_result(self) -> bool:
        return self.role == "tool" and not self.hoisted

    def with_fate(self, fate: Fate) -> Sight:
        """Return the sight with a fate. One that accepts pixels only is shown instead of replaced by text."""
        possible = not self.pixels_only or isinstance(fate, Shown | Refitted)
        return self.with_label_and_fate(self.label, fate if possible else Shown())

    def with_label_and_fate(self, label: str, fate: Fate | None) -> Sight:
        """Return the sight with another label and fate, three times as fast as `dataclasses.replace`."""
        return Sight(
            self.place, self.source, self.role, self.call, self.message, self.path_in_text, self.hoisted,
            self.pixels_only, label, fate, self.pasted_name,
        )  # fmt: skip


Role: TypeAlias = Literal["user", "assistant", "tool", "other"]


@value_class
class Message:
    """One message of a conversation, in terms that all wires share."""

    role: Role
    opens_turn: bool = False  # it has words of a person, which begin a turn


@value_class
class Scene:
    """What a wire's reader finds in the body of one request."""

    model: str
    sights: tuple[Sight, ...] = ()
    stream: bool = False
    messages: tuple[Message, ...] = ()
    tools: frozenset[str] = frozenset()  # names of the tools that the model may call
    is_partial: bool = False  # the provider stores a part of the conversation that is not in the body
    file_calls: tuple[tuple[int, ToolCall], ...] = ()  # tool calls that name a file, with the indexes of their messages
    own_tools: frozenset[str] = frozenset()  # those of `tools` that Sightline offers and answers itself
    declared_tools: tuple[Json, ...] = field(default=(), compare=False, repr=False)  # as the client writes them

    def with_sights(self, sights: tuple[Sight, ...]) -> Scene:
        return Scene(
            self.model, sights, self.stream, self.messages, self.tools, self.is_partial, self.file_calls,
            self.own_tools, self.declared_tools,
        )  # fmt: skip

    def with_own_tools(self, names: frozenset[str]) -> Scene:
        """Return the scene with tools that Sightline offers and answers itself."""
        tools = self.tools | names
        return Scene(
            self.model, self.sights, self.stream, self.messages, tools, self.is_partial, self.file_calls, names,
            self.declared_tools,
        )  # fmt: skip

    @property
    def request_ends(self) -> tuple[int, ...]:
        """The indexes of the messages with which each request of this conversation ended, this one included."""
        by_assistant = [message.role == "assistant" for message in self.messages]
        steps = (i for i in range(len(by_assistant) - 1) if by_assistant[i + 1] and not by_assistant[i])
        return (*steps, *([len(by_assistant) - 1] if by_assistant else []))

    def count_sent_messages(self) -> int:
        """Return how many messages the previous request of this conversation had; 0: there was none.

        It is found from the end, because this runs for every request with images, however long its conversation is.
        """
        messages = self.messages
        for index in range(len(messages) - 1, 0, -1):
            if messages[index].role == "assistant" and messages[index - 1].role != "assistant":
                return index
        return 0

    @property
    def turn_starts(self) -> list[int]:
        """For each message, the index of the message that opened its turn; `NO_TURN` before the first turn."""
        opened = (index if message.opens_turn else NO_TURN for index, message in enumerate(self.messages))
        return list(accumulate(opened, max))

    def find_own_tool(self, tool: str) -> str | None:
        """Return the name under which the model can call one of Sightline's tools, or None.

        That is the tool's own name where Sightline offers it, or the name that a client gives to a tool of our MCP
        server, such as `mcp__sightline__view_image`.
        """
        if tool in self.own_tools:
            return tool
        if "sightline" not in " ".join(self.tools):  # as in most requests
            return None
        matches = (name for name in self.tools if (found := _match_server_tool(name)) and found["name"] == tool)
        return min(matches, default=None)


@value_class
class Replace:
    """Replace the value at `place`."""

    place: JsonPath
    value: Json


@value_class
class Insert:
    """Insert `value` into a list, before the element at `place` or at its end; or add a new last key to an object."""

    place: JsonPath
    value: Json


@value_class
class Rebuild:
    """Replace the list at `place`. A number means the present element of that index, whose bytes stay as they are."""

    place: JsonPath
    elements: tuple[int | dict[str, Json], ...]


@value_class
class Remove:
    """Remove the key at `place` from its object, all occurrences of it. At least one other key must remain."""

    place: JsonPath


Edit = Replace | Insert | Rebuild | Remove
