"""Render a file, or read it from the cache in the record.

The cache key is the sha256 of the file, the renderer with its version, and the options, so that the same call gives
the same bytes for as long as the record keeps them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sightline.disk import LargeFile
from sightline.model.geometry import Size
from sightline.model.image import MAX_FILE_BYTES, Image, PageOrigin
from sightline.model.ports import ImageStore, ReportProgress, ignore_progress
from sightline.model.records import StoredView, compute_view_id
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import FileType, identify_file
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.renderers.choose_renderer import choose_renderer
from sightline.pixels.renderers.renderer import ConvertedFile, RenderedPage, Renderer, RenderOptions
from sightline.pixels.workers import WorkerPool, WorkerReply

_HEAD_BYTES = 4096  # that tell the kind of a file
_TOO_LARGE = Refusal("too_large", f"the file is larger than {MAX_FILE_BYTES >> 20} MiB", "give a smaller one")
_CHANGED = Refusal("corrupt", "the file changed while it was read", "try again when it is complete")
_NO_SIZE = Size(1, 1)  # of a converted file that has pages
_FAILURE_SECONDS = 3600  # how long, at most, a program doesn't get a file again that it could not convert


@dataclass(frozen=True, slots=True)
class PagePicture:
    """One page of a file as an image."""

    image: Image
    origin: PageOrigin
    note: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """A file to render: the workers and the cache to use, its bytes and name, and the options."""

    pool: WorkerPool = field(repr=False)
    images: ImageStore = field(repr=False)
    scope: str
    data: bytes = field(repr=False)  # of a large file, only the beginning
    name: str  # of the file; empty: unknown
    options: RenderOptions
    sha256: str = ""  # of the bytes; computed if it is left out
    large: LargeFile | None = None  # the file, if it is too large for memory
    report: ReportProgress = field(default=ignore_progress, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.sha256:
            found = self.large.compute_sha256() if self.large else hashlib.sha256(self.data).hexdigest()
            object.__setattr__(self, "sha256", found)

    @property
    def kind(self) -> FileType:
        return identify_file(self.data[:_HEAD_BYTES])


RenderFile = Callable[[RenderRequest], tuple[PagePicture, ...] | Refusal | None]


def render_file(request: RenderRequest) -> tuple[PagePicture, ...] | Refusal | None:
    """Return the pages that were asked for; None: there is no renderer for this kind of file."""
    renderer = choose_renderer(request.kind, request.data, request.name, request.options)
    if not isinstance(renderer, Renderer):
        return renderer
    options = renderer.select_options(request.options)
    if isinstance(options, Refusal):
        return options
    cache = _PageCache(request.images, request.scope, request.sha256, renderer, options)
    if cached := cache.read():
        return cached
    pages = _render(request, renderer, options)
    if not isinstance(pages, Refusal) and pages[0].origin.by == renderer.name:
        cache.keep(pages)
    return pages


def render_first_pages(
    request: RenderRequest, count: int, max_bytes: int, render: RenderFile = render_file
) -> tuple[PagePicture, ...] | Refusal | None:
    """Return the first pages of a document, up to one that cannot be drawn; None: there is no renderer for it.

    Each is rendered by itself, so that a heavy page has time of its own, and later calls find it in the cache.
    """
    pages, size = list[PagePicture](), 0
    while not pages or (len(pages) < min(count, pages[0].origin.pages) and size < max_bytes):
        drawn = render(replace(request, options=replace(request.options, page=len(pages) + 1)))
        if drawn is None or isinstance(drawn, Refusal):
            return tuple(pages) or drawn
        pages.append(drawn[0])
        size += len(drawn[0].image.data)
        request.report("drawing pages", len(pages), min(count, drawn[0].origin.pages))
    return tuple(pages)


def _render(request: RenderRequest, renderer: Renderer, options: RenderOptions) -> tuple[PagePicture, ...] | Refusal:
    if renderer.convert is not None:
        return _render_conversion(request, renderer, options)
    arguments = {"renderer": renderer.name, "options": options.pack()}
    if request.large is None:
        reply = request.pool.run_sync("render", request.data, arguments)
    elif renderer.render_large is None:
        return _TOO_LARGE
    else:
        reply = request.pool.run_sync("render", b"", arguments, file=request.large.descriptor)
        reply = _CHANGED if request.large.has_changed else reply
    return reply if isinstance(reply, Refusal) else _read_pages(reply, renderer)


def _render_conversion(
    request: RenderRequest, renderer: Renderer, options: RenderOptions
) -> tuple[PagePicture, ...] | Refusal:
    """Convert a file by a program, and return the bitmap, or the pages of the converted file."""
    made = _convert(request, renderer, options)
    if isinstance(made, Refusal):
        return _render_without_program(request, made)
    converted = made.data
    kind = identify_file(converted[:_HEAD_BYTES])
    if kind.family == "bitmap":
        return _check_pages([RenderedPage(converted)], 1, _join(made.note, renderer.note), renderer.name)
    inner = choose_renderer(kind, converted, "")
    if not isinstance(inner, Renderer) or inner.render is None:
        refusal = Refusal(
            "render_unavailable",
            f"{renderer.name} made {kind.name}, which cannot be rendered",
            "convert the file to PDF or PNG",
        )
        return inner if isinstance(inner, Refusal) else refusal
    asked = inner.select_options(options)
    if isinstance(asked, Refusal):
        return asked
    reply = request.pool.run_sync("render", converted, {"renderer": inner.name, "options": asked.pack()})
    return reply if isinstance(reply, Refusal) else _read_pages(reply, renderer, made.note)


def _render_without_program(request: RenderRequest, failure: Refusal) -> tuple[PagePicture, ...] | Refusal:
    """Draw a file that its program could not convert by the next renderer that needs none; the note says why."""
    renderer = choose_renderer(request.kind, request.data, request.name, request.options, programs=False)
    if not isinstance(renderer, Renderer):
        return failure
    options = renderer.select_options(request.options)
    pages = options if isinstance(options, Refusal) else _render(request, replace(renderer, note=""), options)
    if isinstance(pages, Refusal):
        return pages
    note = f"{failure.what}: drawn without it, so the layout is approximate"
    return tuple(replace(each, note=_join(note, each.note)) for each in pages)


def _convert(request: RenderRequest, renderer: Renderer, options: RenderOptions) -> ConvertedFile | Refusal:
    """Return the converted file. It is cached, too, because another page of it may be next; so is a failure."""
    assert renderer.convert is not None
    key = json.dumps(["convert", request.sha256, renderer.name, renderer.version])
    failure_key = json.dumps([key, time.time() // _FAILURE_SECONDS])
    known = request.images.read_view(request.scope, compute_view_id(key))
    if known is not None:
        return ConvertedFile(known.pixels.data, known.text)
    failed = request.images.read_view(request.scope, compute_view_id(failure_key))
    if failed is not None:
        code, what, remedy = json.loads(failed.pixels.data)
        return Refusal(code, what, remedy)
    if renderer.check is not None:
        checked = request.pool.run_sync("check", request.data, {"renderer": renderer.name})
        if isinstance(checked, Refusal):
            return checked
    made = renderer.convert(request.data, options)
    if "page" not in renderer.options:
        return made
    if not isinstance(made, Refusal):
        _keep_conversion(request, key, made)
    elif made.code != "render_unavailable":  # the program may be installed at any time
        _keep_conversion(request, failure_key, ConvertedFile(json.dumps([made.code, made.what, made.remedy]).encode()))
    return made


def _keep_conversion(request: RenderRequest, key: str, made: ConvertedFile) -> None:
    kind = identify_file(made.data[:_HEAD_BYTES])
    image = Image(hashlib.sha256(made.data).hexdigest(), kind.mime, _NO_SIZE, made.data)
    request.images.keep_view(request.scope, StoredView(key, request.sha256, image, made.note))


def _join(*notes: str) -> str:
    return ", ".join(filter(None, notes))


def _read_pages(reply: WorkerReply, renderer: Renderer, note: str = "") -> tuple[PagePicture, ...] | Refusal:
    pages, at = [], 0
    for length, *facts in reply.facts["pages"]:
        pages.append(RenderedPage(reply.data[at : at + length], *facts))
        at += length
    notes = _join(note, reply.facts["note"], renderer.note)
    return _check_pages(pages, reply.facts["total"], notes, renderer.name)


def _check_pages(pages: list[RenderedPage], total: int, note: str, by: str) -> tuple[PagePicture, ...] | Refusal:
    """Return what a renderer drew as images. It is not trusted to have drawn any."""
    found = []
    for page in pages:
        info = probe_within_limits(page.data)
        if isinstance(info, Refusal):
            return info
        image = Image(hashlib.sha256(page.data).hexdigest(), info.mime, info.size, page.data)
        found.append(PagePicture(image, PageOrigin(by, page.number, total, page.has_text), note, page.label))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _PageCache:
    """The pages of one call in the record. Each is stored like a view of the file, under a key instead of a result."""

    images: ImageStore
    scope: str
    source: str  # sha256 of the file
    renderer: Renderer
    options: RenderOptions

    def read(self) -> tuple[PagePicture, ...]:
        """Return all pages, or none."""
        found: list[PagePicture] = []
        count = 1
        while len(found) < count:
            stored = self.images.read_view(self.scope, compute_view_id(self._make_key(len(found))))
            if stored is None:
                return ()
            page, total, has_text, note, label, count = json.loads(stored.text)
            origin = PageOrigin(self.renderer.name, page, total, has_text)
            found.append(PagePicture(stored.pixels, origin, note, label))
        return tuple(found)

    def keep(self, pages: tuple[PagePicture, ...]) -> None:
        for index, page in enumerate(pages):
            origin = page.origin
            facts = json.dumps([origin.page, origin.pages, origin.has_text, page.note, page.label, len(pages)])
            self.images.keep_view(self.scope, StoredView(self._make_key(index), self.source, page.image, facts))

    def _make_key(self, index: int) -> str:
        """Return the key of one page. It is a list, so that no result of a view is equal to it."""
        key = ["render", self.source, self.renderer.name, self.renderer.version, self.options.pack(), index]
        return json.dumps(key, sort_keys=True)
