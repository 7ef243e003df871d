"""Tools of ours inside a conversation: the model asks, the proxy answers, and the client never knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.proxy.legs import (
    WIRES,
    Call,
    Leg,
    Script,
    body,
    echo,
    heard,
    joined,
    path,
    results,
    said,
    seen,
    serving,
    user,
)
from tests.proxy.raw import exchange
from tests.proxy.running import sightline
from tests.requirements import requirement

ON = {"SIGHTLINE_TOOL": "on"}
NOBODY = "sha256:" + "0" * 64
EVERY_WAY = pytest.mark.parametrize(("wire", "stream"), [(wire, stream) for wire in WIRES for stream in (False, True)])


def ask(call: str, question: str = "Which code?") -> Call:
    return Call(call, "analyze_image", {"images": [NOBODY], "question": question})


@EVERY_WAY
@requirement("loop.served", "loop.one_message", "loop.usage", "loop.injected")
def test_a_call_of_ours_is_answered_in_the_loop_and_comes_back_in_its_place(
    tmp_path: Path, wire: str, stream: bool
) -> None:
    legs = [
        Leg("I will look.", (ask("call_a1b2c3d4e5f6g7"),), "hm"),
        Leg("It is E42.", (), "aha"),
        Leg("You are welcome."),
    ]
    script = Script(wire, legs)
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        first = [user(wire, "Which code?")]
        got = exchange(proxy.url, path(wire, stream=stream), json.dumps(body(wire, first, stream=stream)).encode())
        assert got.status == 200, got.body
        whole = heard(wire, got.body, stream=stream)
        assert seen(wire, whole) == joined(wire, legs[:2])
        words = script.items(1)
        told = results(wire, [(legs[0].asks[0], result_in(wire, words[-1]))])
        assert words == [*first, *said(wire, legs[0]), *told]
        then = [*first, *echo(wire, whole), user(wire, "Thanks.")]
        exchange(proxy.url, path(wire, stream=stream), json.dumps(body(wire, then, stream=stream)).encode())
        assert script.items(2) == [*first, *said(wire, legs[0]), *told, *said(wire, legs[1]), user(wire, "Thanks.")]
        assert len({json.dumps(given["tools"]) for given in script.asked}) == 1


def result_in(wire: str, item: dict[str, object]) -> str:
    found = json.dumps(item)
    at = found.index('"Error')
    words: str = json.JSONDecoder().raw_decode(found, at)[0]
    return words
