"""Draw text files: programs in any language and encoding, diffs, JSON, and tables in CSV or TSV.

JSON is indented. Short lists and objects are on one line, and brackets that would be alone on their lines are beside
each other. Only the space between tokens is changed: numbers, strings and the order of keys stay as they are in the
file. Nothing is parsed into objects, so neither depth nor size matters. What is not JSON is drawn as it is.

The delimiter of a table is found out, and numbers are aligned to the right.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import decode_text, describe_encoding, make_visible
from sightline.pixels.renderers.code_listing import CodeListing, LineTint, render_listing, split_lines
from sightline.pixels.renderers.document_layout import TableBlock, TableCell, lay_blocks
from sightline.pixels.renderers.page_layout import Span, draw_document
from sightline.pixels.renderers.renderer import PythonPackage, RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.text_fonts import FontLibrary, SystemFonts, TextStyle

if TYPE_CHECKING:
    from pygments.lexer import Lexer

PYGMENTS = PythonPackage("pygments", "pygments", "pip install pygments")
TEXT_NEEDS = (PYGMENTS, SystemFonts())
MAX_TEXT_BYTES = 32 * 1024 * 1024
TEXT_MIMES = frozenset({"text/plain", "application/xml", "text/html"})
_LEXERS_BY_NAME = {"dockerfile": "docker", "makefile": "make", "jenkinsfile": "groovy", "gemfile": "ruby"}
_SHEBANG = re.compile(r"#!.*?\b(python|bash|sh|zsh|node|perl|ruby|php|lua|awk|fish|tcl|Rscript)[\d.]*\b")
_LEXERS_BY_PROGRAM = {"sh": "bash", "node": "javascript", "Rscript": "r"}


def render_code(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a text or a program."""
    return render_source(data, options)


def render_source(data: bytes, options: RenderOptions, note: str = "") -> RenderedDocument | Refusal:
    """Draw the source of a file of any kind of text."""
    text, encoding = decode_text(data)
    notes = ", ".join(filter(None, (note, describe_encoding(encoding))))
    return render_listing(CodeListing(split_lines(text), find_lexer(options.suffix, text[:2000]), note=notes), options)


def find_lexer(suffix: str, head: str) -> Lexer | None:
    """Return the lexer for a file by its suffix and its beginning; None: it is plain text."""
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    program = _SHEBANG.match(head)
    try:
        if suffix in _LEXERS_BY_NAME:
            return get_lexer_by_name(_LEXERS_BY_NAME[suffix])
        if suffix.startswith(".") and suffix != ".txt":
            return get_lexer_for_filename(f"file{suffix}", head)
        if program:
            return get_lexer_by_name(_LEXERS_BY_PROGRAM.get(program[1], program[1]))
        return get_lexer_by_name("xml") if head.lstrip().startswith("<?xml") else None
    except ClassNotFound:
        return None


def find_lexer_by_language(language: str) -> Lexer | None:
    """Return the lexer for a language by its name or an alias of it; None: there is none."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


CODE_RENDERER = Renderer(
    "code",
    revision=1,
    mimes=TEXT_MIMES,
    render=render_code,
    options=frozenset({"page", "lines", "suffix"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)


# Diffs


_DIFF_SUFFIXES = frozenset({".diff", ".patch", ".rej"})
_START = re.compile(rb"(?:diff --git |diff -\S+ |Index: |--- \S.*\n\+\+\+ \S|\*\*\* \S.*\n--- \S|From [0-9a-f]{40} )")
_FILE = LineTint("#d0d7e2", bold=True)
_TINTS = (
    (("diff ", "Index: "), _FILE),
    (("+++ ", "--- ", "*** "), LineTint("#e8ecf2", bold=True)),
    (("index ", "new file", "deleted file", "similarity ", "rename ", "old mode", "new mode"), LineTint("#e8ecf2")),
    (("@@",), LineTint("#ddeeff", "#0b4fa8")),
    (("+", ">"), LineTint("#d9f5de", "#0d4f1c", has_sign=True)),
    (("-", "<"), LineTint("#fde0e0", "#8a1414", has_sign=True)),
    (("!",), LineTint("#fff3cd", "#6b4e00", has_sign=True)),
)


def render_diff(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a diff or a patch."""
    text, encoding = decode_text(data)
    listing = CodeListing(split_lines(text), gap=1, tint=choose_tint, note=describe_encoding(encoding))
    return render_listing(listing, options)


def choose_tint(line: str) -> LineTint | None:
    """Return the look of a line by how it begins; None: it is context or a message."""
    return next((tint for starts, tint in _TINTS if line.startswith(starts)), None)


