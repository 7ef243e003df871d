"""A seer in Ollama, asked in its own way."""

from __future__ import annotations

from dataclasses import dataclass, field

from sightline.model.asking import Answer, Question, Usage
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.seers.loopback import runs_here
from sightline.vision.seers.wire_seer import AGAIN, Events, WireSeer, count, in_words, no_place
from sightline.wire.shape import at, text_in

PATH = "/api/chat"


@dataclass(frozen=True, slots=True)
class OllamaSeer(WireSeer):
    unagreed: Refusal | None = None  # said where the server turns out to pass images on; None: it may
    here: set[str] = field(default_factory=set, repr=False, compare=False)  # models that are known to run there

    async def ask(self, question: Question) -> Answer | Refusal:
        return await self.hindrance() or await WireSeer.ask(self, question)

    async def hindrance(self) -> Refusal | None:
        """A name tells nothing: before the first look the server says whether the model runs with it."""
        if self.unagreed is None or self.model in self.here:
            return None
        stays = await runs_here(self.http, self.url.removesuffix(PATH), self.model)
        if isinstance(stays, Refusal):
            what = f"{self.name} could not be asked: nothing answers at {self.url.removesuffix(PATH)}"
            return Refusal("unavailable", what, "start it: ollama serve")
        if stays is None:
            what = f"{self.name} does not say where it runs"
            return Refusal("unavailable", what, AGAIN)
        if not stays:
            return self.unagreed
        self.here.add(self.model)
        return None

    def put(self, question: Question) -> Json | Refusal:
        if question.documents:
            return no_place(self.name, question.documents[0])
        said: list[Json] = [{"role": "system", "content": question.instructions}] if question.instructions else []
        asked: dict[str, Json] = {"role": "user", "content": in_words(question)}
        if question.images:
            asked["images"] = [image.base64 for image in question.images]
        body: dict[str, Json] = {"model": self.model, "messages": [*said, asked], "stream": True}
        if question.longest is not None:
            body["options"] = {"num_predict": question.longest}
        if question.schema is not None:
            body["format"] = question.schema
        return body

    def heard(self, answer: Json) -> Answer:
        counts = Usage(count(answer, "prompt_eval_count"), count(answer, "eval_count"))
        return Answer(words(answer), counts, cut=at(answer, "done_reason") == "length")

    def collected(self, events: Events) -> Json:
        end = events[-1]
        if not isinstance(end, dict) or end.get("done") is not True:
            return None
        return {**end, "message": {"content": "".join(map(words, events))}}


def words(answer: Json) -> str:
    """What an answer of Ollama says; what it thought stands elsewhere in it."""
    return text_in(at(answer, "message"), "content")
