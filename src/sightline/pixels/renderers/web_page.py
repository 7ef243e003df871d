"""Draw web pages by a layout of our own, where no browser is installed: text, headings, lists, tables and code.

Styles, scripts and everything outside the file are ignored; pictures are drawn if the page has them as `data:` URLs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import decode_text, describe_encoding, identify_file
from sightline.pixels.renderers.document_layout import (
    BODY_SIZE,
    LINK_COLOUR,
    LIST_STEP,
    Block,
    FlowContent,
    build_cells,
    lay_blocks,
    make_heading,
    make_item,
    make_label,
    merge_spans,
    open_data_url,
)
from sightline.pixels.renderers.markdown import make_code_lines
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
from sightline.pixels.renderers.renderer import InstalledProgram, RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.source_code import TEXT_NEEDS, render_source
from sightline.pixels.renderers.text_fonts import FontLibrary, TextStyle

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# Windows gives the browser no pipe.
CHROMIUM = InstalledProgram(() if sys.platform == "win32" else _NAMES + _MAC, "sudo apt-get install chromium")
HTML_MIMES = frozenset({"text/html", "text/plain"})  # a page may begin with any element
_SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
_MAX_BYTES = 4 * 1024 * 1024
_MAX_DEPTH = 100
_UNSEEN = frozenset(
    "script style head template noscript iframe object svg math audio video canvas select datalist".split()
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_BLOCKS = frozenset(
    """address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol p pre section summary table tbody td tfoot th
    thead tr ul""".split()
)
_ENDS = {"li": {"li"}, "td": {"td", "th"}, "th": {"td", "th"}, "tr": {"tr", "td", "th"}, "p": {"p"}, "dt": {"dt", "dd"}}
_ENDS |= {"dd": {"dt", "dd"}, "option": {"option"}}
_SCOPES = frozenset({"table", "ul", "ol", "dl"})
_BULLETS = ("•", "◦", "▪")


def render_web_page(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw the text of a web page."""
    if len(data) > _MAX_BYTES:
        return render_source(data, options, "too large to be laid out: its source is shown")
    text, encoding = decode_text(data)
    content = read_web_page(text)
    content.cut()
    fonts = FontLibrary()
    blocks = content.blocks or [make_label("This page has no text.")]
    notes = ", ".join(filter(None, (*content.notes, describe_encoding(encoding))))
    return draw_document(lay_blocks(blocks, fonts), options, fonts, notes)


def read_web_page(text: str) -> FlowContent:
    """Return the content of a web page."""
    reader = _PageReader()
    reader.feed(text)
    reader.close()
    reader.end_paragraph()
    while reader.tables:
        reader.end_table()
    return reader.content


def is_web_page(data: bytes, suffix: str) -> bool:
    """Return whether a text is a web page: by its name, or without one by its beginning.

    Templates and components begin like a page, but have names of their own.
    """
    if suffix:
        return suffix in _SUFFIXES and b"<" in data
    return identify_file(data).mime == "text/html"


@dataclass(slots=True)
class _OpenTable:
    """A table that is being read: its cells, and where its blocks would have gone."""

    outer: list[Block]
    rows: list[list[list[Block]]] = field(default_factory=list)


