"""Tools of ours where something is odd: answers cut short, upstreams that say no, records that cannot be written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sightline.store.sqlite import ROWS
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
    user,
)
from tests.proxy.raw import exchange
from tests.proxy.running import Running, sightline
from tests.proxy.test_asides import EVERY_WIRE, ON, ask, post
from tests.requirements import requirement
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
    home: Path, wire: str, legs: Sequence[Leg | Reply], env: dict[str, str] | None = None, patience: float = 10.0
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
def test_a_stream_that_tells_its_length_is_passed_on_without_it(tmp_path: Path, wire: str) -> None:
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
def test_a_call_of_ours_that_was_cut_short_is_never_sent_again(tmp_path: Path, wire: str) -> None:
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
def test_a_look_that_nobody_can_settle_any_more_has_a_result_all_the_same(tmp_path: Path, wire: str) -> None:
    beside = Leg("Now.", (READ, ask(SECOND)))
    brings = results(wire, [(READ, "print(1)")])
    with world(tmp_path, wire, [beside]) as (_, proxy):
        first = [user(wire, "Look and read.")]
        got = heard(wire, post(proxy, wire, first).body, stream=False)
    full = "CREATE TRIGGER full BEFORE UPDATE OF results ON legs BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    with closing(sqlite3.connect(next(tmp_path.rglob(ROWS)))) as database, database:
        database.execute("UPDATE legs SET results = NULL, made = 0")
        database.execute(full)
    with world(tmp_path, wire, [Leg("Bye.")]) as (script, proxy):
        post(proxy, wire, [*first, *echo(wire, got), *brings])
    told = json.dumps(script.items(0))
    assert told.count("the look was interrupted") == 1


@requirement("loop.substituted")
def test_what_one_wire_has_said_is_not_written_into_anothers_words(tmp_path: Path) -> None:
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
