"""Do some work over and over until terminated, so that it can be sampled: sampled_work.py rewrite|read.

A line is printed when everything is loaded and was done once.
"""

import itertools
import sys
from collections.abc import Callable, Iterator

import numpy as np
import real
import real_pages
import wires
from PIL import Image

from sightline.model.facts import Retention, Rules
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import open_engine, release_memory
from sightline.wire import OPENAI_CHAT


def rewrite_body() -> Iterator[None]:
    """Find, judge and rewrite 128 images of 512 messages, as the benchmark of wires does."""
    body = wires.build_chat_body(20 * wires.MB, 128)
    profile = Profile("up", OPENAI_CHAT.name, "m", vision=True, tool_images="hoist")
    rules = Rules(profile, retention=Retention(is_off=True))
    while True:
        wires.handle_body(body, OPENAI_CHAT, rules)
        yield


def read_pages() -> Iterator[None]:
    """Read pages of 1920x1080 with the local reader."""
    engine = open_engine(None)
    if isinstance(engine, Refusal):
        raise SystemExit(f"bench: {engine.what}")
    pages = [np.asarray(Image.open(page).convert("RGB")) for page in real_pages.find_pages()]
    for pixels in itertools.cycle(pages):
        real.finish_reading(pixels, read_page(pixels, engine))
        release_memory()
        yield


WORK: dict[str, Callable[[], Iterator[None]]] = {"rewrite": rewrite_body, "read": read_pages}

if __name__ == "__main__":
    rounds = WORK[sys.argv[1]]()
    next(rounds)
    print("begins", flush=True)
    for _ in rounds:
        pass
