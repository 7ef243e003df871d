"""How much of a page is read back: 100 lines of each file of text, whole files of other kinds, read by our own reader.

    .venv/bin/python bench/readback.py [--json FILE] FILE...

Compared are the characters of the file without spaces, without line numbers, marks of lists and letters that the reader
doesn't know (Hebrew, Arabic), and without runs of five or more of the same punctuation mark, which the reader takes for
a rule and not for text. The pixels are those that the standard-tier provider keeps. Office documents and web pages are
measured twice: by their program and by our own layout.

Code, JSON, diffs and CSV are compared in the order of the file. In markdown, notebooks, web pages and office documents,
cells of a table are beside each other, and the lines of one that is wrapped are read across the others. There, each
line that was read is looked for in the file wherever it is, each character of the file counts once, and what no line
has is lost.
"""

import argparse
import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from io import BytesIO
from itertools import groupby
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt
from markdown_it.token import Token
from PIL import Image

from sightline.model.image import ImageTarget, PaddedSizing
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import identify_file
from sightline.pixels.fit_image import fit_image
from sightline.pixels.renderers.choose_renderer import choose_renderer
from sightline.pixels.renderers.code_listing import split_lines
from sightline.pixels.renderers.document_layout import write_text
from sightline.pixels.renderers.office import read_office_text
from sightline.pixels.renderers.page_layout import fits_provider
from sightline.pixels.renderers.pdf import PDF_RENDERER
from sightline.pixels.renderers.renderer import Renderer, RenderOptions, get_suffix
from sightline.pixels.renderers.source_code import indent_json
from sightline.pixels.renderers.web_page import read_web_page
from sightline.reader.ocr.page import read_lines
from sightline.reader.ocr.weights import OcrEngine, open_engine
from sightline.reader.reading import TextLine

LINES, PAGES = 100, 9
SHOWN = 12  # of the most common errors
RULE = re.compile(r"([^\w\s])\1{4,}")
UNREAD = re.compile(r"([^\w\s])\1{4,}|[\u0590-\u08ff\u2022\u25aa-\u25e6\u2610-\u2612]|^\[[ x]?\]")
NUMBER = re.compile(r"^\d+")
LABEL = re.compile(r"(?:Slide|Sheet) \d+ of \d+|\[image\]|--- .* ---")  # that our own layout adds
OFFICE, SHEETS, PAGE = (".docx", ".odt", ".pptx", ".odp", ".xlsx", ".ods"), (".xlsx", ".ods"), (".html", ".htm")
WITH_CELLS = (".md", ".ipynb", *PAGE, *OFFICE)
WHOLE = (".json", ".ipynb", *PAGE, *OFFICE)
FORMATS = ("image/png", "image/jpeg", "image/webp")


def clean(line: str, name: str) -> str:
    text = "".join(line.split())
    return UNREAD.sub("", text) if name.endswith(WITH_CELLS) else RULE.sub("", NUMBER.sub("", text))


def list_truth(data: bytes, name: str, by: str) -> list[str]:
    """Return the texts that should be on the picture of a file."""
    if name.endswith(OFFICE):
        return list_office_words(data, name, by)
    text = data.decode("utf-8", "replace")
    if name.endswith(PAGE):
        return [cell for line in write_text(read_web_page(text)).split("\n") for cell in split_cells(line)]
    if name.endswith(".ipynb"):
        return list(list_notebook_words(json.loads(text)))
    if name.endswith(".json"):
        text = indent_json(text) or text
    if name.endswith((".csv", ".tsv")):
        delimiter = max(",;\t|", key=text.count)
        return ["".join(row) for row in csv.reader(text.splitlines(), delimiter=delimiter)]
    return list_markdown_words(text) if name.endswith(".md") else split_lines(text)


def list_office_words(data: bytes, name: str, by: str) -> list[str]:
    """Return the texts of an office document. LibreOffice prints no letters and numbers beside the cells of a sheet."""
    text = read_office_text(data)
    assert not isinstance(text, Refusal), text
    lines = text.split("\n")
    if name.endswith(SHEETS) and by == "libreoffice":
        lines = [line.partition("\t")[2] for line in lines if not line.startswith("\t")]
    return [cell for line in lines for cell in split_cells(line)]


def split_cells(line: str) -> list[str]:
    return [cell for cell in line.split("\t") if not LABEL.fullmatch(cell.strip())]


def list_markdown_words(text: str) -> list[str]:
    return [
        words
        for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
        for words in list_words(token)
    ]


def list_words(token: Token) -> list[str]:
    """Return the texts of a part of markdown, without its marks."""
    if token.type in ("fence", "code_block"):
        return token.content.split("\n")
    return [child.content for child in token.children or () if child.type in ("text", "code_inline")]


def list_notebook_words(notebook: dict[str, list[dict[str, object]]]) -> Iterator[str]:
    for cell in notebook["cells"]:
        source = "".join(cell["source"])  # type: ignore[arg-type] # a list of lines, or a text
        yield from list_markdown_words(source) if cell["cell_type"] == "markdown" else source.split("\n")
        for output in cell.get("outputs", []):  # type: ignore[attr-defined]
            printed = output.get("text") or output.get("data", {}).get("text/plain", "")
            has_picture = any(kind.startswith("image/") for kind in output.get("data", {}))
            yield from [] if has_picture else "".join(printed).split("\n")


