"""Fit the models of what is selected or disabled to measured rows, and write their weights; needs scikit-learn.

    fit_states.py ROWS OUT

Whole packages are left out, a fold of them at a time. A limit is the lowest score from which the share of right answers
reaches its target: of what is disabled on these folds of the corpus and on the families that are never trained on, of
what is selected on the corpus only, as many groups on the pages of families have two items. What is printed is measured
there, too. The weights are then fitted to all rows but those of these families.
"""

import json
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from fit_controls import FAMILIES, export_trees
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from training_state_kits import is_scored_only

Row = dict[str, Any]
Scores = NDArray[np.float64]
FOLDS = 5
REAL = {"selected": (0.5, 12.0), "disabled": (3.0, 3.0)}  # weights of a row of the corpus without and with the state
MOST = 30_000  # rows of such pages without a state, at most
SHARED = ("none", "varied", "states")  # pages without a package, which are never left out
GROUPS = ("training", "gallery", "more", "components")  # words before the name of a package
TREES: dict[str, dict[str, Any]] = {
    "selected": {
        "max_iter": 300, "learning_rate": 0.06, "max_leaf_nodes": 24, "max_depth": 9, "min_samples_leaf": 12,
        "max_features": 0.1,
    },
    "disabled": {
        "max_iter": 180, "learning_rate": 0.08, "max_leaf_nodes": 16, "max_depth": 7, "min_samples_leaf": 20,
        "max_features": 0.25,
    },
}  # fmt: skip
SCORED = -2  # the fold of what is only scored
TARGETS = {"selected": 0.95, "disabled": 0.95}


@dataclass
class StateTable:
    """The rows of one question over all pictures."""

    values: NDArray[np.float32]
    answers: NDArray[np.int64]
    folds: NDArray[np.int64]  # -1: never left out; SCORED: always
    real: NDArray[np.bool_]
    things: NDArray[np.int64]  # the line or control that each row is about
    question: str

    def fit(self, left_out: int | None) -> Any:
        chance = np.random.default_rng(1)
        used = (self.answers >= 0) & (self.folds != SCORED) & (self.folds != left_out if left_out is not None else True)
        plain = np.flatnonzero(used & (self.answers == 0) & ~self.real)
        some = chance.choice(plain, min(MOST, len(plain)), replace=False)
        rows = np.sort(np.concatenate([np.flatnonzero(used & ((self.answers > 0) | self.real)), some]))
        weights = np.where(self.real[rows], np.array(REAL[self.question])[self.answers[rows]], 1.0)
        model = HistGradientBoostingClassifier(
            **TREES[self.question], l2_regularization=3.0, max_bins=64, random_state=1,
        )  # fmt: skip
        return model.fit(self.values[rows], self.answers[rows], sample_weight=weights)

    def score_left_out(self) -> Scores:
        """Return the score of each row of a package by trees that saw nothing of that package."""
        scores = np.zeros(len(self.values))
        for fold in (*range(FOLDS), SCORED):
            own = self.folds == fold
            if own.any():
                scores[own] = self.fit(fold).predict_proba(self.values[own])[:, 1]
        return scores


def find_fold(name: str) -> int:
    """Return the fold of a picture's package; pages without a package are in none, some families are only scored."""
    package = next(word for word in name.split() if word not in GROUPS)
    if package in SHARED and name.startswith("training "):
        return -1
    if name.startswith("training ") and is_scored_only(package):
        return SCORED
    return sha256(f"7{FAMILIES.get(package, package)}".encode()).digest()[0] % FOLDS


def make_items(rows: Sequence[Row]) -> tuple[StateTable, NDArray[np.int64]]:
    """Return the rows of all lines, each as an item of its column and of its row, and the answers of the lines."""
    counts = [row["items"].shape[1] for row in rows]
    starts = np.cumsum([0, *counts])
    things = [np.tile(np.arange(start, start + count), 2) for start, count in zip(starts, counts, strict=False)]
    lengths = [2 * count for count in counts]
    table = StateTable(
        np.concatenate([row["items"].reshape(-1, row["items"].shape[2]) for row in rows]),
        np.concatenate([row["item_answers"].ravel() for row in rows]),
        np.repeat([find_fold(row["name"]) for row in rows], lengths),
        np.repeat([not row["name"].startswith("training ") for row in rows], lengths), np.concatenate(things),
        "selected",
    )  # fmt: skip
    return table, np.concatenate([row["line_answers"] for row in rows])


