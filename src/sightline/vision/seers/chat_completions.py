"""A seer behind the OpenAI Chat Completions wire, which most servers speak."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.asking import Answer, Document, Question
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.seers.wire_seer import END, Events, WireSeer, in_words, last, no_place, usage
from sightline.wire.shape import at, entries, text_in


@dataclass(frozen=True, slots=True)
class ChatSeer(WireSeer):
    shapes: bool = True  # False: the server refuses a schema in `response_format`, and gets it in words alone

    def put(self, question: Question) -> Json | Refusal:
        content: list[Json] = [{"type": "text", "text": in_words(question)}]
        content += [{"type": "image_url", "image_url": {"url": image.data_url}} for image in question.images]
        for document in question.documents:
            part = _file(document)
            if part is None:
                return no_place(self.name, document)
            content.append(part)
        said: list[Json] = [{"role": "system", "content": question.instructions}] if question.instructions else []
        body: dict[str, Json] = {"model": self.model, "messages": [*said, {"role": "user", "content": content}]}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        if question.longest is not None:
            body["max_tokens"] = question.longest
        if question.schema is not None and self.shapes:
            shape: Json = {"name": "answer", "schema": question.schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return body

    def heard(self, answer: Json) -> Answer:
        cut = at(answer, "choices", 0, "finish_reason") == "length"
        counts = usage(answer, "prompt_tokens", "completion_tokens", "prompt_tokens_details")
        return Answer(words(answer), counts, cut=cut)

    def collected(self, events: Events) -> Json:
        why = last(events, "choices", 0, "finish_reason")
        if why is None and END not in events:
            return None
        said = "".join(_said(at(event, "choices", 0, "delta", "content"), "") for event in events)
        return {"choices": [{"message": {"content": said}, "finish_reason": why}], "usage": last(events, "usage")}


def _file(document: Document) -> Json:
    """A video by its address is no part of OpenAI's own wire, but of all others that take one."""
    if document.mime.startswith("video/"):
        return {"type": "video_url", "video_url": {"url": document.address}}
    if document.url:
        return None
    return {"type": "file", "file": {"filename": document.name or "document", "file_data": document.address}}


def words(answer: Json) -> str:
    """What an answer on this wire says."""
    return _said(at(answer, "choices", 0, "message", "content"), "\n")


def _said(content: Json, between: str) -> str:
    if isinstance(content, str):
        return content
    return between.join(text_in(part, "text") for _, part in entries(content) if part.get("type") == "text")
