"""A seer behind the OpenAI Responses wire."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.asking import Answer, Document, Question
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.seers.wire_seer import Events, WireSeer, last, no_place, usage
from sightline.wire.shape import at, entries, items, text_in


@dataclass(frozen=True, slots=True)
class ResponsesSeer(WireSeer):
    def put(self, question: Question) -> Json | Refusal:
        content: list[Json] = [{"type": "input_text", "text": question.words}]
        content += [{"type": "input_image", "image_url": image.data_url, "detail": "auto"} for image in question.images]
        for document in question.documents:
            if document.mime != "application/pdf":
                return no_place(self.name, document)
            content.append(_file(document))
        # Nothing of a picture stays with the provider longer than it takes to answer.
        body: dict[str, Json] = {
            "model": self.model,
            "store": False,
            "stream": True,
            "input": [{"role": "user", "content": content}],
        }
        if question.instructions:
            body["instructions"] = question.instructions
        if question.longest is not None:
            body["max_output_tokens"] = question.longest
        if question.schema is not None:
            shape: Json = {"type": "json_schema", "name": "answer", "schema": question.schema, "strict": False}
            body["text"] = {"format": shape}
        return body

    def heard(self, answer: Json) -> Answer:
        cut = at(answer, "incomplete_details", "reason") == "max_output_tokens"
        return Answer(words(answer), usage(answer, "input_tokens", "output_tokens", "input_tokens_details"), cut=cut)

    def collected(self, events: Events) -> Json:
        ends = [event for event in events if at(event, "type") in ("response.completed", "response.incomplete")]
        whole = last(ends, "response")
        if not isinstance(whole, dict) or words(whole):
            return whole
        # Some servers have said every part by then, and do not say them again.
        parts = [at(event, "item") for event in events if at(event, "type") == "response.output_item.done"]
        return {**whole, "output": parts}


def _file(document: Document) -> Json:
    if document.url:
        return {"type": "input_file", "file_url": document.url}
    return {"type": "input_file", "filename": document.name or "document.pdf", "file_data": document.address}


def words(answer: Json) -> str:
    """What an answer on this wire says."""
    said = (part for _, item in entries(items(answer, "output")) for _, part in entries(item.get("content")))
    return "\n".join(text_in(part, "text") for part in said if part.get("type") == "output_text")
