"""Train the model that tells tables from other texts in columns, on pages whose DOM says where tables are.

train_tables.py reads the corpus of bench/real.py and prints the weights of `sightline.reader.table_finder`, and how
well they do on packages that they were not trained on.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import real_corpus
from numpy.typing import NDArray
from PIL import Image
from real_score import measure_overlap, to_box

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal
from sightline.reader.aligned_rows import list_aligned_blocks
from sightline.reader.charts import find_charts
from sightline.reader.code_areas import find_code_areas, restore_line_numbers
from sightline.reader.colours import add_colours, is_photograph
from sightline.reader.icons import separate_icons
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import OcrEngine, open_engine, release_memory
from sightline.reader.page_text import measure_line_height
from sightline.reader.reading import Pixels, TextLine
from sightline.reader.regions import segment_image
from sightline.reader.table_columns import LineWords
from sightline.reader.table_finder import FEATURES, make_candidate, measure_box, measure_candidate
from sightline.reader.table_rows import find_toggled_lines, list_ruled_blocks
from sightline.reader.toggles import find_toggles, remove_toggle_glyphs

SAME = 0.5  # overlap of a candidate and a table of the DOM
WITHIN = 0.4  # share of a candidate in a table of the DOM: neither right nor wrong
FOLDS, STEPS, RATE, PENALTY = 8, 4000, 0.3, 0.01
SEED = 21


@dataclass(frozen=True)
class Sample:
    package: str
    features: tuple[float, ...]
    right: bool
    name: str = ""


def list_samples(picture: Path, engine: OcrEngine) -> Iterator[Sample]:
    """Yield the candidates of a picture that are clearly a table of the DOM, or clearly none."""
    truth = json.loads(picture.with_suffix(".json").read_text())
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    if truth["kind"] == "photograph" or is_photograph(pixels):
        return
    lines = read_page(pixels, engine).lines
    release_memory()
    asked = [to_box(table["box"]) for table in truth["tables"] if table["asked"]]
    known = [to_box(table["box"]) for table in truth["tables"]] + [to_box(box) for box in truth["pictures"]]
    for box, features in list_candidates(pixels, lines):
        right = any(measure_overlap(box, other) >= SAME for other in asked)
        if right or not any(_measure_within(box, other) >= WITHIN for other in known):
            yield Sample(truth["name"].split()[0], tuple(features), right, f"{truth['name']} {box}")


def list_candidates(pixels: Pixels, lines: tuple[TextLine, ...]) -> Iterator[tuple[Box, list[float]]]:
    """Yield what may be tables, as the reader does."""
    segments = segment_image(pixels)
    toggles = find_toggles(pixels, lines, segments)
    texts, _ = separate_icons(remove_toggle_glyphs(lines, toggles))
    coloured = restore_line_numbers(list(add_colours(pixels, texts)))
    if not coloured:
        return
    em = measure_line_height(coloured)
    words = LineWords(pixels, coloured, find_toggled_lines(coloured, toggles), segments.regions)
    charts = [*find_code_areas(coloured), *(chart.box for chart in find_charts(pixels, coloured, segments.regions))]
    blocks = [*list_ruled_blocks(segments.regions, words, em),
              *list_aligned_blocks(segments.regions, words, em, charts)]  # fmt: skip
    for block in blocks:
        if (candidate := make_candidate(words, block, em)) is not None:
            box = measure_box(candidate.block, [[coloured[at].box for at in row] for row in candidate.block.rows])
            yield box, measure_candidate(candidate, words, em)


def _measure_within(box: Box, other: Box) -> float:
    wide = min(box.right, other.right) - max(box.x, other.x)
    high = min(box.bottom, other.bottom) - max(box.y, other.y)
    return max(0, wide) * max(0, high) / (box.width * box.height)


def train(samples: list[Sample]) -> tuple[NDArray[np.float64], float]:
    """Return weights and bias of a logistic regression; both classes count the same."""
    values = np.array([sample.features for sample in samples])
    right = np.array([sample.right for sample in samples], dtype=float)
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-6
    scaled = (values - mean) / spread
    share = np.where(right == 1, 0.5 / max(1.0, right.sum()), 0.5 / max(1.0, (1 - right).sum()))
    weights, bias = np.zeros(values.shape[1]), 0.0
    for _ in range(STEPS):
        error = share * (1 / (1 + np.exp(-(scaled @ weights + bias))) - right)
        weights -= RATE * (scaled.T @ error + PENALTY * weights)
        bias -= RATE * float(error.sum())
    return weights / spread, bias - float((weights / spread) @ mean)


def check(samples: list[Sample]) -> list[tuple[Sample, float]]:
    """Return each sample with its score by weights that were trained without its package."""
    packages = sorted({sample.package for sample in samples})
    random.Random(SEED).shuffle(packages)
    scored: list[tuple[Sample, float]] = []
    for fold in range(FOLDS):
        held = set(packages[fold::FOLDS])
        weights, bias = train([sample for sample in samples if sample.package not in held])
        scored += [(each, float(np.dot(weights, each.features) + bias)) for each in samples if each.package in held]
    return scored


def report(samples: list[Sample]) -> None:
    weights, bias = train(samples)
    scored = check(samples)
    for least in (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5):
        found = sum(score > least for sample, score in scored if sample.right)
        false = sum(score > least for sample, score in scored if not sample.right)
        print(f"above {least}: {found} of {sum(s.right for s in samples)} found, {false} wrong of {len(samples)}")
    for name, weight in zip(FEATURES, weights, strict=True):
        print(f'    "{name}": {weight:.3f},')
    print(f"    bias: {bias:.3f}")


def main() -> None:
    engine = open_engine(None)
    if isinstance(engine, Refusal):
        raise SystemExit(f"bench: {engine.what}")
    folders = [real_corpus.find_part(part) for part in real_corpus.PARTS[:2]]
    pictures = [picture for folder in folders for picture in sorted(folder.glob("*.png"))]
    report([sample for picture in pictures for sample in list_samples(picture, engine)])


if __name__ == "__main__":
    main()
