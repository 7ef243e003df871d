"""Restore an answer that a client sends back: split it into legs again, and put our calls back in.

The client has seen one answer without our calls; the record has what was left out, as a `StoredLeg` for each leg. The
blocks that come back are walked in order beside the stored legs. Where the position of one of our calls is reached, the
call is put in; where a text goes on beyond that position or beyond the end of its leg, the block is split there.

The rules:

1. Nothing is guessed. If a character, a call or their order differs from what the client got, nothing is restored.
2. Blanks don't count, since clients trim them. But where they are unchanged they go to the leg that they came with, so
   that the restored request equals the one that the model has seen, and the provider's cache applies.
3. Reasoning and other blocks may be missing, all of them or none.
4. Every item that comes back stays an item. A client may keep one answer as several items, so each block is restored
   together with the index of its item (`PlacedBlock`), and an item that needs no change gets no edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, takewhile

from sightline.model.scene import Edit, Insert, Replace
from sightline.wire.json_tree import Block
from sightline.wire.tool_loop.leg import (
    OPTIONAL,
    AnswerRun,
    BlockContent,
    CallContent,
    CallPosition,
    ClassifyBlock,
    OptionalContent,
    OtherContent,
    ReasoningContent,
    StoredLeg,
    TextContent,
    remove_blanks,
)

MAX_ITEMS = 4  # of up to this many items in a row, any part may be one answer

SplitBlock = Callable[[Block, int], tuple[Block, Block]]
"""Splits a text block after so many characters."""

PlacedBlock = tuple[Block, int | None]
"""A block, and the index of its item in the conversation; None: it is one of our calls."""


# Blocks into legs


def restore_legs(
    run: AnswerRun, stored: Sequence[StoredLeg], classify_block: ClassifyBlock, split_block: SplitBlock | None = None
) -> list[list[PlacedBlock]] | None:
    """Return the blocks of each leg with our calls; None if this isn't what the client was shown.

    Without `split_block`, a text that belongs to two legs isn't restored.
    """
    contents = [classify_block(block) for block in run.blocks]
    reasoning, others = (sum(isinstance(each, kind) for each in contents) for kind in (ReasoningContent, OtherContent))
    if reasoning not in (0, sum(leg.reasoning_blocks for leg in stored)):
        return None
    if others not in (0, sum(leg.other_blocks for leg in stored)):
        return None
    rest: list[PlacedBlock] = list(zip(reversed(run.blocks), reversed(run.owners), strict=True))
    legs: list[list[PlacedBlock]] = []
    for each in stored:
        leg = _restore_leg(rest, each.without(reasoning=not reasoning, others=not others), classify_block, split_block)
        if leg is None:
            return None
        legs.append(leg)
    legs[-1] += reversed(rest)
    return None if any(not _is_blank(classify_block(block)) for block, _ in rest) else legs


def _is_blank(content: BlockContent) -> bool:
    return isinstance(content, OptionalContent) or (
        isinstance(content, TextContent) and not remove_blanks(content.text)
    )


def _restore_leg(
    rest: list[PlacedBlock], stored: StoredLeg, classify_block: ClassifyBlock, split_block: SplitBlock | None
) -> list[PlacedBlock] | None:
    """Take the blocks of one leg from the end of `rest`, which is in reverse order, and put our calls between them."""
    cursor = _LegCursor(stored)
    leg: list[PlacedBlock] = []
    while True:
        while blanks := cursor.skip_blanks(classify_block(rest[-1][0]) if rest else OPTIONAL):
            block, owner = rest.pop()
            if blanks < len(_get_text(classify_block(block))) and split_block is not None:
                block, remainder = split_block(block, blanks)
                rest.append((remainder, owner))
            leg.append((block, owner))
        leg += [(call, None) for call in cursor.take_own_calls()]
        if cursor.is_finished:
            return leg
        if not rest:
            return None
        block, owner = rest.pop()
        content = classify_block(block)
        if isinstance(content, TextContent) and (cut := cursor.find_cut(content.text)):
            if split_block is None:
                return None
            block, remainder = split_block(block, cut)
            rest.append((remainder, owner))
            content = classify_block(block)
        if not cursor.advance(content):
            return None
        leg.append((block, owner))


class _LegCursor:
    """A position in a stored leg: how much of it has been found in what came back."""

    def __init__(self, stored: StoredLeg) -> None:
        self._stored = stored
        self._text = remove_blanks(stored.text)
        self._letters = self._characters = self._calls = self._reasoning = self._others = 0
        self._own_calls = list(stored.own_calls)

    def take_own_calls(self) -> Iterator[Block]:
        """Yield our calls that belong at this position."""
        while self._own_calls and self._is_at(self._own_calls[0][1]):
            yield self._own_calls.pop(0)[0]

    def _is_at(self, position: CallPosition) -> bool:
        current = (self._letters, self._calls, self._reasoning, self._others)
        return current == (position.letters, position.calls, position.reasoning_blocks, position.other_blocks)

    @property
    def is_finished(self) -> bool:
        leg = self._stored
        end = CallPosition(len(self._text), 0, len(leg.client_calls), leg.reasoning_blocks, leg.other_blocks)
        return not self._own_calls and self._is_at(end)

    def skip_blanks(self, content: BlockContent) -> int:
        """Skip the blanks before our next call, or before the leg's end, if this text begins with them (rule 2).

        Return how many characters of the text these are.
        """
        end = self._own_calls[0][1].characters if self._own_calls else len(self._stored.text)
        gap, text = self._stored.text[self._characters : end], _get_text(content)
        if not gap or remove_blanks(gap) or not (text.startswith(gap) or gap.startswith(text)):
            return 0
        self._characters += min(len(gap), len(text))
        return min(len(gap), len(text))

    def find_cut(self, text: str) -> int:
        """Return after how many characters a text must be split for our next call or the next leg; 0 if it mustn't."""
        length = min([len(self._text), *(position.letters for _, position in self._own_calls)]) - self._letters
        if not 0 < length <= len(remove_blanks(text)):
            return 0
        at, stored_at = _index_after(text, length), _index_after(self._stored.text, self._letters + length)
        rest = self._stored.text[stored_at:]
        gap = rest[: len(rest) - len(rest.lstrip())]
        end = at + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(gap, text[at:], strict=False)))
        return end if end < len(text) else 0

    def advance(self, content: BlockContent) -> bool:
        """Advance past this content; return False if the leg doesn't continue with it."""
        match content:
            case TextContent(text=text):
                matches = self._text.startswith(remove_blanks(text), self._letters)
                self._letters += len(remove_blanks(text))
                if self._stored.text.startswith(text, self._characters):
                    self._characters += len(text)
                else:
                    self._characters = _index_after(self._stored.text, self._letters)
                return matches
            case CallContent():
                self._calls += 1
                stored = self._stored.client_calls[self._calls - 1 : self._calls]
                return content.signature in stored or content.signature_without_id in stored
            case ReasoningContent():
                self._reasoning += 1
                return self._reasoning <= self._stored.reasoning_blocks
            case OtherContent():
                self._others += 1
                return self._others <= self._stored.other_blocks
            case OptionalContent():
                return True


