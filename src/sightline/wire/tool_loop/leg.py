"""The values of the tool loop: legs of an answer, what is stored of them, and how an answer is recognized.

An answer comes in *legs*. The model speaks until it calls one of our tools; with our result it is asked for the next
leg, and so on. The client sees one answer without our calls. It sends that back in its next request, where
`restoration` splits it into legs again and puts our calls back in.

A wire translates each block of an answer into a `BlockContent`, which is all that this package needs to know about it.
Clients may change an answer in small ways before they send it back, and the values here are built to survive that:

- blanks are trimmed: positions count the other letters, and fingerprints ignore blanks;
- reasoning and unknown blocks are dropped, all or none: they are counted apart, and `StoredLeg.without` ignores them;
- arguments are parsed and written again: they are compared in a canonical form;
- where the wire allows it, ids of calls are dropped or replaced by the client's own: what is stored can be looked up
  without them (`drop_call_ids`, `fingerprint_blocks`), and a stored call without an id is equal to one with any id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from re import compile as pattern

import orjson
from blake3 import blake3

from sightline.model.profile import WireName
from sightline.model.scene import Edit, Insert, Json, Replace
from sightline.model.value import value_class
from sightline.wire.json_tree import Block

# What a block contains


@value_class
class TextContent:
    text: str


@value_class
class CallContent:
    """A call of one of the client's tools, or of Sightline's."""

    id: str
    name: str
    arguments: str  # canonical JSON

    @property
    def signature(self) -> str:
        return f"{self.id} {self.name} {self.arguments}"

    @property
    def signature_without_id(self) -> str:
        return f" {self.name} {self.arguments}"

    @property
    def parsed_arguments(self) -> Json:
        """The arguments, or their text if they aren't JSON."""
        try:
            found: Json = orjson.loads(self.arguments)
        except orjson.JSONDecodeError:
            return self.arguments
        return found


@value_class
class ReasoningContent:
    """Reasoning, of which a client keeps all or nothing."""

    text: str = ""  # for wires that have all reasoning of an answer as one text


@value_class
class OtherContent:
    """Anything else that has its place in an answer."""


@value_class
class OptionalContent:
    """A block that may be there or not, at any place."""


BlockContent = TextContent | CallContent | ReasoningContent | OtherContent | OptionalContent
ClassifyBlock = Callable[[Block], BlockContent]
OTHER, OPTIONAL = OtherContent(), OptionalContent()


def as_object(value: Json | Mapping[str, Json]) -> Block:
    """Return a copy of an object; an empty one for any other value."""
    return dict(value) if isinstance(value, Mapping) else {}


def canonicalize_arguments(value: Json) -> str:
    """Return arguments in the one form that all ways of writing them share."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value or "{}")
        except orjson.JSONDecodeError:
            return str(value)
    try:
        return orjson.dumps(_unify_numbers(value), option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError):
        return repr(value)


def _unify_numbers(value: Json) -> Json:
    """Return a value with 1 for 1.0: some languages don't distinguish them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _unify_numbers(each) for key, each in value.items()}
    return [_unify_numbers(each) for each in value] if isinstance(value, list) else value


def remove_blanks(text: str) -> str:
    """Return a text without its blanks, which clients may change."""
    return "".join(text.split())


# Legs


@value_class
class CallPosition:
    """Where in its leg one of our calls is: after how much of what the client sees."""

    letters: int = 0  # without blanks
    characters: int = 0  # with blanks
    calls: int = 0
    reasoning_blocks: int = 0
    other_blocks: int = 0


@value_class
class OwnCall:
    """A call of one of our tools."""

    call: CallContent
    block: Block
    position: CallPosition


@value_class
class Leg:
    blocks: tuple[Block, ...]  # all of it, as a request contains it
    own_calls: tuple[OwnCall, ...]
    # What the client sees of it:
    text: str
    client_calls: tuple[CallContent, ...]
    reasoning_blocks: int = 0
    other_blocks: int = 0
    reasoning_text: str = ""


