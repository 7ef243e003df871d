"""Letters and ink put together: where a line has spaces, where it ends, and where it is really two.

A network guesses spaces; the ink shows them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import itemgetter
from statistics import fmean

from sightline.seers.local.recognise import Letter

Stroke = tuple[int, int]  # the first column with ink and the one after the last

# All in shares of the height of the line's picture.
_GAP = 0.36  # where so much is blank, there is a space;
_WIDE_GAP = 0.7  # between letters of the far east, which stand wide apart, so much has to be blank
_NO_GAP = 0.1  # where there is less than this, there is none;
_UNINKED = 0.1  # a letter so far from all ink stands nowhere
_APART = 1.2  # where there is more than this, one line ends and another begins
_ASTRAY = 0.6  # ink so far from the last letter and from other ink, both together, is no letter


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text and the columns that its ink takes."""

    text: str
    left: int
    right: int
    sure: float  # mean over its letters,
    least: float = 1.0  # and of the least sure


def pieces(letters: Sequence[Letter], strokes: Sequence[Stroke], width: int, height: int) -> Iterator[Piece]:
    run: list[Letter] = []
    text, left = "", 0
    for spaced, letter in _words(letters, strokes, width, height):
        if run:
            gap, middle = _blank(strokes, run[-1].place * width, letter.place * width)
            if gap > _APART * height:
                yield _piece(text, run, _within(strokes, left, middle), width, height)
                run, text, left = [], "", middle
            elif gap >= height * _least(run[-1].text, letter.text, said=spaced):
                text += " "
        text += letter.text
        run.append(letter)
    if run:
        yield _piece(text, run, _within(strokes, left, width), width, height)


def _least(before: str, after: str, *, said: bool) -> float:
    """The blank that makes a space between two letters; less is enough where the network said that there is one."""
    if far_east(before) and far_east(after):
        return _WIDE_GAP
    return _NO_GAP if said else _GAP


def far_east(text: str) -> bool:
    """Whether it has letters of Chinese, Japanese or Korean."""
    return any(ord(letter) >= 0x2E80 for letter in text)


def _words(
    letters: Sequence[Letter], strokes: Sequence[Stroke], width: int, height: int
) -> Iterator[tuple[bool, Letter]]:
    """Each letter, and whether the network put a space before it. A low line where no ink is was a space, too."""
    spaced = False
    for letter in letters:
        lined = letter.text == "_" and _away(strokes, letter.place * width) > _UNINKED * height
        if letter.text.strip() and not lined:
            yield spaced, letter
        spaced = lined or not letter.text.strip()


def _away(strokes: Sequence[Stroke], place: float) -> float:
    """How far the nearest ink is."""
    nearest = bisect_right(strokes, place, key=itemgetter(0))
    return min(
        (max(start - place, place - end, 0.0) for start, end in strokes[max(0, nearest - 1) : nearest + 1]), default=0.0
    )


def _blank(strokes: Sequence[Stroke], start: float, end: float) -> tuple[float, int]:
    """The widest blank between two places, and its middle."""
    widest, middle = 0.0, int(end)
    nearest = bisect_right(strokes, start, key=itemgetter(0))
    for (_, before), (after, _) in pairwise(islice(strokes, max(0, nearest - 1), None)):
        if before > end:
            break
        low, high = max(before, start), min(after, end)
        if high - low > widest:
            widest, middle = high - low, int((low + high) / 2)
    return widest, middle


def _within(strokes: Sequence[Stroke], left: int, right: int) -> list[Stroke]:
    return [(start, end) for start, end in strokes if end > left and start < right]


def _piece(text: str, run: Sequence[Letter], strokes: Sequence[Stroke], width: int, height: int) -> Piece:
    first, last = run[0].place * width, run[-1].place * width
    kept = list(strokes) or [(int(first), int(last) + 1)]
    while len(kept) > 1 and first - kept[0][1] + kept[1][0] - kept[0][1] > _ASTRAY * height:
        del kept[0]
    while len(kept) > 1 and kept[-1][0] - last + kept[-1][0] - kept[-2][1] > _ASTRAY * height:
        del kept[-1]
    sure = [letter.sure for letter in run]
    return Piece(text, kept[0][0], kept[-1][1], fmean(sure), min(sure))
