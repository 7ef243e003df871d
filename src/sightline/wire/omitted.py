"""Images that never came: the words that a client puts in the place of one, because it takes its model for blind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sightline.model.scene import Json
from sightline.wire.jsontext import Document
from sightline.wire.shape import items

_SIGN = "not support image"  # what they all say; a body without it is not looked through
_SAID: Mapping[str, str] = {
    "view_image is not allowed because you do not support image inputs": "codex",
    "image content omitted because you do not support image input": "codex",
    "does not support image input. The read_file tool cannot process": "qwen",
    "tool image omitted: model does not support images": "pi",
    "Cannot read image (this model does not support image input)": "opencode",
}
_LONGEST = 1000  # letters: a text that is longer only quotes it
_HEARD = ("user", "tool", "function")  # whose words a client writes itself


def omitted_by(document: Document, key: str) -> str | None:
    """The client that has left an image out of this body, by the name of its command; `key` is that of the messages."""
    if _SIGN.encode() not in document.skeleton:
        return None
    texts = (text for item in items(document.tree, key) if _is_heard(item) for text in _texts(item))
    short = (text for text in texts if len(text) <= _LONGEST and _SIGN in text)
    return next((client for text in short for said, client in _SAID.items() if said in text), None)


def _is_heard(item: Json) -> bool:
    """A user's message or a tool's result. What a model says, or a system prompt, is no sign of anything."""
    if not isinstance(item, dict):
        return False
    if "role" in item:
        return item["role"] in _HEARD
    kind = item.get("type", "_output")
    return isinstance(kind, str) and kind.endswith("_output")


def _texts(value: Json) -> Iterator[str]:
    """Every string below a value."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict(held):
                left.extend(held.values())
            case list(held):
                left.extend(held)
