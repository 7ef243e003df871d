"""What one attempt to read a text area gave: its letters, its ink, and the lines that come out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from sightline.reader.ocr.glyphs import ShapedLetter, read_by_shape
from sightline.reader.ocr.letter_case import correct_case
from sightline.reader.ocr.line_image import (
    UPRIGHT,
    LineImage,
    Mask,
    TextArea,
    find_ink,
    find_ink_columns,
    find_ink_rows,
    trim_rows,
)
from sightline.reader.ocr.mono_grid import MonoLine
from sightline.reader.ocr.recognizer import (
    REGULAR,
    Character,
    TextRun,
    are_in_columns,
    find_centres,
    find_common_columns,
    fits_pitch,
    measure_pitch,
    split_runs,
)
from sightline.reader.ocr.weights import OcrModel
from sightline.reader.reading import Pixels, TextLine

_CONCLUSIVE = 20  # characters that show alone that a line is monospaced
_MANY = 8  # strokes that show alone that a line is in the columns of others
_NEIGHBOURS, _FAR = 5, 8  # lines whose columns a short line may share, and how many heights away they are
_AS_HIGH = 1.5  # how many times as high as the other one of two such lines may be
_COMPANIONS, _LETTERS, _ADJACENT = 2, 24, 3.2  # such lines, letters of all of them, and how many heights apart they are
_BESIDE_INK = 0.3  # widths of a column: how far from its ink the network may see a letter
_SUNK, _BAR = 0.4, 0.4  # heights of the letters: how far below them underscores are, and how wide
_RULED = 0.9  # share of the width: a longer line below a text is no underscore
_ASIDE = 4.0  # heights: the blank between a line and the ends of those whose columns it may share


@dataclass(frozen=True, slots=True, eq=False)
class LineAttempt:
    """One reading of one text area."""

    spot: TextArea
    turn: int
    frame: LineImage
    letters: Sequence[Character]
    reader: OcrModel

    @property
    def confidence(self) -> float:
        """Return the mean confidence; 0 where there is nothing but spaces."""
        inked = any(letter.text.strip() for letter in self.letters)
        return fmean(letter.confidence for letter in self.letters) if inked else 0.0


def find_line_ink(each: LineAttempt) -> tuple[Mask, int, int]:
    """Return the ink of a line, its first row and one past its last."""
    mask = find_ink(each.frame.picture)
    top, bottom = find_ink_rows(mask, each.frame.core)
    return (mask, top, bottom) if top < bottom else (mask, 0, len(mask))


@dataclass(frozen=True, slots=True)
class LineInk:
    """An attempt and the ink of its letters."""

    attempt: LineAttempt
    mask: Mask
    rows: tuple[int, int]
    strokes: list[tuple[int, int]]

    @property
    def pitch(self) -> tuple[float, float] | None:
        """Return the width of a column, and how well the letters fit."""
        height, width = self.mask.shape
        return measure_pitch(self.attempt.letters, self.strokes, width, height)

    @property
    def letters(self) -> list[Character]:
        """Return the letters without spaces."""
        return [letter for letter in self.attempt.letters if letter.text.strip()]

    def list_centres(self) -> list[float]:
        """Return where the letters are in the image, from left to right."""
        left = self.attempt.frame.origin[0]
        return [left + centre for centre in find_centres(self.letters, self.strokes, self.mask.shape[1])]

    def to_mono_line(self, pitch: float | None) -> MonoLine:
        """Return the letters and where they are in the image."""
        left, top = self.attempt.frame.origin
        centres = find_centres(self.letters, self.strokes, self.mask.shape[1])
        inked = [*self.strokes, *_find_bars(self.mask, *self.rows)] if pitch else self.strokes
        start = min((first for first, _ in inked), default=0)
        end = max((last for _, last in inked), default=self.mask.shape[1])
        return MonoLine(
            tuple(letter.text for letter in self.letters),
            tuple(left + centre for centre in centres),
            (left + start, left + end),
            (top + self.rows[0], top + self.rows[1]),
            tuple(letter.confidence for letter in self.letters),
            pitch,
            tuple(left + (first + last) / 2 for first, last in self.strokes if pitch and last - first <= pitch),
        )

    def fits(self, pitch: float) -> bool:
        """Return whether the letters are in columns of about this width, or what is written is."""
        narrow = [(start + end) / 2 for start, end in self.strokes if end - start <= pitch]
        return fits_pitch(self.attempt.letters, self.strokes, self.mask.shape[1], pitch) or (
            len(narrow) >= _MANY and are_in_columns(narrow, pitch)
        )


def _measure_ink(each: LineAttempt) -> LineInk:
    mask, top, bottom = find_line_ink(each)
    if any(letter.text == "_" for letter in each.letters):
        bottom = _include_underscores(each, mask, top, bottom)
    return LineInk(each, mask, (top, bottom), find_ink_columns(mask, top, bottom))


def _include_underscores(each: LineAttempt, mask: Mask, top: int, bottom: int) -> int:
    """Return one past the last row of a line with its underscores, which a blank may separate from the letters."""
    places = [letter.place * mask.shape[1] for letter in each.letters if letter.text == "_"]
    for row in range(_find_lowest_row(mask, top, bottom), bottom, -1):
        if any(start <= place <= end for place in places for start, end in _find_bars(mask, top, bottom, row)):
            return row
    return bottom


def _find_lowest_row(mask: Mask, top: int, bottom: int) -> int:
    """Return one past the last row where underscores may be."""
    return min(len(mask), bottom + round(_SUNK * (bottom - top)))


def _find_bars(mask: Mask, top: int, bottom: int, row: int | None = None) -> list[tuple[int, int]]:
    """Return where thin strokes are below the letters of a line, or in one row; a line below the whole text is none."""
    first, last = (bottom, _find_lowest_row(mask, top, bottom)) if row is None else (row - 1, row)
    if first >= last or mask[first:last].mean(1).max() >= _RULED:
        return []
    wide = round(_BAR * (bottom - top))
    return [(start, end) for start, end in find_ink_columns(mask, first, last) if end - start >= wide]


def make_lines(
    pixels: Pixels, good: Sequence[LineAttempt], poor: Sequence[LineAttempt]
) -> tuple[list[TextLine], list[LineAttempt]]:
    """Return the lines that were read, monospaced ones as the shapes of their letters tell, and those that were not."""
    inks = [_measure_ink(each) for each in good]
    pitches = _find_pitches(inks)
    if not any(pitches):
        return list(_split_lines(inks, pitches)), list(poor)
    level = [(ink, pitch) for ink, pitch in zip(inks, pitches, strict=True) if pitch and _is_level(ink.attempt)]
    dark = [_measure_ink(each) for each in poor if _is_level(each)]
    lines = [*(ink.to_mono_line(pitch) for ink, pitch in level), *(ink.to_mono_line(None) for ink in dark)]
    changed = {
        id(ink.attempt): _restore_letters(ink, letters)
        for at, letters in read_by_shape(pixels, lines).items()
        for ink in [([ink for ink, _ in level] + dark)[at]]
    }
    if not changed:
        return list(_split_lines(inks, pitches)), list(poor)
    restored = [_measure_ink(changed[id(ink.attempt)]) if id(ink.attempt) in changed else ink for ink in inks]
    restored += [_measure_ink(changed[id(ink.attempt)]) for ink in dark if id(ink.attempt) in changed]
    return list(_split_lines(restored, _find_pitches(restored))), [each for each in poor if id(each) not in changed]


def _is_level(each: LineAttempt) -> bool:
    return each.turn == UPRIGHT and not each.spot.tilt


def _restore_letters(ink: LineInk, letters: Sequence[ShapedLetter]) -> LineAttempt:
    """Return an attempt with the letters that shapes tell; those that were read stay as certain as they are."""
    known = ink.letters
    width, left = ink.mask.shape[1], ink.attempt.frame.origin[0]
    return replace(
        ink.attempt,
        letters=[
            Character(
                each.text,
                (each.centre - left) / width,
                each.likeness if each.source is None else known[each.source].confidence,
                float(each.spaced),
            )
            for each in letters
        ],
    )


def _split_lines(inks: Sequence[LineInk], pitches: Sequence[float | None]) -> Iterator[TextLine]:
    """Yield the lines of attempts: usually one of each, more where a wide blank divides it."""
    for ink, pitch in zip(inks, pitches, strict=True):
        height, width = ink.mask.shape
        letters = correct_case(ink.attempt.letters, ink.strokes, ink.mask[slice(*ink.rows)])
        for piece in split_runs(letters, ink.strokes, width, height, pitch):
            first, last = trim_rows(ink.mask, ink.rows, (piece.left, piece.right))
            box = ink.attempt.frame.map_box(piece.left, first, piece.right, last)
            middles = _map_middles(ink.attempt, piece, pitch) if pitch else None
            yield TextLine(piece.text, box, piece.confidence, doubtful=piece.doubtful, middles=middles)


def _map_middles(attempt: LineAttempt, piece: TextRun, pitch: float) -> tuple[float, float] | None:
    """Return where the middles of the first and last letter are; None where they are beside the ink."""
    first, last = piece.middles
    away = [first - piece.left, piece.right - last]
    if attempt.turn != UPRIGHT or not all(-_BESIDE_INK <= each / pitch <= 1 + _BESIDE_INK for each in away):
        return None
    (left, _), (across, _) = attempt.frame.origin, attempt.frame.along
    return left + first * across, left + last * across


def _find_pitches(inks: Sequence[LineInk]) -> list[float | None]:
    """Return the width of a column of each monospaced line; the lines near a short one must be monospaced too.

    The lines that are found first tell it for others, whose letters the network saw at inexact places.
    """
    known = [ink.pitch for ink in inks]
    first = _share_pitches(inks, known, [None] * len(inks))
    surer = [(pitch, 1.0) if own and pitch else own for own, pitch in zip(known, first, strict=True)]
    found = _share_pitches(inks, surer, first) if any(first) and not all(first) else first
    return [pitch or _find_common_pitch(ink, inks, surer) for ink, pitch in zip(inks, found, strict=True)]


def _find_common_pitch(
    ink: LineInk, inks: Sequence[LineInk], known: Sequence[tuple[float, float] | None]
) -> float | None:
    """Return the width of the columns that a line shares with lines directly above and below it, as in a short example.

    Words of other fonts are seldom regular, and never in the same columns as each other.
    """
    spot = ink.attempt.spot
    near = [
        (other, pitch[0]) for other, pitch in zip(inks, known, strict=True)
        if pitch and pitch[1] >= REGULAR and other is not ink and _is_adjacent(other.attempt.spot, spot)
    ]  # fmt: skip
    if len(near) < _COMPANIONS or not _is_level(ink.attempt):
        return None
    own, others = ink.list_centres(), [centre for other, _ in near for centre in other.list_centres()]
    texts = [letter.text for each in (ink, *(other for other, _ in near)) for letter in each.letters]
    if len(texts) < _LETTERS or 2 * sum(text.isalpha() for text in texts) <= len(texts):
        return None
    return find_common_columns(own, others, median(pitch for _, pitch in near))


def _is_adjacent(one: TextArea, other: TextArea) -> bool:
    apart = abs(one.y - other.y)
    alike = 1 / _AS_HIGH < one.height / other.height < _AS_HIGH
    return alike and other.height / 2 < apart <= _ADJACENT * other.height and _is_in_reach(one, other)


def _share_pitches(
    inks: Sequence[LineInk], known: Sequence[tuple[float, float] | None], found: Sequence[float | None]
) -> list[float | None]:
    """Return the width of a column of each line, those that are `found`, and others by the `known` ones near them."""
    long = [(ink.attempt.spot, *pitch) for ink, pitch in zip(inks, known, strict=True) if pitch]
    pitches: list[float | None] = []
    for ink, own, done in zip(inks, known, found, strict=True):
        if done:
            pitches.append(done)
            continue
        pitch = own[0] if own and own[1] >= REGULAR else None
        if pitch is None or len(ink.attempt.letters) < _CONCLUSIVE:
            shared = _find_shared_pitch(ink.attempt.spot, long)
            pitch = shared and (pitch or shared)
        pitches.append(pitch if pitch and ink.fits(pitch) else None)
    return pitches


def _find_shared_pitch(spot: TextArea, long: Sequence[tuple[TextArea, float, float]]) -> float | None:
    """Return the width of a column of the nearest lines above and below of this height if most are monospaced."""
    near = sorted(
        (abs(other.y - spot.y), pitch, fit)
        for other, pitch, fit in long
        if 1 / _AS_HIGH < other.height / spot.height < _AS_HIGH and other is not spot and _is_in_reach(other, spot)
    )[:_NEIGHBOURS]
    regular = [pitch for away, pitch, fit in near if fit >= REGULAR and away <= _FAR * spot.height]
    return median(regular) if 2 * len(regular) > max(len(near), 3) else None


def _is_in_reach(one: TextArea, other: TextArea) -> bool:
    """Return whether two areas are above each other, or nearly: what is far beside one is another text."""
    return abs(one.x - other.x) - (one.width + other.width) / 2 <= _ASIDE * max(one.height, other.height)
