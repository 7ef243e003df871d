"""The product's sentences, word for word: one golden file for each surface, and nowhere else in the tests.

Each module of this package has `CASES`, which names things that a user, an editor, a model or a program can do, and
runs them against the real surface. `tests/golden/test_wording.py` compares what they say with NAME.txt beside them.
To improve a sentence, change it in `src` and rewrite the files:

    SIGHTLINE_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -n 0 tests/golden/test_wording.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sightline import __version__
from tests.api.answering import MP4, PDF
from tests.api.bad import PNG
from tests.scripted.pictures import paint_quadrants, some_colours

Case = Callable[[Path], str]
"""Says what one case prints or answers; the folder is where it works."""

FOLDER = Path(__file__).parent
UPDATE = (
    "SIGHTLINE_UPDATE_GOLDEN" in os.environ
)  # asked for before the first test: each test has an environment of its own
_HEAD = "== "

# What differs from one run or machine to the next.
_CHANGING = (
    (r"127\.0\.0\.1:(?!9\b|1\b|8790\b)\d+", "127.0.0.1:PORT"),
    (r"\bport \d+", "port PORT"),
    (r"sha256:(?!0{12}|abcdef)[0-9a-f]{12,64}", "sha256:DIGEST"),
    (r"(?m)^(out: )?\d{4}-\d\d-\d\d\b", r"\1DATE"),
    (r"DATE \d\d:\d\d:\d\d", "DATE TIME"),
    (r"\b[\d,]+ bytes\b", "N bytes"),
    (r" {12,}", " " * 12),
    (rf"sightline {re.escape(__version__)}", "sightline VERSION"),
    (r"Python \d+\.\d+\.\w+", "Python VERSION"),
    (r"\(\d+\.\d MB\)", "(SIZE)"),
)


def fill(folder: Path) -> None:
    """Write the files that the cases speak of."""
    files: Mapping[str, bytes] = {
        "shot.png": paint_quadrants(some_colours(seed=5)),
        "other.png": paint_quadrants(some_colours(seed=6)),
        "half.png": paint_quadrants(some_colours(seed=5))[:400],
        "empty.png": b"",
        "page.png": b"<!DOCTYPE html><html></html>",
        "small.png": PNG,
        "notes.txt": b"words\n",
        "things.zip": b"PK\x03\x04" + bytes(60),
        "page.pdf": PDF,
        "clip.mp4": MP4,
        "schema.json": b'{"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}',
        "list.json": b'{"type": "array"}',
        "broken.json": b"{",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def normalise(text: str, folder: Path) -> str:
    """Replace what differs from run to run: paths, ports, digests, dates and versions."""
    text = text.replace(str(folder), "FOLDER").replace(os.environ["SIGHTLINE_HOME"], "HOME")
    for pattern, word in _CHANGING:
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def read(surface: str) -> dict[str, str]:
    """Return what a golden file holds, by the names of the cases."""
    file = FOLDER / f"{surface}.txt"
    text = file.read_text("utf-8") if file.exists() else ""
    cases = (part.partition("\n") for part in f"\n{text}".split(f"\n{_HEAD}")[1:])
    return {name: said.strip("\n") for name, _, said in cases}


def write(surface: str, cases: Mapping[str, str]) -> None:
    text = "\n".join(f"{_HEAD}{name}\n{said}\n" for name, said in cases.items())
    (FOLDER / f"{surface}.txt").write_text(text, "utf-8")
