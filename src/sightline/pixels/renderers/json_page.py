"""Draw JSON, indented and coloured.

Short lists and objects are on one line, and brackets that would be alone on their lines are beside each other. Only the
space between tokens is changed: numbers, strings and the order of keys stay as they are in the file. Nothing is parsed
into objects, so neither depth nor size matters. What is not JSON is drawn as it is.
"""

from __future__ import annotations

import re

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.code_listing import CodeListing, render_listing, split_lines
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.source_code import MAX_TEXT_BYTES, TEXT_NEEDS, find_lexer_by_language, render_source
from sightline.pixels.text_decoding import decode_text, describe_encoding

_SUFFIXES = frozenset({".json", ".geojson", ".jsonl", ".ndjson", ".webmanifest", ".har"})
_TOKEN = re.compile(r'\s*("(?:[^"\\\x00-\x1f]|\\.)*"|[\[\]{},:]|-?\d[\d.eE+-]*|true|false|null)\s*')
_INNERMOST = re.compile(r"(\[[^\[\]{}]{0,400}\]|\{[^\[\]{}]{0,400}\})\s*")  # if no string in it has a bracket
_MAX_SHORT = 72  # characters of a list or an object on one line
_CLOSING = re.compile(r"(?:\n *[\]}])+")
_NEXT_ITEM = re.compile(r"(\n *[\]}]+,)\n *([\[{])(?=\n)")
_MAX_TOKENS = 1_000_000
_MAX_INDENT = 40  # levels; deeper ones are not indented any more


def render_json(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a JSON file, or its own lines if some were asked for."""
    text, encoding = decode_text(data)
    pretty = None if options.lines is not None else indent_json(text)
    if pretty is None:
        return render_source(data, options)
    lines = split_lines(pretty)
    note = "" if pretty.strip() == text.strip() else "indented for reading"
    notes = ", ".join(filter(None, (note, describe_encoding(encoding))))
    lexer = find_lexer_by_language("json")
    return render_listing(CodeListing(lines, lexer, has_numbers=not note, note=notes), options)


def indent_json(text: str) -> str | None:
    """Return JSON, or several values after each other, with each member on its own line; None: it is not JSON."""
    pieces: list[str] = []
    open_brackets: list[str] = []
    at, end = 0, len(text)
    while at < end:
        short = _INNERMOST.match(text, at)
        if short and (line := _join_tokens(short[1])):
            pieces.append(line)
            at = short.end()
        elif found := _TOKEN.match(text, at):
            if not _add_token(found[1], pieces, open_brackets):
                return None
            at = found.end()
        elif not text[at:].strip():
            break
        else:
            return None
        if not open_brackets:
            pieces.append("\n")
        if len(pieces) > _MAX_TOKENS:
            return None
    return None if open_brackets or not pieces else _join_brackets("".join(pieces))


def _join_tokens(text: str) -> str:
    """Return a list or an object of scalars on one line; empty: it is too long for that, or is not JSON."""
    pieces, at = list[str](), 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return ""
        pieces.append({",": ", ", ":": ": "}.get(found[1], found[1]))
        at = found.end()
    line = "".join(pieces)
    return line if len(line) <= _MAX_SHORT else ""


def _join_brackets(text: str) -> str:
    """Put brackets beside each other that would be alone on their lines, where a reader overlooks them."""
    joined = _CLOSING.sub(lambda found: found[0][found[0].rindex("\n") : -1] + "".join(found[0].split()), text)
    return _NEXT_ITEM.sub(r"\1 \2", joined)


def _add_token(piece: str, pieces: list[str], open_brackets: list[str]) -> bool:
    """Add a token with the space around it; return whether the brackets match."""
    if piece in ("{", "["):
        open_brackets.append("}" if piece == "{" else "]")
        pieces.append(piece + _start_line(open_brackets))
    elif piece in ("}", "]"):
        if not open_brackets or open_brackets.pop() != piece:
            return False
        pieces.append(_start_line(open_brackets) + piece)
    elif piece == ",":
        pieces.append("," + _start_line(open_brackets))
    else:
        pieces.append(": " if piece == ":" else piece)
    return True


def _start_line(open_brackets: list[str]) -> str:
    return "\n" + "  " * min(len(open_brackets), _MAX_INDENT)


def is_json(data: bytes, suffix: str) -> bool:
    """Return whether a text is JSON, by its name, or by how it begins if it has none."""
    return suffix in _SUFFIXES or (suffix == "" and data.lstrip()[:1] in (b"{", b"["))


JSON_RENDERER = Renderer(
    "json",
    revision=2,
    mimes=frozenset({"text/plain"}),
    render=render_json,
    recognize=is_json,
    options=frozenset({"page", "lines", "suffix"}),
    needs=TEXT_NEEDS,
    max_bytes=MAX_TEXT_BYTES,
)
