"""PDFs in requests to models that take none: pages in their place, or the text layer for a text-only model.

The expanded body is read like any other: its pages are images, which are refitted, described or retired. A PDF of a
scan has no text, so that a text-only model gets descriptions of its pages. A model of which nothing is known gets its
PDFs unchanged. Addresses and ids of uploaded files are left alone: only the provider can read those.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar, cast

from sightline.engine.driver import Engine
from sightline.engine.requests import Reading
from sightline.model.fence import escape_for_brackets, neutralize
from sightline.model.image import decode_base64
from sightline.model.ports import ImageStore
from sightline.model.profile import RequestOrigin, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource, Json, JsonPath, Rebuild
from sightline.model.value import value_class
from sightline.pixels.workers import WorkerPool
from sightline.server.asgi import NO_MEMORY
from sightline.vision.concurrency import LruCache
from sightline.wire import anthropic, gemini, openai_chat, openai_responses
from sightline.wire.image_blocks import build_inline
from sightline.wire.json_document import JsonDocument
from sightline.wire.json_tree import Block, Buffer, Texts, enumerate_objects, get_at, get_text, get_value
from sightline.wire.lowering import BlockFormat

if TYPE_CHECKING:
    from sightline.pixels.renderers.render_file import PagePicture, RenderRequest

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

_MAX_PAGES = 20  # of all PDFs of a request; some providers take only smaller images if there are more
_MAX_PAGE_BYTES = 12 * 1024 * 1024  # of all pages of one PDF
_MAX_FILE_BYTES = 32 * 1024 * 1024
_MAX_CHARACTERS = 100_000  # of the text of one PDF
_TEXT_BYTES = 8 * 1024 * 1024  # of texts that are kept, because clients send the whole conversation again
_MAX_REFUSALS = 4096  # that are kept
_TOO_MANY_PAGES = Refusal(
    "too_large", f"this conversation already shows {_MAX_PAGES} pages of PDFs", "send it in a new conversation"
)
_DISCONNECTED = Refusal("unavailable", "the client has disconnected", "send the request again")
_TOO_LARGE = Refusal("too_large", "it is larger than 32 MiB", "send a smaller one")

NewKind = Literal["pages", "text", "a sentence"]
_PDF = "application/pdf"
_CONTENT_KEYS = ("content", "parts", "output")  # of a message: its blocks
_MAX_NAME = 100  # characters


@value_class
class NewBlocks:
    """What is put in the place of a PDF: texts, and images (each a media type and base64)."""

    kind: NewKind
    blocks: Sequence[str | tuple[str, str]]

    @property
    def page_count(self) -> int:
        return sum(not isinstance(block, str) for block in self.blocks)

    @property
    def size(self) -> int:
        """The bytes that the blocks take in a body, about."""
        return sum(len(block) if isinstance(block, str) else len(block[1]) for block in self.blocks)


_UNCHANGED = NewBlocks("a sentence", ())


@value_class
class ExpandedBody:
    """The body of a request without its PDFs."""

    data: bytes = field(repr=False)
    note: str  # for the receipt: what was replaced by what


@value_class
class _Job:
    """What a thread needs to know to replace one PDF."""

    renderers: WorkerPool
    scope: str
    max_pages: int
    sees: bool
    stop: Event  # set if the client disconnects


@value_class
class DocumentExpander:
    """Replaces the PDFs of a request by what its model takes."""

    engine: Engine
    images: ImageStore  # caches pages
    find_renderers: Callable[[], WorkerPool | None]  # None: rendering is off, and PDFs stay
    takes_pdf: Callable[[RequestOrigin, str], bool]
    _texts: LruCache[str] = field(default_factory=lambda: LruCache(_TEXT_BYTES))  # by the key of the PDF
    _refusals: LruCache[Refusal] = field(default_factory=lambda: LruCache(_MAX_REFUSALS))  # by sha256 and page

    async def expand(
        self, reading: Reading, caller: RequestOrigin, reserve: Callable[[int], bool]
    ) -> ExpandedBody | Refusal | None:
        """Return the body without PDFs, or None if it has none, or its model takes them.

        `reserve` returns whether there is memory for so many bytes more; a refusal says that there is none.
        """
        renderers = self.find_renderers()
        if renderers is None or not isinstance(reading.texts, JsonDocument) or not may_have_pdf(reading):
            return None
        if self._takes_pdf(caller, reading.scene.model):
            return None
        sees = self.engine.can_see(caller, reading.scene.model)
        job = _Job(renderers, caller.scope, _MAX_PAGES, sees, stop=Event())
        try:
            return await self._replace_all(reading, caller, job, reserve)
        except Exception:  # fail open
            log.exception("the PDFs of a request could not be expanded; it is forwarded with them")
            return None
        finally:
            job.stop.set()

    async def _replace_all(
        self, reading: Reading, caller: RequestOrigin, job: _Job, reserve: Callable[[int], bool]
    ) -> ExpandedBody | Refusal | None:
        replaced: dict[JsonPath, NewBlocks] = {}
        found = await self._compute(caller, find_documents, caller.wire, reading.tree, reading.texts)
        for one in found:  # the oldest first, so that the pages of a conversation stay the same
            new = await asyncio.to_thread(self._build_blocks, one, job)
            job = replace(job, max_pages=job.max_pages - new.page_count)
            if not reserve(new.size):
                return NO_MEMORY
            if new.blocks:
                replaced[one.place] = new
        if not replaced:
            return None
        parts = await self._compute(caller, _splice, caller.wire, reading, replaced)
        if not reserve(sum(map(len, parts)) - sum(new.size for new in replaced.values())):
            return NO_MEMORY
        data = await self._compute(caller, b"".join, parts)
        return ExpandedBody(data, _describe([new.kind for new in replaced.values()]))

    async def _compute(self, caller: RequestOrigin, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in the thread for long computations, since a body with PDFs is large."""
        return await self.engine.compute_thread.run(caller.scope, work, *args, **kwargs)

    def _takes_pdf(self, caller: RequestOrigin, model: str) -> bool:
        is_known = self.takes_pdf(caller, model) and self.engine.can_see(caller, model)
        return is_known or self.engine.get_model_profile(caller, model).takes_pdf

    def _build_blocks(self, document: DocumentBlock, job: _Job) -> NewBlocks:
        """Return what replaces a PDF; no blocks: it stays as it is."""
        name = escape_for_brackets(document.name) or "a PDF"
        data = decode_base64(document.source.text)
        if isinstance(data, Refusal) or not data.startswith(b"%PDF-"):
            return _UNCHANGED
        if len(data) > _MAX_FILE_BYTES:
            return _write_refusal(name, _TOO_LARGE)
        if not (job.sees and job.max_pages) and (text := self._read_text(job.renderers, document.source.key, data)):
            return NewBlocks("text", [_write_text(name, text)])
        if not job.max_pages:
            return _write_refusal(name, _TOO_MANY_PAGES)
        return self._build_pages(name, data, job)

    def _read_text(self, renderers: WorkerPool, key: str, data: bytes) -> str:
        """Return the text layer; empty: there is none."""
        known = self._texts.get(key)
        if known is None:
            reply = renderers.run_sync("text", data, {"renderer": "pdfium"})
            if isinstance(reply, Refusal) and reply.code == "unavailable":
                return ""
            known = "" if isinstance(reply, Refusal) else reply.data.decode("utf-8", "replace")[: _MAX_CHARACTERS + 1]
            self._texts.put(key, known, len(known) + 1)
        return known

    def _build_pages(self, name: str, data: bytes, job: _Job) -> NewBlocks:
        from sightline.pixels.renderers.render_file import RenderRequest, render_first_pages
        from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS

        request = RenderRequest(job.renderers, self.images, job.scope, data, "", DEFAULT_OPTIONS)
        pages = render_first_pages(request, job.max_pages, _MAX_PAGE_BYTES, partial(self._render_page, job.stop))
        if pages is None or (isinstance(pages, Refusal) and pages.code == "unavailable"):
            return _UNCHANGED
        if isinstance(pages, Refusal):
            return _write_refusal(name, pages)
        total = pages[0].origin.pages
        line = f"[{name}: pages 1 to {len(pages)} of {total}, as images]"
        return NewBlocks("pages", [line, *((each.image.mime, each.image.base64) for each in pages)])

    def _render_page(self, stop: Event, request: RenderRequest) -> tuple[PagePicture, ...] | Refusal | None:
        """Render a page, unless that was refused before: a page that crashes its renderer would do so on each turn."""
        from sightline.pixels.renderers.render_file import render_file

        if stop.is_set():
            return _DISCONNECTED
        key = request.sha256, request.options.page
        if (known := self._refusals.get(key)) is not None:
            return known
        drawn = render_file(request)
        if isinstance(drawn, Refusal) and drawn.code != "unavailable":
            self._refusals.put(key, drawn)
        return drawn


