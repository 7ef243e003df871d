"""Make the pictures that the models of controls and of states are trained on, with the DOM's truth: pages of
training_pages.py, training_variety.py, training_dense.py and training_states.py."""

import json
import random
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import peer_environments
import training_dense
import training_kits
import training_pages
import training_states
import training_variety
from real_browser import Browser, open_browser, serve_folder
from real_pictures import STILL
from real_unpack import unpack_package

HERE = Path(__file__).resolve().parent
PINS = HERE / "training_packages.json"
SIZES = ((1280, 800), (1440, 900), (1024, 768), (1100, 700))
SCALES = (1, 1, 1, 2, 2, 1.25, 1.5)
PLAIN = 24  # pages without a package, for each page of one
VARIED = 170  # pages on which every section has its own look
DENSE = 100  # pages on which controls touch, and documents
STATES = 200  # pages of menus, tabs, lists and tables


def make_pictures(folder: Path, pages: int) -> None:
    """Write `pages` pictures around each package, and the truth of each, as far as they are not there."""
    known = json.loads(PINS.read_text())
    pins = {each.get("key", each["name"]): each for each in known["packages"]}
    fonts = {each["name"]: unpack_package(each) for each in known["icons"]}
    icons = {name: training_pages.list_icons(name, home) for name, home in fonts.items()}
    with open_browser() as browser:
        for name, package in training_kits.PACKAGES.items():
            source = name.split()[0] if name else ""
            host = make_host(folder, name, unpack_package(pins[source]) if source else None, fonts)
            count = pages * PLAIN if not name else max(1, pages // 2) if " " in name else pages
            for number in range(count):
                dark = random.Random(f"{name} {number}").random() < 0.3
                html = training_pages.write_page(name, package, number, icons)
                keep_picture(browser, folder, host, f"{name or 'none'} {number}", html, dark=dark)
            peer_environments.print_status(name)
        for name, count, write_page in (
            ("varied", VARIED, training_variety.write_varied_page),
            ("dense", DENSE, training_dense.write_dense_page),
        ):
            host = make_host(folder, name, None, fonts)
            for number in range(count):
                keep_picture(browser, folder, host, f"{name} {number}", write_page(number, icons), dark=False)


def make_state_pictures(folder: Path) -> None:
    """Write pictures of menus, tabs, lists and tables, and the truth of each, as far as they are not there."""
    fonts = {each["name"]: unpack_package(each) for each in json.loads(PINS.read_text())["icons"]}
    icons = {name: training_pages.list_icons(name, home) for name, home in fonts.items()}
    host = make_host(folder, "states", None, fonts)
    with open_browser() as browser:
        for number in range(STATES):
            html = training_states.write_state_page(number, icons)
            keep_picture(browser, folder, host, f"states {number}", html, dark=False)


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
