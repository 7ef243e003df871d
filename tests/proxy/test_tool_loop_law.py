"""The law of calls of ours: the upstream sees what a client would send that ran the tools itself, and the client sees
what it would see of a model that knew the answer. On random conversations, over real sockets."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.legs import (
    ITEMS,
    OURS,
    WIRES,
    Call,
    Json,
    Leg,
    Script,
    body,
    echo,
    heard,
    joined,
    parted,
    path,
    results,
    said,
    seen,
    serving,
    user,
)
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement

NOBODY = "sha256:" + "0" * 64
_WORDS = st.sampled_from(["", "Hm.", "I will look closer.\n", "Zwölf ünd 三 🙂", "  ", 'a "quote" \\ and \\n', "Done."])
_THOUGHTS = st.sampled_from(["", "let me think", "the third one"])
_number = count()


@st.composite
def conversations(draw: st.DrawFn) -> list[list[Leg]]:
    """Answers, each in one leg or more; the last leg of one may call the client as well."""
    strong = draw(st.booleans())

    weak = count()

    def named() -> str:
        return f"call_{next(_number):024x}" if strong else f"functions.any:{next(weak)}"

    def ours() -> Call:
        return Call(named(), "analyze_image", {"images": [NOBODY], "question": draw(_WORDS) + "?"})

    def theirs() -> Call:
        return Call(named(), "Read", {"path": draw(st.sampled_from(["a.py", "b c.py"]))})

    answers = []
    for _ in range(draw(st.integers(1, 3))):
        legs = [
            Leg(draw(_WORDS), tuple(ours() for _ in range(draw(st.integers(1, 2)))), draw(_THOUGHTS), next(_number))
            for _ in range(draw(st.integers(0, 3)))
        ]
        calls = [theirs() for _ in range(draw(st.integers(0, 2)))]
        if calls:
            calls += [ours() for _ in range(draw(st.integers(0, 2)))]
        words = draw(_WORDS) if calls else draw(_WORDS) + "."
        legs.append(Leg(words, tuple(draw(st.permutations(calls))), draw(_THOUGHTS), next(_number)))
        answers.append(legs)
    return answers


class Conversation:
    """Both sides of it: what the client holds, and what a client would hold that ran the tools itself."""

    def __init__(self, wire: str, base: str, script: Script, *, drops: bool, parts: bool = False) -> None:
        self.wire, self.base, self.script, self.drops, self.parts = wire, base, script, drops, parts
        self.holds: list[Json] = [user(wire, f"conversation {next(_number)}")]
        self.ours: list[Json] = [*self.holds]
        self.last = Leg()

    def answered(self, legs: list[Leg], *, stream: bool) -> None:
        said_, bodies = self.sent(body(self.wire, self.holds, stream=stream), legs, stream=stream)
        asked = [each[ITEMS[self.wire]] for each in bodies]
        whole = heard(self.wire, said_, stream=stream)
        assert seen(self.wire, whole) == joined(self.wire, legs)
        assert used(self.wire, whole) == (100 + legs[-1].used, sum(leg.used for leg in legs))
        self.ours += self._brought(self.last.calls, asked[0])
        if self.parts and self.wire == "openai_responses":
            self.ours = self._interleaved(self.ours)
        assert asked[0] == self.ours
        grown, kept = [*self.ours], [*self.ours]
        cut = len("".join(leg.text for leg in legs)) // 2
        for number, leg in enumerate(legs[:-1], 1):
            items = asked[number]
            told = self._brought(leg.asks, items)
            grown += [*said(self.wire, leg), *told]
            kept += [*self._parted(self._kept(leg), cut), *told]
            cut -= len(leg.text)
            assert items == grown
        self.ours = [*kept, *self._parted(self._kept(legs[-1]), cut)]
        seen_ = [self._dropped(item) for item in echo(self.wire, whole) if not self._is_thought(item)]
        self.holds += self._parted(seen_, len("".join(leg.text for leg in legs)) // 2)
        self.last = legs[-1]

    def _parted(self, items: list[Json], cut: int) -> list[Json]:
        """As a client keeps it that makes several messages of one answer."""
        return parted(self.wire, items, cut) if self.parts else items

    def sent(self, asked: Json, legs: list[Leg], *, stream: bool) -> tuple[bytes, list[Json]]:
        """What the client gets, and what the upstream was asked for it."""
        at = len(self.script.asked)
        self.script.legs = [*self.script.legs[:at], *legs]
        got = exchange(self.base, path(self.wire, stream=stream), json.dumps(asked).encode())
        assert got.status == 200, got.body
        return got.body, self.script.asked[at:]

    def goes_on(self, words: str) -> None:
        """The client's part: what its tools brought, or the user's next words."""
        if self.last.calls:
            brought = results(self.wire, [(call, f"brought {call.id}") for call in self.last.visible.calls])
            self.holds = self._beside(brought) if self.parts and "call_id" in brought[0] else [*self.holds, *brought]
        else:
            self.holds.append(user(self.wire, words))
            self.ours.append(user(self.wire, words))

    def _interleaved(self, items: list[Json]) -> list[Json]:
        """The results of the last calls, each where the client has its own."""
        calls = [call.id for call in self.last.calls]
        if not calls or items[-1]["type"] == "message":
            return items
        before, behind = items[: -2 * len(calls)], items[-2 * len(calls) :]
        theirs = [number for number, call in enumerate(self.last.calls) if not call.ours]
        made, brought = behind[: len(calls)], behind[len(calls) :]
        pairs = [[one, two] for one, two in zip(made, brought, strict=True)]
        if len(theirs) == 1:  # then nothing stands apart
            return items
        tail = made[theirs[-1] :], brought[theirs[-1] :]
        return [*before, *(each for pair in pairs[: theirs[-1]] for each in pair), *tail[0], *tail[1]]

    def _beside(self, brought: list[Json]) -> list[Json]:
        """Each result behind its own call, where items stand for themselves."""
        calls = len(self.holds) - len(brought)
        pairs = zip(self.holds[calls:], brought, strict=True)
        return [*self.holds[:calls], *(each for pair in pairs for each in pair)]

    def _brought(self, calls: tuple[Call, ...], items: list[Json]) -> list[Json]:
        """What calls have brought: the client's, as it knows it; ours, as the upstream was told."""
        told = [(call, words_of(call, items) if call.ours else f"brought {call.id}") for call in calls]
        return results(self.wire, told)

    def _kept(self, leg: Leg) -> list[Json]:
        """What stays of a leg: without its thoughts, where the client drops them.

        A call is known by its id to have come with one.
        """
        if not self.drops or self.wire == "gemini":
            return said(self.wire, leg)
        items = said(self.wire, replace(leg, thought=""))
        if not leg.thought:
            return items
        return [{k: v for k, v in item.items() if k != "id" or item.get("name") not in OURS} for item in items]

    def _is_thought(self, item: Json) -> bool:
        return self.drops and item.get("type") == "reasoning"

    def _dropped(self, item: Json) -> Json:
        if not self.drops:
            return item
        if self.wire == "anthropic":
            return {**item, "content": [block for block in item["content"] if block["type"] != "thinking"]}
        return {key: value for key, value in item.items() if key != "reasoning_content"}


