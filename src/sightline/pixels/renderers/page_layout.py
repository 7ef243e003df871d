"""Blocks of text, code, tables and pictures to pages.

A block is laid out into strips: a line of text, a row of a table, a picture. Strips are never cut. They are stacked
from top to bottom, and where no strip has room any more, the next page begins. A strip may have a head, such as the
header of its table, which is repeated at the top of a page.

A page is no larger than the smallest usual provider keeps (`MAX_EDGE`, `MAX_PATCHES`), so that its text is seen as it
was drawn.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.renderer import RenderedDocument, RenderedPage, RenderOptions, check_page, encode_page
from sightline.pixels.renderers.text_fonts import FontLibrary, TextStyle, get_line_height

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from PIL.ImageDraw import ImageDraw

MAX_EDGE, MAX_PATCHES, _PATCH = 1568, 1568, 28  # what the standard tier of Anthropic leaves as it is
PAGE_WIDTH, PAGE_HEIGHT = 784, 1568
MARGIN = 32
TEXT_WIDTH = PAGE_WIDTH - 2 * MARGIN
PAPER = "#ffffff"
CODE_GROUND, RULE_COLOUR, MUTED = "#f3f5f8", "#c4cad2", "#59636e"
_WORDS = re.compile(r"[\u2e80-\uffee\U00020000-\U0003ffff]|[^\s\u2e80-\uffee\U00020000-\U0003ffff]+|\s+")
_PICTURE_HEIGHT = 1100
_MIN_LETTER = 2  # pixels that even a narrow letter has
_BASELINE = 0.86  # below the top of a line, in font sizes


@dataclass(slots=True)
class PageCanvas:
    """A page that is being drawn."""

    page: Pillow
    pen: ImageDraw
    fonts: FontLibrary

    def write(self, x: int, baseline: int, text: str, style: TextStyle) -> int:
        """Draw a text and return its width."""
        return self.fonts.draw(self.page, self.pen, (x, baseline), text, style)

    def fill(self, x: int, y: int, width: int, height: int, colour: str) -> None:
        if width > 0 and height > 0:
            self.pen.rectangle((x, y, x + width - 1, y + height - 1), fill=colour)


Paint = Callable[[PageCanvas, int, int], None]  # with the place of the upper left corner


@dataclass(frozen=True, slots=True)
class Strip:
    """A part of a page that is as wide as the page and is never cut."""

    height: int
    paint: Paint
    keeps_next: bool = False  # the next strip has to be on the same page, as after a heading
    head: Strip | None = None  # repeated at the top of a page
    starts_page: bool = False
    is_cut: bool = False  # there is more text than it shows


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one style."""

    text: str
    style: TextStyle = field(default_factory=TextStyle)


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: Sequence[Span]
    indent: int = 0
    marker: Span | None = None  # of a list item, drawn left of the text
    bars: Sequence[int] = ()  # where the lines of quotes are drawn
    space: int = 10  # below it
    keeps_next: bool = False
    underline: bool = False


@dataclass(frozen=True, slots=True)
class CodeBlock:
    lines: Sequence[Sequence[Span]]
    indent: int = 0
    ground: str = CODE_GROUND
    label: Span | None = None  # drawn above it
    bars: Sequence[int] = ()
    space: int = 12


@dataclass(frozen=True, slots=True)
class PictureBlock:
    picture: Pillow
    indent: int = 0
    space: int = 12


@dataclass(frozen=True, slots=True)
class RuleBlock:
    indent: int = 0


@dataclass(frozen=True, slots=True)
class PageBreak:
    """The next block begins a page, as a slide or a sheet does."""


def make_gap(height: int) -> Strip:
    """Return an empty strip."""
    return Strip(height, lambda canvas, x, y: None)


def fits_provider(width: int, height: int) -> bool:
    """Return whether a page of this size is not reduced by the provider."""
    return max(width, height) <= MAX_EDGE and ceil(width / _PATCH) * ceil(height / _PATCH) <= MAX_PATCHES


