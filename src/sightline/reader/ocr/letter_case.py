"""Tell small letters from capitals of the same shape by how high their ink is: the network guesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from sightline.reader.ocr.line_image import Mask
from sightline.reader.ocr.recognizer import Character, Stroke, find_nearest_stroke

_SMALL, _TALL = frozenset("aemnr"), frozenset("bdhklABDEFGHKLMNPRTY")  # letters that tell both heights
_ALIKE = frozenset("cosvwxzCOSVWXZ0")  # letters whose case is told by their height alone
_SURE = 0.98  # what the network read with more certainty stays
_SPACED = 0.3  # probability of a space between two words
_LEAST = 2  # pixels by which capitals are higher, and letters that tell it
_LOW, _HIGH = 0.3, 0.7  # share of that difference below which a letter is small, and above which it is a capital
_FAIRLY_HIGH = 0.45  # the same where letters with ascenders, which may be higher than capitals, tell how high these are
_AS_HIGH, _HIGHER = 0.92, 1.25  # the same where a line has only capitals, or only small letters


def correct_case(letters: Sequence[Character], strokes: Sequence[Stroke], mask: Mask) -> Sequence[Character]:
    """Return the letters of a line; those whose case their ink contradicts are changed."""
    doubtful = [at for at, letter in enumerate(letters) if letter.text in _ALIKE and letter.confidence < _SURE]
    if not doubtful or not strokes:
        return letters
    width = mask.shape[1]
    homes = [find_nearest_stroke(strokes, letter.place * width) if letter.text.strip() else None for letter in letters]
    shared = Counter(homes)
    highs = dict(zip(strokes, _measure_heights(letters, homes, strokes, mask), strict=True))
    known = {at: highs[home] for at, home in enumerate(homes) if home is not None and shared[home] == 1}
    words = _number_words(letters)
    changed = list(letters)
    for at in doubtful:
        if at in known:
            own = {place: high for place, high in known.items() if words[place] == words[at]}
            text = _choose_case(letters[at].text, known[at], *_select_heights(letters, own))
            if text is None:
                text = _choose_case(letters[at].text, known[at], *_select_heights(letters, known))
            changed[at] = replace(letters[at], text=text or letters[at].text)
    return changed


def choose_case_of_share(text: str, share: float) -> str:
    """Return a letter in the case that its height tells, which is 0 for that of an x, and 1 for that of a capital."""
    if text not in _ALIKE or _LOW <= share < _FAIRLY_HIGH:
        return text
    return text.upper() if share >= _FAIRLY_HIGH else text.lower().replace("0", "o")


def _number_words(letters: Sequence[Character]) -> list[int]:
    """Return the number of the word that each letter is in: another word may be in another font."""
    numbers, word = list[int](), 0
    for letter in letters:
        word += not letter.text.strip() or letter.space >= _SPACED
        numbers.append(word)
    return numbers


def _select_heights(letters: Sequence[Character], known: Mapping[int, float]) -> tuple[list[float], list[float]]:
    """Return the heights of letters that are small, and of those that are tall."""
    small, tall = ([high for at, high in known.items() if letters[at].text in kind] for kind in (_SMALL, _TALL))
    return small, tall


def _measure_heights(
    letters: Sequence[Character], homes: Sequence[Stroke | None], strokes: Sequence[Stroke], mask: Mask
) -> list[float]:
    """Return how far each stroke is above the line on which the letters are written."""
    high = len(mask)
    first = np.where(mask.any(0), mask.argmax(0), high)
    last = np.where(mask.any(0), high - mask[::-1].argmax(0), 0)
    starts = [start for start, _ in strokes]
    tops, bottoms = np.minimum.reduceat(first, starts), np.maximum.reduceat(last, starts)
    ends = {stroke: int(bottom) for stroke, bottom in zip(strokes, bottoms, strict=True)}
    plain = [
        ends[home] for letter, home in zip(letters, homes, strict=True)
        if home is not None and letter.text in _SMALL | _TALL
    ]  # fmt: skip
    base = median(plain) if plain else float(high)
    return [base - float(top) for top in tops]


def _choose_case(text: str, high: float, small: Sequence[float], tall: Sequence[float]) -> str | None:
    """Return a letter as high as its ink is; None if the others don't tell."""
    if small and tall:
        low, top = median(small), median(tall)
        if top - low < _LEAST or len(small) + len(tall) <= _LEAST:
            return None
        share = (high - low) / (top - low)
        is_small, is_tall = share < _LOW, share > _HIGH
    elif len(tall) >= _LEAST:
        is_small, is_tall = False, high >= _AS_HIGH * median(tall)
    elif len(small) >= _LEAST:
        is_small, is_tall = False, _LEAST + median(small) <= high and high >= _HIGHER * median(small)
    else:
        return None
    if text == "0":
        return "o" if is_small else text
    return text.lower() if is_small else text.upper() if is_tall else text
