"""How exactly the values of charts are read: bars and lines, drawn by matplotlib and as web pages draw them."""

import json
import platform
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
import peer_environments
import web_charts
from PIL import Image

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal
from sightline.reader.charts import find_charts
from sightline.reader.ocr.page import read_lines
from sightline.reader.ocr.weights import OcrEngine, open_engine
from sightline.reader.reading import Pixels, TextLine

HERE = Path(__file__).resolve().parent
WITHIN = 0.01  # of the axis
TARGET = 95.0  # per cent of the bars
SECONDS = 0.15
FIRST = 91  # seed: nobody has looked at what it and the next ones draw
READ = 2  # seeds whose texts are read from the pixels too; that takes time


@dataclass(frozen=True)
class DrawnChart:
    """A chart and what it says."""

    name: str
    kind: str
    pixels: Pixels
    lines: tuple[TextLine, ...]
    marks: tuple[tuple[str, str, float, float], ...]  # category, series, value, and the length of the axis


@dataclass(frozen=True)
class ChartScore:
    right: int  # marks whose value is right and that are called by their names
    near: int  # marks whose value is right
    marks: int
    invented: int  # marks beyond those that are there
    seconds: float


def run(seeds: int, file: Path) -> None:
    engine = open_engine(None)
    rows: dict[tuple[str, str], list[ChartScore]] = defaultdict(list)
    for seed in range(FIRST, FIRST + seeds):
        for maker, drawn in _draw_all(seed):
            rows[f"{maker}, exact texts", drawn.kind].append(score_chart(drawn, drawn.lines))
            if seed < FIRST + READ and isinstance(engine, OcrEngine):
                rows[f"{maker}, texts read", drawn.kind].append(score_chart(drawn, read_lines(drawn.pixels, engine)))
    if isinstance(engine, Refusal):
        peer_environments.print_status(f"charts: the texts were not read: {engine.what}")
    _report(rows, seeds, file)


def _draw_all(seed: int) -> Iterator[tuple[str, DrawnChart]]:
    for board in web_charts.draw_charts(seed):
        image, texts = board.draw()
        lines = tuple(TextLine(text, Box(*box)) for text, box in texts)
        yield "page", DrawnChart(board.name, board.kind, np.asarray(image), lines, tuple(board.marks))
    with tempfile.TemporaryDirectory() as folder:
        command = [peer_environments.install_ocr() / "bin" / "python", HERE / "matplotlib_charts.py", folder, str(seed)]
        subprocess.run(command, check=True)
        yield from (("matplotlib", drawn) for drawn in load_charts(Path(folder)))


def load_charts(folder: Path) -> Iterator[DrawnChart]:
    for file in sorted(folder.glob("*.json")):
        said = json.loads(file.read_text())
        pixels = np.asarray(Image.open(file.with_suffix(".png")).convert("RGB"))
        lines = tuple(TextLine(each["text"], Box(*each["box"])) for each in said["texts"])
        marks = tuple((each["category"], each["series"], each["value"], said["axis"]) for each in said["marks"])
        yield DrawnChart(file.stem, said["kind"], pixels, lines, marks)


def score_chart(drawn: DrawnChart, lines: tuple[TextLine, ...]) -> ChartScore:
    start = process_time()
    found = find_charts(drawn.pixels, lines)
    seconds = process_time() - start
    left = [(mark.category, mark.series, mark.value) for chart in found for mark in chart.marks]
    seen = len(left)
    right = near = 0
    for category, series, value, axis in drawn.marks:
        close = [each for each in left if abs(each[2] - value) <= WITHIN * axis]
        named = [each for each in close if _is_same_text(each[0], category) and _is_same_text(each[1], series)]
        right += bool(named)
        near += bool(close)
        if taken := named or close:
            left.remove(taken[0])
    return ChartScore(right, near, len(drawn.marks), max(0, seen - len(drawn.marks)), seconds)


def _is_same_text(one: str, other: str) -> bool:
    return one.replace(" ", "").lower() == other.replace(" ", "").lower()


def _report(rows: dict[tuple[str, str], list[ChartScore]], seeds: int, file: Path) -> None:
    figures = {
        f"{maker}: {kind}": {
            "charts": len(scores),
            "marks": sum(each.marks for each in scores),
            "right": round(100 * sum(each.right for each in scores) / sum(each.marks for each in scores), 1),
            "value": round(100 * sum(each.near for each in scores) / sum(each.marks for each in scores), 1),
            "invented": sum(each.invented for each in scores),
            "seconds": round(statistics.median(each.seconds for each in scores), 3),
        }
        for (maker, kind), scores in sorted(rows.items())
    }
    file.write_text(
        json.dumps({"seeds": seeds, "python": platform.python_version(), "charts": figures}, indent=1) + "\n"
    )
    seen = f"seeds {FIRST} to {FIRST + seeds - 1}"
    lines = [
        f"Values of charts within 1 % of the axis, {seen}. Target: {TARGET:g} % of bars, {SECONDS} s of CPU.",
        "",
        "| charts | marks | value and names right | value right | invented | CPU s | |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, each in figures.items():
        missed = each["value"] < TARGET or each["seconds"] > SECONDS
        lines.append(
            f"| {name} | {each['marks']} | {each['right']} % | {each['value']} % | {each['invented']} "
            f"| {each['seconds']} | {'MISSED' if missed else ''} |"
        )
    text = "\n".join(lines) + "\n"
    file.with_suffix(".md").write_text(text)
    print(text)
