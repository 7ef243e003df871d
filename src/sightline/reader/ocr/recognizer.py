"""Recognise the text of one line: characters, spaces, and scripts that the models don't know.

A network labels narrow strips of the line with characters. It guesses spaces; the ink shows them. Lines of one height
are mostly in one font, so the lines read before tell how wide the next line should be. Cyrillic and Greek share many
shapes with Latin: the network is certain of each character, and the words make no sense.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import itemgetter
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.reader.ocr.weights import OcrModel
from sightline.reader.reading import Pixels

Floats = NDArray[np.float32]

HEIGHT = 48  # pixels: the height of a line that the networks expect
_WIDEST, _NARROWEST = 4096, 32  # columns: a longer line is squeezed, a shorter one padded
_COLUMNS = {"tiny": 18.8, "small": 16.5}  # columns per character at which a model makes the fewest errors
_WIDE_COLUMNS = 30.0  # columns per Chinese, Japanese or Korean character
_CROWDED = 0.85  # share of these: a line squeezed to less is read again unsqueezed
_NARROW, _BROAD = 0.6, 1.25  # the limits of stretching a line
_ENOUGH = 6  # characters that a line must have to be learnt from
_KNOWN = 5  # lines that are remembered for each height

_LIKE_OTHERS = frozenset("ABCEHIJKMNOPSTXYZaceijmopsxy")  # look the same in Cyrillic or Greek
_AS_CAPITALS = re.compile(r"[aceopxy][BHKMT]")  # small Cyrillic letters that look like capitals, within a word
_GREEK = re.compile(r"[\u0370-\u03ff]")
_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter ones may be formulas or units
_BOXES = re.compile(r"[0OD□]{4,}")

_CERTAIN = 0.995  # above this, a word of such letters is a made-up name
_FRAMED = 0.99  # above this, zeros are zeros; boxes for letters that a font lacks score lower
_SURER = 0.97  # the certainty that is required where much else could not be read

Stroke = tuple[int, int]  # the first column with ink, and one past the last

# All in shares of the height of the line's image.
_WIDE_GAP = 0.7  # a blank that is a space between Chinese, Japanese or Korean characters
_GAPS = ((0.7, 0.0), (0.5, 0.1), (0.1, 0.2), (0.0, 0.36))  # probability of a space, and the blank that it needs
_DOT_GAP = 0.22  # the same beside a dot that separates words
_DOTS = frozenset("·•")
_UNINKED = 0.1  # a character this far from all ink does not exist
_APART = 1.2  # a blank that separates two lines
DOUBTFUL = 0.6  # a character that is less certain may be another one
_ASTRAY = 0.6  # ink this far from the last character and from other ink is not text
_PITCHES = np.arange(0.35, 0.8, 0.005)  # how far apart the characters of a monospaced line may be

REGULAR = 0.7  # how well the characters of a monospaced line fit their columns, at least: 1 is exactly
_NEAR_PITCHES = np.linspace(0.98, 1.02, 41)  # how far the width of a column may be from that of other lines
_TOGETHER, _TOGETHER_SHORT = 0.6, 0.8  # how much the characters of a line, or of a short one, agree on its columns
_SHARED = 0.75  # the same for lines that are in the columns of each other
_SIMILAR = 0.05  # a wider column that fits worse by less than this is the right one: halves of it fit as well
_SAMPLE = 8  # characters that a line must have to tell that it is monospaced
_CERTAIN_SPACE = 0.9  # the network's probability of a space that is one, whatever the columns say
_UNCLEAR = (1.25, 1.85)  # columns from one character to the next, where the network decides whether a space is between
_LIKELY_SPACE = 0.3  # and the probability that it needs for that


@dataclass(frozen=True, slots=True)
class Character:
    text: str
    place: float  # its middle, as a share of the image's width
    confidence: float
    space: float = 0.0  # the probability that the network gave to a space before it


def compute_scaled_width(picture: Pixels) -> int:
    """Return the width of a line at the height that the network expects: its cost to read."""
    height, width = int(picture.shape[0]), int(picture.shape[1])
    return min(_WIDEST, max(1, round(width * HEIGHT / height)))


def recognize_characters(picture: Pixels, reader: OcrModel, stretch: float = 1.0) -> list[Character]:
    """Return the characters in an upright image of one line, stretched first.

    One line at a time: a batch costs more, because every line must be as wide as the widest.
    """
    width = max(1, round(compute_scaled_width(picture) * stretch))
    scaled = Image.fromarray(picture).resize((width, HEIGHT), Image.Resampling.BICUBIC)
    levels = np.zeros((1, 3, HEIGHT, max(width, _NARROWEST)), np.float32)
    # The network expects blue first.
    inked = levels[0, :, :, :width]
    np.multiply(np.asarray(scaled)[:, :, ::-1].transpose(2, 0, 1), np.float32(1 / 127.5), out=inked)
    inked -= 1
    strips = reader.recogniser.run(levels)[0]
    return _decode_strips(strips, reader.alphabet, levels.shape[3] / width / len(strips))


def _decode_strips(strips: Floats, alphabet: Sequence[str], step: float) -> list[Character]:
    """Return the best character of each strip, repeats joined until a strip says that nothing is new."""
    best = strips.argmax(1)
    starts = np.flatnonzero(np.diff(best, prepend=-1))
    ends = np.append(starts[1:], len(best)).tolist()
    sure = np.maximum.reduceat(strips[np.arange(len(best)), best], starts).tolist()
    blank = len(alphabet) - 1  # the space
    spaces = strips[:, blank].tolist()
    found: list[Character] = []
    last = 0
    for start, end, letter, certain in zip(starts.tolist(), ends, best[starts].tolist(), sure, strict=True):
        if letter:
            space = max(spaces[last:start], default=0.0)
            found.append(Character(alphabet[letter], (start + end) / 2 * step, certain, space))
            last = last if letter == blank else end
    return found


def choose_stretch(width: int, found: Sequence[Character], reader: OcrModel) -> float:
    """Return how to stretch a line for a model, judged by the characters that another model found in it."""
    if len(found) < _ENOUGH:
        return 1.0
    return _compute_stretch(width / len(found), sum(has_cjk(each.text) for each in found) * 2 > len(found), reader)


def _compute_stretch(columns: float, wide: bool, reader: OcrModel) -> float:
    return min(_BROAD, max(_NARROW, (_WIDE_COLUMNS if wide else _COLUMNS[reader.name]) / columns))


class AdaptiveRecognizer:
    """Reads one line after another and learns the width of characters from each."""

    def __init__(self, quick: OcrModel, exact: OcrModel) -> None:
        self._quick, self._exact = quick, exact
        self._columns: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_KNOWN))
        self._wide: deque[bool] = deque([False] * _KNOWN, maxlen=_KNOWN)

    def read(self, picture: Pixels) -> tuple[list[Character], OcrModel]:
        """Return the characters and the model that read them: the exact one where CJK text is likely."""
        wide = sum(self._wide) * 2 > _KNOWN
        reader = self._exact if wide else self._quick
        width, known = compute_scaled_width(picture), self._columns[picture.shape[0] // 2]
        stretch = _compute_stretch(median(known), wide, reader) if known else 1.0
        found = recognize_characters(picture, reader, stretch)
        if stretch < 1 and found and width * stretch / len(found) < _CROWDED * _COLUMNS[reader.name]:
            found = recognize_characters(picture, reader)
        if len(found) >= _ENOUGH:
            known.append(width / len(found))
            self._wide.append(sum(has_cjk(each.text) for each in found) * 2 > len(found))
        return found, reader


def is_foreign_script(letters: Sequence[Character], confidence: float) -> bool:
    """Return whether a line alone shows that its script is not the one it was read in."""
    text = _join_characters(letters)
    words = _WORD.findall(text)
    if any(len(_GREEK.findall(word)) > 1 for word in words):  # Greek is known without accents, so no word is complete
        return True
    if confidence < _FRAMED and _are_empty_boxes(text):
        return True
    return confidence < _CERTAIN and any(_AS_CAPITALS.search(word) and _LIKE_OTHERS.issuperset(word) for word in words)


def is_doubtful_script(letters: Sequence[Character], confidence: float) -> bool:
    """Return the same for a page of which much could not be read: ambiguous letters count as foreign."""
    text = _join_characters(letters)
    found = [letter for letter in text if letter.isalpha()]
    return confidence < _SURER or _are_empty_boxes(text) or (bool(found) and _LIKE_OTHERS.issuperset(found))


def _are_empty_boxes(text: str) -> bool:
    return bool(_BOXES.fullmatch(text.replace(" ", "")))


def _join_characters(letters: Sequence[Character]) -> str:
    return "".join(letter.text for letter in letters)


@dataclass(frozen=True, slots=True)
class TextRun:
    """A run of text and the columns that its ink covers."""

    text: str
    left: int
    right: int
    confidence: float  # mean over its characters
    doubtful: tuple[int, ...] = ()  # indexes of characters in `text` that may be wrong
    middles: tuple[float, float] = field(default=(0.0, 0.0), compare=False)  # of its first and last character


def split_runs(
    letters: Sequence[Character], strokes: Sequence[Stroke], width: int, height: int, pitch: float | None = None
) -> Iterator[TextRun]:
    """Yield the text of a line with its spaces, in several runs where wide blanks divide it.

    `pitch` is the width of a column of a monospaced line, whose spaces are the columns without a character.
    """
    run: list[Character] = []
    text, left = "", 0
    marked = list(_mark_spaces(letters, strokes, width, height))
    centres = find_centres([letter for _, letter in marked], strokes, width)
    for at, (spaced, letter) in enumerate(marked):
        if run:
            gap, middle = _find_widest_blank(strokes, run[-1].place * width, letter.place * width)
            if gap > _APART * height:
                ends = (centres[at - len(run)], centres[at - 1])
                yield _make_run(text, run, _select_strokes(strokes, left, middle), ends, height)
                run, text, left = [], "", middle
            elif pitch:
                text += " " * _count_columns((centres[at] - centres[at - 1]) / pitch, spaced)
            elif gap >= height * _choose_space_width(run[-1].text, letter.text, spaced):
                text += " "
        text += letter.text
        run.append(letter)
    if run:
        yield _make_run(text, run, _select_strokes(strokes, left, width), (centres[-len(run)], centres[-1]), height)


def _choose_space_width(before: str, after: str, spaced: float) -> float:
    """Return the blank that makes a space between two characters: the more certain the network is of one, the less.

    Where it is very certain, no blank is needed: an underline may fill it.
    """
    if has_cjk(before) and has_cjk(after):
        return _WIDE_GAP
    needed = next(gap for least, gap in _GAPS if spaced >= least)
    return min(needed, _DOT_GAP) if before in _DOTS or after in _DOTS else needed


def measure_pitch(
    letters: Sequence[Character], strokes: Sequence[Stroke], width: int, height: int
) -> tuple[float, float] | None:
    """Return the width of a column in pixels and how well the characters fit it; None for a short line.

    The middles of monospaced characters are whole numbers of columns apart.
    """
    known = [letter for letter in letters if letter.text.strip()]
    if len(known) < _SAMPLE:
        return None
    apart = np.diff(find_centres(known, strokes, width)) / height
    fits = np.cos(2 * np.pi * apart / _PITCHES[:, None]).mean(1)
    last = int(np.flatnonzero(fits >= fits.max() - _SIMILAR)[-1])
    first = max(0, last - 12)
    best = first + int(fits[first : last + 1].argmax())
    return float(_PITCHES[best] * height), float(fits[best])


def fits_pitch(letters: Sequence[Character], strokes: Sequence[Stroke], width: int, pitch: float) -> bool:
    """Return whether the characters of a line are in columns of about this width.

    Either the distances of neighbours are whole columns, or the middles are where columns are, as far as most tell:
    letters such as r and f are beside the middle of their column.
    """
    centres = np.array(find_centres([letter for letter in letters if letter.text.strip()], strokes, width))
    if len(centres) < 2 or float(np.cos(2 * np.pi * np.diff(centres) / pitch).mean()) >= REGULAR:
        return True
    return are_in_columns(centres, pitch)


def are_in_columns(middles: Sequence[float] | Floats, pitch: float) -> bool:
    """Return whether places are where columns of about this width have their middles."""
    turns = np.asarray(middles)[:, None] * (2 * np.pi / (pitch * _NEAR_PITCHES))
    together = float(np.hypot(np.cos(turns).mean(0), np.sin(turns).mean(0)).max())
    return together >= (_TOGETHER if len(middles) >= _SAMPLE else _TOGETHER_SHORT)


def find_common_columns(middles: Sequence[float], others: Sequence[float], pitch: float) -> float | None:
    """Return the width of columns, about `pitch`, in which both the middles of a line and those of others are."""
    pitches = pitch * _NEAR_PITCHES
    turns = [np.exp(2j * np.pi * np.asarray(each)[:, None] / pitches) for each in (middles, others)]
    whole = np.concatenate(turns).mean(0)
    best = int(np.abs(whole).argmax())
    along = [float((each[:, best] / whole[best] * abs(whole[best])).real.mean()) for each in turns]
    return float(pitches[best]) if min(along) >= _SHARED else None


def find_centres(letters: Sequence[Character], strokes: Sequence[Stroke], width: int) -> list[float]:
    """Return the middle of each character's ink, or where the network saw it if it touches another."""
    homes = [find_nearest_stroke(strokes, letter.place * width) for letter in letters]
    alone = Counter(homes)
    return [
        letter.place * width if home is None or alone[home] > 1 else (home[0] + home[1]) / 2
        for letter, home in zip(letters, homes, strict=True)
    ]


