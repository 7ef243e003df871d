"""One grammar on every surface: the same command does the same, and the same mistake gets the same refusal."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sightline.commands import NAME
from sightline.commands.grammar import parse
from sightline.model.refusal import Refusal
from tests.acp.editing import SEES, acting, editor, text
from tests.api.eyes import eyes, named, sent
from tests.cli.command import sightline
from tests.mcp.serving import WAYS, client, served
from tests.proxy.clients import ask_chat
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours

Filled = Mapping[str, str]
Typed = Callable[[Path, Mapping[str, str], str, Filled], str]
QUESTION = 'Which "colour", it\'s said?'
PART = "0:r=top-left"
# A command as it is typed, and what a host fills into the prompt of the same name.
GOOD = (
    f'describe "my shot.png" --question "Which \\"colour\\", it\'s said?" --crop {PART}',
    {"images": '"my shot.png"', "question": QUESTION, "crop": PART},
)
BAD: tuple[tuple[str, Filled], ...] = (
    ("mode sometimes", {"value": "sometimes"}),
    ("consent maybe", {"answer": "maybe"}),
    ('describe a.png --question "x" --crop 0:r=nowhere', {"images": "a.png", "question": "x", "crop": "0:r=nowhere"}),
    ("redescribe a.png --model nobody", {"image": "a.png", "model": "nobody"}),
    ("grounding-models forget a/b", {"action": "forget", "model": "a/b"}),
)


def in_a_chat(folder: Path, env: Mapping[str, str], words: str, filled: Filled) -> str:
    with served(folder, "--root", str(folder), env=env) as url:
        return ask_chat(url, "m", [{"role": "user", "content": f"{NAME} {words}"}])


def in_a_shell(folder: Path, env: Mapping[str, str], words: str, filled: Filled) -> str:
    ended = sightline("vision-proxy", *shlex.split(words), env=env, folder=folder)
    return (ended.out + ended.err).replace("sightline vision-proxy", NAME)  # what it is called there


def in_an_acp_editor(folder: Path, env: Mapping[str, str], words: str, filled: Filled) -> str:
    with editor(*acting(initialize=SEES), env=env) as ours:
        ours.prompt(ours.open(folder), text(f"{NAME} {words}"))
        assert ours.prompts() == [], "its agent has not heard of it"
        return ours.said()


def as_an_mcp_prompt(folder: Path, env: Mapping[str, str], words: str, filled: Filled) -> str:
    async def said() -> str:
        async with client(WAYS[0], folder, env=env) as one:
            try:
                got = await one.get_prompt(words.split()[0], dict(filled))
            except Exception as no:  # noqa: BLE001, whatever a client makes of it: its words are compared
                return str(no)
            answer: str = got.messages[0].content.model_dump()["text"]
            return answer

    return asyncio.run(said())


DOORS: tuple[Typed, ...] = (in_a_chat, in_a_shell, in_an_acp_editor, as_an_mcp_prompt)
EVERY_DOOR = pytest.mark.parametrize("typed", DOORS)


@EVERY_DOOR
@requirement("command.grammar")
def test_the_same_command_does_the_same_everywhere(typed: Typed, tmp_path: Path) -> None:
    picture = paint_quadrants(some_colours(seed=5))
    (tmp_path / "my shot.png").write_bytes(picture)
    with eyes("It is red.") as provider:
        env = named(provider)
        assert "It is red." in typed(tmp_path, env, *GOOD)
        assert len(provider.exchanges) == 1
        _, asked, (shown,) = sent(provider)
    assert QUESTION in asked
    assert shown != picture, "a part of it"


@EVERY_DOOR
@requirement("command.grammar")
def test_the_same_mistake_gets_the_same_answer_everywhere(typed: Typed, tmp_path: Path) -> None:
    for words, filled in BAD:
        no = parse(f"{NAME} {words}")
        assert isinstance(no, Refusal)
        assert str(no) in typed(tmp_path, {}, words, filled), words
