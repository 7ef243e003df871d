"""An answer in legs: what a model said until it called a tool of ours, our result, what it said then, and so on.

The client sees one answer without our calls. What it sends back of that is cut again where they stood, and they are
put back in: nothing is guessed, and where a word differs nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from re import compile as pattern

import orjson
from blake3 import blake3

from sightline.model.scene import Json

Block = dict[str, Json]

_is_strong = pattern(r"(?=.*\d)[A-Za-z0-9]{12,}\Z").search
"""An id that nobody gives twice: others, such as the name of a tool with a number, come in every conversation."""


@dataclass(frozen=True, slots=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A call, of the client's or of ours."""

    id: str
    name: str
    arguments: str  # JSON, sorted

    @property
    def line(self) -> str:
        return f"{self.id} {self.name} {self.arguments}"

    @property
    def given(self) -> Json:
        """The arguments; what is no JSON, as it is."""
        try:
            found: Json = orjson.loads(self.arguments)
        except orjson.JSONDecodeError:
            return self.arguments
        return found


@dataclass(frozen=True, slots=True)
class Thought:
    """What clients keep or drop, all of it."""

    text: str = ""  # where a wire holds all thoughts of an answer as one text


@dataclass(frozen=True, slots=True)
class Other:
    """Whatever else stands in an answer, and has its place there."""


@dataclass(frozen=True, slots=True)
class Loose:
    """What may be there or not, and anywhere."""


Atom = Words | Called | Thought | Other | Loose
Reads = Callable[[Block], Atom]
OTHER, LOOSE = Other(), Loose()


def mapping(value: Json | Mapping[str, Json]) -> Block:
    """An object, for whoever cannot be sure that there is one."""
    return dict(value) if isinstance(value, Mapping) else {}


