"""A seer behind the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import Attachment, Question, SeerAnswer
from sightline.model.value import value_class
from sightline.vision.seers import (
    EventList,
    WireSeer,
    find_last,
    refuse_document,
    write_question,
)
from sightline.wire.answer_usage import read_usage
from sightline.wire.json_tree import get_at, get_text

_MAX_TOKENS = 4096  # the API requires a number


@value_class
class MessagesSeer(WireSeer):
    @property
    def request_headers(self) -> Mapping[str, str]:
        return {"anthropic-version": "2023-06-01", **self.headers}

    def build_body(self, question: Question) -> Json | Refusal:
        content: list[Json] = []
        for image in question.images:
            source: Json = {"type": "base64", "media_type": image.mime, "data": image.base64}
            content.append({"type": "image", "source": source})
        for document in question.attachments:
            if document.mime != "application/pdf":
                return refuse_document(self.name, document)
            content.append({"type": "document", "source": _build_source(document)})
        content.append({"type": "text", "text": write_question(question)})
        # No temperature, prefill or tool choice: newer models reject them.
        body: dict[str, Json] = {
            "model": self.model,
            "max_tokens": question.max_tokens or _MAX_TOKENS,
            "stream": True,
            "messages": [{"role": "user", "content": content}],
        }
        if question.instructions:
            body["system"] = question.instructions
        return body

    def parse_answer(self, answer: Json) -> SeerAnswer:
        is_truncated = get_at(answer, "stop_reason") == "max_tokens"
        return SeerAnswer(
            read_text(answer), read_usage("anthropic", get_at(answer, "usage")), is_truncated=is_truncated
        )

    def join_events(self, events: EventList) -> Json:
        reason = find_last(events, "delta", "stop_reason")
        if reason is None and not any(get_at(event, "type") == "message_stop" for event in events):
            return None
        blocks: dict[int, str] = {}
        for event in events:
            index, start = get_at(event, "index"), get_text(get_at(event, "content_block"), "text")
            if isinstance(index, int):
                blocks[index] = blocks.get(index, "") + start + get_text(get_at(event, "delta"), "text")
        counts: dict[str, Json] = {}
        # The first event counts the input, the last one the output.
        for found in (find_last(events, "message", "usage"), find_last(events, "usage")):
            counts |= {name: value for name, value in found.items() if value} if isinstance(found, dict) else {}
        content: list[Json] = [{"type": "text", "text": blocks[index]} for index in sorted(blocks) if blocks[index]]
        return {"content": content, "stop_reason": reason, "usage": counts}


def _build_source(document: Attachment) -> Json:
    if document.url:
        return {"type": "url", "url": document.url}
    return {"type": "base64", "media_type": document.mime, "data": document.base64}


def read_text(answer: Json) -> str:
    """Return the text of a response."""
    blocks = answer.get("content") if isinstance(answer, dict) else None
    texts = [b.get("text") for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))
