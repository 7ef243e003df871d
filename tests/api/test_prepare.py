"""`sightline.prepare`: one body through the whole pipeline, as objects or bytes, here or in an event loop."""

from __future__ import annotations

import copy
import json
import os
import socket
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api import Failure, Session
from sightline.api.body_preparation import PreparedBody
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo, count_image_tokens
from sightline.model.labels import SHOWN_BELOW
from sightline.pixels.probe import probe
from sightline.profiles.profile_lookup import look_up_profile
from sightline.settings.upstreams import UNKNOWN_UPSTREAM
from tests.engine.parts import encoded, picture
from tests.proxy.running_proxy import NOTHING_ON_LOOPBACK
from tests.requirements import requirement
from tests.scripted.models import DEEPSEEK
from tests.scripted.provider import Provider
from tests.wire import test_model_message as sdk
from tests.wire.bodies import block, body, calling, part, text, tool, user

SMALL = picture()
WIDE = picture(1, (3000, 40))
DESCRIBED = "<vision_proxy_description"


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_UPSTREAMS", NOTHING_ON_LOOPBACK)


def prepared(request: Any, **where: Any) -> PreparedBody:
    done = sightline.prepare(request, **where)
    assert isinstance(done, PreparedBody), done
    return done


def asking(*held: bytes, model: str = "gpt-6") -> dict[str, Any]:
    return {**body(user(text("what is it"), *(part(encoded(data)) for data in held))), "model": model}


@requirement("library.prepare", "body.graft")
def test_a_tool_image_moves_and_other_objects_stay_the_same() -> None:
    request = body(calling("c1"), tool("c1", text("a page"), part(encoded(SMALL))), temperature=0.5)
    before = copy.deepcopy(request)
    done = prepared(request, wire="openai_chat", model="gpt-6")
    assert request == before
    assert done.changed
    messages = done.body["messages"]
    assert messages[1] == tool("c1", text("a page"), text(SHOWN_BELOW))
    assert messages[2]["content"][1] == part(encoded(SMALL))
    assert messages[0] is request["messages"][0]  # type: ignore[index]
    assert set(done.body) == set(request), "nothing is added"
    (line,) = done.receipt.sights
    assert (line.place, line.fate, bool(line.why)) == ("/messages/1/content/1", "shown", True)


@requirement("library.prepare", "law.1")
@pytest.mark.parametrize("request_body", [asking(SMALL), asking(), {}, {"model": "m"}, [], [user(text("hello"))]])
def test_the_same_object_is_returned_without_a_change(request_body: Any) -> None:
    done = prepared(request_body, wire="openai_chat", model="gpt-6")
    assert done.body is request_body
    assert not done.changed
    raw = json.dumps(request_body).encode()
    assert prepared(raw, wire="openai_chat", model="gpt-6").body is raw


@requirement("refer.off", "library.prepare")
def test_a_pasted_image_gets_its_reference_on_request() -> None:
    request = [user(part(encoded(SMALL)), text("what is it"))]
    named = text(f"[image sha256:{sha256(SMALL).hexdigest()}]")
    plain, done = (prepared(request, wire="openai_chat", model="gpt-6", references=asked) for asked in (False, True))
    assert plain.body is request
    assert done.body == [user(named, part(encoded(SMALL)), text("what is it"))]
    assert prepared(done.body, wire="openai_chat", model="gpt-6", references=True).body is done.body
    alone = [{"role": "user", "content": part(encoded(SMALL))}]  # some write a part where a list is meant
    assert prepared(alone, wire="openai_chat", model="gpt-6", references=True).body == [
        user(named, part(encoded(SMALL)))
    ]


@requirement("library.prepare")
def test_bytes_give_the_bytes_that_objects_give() -> None:
    request = [calling("c1"), tool("c1", part(encoded(SMALL)))]
    for given in (request, {"messages": request}):
        raw = json.dumps(given, indent=1).encode()
        done = prepared(raw, wire="openai_chat", model="gpt-6")
        assert json.loads(done.body) == prepared(given, wire="openai_chat", model="gpt-6").body
        assert done.body.startswith(raw[:20])


@requirement("library.spare")
@pytest.mark.parametrize("raw", [b"", b"nonsense", b'{"a": 1', b"[1, 2", b'"text"', b"\xff\xfe{}"])
def test_unreadable_bytes_are_returned_with_a_note(raw: bytes) -> None:
    done = prepared(raw, wire="anthropic")
    assert done.body is raw
    assert (len(done.receipt.notes), "JSON" in done.receipt.notes[0]) == (1, True)


