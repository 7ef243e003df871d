"""How much of a screen is read, how exactly placed and at what cost: our reader beside rapidocr and tesseract."""

import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import env
import meter
import pages
import screens
from legible import Found, score
from pages import Box, Page

from sightline.model.geometry import PixelMap, Size

HERE = Path(__file__).resolve().parent
OURS, SMALL, RAPID, TESSERACT = "both pairs", "small pair", "rapidocr", "tesseract"
LIMITS = {"dialog": 99.0, "form": 99.0, "chart": 99.0, "9 px": 98.0, "small9": 98.0}  # per cent, by words of a name
PLACED, HALF, SECONDS, MEGABYTES = 0.95, 0.5, 2.0, 600
NO_SCREEN = ("scan", "sample form", "sample chart")  # their boxes are hulls, whole fields, or wider than the ink


@dataclass(frozen=True)
class Figure:
    characters: float  # per cent
    wrong: float  # characters
    lines: float  # per cent, without a fault
    placed: float  # mean overlap of boxes with the ink, 0 to 1
    seconds: float  # of CPU


class Reader:
    """A process that reads image after image."""

    def __init__(self, *command: str | Path) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, picture: Path) -> tuple[list[Found], float]:
        assert self._process.stdin
        assert self._process.stdout
        before = meter.cpu_seconds(self._process.pid)
        self._process.stdin.write(json.dumps(str(picture)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("bench: a reader ended; its words are above")
        return json.loads(answer), meter.cpu_seconds(self._process.pid) - before

    def close(self) -> float:
        """The most memory it ever had, in megabytes."""
        most = meter.peak_mb(self._process.pid)
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        return most


class Tesseract:
    """A process for each image, as it is used; its start is part of its cost and small."""

    def __init__(self, command: str) -> None:
        self._command = command

    def read(self, picture: Path) -> tuple[list[Found], float]:
        letters = ["-l", "jpn"] if "CJK" in picture.name else []
        command = [self._command, picture, "-", *letters, "tsv"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_THREAD_LIMIT": "1"}
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return _tsv(ended.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def close(self) -> float:
        return 0.0


def _tsv(text: str) -> list[Found]:
    """Words of one line put together."""
    lines: dict[tuple[str, ...], list[tuple[str, Box]]] = defaultdict(list)
    for row in text.splitlines()[1:]:
        cells = row.split("\t")
        if cells[0] == "5" and cells[11].strip():
            left, top, width, height = map(int, cells[6:10])
            lines[tuple(cells[1:5])].append((cells[11], (left, top, left + width, top + height)))
    found: list[Found] = []
    for words in lines.values():
        left, top, right, bottom = pages.around([box for _, box in words])
        found.append(
            (" ".join(word for word, _ in words), [[left, top], [right, top], [right, bottom], [left, bottom]])
        )
    return found


def placed(page: Page, found: list[Found]) -> float:
    """The mean overlap of the ink of a line with the rectangle around all that was found in it, where something was."""
    overlaps = []
    for line in page.lines:
        ink = line.ink or line.box
        if inside := [box for box in map(_box, found) if _shares(box, ink)]:
            overlaps.append(_overlap(ink, pages.around(inside)))
    return statistics.fmean(overlaps) if overlaps else 0.0


def _box(found: Found) -> Box:
    xs, ys = zip(*found[1], strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _shares(box: Box, ink: Box) -> bool:
    """Whether the middle of the one stands in the other."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return ink[0] <= x <= ink[2] and ink[1] - 2 <= y <= ink[3] + 2


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def measured(page: Page, picture: Path, reader: Reader | Tesseract) -> Figure:
    found, seconds = reader.read(picture)
    result = score(page, [(PixelMap.identity(Size(*page.image.size)), found)])
    total = sum(len(line.text.replace(" ", "")) for line in page.lines)
    wrong = round(total * (1 - result.characters / 100))
    return Figure(result.characters, wrong, result.lines, placed(page, found), seconds)


def run(seeds: int, file: Path, only: str = "") -> None:
    home = env.ocr()
    for folder in ("matplotlib/mpl-data/fonts/ttf", "matplotlib_fontja/fonts"):
        pages.FONTS.extend(home.glob(f"lib/python*/site-packages/{folder}"))
    readers: dict[str, Reader | Tesseract] = {
        OURS: Reader(sys.executable, HERE / "ours.py"),
        SMALL: Reader(sys.executable, HERE / "ours.py", "small"),
        RAPID: Reader(home / "bin" / "python", HERE / "reader.py"),
    }
    if command := shutil.which("tesseract"):
        readers[TESSERACT] = Tesseract(command)
    else:
        env.say("tesseract is missing and left out; on Debian: apt-get install tesseract-ocr tesseract-ocr-jpn")
    todo = [page for seed in range(1, seeds + 1) for page in screens.made(seed)] + list(pages.kept())
    todo = [page for page in todo if only in page.name]
    figures: dict[tuple[str, str], list[Figure]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.png"
        screens.dialog(pages.Words(1)).image.save(warm)
        for reader in readers.values():
            reader.read(warm)
        for number, page in enumerate(todo, 1):
            picture = Path(folder) / f"{page.name}.png"
            page.image.save(picture)
            for name, reader in readers.items():
                figure = measured(page, picture, reader)
                figures[page.name, name].append(figure)
                env.say(f"{number}/{len(todo)} {page.name}, {name}: {figure.characters:.2f} %, {figure.seconds:.2f} s")
    memory = {name: reader.close() for name, reader in readers.items()}
    means = {key: mean(several) for key, several in figures.items()}
    text = table(means, memory, seeds)
    rows = [{"page": page, "reader": name, **vars(figure)} for (page, name), figure in means.items()]
    file.write_text(json.dumps({"seeds": seeds, "peak_mb": memory, "figures": rows}, indent=1) + "\n")
    file.with_suffix(".md").write_text(f"<!-- Generated by bench/run.py. -->\n{text}")
    print(text)


def mean(several: list[Figure]) -> Figure:
    return Figure(*(statistics.fmean(getattr(one, name) for one in several) for name in Figure.__annotations__))


def table(means: dict[tuple[str, str], Figure], memory: dict[str, float], seeds: int) -> str:
    """Every figure is: characters read in per cent (wrong ones) / overlap of boxes with the ink, seconds of CPU."""
    names = list(dict.fromkeys(name for _, name in means))
    rows = [["", *names, "targets"], ["---"] * (len(names) + 2)]
    for page in dict.fromkeys(page for page, _ in means):
        found = {name: means[page, name] for name in names}
        rows.append([page, *(_cell(figure) for figure in found.values()), "; ".join(verdicts(page, found))])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    several = f"Mean of {seeds} seeds" if seeds > 1 else "One seed"
    about = f"{several}, one thread each, Python {platform.python_version()}. {table.__doc__}"
    most = ", ".join(f"{name} {value:.0f} MB" for name, value in memory.items() if value)
    light = _met(f"≤ {MEGABYTES} MB", memory[OURS] <= MEGABYTES)
    return "\n".join([about, "", *lines, "", f"Most memory at any time: {most} ({light}).", ""])


def _cell(figure: Figure) -> str:
    return f"{figure.characters:.2f} ({figure.wrong:.1f}) / {figure.placed:.2f}, {figure.seconds:.2f} s"


def verdicts(page: str, found: dict[str, Figure]) -> list[str]:
    mine, peer = found[OURS], found[RAPID]
    told = [
        _met(f"≥ {limit:g} %", mine.characters >= limit) for word, limit in LIMITS.items() if word in page
    ]  # fmt: skip
    if not page.startswith(NO_SCREEN):
        told.append(_met(f"boxes ≥ {PLACED}", mine.placed >= PLACED))
    if "1920x1080" in page:
        told.append(_met(f"≤ {SECONDS:g} s", mine.seconds <= SECONDS))
    told.append(_met("as exact as rapidocr", mine.wrong <= peer.wrong + 1))
    told.append(_met(f"≤ {HALF} of its CPU", mine.seconds <= HALF * peer.seconds))
    return told


def _met(what: str, held: bool) -> str:
    return f"{what}: {'met' if held else 'MISSED'}"