def _get_text(content: BlockContent) -> str:
    return content.text if isinstance(content, TextContent) else ""


def _index_after(text: str, letters: int) -> int:
    """Return the index after this many characters that aren't blanks."""
    at = 0
    for at, character in enumerate(text, 1):
        letters -= not character.isspace()
        if letters <= 0:
            return at if letters == 0 else 0
    return at


def pair_results(stored: StoredLeg, results: Sequence[Block]) -> Iterator[tuple[int, Block]]:
    """Yield our results, each with the number of the client's results that come before it."""
    for (_, position), result in zip(stored.own_calls, results, strict=True):
        yield position.calls, result


# Items of a conversation: a client may keep one answer as several of them.


def find_runs(items: Sequence[list[Block] | None]) -> list[AnswerRun]:
    """Return everything that may be one answer, the longest first. For each item: the assistant's blocks, or None.

    Of more than `MAX_ITEMS` in a row only all together or each alone is tried.
    """
    bounds: list[tuple[int, int]] = []
    for is_assistant, group in groupby(range(len(items)), key=lambda index: items[index] is not None):
        row = [*group] if is_assistant else []
        if len(row) > MAX_ITEMS:
            bounds += [(row[0], row[-1] + 1), *((each, each + 1) for each in row)]
        else:
            bounds += [(start, end) for start in row for end in range(row[-1] + 1, start, -1)]
    return [_build_run(items, start, end) for start, end in bounds]


def _build_run(items: Sequence[list[Block] | None], start: int, end: int) -> AnswerRun:
    pairs = [(block, index) for index in range(start, end) for block in items[index] or ()]
    return AnswerRun(start, end, [block for block, _ in pairs], [index for _, index in pairs])


BuildMessage = Callable[[int | None, list[Block], bool], Block]
"""Builds a message from the index of its item (None: it is new), its blocks, and whether it is the item's last one."""


def lay_out_legs(
    key: str,
    run: AnswerRun,
    legs: Sequence[Sequence[PlacedBlock]],
    between: Sequence[Sequence[Block]],
    build_message: BuildMessage,
) -> list[Edit]:
    """Return the edits that turn a run into messages leg by leg, with the messages `between` two legs (rule 4)."""
    parts = [[*_split_by_item(leg)] for leg in legs]
    owners_left = [owner for leg in parts for owner, _ in leg]
    edits: list[Edit] = []
    place, begun = run.start, set[int]()
    for leg, messages in zip(parts, [*between, ()], strict=True):
        for owner, blocks in leg:
            owners_left.pop(0)
            if owner is None or owner in begun:
                edits.append(Insert((key, place), build_message(owner, blocks, owner not in owners_left)))
                continue
            begun.add(owner)
            place = owner + 1
            if blocks != run.get_blocks(owner):
                edits.append(Replace((key, owner), build_message(owner, blocks, owner not in owners_left)))
        edits += [Insert((key, place), message) for message in messages]
    return edits


def _split_by_item(leg: Sequence[PlacedBlock]) -> Iterator[tuple[int | None, list[Block]]]:
    """Yield the blocks of a leg by their items. Our calls go to the item before them, or to the one after them."""
    item: int | None = None
    blocks: list[Block] = []
    for block, owner in leg:
        if owner is not None and owner != item and item is not None:
            yield item, blocks
            blocks = []
        item = item if owner is None else owner
        blocks.append(block)
    if blocks:
        yield item, blocks
