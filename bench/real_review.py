"""Write descriptions of pictures that were set aside, drawn by a seed, for a reviewer who sees only the words.

real_review.py FOLDER writes 01.txt, 02.txt, ... and key.json, what the DOM says about the same pictures.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import real_corpus
from PIL import Image
from real import finish_reading, list_pictures

from sightline.model.refusal import Refusal
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import open_engine
from sightline.reader.report import ReadImage, report_images

SEED, COUNT = 22, 15
WORDS = 30  # of a page, at least


def write_review(folder: Path) -> None:
    """Write the descriptions, and the key from the DOM."""
    engine = open_engine(None)
    if isinstance(engine, Refusal):
        raise SystemExit(f"bench: {engine.what}")
    folder.mkdir(parents=True, exist_ok=True)
    pages = [
        (picture, truth)
        for picture, truth in list_pictures(real_corpus.find_part(real_corpus.PARTS[-1]))
        if truth["kind"] == "page" and len(truth["words"]) >= WORDS
    ]
    key = {}
    for number, (picture, truth) in enumerate(random.Random(SEED).sample(pages, COUNT), 1):
        pixels = np.asarray(Image.open(picture).convert("RGB"))
        reading = finish_reading(pixels, read_page(pixels, engine))
        (folder / f"{number:02}.txt").write_text(report_images("", None, [ReadImage(reading, pixels)]).text + "\n")
        key[f"{number:02}"] = list_facts(truth)
    (folder / "key.json").write_text(json.dumps(key, indent=1) + "\n")


def list_facts(truth: dict[str, Any]) -> dict[str, Any]:
    """Return what a reviewer may be asked about: headings, controls with states, selected items, tables, charts."""
    controls = [
        {key: each[key] for key in ("kind", "text", "checked", "disabled") if each.get(key) not in (None, "")}
        for each in truth["controls"]
        if each["kind"] != "input"
    ]
    return {
        "name": truth["name"],
        "headings": [each["text"] for each in truth["headings"]],
        "controls": controls,
        "states": [{"kind": each["kind"], "text": each["text"]} for each in truth["states"] if each["kind"] != "plain"],
        "tables": [[[text for text, _ in row] for row in table["rows"]] for table in truth["tables"]],
        "charts": [{"kind": each["kind"], "values": each["values"]} for each in truth["charts"]],
        "code": [[line["text"] for line in block["lines"]] for block in truth["code"]],
    }


if __name__ == "__main__":
    write_review(Path(sys.argv[1]))
