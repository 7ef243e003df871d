"""The relay between an editor and an agent: neither of them notices it in the lines that pass through."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.acp import editing
from tests.acp.editing import BLIND, PATIENCE, RELAY, SEES, Editor, acting, image, text
from tests.api.answering import Model, settle
from tests.api.eyes import eyes, named
from tests.cli.command import assert_refused, sightline
from tests.requirements import requirement
from tests.scripted.faults import Hang
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.server import Exchange, Reply, Server

editor = partial(editing.editor, relay=RELAY)  # here it is the process that matters

PICTURE = paint_quadrants(some_colours(5))
MIRROR = [sys.executable, "-c", "import os\nwhile piece := os.read(0, 65536): os.write(1, piece)"]
ODD = (
    b'{"jsonrpc":"2.0" , "id" : 1.0,"method":"_x/y","params":{"a":"\\u00e4\xc3\xa4", "b":1e3}}\n',
    b'{"params":[1,2],"method":"later","id":"7"}\r\n',
    b'{"jsonrpc":"2.0","id":99,"result":{"nobody":"asked"}}\n',
    b'{"jsonrpc":"2.0","id":98,"error":{"code":-1,"message":"nobody asked"}}\n',
    b"not json at all\n",
    b'{"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"type":"image"\n',
    b'{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":7}\n',
    b'{"jsonrpc":"2.0","id":[],"method":"session/prompt","params":{"sessionId":1,"prompt":"image"}}\n',
    b'{"jsonrpc":"2.0","method":"initialize"}\n',
    b'[{"jsonrpc":"2.0","id":3,"method":"initialize"}]\n',
    b'{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"mcpServers":"none"}}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"available_commands_update"}}}\n',
    b'{"jsonrpc":"2.0","id":4,"method":"session/new","params":{"cwd":"\xed\xa0\x80","mcpServers":[]}}\n',
    b"\xff\xfe\x00\n",
    b"\n",
    b"null\n",
    b"9" * 9000 + b"\n",
)


@requirement("acp.relay")
def test_any_lines_are_relayed_byte_for_byte() -> None:
    with editor(*MIRROR, stderr=subprocess.PIPE) as ours:
        for line in ODD:
            ours.write(line)
            assert ours.read() == line
        ours.write(b"never ends")
        assert ours.process.stdin
        ours.process.stdin.close()
        assert ours.read() == b"never ends"
        assert ours.read() == b""
        assert ours.process.wait(PATIENCE) == 0
        assert ours.process.stderr
        assert ours.process.stderr.read() == b"", "none of it is a fault of anybody's here"


@pytest.mark.parametrize("method", ["_long", "session/update", "session/prompt"])
@requirement("acp.relay")
def test_a_line_of_a_hundred_megabytes_passes(method: str) -> None:
    start = b'{"jsonrpc":"2.0","method":"%b","params":{"sessionId":"s","text":"' % method.encode()
    line = start + b"x" * (100 * 1024 * 1024) + b'"}}\n'
    with editor(*MIRROR) as ours:
        writing = threading.Thread(target=ours.write, args=(line, b"next\n"))
        writing.start()
        assert ours.read() == line
        assert ours.read() == b"next\n"
        writing.join()


@requirement("acp.together")
@pytest.mark.parametrize("ahead", [0, 1, 20])
def test_sessions_that_start_together_are_all_served(ahead: int, tmp_path: Path) -> None:
    """An editor may restore several sessions at once; modules are still imported once."""
    pictures = [image(paint_quadrants(some_colours(seed))) for seed in range(8)]
    with editor(*MIRROR, stderr=subprocess.PIPE, env={"SIGHTLINE_SEER": "off"}) as ours:
        ours.send("initialize", {"protocolVersion": 1}, "hello")
        for number in range(ahead):
            ours.send("session/load", {"sessionId": f"{number}", "cwd": str(tmp_path), "mcpServers": []}, f"l{number}")
        for number, picture in enumerate(pictures):
            ours.send("session/prompt", {"sessionId": f"{number}", "prompt": [picture]}, f"p{number}")
            ours.send("session/load", {"sessionId": f"{number}", "cwd": str(tmp_path), "mcpServers": []}, f"m{number}")
        came = [json.loads(ours.read()) for _ in range(1 + ahead + 2 * len(pictures))]
        assert ours.leave() == 0
        assert ours.process.stderr
        assert ours.process.stderr.read() == b""
    prompts = [each for each in came if each.get("method") == "session/prompt"]
    assert sorted(each["id"] for each in prompts) == [f"p{number}" for number in range(8)]
    for each in prompts:
        assert any("sha256:" in str(block.get("text")) for block in each["params"]["prompt"]), "it was looked at"
    loads = [each for each in came if each.get("method") == "session/load"]
    assert all(each["params"]["mcpServers"] for each in loads)


@requirement("acp.relay")
def test_each_direction_has_ids_of_its_own() -> None:
    """An agent may send a request with the id of an editor's request that it has not answered yet."""
    agent = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        asked = message
        print('{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"path":"/a"}}', flush=True)
    elif "result" in message:
        assert message == {"jsonrpc": "2.0", "id": 0, "result": {"content": "from the editor"}}, message
        print(json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1,
            "agentCapabilities": {"promptCapabilities": {"image": True}}}}), flush=True)
