"""What a renderer is: a module of this package that makes pictures of files of some kinds.

A renderer is written in four steps:

1. A module with a function `render(data, options)` that returns a `RenderedDocument` or a `Refusal`. It imports its
   library inside the function: the module itself is loaded by every process that views files.
2. A `Renderer` in that module that says what it takes, what it needs and which options it knows.
3. A line in `RENDERERS` of `choose_renderer.py`, before any more general renderer of the same kind.
4. Its tests.

`render` runs in a worker that has limits on time and memory, no network, and no file but libraries and fonts. It may
raise: that costs a refusal and the worker. A renderer that needs a program, such as an office suite, has `convert`
instead, which starts the program by `run_program`; what it returns is a bitmap, or a file for another renderer. Before
that, a worker calls its `check`, which keeps files from the program that it couldn't convert in time. If the check or
the program fails, the next renderer that needs none draws the file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Literal

from sightline.model.image import MAX_FILE_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import FileType

if TYPE_CHECKING:
    from ctypes import Array, c_ubyte

    from PIL.Image import Image as Pillow

    from sightline.pixels.renderers.text_fonts import SystemFonts

_PNG_EFFORT = 4  # of 9; more takes time and saves little

OptionName = Literal["page", "at", "lines", "width", "ground", "suffix"]


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """What a caller asked for. A renderer gets only the options that it declares; the others have their defaults."""

    page: int = 1  # the first page to draw, from 1
    count: int = 1  # how many pages, or stills of a video, to draw at most
    at: float | None = None  # seconds from the beginning of a video; None: the renderer chooses
    lines: tuple[int, int] | None = None  # the first and the last line of a text, from 1
    sheet: bool = False  # draw several pages as one picture; renderers needn't care about this one
    width: int | None = None  # pixels; None: the renderer chooses
    ground: str | None = None  # the colour behind what is transparent, as #rrggbb; None: the renderer chooses
    suffix: str = ""  # of the file's name, in lower case, such as ".py"; of "Makefile", all of it

    def pack(self) -> dict[str, Any]:
        """Return the options that are not the default as JSON."""
        return {name: value for name, value in asdict(self).items() if value != getattr(DEFAULT_OPTIONS, name)}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> RenderOptions:
        lines = packed.get("lines")
        return cls(**{**packed, "lines": None if lines is None else (lines[0], lines[1])})


DEFAULT_OPTIONS = RenderOptions()


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One picture."""

    data: bytes = field(repr=False)  # of a PNG, JPEG or WebP file
    number: int = 1  # of the page, from 1
    label: str = ""  # on a contact sheet; empty: the number
    has_text: bool | None = None  # whether the page has a text layer; None: such files have none


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """The pictures that were asked for, at least one."""

    pages: tuple[RenderedPage, ...]
    total: int = 1  # pages of the whole document
    note: str = ""  # for the reader of the pictures: what is not as it is in the file


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """What a program made of a file: a bitmap, or a file for another renderer."""

    data: bytes = field(repr=False)
    note: str = ""  # as of `RenderedDocument`


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A package that a renderer imports."""

    module: str
    distribution: str
    install: str  # the exact command

    def find_version(self) -> str | None:
        """Return the installed version, or None."""
        from importlib import metadata

        try:
            return metadata.version(self.distribution) if find_spec(self.module) else None
        except metadata.PackageNotFoundError:
            return "unknown"


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    """A program that a renderer starts, under any of its names."""

    names: tuple[str, ...]
    install: str  # the exact command

    def find_path(self) -> str | None:
        return next(filter(None, map(shutil.which, self.names)), None)

    def find_version(self) -> str | None:
        """Return a text that changes with the program, without starting it; None if it isn't installed."""
        found = self.find_path()
        if found is None:
            return None
        path = Path(found).resolve()
        return f"{path} {path.stat().st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class Renderer:
    """What a renderer takes, what it needs, and its functions. Either `render` or `convert` is set."""

    name: str  # unique; results say that they were rendered by it
    revision: int  # of its code: raise it when the same file and options give other pixels
    mimes: frozenset[str]  # of the `FileType` that it takes
    render: Callable[[bytes, RenderOptions], RenderedDocument | Refusal] | None = None  # runs in a worker
    render_large: Callable[[IO[bytes], RenderOptions], RenderedDocument | Refusal] | None = None  # by an open file
    convert: Callable[[bytes, RenderOptions], ConvertedFile | Refusal] | None = None  # starts a program
    check: Callable[[bytes], Refusal | None] | None = None  # before `convert`; runs in a worker
    page_renderer: Renderer | None = None  # draws the pages of what `convert` returns; None: a bitmap is returned
    read_text: Callable[[bytes], str | Refusal] | None = None  # for `read_file`; runs in a worker
    recognize: Callable[[bytes, str], bool] | None = None  # by the beginning of a file and its suffix; None: all
    options: frozenset[OptionName] = frozenset()  # that it knows
    needs: tuple[PythonPackage | InstalledProgram | SystemFonts, ...] = ()
    max_bytes: int = MAX_FILE_BYTES  # of a file
    note: str = ""  # what a reader has to know about all its pictures

    @property
    def version(self) -> str:
        """A text that changes when the pixels of the same file may change."""
        own = _describe_versions(self.revision, self.needs)
        return f"{own} {self.page_renderer.version}" if self.page_renderer else own

    def takes(self, kind: FileType, head: bytes, suffix: str) -> bool:
        """Return whether this is a file for this renderer, by its type, its beginning and its suffix."""
        return kind.mime in self.mimes and (self.recognize is None or self.recognize(head, suffix))

    def find_missing(self) -> str:
        """Return the command that installs what is missing; empty: nothing is."""
        return next((need.install for need in self.needs if need.find_version() is None), "")

    def select_options(self, options: RenderOptions) -> RenderOptions | Refusal:
        """Return the options that this renderer knows, or refuse one that was meant for another kind of file."""
        has_pages = "page" in self.options or "at" in self.options
        if (options.page > 1 and "page" not in self.options) or (options.sheet and not has_pages):
            return Refusal("invalid_input", "it has only one page", "leave out page and sheet")
        if options.at is not None and "at" not in self.options:
            return Refusal("invalid_input", "it is not a video", "leave out at")
        if options.lines is not None and "lines" not in self.options:
            return Refusal("invalid_input", "it has no numbered lines", "leave out lines")
        unknown = {"width", "ground", "suffix"} - self.options
        kept = replace(options, **{name: getattr(DEFAULT_OPTIONS, name) for name in unknown})
        return kept if has_pages else replace(kept, count=1)


