"""A seer behind the Gemini API, which also takes videos and fetches them from their address itself."""

from __future__ import annotations

from urllib.parse import quote

from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import Attachment, Question, SeerAnswer
from sightline.model.value import value_class
from sightline.vision.seers import EventList, WireSeer, find_last
from sightline.wire.answer_usage import read_usage
from sightline.wire.json_tree import enumerate_objects, get_at, get_list, get_text


@value_class
class GeminiSeer(WireSeer):
    def build_body(self, question: Question) -> Json | Refusal:
        parts: list[Json] = [
            {"inlineData": {"mimeType": image.mime, "data": image.base64}} for image in question.images
        ]
        parts += [_build_file(document) for document in question.attachments]
        body: dict[str, Json] = {"contents": [{"role": "user", "parts": [*parts, {"text": question.text}]}]}
        if question.instructions:
            body["systemInstruction"] = {"parts": [{"text": question.instructions}]}
        config: dict[str, Json] = {}
        if question.max_tokens is not None:
            config["maxOutputTokens"] = question.max_tokens
        if question.schema is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": question.schema}
        return {**body, "generationConfig": config} if config else body

    def parse_answer(self, answer: Json) -> SeerAnswer:
        cut = get_at(answer, "candidates", 0, "finishReason") == "MAX_TOKENS"
        usage = read_usage("gemini", get_at(answer, "usageMetadata"))
        return SeerAnswer(read_text(answer), usage, is_truncated=cut)

    def join_events(self, events: EventList) -> Json:
        reason = find_last(events, "candidates", 0, "finishReason")
        if reason is None and find_last(events, "promptFeedback", "blockReason") is None:
            return None
        parts = [part for event in events for part in get_list(get_at(event, "candidates", 0, "content"), "parts")]
        counts = find_last(events, "usageMetadata")
        return {"candidates": [{"content": {"parts": parts}, "finishReason": reason}], "usageMetadata": counts}


def build_path(model: str, verb: str = "generateContent") -> str:
    """Return the request path for a model."""
    return f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:{verb}"


def build_stream_path(model: str) -> str:
    return build_path(model, "streamGenerateContent?alt=sse")


def _build_file(document: Attachment) -> Json:
    if document.url:
        return {"fileData": {"mimeType": document.mime, "fileUri": document.url}}
    return {"inlineData": {"mimeType": document.mime, "data": document.base64}}


def read_text(answer: Json) -> str:
    """Return the text of a response, without the model's thoughts."""
    parts = get_at(answer, "candidates", 0, "content", "parts")
    return "".join(get_text(part, "text") for _, part in enumerate_objects(parts) if part.get("thought") is not True)
