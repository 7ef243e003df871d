"""An answer in legs: what a model said until it called a tool of ours, our result, what it said then, and so on.

The client sees one answer without our calls. What it sends back of that is cut again where they stood, and they are
put back in: nothing is guessed, and where a word differs nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from re import compile as pattern

import orjson
from blake3 import blake3

from sightline.model.edit import Edit, Insert, Replace
from sightline.model.profile import WireName
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
    others = letters = raw = 0
    for block in said:
        match reads(block):
            case Words(text=text):
                texts.append(text)
                letters += len(bare(text))
                raw += len(text)
            case Called(name=name) as call if name in names:
                asks.append(Ask(call, block, Place(letters, raw, len(calls), len(thoughts), others)))
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
    """A text without its blanks, which clients may change."""
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
    """By what an answer is known again, out of the blocks that a client sends back."""
    atoms = [reads(block) for block in blocks]
    text = "".join(atom.text for atom in atoms if isinstance(atom, Words))
    return sign(text, [atom.line for atom in atoms if isinstance(atom, Called)])


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


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool of ours."""

    name: str
    description: str
    schema: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call of ours brought."""

    text: str
    images: tuple[tuple[str, str], ...] = ()  # the type and the base64 of each
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What an assistant said in one answer: items of a conversation, and what they hold."""

    start: int
    end: int
    blocks: list[Block]
    owners: list[int]  # of each block: the item that it stands in

    def held(self, owner: int) -> list[Block]:
        return [block for block, one in zip(self.blocks, self.owners, strict=True) if one == owner]


def no_choice(wire: WireName, tree: Json) -> Edit:
    """The last leg of an answer is one that answers."""
    body = mapping(tree if isinstance(tree, dict) else None)
    if wire == "gemini":
        key = "tool_config" if "tool_config" in body else "toolConfig"
        config = mapping(body.get(key))
        inner = "function_calling_config" if "function_calling_config" in config else "functionCallingConfig"
        return _set(body, key, {**config, inner: {"mode": "NONE"}})
    return _set(body, "tool_choice", {"type": "none"} if wire == "anthropic" else "none")


def _set(body: dict[str, Json], key: str, value: Json) -> Edit:
    return (Replace if key in body else Insert)((key,), value)
