"""Read a page: where its lines are, what each says, and how certain that is.

engine = open_engine(data_folder)     # a Refusal where no weights are installed
lines = read_lines(pixels, engine)    # pixels: uint8, height x width x RGB; TextLines from top to bottom
page = read_page(pixels, engine)      # also the rotation of the page and what could not be read
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sightline.model.geometry import Box
from sightline.reader.ocr.detector import find_text_areas
from sightline.reader.ocr.line_attempt import LineAttempt, find_line_ink, make_lines
from sightline.reader.ocr.line_image import (
    DOWNWARD,
    UPRIGHT,
    UPSIDE_DOWN,
    UPWARD,
    TextArea,
    cut_columns,
    cut_line_image,
    find_ink_columns,
    remove_leading_mark,
)
from sightline.reader.ocr.missed_ink import add_missed_ink
from sightline.reader.ocr.recognizer import (
    AdaptiveRecognizer,
    choose_stretch,
    compute_scaled_width,
    has_cjk,
    is_doubtful_script,
    is_foreign_script,
    recognize_characters,
)
from sightline.reader.ocr.weights import OcrEngine, OcrModel
from sightline.reader.reading import Pixels, TextLine

HasTime = Callable[[], bool]

_READ = 0.9  # a less certain line counts as not read; text in an unknown script scores lower
_MUCH, _SEVERAL = 0.4, 3  # share of the text, and lines: where this much was not read, the rest is doubtful
_WIDEST = 80  # columns with ink that a letter covers at most
_TALL = 1.5  # a line this many times as high as wide is vertical
_SINGLE = 3.0  # but a single letter may be this many times as high as wide
_POOR = 0.75  # below it another orientation is tried
_SURE, _UNSURE = 0.995, 0.9  # below the first the exact model reads too, within a budget; below the second always
_SHARE, _MOST = 0.25, 3_000  # that budget: a share of the columns read, and a number of columns
_SMALL_PRINT = 16  # pixels: for lines of this height the number of columns is not limited
_FLIPPED, _BETTER = 6, 0.1  # lines that are tried upside down first, and how much more certain they must become
_PIECES = 4  # pieces into which a line is divided to be read, at most
_PIECE_GAP, _PIECE_EDGE = 0.3, 0.3  # heights of the ink: the blank between two pieces, and what is kept around each
_STROKES = {"一": "—", "二": "=", "十": "+", "井": "#", "非": "#"}
_FIGURED = re.compile(r"[0-9][lIO]|[lIO][0-9]")


@dataclass(frozen=True, slots=True)
class OcrPage:
    lines: tuple[TextLine, ...]
    turned: int = 0  # degrees clockwise by which it was rotated for reading
    unread: tuple[Box, ...] = ()  # looks like text and could not be read
    late: tuple[Box, ...] = ()  # lines that there was no time to read
    searched: bool = True  # whether all of the image was searched


def read_lines(pixels: Pixels, engine: OcrEngine) -> tuple[TextLine, ...]:
    """Return the lines of an image."""
    return read_page(pixels, engine).lines


def read_page(pixels: Pixels, engine: OcrEngine, has_time: HasTime = lambda: True) -> OcrPage:
    """Read an image from top to bottom. When `has_time` returns False, return what was read so far."""
    first = engine.get_model("tiny") or engine.get_model("small")
    if first is None:
        return OcrPage(())
    spots, searched = find_text_areas(pixels, first.detector, has_time)
    spots = sorted(add_missed_ink(pixels, spots), key=lambda spot: spot.y)
    second = engine.get_model("small") or first
    tried = list(_read_areas(pixels, spots, AdaptiveRecognizer(first, second), has_time))
    tried = _retry_in_page_turn(pixels, tried, first, has_time)
    tried = _read_exactly(tried, second, has_time)
    late = tuple(_find_area_box(pixels, spot) for spot in spots[len(tried) :])
    lines_in_pieces = [_read_pieces(each, second, has_time) for each in tried]
    good = _keep_readable([piece for pieces in lines_in_pieces for piece in pieces])
    kept = {id(piece) for piece in good}
    poor = [
        piece
        for each, pieces in zip(tried, lines_in_pieces, strict=True)
        for piece in (pieces if any(id(piece) in kept for piece in pieces) else [each])  # unread: one place
        if id(piece) not in kept
    ]
    turned = 90 * _find_common_turn(good)
    made, poor = make_lines(pixels, good, poor)
    found = sorted(made, key=lambda line: _sort_key(line, turned))
    unread = [_find_ink_box(piece) for piece in poor]
    unread += [line.box for line in found if line.confidence < _READ]  # an uncertain piece of a certain line
    lines = tuple(replace_lone_strokes([line for line in found if line.confidence >= _READ]))
    return OcrPage(lines, turned, tuple(sorted(unread, key=lambda box: (box.y, box.x))), late, searched)


def replace_lone_strokes(lines: Sequence[TextLine]) -> list[TextLine]:
    """Replace lone Chinese letters by the signs that look like them where no other text is Chinese or Japanese."""
    if any(has_cjk(line.text) and line.text not in _STROKES for line in lines):
        return list(lines)
    return [replace(line, text=_STROKES.get(line.text, line.text)) for line in lines]


def _keep_readable(tried: Sequence[LineAttempt]) -> list[LineAttempt]:
    """Return the attempts that were read in a known script."""
    good = [each for each in tried if each.confidence >= _READ and not _has_skipped_ink(each)]
    good = [each for each in good if not is_foreign_script(each.letters, each.confidence)]
    few = len(tried) - len(good) < _SEVERAL
    if few or sum(map(_estimate_cost, good)) > (1 - _MUCH) * sum(map(_estimate_cost, tried)):
        return good
    return [each for each in good if not is_doubtful_script(each.letters, each.confidence)]


def _has_skipped_ink(each: LineAttempt) -> bool:
    """Return whether most of what is written was skipped."""
    budget = _WIDEST * sum(bool(letter.text.strip()) for letter in each.letters)
    if _estimate_cost(each) <= budget:
        return False
    mask, top, bottom = find_line_ink(each)
    inked = sum(end - start for start, end in find_ink_columns(mask, top, bottom))
    return inked * _estimate_cost(each) > budget * len(mask[0])


def _read_areas(
    pixels: Pixels, spots: Sequence[TextArea], pace: AdaptiveRecognizer, has_time: HasTime
) -> Iterator[LineAttempt]:
    for spot in spots:
        if not has_time():
            return
        yield _read_area(pixels, spot, pace)


def _list_turns(spot: TextArea) -> tuple[int, ...]:
    if spot.height < _TALL * spot.width:
        return (UPRIGHT,)
    return (UPRIGHT, UPWARD, DOWNWARD) if spot.height < _SINGLE * spot.width else (UPWARD, DOWNWARD)


def _read_area(pixels: Pixels, spot: TextArea, pace: AdaptiveRecognizer) -> LineAttempt:
    """Return the most certain of several orientations; the first that is good enough ends the search."""
    best: LineAttempt | None = None
    for turn in _list_turns(spot):
        frame = remove_leading_mark(cut_line_image(pixels, spot, turn))
        found = LineAttempt(spot, turn, frame, *pace.read(frame.picture))
        if best is None or found.confidence > best.confidence:
            best = found
        if best.confidence >= _POOR:
            break
    assert best is not None
    return best


def _retry_in_page_turn(
    pixels: Pixels, tried: list[LineAttempt], reader: OcrModel, has_time: HasTime
) -> list[LineAttempt]:
    """Read uncertain lines again in the page's own orientation."""
    stance = UPSIDE_DOWN if _is_upside_down(pixels, tried, reader, has_time) else _find_common_turn(tried)
    return [
        max(each, _read_at_turn(pixels, each, stance, reader), key=lambda one: one.confidence)
        if each.confidence < _UNSURE and each.turn != stance and each.turn % 2 == stance % 2 and has_time()
        else each
        for each in tried
    ]


