"""Small videos and animations for tests: each scene is of one colour, with a mark in the corner."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from io import BytesIO

import av
from PIL import Image as Pillow
from PIL import ImageDraw

COLOURS = ("#c00000", "#00a000", "#0000c0", "#c0c000")


def draw_scene(colour: str, size: tuple[int, int] = (160, 90)) -> Pillow.Image:
    picture = Pillow.new("RGB", size, colour)
    ImageDraw.Draw(picture).rectangle((0, 0, 20, 20), fill="#ffffff")
    return picture


def film(
    colours: Sequence[str] = COLOURS,
    *,
    seconds: float = 2.0,
    form: str = "mp4",
    codec: str = "libx264",
    key_every: int = 250,
    cut_keys: bool = True,
    options: dict[str, str] | None = None,
) -> bytes:
    """Return a video of 10 frames a second with one scene for each colour; `cut_keys`: cuts are at key frames."""
    file = BytesIO()
    with av.open(file, "w", format=form, options=options or {}) as container:
        stream = container.add_stream(codec, rate=10)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        stream.codec_context.gop_size = key_every
        stream.codec_context.time_base = Fraction(1, 10)
        if codec == "libx264":
            stream.options = {"preset": "ultrafast", "sc_threshold": "40" if cut_keys else "0", "crf": "10"}
        for colour in colours:
            for _ in range(int(seconds * 10)):
                frame = av.VideoFrame.from_image(draw_scene(colour))  # type: ignore[no-untyped-call]
                container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def sound() -> bytes:
    """Return an MP4 file without pictures."""
    file = BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=44100)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate = 44100
        frame.planes[0].update(bytes(frame.planes[0].buffer_size))
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def turn(data: bytes) -> bytes:
    """Return an MP4 file whose header asks players to turn it by 90 degrees clockwise, like a telephone's."""
    at = data.index(b"tkhd") + 4 + 40
    matrix = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)
    return data[:at] + matrix + data[at + 36 :]


def animate(form: str, colours: Sequence[str] = COLOURS, milliseconds: int = 500) -> bytes:
    file = BytesIO()
    first, *others = [draw_scene(colour) for colour in colours]
    lossless = {"lossless": True} if form == "WEBP" else {}
    first.save(file, form, save_all=True, append_images=others, duration=milliseconds, loop=0, **lossless)
    return file.getvalue()
