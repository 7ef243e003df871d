"""Draw markdown and notebooks: headings, lists, quotes, tables, code in colours, and pictures in the file itself.

A notebook also has what its code printed, and the pictures that it made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import decode_text, describe_encoding, make_visible
from sightline.pixels.renderers.code_listing import colour_lines, split_lines
from sightline.pixels.renderers.document_layout import (
    Block,
    TableBlock,
    TableCell,
    lay_blocks,
    open_base64,
    open_data_url,
)
from sightline.pixels.renderers.page_layout import (
    CODE_GROUND,
    MUTED,
    CodeBlock,
    Paragraph,
    PictureBlock,
    RuleBlock,
    Span,
    draw_document,
)
from sightline.pixels.renderers.renderer import PythonPackage, RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.source_code import TEXT_NEEDS, find_lexer_by_language, render_source
from sightline.pixels.renderers.text_fonts import FontLibrary, TextStyle

if TYPE_CHECKING:
    from markdown_it.token import Token

MARKDOWN_IT = PythonPackage("markdown_it", "markdown-it-py", "pip install markdown-it-py")
_MAX_BYTES = 512 * 1024  # above it, the source is drawn: laying it out would take too long
_MAX_BRACKETS = 4000  # of a paragraph: the parser compares each with all others
_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".rmd", ".qmd"})
_BODY, _CODE = 16, 14
_HEADINGS = {"h1": 28, "h2": 23, "h3": 19, "h4": 17, "h5": 16, "h6": 15}
_LINK = "#0b4fa8"
_SPACE = 12
_MAX_NESTING = 24  # of lists, their items and quotes: there is no room for more on a page
_STEP = 28  # pixels that a list or a quote is indented
_TASKS = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}


def render_markdown(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a markdown file, or the source of some of its lines."""
    if options.lines is not None:
        return render_source(data, options)
    if len(data) > _MAX_BYTES or any(each.count(b"[") > _MAX_BRACKETS for each in data.split(b"\n\n")):
        return render_source(data, options, "too large to be laid out: its source is shown")
    text, encoding = decode_text(data)
    fonts = FontLibrary()
    strips = lay_blocks(read_markdown(text), fonts)
    return draw_document(strips, options, fonts, describe_encoding(encoding))


