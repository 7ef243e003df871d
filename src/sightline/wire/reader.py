"""What every wire's `read` gathers on its way through a conversation: calls, messages, sights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import get_args

from sightline.model import marks
from sightline.model.scene import Call, Json, Message, Path, Role, Scene, Sight
from sightline.model.source import Source
from sightline.wire import rescue
from sightline.wire.shape import Texts, at, path_in, text_in, word_in

_FIRST = marks.FIRST | {words[0] for words in marks.REMINDERS}  # few texts of a person begin like these

# Every message is one of these few: none has to be made.
_MESSAGES = {role: (Message(role), Message(role, opens=True)) for role in get_args(Role)}

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".ico")


Part = tuple[int, dict[str, Json]]  # of a message, with its index
Shows = Callable[[dict[str, Json], Texts], Source | None]  # what a part shows


@dataclass(slots=True)
class Reader:
    texts: Texts
    calls: dict[str, Call] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    named: list[tuple[int, Call]] = field(default_factory=list)  # the calls that name a file, with their messages

    def calling(self, call_id: str, name: str, arguments: Json) -> None:
        """A call that the assistant made."""
        path = path_in(arguments, self.texts)
        call = self.calls[call_id] = Call(call_id, name, path, arguments if isinstance(arguments, dict) else {})
        if path is not None:
            self.named.append((self._here, call))

    def called(self, holder: Json, key: str) -> Call:
        """The call that a result answers."""
        name = word_in(holder, key, self.texts)
        return self.calls.get(name) or Call(name)

    def message(self, role: Role, *, opens: bool = False) -> None:
        """The next message begins; sights that are seen from now on stand in it."""
        self.messages.append(_MESSAGES[role][opens])

    def pasted(self, place: Path, source: Source) -> None:
        self.sights.append(Sight(place, source, "user", message=self._here))

    def brought(
        self, place: Path, source: Source, call: Call | None, *, hoisted: bool = False, fixed: bool = False
    ) -> None:
        """An image in a tool's result, or moved out of one."""
        self.sights.append(Sight(place, source, "tool", call, self._here, None, hoisted, fixed))

    def stands(self, place: Path, source: Source, before: Json, owner: Call | None = None) -> None:
        """An image of a user message: moved there out of a tool's result, if the words before it or `owner` say so."""
        named = marks.call_in(text_in(before, "text"))
        call = owner if named is None else self.calls.get(named) or Call(named)
        if call is None:
            self.pasted(place, source)
        else:
            self.brought(place, source, call, hoisted=True)

    def heard(
        self, place: Path, content: Json, parts: Sequence[Part], shows: Shows, run: list[Call], *, announced: bool
    ) -> None:
        """A user's message and the parts that may show images: the user's own, or moved out of the results of `run`.

        With `announced`, one of these has said that images would follow without a word.
        """
        alone = isinstance(content, dict)  # a part, where a list of parts is meant
        words = [content] if isinstance(content, str) else [text_in(part, "text") for _, part in parts]
        if alone and not parts:
            words = [text_in(content, "text")]
        self.message("user", opens=is_said(words))
        images = [(j, source) for j, part in parts if (source := shows(part, self.texts)) is not None]
        if not images:
            return
        moved = is_hoist(words) or (announced and not any(word.strip() for word in words))
        owned = owners(len(images), run) if moved else [None] * len(images)
        for (j, source), owner in zip(images, owned, strict=True):
            here = place if alone else (*place, j)
            self.stands(here, source, at(content, j - 1), owner or Call("") if moved else None)

    def said(self, place: Path, leaf: str, call: Call | None) -> None:
        """A text in a tool's result, which may hold images that a library has written into it."""
        for within, source in rescue.pictures(leaf, self.texts):
            self.sights.append(Sight(place, source, "tool", call, self._here, within))

    @property
    def _here(self) -> int:
        return len(self.messages) - 1

    def scene(self, model: str, *, stream: bool, tools: Iterable[str] = (), partial: bool = False) -> Scene:
        sights, messages, named = tuple(self.sights), tuple(self.messages), tuple(self.named)
        return Scene(model, sights, stream, messages, frozenset(tools), partial, named)


def is_said(texts: Iterable[str]) -> bool:
    """Are these the words of a person, and not of the program in between?"""
    for text in texts:
        bare = text.lstrip()
        if bare and (bare[0] not in _FIRST or not _is_added(bare)):
            return True
    return False


def _is_added(bare: str) -> bool:
    return bare.startswith(marks.REMINDERS) or marks.leads(bare) or marks.refers(bare)


def is_hoist(texts: Iterable[str]) -> bool:
    """Is every word in a message one that leads images which were moved out of tool results?"""
    found = [text for text in texts if text.strip() and not marks.refers(text)]
    return bool(found) and all(marks.leads(text) for text in found)


def owners(images: int, run: list[Call]) -> list[Call | None]:
    """Whose images they are, where a peer moved so many out of the results of a run of calls without saying."""
    if len(run) == 1:
        return [run[0]] * images
    for brought in ([call for call in run if _names_picture(call)], run):
        if len(brought) == images:
            return [*brought]
    return [None] * images


def _names_picture(call: Call) -> bool:
    return (call.filename or "").lower().endswith(_PICTURES)