def break_lines(spans: Iterable[Span], width: int, fonts: FontLibrary, most: int = 0) -> list[list[Span]]:
    """Return spans as lines that are at most `width` wide. `most` limits their number; an ellipsis shows the cut."""
    lines: list[list[Span]] = [[]]
    width = max(width, 1)  # less has no room for anything, and would never end
    left, is_wrapped = width, False
    for word, style in _list_words(spans):
        if word == "\n":
            lines.append([])
            left, is_wrapped = width, False
            continue
        size = _measure_word(word, style, width, fonts)
        if size > left and not word.isspace():
            if lines[-1]:
                lines.append([])
            left, is_wrapped = width, True
            while size > left:
                head = _cut_word(word, style, left, fonts)
                lines[-1].append(Span(head, style))
                lines.append([])
                word = word[len(head) :]
                size = _measure_word(word, style, width, fonts)
                if most and len(lines) > most:
                    break
        if most and len(lines) > most:
            break
        if word and (lines[-1] or not (word.isspace() and is_wrapped)):
            lines[-1].append(Span(word, style))
            left -= size
    if most and len(lines) > most:
        lines = lines[:most]
        lines[-1].append(Span("…", lines[-1][-1].style if lines[-1] else TextStyle()))
    return [_merge_spans(line) for line in lines]


def _list_words(spans: Iterable[Span]) -> Iterable[tuple[str, TextStyle]]:
    for span in spans:
        for number, part in enumerate(span.text.split("\n")):
            if number:
                yield "\n", span.style
            for word in _WORDS.findall(part):
                yield word, span.style


