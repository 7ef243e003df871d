"""Draw text and programs in any language and encoding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.code_listing import CodeListing, render_listing, split_lines
from sightline.pixels.renderers.renderer import PythonPackage, RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.text_fonts import SystemFonts
from sightline.pixels.text_decoding import decode_text, describe_encoding

if TYPE_CHECKING:
    from pygments.lexer import Lexer

PYGMENTS = PythonPackage("pygments", "pygments", "pip install pygments")
TEXT_NEEDS = (PYGMENTS, SystemFonts())
MAX_TEXT_BYTES = 32 * 1024 * 1024
TEXT_MIMES = frozenset({"text/plain", "application/xml", "text/html"})
_LEXERS_BY_NAME = {"dockerfile": "docker", "makefile": "make", "jenkinsfile": "groovy", "gemfile": "ruby"}
_SHEBANG = re.compile(r"#!.*?\b(python|bash|sh|zsh|node|perl|ruby|php|lua|awk|fish|tcl|Rscript)[\d.]*\b")
_LEXERS_BY_PROGRAM = {"sh": "bash", "node": "javascript", "Rscript": "r"}


def render_code(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a text or a program."""
    return render_source(data, options)


def render_source(data: bytes, options: RenderOptions, note: str = "") -> RenderedDocument | Refusal:
    """Draw the source of a file of any kind of text."""
    text, encoding = decode_text(data)
    notes = ", ".join(filter(None, (note, describe_encoding(encoding))))
    return render_listing(CodeListing(split_lines(text), find_lexer(options.suffix, text[:2000]), note=notes), options)


def find_lexer(suffix: str, head: str) -> Lexer | None:
    """Return the lexer for a file by its suffix and its beginning; None: it is plain text."""
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    program = _SHEBANG.match(head)
    try:
        if suffix in _LEXERS_BY_NAME:
            return get_lexer_by_name(_LEXERS_BY_NAME[suffix])
        if suffix.startswith(".") and suffix != ".txt":
            return get_lexer_for_filename(f"file{suffix}", head)
        if program:
            return get_lexer_by_name(_LEXERS_BY_PROGRAM.get(program[1], program[1]))
        return get_lexer_by_name("xml") if head.lstrip().startswith("<?xml") else None
    except ClassNotFound:
        return None


def find_lexer_by_language(language: str) -> Lexer | None:
    """Return the lexer for a language by its name or an alias of it; None: there is none."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


CODE_RENDERER = Renderer(
    "code",
    revision=1,
    mimes=TEXT_MIMES,
    render=render_code,
    options=frozenset({"page", "lines", "suffix"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)
