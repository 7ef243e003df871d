"""What was said in a message: the words of whoever speaks there, without thoughts, calls and results."""

from __future__ import annotations

import re

from sightline.model.fence import sound
from sightline.model.scene import Json
from sightline.wire.shape import Texts, at, entries, text_in

_run = re.compile(r"[A-Za-z0-9+/=_-]{256,}+")  # no word is that long
_WORDS = ("", "text", "input_text", "output_text")  # the types of blocks that hold words, over all wires


def words(message: Json, texts: Texts) -> list[str]:
    """The texts of a message, each without the payloads in it."""
    content = at(message, "content") if at(message, "parts") is None else at(message, "parts")
    if isinstance(content, str):
        return [_short(content, texts)]
    blocks = (block for _, block in entries(content) if text_in(block, "type") in _WORDS and not block.get("thought"))
    return [_short(text, texts) for block in blocks if (text := text_in(block, "text"))]


def _short(text: str, texts: Texts) -> str:
    """Half a letter of a pair, which JSON can hold and no wire can send, becomes a question mark."""
    lifted = re.sub(re.escape(texts.token) + r"\d+;", "…", text) if texts.token in text else text
    said = _run.sub("…", lifted)
    return sound(said)
