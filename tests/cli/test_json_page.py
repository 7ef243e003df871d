"""docs/json.md is run: each command, in order, prints the object that stands below it."""

from __future__ import annotations

import json
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from sightline.cli.main import VERBS
from sightline.model.records import FiledReceipt, Receipt, ReceiptLine
from sightline.store import open_record
from tests.api.answering import MP4, saying, settle
from tests.cli.command import Ended, sightline
from tests.engine.parts import encoded, picture
from tests.pixels.bitmaps import flag, saved
from tests.requirements import requirement
from tests.scripted.provider import Provider
from tests.wire.bodies import body, calling, part, tool

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"```console\n\$ sightline ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)
MORE = "…"  # stands for whatever is there: another value, more fields, more entries


def objects(text: str) -> Any:
    """What a block shows. There a bare … may stand for a value, an entry or a field with its value."""
    text = re.sub(r": …(?=[,\s}])", f': "{MORE}"', text)
    text = re.sub(r"…(?=\s*\})", f'"{MORE}": "{MORE}"', text)
    return json.loads(re.sub(r"…(?=\s*\])", f'"{MORE}"', text))


def differs(shown: Any, real: Any, at: str = "$") -> Iterator[str]:
    """Where an object is not as the page shows it."""
    match shown, real:
        case str(), _ if shown == MORE:
            return
        case str(), str() if MORE in shown:
            if not re.fullmatch(".*".join(map(re.escape, shown.split(MORE))), real, re.DOTALL):
                yield f"{at}: {real!r}"
        case dict(), dict():
            some = {name: value for name, value in shown.items() if name != MORE}
            if some.keys() - real.keys() or (MORE not in shown and real.keys() - some.keys()):
                yield f"{at}: it has {', '.join(real)}"
            for name in some.keys() & real.keys():
                yield from differs(some[name], real[name], f"{at}.{name}")
        case list(), list():
            few = shown[:-1] if shown[-1:] == [MORE] else shown
            if len(few) > len(real) or (few is shown and len(few) < len(real)):
                yield f"{at}: it has {len(real)} entries"
            for index, (one, other) in enumerate(zip(few, real, strict=False)):
                yield from differs(one, other, f"{at}[{index}]")
        case _ if shown != real or type(shown) is not type(real):
            yield f"{at}: {real!r}"


@pytest.fixture
def folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that the commands of the page speak of, and one receipt."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shot.png").write_bytes(saved(flag(640, 400), "image/png"))
    (tmp_path / "demo.mp4").write_bytes(MP4)
    schema = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}
    (tmp_path / "total.json").write_text(json.dumps(schema))
    request = body(calling("c1"), tool("c1", part(encoded(picture()))), model="gpt-6")
    (tmp_path / "body.json").write_text(json.dumps(request))
    record = open_record(home / "record")
    line = ReceiptLine("/messages/0/content/1", "told", "by zai/glm-5.3-flash", 1334, 250)
    record.ledger.file_receipt(
        "", FiledReceipt(Receipt("zai", "glm-5.3", (line,), ("sent again",)), "anthropic", (("session-id", "one"),))
    )
    record.close()
    return tmp_path


def typed(line: str, folder: Path) -> Ended:
    words = shlex.split(line)
    given = (folder / words[-1]).read_text() if "<" in words else ""
    return sightline(*(words[: words.index("<")] if given else words), given=given, folder=folder)


@requirement("json.page", "json.no")
def test_every_command_on_the_page_prints_the_documented_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(BLOCKS) == PAGE.count("```console")
    wrong: list[str] = []
    where = '[{"bbox_2d": [250, 250, 750, 750], "label": "dialog"}]'
    with saying(where, '{"total": 25.8}') as model, Provider() as seeing:
        settle(monkeypatch, model)
        for line, shown in BLOCKS:
            address = seeing.url.removeprefix("http://")
            ended = typed(line.replace("127.0.0.1:PORT/v1", address).replace("127.0.0.1:PORT", address), folder)
            expected = objects(shown.replace("127.0.0.1:PORT", address))
            wrong += [f"sightline {line}: {each}" for each in differs(expected, ended.json)]
            assert ended.code == (0 if expected.get("ok", True) else 1), line
            assert ended.out.count("\n") == 1, line
    assert wrong == []


def actions(parser: ArgumentParser) -> Iterator[tuple[str, ...]]:
    """The words after which a parser takes --json."""
    if "--json" in parser.format_help():
        yield ()
    for action in parser._actions:
        inner = cast("dict[str, object]", action.choices) if isinstance(action.choices, dict) else {}
        for name, each in inner.items():
            if isinstance(each, ArgumentParser):
                yield from ((name, *rest) for rest in actions(each))


@requirement("json.page")
def test_every_command_with_json_output_is_documented() -> None:
    shown = [line.split() for line, _ in BLOCKS]
    for name, (_, load) in VERBS.items():
        parser = ArgumentParser()
        load().add_arguments(parser)
        for words in actions(parser):
            asked = [name, *words]
            assert any(line[: len(asked)] == asked for line in shown), f"sightline {' '.join(asked)} --json"


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, MORE: MORE}, {"a": 1, "b": 2}, True),
        ({"a": 1, MORE: MORE}, {"b": 2}, False),
        ([1, MORE], [1, 2, 3], True),
        ([1], [1, 2], False),
        ([MORE], [], True),
        ("sha256:…", "sha256:12", True),
        ("sha256:…", "12", False),
        (MORE, None, True),
        (None, 1, False),
    ],
)
def test_a_difference_is_detected(shown: Any, real: Any, same: bool) -> None:
    assert (not list(differs(shown, real))) == same
