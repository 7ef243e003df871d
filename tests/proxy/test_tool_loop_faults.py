"""The tool loop when something fails: incomplete answers, rejections, and records that cannot be written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest

from sightline.model.scene import Replace
from sightline.store.record_folder import DATABASE_NAME
from sightline.surfaces.proxy.tool_loop import MAX_CALLS, MAX_LEGS, NOT_RESTORED
from sightline.surfaces.proxy.tool_loop.calls import _INTERRUPTED as INTERRUPTED
from sightline.surfaces.proxy.tool_loop.calls import _TOO_MANY_CALLS as TOO_MANY
from sightline.wire.tool_loop.leg import forbid_calls
from tests.proxy.four_wires import asked
from tests.proxy.legs import (
    Call,
    Json,
    Leg,
    Script,
    answer,
    body,
    echo,
    events,
    heard,
    joined,
    results,
    said,
    seen,
    serving,
    tools,
    user,
)
from tests.proxy.raw_http import exchange, head, plug, until
from tests.proxy.running_proxy import Running, sightline
from tests.proxy.test_tool_loop import BLIND, EVERY_WAY, EVERY_WIRE, ON, QUESTIONS, STRONG, ask, post
from tests.proxy.test_tool_loop_law import used
from tests.reader.pictures import page, saved
from tests.requirements import requirement
from tests.scripted.faults import Hang
from tests.scripted.server import Reply

SECOND = "call_bbbbbbbbbbbb0002"
READ = Call("call_cccccccccccc0003", "Read", {"path": "a.py"})
LOOKS = Leg("I will look.", (ask(),))
FOUND = Leg("It is E42.")
GEMINI_CUT = {"finishReason": "MAX_TOKENS"}


def whole(answered: Json, status: int = 200) -> Reply:
    return Reply(status, (("content-type", "application/json"),), (json.dumps(answered).encode(),))


@contextmanager
def world(
    home: Path,
    wire: str,
    legs: Sequence[Leg | Reply | Callable[[Json], Leg]],
    env: dict[str, str] | None = None,
    patience: float = 10.0,
) -> Iterator[tuple[Script, Running]]:
    script = Script(wire, [*legs])
    where = env if env is not None else ON
    with (
        serving(script) as server,
        sightline(home, f"x=http://127.0.0.1:{server.port}", env=where, patience=patience) as proxy,
    ):
        yield script, proxy


@EVERY_WIRE
@requirement("loop.served")
def test_the_content_length_of_a_stream_is_dropped(tmp_path: Path, wire: str) -> None:
    told = [b"".join(events(wire, leg, str(number))) for number, leg in enumerate((LOOKS, FOUND))]
    legs = [Reply(200, (("content-type", "text/event-stream"),), (each,)) for each in told]
    with world(tmp_path, wire, legs) as (_, proxy):
        got = post(proxy, wire, [user(wire, "Which code?")], stream=True)
    assert seen(wire, heard(wire, got.body, stream=True)) == joined(wire, [LOOKS, FOUND])


def cut_short(wire: str, leg: Leg) -> Json:
    """An answer that ended because there was no room for more of it."""
    made = answer(wire, leg, "2")
    if wire == "anthropic":
        return {**made, "stop_reason": "max_tokens"}
    if wire == "openai_responses":
        return {**made, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    key, end = ("choices", {"finish_reason": "length"}) if wire == "openai_chat" else ("candidates", GEMINI_CUT)
    return {**made, key: [{**made[key][0], **end}]}


@EVERY_WIRE
@requirement("loop.substituted")
def test_an_incomplete_call_is_never_restored(tmp_path: Path, wire: str) -> None:
    half = Leg("Half.", (ask(SECOND),))
    with world(tmp_path, wire, [LOOKS, whole(cut_short(wire, half)), Leg("Bye.")]) as (script, proxy):
        first = [user(wire, "Which code?")]
        got = heard(wire, post(proxy, wire, first).body, stream=False)
        post(proxy, wire, [*first, *echo(wire, got), user(wire, "Go on.")])
    told = script.items(1)[len(first) + len(said(wire, LOOKS)) :]
    later = [*first, *said(wire, LOOKS), *told, *echo(wire, answer(wire, Leg("Half."), "2")), user(wire, "Go on.")]
    assert without_ids(script.items(2)) == without_ids(later)


def without_ids(items: list[Json]) -> str:
    return json.dumps([{key: value for key, value in item.items() if key not in ("id", "status")} for item in items])


@EVERY_WIRE
@requirement("loop.kept")
def test_a_call_without_a_stored_result_gets_one_as_interrupted(tmp_path: Path, wire: str) -> None:
    beside = Leg("Now.", (READ, ask(SECOND)))
    brings = results(wire, [(READ, "print(1)")])
    with world(tmp_path, wire, [beside]) as (_, proxy):
        first = [user(wire, "Look and read.")]
        got = heard(wire, post(proxy, wire, first).body, stream=False)
    full = "CREATE TRIGGER full BEFORE UPDATE OF results ON legs BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    with closing(sqlite3.connect(next(tmp_path.rglob(DATABASE_NAME)))) as database, database:
        database.execute("UPDATE legs SET results = NULL, made = 0")
        database.execute(full)
    with world(tmp_path, wire, [Leg("Bye.")]) as (script, proxy):
        post(proxy, wire, [*first, *echo(wire, got), *brings])
    told = json.dumps(script.items(0))
    assert told.count(INTERRUPTED.text) == 1


@requirement("loop.substituted")
def test_answers_are_restored_only_on_their_own_wire(tmp_path: Path) -> None:
    for number, calls in enumerate(((), (READ,))):
        messages, chat = Script("anthropic", [LOOKS, Leg("E42.", calls)]), Script("openai_chat", [Leg("Bye.")])
        with (
            serving(messages) as one,
            serving(chat) as two,
            sightline(
                tmp_path / str(number), f"x=http://127.0.0.1:{one.port}", f"y=http://127.0.0.1:{two.port}", env=ON
            ) as proxy,
        ):
            post(proxy, "anthropic", [user("anthropic", "Which?")])
            echoed = said("openai_chat", Leg("I will look.E42.", calls))
            brings = results("openai_chat", [(call, "print(1)") for call in calls])
            items = [user("openai_chat", "Which?"), *echoed, *brings, user("openai_chat", "And?")]
            asked = json.dumps(body("openai_chat", items, stream=False)).encode()
            exchange(proxy.url, "/u/y/v1/chat/completions", asked)
        assert chat.items(0) == items


@EVERY_WIRE
@requirement("loop.rate")
def test_every_call_of_a_leg_has_a_result_even_beyond_the_limit(tmp_path: Path, wire: str) -> None:
    many = Leg("", tuple(ask(f"call_{number:016x}") for number in range(MAX_CALLS + 12)))
    with world(tmp_path, wire, [many, FOUND]) as (script, proxy):
        got = post(proxy, wire, [user(wire, "Look.")])
    told = json.dumps(script.items(1))
    assert (told.count("Error (not_found)"), told.count(TOO_MANY.text)) == (MAX_CALLS, 12)
    assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [FOUND])


class Eye:
    """A model on this machine that sees, and takes its time for what is asked of a place."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.answers = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self._says({"data": [{"id": "eye"}]})

            def do_POST(self) -> None:
                if b"what is at" in self.rfile.read(int(self.headers["content-length"])):
                    owner.asked.release()
                    owner.answers.wait(60)
                self._says(answer("openai_chat", Leg("E42"), "eye"))

            def _says(self, said: Json) -> None:
                data = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def env(self) -> dict[str, str]:
        where = {"lmstudio": {"baseUrl": f"http://127.0.0.1:{self.server.server_port}/v1"}}
        return {
            "SIGHTLINE_MODELS": json.dumps({"m": {"vision": False}, "eye": {"vision": True}}),
            "SIGHTLINE_UPSTREAMS": json.dumps(where),
            "SIGHTLINE_PROVIDER": "lmstudio",
            "SIGHTLINE_MODEL_ID": "eye",
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self.server.shutdown()
        self.server.server_close()


@requirement("loop.served")
def test_slow_calls_do_not_block_other_requests(tmp_path: Path) -> None:
    wire, picture = "anthropic", saved(page(["E17", "E42"]))
    usual = min(32, (os.cpu_count() or 1) + 4)  # threads of an event loop, for everything
    clients = usual // MAX_CALLS + 1

    sha = f"sha256:{hashlib.sha256(picture).hexdigest()}"

    def says(given: Json) -> Leg:
        told = json.dumps(given["messages"])
        client = re.search(r"number (\d)", told)
        if "tool_result" in told or client is None:
            return LOOKS if "Look once" in told and "tool_result" not in told else FOUND
        asks = [{"images": [sha], "question": f"{client[1]}: what is at {n}?"} for n in range(MAX_CALLS)]
        return Leg("", tuple(Call(f"toolu_{n:016x}", "analyze_image", given) for n, given in enumerate(asks)))

    with Eye() as eye, world(tmp_path, wire, [says] * 99, env=eye.env) as (script, proxy):
        post(proxy, wire, [asked(wire, "See.", picture)])
        first = [user(wire, "Look once.")]
        holds = [*first, *echo(wire, heard(wire, post(proxy, wire, first).body, stream=False))]
        looking = [
            threading.Thread(target=post, args=(proxy, wire, [asked(wire, f"I am number {n}.", picture)]))
            for n in range(clients)
        ]
        for each in looking:
            each.start()
        try:
            for _ in range(min(usual, clients * MAX_CALLS)):
                assert eye.asked.acquire(timeout=30)
            assert post(proxy, wire, [*holds, user(wire, "And?")]).status == 200
            assert "analyze_image" in json.dumps(script.items(-1))
        finally:
            eye.answers.set()
            for each in looking:
                each.join()


NO = {"error": {"message": "tool_use ids were found without results", "type": "invalid_request_error", "code": 400}}


@EVERY_WIRE
@requirement("loop.refused")
def test_an_upstream_that_rejects_restored_calls_gets_the_original(tmp_path: Path, wire: str) -> None:
    """If it rejects that too, it gets only that when the client repeats it; this says nothing about our calls."""
    legs: list[Leg | Reply] = [LOOKS, FOUND, whole(NO, 422), *[whole(NO, 400)] * 2, *[Leg("Bye.")] * 2]
    with world(tmp_path, wire, legs) as (script, proxy):
        first = [user(wire, "Which code?")]
        then = [*first, *echo(wire, heard(wire, post(proxy, wire, first).body, stream=False)), user(wire, "And?")]
        assert (post(proxy, wire, then).status, len(script.asked)) == (400, 5)
        for _ in range(2):
            got = post(proxy, wire, then)
            assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [Leg("Bye.")])
    restored = ["analyze_image" in json.dumps(script.items(number)) for number in range(2, len(script.asked))]
    assert restored == [True, False, False, False, True]
    assert script.items(3) == script.items(4) == script.items(5) == then
    assert script.asked[4] == script.asked[5] == body(wire, then, stream=False), "the client's own, without our tools"


