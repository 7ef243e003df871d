"""Score the reader on pages around packages that nothing is trained on, and print what it finds and says of controls.

    .venv/bin/python bench/score_kits.py [--limits]

The packages are a part of training_more_kits.py, chosen by a hash of their names before anything was measured on them.
With --limits it prints what the reader would find and say of toggles with other limits. Those in toggles.py were chosen
by it and by the parts of the corpus for development: more of what is said must be right than the target in real.py
asks, because the packages that are set aside look less like what the networks were trained on.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import peer_environments
import training_pictures
from PIL import Image
from real import ROWS, measure_part, write_report
from real_score import score_controls

from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import OcrEngine, open_engine, release_memory
from sightline.reader.reading import TOGGLES, ImageReading
from sightline.reader.regions import segment_image
from sightline.reader.toggles import LIMITS, Limits, find_toggles

KINDS = ("buttons", "fields", "check boxes", "radio buttons", "switches")
FACTORS = (0.4, 0.7, 1, 1.25, 1.5, 2)  # by which the distances of the limits from 1 are multiplied


def score_kits(folder: Path, engine: OcrEngine) -> None:
    counts, _, _ = measure_part(folder, engine)
    figures = {"packages that are only scored": {"counts": dict(counts), "cpu_seconds": 0.0, "peak_mb": 0}}
    names = {row.name for row in ROWS if any(kind in row.name for kind in KINDS)}
    lines = write_report(figures).splitlines()
    print("\n".join(line for line in lines if any(name in line for name in names)))


def compare_limits(folder: Path, engine: OcrEngine) -> None:
    """Print how many toggles are found, and how much of what is said is right, with other limits."""
    totals = {factor: Counter[str]() for factor in FACTORS}
    for picture in sorted(folder.glob("*.png")):
        truth = json.loads(picture.with_suffix(".json").read_text())
        pixels = np.asarray(Image.open(picture).convert("RGB"))
        lines, segments = read_page(pixels, engine).lines, segment_image(pixels)
        release_memory()
        size = Size(pixels.shape[1], pixels.shape[0])
        for factor, total in totals.items():
            parts = find_toggles(pixels, lines, segments, scale_limits(factor))
            total.update(score_controls(truth, ImageReading(size, tuple(lines), parts=tuple(parts))))
        peer_environments.print_status(picture.stem)
    for kind in TOGGLES:
        for factor, total in totals.items():
            found, right = (
                100 * total[one] / max(1, total[of])
                for one, of in ((kind, f"{kind} of"), (f"{kind} said rightly", f"{kind} said"))
            )
            limits = ", ".join(f"{each[kind]:.3f}" for each in scale_limits(factor))
            print(f"{kind} from {limits}: found {found:.1f} %, said rightly {right:.1f} %")


def scale_limits(factor: float) -> Limits:
    return [{kind: 1 - factor * (1 - limit) for kind, limit in each.items()} for each in LIMITS]


if __name__ == "__main__":
    known = open_engine(None)
    if isinstance(known, Refusal):
        raise SystemExit(f"bench: {known.what}")
    pictures = peer_environments.find_cache() / "training-controls" / "scored-pictures"
    training_pictures.make_scored_pictures(pictures)
    (compare_limits if "--limits" in sys.argv else score_kits)(pictures, known)
