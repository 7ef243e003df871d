"""How wide a line is made before it is read: letters too close together get lost, letters too wide cost time.

The lines of a page that are equally high are mostly set in one font, so that those read before tell how wide the
letters of the next will be.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sightline.seers.local.engine import Reader
from sightline.seers.local.recognise import Letter, letters, width_of
from sightline.seers.local.spelling import far_east

Pixels = NDArray[np.uint8]

_COLUMNS = {"tiny": 18.8, "small": 16.5}  # of a letter, at which a reader errs least
_WIDE_COLUMNS = 30.0  # of one of the far east
_CROWDED = 0.85  # of those: a line squeezed to less than that is read again as it is
_NARROW, _BROAD = 0.6, 1.25  # how far a line is ever changed
_ENOUGH = 6  # letters that tell something
_KNOWN = 5  # lines that are remembered of each height


def stretch_for(width: int, found: Sequence[Letter], reader: Reader) -> float:
    """How a line of that width is best changed for a reader, by the letters that another has found in it."""
    if len(found) < _ENOUGH:
        return 1.0
    return _stretch(width / len(found), sum(far_east(each.text) for each in found) * 2 > len(found), reader)


def _stretch(columns: float, wide: bool, reader: Reader) -> float:
    return min(_BROAD, max(_NARROW, (_WIDE_COLUMNS if wide else _COLUMNS[reader.name]) / columns))


class Pace:
    """Reads line after line and learns from each how to read the next."""

    def __init__(self, quick: Reader, exact: Reader) -> None:
        self._quick, self._exact = quick, exact
        self._columns: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_KNOWN))
        self._wide: deque[bool] = deque([False] * _KNOWN, maxlen=_KNOWN)

    def read(self, picture: Pixels) -> tuple[list[Letter], Reader]:
        """The letters, and who has read them: the exact reader where letters of the far east are to be expected."""
        wide = sum(self._wide) * 2 > _KNOWN
        reader = self._exact if wide else self._quick
        width, known = width_of(picture), self._columns[picture.shape[0] // 2]
        stretch = _stretch(median(known), wide, reader) if known else 1.0
        found = letters(picture, reader, stretch)
        if stretch < 1 and found and width * stretch / len(found) < _CROWDED * _COLUMNS[reader.name]:
            found = letters(picture, reader)
        if len(found) >= _ENOUGH:
            known.append(width / len(found))
            self._wide.append(sum(far_east(each.text) for each in found) * 2 > len(found))
        return found, reader
