"""Decoding and refitting of images. Plain functions that any thread may call; Pillow loads with the first."""

from __future__ import annotations

import hashlib
import io
import math
import warnings
from typing import TYPE_CHECKING, Literal, cast

from sightline.model.geometry import Size
from sightline.model.image import Image, Picture, Target
from sightline.model.refusal import Refusal
from sightline.pixels.probe import orientation, probe

if TYPE_CHECKING:
    from PIL.Image import Image as Bitmap

MAX_BYTES = 64 * 1024 * 1024
MAX_EDGE = 16_384
MAX_PIXELS = 120_000_000

Format = Literal["image/png", "image/jpeg", "image/webp"]
"""What an image may be refitted to."""

_DECODERS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/avif": "AVIF",
}
_SAMPLE = 128  # pixels on each side of the grid on which colours are counted
_FEW_COLOURS = 1024  # or a quarter of the grid: a photo has more, a screenshot, a chart or a page fewer
_FEW_GREYS = 64
_STEP = 0.9  # from one scale to the next smaller one, at most
_WEBP_EDGE = 16_383


def check(data: bytes) -> Picture | Refusal:
    """What the image is, when every pixel of it can be decoded."""
    picture = _within_bounds(data)
    if isinstance(picture, Refusal):
        return picture
    bitmap = _decoded(data, picture)
    return bitmap if isinstance(bitmap, Refusal) else picture


def fit(data: bytes, target: Target) -> Image | Refusal:
    """The image decoded and encoded anew as `target` admits it; the same for the same bytes and target."""
    picture = _within_bounds(data)
    if isinstance(picture, Refusal):
        return picture
    bitmap = _decoded(data, picture)
    if isinstance(bitmap, Refusal):
        return bitmap
    formats = _formats(bitmap, target)
    if not formats:
        return Refusal("unsupported_type", f"an image cannot be made one of {', '.join(target.formats)}")
    return _fitted(bitmap, formats, target)


def _fitted(bitmap: Bitmap, formats: tuple[Format, ...], target: Target) -> Image | Refusal:
    """The largest of ever smaller versions, each made from the whole image, that is light enough."""
    limit = math.inf if target.encoded_bytes is None else max(0, target.encoded_bytes)
    whole = Size(*bitmap.size)
    edge = min(whole.edge, target.edge or MAX_EDGE, _WEBP_EDGE if "image/webp" in formats else MAX_EDGE)
    while True:
        size = whole.within(edge)
        scaled = _scaled(bitmap, size)
        for mime in formats:
            encoded = _encoded(scaled, mime)
            weight = base64_length(len(encoded))
            if weight <= limit:
                return _image(encoded, mime, size)
        if size == Size(1, 1):
            return Refusal("too_large", f"no image is as small as {limit:,} bytes")
        formats = formats[-1:]  # resampled pixels are more like a photo's, and a second try costs seconds
        edge = max(1, int(edge * min(_STEP, math.sqrt(limit / weight))))


