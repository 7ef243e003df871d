"""The tool loop of each wire: calls of Sightline's own tools inside a conversation between a client and a model.

Everything here is pure. A wire says how a request offers our tools, how calls and results are written, how an answer
with our calls is read (`stream_listener` explains this half), and how the answer that a client sends back later gets
our calls again (`restoration` explains that one). `leg` has the values that all of them share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sightline.model.profile import WireName
from sightline.model.scene import Edit, Json
from sightline.wire.json_tree import Block
from sightline.wire.tool_loop import anthropic, gemini, openai_chat, openai_responses
from sightline.wire.tool_loop.leg import AnswerRun, BlockContent, CallContent, Leg, OwnResult, OwnTool, StoredLeg
from sightline.wire.tool_loop.stream_listener import StreamListener

__all__ = ["LOOPS", "AnswerRun", "Leg", "OwnResult", "OwnTool", "StoredLeg", "StreamListener", "WireLoop"]


class WireLoop(Protocol):
    """What the module of a wire has to define."""

    CALL_IDS_OPTIONAL: bool  # a client may send a call back without its id, or with one of its own

    # Requests.

    def can_offer_tools(self, tree: Json) -> bool:
        """Return whether a request can offer our tools, and an answer that calls them can be continued."""

    def has_free_choice(self, tree: Json) -> bool:
        """Return whether the model may choose what to call. Only then does one more tool change nothing."""

    def is_stored(self, tree: Json) -> bool:
        """Return whether the client may refer to the answer by its id later, instead of sending it back."""

    def add_tools(self, tree: Json, tools: Sequence[OwnTool]) -> list[Edit]: ...

    def build_result(self, call: CallContent, result: OwnResult) -> Block:
        """Return the result of a call as a request contains it."""

    def append_legs(self, tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
        """Append the legs so far and the results of their calls, to ask for the next leg."""

    # Answers that come back in a later request.

    def find_answers(self, tree: Json) -> list[AnswerRun]:
        """Return everything in a body that may be one answer of the assistant."""

    def widen_answer(self, tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> AnswerRun | None:
        """Return the answer with what follows after results of some of its calls; None if nothing follows."""

    def restore_answer(
        self, tree: Json, run: AnswerRun, stored: Sequence[StoredLeg], results: Sequence[Block]
    ) -> list[Edit] | None:
        """Return the edits that put our calls and results back; None if the client has changed the answer.

        `results` are those of the last leg: they may have been finished after the leg was stored.
        """

    # Answers of the upstream.

    def build_listener(self, tool_names: frozenset[str]) -> StreamListener: ...

    def classify_block(self, block: Block, /) -> BlockContent: ...

    def list_blocks(self, answer: Json) -> list[Block]:
        """Return the blocks of an answer that isn't streamed."""

    def stopped_for_calls(self, answer: Json) -> bool:
        """Return whether an answer that isn't streamed stopped in order to have its calls answered."""

    def join_answers(self, answers: Sequence[Block], tool_names: frozenset[str]) -> Block:
        """Return the legs of an answer as one answer, without our calls."""


LOOPS: Mapping[WireName, WireLoop] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
}
