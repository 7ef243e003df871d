"""The tasks of the workers that render. `start_renderers` of this package starts these workers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.choose_renderer import find_renderer
from sightline.pixels.renderers.contact_sheet import SHEET_PAGES, build_contact_sheet
from sightline.pixels.renderers.renderer import RenderedDocument, RenderedPage, Renderer, RenderOptions

T = TypeVar("T")

_STACK_BYTES = 256 * 1024 * 1024  # for libraries that call themselves for every level of a document
_MAX_TEXT_BYTES = 32 * 1024 * 1024


def render_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Render a file in a worker."""
    renderer = find_renderer(arguments["renderer"])
    options = RenderOptions.unpack(arguments["options"])
    asked = replace(options, count=SHEET_PAGES) if options.sheet else options
    drawn = run_on_deep_stack(lambda: _draw(renderer, data, arguments.get("descriptor"), asked))
    if isinstance(drawn, Refusal):
        return drawn
    if options.sheet:
        drawn = _join_pages(drawn)
    pages = [[len(page.data), page.number, page.label, page.has_text] for page in drawn.pages]
    facts = {"pages": pages, "total": drawn.total, "note": drawn.note}
    return facts, b"".join(page.data for page in drawn.pages)


def _draw(
    renderer: Renderer, data: bytes, descriptor: int | None, options: RenderOptions
) -> RenderedDocument | Refusal:
    """Draw a file, of which a large one comes as a descriptor."""
    if descriptor is None:
        assert renderer.render is not None, "the parent starts programs itself"
        return renderer.render(data, options)
    assert renderer.render_large is not None, "the parent has checked that"
    with open(descriptor, "rb") as file:  # noqa: PTH123, it has no path here
        file.seek(0)
        return renderer.render_large(file, options)


def text_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Return the text of a document, in a worker."""
    read = find_renderer(arguments["renderer"]).read_text
    assert read is not None, "the parent has checked that"
    text = run_on_deep_stack(lambda: read(data))
    if isinstance(text, Refusal):
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > _MAX_TEXT_BYTES:
        return Refusal("too_large", "it has more than 32 MiB of text", "give a smaller one")
    return {}, encoded


def check_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Return why a program must not get a file, in a worker."""
    check = find_renderer(arguments["renderer"]).check
    assert check is not None, "the parent has checked that"
    return check(data) or ({}, b"")


def _join_pages(drawn: RenderedDocument) -> RenderedDocument:
    """Return one contact sheet instead of the pages."""
    first, last = drawn.pages[0].number, drawn.pages[-1].number
    texts = {page.has_text for page in drawn.pages}
    has_text = None if texts == {None} else True in texts
    sheet = RenderedPage(build_contact_sheet(drawn.pages), first, has_text=has_text)
    which = f"pages {first} to {last} of {drawn.total}" if drawn.total > 1 else ""
    return RenderedDocument((sheet,), drawn.total, ", ".join(filter(None, (which, drawn.note))))


def run_on_deep_stack(work: Callable[[], T]) -> T:
    """Run a function in a thread with a large stack, and return or raise what it does."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001, it is raised again below
            errors.append(error)

    previous = threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(previous)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
