"""`read_file` and `edit_file`: lines of text files, and edits of files that have not changed since they were read.

The token of an edit is a keyed hash of the path and the bytes. It needs no storage, survives a restart, and cannot be
computed from the sha256 that a view of the same bytes gives away.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from pathlib import Path
from typing import TypeGuard

from sightline.api.failure import Failure
from sightline.api.session import ToolContext
from sightline.api.tool_results import FileEdit, FileText
from sightline.api.views import read_reference, write_path
from sightline.model.fence import dump_json_line
from sightline.model.image import MAX_FILE_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import SVG, identify_file
from sightline.runtime import get_shared_renderers
from sightline.sources import PathReference, files
from sightline.sources.files import STALE_FILE, SourceFile, write_back

MAX_TEXT_BYTES = 8 * 1024 * 1024  # bytes of a text that is read or edited
MAX_CHARACTERS = 24_000  # of the text in one result, so that all of it stays within maxResultChars
MAX_LINES = 2000
_OPENING = 4096
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def read_file(
    context: ToolContext, path: object, *, first: object = 1, lines: object = MAX_LINES, character: object = 1
) -> FileText | Failure:
    """Return lines of a text file, and the token for an edit of it."""
    if not (_is_count(first) and _is_count(lines) and _is_count(character)):
        return Failure(
            Refusal("invalid_input", "first, lines and character must be whole numbers from 1", "correct them")
        )
    found = _read_text(context, path, extract=True)
    if isinstance(found, Refusal):
        return Failure(found)
    file, text, is_extracted = found
    every = _LINES.findall(text)
    requested = every[first - 1 : first - 1 + min(lines, MAX_LINES)]
    if requested:
        requested[0] = requested[0][character - 1 :]
    shown = _clip_lines(requested)
    words, last = "".join(shown), first - 1 + len(shown)
    cut = shown[:1] != requested[:1]  # only the first line can be cut: the others are whole or absent
    token = "" if is_extracted else _make_token(context, file.path, file.data)
    more = character + len(words) if cut else None
    return FileText(write_path(path), words, first, last, len(every), len(file.data), token, more)


def _clip_lines(lines: list[str]) -> list[str]:
    """Return as many whole lines as a result has room for as JSON, or the beginning of a first line that is longer."""
    room, shown = MAX_CHARACTERS, list[str]()
    for line in lines:
        room -= _measure_json(line)
        if room < 0:
            break
        shown.append(line)
    return shown if shown or not lines else [_clip_line(lines[0])]


def _clip_line(line: str) -> str:
    piece = line[:MAX_CHARACTERS]
    while (size := _measure_json(piece)) > MAX_CHARACTERS:
        piece = piece[: len(piece) * MAX_CHARACTERS // size]
    return piece


def _measure_json(text: str) -> int:
    """Return how many characters a text takes as JSON."""
    return len(dump_json_line(text))


def edit_file(context: ToolContext, path: object, old: object, new: object, token: object) -> FileEdit | Failure:
    """Replace a text that occurs exactly once in a file that has not changed since `token` was given."""
    if not (isinstance(old, str) and isinstance(new, str) and isinstance(token, str)):
        return Failure(Refusal("invalid_input", "old, new and token must be strings", "give strings"))
    found = _read_text(context, path)
    if isinstance(found, Refusal):
        return Failure(found)
    file, text, _ = found
    if not hmac.compare_digest(token.encode("utf-8", "replace"), _make_token(context, file.path, file.data).encode()):
        return Failure(STALE_FILE)
    if wrong := _find_ambiguity(text, old, new):
        return Failure(
            Refusal("invalid_input", f"old {wrong}", "give a text that occurs exactly once, and another one as new")
        )
    try:
        data = text.replace(old, new, 1).encode()
    except UnicodeEncodeError:
        return Failure(Refusal("invalid_input", "new cannot be written as UTF-8", "leave out lone surrogates"))
    refusal = write_back(file, data, context.policy)
    return Failure(refusal) if refusal else FileEdit(write_path(path), len(data))


def _find_ambiguity(text: str, old: str, new: str) -> str:
    """Return why it is not clear which text to replace. Overlapping occurrences count, too."""
    if old == new:
        return "is the same as new"
    at = text.find(old)
    if at < 0:
        return "does not occur in the file"
    again = bool(text) if not old else text.find(old, at + 1) >= 0
    return "occurs more than once" if again else ""


def _read_text(context: ToolContext, path: object, *, extract: bool = False) -> tuple[SourceFile, str, bool] | Refusal:
    """Return a file, its text, and whether that was extracted from a document, which `extract` permits."""
    reference = read_reference(path)
    if isinstance(reference, Refusal):
        return reference
    if not isinstance(reference, PathReference):
        return Refusal("invalid_input", "only a file can be read as text", "call view_image to see an image")
    max_bytes = MAX_FILE_BYTES if extract else MAX_TEXT_BYTES
    file = files.read_permitted_file(reference.path, context.policy, max_bytes, min_bytes=0)
    if isinstance(file, Refusal):
        return file
    extracted = _extract_text(context, file) if extract else None
    text = _decode_text(file) if extracted is None else extracted
    return text if isinstance(text, Refusal) else (file, text, extracted is not None)


def _decode_text(file: SourceFile) -> str | Refusal:
    """Return the text of a file that is text itself."""
    if len(file.data) > MAX_TEXT_BYTES:
        return Refusal("too_large", f"the file is larger than {MAX_TEXT_BYTES >> 20} MiB", "give a smaller file")
    kind = identify_file(file.data[:_OPENING])
    if kind.family in ("bitmap", "document", "video"):
        remedy = "call view_image to see it" if kind.family == "bitmap" else "convert it to text or to an image"
        return Refusal("unsupported_type", f"this is {kind.name}, not text", remedy)
    try:
        text = file.data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return Refusal("unsupported_type", f"this is {kind.name}, not text in UTF-8", "convert it first")
    return text


def _extract_text(context: ToolContext, file: SourceFile) -> str | Refusal | None:
    """Return the text of a document such as a PDF; None: the file is text itself, or no document with text."""
    from sightline.pixels.renderers.choose_renderer import choose_renderer
    from sightline.pixels.renderers.renderer import Renderer

    kind = identify_file(file.data[:_OPENING])
    renderer = None if kind.family in ("bitmap", "text") or kind is SVG else choose_renderer(kind, file.data, file.name)
    if not isinstance(renderer, Renderer) or renderer.read_text is None:
        return None
    pool = context.renderers or get_shared_renderers()
    reply = pool.run_sync("text", file.data, {"renderer": renderer.name})
    return reply if isinstance(reply, Refusal) else reply.data.decode("utf-8", "replace")


def _make_token(context: ToolContext, path: Path, data: bytes) -> str:
    return context.record.compute_scope(
        f"read\0{context.scope}\0{os.fspath(path)!r}\0{hashlib.sha256(data).hexdigest()}"
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