def make_parts(rows: Sequence[Row]) -> tuple[StateTable, NDArray[np.int64]]:
    counts = [len(row["parts"]) for row in rows]
    answers = np.concatenate([row["part_answers"] for row in rows])
    table = StateTable(
        np.concatenate([row["parts"] for row in rows]), answers,
        np.repeat([find_fold(row["name"]) for row in rows], counts),
        np.repeat([not row["name"].startswith("training ") for row in rows], counts), np.arange(len(answers)),
        "disabled",
    )  # fmt: skip
    return table, answers


def choose_limit(question: str, table: StateTable, answers: NDArray[np.int64]) -> tuple[float, Scores]:
    """Return the lowest score from which enough is right where the limit is chosen, and the scores."""
    rows = table.score_left_out()
    rows[table.answers < 0] = 0
    scores, real, kept = np.zeros(len(answers)), np.zeros(len(answers), dtype=bool), np.zeros(len(answers), dtype=bool)
    np.maximum.at(scores, table.things, rows)
    real[table.things], kept[table.things] = table.real, table.folds == SCORED
    asked = real | kept if question == "disabled" else real
    own = np.flatnonzero(asked & (answers >= 0))
    order = own[np.argsort(-scores[own], kind="stable")]
    right = np.cumsum(answers[order])
    share = right / np.arange(1, len(order) + 1)
    limit = 0.99
    for target in (0.98, 0.9, 0.8, TARGETS[question]):
        enough = np.flatnonzero(share >= target)
        last = int(enough[-1]) if len(enough) else 0
        limit = float(scores[order[last]])
        print(
            f"{question} at {limit:.3f}: {share[last]:.3f} of what is said is right, {right[last]} of {right[-1]} found"
        )
    said = kept & (answers >= 0) & (scores >= limit)
    print(
        f"{question} in families that are only scored: {answers[said].mean():.3f} of what is said is right, "
        f"{answers[said].sum()} of {(answers[kept] > 0).sum()} found"
    )
    return limit, scores


def count_found(question: str, rows: Sequence[Row], scores: Scores, limit: float) -> str:
    """Return how many of the items in the DOM of the corpus are found, where several lines may belong to one item."""
    found = there = start = 0
    for row in rows:
        boxes = row["item_boxes" if question == "selected" else "part_boxes"]
        own = scores[start : start + len(boxes)]
        start += len(boxes)
        if row["name"].startswith("training "):
            continue
        truth = json.loads(Path(row["picture"]).with_suffix(".json").read_text())
        items = [each["box"] for each in truth["states"] if each["kind"] == question and each["tag"] != "INPUT"]
        if question == "disabled":
            items += [each["box"] for each in truth["controls"] if each["disabled"] and each["kind"] != "pressable"]
        said = boxes[own >= limit].tolist()
        found += sum(any(_has_centre(item, box) or _has_centre(box, item) for box in said) for item in items)
        there += len(items)
    return f"{question}: {found} of {there} items in the DOM are found"


def _has_centre(box: Sequence[float], other: Sequence[float]) -> bool:
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def fit_states(rows: Sequence[Row]) -> Iterator[tuple[str, NDArray[Any]]]:
    for question, make in (("selected", make_items), ("disabled", make_parts)):
        used = [row for row in rows if len(row["item_boxes" if question == "selected" else "part_boxes"])]
        table, answers = make(used)
        limit, scores = choose_limit(question, table, answers)
        print(count_found(question, used, scores, limit), flush=True)
        yield from export_trees(question, table.fit(None), limit)


if __name__ == "__main__":
    measured = [pickle.loads(file.read_bytes()) for file in sorted(Path(sys.argv[1]).glob("*.pickle"))]
    np.savez_compressed(sys.argv[2], **dict(fit_states(measured)))
    print(f"{sys.argv[2]}: {Path(sys.argv[2]).stat().st_size} bytes")
