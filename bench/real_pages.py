"""Screenshots of 1920x1080 of pages for development, on which the CPU time of the local reader is measured."""

import hashlib
import json
import random
from pathlib import Path
from urllib.parse import quote

import peer_environments
import real_corpus
from real_browser import open_browser, serve_folder
from real_pictures import FEW_WORDS, STILL, read_truth

SIZE = (1920, 1080)
MOST = 30  # pages


def find_pages() -> list[Path]:
    """Return the screenshots; make them if the cache has none for these packages."""
    pins = json.loads(real_corpus.PINS.read_text())
    chosen = {"seed": pins["seed"], "pages": pins["pages"]}
    key = hashlib.sha256(json.dumps([chosen, SIZE, MOST]).encode()).hexdigest()[:16]
    folder = peer_environments.find_cache() / f"real-pages-{key}"
    if not (folder / "drawn").exists():
        peer_environments.print_status(f"making pages in {folder}, once (about a minute)")
        folder.mkdir(parents=True, exist_ok=True)
        pages = list(real_corpus.draw_pages(pins["pages"], random.Random(pins["seed"])))
        _draw_pages(pages, folder)
        (folder / "drawn").touch()
    return sorted(folder.glob("*.png"))


def _draw_pages(pages: list[tuple[str, Path, Path]], folder: Path) -> None:
    kept = 0
    with open_browser() as browser:
        for _, home, page in pages:
            with serve_folder(home) as address:
                try:
                    browser.open(f"{address}/{quote(str(page.relative_to(home)))}", SIZE, 1, dark=False)
                    browser.evaluate(STILL)
                    if len(read_truth(browser)["words"]) < FEW_WORDS:
                        continue
                except RuntimeError:
                    continue
                browser.capture(folder / f"{kept:02}.png")
            kept += 1
            if kept == MOST:
                return
