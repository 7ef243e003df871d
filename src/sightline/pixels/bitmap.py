"""Decoding: any file that can be read becomes one plain kind of bitmap. libvips loads with the first.

A bitmap is upright, 8 bits deep, sRGB or grey, and has an alpha channel only where something is really transparent.
It is held in memory and takes at most `HELD_BYTES` there: the rows of a larger image are shrunk while they are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.model.geometry import Box, Size
from sightline.model.image import HELD_BYTES, Picture
from sightline.model.refusal import Refusal
from sightline.pixels.decode_limits import (
    WEBP_PIXEL,
    beyond_bounds,
    decoder_memory,
    is_large_gif,
    room_for_decoder,
    within_bounds,
)
from sightline.pixels.headers import gif_frame
from sightline.pixels.pillow import BY_PILLOW, Strips, only_picture, open_by_pillow
from sightline.pixels.probe import orientation

if TYPE_CHECKING:
    from PIL.Image import Image as Pillowed
    from pyvips import Image as Bitmap

T = TypeVar("T")
MAX_FRAMES = 10_000  # a quarter of an hour of animation

Choose = Callable[[Size], Box | Refusal]
"""Given the size of the upright image, return the part of it that is wanted."""

# What libvips reads, and how much may be wrong with the file: a TIFF that ends too soon is merely an "error" to it.
_LOADERS: dict[str, tuple[str, str]] = {
    "image/png": ("pngload_buffer", "truncated"),
    "image/jpeg": ("jpegload_buffer", "truncated"),
    "image/webp": ("webpload_buffer", "truncated"),
    "image/gif": ("gifload_buffer", "truncated"),
    "image/tiff": ("tiffload_buffer", "error"),
    "image/avif": ("heifload_buffer", "truncated"),
}
_TURNS: dict[int, Callable[[Bitmap], Bitmap]] = {
    2: lambda image: image.fliphor(),
    3: lambda image: image.rot180(),
    4: lambda image: image.flipver(),
    5: lambda image: image.rot90().fliphor(),
    6: lambda image: image.rot90(),
    7: lambda image: image.rot270().fliphor(),
    8: lambda image: image.rot270(),
}
_MIRRORED_X, _MIRRORED_Y = frozenset({2, 3, 7, 8}), frozenset({3, 4, 6, 7})  # once the sides are swapped back
_BY_ROWS = frozenset({"image/png", "image/jpeg", "image/tiff"})
_TURNED_BY_LOADER = frozenset({"image/avif"})
_GREYS = frozenset({"b-w", "grey16"})
_BLOCK = 8  # pixels on each side of what a JPEG is made of
_SPARE = 2  # a shrinking decoder averages blocks: the last halving is left to a better filter
_LEAST = 4_000_000  # bytes for pixels, below which nothing is begun
_WEBP_PIXELS = 24_000_000  # of a WebP that is decoded at its own size
# How libvips, libjpeg, libheif and libtiff say that they are out of memory, and libvips that it would be.
_NO_MEMORY = re.compile(
    r"out of memory|(?:insufficient|not enough) memory|memory allocation|tile size out of range", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Pixels that are held, all of an image's or a part's; fewer than there are where these are too many to hold."""

    bitmap: Bitmap
    whole: Size  # of the upright image
    box: Box  # the part of it


def check(data: bytes) -> Picture | Refusal:
    """What the image is, when every pixel of it can be decoded."""
    picture = within_bounds(data)
    if isinstance(picture, Refusal):
        return picture
    if _is_for_pillow(data, picture):
        found = decode_part(data, picture, all_of)
        return found if isinstance(found, Refusal) else replace(picture, size=found.whole)
    return _loaded(picture, lambda: _checked(data, picture))


def decode(data: bytes, picture: Picture, *, shrink_to: Size | None = None) -> Bitmap | Refusal:
    """Every pixel of the first frame; where only `shrink_to` is wanted, perhaps fewer, but at least twice as many."""
    found = decode_part(data, picture, all_of, shrink_to=shrink_to)
    return found if isinstance(found, Refusal) else found.bitmap


def decode_part(
    data: bytes, picture: Picture, choose: Choose, *, shrink_to: Size | None = None, most: int = HELD_BYTES
) -> Decoded | Refusal:
    """Decode the part of the first frame that `choose` names, in at most `most` bytes.

    shrink_to: the size that the caller needs of the part; fewer pixels may be decoded, but twice as many as these.
    """
    if _is_for_pillow(data, picture):
        return _decoded_by_pillow(data, picture, choose, most)
    return _loaded(picture, lambda: _Load(data, picture, choose, shrink_to, most).decoded())