@EVERY_WIRE
@requirement("loop.refused")
def test_rejected_calls_are_not_restored_again(tmp_path: Path, wire: str) -> None:
    """And it is told once; what is looked up later has its own trial."""
    legs: list[Leg | Reply] = [
        LOOKS,
        FOUND,
        whole(NO, 400),
        Leg("Yes.", ()),
        replace(LOOKS, calls=(ask(SECOND),)),
        Leg("E43."),
        *[FOUND] * 2,
    ]
    with world(tmp_path, wire, legs) as (script, proxy):
        holds = [user(wire, "Which code?")]
        for words in ("Sure?", "And that?", "Thanks."):
            holds += [*echo(wire, heard(wire, post(proxy, wire, holds).body, stream=False)), user(wire, words)]
        post(proxy, wire, holds)
        notes = [note for receipt in proxy.receipts for note in receipt.notes]
    told = [json.dumps(script.items(number)) for number in range(len(script.asked))]
    assert [STRONG in each for each in told] == [False, True, True, *[False] * 4]
    assert [SECOND in each for each in told][4:] == [False, True, True]
    assert notes.count(NOT_RESTORED) == 1


@EVERY_WIRE
@requirement("loop.substituted")
def test_calls_are_not_restored_without_tools(tmp_path: Path, wire: str) -> None:
    with world(tmp_path, wire, [LOOKS, FOUND, Leg("A title.")]) as (script, proxy):
        first = [user(wire, "Which code?")]
        then = [*first, *echo(wire, heard(wire, post(proxy, wire, first).body, stream=False)), user(wire, "A title?")]
        post(proxy, wire, then, tools=[])
    assert script.items(2) == then


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "openai_responses"])
@requirement("loop.injected")
def test_a_seeing_model_may_call_tools_of_its_conversation(tmp_path: Path, wire: str) -> None:
    env = {"SIGHTLINE_MODELS": json.dumps({"m": {"vision": False}, "sees": {"vision": True}})}
    again = Leg("Again.", (ask(SECOND),))
    with world(tmp_path, wire, [LOOKS, FOUND, again, FOUND, FOUND], env=env) as (script, proxy):
        first = [user(wire, "Which code?")]
        then = [*first, *echo(wire, heard(wire, post(proxy, wire, first).body, stream=False)), user(wire, "Sure?")]
        got = post(proxy, wire, then, model="sees")
        post(proxy, wire, first, model="sees")
    assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [again, FOUND])
    assert script.asked[1]["tools"] == script.asked[2]["tools"] == script.asked[3]["tools"]
    assert "analyze_image" not in json.dumps(script.asked[4]), "where it never called, it is not asked to"