def build_leg(blocks: Sequence[Block], classify_block: ClassifyBlock, tool_names: frozenset[str]) -> Leg:
    """Return the leg that consists of these blocks; `tool_names` are those of our tools."""
    own_calls: list[OwnCall] = []
    calls: list[CallContent] = []
    texts: list[str] = []
    reasoning: list[str] = []
    others = letters = characters = 0
    for block in blocks:
        match classify_block(block):
            case TextContent(text=text):
                texts.append(text)
                letters += len(remove_blanks(text))
                characters += len(text)
            case CallContent(name=name) as call if name in tool_names:
                position = CallPosition(letters, characters, len(calls), len(reasoning), others)
                own_calls.append(OwnCall(call, block, position))
            case CallContent() as call:
                calls.append(call)
            case ReasoningContent(text=text):
                reasoning.append(text)
            case OtherContent():
                others += 1
            case OptionalContent():
                pass
    return Leg(
        tuple(blocks), tuple(own_calls), "".join(texts), tuple(calls), len(reasoning), others, "".join(reasoning)
    )


@value_class
class StoredLeg:
    """What the record keeps of a leg: enough to restore it from what the client sends back."""

    text: str
    client_calls: tuple[str, ...]  # their signatures
    own_calls: tuple[tuple[Block, CallPosition], ...]
    results: tuple[Block, ...] = ()  # of our calls, as a request contains them; those of the last leg are kept apart
    reasoning_blocks: int = 0
    other_blocks: int = 0
    reasoning_text: str = ""

    def as_json(self) -> dict[str, Json]:
        return {
            "text": self.text,
            "calls": [*self.client_calls],
            "asks": [[block, *astuple(position)] for block, position in self.own_calls],
            "results": [*self.results],
            "counts": [self.reasoning_blocks, self.other_blocks],
            "thinking": self.reasoning_text,
        }

    @staticmethod
    def from_leg(leg: Leg, results: Sequence[Block] = ()) -> StoredLeg:
        return StoredLeg(
            leg.text,
            tuple(call.signature for call in leg.client_calls),
            tuple((own.block, own.position) for own in leg.own_calls),
            tuple(results),
            leg.reasoning_blocks,
            leg.other_blocks,
            leg.reasoning_text,
        )

    @staticmethod
    def parse(value: Json) -> StoredLeg:
        """Read what `as_json` has written."""
        match value:
            case {
                "text": str(text),
                "calls": list(calls),
                "asks": list(own_calls),
                "results": list(results),
                "counts": [int(reasoning), int(others)],
                "thinking": str(reasoning_text),
            }:
                objects = tuple(each for each in results if isinstance(each, dict))
                signatures = tuple(str(call) for call in calls)
                parsed = tuple(map(_parse_own_call, own_calls))
                return StoredLeg(text, signatures, parsed, objects, reasoning, others, reasoning_text)
        raise ValueError(value)

    def without(self, *, reasoning: bool, others: bool) -> StoredLeg:
        """Return the leg for a client that has dropped all reasoning, or all other blocks."""

        def move(position: CallPosition) -> CallPosition:
            return replace(
                position,
                reasoning_blocks=0 if reasoning else position.reasoning_blocks,
                other_blocks=0 if others else position.other_blocks,
            )

        return replace(
            self,
            own_calls=tuple((block, move(position)) for block, position in self.own_calls),
            reasoning_blocks=0 if reasoning else self.reasoning_blocks,
            other_blocks=0 if others else self.other_blocks,
        )


def drop_call_ids(legs: Sequence[StoredLeg]) -> list[StoredLeg]:
    """Return legs as a client sees them that drops the ids of its calls."""
    return [replace(leg, client_calls=tuple(f" {call.partition(' ')[2]}" for call in leg.client_calls)) for leg in legs]


def _parse_own_call(value: Json) -> tuple[Block, CallPosition]:
    match value:
        case [dict() as block, int(letters), int(characters), int(calls), int(reasoning), int(others)]:
            return block, CallPosition(letters, characters, calls, reasoning, others)
    raise ValueError(value)


# Recognizing an answer

_is_unique_id = pattern(r"(?=.*\d)[A-Za-z0-9]{12,}\Z").search
"""Matches ids that are given only once. Others, such as a tool's name with a number, recur in every conversation."""