@lru_cache(64)
def _describe_versions(revision: int, needs: tuple[PythonPackage | InstalledProgram | SystemFonts, ...]) -> str:
    return " ".join([str(revision), *(need.find_version() or "missing" for need in needs)])


def get_suffix(name: str) -> str:
    """Return the suffix of a file's name, or all of a name that has none, such as Makefile, in lower case."""
    path = PurePath(name)
    return (path.suffix or path.name).lower()


def check_page(number: int, total: int) -> Refusal | None:
    """Return why a document of `total` pages has no page of this number, or None."""
    if number <= total:
        return None
    pages = "1 page" if total == 1 else f"{total:,} pages"
    return Refusal("invalid_input", f"there is no page {number:,}: it has {pages}", f"give a page from 1 to {total:,}")


def encode_page(picture: Pillow) -> bytes:
    """Return a picture as a file: photographs as JPEG, everything else as PNG. Same pixels, same bytes."""
    plain = picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")
    return encode_pixels(plain.tobytes(), plain.width, plain.height, len(plain.getbands()), _PNG_EFFORT)


def encode_pixels(pixels: bytes | Array[c_ubyte], width: int, height: int, bands: int, effort: int) -> bytes:
    """Return rows of pixels as a file, as `encode_page` does.

    effort: how much time to spend on a small PNG, up to 9.
    """
    import pyvips

    from sightline.pixels.bitmaps import to_pillow
    from sightline.pixels.encode import encode, is_drawing, sample_grid

    bitmap = pyvips.Image.new_from_memory(pixels, width, height, bands, "uchar")
    grid = sample_grid(bitmap)
    if bands == 1 or (bands == 3 and not has_colour(grid) and not has_colour(to_pillow(bitmap))):
        # Most pages have no colour. As greys, they take a third of the time.
        bitmap, grid = bitmap[bands // 2].copy(interpretation="b-w"), grid.getchannel(bands // 2)
    else:
        bitmap = bitmap.copy(interpretation="srgb")
    if is_drawing(grid):
        return bytes(bitmap.pngsave_buffer(compression=effort, filter="none", keep="none"))
    encoded = encode(bitmap, ("image/png", "image/jpeg"), MAX_FILE_BYTES, drawing=False)
    assert not isinstance(encoded, int), "no picture of a page is that large"
    return encoded[1]


def has_colour(picture: Pillow) -> bool:
    """Return whether any pixel of an RGB picture is not grey."""
    from PIL import ImageChops

    red, green, blue = picture.split()
    differs = ImageChops.difference(red, green).getbbox() or ImageChops.difference(green, blue).getbbox()
    return differs is not None