def base64_length(size: int) -> int:
    return 4 * -(-size // 3)


def _within_bounds(data: bytes) -> Picture | Refusal:
    """What the header says, when it promises no more than may be decoded."""
    if len(data) > MAX_BYTES:
        return Refusal("too_large", f"the image has {len(data):,} bytes", f"send at most {MAX_BYTES:,}")
    picture = probe(data, len(data))
    assert picture is not None, "a whole file always has an answer"
    if isinstance(picture, Refusal):
        return picture
    if picture.size.edge > MAX_EDGE or picture.size.pixels > MAX_PIXELS:
        return Refusal(
            "too_large",
            f"the image is {picture.size} pixels",
            f"send at most {MAX_EDGE:,} on each side and {MAX_PIXELS:,} in all",
        )
    return picture


def _decoded(data: bytes, picture: Picture) -> Bitmap | Refusal:
    """Every pixel of the first frame, upright, in one of the modes L, RGB and RGBA."""
    from PIL import Image as Pillow

    # Pillow warns of large images and odd metadata; here the bounds are checked and metadata is dropped.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    decoder = _DECODERS.get(picture.mime)
    if decoder is None:
        return Refusal("unsupported_type", f"there is no decoder for {picture.mime}", "send a PNG or a JPEG")
    try:
        bitmap: Bitmap = Pillow.open(io.BytesIO(data), formats=[decoder])
        bitmap.load()
        return _plain(_upright(bitmap, data, picture))
    except Pillow.DecompressionBombError:
        return Refusal("too_large", "the image holds more pixels than its header says", "ask for the image again")
    except Exception:  # noqa: BLE001 - a decoder may raise anything over a hostile or broken file
        return Refusal("corrupt", f"the {picture.mime} image cannot be decoded", "ask for the image again")


def _upright(bitmap: Bitmap, data: bytes, picture: Picture) -> Bitmap:
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    if not picture.turned or picture.mime == "image/tiff":  # Pillow has turned a TIFF already
        return bitmap
    return bitmap.transpose(turns[orientation(data)])


def _plain(bitmap: Bitmap) -> Bitmap:
    """The same pixels in 8 bits: RGBA where something is really transparent, L where all is grey."""
    if bitmap.has_transparency_data:
        clear = bitmap.convert("RGBA")
        lowest, _ = clear.getchannel("A").getextrema()
        plain = clear.convert("RGB") if lowest == 255 else clear
    elif bitmap.mode in ("I;16", "I;16B", "I;16L", "I;16N", "I", "F"):
        plain = _eight_bits(bitmap)
    else:
        plain = bitmap.convert("L" if bitmap.mode in ("1", "L") else "RGB")
    plain.info = {}  # Pillow would write comments and profiles of the source again
    return plain


def _eight_bits(bitmap: Bitmap) -> Bitmap:
    """Deep greys: 16 bits by their meaning, wider ones, which have none, by the range they use."""
    deep = bitmap.convert("F")
    low, high = 0.0, 65535.0
    if not bitmap.mode.startswith("I;16"):
        low, high = cast("tuple[float, float]", deep.getextrema())
    scale = 255.0 / ((high - low) or 1.0)
    offset = -low * scale
    return deep.point(lambda value: value * scale + offset).convert("L")


def _formats(bitmap: Bitmap, target: Target) -> tuple[Format, ...]:
    """The formats to try, best first: what is drawn or written stays sharp, a photo becomes a JPEG.

    A drawing that is too heavy as PNG is tried as JPEG before it is made smaller: at this quality that costs
    text less than lost pixels do. What is transparent stays so where it can: on white, white words are gone.
    """
    if bitmap.mode == "RGBA":
        return _taken(target, "image/png", "image/webp") or _taken(target, "image/jpeg")
    if _drawn(bitmap):
        return _taken(target, "image/png", "image/jpeg", "image/webp")[:2]
    return _taken(target, "image/jpeg", "image/webp", "image/png")[:1]


def _taken(target: Target, *order: Format) -> tuple[Format, ...]:
    return tuple(mime for mime in order if mime in target.formats)


def _drawn(bitmap: Bitmap) -> bool:
    """Few colours, counted on a grid of untouched pixels: a screenshot, a chart, a page; not a photo."""
    from PIL.Image import Resampling

    width, height = min(bitmap.width, _SAMPLE), min(bitmap.height, _SAMPLE)
    few = _FEW_GREYS if bitmap.mode == "L" else max(_FEW_COLOURS, width * height // 4)
    return bitmap.resize((width, height), Resampling.NEAREST).getcolors(few) is not None


def _scaled(bitmap: Bitmap, size: Size) -> Bitmap:
    from PIL.Image import Resampling

    wanted = (size.width, size.height)
    return bitmap if wanted == bitmap.size else bitmap.resize(wanted, Resampling.LANCZOS)


def _encoded(bitmap: Bitmap, mime: Format) -> bytes:
    file = io.BytesIO()
    match mime:
        case "image/png":
            bitmap.save(file, "PNG", compress_level=3)  # 6 is seldom lighter on a page, and slower
        case "image/jpeg":
            _on_white(bitmap).save(file, "JPEG", quality=90, subsampling="4:4:4")
        case "image/webp":
            bitmap.save(file, "WEBP", quality=90)
    return file.getvalue()


def _on_white(bitmap: Bitmap) -> Bitmap:
    from PIL import Image as Pillow

    if bitmap.mode != "RGBA":
        return bitmap
    page = Pillow.new("RGBA", bitmap.size, "white")
    return Pillow.alpha_composite(page, bitmap).convert("RGB")


def _image(data: bytes, mime: str, size: Size) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), mime, size, data)