@value_class
class Fingerprint:
    """By what an answer is recognized: everything that a client sends back unchanged."""

    key: str
    visible: str  # a hash of the text and the calls
    is_unique: bool  # the key contains a unique id; else the answer is recognized only in the same conversation


def build_fingerprint(text: str, calls: Sequence[str]) -> Fingerprint:
    """Return the fingerprint of an answer with this text and the client's calls with these signatures."""
    visible = blake3(orjson.dumps([remove_blanks(text).encode("utf-8", "surrogatepass").hex(), *calls])).hexdigest()
    unique_id = next((name for call in calls if _is_unique_id(name := call.partition(" ")[0])), None)
    return Fingerprint(f"call {unique_id}" if unique_id else f"said {visible}", visible, unique_id is not None)


def fingerprint_legs(legs: Sequence[StoredLeg]) -> Fingerprint:
    return build_fingerprint("".join(leg.text for leg in legs), [call for leg in legs for call in leg.client_calls])


def fingerprint_blocks(blocks: Sequence[Block], classify_block: ClassifyBlock, *, with_ids: bool = True) -> Fingerprint:
    """Return the fingerprint of an answer that a client sends back, with the ids of its calls or without them."""
    contents = [classify_block(block) for block in blocks]
    text = "".join(content.text for content in contents if isinstance(content, TextContent))
    calls = [content for content in contents if isinstance(content, CallContent)]
    return build_fingerprint(text, [call.signature if with_ids else call.signature_without_id for call in calls])


@value_class
class AnswerRun:
    """Items of a conversation that may be one answer of the assistant, and the blocks in them."""

    start: int
    end: int
    blocks: list[Block]
    owners: list[int]  # for each block the index of its item

    def get_blocks(self, owner: int) -> list[Block]:
        return [block for block, index in zip(self.blocks, self.owners, strict=True) if index == owner]


# Usage


def add_usages(usages: Sequence[Block], output_keys: Sequence[str], total_key: str = "", input_key: str = "") -> Block:
    """Return the usage of an answer: the output of all legs, and the input of the last one.

    The input isn't added up: clients read from it how full the context is.
    """
    usage: Block = {}
    for one in usages:
        usage |= one
    for key in output_keys:
        figures = [one[key] for one in usages if key in one]
        if figures:
            usage[key] = _add_figures(figures)
    if total_key and total_key in usage:
        outputs = (usage.get(key) for key in output_keys if not isinstance(usage.get(key), dict))
        usage[total_key] = _add_figures([usage.get(input_key), *outputs])
    return usage


def _add_figures(figures: Sequence[Json]) -> Json:
    objects = [each for each in figures if isinstance(each, dict)]
    if objects:
        keys = dict.fromkeys(key for each in objects for key in each)
        return {key: _add_figures([each.get(key) for each in objects]) for key in keys}
    numbers = [each for each in figures if isinstance(each, int | float) and not isinstance(each, bool)]
    return sum(numbers) if numbers else (figures[-1] if figures else None)


# Our tools

MAX_KEPT_TOOLS = 16  # as a wire writes them; there are up to three for each state of the settings


# Compared by identity: `schema` can't be hashed, and each wire caches by tool.
@dataclass(frozen=True, slots=True, eq=False)
class OwnTool:
    """A tool that Sightline offers and runs itself."""

    name: str
    description: str
    schema: dict[str, Json]


@value_class
class OwnResult:
    text: str
    images: tuple[tuple[str, str], ...] = ()  # the media type and the base64 of each
    failed: bool = False


def forbid_calls(wire: WireName, tree: Json) -> Edit:
    """Return the edit that forbids calls, so that the last leg ends the answer."""
    body = as_object(tree if isinstance(tree, dict) else None)
    if wire == "gemini":
        key = "tool_config" if "tool_config" in body else "toolConfig"
        config = as_object(body.get(key))
        inner = "function_calling_config" if "function_calling_config" in config else "functionCallingConfig"
        return _set_member(body, key, {**config, inner: {"mode": "NONE"}})
    return _set_member(body, "tool_choice", {"type": "none"} if wire == "anthropic" else "none")


def _set_member(body: Block, key: str, value: Json) -> Edit:
    return (Replace if key in body else Insert)((key,), value)
