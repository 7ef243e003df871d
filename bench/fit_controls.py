"""Fit the models of controls to measured rows, choose their limits, and write their weights; needs scikit-learn.

    fit_controls.py ROWS OUT

Limits are chosen on the pictures of the corpus, by models that saw nothing of the same package: the lowest score from
which the share of right answers reaches its target. The weights are then fitted to all rows.
"""

import json
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

Row = dict[str, Any]
FOLDS = 4
REAL = 3.0  # weight of a row of the corpus, compared with one of a page that was written for training
CROP = 0.6  # weight of a row of a crop
FEW, FEW_REAL = 12_000, 25_000  # rows without a control, at most: of such pages, and of the corpus
TREES, NETWORKS, EPOCHS = 110, 1, 20
SKETCHED = 3  # times that a row of a sketch counts
TARGETS = {"button": 0.9, "field": 0.9, "check": 0.97, "radio": 0.97, "switch": 0.97}  # a little above what is asked
ALIASES = {"@tabler/preview": "tabler", "@tabler/core": "tabler", "fomantic-ui": "semantic-ui"}
TOGGLES = {"check": (1, 4), "radio": (4, 6), "switch": (6, 8)}  # the classes of each kind


@dataclass
class Table:
    """The rows of one question over all pictures."""

    values: NDArray[np.float32]
    answers: NDArray[np.int64]
    folds: NDArray[np.int64]  # -1: never left out
    weights: NDArray[np.float64]
    pictures: list[tuple[Row, slice]]

    def choose_rows(self, answers: NDArray[np.int64], left_out: int | None, few: int = FEW) -> NDArray[np.int64]:
        """Return the rows to fit to: all with an answer outside a fold, and some of the many negative ones."""
        chance = np.random.default_rng(1)
        used = (answers >= 0) & (self.folds != left_out if left_out is not None else True)
        plain = np.flatnonzero(used & (answers == 0) & (self.folds < 0))
        real = np.flatnonzero(used & (answers == 0) & (self.folds >= 0))
        some = [
            chance.choice(rows, min(most, len(rows)), replace=False) for rows, most in ((plain, few), (real, FEW_REAL))
        ]
        return np.sort(np.concatenate([np.flatnonzero(used & (answers > 0)), *some]))


def load_rows(folder: Path) -> list[Row]:
    found = []
    for file in sorted(folder.glob("*.pickle")):
        name, picture, rows = pickle.loads(file.read_bytes())
        times = SKETCHED if name == "training sketch" else 1
        found += [{**row, "name": name, "picture": picture} for row in rows] * times
    return found


def find_fold(name: str) -> int:
    """Return the fold of a picture's package; pages that were written for training are in none."""
    if name.startswith("training "):
        return -1
    package = next(word for word in name.split() if word not in ("gallery", "more"))
    return sha256(f"5{ALIASES.get(package, package)}".encode()).digest()[0] % FOLDS


def make_table(rows: Sequence[Row], values: str, answers: str) -> Table:
    used = [row for row in rows if row[values] is not None and len(row[values])]
    counts = [len(row[values]) for row in used]
    ends = np.cumsum([0, *counts])
    folds = [find_fold(row["name"]) for row in used]
    weights = [(REAL if fold >= 0 else 1) * (CROP if row["crop"] else 1) for row, fold in zip(used, folds, strict=True)]
    return Table(
        np.concatenate([row[values] for row in used]), np.concatenate([row[answers] for row in used]),
        np.repeat(folds, counts), np.repeat(weights, counts),
        [(row, slice(ends[at], ends[at + 1])) for at, row in enumerate(used) if folds[at] >= 0 and not row["crop"]],
    )  # fmt: skip


def fit_trees(table: Table, answers: NDArray[np.int64], left_out: int | None) -> Any:
    rows = table.choose_rows(answers, left_out)
    model = HistGradientBoostingClassifier(
        max_iter=TREES, learning_rate=0.13, max_leaf_nodes=20, max_depth=7, min_samples_leaf=20, l2_regularization=3.0,
        max_features=0.3, max_bins=64, random_state=1,
    )  # fmt: skip
    return model.fit(table.values[rows], answers[rows], sample_weight=table.weights[rows])


def fit_networks(table: Table, left_out: int | None) -> tuple[Any, Any, list[Any]]:
    rows = table.choose_rows(table.answers, left_out, 25_000)
    values = table.values[rows]
    middle, scale = values.mean(axis=0), values.std(axis=0) + 0.05
    networks = [
        MLPClassifier((64, 32), alpha=1e-2, batch_size=200, max_iter=EPOCHS, random_state=seed)
        for seed in range(NETWORKS)
    ]
    return middle, scale, [each.fit((values - middle) / scale, table.answers[rows]) for each in networks]