@requirement("library.prepare", "fit.crowd", "receipts.tokens")
def test_an_image_is_fitted_and_the_receipt_has_its_tokens() -> None:
    crowd = [block(encoded(data)) for data in (WIDE, *[SMALL] * 20)]
    done = prepared([user(*crowd)], wire="anthropic", model="claude-opus-5-5")
    source = done.body[0]["content"][0]["source"]
    data = b64decode(source["data"])
    seen = probe(data, len(data))
    assert isinstance(seen, ImageInfo)
    assert seen.size.edge <= 2000
    line, *others = done.receipt.sights
    sizing = look_up_profile("anthropic", "anthropic", "claude-opus-5-5").sizing
    assert line.fate == "refitted"
    assert all(fact in line.why for fact in (f"{seen.size} {seen.mime}", "3000x40", "2000 px"))
    assert (line.before, line.after) == (
        count_image_tokens(Size(3000, 40), sizing),
        count_image_tokens(seen.size, sizing),
    )
    each = count_image_tokens(Size(320, 240), sizing)
    assert {(other.fate, other.why, other.before, other.after) for other in others} == {("shown", "", each, each)}


@requirement("library.prepare", "mode.fallback")
@pytest.mark.parametrize("wire", ["openai_chat", "model_message", "mcp", "acp"])
def test_a_blind_model_gets_a_description_by_its_sibling(wire: str) -> None:
    held: dict[str, Any] = {
        "openai_chat": [user(part(encoded(SMALL)))],
        "model_message": [sdk.calling("c1"), sdk.tool(sdk.answered("c1", sdk.content(sdk.media(encoded(SMALL)))))],
        "mcp": [{"type": "image", "data": encoded(SMALL), "mimeType": "image/png"}],
        "acp": [{"type": "image", "data": encoded(SMALL), "mimeType": "image/png"}],
    }
    with Provider(DEEPSEEK) as provider:
        there = {"wire": wire, "model": "deepseek-v4-pro", "upstream": f"deepseek={provider.url}"}
        done = prepared(held[wire], **there)
        again = prepared(held[wire], **there)
        asked = len(provider.exchanges)
    written = json.dumps(done.body)
    assert DESCRIBED in written
    assert encoded(SMALL) not in written
    (line,) = done.receipt.sights
    assert (line.fate, line.seer) == ("told", "deepseek/deepseek-flash")
    assert again == done
    assert asked == 1, "a description is paid once"


def reading(file: Path, *later: Any) -> dict[str, Any]:
    """A conversation in which a file was read that can be read again."""
    file.write_bytes(SMALL)
    call = calling("c1")
    made: Any = call["tool_calls"]
    made[0]["function"]["arguments"] = json.dumps({"path": str(file)})
    told = [call, tool("c1", part(encoded(SMALL))), {"role": "assistant", "content": "I see"}, *later]
    return body(user(text("look")), *told, tools=[{"type": "function", "function": {"name": "read"}}])


@requirement("library.prepare")
def test_the_caller_sets_retention(tmp_path: Path) -> None:
    request = reading(tmp_path / "c1.png", user(text("go on")))
    for word, fate in (("off", "shown"), ("turns:0", "retired"), ("turns:1", "shown")):
        done = prepared(request, wire="openai_chat", model="gpt-6", retention=word)
        assert [line.fate for line in done.receipt.sights] == [fate], word
        assert ("viewed earlier" in json.dumps(done.body)) == (fate == "retired")


@requirement("library.prepare")
@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"wire": "telegraph"}, "'telegraph'"),
        ({"wire": "mcp", "upstream": "nobody"}, "'nobody'"),
        ({"wire": "mcp", "retention": "sometimes"}, "retention"),
    ],
)
def test_invalid_arguments_are_refused(wrong: dict[str, Any], word: str) -> None:
    answer = sightline.prepare({}, **wrong)
    assert isinstance(answer, Failure)
    assert answer.reason == "invalid_input"
    assert word in answer.message


@requirement("library.prepare")
def test_an_unnamed_wire_is_recognised_for_objects_but_not_for_bytes() -> None:
    request = [sdk.calling("c1"), sdk.tool(sdk.answered("c1", sdk.content(sdk.media(encoded(SMALL)))))]
    assert prepared(request).body == sightline.hoist(request)
    answer = sightline.prepare(json.dumps(request).encode())
    assert isinstance(answer, Failure)
    assert "model_message" in answer.message


@requirement("library.spare")
@pytest.mark.parametrize("odd", [None, "text", '{"messages": []}', 7, object()])
def test_other_values_are_returned_unchanged_with_a_note(odd: Any) -> None:
    done = prepared(odd, wire="openai_chat")
    assert done.body is odd
    assert (len(done.receipt.notes), "JSON" in str(done.receipt)) == (1, True)
    assert prepared(odd).receipt == done.receipt


