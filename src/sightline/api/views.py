"""`view`, `recall` and `list_images`: the pixels of a file, of an image of the record, or of a web address."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import cast

from sightline.api.failure import Failure
from sightline.api.input_file import GivenImage, is_video
from sightline.api.session import ANY_PROVIDER, SAFE_EDGE, ToolContext
from sightline.api.tool_results import ImageList, ListedImage, View, write_result
from sightline.disk import LargeFile
from sightline.model.fence import dump_json_line, replace_surrogates
from sightline.model.geometry import Box, Crop, PixelCrop, Size, format_crop, parse_crop, resolve_crop
from sightline.model.image import Image, ImageInfo, ImageSummary, ImageTarget, PageOrigin, compute_base64_length
from sightline.model.records import StoredView, compute_view_id
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.file_types import FileType, identify_file
from sightline.pixels.image_headers import is_animated
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS, RenderOptions, get_suffix
from sightline.sources import (
    PathReference,
    RecordReference,
    Reference,
    UrlReference,
    choose_image,
    files,
    parse_reference,
)
from sightline.vision.background_loop import run_blocking

_OPENING = 4096  # bytes that tell the kind of a file
_BITMAP_NAMES = frozenset(
    ".png .apng .jpg .jpeg .jpe .jfif .webp .gif .avif .heic .heif .tif .tiff .bmp .dib .ico .psd .jxl .jp2".split()
)
_RENDERED = frozenset({"vector", "document", "text", "video"})
_FIRST_FRAME = "the first frame of an animation"
_NOT_KEPT = "not kept: the record cannot be written, and this sha256 will not be found there"
_NOT_A_DOCUMENT = Refusal(
    "invalid_input", "an image has no pages, times or lines", "leave out page, at, lines and sheet"
)


@dataclass(frozen=True, slots=True)
class SourcePage:
    """The file that a page was rendered from."""

    data: bytes  # of a large file, only the beginning
    size: int  # bytes of the whole file
    mime: str
    origin: PageOrigin
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceImage:
    """The bytes of an image, and the part of it that was asked for."""

    data: bytes
    source: str  # as the caller named it
    name: str = ""  # of the file
    crop: Crop | None = None
    path: str = ""  # of the file, with links resolved
    page: SourcePage | None = None  # of the file that `data` was rendered from
    large: LargeFile | None = None  # the file, if it is too large for memory; `data` is its beginning then


def view(
    context: ToolContext,
    path: object,
    *,
    crop: object = None,
    page: object = None,
    at: object = None,
    lines: object = None,
    sheet: bool = False,
) -> View | Failure:
    """See an image or a page, decoded, cropped and made to fit, and keep it in the record."""
    options = read_options(page, at, lines, sheet=sheet)
    found = options if isinstance(options, Refusal) else find_image(context, path, crop, options)
    seen = found if isinstance(found, Refusal) else _build_view(context, found)
    return Failure(seen) if isinstance(seen, Refusal) else seen


def recall(context: ToolContext, result: dict[str, Json]) -> View | Failure:
    """Return an earlier view by its result alone: the same pixels, even if the source has changed since."""
    try:
        kept = context.record.images.read_view(context.scope, compute_view_id(write_result(_strip_extras(result))))
    except (AttributeError, TypeError, ValueError, RecursionError):
        return Failure(
            Refusal("invalid_input", "this is not the result of a view", "give what as_dict() of a view returned")
        )
    if kept is None:
        return Failure(Refusal("not_found", "the record holds no such view", "call view_image again"))
    return _restore_view(kept)


def _strip_extras(result: Mapping[str, Json]) -> dict[str, Json]:
    """Return the result as a model read it, without what `as_dict` adds."""
    found = {name: value for name, value in result.items() if name != "words"}
    if isinstance(shown := found.get("shown"), dict):
        found["shown"] = {name: value for name, value in shown.items() if name != "mime"}
    return found


def read_options(page: object, at: object, lines: object, *, sheet: bool = False) -> RenderOptions | Refusal:
    """Return which part of a document was asked for."""
    if page is not None and not (_is_number_from(1, page) and page == int(cast("float", page))):
        return Refusal("invalid_input", f"there is no page {page!r:.30}", "give a whole number from 1")
    if not _is_number_from(0, at):
        return Refusal("invalid_input", f"at cannot be {at!r:.30}", "give seconds from the beginning, from 0")
    which = _read_lines(lines)
    if isinstance(which, Refusal):
        return which
    second = None if at is None else float(cast("float", at))
    return RenderOptions(page=int(cast("float", page or 1)), at=second, lines=which, sheet=sheet)


def _read_lines(lines: object) -> tuple[int, int] | Refusal | None:
    match [*lines.split("-")] if isinstance(lines, str) else lines:
        case None:
            return None
        case [int() | str() as first, int() | str() as last] if f"{first}{last}".isdecimal():
            if 1 <= int(first) <= int(last):
                return int(first), int(last)
    return Refusal("invalid_input", f"these are not lines: {lines!r:.60}", "give the first and the last, like 10-40")


def find_image(
    context: ToolContext, path: object, crop: object, options: RenderOptions = DEFAULT_OPTIONS
) -> SourceImage | Refusal:
    """Return the image that a reference names, or a page of the document, with the part that was asked for."""
    wanted = parse_crop(crop)
    if isinstance(wanted, Refusal):
        return wanted
    found = find_source(context, path, open_videos=context.renderers is not None)
    if isinstance(found, Refusal):
        return found
    is_bitmap = identify_file(found.data[:_OPENING]).family == "bitmap"
    if not is_bitmap or options != DEFAULT_OPTIONS:
        found = render_page(context, found, options)
    return found if isinstance(found, Refusal) else _merge_crop(found, wanted)


def render_page(
    context: ToolContext, found: SourceImage, options: RenderOptions = DEFAULT_OPTIONS
) -> SourceImage | Refusal:
    """Return a page of a document as an image. A file with the name of a bitmap is never rendered."""
    from sightline.pixels.renderers.render_file import RenderRequest, render_file

    kind = identify_file(found.data[:_OPENING])
    if kind.family != "bitmap" and PurePath(found.name).suffix.lower() in _BITMAP_NAMES:
        return Refusal("unsupported_type", f"the file is named like an image, but it is {kind.name}", "give an image")
    if context.renderers is None or kind.family not in (*_RENDERED, "bitmap"):
        return _refuse_kind(kind, found)
    options = replace(options, suffix=get_suffix(found.name))
    images, data = context.record.images, found.data
    request = RenderRequest(
        context.renderers, images, context.scope, data, found.name, options, large=found.large, report=context.report
    )
    pages = render_file(request)
    if pages is None or isinstance(pages, Refusal):
        return pages or _refuse_kind(kind, found)
    (drawn, *_) = pages
    size = found.large.size if found.large else len(data)
    return replace(found, data=drawn.image.data, page=SourcePage(data, size, kind.mime, drawn.origin, drawn.note))


def _is_number_from(low: int, value: object) -> bool:
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (numeric and low <= cast("float", value) < math.inf)


def _merge_crop(found: SourceImage, wanted: Crop | None) -> SourceImage | Refusal:
    if found.crop and wanted:
        return Refusal("invalid_input", "the reference has a crop, and the call has another one", "give one of the two")
    return replace(found, crop=found.crop or wanted)


def find_source(context: ToolContext, path: object, *, open_videos: bool = False) -> SourceImage | Refusal:
    """Return the bytes that a reference names, or that a program gave; they may be of any kind.

    open_videos: a video that is too large for memory is returned open; otherwise it is refused.
    """
    if isinstance(path, Refusal):
        return path
    if isinstance(path, GivenImage):
        return SourceImage(path.data, f"sha256:{hashlib.sha256(path.data).hexdigest()}", replace_surrogates(path.name))
    reference = read_reference(path)
    match reference:
        case RecordReference():
            return _read_record_image(context, reference, write_path(path))
        case PathReference(path=name):
            file = files.read_permitted_file(name, context.policy, may_stay_open=is_video if open_videos else None)
            return file if isinstance(file, Refusal) else _build_source(file, write_path(path))
        case UrlReference(url=url):
            return _fetch(context, url)
        case Refusal():
            return reference


def _build_source(file: files.SourceFile, source: str) -> SourceImage:
    name, path = replace_surrogates(file.name), write_path(file.path)
    return SourceImage(file.data, source, name, path=path, large=file.large)


def _fetch(context: ToolContext, url: str) -> SourceImage | Refusal:
    """Fetch an image from the web, where that is permitted. A server that doesn't answer counts as `not_found`."""
    from sightline.net import fetch_web_file

    page = run_blocking(fetch_web_file(url, context.network))
    if isinstance(page, Refusal):
        return replace(page, code="not_found") if page.code == "unavailable" else page
    return SourceImage(page.data, write_path(url), replace_surrogates(page.name))