"""
    with editor(sys.executable, "-c", agent) as ours:
        ours.send("initialize", {"protocolVersion": 1}, 0)
        assert ours.read() == b'{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"path":"/a"}}\n'
        ours.write(b'{"jsonrpc":"2.0","id":0,"result":{"content":"from the editor"}}\n')
        assert "imageCapability" in ours.answer(0)["result"]["_meta"]


@requirement("acp.exit")
def test_the_relay_has_the_exit_code_and_the_stderr_of_the_agent() -> None:
    with editor(*acting(), stderr=subprocess.PIPE) as ours:
        ours.send("_leave", {"code": 7}, 1)
        assert ours.read() == b""
        assert ours.process.wait(PATIENCE) == 7
        assert ours.process.stderr
        assert ours.process.stderr.read() == b"the agent leaves\n"
    with editor(*acting(code=3)) as ours:
        assert ours.leave() == 3


@requirement("acp.exit")
def test_an_agent_that_is_killed_ends_the_relay_and_signals_reach_the_agent() -> None:
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with editor(sys.executable, "-c", killed) as ours:
        assert ours.read() == b""
        assert ours.process.wait(PATIENCE) == 128 + signal.SIGKILL
    ready = "print('{}', flush=True)\nsignal.pause()"
    polite = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n{ready}"
    with editor(sys.executable, "-c", polite) as ours:
        assert ours.read() == b"{}\n"
        ours.process.terminate()
        assert ours.process.wait(PATIENCE) == 9


@requirement("acp.exit")
def test_an_agent_does_not_outlive_its_editor(tmp_path: Path) -> None:
    """A silent agent is terminated, and the programs that it left running don't delay the relay."""
    deaf = "import time\nprint('{}', flush=True)\ntime.sleep(600)"
    with editor(sys.executable, "-c", deaf) as ours:
        assert ours.read() == b"{}\n"
        assert ours.leave() == 128 + signal.SIGTERM
    child = (
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])\nsys.exit(4)"
    )
    with editor(sys.executable, "-c", child) as ours:
        assert ours.process.wait(PATIENCE) == 4


@requirement("acp.exit")
@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells a process that its parent was killed")
def test_an_agent_that_ignores_its_pipes_ends_when_the_relay_is_killed() -> None:
    deaf = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    with editor(sys.executable, "-c", deaf) as ours:
        agent = int(ours.read())
        ours.process.kill()
        ours.process.wait(PATIENCE)
        until = time.monotonic() + PATIENCE
        while Path(f"/proc/{agent}/stat").exists() and " Z " not in Path(f"/proc/{agent}/stat").read_text():
            assert time.monotonic() < until, "the agent lives on"
            time.sleep(0.05)


@requirement("acp.exit")
def test_an_editor_that_stops_reading_ends_the_agent() -> None:
    chatty = "import sys\nwhile True: sys.stdout.write('{}\\n' * 1000)"
    with editor(sys.executable, "-c", chatty, stderr=subprocess.DEVNULL) as ours:
        assert ours.read() == b"{}\n"
        assert ours.process.stdout
        ours.process.stdout.close()
        ours.process.wait(PATIENCE)


