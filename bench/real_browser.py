"""Drive Debian's Chromium through its debugging pipe, on pages that a server on loopback serves."""

import base64
import itertools
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import peer_environments

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--disable-lcd-text",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
TEXT_FONT = re.compile(r"[?&]family=(?!.*(Icon|Symbol))")  # a sheet that only names fonts, for which others stand in
ICONS = re.compile(r"icon|awesome|symbol|glyph", re.IGNORECASE)
LOOPBACK = "://127.0.0.1:"
EARLY_SCRIPTS = "[...document.scripts].filter(s => s.src && !s.async && !s.defer).map(s => s.src)"
LOADED = """new Promise(done => {
    const finish = () => document.fonts.ready.then(() => setTimeout(() => done(true), %d));
    document.readyState === 'complete' ? finish() : addEventListener('load', finish);
    setTimeout(() => done(false), 20000);
})"""


class Browser:
    """One tab of one Chromium. Messages in the pipe are JSON, each ended by a zero byte."""

    def __init__(self, profile: Path) -> None:
        reads, writes = os.pipe(), os.pipe()
        quoted = " ".join(f"'{option}'" for option in (*OPTIONS, f"--user-data-dir={profile}"))
        command = (
            f"exec {peer_environments.find_chromium()} {quoted} --remote-debugging-pipe 3<&{reads[0]} 4>&{writes[1]}"
        )
        self._process = subprocess.Popen(
            ["sh", "-c", command], pass_fds=(reads[0], writes[1]), stderr=subprocess.DEVNULL
        )
        os.close(reads[0])
        os.close(writes[1])
        self._requests, self._answers = os.fdopen(reads[1], "wb"), os.fdopen(writes[0], "rb")
        self._rest = b""
        self._numbers = itertools.count(1)
        self._session: dict[str, str] = {}
        self._asked: dict[str, str] = {}  # addresses by the number of their request
        self._failed: list[tuple[str, str]] = []  # what was asked for, and its address
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        opened = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": opened["sessionId"]}
        self.send("Page.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params, **self._session}
        self._requests.write(json.dumps(message).encode() + b"\0")
        self._requests.flush()
        while (answer := self._receive()).get("id") != number:
            self._note_event(answer.get("method", ""), answer.get("params", {}))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _note_event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.javascriptDialogOpening":
            self._requests.write(_accept_dialog(next(self._numbers), self._session))
            self._requests.flush()
        elif method == "Network.requestWillBeSent":
            self._asked[params["requestId"]] = params["request"]["url"]
        elif method == "Network.loadingFailed":
            self._failed.append((params["type"], self._asked.get(params["requestId"], "")))
        elif method == "Network.responseReceived" and params["response"]["status"] >= 400:
            self._failed.append((params["type"], params["response"]["url"]))

    def find_missing(self) -> str | None:
        """Return the address of a style sheet, script or icon font of this page that could not be loaded, or None."""
        early = self.evaluate(EARLY_SCRIPTS)
        for kind, address in self._failed:
            sheet = kind == "Stylesheet" and not TEXT_FONT.search(address)
            icons = kind == "Font" and ICONS.search(address)
            if sheet or icons or (kind == "Script" and address in early and LOOPBACK not in address):
                return address
        return None

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._answers.fileno(), 1 << 20)
            if not more:
                raise SystemExit("bench: Chromium ended")
            self._rest += more
        first, self._rest = self._rest.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(first)
        return answer

    def open(
        self, address: str, size: tuple[int, int], scale: int, *, dark: bool, settle: int = 400, force: bool = False
    ) -> None:
        """Open a page in a window of that size, and wait until it is loaded and `settle` milliseconds more.

        `force` makes Chromium darken pages that have no dark theme, as its users can.
        """
        self.send("Network.enable")
        self.send("Emulation.setAutoDarkModeOverride", enabled=dark and force)
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=size[0], height=size[1], deviceScaleFactor=scale, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send(
            "Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}]
        )
        self.send("Page.navigate", url="about:blank")
        self._failed.clear()
        self.send("Page.navigate", url=address)
        self.evaluate(LOADED % settle)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression, awaited."""
        done = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"].get("exception", {}).get("description"))[:300])
        return done["result"].get("value")

    def capture(self, file: Path) -> None:
        """Write what the window shows."""
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self._requests.close()
        self._answers.close()
        self._process.terminate()
        self._process.wait()


def _accept_dialog(number: int, session: dict[str, str]) -> bytes:
    message = {"id": number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}, **session}
    return json.dumps(message).encode() + b"\0"


@contextmanager
def open_browser() -> Iterator[Browser]:
    # Chromium's children may still write to the profile while it is removed.
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(Path(profile))
        try:
            yield browser
        finally:
            browser.close()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
