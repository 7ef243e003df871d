"""A seer in Ollama, asked in its own way."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.asking import Answer, Question, Usage
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.seers.asking import WireSeer, count, in_words, no_place
from sightline.wire.shape import at, text_in

PATH = "/api/chat"


@dataclass(frozen=True, slots=True)
class OllamaSeer(WireSeer):
    def put(self, question: Question) -> Json | Refusal:
        if question.documents:
            return no_place(self.name, question.documents[0])
        said: list[Json] = [{"role": "system", "content": question.instructions}] if question.instructions else []
        asked: dict[str, Json] = {"role": "user", "content": in_words(question)}
        if question.images:
            asked["images"] = [image.base64 for image in question.images]
        body: dict[str, Json] = {"model": self.model, "messages": [*said, asked], "stream": False}
        if question.longest is not None:
            body["options"] = {"num_predict": question.longest}
        if question.schema is not None:
            body["format"] = question.schema
        return body

    def heard(self, answer: Json) -> Answer:
        counts = Usage(count(answer, "prompt_eval_count"), count(answer, "eval_count"))
        return Answer(words(answer), counts, cut=at(answer, "done_reason") == "length")


def words(answer: Json) -> str:
    """What an answer of Ollama says; what it thought stands elsewhere in it."""
    return text_in(at(answer, "message"), "content")
