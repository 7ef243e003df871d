"""Draw diffs: added lines on green, removed ones on red, and a bar for each file."""

from __future__ import annotations

import re

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.code_listing import CodeListing, LineTint, render_listing, split_lines
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.source_code import MAX_TEXT_BYTES, TEXT_NEEDS
from sightline.pixels.text_decoding import decode_text, describe_encoding

_SUFFIXES = frozenset({".diff", ".patch", ".rej"})
_START = re.compile(rb"(?:diff --git |diff -\S+ |Index: |--- \S.*\n\+\+\+ \S|\*\*\* \S.*\n--- \S|From [0-9a-f]{40} )")
_FILE = LineTint("#d0d7e2", bold=True)
_TINTS = (
    (("diff ", "Index: "), _FILE),
    (("+++ ", "--- ", "*** "), LineTint("#e8ecf2", bold=True)),
    (("index ", "new file", "deleted file", "similarity ", "rename ", "old mode", "new mode"), LineTint("#e8ecf2")),
    (("@@",), LineTint("#ddeeff", "#0b4fa8")),
    (("+", ">"), LineTint("#d9f5de", "#0d4f1c", has_sign=True)),
    (("-", "<"), LineTint("#fde0e0", "#8a1414", has_sign=True)),
    (("!",), LineTint("#fff3cd", "#6b4e00", has_sign=True)),
)


def render_diff(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a diff or a patch."""
    text, encoding = decode_text(data)
    listing = CodeListing(split_lines(text), gap=1, tint=choose_tint, note=describe_encoding(encoding))
    return render_listing(listing, options)


def choose_tint(line: str) -> LineTint | None:
    """Return the look of a line by how it begins; None: it is context or a message."""
    return next((tint for starts, tint in _TINTS if line.startswith(starts)), None)


def is_diff(data: bytes, suffix: str) -> bool:
    """Return whether a text is a diff, by its name, or by how it begins if it has none."""
    return suffix in _SUFFIXES or (suffix in ("", ".txt") and _START.match(data) is not None)


DIFF_RENDERER = Renderer(
    "diff",
    revision=2,
    mimes=frozenset({"text/plain"}),
    render=render_diff,
    recognize=is_diff,
    options=frozenset({"page", "lines"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)
