"""Draw SVG, also compressed: with resvg, without references to other files, at a size that can be seen.

resvg opens any image whose absolute path a drawing names, so every reference that is not to the drawing itself or to
data within it is removed first. A drawing without such references is passed on unchanged.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import ceil, isfinite, sqrt
from typing import TYPE_CHECKING
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from sightline.model.geometry import Size
from sightline.model.refusal import Refusal, RefusalCode
from sightline.pixels.file_types import choose_encoding
from sightline.pixels.renderers.renderer import (
    PythonPackage,
    RenderedDocument,
    RenderedPage,
    Renderer,
    RenderOptions,
)
from sightline.pixels.renderers.text_fonts import MONO_FAMILY, SANS_FAMILY, list_font_files

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

_MAX_BYTES = 32 * 1024 * 1024  # of the drawing as text
_MIN_EDGE, _MAX_EDGE = 512, 2048  # pixels of the longer side: an icon is enlarged, a poster reduced
_UNKNOWN_SIZE = Size(1024, 1024)
_MAX_WIDTH = 8192
_MAX_EFFECT_PIXELS = 1_000_000_000  # under filters and masks of a drawing that is enlarged: one or two seconds
_LIGHT_GREY = 192  # of 255: lighter drawings get a dark ground
_WHITE, _DARK = "#ffffff", "#1e1e1e"
_GZIP = b"\x1f\x8b"
_INSTALL = "pip install resvg-py"

_UNITS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0, "em": 16.0}
_LENGTH = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(px|pt|pc|mm|cm|in|em|)\s*", re.IGNORECASE)
_LINKS = frozenset({"href", "src"})
_OWN_REFERENCE = re.compile(r"\s*(?:#|data:)", re.IGNORECASE)
_URL = re.compile(r"""url\(\s*+(?!["']?\s*+(?:#|data:))[^)]*+\)?""", re.IGNORECASE)
_EFFECT = re.compile(r"\b(?:filter|mask)\s*:\s*url\(", re.IGNORECASE)
_IMPORT = re.compile(r"@import[^;]*;?", re.IGNORECASE)
_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']""")
_LIMIT_WORDS = re.compile("limit|too (?:large|many|big)", re.IGNORECASE)

_TOO_LARGE = Refusal("too_large", f"the SVG has more than {_MAX_BYTES >> 20} MiB of text", "give a smaller one")
_DAMAGED_GZIP = Refusal("corrupt", "the compressed SVG is damaged", "give an undamaged copy")


def render_svg(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw an SVG on one page."""
    text = read_svg_text(data)
    drawing = text if isinstance(text, Refusal) else clean_svg(text)
    if isinstance(drawing, Refusal):
        return drawing
    png = draw_svg(drawing.text, _choose_box(drawing, options.width), SvgFonts(list_font_files()))
    if isinstance(png, Refusal):
        return png
    page, note = _put_on_ground(png, options.ground)
    missing = f"references to other files left out: {drawing.removed}" if drawing.removed else ""
    return RenderedDocument((RenderedPage(page),), note=", ".join(filter(None, (note, missing))))


def read_svg_text(data: bytes) -> str | Refusal:
    """Return the markup of an SVG, also of a compressed one."""
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, _MAX_BYTES + 1)
        except zlib.error:
            return _DAMAGED_GZIP
    if len(data) > _MAX_BYTES:
        return _TOO_LARGE
    return _decode_markup(data)


def _decode_markup(data: bytes) -> str:
    """Return the characters of an XML file: as UTF-16 by its mark or zero bytes, else as it declares, else as UTF-8."""
    encoding = choose_encoding(data)
    if not encoding.startswith("utf-16"):
        declared = _ENCODING.match(data)
        encoding = declared[1].decode() if declared else "utf-8-sig"
    try:
        return data.decode(encoding)
    except (LookupError, UnicodeError):  # an unknown encoding, or not the one that is declared
        return data.decode("utf-16", "replace") if encoding.startswith("utf-16") else data.decode("latin-1")


SVG_RENDERER = Renderer(
    "resvg",
    revision=2,
    mimes=frozenset({"image/svg+xml"}),
    render=render_svg,
    read_text=read_svg_text,
    options=frozenset({"width", "ground"}),
    needs=(PythonPackage("resvg_py", "resvg-py", _INSTALL),),
    max_bytes=_MAX_BYTES,
)


@dataclass(frozen=True, slots=True)
class SvgFonts:
    """The fonts for the text of a drawing: their files, and the families for generic names and missing families."""

    files: Sequence[str]
    default: str = SANS_FAMILY
    serif: str = SANS_FAMILY
    sans: str = SANS_FAMILY
    cursive: str = SANS_FAMILY
    fantasy: str = SANS_FAMILY
    mono: str = MONO_FAMILY


@dataclass(frozen=True, slots=True)
class CleanSvg:
    """An SVG without references to other files."""

    text: str
    size: tuple[float, float] | None  # pixels, as the SVG says; None: it doesn't
    removed: int  # references
    effect_pixels: float = 0.0  # that filters and masks may cover at this size, outside of the view, too


def clean_svg(text: str) -> CleanSvg | Refusal:
    """Return an SVG without references to other files, or why it cannot be read."""
    try:
        scan = _SvgScan(text, writes=False)
        if scan.removed:
            scan = _SvgScan(text, writes=True)
            text = "".join(scan.pieces)
    except expat.ExpatError as error:
        what = f"the SVG is not well-formed: {expat.ErrorString(error.code)} in line {error.lineno}"
        return Refusal("corrupt", what, "correct the file")
    return CleanSvg(text, scan.size, scan.removed, scan.effects * scan.largest * scan.unit_area)


class _SvgScan:
    """One pass over an SVG: finds its size, effects and foreign references, and writes it again without the latter.

    Entities are expanded on the way, and expat limits how much they may grow. External ones are left out.
    """

    def __init__(self, text: str, *, writes: bool) -> None:
        self.size: tuple[float, float] | None = None
        self.removed = 0
        self.effects = 0  # places where a filter or a mask is applied
        self.largest = 0.0  # area of an element in units of the drawing
        self.unit_area = 1.0  # pixels of a square of such units
        self.pieces: list[str] = []
        self._is_root = True
        self._style: list[str] | None = None  # the text of a style element, up to its end
        self._writes = writes
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.Parse(text.encode("utf-8", "replace"), True)  # noqa: FBT003, pyexpat takes no keywords

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._is_root:
            self._is_root, self.size = False, _read_size(attributes)
            self.unit_area = _measure_unit(attributes, self.size)
        else:
            self._measure(attributes)
        kept = {key: value for key, value in attributes.items() if self._keeps(key, value)}
        for key, value in kept.items():
            if "url" in value.lower():
                kept[key] = self._clean(_URL, value)
        if name.rpartition(":")[2] == "style":
            self._style = []
        if self._writes:
            written = "".join(f" {key}={quoteattr(value)}" for key, value in kept.items())
            self.pieces.append(f"<{name}{written}>")

    def _measure(self, attributes: Mapping[str, str]) -> None:
        width, height = (_read_length(attributes.get(side, "")) or 0.0 for side in ("width", "height"))
        self.largest = max(self.largest, width * height)
        self.effects += sum("url(" in attributes.get(effect, "") for effect in ("filter", "mask"))
        self.effects += len(_EFFECT.findall(attributes.get("style", "")))

    def _end(self, name: str) -> None:
        if self._style is not None:
            self.effects += len(_EFFECT.findall("".join(self._style)))
            style = self._clean(_URL, self._clean(_IMPORT, "".join(self._style)))
            self._style = None
            self._write(escape(style))
        self._write(f"</{name}>")

    def _add_text(self, text: str) -> None:
        if self._style is not None:
            self._style.append(text)
        else:
            self._write(escape(text))

    def _write(self, piece: str) -> None:
        if self._writes:
            self.pieces.append(piece)

    def _keeps(self, name: str, value: str) -> bool:
        is_foreign = name.rpartition(":")[2].lower() in _LINKS and not _OWN_REFERENCE.match(value)
        self.removed += is_foreign
        return not is_foreign

    def _clean(self, pattern: re.Pattern[str], text: str) -> str:
        cleaned, count = pattern.subn("none" if pattern is _URL else "", text)
        self.removed += count
        return cleaned


def _read_size(attributes: Mapping[str, str]) -> tuple[float, float] | None:
    """Return the size that the root element has, by its sides or by its view box."""
    width, height = (_read_length(attributes.get(side, "")) for side in ("width", "height"))
    box = [_read_length(each) for each in re.split(r"[\s,]+", attributes.get("viewBox", "").strip())]
    across, down = (box[2], box[3]) if len(box) == 4 else (None, None)
    if width and not height and across and down:
        height = width * down / across
    elif height and not width and across and down:
        width = height * across / down
    width, height = width or across, height or down
    return (width, height) if width and height else None


def _measure_unit(attributes: Mapping[str, str], size: tuple[float, float] | None) -> float:
    """Return how many pixels a square of one unit has, by the view box of the root element."""
    box = [_read_length(each) for each in re.split(r"[\s,]+", attributes.get("viewBox", "").strip())]
    if size is None or len(box) != 4 or not box[2] or not box[3]:
        return 1.0
    return size[0] * size[1] / (box[2] * box[3])


def _read_length(text: str) -> float | None:
    found = _LENGTH.fullmatch(text)
    length = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    return length if isfinite(length) and length > 0 else None


def _choose_box(drawing: CleanSvg, width: int | None) -> Size:
    """Return the box that the drawing has to fill in one direction.

    A drawing with many large effects is enlarged less: resvg computes all of them, also those outside of the view.
    """
    size = drawing.size
    if width is not None:
        return Size(min(width, _MAX_WIDTH), _MAX_WIDTH)
    if size is None:
        return _UNKNOWN_SIZE
    edge = max(size)
    scale = ceil(_MIN_EDGE / edge) if edge < _MIN_EDGE else min(1.0, _MAX_EDGE / edge)
    if drawing.effect_pixels * scale**2 > _MAX_EFFECT_PIXELS and scale > 1:
        scale = max(1.0, sqrt(_MAX_EFFECT_PIXELS / drawing.effect_pixels))
    across, down = (max(1, min(_MAX_EDGE, ceil(side * scale))) for side in size)
    return Size(across, down)


def draw_svg(text: str, box: Size, fonts: SvgFonts) -> bytes | Refusal:
    """Return an SVG without references to other files as PNG, as large as fits into a box."""
    import resvg_py

    try:
        return resvg_py.svg_to_bytes(
            svg_string=text,
            width=box.width,
            height=box.height,
            dpi=96.0,  # without it, millimetres and inches are 0
            font_files=list(fonts.files),
            font_family=fonts.default,
            serif_family=fonts.serif,
            sans_serif_family=fonts.sans,
            cursive_family=fonts.cursive,
            fantasy_family=fonts.fantasy,
            monospace_family=fonts.mono,
        )
    except ValueError as error:
        code: RefusalCode = "too_large" if _LIMIT_WORDS.search(str(error)) else "corrupt"
        return Refusal(code, f"the SVG cannot be drawn: {str(error)[:200]}", "correct or simplify the file")


def _put_on_ground(png: bytes, ground: str | None) -> tuple[bytes, str]:
    """Return a picture without transparency. Unless the ground is given, a light drawing gets a dark one."""
    from PIL import Image

    picture = Image.open(BytesIO(png)).convert("RGBA")
    alpha = picture.getchannel("A")
    if alpha.getextrema()[0] == 255:
        return png, ""
    is_light = ground is None and _measure_grey(picture, alpha) > _LIGHT_GREY
    colour = ground or (_DARK if is_light else _WHITE)
    page = Image.new("RGBA", picture.size, colour)
    page.alpha_composite(picture)
    file = BytesIO()
    page.convert("RGB").save(file, "PNG", compress_level=4)
    return file.getvalue(), "transparent, shown on a dark ground" if is_light else ""


def _measure_grey(picture: Pillow, alpha: Pillow) -> float:
    """Return how light the visible pixels are on average, from 0 to 255."""
    counts = picture.convert("L").histogram(mask=alpha.point(lambda value: 255 * (value > 127)).convert("1"))
    return sum(grey * count for grey, count in enumerate(counts)) / max(1, sum(counts))
