"""Tools of ours where something is odd: answers cut short, upstreams that say no, records that cannot be written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.proxy.legs import Call, Json, Leg, Script, events, heard, joined, seen, serving, user
from tests.proxy.running import Running, sightline
from tests.proxy.test_asides import EVERY_WIRE, ON, ask, post
from tests.requirements import requirement
from tests.scripted.server import Reply

SECOND = "call_bbbbbbbbbbbb0002"
READ = Call("call_cccccccccccc0003", "Read", {"path": "a.py"})
LOOKS = Leg("I will look.", (ask(),))
FOUND = Leg("It is E42.")


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