def find_nearest_stroke(strokes: Sequence[Stroke], place: float) -> Stroke | None:
    """Return the ink that is nearest to a place; None if there is none."""
    nearest = bisect_right(strokes, place, key=itemgetter(0))
    near = strokes[max(0, nearest - 1) : nearest + 1]
    return min(near, key=lambda stroke: max(stroke[0] - place, place - stroke[1], 0.0), default=None)


def _count_columns(apart: float, spaced: float) -> int:
    """Return how many empty columns are between two characters, which are this many columns apart."""
    if spaced >= _CERTAIN_SPACE:
        return max(1, round(apart) - 1)
    if _UNCLEAR[0] <= apart <= _UNCLEAR[1]:
        return int(spaced >= _LIKELY_SPACE)
    return max(0, round(apart) - 1)


def has_cjk(text: str) -> bool:
    """Return whether a text has Chinese, Japanese or Korean characters."""
    return any(ord(letter) >= 0x2E80 for letter in text)


def _mark_spaces(
    letters: Sequence[Character], strokes: Sequence[Stroke], width: int, height: int
) -> Iterator[tuple[float, Character]]:
    """Yield each character and how probable a space before it is. An underscore without ink was a space."""
    spaced = 0.0
    for letter in letters:
        lined = letter.text == "_" and _measure_distance_to_ink(strokes, letter.place * width) > _UNINKED * height
        if letter.text.strip() and not lined:
            yield max(spaced, letter.space), letter
            spaced = 0.0
        else:
            spaced = max(spaced, letter.confidence, letter.space)