def list_pictures(data: bytes, name: str, renderer: Renderer) -> list[bytes]:
    """Return the pages of a file, as the standard-tier provider gets them."""
    options = RenderOptions(count=PAGES, suffix=get_suffix(name))
    if renderer.convert is None:
        return draw_pages(renderer, data, options)
    made = renderer.convert(data, options)
    assert not isinstance(made, Refusal), made
    is_pdf = identify_file(made.data[:4096]).mime == "application/pdf"
    pictures = []
    for picture in draw_pages(PDF_RENDERER, made.data, options) if is_pdf else [made.data]:
        fitted = fit_image(picture, ImageTarget(FORMATS, sizing=PaddedSizing(), images=4))
        assert not isinstance(fitted, Refusal), fitted
        pictures += [part.image.data for part in fitted.parts]
    return pictures


def draw_pages(renderer: Renderer, data: bytes, options: RenderOptions) -> list[bytes]:
    assert renderer.render is not None
    document = renderer.render(data, options)
    assert not isinstance(document, Refusal), document
    return [page.data for page in document.pages]


def read_back(pictures: list[bytes], name: str, engine: OcrEngine) -> list[str]:
    """Return the lines of all pages, column by column; those of files with cells as they are found."""
    words = []
    for data in pictures:
        picture = np.asarray(Image.open(BytesIO(data)).convert("RGB"))
        assert fits_provider(picture.shape[1], picture.shape[0])
        found = read_lines(picture, engine)
        if name.endswith(WITH_CELLS):
            words += [clean(line.text, name) for line in found]
            continue
        edges = [] if name.endswith((".csv", ".tsv")) else find_columns(picture)  # in a table, they are between cells
        rows = sorted(found, key=lambda line: (count_edges(edges, line), round(line.box.y + line.box.height / 2)))
        for _, row in group_rows(rows, edges):
            words.append(clean("".join(line.text for line in sorted(row, key=lambda line: line.box.x)), name))
    return words


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


def compare_in_order(truth: list[str], read: list[str]) -> tuple[int, list[tuple[str, str]]]:
    """Return how many characters are wrong or missing or too many, and the differences."""
    one, other = "".join(truth), "".join(read)
    steps = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    changes = [(one[a:b], other[c:d]) for kind, a, b, c, d in steps if kind != "equal"]
    return sum(max(len(old), len(new)) for old, new in changes), changes


def compare_anywhere(truth: list[str], read: list[str]) -> tuple[int, list[tuple[str, str]]]:
    """Return how many characters of the file are in no line, and which. Each character counts once."""
    left = list("".join(truth))
    for line in sorted(filter(None, read), key=len, reverse=True):
        text = "".join(left)
        at = text.find(line)
        if at >= 0:
            left[at : at + len(line)] = "\0" * len(line)
            continue
        best = SequenceMatcher(None, text, line, autojunk=False).find_longest_match()
        start = max(0, best.a - best.b - 3)
        window = text[start : start + len(line) + 6]
        for a, _, size in SequenceMatcher(None, window, line, autojunk=False).get_matching_blocks():
            left[start + a : start + a + size] = "\0" * size
    lost = re.split("\0+", "".join(left))
    return len("".join(lost)), [(each, "") for each in lost if each]


def main() -> None:
    parser = argparse.ArgumentParser(description="how much of rendered pages our own reader reads back")
    parser.add_argument(
        "--json", type=Path, help="where to write the characters and the faults of each file, and a table"
    )
    parser.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    engine = open_engine()
    assert not isinstance(engine, Refusal), engine
    kinds: dict[str, list[tuple[int, int]]] = {}
    for path in args.files:
        data = path.read_bytes() if path.suffix in WHOLE else b"\n".join(path.read_bytes().split(b"\n")[:LINES])
        for programs in (True, False) if path.suffix in (*OFFICE, *PAGE) else (False,):
            renderer = choose_renderer(identify_file(data[:4096]), data, path.name, programs=programs)
            assert isinstance(renderer, Renderer), renderer
            truth = [clean(each, path.name) for each in list_truth(data, path.name, renderer.name)]
            read = read_back(list_pictures(data, path.name, renderer), path.name, engine)
            compare = compare_anywhere if path.name.endswith(WITH_CELLS) else compare_in_order
            faults, changes = compare(truth, read)
            total = len("".join(truth))
            kinds.setdefault(f"{path.suffix} by {renderer.name}", []).append((total, faults))
            rate = 100 * (1 - faults / total)
            print(f"{path.name} by {renderer.name}: {total} characters, {rate:.2f} % read", flush=True)
            common = Counter(changes).most_common(SHOWN)
            print("   " + ", ".join(f"{old!r} -> {new!r} {count}x" for (old, new), count in common), flush=True)
    rows = [
        f"| {kind} | {len(found)} | {total:,} | {100 * (1 - wrong / total):.1f} % |"
        for kind, found in kinds.items()
        for total, wrong in [[sum(column) for column in zip(*found, strict=True)]]
    ]
    names = f"Files: {', '.join(path.name for path in args.files)}."
    table = ["| kind | files | characters | read |", "|---|---|---|---|", *rows]
    text = "\n".join(["<!-- Generated by bench/readback.py. -->", *table, "", names]) + "\n"
    print(text)
    if args.json:
        args.json.write_text(json.dumps({kind: sorted(found) for kind, found in kinds.items()}, indent=1) + "\n")
        args.json.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
