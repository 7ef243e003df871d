"""`sightline ask`, `video` and `usage`, as a person types them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.terminal import format_dollars
from tests.api.answering import MP4, Model, saying, settle
from tests.api.bad import PNG
from tests.cli.command import sightline, typed
from tests.pixels.renderers.films import film
from tests.pixels.renderers.pdf_files import BLUE, GREEN, RED, document, fill
from tests.requirements import requirement


def numbers(line: str) -> list[str]:
    """Return the figures in a line of `usage`, without those of its date and of names."""
    return re.findall(r"(?<![\w.:/-])[0-9][0-9,]*\b(?![.:/-]\d)", line)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shot.png").write_bytes(PNG)
    (tmp_path / "demo.mp4").write_bytes(MP4)
    (tmp_path / "schema.json").write_text('{"type": "object", "required": ["a"]}')
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    with saying('{"a": "a small flag"}') as there:
        settle(monkeypatch, there)
        yield there


@requirement("ask.command", "cli.ask")
def test_ask_prints_the_envelope(folder: Path, model: Model) -> None:
    ended = sightline("ask", "shot.png", "what is it?", folder=folder)
    assert (ended.code, ended.err) == (0, "")
    assert ended.json["text"] == '{"a": "a small flag"}'
    assert ended.out.count("\n") == 1
    words = ("ask", str(folder / "shot.png"), "what?", "--schema", "schema.json", "--model", "here/watcher", "--json")
    shaped = sightline(*words, "--fit", "never", folder=folder).json
    assert (shaped["parsed"], shaped["model"]) == ({"a": "a small flag"}, "watcher")


@requirement("ask.command", "cli.video", "video.frames")
def test_video_sends_stills_if_requested(folder: Path, model: Model) -> None:
    (folder / "colours.mp4").write_bytes(film(seconds=0.5))
    found = sightline("video", "colours.mp4", "--model", "here/watcher", "--method", "frames", folder=folder).json
    assert found["method"] == "frames"
    assert len(found["frames"]) == len(model.parts("image_url")) > 3


@requirement("ask.command")
@pytest.mark.parametrize(
    ("words", "prefix"),
    [
        (["ask", "absent.png", "what?"], "FILE_NOT_FOUND"),
        (["ask", "things.zip", "what?"], "UNSUPPORTED_FILE_TYPE"),
        (["ask", "http://example.com/a.png", "what?"], "URL_BLOCKED"),
        (["ask", "shot.png", ""], "INVALID_INPUT"),
        (["ask", "shot.png", "what?", "--model", "eye"], "VISION_NOT_SUPPORTED"),
        (["ask", "shot.png", "what?", "--schema", "list.json"], "INVALID_INPUT"),
        (["video", "demo.mp4", "--method", "native"], "VIDEO_NOT_SUPPORTED"),
        (["video", "demo.mp4", "--model", "here/watcher", "--method", "frames"], "UNSUPPORTED_FILE_TYPE"),
    ],
)
def test_a_refusal_is_printed_as_text_and_as_json(folder: Path, model: Model, words: list[str], prefix: str) -> None:
    (folder / "list.json").write_text('{"type": "array"}')
    (folder / "things.zip").write_bytes(b"PK\x03\x04" + bytes(60))
    ended = sightline(*words, folder=folder)
    assert ended.code == 1
    assert ended.json["ok"] is False
    assert ended.json["error"].startswith(f"{prefix}: ")
    named = prefix.startswith(("FILE", "URL", "UNSUPPORTED"))
    assert ended.err.startswith(f"sightline: {prefix}: ")
    assert ended.err.startswith(f"sightline: {prefix}: {words[1]}: ") is named
    assert ended.err.rstrip().endswith(")"), "with what can be done about it"
    assert ended.err.count("\n") == 1


@requirement("ask.command", "json.no")
@pytest.mark.parametrize("file", ["absent.json", "broken.json"])
def test_an_unreadable_schema_is_refused(folder: Path, model: Model, file: str) -> None:
    ended = sightline("ask", "shot.png", "what?", "--schema", file, folder=folder)
    assert (ended.code, ended.json["code"]) == (1, "input_invalid")
    assert ended.json["error"].startswith("INVALID_INPUT: ")
    assert file in ended.json["error"]
    assert ended.err == f"sightline: {ended.json['error']}\n"


@requirement("ask.schema_exit")
def test_an_answer_that_violates_its_schema_exits_with_1(folder: Path, model: Model) -> None:
    """A required field that was not found is often null: a script that goes on must not take it for a number."""
    model.lines = ['{"a": null}']
    (folder / "number.json").write_text(
        '{"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}'
    )
    ended = sightline("ask", "shot.png", "what?", "--schema", "number.json", folder=folder)
    assert (ended.code, ended.json["parsed"]) == (1, {"a": None})
    (error,) = ended.json["schema_errors"]
    assert error.startswith("$.a: ")
    assert '"number"' in error
    assert ended.err.startswith("sightline: ")
    assert ended.err.endswith(f"{error}\n")
    assert len(model.asked) == 1
    code, heard = typed(["ask", "shot.png", "what?", "--schema", "number.json"], b"", {}, folder)
    assert (code, "[Vision Proxy]" in heard, error in heard) == (1, False, True)
    model.lines = ['{"a": 7}']
    assert sightline("ask", "shot.png", "what?", "--schema", "number.json", folder=folder).code == 0


@requirement("ask.command")
@pytest.mark.parametrize("words", [["ask"], ["ask", "a.png"], ["ask", "a.png", "b", "--fit", "x"], ["video"]])
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    assert sightline(*words).code == 2


@requirement("ask.command")
def test_a_schema_nested_too_deeply_is_refused(folder: Path, model: Model) -> None:
    (folder / "deep.json").write_text('{"type": "object", "not": ' * 3000 + "{}" + "}" * 3000)
    deep = sightline("ask", "shot.png", "what?", "--schema", "deep.json", folder=folder)
    assert (deep.code, deep.json["code"], "deep.json" in deep.json["error"]) == (1, "input_invalid", True)
    (folder / "half.json").write_text('{"type": "object", "title": "\\ud800"}')
    half = sightline("ask", "shot.png", "what?", "--schema", "half.json", folder=folder)
    assert half.json["error"].startswith("INVALID_INPUT: ")
    assert model.asked == []


@requirement("ask.terminal", "FR-3.4", "FR-3.5", "cli.progress")
@pytest.mark.parametrize("verb", [["ask", "shot.png", "what is it?"], ["video", "demo.mp4", "--model", "here/watcher"]])
def test_a_terminal_gets_the_answer_and_a_temporary_status_line(folder: Path, model: Model, verb: list[str]) -> None:
    code, heard = typed(verb, b"", {}, folder)
    assert code == 0
    assert " …\r\x1b[K" in heard
    assert '{"a": "a small flag"}\r\n' in heard
    assert re.search(r"\b1,287\b.*\b48\b", heard)
    assert "\x1b[2msightline: " in heard
    assert "[Vision Proxy]" not in heard
    assert '"input_tokens"' not in heard
    code, heard = typed([*verb, "--json"], b"", {}, folder)
    assert '"input_tokens": 1287' in heard
    code, heard = typed([verb[0], "absent", *verb[2:]], b"", {}, folder)
    assert (code, '"ok"' in heard, "sightline: FILE_NOT_FOUND: absent: " in heard) == (1, False, True)


@requirement("cli.progress.pages")
def test_on_a_terminal_the_pages_of_a_document_are_counted(folder: Path, model: Model) -> None:
    (folder / "report.pdf").write_bytes(document([fill(RED), fill(GREEN), fill(BLUE)]))
    code, heard = typed(["ask", "report.pdf", "what is it?"], b"", {}, folder)
    assert code == 0
    assert re.search("\r\x1b\\[Ksightline: [^\r]* 1 of 3 …", heard)
    assert " of 3 …" not in sightline("ask", "report.pdf", "what is it?", folder=folder).err


@requirement("ask.terminal", "FR-3.4")
@pytest.mark.parametrize("verb", [["ask", "shot.png", "what is it?"], ["video", "demo.mp4", "--model", "far/watcher"]])
def test_a_terminal_asks_for_consent_before_sending_anything(folder: Path, verb: list[str]) -> None:
    upstreams = {"far": {"baseUrl": "http://eyes.invalid:9/v1"}}
    env = {
        "SIGHTLINE_UPSTREAMS": json.dumps(upstreams),
        "SIGHTLINE_MODEL": "far/eye",
        "SIGHTLINE_API_KEY": "k",
        "SIGHTLINE_MODELS": json.dumps({"eye": {"vision": True}, "watcher": {"video": True}}),
    }
    question = "to far (eyes.invalid:9) "
    _, heard = typed(verb, b"n\n", env, folder)
    assert question in heard
    assert json.loads(sightline("consent", "list", "--json").out)["consents"] == {}
    code, heard = typed(verb, b"y\n", env, folder)
    assert (code, question in heard) == (1, True)
    assert json.loads(sightline("consent", "list", "--json").out)["consents"] == {"eyes.invalid:9": True}
    assert question not in typed(verb, b"", env, folder)[1]


@requirement("ask.usage", "telemetry.failed")
def test_a_call_that_was_never_sent_is_not_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with saying("words") as there:
        settle(monkeypatch, there, SIGHTLINE_UPSTREAMS=json.dumps({"here": {"baseUrl": {"anthropic": there.url}}}))
        no = sightline("video", "demo.mp4", "--model", "here/watcher", folder=folder)
        assert no.json["error"].startswith("VIDEO_NOT_SUPPORTED: "), no
        assert "watcher" in no.json["error"]
        assert "video/mp4" in no.json["error"]
        assert there.asked == []
    assert sightline("usage", "--json").json["total"]["calls"] == 0


@requirement("ask.command", "cli.video")
def test_video_prints_the_envelope(folder: Path, model: Model) -> None:
    ended = sightline("video", "demo.mp4", "--model", "here/watcher", folder=folder)
    assert (ended.code, ended.json["model"], ended.json["text"]) == (0, "watcher", '{"a": "a small flag"}')
    assert model.parts("text")[0]["text"] == "Describe this video in detail."
    sightline("video", "demo.mp4", "errors?", "--model", "here/watcher", "--method", "native", folder=folder)
    assert model.parts("text")[0]["text"] == "errors?"


@requirement("ask.usage", "cli.usage")
def test_usage_sums_up_the_calls(folder: Path, model: Model) -> None:
    assert sightline("usage").out.count("\n") == 1
    assert sightline("usage", "--json").json["days"] == []
    for _ in range(2):
        assert sightline("ask", "shot.png", "what is it?", folder=folder).code == 0
    ended = sightline("usage", "--json")
    assert ended.code == 0
    (row,) = ended.json["days"]
    figures = {"calls": 2, "input_tokens": 2574, "output_tokens": 96, "cost_usd": None, "unpriced": 2, "failed": 0}
    assert {name: row[name] for name in figures} == figures
    assert row["seer"].endswith("/eye")
    assert ended.json["total"] == figures
    lines = sightline("usage").out.splitlines()
    assert [line.split()[0] for line in lines] == [row["day"], "total"]
    assert all(numbers(line) == ["2", "2,574", "96"] for line in lines)
    assert sightline("forget", "--all").code == 0
    assert sightline("usage", "--json").json["days"] == [row]
    assert sightline("forget", "--all", "--usage").code == 0
    assert sightline("usage", "--json").json["days"] == []


@requirement("ask.usage", "cli.usage")
def test_free_calls_do_not_hide_unknown_prices(folder: Path, model: Model) -> None:
    assert sightline("describe", "shot.png", "--model", "local", folder=folder).code == 0
    assert sightline("usage").out.endswith(f", {format_dollars(0)}\n")
    assert sightline("ask", "shot.png", "what is it?", folder=folder).code == 0
    both = sightline("usage").out.splitlines()[-1]
    assert numbers(both) == ["2", "1,287", "48"]
    assert not both.endswith(format_dollars(0))
    no = sightline("usage", "--receipts", "0")
    assert (no.code, "--receipts" in no.err, "'0'" in no.err) == (2, True, True)


@requirement("ask.usage", "telemetry.failed")
def test_usage_counts_calls_that_failed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with saying((400, {"error": {"message": "no"}})) as there:
        settle(monkeypatch, there)
        assert sightline("ask", "shot.png", "what is it?", folder=folder).code == 1
    total = sightline("usage", "--json").json["total"]
    assert (total["calls"], total["failed"], total["unpriced"], total["cost_usd"]) == (1, 1, 0, None)
    assert numbers(sightline("usage").out.splitlines()[-1]) == ["1", "1", "0", "0"]


@requirement("ask.usage")
def test_usage_with_a_damaged_record_fails(home: Path) -> None:
    (home / "record").mkdir()
    (home / "record" / "record.sqlite").write_bytes(b"no database at all" * 100)
    ended = sightline("usage", "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["ok"] is False


@requirement("ask.login")
@pytest.mark.parametrize("verb", ["ask", "video", "view", "describe"])
def test_the_login_in_an_address_is_not_printed(folder: Path, verb: str) -> None:
    question = ["What?"] if verb == "ask" else []
    done = sightline(verb, "https://me:secret@example.com/a.png", *question, folder=folder)
    assert done.code == 1
    assert "secret" not in done.err + done.out