def _measure_distance_to_ink(strokes: Sequence[Stroke], place: float) -> float:
    """Return the distance to the nearest ink."""
    nearest = find_nearest_stroke(strokes, place)
    return 0.0 if nearest is None else max(nearest[0] - place, place - nearest[1], 0.0)


def _find_widest_blank(strokes: Sequence[Stroke], start: float, end: float) -> tuple[float, int]:
    """Return the widest blank between two places, and its middle."""
    widest, middle = 0.0, int(end)
    nearest = bisect_right(strokes, start, key=itemgetter(0))
    for (_, before), (after, _) in pairwise(islice(strokes, max(0, nearest - 1), None)):
        if before > end:
            break
        low, high = max(before, start), min(after, end)
        if high - low > widest:
            widest, middle = high - low, int((low + high) / 2)
    return widest, middle


def _select_strokes(strokes: Sequence[Stroke], left: int, right: int) -> list[Stroke]:
    return [(start, end) for start, end in strokes if end > left and start < right]


def _make_run(
    text: str, run: Sequence[Character], strokes: Sequence[Stroke], ends: tuple[float, float], height: int
) -> TextRun:
    """Return a run whose first and last characters have their middles at `ends`; ink far outside of them is not its."""
    first, last = ends
    kept = list(strokes) or [(int(first), int(last) + 1)]
    while len(kept) > 1 and 0 <= first - kept[0][1] > _ASTRAY * height - (kept[1][0] - kept[0][1]):
        del kept[0]
    while len(kept) > 1 and 0 <= kept[-1][0] - last > _ASTRAY * height - (kept[-1][0] - kept[-2][1]):
        del kept[-1]
    sure = fmean(character.confidence for character in run)
    return TextRun(text, kept[0][0], kept[-1][1], sure, tuple(_find_doubtful(text, run)), ends)


def _find_doubtful(text: str, run: Sequence[Character]) -> Iterator[int]:
    """Yield where in the text the uncertain characters are; spaces come from the ink and are not in `run`."""
    at = 0
    for character in run:
        at = text.index(character.text, at)
        if character.confidence < DOUBTFUL:
            yield from range(at, at + len(character.text))
        at += len(character.text)
