"""PDFs in requests to models that take none: pages in their place, or the text layer for a text-only model.

The expanded body is read like any other: its pages are images, which are refitted, described or retired. A PDF of a
scan has no text, so that a text-only model gets descriptions of its pages. A model of which nothing is known gets its
PDFs unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sightline.engine.driver import Engine
from sightline.engine.requests import Reading
from sightline.model.base64_text import decode_base64
from sightline.model.fence import escape_for_brackets, neutralize
from sightline.model.ports import ImageStore
from sightline.model.profile import RequestOrigin
from sightline.model.refusal import Refusal
from sightline.model.scene import JsonPath
from sightline.pixels.workers import WorkerPool
from sightline.vision.concurrency import LruCache
from sightline.wire.documents import DocumentBlock, find_documents, replace_documents
from sightline.wire.json_document import JsonDocument

if TYPE_CHECKING:
    from sightline.pixels.renderers.render_file import PagePicture, RenderRequest

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
_TOO_LARGE = Refusal("too_large", "it is larger than 32 MiB", "send a smaller one")

NewKind = Literal["pages", "text", "a sentence"]


@dataclass(frozen=True, slots=True)
class NewBlocks:
    """What is put in the place of a PDF: texts, and images (each a media type and base64)."""

    kind: NewKind
    blocks: Sequence[str | tuple[str, str]]

    @property
    def page_count(self) -> int:
        return sum(not isinstance(block, str) for block in self.blocks)


_UNCHANGED = NewBlocks("a sentence", ())


@dataclass(frozen=True, slots=True)
class ExpandedBody:
    """The body of a request without its PDFs."""

    data: bytes = field(repr=False)
    note: str  # for the receipt: what was replaced by what


@dataclass(frozen=True, slots=True)
class DocumentExpander:
    """Replaces the PDFs of a request by what its model takes."""

    engine: Engine
    images: ImageStore  # caches pages
    renderers: WorkerPool
    takes_pdf: Callable[[RequestOrigin, str], bool]
    _texts: LruCache[str] = field(default_factory=lambda: LruCache(_TEXT_BYTES))  # by the key of the PDF
    _refusals: LruCache[Refusal] = field(default_factory=lambda: LruCache(_MAX_REFUSALS))  # by sha256 and page

    async def expand(self, reading: Reading, caller: RequestOrigin) -> ExpandedBody | None:
        """Return the body without PDFs, or None if it has none, or its model takes them."""
        if not isinstance(reading.texts, JsonDocument) or not may_have_pdf(reading):
            return None
        found = find_documents(caller.wire, reading.tree, reading.texts)
        if not found or self._takes_pdf(caller, reading.scene.model):
            return None
        try:
            sees = self.engine.can_see(caller, reading.scene.model)
            replaced, pages_left = dict[JsonPath, NewBlocks](), _MAX_PAGES
            for one in found:  # the oldest first, so that the pages of a conversation stay the same
                new = await asyncio.to_thread(self._build_blocks, one, caller, pages_left, sees=sees)
                pages_left -= new.page_count
                if new.blocks:
                    replaced[one.place] = new
            edits = replace_documents(caller.wire, reading.tree, {place: new.blocks for place, new in replaced.items()})
            if not edits:
                return None
            data = b"".join(await self.engine.offload(reading, reading.texts.splice, edits))
            return ExpandedBody(data, _describe([new.kind for new in replaced.values()]))
        except Exception:  # fail open
            log.exception("the PDFs of a request could not be expanded; it is forwarded with them")
            return None

    def _takes_pdf(self, caller: RequestOrigin, model: str) -> bool:
        return self.takes_pdf(caller, model) and self.engine.can_see(caller, model)

    def _build_blocks(self, document: DocumentBlock, caller: RequestOrigin, max_pages: int, *, sees: bool) -> NewBlocks:
        """Return what replaces a PDF; no blocks: it stays as it is."""
        name = escape_for_brackets(document.name) or "a PDF"
        data = decode_base64(document.source.text)
        if isinstance(data, Refusal) or not data.startswith(b"%PDF-"):
            return _UNCHANGED
        if len(data) > _MAX_FILE_BYTES:
            return _write_refusal(name, _TOO_LARGE)
        if not (sees and max_pages) and (text := self._read_text(document.source.key, data)):
            return NewBlocks("text", [_write_text(name, text)])
        if not max_pages:
            return _write_refusal(name, _TOO_MANY_PAGES)
        return self._build_pages(name, data, caller.scope, max_pages)

    def _read_text(self, key: str, data: bytes) -> str:
        """Return the text layer; empty: there is none."""
        known = self._texts.get(key)
        if known is None:
            reply = self.renderers.run_sync("text", data, {"renderer": "pdfium"})
            if isinstance(reply, Refusal) and reply.code == "unavailable":
                return ""
            known = "" if isinstance(reply, Refusal) else reply.data.decode("utf-8", "replace")[: _MAX_CHARACTERS + 1]
            self._texts.put(key, known, len(known) + 1)
        return known

    def _build_pages(self, name: str, data: bytes, scope: str, max_pages: int) -> NewBlocks:
        from sightline.pixels.renderers.render_file import RenderRequest, render_first_pages
        from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS

        request = RenderRequest(self.renderers, self.images, scope, data, "", DEFAULT_OPTIONS)
        pages = render_first_pages(request, max_pages, _MAX_PAGE_BYTES, self._render_page)
        if pages is None or (isinstance(pages, Refusal) and pages.code == "unavailable"):
            return _UNCHANGED
        if isinstance(pages, Refusal):
            return _write_refusal(name, pages)
        total = pages[0].origin.pages
        line = f"[{name}: pages 1 to {len(pages)} of {total}, as images]"
        return NewBlocks("pages", [line, *((each.image.mime, each.image.base64) for each in pages)])

    def _render_page(self, request: RenderRequest) -> tuple[PagePicture, ...] | Refusal | None:
        """Render a page, unless that was refused before: a page that crashes its renderer would do so on each turn."""
        from sightline.pixels.renderers.render_file import render_file

        key = request.sha256, request.options.page
        if (known := self._refusals.get(key)) is not None:
            return known
        drawn = render_file(request)
        if isinstance(drawn, Refusal) and drawn.code != "unavailable":
            self._refusals.put(key, drawn)
        return drawn


def may_have_pdf(reading: Reading) -> bool:
    """Return whether a body can contain a PDF: nearly none does, and searching its text is fast."""
    return isinstance(reading.texts, JsonDocument) and b"/pdf" in reading.texts.skeleton


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
