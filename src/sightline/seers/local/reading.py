"""Reads an image: where its lines are, what each says, and how sure that is.

engine = open_engine(data_folder)     # sightline.seers.local.engine; a Refusal where no weights are installed
lines = read(pixels, engine)          # pixels: uint8, height x width x RGB; tuple[Line, ...] from top to bottom
page = read_page(pixels, engine)      # the same with how far the page was turned and what could not be read
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.seers.local import detect, ink
from sightline.seers.local.alphabets import is_foreign, is_foreign_here
from sightline.seers.local.engine import Engine, Reader
from sightline.seers.local.frames import DOWNWARD, OVER, UPRIGHT, UPWARD, Frame, framed
from sightline.seers.local.leading import unmarked
from sightline.seers.local.pace import Pace, stretch_for
from sightline.seers.local.recognise import Letter, letters, width_of
from sightline.seers.local.seen import Line
from sightline.seers.local.spelling import far_east, pieces

Pixels = NDArray[np.uint8]
Alive = Callable[[], bool]

_READ = 0.9  # a line that is less sure was not read: letters of an alphabet that the readers do not know come to less
_MUCH, _SEVERAL = 0.4, 3  # of what looks like text, and lines: where so much was not read, the rest is doubted
_WIDEST = 80  # columns with ink that a letter takes at most
_TALL = 1.5  # a line so much higher than wide reads upwards or downwards
_SINGLE = 3.0  # unless it is one letter, which may be so much higher than wide
_POOR = 0.75  # under it another way of standing is tried
_SURE, _UNSURE = 0.995, 0.9  # under the first the more exact reader is asked too, under the second at any cost
_SHARE, _MOST = 0.25, 3_000  # of the columns read, and columns: what the first of these may cost;
_SMALL_PRINT = 16  # pixels: the second of the bounds does not hold for lines no higher than this
_FLIPPED, _BETTER = 6, 0.1  # lines that are tried on their heads before all are, and how much surer that makes them
_STROKES = {"一": "—", "二": "="}
_FIGURED = re.compile(r"[0-9][lIO]|[lIO][0-9]")


@dataclass(frozen=True, slots=True)
class Page:
    lines: tuple[Line, ...]
    turned: int = 0  # degrees clockwise by which it had to be turned to be read
    unread: tuple[Box, ...] = ()  # what looks like lines of text and could not be read
    late: tuple[Box, ...] = ()  # lines that were left for lack of time
    searched: bool = True  # whether there was time to look for lines everywhere


@dataclass(frozen=True, slots=True, eq=False)
class _Try:
    """One reading of one spot."""

    spot: detect.Spot
    turn: int
    frame: Frame
    letters: Sequence[Letter]
    reader: Reader

    @property
    def sure(self) -> float:
        """Nothing but spaces is nothing, however sure."""
        inked = any(letter.text.strip() for letter in self.letters)
        return fmean(letter.sure for letter in self.letters) if inked else 0.0


def read(pixels: Pixels, engine: Engine) -> tuple[Line, ...]:
    return read_page(pixels, engine).lines


def read_page(pixels: Pixels, engine: Engine, alive: Alive = lambda: True) -> Page:
    """The lines of an image, from its top to its bottom. When `alive` says no, what has been read so far."""
    first = engine.reader("tiny") or engine.reader("small")
    if first is None:
        return Page(())
    spots, searched = detect.spots(pixels, first.detector, alive)
    second = engine.reader("small") or first
    tried = list(_first_tries(pixels, spots, Pace(first, second), alive))
    tried = _righted(pixels, tried, first, alive)
    tried = _read_again(tried, second, alive)
    good = _known(tried)
    turned = 90 * _stance(good)
    found = sorted((line for each in good for line in _lines(each)), key=lambda line: _order(line, turned))
    unread = [_ink_of(each) for each in tried if each not in good]
    unread += [line.box for line in found if line.confidence < _READ]  # a piece of what was sure as a whole
    late = tuple(_around(pixels, spot) for spot in spots[len(tried) :])
    lines = tuple(without_strokes([line for line in found if line.confidence >= _READ]))
    return Page(lines, turned, tuple(sorted(unread, key=lambda box: (box.y, box.x))), late, searched)


def without_strokes(lines: Sequence[Line]) -> list[Line]:
    """Where nothing else is Chinese or Japanese, the numbers one and two of those by themselves are a dash and "="."""
    if any(far_east(line.text) and line.text not in _STROKES for line in lines):
        return list(lines)
    return [replace(line, text=_STROKES.get(line.text, line.text)) for line in lines]


def _known(tried: Sequence[_Try]) -> list[_Try]:
    """What was read, in letters that the readers know."""
    good = [each for each in tried if each.sure >= _READ and not _sparse(each)]
    good = [each for each in good if not is_foreign(each.letters, each.sure)]
    few = len(tried) - len(good) < _SEVERAL
    if few or sum(map(_cost, good)) > (1 - _MUCH) * sum(map(_cost, tried)):
        return good
    return [each for each in good if not is_foreign_here(each.letters, each.sure)]


def _sparse(each: _Try) -> bool:
    """Whether most of what is written there was passed over."""
    most = _WIDEST * sum(bool(letter.text.strip()) for letter in each.letters)
    if _cost(each) <= most:
        return False
    mask, top, bottom = _written(each)
    inked = sum(end - start for start, end in ink.strokes(mask, top, bottom))
    return inked * _cost(each) > most * len(mask[0])


def _first_tries(pixels: Pixels, spots: Sequence[detect.Spot], pace: Pace, alive: Alive) -> Iterator[_Try]:
    for spot in spots:
        if not alive():
            return
        yield _best(pixels, spot, pace)


def _stances(spot: detect.Spot) -> tuple[int, ...]:
    if spot.height < _TALL * spot.width:
        return (UPRIGHT,)
    return (UPRIGHT, UPWARD, DOWNWARD) if spot.height < _SINGLE * spot.width else (UPWARD, DOWNWARD)


def _best(pixels: Pixels, spot: detect.Spot, pace: Pace) -> _Try:
    """The surest of several ways of standing; the first that is sure enough ends the search."""
    best: _Try | None = None
    for turn in _stances(spot):
        frame = unmarked(framed(pixels, spot, turn))
        found = _Try(spot, turn, frame, *pace.read(frame.picture))
        if best is None or found.sure > best.sure:
            best = found
        if best.sure >= _POOR:
            break
    assert best is not None
    return best


def _righted(pixels: Pixels, tried: list[_Try], reader: Reader, alive: Alive) -> list[_Try]:
    """What is doubtful and stands otherwise than the page does is tried in the page's way."""
    stance = OVER if _on_its_head(pixels, tried, reader, alive) else _stance(tried)
    return [
        max(each, _standing(pixels, each, stance, reader), key=lambda one: one.sure)
        if each.sure < _UNSURE and each.turn != stance and each.turn % 2 == stance % 2 and alive()
        else each
        for each in tried
    ]


