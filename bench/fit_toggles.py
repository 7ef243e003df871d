"""Fit the network that names toggles; needs jax. fit_controls.py calls it.

It sees two small pictures of a place and a row of numbers, as control_model.PatchNetwork does. While it is fitted, the
pictures are moved by a pixel, made paler and less colourful, and numbers are left out, so that it depends on none of
them alone. Then it is fitted again to the places without a toggle that it took for one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

STEP = 170  # values of a small picture are kept in steps of 1 / STEP, as training_rows has it
LAYERS = {"own": (3, 12, 24), "around": (2, 6, 10)}  # channels of each small picture and of its convolutions
WIDTH, ANSWERS = 64, 8
BATCH, RATE, DECAY = 256, 2.5e-3, 2e-4
ROWS = 64_000  # of an epoch: as many of all places, others each time
EPOCHS = (4, 4)  # before and after hard places are chosen
MANY, HARD = 24_000, 18_000  # places without a toggle: some of all, and those that were taken for one
SEARCHED = 120_000  # places of which the hard ones are chosen

UNTOLD = 0.9  # from this score on, a place of a package's page is probably a toggle of which the DOM says nothing

Weights = dict[str, Any]


@dataclass
class TogglePlaces:
    """Small pictures, numbers, answers and weights of places."""

    own: NDArray[np.uint8]
    around: NDArray[np.uint8]
    numbers: NDArray[np.float32]
    answers: NDArray[np.int64]
    weights: NDArray[np.float32]
    trusted: NDArray[np.bool_]  # whether the DOM tells every toggle: not on each page around a package

    def select(self, rows: NDArray[np.int64]) -> "TogglePlaces":
        return TogglePlaces(
            self.own[rows], self.around[rows], self.numbers[rows], self.answers[rows], self.weights[rows],
            self.trusted[rows],
        )  # fmt: skip


def start_weights(numbers: int) -> Weights:
    chance = np.random.default_rng(5)

    def draw(*shape: int) -> NDArray[np.float32]:
        return (chance.normal(size=shape) * np.sqrt(2 / shape[0])).astype(np.float32)

    weights: Weights = {}
    size = numbers
    for name, (depth, one, two) in LAYERS.items():
        weights |= {f"{name} 1 weight": draw(9 * depth, one), f"{name} 1 bias": np.zeros(one, np.float32)}
        weights |= {f"{name} 2 weight": draw(9 * one, two), f"{name} 2 bias": np.zeros(two, np.float32)}
        size += 9 * two
    weights |= {"full weight": draw(size, WIDTH), "full bias": np.zeros(WIDTH, np.float32)}
    return {**weights, "last weight": draw(WIDTH, ANSWERS), "last bias": np.zeros(ANSWERS, np.float32)}


def _convolve(signal: Any, weight: Any) -> Any:
    depth = signal.shape[-1]
    kernel = weight.reshape(depth, 3, 3, -1).transpose(1, 2, 0, 3)  # channel, row, column: as numpy's windows are
    return jax.lax.conv_general_dilated(signal, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _look(weights: Weights, patches: Any, name: str) -> Any:
    signal = patches
    for layer in (1, 2):
        signal = jnp.maximum(_convolve(signal, weights[f"{name} {layer} weight"]) + weights[f"{name} {layer} bias"], 0)
        even = signal[:, : signal.shape[1] // 2 * 2, : signal.shape[2] // 2 * 2]
        rows = jnp.maximum(even[:, ::2], even[:, 1::2])
        signal = jnp.maximum(rows[:, :, ::2], rows[:, :, 1::2])
    return signal.reshape(len(patches), -1)


def run_network(weights: Weights, own: Any, around: Any, numbers: Any, mask: Any = 1.0) -> Any:
    pieces = [_look(weights, own, "own"), _look(weights, around, "around"), numbers]
    signal = jnp.maximum(jnp.concatenate(pieces, axis=1) @ weights["full weight"] + weights["full bias"], 0)
    return (signal * mask) @ weights["last weight"] + weights["last bias"]


def _measure_loss(weights: Weights, batch: tuple[Any, ...]) -> Any:
    own, around, numbers, mask, answers, share = batch
    odds = jax.nn.log_softmax(run_network(weights, own, around, numbers, mask))
    target = 0.97 * jax.nn.one_hot(answers, ANSWERS) + 0.03 / ANSWERS
    return -(share * (odds * target).sum(axis=1)).sum() / share.sum()


@jax.jit
def _step(state: tuple[Any, ...], batch: tuple[Any, ...], rate: float) -> tuple[Any, ...]:
    """Take one step of Adam."""
    weights, first, second, count = state
    slope = jax.grad(_measure_loss)(weights, batch)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)
    count = count + 1
    grow = jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    weights = jax.tree.map(
        lambda w, m, v: w - rate * (grow * m / (jnp.sqrt(v) + 1e-8) + DECAY * w), weights, first, second
    )
    return weights, first, second, count


_run = jax.jit(run_network)


def _change(chance: np.random.Generator, patches: NDArray[np.float32], gain: NDArray[np.float32]) -> Any:
    """Move pictures by up to a pixel, and change how strong, how colourful and how sharp they are.

    What is pale becomes paler or stronger: borders, knobs and fills of other packages differ in little else.
    """
    down, across = chance.integers(-1, 2, 2)
    moved = np.pad(patches, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    side = patches.shape[1]
    moved = moved[:, 1 + down : 1 + down + side, 1 + across : 1 + across + side] * gain[:, None, None, None]
    curve = np.exp(chance.normal(0, 0.3, (len(patches), 1, 1, 1))).astype(np.float32)
    moved[..., :-1] = moved[..., :-1] ** curve
    soft = (chance.random((len(patches), 1, 1, 1)) * (chance.random((len(patches), 1, 1, 1)) < 0.35)).astype(np.float32)
    moved += 0.5 * soft * (np.roll(moved, chance.choice((-1, 1)), axis=int(chance.integers(1, 3))) - moved)
    moved[..., -1] *= chance.uniform(0.2, 1.1, (len(patches), 1, 1)).astype(np.float32)
    return moved + (0.05 * chance.random(moved.shape, dtype=np.float32) - 0.025)


def _list_batches(
    places: TogglePlaces, middle: Any, scale: Any, epochs: int, chance: np.random.Generator
) -> Iterator[tuple[Any, ...]]:
    for _ in range(epochs):
        order = chance.permutation(len(places.answers))[:ROWS]
        for at in range(0, len(order) - BATCH + 1, BATCH):
            some = places.select(order[at : at + BATCH])
            numbers = (some.numbers - middle) / scale
            numbers = numbers + chance.normal(0, 0.1, numbers.shape)
            kept = (chance.random(numbers.shape) > 0.12) & (chance.random((len(numbers), 1)) > 0.08)
            gain = chance.uniform(0.85, 1.1, BATCH).astype(np.float32)
            mask = (chance.random((BATCH, WIDTH)) > 0.25) / 0.75
            own, around = some.own / np.float32(STEP), some.around / np.float32(STEP)
            yield (
                _change(chance, own, gain), _change(chance, around, gain),
                np.where(kept, numbers, 0).astype(np.float32), mask.astype(np.float32), some.answers, some.weights,
            )  # fmt: skip


def fit_network(places: TogglePlaces) -> Weights:
    """Return the weights, with the middle and scale of the numbers."""
    chance = np.random.default_rng(7)
    toggles, others = np.flatnonzero(places.answers > 0), np.flatnonzero(places.answers == 0)
    middle, scale = places.numbers.mean(axis=0), places.numbers.std(axis=0) + 0.05
    weights = start_weights(places.numbers.shape[1])
    state = (weights, jax.tree.map(np.zeros_like, weights), jax.tree.map(np.zeros_like, weights), 0)
    some = chance.choice(others, min(MANY, len(others)), replace=False)
    total, done = sum(EPOCHS), 0.0
    for epochs in EPOCHS:
        used = places.select(np.concatenate([toggles, some]))
        steps = min(ROWS, len(used.answers)) // BATCH
        for batch in _list_batches(used, middle, scale, epochs, chance):
            done += 1 / steps
            rate = RATE * max(0.02, 0.5 + 0.5 * np.cos(np.pi * min(1.0, done / total)))
            state = _step(state, batch, rate)
        if epochs == EPOCHS[0]:
            found = {**state[0], "middle": middle, "scale": scale}
            others = chance.choice(others, min(SEARCHED, len(others)), replace=False)
            taken = 1 - score_network(found, places.select(others))[:, 0]
            untold = ~places.trusted[others] & (taken > UNTOLD)
            hard = others[np.argsort(-np.where(untold, 0, taken))[:HARD]]
            others = others[~untold]
            some = np.union1d(hard, chance.choice(others, min(MANY // 2, len(others)), replace=False))
    fitted = {name: np.asarray(each) for name, each in state[0].items()}
    return {**fitted, "middle": middle, "scale": scale}


def score_network(weights: Weights, places: TogglePlaces) -> NDArray[np.float64]:
    """Return how likely each answer is for each place."""
    layers = {name: each for name, each in weights.items() if name not in ("middle", "scale")}
    scores = np.zeros((len(places.answers), ANSWERS))
    for at in range(0, len(scores), 1024):
        part = slice(at, at + 1024)
        numbers = (places.numbers[part] - weights["middle"]) / weights["scale"]
        own, around = places.own[part] / np.float32(STEP), places.around[part] / np.float32(STEP)
        scores[part] = jax.nn.softmax(_run(layers, own, around, numbers.astype(np.float32)), axis=1)
    return scores
