"""Images of prompts as the agent gets them: unchanged, resized or described, each with its name."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline import __version__
from sightline.model.media_capability import read_image_capability
from sightline.surfaces.acp.messages import build_command_offer
from tests.acp.editing import BLIND, SEES, Editor, acting, blob, editor, image, link, text
from tests.api.answering import Model, saying, settle
from tests.cli.command import sightline
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.scripted.pictures import encode, paint_quadrants, some_colours
from tests.waiting import try_again

PICTURE = paint_quadrants(some_colours(5))
NAME = f"sha256:{sha256(PICTURE).hexdigest()}"
BLOCKS = {"image": image(PICTURE), "resource": blob(PICTURE)}
NO_EYES = "This model does not support image input."


@contextmanager
def watched(
    monkeypatch: pytest.MonkeyPatch, *lines: str, settings: str = "{}", **acts: Any
) -> Iterator[tuple[Editor, Model]]:
    """Yield an editor, and a local model that describes images."""
    with saying(*(lines or ("A door.",))) as model:
        settle(monkeypatch, model, **json.loads(settings))
        with editor(*acting(**acts)) as ours:
            yield ours, model


@pytest.mark.parametrize("kind", BLOCKS)
@requirement("acp.prompt")
def test_a_blind_agent_gets_a_description_with_the_images_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with watched(monkeypatch, initialize=BLIND) as (ours, model):
        session = ours.open(tmp_path)
        assert (
            ours.prompt(session, text("what is it?"), BLOCKS[kind], text("end"))["result"]["stopReason"] == "end_turn"
        )
        first, told, last = ours.prompts()[0]
    assert (first, last) == (text("what is it?"), text("end"))
    assert told["type"] == "text"
    assert "A door." in told["text"]
    assert NAME in told["text"]
    assert len(model.asked) == 1


@requirement("acp.prompt")
def test_only_the_images_of_a_prompt_are_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, initialize=BLIND) as (ours, _):
        session = ours.open(tmp_path)
        data = BLOCKS["image"]["data"]
        head = '{"jsonrpc" : "2.0", "id" : 41 ,"method":"session/prompt","x":[1e2,"\\u00e4ä"],"params":{"sessionId":"'
        before = f'{head}{session}","prompt":[ {{"text":"a  b","type":"text","_meta":{{"k":1.50}}}}, '
        block = f'{{"type":"image","mimeType":"image/png","data":"{data}"}}'
        ours.write(f"{before}{block} ]}}}}\n".encode())
        assert ours.answer(41)["result"]["stopReason"] == "end_turn"
        sent = next(line for line in ours.heard() if '"id" : 41' in line)
    assert sent.startswith(before)
    assert sent.endswith(" ]}}\n")


@requirement("acp.prompt")
def test_a_prompt_is_read_in_any_order_of_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, initialize=BLIND) as (ours, _):
        params = {"sessionId": ours.open(tmp_path), "prompt": [image(PICTURE)]}
        before: list[dict[str, Any]] = [{"_meta": {"a": 1}}, {"x": []}, {"params": params}]
        for number, first in enumerate(before):
            message = {**first, "jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": params}
            ours.write(json.dumps(message).encode() + b"\n")
            assert ours.answer(number)["result"]["stopReason"] == "end_turn"
            assert "A door." in ours.prompts()[-1][-1]["text"], first


@pytest.mark.parametrize("kind", BLOCKS)
@requirement("acp.prompt")
def test_an_agent_that_sees_gets_the_pixels_with_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with watched(monkeypatch, initialize=SEES) as (ours, model):
        session = ours.open(tmp_path)
        ours.prompt(session, text("what is it?"), BLOCKS[kind])
        assert ours.prompts()[0] == [text("what is it?"), text(f"[image {NAME}]"), BLOCKS[kind]]
    assert not model.asked


@requirement("acp.prompt", "capability.target")
def test_an_image_that_is_too_large_for_the_agent_is_resized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = {"maxBytes": 90_000, "maxDimension": 600, "downsampleTargetBytes": 30_000}
    acts = {"initialize": {**SEES, "_meta": {"imageCapability": narrow}}}
    large = tmp_path / "large.png"
    large.write_bytes(encode(Pillow.effect_noise((640, 480), 90)))
    with watched(monkeypatch, settings='{"SIGHTLINE_REFERENCES": "off"}', **acts) as (ours, _):
        told = ours.ask("initialize", {"protocolVersion": 1})
        said = read_image_capability(told)
        assert said is not None
        assert said.max_dimension == 8000, "where we refit, our limits count for the editor"
        session = ours.session(tmp_path)
        small = image(paint_quadrants(some_colours(5), (100, 80)))
        ours.prompt(session, image(large.read_bytes()), blob(large.read_bytes()), link(large), small)
        *refitted, untouched = ours.prompts()[0]
    assert untouched == small
    for block in refitted:
        held = block.get("resource", block)
        data = b64decode(held.get("blob") or held["data"])
        assert len(held.get("blob") or held["data"]) <= 30_000 // 3 * 4
        with Pillow.open(io.BytesIO(data)) as seen:
            assert max(seen.size) <= 600
    assert [block["type"] for block in refitted] == ["image", "resource", "image"]
    assert refitted[2]["uri"] == large.as_uri()


@requirement("acp.prompt")
def test_a_linked_image_is_described_with_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my shot.png"
    file.write_bytes(PICTURE)
    with watched(monkeypatch, initialize=BLIND) as (ours, _):
        session = ours.open(tmp_path)
        ours.prompt(session, text("what is it?"), link(file), link(file, mimeType="image/png"))
        _, *told = ours.prompts()[0]
    for each in told:
        assert each["type"] == "text"
        assert each["text"].startswith(f"{file.as_uri()}\n")
        assert "A door." in each["text"]
        assert NAME in each["text"]


@requirement("acp.prompt", "acp.links")
def test_links_that_are_not_readable_images_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work, outside):
        folder.mkdir()
        (folder / "a.png").write_bytes(PICTURE)
    (work / "sneaky.png").symlink_to(outside / "a.png")
    (work / "words.png").write_text("not an image")
    (work / "notes.md").write_text("notes")
    (work / "empty.png").touch()
    links = [
        link(outside / "a.png"),
        link(work / "sneaky.png"),
        {**link(work / "a.png"), "uri": f"file://{work}/../outside/a.png"},
        {**link(work / "a.png"), "uri": f"file://example.org{work}/a.png"},
        {**link(work / "a.png"), "uri": "file:///%00.png"},
        {**link(work / "a.png"), "uri": "file://[::1.png"},
        {**link(work / "a.png"), "uri": "a.png"},
        link(work / "words.png"),
        link(work / "empty.png"),
        link(work / "missing.png"),
        link(work / "notes.md"),
        link(work, mimeType="image/png"),
    ]
    with watched(monkeypatch, initialize=BLIND) as (ours, model):
        session = ours.open(work)
        ours.prompt(session, *links)
        ours.prompt(session, *links, image(PICTURE))
        first, second = ours.prompts()
        assert first == links
        assert second[: len(links)] == links
        for folder in (Path("/"), Path.home()):
            wide = ours.session(folder)
            ours.prompt(wide, link(outside / "a.png"))
            assert ours.prompts()[-1] == [link(outside / "a.png")], "what holds home is no folder to work in"
    assert len(model.asked) == 1


@pytest.mark.parametrize("network", ["off", "on"])
@pytest.mark.parametrize("acts", [BLIND, SEES], ids=["blind", "sees"])
@requirement("acp.web")
def test_web_addresses_are_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acts: dict[str, Any], network: str
) -> None:
    monkeypatch.setenv("SIGHTLINE_NETWORK", network)
    web = "https://images.invalid"
    links: list[dict[str, Any]] = [
        {"type": "resource_link", "uri": f"{web}/a.svg", "name": "logo", "mimeType": "image/svg+xml"},
        {"type": "resource_link", "uri": f"{web}/a.png".replace("s:", ":"), "name": "b", "mimeType": "image/png"},
        {"type": "resource_link", "uri": f"{web}/a.png", "name": "c"},
        {"type": "image", "data": "", "mimeType": "image/png", "uri": f"{web}/a.png"},
    ]
    tells = (
        "import sys;"
        " sys.addaudithook(lambda event, args: event == 'socket.getaddrinfo' and print(args, file=sys.stderr));"
        " from sightline.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    relay = (sys.executable, "-c", tells, "acp", "--")
    with saying("A door.") as model:
        settle(monkeypatch, model)
        with editor(*acting(initialize=acts), relay=relay, stderr=subprocess.PIPE) as ours:
            session = ours.open(tmp_path)
            ours.prompt(session, text("a"), *links)
            ours.prompt(session, *links, image(PICTURE))
            alone, beside = ours.prompts()
            ours.leave()
            assert ours.process.stderr
            assert "invalid" not in ours.process.stderr.read().decode(), "nobody has looked for it"
    named = {"type": "resource_link", "uri": f"{web}/a.png", "name": "a.png", "mimeType": "image/png"}
    assert alone == [text("a"), *links[:3], named]
    assert beside[:4] == [*links[:3], named]
    assert NAME in beside[4]["text"]


@requirement("acp.names")
def test_an_image_with_an_address_is_described_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pasted = {**image(PICTURE), "uri": "file:///home/u/error-dialog.png"}
    broken = {**image(PICTURE[:40]), "uri": "zed:///pasted\nb.png"}
    embedded = blob(PICTURE)
    unnamed = [image(PICTURE), {**image(PICTURE), "uri": f"DATA:image/png;base64,{image(PICTURE)['data']}"}]
    file = tmp_path / "shot.png"
    file.write_bytes(PICTURE)
    with watched(monkeypatch, initialize=BLIND) as (ours, _):
        ours.prompt(ours.open(tmp_path), pasted, embedded, link(file), broken, *unnamed)
        first, second, third, fourth, *others = [each["text"] for each in ours.prompts()[0]]
    assert first.startswith("file:///home/u/error-dialog.png\n")
    assert second.startswith("file:///a.png\n")
    assert third.startswith(f"{file.as_uri()}\n")
    name, words = fourth.split("\n")
    assert name == "zed:///pasted b.png"
    assert NOT_SHOWN in words
    assert all("A door." in each for each in (first, second, third))
    assert all(each.startswith("[") and "\n<vision_proxy_" in each and "A door." in each for each in others)


@requirement("acp.blind")
def test_the_settings_say_which_agents_and_models_are_blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"agentInfo": {"name": "lab", "version": "1"}, **SEES}
    models = {"models": {"currentModelId": "maker/some-model(openai)", "availableModels": []}}
    options = {"configOptions": [{"id": "m", "category": "model", "type": "select", "currentValue": "some-model"}]}
    for session, pattern in ((models, "lab/*"), (models, "*some-model"), (options, "lab/some-model"), ({}, "lab/*")):
        rule = json.dumps({"eye": {"vision": True}, pattern: {"vision": False}})
        given = json.dumps({"SIGHTLINE_MODELS": rule})
        with watched(monkeypatch, settings=given, initialize=said, session=session) as (ours, _):
            ours.prompt(ours.open(tmp_path), image(PICTURE))
            assert "A door." in ours.prompts()[0][0]["text"], pattern


@requirement("acp.blind")
def test_a_blind_model_is_recognized_by_every_name_its_agent_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "glm-4.6",
        "glm-4.6(openai)",
        "zai/glm-4.6",
        "lab/deepseek-v4-pro",
        "opencode/deepseek/deepseek-v4-pro",
    ):
        session = {"models": {"currentModelId": name}}
        with watched(monkeypatch, initialize=SEES, session=session) as (ours, _):
            ours.prompt(ours.open(tmp_path), image(PICTURE))
            assert "A door." in ours.prompts()[0][0]["text"], name


@requirement("acp.blind")
def test_a_change_of_the_model_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = {"models": {"currentModelId": "glm-4.6"}}
    with watched(monkeypatch, initialize=SEES, session=session) as (ours, _):
        name = ours.open(tmp_path)
        ours.ask("session/set_model", {"sessionId": name, "modelId": "gpt-6"})
        ours.prompt(name, image(PICTURE))
        ours.ask("session/set_config_option", {"sessionId": name, "configId": "model", "value": "glm-4.6"})
        ours.prompt(name, image(PICTURE))
        seen, told = ours.prompts()
    assert seen[-1]["type"] == "image"
    assert told[-1]["type"] == "text"


@requirement("acp.learns")
@pytest.mark.parametrize("model", ["some-model", ""])
def test_a_rejected_image_is_described_and_the_lesson_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """For a week, or until the agent is restarted if it doesn't name its model."""
    lab = {**SEES, "agentInfo": {"name": "the lab", "version": "1"}}
    acts: dict[str, Any] = {"initialize": lab, "session": {"models": {"currentModelId": model}}}
    with saying("A door.") as eye:
        settle(monkeypatch, eye)
        lines = tmp_path / "stderr"
        with (
            lines.open("wb") as stderr,
            editor(*acting(refuses=f"400: {NO_EYES}", **acts), stderr=stderr.fileno()) as ours,
        ):
            refused_once(ours, tmp_path)
            with editor(*acting(**acts)) as other:
                other.prompt(other.open(tmp_path), image(PICTURE))
                assert other.prompts()[0][-1]["type"] == ("text" if model else "image"), "another day"
            (line,) = lines.read_text().splitlines()
            assert line.startswith("sightline: the lab ")
            if not model:
                assert "sightline config forget" not in line
                return
            undo = "sightline config forget 'the lab/some-model'"
            assert " some-model " in line
            assert f"{undo})" in line
            assert sightline(*shlex.split(undo)[1:]).code == 0
            ours.prompt(ours.session(tmp_path), image(PICTURE))
            assert ours.prompts()[4][-1]["type"] == "image", "taken back"