def read_markdown(text: str, indent: int = 0) -> list[Block]:
    """Return the blocks of a markdown text; of one that is nested too deeply, its source."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable(["table", "strikethrough"])
    tokens = parser.parse(make_visible(text))
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return [CodeBlock(make_code_lines(make_visible(text), "markdown"), indent)]
    reader = _BlockReader(indent)
    reader.read(tokens)
    return reader.blocks


@dataclass(slots=True)
class _BlockReader:
    """Goes through the tokens of a document and collects its blocks."""

    indent: int = 0
    blocks: list[Block] = field(default_factory=list)
    bars: list[int] = field(default_factory=list)
    counters: list[int | None] = field(default_factory=list)  # of the lists around; None: bullets
    marker: str = ""
    heading: str = ""
    rows: list[list[TableCell]] = field(default_factory=list)
    is_right: bool = False
    is_tight: bool = False

    def read(self, tokens: Sequence[Token]) -> None:
        """Read all tokens."""
        for token in tokens:
            name = token.type.removesuffix("_open").removesuffix("_close")
            match name, token.nesting:
                case (("bullet_list" | "ordered_list" | "blockquote"), 1 | -1):
                    self._nest(token)
                case "list_item", 1:
                    self._start_item()
                case "heading", 1:
                    self.heading = token.tag
                case "heading", -1:
                    self.heading = ""
                case "paragraph", 1:
                    self.is_tight = token.hidden
                case (("table" | "tr" | "th" | "td"), 1 | -1):
                    self._read_table(token)
                case _, 0:
                    self._read_leaf(token)

    def _nest(self, token: Token) -> None:
        step = _STEP * token.nesting
        if token.type == "blockquote_open":
            self.bars.append(self.indent + 4)
        elif token.type == "blockquote_close":
            self.bars.pop()
        elif token.nesting == 1:
            start = token.attrGet("start")
            self.counters.append(int(start or 1) if token.type == "ordered_list_open" else None)
        else:
            self.counters.pop()
            if not self.counters and isinstance(last := self.blocks[-1] if self.blocks else None, Paragraph):
                self.blocks[-1] = replace(last, space=_SPACE)
        self.indent += step

    def _start_item(self) -> None:
        number = self.counters[-1]
        self.marker = "•" if number is None else f"{number}."
        if number is not None:
            self.counters[-1] = number + 1

    def _read_table(self, token: Token) -> None:
        match token.type:
            case "table_open":
                self.rows = []
            case "table_close":
                self.blocks.append(TableBlock(self.rows, self.indent))
                self.rows = []
            case "tr_open":
                self.rows.append([])
            case "th_open" | "td_open":
                self.is_right = "right" in str(token.attrGet("style") or "")
                self.rows[-1].append(TableCell([], self.is_right))

    def _read_leaf(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._read_inline(token)
            case "fence" | "code_block":
                self._add_code(token.content, token.info.strip().split(" ")[0])
            case "html_block":
                self._add_code(token.content, "html")
            case "hr":
                self.blocks.append(RuleBlock(self.indent))

    def _add_code(self, text: str, language: str) -> None:
        lines = make_code_lines(text, language)
        self.blocks.append(CodeBlock(lines, self.indent, bars=tuple(self.bars)))

    def _read_inline(self, token: Token) -> None:
        if self.rows and self.rows[-1]:
            style = TextStyle(_CODE, bold=len(self.rows) == 1)
            self.rows[-1][-1] = TableCell(list(_read_spans(token, style)), self.is_right)
            return
        size = _HEADINGS.get(self.heading, _BODY)
        spans = list(_read_spans(token, TextStyle(size, bold=bool(self.heading))))
        spans, marker = self._take_marker(spans)
        self.blocks.append(
            Paragraph(
                spans,
                self.indent,
                marker,
                tuple(self.bars),
                space=4 if self.is_tight and not self.heading else _SPACE,
                keeps_next=bool(self.heading),
                underline=self.heading in ("h1", "h2"),
            )
        )
        self._add_pictures(token)

    def _take_marker(self, spans: list[Span]) -> tuple[list[Span], Span | None]:
        """Return the marker of a list item with its first paragraph; a task has a box."""
        marker, self.marker = self.marker, ""
        if not marker:
            return spans, None
        if spans and (box := _TASKS.get(spans[0].text[:4])):
            marker, spans[0] = box, replace(spans[0], text=spans[0].text[4:])
        return spans, Span(marker, TextStyle(_BODY))

    def _add_pictures(self, token: Token) -> None:
        for child in token.children or ():
            picture = open_data_url(str(child.attrGet("src") or "")) if child.type == "image" else None
            if picture is not None:
                self.blocks.append(PictureBlock(picture, self.indent))


def make_code_lines(text: str, language: str) -> list[list[Span]]:
    """Return code as coloured lines."""
    lines = split_lines(text)
    lexer = find_lexer_by_language(language)
    if lexer is None:
        return [[Span(line, TextStyle(_CODE, mono=True))] for line in lines]
    parts = colour_lines(lines, lexer, _CODE)
    return [
        [Span(line[start:stop], style) for start, stop, style in found]
        for line, found in zip(lines, parts, strict=True)
    ]


def _read_spans(token: Token, base: TextStyle) -> Iterator[Span]:
    """Yield the text of a paragraph in its styles."""
    stack = [base]
    for child in token.children or ():
        style = stack[-1]
        match child.type:
            case "strong_open":
                stack.append(replace(style, bold=True))
            case "em_open":
                stack.append(replace(style, italic=True))
            case "s_open":
                stack.append(replace(style, line="through"))
            case "link_open":
                stack.append(replace(style, colour=_LINK, line="under"))
            case "strong_close" | "em_close" | "s_close" | "link_close":
                stack.pop()
            case "code_inline":
                size = max(12, round(style.size * 0.92))
                yield Span(child.content, replace(style, mono=True, size=size, ground=CODE_GROUND))
            case "softbreak":
                yield Span(" ", style)
            case "hardbreak":
                yield Span("\n", style)
            case "image":
                if not open_data_url(str(child.attrGet("src") or "")):
                    yield Span(f"[image: {child.content or child.attrGet('src')}]", replace(style, colour=MUTED))
            case _:
                yield Span(child.content, style)


MARKDOWN_RENDERER = Renderer(
    "markdown",
    revision=2,
    mimes=frozenset({"text/plain", "text/html", "application/xml"}),
    render=render_markdown,
    recognize=lambda data, suffix: suffix in _SUFFIXES,
    options=frozenset({"page", "lines", "suffix"}),
    needs=(MARKDOWN_IT, *TEXT_NEEDS),
)


# Notebooks


_MAX_CELLS, _MAX_CELL_CHARACTERS, _MAX_OUTPUT_CHARACTERS = 2000, 100_000, 20_000
_INDENT = 20
_ERROR_GROUND = "#fdecec"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_IN, _OUT = (TextStyle(14, mono=True, bold=True, colour=colour) for colour in ("#0b4fa8", "#a33a00"))


def render_notebook(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a notebook, or its source if it is not one."""
    notebook = None if options.lines is not None else _parse(decode_text(data)[0])
    if notebook is None:
        return render_source(data, options)
    fonts = FontLibrary()
    blocks = list(read_notebook(notebook)) or [Paragraph([Span("This notebook is empty.", TextStyle(colour=MUTED))])]
    cut = len(_list(notebook.get("cells"))) > _MAX_CELLS
    note = f"only the first {_MAX_CELLS:,} cells are shown" if cut else ""
    return draw_document(lay_blocks(blocks, fonts), options, fonts, note)


