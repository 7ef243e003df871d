"""Score the reader on pages around packages that nothing is trained on, and print what it finds and says of controls.

    .venv/bin/python bench/score_kits.py

The packages are a part of training_more_kits.py, chosen by a hash of their names before anything was measured on them.
"""

import peer_environments
import training_pictures
from real import ROWS, measure_part, write_report

from sightline.model.refusal import Refusal
from sightline.reader.ocr.weights import open_engine

KINDS = ("buttons", "fields", "check boxes", "radio buttons", "switches")


def score_kits() -> None:
    engine = open_engine(None)
    if isinstance(engine, Refusal):
        raise SystemExit(f"bench: {engine.what}")
    folder = peer_environments.find_cache() / "training-controls" / "scored-pictures"
    training_pictures.make_scored_pictures(folder)
    counts, _, _ = measure_part(folder, engine)
    figures = {"packages that are only scored": {"counts": dict(counts), "cpu_seconds": 0.0, "peak_mb": 0}}
    names = {row.name for row in ROWS if any(kind in row.name for kind in KINDS)}
    lines = write_report(figures).splitlines()
    print("\n".join(line for line in lines if any(name in line for name in names)))


if __name__ == "__main__":
    score_kits()
