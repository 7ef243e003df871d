"""Images described with their conversation and compared, the same in every later request."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sightline.vision.prompts import DESCRIBE_INSTRUCTIONS
from tests.proxy.clients import WIRES, ask_messages, image_block, text
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

PICTURES = [paint_quadrants(some_colours(seed)) for seed in (21, 22, 23)]
MODEL = "claude-opus-x"


def looks(provider: Provider) -> list[str]:
    """All that whoever looks was told and asked, each time."""
    return [without_pixels(one.body) for one in provider.asked("deepseek-flash")]


def without_pixels(body: bytes) -> str:
    return re.sub(r"[A-Za-z0-9+/]{200,}=*", "PIXELS", json.dumps(json.loads(body), ensure_ascii=False))


def conversation(provider: Provider) -> list[Any]:
    found: list[Any] = [json.loads(one.body)["messages"] for one in provider.asked(MODEL)]
    return found


def pasted(words: str, *pictures: bytes) -> dict[str, Any]:
    return {"role": "user", "content": [*map(image_block, pictures), text(words)]}


@pytest.mark.parametrize("wire", WIRES)
@requirement("FR-2.1", "tell.context", "tell.text_first", "tell.no_orders")
def test_tool_images_are_described_alone_and_together(tmp_path: Path, wire: str) -> None:
    ask, _, read = WIRES[wire]
    model = {"messages": MODEL, "chat": "deepseek-v4-pro"}[wire]
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        ask(f"{proxy.url}/u/deepseek", model, read(*PICTURES[:2]))
        told = provider.asked(model)[-1].body.decode()
        asked = looks(provider)
    assert len(asked) == 3
    assert sum(one.count("PIXELS") == 2 for one in asked) == 1
    assert sum("You are analysing 2 images that the user has provided together." in one for one in asked) == 1
    assert sum(json.dumps(DESCRIBE_INSTRUCTIONS)[1:-1] in one for one in asked) == 2
    assert all("User: Read the pictures." in one for one in asked)
    assert told.count("</vision_proxy_description>") == 2
    assert told.count("</vision_proxy_joint_description>") == 1
    assert re.search(r"</vision_proxy_description>(?!.*</vision_proxy_description>).*</vision_proxy_joint", told)
    for seed in (21, 22):
        assert describe_quadrants(some_colours(seed)) in told


@requirement("FR-2.4", "tell.context", "FR-2.3")
def test_settings_turn_context_and_joint_descriptions_off(tmp_path: Path) -> None:
    given = {"SIGHTLINE_MAX_BATCH": "1", "SIGHTLINE_INCLUDE_CONTEXT": "false"}
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}", env=given) as proxy:
        ask_messages(f"{proxy.url}/u/deepseek", MODEL, [pasted("Which is it?", *PICTURES[:2])])
        asked = looks(provider)
        assert "joint_description" not in provider.asked(MODEL)[-1].body.decode()
    assert len(asked) == 2
    assert not any("Which is it?" in one for one in asked)


@requirement("FR-2.1.turn", "FR-2.1.beside", "joint.cached", "law.2")
@pytest.mark.parametrize("joint", ["auto", "turn"])
def test_descriptions_are_the_same_after_a_restart(tmp_path: Path, joint: str) -> None:
    history: list[dict[str, Any]] = [pasted("Compare them.", *PICTURES[:2])]
    with deepseek() as provider:
        for number in range(3):
            given = {"SIGHTLINE_JOINT": joint}
            with sightline(tmp_path, f"deepseek={provider.url}", env=given) as proxy:
                for _ in range(2):
                    ask_messages(f"{proxy.url}/u/deepseek", MODEL, history)
            history = [*history, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"{number}?"}]
        assert len(looks(provider)) == 3
        sent = conversation(provider)
    stands = ["joint_description" in json.dumps(messages) for messages in sent]
    assert stands == [True] * 2 + [joint == "auto"] * 4
    alike = [later[: len(earlier)] == earlier for earlier, later in pairwise(sent)]
    assert alike == [True, joint == "auto", True, True, True]
