"""What libraries change in an answer before they send it back: our calls are put back all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.wire.tool_loop.anthropic import _EMPTY_TEXT as EMPTY_TEXT
from tests.proxy.legs import Call, Json, Leg, Script, echo, heard, results, serving, user
from tests.proxy.running_proxy import sightline
from tests.proxy.test_tool_loop import ON, STRONG, ask, post
from tests.requirements import requirement

READ = Call("call_cccccccccccc0003", "Read", {"path": "a.py"})
EARLIER = [Leg("", (ask(),)), Leg("", (READ,))]  # our call in a leg of its own, before the client's
BESIDE = [Leg("", (ask(), READ))]
SPOKEN = [Leg("I will look.", (ask(),)), Leg("Now I read.", (READ,))]
LEGS = pytest.mark.parametrize("legs", [EARLIER, BESIDE, SPOKEN], ids=["earlier", "beside", "spoken"])
STREAMED = pytest.mark.parametrize("stream", [False, True])


def drop_ids(items: list[Json]) -> list[Json]:
    """Return contents as langchain-google-genai 4.4.2 and agno 3.1.10 send them: calls and responses have no ids."""

    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(each) for each in value]
        if isinstance(value, dict):
            return {key: bare(each) for key, each in value.items() if key != "id"}
        return value

    dropped: list[Json] = bare(items)
    return dropped


def is_ours(item: Json) -> bool:
    return any(json.dumps(name) in json.dumps(item) for name in (STRONG, "analyze_image"))


@STREAMED
@LEGS
@requirement("loop.clients")
def test_calls_are_restored_if_litellm_writes_a_text_before_the_clients_call(
    tmp_path: Path, legs: list[Leg], stream: bool
) -> None:
    """LiteLLM 1.106.2 does so if a client of Chat Completions has a call without text, and the upstream is Messages."""
    script = Script("anthropic", [*legs, Leg("Done.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user("anthropic", "Which code?")]
        whole = heard("anthropic", post(proxy, "anthropic", first, stream=stream).body, stream=stream)
        (message,) = echo("anthropic", whole)
        blank = " " if stream else ""  # other versions write one behind it
        texts = [] if legs is SPOKEN else [{"type": "text", "text": f"{EMPTY_TEXT}{blank}"}]
        changed = {**message, "content": [*texts, *message["content"]]}
        post(proxy, "anthropic", [*first, changed, *results("anthropic", [(READ, "x = 1")])])
        notes = [note for receipt in proxy.receipts for note in receipt.notes if "restored" in note]
    sent = script.items(-1)
    assert notes == []
    blocks = [block for item in sent for block in item["content"] if isinstance(block, dict)]
    assert [block["name"] for block in blocks if block["type"] == "tool_use"] == ["analyze_image", "Read"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert answered == [STRONG, READ.id]


@STREAMED
@LEGS
@requirement("loop.clients")
def test_calls_are_restored_for_gemini_clients_that_drop_ids(tmp_path: Path, legs: list[Leg], stream: bool) -> None:
    script = Script("gemini", [*legs, Leg("Done."), Leg("Else.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user("gemini", "Which code?")]
        whole = heard("gemini", post(proxy, "gemini", first, stream=stream).body, stream=stream)
        then = [*drop_ids(echo("gemini", whole)), *drop_ids(results("gemini", [(READ, "x = 1")]))]
        post(proxy, "gemini", [*first, *then])
        post(proxy, "gemini", [user("gemini", "Something else."), *then])
    parts = [part for item in script.items(-2) for part in item["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(call["name"], call.get("id")) for call in calls] == [("analyze_image", STRONG), ("Read", None)]
    answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
    assert answered == ["analyze_image", "Read"]
    assert not any(map(is_ours, script.items(-1))), "in another conversation nothing is guessed"


@STREAMED
@pytest.mark.parametrize("own_id", ["1", "7c9e6679-7425-40de-944b-e07fc1f90ae7"])
@requirement("loop.clients")
def test_calls_are_restored_for_gemini_clients_with_ids_of_their_own(tmp_path: Path, own_id: str, stream: bool) -> None:
    script = Script("gemini", [*BESIDE, Leg("Done."), Leg("Else.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user("gemini", "Which code?")]
        whole = heard("gemini", post(proxy, "gemini", first, stream=stream).body, stream=stream)
        answered = [*echo("gemini", whole), *results("gemini", [(READ, "x = 1")])]
        then = json.loads(json.dumps(answered).replace(READ.id, own_id))
        post(proxy, "gemini", [*first, *then])
        post(proxy, "gemini", [user("gemini", "Something else."), *then])
    parts = [part for item in script.items(-2) for part in item["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(call["name"], call.get("id")) for call in calls] == [("analyze_image", STRONG), ("Read", own_id)]
    assert not any(map(is_ours, script.items(-1))), "in another conversation nothing is guessed"


@requirement("loop.clients", "loop.resumed")
def test_a_call_without_id_is_restored_by_another_process(tmp_path: Path) -> None:
    script = Script("gemini", [*BESIDE, Leg("Done.")])
    first = [user("gemini", "Which code?")]
    with serving(script) as server:
        with sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
            whole = heard("gemini", post(proxy, "gemini", first).body, stream=False)
        then = [*drop_ids(echo("gemini", whole)), *drop_ids(results("gemini", [(READ, "x = 1")]))]
        with sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
            post(proxy, "gemini", [*first, *then])
    assert any(map(is_ours, script.items(-1)))
