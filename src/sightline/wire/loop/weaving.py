"""What a client sends back of an answer, cut again where our calls stood, and they are put back in.

Nothing is guessed: where a word, a call or their order differs from what the client was shown, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sightline.wire.loop.leg import (
    LOOSE,
    Atom,
    Block,
    Called,
    Loose,
    Other,
    Past,
    Place,
    Reads,
    Thought,
    Words,
    bare,
)

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
