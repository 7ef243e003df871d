"""How much of a screen is read, how exactly it is located, and at what cost: our reader, rapidocr and tesseract."""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import meter
import pages
import peer_environments
import screens
from legibility_score import Found, score_page
from pages import Box, Page

from sightline.model.geometry import PixelMap, Size

HERE = Path(__file__).resolve().parent
OURS, SMALL, RAPID, TESSERACT = "both pairs", "small pair", "rapidocr", "tesseract"
LIMITS = {"dialog": 99.0, "form": 99.0, "chart": 99.0, "9 px": 98.0, "small9": 98.0}  # per cent, by words of a name
PLACED, HALF, SECONDS, MEGABYTES = 0.95, 0.5, 2.0, 600
NO_SCREEN = ("scan", "sample form", "sample chart")  # their boxes are hulls, whole fields, or wider than the ink


@dataclass(frozen=True)
class OcrFigure:
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
        before = meter.read_cpu_seconds(self._process.pid)
        self._process.stdin.write(json.dumps(str(picture)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("bench: a reader ended; its words are above")
        return json.loads(answer), meter.read_cpu_seconds(self._process.pid) - before

    def close(self) -> float:
        """End the process and return the most memory it used, in megabytes."""
        most = meter.read_peak_mb(self._process.pid)
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
        return _parse_tsv(ended.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def close(self) -> float:
        return 0.0


def _parse_tsv(text: str) -> list[Found]:
    """Words of one line put together."""
    lines: dict[tuple[str, ...], list[tuple[str, Box]]] = defaultdict(list)
    for row in text.splitlines()[1:]:
        cells = row.split("\t")
        if cells[0] == "5" and cells[11].strip():
            left, top, width, height = map(int, cells[6:10])
            lines[tuple(cells[1:5])].append((cells[11], (left, top, left + width, top + height)))
    found: list[Found] = []
    for words in lines.values():
        left, top, right, bottom = pages.enclose([box for _, box in words])
        found.append(
            (" ".join(word for word, _ in words), [[left, top], [right, top], [right, bottom], [left, bottom]])
        )
    return found


def measure_overlap(page: Page, found: list[Found]) -> float:
    """Return the mean overlap of each line's ink with the rectangle around what was read there, if anything was."""
    overlaps = []
    for line in page.lines:
        ink = line.ink or line.box
        if inside := [box for box in map(_find_box, found) if _has_centre_in(box, ink)]:
            overlaps.append(_compute_overlap(ink, pages.enclose(inside)))
    return statistics.fmean(overlaps) if overlaps else 0.0


def _find_box(found: Found) -> Box:
    xs, ys = zip(*found[1], strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _has_centre_in(box: Box, ink: Box) -> bool:
    """Return whether the centre of one box is inside the other."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return ink[0] <= x <= ink[2] and ink[1] - 2 <= y <= ink[3] + 2


def _compute_overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def measure_page(page: Page, picture: Path, reader: Reader | Tesseract) -> OcrFigure:
    found, seconds = reader.read(picture)
    size = Size(*page.image.size)
    result = score_page(page, [(PixelMap.from_scaling(size, size), found)])
    total = sum(len(line.text.replace(" ", "")) for line in page.lines)
    wrong = round(total * (1 - result.characters / 100))
    return OcrFigure(result.characters, wrong, result.lines, measure_overlap(page, found), seconds)


def run(seeds: int, file: Path, only: str = "") -> None:
    home = peer_environments.install_ocr()
    for folder in ("matplotlib/mpl-data/fonts/ttf", "matplotlib_fontja/fonts"):
        pages.FONTS.extend(home.glob(f"lib/python*/site-packages/{folder}"))
    readers: dict[str, Reader | Tesseract] = {
        OURS: Reader(sys.executable, HERE / "sightline_reader.py"),
        SMALL: Reader(sys.executable, HERE / "sightline_reader.py", "small"),
        RAPID: Reader(home / "bin" / "python", HERE / "rapidocr_reader.py"),
        TESSERACT: Tesseract(peer_environments.find_tesseract()),
    }
    todo = [page for seed in range(1, seeds + 1) for page in screens.draw_screens(seed)] + list(pages.load_samples())
    todo = [page for page in todo if only in page.name]
    figures: dict[tuple[str, str], list[OcrFigure]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.png"
        screens.draw_dialog(pages.Words(1)).image.save(warm)
        for reader in readers.values():
            reader.read(warm)
        for number, page in enumerate(todo, 1):
            picture = Path(folder) / f"{page.name}.png"
            page.image.save(picture)
            for name, reader in readers.items():
                figure = measure_page(page, picture, reader)
                figures[page.name, name].append(figure)
                peer_environments.print_status(
                    f"{number}/{len(todo)} {page.name}, {name}: {figure.characters:.2f} %, {figure.seconds:.2f} s"
                )
    memory = {name: reader.close() for name, reader in readers.items()}
    means = {key: average(several) for key, several in figures.items()}
    text = write_table(means, memory, seeds)
    rows = [{"page": page, "reader": name, **vars(figure)} for (page, name), figure in means.items()]
    file.write_text(json.dumps({"seeds": seeds, "peak_mb": memory, "figures": rows}, indent=1) + "\n")
    file.with_suffix(".md").write_text(f"<!-- Generated by bench/run.py. -->\n{text}")
    print(text)


def average(several: list[OcrFigure]) -> OcrFigure:
    return OcrFigure(*(statistics.fmean(getattr(one, name) for one in several) for name in OcrFigure.__annotations__))


def write_table(means: dict[tuple[str, str], OcrFigure], memory: dict[str, float], seeds: int) -> str:
    """Write a table of characters read in per cent (wrong ones), overlap of boxes with the ink, and seconds of CPU."""
    names = list(dict.fromkeys(name for _, name in means))
    rows = [["", *names, "targets"], ["---"] * (len(names) + 2)]
    for page in dict.fromkeys(page for page, _ in means):
        found = {name: means[page, name] for name in names}
        rows.append([page, *(_format_cell(figure) for figure in found.values()), "; ".join(list_verdicts(page, found))])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    several = f"Mean of {seeds} seeds" if seeds > 1 else "One seed"
    about = f"{several}, one thread each, Python {platform.python_version()}. {write_table.__doc__}"
    most = ", ".join(f"{name} {value:.0f} MB" for name, value in memory.items() if value)
    light = _format_verdict(f"≤ {MEGABYTES} MB", memory[OURS] <= MEGABYTES)
    return "\n".join([about, "", *lines, "", f"Most memory at any time: {most} ({light}).", ""])


def _format_cell(figure: OcrFigure) -> str:
    return f"{figure.characters:.2f} ({figure.wrong:.1f}) / {figure.placed:.2f}, {figure.seconds:.2f} s"


def list_verdicts(page: str, found: dict[str, OcrFigure]) -> list[str]:
    mine, peer = found[OURS], found[RAPID]
    told = [
        _format_verdict(f"≥ {limit:g} %", mine.characters >= limit) for word, limit in LIMITS.items() if word in page
    ]  # fmt: skip
    if not page.startswith(NO_SCREEN):
        told.append(_format_verdict(f"boxes ≥ {PLACED}", mine.placed >= PLACED))
    if "1920x1080" in page:
        told.append(_format_verdict(f"≤ {SECONDS:g} s", mine.seconds <= SECONDS))
    told.append(_format_verdict("as exact as rapidocr", mine.wrong <= peer.wrong + 1))
    told.append(_format_verdict(f"≤ {HALF} of its CPU", mine.seconds <= HALF * peer.seconds))
    return told


def _format_verdict(what: str, held: bool) -> str:
    return f"{what}: {'met' if held else 'MISSED'}"
