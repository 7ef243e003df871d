"""The blocks of a document to the strips of its pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sightline.pixels.renderers.page_layout import (
    TEXT_WIDTH,
    CodeBlock,
    PageBreak,
    Paragraph,
    PictureBlock,
    RuleBlock,
    Strip,
    lay_code,
    lay_paragraph,
    lay_picture,
    lay_rule,
    make_gap,
)
from sightline.pixels.renderers.table_layout import TableBlock, lay_table
from sightline.pixels.renderers.text_fonts import FontLibrary

Block = Paragraph | CodeBlock | TableBlock | PictureBlock | RuleBlock | PageBreak


def lay_blocks(blocks: Iterable[Block], fonts: FontLibrary, width: int = TEXT_WIDTH) -> list[Strip]:
    """Return the strips of all blocks, from top to bottom."""
    strips: list[Strip] = []
    for block in blocks:
        match block:
            case Paragraph():
                strips += lay_paragraph(block, width, fonts)
            case CodeBlock():
                strips += lay_code(block, width, fonts)
            case TableBlock():
                strips += lay_table(block, width, fonts)
            case PictureBlock():
                strips += lay_picture(block, width)
            case RuleBlock():
                strips += lay_rule(block, width)
            case PageBreak():
                strips.append(replace(make_gap(0), starts_page=True))
    return strips
