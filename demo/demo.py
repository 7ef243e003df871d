"""Show Sightline on one screen, offline: a text-only model answers a question about a screenshot.

The model is a script that this process serves on loopback. Like the real `deepseek-v4-pro`, it rejects images; it
answers the question only if the words of the request contain the answer. Sightline reads the screenshot with its own
reader, so no vision model sees it and nothing leaves this machine.
"""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.scripted.provider import deepseek  # noqa: E402
from tests.scripted.replies import body_of  # noqa: E402
from tests.scripted.server import Exchange  # noqa: E402
from tests.scripted.talk import Asked, Said, Script, Seen  # noqa: E402

SIGHTLINE = Path(sys.executable).with_name("sightline")
ADDRESS = "Sightline listens on "
QUESTION = "The deploy stopped. Which migration failed, and what is the trace?"
MODEL = "deepseek-v4-pro"
KEY = "sk-demo"
COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32"}


def paint(text: str, colour: str) -> str:
    """Return the text in colour if stdout is a terminal."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if sys.stdout.isatty() else text


def show(text: str, colour: str = "dim") -> None:
    """Print a paragraph, indented and wrapped."""
    for line in text.splitlines():
        for wrapped in textwrap.wrap(line, 92):
            print("  " + paint(wrapped, colour))


def answer_from_words(asked: Asked, _seen: Sequence[Seen], _script: Script) -> Said:
    """Answer the question as the scripted model: from the words of the request, or not at all."""
    words = " ".join(asked.words)
    migration, trace = re.search(r"Migration (\S+) failed", words), re.search(r"trace (\w+-\w+)", words)
    if migration is None or trace is None:
        return Said("I can't see which migration failed.")
    return Said(f"Migration {migration[1]} failed. The trace is {trace[1]}.")


def build_request() -> bytes:
    """Return the request that any OpenAI-compatible client sends for a pasted screenshot."""
    picture = base64.b64encode((HERE / "screenshot.png").read_bytes()).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    content = [{"type": "text", "text": QUESTION}, image]
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}]}).encode()


def ask(url: str) -> tuple[int, str]:
    """Return the status, and the model's answer or the provider's error."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(url, build_request(), headers)
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
def start_proxy(upstream: str) -> Iterator[str]:
    """Run a proxy with a new record that reads images itself, and yield its address."""
    with tempfile.TemporaryDirectory(prefix="sightline-demo-") as home:
        command = [str(SIGHTLINE), "serve", "--port", "0", "--upstream", f"deepseek={upstream}"]
        alone = {"SIGHTLINE_HOME": home, "SIGHTLINE_MODEL": "local"}
        environment = {**os.environ, **alone, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            watchdog = threading.Timer(180, process.kill)
            watchdog.start()
            try:
                yield read_address(process)
            finally:
                watchdog.cancel()
                process.terminate()
                process.communicate()


def read_address(process: subprocess.Popen[str]) -> str:
    """Return the address that Sightline prints when it is ready."""
    printed = []
    for line in process.stdout or ():
        if ADDRESS in line:
            return line.partition(ADDRESS)[2].split()[0]
        printed.append(line)
    sys.exit("demo: Sightline did not start:\n" + "".join(printed))


def summarize(exchange: Exchange) -> str:
    """Return one line about a request that reached the provider."""
    body = body_of(exchange)
    images = sum(
        part.get("type") == "image_url"
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    )
    return f"{body['model']} was sent {'the image' if images else 'a description in words, no image'}"


def main() -> int:
    """Ask without and with Sightline; return 0 if the answer is what the picture shows."""
    print(paint("A text-only model, asked about a screenshot", "bold"))
    show("screenshot  demo/screenshot.png")
    show(f"model       {MODEL}: text only, scripted, on loopback")
    show(f"asked       {QUESTION}")
    with deepseek(key=KEY, mind=answer_from_words) as provider, start_proxy(provider.url) as proxy:
        print(f"\n{paint('WITHOUT', 'bold')}  POST {provider.url}/v1/chat/completions")
        status, before = ask(f"{provider.url}/v1/chat/completions")
        show(f"{status}  {before}", "red")
        print(f"\n{paint('WITH', 'bold')}     POST {proxy}/u/deepseek/v1/chat/completions")
        status, after = ask(f"{proxy}/u/deepseek/v1/chat/completions")
        show(f"{status}  {after}", "green" if status == 200 else "red")
        print(f"\n{paint('HOW', 'bold')}      what Sightline sent to the provider")
        for number, exchange in enumerate(provider.exchanges[1:], 1):
            show(f"{number}. {summarize(exchange)}")
    print(f'\n{paint("ASK", "bold")}      sightline describe demo/screenshot.png --question "{QUESTION[:19]} …"')
    related, _, rest = read_for_question().partition("\n\n")
    show(related, "green")
    show("[followed by all the text in the picture]" if rest else "")
    right = status == 200 and all("0042_add_refund" in text and "7f3a-c41e" in text for text in (after, related))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
