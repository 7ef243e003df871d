"""Make the previous part of the corpus that was set aside: pictures out of packages that the others have nothing of.

A seed draws the packages out of a list of candidates, and their pages. What a page asks of a network is taken from the
package that has it, where real_packages.json names it; a page that lacks a style sheet, a script or an icon font then
is left out.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer_environments
import real_former
import real_previous_hosts
import real_previous_kits
import real_previous_plots
from PIL import Image
from real_browser import Browser, open_browser, serve_folder
from real_pictures import DRAWN, HERE, STILL, Drawn, PictureFolder, read_truth, show_host, show_page
from real_unpack import list_files, unpack_package

SOURCES = tuple(
    HERE / f"real_{name}.py"
    for name in ("previous", "previous_kits", "previous_hosts", "previous_plots", "previous_urwid")
)
BASE = 62  # pictures of pages; more only for what is asked for below
WANTED = {"table": 24, "check": 16, "radio": 6}
PHOTOGRAPHS = 10
TELLING = ("prism", "codeflask", "codejar")  # hosts that say themselves what they show
WIDE = 1.8  # of a frame, compared with the input in it
WINDOW = (1253, 768)  # of a terminal


def make_part(pins: dict[str, Any], folder: PictureFolder) -> None:
    chance, drawn = random.Random(pins["seed"]), Drawn(BASE, WANTED, screens=2)
    hosts = folder.path / "hosts"
    packages = {each.get("key", each["name"]): unpack_package(each) for each in [*pins["tools"], *pins["hosts"]]}
    with open_browser() as browser:
        for name, home, page in borrow_files(pins["pages"], packages, hosts / "pages", chance):
            show_page(browser, name, home, page, folder, drawn)
        peer_environments.print_status(f"{drawn.pictures} pictures of pages, {dict(drawn.things)}")
        for name, host, file in (
            *real_previous_kits.write_pages(packages, hosts / "kits"),
            *real_previous_plots.write_pages(packages, hosts / "plots", chance),
            *real_previous_hosts.write_pages(packages, hosts / "viewers", chance),
        ):
            show = show_telling if name.startswith(TELLING) else show_host
            show(browser, name, host, file, folder)
        for file in write_urwid(packages, hosts / "urwid", chance):
            show_telling(browser, f"urwid {file.stem}", file.parent, file.name, folder, WINDOW)
    keep_photographs(pins["photographs"], folder, chance)
    for file in folder.path.glob("*.json"):
        file.write_text(json.dumps(narrow_fields(json.loads(file.read_text()))))


def keep_photographs(candidates: list[dict[str, Any]], folder: PictureFolder, chance: random.Random) -> None:
    pictures = [
        (each["name"], path)
        for each in candidates
        for path in list_files(unpack_package(each), each["pages"])
        if min(Image.open(path).size) >= 400
    ]
    for name, path in chance.sample(pictures, PHOTOGRAPHS):
        folder.keep_photograph(path, f"photograph {name} {path.name}")


def narrow_fields(truth: dict[str, Any]) -> dict[str, Any]:
    """Return what is said about a picture without fields whose frame is that of a bar around them."""
    for control in truth.get("controls", ()):
        inner = control.get("inner")
        if inner and control["box"][2] - control["box"][0] > WIDE * (inner[2] - inner[0]):
            control |= {"kind": "input", "box": inner}
    return truth


def borrow_files(
    candidates: list[dict[str, Any]], packages: dict[str, Path], folder: Path, chance: random.Random
) -> Iterator[tuple[str, Path, Path]]:
    """Yield drawn pages; where a page asks for files of a network, a copy that asks for those of packages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        _link(folder / name.replace("/", "_"), home)
    network = {each["name"]: each["network"] for each in candidates if "network" in each}
    for name, home, page in real_former.draw_pages(candidates, chance):
        if name not in network:
            yield name, home, page
            continue
        own = name.replace("/", "_")
        _link(folder / own, home)
        text = page.read_text(errors="replace")
        for address, file in network[name].items():
            text = text.replace(address, f"/{file}")
        place = page.relative_to(home)
        copy = folder / f"{own}_{'_'.join(place.parts)}"
        copy.write_text(text.replace("<head>", f'<head><base href="/{own}/{place.parent}/">', 1))
        yield name, folder, copy


def _link(link: Path, home: Path) -> None:
    if not link.is_symlink():
        link.symlink_to(home)


def show_telling(
    browser: Browser, name: str, host: Path, file: str, folder: PictureFolder, size: tuple[int, int] = (1280, 800)
) -> None:
    """Keep a picture of a page that says itself what it shows, where the DOM does not."""
    scale = random.Random(f"{name} {file}").choice((1, 2))
    with serve_folder(host) as address:
        browser.open(f"{address}/{file}", size, scale, dark=False, settle=1000)
        browser.evaluate(DRAWN)
        browser.evaluate(STILL)
        truth = read_truth(browser) | browser.evaluate("realParts")
    toggles = [each["box"] for each in truth["controls"] if each["kind"] in ("check", "radio")]
    truth["words"] = [word for word in truth["words"] if not any(_is_in(word["box"], box) for box in toggles)]
    folder.keep_screen(browser, truth, name, folder.name(f"{name} {file}"))


def _is_in(box: list[int], other: list[int]) -> bool:
    """Return whether the middle of a box is in the other."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return other[0] <= x <= other[2] and other[1] <= y <= other[3]


def write_urwid(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[Path]:
    """Yield pages with the screens of urwid apps."""
    folder.mkdir(parents=True, exist_ok=True)
    countries = json.loads((packages["world-countries"] / "countries.json").read_text())
    some = [each for each in countries if each["capital"] and each["name"]["common"].isascii()]
    rows = [["Country", "Capital", "Region", "Code"]]
    rows += [
        [each["name"]["common"][:28], each["capital"][0][:22], each["region"], each["cca3"]]
        for each in chance.sample(some, 26) if each["capital"][0].isascii()
    ]  # fmt: skip
    (folder / "rows.txt").write_text(json.dumps(rows))
    source = chance.choice(real_previous_hosts.list_sources(packages))
    lines = [line[:96] for line in source.read_text().expandtabs(4).splitlines() if line.isascii()]
    (folder / "source.txt").write_text("\n".join(lines[:40]))
    path = os.pathsep.join(str(packages[name]) for name in ("urwid", "wcwidth", "typing_extensions"))
    command = [sys.executable, HERE / "real_previous_urwid.py", folder, folder / "rows.txt", folder / "source.txt"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
    yield from sorted(folder.glob("*.html"))
