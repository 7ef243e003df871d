"""Make the part of the corpus that is set aside: pictures out of packages that the others have nothing of.

A seed draws the packages of pages out of a list of candidates, and their pages. Beside them there are applications in
interface kits, charts, tables, viewers and code that are written here around packages.
"""

import json
import random
from pathlib import Path
from typing import Any

import peer_environments
import real_set_aside_hosts
import real_set_aside_kits
import real_set_aside_plots
from real_browser import open_browser
from real_pictures import HERE, Drawn, PictureFolder, show_host, show_page
from real_previous import borrow_files, keep_photographs, narrow_fields, show_telling
from real_unpack import unpack_package

SOURCES = tuple(
    HERE / f"real_{name}.py"
    for name in ("set_aside", "set_aside_kits", "set_aside_hosts", "set_aside_plots", "set_aside_seaborn")
)
BASE = 66  # pictures of pages; more only for what is asked for below
WANTED = {"table": 22, "check": 20, "radio": 8}
LEFT_OUT = (  # texts lie across each other, or have the colour of what is below them
    "vali-admin_docs_form-samples.html",
    "html/extensions.html",
    "tablesaw_demo_stack-blocks.html",
    "swisspost_design-system-styles_records.html",
)
TELLING = ("speed highlight", "termynal", "handsontable")  # hosts that say themselves what they show
HEADS = ["Airport", "City", "Country", "Code", "Altitude"]


def make_part(pins: dict[str, Any], folder: PictureFolder) -> None:
    chance, drawn = random.Random(pins["seed"]), Drawn(BASE, WANTED, screens=2)
    hosts = folder.path / "hosts"
    packages = {each.get("key", each["name"]): unpack_package(each) for each in [*pins["tools"], *pins["hosts"]]}
    rows = list_airports(packages["airport-codes"])
    with open_browser() as browser:
        for name, home, page in borrow_files(pins["pages"], packages, hosts / "pages", chance):
            if not str(page).endswith(LEFT_OUT):
                show_page(browser, name, home, page, folder, drawn)
        peer_environments.print_status(f"{drawn.pictures} pictures of pages, {dict(drawn.things)}")
        for name, host, file in (
            *real_set_aside_kits.write_pages(packages, hosts / "kits", rows),
            *real_set_aside_plots.write_pages(packages, hosts / "plots", chance),
            *real_set_aside_hosts.write_pages(packages, hosts / "viewers", chance, rows),
        ):
            show = show_telling if name.startswith(TELLING) else show_host
            if not file.endswith(LEFT_OUT):
                show(browser, name, host, file, folder)
    keep_photographs(pins["photographs"], folder, chance)
    for file in folder.path.glob("*.json"):
        file.write_text(json.dumps(narrow_fields(json.loads(file.read_text()))))


def list_airports(home: Path) -> list[list[str]]:
    """Return the rows of a table of airports, the first one with its heads."""
    found = [
        [each["name"][:28], each["city"][:20], each["country"][:20], each["iata"], each["altitude"]]
        for each in json.loads((home / "airports.json").read_text())
    ]
    return [HEADS, *(row for row in found if all(cell and cell.isascii() for cell in row))]