def refused_once(ours: Editor, folder: Path) -> None:
    session = ours.open(folder)
    assert ours.prompt(session, text("see?"), image(PICTURE))["result"]["stopReason"] == "end_turn"
    refused, told = ours.prompts()
    assert refused[-1]["type"] == "image"
    assert "A door." in told[-1]["text"]
    for each in (session, ours.session(folder)):
        ours.prompt(each, image(PICTURE))
        assert "A door." in ours.prompts()[-1][0]["text"]
    assert len(ours.prompts()) == 4


def told(kind: str, **more: Any) -> dict[str, Any]:
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind, **more}}}


DONE = {
    "tool": told("tool_call", toolCallId="1", title="git push"),
    "news of a tool": told("tool_call_update", toolCallId="1", status="completed"),
    "plan": told("plan", entries=[]),
    "words": told("agent_message_chunk", content=text("I pushed the release.")),
    "thought": told("agent_thought_chunk", content=text("I push.")),
    "of another session": {
        "method": "session/update",
        "params": {"sessionId": "a helper of its own", "update": {"sessionUpdate": "tool_call", "toolCallId": "1"}},
    },
    "later news": told("something_new"),
    "long": {**told("tool_call", toolCallId="1"), "padding": 2_000_000},
    "file": {"id": 7, "method": "fs/write_text_file", "params": {"path": "/a", "content": "x"}},
    "terminal": {"params": {"command": "git"}, "id": 7, "method": "terminal/create"},
    "permission": {"id": 7, "method": "session/request_permission", "params": {"options": []}},
}
NOTHING = {
    "commands": told("available_commands_update", availableCommands=[]),
    "mode": told("current_mode_update", currentModeId="m"),
    "echo": told("user_message_chunk", content=text("see?")),
    "note": {"method": "_own/log", "params": {}},
}


