"""Decode images of every format to one kind of bitmap: upright, 8 bits, sRGB or grey, with alpha only if it is used.

A bitmap takes at most `MAX_BITMAP_BYTES` of memory: a larger image is shrunk while its rows are read. libvips decodes
most formats. Pillow decodes BMP, icons, Photoshop files and very large GIFs; it holds such an image whole, in its own
depth, and the result is converted in strips of rows. Neither library is loaded before the first image.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.model.geometry import Box, Size
from sightline.model.image import MAX_BITMAP_BYTES, ImageInfo
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.pixels.bitmaps import (
    clear_vips_error,
    copy_pixels,
    drop_alpha,
    drop_unused_alpha,
    find_stored_box,
    is_opaque,
    make_upright,
    normalize_colours,
    resize_bitmap,
    rotate_size,
)
from sightline.pixels.file_types import PNG, identify_file
from sightline.pixels.image_headers import find_gif_frame, find_largest_icon
from sightline.pixels.probe import (
    WEBP_BYTES_PER_PIXEL,
    check_limits,
    count_available_bytes,
    estimate_decoder_memory,
    is_large_gif,
    probe_within_limits,
    read_orientation,
)
from sightline.pixels.worker_process import is_memory_error

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from pyvips import Image as Bitmap

T = TypeVar("T")
MAX_FRAMES = 10_000  # a quarter of an hour of animation

BoxChooser = Callable[[Size], Box | Refusal]
"""Returns the part to decode of an upright image of that size."""

# The loader of libvips, and the severity at which it fails: to libvips, a truncated TIFF is only an "error".
_LOADERS: dict[str, tuple[str, str]] = {
    "image/png": ("pngload_buffer", "truncated"),
    "image/jpeg": ("jpegload_buffer", "truncated"),
    "image/webp": ("webpload_buffer", "truncated"),
    "image/gif": ("gifload_buffer", "truncated"),
    "image/tiff": ("tiffload_buffer", "error"),
    "image/avif": ("heifload_buffer", "truncated"),
}
# No wheel of a HEIC decoder has both a libheif without open advisories and no GPL code.
_HEIC = Refusal(
    "unsupported_type",
    "image/heic is not decoded here: the decoders that Python packages offer have known flaws, or a GPL licence",
    "convert it to PNG or JPEG: heif-convert photo.heic photo.jpg (of Debian's libheif-examples), "
    "or on macOS: sips -s format jpeg photo.heic --out photo.jpg",
)
_NO_DECODER = Refusal("unsupported_type", "the image cannot be decoded here", "convert it to PNG or JPEG")
_ROW_FORMATS = frozenset({"image/png", "image/jpeg", "image/tiff"})
_ROTATED_BY_LOADER = frozenset({"image/avif"})
_BLOCK = 8  # pixels: the side of a JPEG block
_OVERSAMPLE = 2  # decoders shrink by averaging blocks; the last halving is left to a better filter
_MIN_BYTES = 4_000_000  # that must be free for pixels
_MAX_WEBP_PIXELS = 24_000_000  # of a WebP that is not shrunk while it is decoded
_PILLOW_FORMATS = {"image/bmp": "BMP", "image/x-icon": "ICO", "image/vnd.adobe.photoshop": "PSD", "image/gif": "GIF"}
_STRIP_PIXELS = 1_000_000  # that are converted at once


@value_class
class DecodedImage:
    """The pixels of an image or a part of it; fewer than in the file if those are too many to hold."""

    bitmap: Bitmap
    full_size: Size  # of the upright image
    box: Box  # the part of it that was decoded


def check_image(data: bytes) -> ImageInfo | Refusal:
    """Decode every pixel, and return what the image is, or a refusal if it is damaged."""
    info = probe_within_limits(data)
    if isinstance(info, Refusal):
        return info
    if _is_for_pillow(data, info):
        decoded = decode_part(data, info, choose_whole)
        return decoded if isinstance(decoded, Refusal) else replace(info, size=decoded.full_size)
    return _run_vips(info, lambda: _check_by_vips(data, info))


def decode(data: bytes, info: ImageInfo, *, shrink_to: Size | None = None) -> Bitmap | Refusal:
    """Decode the first frame. With `shrink_to`, the result may be smaller, but at least twice that size."""
    decoded = decode_part(data, info, choose_whole, shrink_to=shrink_to)
    return decoded if isinstance(decoded, Refusal) else decoded.bitmap


def decode_part(
    data: bytes,
    info: ImageInfo,
    choose: BoxChooser,
    *,
    shrink_to: Size | None = None,
    max_bytes: int = MAX_BITMAP_BYTES,
) -> DecodedImage | Refusal:
    """Decode the part of the first frame that `choose` returns, in at most `max_bytes` bytes.

    shrink_to: the size that the caller needs. The result may then be smaller, but is at least twice that size.
    """
    if _is_for_pillow(data, info):
        return _decode_by_pillow(data, info, choose, max_bytes)
    return _run_vips(info, lambda: _VipsDecoder(data, info, choose, shrink_to, max_bytes).decode())


def _is_for_pillow(data: bytes, info: ImageInfo) -> bool:
    return is_large_gif(data, info.size) if info.mime == "image/gif" else info.mime in _PILLOW_FORMATS


def choose_whole(size: Size) -> Box:
    return Box(0, 0, size.width, size.height)


def decode_at_size(data: bytes, info: ImageInfo, size: Size) -> Bitmap | Refusal:
    """Decode an image and scale it to exactly `size`."""
    bitmap = decode(data, info, shrink_to=size)
    return bitmap if isinstance(bitmap, Refusal) else resize_bitmap(bitmap, size).copy_memory()


def check_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Run `check_image` in a worker."""
    info = check_image(data)
    if isinstance(info, Refusal):
        return info
    size = {"width": info.size.width, "height": info.size.height}
    return {"mime": info.mime, **size, "bytes": info.bytes, "turned": info.is_rotated}, b""


