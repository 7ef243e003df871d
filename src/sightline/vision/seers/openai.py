"""Seers behind OpenAI's two APIs: Chat Completions, which most other servers offer too, and Responses."""

from __future__ import annotations

from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import Attachment, Question, SeerAnswer
from sightline.model.value import value_class
from sightline.vision.seers import (
    STREAM_END,
    EventList,
    WireSeer,
    find_last,
    refuse_document,
    write_question,
)
from sightline.wire.answer_usage import read_usage
from sightline.wire.json_tree import enumerate_objects, get_at, get_list, get_text


@value_class
class ChatSeer(WireSeer):
    takes_schema: bool = True  # False: the server rejects a schema in `response_format`; it gets one in words only

    def build_body(self, question: Question) -> Json | Refusal:
        content: list[Json] = [{"type": "text", "text": write_question(question)}]
        content += [{"type": "image_url", "image_url": {"url": image.data_url}} for image in question.images]
        for document in question.attachments:
            part = _build_chat_file(document)
            if part is None:
                return refuse_document(self.name, document)
            content.append(part)
        system: list[Json] = [{"role": "system", "content": question.instructions}] if question.instructions else []
        body: dict[str, Json] = {"model": self.model, "messages": [*system, {"role": "user", "content": content}]}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        if question.max_tokens is not None:
            body["max_tokens"] = question.max_tokens
        if question.schema is not None and self.takes_schema:
            schema: Json = {"name": "answer", "schema": question.schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def parse_answer(self, answer: Json) -> SeerAnswer:
        is_truncated = get_at(answer, "choices", 0, "finish_reason") == "length"
        usage = read_usage("openai_chat", get_at(answer, "usage"))
        return SeerAnswer(read_chat_text(answer), usage, is_truncated=is_truncated)

    def join_events(self, events: EventList) -> Json:
        reason = find_last(events, "choices", 0, "finish_reason")
        if reason is None and STREAM_END not in events:
            return None
        text = "".join(_join_text(get_at(event, "choices", 0, "delta", "content"), "") for event in events)
        choice: Json = {"message": {"content": text}, "finish_reason": reason}
        return {"choices": [choice], "usage": find_last(events, "usage")}


def _build_chat_file(document: Attachment) -> Json:
    """Return the content part for a file; None: the API takes none of this kind.

    OpenAI itself takes no video, but all other servers that take one expect it as `video_url`.
    """
    if document.mime.startswith("video/"):
        return {"type": "video_url", "video_url": {"url": document.address}}
    if document.url:
        return None
    return {"type": "file", "file": {"filename": document.name or "document", "file_data": document.address}}


def read_chat_text(answer: Json) -> str:
    """Return the text of a Chat Completions response."""
    return _join_text(get_at(answer, "choices", 0, "message", "content"), "\n")


def _join_text(content: Json, separator: str) -> str:
    if isinstance(content, str):
        return content
    return separator.join(
        get_text(part, "text") for _, part in enumerate_objects(content) if part.get("type") == "text"
    )


@value_class
class ResponsesSeer(WireSeer):
    def build_body(self, question: Question) -> Json | Refusal:
        content: list[Json] = [{"type": "input_text", "text": question.text}]
        content += [{"type": "input_image", "image_url": image.data_url, "detail": "auto"} for image in question.images]
        for document in question.attachments:
            if document.mime != "application/pdf":
                return refuse_document(self.name, document)
            content.append(_build_responses_file(document))
        body: dict[str, Json] = {
            "model": self.model,
            "store": False,  # the provider must not keep the image
            "stream": True,
            "input": [{"role": "user", "content": content}],
        }
        if question.instructions:
            body["instructions"] = question.instructions
        if question.max_tokens is not None:
            body["max_output_tokens"] = question.max_tokens
        if question.schema is not None:
            schema: Json = {"type": "json_schema", "name": "answer", "schema": question.schema, "strict": False}
            body["text"] = {"format": schema}
        return body

    def parse_answer(self, answer: Json) -> SeerAnswer:
        is_truncated = get_at(answer, "incomplete_details", "reason") == "max_output_tokens"
        usage = read_usage("openai_responses", get_at(answer, "usage"))
        return SeerAnswer(read_responses_text(answer), usage, is_truncated=is_truncated)

    def join_events(self, events: EventList) -> Json:
        last_events = [
            event for event in events if get_at(event, "type") in ("response.completed", "response.incomplete")
        ]
        response = find_last(last_events, "response")
        if not isinstance(response, dict) or read_responses_text(response):
            return response
        # Some servers send the output only in earlier events, and leave it out of the last one.
        output = [get_at(event, "item") for event in events if get_at(event, "type") == "response.output_item.done"]
        return {**response, "output": output}


def _build_responses_file(document: Attachment) -> Json:
    if document.url:
        return {"type": "input_file", "file_url": document.url}
    return {"type": "input_file", "filename": document.name or "document.pdf", "file_data": document.address}


def read_responses_text(answer: Json) -> str:
    """Return the text of a Responses API response."""
    parts = (
        part
        for _, item in enumerate_objects(get_list(answer, "output"))
        for _, part in enumerate_objects(item.get("content"))
    )
    return "\n".join(get_text(part, "text") for part in parts if part.get("type") == "output_text")
