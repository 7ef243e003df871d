"""Find the parts of the corpus of real pictures, and make those that the cache lacks.

The packages are pinned in real_packages.json; its seeds draw the pages, their names draw window, scale and theme. The
first part for development is made here; the former and the previous one were set aside until the reader had been
measured on them, and are for development since. The part that is set aside is out of other packages. Nothing of it is
in the repository: it is made in the cache, once. real_corpus.py [PART] makes it, and counts what is in it.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer_environments
import real_editors
import real_former
import real_galleries
import real_previous
import real_set_aside
from real_browser import Browser, open_browser
from real_pictures import HERE, SCRIPTS, Drawn, PictureFolder, count_truth, hash_files, show_host, show_page
from real_unpack import list_files, unpack_package

PINS = HERE / "real_packages.json"
PARTS = ("development", "former", "previous", "set aside")
PER_PACKAGE = 14  # pages of one package, at most
BASE = 40  # pictures of pages in each draw, whatever they show; more only for what is asked for below
WANTED = {"table": 34, "check": 24, "chart": 34}  # in each draw; galleries have the other controls
MORE = 72  # pages of further packages


def find_part(part: str) -> Path:
    """Return the folder of a part; make it if the cache has none of this state.

    The pictures depend on the pins of their part and on the pages that are written around them, so that work on another
    part leaves them as they are. What the DOM says is read again when the scripts that read it have changed.
    """
    pins = json.loads(PINS.read_text())
    others = {name: pins.pop(name) for name in PARTS[1:]}
    chosen, sources, make = {
        "development": (pins, (HERE / "real_editors.py", HERE / "real_galleries.py"), _make_development),
        "former": (others["former"], real_former.SOURCES, real_former.make_part),
        "previous": (others["previous"], real_previous.SOURCES, real_previous.make_part),
        "set aside": (others["set aside"], real_set_aside.SOURCES, real_set_aside.make_part),
    }[part]
    key = hashlib.sha256(json.dumps(chosen).encode() + hash_files(*sources).encode()).hexdigest()[:16]
    folder = PictureFolder.open(
        peer_environments.find_cache() / f"real-{part.replace(' ', '-')}-{key}", is_strict=part != PARTS[0]
    )
    truth, state = folder.path / "truth", hash_files(*(HERE / name for name in SCRIPTS))
    if not truth.exists() or truth.read_text() != state:
        peer_environments.print_status(f"making the part {part} in {folder.path}, once (about ten minutes)")
        make(chosen, folder)
        (folder.path / "drawn").touch()
        truth.write_text(state)
    return folder.path


def _make_development(pins: dict[str, Any], folder: PictureFolder) -> None:
    """Make two draws by a hash of the pages' names, pages around packages, and pages of further packages."""
    drawn = [Drawn(BASE, WANTED), Drawn(BASE, WANTED)]
    chance = random.Random(pins["seed"])
    with open_browser() as browser:
        for package, home, page in draw_pages([*pins["pages"], *pins["charts"]], chance):
            name = f"{package} {page.relative_to(home)}"
            show_page(browser, package, home, page, folder, drawn[hashlib.sha256(name.encode()).digest()[0] % 2])
        for name, host, file in _write_hosts(pins, folder.path, chance):
            show_host(browser, name, host, file, folder)
        _add_more(browser, pins["more"], folder)
    for each in pins["photographs"]:
        for picture in list_files(unpack_package(each), each["pages"]):
            folder.keep_photograph(picture, f"photograph {picture.name}")
    for each in drawn:
        peer_environments.print_status(f"{each.pictures} pictures of pages, {dict(each.things)}")


def _add_more(browser: Browser, pins: dict[str, Any], folder: PictureFolder) -> None:
    """Add pages of further packages."""
    chance, drawn = random.Random(pins["seed"]), Drawn(MORE, WANTED)
    packages = [(each["name"], unpack_package(each), each["pages"]) for each in pins["pages"]]
    for name, home, patterns in packages:
        pages = list_files(home, patterns)
        for page in chance.sample(pages, min(len(pages), MORE // len(packages))):
            show_page(browser, name, home, page, folder, drawn)
    galleries = {each["name"]: unpack_package(each) for each in pins["galleries"]}
    hosts = real_galleries.write_galleries(galleries, folder.path / "hosts" / "more", real_galleries.MORE_MARKUP)
    for name, host, file in hosts:
        show_host(browser, f"more {name}", host, file, folder)


def _write_hosts(pins: dict[str, Any], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of the pages that are written here around a package."""
    galleries = {each["name"]: unpack_package(each) for each in pins["galleries"]}
    yield from real_galleries.write_galleries(galleries, folder / "hosts", real_galleries.MARKUP)
    editors = {each["name"]: unpack_package(each) for each in pins["editors"]}
    yield from real_editors.write_hosts(editors, folder / "hosts", chance)


def draw_pages(packages: list[dict[str, Any]], chance: random.Random) -> Iterator[tuple[str, Path, Path]]:
    """Yield pages of all packages in random order, so many of each package."""
    drawn: list[tuple[str, Path, Path]] = []
    for package in packages:
        home = unpack_package(package)
        pages = list_files(home, package["pages"])
        some = chance.sample(pages, min(len(pages), 3 * PER_PACKAGE if len(pages) > 100 else PER_PACKAGE))
        drawn += [(package["name"], home, page) for page in some]
    chance.shuffle(drawn)
    yield from drawn


if __name__ == "__main__":
    for each in sys.argv[1:] or PARTS:
        home = find_part(each)
        print(home, *(f"{kind}: {count}" for kind, count in sorted(count_truth(home).items())), sep="\n")