@EVERY_WIRE
@requirement("loop.refused")
def test_a_rejected_tool_is_offered_once(tmp_path: Path, wire: str) -> None:
    no = whole({"error": {"message": "Invalid schema for function 'analyze_image'", "code": 400}}, 400)
    with world(tmp_path, wire, [no, Leg("One."), Leg("Two.")]) as (script, proxy):
        for _ in range(2):
            assert post(proxy, wire, [user(wire, "Hi.")]).status == 200
    assert ["analyze_image" in json.dumps(asked["tools"]) for asked in script.asked] == [True, False, False]


@EVERY_WIRE
@requirement("loop.one_message")
def test_a_json_leg_continues_a_stream(tmp_path: Path, wire: str) -> None:
    more, last = (whole(answer(wire, leg, leg.text)) for leg in (Leg("Once more.", (ask(SECOND),)), FOUND))
    with world(tmp_path, wire, [LOOKS, more, last, FOUND]) as (script, proxy):
        first = [user(wire, "Which code?")]
        got = heard(wire, post(proxy, wire, first, stream=True).body, stream=True)
        assert seen(wire, got) == joined(wire, [LOOKS, Leg("Once more."), FOUND])
        post(proxy, wire, [*first, *echo(wire, got), user(wire, "And?")])
    assert json.dumps(script.items(3)).count('"analyze_image"') == json.dumps(script.items(2)).count('"analyze_image"')