@value_class
class _VipsDecoder:
    """Decodes an image by libvips, which reads its rows once, from the top down."""

    data: bytes
    info: ImageInfo
    choose: BoxChooser
    shrink_to: Size | None
    max_bytes: int

    def decode(self) -> DecodedImage | Refusal:
        full_size = self.info.size
        box = self.choose(full_size)
        if isinstance(box, Refusal):
            return box
        options = _choose_load_options(self.data, self.info, self.shrink_to) if box == choose_whole(full_size) else {}
        if _count_free_bytes(self.data, self.info, options) < _MIN_BYTES:
            return _refuse_for_memory(self.info)
        image = _open(self.data, self.info, **options)
        if isinstance(image, Refusal):
            return image
        orientation = self._orientation
        opened_size = rotate_size(Size(image.width, image.height), orientation)
        if not options and opened_size != full_size:  # the header was wrong, or the decoder has cut something off
            full_size, box = opened_size, self.choose(opened_size)
            if isinstance(box, Refusal):
                return box
        part = box if not options else choose_whole(opened_size)
        bitmap = self._load_pixels(image, find_stored_box(part, opened_size, orientation), options)
        return DecodedImage(make_upright(bitmap, orientation), full_size, box)

    @property
    def _orientation(self) -> int:
        return _find_orientation(self.data, self.info)

    def _load_pixels(self, image: Bitmap, box: Box, options: dict[str, Any]) -> Bitmap:
        """Return the pixels in `box`. All rows are read, to notice a file that is truncated below the box."""
        reopen = partial(_reopen, self.data, self.info, options)
        normalized = normalize_colours(image, reopen)
        max_pixels = min(self.max_bytes, _count_free_bytes(self.data, self.info, options)) // normalized.bands
        size = self._choose_size(box.size, max_pixels)
        if box.y + box.height < image.height and image.width * image.height <= max_pixels:
            normalized = copy_pixels(normalized)
        elif box.y + box.height < image.height and self.info.mime in _ROW_FORMATS:
            shrink_option = {"shrink": _BLOCK} if self.info.mime == "image/jpeg" else {}
            _reopen(self.data, self.info, shrink_option).avg()
        part = normalized.crop(box.x, box.y, box.width, box.height)
        if size != box.size and part.hasalpha() and is_opaque(normalize_colours(reopen(), reopen)):
            part = drop_alpha(part)  # shrinking an alpha channel costs much more
        return drop_unused_alpha(copy_pixels(resize_bitmap(part, size)))

    def _choose_size(self, part: Size, max_pixels: int) -> Size:
        """Return the size in which to hold a part; one that has to be rotated is held twice for a while."""
        max_pixels = max_pixels if self._orientation == 1 else max_pixels // 2
        if part.pixels <= max_pixels:
            return part
        if self.shrink_to is not None:
            wanted = self.shrink_to if self._orientation < 5 else Size(self.shrink_to.height, self.shrink_to.width)
            spare = Size(_OVERSAMPLE * wanted.width, _OVERSAMPLE * wanted.height)
            if spare.pixels <= max_pixels:
                return Size(min(part.width, spare.width), min(part.height, spare.height))
        return part.scale(math.sqrt(max_pixels / part.pixels))