def _parse(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_notebook = isinstance(parsed, dict) and isinstance(parsed.get("cells"), list)
    return parsed if is_notebook else None


def read_notebook(notebook: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of all cells."""
    metadata = _dict(notebook.get("metadata"))
    language = str(_dict(metadata.get("language_info")).get("name") or "python")
    for cell in map(_dict, _list(notebook["cells"])[:_MAX_CELLS]):
        source = _join(cell.get("source"))[:_MAX_CELL_CHARACTERS]
        if cell.get("cell_type") == "markdown":
            yield from read_markdown(source)
        elif cell.get("cell_type") == "code":
            label = Span(f"In [{_get_count(cell)}]:", _IN)
            yield CodeBlock(make_code_lines(source, language), _INDENT, label=label)
            yield from chain.from_iterable(map(_read_output, map(_dict, _list(cell.get("outputs")))))
        elif source.strip():
            yield CodeBlock(make_code_lines(source, ""), _INDENT)


def _read_output(output: dict[str, Any]) -> Iterator[Block]:
    """Yield what a cell printed, returned, drew or raised."""
    match output.get("output_type"):
        case "stream":
            ground = _ERROR_GROUND if output.get("name") == "stderr" else ""
            yield _make_text(_join(output.get("text")), ground)
        case "error":
            lines = _join([f"{line}\n" for line in map(str, _list(output.get("traceback")))])
            yield _make_text(lines or f"{output.get('ename')}: {output.get('evalue')}", _ERROR_GROUND)
        case "execute_result" | "display_data":
            yield from _read_data(output)


def _read_data(output: dict[str, Any]) -> Iterator[Block]:
    data = _dict(output.get("data"))
    label = Span(f"Out[{_get_count(output)}]:", _OUT) if output.get("output_type") == "execute_result" else None
    encoded = next((_join(data[mime]) for mime in ("image/png", "image/jpeg", "image/gif") if mime in data), "")
    picture = open_base64(encoded) if encoded else None
    if picture is not None:
        if label:
            yield Paragraph([label], space=2, keeps_next=True)
        yield PictureBlock(picture, _INDENT)
    elif "text/markdown" in data:
        yield from read_markdown(_join(data["text/markdown"])[:_MAX_OUTPUT_CHARACTERS], _INDENT)
    elif "text/plain" in data or "text/html" in data:
        yield _make_text(_join(data.get("text/plain") or data.get("text/html")), "", label)
    elif encoded or data:
        kinds = ", ".join(sorted(map(str, data)))[:200]
        yield Paragraph([Span(f"[output that cannot be drawn: {kinds}]", TextStyle(14, colour=MUTED))], _INDENT)


def _make_text(text: str, ground: str, label: Span | None = None) -> CodeBlock:
    """Return printed text, without the codes that colour a terminal and without lines that were written over."""
    plain = _ANSI.sub("", text)[:_MAX_OUTPUT_CHARACTERS]
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in plain.rstrip("\n").split("\n")]
    if len(text) > _MAX_OUTPUT_CHARACTERS:
        lines.append(f"… ({len(text):,} characters in all)")
    return CodeBlock(make_code_lines("\n".join(lines), ""), _INDENT, ground, label)


def _get_count(values: dict[str, Any]) -> str:
    count = values.get("execution_count")
    return str(count) if isinstance(count, int) else " "


def _join(value: Any) -> str:
    """Return text that a notebook has as a string or as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def is_notebook(data: bytes, suffix: str) -> bool:
    """Return whether a text is a notebook, by its name, or by what it has if it has none."""
    return suffix == ".ipynb" or (suffix == "" and data.lstrip()[:1] == b"{" and b'"nbformat"' in data)


NOTEBOOK_RENDERER = Renderer(
    "notebook",
    revision=1,
    mimes=frozenset({"text/plain"}),
    render=render_notebook,
    recognize=is_notebook,
    options=frozenset({"page", "lines", "suffix"}),
    needs=(MARKDOWN_IT, *TEXT_NEEDS),
    max_bytes=32 * 1024 * 1024,
)
