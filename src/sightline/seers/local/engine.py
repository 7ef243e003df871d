"""What reads: the pairs of weights at hand, each opened when it is first needed.

engine = open_engine(data_folder)       # a Refusal where no weights are installed
lines = reading.read(pixels, engine)    # pixels: uint8, height x width x RGB
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.seers.local import weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

THREADS = 1
_KEPT = 320 * 1024 * 1024  # bytes that a process may have when nobody asks it anything


def give_back() -> None:
    """Hands free memory to the system again, which glibc else keeps in pieces, more from look to look.

    To have it again costs time: a process that has no more than it needs for a look keeps it.
    """
    if sys.platform != "linux" or _resident() <= _KEPT:
        return
    import ctypes

    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def _resident() -> int:
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Network:
    """One onnxruntime session that gives its memory back after each run."""

    def __init__(self, model: bytes, threads: int) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # it would keep the most that it ever needed
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
        """The alphabet that a recogniser carries inside."""
        return str(self._session.get_modelmeta().custom_metadata_map.get("character", ""))


class Reader:
    """A pair, opened: where lines are, and what they say."""

    def __init__(self, name: weights.Name, files: dict[weights.Role, bytes], threads: int) -> None:
        self.name = name
        self.detector = Network(files["detector"], threads)
        self.recogniser = Network(files["recogniser"], threads)
        written = files["letters"].decode() if "letters" in files else self.recogniser.letters
        # A class for "nothing new" stands before the letters, the space behind them.
        self.alphabet = ("", *written.replace("\r\n", "\n").removesuffix("\n").split("\n"), " ")


class Engine:
    """The readers at hand. Safe to share between threads."""

    def __init__(
        self, held: dict[weights.Name, weights.Held], threads: int = THREADS, data: Path | None = None
    ) -> None:
        self._held, self._threads, self._data = held, threads, data
        self._broken: Refusal = weights.MISSING
        self._open: dict[weights.Name, Reader] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[weights.Name, ...]:
        return tuple(self._held)

    def reader(self, name: weights.Name) -> Reader | None:
        """The reader of that name; None where its weights are not installed, or not what they should be."""
        with self._lock:
            if name not in self._open and name in self._held:
                files = weights.load(name, self._held[name], self._data)
                if isinstance(files, Refusal):
                    del self._held[name]
                    self._broken = files
                    return None
                self._open[name] = Reader(name, files, self._threads)
            return self._open.get(name)

    def unable(self) -> Refusal | None:
        """Why nothing can be read: no weights open."""
        return None if self.reader("tiny") or self.reader("small") else self._broken


def open_engine(data: Path | None = None, threads: int = THREADS) -> Engine | Refusal:
    """The readers whose weights are installed, or what to type when there are none."""
    held = {name: found for name in weights.PAIRS if (found := weights.find(name, data))}
    return Engine(held, threads, data) if held and weights.installed() else weights.MISSING
