"""Make the pictures that the models of controls and of states are trained on, with the DOM's truth: pages of
training_pages.py, training_variety.py, training_dense.py and training_states.py."""

import json
import random
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import peer_environments
import training_dense
import training_more_kits
import training_pages
import training_state_kits
import training_states
import training_variety
from real_browser import Browser, open_browser, serve_folder
from real_pictures import STILL
from real_unpack import unpack_package
from training_kits import StylePackage

HERE = Path(__file__).resolve().parent
PINS = HERE / "training_packages.json"
SIZES = ((1280, 800), (1440, 900), (1024, 768), (1100, 700))
SCALES = (1, 1, 1, 2, 2, 1.25, 1.5)
PLAIN = 24  # pages without a package, for each page of one
VARIED = 170  # pages on which every section has its own look
DENSE = 100  # pages on which controls touch, and documents
STATES = 320  # pages of menus, tabs, lists and tables
KIT_STATES = 5  # such pages of each package; of one with themes, one of each theme
SCORED = 8  # pages of each package that is only scored


def make_pictures(folder: Path, pages: int) -> None:
    """Write `pages` pictures around each package, and the truth of each, as far as they are not there."""
    fonts = _unpack_icons()
    icons = {name: training_pages.list_icons(name, home) for name, home in fonts.items()}
    with open_browser() as browser:
        for name, package in training_more_kits.TRAINED.items():
            count = pages * PLAIN if not name else max(1, pages // 2) if " " in name else pages
            _show_package(browser, folder, name, package, count, fonts, icons)
        for name, count, write_page in (
            ("varied", VARIED, training_variety.write_varied_page),
            ("dense", DENSE, training_dense.write_dense_page),
        ):
            host = make_host(folder, name, None, fonts)
            for number in range(count):
                keep_picture(browser, folder, host, f"{name} {number}", write_page(number, icons), dark=False)


def make_scored_pictures(folder: Path) -> None:
    """Write pictures around the packages that are only scored, in their own looks, as far as they are not there."""
    fonts = _unpack_icons()
    icons = {name: training_pages.list_icons(name, home) for name, home in fonts.items()}
    with open_browser() as browser:
        for name, package in training_more_kits.SCORED.items():
            _show_package(browser, folder, name, package, SCORED, fonts, icons, own=True)


def _unpack_icons() -> dict[str, Path]:
    return {each["name"]: unpack_package(each) for each in json.loads(PINS.read_text())["icons"]}


def _show_package(
    browser: Browser, folder: Path, name: str, package: StylePackage, count: int, fonts: Mapping[str, Path],
    icons: Mapping[str, Sequence[str]], *, own: bool = False,
) -> None:  # fmt: skip
    """Keep pictures of some pages around a package; with `own`, all on them is as the package draws it."""
    pins = {each.get("key", each["name"]): each for each in json.loads(PINS.read_text())["packages"]}
    host = make_host(folder, name, unpack_package(pins[name.split()[0]]) if name else None, fonts)
    for number in range(count):
        dark = random.Random(f"{name} {number}").random() < 0.3
        html = training_pages.write_page(name, package, number, icons, own=own)
        keep_picture(browser, folder, host, f"{name or 'none'} {number}", html, dark=dark)
    peer_environments.print_status(name)


def make_state_pictures(folder: Path) -> None:
    """Write pictures of menus, tabs, lists and tables, and the truth of each, as far as they are not there."""
    pins = {each.get("key", each["name"]): each for each in json.loads(PINS.read_text())["packages"]}
    fonts = _unpack_icons()
    icons = {name: training_pages.list_icons(name, home) for name, home in fonts.items()}
    host = make_host(folder, "states", None, fonts)
    with open_browser() as browser:
        for number in range(STATES):
            html = training_states.write_state_page(number, icons)
            keep_picture(browser, folder, host, f"states {number}", html, dark=False)
        for name, package in training_state_kits.list_kits().items():
            host = make_host(folder, name, unpack_package(pins[name.split()[0]]), fonts)
            for number in range(1 if " " in name else KIT_STATES):
                html = training_state_kits.write_kit_state_page(name, package, number, icons)
                keep_picture(browser, folder, host, f"{name} states {number}", html, dark="dark" in name)
            peer_environments.print_status(name)


def make_host(folder: Path, name: str, package: Path | None, fonts: Mapping[str, Path]) -> Path:
    """Return the folder of pages around a package, with that package and the icons in it."""
    host = folder / "hosts" / (name.replace("/", "_") or "none")
    links = {host / "icons" / font: home for font, home in fonts.items()}
    if package:
        links[host / "package"] = package
    for link, home in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(home)
    return host


def keep_picture(browser: Browser, folder: Path, host: Path, name: str, html: str, *, dark: bool) -> None:
    """Write a picture of a page and its truth, unless they are there; the page's name draws its window and scale."""
    file = folder / re.sub(r"\W", "_", name)
    if file.with_suffix(".json").exists():
        return
    source, number = name.split()[0], name.split()[-1]
    (host / f"{number}.html").write_text(html)
    look = random.Random(f"{name.removeprefix('none')} window")
    with serve_folder(host) as address:
        size, scale = look.choice(SIZES), look.choice(SCALES)
        browser.open(f"{address}/{number}.html", size, 1, dark=dark, settle=120)
        browser.send(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=scale, mobile=False
        )
        browser.evaluate(STILL)
        truth = browser.evaluate((HERE / "real_truth.js").read_text())
        browser.capture(file.with_suffix(".png"))
        named = {"kind": "page", "name": f"training {source} {number}", "charts": []}
        file.with_suffix(".json").write_text(json.dumps({**named, **truth}))


if __name__ == "__main__":
    make_pictures(Path(sys.argv[1]), int(sys.argv[2]))
