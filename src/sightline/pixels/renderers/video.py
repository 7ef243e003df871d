"""Show a video as stills: the one at a time, or several that show its scenes. With PyAV, which is FFmpeg.

A video can only be decoded from a key frame on, and few of its frames are key frames. So several stills are chosen
like this: some of the key frames are compared with each other, and where two differ much, the frames between them are
searched for the cut. If these are too few scenes, the longest gaps are filled. How many frames are decoded is limited
by a count, not by a clock, so that the same video always gives the same stills.

Times are in seconds from the first frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from math import floor, inf
from statistics import median
from typing import IO, TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.renderer import (
    PythonPackage,
    RenderedDocument,
    RenderedPage,
    Renderer,
    RenderOptions,
)

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

_INSTALL = "pip install 'sightline[video]'"
# By the beginning of a MIME type: the name of the only parser that FFmpeg may use. Others open further files.
_FORMATS = {
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/x-matroska": "matroska",
    "video/webm": "matroska",
    "video/x-msvideo": "avi",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
}
_MAX_PIXELS = 8192 * 4352  # of a frame: 8K
_STILL_EDGE, _SHEET_EDGE = 1280, 640  # pixels of the longer side, if there are several
_QUALITY = 92  # of JPEG
_MAX_KEY_FRAMES = 96  # that are compared
_MAX_DECODED = 1000 * 1920 * 1080  # pixels of frames that are decoded to search for cuts and to fill gaps
_THUMBNAIL = (64, 36)
_CUT = 0.15  # by how much two frames differ at a cut at least, and how much more than others do
_CUT_RATIO = 2.0
_MIN_LIGHT = 4.0  # of 255: darker frames count as this light, or noise in them would be a cut
_FLAT = 4  # of 255: a frame whose levels differ less than this is of one colour
_NEAR = 1.0  # seconds before a time from which all frames are decoded
_EPSILON = 1e-4  # seconds, or ticks: two times that differ less are the same
_END = 1.0  # seconds by which a time may be beyond the end

_DAMAGED = Refusal("corrupt", "the video is damaged or truncated", "give an undamaged copy")
_NO_PICTURES = Refusal("unsupported_type", "no pictures were found in it", "give an undamaged video with pictures")
_TOO_LARGE = Refusal("too_large", "its frames are larger than 8K", "give a smaller video")


def render_video(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Return the still at a time, or several stills, each with its time as the label."""
    return render_video_file(BytesIO(data), options)


def render_video_file(file: IO[bytes], options: RenderOptions) -> RenderedDocument | Refusal:
    """Return the same of an open file, of which only parts are read."""
    import av

    try:
        film = _open_film(file)
        if isinstance(film, Refusal):
            return film
        with film.container:
            return _draw_stills(film, options)
    except av.DecoderNotFoundError:
        return Refusal("unsupported_type", "FFmpeg has no decoder for this video", "convert it to H.264 or VP9")
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        return _DAMAGED


VIDEO_RENDERER = Renderer(
    "ffmpeg",
    revision=1,
    mimes=frozenset(_FORMATS),
    render=render_video,
    render_large=render_video_file,
    options=frozenset({"at"}),
    needs=(PythonPackage("av", "av", _INSTALL),),
)


@dataclass(slots=True)
class _Moment:
    """A frame, and when it is shown."""

    time: float
    frame: Any


@dataclass(slots=True)
class _Film:
    """An open video. It counts what it decodes."""

    container: Any
    stream: Any
    start: float  # of the first frame, on the clock of the file
    length: float | None  # seconds, as the file says
    decoded: int = field(default=0)  # pixels of frames

    @property
    def may_decode(self) -> bool:
        return self.decoded < _MAX_DECODED

    def _seek(self, time: float) -> None:
        ticks = float((time + self.start) / self.stream.time_base)
        self.container.seek(floor(ticks + _EPSILON), stream=self.stream)

    def decode_from(self, time: float, *, until: float = -inf) -> Iterator[_Moment]:
        """Yield frames from the last key frame at or before a time on; before `until`, some may be left out."""
        self._seek(time)
        context = self.stream.codec_context
        for packet in self.container.demux(self.stream):
            shown = None if packet.pts is None else float(packet.pts * self.stream.time_base) - self.start
            context.skip_frame = "NONREF" if shown is not None and shown < until - _NEAR else "DEFAULT"
            for frame in packet.decode():
                self.decoded += frame.width * frame.height
                if frame.pts is not None:
                    yield _Moment(max(0.0, frame.time - self.start), frame)

    def find_key_frame(self, time: float) -> _Moment | None:
        """Return the first frame from a time on, which is decoded without others if it is a key frame."""
        return next((moment for moment in self.decode_from(time) if moment.time > time - _EPSILON), None)

    def find_moment(self, time: float) -> _Moment | None:
        """Return the frame that is shown at a time, or the last one before it."""
        found = None
        for moment in self.decode_from(time, until=time):
            if found is not None and moment.time > time + _EPSILON:
                break
            found = moment
        return found

    def list_key_times(self) -> list[float]:
        """Return the times of all key frames that the file holds, and correct its length."""
        import av

        keys, last = [], 0.0
        try:
            self._seek(0.0)
            for packet in self.container.demux(self.stream):
                if packet.pts is None:
                    continue
                time = float(packet.pts * self.stream.time_base) - self.start
                last = max(last, time + float((packet.duration or 0) * self.stream.time_base))
                if packet.is_keyframe and time >= 0:
                    keys.append(time)
        except av.FFmpegError:  # it is truncated: what was found so far can be shown
            pass
        self.length = last
        return sorted(keys)