def _find_orientation(data: bytes, info: ImageInfo) -> int:
    """Return the orientation that the loader has not corrected."""
    return read_orientation(data) if info.is_rotated and info.mime not in _ROTATED_BY_LOADER else 1


def _count_free_bytes(data: bytes, info: ImageInfo, options: dict[str, Any]) -> int:
    """Return how many bytes are free for pixels besides what the decoder needs."""
    free = count_available_bytes(data) - estimate_decoder_memory(data, info)
    if info.mime != "image/webp":
        return free
    scale: float = options.get("scale", 1.0)
    return free - round(WEBP_BYTES_PER_PIXEL * scale * scale * info.size.pixels)


def _check_by_vips(data: bytes, info: ImageInfo) -> ImageInfo | Refusal:
    """Read every row and keep none of them."""
    shorter_side = min(info.size.width, info.size.height)
    # A shrinking JPEG decoder reads every bit and computes the fewest pixels; of less than a block, none would be left.
    shrink_option = {"shrink": _BLOCK} if info.mime == "image/jpeg" and shorter_side >= _BLOCK else {}
    options = shrink_option or _choose_load_options(data, info, None)
    image = _open(data, info, **options)
    if isinstance(image, Refusal):
        return image
    normalize_colours(image, lambda: _reopen(data, info, options)).avg()
    size = Size(image.width, image.height)
    shrunk = shrink_option or size.pixels < info.size.pixels
    return info if shrunk else replace(info, size=rotate_size(size, _find_orientation(data, info)))


def _place_first_frame(image: Bitmap, data: bytes, screen: Size) -> Bitmap:
    """Return the first frame at its position on the screen; libvips leaves the rest undefined, or omits it."""
    frame = find_gif_frame(data)
    assert frame is not None, "the header has been read"
    if frame.size == screen:
        return image.crop(0, 0, screen.width, screen.height)
    piece = image.crop(frame.x, frame.y, frame.width, frame.height)
    with_alpha = piece if piece.hasalpha() else piece.bandjoin(255)
    return with_alpha.embed(frame.x, frame.y, screen.width, screen.height)


def _choose_load_options(data: bytes, info: ImageInfo, wanted: Size | None) -> dict[str, Any]:
    """Return the load options that let the decoder shrink the image, if the caller needs it in the size `wanted`."""
    if info.mime not in ("image/jpeg", "image/webp"):
        return {}
    size = info.size
    max_factor = 1.0 if wanted is None else min(size.width / wanted.width, size.height / wanted.height) / _OVERSAMPLE
    if info.mime == "image/jpeg":
        factor = next((factor for factor in (8, 4, 2) if factor <= max_factor), 1)
        return {"shrink": factor} if factor > 1 else {}
    max_pixels = max(1, _count_free_bytes(data, info, {"scale": 0.0})) // (WEBP_BYTES_PER_PIXEL + 4)  # and the result
    scale = min(1.0, 1 / max_factor, math.sqrt(min(max_pixels, _MAX_WEBP_PIXELS) / size.pixels))
    return {"scale": scale} if scale < 1 else {}


def _open(data: bytes, info: ImageInfo, **options: Any) -> Bitmap | Refusal:
    """Open a file, with its first frame in position. Nothing is decoded until pixels are needed."""
    import pyvips

    name, fail_on = _LOADERS[info.mime]
    image = getattr(pyvips.Image, name)(data, access="sequential", fail_on=fail_on, **options)
    opened = replace(info, size=Size(image.width, image.height))
    refusal = check_limits(data, opened) or _check_frame_count(image)
    return refusal or (_place_first_frame(image, data, info.size) if info.mime == "image/gif" else image)


def _reopen(data: bytes, info: ImageInfo, options: dict[str, Any]) -> Bitmap:
    """Open a file again: its rows can be read only once."""
    image = _open(data, info, **options)
    assert not isinstance(image, Refusal), "it was opened before"
    return image


def _run_vips(info: ImageInfo, load: Callable[[], T | Refusal]) -> T | Refusal:
    """Call `load`, and turn an error of libvips into a refusal."""
    import pyvips

    if info.mime not in _LOADERS:
        return _HEIC if info.mime == "image/heic" else _NO_DECODER
    pyvips.cache_set_max(0)  # it would keep the last hundred operations, and their pixels
    try:
        return load()
    except (pyvips.Error, UnicodeDecodeError) as error:
        clear_vips_error()
        return _refuse_decode(info, error)