def _is_for_pillow(data: bytes, picture: Picture) -> bool:
    return picture.mime in BY_PILLOW or (picture.mime == "image/gif" and is_large_gif(data, picture.size))


def all_of(size: Size) -> Box:
    """Choose the whole image."""
    return Box(0, 0, size.width, size.height)


def resized(data: bytes, picture: Picture, size: Size) -> Bitmap | Refusal:
    """Decode an image and scale it to exactly `size`."""
    found = decode(data, picture, shrink_to=size)
    return found if isinstance(found, Refusal) else scaled(found, size).copy_memory()


def scaled(image: Bitmap, size: Size) -> Bitmap:
    """One resize by the best filter; exactly `size`."""
    if (image.width, image.height) == (size.width, size.height):
        return image
    across, down = size.width / image.width, size.height / image.height
    if not image.hasalpha():
        return image.resize(across, vscale=down, kernel="lanczos3")
    clear = image.premultiply().resize(across, vscale=down, kernel="lanczos3").unpremultiply()
    return clear.cast("uchar")


def pillowed(image: Bitmap) -> Pillowed:
    """The same pixels in Pillow, which compares and counts them, and makes palettes, at a fraction of the cost."""
    from PIL import Image as Pillow

    mode = ("L", "LA", "RGB", "RGBA")[image.bands - 1]
    return Pillow.frombuffer(mode, (image.width, image.height), image.write_to_memory(), "raw", mode, 0, 1)


def check_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """`check`, for a worker."""
    picture = check(data)
    if isinstance(picture, Refusal):
        return picture
    size = {"width": picture.size.width, "height": picture.size.height}
    return {"mime": picture.mime, **size, "bytes": picture.bytes, "turned": picture.turned}, b""


@dataclass(frozen=True, slots=True)
class _Load:
    """One decode by libvips, which reads the rows of an image once, from the top down."""

    data: bytes
    picture: Picture
    choose: Choose
    shrink_to: Size | None
    most: int

    def decoded(self) -> Decoded | Refusal:
        whole = self.picture.size
        box = self.choose(whole)
        if isinstance(box, Refusal):
            return box
        options = _shrinking(self.data, self.picture, self.shrink_to) if box == all_of(whole) else {}
        if _room(self.data, self.picture, options) < _LEAST:
            return _broken(self.picture, out_of_memory=True)
        image = _opened(self.data, self.picture, **options)
        if isinstance(image, Refusal):
            return image
        turn = self._turn
        found = _turned_size(Size(image.width, image.height), turn)
        if not options and found != whole:  # the header was wrong, or the decoder has cut something away
            whole, box = found, self.choose(found)
            if isinstance(box, Refusal):
                return box
        part = box if not options else all_of(found)
        bitmap = self._held(image, _stored_box(part, found, turn), options)
        return Decoded(bitmap if turn == 1 else _bare(_TURNS[turn](bitmap)), whole, box)

    @property
    def _turn(self) -> int:
        turned = self.picture.turned and self.picture.mime not in _TURNED_BY_LOADER
        return orientation(self.data) if turned else 1

    def _held(self, image: Bitmap, box: Box, options: dict[str, Any]) -> Bitmap:
        """Return the pixels in `box`. All rows are read, or nobody would see that the file breaks off below it."""

        def again() -> Bitmap:
            return _opened_again(self.data, self.picture, options)

        plain = _plain(image, again)
        most = min(self.most, _room(self.data, self.picture, options)) // plain.bands
        size = self._size(box.size, most)
        if box.y + box.height < image.height and image.width * image.height <= most:
            plain = _bare(plain)
        elif box.y + box.height < image.height and self.picture.mime in _BY_ROWS:
            small = {"shrink": _BLOCK} if self.picture.mime == "image/jpeg" else {}
            _opened_again(self.data, self.picture, small).avg()
        part = plain.crop(box.x, box.y, box.width, box.height)
        if size != box.size and part.hasalpha() and _is_opaque(_plain(again(), again)):
            part = _without_alpha(part)  # to shrink an alpha channel costs much more
        bitmap = _bare(scaled(part, size))
        return _bare(_without_alpha(bitmap)) if bitmap.hasalpha() and _is_opaque(bitmap) else bitmap

    def _size(self, part: Size, most: int) -> Size:
        """Return the size in which a part is held, of at most so many pixels; turned ones are held twice."""
        most = most if self._turn == 1 else most // 2
        if part.pixels <= most:
            return part
        if self.shrink_to is not None:
            wanted = self.shrink_to if self._turn < 5 else Size(self.shrink_to.height, self.shrink_to.width)
            spare = Size(_SPARE * wanted.width, _SPARE * wanted.height)
            if spare.pixels <= most:
                return Size(min(part.width, spare.width), min(part.height, spare.height))
        return part.scaled(math.sqrt(most / part.pixels))