@EVERY_WAY
@requirement("loop.one_message", "loop.usage")
def test_a_streamed_leg_continues_a_json_answer(tmp_path: Path, wire: str, stream: bool) -> None:
    looks, again, last = replace(LOOKS, used=3), Leg("Once more.", (ask(SECOND),), used=4), replace(FOUND, used=5)
    parts = tuple(events(wire, again, "2"))
    streamed = Reply(200, (("content-type", "text/event-stream"),), parts, streamed=True)
    legs: list[Leg | Reply] = [whole(answer(wire, looks, "1")), streamed, whole(answer(wire, last, "3")), FOUND]
    with world(tmp_path, wire, legs) as (script, proxy):
        first = [user(wire, "Which code?")]
        got = heard(wire, post(proxy, wire, first, stream=stream).body, stream=stream)
        assert seen(wire, got) == joined(wire, [looks, again, last])
        assert used(wire, got) == (105, 12)
        post(proxy, wire, [*first, *echo(wire, got), user(wire, "And?")])
    assert json.dumps(script.items(3)).count('"analyze_image"') == json.dumps(script.items(2)).count('"analyze_image"')


@EVERY_WAY
@requirement("loop.fails")
def test_an_error_with_status_200_is_relayed_and_not_stored(tmp_path: Path, wire: str, stream: bool) -> None:
    error = {"error": {"code": 502, "message": "Provider down"}, "user_id": "u"}
    with world(tmp_path, wire, [LOOKS, whole(error), FOUND]) as (script, proxy):
        first = [user(wire, "Which code?")]
        got = post(proxy, wire, first, stream=stream)
        assert "Provider down" in got.body.decode()
        if not stream:
            assert json.loads(got.body) == error
        then = [*first, *said(wire, Leg(LOOKS.text)), user(wire, "And?")]
        post(proxy, wire, then)
    assert script.items(2) == then


