"""Collect the calls, messages and sights of a request into a scene; every wire's `read` uses this.

A sight in a user message is either pasted by the person or was moved there out of a tool result, by Sightline or by
another program between client and model. Its label, or the message around it, shows which (`read_user_message`): a
message of nothing but images directly after tool results holds what the tools brought, since a person would have been
answered first, or says something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import get_args

from sightline.model import labels
from sightline.model.scene import Json, JsonPath, Message, Role, Scene, Sight, Source, ToolCall
from sightline.model.value import value_class
from sightline.wire.embedded_images import find_message_images
from sightline.wire.file_reads import FileRead, classify_file_read, find_file_path, names_image_file
from sightline.wire.image_blocks import MIN_BASE64
from sightline.wire.json_tree import Block, Texts, get_name, get_text
from sightline.wire.text_images import TextImage, TextSlice, find_byte_images, find_text_images, is_content

_FIRST_CHARACTERS = labels.FIRST_CHARACTERS | {
    words[0] for words in labels.CLIENT_REMINDERS
}  # few texts of a person begin like these
# Built once, then shared.
_MESSAGES = {role: (Message(role), Message(role, opens_turn=True)) for role in get_args(Role)}

_LONG_TEXT = 2048
MIN_TEXT = 24  # characters: a shorter text has no image, nor the placeholder of one

IndexedPart = tuple[int, Block]  # a part of a message, with its index
FindSource = Callable[[Block, Texts], Source | None]
"""Returns the image that a part shows, if it shows one."""


@value_class
class Endpoint:
    """What the path of a request says about it."""

    path: str  # as it is requested from the upstream
    counts_tokens: bool = False  # the request only asks for a token count
    model: str | None = None  # None: the body names it
    stream: bool | None = None  # None: the body says so

    def apply_to(self, scene: Scene) -> Scene:
        """Return the scene of a body that was sent to this path."""
        if self.model is None and self.stream is None:
            return scene
        model = scene.model if self.model is None else self.model
        stream = scene.stream if self.stream is None else self.stream
        return replace(scene, model=model, stream=stream)


class SceneReader:
    """Collects a scene, message by message. Images that are added belong to the message that was begun last."""

    __slots__ = ("calls", "file_calls", "messages", "sights", "texts")

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.calls: dict[str, ToolCall] = {}
        self.messages: list[Message] = []
        self.sights: list[Sight] = []
        self.file_calls: list[tuple[int, ToolCall]] = []  # calls that name a file, with their messages

    def begin_message(self, role: Role, *, opens: bool = False) -> None:
        self.messages.append(_MESSAGES[role][opens])

    def add_call(self, call_id: str, name: str, arguments: Json) -> None:
        """Add a call that the assistant made."""
        path = find_file_path(arguments, self.texts)
        call = self.calls[call_id] = ToolCall(call_id, name, path, arguments if isinstance(arguments, dict) else {})
        if path is not None:
            self.file_calls.append((self._message_index, call))

    def find_call(self, result: Json, key: str) -> ToolCall:
        """Return the call that a result answers; `key` is that of the call's id."""
        call_id = get_name(result, key, self.texts)
        return self.calls.get(call_id) or ToolCall(call_id)

    @property
    def is_in_results(self) -> bool:
        """Whether the message that was begun last is a tool's."""
        return bool(self.messages) and self.messages[-1].role == "tool"

    def add_pasted_image(self, place: JsonPath, source: Source, name: str | None = None) -> None:
        """Add an image that the user attached; `name`: its file name, if the client gives one."""
        self.sights.append(Sight(place, source, "user", message=self._message_index, pasted_name=name))

    def add_tool_image(
        self, place: JsonPath, source: Source, call: ToolCall | None, *, hoisted: bool = False, fixed: bool = False
    ) -> None:
        """Add an image that is in a tool's result, or was moved out of one (`hoisted`)."""
        self.sights.append(Sight(place, source, "tool", call, self._message_index, None, hoisted, fixed))

    def add_user_image(self, place: JsonPath, source: Source, previous: Json, owner: ToolCall | None = None) -> None:
        """Add an image of a user message. It is a tool's if the part before it is a label, or there is an `owner`."""
        text = previous.get("text") if isinstance(previous, dict) else None
        call_id = labels.find_call_id(text) if isinstance(text, str) else None
        call = owner if call_id is None else self.calls.get(call_id) or ToolCall(call_id)
        if call is None:
            self.add_pasted_image(place, source)
        else:
            self.add_tool_image(place, source, call, hoisted=True)

    def read_user_message(
        self,
        place: JsonPath,
        content: Json,
        parts: Sequence[IndexedPart],
        find_source: FindSource,
        calls: list[ToolCall],
    ) -> list[ToolCall]:
        """Add a user's message with its images: the user's own, or moved out of the results of `calls` just before.

        Return the calls whose images may still follow: `calls`, if images of theirs are in this message, else none.
        """
        if isinstance(content, str):
            self.begin_message("user", opens=is_from_person((content,)))
            if len(content) >= MIN_BASE64:
                self._read_user_text(place, content)
            return []
        message_texts = list_texts(content, parts)
        opens = is_from_person(message_texts)
        self.begin_message("user", opens=opens)
        if message_texts and max(map(len, message_texts)) >= MIN_BASE64:
            self.read_user_texts(place, content, parts)
        if not parts:
            return []
        images = [(j, source) for j, part in parts if (source := find_source(part, self.texts)) is not None]
        if not images:
            return []
        hoisted = not opens and is_moved(message_texts, calls)  # a person writes more than labels
        owners = assign_owners(len(images), calls) if hoisted else [None] * len(images)
        for (j, source), owner in zip(images, owners, strict=True):
            if isinstance(content, list):
                image_place, previous = (*place, j), content[j - 1] if j else None
            else:  # some clients write one part instead of a list of parts
                image_place, previous = place, None
            self.add_user_image(image_place, source, previous, owner or ToolCall("") if hoisted else None)
        return calls if hoisted else []

    def read_tool_text(self, place: JsonPath, leaf: str, call: ToolCall | None, *, is_field: bool = False) -> None:
        """Add the images that a library has written into a text of a tool's result.

        `is_field`: the text is a field of an image block, which is never the text of a file.
        """
        if len(leaf) < MIN_TEXT:
            return
        path = call.path if call else None
        found: list[TextImage] = [*find_byte_images(leaf, path)] if "\0" in leaf else []
        if not found:
            # To ask what the call does takes as long as to search a text of this length.
            asks_first = len(leaf) > _LONG_TEXT and not is_field
            kind = classify_file_read(call) if asks_first else None
            if kind is FileRead.CERTAIN:
                return
            found += find_text_images(leaf, self.texts, path)
            if found and not is_field and kind is None:
                kind = classify_file_read(call)
            if kind is FileRead.CERTAIN or (kind is FileRead.LIKELY and not is_content(leaf)):
                return
        for within, source in found:
            self.sights.append(Sight(place, source, "tool", call, self._message_index, within))

    def read_user_texts(self, place: JsonPath, content: Json, parts: Sequence[IndexedPart]) -> None:
        """Add the images that a library has written into the texts of a user's message."""
        if isinstance(content, str):
            self._read_user_text(place, content)
        elif isinstance(content, dict):  # some clients write one part instead of a list of parts
            self._read_user_text((*place, "text"), get_text(content, "text"))
        else:
            for j, part in parts:
                self._read_user_text((*place, j, "text"), get_text(part, "text"))

    def _read_user_text(self, place: JsonPath, leaf: str) -> None:
        for start, end, source in find_message_images(leaf, self.texts):
            way = (TextSlice(start, end),)
            self.sights.append(Sight(place, source, "user", None, self._message_index, way))

    @property
    def _message_index(self) -> int:
        return len(self.messages) - 1

    def build_scene(
        self,
        model: str,
        *,
        stream: bool,
        tools: Iterable[str] = (),
        partial: bool = False,
        declared_tools: tuple[Json, ...] = (),
    ) -> Scene:
        """Return the scene; `tools` are the names of the tools, and `declared_tools` all that the body says of them."""
        sights, messages, file_calls = tuple(self.sights), tuple(self.messages), tuple(self.file_calls)
        return Scene(
            model, sights, stream, messages, frozenset(tools), partial, file_calls, declared_tools=declared_tools
        )