def _splice(wire: WireName, reading: Reading, replaced: Mapping[JsonPath, NewBlocks]) -> Sequence[Buffer]:
    """Return the parts of a body with other blocks in the place of PDFs."""
    assert isinstance(reading.texts, JsonDocument)
    edits = replace_documents(wire, reading.tree, {place: new.blocks for place, new in replaced.items()})
    return reading.texts.splice(edits)


def may_have_pdf(reading: Reading) -> bool:
    """Return whether a body can contain a PDF: nearly none does, and searching its text is fast."""
    return isinstance(reading.texts, JsonDocument) and reading.texts.skeleton.find(b"/pdf") >= 0


def _write_text(name: str, text: str) -> str:
    clipped = text[:_MAX_CHARACTERS]
    end = "" if clipped == text else f"\n[the rest of {name} is left out]"
    return f"[the text of {name}]\n{neutralize(clipped)}{end}"


def _write_refusal(name: str, refusal: Refusal) -> NewBlocks:
    return NewBlocks("a sentence", [f"[{name} is not shown: {escape_for_brackets(str(refusal))}]"])


def _describe(kinds: Sequence[NewKind]) -> str:
    """Return a note for the receipt."""
    subject = "a PDF was" if len(kinds) == 1 else f"{len(kinds)} PDFs were"
    return f"{subject} replaced by {' and '.join(dict.fromkeys(kinds))}"


