"""A seer behind the Gemini API, the one wire that also takes videos, and opens them at their address itself."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from sightline.model.asking import Answer, Document, Question, Usage
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.seers.wire_seer import Events, WireSeer, count, last, total
from sightline.wire.shape import at, entries, items, text_in


@dataclass(frozen=True, slots=True)
class GeminiSeer(WireSeer):
    def put(self, question: Question) -> Json | Refusal:
        parts: list[Json] = [
            {"inlineData": {"mimeType": image.mime, "data": image.base64}} for image in question.images
        ]
        parts += [_file(document) for document in question.documents]
        body: dict[str, Json] = {"contents": [{"role": "user", "parts": [*parts, {"text": question.words}]}]}
        if question.instructions:
            body["systemInstruction"] = {"parts": [{"text": question.instructions}]}
        how: dict[str, Json] = {}
        if question.longest is not None:
            how["maxOutputTokens"] = question.longest
        if question.schema is not None:
            how |= {"responseMimeType": "application/json", "responseJsonSchema": question.schema}
        return {**body, "generationConfig": how} if how else body

    def heard(self, answer: Json) -> Answer:
        cut = at(answer, "candidates", 0, "finishReason") == "MAX_TOKENS"
        return Answer(words(answer), _usage(at(answer, "usageMetadata")), cut=cut)

    def collected(self, events: Events) -> Json:
        why = last(events, "candidates", 0, "finishReason")
        if why is None and last(events, "promptFeedback", "blockReason") is None:
            return None
        parts = [part for event in events for part in items(at(event, "candidates", 0, "content"), "parts")]
        counts = last(events, "usageMetadata")
        return {"candidates": [{"content": {"parts": parts}, "finishReason": why}], "usageMetadata": counts}


def path(model: str, verb: str = "generateContent") -> str:
    """Where a model of this wire is asked."""
    return f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:{verb}"


def stream_path(model: str) -> str:
    return path(model, "streamGenerateContent?alt=sse")


def _file(document: Document) -> Json:
    if document.url:
        return {"fileData": {"mimeType": document.mime, "fileUri": document.url}}
    return {"inlineData": {"mimeType": document.mime, "data": document.base64}}


def _usage(counts: Json) -> Usage:
    """What the model thought is paid for as what it said."""
    made = total(count(counts, "candidatesTokenCount"), count(counts, "thoughtsTokenCount"))
    return Usage(count(counts, "promptTokenCount"), made, count(counts, "cachedContentTokenCount"))


def words(answer: Json) -> str:
    """What an answer on this wire says."""
    parts = at(answer, "candidates", 0, "content", "parts")
    return "".join(text_in(part, "text") for _, part in entries(parts) if part.get("thought") is not True)
