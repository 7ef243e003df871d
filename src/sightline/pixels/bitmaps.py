"""Bitmaps of libvips: their size, orientation, colours and alpha channel, and Pillow's form of them.

libvips computes pixels when they are needed, and reads the rows of a file once: what needs them twice opens it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Size

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from pyvips import Image as Bitmap

_TRANSFORMS: dict[int, Callable[[Bitmap], Bitmap]] = {
    2: lambda image: image.fliphor(),
    3: lambda image: image.rot180(),
    4: lambda image: image.flipver(),
    5: lambda image: image.rot90().fliphor(),
    6: lambda image: image.rot90(),
    7: lambda image: image.rot270().fliphor(),
    8: lambda image: image.rot270(),
}
_MIRRORED_X, _MIRRORED_Y = frozenset({2, 3, 7, 8}), frozenset({3, 4, 6, 7})  # once the sides are swapped back
_GREYS = frozenset({"b-w", "grey16"})


def resize_bitmap(image: Bitmap, size: Size) -> Bitmap:
    """Resize to exactly `size`, by the best filter."""
    if (image.width, image.height) == (size.width, size.height):
        return image
    x_scale, y_scale = size.width / image.width, size.height / image.height
    if not image.hasalpha():
        return image.resize(x_scale, vscale=y_scale, kernel="lanczos3")
    resized = image.premultiply().resize(x_scale, vscale=y_scale, kernel="lanczos3").unpremultiply()
    return resized.cast("uchar")


def to_pillow(image: Bitmap) -> PillowImage:
    """Convert to Pillow, which is much faster at comparing and counting pixels and making palettes."""
    from PIL import Image as Pillow

    mode = ("L", "LA", "RGB", "RGBA")[image.bands - 1]
    return Pillow.frombuffer(mode, (image.width, image.height), image.write_to_memory(), "raw", mode, 0, 1)


def normalize_colours(image: Bitmap, reopen: Callable[[], Bitmap]) -> Bitmap:
    """Convert to 8 bits, sRGB or grey. `reopen` opens the image again."""
    if image.interpretation in _GREYS:
        return _convert_to_8_bits(image, "b-w", reopen)
    return (_has_other_profile(image) and _apply_profile(image)) or _convert_to_8_bits(image, "srgb", reopen)


def _convert_to_8_bits(image: Bitmap, space: str, reopen: Callable[[], Bitmap]) -> Bitmap:
    """Convert to 8 bits. Wider integers and floats have no defined range, so theirs is stretched."""
    if image.format in ("uchar", "ushort"):
        return image if image.format == "uchar" and image.interpretation == space else image.colourspace(space)
    stats = reopen().stats()
    low, high = stats(0, 0)[0], stats(1, 0)[0]
    factor = 255 / (high - low) if high > low else 0.0
    return image.linear(factor, 0.5 - low * factor if factor else 0.0).cast("uchar").copy(interpretation=space)


def _has_other_profile(image: Bitmap) -> bool:
    """Return whether a colour profile says that the colours are not sRGB, going by its name."""
    if not image.get_typeof("icc-profile-data"):
        return False
    profile = bytes(image.get("icc-profile-data"))
    return b"sRGB" not in profile and "sRGB".encode("utf-16-be") not in profile


def _apply_profile(image: Bitmap) -> Bitmap | None:
    import pyvips

    try:
        return image.icc_transform("srgb", embedded=True, intent="relative")
    except (pyvips.Error, UnicodeDecodeError):  # a profile that is damaged, or for another kind of image
        clear_vips_error()
        return None


def copy_pixels(image: Bitmap) -> Bitmap:
    """Return the pixels in memory, without the file's metadata, which has been applied or doesn't matter."""
    import pyvips

    pixels = image.write_to_memory()
    copied = pyvips.Image.new_from_memory(pixels, image.width, image.height, image.bands, image.format)
    return copied.copy(interpretation=image.interpretation)


def is_opaque(image: Bitmap) -> bool:
    """Return whether the alpha channel is full everywhere."""
    return bool(image[image.bands - 1].min() >= 255)


def drop_alpha(image: Bitmap) -> Bitmap:
    return image.extract_band(0, n=image.bands - 1)


def drop_unused_alpha(image: Bitmap) -> Bitmap:
    return copy_pixels(drop_alpha(image)) if image.hasalpha() and is_opaque(image) else image


def clear_vips_error() -> None:
    """Clear the error buffer. A decoder may quote bytes there that are not UTF-8, on which pyvips would fail again."""
    from pyvips import vips_lib

    vips_lib.vips_error_clear()


def make_upright(image: Bitmap, orientation: int) -> Bitmap:
    """Return an image as it is viewed, by the EXIF orientation of its file."""
    return image if orientation == 1 else copy_pixels(_TRANSFORMS[orientation](image))


def rotate_size(size: Size, orientation: int) -> Size:
    """Return the size of the upright image for that of the rows of a file, or the other way round."""
    return Size(size.height, size.width) if orientation >= 5 else size


def find_stored_box(box: Box, upright: Size, orientation: int) -> Box:
    """Convert a box in the upright image to one in the rows of the file."""
    x, y, width, height = box.x, box.y, box.width, box.height
    stored = rotate_size(upright, orientation)
    if orientation >= 5:
        x, y, width, height = y, x, height, width
    x = stored.width - x - width if orientation in _MIRRORED_X else x
    y = stored.height - y - height if orientation in _MIRRORED_Y else y
    return Box(x, y, width, height)