def _read_record_image(context: ToolContext, asked: RecordReference, source: str) -> SourceImage | Refusal:
    sha256 = choose_image(asked, context.record.images.find_by_prefix(context.visible_scope, asked.sha256))
    if isinstance(sha256, Refusal):
        return context.record.find_trouble() or sha256  # an unreadable record is the better reason
    kept = context.record.images.read(context.visible_scope, sha256)
    if kept is None:
        return Refusal("not_found", "the record has lost the bytes of this image", "view its source again")
    box = asked.crop
    crop = PixelCrop(box.x, box.y, box.width, box.height) if box else None
    return SourceImage(kept.data, source, crop=crop)


def _refuse_kind(kind: FileType, found: SourceImage) -> Refusal:
    """Return why a file is not rendered: there is no renderer for it, or none is granted."""
    from sightline.pixels.renderers.choose_renderer import choose_renderer

    if kind.family == "bitmap":
        return _NOT_A_DOCUMENT
    if kind.family in _RENDERED:
        remedy = "call read_file" if kind.family in ("vector", "text") else "convert it to an image"
        if choose_renderer(kind, found.data, found.name) is None:
            return Refusal("render_unavailable", f"this is {kind.name}, which Sightline cannot render", remedy)
        return Refusal(
            "render_unavailable", f"this is {kind.name}, and rendering is off here", f"{remedy}, or set render to on"
        )
    return Refusal("unsupported_type", f"this is {kind.name}, not an image", "give an image")