def _open_film(file: IO[bytes]) -> _Film | Refusal:
    import av

    from sightline.pixels.file_types import identify_file

    parser = _FORMATS[identify_file(file.read(4096)).mime]
    file.seek(0)
    # Its types don't say that a file that is read has a length, and that a stream has a clock.
    container: Any = av.open(file, format=parser)
    if not container.streams.video:
        container.close()
        return _NO_PICTURES
    stream = container.streams.video[0]
    context = stream.codec_context
    context.thread_count = 1
    if context.width * context.height > _MAX_PIXELS:
        container.close()
        return _TOO_LARGE
    length = float(stream.duration * stream.time_base) if stream.duration else None
    if length is None and container.duration:
        length = container.duration / av.time_base
    return _Film(container, stream, float((stream.start_time or 0) * stream.time_base), length)


def _draw_stills(film: _Film, options: RenderOptions) -> RenderedDocument | Refusal:
    if options.at is not None and film.length is not None and options.at > film.length + _END:
        return refuse_time(options.at, film.length)
    if options.count > 1:
        edge = _SHEET_EDGE if options.sheet else _STILL_EDGE
        moments = _choose_moments(film, options.count, options.at or 0.0)
    else:
        edge = None
        moment = _choose_moment(film) if options.at is None else film.find_moment(options.at)
        moments = [] if moment is None else [moment]
    if not moments:
        return _DAMAGED
    pages = [
        RenderedPage(encode_still(_draw(film, moment.frame, edge)), number, format_time(moment.time))
        for number, moment in enumerate(moments, 1)
    ]
    return RenderedDocument(tuple(pages), note=describe_stills([moment.time for moment in moments], film.length))


def refuse_time(time: float, length: float | None) -> Refusal:
    """Return the refusal of a time beyond the end."""
    end = length or 0.0
    what = f"there is nothing at {format_time(time)}: it is {format_time(end)} long"
    return Refusal("invalid_input", what, f"give a time from 0 to {int(end * 10) / 10}")


def describe_stills(times: list[float], length: float | None, kind: str = "video") -> str:
    """Return a note that says at which times the stills are."""
    what = "the still" if len(times) == 1 else f"{len(times)} stills"
    whole = "" if length is None else f" of {format_time(length)}"
    return f"{what} at {', '.join(map(format_time, times))}{whole} of the {kind}"


def encode_still(picture: Pillow) -> bytes:
    """Return a still as JPEG. It has been compressed with losses before, so that PNG would only be larger."""
    file = BytesIO()
    picture.convert("RGB").save(file, "JPEG", quality=_QUALITY, subsampling=0)
    return file.getvalue()


def format_time(seconds: float) -> str:
    """Return a time like 1:02:03.5, without hours if there are none."""
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}" if hours else f"{minutes}"
    return f"{clock}:{rest // 10:02}.{rest % 10}"


def _draw(film: _Film, frame: Any, edge: int | None) -> Pillow:
    """Return a frame as a picture: upright, with square pixels, and no side longer than `edge`."""
    aspect = film.stream.sample_aspect_ratio or 1
    width, height = max(1, round(frame.width * aspect)), frame.height
    scale = min(1.0, edge / max(width, height)) if edge else 1.0
    width, height = max(1, round(width * scale)), max(1, round(height * scale))
    is_unknown = frame.colorspace == 2  # then players go by the size
    colours = {"src_colorspace": "ITU709" if frame.height >= 720 else "ITU601"} if is_unknown else {}
    picture: Pillow = frame.to_image(width=width, height=height, **colours)
    return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture


