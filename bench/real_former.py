"""Make the part of the corpus that was set aside before: pictures out of packages that development has nothing of.

A seed draws the packages out of lists of candidates, and their pages. A page that lacks a style sheet, a script or an
icon font, because it would come from the network, is left out.
"""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer_environments
import real_components
import real_hosts
import real_plots
from PIL import Image
from real_browser import Browser, open_browser, serve_folder
from real_pictures import HERE, Drawn, PictureFolder, read_truth, show_host, show_page
from real_unpack import list_files, unpack_package

SOURCES = tuple(HERE / f"real_{name}.py" for name in ("former", "components", "hosts", "plots", "textual"))
PACKAGES = 20  # of the candidates
PER_PACKAGE = 6  # pages of one package, at most
BASE = 62  # pictures of pages; more only for what is asked for below
WANTED = {"table": 26, "check": 24, "radio": 8}
PHOTOGRAPHS = 10
CELL = (12.2, 24.4)  # of a terminal in Textual's SVG, and where its first one begins
CORNER = (9, 41)
SCREEN = (1268, 831)
TEXTUAL_PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0; overflow: hidden }}
svg {{ position: absolute; left: -{0}px; top: -{1}px; width: {2}px; height: {3}px }}
svg text {{ font: 20.26px 'DejaVu Sans Mono', monospace !important }}</style>{4}"""
DRAWN_GLYPHS = [chr(code) for code in range(0x2500, 0x2600)]
TOGGLE_GLYPHS = ("X", "\u25cf")
NO_GLYPH = re.compile("[\u2b58\U00010000-\U0010ffff]")  # signs that the font lacks


def make_part(pins: dict[str, Any], folder: PictureFolder) -> None:
    chance, drawn = random.Random(pins["seed"]), Drawn(BASE, WANTED, screens=2)
    hosts = folder.path / "hosts"
    with open_browser() as browser:
        for name, home, page in draw_pages(pins["pages"], chance):
            show_page(browser, name, home, page, folder, drawn)
        peer_environments.print_status(f"{drawn.pictures} pictures of pages, {dict(drawn.things)}")
        components = {each["name"]: unpack_package(each) for each in pins["components"]}
        packages = {each["name"]: unpack_package(each) for each in [*pins["hosts"], *pins["textual"]]}
        for name, host, file in (
            *real_components.write_pages(components, hosts / "components"),
            *real_hosts.write_pages(packages, hosts / "viewers", chance),
            *real_plots.write_pages(packages, hosts / "plots", chance),
        ):
            show_host(browser, name, host, file, folder)
        for screen in write_textual(packages, [each["name"] for each in pins["textual"]], hosts / "textual", chance):
            show_textual(browser, screen, folder)
    pictures = [
        (each["name"], path)
        for each in pins["photographs"]
        for path in list_files(unpack_package(each), each["pages"])
        if min(Image.open(path).size) >= 400
    ]
    for name, path in chance.sample(pictures, PHOTOGRAPHS):
        folder.keep_photograph(path, f"photograph {name} {path.name}")


def draw_pages(candidates: list[dict[str, Any]], chance: random.Random) -> Iterator[tuple[str, Path, Path]]:
    """Yield pages of some packages: one of each, then a second one of each, and so on."""
    packages = []
    for each in chance.sample(candidates, PACKAGES):
        home = unpack_package(each)
        pages = list_files(home, each["pages"])
        packages.append((each["name"], home, chance.sample(pages, min(len(pages), PER_PACKAGE))))
    for turn in range(PER_PACKAGE):
        for name, home, pages in packages:
            if turn < len(pages):
                yield name, home, pages[turn]


def write_textual(packages: dict[str, Path], needed: list[str], folder: Path, chance: random.Random) -> Iterator[Path]:
    """Yield the screens of Textual apps, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    cars = json.loads((packages["vega-datasets"] / "data" / "cars.json").read_text())
    names = ("Name", "Horsepower", "Cylinders", "Origin")
    rows = [list(names), *([str(car[name]) for name in names] for car in chance.sample(cars, 20))]
    (folder / "rows.txt").write_text(json.dumps(rows))
    source = chance.choice(sorted(packages["rich"].glob("rich/[a-z]*.py")))
    lines = [line for line in source.read_text().splitlines() if len(line) < 90 and line.isascii()]
    (folder / "source.txt").write_text("\n".join(lines[:40]))
    path = os.pathsep.join(str(packages[name]) for name in needed)
    command = [sys.executable, HERE / "real_textual.py", folder, folder / "rows.txt", folder / "source.txt"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
    yield from sorted(folder.glob("*.svg"))


def show_textual(browser: Browser, screen: Path, folder: PictureFolder) -> None:
    """Keep a picture of the terminal in an SVG; the app, not the DOM, says what is in it."""
    text = re.sub(r'textLength="[\d.]+" ', "", NO_GLYPH.sub(" ", screen.read_text()))
    wide, high = text.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split()
    screen.with_suffix(".html").write_text(TEXTUAL_PAGE.format(*CORNER, wide, high, text))
    with serve_folder(screen.parent) as address:
        scale = random.Random(screen.name).choice((1, 2))
        browser.open(f"{address}/{screen.stem}.html", SCREEN, scale, dark=False)
        truth = read_truth(browser)
    parts = json.loads(screen.with_suffix(".json").read_text())
    truth["words"] = [
        word for word in truth["words"]
        if not any(glyph in word["text"] for glyph in DRAWN_GLYPHS) and word["text"] not in TOGGLE_GLYPHS
    ]  # fmt: skip
    truth |= {"pictures": [], "icons": [], "states": [], "controls": [], "tables": []}
    for part in parts:
        if part["kind"] == "code":
            truth["code"].append({"lines": part["lines"], "numbers": True})
            continue
        box = _find_cells(part["box"], scale)
        if part["kind"] == "table":
            rows = [[(text, _find_cells(cells, scale)) for text, cells in row] for row in part["rows"]]
            edges = [cell for row in rows for _, cell in row]
            box = [
                min(e[0] for e in edges),
                min(e[1] for e in edges),
                max(e[2] for e in edges),
                max(e[3] for e in edges),
            ]
            truth["tables"].append({"box": box, "asked": True, "rows": rows})
        else:
            truth["controls"].append({**part, "box": box})
    folder.keep_screen(browser, truth, f"textual {screen.stem}", folder.name(f"textual {screen.stem}"))


def _find_cells(cells: list[int], scale: int) -> list[int]:
    return [round(CELL[at % 2] * edge * scale) for at, edge in enumerate(cells)]
