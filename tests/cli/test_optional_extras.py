"""The command as `pip install sightline` brings it: without the extras."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sightline.vision.seers.litellm_client import LITELLM_PROVIDERS
from tests.api.bad import PNG
from tests.cli.command import ALONE, COMMAND, Ended, assert_refused, sightline
from tests.requirements import requirement

MISSING = "pip install 'sightline[local]'"
# Where what the extras `local` and `providers` bring is not there.
BASE = """
import importlib.util as util
import sys
found, absent = util.find_spec, ("numpy", "onnxruntime", "litellm")
util.find_spec = lambda name, *more: None if name in absent else found(name, *more)
from sightline.cli.main import main
sys.exit(main())
"""


def base(folder: Path, *words: str) -> Ended:
    return sightline(*words, env=ALONE, folder=folder, command=(sys.executable, "-c", BASE))


@requirement("seer.local.absent")
def test_a_missing_local_reader_is_reported_once_and_briefly(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    (tmp_path / "v.mp4").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom")
    assert_refused(base(tmp_path, "describe", "shot.png", "--model", "local"), "local", MISSING)
    named = base(tmp_path, "ask", "shot.png", "What is it?", "--model", "local")
    assert named.json["error"].startswith("VISION_NOT_SUPPORTED: ")
    assert MISSING in named.json["error"]
    for model in ([], ["--model", "local"]):
        film = base(tmp_path, "video", "v.mp4", *model).json["error"]
        assert film.startswith("VIDEO_NOT_SUPPORTED: ")
        assert MISSING in film
    report = base(tmp_path, "doctor").out
    (line,) = [line for line in report.splitlines() if "sightline[local]" in line]
    assert MISSING in line
    assert "ollama pull" not in report
    assert "sightline config set seer PROVIDER/MODEL" in report


@requirement("seer.local.absent")
def test_the_local_reader_is_suggested_if_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    for said in (
        base(tmp_path, "describe", "shot.png").err,
        base(tmp_path, "ask", "shot.png", "What is it?").json["error"],
    ):
        assert "ollama pull" in said
        assert said.count("sightline[local]") == 1


@requirement("seer.others.listed")
def test_providers_of_the_extra_are_listed_without_importing_it(
    tmp_path: Path,
) -> None:
    assert "LiteLLM" not in base(tmp_path, "doctor").out
    (tmp_path / "litellm").mkdir()
    (tmp_path / "litellm" / "__init__.py").write_text("raise SystemExit('it was loaded')")
    env = {**ALONE, "PYTHONPATH": str(tmp_path)}
    report = sightline("doctor", env=env, folder=tmp_path, command=COMMAND)
    assert (report.code, report.err) == (0, "")
    (line,) = [line for line in report.out.splitlines() if "through LiteLLM" in line]
    assert set(line.partition(": ")[2].split(", ")) == LITELLM_PROVIDERS


@requirement("seer.others.listed")
def test_the_library_page_lists_litellm_providers_and_their_variables() -> None:
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text()
    section = page.partition("## Bedrock, Vertex and others")[2]
    assert set(re.findall(r"`([a-z_]+)`", section.split("\n\n")[2])) == LITELLM_PROVIDERS
    for variable in ("AWS_REGION_NAME", "AWS_BEARER_TOKEN_BEDROCK", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"):
        assert f"`{variable}`" in section