def _build_view(context: ToolContext, found: SourceImage) -> View | Refusal:
    """Return the image decoded, cropped and made to fit. It is kept first, so that the result can be relied on."""
    picture = probe_within_limits(found.data)
    if isinstance(picture, Refusal):
        return picture
    shown = fit_source(context, found, picture)
    if isinstance(shown, Refusal):
        return shown
    sha256, page = hashlib.sha256(found.data).hexdigest(), found.page
    pixels = shown.image or Image(sha256, picture.mime, shown.whole, found.data)
    seen = View(
        page.mime if page else picture.mime,
        shown.whole,
        page.size if page else picture.bytes,
        f"sha256:{sha256}",
        found.source,
        pixels,
        shown.box,
        _join(page.note if page else "", shown.words),
        page.origin if page else None,
    )
    source = Image(sha256, picture.mime, shown.whole, found.data, picture.is_rotated)
    view = StoredView(write_result(seen.as_result()), sha256, pixels, seen.note)
    kept = keep_image(context, source, found.path) and _keep_document(context, found, shown.whole)
    kept = kept and context.record.images.keep_view(context.scope, view)
    return seen if kept else replace(seen, note=_join(seen.note, _NOT_KEPT))


def _keep_document(context: ToolContext, found: SourceImage, size: Size) -> bool:
    """Keep a rendered document that has no path, so that its other pages can be seen by its sha256."""
    page = found.page
    if page is None or found.path:
        return True
    sha256 = hashlib.sha256(page.data).hexdigest()
    return context.record.images.keep(context.scope, Image(sha256, page.mime, size, page.data))


def keep_image(context: ToolContext, image: Image, path: str) -> bool:
    """Keep an image, and note where it was found: `list_images` shows it to those who work there."""
    kept = context.record.images.keep(context.scope, image)
    if kept and path:
        context.record.images.note_place(context.scope, image.sha256, path)
    return kept


@dataclass(frozen=True, slots=True)
class ShownPixels:
    """The pixels that are shown of an image."""

    whole: Size
    image: Image | None = None  # None: the bytes of the source, unchanged
    box: Box | None = None
    words: str = ""


