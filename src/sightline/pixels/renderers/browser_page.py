"""Show a web page in a browser and take its picture, over the pipe of the DevTools protocol.

This file is run as a program, isolated, and becomes the browser: `browser_page.py OPTIONS COMMAND…`. It reads
`page.html` and writes `page.png` in its folder. Scripts are off. The page is written into an empty one, so that it has
no right to open files, and every request that it makes all the same is aborted.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import sys
from math import ceil
from pathlib import Path
from typing import Any

_READ_BYTES = 1 << 20
_BROWSER_READS, _BROWSER_WRITES = 3, 4  # files of a browser that was started with a pipe


class BrowserPipe:
    """The DevTools protocol: JSON messages that end with a zero byte."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = reading, writing
        self._buffer = b""
        self._last_id = 0
        self.session = ""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its result."""
        wanted = self.send(method, **parameters)
        while True:
            message = self.receive()
            if message.get("id") == wanted:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return dict(message["result"])

    def send(self, method: str, **parameters: object) -> int:
        self._last_id += 1
        message: dict[str, object] = {"id": self._last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        return self._last_id

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        while b"\0" not in self._buffer:
            more = os.read(self._in, _READ_BYTES)
            if not more:
                raise SystemExit("the browser ended")
            self._buffer += more
        head, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(head)
        if message.get("method") == "Fetch.requestPaused":
            self.send("Fetch.failRequest", requestId=message["params"]["requestId"], errorReason="Aborted")
        self.events.append(message)
        return message

    def wait(self, method: str) -> None:
        """Wait for an event, unless it has come already."""
        while not any(each.get("method") == method for each in self.events):
            self.receive()


def take_picture(browser: BrowserPipe, html: str, width: int, max_height: int) -> bytes:
    """Return the picture of a whole page, or of its beginning if it is higher than `max_height`."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    browser.call("Page.enable")
    browser.call("Fetch.enable", patterns=[{"urlPattern": "*"}])
    frame = browser.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
    browser.events.clear()
    browser.call("Page.setDocumentContent", frameId=frame, html=html)
    browser.wait("Page.loadEventFired")
    size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
    height = min(max(1, ceil(size["height"])), max_height)
    clip = {"x": 0, "y": 0, "width": max(width, min(ceil(size["width"]), 2 * width)), "height": height, "scale": 1}
    shot = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(shot["data"])


def main() -> None:
    """Become the browser, with a child process that operates it: only this process may look at itself in /proc."""
    options, command = json.loads(sys.argv[1]), sys.argv[2:]
    to_browser, from_browser = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(to_browser[0])
        os.close(from_browser[1])
        browser = BrowserPipe(from_browser[0], to_browser[1])
        html = Path("page.html").read_text("utf-8")
        Path("page.png").write_bytes(take_picture(browser, html, options["width"], options["max_height"]))
        os._exit(0)  # which closes the pipes, and so ends the browser
    os.close(to_browser[1])
    os.close(from_browser[0])
    inputs, outputs = fcntl.fcntl(to_browser[0], fcntl.F_DUPFD, 10), fcntl.fcntl(from_browser[1], fcntl.F_DUPFD, 10)
    os.dup2(inputs, _BROWSER_READS)
    os.dup2(outputs, _BROWSER_WRITES)
    os.execv(command[0], command)  # noqa: S606, there is no shell


if __name__ == "__main__":
    main()
