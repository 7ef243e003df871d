"""Letters of alphabets that the readers were not taught, and read as those that they know.

Cyrillic and Greek share many shapes with Latin: a reader is sure of each of them, and the words are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sightline.seers.local.recognise import Letter

_LIKE_OTHERS = frozenset("ABCEHIJKMNOPSTXYZaceijmopsxy")  # stand in Cyrillic or Greek too, as far as one can see
_AS_CAPITALS = re.compile(r"[aceopxy][BHKMT]")  # small letters of Cyrillic that look like capitals, amid a word
_GREEK = re.compile(r"[\u0370-\u03ff]")
_word = re.compile(r"[^\W\d_]{4,}")  # shorter ones are signs of a formula, or names of units
_BOXES = re.compile(r"[0OD□]{4,}")

_CERTAIN = 0.995  # surer than that, a word of such letters is a name that somebody made up
_FRAMED = 0.99  # what was sure to be zeros; the frames that stand for letters that a font lacks are less so
_SURER = 0.97  # what is read has to be as sure where much else could not be read


def is_foreign(letters: Sequence[Letter], sure: float) -> bool:
    """Whether a line by itself shows that it was written in other letters than it was read in."""
    text = _text(letters)
    words = _word.findall(text)
    if any(len(_GREEK.findall(word)) > 1 for word in words):  # Greek is known without its accents: no word is whole
        return True
    if sure < _FRAMED and _are_boxes(text):
        return True
    return sure < _CERTAIN and any(_AS_CAPITALS.search(word) and _LIKE_OTHERS.issuperset(word) for word in words)


def is_foreign_here(letters: Sequence[Letter], sure: float) -> bool:
    """The same on a page of which much could not be read: letters that may be either are those of the rest."""
    text = _text(letters)
    found = [letter for letter in text if letter.isalpha()]
    return sure < _SURER or _are_boxes(text) or (bool(found) and _LIKE_OTHERS.issuperset(found))


def _are_boxes(text: str) -> bool:
    return bool(_BOXES.fullmatch(text.replace(" ", "")))


def _text(letters: Sequence[Letter]) -> str:
    return "".join(letter.text for letter in letters)