def _choose_moment(film: _Film) -> _Moment | None:
    """Return the first key frame that is not of one colour, or else the first frame."""
    first = film.find_key_frame(0.0)
    for key in film.list_key_times()[:_MAX_KEY_FRAMES]:
        moment = film.find_key_frame(key)
        if moment is not None and not _is_flat(moment):
            return moment
        if not film.may_decode:
            break
    return first


def _is_flat(moment: _Moment) -> bool:
    levels = [level for level, count in enumerate(_shrink(moment).histogram()) if count]
    return levels[-1] - levels[0] < _FLAT


def _shrink(moment: _Moment) -> Pillow:
    width, height = _THUMBNAIL
    picture: Pillow = moment.frame.to_image(width=width, height=height)
    return picture.convert("L")


@dataclass(slots=True)
class _KeyFrame:
    """A key frame, small."""

    time: float
    thumbnail: Pillow
    change: float = 0.0  # by how much it differs from the one before


def _choose_moments(film: _Film, count: int, begin: float) -> list[_Moment]:
    """Return the beginnings of scenes, and frames from the longest gaps if there are fewer than `count` scenes."""
    keys = _read_key_frames(film, begin)
    end = film.length or begin
    moments: dict[float, _Moment] = {}
    times = sorted(key.time for key in keys)

    def add(moment: _Moment | None) -> bool:
        is_new = moment is not None and moment.time not in moments
        if moment is not None:
            moments.setdefault(moment.time, moment)
        return is_new

    add(film.find_moment(begin) or film.find_key_frame(begin))
    for before, after in _find_cuts(keys)[: count - 1]:
        add(_find_cut(film, before, after) or film.find_key_frame(after.time))
    while moments and len(moments) < count and film.may_decode:
        edges = [*sorted(moments), end]
        left, right = max(pairwise(edges), key=lambda gap: gap[1] - gap[0])
        middle = (left + right) / 2
        near = [time for time in times if abs(time - middle) < (right - left) / 4]
        key = min(near, key=lambda time: abs(time - middle), default=None)
        if not add(film.find_moment(middle) if key is None else film.find_key_frame(key)):
            break  # no frame is left in the longest gap
    return [moments[time] for time in sorted(moments)]


def _read_key_frames(film: _Film, begin: float) -> list[_KeyFrame]:
    """Return key frames from a time on, at most `_MAX_KEY_FRAMES`, evenly spread."""
    times = [time for time in film.list_key_times() if time >= begin]
    step = max(1.0, len(times) / _MAX_KEY_FRAMES)
    chosen = [times[int(index * step)] for index in range(min(len(times), _MAX_KEY_FRAMES))]
    keys: list[_KeyFrame] = []
    for time in chosen:
        moment = film.find_key_frame(time) if film.may_decode else None
        if moment is None:
            continue
        key = _KeyFrame(moment.time, _shrink(moment))
        key.change = _compare(keys[-1].thumbnail, key.thumbnail) if keys else 0.0
        keys.append(key)
    return keys


def _find_cuts(keys: list[_KeyFrame]) -> list[tuple[_KeyFrame, _KeyFrame]]:
    """Return the pairs of neighbours that differ much more than usual, most different first."""
    usual = median([key.change for key in keys[1:]] or [0.0])
    pairs = pairwise(keys)
    cuts = [(before, after) for before, after in pairs if after.change > max(_CUT, min(usual * _CUT_RATIO, 2 * _CUT))]
    return sorted(cuts, key=lambda pair: -pair[1].change)


def _find_cut(film: _Film, before: _KeyFrame, after: _KeyFrame) -> _Moment | None:
    """Return the first frame between two that is more like the second; None: there is no such frame."""
    if not film.may_decode:
        return None
    for moment in film.decode_from(before.time, until=after.time):
        if moment.time >= after.time - _EPSILON or not film.may_decode:
            return None
        small = _shrink(moment)
        if _compare(small, after.thumbnail) < _compare(before.thumbnail, small):
            return moment
    return None


def _compare(first: Pillow, second: Pillow) -> float:
    """Return by how much two small pictures differ, in proportion to how light they are."""
    from PIL import ImageChops, ImageStat

    (difference,) = ImageStat.Stat(ImageChops.difference(first, second)).mean
    light = (ImageStat.Stat(first).mean[0] + ImageStat.Stat(second).mean[0]) / 2
    return float(difference / max(light, _MIN_LIGHT))