@value_class
class DocumentBlock:
    """A PDF in a request."""

    place: JsonPath  # of its block
    source: InlineSource = field(repr=False)
    name: str  # of the file; empty: unknown


def find_documents(wire: WireName, tree: Json, texts: Texts) -> list[DocumentBlock]:
    """Return the PDFs in the messages of a request, also in tool results."""
    find = _FINDERS[wire][0]
    return [
        DocumentBlock((*place, index), build_inline(_PDF, found[0], texts), " ".join(found[1].split())[:_MAX_NAME])
        for place in _list_contents(_FINDERS[wire][1], tree)
        for index, block in enumerate_objects(get_at(tree, *place))
        if (found := find(block)) is not None
    ]


def replace_documents(
    wire: WireName, tree: Json, blocks: Mapping[JsonPath, Sequence[str | tuple[str, str]]]
) -> list[Rebuild]:
    """Return the edits that replace blocks, by their places, by texts and images (each a media type and base64)."""
    write = _FINDERS[wire][2]
    edits = []
    for place in dict.fromkeys(each[:-1] for each in blocks):
        elements: list[int | Block] = []
        for index, block in enumerate(cast("list[Json]", get_at(tree, *place))):
            new = [
                write.build_text(part) if isinstance(part, str) else write.build_image(*part)
                for part in blocks.get((*place, index), ())
            ]
            if new and isinstance(mark := get_value(block, "cache_control"), dict):
                new[-1] = {**new[-1], "cache_control": mark}
            elements += new or [index]
        edits.append(Rebuild(place, tuple(elements)))
    return edits


def _list_contents(messages_key: str, tree: Json) -> Iterator[JsonPath]:
    """Yield the places of all lists of blocks: of each message, and of each tool result in one."""
    for i, message in enumerate_objects(get_at(tree, messages_key)):
        for key in _CONTENT_KEYS:
            if not isinstance(message.get(key), list):
                continue
            yield (messages_key, i, key)
            for j, block in enumerate_objects(message[key]):
                if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                    yield (messages_key, i, key, j, "content")


def _find_in_messages(block: Block) -> tuple[str, str] | None:
    source = block.get("source")
    if block.get("type") != "document" or get_value(source, "type") != "base64":
        return None
    return (get_text(source, "data"), get_text(block, "title")) if get_text(source, "media_type") == _PDF else None


def _find_in_chat(block: Block) -> tuple[str, str] | None:
    return _read_file(block.get("file")) if block.get("type") == "file" else None


def _find_in_responses(block: Block) -> tuple[str, str] | None:
    return _read_file(block) if block.get("type") == "input_file" else None


def _read_file(file: Json) -> tuple[str, str] | None:
    """Return the base64 and the name of a file that is given as a data URL."""
    head, comma, data = get_text(file, "file_data").partition(",")
    is_pdf = head.lower().startswith(f"data:{_PDF}") and head.lower().endswith(";base64")
    return (data, get_text(file, "filename")) if comma and is_pdf else None


def _find_in_gemini(part: Block) -> tuple[str, str] | None:
    blob = part.get("inlineData") or part.get("inline_data")
    mime = get_text(blob, "mimeType") or get_text(blob, "mime_type")
    return (get_text(blob, "data"), get_text(blob, "displayName")) if mime == _PDF else None


_FINDERS: Mapping[WireName, tuple[Callable[[Block], tuple[str, str] | None], str, BlockFormat]] = {
    "anthropic": (_find_in_messages, anthropic.MESSAGES_KEY, anthropic.BLOCKS),
    "openai_chat": (_find_in_chat, openai_chat.MESSAGES_KEY, openai_chat.BLOCKS),
    "openai_responses": (_find_in_responses, openai_responses.MESSAGES_KEY, openai_responses.BLOCKS),
    "gemini": (_find_in_gemini, gemini.MESSAGES_KEY, gemini.BLOCKS),
}