@requirement("acp.relay")
def test_an_agent_that_does_not_read_slows_the_editor_without_loss(tmp_path: Path) -> None:
    go = tmp_path / "go"
    slow = f"""
import os, sys, time
while not os.path.exists({str(go)!r}): time.sleep(0.01)
print(sum(len(line) for line in sys.stdin.buffer), flush=True)
"""
    line = b'{"jsonrpc":"2.0","method":"x","params":{"a":"' + b"y" * 1000 + b'"}}\n'
    with editor(sys.executable, "-c", slow) as ours:
        assert ours.process.stdin
        written = threading.Event()

        def write() -> None:
            ours.write(line * 20_000)
            assert ours.process.stdin
            ours.process.stdin.close()
            written.set()

        threading.Thread(target=write).start()
        assert not written.wait(1.5), "twenty megabytes went somewhere"
        go.touch()
        assert int(ours.read()) == len(line) * 20_000


@requirement("acp.cli")
def test_a_command_that_cannot_be_started_is_refused_in_one_line(tmp_path: Path) -> None:
    assert_refused(sightline("acp", "--", "no-such-agent"), "no-such-agent")
    ended = sightline("acp")
    assert (ended.code, ended.out) == (2, "")
    assert "sightline acp -- AGENT ARGS" in ended.err
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELFnothing")
    broken.chmod(0o755)
    assert_refused(sightline("acp", "--", str(broken)), str(broken))


