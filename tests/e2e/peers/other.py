"""Asks a model of a provider that only LiteLLM reaches, in an environment where that is: `other.py PROVIDER MODEL`."""

import asyncio
import json
import sys
from base64 import b64decode
from hashlib import sha256

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.seer import Question
from sightline.vision.chooser import Chooser
from sightline.vision.providers import find_named_model

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


class Nobody:
    """No request goes over a wire of our own."""

    async def ask(self, *_: object) -> Refusal:
        raise AssertionError("a wire of our own was used")


def main(provider: str, model: str) -> None:
    image = Image(sha256(PIXEL).hexdigest(), "image/png", Size(1, 1), PIXEL)
    one = find_named_model({}, f"{provider}/{model}")
    assert not isinstance(one, Refusal), one
    seer = Chooser(Nobody(), lambda receiver: receiver == provider).make_seer(one)
    assert not isinstance(seer, Refusal), seer
    told = asyncio.run(seer.ask(Question("What is it?", (image,), "You are the eyes.")))
    if isinstance(told, Refusal):
        print(json.dumps({"refusal": [told.code, str(told)]}))
    else:
        print(json.dumps({"text": told.text, "seer": told.seer, "usage": [told.usage.input, told.usage.output]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
