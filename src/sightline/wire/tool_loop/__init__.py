"""Tools of ours inside any conversation: offered, heard, answered, and remembered in their places. All of it is pure.

A wire says here how it offers a tool, how it writes a call and a result, how an answer with calls of ours is heard,
and how what a client sends back of it becomes again what the model said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from sightline.model.edit import Edit
from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.wire.tool_loop import anthropic, gemini, openai_chat, openai_responses
from sightline.wire.tool_loop.leg import Block, Called, Leg, Offer, Past, Reads, Result, Run
from sightline.wire.tool_loop.listener import StreamListener

__all__ = ["LOOPS", "Leg", "Loop", "Offer", "Past", "Result", "Run", "StreamListener"]


@dataclass(frozen=True, slots=True)
class Loop:
    has_room: Callable[[Json], bool]  # can a tool be offered, and a call of it be answered?
    is_kept: Callable[[Json], bool]  # may the client name the answer later, instead of sending it back?
    is_free: Callable[[Json], bool]  # does it leave to the model what to call? then a tool more changes nothing
    offer: Callable[[Json, Sequence[Offer]], list[Edit]]
    result: Callable[[Called, Result], Block]  # as a request carries it
    grown: Callable[[Json, Sequence[tuple[Leg, Sequence[Block]]]], list[Edit]]  # a body, with legs behind it
    runs: Callable[[Json], list[Run]]  # the answers in a body
    woven: Callable[[Json, Run, Sequence[Past], Sequence[Block]], list[Edit] | None]  # one of them as it was, if it is
    wider: Callable[[Json, Run, Sequence[Past]], Run | None]  # one that goes on behind results of its calls
    listener: Callable[[frozenset[str]], StreamListener]
    reads: Reads
    said: Callable[[Json], list[Block]]  # what a whole answer says
    calls: Callable[[Json], bool]  # did it end in order to have its calls answered?
    whole: Callable[[Sequence[Block], frozenset[str]], Block]  # several as one


def _not_kept(tree: Json) -> bool:
    """Most wires carry the whole conversation in every request."""
    return False


def _no_wider(tree: Json, run: Run, pasts: Sequence[Past]) -> Run | None:
    """Most wires have a message for all that was said before any result."""


def _of(wire: ModuleType) -> Loop:
    return Loop(
        wire.has_room,
        getattr(wire, "is_kept", _not_kept),
        wire.is_free,
        wire.offer,
        wire.result,
        wire.grown,
        wire.runs,
        wire.woven,
        getattr(wire, "wider", _no_wider),
        wire.Listener,
        wire.reads,
        wire.said,
        wire.calls,
        wire.whole,
    )


LOOPS: Mapping[WireName, Loop] = {
    "anthropic": _of(anthropic),
    "openai_chat": _of(openai_chat),
    "openai_responses": _of(openai_responses),
    "gemini": _of(gemini),
}