@contextmanager
def slow_eye(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Yield a local model that waits for a gate, and an event that is set when it was asked."""
    gate, asked = threading.Event(), threading.Event()
    message = {"role": "assistant", "content": "A door."}
    said = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def answer(exchange: Exchange) -> Reply:
        asked.set()
        gate.wait(PATIENCE)
        return Reply(200, (("content-type", "application/json"),), (json.dumps(said).encode(),))

    with Server(answer, lambda: False) as server:
        settle(monkeypatch, Model(f"http://127.0.0.1:{server.port}/v1", ()))
        try:
            yield gate, asked
        finally:
            gate.set()


def looking(ours: Editor, session: str, asked: threading.Event, request: int = 1) -> None:
    """Send a prompt with an image, and wait until the model is asked."""
    ours.send("session/prompt", {"sessionId": session, "prompt": [text("see?"), image(PICTURE)]}, request)
    assert asked.wait(PATIENCE)


@requirement("acp.relay")
def test_a_cancellation_overtakes_and_ends_a_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_eye(monkeypatch) as (gate, asked), editor(*acting(initialize=BLIND)) as ours:
        session = ours.open(tmp_path)
        looking(ours, session, asked)
        ours.send("session/prompt", {"sessionId": session, "prompt": [text("and then?")]}, 2)
        ours.send("session/cancel", {"sessionId": session})
        assert ours.answer(1)["result"] == {"stopReason": "cancelled"}
        assert ours.answer(2)["result"] == {"stopReason": "cancelled"}
        assert ours.prompt(session, text("hello"))["result"] == {"stopReason": "end_turn"}
        assert ours.prompts() == [[text("hello")]]
        assert any('"session/cancel"' in line for line in ours.heard())
        gate.set()


IDS = (b"1e2", b"1.0", b"1e999", b"12345678901234567890123", rb'"\u0041\/"', rb'"\ud800"', b'"\xc3\xa4"', b"-0")


@requirement("acp.relay")
def test_the_relays_own_answers_have_the_id_exactly_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_eye(monkeypatch) as (gate, asked), editor(*acting(initialize=BLIND)) as ours:
        session = ours.open(tmp_path)
        looking(ours, session, asked)

        def prompted(name: bytes, block: dict[str, str]) -> None:
            params = json.dumps({"sessionId": session, "prompt": [block]}).encode()
            ours.write(b'{"jsonrpc":"2.0","params":%b,"id" : %b ,"method":"session/prompt"}\n' % (params, name))

        for name in IDS:
            prompted(name, text("and then?"))
        ours.send("session/cancel", {"sessionId": session})
        told = b"".join(iter_answers(ours, len(IDS) + 1))
        for name in IDS:
            assert b'"id":%b,"result":{"stopReason":"cancelled"}' % name in told
            prompted(name, text("/vision-proxy list"))
            assert b'"id":%b,"result":{"stopReason":"end_turn"}' % name in next(iter_answers(ours, 1))
        gate.set()


@requirement("acp.relay")
def test_a_session_named_by_a_lone_surrogate_is_answered(tmp_path: Path) -> None:
    with editor(*acting(initialize=SEES)) as ours:
        ours.open(tmp_path)
        ours.updates.clear()
        assert ours.prompt("\ud800", text("/vision-proxy list"))["result"] == {"stopReason": "end_turn"}
        assert ascii(ours.updates[-1]["params"]["sessionId"]) == r"'\ud800'"


def iter_answers(ours: Editor, count: int) -> Iterator[bytes]:
    """Return the next responses to prompts."""
    while count and (line := ours.read()):
        if b'"stopReason"' in line:
            count -= 1
            yield line


@requirement("acp.relay")
def test_a_single_cancelled_request_is_answered_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_eye(monkeypatch) as (gate, asked), editor(*acting(initialize=BLIND)) as ours:
        session = ours.open(tmp_path)
        looking(ours, session, asked)
        ours.send("$/cancel_request", {"requestId": 1})
        assert ours.answer(1)["error"]["code"] == -32800
        assert ours.prompts() == []
        gate.set()


@requirement("acp.relay")
def test_a_description_does_not_block_other_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_eye(monkeypatch) as (gate, asked), editor(*acting(initialize=BLIND)) as ours:
        first, second = ours.open(tmp_path), ours.session(tmp_path)
        looking(ours, first, asked)
        ours.send("session/set_mode", {"sessionId": first, "modeId": "ask"}, 2)
        assert ours.prompt(second, text("hello"))["result"] == {"stopReason": "end_turn"}
        assert ours.ask("_any", {"x": 1})["result"] == {"method": "_any"}
        assert [line for line in ours.heard() if "set_mode" in line] == []
        gate.set()
        assert ours.answer(1)["result"] == {"stopReason": "end_turn"}
        assert ours.answer(2)["result"] == {"method": "session/set_mode"}
        told = [json.loads(line).get("id") for line in ours.heard()]
        assert told.index(1) < told.index(2), "within a session, order stays"
        assert "A door." in ours.prompts()[1][1]["text"]


LOOKS = {
    "a prompt": [text("see?"), image(PICTURE)],
    "a command": [text("/vision-proxy describe"), image(PICTURE)],
}


@requirement("acp.cancel")
@pytest.mark.parametrize("blocks", LOOKS.values(), ids=LOOKS)
def test_a_cancelled_description_is_cancelled_at_the_provider(blocks: list[dict[str, str]], tmp_path: Path) -> None:
    hang = Hang()
    with eyes("A door.") as provider, editor(*acting(initialize=BLIND), env=named(provider)) as ours:
        provider.faults.append(hang)
        session = ours.open(tmp_path)
        ours.send("session/prompt", {"sessionId": session, "prompt": blocks}, 1)
        hang.reached.result(PATIENCE)
        ours.send("session/cancel", {"sessionId": session})
        assert ours.answer(1)["result"] == {"stopReason": "cancelled"}
        assert provider.exchanges[-1].abandoned
        assert ours.prompt(session, *blocks)["result"] == {"stopReason": "end_turn"}, "the session goes on"
        assert "A door." in str(ours.prompts()) + ours.said()


@requirement("acp.exit")
@pytest.mark.parametrize("blocks", LOOKS.values(), ids=LOOKS)
def test_descriptions_are_cancelled_when_the_editor_disconnects(blocks: list[dict[str, str]], tmp_path: Path) -> None:
    hang, heard = Hang(), tmp_path / "heard"
    agent = acting(initialize=BLIND, code=3, leaves=str(heard))
    with eyes("A door.") as provider, editor(*agent, env=named(provider)) as ours:
        provider.faults.append(hang)
        session = ours.open(tmp_path)
        ours.send("session/prompt", {"sessionId": session, "prompt": blocks}, 1)
        ours.send("session/prompt", {"sessionId": session, "prompt": [text("and then?")]}, 2)
        ours.send("session/set_mode", {"sessionId": session, "modeId": "ask"}, 3)
        hang.reached.result(PATIENCE)
        assert ours.leave() == 3
        assert provider.exchanges[-1].abandoned
        assert [ours.answer(number)["result"] for number in (1, 2)] == [{"stopReason": "cancelled"}] * 2
    told = heard.read_text()
    assert "session/set_mode" in told
    assert "session/prompt" not in told


def test_an_agent_that_never_answers_initialize_blocks_nothing_else() -> None:
    with editor(*acting(mute=True)) as ours:
        ours.send("initialize", {"protocolVersion": 1}, 1)
        assert ours.ask("_any")["result"] == {"method": "_any"}
        assert ours.leave() == 0


def test_a_second_initialize_is_answered_as_the_first() -> None:
    with editor(*acting(initialize=SEES)) as ours:
        assert ours.ask("initialize", {"protocolVersion": 1}) | {"id": 0} == ours.ask("initialize") | {"id": 0}
