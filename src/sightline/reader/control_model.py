"""Score measured places with trained models: decision trees, and a small network for the pictures of toggles.

Their weights are in controls.npz and states.npz beside this module. bench/train_controls.py writes these files, and
chooses the limits from which a score of the trees counts on packages that they were not trained on. The limits of
toggles are in toggles.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sightline.reader.toggle_features import ToggleMeasures

Floats: TypeAlias = NDArray[np.float32]
Question = Literal["button", "field", "selected", "disabled"]

WEIGHTS = "controls.npz"
STATE_WEIGHTS = "states.npz"  # of what is selected or disabled
NONE = 0.98  # from this score of the first network on, a place is no toggle, whatever the others say of it
MOST_ROWS = 512  # that are scored at once, which bounds the memory


@dataclass(frozen=True, slots=True)
class TreeModel:
    """Boosted trees for one question; a leaf leads to itself."""

    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    roots: NDArray[np.int64]
    start: float
    depth: int
    limit: float  # the least score that counts

    def score(self, rows: Floats) -> Floats:
        """Return how likely the answer is yes for each row, 0 to 1."""
        scores = [self._score_some(rows[at : at + MOST_ROWS]) for at in range(0, len(rows), MOST_ROWS)]
        return np.concatenate(scores) if scores else np.zeros(0, np.float32)

    def _score_some(self, rows: Floats) -> Floats:
        place = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        who = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            low = rows[who, self.feature[place]] <= self.threshold[place]
            place = np.where(low, self.left[place], self.right[place])
        total = self.start + self.value[place].sum(axis=1)
        share: Floats = 1 / (1 + np.exp(-total))
        return share


@dataclass(frozen=True, slots=True)
class ToggleNetworks:
    """Networks that name toggles; what one of them holds for unlikely isn't likely."""

    networks: tuple[PatchNetwork, ...]

    def score(self, measures: ToggleMeasures) -> Floats:
        """Return how likely each answer is for each place, by the geometric mean of the networks' scores.

        Only the first network looks at what it holds for none almost certainly.
        """
        shares = self.networks[0].score(measures)
        doubtful = np.flatnonzero(shares[:, 0] < NONE)
        if len(doubtful):
            some = ToggleMeasures(measures.own[doubtful], measures.around[doubtful], measures.numbers[doubtful])
            scores = [shares[doubtful], *(network.score(some) for network in self.networks[1:])]
            odds = np.prod(scores, axis=0) ** (1 / len(scores))
            shares[doubtful] = odds / odds.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True, slots=True)
class PatchNetwork:
    """A network of two convolutions over each of two small pictures, then full layers that read numbers too."""

    weights: Mapping[str, Floats]

    def score(self, measures: ToggleMeasures) -> Floats:
        """Return how likely each answer is for each place; each row sums to 1."""
        some = range(0, len(measures.numbers), MOST_ROWS // 2)
        return np.concatenate([self._score_some(measures, slice(at, at + MOST_ROWS // 2)) for at in some])

    def _score_some(self, measures: ToggleMeasures, part: slice) -> Floats:
        numbers = (measures.numbers[part] - self.weights["middle"]) / self.weights["scale"]
        pieces = [self._look(measures.own[part], "own"), self._look(measures.around[part], "around"), numbers]
        signal = np.concatenate(pieces, axis=1)
        signal = np.maximum(signal @ self.weights["full weight"] + self.weights["full bias"], 0)
        total = signal @ self.weights["last weight"] + self.weights["last bias"]
        odds = np.exp(total - total.max(axis=1, keepdims=True))
        shares: Floats = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def _look(self, patches: Floats, name: str) -> Floats:
        signal = patches
        for layer in (1, 2):
            weight, bias = self.weights[f"{name} {layer} weight"], self.weights[f"{name} {layer} bias"]
            signal = _halve(np.maximum(_convolve(signal, weight) + bias, 0))
        return signal.reshape(len(patches), -1)


def _convolve(signal: Floats, weight: Floats) -> Floats:
    """Return the convolution of pictures (row, column, channel) with kernels of 3 by 3, without a margin."""
    view = np.lib.stride_tricks.sliding_window_view(signal, (3, 3), axis=(1, 2))  # ..., channel, row, column
    count, high, wide = view.shape[:3]
    result: Floats = view.reshape(count, high, wide, -1) @ weight
    return result


def _halve(signal: Floats) -> Floats:
    """Return the largest of each 2 by 2 pixels; an odd row or column at the end is left out."""
    count, high, wide, depth = signal.shape
    even = signal[:, : high // 2 * 2, : wide // 2 * 2]
    most: Floats = even.reshape(count, high // 2, 2, wide // 2, 2, depth).max(axis=(2, 4))
    return most


@cache
def _load_weights(name: str) -> Mapping[str, NDArray[np.generic]]:
    data = files("sightline.reader").joinpath(name).read_bytes()
    with np.load(BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@cache
def load_trees(question: Question) -> TreeModel:
    """Return the trees that answer a question."""
    weights = _load_weights(STATE_WEIGHTS if question in ("selected", "disabled") else WEIGHTS)

    def pick_places(name: str) -> NDArray[np.int64]:
        return weights[f"{question} {name}"].astype(np.int64)

    def pick_values(name: str) -> Floats:
        return weights[f"{question} {name}"].astype(np.float32)

    start, depth, limit = map(float, pick_values("facts"))
    return TreeModel(
        pick_places("feature"), pick_values("threshold"), pick_places("left"), pick_places("right"),
        pick_values("value"), pick_places("roots"), start, int(depth), limit,
    )  # fmt: skip


@cache
def load_toggle_networks() -> ToggleNetworks:
    """Return the two networks that name a toggle and its state, fitted to fewer and to more packages."""
    found = {name: each.astype(np.float32) for name, each in _load_weights(WEIGHTS).items()}
    own, older = (
        {name.removeprefix(start): each for name, each in found.items() if name.startswith(start)}
        for start in ("toggle ", "older toggle ")
    )
    return ToggleNetworks((PatchNetwork(own), PatchNetwork(older)))
