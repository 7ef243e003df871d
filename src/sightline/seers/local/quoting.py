"""What is answered by no more than a quotation: the sentence that has the words of the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sightline.seers.local.finding import of_kind
from sightline.seers.local.phrases import key, words
from sightline.seers.local.seen import Line, Seen
from sightline.seers.local.subjects import STOP, Asked, Said, spots_of

_MOST = 3  # sentences: where more have the words, none is meant
_PROSE = 5  # words: a shorter line is none that is broken off
_end = re.compile(r"[.!?:;]$")
_stop = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# What is asked for by a word and written as a unit.
_UNITS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("space", "storage", "memory", "disk"), re.compile(r"\d ?[KMGT]i?B\b")),
    **dict.fromkeys(("cost", "costs", "pay", "charge"), re.compile(r"[$€£¥] ?\d|\d ?(?:€|[A-Z]{3}\b)")),
    "number": re.compile(r"\d[\d -]{4,}\d"),
}


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    lines: tuple[Line, ...]


def quoted(asked: Asked) -> Said | None:
    """The sentences that have every word of the question which matters: what they say is said, and no more."""
    if re.match(r"(?:why|should|would|could|can|will|do|does|did|is|are|was|were|has|have)\b", asked.low):
        return None
    wanted = [word for word in words(asked.low) if word not in STOP]
    there = [
        each for each in _sentences(asked.seen)
        if set(wanted) - set(_UNITS) and all(_has(each.text, word) for word in wanted) and asked.wants(each.text)
        and _says_more(each.text, asked, len(wanted))
    ]  # fmt: skip
    there = [each for each in there if set(wanted) <= set(words(each.text))] or there  # "subtotal" is no total
    if not 0 < len(there) <= _MOST:
        return None
    lines = dict.fromkeys(line for each in there for line in each.lines)
    return Said("\n".join(f'It says: "{each.text}"' for each in there), spots_of(list(lines)))


def _sentences(seen: Seen) -> Iterator[_Sentence]:
    """Every line, and with it those in which its last sentence goes on: they begin small, right below it."""
    held: list[Line] = []
    named = {at for part in of_kind(seen, "button") for at in part.lines}  # what a button is called says nothing
    for line in (line for at, line in enumerate(seen.lines) if at not in named):
        if held and not _goes_on(held[-1], line):
            yield from _parted(held)
            held = []
        held.append(line)
    yield from _parted(held)


def _parted(lines: list[Line]) -> Iterator[_Sentence]:
    if len(lines) == 1:
        yield _Sentence(lines[0].text, tuple(lines))
    elif lines:
        whole = " ".join(line.text for line in lines)
        yield from (_Sentence(each, tuple(lines)) for each in _stop.split(whole))


def _goes_on(line: Line, below: Line) -> bool:
    height = max(line.box.height, below.box.height)
    near = 0 <= below.box.y - line.box.bottom <= height and abs(below.box.x - line.box.x) <= height
    prose = len(line.text.split()) >= _PROSE and not _end.search(line.text)
    return near and prose and below.text[:1].islower()


def _says_more(text: str, asked: Asked, wanted: int) -> bool:
    """Whether a line does not only repeat the question; a single word must have a number or some words beside it."""
    more = set(words(text)) - set(words(asked.low))
    kind = re.match(r"(?:what|which) (\w+) is (?:it|this|that)$", asked.low)
    if kind and words(text)[-1:] == [kind[1]]:
        return bool(more)
    return bool(more) and (wanted > 1 or len(more) > 2 or any(map(str.isdigit, "".join(more))))


def _has(text: str, word: str) -> bool:
    if word in _UNITS and _UNITS[word].search(text):
        return True
    there = words(text)
    return word in there or (len(word) > 4 and any(key(word) in key(each) for each in there))  # spaces may be lost
