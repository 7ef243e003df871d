"""Word documents (docx) to blocks: headings, lists, tables, pictures and notes, in the order of the text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from posixpath import basename

from sightline.pixels.renderers.document_layout import (
    BODY_SIZE,
    LINK_COLOUR,
    Block,
    FlowContent,
    build_cells,
    make_heading,
    make_item,
    make_picture,
    merge_spans,
)
from sightline.pixels.renderers.office_archive import OfficeArchive, XmlNode, resolve_part
from sightline.pixels.renderers.page_layout import Paragraph, RuleBlock, Span
from sightline.pixels.renderers.text_fonts import TextStyle

_OFF = frozenset({"0", "false", "none", "off"})
_WRAPPERS = frozenset(
    {"hyperlink", "ins", "moveTo", "smartTag", "sdt", "sdtContent", "fldSimple", "oMath", "oMathPara"}
)
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "ptab": "\t"}
_BULLETS = ("•", "◦", "▪")


@dataclass(frozen=True, slots=True)
class _ParagraphStyle:
    """What a paragraph is because of its style."""

    level: int = 0  # of a heading; 0: it is none
    list_id: str = ""
    list_level: int = 0


@dataclass(frozen=True, slots=True)
class _ListLevel:
    format: str
    text: str
    start: int


@dataclass(slots=True)
class _WordReader:
    archive: OfficeArchive
    relations: dict[str, str]
    folder: str
    content: FlowContent
    styles: dict[str, _ParagraphStyle] = field(default_factory=dict)
    lists: dict[str, list[_ListLevel]] = field(default_factory=dict)
    counters: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    depth: int = 0  # of tables

    def read_blocks(self, parent: XmlNode) -> list[Block]:
        """Return the blocks of a body, of a cell or of a text box."""
        blocks: list[Block] = []
        for node in parent.list():
            if node.name == "p":
                blocks += self._read_paragraph(node)
            elif node.name == "tbl":
                blocks += self._read_table(node)
            elif node.name in ("sdt", "sdtContent", "ins", "moveTo", "customXml"):
                blocks += self.read_blocks(node)
        return blocks

    def _read_table(self, table: XmlNode) -> list[Block]:
        rows = [[cell for each in row.list("tc") for cell in self._read_cell(each)] for row in table.list("tr")]
        return build_cells(rows, self.content)

    def _read_cell(self, cell: XmlNode) -> Iterator[list[Block]]:
        """Yield the blocks of a cell, and an empty cell for each further column that it spans."""
        merge = cell.find("tcPr", "vMerge")
        is_continued = merge is not None and merge.get("val", "continue") == "continue"
        blocks = [] if is_continued else [each for each in self.read_blocks(cell) if not _is_empty(each)]
        yield blocks
        span = cell.find("tcPr", "gridSpan")
        for _ in range(min(_read_int(span.get("val") if span else "", 1), 60) - 1):
            yield []

    def _read_paragraph(self, node: XmlNode) -> list[Block]:
        spans = merge_spans(self._read_runs(node, TextStyle(BODY_SIZE)))
        blocks = self._make_paragraph(node, spans)
        for drawing in node.walk("drawing", "pict"):
            blocks += self._read_drawing(drawing)
        return blocks

    def _make_paragraph(self, node: XmlNode, spans: list[Span]) -> list[Block]:
        style = self._choose_style(node)
        if not any(each.text.strip() for each in spans):
            border = node.find("pPr", "pBdr", "bottom")
            return [RuleBlock()] if border is not None else []
        if style.level:
            heading = make_heading(spans, style.level)
            marker = self._count_item(style)
            return (
                [replace(heading, spans=[Span(f"{marker} ", heading.spans[0].style), *heading.spans])]
                if marker
                else [heading]
            )
        if marker := self._count_item(style):
            return [make_item(spans, marker, style.list_level)]
        return [Paragraph(spans)]

    def _choose_style(self, node: XmlNode) -> _ParagraphStyle:
        properties = node.find("pPr")
        if properties is None:
            return _ParagraphStyle()
        named = properties.find("pStyle")
        return _read_style(properties, self.styles.get(named.get("val") if named else "", _ParagraphStyle()))

    def _count_item(self, style: _ParagraphStyle) -> str:
        """Return the marker of a list item, and count it; empty: the paragraph is in no list."""
        levels = self.lists.get(style.list_id, [])
        if style.list_level >= len(levels):
            return ""
        level, counts = levels[style.list_level], self.counters[style.list_id]
        counts[style.list_level] = counts.get(style.list_level, level.start - 1) + 1
        for deeper in [each for each in counts if each > style.list_level]:
            del counts[deeper]
        if level.format == "bullet":
            return _BULLETS[style.list_level % len(_BULLETS)]
        marker = level.text if level.format != "none" else ""
        for at, each in enumerate(levels):
            marker = marker.replace(f"%{at + 1}", format_number(counts.get(at, each.start), each.format))
        return marker

    def _read_runs(self, parent: XmlNode, style: TextStyle) -> Iterator[Span]:
        for node in parent.list():
            if node.name == "r":
                yield from self._read_run(node, style)
            elif node.name in _WRAPPERS:
                inner = replace(style, colour=LINK_COLOUR, line="under") if node.name == "hyperlink" else style
                yield from self._read_runs(node, inner)
            elif node.name not in ("pPr", "del", "moveFrom", "rPr"):
                yield from (Span(each.read_text(), style) for each in node.walk("t"))

    def _read_run(self, run: XmlNode, style: TextStyle) -> Iterator[Span]:
        properties = run.find("rPr")
        if properties is not None:
            if _is_on(properties, "vanish"):
                return
            style = _style_run(properties, style)
        for node in run.list():
            if node.name == "t":
                yield Span(node.read_text(), style)
            elif node.name in _BREAKS:
                yield Span(_BREAKS[node.name], style)
            elif node.name in ("footnoteReference", "endnoteReference"):
                yield Span(f"[{node.get('id')}]", style)
            elif node.name == "sym":
                yield Span("▪", style)

    def _read_drawing(self, drawing: XmlNode) -> list[Block]:
        """Return the pictures of a drawing and the text in its boxes, which have no place of their own here."""
        blocks: list[Block] = []
        for node in drawing.walk("blip", "imagedata"):
            part = self.relations.get(node.get("embed") or node.get("id"), "")
            if part:
                blocks.append(make_picture(self.archive.read_picture(part), basename(part)))
        if any(True for _ in drawing.walk("chart", "relIds")):
            blocks.append(make_picture(b"", "a chart or diagram"))
        for box in drawing.walk("txbxContent"):
            blocks += self.read_blocks(box)
        return blocks


def read_word(archive: OfficeArchive, main: str, root: XmlNode, content: FlowContent) -> None:
    """Read a docx into `content`."""
    folder = main.rpartition("/")[0]
    reader = _WordReader(archive, archive.read_relations(main), folder, content)
    reader.styles = _read_styles(archive.parse(resolve_part(folder, "styles.xml")))
    reader.lists = _read_lists(archive.parse(resolve_part(folder, "numbering.xml")))
    body = root.find("body")
    content.blocks += reader.read_blocks(body) if body else []
    for name in ("footnotes", "endnotes"):
        part = resolve_part(folder, f"{name}.xml")
        notes = archive.parse(part)
        reader.relations = archive.read_relations(part)
        for note in notes.list() if notes else ():
            if not note.get("type"):
                blocks = reader.read_blocks(note)
                content.blocks += [Paragraph([Span(f"[{note.get('id')}]", TextStyle(13))], space=2, keeps_next=True)]
                content.blocks += blocks


def _read_styles(root: XmlNode | None) -> dict[str, _ParagraphStyle]:
    """Return the styles by their ids. A style has what the one that it is based on has, unless it says otherwise."""
    nodes = {each.get("styleId"): each for each in (root.list("style") if root else ())}
    found: dict[str, _ParagraphStyle] = {}

    def resolve(name: str, depth: int) -> _ParagraphStyle:
        node = nodes.get(name)
        if node is None or depth > 12:
            return _ParagraphStyle()
        if name not in found:
            parent = node.find("basedOn")
            base = resolve(parent.get("val"), depth + 1) if parent else _ParagraphStyle()
            label = node.find("name")
            base = replace(base, level=_read_heading(label.get("val") if label else "") or base.level)
            properties = node.find("pPr")
            found[name] = _read_style(properties, base) if properties else base
        return found[name]

    return {name: resolve(name, 0) for name in nodes}


def _read_heading(name: str) -> int:
    """Return the level of a heading by the name of its style, which is English in every language of Word."""
    lower = name.lower()
    if lower == "title":
        return 1
    return _read_int(lower.removeprefix("heading "), 0) if lower.startswith("heading ") else 0


def _read_style(properties: XmlNode, base: _ParagraphStyle) -> _ParagraphStyle:
    outline, number = properties.find("outlineLvl"), properties.find("numPr")
    if outline is not None and (level := _read_int(outline.get("val"), 9)) < 9:
        base = replace(base, level=level + 1)
    if number is not None:
        name, depth = number.find("numId"), number.find("ilvl")
        base = replace(
            base,
            list_id=name.get("val") if name else base.list_id,
            list_level=_read_int(depth.get("val"), 0) if depth else base.list_level,
        )
    return base


def _read_lists(root: XmlNode | None) -> dict[str, list[_ListLevel]]:
    """Return the levels of each list by its id."""
    if root is None:
        return {}
    kinds = {each.get("abstractNumId"): list(map(_read_level, each.list("lvl"))) for each in root.list("abstractNum")}
    found = {}
    for number in root.list("num"):
        kind = number.find("abstractNumId")
        found[number.get("numId")] = kinds.get(kind.get("val") if kind else "", [])
    return found


def _read_level(level: XmlNode) -> _ListLevel:
    values = {each.name: each.get("val") for each in level.list()}
    return _ListLevel(values.get("numFmt", "decimal"), values.get("lvlText", ""), _read_int(values.get("start", ""), 1))


def format_number(number: int, kind: str) -> str:
    """Return the number of a list item as its list counts."""
    if kind in ("lowerLetter", "upperLetter", "a", "A") and number > 0:
        letters = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 9)
        return letters.upper() if kind in ("upperLetter", "A") else letters
    if kind in ("lowerRoman", "upperRoman", "i", "I") and 0 < number < 4000:
        roman = _write_roman(number)
        return roman if kind in ("upperRoman", "I") else roman.lower()
    return str(number)


def _write_roman(number: int) -> str:
    pairs = zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split(), strict=True
    )
    written = ""
    for value, letters in pairs:
        written += letters * (number // value)
        number %= value
    return written


def _style_run(properties: XmlNode, style: TextStyle) -> TextStyle:
    line = "through" if _is_on(properties, "strike") else "under" if _is_on(properties, "u") else style.line
    return replace(
        style,
        bold=style.bold or _is_on(properties, "b"),
        italic=style.italic or _is_on(properties, "i"),
        line=line,
    )


def _is_on(properties: XmlNode, name: str) -> bool:
    found = properties.find(name)
    return found is not None and found.get("val", "1").lower() not in _OFF


def _is_empty(block: Block) -> bool:
    return isinstance(block, Paragraph) and not any(span.text.strip() for span in block.spans)


def _read_int(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else default