def is_from_person(texts: Iterable[str]) -> bool:
    """Return whether any of these texts was written by a person, not by a client or another program in between."""
    for text in texts:
        bare = text.lstrip()
        if bare and (bare[0] not in _FIRST_CHARACTERS or not _is_client_text(bare)):
            return True
    return False


def _is_client_text(text: str) -> bool:
    return text.startswith(labels.CLIENT_REMINDERS) or labels.is_label(text) or labels.is_reference(text)


def list_texts(content: Json, parts: Sequence[IndexedPart]) -> list[str]:
    """Return the texts of a message, empty ones included."""
    if isinstance(content, str):
        return [content]
    if not parts and isinstance(content, dict):
        parts = ((0, content),)
    return [text for _, part in parts if isinstance(text := part.get("text"), str)]


def is_moved(texts: Sequence[str], calls: Sequence[ToolCall]) -> bool:
    """Return whether the images of a message with these texts come from tools; `calls` were answered just before."""
    return has_only_labels(texts) or bool(calls and not texts)


def has_only_labels(texts: Iterable[str]) -> bool:
    """Return whether all text in a message is labels of images that were moved out of tool results."""
    own_texts = [text for text in texts if text.strip() and not labels.is_reference(text)]
    return bool(own_texts) and all(labels.is_label(text) for text in own_texts)


def assign_owners(images: int, calls: list[ToolCall]) -> list[ToolCall | None]:
    """Return the call of each of `images` images that another program moved out of results without naming the calls.

    That is known if there is one call, one image per call, or one image per call of an image file.
    """
    if len(calls) == 1:
        return [calls[0]] * images
    for candidates in ([call for call in calls if names_image_file(call.filename)], calls):
        if len(candidates) == images:
            return [*candidates]
    return [None] * images