def _room(data: bytes, picture: Picture, options: dict[str, Any]) -> int:
    """Return how many bytes there are for pixels beside what the decoder holds."""
    room = room_for_decoder(data) - decoder_memory(data, picture)
    if picture.mime != "image/webp":
        return room
    scale: float = options.get("scale", 1.0)
    return room - round(WEBP_PIXEL * scale * scale * picture.size.pixels)


def _turned_size(size: Size, turn: int) -> Size:
    return Size(size.height, size.width) if turn >= 5 else size


def _stored_box(box: Box, upright: Size, turn: int) -> Box:
    """Return where a part of the upright image is in the rows of the file."""
    x, y, width, height = box.x, box.y, box.width, box.height
    stored = _turned_size(upright, turn)
    if turn >= 5:
        x, y, width, height = y, x, height, width
    x = stored.width - x - width if turn in _MIRRORED_X else x
    y = stored.height - y - height if turn in _MIRRORED_Y else y
    return Box(x, y, width, height)


def _checked(data: bytes, picture: Picture) -> Picture | Refusal:
    """Read every row and keep none."""
    least = min(picture.size.width, picture.size.height)
    # Of a JPEG, every bit is read and the fewest pixels are computed; of fewer than a block, none would be left.
    small = {"shrink": _BLOCK} if picture.mime == "image/jpeg" and least >= _BLOCK else {}
    options = small or _shrinking(data, picture, None)
    image = _opened(data, picture, **options)
    if isinstance(image, Refusal):
        return image
    _plain(image, lambda: _opened_again(data, picture, options)).avg()
    size = Size(image.width, image.height)
    turn = orientation(data) if picture.turned and picture.mime not in _TURNED_BY_LOADER else 1
    shrunk = small or size.pixels < picture.size.pixels
    return picture if shrunk else replace(picture, size=_turned_size(size, turn))


def _on_screen(image: Bitmap, data: bytes, screen: Size) -> Bitmap:
    """The first frame in its place; libvips gives as much of the screen as its frames take, in whatever colour."""
    frame = gif_frame(data)
    assert frame is not None, "the header has been read"
    if frame.size == screen:
        return image.crop(0, 0, screen.width, screen.height)
    piece = image.crop(frame.x, frame.y, frame.width, frame.height)
    clear = piece if piece.hasalpha() else piece.bandjoin(255)
    return clear.embed(frame.x, frame.y, screen.width, screen.height)


def _shrinking(data: bytes, picture: Picture, wanted: Size | None) -> dict[str, Any]:
    """How far the decoder itself may shrink, for a caller who wants this size of the whole."""
    if picture.mime not in ("image/jpeg", "image/webp"):
        return {}
    size = picture.size
    spare = 1.0 if wanted is None else min(size.width / wanted.width, size.height / wanted.height) / _SPARE
    if picture.mime == "image/jpeg":
        by = next((by for by in (8, 4, 2) if by <= spare), 1)
        return {"shrink": by} if by > 1 else {}
    most = max(1, _room(data, picture, {"scale": 0.0})) // (WEBP_PIXEL + 4)  # it is held once more when it is decoded
    scale = min(1.0, 1 / spare, math.sqrt(min(most, _WEBP_PIXELS) / size.pixels))
    return {"scale": scale} if scale < 1 else {}


def _opened(data: bytes, picture: Picture, **options: Any) -> Bitmap | Refusal:
    """Open a file, with its first frame in its place. Pixels are decoded when they are asked for."""
    import pyvips

    name, fail_on = _LOADERS[picture.mime]
    image = getattr(pyvips.Image, name)(data, access="sequential", fail_on=fail_on, **options)
    found = replace(picture, size=Size(image.width, image.height))
    refusal = beyond_bounds(data, found) or _endless(image)
    return refusal or (_on_screen(image, data, picture.size) if picture.mime == "image/gif" else image)


def _opened_again(data: bytes, picture: Picture, options: dict[str, Any]) -> Bitmap:
    """Open a file once more, to learn what has to be known before its pixels can be made."""
    opened = _opened(data, picture, **options)
    assert not isinstance(opened, Refusal), "it was opened before"
    return opened