def score_left_out(table: Table, answers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the score of each row of the corpus by trees that saw nothing of its package."""
    scores = np.zeros(len(table.values))
    for fold in range(FOLDS):
        rows = table.folds == fold
        if rows.any():
            scores[rows] = fit_trees(table, answers, fold).predict_proba(table.values[rows])[:, 1]
    return scores


def score_toggles_left_out(table: Table) -> NDArray[np.float64]:
    scores = np.zeros((len(table.values), 8))
    for fold in range(FOLDS):
        rows = table.folds == fold
        if rows.any():
            middle, scale, networks = fit_networks(table, fold)
            values = (table.values[rows] - middle) / scale
            scores[rows] = np.mean([each.predict_proba(values) for each in networks], axis=0)
    return np.stack([scores[:, start:end].sum(axis=1) for start, end in TOGGLES.values()], axis=1)


def keep_best(boxes: NDArray[np.int64], scores: NDArray[np.float64]) -> Iterator[int]:
    """Yield the places with the best scores, of those that share a centre only one."""
    kept: list[NDArray[np.int64]] = []
    for at in np.argsort(-scores):
        box = boxes[at]
        if not any(_has_centre(box, other) or _has_centre(other, box) for other in kept):
            kept.append(box)
            yield int(at)


def _has_centre(box: Sequence[float], other: Sequence[float]) -> bool:
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    return bool(box[0] <= x <= box[2] and box[1] <= y <= box[3])


def _measure_overlap(one: Sequence[float], other: Sequence[float]) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    if min(wide, high) <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return wide * high / (sum(areas) - wide * high)


def is_same_box(control: Row, box: Sequence[float]) -> bool:
    return any(_measure_overlap(control[key], box) >= 0.5 for key in ("box", "inner") if key in control)


def is_same_toggle(control: Row, box: Sequence[float]) -> bool:
    known = control["box"]
    return _has_centre(box, known) or (_has_centre(known, box) and box[2] - box[0] < 3 * (known[2] - known[0]))


def count_found(
    table: Table, scores: NDArray[np.float64], boxes: str, kind: str, also: str, limit: float,
    is_same: Callable[[Row, Sequence[float]], bool],
) -> Counter[str]:  # fmt: skip
    """Count the controls of the corpus that are there, found, said, and said rightly, from a limit on."""
    counts: Counter[str] = Counter()
    for row, place in table.pictures:
        truth = json.loads(Path(row["picture"]).with_suffix(".json").read_text())
        own = scores[place]
        sure = np.flatnonzero(own >= limit)
        chosen = row[boxes][sure]
        said = [chosen[at].tolist() for at in keep_best(chosen, own[sure])]
        said = [box for box in said if not any(_has_centre(edges, box) for edges in truth["pictures"])]
        there = [each for each in truth["controls"] if each["kind"] == kind]
        right = [each for each in truth["controls"] if each["kind"] in (kind, also)]
        counts["of"] += len(there)
        counts["found"] += sum(any(is_same(each, box) for box in said) for each in there)
        counts["said"] += len(said)
        counts["right"] += sum(any(is_same(each, box) for each in right) for box in said)
    return counts


def choose_limit(name: str, count: Callable[[float], Counter[str]]) -> float:
    """Return the lowest limit at which enough of what is said is right, and print what it gives."""
    for limit in (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99):
        counts = count(limit)
        if counts["right"] >= TARGETS[name] * counts["said"]:
            break
    print(f"{name}: limit {limit}, found {counts['found'] / counts['of']:.3f} of {counts['of']}, "
          f"right {counts['right'] / max(1, counts['said']):.3f} of {counts['said']}", flush=True)  # fmt: skip
    return limit


def export_trees(model: Any, limit: float) -> dict[str, NDArray[Any]]:
    """Return trees as arrays: a leaf leads to itself."""
    pieces: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    roots, total, depth = [], 0, 0
    for (tree,) in model._predictors:  # noqa: SLF001 (scikit-learn has no other way)
        nodes, own = tree.nodes, np.arange(len(tree.nodes))
        leaf = nodes["is_leaf"].astype(bool)
        roots.append(total)
        pieces["feature"].append(np.where(leaf, 0, nodes["feature_idx"]).astype(np.uint8))
        pieces["threshold"].append(np.where(leaf, 0, nodes["num_threshold"]).astype(np.float32))
        pieces["left"].append((np.where(leaf, own, nodes["left"]) + total).astype(np.uint16))
        pieces["right"].append((np.where(leaf, own, nodes["right"]) + total).astype(np.uint16))
        pieces["value"].append(np.where(leaf, nodes["value"], 0).astype(np.float16))
        total, depth = total + len(nodes), max(depth, int(nodes["depth"].max()))
    start = float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001
    facts = {"roots": np.array(roots, np.uint16), "facts": np.array([start, depth, limit], np.float32)}
    return {**{name: np.concatenate(each) for name, each in pieces.items()}, **facts}


def fit_all(rows: Sequence[Row]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield every array of the weights by its name."""
    controls = make_table(rows, "controls", "control_answers")
    for column, (kind, also) in enumerate((("button", "pressable"), ("field", "input"))):
        answers = controls.answers[:, column]
        scores = score_left_out(controls, answers)
        limit = choose_limit(
            kind,
            lambda limit: count_found(controls, scores, "control_boxes", kind, also, limit, is_same_box),  # noqa: B023
        )
        trees = export_trees(fit_trees(controls, answers, None), limit)
        yield from ((f"{kind} {name}", each) for name, each in trees.items())
    yield from fit_toggles(make_table(rows, "toggles", "toggle_answers"))


def fit_toggles(table: Table) -> Iterator[tuple[str, NDArray[Any]]]:
    scores = score_toggles_left_out(table)
    limits = [
        choose_limit(
            kind,
            lambda limit: count_found(table, scores[:, at], "toggle_boxes", kind, "", limit, is_same_toggle),  # noqa: B023
        )
        for at, kind in enumerate(TOGGLES)
    ]
    middle, scale, networks = fit_networks(table, None)
    yield "toggle middle", middle.astype(np.float16)
    yield "toggle scale", scale.astype(np.float16)
    yield "toggle limits", np.array(limits, np.float32)
    for number, network in enumerate(networks):
        for at, (weight, bias) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
            yield f"toggle {number} weight {at}", weight.astype(np.float16)
            yield f"toggle {number} bias {at}", bias.astype(np.float16)


if __name__ == "__main__":
    np.savez_compressed(sys.argv[2], **dict(fit_all(load_rows(Path(sys.argv[1])))))
    print(f"{sys.argv[2]}: {Path(sys.argv[2]).stat().st_size} bytes")