@pytest.mark.parametrize("done", DONE)
@requirement("acp.once")
def test_a_prompt_that_the_agent_worked_on_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: str
) -> None:
    """Otherwise its work would be done twice. The editor gets the error, and the next image is described."""
    with watched(monkeypatch, initialize=SEES, refuses=f"400: {NO_EYES}", done=[DONE[done]]) as (ours, _):
        session = ours.open(tmp_path)
        assert NO_EYES in json.dumps(ours.prompt(session, text("see?"), image(PICTURE))["error"])
        assert len(ours.prompts()) == 1
        seen = [each for each in ours.updates if "availableCommands" not in each["params"].get("update", {})]
        assert [each["method"] for each in seen] == [DONE[done]["method"]]
        assert ours.prompt(session, image(PICTURE))["result"]["stopReason"] == "end_turn"
        assert "A door." in ours.prompts()[1][-1]["text"]


@requirement("acp.once")
def test_a_prompt_that_was_cancelled_is_not_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, initialize=SEES, refuses=f"400: {NO_EYES}", late=True) as (ours, _):
        session = ours.open(tmp_path)
        ours.send("session/prompt", {"sessionId": session, "prompt": [image(PICTURE)]}, 1)
        for _ in try_again():
            if ours.prompts():
                break
        ours.send("session/cancel", {"sessionId": session})
        assert "error" in ours.answer(1)
        assert len(ours.prompts()) == 1


