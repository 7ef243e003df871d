"""An answer in legs: what a model said until it called a tool of ours, our result, what it said then, and so on.

The client sees one answer without our calls. What it sends back of that is cut again where they stood, and they are
put back in: nothing is guessed, and where a word differs nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    """Whatever else stands in an answer."""


Atom = Words | Called | Thought | Other
Reads = Callable[[Block], Atom]
OTHER = Other()


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
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        return repr(value)


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of ours, and where in its leg it stands: behind so many letters and so many of the client's calls."""

    call: Called
    block: Block
    letters: int
    calls: int


@dataclass(frozen=True, slots=True)
class Leg:
    said: tuple[Block, ...]  # all of it, as a request carries it
    asks: tuple[Ask, ...]
    text: str  # what the client sees of it: the words …
    calls: tuple[Called, ...]  # … the calls …
    thoughts: int  # … and as many thoughts
    thinking: str = ""


def leg(said: Sequence[Block], reads: Reads, names: frozenset[str]) -> Leg:
    asks: list[Ask] = []
    calls: list[Called] = []
    text = thinking = ""
    thoughts = 0
    for block in said:
        match reads(block):
            case Words(text=more):
                text += more
            case Called(name=name) as call if name in names:
                asks.append(Ask(call, block, len(text), len(calls)))
            case Called() as call:
                calls.append(call)
            case Thought(text=more):
                thoughts += 1
                thinking += more
            case Other():
                pass
    return Leg(tuple(said), tuple(asks), text, tuple(calls), thoughts, thinking)


@dataclass(frozen=True, slots=True)
class Past:
    """What is kept of a leg, beside what the client itself will send back."""

    text: str
    calls: tuple[str, ...]
    thoughts: int
    asks: tuple[tuple[Block, int, int], ...]
    results: tuple[Block, ...] = ()  # of the calls in their order, as a request carries them; of the last: kept apart
    thinking: str = ""

    def as_json(self) -> dict[str, Json]:
        return {
            "text": self.text,
            "calls": [*self.calls],
            "thoughts": self.thoughts,
            "asks": [[block, letters, calls] for block, letters, calls in self.asks],
            "results": [*self.results],
            "thinking": self.thinking,
        }

    @staticmethod
    def of(leg: Leg, results: Sequence[Block] = ()) -> Past:
        asks = tuple((ask.block, ask.letters, ask.calls) for ask in leg.asks)
        return Past(leg.text, tuple(call.line for call in leg.calls), leg.thoughts, asks, tuple(results), leg.thinking)

    @staticmethod
    def read(value: Json) -> Past:
        """As it was written by us."""
        match value:
            case {"text": str(text), "calls": list(calls), "thoughts": int(thoughts), "asks": list(asks), **rest}:
                results = rest.get("results")
                return Past(
                    text,
                    tuple(str(call) for call in calls),
                    thoughts,
                    tuple(_ask(each) for each in asks),
                    tuple(each for each in results if isinstance(each, dict)) if isinstance(results, list) else (),
                    str(rest.get("thinking", "")),
                )
        raise ValueError(value)


def _ask(value: Json) -> tuple[Block, int, int]:
    match value:
        case [dict() as block, int(letters), int(calls)]:
            return block, letters, calls
    raise ValueError(value)


@dataclass(frozen=True, slots=True)
class Sign:
    """By what an answer is known again: what the client can send back of it."""

    key: str
    visible: str  # all of it; a call without an id that is its own counts only behind the same conversation
    alone: bool  # the key says enough: it holds an id that nobody gives twice


def sign(text: str, calls: Sequence[str]) -> Sign:
    """Of the words that a client sees, and of its calls."""
    visible = blake3(orjson.dumps([text.encode("utf-8", "surrogatepass").hex(), *calls])).hexdigest()
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
    thoughts = sum(isinstance(reads(block), Thought) for block in blocks)
    if thoughts not in (0, sum(past.thoughts for past in pasts)):
        return None
    rest = list(reversed(blocks))
    legs: list[list[Block]] = []
    for past in pasts:
        leg = _taken(rest, past, past.thoughts if thoughts else 0, reads, splits)
        if leg is None:
            return None
        legs.append(leg)
    if any(reads(block) not in (OTHER, Words("")) for block in rest):
        return None
    legs[-1] += reversed(rest)
    return legs


def _taken(rest: list[Block], past: Past, thoughts: int, reads: Reads, splits: Splits | None) -> list[Block] | None:
    """The blocks of one leg, from the end of `rest`, and our calls between them."""
    walk = _Walk(past, thoughts)
    out: list[Block] = []
    while True:
        out += walk.asked()
        if walk.is_over:
            return out
        if not rest:
            return None
        block = rest.pop()
        atom = reads(block)
        if isinstance(atom, Words) and 0 < walk.room < len(atom.text):
            if splits is None:
                return None
            block, behind = splits(block, walk.room)
            rest.append(behind)
            atom = reads(block)
        if not walk.takes(atom):
            return None
        out.append(block)


class _Walk:
    """How much of a leg has been found again."""

    def __init__(self, past: Past, thoughts: int) -> None:
        self._past = past
        self._thoughts = thoughts
        self._letters = self._calls = 0
        self._asks = list(past.asks)

    def asked(self) -> Iterator[Block]:
        """Our calls that stand here; a thought comes before the call that it led to."""
        while self._asks and not self._thoughts and self._asks[0][1:] == (self._letters, self._calls):
            yield self._asks.pop(0)[0]

    @property
    def is_over(self) -> bool:
        found = self._letters == len(self._past.text) and self._calls == len(self._past.calls)
        return found and not self._thoughts and not self._asks

    @property
    def room(self) -> int:
        """For so many letters, until one of our calls or another leg comes."""
        return min([len(self._past.text), *(letters for _, letters, _ in self._asks)]) - self._letters

    def takes(self, atom: Atom) -> bool:
        """Is this what comes next?"""
        match atom:
            case Words(text=text):
                found = self._past.text.startswith(text, self._letters)
                self._letters += len(text)
                return found
            case Called():
                self._calls += 1
                return atom.line in self._past.calls[self._calls - 1 : self._calls]
            case Thought():
                self._thoughts -= 1
                return self._thoughts >= 0
            case Other():
                return True


def in_order(pasts: Past, results: Sequence[Block]) -> Iterator[tuple[int, Block]]:
    """Results of ours, each with the number of the client's that stand before it."""
    for (_, _, calls), result in zip(pasts.asks, results, strict=False):
        yield calls, result


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
