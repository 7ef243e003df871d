"""What a client sends back of an answer, cut again where our calls stood, and they are put back in.

Nothing is guessed: where a word, a call or their order differs from what the client was shown, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, takewhile

from sightline.model.edit import Edit, Insert, Replace
from sightline.wire.tool_loop.leg import (
    LOOSE,
    Atom,
    Block,
    Called,
    Loose,
    Other,
    Past,
    Place,
    Reads,
    Run,
    Thought,
    Words,
    bare,
)

FEW = 4  # items in a row, of which any may be one answer
Splits = Callable[[Block, int], tuple[Block, Block]]
"""A block of words, cut behind so many letters."""

Put = tuple[Block, int | None]
"""A block, and the item of the conversation that it stands in; None: it is ours."""


def woven(run: Run, pasts: Sequence[Past], reads: Reads, splits: Splits | None = None) -> list[list[Put]] | None:
    """What a client sends back of an answer, leg by leg, with our calls in it; None: it is not what it was shown."""
    atoms = [reads(block) for block in run.blocks]
    thoughts, others = (sum(isinstance(atom, kind) for atom in atoms) for kind in (Thought, Other))
    if thoughts not in (0, sum(past.thoughts for past in pasts)) or others not in (0, sum(p.others for p in pasts)):
        return None
    rest: list[Put] = list(zip(reversed(run.blocks), reversed(run.owners), strict=True))
    legs: list[list[Put]] = []
    for past in pasts:
        leg = _taken(rest, past.without(thoughts=not thoughts, others=not others), reads, splits)
        if leg is None:
            return None
        legs.append(leg)
    legs[-1] += reversed(rest)
    return None if any(not _is_blank(reads(block)) for block, _ in rest) else legs


def _is_blank(atom: Atom) -> bool:
    return isinstance(atom, Loose) or (isinstance(atom, Words) and not bare(atom.text))


def _taken(rest: list[Put], past: Past, reads: Reads, splits: Splits | None) -> list[Put] | None:
    """The blocks of one leg, from the end of `rest`, and our calls between them."""
    walk = _Walk(past)
    out: list[Put] = []
    while True:
        while blank := walk.blank(reads(rest[-1][0]) if rest else LOOSE):
            block, owner = rest.pop()
            if blank < len(_text(reads(block))) and splits is not None:
                block, behind = splits(block, blank)
                rest.append((behind, owner))
            out.append((block, owner))
        out += [(ask, None) for ask in walk.asked()]
        if walk.is_over:
            return out
        if not rest:
            return None
        block, owner = rest.pop()
        atom = reads(block)
        if isinstance(atom, Words) and (cut := walk.cut(atom.text)):
            if splits is None:
                return None
            block, behind = splits(block, cut)
            rest.append((behind, owner))
            atom = reads(block)
        if not walk.takes(atom):
            return None
        out.append((block, owner))


class _Walk:
    """How much of a leg has been found again."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._bare = bare(past.text)
        self._letters = self._raw = self._calls = self._thoughts = self._others = 0
        self._asks = list(past.asks)

    def asked(self) -> Iterator[Block]:
        """Our calls that belong at this point, taken out one after the other."""
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
        gap, text = self._past.text[self._raw : end], _text(atom)
        if not gap or bare(gap) or not (text.startswith(gap) or gap.startswith(text)):
            return 0
        self._raw += min(len(gap), len(text))
        return min(len(gap), len(text))

    def cut(self, text: str) -> int:
        """Where words have to be cut, because one of our calls or another leg comes; 0: nowhere."""
        room = min([len(self._bare), *(place.letters for _, place in self._asks)]) - self._letters
        if not 0 < room <= len(bare(text)):
            return 0
        at, there = _behind(text, room), _behind(self._past.text, self._letters + room)
        rest = self._past.text[there:]
        gap = rest[: len(rest) - len(rest.lstrip())]
        end = at + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(gap, text[at:], strict=False)))
        return end if end < len(text) else 0

    def takes(self, atom: Atom) -> bool:
        """Whether this is what the answer goes on with; it is then behind us."""
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


# Where a message holds what was said: a client may keep one answer as several of them.


def spoken(held: Sequence[list[Block] | None]) -> list[Run]:
    """What may be one answer among these items, of which each holds what an assistant said, or None; the widest first.

    Of many in a row it is all of them, or one.
    """
    found: list[tuple[int, int]] = []
    for said, group in groupby(range(len(held)), key=lambda index: held[index] is not None):
        row = [*group] if said else []
        if len(row) > FEW:
            found += [(row[0], row[-1] + 1), *((each, each + 1) for each in row)]
        else:
            found += [(start, end) for start in row for end in range(row[-1] + 1, start, -1)]
    return [_run(held, start, end) for start, end in found]


def _run(held: Sequence[list[Block] | None], start: int, end: int) -> Run:
    pairs = [(block, index) for index in range(start, end) for block in held[index] or ()]
    return Run(start, end, [block for block, _ in pairs], [index for _, index in pairs])


Makes = Callable[[int | None, list[Block], bool], Block]
"""A message out of the blocks of an item, or of none; and whether it is the last that is made out of that."""


def laid(
    key: str, run: Run, legs: Sequence[Sequence[Put]], between: Sequence[Sequence[Block]], makes: Makes
) -> list[Edit]:
    """The items of a run as they were, leg by leg, and what stands `between` those; what need not change does not."""
    parts = [[*_pieces(leg)] for leg in legs]
    left = [owner for leg in parts for owner, _ in leg]
    edits: list[Edit] = []
    place, begun = run.start, set[int]()
    for leg, brought in zip(parts, [*between, ()], strict=True):
        for owner, blocks in leg:
            left.pop(0)
            if owner is None or owner in begun:
                edits.append(Insert((key, place), makes(owner, blocks, owner not in left)))
                continue
            begun.add(owner)
            place = owner + 1
            if blocks != run.held(owner):
                edits.append(Replace((key, owner), makes(owner, blocks, owner not in left)))
        edits += [Insert((key, place), each) for each in brought]
    return edits


def _pieces(leg: Sequence[Put]) -> Iterator[tuple[int | None, list[Block]]]:
    """The blocks of a leg by their items; our calls stand with what comes before them, or else behind them."""
    at: int | None = None
    blocks: list[Block] = []
    for block, owner in leg:
        if owner is not None and owner != at and at is not None:
            yield at, blocks
            blocks = []
        at = at if owner is None else owner
        blocks.append(block)
    if blocks:
        yield at, blocks