def arguments(value: Json) -> str:
    """Arguments in the one form that all ways of writing them share."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value or "{}")
        except orjson.JSONDecodeError:
            return str(value)
    try:
        return orjson.dumps(_whole(value), option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError):
        return repr(value)


def _whole(value: Json) -> Json:
    """Some programs know no difference between 1.0 and 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Place:
    """Where in its leg a call of ours stands: behind so much of what the client sees."""

    letters: int = 0  # without blanks, which some clients trim
    raw: int = 0  # with them
    calls: int = 0
    thoughts: int = 0
    others: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of ours."""

    call: Called
    block: Block
    place: Place


@dataclass(frozen=True, slots=True)
class Leg:
    said: tuple[Block, ...]  # all of it, as a request carries it
    asks: tuple[Ask, ...]
    text: str  # what the client sees of it: the words …
    calls: tuple[Called, ...]  # … the calls …
    thoughts: int = 0  # … and as many thoughts and other things
    others: int = 0
    thinking: str = ""


def leg(said: Sequence[Block], reads: Reads, names: frozenset[str]) -> Leg:
    asks: list[Ask] = []
    calls: list[Called] = []
    texts: list[str] = []
    thoughts: list[str] = []
    others = 0
    for block in said:
        match reads(block):
            case Words(text=text):
                texts.append(text)
            case Called(name=name) as call if name in names:
                text = "".join(texts)
                asks.append(Ask(call, block, Place(len(bare(text)), len(text), len(calls), len(thoughts), others)))
            case Called() as call:
                calls.append(call)
            case Thought(text=text):
                thoughts.append(text)
            case Other():
                others += 1
            case Loose():
                pass
    return Leg(tuple(said), tuple(asks), "".join(texts), tuple(calls), len(thoughts), others, "".join(thoughts))


def bare(text: str) -> str:
    """Without blanks."""
    return "".join(text.split())


@dataclass(frozen=True, slots=True)
class Past:
    """What is kept of a leg, beside what the client itself will send back."""

    text: str
    calls: tuple[str, ...]
    asks: tuple[tuple[Block, Place], ...]
    results: tuple[Block, ...] = ()  # of the calls in their order, as a request carries them; of the last: kept apart
    thoughts: int = 0
    others: int = 0
    thinking: str = ""

    def as_json(self) -> dict[str, Json]:
        return {
            "text": self.text,
            "calls": [*self.calls],
            "asks": [[block, *astuple(place)] for block, place in self.asks],
            "results": [*self.results],
            "counts": [self.thoughts, self.others],
            "thinking": self.thinking,
        }

    @staticmethod
    def of(leg: Leg, results: Sequence[Block] = ()) -> Past:
        asks = tuple((ask.block, ask.place) for ask in leg.asks)
        lines = tuple(call.line for call in leg.calls)
        return Past(leg.text, lines, asks, tuple(results), leg.thoughts, leg.others, leg.thinking)

    @staticmethod
    def read(value: Json) -> Past:
        """As it was written by us."""
        match value:
            case {
                "text": str(text),
                "calls": list(calls),
                "asks": list(asks),
                "results": list(results),
                "counts": [int(thoughts), int(others)],
                "thinking": str(thinking),
            }:
                made = tuple(each for each in results if isinstance(each, dict))
                lines = tuple(str(call) for call in calls)
                return Past(text, lines, tuple(map(_ask, asks)), made, thoughts, others, thinking)
        raise ValueError(value)

    def without(self, *, thoughts: bool, others: bool) -> Past:
        """For a client that has dropped what it calls thoughts, or other things, all of them."""

        def left(place: Place) -> Place:
            return replace(place, thoughts=0 if thoughts else place.thoughts, others=0 if others else place.others)

        return replace(
            self,
            asks=tuple((block, left(place)) for block, place in self.asks),
            thoughts=0 if thoughts else self.thoughts,
            others=0 if others else self.others,
        )


def _ask(value: Json) -> tuple[Block, Place]:
    match value:
        case [dict() as block, int(letters), int(raw), int(calls), int(thoughts), int(others)]:
            return block, Place(letters, raw, calls, thoughts, others)
    raise ValueError(value)


@dataclass(frozen=True, slots=True)
class Sign:
    """By what an answer is known again: what the client can send back of it."""

    key: str
    visible: str  # all of it; a call without an id that is its own counts only behind the same conversation
    alone: bool  # the key says enough: it holds an id that nobody gives twice


def sign(text: str, calls: Sequence[str]) -> Sign:
    """Of the words that a client sees, and of its calls."""
    visible = blake3(orjson.dumps([bare(text).encode("utf-8", "surrogatepass").hex(), *calls])).hexdigest()
    own = next((name for line in calls if _is_strong(name := line.partition(" ")[0])), None)
    return Sign(f"call {own}" if own else f"said {visible}", visible, own is not None)


def known_by(pasts: Sequence[Past]) -> Sign:
    return sign("".join(past.text for past in pasts), [line for past in pasts for line in past.calls])


def seen(blocks: Sequence[Block], reads: Reads) -> Sign:
    """Of what a client sends back."""
    atoms = [reads(block) for block in blocks]
    text = "".join(atom.text for atom in atoms if isinstance(atom, Words))
    return sign(text, [atom.line for atom in atoms if isinstance(atom, Called)])


Splits = Callable[[Block, int], tuple[Block, Block]]
"""A block of words, cut behind so many letters."""


def woven(
    blocks: Sequence[Block], pasts: Sequence[Past], reads: Reads, splits: Splits | None = None
) -> list[list[Block]] | None:
    """What a client sends back of an answer, leg by leg, with our calls in it; None: it is not what it was shown."""
    atoms = [reads(block) for block in blocks]
    thoughts, others = (sum(isinstance(atom, kind) for atom in atoms) for kind in (Thought, Other))
    if thoughts not in (0, sum(past.thoughts for past in pasts)) or others not in (0, sum(p.others for p in pasts)):
        return None
    rest = list(reversed(blocks))
    legs: list[list[Block]] = []
    for past in pasts:
        leg = _taken(rest, past.without(thoughts=not thoughts, others=not others), reads, splits)
        if leg is None:
            return None
        legs.append(leg)
    legs[-1] += reversed(rest)
    return None if any(not _is_blank(reads(block)) for block in rest) else legs


def _is_blank(atom: Atom) -> bool:
    return isinstance(atom, Loose) or (isinstance(atom, Words) and not bare(atom.text))


def _taken(rest: list[Block], past: Past, reads: Reads, splits: Splits | None) -> list[Block] | None:
    """The blocks of one leg, from the end of `rest`, and our calls between them."""
    walk = _Walk(past)
    out: list[Block] = []
    while True:
        if blank := walk.blank(reads(rest[-1]) if rest else LOOSE):
            block = rest.pop()
            if blank < len(_text(reads(block))) and splits is not None:
                block, behind = splits(block, blank)
                rest.append(behind)
            out.append(block)
        out += walk.asked()
        if walk.is_over:
            return out
        if not rest:
            return None
        block = rest.pop()
        atom = reads(block)
        if isinstance(atom, Words) and (cut := walk.cut(atom.text)):
            if splits is None:
                return None
            block, behind = splits(block, cut)
            rest.append(behind)
            atom = reads(block)
        if not walk.takes(atom):
            return None
        out.append(block)


class _Walk:
    """How much of a leg has been found again."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._bare = bare(past.text)
        self._letters = self._raw = self._calls = self._thoughts = self._others = 0
        self._asks = list(past.asks)

    def asked(self) -> Iterator[Block]:
        """Our calls that stand here."""
        while self._asks and self._here(self._asks[0][1]):
            yield self._asks.pop(0)[0]

    def _here(self, place: Place) -> bool:
        met = (self._letters, self._calls, self._thoughts, self._others)
        return met == (place.letters, place.calls, place.thoughts, place.others)

    @property
    def is_over(self) -> bool:
        past = self._past
        end = Place(len(self._bare), 0, len(past.calls), past.thoughts, past.others)
        return not self._asks and self._here(end)

    def blank(self, atom: Atom) -> int:
        """So many letters of these words are the blanks that stand before our next call, or before the leg's end."""
        end = self._asks[0][1].raw if self._asks else len(self._past.text)
        gap = self._past.text[self._raw : end]
        if not gap or bare(gap) or not _text(atom).startswith(gap):
            return 0
        self._raw = end
        return len(gap)

    def cut(self, text: str) -> int:
        """Where words have to be cut, because one of our calls or another leg comes; 0: nowhere."""
        room = min([len(self._bare), *(place.letters for _, place in self._asks)]) - self._letters
        if not 0 < room <= len(bare(text)):
            return 0
        at, there = _behind(text, room), _behind(self._past.text, self._letters + room)
        rest = self._past.text[there:]
        gap = rest[: len(rest) - len(rest.lstrip())]
        end = at + len(gap) if text.startswith(gap, at) else at
        return end if end < len(text) else 0

    def takes(self, atom: Atom) -> bool:
        """Is this what comes next?"""
        match atom:
            case Words(text=text):
                found = self._bare.startswith(bare(text), self._letters)
                self._letters += len(bare(text))
                exact = self._past.text.startswith(text, self._raw)
                self._raw = self._raw + len(text) if exact else _behind(self._past.text, self._letters)
                return found
            case Called():
                self._calls += 1
                return atom.line in self._past.calls[self._calls - 1 : self._calls]
            case Thought():
                self._thoughts += 1
                return self._thoughts <= self._past.thoughts
            case Other():
                self._others += 1
                return self._others <= self._past.others
            case Loose():
                return True


