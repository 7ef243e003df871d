"""How much of a page of code is read back: 100 lines of each file, rendered, then read by our own reader.

    .venv/bin/python bench/readback.py FILE...

Compared are the characters of the file without spaces, without line numbers, and without runs of five or more of the
same punctuation mark, which the reader takes for a rule and not for text. No page is larger than the standard-tier
provider keeps, so its pixels are those that the provider's model gets.
"""

import re
import sys
from difflib import SequenceMatcher
from io import BytesIO
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.code_listing import CodeListing, render_listing, split_lines
from sightline.pixels.renderers.page_layout import fits_provider
from sightline.pixels.renderers.renderer import RenderOptions
from sightline.pixels.renderers.source_code import find_lexer
from sightline.reader.ocr.page import read_lines
from sightline.reader.ocr.weights import OcrEngine, open_engine
from sightline.reader.reading import TextLine

LINES = 100
RULE = re.compile(r"([^\w\s])\1{4,}")
NUMBER = re.compile(r"^\d+")


def clean(line: str) -> str:
    return RULE.sub("", NUMBER.sub("", line.replace(" ", "")))


def read_back(lines: list[str], suffix: str, engine: OcrEngine) -> str:
    """Return the text of all pages, column by column."""
    listing = CodeListing(lines, find_lexer(suffix, "\n".join(lines)[:2000]))
    document = render_listing(listing, RenderOptions(count=9))
    assert not isinstance(document, Refusal), document
    words = []
    for page in document.pages:
        picture = np.asarray(Image.open(BytesIO(page.data)).convert("RGB"))
        assert fits_provider(picture.shape[1], picture.shape[0])
        found = read_lines(picture, engine)
        edges = find_columns(picture)
        rows = sorted(found, key=lambda line: (count_edges(edges, line), round(line.box.y + line.box.height / 2)))
        for _, row in group_rows(rows, edges):
            words.append(clean("".join(line.text for line in sorted(row, key=lambda line: line.box.x))))
    return "".join(words)


def find_columns(picture: np.ndarray) -> list[int]:
    """Return where the lines between columns are: one colour from top to bottom that is not white."""
    inner = picture[20:-20].astype(int)
    same = (inner == inner[0]).all(axis=(0, 2)) & (inner[0] < 250).any(axis=1)
    return [int(x) for x in np.flatnonzero(same)]


def count_edges(edges: list[int], line: TextLine) -> int:
    return sum(edge < line.box.x + line.box.width / 2 for edge in edges)


def group_rows(lines: list[TextLine], edges: list[int]) -> list[tuple[int, list[TextLine]]]:
    """Return lines in groups whose middles are at most 6 pixels apart."""
    number, last, numbered = 0, (-1, -99.0), []
    for line in lines:
        here = (count_edges(edges, line), line.box.y + line.box.height / 2)
        number += here[0] != last[0] or here[1] - last[1] > 6
        last = here
        numbered.append((number, line))
    return [(key, [line for _, line in group]) for key, group in groupby(numbered, lambda each: each[0])]


def main() -> None:
    engine = open_engine()
    assert not isinstance(engine, Refusal), engine
    total = wrong = 0
    for name in sys.argv[1:]:
        path = Path(name)
        lines = split_lines("\n".join(path.read_text("utf-8", "replace").split("\n")[:LINES]))
        truth, text = "".join(map(clean, lines)), read_back(lines, path.suffix, engine)
        steps = SequenceMatcher(None, truth, text, autojunk=False).get_opcodes()
        faults = sum(max(b - a, d - c) for kind, a, b, c, d in steps if kind != "equal")
        total, wrong = total + len(truth), wrong + faults
        print(f"{path.name}: {len(truth)} characters, {100 * (1 - faults / len(truth)):.2f} % read", flush=True)
    print(f"all: {total} characters, {100 * (1 - wrong / total):.2f} % read")


if __name__ == "__main__":
    main()
