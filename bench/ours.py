"""A process that reads words with Sightline's own reader: a JSON line with an image's path in, one with texts out."""

import json
import sys

import numpy as np
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.seers.local.engine import Engine, give_back, open_engine
from sightline.seers.local.reading import read
from sightline.seers.local.seen import Line
from sightline.seers.local.weights import PAIRS, find


def engine(names: list[str]) -> Engine:
    opened = (
        open_engine()
        if not names
        else Engine({name: found for name in PAIRS if name in names and (found := find(name))})
    )
    assert not isinstance(opened, Refusal), opened
    for name in opened.names:
        opened.reader(name)
    return opened


def corners(line: Line) -> list[list[int]]:
    box = line.box
    return [[box.x, box.y], [box.right, box.y], [box.right, box.bottom], [box.x, box.bottom]]


def main() -> None:
    reader = engine(sys.argv[1:])
    for asked in sys.stdin:
        lines = read(np.asarray(Image.open(json.loads(asked)).convert("RGB")), reader)
        give_back()
        print(json.dumps([[line.text, corners(line)] for line in lines]), flush=True)


if __name__ == "__main__":
    main()
