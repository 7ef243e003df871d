"""Draw CSV and TSV as tables: the delimiter is found out, and numbers are aligned to the right."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import decode_text, describe_encoding, make_visible
from sightline.pixels.renderers.document_layout import TableBlock, TableCell, lay_blocks
from sightline.pixels.renderers.page_layout import Span, draw_document
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.source_code import MAX_TEXT_BYTES, TEXT_NEEDS, render_source
from sightline.pixels.renderers.text_fonts import FontLibrary, TextStyle

_SUFFIXES = frozenset({".csv", ".tsv", ".tab", ".psv"})
_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_MAX_ROWS, _MAX_COLUMNS = 5000, 60
_MAX_CELL = 8000  # characters, of which the layout cuts some
_NUMBER = re.compile(r"[-+(]?[$€£]?\s?\d[\d,.\u00a0 ]*(?:[eE][-+]?\d+)?\s?%?\)?")
_SIZE = 14


def render_table(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a table, or the source of some of its lines."""
    if options.lines is not None:
        return render_source(data, options)
    text, encoding = decode_text(data)
    rows = list(islice(read_rows(make_visible(text)), _MAX_ROWS + 1))
    if not rows:
        return render_source(data, options)
    notes = [describe_encoding(encoding)]
    if len(rows) > _MAX_ROWS:
        notes.append(f"only the first {_MAX_ROWS:,} rows are shown")
    widest = max(map(len, rows[:_MAX_ROWS]))
    if widest > _MAX_COLUMNS:
        notes.append(f"only the first {_MAX_COLUMNS} of {widest:,} columns are shown")
    fonts = FontLibrary()
    strips = lay_blocks([build_table([row[:_MAX_COLUMNS] for row in rows[:_MAX_ROWS]])], fonts)
    return draw_document(strips, options, fonts, ", ".join(filter(None, notes)))


def read_rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of a table that are not empty."""
    csv.field_size_limit(MAX_TEXT_BYTES)
    lines = text.split("\n")
    if lines and lines[0].lower().startswith("sep=") and len(lines[0]) == 5:
        delimiter, lines = lines[0][4], lines[1:]
    else:
        delimiter = find_delimiter(lines[:_SAMPLE_LINES])
    rows = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    return (row for row in rows if row)


def find_delimiter(lines: list[str]) -> str:
    """Return the character that divides most lines into the same number of cells."""

    def rate(delimiter: str) -> tuple[float, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        usual = max(set(counts), key=counts.count, default=1)
        return (counts.count(usual) / len(counts) if usual > 1 else 0.0), usual

    return max(_DELIMITERS, key=rate)


def build_table(rows: list[list[str]]) -> TableBlock:
    """Return rows of text as a table. A column of numbers is aligned to the right."""
    count = max(map(len, rows))
    numeric = [_is_numeric([row[at] for row in rows[1:] if at < len(row)]) for at in range(count)]
    head, body = TextStyle(_SIZE, mono=True, bold=True), TextStyle(_SIZE, mono=True)
    cells = [[TableCell([Span(_clip(text), head)], numeric[at]) for at, text in enumerate(rows[0])]]
    cells += [[TableCell([Span(_clip(text), body)], numeric[at]) for at, text in enumerate(row)] for row in rows[1:]]
    return TableBlock(cells)


def _is_numeric(texts: list[str]) -> bool:
    present = [text for text in texts if text.strip()]
    return bool(present) and all(_NUMBER.fullmatch(text.strip()) for text in present)


def _clip(text: str) -> str:
    return text.strip()[:_MAX_CELL]


TABLE_RENDERER = Renderer(
    "table",
    revision=2,
    mimes=frozenset({"text/plain"}),
    render=render_table,
    recognize=lambda data, suffix: suffix in _SUFFIXES,
    options=frozenset({"page", "lines", "suffix"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)
