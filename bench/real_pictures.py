"""Take pictures of pages in Chromium, with what the DOM says about them.

A picture that is there already stays: only what the DOM says is written again, so that a new rule of real_truth.js
changes no picture.
"""

import hashlib
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import peer_environments
from PIL import Image, ImageChops, ImageStat
from real_browser import Browser, serve_folder

HERE = Path(__file__).resolve().parent
SCRIPTS = ("real_truth.js", "real_charts.js")
SIZES = ((1280, 800), (1440, 900), (1024, 768))
FEW_WORDS = 12
SAME_WORDS = 0.98  # of a page that is drawn again
SAME_PIXELS = 8  # mean difference of a word in two pictures, of 255
DARKEN = "document.documentElement.dataset.bsTheme = 'dark'; document.documentElement.dataset.theme = 'dark'"
DRAWN = """new Promise((done, failed) => {
    const end = Date.now() + 20000, look = () => (window.isDrawn ? isDrawn() : document.body.innerText.length > 80)
        ? setTimeout(done, 500) : Date.now() > end ? failed(new Error('it is not drawn')) : setTimeout(look, 100);
    look();
})"""  # waits until a page that a script draws is there
HIDE_MISSING = "for (const i of document.images) if (!i.naturalWidth) i.style.visibility = 'hidden'"
STILL = """(() => {
    const style = document.createElement('style');
    style.textContent = '* { animation: none !important; transition: none !important; caret-color: transparent }';
    document.head.append(style);
})()"""


@dataclass
class Drawn:
    """What a draw of pages has so far, and what it wants: pictures, and then more only for what is short."""

    base: int
    wanted: dict[str, int]
    screens: int = 3  # of one page, from its top down
    pictures: int = 0
    things: Counter[str] = field(default_factory=Counter)

    @property
    def is_full(self) -> bool:
        return self.pictures >= self.base and all(self.things[kind] >= enough for kind, enough in self.wanted.items())

    def wants(self, things: Counter[str]) -> bool:
        if self.pictures < self.base:
            return True
        return any(things[kind] and self.things[kind] < enough for kind, enough in self.wanted.items())


@dataclass(frozen=True)
class PictureFolder:
    """Where the pictures of a part are put."""

    path: Path
    is_drawn: bool  # whether its pictures are there, and only their JSON is to be written
    is_strict: bool = False  # whether a page that lacks a part from the network is left out, and dark pages are forced

    @classmethod
    def open(cls, path: Path, *, is_strict: bool = False) -> "PictureFolder":
        path.mkdir(parents=True, exist_ok=True)
        return cls(path, (path / "drawn").exists(), is_strict)

    def name(self, picture: str) -> Path:
        short = "".join(letter if letter.isalnum() else "_" for letter in picture)[-80:]
        return self.path / f"{short}.png"

    def keep_screen(self, browser: Browser, truth: dict[str, Any], name: str, file: Path) -> None:
        """Write the picture and its JSON; of a picture that is there, only the JSON, if the page is still the same."""
        said = file.with_suffix(".json")
        if not self.is_drawn:
            browser.capture(file)
        elif said.exists():
            old = json.loads(said.read_text())
            if not _has_same_words(browser, truth, file):
                peer_environments.print_status(f"{name} is drawn in another way now; its JSON stays as it is")
                return
            truth = {**truth, "charts": old["charts"]}
        said.write_text(json.dumps({"kind": "page", "name": name, **truth}))

    def keep_photograph(self, picture: Path, name: str) -> None:
        file = self.name(name)
        if not self.is_drawn:
            Image.open(picture).convert("RGB").save(file)
        file.with_suffix(".json").write_text(json.dumps({"kind": "photograph", "name": name}))


def _has_same_words(browser: Browser, truth: dict[str, Any], file: Path) -> bool:
    """Return whether a page draws its words as they are in its picture, whatever the rules say are its words."""
    with TemporaryDirectory() as folder:
        browser.capture(now := Path(folder) / "now.png")
        pictures = [Image.open(each).convert("L") for each in (file, now)]
    if pictures[0].size != pictures[1].size:
        return False
    difference = ImageChops.difference(*pictures)
    same = [ImageStat.Stat(difference.crop(word["box"])).mean[0] <= SAME_PIXELS for word in truth["words"]]
    return sum(same) >= SAME_WORDS * len(same)


