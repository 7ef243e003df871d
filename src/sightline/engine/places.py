"""Where an image stands in a conversation: in which turn, and what was said up to there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.model.scene import Json, Message, Scene
from sightline.passes.together import turns
from sightline.wire.chain import Chain
from sightline.wire.reader import is_said
from sightline.wire.said import words
from sightline.wire.shape import Texts

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

    def named(index: int) -> str:
        """A turn goes by the name of the message that opens it: by all that was said up to there."""
        return known.names[index] if 0 <= index < len(known.names) else known.head

    def place(index: int) -> Place:
        opened = turn[index] if index < len(turn) else -1
        now = turn[-1] if turn else -1
        return Place(
            named(opened),
            named(now),
            lambda: _recent(scene.messages[: index + 1], messages, texts),
            lambda: _spoken(scene.messages[opened], messages[opened], texts) if 0 <= opened < len(messages) else "",
            lambda: _answered(scene.messages[: max(opened, 0)], messages, texts),
        )

    return place


def _recent(heard: Sequence[Message], messages: Sequence[Json], texts: Texts) -> list[str]:
    """The newest first for the room that there is, and then in their order."""
    found: list[str] = []
    room = IN_ALL
    for about, message in reversed(list(zip(heard, messages, strict=False))):
        text = _spoken(about, message, texts)
        if not text:
            continue
        speaks = about.role == "assistant"
        lead = "Assistant: " if speaks else "User: "
        short = f"{lead}{_cut(text, BY_ASSISTANT) if speaks else text}"
        found.append(_cut(short, room))
        room -= len(found[-1])
        if room <= len("Assistant: ") or len(found) == MESSAGES:
            break
    return found[::-1]


def _answered(heard: Sequence[Message], messages: Sequence[Json], texts: Texts) -> str:
    """The last words of the assistant in these messages."""
    said = reversed([each for each in zip(heard, messages, strict=False) if each[0].role == "assistant"])
    return next(filter(None, (_spoken(about, message, texts) for about, message in said)), "")


def _spoken(about: Message, message: Json, texts: Texts) -> str:
    """What the assistant or a person has said; what tools and programs say is not for others."""
    if about.role == "assistant":
        return "\n".join(words(message, texts)).strip()
    return "\n".join(text for text in words(message, texts) if is_said([text])).strip() if about.opens else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
