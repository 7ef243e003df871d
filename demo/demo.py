"""Show Sightline on one screen, offline: a text-only model gets a screenshot, and the reader gets its question.

The model is scripted and served on loopback by this process: `deepseek-v4-pro` refuses images as the real one does, and
repeats what it is told. The screenshot is read by Sightline itself: no model sees it, and it goes nowhere.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.scripted.provider import deepseek  # noqa: E402
from tests.scripted.replies import body_of  # noqa: E402
from tests.scripted.server import Exchange  # noqa: E402

SIGHTLINE = Path(sys.executable).with_name("sightline")
ADDRESS = "Sightline listens on "
QUESTION = "The deploy stopped. Which migration failed, and what is the trace?"
MODEL = "deepseek-v4-pro"
KEY = "sk-demo"
LAYOUT = "Parts and positions:"
COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32"}


def paint(text: str, colour: str) -> str:
    """The text in colour, where somebody is looking."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if sys.stdout.isatty() else text


def show(text: str, colour: str = "dim") -> None:
    """A paragraph, indented and wrapped."""
    for line in text.splitlines():
        for wrapped in textwrap.wrap(line, 92):
            print("  " + paint(wrapped, colour))


def question() -> bytes:
    """The request that any OpenAI-compatible client sends for a pasted screenshot."""
    picture = base64.b64encode((HERE / "screenshot.png").read_bytes()).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    content = [{"type": "text", "text": QUESTION}, image]
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}]}).encode()


def ask(url: str) -> tuple[int, str]:
    """The status, and what the model or the provider says."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(url, question(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=120) as response:
            return response.status, json.load(response)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]["message"]


def read_for_question() -> str:
    """Return what `sightline describe --question` prints: related lines first, then everything that was read."""
    with tempfile.TemporaryDirectory(prefix="sightline-demo-") as home:
        command = [str(SIGHTLINE), "describe", str(HERE / "screenshot.png"), "--question", QUESTION]
        alone = {**os.environ, "SIGHTLINE_HOME": home, "SIGHTLINE_MODEL": "local"}
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=alone, check=True
        )
        return "\n".join(line for line in ran.stdout.splitlines() if not line.startswith("[Vision Proxy]"))


@contextmanager
def sightline(upstream: str) -> Iterator[str]:
    """A Sightline of its own that reads images itself, with nothing else set but where `deepseek` is."""
    with tempfile.TemporaryDirectory(prefix="sightline-demo-") as home:
        command = [str(SIGHTLINE), "serve", "--port", "0", "--upstream", f"deepseek={upstream}"]
        alone = {"SIGHTLINE_HOME": home, "SIGHTLINE_MODEL": "local"}
        environment = {**os.environ, **alone, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            patience = threading.Timer(180, process.kill)
            patience.start()
            try:
                yield listening(process)
            finally:
                patience.cancel()
                process.terminate()
                process.communicate()


def listening(process: subprocess.Popen[str]) -> str:
    """The address that Sightline prints when it is ready."""
    said = []
    for line in process.stdout or ():
        if ADDRESS in line:
            return line.partition(ADDRESS)[2].split()[0]
        said.append(line)
    sys.exit("demo: Sightline did not start:\n" + "".join(said))


def route(exchange: Exchange) -> str:
    """One line about a request that reached the provider."""
    body = body_of(exchange)
    images = sum(
        part.get("type") == "image_url"
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    )
    return f"{body['model']} was sent {'the image' if images else 'words, no image'}"


def main() -> int:
    """Ask before and after, and say whether the answer holds what the picture says."""
    print(paint("Sightline: eyes for a model that has none", "bold"))
    show("screenshot  demo/screenshot.png")
    show(f"model       {MODEL}: text only, scripted, on loopback")
    show(f"asked       {QUESTION}")
    with deepseek(key=KEY) as provider, sightline(provider.url) as proxy:
        print(f"\n{paint('BEFORE', 'bold')}  POST {provider.url}/v1/chat/completions")
        status, before = ask(f"{provider.url}/v1/chat/completions")
        show(f"{status}  {before}", "red")
        print(f"\n{paint('AFTER', 'bold')}   POST {proxy}/u/deepseek/v1/chat/completions")
        status, after = ask(f"{proxy}/u/deepseek/v1/chat/completions")
        text, _, layout = after.partition(LAYOUT)
        show(f"{status}  {text.rstrip()}", "green" if status == 200 else "red")
        show("[and every part with its position]" if layout else "")
        print(f"\n{paint('HOW', 'bold')}     what reached the provider from Sightline, which read the image itself")
        for number, exchange in enumerate(provider.exchanges[1:], 1):
            show(f"{number}. {route(exchange)}")
    print(f'\n{paint("ASK", "bold")}     sightline describe demo/screenshot.png --question "{QUESTION[:19]} …"')
    related, _, rest = read_for_question().partition("\n\n")
    show(related, "green")
    show("[and everything that was read]" if rest else "")
    seen = status == 200 and all("0042_add_refund" in text and "7f3a-c41e" in text for text in (after, related))
    return 0 if seen else 1


if __name__ == "__main__":
    sys.exit(main())
