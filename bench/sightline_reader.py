"""A process that reads text with Sightline's reader: one JSON line with the path of an image in, one with texts out."""

import json
import sys

import numpy as np
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.reader.ocr.page import read_lines
from sightline.reader.ocr.weights import PAIRS, OcrEngine, find_pair, open_engine, release_memory
from sightline.reader.reading import TextLine


def open_named_engine(names: list[str]) -> OcrEngine:
    opened = (
        open_engine()
        if not names
        else OcrEngine({name: found for name in PAIRS if name in names and (found := find_pair(name))})
    )
    assert not isinstance(opened, Refusal), opened
    for name in opened.names:
        opened.get_model(name)
    return opened


def list_corners(line: TextLine) -> list[list[int]]:
    box = line.box
    return [[box.x, box.y], [box.right, box.y], [box.right, box.bottom], [box.x, box.bottom]]


def main() -> None:
    reader = open_named_engine(sys.argv[1:])
    for asked in sys.stdin:
        lines = read_lines(np.asarray(Image.open(json.loads(asked)).convert("RGB")), reader)
        release_memory()
        print(json.dumps([[line.text, list_corners(line)] for line in lines]), flush=True)


if __name__ == "__main__":
    main()