def _measure_word(word: str, style: TextStyle, width: int, fonts: FontLibrary) -> int:
    """Return the width of a word. Of one that is much longer than a line only the beginning is measured."""
    return fonts.measure(word[: max(width, 2) // _MIN_LETTER + 1], style)


def _cut_word(word: str, style: TextStyle, width: int, fonts: FontLibrary) -> str:
    """Return the beginning of a word that has room, at least one character."""
    low, high = 1, min(len(word), max(width, 2) // _MIN_LETTER + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fonts.measure(word[:middle], style) <= width else (low, middle - 1)
    return word[:low]


def _merge_spans(line: list[Span]) -> list[Span]:
    while line and line[-1].text.isspace():
        line = line[:-1]
    return [Span("".join(span.text for span in same), style) for style, same in groupby(line, lambda span: span.style)]


def is_right_to_left(text: str) -> bool:
    """Return whether the first letter with a direction is of a script from right to left."""
    strong = (unicodedata.bidirectional(character) for character in text[:200])
    return next((kind in ("R", "AL") for kind in strong if kind in ("L", "R", "AL")), False)


def paint_line(canvas: PageCanvas, x: int, y: int, line: Sequence[Span], width: int = 0) -> None:
    """Draw spans beside each other; from the right edge if `width` is given and the text runs from right to left."""
    size = max((span.style.size for span in line), default=16)
    baseline = y + round(size * _BASELINE)
    if width and line and not line[0].text.isascii() and is_right_to_left("".join(span.text for span in line)):
        at = x + width
        for span in line:
            at -= canvas.fonts.measure(span.text, span.style)
            canvas.write(at, baseline, span.text, span.style)
        return
    for span in line:
        x += canvas.write(x, baseline, span.text, span.style)


def lay_paragraph(block: Paragraph, width: int, fonts: FontLibrary) -> list[Strip]:
    """Return the lines of a paragraph."""
    lines = break_lines(block.spans, width - block.indent, fonts)
    size = max((span.style.size for span in block.spans), default=16)
    height = round(size * 1.4)

    def paint(number: int, line: list[Span], canvas: PageCanvas, x: int, y: int) -> None:
        _paint_bars(canvas, x, y, block.bars, height + block.space)
        if number == 0 and block.marker is not None:
            marker = block.marker
            start = x + block.indent - 8 - canvas.fonts.measure(marker.text, marker.style)
            canvas.write(start, y + round(marker.style.size * _BASELINE), marker.text, marker.style)
        paint_line(canvas, x + block.indent, y, line, width - block.indent)
        if block.underline and number == len(lines) - 1:
            canvas.fill(x, y + height + 2, width, 1, RULE_COLOUR)

    strips = [Strip(height, partial(paint, *each), block.keeps_next) for each in enumerate(lines)]
    return [*strips, replace(make_gap(block.space), keeps_next=block.keeps_next)]


def _paint_bars(canvas: PageCanvas, x: int, y: int, bars: Sequence[int], height: int) -> None:
    for bar in bars:
        canvas.fill(x + bar, y - 2, 4, height + 2, RULE_COLOUR)


def lay_code(block: CodeBlock, width: int, fonts: FontLibrary) -> list[Strip]:
    """Return the lines of a code block, each on the ground of the block."""
    room = width - block.indent
    rows = [row for line in block.lines for row in break_lines(line, room - 16, fonts)]
    height = get_line_height(rows[0][0].style.size if rows and rows[0] else 13)

    def paint(row: list[Span], above: int, below: int, canvas: PageCanvas, x: int, y: int) -> None:
        _paint_bars(canvas, x, y, block.bars, height + block.space)
        if block.ground:
            canvas.fill(x + block.indent, y, room, above + height + below, block.ground)
        paint_line(canvas, x + block.indent + 8, y + above, row)

    strips = [make_label(block.label, block.indent)] if block.label else []
    for number, row in enumerate(rows):
        above, below = 8 * (number == 0), 8 * (number == len(rows) - 1)
        strips.append(Strip(above + height + below, partial(paint, row, above, below)))
    return [*strips, make_gap(block.space)]


def make_label(label: Span, indent: int) -> Strip:
    """Return a line that stays with what comes after it."""
    return Strip(get_line_height(label.style.size) + 2, partial(_paint_label, label, indent), keeps_next=True)


def _paint_label(label: Span, indent: int, canvas: PageCanvas, x: int, y: int) -> None:
    paint_line(canvas, x + indent, y, [label])


def lay_picture(block: PictureBlock, width: int) -> list[Strip]:
    """Return a picture, reduced if it is larger than the page."""
    from PIL import Image

    room = width - block.indent
    picture = block.picture
    scale = min(1.0, room / picture.width, _PICTURE_HEIGHT / picture.height)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS)

    def paint(canvas: PageCanvas, x: int, y: int) -> None:
        canvas.page.paste(picture, (x + block.indent, y))

    return [Strip(picture.height, paint), make_gap(block.space)]


def lay_rule(block: RuleBlock, width: int) -> list[Strip]:
    """Return a horizontal line."""
    return [Strip(17, lambda canvas, x, y: canvas.fill(x + block.indent, y + 8, width - block.indent, 2, RULE_COLOUR))]


def divide_strips(strips: Iterable[Strip], height: int) -> list[list[Strip]]:
    """Return the strips of each page of a height."""
    pages: list[list[Strip]] = [[]]
    used = 0
    group: list[Strip] = []
    for strip in strips:
        if strip.starts_page and (pages[-1] or group):
            pages[-1].extend(group)
            pages.append([])
            used, group = 0, []
        group.append(strip)
        if strip.keeps_next and sum(each.height for each in group) < height // 2:
            continue
        needed = sum(each.height for each in group)
        if used + needed > height and pages[-1]:
            pages.append([])
            used = 0
            if (head := group[0].head) is not None and head is not group[0]:
                pages[-1].append(head)
                used += head.height
        pages[-1].extend(group)
        used += needed
        group = []
    pages[-1].extend(group)
    return pages


def draw_columns(columns: Sequence[Sequence[Strip]], width: int, margin: int, fonts: FontLibrary) -> bytes:
    """Return a picture of strips in columns of a width, as high as the highest of them."""
    from PIL import Image, ImageDraw

    height = max(sum(strip.height for strip in column) for column in columns) + 2 * margin
    page = Image.new("RGB", (len(columns) * (width + margin) + margin, max(height, 48)), PAPER)
    canvas = PageCanvas(page, ImageDraw.Draw(page), fonts)
    for number, column in enumerate(columns):
        x, y = margin + number * (width + margin), margin
        if number:
            canvas.fill(x - margin // 2 - 1, margin, 1, page.height - 2 * margin, RULE_COLOUR)
        for strip in column:
            strip.paint(canvas, x, y)
            y += strip.height
    return encode_page(page)


def draw_document(
    strips: Sequence[Strip], options: RenderOptions, fonts: FontLibrary, note: str = ""
) -> RenderedDocument | Refusal:
    """Return the pages of a document that were asked for."""
    pages = divide_strips(strips, PAGE_HEIGHT - 2 * MARGIN)
    if refusal := check_page(options.page, len(pages)):
        return refusal
    if any(strip.is_cut for strip in strips):
        note = ", ".join(filter(None, (note, "long cells of tables are cut, where … is")))
    last = min(options.page + options.count - 1, len(pages))
    numbers = range(options.page, last + 1)
    drawn = [RenderedPage(draw_columns([pages[at - 1]], TEXT_WIDTH, MARGIN, fonts), at) for at in numbers]
    return RenderedDocument(tuple(drawn), len(pages), note)
