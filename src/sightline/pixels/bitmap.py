"""Decoding: any file that can be read becomes one plain kind of bitmap. libvips loads with the first.

A bitmap is upright, 8 bits deep, sRGB or grey, and has an alpha channel only where something is really transparent.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.pixels.headers import gif_frame, icon
from sightline.pixels.kinds import PNG, kind_of
from sightline.pixels.probe import orientation, probe

if TYPE_CHECKING:
    from PIL.Image import Image as Pillowed
    from pyvips import Image as Bitmap

MAX_BYTES = 64 * 1024 * 1024
MAX_EDGE = 16_384
MAX_PIXELS = 120_000_000
MAX_FRAMES = 10_000  # a quarter of an hour of animation

# What libvips reads, and how much may be wrong with the file: a TIFF that ends too soon is merely an "error" to it.
_LOADERS: dict[str, tuple[str, str]] = {
    "image/png": ("pngload_buffer", "truncated"),
    "image/jpeg": ("jpegload_buffer", "truncated"),
    "image/webp": ("webpload_buffer", "truncated"),
    "image/gif": ("gifload_buffer", "truncated"),
    "image/tiff": ("tiffload_buffer", "error"),
    "image/avif": ("heifload_buffer", "truncated"),
}
# What it does not read and Pillow does.
_PILLOW = {"image/bmp": "BMP", "image/x-icon": "ICO", "image/vnd.adobe.photoshop": "PSD"}

_TURNS: dict[int, Callable[[Bitmap], Bitmap]] = {
    2: lambda image: image.fliphor(),
    3: lambda image: image.rot180(),
    4: lambda image: image.flipver(),
    5: lambda image: image.rot90().fliphor(),
    6: lambda image: image.rot90(),
    7: lambda image: image.rot270().fliphor(),
    8: lambda image: image.rot270(),
}
_TURNED_BY_LOADER = frozenset({"image/avif"})
_GREYS = frozenset({"b-w", "grey16"})
_BLOCK = 8  # pixels on each side of what a JPEG is made of
_SPARE = 2  # a shrinking decoder averages blocks: the last halving is left to a better filter


def within_bounds(data: bytes) -> Picture | Refusal:
    """What the header says, when it promises no more than may be decoded."""
    if len(data) > MAX_BYTES:
        return Refusal("too_large", f"the image has {len(data):,} bytes", f"send at most {MAX_BYTES:,}")
    picture = probe(data, len(data))
    assert picture is not None, "a whole file always has an answer"
    return picture if isinstance(picture, Refusal) else _oversized(picture.size) or picture


def check(data: bytes) -> Picture | Refusal:
    """What the image is, when every pixel of it can be decoded."""
    picture = within_bounds(data)
    if isinstance(picture, Refusal):
        return picture
    if picture.mime == "image/jpeg" and min(picture.size.width, picture.size.height) >= _BLOCK:
        # Every bit of it is read and the fewest pixels are computed; of fewer than a block, none would be left.
        found = _loaded(data, picture, lambda image: image, shrink=_BLOCK)
        return found if isinstance(found, Refusal) else picture
    image = decode(data, picture)
    return image if isinstance(image, Refusal) else replace(picture, size=Size(image.width, image.height))


def decode(data: bytes, picture: Picture, *, shrink_to: Size | None = None) -> Bitmap | Refusal:
    """Every pixel of the first frame; where only `shrink_to` is wanted, perhaps fewer, but at least twice as many."""
    return _decoded(data, picture, lambda image: image, shrink_to)


def resized(data: bytes, picture: Picture, size: Size) -> Bitmap | Refusal:
    """The image decoded and scaled in one pass, which never holds all of its pixels."""
    return _decoded(data, picture, lambda image: scaled(image, size), size)


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


def _oversized(size: Size) -> Refusal | None:
    if size.edge <= MAX_EDGE and size.pixels <= MAX_PIXELS:
        return None
    most = f"send at most {MAX_EDGE:,} on each side and {MAX_PIXELS:,} in all"
    return Refusal("too_large", f"the image is {size} pixels", most)


def _decoded(
    data: bytes, picture: Picture, then: Callable[[Bitmap], Bitmap], shrink_to: Size | None
) -> Bitmap | Refusal:
    if picture.mime in _PILLOW:
        return _by_pillow(data, picture, then)
    turn = 1 if picture.mime in _TURNED_BY_LOADER or not picture.turned else orientation(data)

    def finish(image: Bitmap) -> Bitmap:
        plain = _plain(_on_screen(image, data, picture.size) if picture.mime == "image/gif" else image)
        if turn == 1:
            return then(plain)
        return then(_TURNS[turn](plain.copy_memory()))  # a turn needs its pixels in another order

    return _loaded(data, picture, finish, **_shrinking(picture, shrink_to))


def _on_screen(image: Bitmap, data: bytes, screen: Size) -> Bitmap:
    """The first frame in its place; libvips gives as much of the screen as its frames take, in whatever colour."""
    frame = gif_frame(data)
    assert frame is not None, "the header has been read"
    if frame.size == screen:
        return image.crop(0, 0, screen.width, screen.height)
    piece = image.crop(frame.x, frame.y, frame.width, frame.height)
    clear = piece if piece.hasalpha() else piece.bandjoin(255)
    return clear.embed(frame.x, frame.y, screen.width, screen.height)


def _shrinking(picture: Picture, wanted: Size | None) -> dict[str, Any]:
    """How far the decoder itself may shrink."""
    if wanted is None or picture.mime not in ("image/jpeg", "image/webp"):
        return {}
    spare = min(picture.size.width / wanted.width, picture.size.height / wanted.height) / _SPARE
    if picture.mime == "image/jpeg":
        return {"shrink": next((by for by in (8, 4, 2) if by <= spare), 1)}
    return {"scale": min(1.0, 1 / spare)}


def _loaded(data: bytes, picture: Picture, finish: Callable[[Bitmap], Bitmap], **options: Any) -> Bitmap | Refusal:
    import pyvips

    loader = _LOADERS.get(picture.mime)
    if loader is None:
        return Refusal("unsupported_type", f"there is no decoder for {picture.mime}", "send a PNG or a JPEG")
    name, fail_on = loader
    pyvips.cache_set_max(0)  # libvips would keep the last hundred operations, and with them their pixels
    try:
        image = getattr(pyvips.Image, name)(data, access="sequential", fail_on=fail_on, **options)
        refusal = _oversized(Size(image.width, image.height)) or _endless(image)
        return refusal or _bare(finish(image))
    except (pyvips.Error, UnicodeDecodeError) as error:
        _forget_error()
        return _broken(picture, out_of_memory="out of memory" in str(error))


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
        return Refusal("too_large", f"the {picture.mime} image needs too much memory", "send a smaller one")
    return Refusal("corrupt", f"the {picture.mime} image cannot be decoded", "ask for the image again")


def _plain(image: Bitmap) -> Bitmap:
    """The same pixels in 8 bits, sRGB or grey."""
    if image.interpretation in _GREYS:
        image = _eight_bits(image, "b-w")
    elif not (_in_other_colours(image) and (converted := _by_profile(image))):
        image = _eight_bits(image, "srgb")
    else:
        image = converted
    return _opaque(image) if image.hasalpha() else image


def _eight_bits(image: Bitmap, space: str) -> Bitmap:
    """Integers of 16 bits by their meaning; wider and real ones, which have none, by the range they use."""
    if image.format in ("uchar", "ushort"):
        return image if image.format == "uchar" and image.interpretation == space else image.colourspace(space)
    return image.copy_memory().scaleimage().copy(interpretation=space)


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


def _opaque(image: Bitmap) -> Bitmap:
    """Without its alpha channel where that hides nothing."""
    image = image.copy_memory()
    alpha = image[image.bands - 1]
    return image if alpha.min() < 255 else image.extract_band(0, n=image.bands - 1)


def _by_pillow(data: bytes, picture: Picture, then: Callable[[Bitmap], Bitmap]) -> Bitmap | Refusal:
    from PIL import Image as Pillow

    if picture.mime == "image/x-icon":
        entry = icon(data)
        assert entry is not None, "the header has been read"
        data, inner = _only(data, entry.start, entry.length)
        if inner is not None:
            return _decoded(data, inner, then, None)
    with warnings.catch_warnings():
        # Pillow warns of large images and odd metadata; here the bounds are checked and metadata is dropped.
        warnings.simplefilter("ignore")
        try:
            opened = Pillow.open(io.BytesIO(data), formats=[_PILLOW[picture.mime]])
            return _oversized(Size(*opened.size)) or _bare(then(_from_pillow(opened)))
        except MemoryError:
            return _broken(picture, out_of_memory=True)
        except Exception:  # noqa: BLE001 - a decoder may raise anything over a hostile or broken file
            return _broken(picture, out_of_memory=False)


def _only(data: bytes, start: int, length: int) -> tuple[bytes, Picture | None]:
    """One picture of an icon file: the PNG that it is, or an icon file of its own."""
    body = data[start : start + length]
    found = probe(body, len(body)) if kind_of(body) is PNG else None
    if isinstance(found, Picture):
        return body, found
    at = next(at for at in range(6, len(data), 16) if struct.unpack_from("<II", data, at + 8) == (length, start))
    entry = data[at : at + 12] + struct.pack("<I", 22)
    return b"\0\0\1\0\1\0" + entry + body, None


def _from_pillow(opened: Pillowed) -> Bitmap:
    import pyvips

    mode = "RGBA" if opened.has_transparency_data else "L" if opened.mode in ("1", "L") else "RGB"
    pixels = opened.convert(mode)
    image = pyvips.Image.new_from_memory(pixels.tobytes(), *pixels.size, len(mode), "uchar")
    return _plain(image.copy(interpretation="b-w" if mode == "L" else "srgb"))
