"""Names for messages: conversations have no ids, so each message is named by a hash of everything up to it.

The hash of a message covers the name of the message before it and its own content in one canonical form: without
cache marks, a list of one text block as that text, images by a hash of their pixels. So conversations that begin alike
share the names of their beginning, and an edited history gets new names from the edit on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby

import orjson
from blake3 import blake3

from sightline.model.image import BASE64_RUN_TABLE, CHARACTERS_PER_TOKEN
from sightline.model.labels import CLIENT_REMINDERS
from sightline.model.scene import InlineSource, Json, Sight
from sightline.model.value import value_class
from sightline.wire.json_tree import Texts, get_list, get_text, get_value

_MIN_PAYLOAD = 32  # a shorter payload might occur among words by chance
_BILLING_HEADER = "x-anthropic-billing-header:"
_LONG_RUN = b"A" * 64  # as long as an image's key
_long_run = re.compile(rb"[A-Za-z0-9+/=_-]{64,}+")
_payload = re.compile(rb"[A-Za-z0-9+/=_;-]{16,}+")  # or its placeholder, which ends with ;
_MAX_SEARCHES = 64  # images of one message that are searched for one by one
_INSTRUCTION_ROLES = ("system", "developer")
_REASONING_KEYS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_TEXT_BLOCK_KEYS = frozenset({"text", "type", "cache_control"})


@value_class
class HashChain:
    names: tuple[str, ...]  # of each message
    tokens: tuple[int, ...]  # of the text of each message, estimated
    head_name: str  # of everything before the first message
    head_tokens: int


def build_hash_chain(
    tree: Json,
    head_keys: Sequence[str],
    messages_key: str,
    texts: Texts,
    sights: Sequence[Sight] = (),
    *,
    spoken_only: bool = False,
) -> HashChain:
    """Return the names of the messages of a body, whose images are `sights`.

    `spoken_only` ignores system prompts, reasoning and texts of the client: they differ each time it is started.
    """
    head = _restore_lifted_runs(
        _canonicalize([_drop_billing_header(get_value(tree, each)) for each in head_keys]), texts
    )
    by_message = {index: list(group) for index, group in groupby(sights, key=lambda sight: sight.message)}
    head_name = name = blake3(head).hexdigest()
    names: list[str] = []
    tokens: list[int] = []
    for index, message in enumerate(get_list(tree, messages_key)):
        if spoken_only and (
            get_value(message, "role") in _INSTRUCTION_ROLES or get_value(message, "type") == "reasoning"
        ):
            names.append(name)
            tokens.append(0)
            continue
        content = _drop_client_text(message) if spoken_only else message
        text = _restore_lifted_runs(_replace_payloads(_canonicalize(content), by_message.get(index, ())), texts)
        name = blake3(name.encode() + text).hexdigest()
        names.append(name)
        tokens.append(_estimate_tokens(text))
    return HashChain(tuple(names), tuple(tokens), head_name, _estimate_tokens(head))


def _drop_client_text(message: Json) -> Json:
    """Return a message without reasoning, which clients keep only for a while, and without texts of the client."""
    if not isinstance(message, dict):
        return message
    key = "parts" if "parts" in message else "content"
    blocks = message.get(key)
    rest: dict[str, Json] = {each: value for each, value in message.items() if each not in _REASONING_KEYS}
    if isinstance(blocks, list):
        rest[key] = [block for block in blocks if not _is_client_text(block)]
    return rest


def _is_client_text(block: Json) -> bool:
    is_reasoning = get_value(block, "type") in ("thinking", "redacted_thinking") or get_value(block, "thought") is True
    return is_reasoning or get_text(block, "text").lstrip().startswith(CLIENT_REMINDERS)


def _estimate_tokens(text: bytes) -> int:
    """Return about how many tokens a text has, without images, signatures and other long runs."""
    # Few texts contain such a run, and to find that out takes a twentieth of the time of cutting them out.
    words = _long_run.sub(b"", text) if _LONG_RUN in text.translate(BASE64_RUN_TABLE) else text
    return len(words) // CHARACTERS_PER_TOKEN


def _drop_billing_header(system: Json) -> Json:
    """Return a system prompt without the billing header that a client writes into each request."""
    if not isinstance(system, list):
        return system
    return [each for each in system if not get_text(each, "text").startswith(_BILLING_HEADER)]


def _canonicalize(value: Json) -> bytes:
    """Return a message in the one form that all ways of writing it share."""
    text = _dump_canonical(value)
    return _dump_canonical(_simplify(value)) if b'"cache_control"' in text or b'[{"text"' in text else text


def _dump_canonical(value: Json) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _simplify(value: Json) -> Json:
    """Return a value without cache marks, and with a list of one text block as that text."""
    if isinstance(value, dict):
        return {key: _simplify(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        # No `match`: this runs for every message, and matching a mapping is slow.
        if len(value) == 1 and isinstance(text := get_value(value[0], "text"), str) and _is_plain_text_block(value[0]):
            return text
        return [_simplify(item) for item in value]
    return value


def _is_plain_text_block(block: Json) -> bool:
    return isinstance(block, dict) and block.keys() <= _TEXT_BLOCK_KEYS


def _replace_payloads(text: bytes, sights: Sequence[Sight]) -> bytes:
    """Return a message with the key of each image instead of its payload, whether that was lifted out or not."""
    images = [sight.source for sight in sights if isinstance(sight.source, InlineSource)]
    found = {
        image.leaf.encode("utf-8", "surrogatepass"): image.key.encode()
        for image in images
        if image.leaf and len(image.text) >= _MIN_PAYLOAD
    }
    if len(found) > _MAX_SEARCHES:  # in one pass: searching the message for each image would take quadratic time
        return _payload.sub(lambda run: found.get(run[0], run[0]), text)
    for leaf, key in found.items():
        text = text.replace(leaf, key)
    return text


def _restore_lifted_runs(text: bytes, texts: Texts) -> bytes:
    """Return a text with the lifted runs that aren't images."""
    token = texts.token.encode()
    if token not in text:
        return text
    return re.sub(re.escape(token) + rb"\d+;", lambda found: bytes(texts.expand_text(found[0].decode())), text)
