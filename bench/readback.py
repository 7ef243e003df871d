"""How much of a page is read back: 100 lines of each file (all of JSON), rendered, then read by our own reader.

    .venv/bin/python bench/readback.py FILE...

Compared are the characters of the file without spaces, without line numbers, and without runs of five or more of the
same punctuation mark, which the reader takes for a rule and not for text. No page is larger than the standard-tier
provider keeps, so its pixels are those that the provider's model gets.
"""

import csv
import re
import sys
from collections import Counter
from difflib import SequenceMatcher
from io import BytesIO
from itertools import groupby
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt
from markdown_it.token import Token
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.pixels.probe import identify_file
from sightline.pixels.renderers import choose_renderer
from sightline.pixels.renderers.code_listing import split_lines
from sightline.pixels.renderers.json_page import indent_json
from sightline.pixels.renderers.page_layout import fits_provider
from sightline.pixels.renderers.renderer import Renderer, RenderOptions, get_suffix
from sightline.reader.ocr.page import read_lines
from sightline.reader.ocr.weights import OcrEngine, open_engine
from sightline.reader.reading import TextLine

LINES = 100
SHOWN = 12  # of the most common errors
RULE = re.compile(r"([^\w\s])\1{4,}")
NUMBER = re.compile(r"^\d+")


def clean(line: str) -> str:
    return RULE.sub("", NUMBER.sub("", line.replace(" ", "")))


def list_truth(data: bytes, name: str) -> list[str]:
    """Return the lines that should be on the picture of a file."""
    text = data.decode("utf-8", "replace")
    if name.endswith(".json"):
        text = indent_json(text) or text
    if name.endswith((".csv", ".tsv")):
        dialect = csv.Sniffer().sniff(text[:2000])
        return ["".join(row) for row in csv.reader(text.splitlines(), dialect)]
    if name.endswith(".md"):
        return [text for token in MarkdownIt("commonmark").enable("table").parse(text) for text in list_words(token)]
    return split_lines(text)


def list_words(token: Token) -> list[str]:
    """Return the texts of a part of markdown, without its marks."""
    if token.type in ("fence", "code_block"):
        return token.content.split("\n")
    return [child.content for child in token.children or () if child.type in ("text", "code_inline")]


def read_back(data: bytes, name: str, engine: OcrEngine) -> str:
    """Return the text of all pages, column by column."""
    renderer = choose_renderer(identify_file(data[:4096]), data, name)
    assert isinstance(renderer, Renderer), renderer
    assert renderer.render is not None
    document = renderer.render(data, RenderOptions(count=9, suffix=get_suffix(name)))
    assert not isinstance(document, Refusal), document
    words = []
    for page in document.pages:
        picture = np.asarray(Image.open(BytesIO(page.data)).convert("RGB"))
        assert fits_provider(picture.shape[1], picture.shape[0])
        found = read_lines(picture, engine)
        edges = find_columns(picture) if has_columns(name) else []
        rows = sorted(found, key=lambda line: (count_edges(edges, line), round(line.box.y + line.box.height / 2)))
        for _, row in group_rows(rows, edges):
            words.append(clean("".join(line.text for line in sorted(row, key=lambda line: line.box.x))))
    return "".join(words)


def has_columns(name: str) -> bool:
    """Return whether the pages of such a file may have columns; in a table, vertical lines are between cells."""
    return not name.endswith((".csv", ".tsv", ".md"))


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
    kinds: dict[str, list[tuple[int, int]]] = {}
    for path in map(Path, sys.argv[1:]):
        data = b"\n".join(path.read_bytes().split(b"\n")[:LINES]) if path.suffix != ".json" else path.read_bytes()
        truth, text = "".join(map(clean, list_truth(data, path.name))), read_back(data, path.name, engine)
        steps = SequenceMatcher(None, truth, text, autojunk=False).get_opcodes()
        changes = [(truth[a:b], text[c:d]) for kind, a, b, c, d in steps if kind != "equal"]
        faults = sum(max(len(old), len(new)) for old, new in changes)
        kinds.setdefault(path.suffix, []).append((len(truth), faults))
        print(f"{path.name}: {len(truth)} characters, {100 * (1 - faults / len(truth)):.2f} % read", flush=True)
        common = Counter(changes).most_common(SHOWN)
        print("   " + ", ".join(f"{old!r} -> {new!r} {count}x" for (old, new), count in common), flush=True)
    for suffix, found in kinds.items():
        total, wrong = (sum(column) for column in zip(*found, strict=True))
        print(f"all {suffix}: {total} characters, {100 * (1 - wrong / total):.2f} % read")


if __name__ == "__main__":
    main()
