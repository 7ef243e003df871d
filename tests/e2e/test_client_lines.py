"""The lines and programs of docs/clients.md, run as they are printed there, in front of a text-only model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from bench import peer_environments
from tests.cli.command import ALONE
from tests.cli.command import sightline as run_sightline
from tests.e2e.conftest import Play
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import deepseek, nobody_listens

ROOT = Path(__file__).parents[2]
LANGCHAIN = {
    "ChatOpenAI": "langchain_openai",
    "ChatAnthropic": "langchain_anthropic",
    "ChatGoogleGenerativeAI": "langchain_google_genai",
}


_PAGE = (ROOT / "docs" / "clients.md").read_text("utf-8")
_COLOURS = some_colours(seed=17)
SHOWN = describe_quadrants(_COLOURS)
_KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"), "sk-test")
# LiteLLM would fetch a price list; warnings of clients are theirs.
_CLIENT = {**_KEYS, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore"}


def read_block(heading: str, language: str = "python") -> str:
    """Return the first block of code below a heading of the page."""
    section = _PAGE.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    block = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert block, f"docs/clients.md has no {language} block below {heading}"
    return block[1]


def paint_screenshot(folder: Path) -> Path:
    path = folder / "screenshot.png"
    path.write_bytes(paint_quadrants(_COLOURS))
    return path


def run_client(folder: Path, *command: str | Path) -> str:
    """Run a command as `sightline run --upstream deepseek -- COMMAND` would, and return what it prints.

    Unlike DeepSeek itself, this provider has Gemini's API, too.
    """
    paint_screenshot(folder)
    with deepseek() as provider:
        own = {"deepseek": {"baseUrl": dict.fromkeys(("anthropic", "openai_chat", "gemini"), provider.url)}}
        ended = run_sightline(
            *("run", "--upstream", "deepseek", "--", *map(str, command)),
            env={**ALONE, **_CLIENT, "SIGHTLINE_UPSTREAMS": json.dumps(own), "HOME": str(folder)},
            folder=folder,
        )
    assert ended.code == 0, ended.err
    return ended.out


@cache
def find_environment(group: str) -> Path:
    """Return the folder of the programs of a group; what its script says of an error is among what pytest prints."""
    command = [str(ROOT / "scripts" / "peers-env"), group]
    return Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip(), "bin")


@requirement("clients.lines")
@pytest.mark.parametrize("library", ["OpenAI SDK", "Anthropic SDK", "google-genai", "LiteLLM"])
def test_programs_on_the_clients_page_get_a_description(library: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(read_block(library))
    assert SHOWN in run_client(tmp_path, find_environment("peers") / "python", "agent.py")


@requirement("clients.lines")
@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_litellm_is_pointed_on_each_api(api: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(read_block("LiteLLM").replace("openai/", f"{api}/"))
    assert SHOWN in run_client(tmp_path, find_environment("peers") / "python", "agent.py")


@requirement("clients.lines")
@pytest.mark.parametrize("model", LANGCHAIN)
def test_each_chat_model_of_langchain_is_pointed(model: str, tmp_path: Path) -> None:
    code = read_block("LangChain").replace("langchain_openai", LANGCHAIN[model]).replace("ChatOpenAI", model)
    (tmp_path / "agent.py").write_text(code)
    assert SHOWN in run_client(tmp_path, find_environment("langchain") / "python", "agent.py")


@requirement("clients.lines")
def test_aider_adds_an_image_once_its_model_is_declared_as_seeing(tmp_path: Path) -> None:
    (tmp_path / ".aider.model.metadata.json").write_text(read_block("aider", "json"))
    quiet = ["--no-check-update", "--analytics-disable", "--no-git", "--no-pretty", "--yes-always"]
    said = run_client(
        tmp_path,
        find_environment("aider") / "aider",
        *("--model", "openai/deepseek-v4-pro", "--message", "What do you see?", *quiet, "screenshot.png"),
    )
    assert SHOWN in said


@requirement("clients.lines")
def test_kimi_code_reads_an_image_for_a_text_only_model(play: Play, tmp_path: Path) -> None:
    picture = paint_screenshot(tmp_path)
    outcome = play(
        ["sightline", "run", "--upstream", "deepseek={url}", "--", "kimi", "-p", f"What is in {picture}?"],
        provider="blind",
        script=[[("ReadMediaFile", {"path": str(picture)})]],
        environment={
            "KIMI_MODEL_NAME": "deepseek-v4-pro",
            "KIMI_MODEL_PROVIDER_TYPE": "openai",
            "KIMI_MODEL_API_KEY": "sk-test",
            "KIMI_DISABLE_TELEMETRY": "1",
        },
    )
    assert SHOWN in outcome.last.stdout, outcome.last


@contextmanager
def litellm_proxy(folder: Path, api_base: str) -> Iterator[str]:
    """LiteLLM's proxy with the model list of the page, at another address of Sightline."""
    (folder / "config.yaml").write_text(
        read_block("LiteLLM's proxy", "yaml").replace("http://127.0.0.1:8790/u/deepseek/v1", api_base)
    )
    with nobody_listens() as address:
        port = address.rpartition(":")[2]
    command = [f"{peer_environments.install_litellm()}/bin/litellm", "--config", "config.yaml", "--host", "127.0.0.1"]
    quiet = {
        "DEEPSEEK_API_KEY": "sk-test",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    with subprocess.Popen(
        [*command, "--port", port],
        cwd=folder,
        env={**os.environ, **quiet},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout
            assert any("Uvicorn running" in line for line in process.stdout), "LiteLLM's proxy did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def ask(folder: Path, base: str) -> str:
    """Run the page's program for the OpenAI SDK with a base URL of its own."""
    code = re.sub(r"OpenAI\(\)", f"OpenAI(base_url={base!r}, api_key='sk-test')", read_block("OpenAI SDK"))
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@requirement("clients.lines")
def test_litellm_s_proxy_works_before_and_after_sightline(tmp_path: Path) -> None:
    paint_screenshot(tmp_path)
    with deepseek() as provider, sightline(tmp_path / "a", f"deepseek={provider.url}") as behind:
        with litellm_proxy(tmp_path, f"{behind.url}/u/deepseek/v1") as litellm:
            assert SHOWN in ask(tmp_path, f"{litellm}/v1")
        seen = len(provider.exchanges)
        text_only = {"SIGHTLINE_MODELS": '{"litellm/deepseek-v4-pro": {"vision": false}}', "SIGHTLINE_SEER": "local"}
        with (
            litellm_proxy(tmp_path, f"{provider.url}/v1") as litellm,
            sightline(tmp_path / "b", f"litellm={litellm}", env=text_only) as front,
        ):
            assert "I was told" in ask(tmp_path, f"{front.url}/u/litellm/v1")
        assert not any(b"image_url" in each.body for each in provider.exchanges[seen:])
