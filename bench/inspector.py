"""What a person waits for in the inspector: the first paint of its first page, the list, and a conversation."""

import io
import json
import os
import re
import statistics
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image as Pillow
from PIL import ImageDraw
from real_browser import Browser, open_browser

CONVERSATIONS, TURNS, IMAGES = 1000, 5, 10  # of each: the last request of a conversation has all of its images
SIZE = (1280, 800)
TARGETS = {"first_paint_ms": 200.0}
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
SHOWN = """new Promise(done => {
    const look = () => document.querySelector(%s)
        ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(look, 1)
    look()
})"""
OPENED = """new Promise(done => {
    const started = performance.now()
    document.querySelector('a.conversation').click()
    const look = () => [...document.querySelectorAll('.thumb img')].some(image => image.complete && image.naturalWidth)
        ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - started))) : setTimeout(look, 1)
    look()
})"""


def run(rounds: int, file: Path) -> None:
    with TemporaryDirectory() as home:
        started = time.perf_counter()
        fill_record(Path(home) / "record")
        print(f"the record was filled in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        figures = measure(home, rounds)
    file.write_text(json.dumps(figures, indent=2) + "\n")
    text = write_table(figures)
    file.with_suffix(".md").write_text(text)
    print(text)


def fill_record(folder: Path) -> None:
    """File 5,000 receipts about 10,000 images, each under its own hash; they share a few pictures."""
    from sightline.model.geometry import Size
    from sightline.model.image import Image
    from sightline.model.records import FiledReceipt, Receipt, ReceiptLine
    from sightline.model.request_trace import RequestTrace, TraceParts
    from sightline.model.seer import Usage
    from sightline.store import open_record

    record = open_record(folder)
    for number in range(CONVERSATIONS):
        lines = []
        for index in range(IMAGES):
            data = _draw_window(number * IMAGES + index) if number >= CONVERSATIONS - 2 else b""
            digest = sha256(data or f"{number} {index}".encode()).hexdigest()
            if data:
                record.images.keep("", Image(digest, "image/png", Size(*SIZE), data))
            place = f"/messages/{index}/content/0"
            lines.append(ReceiptLine(place, "told", "by zai/glm-5v", 1365, 90, digest, f"{index}.png", SIZE))
        for turn in range(1, TURNS + 1):
            parts = TraceParts(f"words {number}", (), RequestTrace("", "", turn, 2 * turn, 2 * turn - 2, 900 * turn))
            receipt = Receipt("deepseek", "deepseek-chat", tuple(lines[: 2 * turn]))
            usage = Usage(1000 * turn, 200, 1000 * turn - 900)
            record.ledger.file_receipt(
                "", FiledReceipt(receipt, "openai_chat", client="codex/1", usage=usage, parts=parts)
            )
        record.ledger.list_receipts(1)  # writes them
    record.close()


def _draw_window(seed: int) -> bytes:
    """Return a screenshot of a small window, as a PNG."""
    picture = Pillow.new("RGB", SIZE, (244, 246, 249))
    draw = ImageDraw.Draw(picture)
    for row in range(12):
        width = 200 + (seed * 97 + row * 389) % 900
        draw.rectangle((40, 40 + row * 60, 40 + width, 76 + row * 60), fill=(seed * 37 % 200, row * 20, 160))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def measure(home: str, rounds: int) -> dict[str, float]:
    command = [str(Path(sys.executable).with_name("sightline")), "inspect", "--no-browser", "--port", "9"]
    environment = {**os.environ, "SIGHTLINE_HOME": home}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None, "the inspector printed no link"
        with open_browser() as browser:
            browser.open(found[0], SIZE, 1, dark=False)
            browser.evaluate(SHOWN % "'a.conversation'")
            visits = [visit(browser, found[0].partition("#")[0]) for _ in range(rounds)]
    finally:
        server.terminate()
        server.wait()
    return {name: statistics.median(each[name] for each in visits) for name in visits[0]}


def visit(browser: Browser, address: str) -> dict[str, float]:
    """Open the first page as a new document, and a conversation on it."""
    browser.send("Page.navigate", url="about:blank")
    browser.send("Network.clearBrowserCache")
    browser.send("Page.navigate", url=address)
    shown = browser.evaluate(SHOWN % "'a.conversation'")
    painted = browser.evaluate(PAINTED)
    return {"first_paint_ms": painted, "list_ms": shown, "conversation_ms": browser.evaluate(OPENED)}


def write_table(figures: dict[str, float]) -> str:
    names = {
        "first_paint_ms": "first contentful paint of the first page",
        "list_ms": "until the first 50 of 1,000 conversations are shown",
        "conversation_ms": "from the click on a conversation to its first thumbnail",
    }
    rows = ["| | Sightline | target |", "|---|---|---|"]
    for key, words in names.items():
        target = TARGETS.get(key)
        met = f"≤ {target:.0f} ms: {'met' if figures[key] <= target else 'missed'}" if target else "–"
        rows.append(f"| {words} | {figures[key]:.0f} ms | {met} |")
    return "\n".join(rows) + "\n"
