"""The tool loop: the model calls our tools, the proxy answers, and the client does not see it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sightline.surfaces.proxy.tool_loop import MAX_LEGS
from sightline.surfaces.proxy.tool_loop.calls import _ANSWER_CHANGED as CHANGED
from sightline.surfaces.proxy.tool_loop.calls import _LAST_CALL as LAST
from tests.proxy.clients import image_block, text
from tests.proxy.four_wires import asked
from tests.proxy.legs import (
    ITEMS,
    WIRES,
    Call,
    Json,
    Leg,
    Script,
    body,
    echo,
    events,
    heard,
    joined,
    path,
    results,
    said,
    seen,
    serving,
    tools,
    user,
)
from tests.proxy.raw_http import Got, exchange, head, plug, until
from tests.proxy.running_proxy import Running, sightline
from tests.reader.pictures import page, saved
from tests.requirements import requirement
from tests.scripted.faults import Cut
from tests.scripted.server import Reply

ON = {"SIGHTLINE_TOOL": "on"}
BLIND = {"SIGHTLINE_MODELS": json.dumps({"m": {"vision": False}}), "SIGHTLINE_SEER": "local"}
NOBODY = "sha256:" + "0" * 64
STRONG = "call_a1b2c3d4e5f6a7b8"
EVERY_WAY = pytest.mark.parametrize(("wire", "stream"), [(wire, stream) for wire in WIRES for stream in (False, True)])
EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)


def ask(call: str = STRONG, question: str = "Which code?") -> Call:
    return Call(call, "analyze_image", {"images": [NOBODY], "question": question})


def post(proxy: Running, wire: str, items: Sequence[Json], *, stream: bool = False, **more: Any) -> Got:
    asked = json.dumps(body(wire, items, stream=stream, **more)).encode()
    return exchange(proxy.url, path(wire, stream=stream), asked)


def names(wire: str, given: Json) -> list[str]:
    listed = given["tools"][0]["functionDeclarations"] if wire == "gemini" else given["tools"]
    return [(each.get("function") or each)["name"] for each in listed]


def brought(item: Json) -> str:
    """What a call of ours brought: the words of an error, here."""
    found = json.dumps(item)
    words: str = json.JSONDecoder().raw_decode(found, found.index('"Error'))[0]
    return words


class Spoken:
    """One answer in two legs, and the conversation that a client holds after it."""

    def __init__(self, wire: str, proxy: Running, script: Script, first: str = "Which code?") -> None:
        self.first = [user(wire, first)]
        whole = heard(wire, post(proxy, wire, self.first).body, stream=False)
        self.echo = echo(wire, whole)
        self.told = script.items(-1)[len(self.first) + len(said(wire, LOOKS)) :]
        self.holds = [*self.first, *self.echo]
        self.whole = [*self.first, *said(wire, LOOKS), *self.told, *said(wire, FOUND)]


QUESTIONS = ("What text is there?", "Read the text", "Read all the text")
LOOKS = Leg("I will look.", (ask(),), "hm")
FOUND = Leg("It is E42.", (), "aha")


@EVERY_WAY
@requirement("loop.served", "loop.one_message", "loop.usage")
def test_our_call_is_answered_in_the_loop_and_restored_later(tmp_path: Path, wire: str, stream: bool) -> None:
    script = Script(wire, [LOOKS, FOUND, Leg("You are welcome.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user(wire, "Which code?")]
        got = post(proxy, wire, first, stream=stream)
        whole = heard(wire, got.body, stream=stream)
        assert seen(wire, whole) == joined(wire, [LOOKS, FOUND])
        assert "_1" in str(whole.get("id", whole.get("responseId"))) or "-1" in str(whole.get("id"))
        told = results(wire, [(LOOKS.asks[0], brought(script.items(1)[-1]))])
        assert script.items(1) == [*first, *said(wire, LOOKS), *told]
        then = [*first, *echo(wire, whole), user(wire, "Thanks.")]
        post(proxy, wire, then, stream=stream)
        assert script.items(2) == [*first, *said(wire, LOOKS), *told, *said(wire, FOUND), user(wire, "Thanks.")]
        notes = [note for receipt in proxy.receipts for note in receipt.notes]
    assert [note[:6] for note in notes] == ["leg 1:", "leg 2:"]
    assert "asked analyze_image" in notes[0]


@EVERY_WIRE
@requirement("loop.injected", "FR-1.1")
def test_our_tools_are_last_and_the_same_bytes_in_every_request(tmp_path: Path, wire: str) -> None:
    script = Script(wire, [Leg("One."), Leg("Two."), LOOKS, FOUND])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        post(proxy, wire, [user(wire, "Hello.")])
        post(proxy, wire, [user(wire, "Hello."), *said(wire, Leg("One.")), user(wire, "And?")], stream=True)
        post(proxy, wire, [user(wire, "Look.")])
    assert len({json.dumps(given["tools"]) for given in script.asked}) == 1
    assert names(wire, script.asked[0]) == ["Read", "analyze_image", "view_image"]


@EVERY_WIRE
@requirement("FR-1.1", "loop.injected")
def test_blind_models_get_analyze_image_and_others_only_when_the_user_wants_it(tmp_path: Path, wire: str) -> None:
    offered = {}
    for name, env in {"blind": BLIND, "seeing": {}, "off": {**BLIND, "SIGHTLINE_TOOL": "off"}}.items():
        script = Script(wire, [Leg("One.")])
        where = tmp_path / name
        with serving(script) as server, sightline(where, f"x=http://127.0.0.1:{server.port}", env=env) as proxy:
            post(proxy, wire, [user(wire, "Hello.")])
        offered[name] = names(wire, script.asked[0])
    assert offered == {"blind": ["Read", "analyze_image"], "seeing": ["Read"], "off": ["Read"]}


@requirement("tools.toolset.doors")
def test_the_toolset_gates_what_is_offered_in_a_conversation(tmp_path: Path) -> None:
    script = Script("openai_chat", [Leg("One.")])
    env = {**ON, "SIGHTLINE_TOOLSET": "view_image"}
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=env) as proxy:
        post(proxy, "openai_chat", [user("openai_chat", "Hello.")])
    assert names("openai_chat", script.asked[0]) == ["Read", "view_image"]


FORCED: dict[str, list[Json]] = {
    "anthropic": [{"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "tool", "name": "Read"}}, {"tools": []}],
    "openai_chat": [{"tool_choice": "required"}, {"tool_choice": "none"}, {"n": 2}, {"tools": []}],
    "openai_responses": [
        {"tool_choice": "required"},
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"store": True},
        {"tools": []},
    ],
    "gemini": [
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"generationConfig": {"candidateCount": 2}},
        {"cachedContent": "cachedContents/1"},
        {"tools": [{"googleSearch": {}}]},
    ],
}
CASES = [(wire, more) for wire in WIRES for more in FORCED[wire]]


@pytest.mark.parametrize(("wire", "more"), CASES, ids=[f"{wire} {json.dumps(more)[:40]}" for wire, more in CASES])
@requirement("loop.injected")
def test_no_tool_is_offered_if_it_would_change_the_request(tmp_path: Path, wire: str, more: Json) -> None:
    script = Script(wire, [Leg("One.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        post(proxy, wire, [user(wire, "Hello.")], **more)
    assert script.asked[0].get("tools") == more.get("tools", tools(wire))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stored", [{"store": True}, {"store": None}, {}])
@requirement("loop.injected", "loop.stored")
def test_a_stateless_upstream_ignores_the_store_field(tmp_path: Path, stored: Json, stream: bool) -> None:
    """An upstream that is known to keep no answer; a request that names one is none of ours all the same."""
    wire = "openai_responses"
    script = Script(wire, [LOOKS, FOUND, Leg("Bye."), Leg("No.")])

    def sent(items: Sequence[Json], **more: Any) -> bytes:
        whole = {**body(wire, items, stream=stream), **more}
        given = {key: value for key, value in whole.items() if key != "store"} | stored
        return exchange(proxy.url, "/u/deepseek/v1/responses", json.dumps(given).encode()).body

    with serving(script) as server, sightline(tmp_path, f"deepseek=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user(wire, "Which code?")]
        whole = heard(wire, sent(first), stream=stream)
        sent([*first, *echo(wire, whole), user(wire, "Thanks.")])
        sent([user(wire, "And?")], previous_response_id="resp_1")
    assert seen(wire, whole) == joined(wire, [LOOKS, FOUND])
    told = script.items(1)[len(first) + len(said(wire, LOOKS)) :]
    assert script.items(2) == [*first, *said(wire, LOOKS), *told, *said(wire, FOUND), user(wire, "Thanks.")]
    assert ["analyze_image" in names(wire, given) for given in script.asked] == [True, True, True, False]


@EVERY_WIRE
@requirement("loop.injected")
def test_the_clients_tool_of_the_same_name_wins(tmp_path: Path, wire: str) -> None:
    own = json.loads(json.dumps(tools(wire)).replace('"Read"', '"analyze_image"'))
    mcp = json.loads(json.dumps(tools(wire)).replace('"Read"', '"mcp__sightline__analyze_image"'))
    call = Leg("", (Call(STRONG, "analyze_image", {"path": "x"}),))
    script = Script(wire, [call, Leg("Two.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        got = post(proxy, wire, [user(wire, "Hello.")], tools=own)
        post(proxy, wire, [user(wire, "Hello.")], tools=mcp)
    assert names(wire, script.asked[0]) == ["analyze_image", "view_image"]
    assert names(wire, script.asked[1]) == ["mcp__sightline__analyze_image", "view_image"]
    assert "analyze_image" in got.body.decode(), "the client answers its own calls"


@requirement("loop.injected")
def test_our_mcp_tool_wins_also_inside_a_namespace(tmp_path: Path) -> None:
    """As Codex brings the tools of an MCP server."""
    inner = [{"type": "function", "name": "analyze_image", "parameters": {"type": "object", "properties": {}}}]
    space = {"type": "namespace", "name": "mcp__sightline", "description": "Sightline", "tools": inner}
    script = Script("openai_responses", [Leg("One.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        post(proxy, "openai_responses", [user("openai_responses", "Hello.")], tools=[space])
    assert names("openai_responses", script.asked[0]) == ["mcp__sightline", "view_image"]


@EVERY_WAY
@requirement("loop.eight")
def test_the_loop_ends_with_an_error_after_eight_legs(tmp_path: Path, wire: str, stream: bool) -> None:
    script = Script(wire, [Leg(f"{n}", (ask(f"call_{n:016x}"),)) for n in range(20)])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        got = post(proxy, wire, [user(wire, "Look.")], stream=stream)
    assert len(script.asked) == MAX_LEGS
    assert json.dumps(LAST)[1:-1] in json.dumps(script.items(-1)[-1])
    assert re.search(rf"Sightline: [^\"]*\b{MAX_LEGS}\b", got.body.decode())
    assert got.status == (200 if stream else 400)


@EVERY_WAY
@requirement("loop.fails")
def test_a_leg_that_fails_is_an_error_of_the_wire(tmp_path: Path, wire: str, stream: bool) -> None:
    error = {"error": {"message": "overloaded, come again", "code": 529, "status": "UNAVAILABLE"}}
    failing = Reply(529, (("content-type", "application/json"),), (json.dumps(error).encode(),))
    script = Script(wire, [LOOKS, failing])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        got = post(proxy, wire, [user(wire, "Look.")], stream=stream)
    assert "come again" in got.body.decode()
    if not stream:
        assert (got.status, json.loads(got.body)) == (529, error), "nothing has gone out: it goes on as it is"
        return
    ends = (b"message_stop", b"[DONE]", b"response.completed", b"finishReason")
    assert got.status == 200
    assert b"I wil" in got.body
    assert not any(end in got.body for end in ends)


@EVERY_WIRE
@requirement("loop.fails")
def test_a_leg_that_breaks_off_does_not_look_complete(tmp_path: Path, wire: str) -> None:
    cut = Reply(
        200,
        (("content-type", "text/event-stream"),),
        tuple(events(wire, FOUND, "2")),
        streamed=True,
        fault=Cut(after=3),
    )
    script = Script(wire, [LOOKS, cut])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        got = post(proxy, wire, [user(wire, "Look.")], stream=True)
    assert "broke off" in got.body.decode()
    ends = (b"message_stop", b"[DONE]", b"response.completed", b"finishReason")
    assert not any(end in got.body for end in ends)


@requirement("loop.eight")
def test_a_disconnect_ends_the_loop(tmp_path: Path) -> None:
    script = Script("anthropic", [Leg(f"{n}", (ask(f"call_{n:016x}"),)) for n in range(20)])
    asked = json.dumps(body("anthropic", [user("anthropic", "Look.")], stream=True)).encode()
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        rest = proxy.tasks()
        with plug(proxy.url) as connection:
            connection.sendall(head("/u/x/v1/messages", len(asked)) + asked)
            until(connection, b"content_block_delta")
            connection.shutdown(socket.SHUT_RDWR)
        for _ in range(500):
            if proxy.tasks() <= rest:
                break
            exchange(proxy.url, "/sightline/health", method="GET")
        assert proxy.tasks() <= rest
    assert len(script.asked) <= MAX_LEGS


@EVERY_WIRE
@requirement("loop.resumed")
def test_another_process_restores_calls_from_the_same_record(tmp_path: Path, wire: str) -> None:
    script = Script(wire, [LOOKS, FOUND, Leg("Bye."), Leg("Bye.")])
    with serving(script) as server:
        where = f"x=http://127.0.0.1:{server.port}"
        with sightline(tmp_path, where, env=ON) as proxy:
            spoken = Spoken(wire, proxy, script)
        with sightline(tmp_path, where, env=ON) as first, sightline(tmp_path, where, env=ON) as second:
            post(first, wire, [*spoken.holds, user(wire, "Thanks.")])
            post(second, wire, [*spoken.holds, user(wire, "Thanks."), *said(wire, Leg("Bye.")), user(wire, "!")])
    assert script.items(2) == [*spoken.whole, user(wire, "Thanks.")]
    assert script.items(3) == [*script.items(2), *said(wire, Leg("Bye.")), user(wire, "!")]


@EVERY_WIRE
@requirement("loop.substituted")
def test_a_changed_answer_or_conversation_is_not_restored(tmp_path: Path, wire: str) -> None:
    script = Script(wire, [LOOKS, FOUND, *([Leg("Bye.")] * 3)])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        spoken = Spoken(wire, proxy, script)
        changed = json.loads(json.dumps(spoken.echo).replace("E42", "E43"))
        edited, compacted = [*spoken.first, *changed], [user(wire, "In short: a code."), *spoken.echo]
        forked = [*spoken.holds, user(wire, "Another question.")]
        for items in (edited, compacted, forked):
            post(proxy, wire, [*items, user(wire, "?")])
    assert script.items(2) == [*edited, user(wire, "?")]
    assert script.items(3) == [*compacted, user(wire, "?")]
    assert script.items(4) == [*spoken.whole, user(wire, "Another question."), user(wire, "?")]


@EVERY_WIRE
@requirement("loop.substituted")
def test_a_call_is_recognized_by_its_id_after_a_compaction(tmp_path: Path, wire: str) -> None:
    read = Leg("Now the file.", (Call("call_ffffeeeeddddcccc1", "Read", {"path": "a.py"}),))
    script = Script(wire, [LOOKS, read, Leg("Bye."), Leg("Bye.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user(wire, "Look and read.")]
        whole = heard(wire, post(proxy, wire, first).body, stream=False)
        told = script.items(1)[len(first) + len(said(wire, LOOKS)) :]
        brings = results(wire, [(read.calls[0], "print(1)")])
        short = [user(wire, "In short: look and read.")]
        post(proxy, wire, [*short, *echo(wire, whole), *brings])
        assert script.items(2) == [*short, *said(wire, LOOKS), *told, *said(wire, read), *brings]
        changed = json.loads(json.dumps(echo(wire, whole)).replace("Now the file", "Now a file"))
        post(proxy, wire, [*first, *changed, *brings], system="x" if wire == "anthropic" else None)
        assert script.items(3) == [*first, *changed, *brings]
        notes = [note for receipt in proxy.receipts for note in receipt.notes]
        assert notes.count(CHANGED) == 1


@requirement("loop.rate")
def test_the_quota_of_a_turn_is_reported_to_the_model(tmp_path: Path) -> None:
    picture = saved(page(["E17", "E23", "E42"]))

    def asks(number: int) -> Any:
        def looks(given: Json) -> Leg:
            sha = re.search(r"sha256:[0-9a-f]{64}", json.dumps(given["messages"]))
            assert sha
            call = Call(f"call_{number:016x}", "analyze_image", {"images": [sha[0]], "question": QUESTIONS[number]})
            return Leg("", (call,))

        return looks

    script = Script("anthropic", [asks(0), asks(1), asks(2), Leg("I give up.")])
    env = {**BLIND, "SIGHTLINE_MAX_TOOL_CALLS_PER_TURN": "1"}
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=env) as proxy:
        post(proxy, "anthropic", [{"role": "user", "content": [image_block(picture), text("Which?")]}])
    told = [json.dumps(script.items(n)[-1]) for n in (1, 2, 3)]
    assert "vision_proxy_analysis" in told[0]
    assert all("maxToolCallsPerTurn" in each for each in told[1:])


@EVERY_WIRE
def test_token_counts_include_our_tools_and_results(tmp_path: Path, wire: str) -> None:
    if wire not in ("anthropic", "gemini"):
        return
    script = Script(wire, [LOOKS, FOUND, Leg("")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        spoken = Spoken(wire, proxy, script)
        where = "/u/x/v1/messages/count_tokens" if wire == "anthropic" else "/u/x/v1beta/models/m:countTokens"
        items = [*spoken.holds, user(wire, "Thanks.")]
        asked = {"model": "m", "tools": tools(wire), ITEMS[wire]: items}
        exchange(proxy.url, where, json.dumps(asked).encode())
    assert script.items(2) == [*spoken.whole, user(wire, "Thanks.")]
    assert "analyze_image" in names(wire, script.asked[2])


@requirement("loop.refused")
def test_an_upstream_that_rejects_our_tool_is_asked_without_it(tmp_path: Path) -> None:
    words = {"error": {"message": "Invalid schema for function 'analyze_image'", "type": "invalid_request_error"}}
    no = Reply(400, (("content-type", "application/json"),), (json.dumps(words).encode(),))
    script = Script("openai_chat", [no, Leg("Hello.")])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        got = post(proxy, "openai_chat", [user("openai_chat", "Hi.")])
    assert got.status == 200
    assert names("openai_chat", script.asked[1]) == ["Read"]


@EVERY_WAY
@requirement("loop.served", "tell.tool_named")
def test_a_blind_model_finds_a_detail_with_a_crop(tmp_path: Path, wire: str, stream: bool) -> None:
    """Asked for the third error code of a pasted screenshot, it looks at the part of it where that stands."""
    picture = saved(page(["E17 disk is full", "E23 no route", "E42 wrong key"]))

    def looks(given: Json) -> Leg:
        told = json.dumps(given)
        assert "analyze_image" in told
        found = re.search(r"sha256:[0-9a-f]{64}", told)
        assert found
        crop = [{"image_index": 0, "normalized": {"x": 0, "y": 0.26, "width": 1, "height": 0.2}}]
        arguments = {"images": [found[0]], "question": "What text is there?", "crop": crop}
        return Leg("Let me see.", (Call(STRONG, "analyze_image", arguments),))

    def answers(given: Json) -> Leg:
        told = json.dumps(given[ITEMS[wire]][-1])
        assert "E17" not in told, "only the crop was looked at"
        code = re.search(r"E\d+ wrong key", told)
        assert code
        return Leg(f"The third code is {code[0][:3]}.")

    script = Script(wire, [looks, answers])
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=BLIND) as proxy:
        got = post(proxy, wire, [asked(wire, "What is the third error code?", picture)], stream=stream)
    whole = heard(wire, got.body, stream=stream)
    assert seen(wire, whole) == joined(wire, [Leg("Let me see."), Leg("The third code is E42.")])


@EVERY_WIRE
@requirement("loop.consent")
def test_the_model_reads_the_command_that_gives_consent(tmp_path: Path, wire: str) -> None:
    script = Script(wire, [LOOKS, Leg("I may not.")])
    env = {**ON, "SIGHTLINE_PROVIDER": "openai", "SIGHTLINE_MODEL_ID": "gpt-5", "OPENAI_API_KEY": "sk-none"}
    picture = saved(page(["E17"]))

    def looks(given: Json) -> Leg:
        found = re.search(r"sha256:[0-9a-f]{64}", json.dumps(given[ITEMS[wire]]))
        assert found
        return Leg("", (Call(STRONG, "analyze_image", {"images": [found[0]], "question": "What?"}),))

    script.legs[0] = looks
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=env) as proxy:
        post(proxy, wire, [asked(wire, "What is it?", picture)])
    assert "sightline consent yes openai" in json.dumps(script.items(1)[-1])
