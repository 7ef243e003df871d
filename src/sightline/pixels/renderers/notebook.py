"""Draw notebooks: text, code and what it printed, with the pictures that it made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.document_layout import Block, lay_blocks
from sightline.pixels.renderers.embedded_picture import open_base64
from sightline.pixels.renderers.markdown import MARKDOWN_IT, make_code_lines, read_markdown
from sightline.pixels.renderers.page_layout import MUTED, CodeBlock, Paragraph, PictureBlock, Span, draw_document
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.source_code import TEXT_NEEDS, render_source
from sightline.pixels.renderers.text_fonts import FontLibrary, TextStyle
from sightline.pixels.text_decoding import decode_text

_MAX_CELLS, _MAX_CELL_CHARACTERS, _MAX_OUTPUT_CHARACTERS = 2000, 100_000, 20_000
_INDENT = 20
_ERROR_GROUND = "#fdecec"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_IN, _OUT = (TextStyle(14, mono=True, bold=True, colour=colour) for colour in ("#0b4fa8", "#a33a00"))


def render_notebook(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a notebook, or its source if it is not one."""
    notebook = None if options.lines is not None else _parse(decode_text(data)[0])
    if notebook is None:
        return render_source(data, options)
    fonts = FontLibrary()
    blocks = list(read_notebook(notebook)) or [Paragraph([Span("This notebook is empty.", TextStyle(colour=MUTED))])]
    cut = len(_list(notebook.get("cells"))) > _MAX_CELLS
    note = f"only the first {_MAX_CELLS:,} cells are shown" if cut else ""
    return draw_document(lay_blocks(blocks, fonts), options, fonts, note)


def _parse(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_notebook = isinstance(parsed, dict) and isinstance(parsed.get("cells"), list)
    return parsed if is_notebook else None


def read_notebook(notebook: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of all cells."""
    metadata = _dict(notebook.get("metadata"))
    language = str(_dict(metadata.get("language_info")).get("name") or "python")
    for cell in map(_dict, _list(notebook["cells"])[:_MAX_CELLS]):
        source = _join(cell.get("source"))[:_MAX_CELL_CHARACTERS]
        if cell.get("cell_type") == "markdown":
            yield from read_markdown(source)
        elif cell.get("cell_type") == "code":
            label = Span(f"In [{_get_count(cell)}]:", _IN)
            yield CodeBlock(make_code_lines(source, language), _INDENT, label=label)
            yield from chain.from_iterable(map(_read_output, map(_dict, _list(cell.get("outputs")))))
        elif source.strip():
            yield CodeBlock(make_code_lines(source, ""), _INDENT)


def _read_output(output: dict[str, Any]) -> Iterator[Block]:
    """Yield what a cell printed, returned, drew or raised."""
    match output.get("output_type"):
        case "stream":
            ground = _ERROR_GROUND if output.get("name") == "stderr" else ""
            yield _make_text(_join(output.get("text")), ground)
        case "error":
            lines = _join([f"{line}\n" for line in map(str, _list(output.get("traceback")))])
            yield _make_text(lines or f"{output.get('ename')}: {output.get('evalue')}", _ERROR_GROUND)
        case "execute_result" | "display_data":
            yield from _read_data(output)


def _read_data(output: dict[str, Any]) -> Iterator[Block]:
    data = _dict(output.get("data"))
    label = Span(f"Out[{_get_count(output)}]:", _OUT) if output.get("output_type") == "execute_result" else None
    encoded = next((_join(data[mime]) for mime in ("image/png", "image/jpeg", "image/gif") if mime in data), "")
    picture = open_base64(encoded) if encoded else None
    if picture is not None:
        if label:
            yield Paragraph([label], space=2, keeps_next=True)
        yield PictureBlock(picture, _INDENT)
    elif "text/markdown" in data:
        yield from read_markdown(_join(data["text/markdown"])[:_MAX_OUTPUT_CHARACTERS], _INDENT)
    elif "text/plain" in data or "text/html" in data:
        yield _make_text(_join(data.get("text/plain") or data.get("text/html")), "", label)
    elif encoded or data:
        kinds = ", ".join(sorted(map(str, data)))[:200]
        yield Paragraph([Span(f"[output that cannot be drawn: {kinds}]", TextStyle(14, colour=MUTED))], _INDENT)


def _make_text(text: str, ground: str, label: Span | None = None) -> CodeBlock:
    """Return printed text, without the codes that colour a terminal and without lines that were written over."""
    plain = _ANSI.sub("", text)[:_MAX_OUTPUT_CHARACTERS]
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in plain.rstrip("\n").split("\n")]
    if len(text) > _MAX_OUTPUT_CHARACTERS:
        lines.append(f"… ({len(text):,} characters in all)")
    return CodeBlock(make_code_lines("\n".join(lines), ""), _INDENT, ground, label)


def _get_count(values: dict[str, Any]) -> str:
    count = values.get("execution_count")
    return str(count) if isinstance(count, int) else " "


def _join(value: Any) -> str:
    """Return text that a notebook has as a string or as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def is_notebook(data: bytes, suffix: str) -> bool:
    """Return whether a text is a notebook, by its name, or by what it has if it has none."""
    return suffix == ".ipynb" or (suffix == "" and data.lstrip()[:1] == b"{" and b'"nbformat"' in data)


NOTEBOOK_RENDERER = Renderer(
    "notebook",
    revision=1,
    mimes=frozenset({"text/plain"}),
    render=render_notebook,
    recognize=is_notebook,
    options=frozenset({"page", "lines", "suffix"}),
    needs=(MARKDOWN_IT, *TEXT_NEEDS),
    max_bytes=32 * 1024 * 1024,
)