def _check_frame_count(image: Bitmap) -> Refusal | None:
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1  # get_n_pages() returns 1 for 10,000 or more
    if frames <= MAX_FRAMES:
        return None
    return Refusal("too_large", f"the animation has {frames:,} frames", f"send at most {MAX_FRAMES:,}, or a single one")


def _refuse_decode(info: ImageInfo, error: Exception) -> Refusal:
    if is_memory_error(error):
        return _refuse_for_memory(info)
    return Refusal("corrupt", f"the {info.mime} image is truncated or damaged", "send an undamaged copy of the file")


def _refuse_for_memory(info: ImageInfo) -> Refusal:
    what = f"the {info.mime} image of {info.size} pixels needs too much memory"
    return Refusal("too_large", what, "send a smaller one")


def _decode_by_pillow(data: bytes, info: ImageInfo, choose: BoxChooser, max_bytes: int) -> DecodedImage | Refusal:
    if info.mime == "image/x-icon":
        data, is_png = _extract_largest_icon(data)
        if is_png:
            inner = probe_within_limits(data)
            return inner if isinstance(inner, Refusal) else decode_part(data, inner, choose, max_bytes=max_bytes)
    try:
        with _open_with_pillow(data, info.mime) as image:
            opened = replace(info, size=Size(*image.size))
            box = check_limits(data, opened) or choose(opened.size)
            if isinstance(box, Refusal):
                return box
            image.load()
            free = count_available_bytes(data) - estimate_decoder_memory(data, opened)
            part = _PillowPart(image, box)
            bitmap = part.to_bitmap(max(1, min(max_bytes, free) // len(part.mode)))
    except Exception as error:  # noqa: BLE001 - a decoder may raise anything over a hostile or damaged file
        return _refuse_decode(info, error)
    return DecodedImage(drop_unused_alpha(bitmap), opened.size, box)


@contextmanager
def _open_with_pillow(data: bytes, mime: str) -> Iterator[PillowImage]:
    """Open an image without decoding it."""
    from PIL import Image as Pillow

    with warnings.catch_warnings():
        # Pillow warns of large images and odd metadata; here limits are checked, and metadata is dropped.
        warnings.simplefilter("ignore")
        with Pillow.open(io.BytesIO(data), formats=[_PILLOW_FORMATS[mime]]) as opened:
            yield opened


def _extract_largest_icon(data: bytes) -> tuple[bytes, bool]:
    """Return the largest picture of an icon file as a PNG and True, or else as an icon file of its own and False."""
    entry = find_largest_icon(data)
    assert entry is not None, "the header has been read"
    body = data[entry.start : entry.start + entry.length]
    if identify_file(body) is PNG:
        return body, True
    wanted = (entry.length, entry.start)
    offset = next(offset for offset in range(6, len(data), 16) if struct.unpack_from("<II", data, offset + 8) == wanted)
    return b"\0\0\1\0\1\0" + data[offset : offset + 12] + struct.pack("<I", 22) + body, False


@value_class
class _PillowPart:
    """A part of an image that Pillow has decoded; it becomes a bitmap strip by strip."""

    image: PillowImage
    box: Box

    @property
    def mode(self) -> str:
        return "RGBA" if self.image.has_transparency_data else "L" if self.image.mode in ("1", "L") else "RGB"

    def to_bitmap(self, max_pixels: int) -> Bitmap:
        """Return the part in at most `max_pixels` pixels; if it has more, each is the average of a square."""
        import pyvips

        factor = max(1, math.ceil(math.sqrt(self.box.size.pixels / max_pixels)))
        width, height, bands = -(-self.box.width // factor), -(-self.box.height // factor), len(self.mode)
        pixels, end = bytearray(width * height * bands), 0
        for strip in self._convert_strips(factor):
            pixels[end : end + len(strip)] = strip
            end += len(strip)
        bitmap = pyvips.Image.new_from_memory(pixels, width, height, bands, "uchar")
        return bitmap.copy(interpretation="b-w" if bands == 1 else "srgb")

    def _convert_strips(self, factor: int) -> Iterator[bytes]:
        import pyvips

        box, mode = self.box, self.mode
        rows = max(1, _STRIP_PIXELS // box.width // factor) * factor
        for top in range(box.y, box.bottom, rows):
            piece = self.image.crop((box.x, top, box.right, min(top + rows, box.bottom))).convert(mode)
            if factor == 1:
                yield piece.tobytes()
                continue
            size = Size(*piece.size)
            strip = pyvips.Image.new_from_memory(piece.tobytes(), size.width, size.height, len(mode), "uchar")
            yield strip.shrink(factor, factor, ceil=True).write_to_memory()