def _is_upside_down(pixels: Pixels, tried: list[LineAttempt], reader: OcrModel, has_time: HasTime) -> bool:
    """Return whether poorly read lines read better upside down."""
    poor = [each for each in tried if each.turn == UPRIGHT and each.confidence < _POOR]
    if 2 * sum(map(_estimate_cost, poor)) <= sum(map(_estimate_cost, tried)):
        return False
    some = sorted(poor, key=_estimate_cost, reverse=True)[:_FLIPPED]
    better = [
        each
        for each in some
        if has_time() and _read_at_turn(pixels, each, UPSIDE_DOWN, reader).confidence > each.confidence + _BETTER
    ]
    return 2 * len(better) > len(some)


def _read_at_turn(pixels: Pixels, each: LineAttempt, turn: int, reader: OcrModel) -> LineAttempt:
    frame = cut_line_image(pixels, each.spot, turn)
    return LineAttempt(each.spot, turn, frame, recognize_characters(frame.picture, reader), reader)


def _estimate_cost(each: LineAttempt) -> int:
    return compute_scaled_width(each.frame.picture)


def _read_exactly(tried: Sequence[LineAttempt], reader: OcrModel, has_time: HasTime) -> list[LineAttempt]:
    """Read again, with the exact model, the lines that the quick model was unsure of or knows less well."""
    whole = _SHARE * sum(map(_estimate_cost, tried))
    left = {True: whole, False: min(_MOST, whole)}
    again: dict[int, LineAttempt] = {}
    for each in sorted(tried, key=lambda each: each.confidence):
        if each.reader is reader or not has_time():
            continue
        if (
            each.confidence >= _UNSURE
            and not _has_cjk_text(each)
            and not (each.confidence < _SURE and _has_ambiguous_digits(each))
        ):
            small = len(each.frame.picture) <= _SMALL_PRINT
            left[small] -= _estimate_cost(each)
            if each.confidence >= _SURE or left[small] < 0:
                continue
        found = recognize_characters(
            each.frame.picture, reader, choose_stretch(_estimate_cost(each), each.letters, reader)
        )
        other = replace(each, letters=found, reader=reader)
        if other.confidence > each.confidence or other.confidence < _READ:
            again[id(each)] = other
    return [again.get(id(each), each) for each in tried]


