"""The official SDKs read every stream from which the tool loop dropped calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anthropic
import openai
import pytest

from tests.proxy.clients import KEY
from tests.proxy.legs import Call, Leg, Script, serving, tools, user
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement

ON = {"SIGHTLINE_TOOL": "on"}
OURS = Call("call_0123456789abcdef0", "analyze_image", {"images": ["sha256:" + "0" * 64], "question": "What?"})
AGAIN = Call("call_0123456789abcdef1", "view_image", {"path": "sha256:" + "0" * 64})
THEIRS = Call("call_0123456789abcdef2", "Read", {"path": "a.py"})
TALKS = {
    "one call": [Leg("I look.", (OURS,), "hm", 5), Leg("Found.", (), "aha", 6)],
    "no words": [Leg("", (OURS,)), Leg("", (AGAIN,)), Leg("Found.")],
    "two at once": [Leg("I look.", (OURS, AGAIN), used=5), Leg("Found.")],
    "beside": [Leg("I look and read.", (OURS, THEIRS, AGAIN), "hm")],
    "then theirs": [Leg("I look.", (OURS,), used=5), Leg("I read.", (THEIRS,))],
    "none": [Leg("analyze_image is a tool.", (), "analyze_image?")],
}
EVERY_TALK = pytest.mark.parametrize("legs", TALKS.values(), ids=TALKS.keys())


def words(legs: Sequence[Leg]) -> str:
    return "".join(leg.text for leg in legs)


def calls(legs: Sequence[Leg]) -> list[str]:
    return [call.id for call in legs[-1].visible.calls]


@EVERY_TALK
@requirement("loop.sdk")
def test_anthropic(tmp_path: Path, legs: list[Leg]) -> None:
    script = Script("anthropic", [*legs])
    with (
        serving(script) as server,
        sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy,
        anthropic.Anthropic(base_url=f"{proxy.url}/u/x", api_key=KEY, max_retries=0) as client,
    ):
        given = {"model": "m", "max_tokens": 99, "messages": [user("anthropic", "Hi.")], "tools": tools("anthropic")}
        with client.messages.stream(**given) as events:  # type: ignore[arg-type] # as JSON
            indexes = [event.index for event in events if event.type == "content_block_start"]
            message = events.get_final_message()
    assert indexes == list(range(len(message.content)))
    assert message.id == "msg_1"
    assert "".join(block.text for block in message.content if block.type == "text") == words(legs)
    assert [block.id for block in message.content if block.type == "tool_use"] == calls(legs)
    assert [block.thinking for block in message.content if block.type == "thinking"] == [
        leg.thought for leg in legs if leg.thought
    ]
    assert message.stop_reason == ("tool_use" if calls(legs) else "end_turn")
    assert message.usage.output_tokens == sum(leg.used for leg in legs)


@EVERY_TALK
@requirement("loop.sdk")
def test_openai_chat(tmp_path: Path, legs: list[Leg]) -> None:
    script = Script("openai_chat", [*legs])
    with (
        serving(script) as server,
        sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy,
        openai.OpenAI(base_url=f"{proxy.url}/u/x/v1", api_key=KEY, max_retries=0) as client,
        client.chat.completions.stream(
            model="m",
            messages=[{"role": "user", "content": "Hi."}],
            tools=tools("openai_chat"),  # type: ignore[arg-type] # as JSON
            stream_options={"include_usage": True},
        ) as events,
    ):
        for _ in events:
            pass
        done = events.get_final_completion()
    message = done.choices[0].message
    assert done.id == "chatcmpl-1"
    assert (message.content or "") == words(legs)
    assert [call.id for call in message.tool_calls or ()] == calls(legs)
    assert done.choices[0].finish_reason == ("tool_calls" if calls(legs) else "stop")
    assert done.usage is not None
    assert done.usage.completion_tokens == sum(leg.used for leg in legs)


@EVERY_TALK
@requirement("loop.sdk")
def test_openai_responses(tmp_path: Path, legs: list[Leg]) -> None:
    script = Script("openai_responses", [*legs])
    with (
        serving(script) as server,
        sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy,
        openai.OpenAI(base_url=f"{proxy.url}/u/x/v1", api_key=KEY, max_retries=0) as client,
        client.responses.stream(
            model="m",
            input=[{"role": "user", "content": "Hi."}],
            tools=tools("openai_responses"),  # type: ignore[arg-type] # as JSON
            store=False,
        ) as events,
    ):
        for _ in events:
            pass
        done = events.get_final_response()
    assert done.id == "resp_1"
    assert done.output_text == words(legs)
    assert [item.call_id for item in done.output if item.type == "function_call"] == calls(legs)
    assert done.usage is not None
    assert done.usage.output_tokens == sum(leg.used for leg in legs)