@requirement("library.spare")
def test_an_internal_error_leaves_the_body_unchanged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd = reading(tmp_path / "c1.png", {"role": "user", "content": {1, 2}})  # a set has no name in a conversation
    done = prepared(odd, wire="openai_chat", model="gpt-6")
    assert done.body is odd
    assert "Sightline" in done.receipt.notes[0]
    assert "TypeError" in caplog.text


@requirement("library.sync_async")
async def test_prepare_can_be_awaited() -> None:
    request = body(calling("c1"), tool("c1", part(encoded(SMALL))))
    done = await sightline.prepare.aio(request, wire="openai_chat", model="gpt-6")
    assert done == prepared(request, wire="openai_chat", model="gpt-6")


@contextmanager
def recorded_proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that notes where it was asked to connect, and goes nowhere."""
    heard: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                heard.append(client.recv(4096).partition(b"\r\n")[0])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@requirement("library.lent")
@pytest.mark.parametrize(("upstream", "agreed"), [(None, False), ("deepseek", False), (None, True)])
def test_no_image_is_sent_to_an_upstream_without_consent(
    upstream: str | None, agreed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-secret")
    Session().tool_context.record.policy.set_consent("deepseek", agreed)
    with recorded_proxy() as (address, heard):
        monkeypatch.setenv("HTTPS_PROXY", address)
        held = [{"type": "image", "data": encoded(SMALL), "mimeType": "image/png"}]
        done = prepared(held, wire="mcp", model="deepseek-v4-pro", upstream=upstream)
    assert bool(heard) == (upstream is not None or agreed)
    assert done.receipt.upstream == "deepseek"
    assert done.receipt.sights[0].fate == "told", "by the local reader"
    assert "sk-secret" not in repr(done)


@requirement("library.prepare")
@pytest.mark.parametrize(
    ("model", "upstream", "name"),
    [
        ("deepseek-v4-pro", "deepseek", "deepseek-v4-pro"),
        ("deepseek/deepseek-v4-pro", "deepseek", "deepseek-v4-pro"),
        ("openrouter/deepseek/deepseek-v4-pro", "openrouter", "deepseek/deepseek-v4-pro"),
        ("claude-opus-5-5", "anthropic", "claude-opus-5-5"),
        ("nobody-knows-it", UNKNOWN_UPSTREAM.name, "nobody-knows-it"),
        (None, UNKNOWN_UPSTREAM.name, ""),
    ],
)
def test_the_provider_of_bare_content_follows_from_the_model(model: str | None, upstream: str, name: str) -> None:
    receipt = prepared([text("hello")], wire="mcp", model=model).receipt
    assert (receipt.upstream, receipt.model) == (upstream, name)


def test_a_program_exits_silently_and_leaves_nothing_behind() -> None:
    code = (
        "import os, sightline\n"
        "from tests.wire.bodies import calling, tool, part\n"
        f"held = [calling('c1'), tool('c1', part({encoded(SMALL)!r}))]\n"
        "first = sightline.prepare(held, wire='openai_chat', model='gpt-6')\n"
        "child = os.fork()\n"
        "again = sightline.prepare(held, wire='openai_chat', model='gpt-6')\n"
        "if child:\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "print(first == again)\n"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["True", "True"]


@requirement("library.prepare")
def test_a_session_limits_the_files_that_a_body_can_refer_to(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    session = Session(reach=[inside])
    changed = []
    for folder in (inside, outside):
        folder.mkdir()
        file = folder / "shot.png"
        file.write_bytes(SMALL)
        function = {"name": "read_file", "arguments": json.dumps({"path": str(file)})}
        call = {"id": "c", "type": "function", "function": function}
        damaged = {"role": "tool", "tool_call_id": "c", "content": SMALL.decode("utf-8", "replace")}
        messages = [{"role": "assistant", "content": None, "tool_calls": [call]}, damaged]
        done = sightline.prepare(messages, model="gpt-5.4", upstream="openai", session=session)
        assert isinstance(done, PreparedBody)
        changed.append(encoded(SMALL) in json.dumps(done.body))
    assert changed == [True, False]


def test_a_reference_belongs_to_one_body_and_can_be_changed() -> None:
    request = asking(SMALL)
    marked, other = (prepared(request, references=True).body["messages"][0]["content"] for _ in range(2))
    before = copy.deepcopy(other)
    assert [type(part) for part in marked] == [dict] * 3
    marked[1]["cache_control"] = {"type": "ephemeral"}
    assert other == before == prepared(request, references=True).body["messages"][0]["content"]