def _text(atom: Atom) -> str:
    return atom.text if isinstance(atom, Words) else ""


def _behind(text: str, letters: int) -> int:
    """The place behind so many letters that are no blanks."""
    at = 0
    for at, letter in enumerate(text, 1):
        letters -= not letter.isspace()
        if letters <= 0:
            return at if letters == 0 else 0
    return at


def in_order(past: Past, results: Sequence[Block]) -> Iterator[tuple[int, Block]]:
    """Results of ours, each with the number of the client's that stand before it."""
    for (_, place), result in zip(past.asks, results, strict=True):
        yield place.calls, result


def summed(usages: Sequence[Block], output: Sequence[str], total: str = "", given: str = "") -> Block:
    """What an answer has used: the input of its last leg, by which clients know how full they are; all the output."""
    whole: Block = {}
    for usage in usages:
        whole |= usage
    for key in output:
        figures = [usage[key] for usage in usages if key in usage]
        if figures:
            whole[key] = _sum(figures)
    if total and total in whole:
        whole[total] = _sum(
            [whole.get(given), *(whole.get(key) for key in output if not isinstance(whole.get(key), dict))]
        )
    return whole


def _sum(figures: Sequence[Json]) -> Json:
    if any(isinstance(each, dict) for each in figures):
        held = [each for each in figures if isinstance(each, dict)]
        return {key: _sum([each.get(key) for each in held]) for key in dict.fromkeys(k for each in held for k in each)}
    numbers = [each for each in figures if isinstance(each, int | float) and not isinstance(each, bool)]
    return sum(numbers) if numbers else (figures[-1] if figures else None)