def used(wire: str, whole: Json) -> tuple[int, int]:
    keys = {
        "anthropic": ("usage", "input_tokens", "output_tokens"),
        "openai_chat": ("usage", "prompt_tokens", "completion_tokens"),
        "openai_responses": ("usage", "input_tokens", "output_tokens"),
        "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
    }
    key, given, made = keys[wire]
    return whole[key][given], whole[key][made]


def words_of(call: Call, items: list[Json]) -> str:
    """What a call of ours brought, wherever it stands."""
    for item in items:
        for holder in [item, *(item.get("content") or []), *item.get("parts", [])]:
            match holder:
                case {"tool_use_id": call.id, "content": str(words)} | {"tool_call_id": call.id, "content": str(words)}:
                    return words
                case {"call_id": call.id, "output": str(words)}:
                    return words
                case {"functionResponse": {"id": call.id, "response": dict(response)}}:
                    return str(next(iter(response.values())))
    raise AssertionError(f"{call} has no result in {json.dumps(items)}")


@pytest.mark.parametrize("wire", WIRES)
@requirement("loop.law", "loop.substituted", "loop.beside", "loop.signature", "loop.assistant", "loop.usage")
def test_client_and_upstream_see_what_they_would_see_without_the_loop(tmp_path: Path, wire: str) -> None:
    script = Script(wire)
    with (
        serving(script) as server,
        sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env={"SIGHTLINE_TOOL": "on"}) as proxy,
    ):

        @settings(deadline=None)
        @given(
            conversations(),
            st.lists(st.booleans(), min_size=3, max_size=3),
            st.booleans(),
            st.booleans(),
            st.booleans(),
        )
        def holds(answers: list[list[Leg]], streams: list[bool], drops: bool, parts: bool, whole: bool) -> None:
            script.whole = whole
            conversation = Conversation(wire, proxy.url, script, drops=drops, parts=parts)
            for number, (legs, stream) in enumerate(zip(answers, streams, strict=False)):
                if number:
                    conversation.goes_on(f"and {number}?")
                conversation.answered(legs, stream=stream)

        holds()