@requirement("acp.once")
def test_unrelated_activity_does_not_prevent_a_second_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acts: dict[str, Any] = {"initialize": SEES, "refuses": f"400: {NO_EYES}", "done": [*NOTHING.values()]}
    with watched(monkeypatch, **acts) as (ours, _):
        session = ours.open(tmp_path)
        ours.prompt(session, text("plain words first"))
        assert ours.prompt(session, text("see?"), image(PICTURE))["result"]["stopReason"] == "end_turn"
        assert len(ours.prompts()) == 3


@requirement("acp.learns")
def test_an_error_for_another_reason_goes_to_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, initialize=SEES, refuses="you have no credit left") as (ours, _):
        session = ours.open(tmp_path)
        error = ours.prompt(session, image(PICTURE))["error"]
        assert error == {"code": -32603, "message": "Internal error", "data": {"details": "you have no credit left"}}
        assert len(ours.prompts()) == 1
        assert ours.prompt(session, text("still there?"))["result"]["stopReason"] == "end_turn"


@requirement("acp.learns")
def test_an_agent_that_says_it_cannot_see_is_believed_for_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(monkeypatch, initialize=SEES, says=NO_EYES) as (ours, _):
        session = ours.open(tmp_path)
        for _ in range(2):
            ours.prompt(session, image(PICTURE))
        other = ours.session(tmp_path)
        ours.prompt(other, image(PICTURE))
        kinds = [blocks[-1]["type"] for blocks in ours.prompts()]
    assert kinds == ["image", "text", "image"]