class _PageReader(HTMLParser):
    """Goes through the tags of a page and collects its blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.content = FlowContent()
        self.tables: list[_OpenTable] = []
        self._blocks: list[Block] = self.content.blocks
        self._spans: list[Span] = []
        self._open: list[str] = []
        self._unseen = 0  # elements around that are not shown
        self._lists: list[int | None] = []  # what the lists around count; None: bullets
        self._marker = ""
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._close_ending_elements(tag)
        if tag not in _VOID:
            if len(self._open) >= _MAX_DEPTH:
                return
            self._open.append(tag)
            self._unseen += tag in _UNSEEN
        if self._unseen:
            return
        if tag in _BLOCKS:
            self.end_paragraph()
        self._start(tag, {name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._close_last() != tag:
                continue

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        text = data if self._pre else " ".join(f"x{data}x".split())[1:-1]
        if text and (text.strip() or self._spans):
            self._spans.append(Span(text, self._get_style()))

    def end_paragraph(self) -> None:
        """Add the text that was read since the last block."""
        spans, self._spans = merge_spans(self._spans), []
        text = "".join(span.text for span in spans)
        if not text.strip():
            return
        heading = next((each for each in reversed(self._open) if each[0] == "h" and each[1:].isdigit()), "")
        marker, self._marker = self._marker, ""
        level = len(self._lists) - 1
        if self._pre:
            self._blocks.append(CodeBlock(make_code_lines(text.strip("\n"), "")))
        elif heading:
            self._blocks.append(make_heading(spans, int(heading[1:])))
        elif self._lists:
            self._blocks.append(make_item(spans, marker, level))
        else:
            depth = self._open.count("blockquote")
            bars = tuple(LIST_STEP * each + 4 for each in range(min(depth, 8)))
            self._blocks.append(Paragraph(spans, LIST_STEP * min(depth, 8), bars=bars))

    def end_table(self) -> None:
        """Add the table that is open."""
        table = self.tables.pop()
        self._blocks = table.outer
        self._blocks += build_cells(table.rows, self.content)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        match tag:
            case "br":
                self._spans.append(Span("\n", self._get_style()))
            case "hr":
                self._blocks.append(RuleBlock())
            case "pre":
                self._pre += 1
            case "ul" | "ol" | "menu":
                start = attributes.get("start", "1")
                self._lists.append((int(start) if start.isdecimal() else 1) if tag == "ol" else None)
            case "li":
                self._count_item()
            case "img":
                self._add_image(attributes)
            case "input" if attributes.get("type", "text") not in ("hidden", "submit", "button"):
                self._spans.append(Span(f"[{attributes.get('value') or attributes.get('placeholder') or '    '}]"))
            case "table":
                self.tables.append(_OpenTable(self._blocks))
                self._blocks = []
            case "tr" if self.tables:
                self.tables[-1].rows.append([])
            case "td" | "th" if self.tables:
                self._start_cell(attributes)

    def _start_cell(self, attributes: dict[str, str]) -> None:
        rows = self.tables[-1].rows
        if not rows:
            rows.append([])
        self._blocks = []
        rows[-1].append(self._blocks)
        span = attributes.get("colspan", "1")
        rows[-1] += [[] for _ in range(min(int(span), 60) - 1 if span.isdecimal() and len(span) < 4 else 0)]

    def _count_item(self) -> None:
        number = self._lists[-1] if self._lists else None
        self._marker = _BULLETS[(len(self._lists) - 1) % 3] if number is None else f"{number}."
        if number is not None:
            self._lists[-1] = number + 1

    def _add_image(self, attributes: dict[str, str]) -> None:
        picture = open_data_url(attributes.get("src", ""))
        if picture is not None:
            self.end_paragraph()
            self._blocks.append(PictureBlock(picture))
        elif attributes.get("alt", "").strip():
            self._spans.append(Span(f"[image: {attributes['alt'][:200]}]", TextStyle(BODY_SIZE, colour=MUTED)))

    def _close_ending_elements(self, tag: str) -> None:
        """Close elements that end where this one begins, such as a list item before the next one."""
        ends = _ENDS.get("p" if tag in _BLOCKS and tag not in _ENDS else tag, set())
        while self._open and self._open[-1] in ends:
            self._close_last()
        if tag in ("td", "th", "tr", "li", "dt", "dd"):
            inner = next((at for at in range(len(self._open) - 1, -1, -1) if self._open[at] in _SCOPES), -1)
            if any(each in ends for each in self._open[inner + 1 :]):
                while self._open[inner + 1 :] and any(each in ends for each in self._open[inner + 1 :]):
                    self._close_last()

    def _close_last(self) -> str:
        tag = self._open[-1]
        if not self._unseen and tag in _BLOCKS:
            self.end_paragraph()
        self._open.pop()
        if tag in _UNSEEN:
            self._unseen -= 1
        elif not self._unseen:
            self._finish(tag)
        return tag

    def _finish(self, tag: str) -> None:
        if tag == "pre":
            self._pre = max(0, self._pre - 1)
        elif tag in ("ul", "ol", "menu") and self._lists:
            self._lists.pop()
        elif tag == "table" and self.tables:
            self.end_table()

    def _get_style(self) -> TextStyle:
        tags = set(self._open)
        style = TextStyle(BODY_SIZE, bold=bool(tags & {"b", "strong", "dt"}), italic=bool(tags & {"i", "em", "cite"}))
        if tags & {"code", "kbd", "samp", "tt"}:
            style = replace(style, mono=True, size=14, ground=CODE_GROUND)
        if tags & {"s", "del", "strike"}:
            return replace(style, line="through")
        return replace(style, colour=LINK_COLOUR, line="under") if "a" in tags else style


WEB_PAGE_RENDERER = Renderer(
    "webpage",
    revision=1,
    mimes=HTML_MIMES,
    render=render_web_page,
    recognize=is_web_page,
    options=frozenset({"page"}),
    needs=TEXT_NEEDS,
    max_bytes=32 * 1024 * 1024,
    note=f"only its text is laid out, without styles; to see the page itself, run: {CHROMIUM.install}",
)