def _loaded(picture: Picture, load: Callable[[], T | Refusal]) -> T | Refusal:
    """Run a decode by libvips; an error of its becomes a refusal."""
    import pyvips

    if picture.mime not in _LOADERS:
        return Refusal("unsupported_type", f"there is no decoder for {picture.mime}", "send a PNG or a JPEG")
    pyvips.cache_set_max(0)  # libvips would keep the last hundred operations, and with them their pixels
    try:
        return load()
    except (pyvips.Error, UnicodeDecodeError) as error:
        _forget_error()
        return _broken(picture, out_of_memory=_NO_MEMORY.search(str(error)) is not None)


def _forget_error() -> None:
    """A decoder may quote bytes that are no text: then pyvips fails to read them, and would again at every error."""
    from pyvips import vips_lib

    vips_lib.vips_error_clear()


def _bare(image: Bitmap) -> Bitmap:
    """Every pixel, in memory, and nothing that the file said about them: it has been heeded, or does not matter."""
    import pyvips

    pixels = image.write_to_memory()
    bare = pyvips.Image.new_from_memory(pixels, image.width, image.height, image.bands, image.format)
    return bare.copy(interpretation=image.interpretation)


def _endless(image: Bitmap) -> Refusal | None:
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1  # get_n_pages() takes 10,000 and more for one
    if frames <= MAX_FRAMES:
        return None
    return Refusal("too_large", f"the animation has {frames:,} frames", f"send at most {MAX_FRAMES:,}, or one of them")


def _broken(picture: Picture, *, out_of_memory: bool) -> Refusal:
    if out_of_memory:
        what = f"the {picture.mime} image of {picture.size} pixels needs too much memory"
        return Refusal("too_large", what, "send a smaller one")
    return Refusal("corrupt", f"the {picture.mime} image cannot be decoded", "ask for the image again")


def _plain(image: Bitmap, again: Callable[[], Bitmap]) -> Bitmap:
    """The same pixels in 8 bits, sRGB or grey. `again` opens the image once more."""
    if image.interpretation in _GREYS:
        return _eight_bits(image, "b-w", again)
    return (_in_other_colours(image) and _by_profile(image)) or _eight_bits(image, "srgb", again)


def _eight_bits(image: Bitmap, space: str, again: Callable[[], Bitmap]) -> Bitmap:
    """Integers of 16 bits by their meaning; wider and real ones, which have none, by the range they use."""
    if image.format in ("uchar", "ushort"):
        return image if image.format == "uchar" and image.interpretation == space else image.colourspace(space)
    stats = again().stats()
    low, high = stats(0, 0)[0], stats(1, 0)[0]
    factor = 255 / (high - low) if high > low else 0.0
    return image.linear(factor, 0.5 - low * factor if factor else 0.0).cast("uchar").copy(interpretation=space)


def _in_other_colours(image: Bitmap) -> bool:
    """Whether a profile says that the numbers are not sRGB; a profile of sRGB itself is named so."""
    if not image.get_typeof("icc-profile-data"):
        return False
    profile = bytes(image.get("icc-profile-data"))
    return b"sRGB" not in profile and "sRGB".encode("utf-16-be") not in profile


def _by_profile(image: Bitmap) -> Bitmap | None:
    import pyvips

    try:
        return image.icc_transform("srgb", embedded=True, intent="relative")
    except (pyvips.Error, UnicodeDecodeError):  # a profile that is broken, or of another kind of image
        _forget_error()
        return None


def _is_opaque(image: Bitmap) -> bool:
    """Whether the alpha channel hides nothing."""
    return bool(image[image.bands - 1].min() >= 255)


def _without_alpha(image: Bitmap) -> Bitmap:
    return image.extract_band(0, n=image.bands - 1)


def _decoded_by_pillow(data: bytes, picture: Picture, choose: Choose, most: int) -> Decoded | Refusal:
    if picture.mime == "image/x-icon":
        data, is_png = only_picture(data)
        if is_png:
            inner = within_bounds(data)
            return inner if isinstance(inner, Refusal) else decode_part(data, inner, choose, most=most)
    try:
        with open_by_pillow(data, picture.mime) as opened:
            found = replace(picture, size=Size(*opened.size))
            box = beyond_bounds(data, found) or choose(found.size)
            if isinstance(box, Refusal):
                return box
            opened.load()
            room = room_for_decoder(data) - decoder_memory(data, found)
            strips = Strips(opened, box)
            bitmap = strips.bitmap(max(1, min(most, room) // len(strips.mode)))
    except MemoryError:
        return _broken(picture, out_of_memory=True)
    except Exception:  # noqa: BLE001 - a decoder may raise anything over a hostile or broken file
        return _broken(picture, out_of_memory=False)
    opaque = bitmap.hasalpha() and _is_opaque(bitmap)
    return Decoded(_bare(_without_alpha(bitmap)) if opaque else bitmap, found.size, box)