@requirement("acp.says_blind")
def test_words_of_an_agent_do_not_make_a_model_blind_that_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = ['The dialog says: "vision is not supported".', NO_EYES, NO_EYES, "I can't see images."]
    with watched(monkeypatch, initialize=SEES, says=says) as (ours, _):
        session = ours.open(tmp_path)
        ours.prompt(session, image(PICTURE))  # answered with a transcription
        ours.prompt(session, image(PICTURE))  # answered by a model that has seen the first
        ours.ask("session/set_model", {"sessionId": session, "modelId": "claude-sonnet-4-5"})
        ours.prompt(session, image(PICTURE))  # answered by a model that is known to see
        ours.ask("session/set_model", {"sessionId": session, "modelId": "some-model"})
        ours.prompt(session, image(PICTURE))  # answered by a model about which nothing is known
        ours.prompt(session, image(PICTURE))
        kinds = [blocks[-1]["type"] for blocks in ours.prompts()]
    assert kinds == ["image"] * 4 + ["text"]


@requirement("acp.words")
def test_a_description_gets_the_last_messages_of_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch, initialize=BLIND, says="Show me the dialog.") as (ours, model):
        session, other = ours.open(tmp_path), ours.session(tmp_path)
        ours.prompt(other, text("words of another session"))
        ours.prompt(session, text("fix the login page"))
        ours.prompt(session, text("What is wrong here?"), image(PICTURE))
    (part,) = model.parts("text")
    assert part["text"].endswith(
        "User: fix the login page\nAssistant: Show me the dialog.\nUser: What is wrong here?"
    ), "in their order, and nothing else"


@requirement("acp.bad")
def test_bad_images_are_corrected_or_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    liar = image(PICTURE, "image/jpeg")
    broken = {"type": "image", "mimeType": "image/png", "data": "!!! this is no base64 !!!"}
    cut = image(PICTURE[:40])
    empty = {"type": "image", "mimeType": "image/png", "data": ""}
    with watched(monkeypatch, settings='{"SIGHTLINE_REFERENCES": "off"}', initialize=SEES) as (ours, _):
        session = ours.open(tmp_path)
        for each in (liar, broken, cut, empty, {"type": "image"}, {"type": "resource"}, {"type": 7, "image": "image"}):
            assert ours.prompt(session, text("a"), each, text("b"))["result"] == {"stopReason": "end_turn"}
        prompts = ours.prompts()
    assert all((first, last) == (text("a"), text("b")) for first, *_, last in prompts)
    corrected, *told = [blocks[1] for blocks in prompts]
    assert corrected == image(PICTURE, "image/png")
    assert [each["type"] for each in told[:4]] == ["text"] * 4
    assert told[4:] == [{"type": "resource"}, {"type": 7, "image": "image"}]


@requirement("acp.bad", "capability.true")
def test_a_prompt_is_unchanged_if_the_settings_are_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, None, SIGHTLINE_MODEL="no-such-provider/eye")
    with editor(*acting(initialize=SEES), stderr=subprocess.PIPE) as ours:
        said = read_image_capability(ours.ask("initialize", {"protocolVersion": 1}))
        assert said is not None
        assert (said.auto_handles_oversized, said.auto_handles_wrong_model) == (False, False), "nor is more promised"
        session = ours.session(tmp_path)
        assert ours.prompt(session, image(PICTURE))["result"] == {"stopReason": "end_turn"}
        assert ours.prompts()[0][-1] == image(PICTURE)
        ours.leave()
        assert ours.process.stderr
        told = ours.process.stderr.read().decode()
    assert told.startswith("sightline: ")
    assert "'no-such-provider/eye'" in told
    assert told.count("\n") == 1