def _read_pieces(each: LineAttempt, reader: OcrModel, has_time: HasTime) -> list[LineAttempt]:
    """Return the pieces of a line that could not be read, each read alone: an icon or a mark spoils what is beside it.

    What remains unread stays one piece if no other was read.
    """
    if each.confidence >= _READ or each.turn != UPRIGHT or not has_time():
        return [each]
    mask, top, bottom = find_line_ink(each)
    blank, reach = _PIECE_GAP * (bottom - top), round(_PIECE_EDGE * (bottom - top))
    groups: list[tuple[int, int]] = []
    for start, end in find_ink_columns(mask, top, bottom):
        if groups and start - groups[-1][1] < blank:
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((start, end))
    if not 1 < len(groups) <= _PIECES:
        return [each]
    frames = [cut_columns(each.frame, start - reach, end + reach) for start, end in groups]
    found = [
        replace(each, frame=frame, letters=recognize_characters(frame.picture, reader), reader=reader)
        for frame in frames
    ]
    certain = [piece if _is_certain_piece(piece) else replace(piece, letters=()) for piece in found]
    return certain if any(piece.letters for piece in certain) else [each]


def _is_certain_piece(piece: LineAttempt) -> bool:
    """Return whether a piece is text: a single character must be certain, since icons look like one."""
    return piece.confidence >= (_READ if len(piece.letters) > 1 else _SURE)


def _has_cjk_text(each: LineAttempt) -> bool:
    return any(has_cjk(letter.text) for letter in each.letters)


def _has_ambiguous_digits(each: LineAttempt) -> bool:
    """Return whether a letter is beside a digit that looks like it: the quick model confuses them."""
    return bool(_FIGURED.search("".join(letter.text for letter in each.letters)))


def _find_common_turn(tried: Sequence[LineAttempt]) -> int:
    """Return the orientation of most of the text."""
    letters: Counter[int] = Counter()
    for each in tried:
        letters[each.turn] += len(each.letters)
    return letters.most_common(1)[0][0] if letters else UPRIGHT


def _sort_key(line: TextLine, turned: int) -> tuple[int, int]:
    box = line.box
    return {0: (box.y, box.x), 90: (box.x, -box.bottom), 180: (-box.bottom, -box.right), 270: (-box.right, box.y)}[
        turned
    ]


def _find_area_box(pixels: Pixels, spot: TextArea) -> Box:
    """Return the rectangle of a line that was not read."""
    frame = cut_line_image(pixels, spot)
    height, width = frame.picture.shape[:2]
    return frame.map_box(0, 0, width, height)


def _find_ink_box(each: LineAttempt) -> Box:
    """Return the rectangle around the ink of an attempt, whatever it says."""
    mask, top, bottom = find_line_ink(each)
    strokes = find_ink_columns(mask, top, bottom) or [(0, mask.shape[1])]
    return each.frame.map_box(strokes[0][0], top, strokes[-1][1], bottom)