def _on_its_head(pixels: Pixels, tried: list[_Try], reader: Reader, alive: Alive) -> bool:
    """Of a page on its head nothing is read well, and some lines read better the other way up."""
    poor = [each for each in tried if each.turn == UPRIGHT and each.sure < _POOR]
    if 2 * sum(map(_cost, poor)) <= sum(map(_cost, tried)):
        return False
    some = sorted(poor, key=_cost, reverse=True)[:_FLIPPED]
    better = [each for each in some if alive() and _standing(pixels, each, OVER, reader).sure > each.sure + _BETTER]
    return 2 * len(better) > len(some)


def _standing(pixels: Pixels, each: _Try, turn: int, reader: Reader) -> _Try:
    frame = framed(pixels, each.spot, turn)
    return _Try(each.spot, turn, frame, letters(frame.picture, reader), reader)


def _cost(each: _Try) -> int:
    return width_of(each.frame.picture)


def _read_again(tried: Sequence[_Try], reader: Reader, alive: Alive) -> list[_Try]:
    """The more exact reader is four times as dear: it reads what the first was not sure of, or knows less well."""
    whole = _SHARE * sum(map(_cost, tried))
    left = {True: whole, False: min(_MOST, whole)}
    again: dict[int, _Try] = {}
    for each in sorted(tried, key=lambda each: each.sure):
        if each.reader is reader or not alive():
            continue
        if each.sure >= _UNSURE and not _far_east(each) and not (each.sure < _SURE and _odd(each)):
            small = len(each.frame.picture) <= _SMALL_PRINT
            left[small] -= _cost(each)
            if each.sure >= _SURE or left[small] < 0:
                continue
        found = letters(each.frame.picture, reader, stretch_for(_cost(each), each.letters, reader))
        other = replace(each, letters=found, reader=reader)
        if other.sure > each.sure or other.sure < _READ:
            again[id(each)] = other
    return [again.get(id(each), each) for each in tried]


def _far_east(each: _Try) -> bool:
    return any(far_east(letter.text) for letter in each.letters)


def _odd(each: _Try) -> bool:
    """A letter beside a figure that looks like one: the first reader takes them for each other."""
    return bool(_FIGURED.search("".join(letter.text for letter in each.letters)))


def _stance(tried: Sequence[_Try]) -> int:
    """How the most of what was read stands."""
    stands: Counter[int] = Counter()
    for each in tried:
        stands[each.turn] += len(each.letters)
    return stands.most_common(1)[0][0] if stands else UPRIGHT


def _order(line: Line, turned: int) -> tuple[int, int]:
    box = line.box
    return {0: (box.y, box.x), 90: (box.x, -box.bottom), 180: (-box.bottom, -box.right), 270: (-box.right, box.y)}[
        turned
    ]


def _around(pixels: Pixels, spot: detect.Spot) -> Box:
    """The rectangle of a line that nobody has looked at."""
    frame = framed(pixels, spot)
    height, width = frame.picture.shape[:2]
    return frame.box(0, 0, width, height)


def _ink_of(each: _Try) -> Box:
    """The rectangle around what is written there, whatever it says."""
    mask, top, bottom = _written(each)
    strokes = ink.strokes(mask, top, bottom) or [(0, mask.shape[1])]
    return each.frame.box(strokes[0][0], top, strokes[-1][1], bottom)


def _written(each: _Try) -> tuple[ink.Mask, int, int]:
    """The ink of a line, its first row and the one after its last."""
    mask = ink.mask_of(each.frame.picture)
    top, bottom = ink.band(mask, each.frame.core)
    return (mask, top, bottom) if top < bottom else (mask, 0, len(mask))


def _lines(each: _Try) -> Iterator[Line]:
    """The lines that a try comes to: mostly one; more where it runs over a wide blank."""
    mask, top, bottom = _written(each)
    height, width = mask.shape
    for piece in pieces(each.letters, ink.strokes(mask, top, bottom), width, height):
        first, last = ink.rows(mask, (top, bottom), (piece.left, piece.right))
        yield Line(piece.text, each.frame.box(piece.left, first, piece.right, last), piece.sure, least=piece.least)