@EVERY_WIRE
@requirement("loop.fails")
def test_a_stream_that_ends_with_an_error_is_not_stored(tmp_path: Path, wire: str) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "code": 502, "message": "Provider down"}}
    broken = (*events(wire, Leg("It"), "2")[:-3], b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")
    failing = Reply(200, (("content-type", "text/event-stream"),), broken, streamed=True)
    with world(tmp_path, wire, [LOOKS, failing, FOUND]) as (_, proxy):
        assert b"Provider down" in post(proxy, wire, [user(wire, "Which code?")], stream=True).body
    with closing(sqlite3.connect(next(tmp_path.rglob(DATABASE_NAME)))) as database:
        assert database.execute("SELECT COUNT(*) FROM legs").fetchone() == (0,)


@requirement("loop.served")
def test_keep_alives_are_sent_while_a_json_answer_is_read(tmp_path: Path) -> None:
    wire, hang = "anthropic", Hang(after=0)
    slow = Reply(
        200, (("content-type", "application/json"),), (json.dumps(answer(wire, FOUND, "1")).encode(),), fault=hang
    )
    asked = json.dumps(body(wire, [user(wire, "Hello.")], stream=True)).encode()
    with world(tmp_path, wire, [slow], patience=0.05) as (_, proxy), plug(proxy.url) as connection:
        connection.settimeout(20)
        connection.sendall(head("/u/x/v1/messages", len(asked)) + asked)
        try:
            assert b"event: ping" in until(connection, b"event: ping")
        finally:
            hang.release()
        assert b"E42" in until(connection, b"message_stop")


@requirement("loop.fails")
def test_an_answer_nested_too_deeply_is_relayed_unchanged(tmp_path: Path) -> None:
    wire = "anthropic"
    deep = json.dumps(answer(wire, Leg("Now.", (ask(), READ)), "1")).replace('"a.py"', "[" * 600 + "]" * 600).encode()
    with world(tmp_path, wire, [Reply(200, (("content-type", "application/json"),), (deep,))]) as (_, proxy):
        got = post(proxy, wire, [user(wire, "Look and read.")])
    assert (got.status, got.body) == (200, deep)


@requirement("loop.rate")
def test_turns_of_different_clients_are_separate(tmp_path: Path) -> None:
    wire, picture = "anthropic", saved(page(["E17"]))
    sha = f"sha256:{hashlib.sha256(picture).hexdigest()}"
    legs = [Leg("", (Call(STRONG, "analyze_image", {"images": [sha], "question": each}),)) for each in QUESTIONS]
    env = {**BLIND, "SIGHTLINE_MAX_TOOL_CALLS_PER_TURN": "1"}
    given = json.dumps(body(wire, [asked(wire, "See.", picture)], stream=False)).encode()
    with world(tmp_path, wire, [legs[0], FOUND, legs[1], FOUND, legs[2], FOUND], env=env) as (script, proxy):
        for key in ("A", "B", "A"):
            exchange(proxy.url, "/u/x/v1/messages", given, headers=[("authorization", f"Bearer {key}")])
    told = ["maxToolCallsPerTurn" in json.dumps(script.items(number)) for number in (1, 3, 5)]
    assert told == [False, False, True]


MANY = [Leg(f"{number} ", (ask(f"call_{number:016x}"),)) for number in range(MAX_LEGS - 1)]
ONLY_WORDS: dict[str, Json] = {
    "anthropic": {"tool_choice": {"type": "none"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
}


@EVERY_WAY
@requirement("loop.eight")
def test_the_last_leg_allows_no_tool_calls(tmp_path: Path, wire: str, stream: bool) -> None:
    only = ONLY_WORDS.get(wire, {"tool_choice": "none"})
    with world(tmp_path, wire, [*MANY, FOUND]) as (script, proxy):
        got = post(proxy, wire, [user(wire, "Look.")], stream=stream)
    assert seen(wire, heard(wire, got.body, stream=stream)) == joined(wire, [*MANY, FOUND])
    *legs, last = script.asked
    assert {key: last.get(key) for key in only} == only
    assert not any(key in leg for leg in legs for key in only)
    assert all(leg["tools"] == last["tools"] for leg in legs)


@EVERY_WIRE
@requirement("loop.eight")
def test_an_upstream_that_rejects_the_choice_gets_all_tools(tmp_path: Path, wire: str) -> None:
    with world(tmp_path, wire, [*MANY, whole(NO, 400), FOUND]) as (script, proxy):
        got = post(proxy, wire, [user(wire, "Look.")])
    assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [*MANY, FOUND])
    assert not any(key in script.asked[-1] for key in ("tool_choice", "toolConfig"))


MUST: dict[str, list[Json]] = {
    "anthropic": [{"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "tool", "name": "Read"}}],
    "openai_chat": [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "Read"}}},
        {"tool_choice": "none"},
    ],
    "openai_responses": [{"tool_choice": "required"}, {"tool_choice": {"type": "function", "name": "Read"}}],
    "gemini": [{"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}],
}
FORCED = [(wire, must) for wire, all_ in MUST.items() for must in all_]


@pytest.mark.parametrize(("wire", "must"), FORCED, ids=[f"{wire} {json.dumps(must)[:50]}" for wire, must in FORCED])
@requirement("loop.injected", "loop.served")
def test_a_forced_choice_keeps_our_tools_in_use(tmp_path: Path, wire: str, must: Json) -> None:
    """Behind an answer with calls of ours: they stay declared, and whoever has to call some tool may look before."""
    reads = Leg("Now.", (READ,))
    with world(tmp_path, wire, [LOOKS, FOUND, replace(LOOKS, calls=(ask(SECOND),)), reads]) as (script, proxy):
        first = [user(wire, "Which code?")]
        then = [*first, *echo(wire, heard(wire, post(proxy, wire, first).body, stream=False)), user(wire, "Read.")]
        got = post(proxy, wire, then, **must)
    assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [LOOKS, reads])
    assert len({json.dumps(asked["tools"]) for asked in script.asked}) == 1
    assert [{key: asked.get(key) for key in must} for asked in script.asked[2:]] == [must, must]


@EVERY_WIRE
@requirement("loop.eight", "loop.injected")
def test_the_last_leg_of_a_forced_choice_has_only_client_tools(tmp_path: Path, wire: str) -> None:
    must, many = MUST[wire][0], [Leg("", (ask(f"call_{number:016x}"),)) for number in range(9, 16)]
    with world(tmp_path, wire, [LOOKS, FOUND, *many, Leg("Now.", (READ,))]) as (script, proxy):
        first = [user(wire, "Which code?")]
        then = [*first, *echo(wire, heard(wire, post(proxy, wire, first).body, stream=False)), user(wire, "Read.")]
        got = post(proxy, wire, then, **must)
    assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [Leg("Now.", (READ,))])
    *legs, last = script.asked
    assert all("analyze_image" in json.dumps(leg["tools"]) for leg in legs)
    assert {**must, "tools": tools(wire)} == {key: last.get(key) for key in ("tools", *must)}


def test_a_forced_choice_is_repeated_in_each_leg() -> None:
    config: Json = {"function_calling_config": {"mode": "AUTO"}, "x": 1}
    made = forbid_calls("gemini", {"tool_config": config})
    assert made == Replace(("tool_config",), {"function_calling_config": {"mode": "NONE"}, "x": 1})
    assert forbid_calls("openai_chat", {"tool_choice": "auto"}) == Replace(("tool_choice",), "none")


@requirement("loop.resumed")
def test_a_call_of_a_process_that_ended_counts_as_interrupted(tmp_path: Path) -> None:
    wire, picture = "anthropic", saved(page(["E17", "E42"]))
    given = {"images": [f"sha256:{hashlib.sha256(picture).hexdigest()}"], "question": "what is at 1?"}
    beside = Leg("Now.", (READ, Call(SECOND, "analyze_image", given)))
    first = [asked(wire, "Look and read.", picture)]
    with Eye() as eye:
        with world(tmp_path, wire, [beside], env=eye.env) as (_, proxy):
            got = heard(wire, post(proxy, wire, first).body, stream=False)
            assert eye.asked.acquire(timeout=30)
        with closing(sqlite3.connect(next(tmp_path.rglob(DATABASE_NAME)))) as database:
            (kept,) = database.execute("SELECT results FROM legs").fetchone()
        with world(tmp_path, wire, [FOUND], env=eye.env) as (script, proxy):
            post(proxy, wire, [*first, *echo(wire, got), *results(wire, [(READ, "print(1)")])])
    assert INTERRUPTED.text in kept
    assert json.dumps(script.items(0)).count(INTERRUPTED.text) == 1


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("mcp__sightline__analyze_image", True),
        ("mcp_sightline_analyze_image", True),
        ("mcp__plugin_vision_sightline__analyze_image", True),
        ("sightline.analyze_image", True),
        ("my_sightlines_analyze_image", False),
        ("sightline_reanalyze_image", False),
        ("mcp__zai__analyze_image", False),
    ],
)
@requirement("loop.injected")
def test_our_mcp_tool_has_the_same_name_everywhere(tmp_path: Path, name: str, ours: bool) -> None:
    wire, picture = "openai_chat", saved(page(["E17"]))
    own = json.loads(json.dumps(tools(wire)).replace('"Read"', f'"{name}"'))
    with world(tmp_path, wire, [FOUND], env=BLIND) as (script, proxy):
        post(proxy, wire, [asked(wire, "See.", picture)], tools=own)
    offered = [each["function"]["name"] for each in script.asked[0]["tools"]]
    assert offered == ([name] if ours else [name, "analyze_image"])
    assert f"{name if ours else 'analyze_image'} answers questions" in json.dumps(script.items(0))
