"""Draw web pages with Chromium: the whole page as one picture, without scripts and without any address outside it."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import decode_text
from sightline.pixels.renderers import browser_page
from sightline.pixels.renderers.renderer import ConvertedFile, Renderer, RenderOptions
from sightline.pixels.renderers.run_program import run_program
from sightline.pixels.renderers.web_page import CHROMIUM, HTML_MIMES, is_web_page

_WIDTH, _MAX_WIDTH, _MAX_HEIGHT = 1024, 4096, 12_000  # pixels
_MAX_BYTES = 16 * 1024 * 1024
_SECONDS, _CPU_SECONDS, _MEMORY = 20.0, 6.0, 3 * 1024 * 1024 * 1024
_FOLDERS = ("/etc/chromium", "/etc/chromium.d", "/etc/debian_version")
_OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--user-data-dir=profile",
    "--blink-settings=scriptEnabled=false",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
)


def convert_web_page(data: bytes, options: RenderOptions) -> ConvertedFile | Refusal:
    """Return the picture of a web page."""
    text, _ = decode_text(data)
    width = min(options.width or _WIDTH, _MAX_WIDTH)
    asked = json.dumps({"width": width, "max_height": _MAX_HEIGHT})
    # Its own sandbox and its own processes need rights that `run_program` takes away: it isolates all of it instead.
    own_sandbox = ["--no-sandbox", "--no-zygote", "--single-process"] if sys.platform == "linux" else []
    browser = [CHROMIUM.find_path() or CHROMIUM.names[0], *_OPTIONS, *own_sandbox]
    script = Path(browser_page.__file__)
    picture = run_program(
        [str(Path(sys.executable).resolve()), "-I", "-S", str(script), asked, *browser],
        {"page.html": text.encode("utf-8", "replace")},
        "page.png",
        title="Chromium",
        seconds=_SECONDS,
        cpu_seconds=_CPU_SECONDS,
        memory=_MEMORY,
        readable=[sys.prefix, sys.base_prefix, str(script), *_FOLDERS],
    )
    if isinstance(picture, Refusal):
        return picture
    height = struct.unpack_from(">I", picture, 20)[0] if len(picture) > 24 else 0
    note = f"only the first {_MAX_HEIGHT:,} pixels of its height are shown" if height >= _MAX_HEIGHT else ""
    return ConvertedFile(picture, note)


CHROMIUM_RENDERER = Renderer(
    "chromium",
    revision=1,
    mimes=HTML_MIMES,
    convert=convert_web_page,
    recognize=is_web_page,
    options=frozenset({"width"}),
    needs=(CHROMIUM,),
    max_bytes=_MAX_BYTES,
    note="scripts are off, and nothing outside the file is loaded",
)
