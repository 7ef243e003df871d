"""PowerPoint presentations (pptx) to blocks: each slide begins a page, its title first, then its content in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from posixpath import basename

from sightline.pixels.renderers.document_layout import Block
from sightline.pixels.renderers.flow_content import (
    BODY_SIZE,
    FlowContent,
    build_cells,
    make_heading,
    make_item,
    make_label,
    make_picture,
    merge_spans,
)
from sightline.pixels.renderers.office_archive import OfficeArchive, XmlNode
from sightline.pixels.renderers.page_layout import PageBreak, Paragraph, Span
from sightline.pixels.renderers.text_fonts import TextStyle

_PICTURE_BYTES = 24 * 1024 * 1024
_MAX_SLIDES = 500
_TITLES = frozenset({"title", "ctrTitle"})
_UNSEEN = frozenset({"sldNum", "dt", "ftr"})  # numbers, dates and footers, which only repeat themselves
_BULLETS = ("•", "◦", "▪")


def read_presentation(archive: OfficeArchive, main: str, root: XmlNode, content: FlowContent) -> None:
    """Read a pptx into `content`."""
    relations = archive.read_relations(main)
    order = root.find("sldIdLst")
    ids = [each.attributes.get("id", "") for each in (order.list("sldId") if order else ())]
    parts = [relations[each] for each in ids if each in relations]
    if len(parts) > _MAX_SLIDES:
        content.add_note(f"only the first {_MAX_SLIDES} slides are shown")
    for number, part in enumerate(parts[:_MAX_SLIDES], 1):
        slide = archive.parse(part)
        hidden = ", hidden" if slide is not None and slide.get("show") == "0" else ""
        content.blocks += [PageBreak()] if number > 1 else []
        content.blocks.append(make_label(f"Slide {number} of {len(parts)}{hidden}"))
        tree = slide.find("cSld", "spTree") if slide else None
        if tree is not None:
            content.blocks += _SlideReader(archive, archive.read_relations(part), content).read(tree)


@dataclass(slots=True)
class _SlideReader:
    archive: OfficeArchive
    relations: dict[str, str]
    content: FlowContent

    def read(self, tree: XmlNode) -> list[Block]:
        """Return the blocks of a slide, with its title before everything else."""
        shapes = list(_list_shapes(tree))
        titles = [each for each in shapes if _get_kind(each) in _TITLES]
        others = [each for each in shapes if each not in titles and _get_kind(each) not in _UNSEEN]
        return [block for shape in (*titles, *others) for block in self._read_shape(shape)]

    def _read_shape(self, shape: XmlNode) -> list[Block]:
        parts = (self.relations.get(node.get("embed"), "") for node in shape.walk("blip"))
        pictures = (make_picture(self.archive.read(part, _PICTURE_BYTES), basename(part)) for part in parts if part)
        blocks: list[Block] = list(pictures)
        if shape.name == "graphicFrame":
            tables = list(shape.walk("tbl"))
            for table in tables:
                blocks += self._read_table(table)
            return blocks if tables or blocks else [make_picture(b"", "a chart or diagram")]
        body = shape.find("txBody")
        return blocks + (list(_read_paragraphs(body, _get_kind(shape))) if body else [])

    def _read_table(self, table: XmlNode) -> list[Block]:
        rows = [[_read_cell(cell) for cell in row.list("tc")] for row in table.list("tr")]
        return build_cells(rows, self.content)


def _read_cell(cell: XmlNode) -> list[Block]:
    body = cell.find("txBody")
    is_merged = cell.get("hMerge") == "1" or cell.get("vMerge") == "1"
    return list(_read_paragraphs(body, "cell")) if body and not is_merged else []


def _list_shapes(tree: XmlNode) -> Iterator[XmlNode]:
    for node in tree.list():
        if node.name in ("grpSp", "AlternateContent", "Choice"):
            yield from _list_shapes(node)
        elif node.name in ("sp", "pic", "graphicFrame"):
            yield node


def _get_kind(shape: XmlNode) -> str:
    """Return what a shape is a place for: title, body and so on; empty: it is none."""
    place = shape.find("nvSpPr", "nvPr", "ph") or shape.find("nvPicPr", "nvPr", "ph")
    return place.get("type", "body") if place else ""


def _read_paragraphs(body: XmlNode, kind: str) -> Iterator[Block]:
    for paragraph in body.list("p"):
        spans = merge_spans(_read_runs(paragraph))
        if not any(span.text.strip() for span in spans):
            continue
        if kind in _TITLES:
            yield make_heading(spans, 1)
            continue
        properties = paragraph.find("pPr")
        level = int(properties.get("lvl", "0")) if properties and properties.get("lvl", "0").isdecimal() else 0
        names = {each.name for each in properties.list()} if properties else set()
        has_bullet = "buNone" not in names and (kind == "body" or bool(names & {"buChar", "buAutoNum"}))
        yield make_item(spans, _BULLETS[level % 3], level) if has_bullet else Paragraph(spans)


def _read_runs(paragraph: XmlNode) -> Iterator[Span]:
    style = TextStyle(BODY_SIZE)
    for node in paragraph.list():
        if node.name == "br":
            yield Span("\n", style)
        elif node.name in ("r", "fld"):
            properties, text = node.find("rPr"), node.find("t")
            shown = style
            if properties is not None:
                bold, italic = (properties.get(name) in ("1", "true") for name in ("b", "i"))
                shown = replace(style, bold=bold, italic=italic)
            yield Span(text.read_text() if text else "", shown)
        else:
            yield from (Span(each.read_text(), style) for each in node.walk("t"))
