"""Make the pictures that the recogniser of controls is trained on: pages of training_pages.py, with the DOM's truth."""

import json
import random
import re
import sys
from pathlib import Path

import peer_environments
import training_kits
import training_pages
from real_browser import open_browser, serve_folder
from real_pictures import STILL
from real_unpack import unpack_package

HERE = Path(__file__).resolve().parent
PINS = HERE / "training_packages.json"
SIZES = ((1280, 800), (1440, 900), (1024, 768), (1100, 700))
SCALES = (1, 1, 1, 2, 2, 1.25, 1.5)
PLAIN = 24  # pages without a package, for each page of one


def make_pictures(folder: Path, pages: int) -> None:
    """Write `pages` pictures around each package, and the truth of each, as far as they are not there."""
    known = json.loads(PINS.read_text())
    pins = {each.get("key", each["name"]): each for each in known["packages"]}
    fonts = {each["name"]: unpack_package(each) for each in known["icons"]}
    icons = {name: training_pages.list_icons(name, home) for name, home in fonts.items()}
    with open_browser() as browser:
        for name, package in training_kits.PACKAGES.items():
            host = folder / "hosts" / (name.replace("/", "_") or "none")
            host.mkdir(parents=True, exist_ok=True)
            source = name.split()[0] if name else ""
            if source and not (host / "package").is_symlink():
                (host / "package").symlink_to(unpack_package(pins[source]))
            for font, home in fonts.items():
                link = host / "icons" / font
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.is_symlink():
                    link.symlink_to(home)
            count = pages * PLAIN if not name else max(1, pages // 2) if " " in name else pages
            for number in range(count):
                file = folder / re.sub(r"\W", "_", f"{name or 'none'} {number}")
                if file.with_suffix(".json").exists():
                    continue
                (host / f"{number}.html").write_text(training_pages.write_page(name, package, number, icons))
                look = random.Random(f"{name} {number} window")
                dark = random.Random(f"{name} {number}").random() < 0.3
                with serve_folder(host) as address:
                    size, scale = look.choice(SIZES), look.choice(SCALES)
                    browser.open(f"{address}/{number}.html", size, 1, dark=dark, settle=120)
                    browser.send(
                        "Emulation.setDeviceMetricsOverride",
                        width=size[0], height=size[1], deviceScaleFactor=scale, mobile=False,
                    )  # fmt: skip
                    browser.evaluate(STILL)
                    truth = browser.evaluate((HERE / "real_truth.js").read_text())
                    browser.capture(file.with_suffix(".png"))
                    named = {"kind": "page", "name": f"training {source or 'none'} {number}", "charts": []}
                    file.with_suffix(".json").write_text(json.dumps({**named, **truth}))
            peer_environments.print_status(name)


if __name__ == "__main__":
    make_pictures(Path(sys.argv[1]), int(sys.argv[2]))