def is_diff(data: bytes, suffix: str) -> bool:
    """Return whether a text is a diff, by its name, or by how it begins if it has none."""
    return suffix in _DIFF_SUFFIXES or (suffix in ("", ".txt") and _START.match(data) is not None)


DIFF_RENDERER = Renderer(
    "diff",
    revision=2,
    mimes=frozenset({"text/plain"}),
    render=render_diff,
    recognize=is_diff,
    options=frozenset({"page", "lines"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)


# JSON


_JSON_SUFFIXES = frozenset({".json", ".geojson", ".jsonl", ".ndjson", ".webmanifest", ".har"})
_TOKEN = re.compile(r'\s*("(?:[^"\\\x00-\x1f]|\\.)*"|[\[\]{},:]|-?\d[\d.eE+-]*|true|false|null)\s*')
_INNERMOST = re.compile(r"(\[[^\[\]{}]{0,400}\]|\{[^\[\]{}]{0,400}\})\s*")  # if no string in it has a bracket
_MAX_SHORT = 72  # characters of a list or an object on one line
_CLOSING = re.compile(r"(?:\n *[\]}])+")
_NEXT_ITEM = re.compile(r"(\n *[\]}]+,)\n *([\[{])(?=\n)")
_MAX_TOKENS = 1_000_000
_MAX_INDENT = 40  # levels; deeper ones are not indented any more


def render_json(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a JSON file, or its own lines if some were asked for."""
    text, encoding = decode_text(data)
    pretty = None if options.lines is not None else indent_json(text)
    if pretty is None:
        return render_source(data, options)
    lines = split_lines(pretty)
    note = "" if pretty.strip() == text.strip() else "indented for reading"
    notes = ", ".join(filter(None, (note, describe_encoding(encoding))))
    lexer = find_lexer_by_language("json")
    return render_listing(CodeListing(lines, lexer, has_numbers=not note, note=notes), options)


def indent_json(text: str) -> str | None:
    """Return JSON, or several values after each other, with each member on its own line; None: it is not JSON."""
    pieces: list[str] = []
    open_brackets: list[str] = []
    at, end = 0, len(text)
    while at < end:
        short = _INNERMOST.match(text, at)
        if short and (line := _join_tokens(short[1])):
            pieces.append(line)
            at = short.end()
        elif found := _TOKEN.match(text, at):
            if not _add_token(found[1], pieces, open_brackets):
                return None
            at = found.end()
        elif not text[at:].strip():
            break
        else:
            return None
        if not open_brackets:
            pieces.append("\n")
        if len(pieces) > _MAX_TOKENS:
            return None
    return None if open_brackets or not pieces else _join_brackets("".join(pieces))


def _join_tokens(text: str) -> str:
    """Return a list or an object of scalars on one line; empty: it is too long for that, or is not JSON."""
    pieces, at = list[str](), 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return ""
        pieces.append({",": ", ", ":": ": "}.get(found[1], found[1]))
        at = found.end()
    line = "".join(pieces)
    return line if len(line) <= _MAX_SHORT else ""


def _join_brackets(text: str) -> str:
    """Put brackets beside each other that would be alone on their lines, where a reader overlooks them."""
    joined = _CLOSING.sub(lambda found: found[0][found[0].rindex("\n") : -1] + "".join(found[0].split()), text)
    return _NEXT_ITEM.sub(r"\1 \2", joined)


def _add_token(piece: str, pieces: list[str], open_brackets: list[str]) -> bool:
    """Add a token with the space around it; return whether the brackets match."""
    if piece in ("{", "["):
        open_brackets.append("}" if piece == "{" else "]")
        pieces.append(piece + _start_line(open_brackets))
    elif piece in ("}", "]"):
        if not open_brackets or open_brackets.pop() != piece:
            return False
        pieces.append(_start_line(open_brackets) + piece)
    elif piece == ",":
        pieces.append("," + _start_line(open_brackets))
    else:
        pieces.append(": " if piece == ":" else piece)
    return True


def _start_line(open_brackets: list[str]) -> str:
    return "\n" + "  " * min(len(open_brackets), _MAX_INDENT)


def is_json(data: bytes, suffix: str) -> bool:
    """Return whether a text is JSON, by its name, or by how it begins if it has none."""
    return suffix in _JSON_SUFFIXES or (suffix == "" and data.lstrip()[:1] in (b"{", b"["))


JSON_RENDERER = Renderer(
    "json",
    revision=2,
    mimes=frozenset({"text/plain"}),
    render=render_json,
    recognize=is_json,
    options=frozenset({"page", "lines", "suffix"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)


# Tables


_TABLE_SUFFIXES = frozenset({".csv", ".tsv", ".tab", ".psv"})
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
    recognize=lambda data, suffix: suffix in _TABLE_SUFFIXES,
    options=frozenset({"page", "lines", "suffix"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)