def fit_source(context: ToolContext, found: SourceImage, picture: ImageInfo) -> ShownPixels | Refusal:
    """Return the source's own bytes where the target takes them, otherwise the most legible version that it takes."""
    moving = is_animated(found.data)
    light = picture.bytes <= context.untouched_bytes and not picture.is_rotated and not moving
    untouched = light and context.target.accepts(picture, compute_base64_length(picture.bytes))
    if found.crop is None and untouched:
        answer = context.workers.run_sync("check", found.data)
        return (
            answer if isinstance(answer, Refusal) else ShownPixels(Size(answer.facts["width"], answer.facts["height"]))
        )
    goal = pack_target(replace(_choose_target(context.target, found.crop, picture.size), images=1))
    if found.crop is None:
        answer = context.workers.run_sync("fit", found.data, goal)
    else:
        answer = context.workers.run_sync("part", found.data, {**goal, "crop": format_crop(found.crop)})
    if isinstance(answer, Refusal):
        return answer
    (part,) = unpack_fit_result(answer.facts, answer.data).parts
    words = _join(_FIRST_FRAME if moving else "", part.note)
    if found.crop is None:
        return ShownPixels(part.map.source, part.image, words=words)
    return ShownPixels(Size(*answer.facts["whole"]), part.image, Box(*answer.facts["box"]), words)


def _choose_target(target: ImageTarget, crop: Crop | None, whole: Size) -> ImageTarget:
    """Return the target. Without a known one, an image that some providers refuse is made to fit all of them."""
    part = resolve_crop(crop, whole) if crop else whole
    size = part.size if isinstance(part, Box) else part
    if target != ANY_PROVIDER or isinstance(size, Refusal) or target.accepts_size(size):
        return target
    return replace(target, edge=SAFE_EDGE)


def _join(*words: str) -> str:
    return ", ".join(filter(None, words))


def _restore_view(kept: StoredView) -> View:
    result = json.loads(kept.result)
    box = Box(*result["crop"]) if "crop" in result else None
    size = Size(result["width"], result["height"])
    rendered = PageOrigin(**result["rendered"]) if "rendered" in result else None
    named = (result["mime"], size, result["bytes"], result["image"], result["source"])
    return View(*named, kept.pixels, box, kept.text, rendered)


_MAX_REFERENCE = 4000  # characters of JSON: a result repeats the reference, and has to have room for it


def read_reference(path: object) -> Reference | Refusal:
    if not isinstance(path, str):
        return Refusal("invalid_input", "the path must be a string", "give the path of a file")
    if len(path) > _MAX_REFERENCE or len(dump_json_line(write_path(path))) > _MAX_REFERENCE:
        return Refusal("invalid_input", "the path is too long", "give a shorter one, relative to the working folder")
    return parse_reference(path)


def write_path(path: object) -> str:
    """Return a path as JSON can hold it: bytes that are not text are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()


_MAX_LISTED = 50
_LIST_CHARACTERS = 7_800  # of the JSON of all entries, which leaves room for the text around them


def list_images(context: ToolContext) -> ImageList:
    """List the images that may be listed, newest first, as many as one result may hold."""
    found = find_images(context, _MAX_LISTED + 1)
    entries = [ListedImage(f"sha256:{each.sha256}", each.mime, each.size, each.bytes, each.path) for each in found]
    fitting = _limit_list(entries[:_MAX_LISTED])
    return ImageList(tuple(fitting), more=len(fitting) < len(found))


def find_images(context: ToolContext, limit: int) -> list[ImageSummary]:
    """Return the newest images of the listed folders, or of the whole scope if there are none."""
    folders = None if context.listed_folders is None else [os.path.realpath(each) for each in context.listed_folders]
    newest = context.record.images.list_newest(context.visible_scope, folders, limit)
    return [_hide_path(context, each) for each in newest]


def _hide_path(context: ToolContext, kept: ImageSummary) -> ImageSummary:
    """Remove a path that the caller may not read."""
    return kept if kept.path and context.policy.allows(Path(kept.path)) else replace(kept, path="")


def _limit_list(found: list[ListedImage]) -> list[ListedImage]:
    left = _LIST_CHARACTERS
    for index, each in enumerate(found):
        left -= len(dump_json_line(each.as_dict())) + 2
        if left < 0:
            return found[:index]
    return found
