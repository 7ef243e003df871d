"""`sightline doctor`."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from sightline import __version__
from sightline.agents import AGENTS
from sightline.model.profile import Lesson
from sightline.settings import FILE_NAME
from sightline.store import open_record
from tests.cli.command import ALONE, sightline
from tests.cli.test_serve import serving
from tests.requirements import requirement
from tests.scripted.models import SEES
from tests.scripted.provider import Provider

KEY = "sk-that-nobody-may-see"


@requirement("doctor")
def test_doctor_says_what_is_missing_if_nothing_is_set_up(home: Path) -> None:
    ended = sightline("doctor", env=ALONE)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"sightline {__version__}, Python ")
    assert f"{home / FILE_NAME} (" in ended.out
    assert "\n  local\n" in ended.out, "the local reader is always there"
    assert "sightline serve" in ended.out or "proxy      http://127.0.0.1:8790" in ended.out
    assert all(agent.title in ended.out for agent in AGENTS.values())


@requirement("doctor", "settings.network")
def test_doctor_says_whether_web_images_are_fetched() -> None:
    assert "network    off: images at web addresses are not fetched (sightline config set network on)" in (
        sightline("doctor", env=ALONE).out
    )
    assert sightline("doctor", "--json", env={**ALONE, "SIGHTLINE_NETWORK": "on"}).json["settings"]["network"] == "on"


@requirement("doctor.proxy")
def test_a_running_proxy_is_found_with_and_without_a_token() -> None:
    for env in ({}, {"SIGHTLINE_TOKEN": "s3cret"}):
        with serving(**env) as (_, address):
            port = address.rpartition(":")[2]
            for told in ({}, env):
                found = sightline("doctor", "--json", "--port", port, env={**ALONE, **told}).json
                assert found["listening"] == address
    assert sightline("doctor", "--json", "--port", port, env=ALONE).json["listening"] is None


@requirement("mode.route.model")
def test_a_mode_without_its_model_is_reported_by_doctor_and_serve() -> None:
    env = {**ALONE, "SIGHTLINE_MODE": "route"}
    told = "sightline config set imageModel"
    assert told in sightline("doctor", env=env).out
    with serving(**env) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[1].count(told) == 1
    assert told in sightline("run", "--", "true", env=env).err
    assert told not in sightline("doctor", env={**env, "SIGHTLINE_IMAGE_MODEL": "eyes-1"}).out


@requirement("doctor", "settings.hidden")
def test_doctor_shows_setup_and_lessons_but_no_key(home: Path) -> None:
    record = open_record(home / "record")
    record.policy.keep_lesson("deepseek", "deepseek-v4-pro", Lesson(blind=True, why="it takes text only"), days=7)
    record.policy.set_consent("openai", given=True)
    record.close()
    (home / FILE_NAME).write_text(json.dumps({"mode": "sometimes", "apiKey": KEY}))
    (home / FILE_NAME).chmod(0o644)
    env = {**ALONE, "DEEPSEEK_API_KEY": KEY, "SIGHTLINE_MODEL": "openai/gpt-6-luna"}
    report = sightline("doctor", "--json", env=env).json
    assert report["version"] == __version__
    assert report["settings"]["exists"] is True
    assert len(report["settings"]["warnings"]) == 2
    assert report["record"]["folder"] == str(home / "record")
    assert report["record"]["bytes"] > 0
    assert report["record"]["consents"] == {"openai": True}
    assert report["record"]["learnt"][0]["model"] == "deepseek-v4-pro"
    assert report["upstreams"]["deepseek"]["key"] is True
    assert report["upstreams"]["deepseek"]["key_name"] == "DEEPSEEK_API_KEY"
    assert report["upstreams"]["deepseek"]["variables"] == ["DEEPSEEK_API_KEY"]
    assert report["upstreams"]["zai"]["key"] is False
    assert report["upstreams"]["ollama"]["configured"] is True
    assert [*report["seers"][0]] == ["refusal"]
    assert "openai/gpt-6-luna" in report["seers"][0]["refusal"]
    assert report["agents"].keys() == AGENTS.keys()
    text = sightline("doctor", env=env)
    assert KEY not in json.dumps(report) + text.out + text.err
    assert "deepseek/deepseek-v4-pro: blind (it takes text only)" in text.out
    assert re.search(r"^consents .*\bopenai$", text.out, re.MULTILINE)
    (line,) = [line for line in text.out.splitlines() if line.startswith("  deepseek ")]
    assert "key in DEEPSEEK_API_KEY" in line


@requirement("doctor.keys", "settings.hidden")
def test_doctor_says_where_the_vision_model_and_its_key_are(home: Path) -> None:
    held = {
        "upstreams": {
            **json.loads(ALONE["SIGHTLINE_UPSTREAMS"]),
            "work": {"baseUrl": "http://127.0.0.1:9", "apiKey": KEY},
        },
        "provider": "anthropic",
        "auxiliary": {"vision": {"model": "eye", "baseUrl": "http://127.0.0.1:9", "apiKey": KEY}},
    }
    (home / FILE_NAME).write_text(json.dumps(held))
    (home / FILE_NAME).chmod(0o600)
    report, text = sightline("doctor", "--json").json, sightline("doctor").out
    assert report["vision_model"] == {
        "name": "127.0.0.1:9/eye",
        "address": "http://127.0.0.1:9",
        "wire": "anthropic",
        "key_name": "auxiliary.vision.apiKey",
    }
    assert report["upstreams"]["work"]["key_name"] == "upstreams.work.apiKey"
    (line,) = [line for line in text.splitlines() if line.startswith("seer ")]
    assert all(each in line for each in ("127.0.0.1:9", "Anthropic", "auxiliary.vision.apiKey"))
    assert KEY not in json.dumps(report) + text


@requirement("doctor")
def test_a_local_model_is_discovered() -> None:
    with Provider((("llava", SEES), ("qwen3-coder", "ollama"))) as provider:
        nobody = {"baseUrl": "http://127.0.0.1:9/v1"}
        upstreams = {
            "ollama": {"baseUrl": f"{provider.url}/v1"},
            "lmstudio": nobody,
            "llamacpp": nobody,
            "vllm": nobody,
        }
        report = sightline("doctor", "--json", env={"SIGHTLINE_UPSTREAMS": json.dumps(upstreams)}).json
    assert [seer["name"].split(":")[0] for seer in report["seers"]] == ["ollama/llava", "local"]


def test_an_invalid_vision_model_is_reported_in_its_place() -> None:
    ended = sightline("doctor", env={**ALONE, "SIGHTLINE_MODEL": "nobody/model"})
    assert ended.code == 0
    assert "'nobody/model'" in ended.out
    assert "baseUrl" in ended.out
    assert "record     " in ended.out


def test_a_record_in_memory_is_reported() -> None:
    assert re.search(
        r"^record .*\bmemory$", sightline("doctor", env={**ALONE, "SIGHTLINE_RECORD": "memory"}).out, re.MULTILINE
    )


@requirement("seer.doctor")
def test_doctor_lists_usable_providers_and_why_others_are_not(home: Path) -> None:
    record = open_record(home / "record")
    record.policy.set_consent("openai", given=True)
    record.close()
    with Provider((("llava", SEES),)) as provider:
        nobody = {"baseUrl": "http://127.0.0.1:9/v1"}
        others = dict.fromkeys(("lmstudio", "llamacpp", "vllm"), nobody)
        upstreams = {"ollama": {"baseUrl": f"{provider.url}/v1"}, **others}
        keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "ZAI_API_KEY": "", "GEMINI_API_KEY": ""}
        env = {"SIGHTLINE_UPSTREAMS": json.dumps(upstreams), **keys}
        report, text = sightline("doctor", "--json", env=env).json, sightline("doctor", env=env)
    why = {name: each["why"] for name, each in report["providers"].items()}
    assert why["openai"] == why["ollama"] == []
    for name in ("lmstudio", "vllm"):
        assert len(why[name]) == 1
        assert "http://127.0.0.1:9/v1" in why[name][0]
    (no,) = why["anthropic"]
    assert "sightline consent yes anthropic" in no
    assert len(why["zai"]) == 2, "neither a consent nor a key"
    assert why["local"] == []
    assert f": ollama ({provider.url.removeprefix('http://')}), openai, local\n" in text.out
    assert f"anthropic: {no}\n" in text.out
    (keyless,) = [line for line in text.out.splitlines() if ", zai" in line and "openrouter" in line][:1]
    assert "zai" in keyless
    assert "openai" not in keyless
    assert (text.err, KEY in text.out) == ("", False)
