"""Show frames of an animated GIF, WebP or PNG: the one at a time, or several of them. With Pillow.

Each frame depends on those before it, so they are decoded in order, once. Without a time, an animation is an image like
others, of which the first frame is shown, and this renderer isn't asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal
from sightline.pixels.image_headers import is_animated
from sightline.pixels.renderers.renderer import (
    RenderedDocument,
    RenderedPage,
    Renderer,
    RenderOptions,
    encode_page,
)
from sightline.pixels.renderers.video import describe_stills, format_time, refuse_time

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

_MAX_PIXELS = 50_000_000  # of a frame
_STILL_EDGE = 1280  # pixels of the longer side, if there are several
_DEFAULT_SECONDS = 0.1  # of a frame that says 0: browsers show it that long
_MIN_SECONDS = 0.011
_DAMAGED = Refusal("corrupt", "the animation is damaged or truncated", "give an undamaged copy")
_TOO_LARGE = Refusal("too_large", f"its frames have more than {_MAX_PIXELS:,} pixels", "give a smaller one")


@dataclass(frozen=True, slots=True)
class _Frame:
    picture: Pillow
    time: float
    end: float


def render_animation(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Return the frame at a time, or several frames, each with its time as the label."""
    from PIL import Image

    try:
        with Image.open(BytesIO(data)) as animation:
            if animation.width * animation.height > _MAX_PIXELS:
                return _TOO_LARGE
            frames, length = _choose_frames(animation, options)
    except Image.DecompressionBombError:
        return _TOO_LARGE
    except (OSError, ValueError, SyntaxError, EOFError):
        return _DAMAGED
    if not frames:
        return refuse_time(options.at or 0.0, length)
    pages = [
        RenderedPage(encode_page(frame.picture), number, format_time(frame.time))
        for number, frame in enumerate(frames, 1)
    ]
    return RenderedDocument(tuple(pages), note=describe_stills([frame.time for frame in frames], length, "animation"))


ANIMATION_RENDERER = Renderer(
    "pillow",
    revision=1,
    mimes=frozenset({"image/gif", "image/webp", "image/png"}),
    render=render_animation,
    recognize=lambda data, suffix: is_animated(data),
    options=frozenset({"at"}),
)


def _choose_frames(animation: Pillow, options: RenderOptions) -> tuple[list[_Frame], float | None]:
    """Return the frames to show, and the length of the animation if all of it was decoded; none: it is too short."""
    at, end = options.at or 0.0, 0.0
    if options.count == 1:
        for frame in _decode(animation):
            end = frame.end
            if at < frame.end:
                return [_flatten(frame, None)], None
        return [], end
    kept, step = [], 1
    for index, frame in enumerate(_decode(animation)):
        end = frame.end
        if frame.end > at and index % step == 0:
            kept.append(_flatten(frame, _STILL_EDGE))
        if len(kept) > 2 * options.count:  # twice as many as are needed: every second one is enough from here on
            kept, step = kept[::2], step * 2
    spacing = max(1.0, len(kept) / options.count)
    return [kept[int(index * spacing)] for index in range(min(len(kept), options.count))], end


def _decode(animation: Pillow) -> Iterator[_Frame]:
    from PIL import ImageSequence

    time = 0.0
    for picture in ImageSequence.Iterator(animation):
        picture.load()
        seconds = float(picture.info.get("duration", 0)) / 1000
        end = time + (seconds if seconds >= _MIN_SECONDS else _DEFAULT_SECONDS)
        yield _Frame(picture, time, end)
        time = end


def _flatten(frame: _Frame, edge: int | None) -> _Frame:
    """Return a frame on white, with no side longer than `edge`."""
    from PIL import Image

    picture = frame.picture.convert("RGBA")
    ground = Image.new("RGBA", picture.size, "#ffffff")
    ground.alpha_composite(picture)
    if edge is not None:
        ground.thumbnail((edge, edge), Image.Resampling.LANCZOS)
    return _Frame(ground.convert("RGB"), frame.time, frame.end)
