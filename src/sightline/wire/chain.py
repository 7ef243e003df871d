"""Who a conversation is: nobody names it, so each message is named by all that was said up to it.

The name of a message is a hash over the name of the one before it and its own words, without cache marks, a single
text as plain words, images by their content. Conversations that begin alike share the names of their beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import orjson
from blake3 import blake3

from sightline.model.base64_text import AS_LETTERS, PER_TOKEN
from sightline.model.marks import REMINDERS
from sightline.model.scene import Json, Sight
from sightline.model.source import Inline
from sightline.wire.shape import Texts, at, items, text_in, value_in

_SHORTEST = 32  # letters of a payload that may be looked for among words
_PASSING = "x-anthropic-billing-header:"
_LONG = b"A" * 64  # as long as an image's key
_run = re.compile(rb"[A-Za-z0-9+/=_-]{64,}+")
_payload = re.compile(rb"[A-Za-z0-9+/=_;-]{16,}+")  # or what stands for it where it was lifted out, which ends with ;
_FEW = 64  # images that a message is searched for one by one
_INSTRUCTING = ("system", "developer")
_THOUGHTS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_BESIDE_TEXT = frozenset({"text", "type", "cache_control"})


@dataclass(frozen=True, slots=True)
class Chain:
    names: tuple[str, ...]  # of each message; of the head, when there is none: see `head`
    tokens: tuple[int, ...]  # of each message's words, estimated
    head: str
    head_tokens: int


def chain(
    tree: Json, head: Sequence[str], key: str, texts: Texts, sights: Sequence[Sight] = (), *, spoken: bool = False
) -> Chain:
    """`head` and `key` say where a wire holds what comes first and the messages; `sights` stand in those.

    `spoken`: what a program says by itself changes from one start of it to the next, and counts for nothing.
    """
    first = _whole(_canonical([_lasting(at(tree, each)) for each in head]), texts)
    held = {index: list(group) for index, group in groupby(sights, key=lambda sight: sight.message)}
    name = told = blake3(first).hexdigest()
    names: list[str] = []
    tokens: list[int] = []
    for index, message in enumerate(items(tree, key)):
        if spoken and (value_in(message, "role") in _INSTRUCTING or value_in(message, "type") == "reasoning"):
            names.append(told)
            tokens.append(0)
            continue
        counted = _spoken(message) if spoken else message
        whole = _whole(_named(_canonical(counted), held.get(index, ())), texts)
        told = blake3(told.encode() + whole).hexdigest()
        names.append(told)
        tokens.append(_weight(whole))
    return Chain(tuple(names), tuple(tokens), name, _weight(first))


def _spoken(message: Json) -> Json:
    """Without what its client has said in the user's name, and without thoughts, which clients keep for a while."""
    if not isinstance(message, dict):
        return message
    key = "parts" if "parts" in message else "content"
    blocks = message.get(key)
    said: dict[str, Json] = {each: value for each, value in message.items() if each not in _THOUGHTS}
    if isinstance(blocks, list):
        said[key] = [block for block in blocks if not _is_aside(block)]
    return said


def _is_aside(block: Json) -> bool:
    thought = value_in(block, "type") in ("thinking", "redacted_thinking") or value_in(block, "thought") is True
    return thought or text_in(block, "text").lstrip().startswith(REMINDERS)


def _weight(whole: bytes) -> int:
    """Tokens, without images, signatures and other runs that nobody reads, wherever they stood in the body."""
    # Nearly no text holds such a run, and that is seen twenty times as fast as they are cut out.
    words = _run.sub(b"", whole) if _LONG in whole.translate(AS_LETTERS) else whole
    return len(words) // PER_TOKEN


def _lasting(system: Json) -> Json:
    """Without what a client writes anew into each request, and no model needs."""
    if not isinstance(system, list):
        return system
    return [each for each in system if not text_in(each, "text").startswith(_PASSING)]


def _canonical(value: Json) -> bytes:
    """A message in the one form that all ways of writing it share."""
    written = _written(value)
    return _written(_bare(value)) if b'"cache_control"' in written or b'[{"text"' in written else written


def _written(value: Json) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _bare(value: Json) -> Json:
    """Without cache marks, and with a list of one text as that text."""
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        # No pattern: every message comes by here, and a pattern over a mapping takes its time.
        if len(value) == 1 and isinstance(text := value_in(value[0], "text"), str) and _is_plain(value[0]):
            return text
        return [_bare(item) for item in value]
    return value


def _is_plain(block: Json) -> bool:
    """Is there nothing of weight beside the text of a block?"""
    return isinstance(block, dict) and block.keys() <= _BESIDE_TEXT


def _named(written: bytes, sights: Sequence[Sight]) -> bytes:
    """The message with the key of each image in the place of its payload, whether that was lifted out or not."""
    images = [sight.source for sight in sights if isinstance(sight.source, Inline)]
    found = {
        image.leaf.encode("utf-8", "surrogatepass"): image.key.encode()
        for image in images
        if image.leaf and len(image.text) >= _SHORTEST
    }
    if len(found) > _FEW:  # in one pass: to search the message once for each would take the square of their number
        return _payload.sub(lambda run: found.get(run[0], run[0]), written)
    for leaf, key in found.items():
        written = written.replace(leaf, key)
    return written


def _whole(written: bytes, texts: Texts) -> bytes:
    """With what was lifted out of it and is no image."""
    token = texts.token.encode()
    if token not in written:
        return written
    return re.sub(re.escape(token) + rb"\d+;", lambda found: bytes(texts.text_of(found[0].decode())), written)
