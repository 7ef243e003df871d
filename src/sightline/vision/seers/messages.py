"""A seer behind the Anthropic Messages wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sightline.model.asking import Answer, Document, Question, Usage
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.seers.wire_seer import Events, WireSeer, count, in_words, last, no_place, total
from sightline.wire.shape import at, text_in

_TOKENS = 4096  # the wire wants a number


@dataclass(frozen=True, slots=True)
class MessagesSeer(WireSeer):
    @property
    def sent_headers(self) -> Mapping[str, str]:
        return {"anthropic-version": "2023-06-01", **self.headers}

    def put(self, question: Question) -> Json | Refusal:
        content: list[Json] = []
        for image in question.images:
            source: Json = {"type": "base64", "media_type": image.mime, "data": image.base64}
            content.append({"type": "image", "source": source})
        for document in question.documents:
            if document.mime != "application/pdf":
                return no_place(self.name, document)
            content.append({"type": "document", "source": _source(document)})
        content.append({"type": "text", "text": in_words(question)})
        # No temperature, prefill or tool choice: newer models of this wire refuse them.
        body: dict[str, Json] = {
            "model": self.model,
            "max_tokens": question.longest or _TOKENS,
            "stream": True,
            "messages": [{"role": "user", "content": content}],
        }
        if question.instructions:
            body["system"] = question.instructions
        return body

    def heard(self, answer: Json) -> Answer:
        return Answer(words(answer), _usage(at(answer, "usage")), cut=at(answer, "stop_reason") == "max_tokens")

    def collected(self, events: Events) -> Json:
        why = last(events, "delta", "stop_reason")
        if why is None and not any(at(event, "type") == "message_stop" for event in events):
            return None
        blocks: dict[int, str] = {}
        for event in events:
            index, begun = at(event, "index"), text_in(at(event, "content_block"), "text")
            if isinstance(index, int):
                blocks[index] = blocks.get(index, "") + begun + text_in(at(event, "delta"), "text")
        counts: dict[str, Json] = {}
        for found in (last(events, "message", "usage"), last(events, "usage")):  # what was read, and what was said
            counts |= {name: value for name, value in found.items() if value} if isinstance(found, dict) else {}
        said: list[Json] = [{"type": "text", "text": blocks[index]} for index in sorted(blocks) if blocks[index]]
        return {"content": said, "stop_reason": why, "usage": counts}


def _source(document: Document) -> Json:
    if document.url:
        return {"type": "url", "url": document.url}
    return {"type": "base64", "media_type": document.mime, "data": document.base64}


def _usage(counts: Json) -> Usage:
    """On this wire what the cache gave or took is not counted as input: elsewhere it is."""
    kept = count(counts, "cache_read_input_tokens")
    given = total(count(counts, "input_tokens"), kept, count(counts, "cache_creation_input_tokens"))
    return Usage(given, count(counts, "output_tokens"), kept)


def words(answer: Json) -> str:
    """What an answer on this wire says."""
    blocks = answer.get("content") if isinstance(answer, dict) else None
    texts = [b.get("text") for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))
