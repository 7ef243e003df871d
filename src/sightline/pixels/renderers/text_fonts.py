"""Text in fonts: which font has which character, how wide a text is, and how it is drawn.

A text is split into runs of characters that one font has. The fonts that come with Sightline are tried first, so that
text looks the same on every machine, then those of the system in a fixed order. A character that no font has is drawn
as a box with its code point in it, so that nothing disappears. The same text and fonts give the same pixels.

Which characters a font file has is in its `cmap` table, which is read without loading the font.
"""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

FONT_FOLDER = Path(__file__).parent / "fonts"
SANS_FAMILY = "DejaVu Sans"
MONO_FAMILY = "DejaVu Sans Mono"


def list_font_files() -> list[str]:
    """Return the paths of all fonts, in order."""
    return sorted(str(each) for each in FONT_FOLDER.glob("*.ttf"))


INK = "#1f2328"
_SYSTEM_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts")
_WINDOWS_FOLDER = Path("C:/Windows/Fonts")
_FONT_FOLDERS: tuple[Path | str, ...] = (*_SYSTEM_FOLDERS, _WINDOWS_FOLDER)
_FONT_SUFFIXES = frozenset({".ttf", ".ttc", ".otf", ".otc"})
_UNUSUAL_FACES = ("bold", "italic", "oblique", "light", "thin", "black", "condensed", "serif", "math", "medium")
_MAX_SYSTEM_FONTS = 2000
# Text that has to be shaped: scripts from right to left or of joined letters, emoji, and any character with marks.
_SCRIPTS = "[\u0590-\u109f\u1780-\u18af\ufb1d-\ufdff\ufe70-\ufefc\U0001f000-\U0001faff]"
_SHAPED = f"{_SCRIPTS}|.[\u0300-\u036f\u200c\u200d\ufe0e\ufe0f]+"
_COMPLEX = re.compile(f"((?:{_SHAPED})+(?: +(?:{_SHAPED})+)*)")
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
_BOX_CELLS = 4
_SLANT = 0.2
_LINE_HEIGHTS = {12: 15}
_CONTROL_NAMES = dict(
    enumerate(
        """NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS
        GS RS US SP DEL""".split(),
        0x2400,
    )
)  # of the pictures of control characters
_MAX_TABLE_BYTES = 4 * 1024 * 1024
_BITMAP_TABLES = frozenset({b"CBDT", b"sbix"})
_PREFERRED = ((3, 10), (0, 6), (0, 4), (3, 1), (0, 3))  # platform and encoding: all of Unicode first, then the BMP


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a text looks."""

    size: int = 16
    mono: bool = False
    bold: bool = False
    italic: bool = False
    colour: str = INK
    ground: str = ""
    line: str = ""  # "under" or "through"


_MONO = TextStyle(mono=True)


@dataclass(frozen=True, slots=True)
class SystemFonts:
    """The fonts of the system, as something that a renderer uses: other fonts give other pixels."""

    folders: tuple[Path | str, ...] = _FONT_FOLDERS
    install: str = ""  # there may be none

    def find_version(self) -> str | None:
        """Return a text that changes when a font is added or removed."""
        names = [f"{path} {path.stat().st_size}" for path in _list_system_fonts(self.folders)]
        return hashlib.sha256("\n".join(names).encode("utf-8", "replace")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class FontFace:
    path: Path
    coverage: FontCoverage


class FontRun(NamedTuple):
    text: str
    face: FontFace | None  # None: no font has these characters


@cache
def _load_coverage(path: Path) -> FontCoverage:
    return read_coverage(path)


@lru_cache(256)
def _load_font(path: Path, size: int, *, is_complex: bool) -> FreeTypeFont:
    from PIL import ImageFont, features

    raqm = is_complex and features.check("raqm")
    engine = ImageFont.Layout.RAQM if raqm else ImageFont.Layout.BASIC
    try:
        return ImageFont.truetype(path, size, layout_engine=engine)
    except OSError:  # a font of bitmaps has only its own size
        return ImageFont.truetype(path, 109, layout_engine=engine)


def get_line_height(size: int) -> int:
    return _LINE_HEIGHTS.get(size, round(size * 1.2))


@lru_cache(64)
def get_cell_width(size: int) -> int:
    """Return the width of a character of the fixed-width font."""
    return round(_load_font(FONT_FOLDER / "DejaVuSansMono.ttf", size, is_complex=False).getlength("M"))


class FontLibrary:
    """The bundled fonts, then those of some folders."""

    def __init__(self, folders: Sequence[Path | str] | None = None) -> None:
        self._folders = _FONT_FOLDERS if folders is None else folders
        self._system: list[Path] | None = None
        self._chosen: dict[tuple[str, bool, bool], FontFace | None] = {}

    def find_face(self, character: str, style: TextStyle) -> FontFace | None:
        """Return the first font that has a character, or None."""
        key = (character, style.mono, style.bold)
        if key not in self._chosen:
            paths = self._list_paths(style)
            self._chosen[key] = next(
                (FontFace(path, found) for path in paths if (found := _load_coverage(path)).covers(character)), None
            )
        return self._chosen[key]

    def _list_paths(self, style: TextStyle) -> Iterator[Path]:
        weight = "-Bold" if style.bold else ""
        families = ("DejaVuSansMono", "DejaVuSans") if style.mono else ("DejaVuSans", "DejaVuSansMono")
        for family in families:
            yield FONT_FOLDER / f"{family}{weight}.ttf"
        if self._system is None:
            self._system = _list_system_fonts(self._folders)
        yield from self._system

    def split_runs(self, text: str, style: TextStyle) -> list[FontRun]:
        """Return a text as runs of one font each. Marks and joiners stay with the character before them."""
        if text.isascii():
            return [FontRun(text, self.find_face("x", style))] if text else []
        runs: list[tuple[list[str], FontFace | None]] = []
        for character in text:
            if runs and runs[-1][1] is not None and self._continues(character, runs[-1][1]):
                runs[-1][0].append(character)
                continue
            face = self.find_face(character, style)
            if runs and runs[-1][1] == face:
                runs[-1][0].append(character)
            else:
                runs.append(([character], face))
        return [FontRun("".join(characters), face) for characters, face in runs]

    @staticmethod
    def _continues(character: str, face: FontFace) -> bool:
        if character in _JOINERS:
            return True
        return (character == " " or unicodedata.combining(character) > 0) and face.coverage.covers(character)

    def count_cells(self, character: str) -> int:
        """Return how many cells of a fixed-width grid a character takes."""
        if character in _JOINERS:
            return 0
        if self.find_face(character, _MONO) is None:
            return _BOX_CELLS
        if unicodedata.category(character) in ("Mn", "Me"):
            return 0
        return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1

    def measure(self, text: str, style: TextStyle) -> int:
        """Return the width of a text in pixels."""
        if style.mono:
            cells = len(text) if text.isascii() else sum(map(self.count_cells, text))
            return cells * get_cell_width(style.size)
        return sum(_measure_run(run, style.size) for run in self.split_runs(text, style))

    def draw(self, page: Pillow, pen: ImageDraw, place: tuple[int, int], text: str, style: TextStyle) -> int:
        """Draw a text with its baseline at a place, and return its width."""
        x, y = place
        width = self.measure(text, style)
        if style.ground:
            top, bottom = y - round(style.size * 0.95), y + round(style.size * 0.3)
            pen.rectangle((x, top, x + width - 1, bottom), fill=style.ground)
        at = x
        for run in self.split_runs(text, style):
            at += self._draw_run(page, pen, (at, y), run, style)
        if style.line:
            height = y + 2 if style.line == "under" else y - round(style.size * 0.3)
            pen.line((x, height, x + width - 1, height), fill=style.colour)
        return width

    def _draw_run(self, page: Pillow, pen: ImageDraw, place: tuple[int, int], run: FontRun, style: TextStyle) -> int:
        if run.face is None:
            return _draw_boxes(pen, place, run.text, style)
        if run.face.coverage.has_bitmaps:
            return _draw_emoji(page, place, run, style)
        if style.mono and not run.text.isascii():
            return self._draw_cells(pen, place, run, style)
        width = self.measure(run.text, style) if style.mono else _measure_run(run, style.size)
        font = _load_font(run.face.path, style.size, is_complex=_is_complex(run.text))
        if style.italic:
            _draw_italics(page, place, run.text, font, style, width)
        else:
            pen.text(place, run.text, fill=style.colour, font=font, anchor="ls")
        return width

    def _draw_cells(self, pen: ImageDraw, place: tuple[int, int], run: FontRun, style: TextStyle) -> int:
        """Draw text on the grid of the fixed-width font: shaped text as a whole, other characters one by one."""
        assert run.face is not None
        x, cell = place[0], get_cell_width(style.size)
        for number, piece in enumerate(_COMPLEX.split(run.text)):
            font = _load_font(run.face.path, style.size, is_complex=number % 2 == 1)
            for part in [piece] if number % 2 or piece.isascii() else piece:
                width = sum(map(self.count_cells, part)) * cell
                is_wide = not number % 2 and not part.isascii()  # another font has other widths: in the middle
                at = (x + width / 2 if is_wide else x, place[1])
                pen.text(at, part, fill=style.colour, font=font, anchor="ms" if is_wide else "ls")
                x += width
        return x - place[0]


def _is_complex(text: str) -> bool:
    return not text.isascii() and _COMPLEX.search(text) is not None


def _list_system_fonts(folders: Sequence[Path | str]) -> list[Path]:
    """Return the fonts below some folders, regular faces first."""
    found = [path for folder in folders for path in Path(folder).rglob("*") if path.suffix.lower() in _FONT_SUFFIXES]
    return sorted(found, key=lambda path: (_is_unusual(path), path.name, str(path)))[:_MAX_SYSTEM_FONTS]


def _is_unusual(path: Path) -> bool:
    name = path.stem.lower()
    return any(word in name for word in _UNUSUAL_FACES)


def _measure_run(run: FontRun, size: int) -> int:
    if run.face is None:
        return len(run.text) * _BOX_CELLS * get_cell_width(size)
    font = _load_font(run.face.path, size, is_complex=_is_complex(run.text))
    length = font.getlength(run.text)
    return round(length * size * 1.1 / font.size if run.face.coverage.has_bitmaps else length)


def _draw_boxes(pen: ImageDraw, place: tuple[int, int], text: str, style: TextStyle) -> int:
    """Draw characters that no font has: each as a box with its code point."""
    x, y = place
    width = _BOX_CELLS * get_cell_width(style.size)
    for character in text:
        label = _CONTROL_NAMES.get(ord(character)) or f"{ord(character):04X}"
        size = max(7, round(style.size * (0.75 if len(label) < 5 else 0.6)))
        font = _load_font(FONT_FOLDER / "DejaVuSansMono.ttf", size, is_complex=False)
        top = y - round(style.size * 0.85)
        pen.rectangle((x + 1, top, x + width - 2, y + round(style.size * 0.15)), outline=style.colour)
        pen.text((x + width / 2, y - round(style.size * 0.35)), label, fill=style.colour, font=font, anchor="mm")
        x += width
    return x - place[0]


def _draw_emoji(page: Pillow, place: tuple[int, int], run: FontRun, style: TextStyle) -> int:
    """Draw glyphs that are pictures of one size, reduced to that of the text."""
    from PIL import Image, ImageDraw

    assert run.face is not None
    font = _load_font(run.face.path, style.size, is_complex=True)
    left, top, right, bottom = font.getbbox(run.text, anchor="ls")
    if right <= left or bottom <= top:
        return 0
    picture = Image.new("RGBA", (round(right - left), round(bottom - top)))
    ImageDraw.Draw(picture).text((-left, -top), run.text, font=font, embedded_color=True, anchor="ls")
    height = round(style.size * 1.1)
    width = max(1, round(picture.width * height / picture.height))
    small = picture.resize((width, height), Image.Resampling.LANCZOS)
    page.paste(small, (place[0], place[1] - round(style.size * 0.9)), small)
    if style.mono:
        return sum(map(_count_emoji_cells, run.text)) * get_cell_width(style.size)
    return _measure_run(run, style.size)


def _count_emoji_cells(character: str) -> int:
    if character in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _draw_italics(
    page: Pillow, place: tuple[int, int], text: str, font: FreeTypeFont, style: TextStyle, width: int
) -> None:
    """Draw a text in italics, for which no font is bundled."""
    from PIL import Image, ImageDraw

    rise, fall = style.size + 2, style.size // 3
    mask = Image.new("L", (width + rise, rise + fall))
    ImageDraw.Draw(mask).text((fall, rise), text, fill=255, font=font, anchor="ls")
    slanted = mask.transform(
        mask.size, Image.Transform.AFFINE, (1, _SLANT, -_SLANT * rise, 0, 1, 0), Image.Resampling.BICUBIC
    )
    page.paste(style.colour, (place[0] - fall, place[1] - rise), slanted)


@dataclass(frozen=True, slots=True)
class FontCoverage:
    """The characters of a font, as sorted ranges."""

    firsts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    has_bitmaps: bool = False  # its glyphs are pictures of one size, such as colour emoji

    def covers(self, character: str) -> bool:
        """Return whether the font has a glyph for a character."""
        code = ord(character)
        at = bisect_right(self.firsts, code) - 1
        return at >= 0 and code <= self.lasts[at]


def read_coverage(path: Path) -> FontCoverage:
    """Return the coverage of a font, or of the first one of a collection; an empty one if the file is damaged."""
    try:
        with path.open("rb") as file:
            tables = _read_tables(file)
            start, length = tables[b"cmap"]
            file.seek(start)
            ranges = _read_cmap(file.read(min(length, _MAX_TABLE_BYTES)))
    except (OSError, KeyError, IndexError, struct.error):
        return FontCoverage()
    ranges = sorted(ranges)
    firsts, lasts = tuple(first for first, _ in ranges), tuple(last for _, last in ranges)
    return FontCoverage(firsts, lasts, not _BITMAP_TABLES.isdisjoint(tables))


def _read_tables(file: BinaryIO) -> dict[bytes, tuple[int, int]]:
    """Return where each table is, and its length."""
    head = file.read(16)
    if head.startswith(b"ttcf"):
        file.seek(struct.unpack_from(">I", head, 12)[0])
        head = file.read(12)
        directory = file.read(16 * struct.unpack_from(">H", head, 4)[0])
    else:
        directory = head[12:] + file.read(16 * struct.unpack_from(">H", head, 4)[0] - 4)
    entries = struct.iter_unpack(">4s4xII", directory)
    return {name: (start, length) for name, start, length in entries}


def _read_cmap(table: bytes) -> list[tuple[int, int]]:
    count = struct.unpack_from(">H", table, 2)[0]
    places = {(platform, kind): at for platform, kind, at in struct.iter_unpack(">HHI", table[4 : 4 + 8 * count])}
    at = next((places[each] for each in _PREFERRED if each in places), None)
    if at is None:
        return []
    match struct.unpack_from(">H", table, at)[0]:
        case 12:
            groups = struct.unpack_from(">I", table, at + 12)[0]
            listed = struct.iter_unpack(">III", table[at + 16 : at + 16 + 12 * groups])
            return [(first, last) for first, last, _ in listed]
        case 4:
            return list(_read_segments(table[at:]))
    return []


def _read_segments(table: bytes) -> Iterable[tuple[int, int]]:
    """Yield the ranges of a subtable of format 4, without characters that it maps to no glyph."""
    count = struct.unpack_from(">H", table, 6)[0] // 2
    numbers = struct.unpack_from(f">{count}HH{3 * count}H", table, 14)
    lasts, firsts = numbers[:count], numbers[count + 1 : 2 * count + 1]
    offsets = numbers[3 * count + 1 :]
    for index, (first, last, offset) in enumerate(zip(firsts, lasts, offsets, strict=True)):
        if first == 0xFFFF:
            continue
        if not offset:
            yield first, last
            continue
        glyphs = 16 + 6 * count + 2 * index + offset  # where those of this segment begin
        for code in range(first, last + 1):
            if struct.unpack_from(">H", table, glyphs + 2 * (code - first))[0]:
                yield code, code
