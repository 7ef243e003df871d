"""The tokens of a message: a quarter of its characters, and none for images and long runs."""

from __future__ import annotations

import json

import pytest

from sightline.model.scene import Json
from sightline.wire import OPENAI_CHAT
from sightline.wire.hash_chain import build_hash_chain
from sightline.wire.json_tree import PlainTexts
from tests.wire.bodies import body, part, text, user
from tests.wire.json_texts import base64_like


def weight(message: Json) -> int:
    tree = body(message)
    sights = OPENAI_CHAT.read(tree, PlainTexts()).sights
    (tokens,) = build_hash_chain(tree, OPENAI_CHAT.head_keys, OPENAI_CHAT.messages_key, PlainTexts(), sights).tokens
    return tokens


def written(message: Json) -> int:
    return len(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode())


@pytest.mark.parametrize("words", ["", "a", "ab", "abc", "abcd", "é", "a longer one, with blanks"])
def test_four_characters_are_a_token(words: str) -> None:
    message: Json = {"role": "user", "content": words, "name": "x"}
    assert weight(message) == written(message) // 4


def test_a_lone_surrogate_counts_like_a_letter() -> None:
    """A lone surrogate can only be written as an escape, of six characters."""
    message: Json = {"role": "user", "content": ["\ud800"] * 8, "name": "x"}
    assert weight(message) == len(json.dumps(message, separators=(",", ":"))) // 4


def test_even_a_short_image_has_no_tokens() -> None:
    empty = weight(user(text("look"), part("")))
    for length in (32, 63, 64, 500):
        assert weight(user(text("look"), part(base64_like(length)))) == empty
    assert weight(user(text("look"), part(base64_like(31)))) == (written(user(text("look"), part(""))) + 31) // 4


def test_a_run_of_sixty_four_letters_has_no_tokens() -> None:
    def signed(length: int) -> Json:
        return {"role": "assistant", "signature": base64_like(length)}

    assert weight(signed(64)) == weight(signed(65)) == weight(signed(0))
    assert weight(signed(63)) == written(signed(63)) // 4
