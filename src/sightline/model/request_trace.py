"""What a receipt keeps of a request besides the fates of its images: its conversation, and its edited places.

The trace is collected while the request is prepared, as references into its parsed body, and built when the receipt is
written, in the store's thread. It holds no text of the prompt but that of the edited places, and no base64. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import field

from blake3 import blake3

from sightline.model.fence import replace_surrogates
from sightline.model.scene import Json
from sightline.model.seer import Usage
from sightline.model.value import value_class

MAX_PLACE_BYTES = 2048  # of a place before it was edited, and of the same place afterwards
MAX_PLACES = 16  # of one request
IMAGE_CHIP = "[image]"  # stands for the base64 of an image
_HASHED_CHARS = 64 * 1024  # of a first message
_placeholder = re.compile(r"sightline-[0-9a-f]{16}-\d+;")
_DIGEST = r"[0-9a-f]{64}(?![A-Za-z0-9+/=_-])"  # as in `sha256:…`; base64 of an image has other letters
_match_digest = re.compile(_DIGEST).match
_long_run = re.compile(rf"(?:data:[\w.+-]+/[\w.+-]+;base64,)?(?!{_DIGEST})[A-Za-z0-9+/=_-]{{64,}}+;?")
_MAX_PREFIX = 128  # characters before a run that may be its media type
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_RUN_MASK = bytes(0x61 if character in _RUN_CHARACTERS else 0x20 for character in range(256))
_LONG_RUN_MASK = b"a" * 64


@value_class
class EditedPlace:
    """A place of a request as the client sent it, and as the upstream got it; each is shortened."""

    place: str  # a JSON pointer into the body
    before: str
    after: str

    def as_json(self) -> dict[str, Json]:
        return {"place": self.place, "before": self.before, "after": self.after}


@value_class
class RequestTrace:
    """The place of a request in its conversation, and what was edited in its newest messages."""

    conversation: str = ""  # a hash of the first message of the user: requests that share it are one conversation
    chain: str = ""  # the name of the last message, which covers all messages; empty: it was not computed
    turn: int = 0  # of the conversation, counted from 1
    messages: int = 0
    cached_messages: int | None = None  # at the start, which the upstream has probably cached; None: unknown
    text_tokens: int | None = None  # of everything but the images, estimated
    edits: tuple[EditedPlace, ...] = ()

    def as_json(self) -> dict[str, Json]:
        edits: list[Json] = [each.as_json() for each in self.edits]
        return {
            "chain": self.chain,
            "turn": self.turn,
            "messages": self.messages,
            "cached_messages": self.cached_messages,
            "text_tokens": self.text_tokens,
            "edits": edits,
        }


@value_class
class TraceParts:
    """What a trace is built from."""

    first: Json = field(repr=False)  # the first message of the user, as parsed
    edits: Sequence[EditedPlace | tuple[str, Json, Json]] = field(repr=False)  # or: pointer, value before, value after
    trace: RequestTrace  # what is known without reading them
    digests: dict[int, str] = field(default_factory=dict, repr=False, compare=False)
    """The sha256 of images that were not known at first, by the number of their lines; threads add to it."""

    def build(self) -> RequestTrace:
        """Return the trace: hash the first message, and shorten the edited places."""
        known = self.trace
        places = tuple([each if isinstance(each, EditedPlace) else _shorten_edit(*each) for each in self.edits])
        return RequestTrace(
            hash_first_message(self.first),
            known.chain,
            known.turn,
            known.messages,
            known.cached_messages,
            known.text_tokens,
            places,
        )


def _shorten_edit(place: str, before: Json, after: Json) -> EditedPlace:
    return EditedPlace(place, shorten_place(before), shorten_place(after))


def hash_first_message(message: Json) -> str:
    """Return a hash of the words of a message. Images count only by their number: clients encode them anew."""
    text = replace_images(_write(message)[:_HASHED_CHARS])
    return blake3(text.encode("utf-8", "replace")).hexdigest()[:32]


def shorten_place(value: Json) -> str:
    """Return a value as text, with a chip for each image; None is the empty text."""
    if value is None:
        return ""
    text = replace_surrogates(replace_images(value if isinstance(value, str) else _write(value)))
    data = text.encode()
    if len(data) <= MAX_PLACE_BYTES:
        return text
    return data[: MAX_PLACE_BYTES - 3].decode("utf-8", "ignore") + "…"


def replace_images(text: str) -> str:
    """Return a text with a chip for each image.

    Searching 5 KB with `_long_run` takes 320 microseconds. So runs are found in a mask of the text, in which each
    character of base64 is an `a` and each other one a blank, and `_long_run` gets only these.
    """
    if "sightline-" in text:
        text = _placeholder.sub(IMAGE_CHIP, text)
    mask = text.encode("ascii", "replace").translate(_RUN_MASK)
    pieces: list[str] = []
    end = searched = 0
    while (at := mask.find(_LONG_RUN_MASK, searched)) >= 0:
        start, searched = max(end, at - _MAX_PREFIX), mask.find(b" ", at) + 1 or len(text)
        if _match_digest(text, at):  # the name of an image, as in nearly every receipt
            continue
        pieces += [text[end:start], _long_run.sub(IMAGE_CHIP, text[start:searched])]
        end = searched
    return "".join([*pieces, text[end:]]) if pieces else text


def _write(value: Json) -> str:
    """Write a value as JSON, without `cache_control`, which clients move from message to message."""
    try:
        import orjson  # loaded when it is used: every command loads this module

        text = orjson.dumps(value).decode()
        return orjson.dumps(_drop_cache_marks(value)).decode() if '"cache_control"' in text else text
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, a huge number, or nested too deep
        return _write_slowly(value)


def _write_slowly(value: Json) -> str:
    try:
        return json.dumps(_drop_cache_marks(value), ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""


def _drop_cache_marks(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _drop_cache_marks(each) for key, each in value.items() if key != "cache_control"}
    return [_drop_cache_marks(each) for each in value] if isinstance(value, list) else value


def read_trace(conversation: str, row: dict[str, Json]) -> RequestTrace:
    """Return the trace that `as_json` wrote."""
    rows = row.get("edits")
    edits = [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []
    places = tuple(EditedPlace(*(str(each.get(key, "")) for key in ("place", "before", "after"))) for each in edits)
    figures = {key: value for key, value in row.items() if isinstance(value, int)}
    return RequestTrace(
        conversation,
        str(row.get("chain", "")),
        figures.get("turn", 0),
        figures.get("messages", 0),
        figures.get("cached_messages"),
        figures.get("text_tokens"),
        places,
    )


class AnswerSlot:
    """Where the usage of an answer goes: the receipt may be written before the answer ends, or after.

    The writer sets `is_read` before it reads `usage`, and the other side sets `usage` before it reads `is_read`. So at
    least one of them sees the other.
    """

    __slots__ = ("is_read", "row", "usage")

    def __init__(self) -> None:
        self.usage: Usage | None = None  # None: the answer has not ended
        self.is_read = False  # the receipt was written, or is being written
        self.row: int | None = None  # the receipt in the record, if it was written without the usage


@value_class
class ConversationSummary:
    """The requests of one conversation, summed up."""

    id: str
    requests: int
    turns: int
    images: int  # in its largest request
    tokens_before: int  # of the images of all requests, estimated
    tokens_after: int
    started_at: float
    ended_at: float
    model: str
    client: str
    upstream: str
    models: int = 1  # that took part

    def as_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "requests": self.requests,
            "turns": self.turns,
            "images": self.images,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "model": self.model,
            "models": self.models,
            "client": self.client,
            "upstream": self.upstream,
        }
