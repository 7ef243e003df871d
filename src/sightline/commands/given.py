"""What stands behind a verb: words and options apart."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sightline.commands.forms import usage
from sightline.commands.words import quoted
from sightline.model.refusal import Refusal

_FLAGS = ("save", "yes")  # options without a value
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "describe": ("question", "crop", "model", "save"),
    "redescribe": ("model",),
    "grounding-models": ("format", "yes"),
}
_OTHER_FORM = ("r=", "n=", "p=")
_crop = re.compile(r"[0-9]+:").match


@dataclass(frozen=True, slots=True)
class Given:
    """What stands behind a verb."""

    verb: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    crops: tuple[str, ...] = ()

    def wrong(self, what: str) -> Refusal:
        return Refusal("invalid_input", what, f"usage: {usage(self.verb)}")


def given_to(verb: str, words: Sequence[str]) -> Given | Refusal:
    """Words and options apart; `--` ends the options."""
    plain: list[str] = []
    options: dict[str, str] = {}
    crops: list[str] = []
    left = deque(words)
    while left:
        word = left.popleft()
        if word == "--":
            plain += left
            break
        if not word.startswith("--"):
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        fault = _option_fault(verb, name, equals, left)
        if fault or name in options:
            return Given(verb, (), {}).wrong(fault or f"--{name} is given twice")
        if name not in _FLAGS and not equals:
            value = left.popleft()
        if name == "crop":
            crops += _and_more(value, left)
        else:
            options[name] = value
    return Given(verb, tuple(plain), options, tuple(crops))


def _option_fault(verb: str, name: str, equals: str, left: Sequence[str]) -> str:
    if name not in _OPTIONS.get(verb, ()):
        return f"{verb} has no option {quoted('--' + name)}"
    if name in _FLAGS:
        return f"--{name} takes no value" if equals else ""
    return "" if equals or (left and not left[0].startswith("--")) else f"--{name} needs a value"


def _and_more(crop: str, left: deque[str]) -> list[str]:
    """The crops that follow one flag; a form without an index of its own belongs to the one before it."""
    crops = [crop]
    while left and (_crop(left[0]) or left[0].startswith(_OTHER_FORM)):
        word = left.popleft()
        if _crop(word):
            crops.append(word)
        else:
            crops[-1] += f" {word}"
    return crops