def hash_files(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def show_page(browser: Browser, package: str, home: Path, page: Path, folder: PictureFolder, drawn: Drawn) -> None:
    """Keep pictures of a page, from its top down, as far as more of it is wanted."""
    name = f"{package} {page.relative_to(home)}"
    there = any(folder.name(f"{name} {screen}").exists() for screen in range(drawn.screens))
    if not there if folder.is_drawn else drawn.is_full:
        return
    chance = random.Random(name)
    size, scale, dark = chance.choice(SIZES), chance.choice((1, 1, 2)), chance.random() < 0.3
    with serve_folder(home) as address:
        try:
            browser.open(
                f"{address}/{quote(str(page.relative_to(home)))}", size, scale, dark=dark, force=folder.is_strict
            )
            if folder.is_strict and (missing := browser.find_missing()):
                peer_environments.print_status(f"{name} is left out: it lacks {missing}")
                return
            browser.evaluate(STILL + (f"; {DARKEN}" if dark else ""))
            if folder.is_strict:
                browser.evaluate(HIDE_MISSING)
            _keep_screens(browser, name, size[1], folder, drawn)
        except RuntimeError as error:
            peer_environments.print_status(f"{name} is left out: {error}")


def _keep_screens(browser: Browser, name: str, high: int, folder: PictureFolder, drawn: Drawn) -> None:
    for screen in range(drawn.screens):
        moved = browser.evaluate(
            f"scrollTo(0, {screen * high}); new Promise(r => setTimeout(r, 150)).then(() => scrollY)"
        )
        if screen and moved < (screen - 0.7) * high:
            return
        truth = read_truth(browser)
        things = count_things(truth)
        file = folder.name(f"{name} {screen}")
        enough = len(truth["words"]) >= FEW_WORDS or things["chart"]
        wanted = enough and drawn.wants(things) and (not screen or sum(things.values()))
        if file.exists() if folder.is_drawn else wanted:
            folder.keep_screen(browser, truth, f"{name} {screen}", file)
            drawn.pictures += 1
            drawn.things += things


def show_host(browser: Browser, name: str, host: Path, file: str, folder: PictureFolder) -> dict[str, Any]:
    """Keep a picture of a page that is written here; return what the DOM says about it."""
    settle, look = 300 if "gallery" in name else 1500, random.Random(f"{name} {file}")
    scale, dark = look.choice((1, 2)), look.random() < 0.3
    with serve_folder(host) as address:
        browser.open(f"{address}/{file}", (1280, 800), scale, dark=dark, settle=settle)
        if folder.is_strict:
            browser.evaluate(DRAWN)
        browser.evaluate(STILL + (f"; {DARKEN}" if dark else ""))
        truth = read_truth(browser)
        folder.keep_screen(browser, truth, name, folder.name(f"{name} {file}"))
        return truth


def read_truth(browser: Browser) -> dict[str, Any]:
    truth: dict[str, Any] = browser.evaluate((HERE / "real_truth.js").read_text())
    truth["charts"] = browser.evaluate((HERE / "real_charts.js").read_text())
    return truth


def count_things(truth: dict[str, Any]) -> Counter[str]:
    things = Counter(each["kind"] for each in truth["controls"] if each["kind"] in ("check", "radio", "switch"))
    things["table"] = sum(table["asked"] for table in truth["tables"])
    things["chart"] = len(truth["charts"])
    return things


def count_truth(folder: Path) -> Counter[str]:
    """Count what the pictures of a part have."""
    counts: Counter[str] = Counter()
    for file in folder.glob("*.json"):
        truth = json.loads(file.read_text())
        counts[f"pictures, {truth['kind']}"] += 1
        if truth["kind"] == "page":
            counts.update(f"control, {each['kind']}" for each in truth["controls"])
            counts.update(f"disabled {each['kind']}" for each in truth["controls"] if each["disabled"])
            counts.update(f"state, {each['kind']}" for each in truth["states"])
            counts.update(f"chart, {each['kind']}" for each in truth["charts"])
            counts["tables asked for"] += sum(table["asked"] for table in truth["tables"])
            counts["headings"] += len(truth["headings"])
            counts["words"] += len(truth["words"])
            counts["icons"] += len(truth["icons"])
            counts["lines of code"] += sum(len(block["lines"]) for block in truth["code"])
            counts["numbered lines of code"] += sum(len(b["lines"]) for b in truth["code"] if b["numbers"])
    return counts