@requirement("acp.edits")
def test_only_these_messages_are_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a", "description": "b"}]}
    others = [{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "t"}, {"sessionUpdate": "plan", "entries": []}]
    methods = ["authenticate", "session/set_mode", "session/list", "session/close", "_own", "session/set_model"]
    with watched(monkeypatch, initialize=SEES, updates=[commands, *others]) as (ours, _):
        assert "imageCapability" in ours.ask("initialize", {"protocolVersion": 1})["result"]["_meta"]
        openings = ["session/new", "session/load", "session/resume", "session/fork"]
        for number, method in enumerate(openings, 1):
            ours.ask(method, {"cwd": str(tmp_path), "mcpServers": [], "sessionId": "s9"}, number)
        for method in methods:
            ours.ask(method, {"sessionId": "s1", "image": image(PICTURE), "mcpServers": []})
        ours.prompt("s1", text("plain words, with no picture"))
        told = [json.loads(line) for line in ours.heard()]
        updates = [each["params"]["update"] for each in ours.updates if each["params"]["sessionId"] == "s1"]
    for each in told:
        params = each.get("params", {})
        if each["method"] in openings:
            assert [server["name"] for server in params["mcpServers"]] == ["sightline"]
        elif each["method"] in methods:
            assert params == {"sessionId": "s1", "image": image(PICTURE), "mcpServers": []}
        elif each["method"] == "session/prompt":
            assert params["prompt"] == [text("plain words, with no picture")]
    lists = [each for each in updates if each["sessionUpdate"] == "available_commands_update"]
    assert lists[-1]["availableCommands"] == [{"name": "a", "description": "b"}, build_command_offer()]
    assert [each for each in updates if each in others] == others


@requirement("acp.server")
def test_new_sessions_get_our_server_unless_it_is_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with editor(*acting(initialize=SEES)) as ours:
        ours.open(tmp_path)
        server = json.loads(ours.heard()[1])["params"]["mcpServers"][0]
    home = {"name": "SIGHTLINE_HOME", "value": os.environ["SIGHTLINE_HOME"]}
    assert server["env"] == [home]
    assert Path(server["command"]).is_absolute()
    assert server["args"][-1] == "mcp"
    (tmp_path / "sightline.py").write_text("raise SystemExit('a project was run')")
    started = [server["command"], *server["args"][:-1], "--version"]
    done = subprocess.run(started, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"sightline {__version__}\n"), done.stderr
    monkeypatch.setenv("SIGHTLINE_ACP_MCP_SERVER", "off")
    with editor(*acting(initialize=SEES)) as ours:
        ours.open(tmp_path)
        assert json.loads(ours.heard()[1])["params"]["mcpServers"] == []


@requirement("acp.server")
def test_a_server_that_could_not_start_is_not_added(tmp_path: Path) -> None:
    """The MCP library is an extra."""
    hides = (
        "import sys, importlib.util as util; found = util.find_spec;"
        " util.find_spec = lambda name, *more: None if name == 'mcp' else found(name, *more);"
        " from sightline.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    with editor(*acting(initialize=SEES), relay=(sys.executable, "-c", hides, "acp", "--")) as ours:
        ours.open(tmp_path)
        assert json.loads(ours.heard()[1])["params"]["mcpServers"] == []


@requirement("capability.advertised", "capability.true")
def test_the_promise_is_that_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a vision model, an agent that takes no images is left alone, and any other promises less."""
    settle(monkeypatch, None, SIGHTLINE_SEER="off")
    with editor(*acting(initialize=BLIND)) as ours:
        assert ours.ask("initialize", {"protocolVersion": 1})["result"] == BLIND
    with editor(*acting(initialize=SEES)) as ours:
        said = read_image_capability(ours.ask("initialize", {"protocolVersion": 1}))
        assert said is not None
        assert (said.auto_handles_oversized, said.auto_handles_wrong_model) == (True, False)
    with watched(monkeypatch, settings='{"SIGHTLINE_SEER": "off"}', initialize=BLIND) as (ours, _):
        found = ours.ask("initialize", {"protocolVersion": 1})
        assert found["result"]["agentCapabilities"]["promptCapabilities"]["image"] is True
        said = read_image_capability(found)
        assert said is not None
        assert said.auto_handles_wrong_model is True
    with watched(monkeypatch, settings='{"SIGHTLINE_MODE": "off"}', initialize=BLIND) as (ours, _):
        assert ours.ask("initialize", {"protocolVersion": 1})["result"] == BLIND
