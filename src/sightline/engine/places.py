"""Where an image stands in a conversation: in which turn, and what was said up to there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.model.scene import Json, Message, Scene
from sightline.passes.together import turns
from sightline.wire.chain import Chain
from sightline.wire.reader import is_said
from sightline.wire.shape import Texts, words

MESSAGES = 8  # the last ones that somebody has said something in
BY_ASSISTANT = 500  # characters of each message of the assistant's
IN_ALL = 3000


@dataclass(frozen=True, slots=True)
class Place:
    turn: str = ""  # the name of the turn in which it stands; empty: the conversation cannot be named
    now: str = ""  # the name of the newest turn
    said: Callable[[], Sequence[str]] = list  # the last messages up to there, each led by who speaks
    asked: Callable[[], str] = str  # the words with which its turn began
    before: Callable[[], str] = str  # what the assistant had said just before them

    @property
    def is_new(self) -> bool:
        """Does the conversation speak of it now?"""
        return bool(self.turn) and self.turn == self.now


def places(known: Chain, scene: Scene, messages: Sequence[Json], texts: Texts) -> Callable[[int], Place]:
    """The place of each message."""
    turn = turns(scene)
    words = _Words(scene.messages, messages, texts)

    def named(index: int) -> str:
        """A turn goes by the name of the message that opens it: by all that was said up to there."""
        return known.names[index] if 0 <= index < len(known.names) else known.head

    def place(index: int) -> Place:
        opened = turn[index] if index < len(turn) else -1
        now = turn[-1] if turn else -1
        return Place(
            named(opened),
            named(now),
            lambda: _recent(words, index),
            lambda: words.of(opened) if opened >= 0 else "",
            lambda: words.of(words.last(opened - 1, by_assistant=True)),
        )

    return place


class _Words:
    """What was said in the messages of a conversation. Each is looked at once, however many images ask for it."""

    def __init__(self, heard: Sequence[Message], messages: Sequence[Json], texts: Texts) -> None:
        self._heard, self._messages, self._texts = heard, messages, texts
        self._known: dict[int, str] = {}
        self._last: dict[tuple[bool, int], int] = {}

    def of(self, index: int) -> str:
        """Return the words of a message; none if there is no such message."""
        if not 0 <= index < min(len(self._heard), len(self._messages)):
            return ""
        if index not in self._known:
            self._known[index] = _spoken(self._heard[index], self._messages[index], self._texts)
        return self._known[index]

    def speaks(self, index: int) -> bool:
        return self._heard[index].role == "assistant"

    def last(self, index: int, *, by_assistant: bool = False) -> int:
        """Return the last message up to this one in which something was said, or -1."""
        passed = []
        index = min(index, len(self._heard) - 1)
        while index >= 0 and (by_assistant, index) not in self._last:
            if (self.speaks(index) or not by_assistant) and self.of(index):
                break
            passed.append(index)
            index -= 1
        found = self._last.get((by_assistant, index), index)
        self._last.update({(by_assistant, each): found for each in passed})
        return found


def _recent(words: _Words, index: int) -> list[str]:
    """The newest first for the room that there is, and then in their order."""
    found: list[str] = []
    room = IN_ALL
    index = words.last(index)
    while index >= 0 and room > len("Assistant: ") and len(found) < MESSAGES:
        text, speaks = words.of(index), words.speaks(index)
        lead = "Assistant: " if speaks else "User: "
        found.append(_cut(f"{lead}{_cut(text, BY_ASSISTANT) if speaks else text}", room))
        room -= len(found[-1])
        index = words.last(index - 1)
    return found[::-1]


def _spoken(about: Message, message: Json, texts: Texts) -> str:
    """What the assistant or a person has said; what tools and programs say is not for others."""
    if about.role == "assistant":
        return "\n".join(words(message, texts)).strip()
    return "\n".join(text for text in words(message, texts) if is_said([text])).strip() if about.opens else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
