"""What a message weighs: four letters of its shortest writing to a token, and nothing for what nobody reads."""

from __future__ import annotations

import json

import pytest

from sightline.model.scene import Json
from sightline.wire import OPENAI_CHAT
from sightline.wire.chain import chain
from sightline.wire.shape import Whole
from tests.wire.bodies import body, part, text, user
from tests.wire.json_texts import base64_like


def weight(message: Json) -> int:
    tree = body(message)
    sights = OPENAI_CHAT.read(tree, Whole()).sights
    (tokens,) = chain(tree, OPENAI_CHAT.head, OPENAI_CHAT.items, Whole(), sights).tokens
    return tokens


def written(message: Json) -> int:
    return len(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode())


@pytest.mark.parametrize("words", ["", "a", "ab", "abc", "abcd", "é", "a longer one, with blanks"])
def test_four_letters_are_a_token(words: str) -> None:
    message: Json = {"role": "user", "content": words, "name": "x"}
    assert weight(message) == written(message) // 4


def test_half_a_letter_is_written_as_short_as_any_other() -> None:
    """A lone surrogate can only be written as an escape, of six letters."""
    message: Json = {"role": "user", "content": ["\ud800"] * 8, "name": "x"}
    assert weight(message) == len(json.dumps(message, separators=(",", ":"))) // 4


def test_an_image_weighs_nothing_however_short_and_words_as_short_do() -> None:
    empty = weight(user(text("look"), part("")))
    for length in (32, 63, 64, 500):
        assert weight(user(text("look"), part(base64_like(length)))) == empty
    assert weight(user(text("look"), part(base64_like(31)))) == (written(user(text("look"), part(""))) + 31) // 4


def test_a_run_of_sixty_four_letters_is_nothing_to_read() -> None:
    def signed(length: int) -> Json:
        return {"role": "assistant", "signature": base64_like(length)}

    assert weight(signed(64)) == weight(signed(65)) == weight(signed(0))
    assert weight(signed(63)) == written(signed(63)) // 4
