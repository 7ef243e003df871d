"""Score measured places with trained models: decision trees, and a small network for the pictures of toggles.

Their weights are in controls.npz beside this module. bench/train_controls.py writes that file, and chooses the limits
from which a score counts on packages that a model was not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Question = Literal["button", "field"]

WEIGHTS = "controls.npz"
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
class NetworkModel:
    """Networks of full layers that vote; their answers exclude each other."""

    middle: Floats
    scale: Floats
    networks: tuple[tuple[tuple[Floats, Floats], ...], ...]  # the weights and biases of each layer of each network
    limits: Floats  # the least scores of a check box, a radio button and a switch

    def score(self, rows: Floats) -> Floats:
        """Return how likely each answer is for each row; each row sums to 1."""
        signal = (rows - self.middle) / self.scale
        votes: Floats = np.mean([_run_network(signal, layers) for layers in self.networks], axis=0)
        return votes


def _run_network(signal: Floats, layers: Sequence[tuple[Floats, Floats]]) -> Floats:
    for weight, bias in layers[:-1]:
        signal = np.maximum(signal @ weight + bias, 0)
    total = signal @ layers[-1][0] + layers[-1][1]
    odds = np.exp(total - total.max(axis=1, keepdims=True))
    shares: Floats = odds / odds.sum(axis=1, keepdims=True)
    return shares


@cache
def _load_weights() -> Mapping[str, NDArray[np.generic]]:
    data = files("sightline.reader").joinpath(WEIGHTS).read_bytes()
    with np.load(BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@cache
def load_trees(question: Question) -> TreeModel:
    """Return the trees that answer a question."""
    weights = _load_weights()

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
def load_toggle_network() -> NetworkModel:
    """Return the networks that name a toggle and its state."""
    weights = {name: each.astype(np.float32) for name, each in _load_weights().items() if name.startswith("toggle ")}
    count = len({name.split()[1] for name in weights if " weight " in name})
    depth = sum(name.startswith("toggle 0 weight ") for name in weights)
    return NetworkModel(
        weights["toggle middle"],
        weights["toggle scale"],
        tuple(
            tuple((weights[f"toggle {net} weight {at}"], weights[f"toggle {net} bias {at}"]) for at in range(depth))
            for net in range(count)
        ),
        weights["toggle limits"],
    )
