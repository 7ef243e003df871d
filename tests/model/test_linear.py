"""Texts that would keep a careless pattern busy for minutes. A quadratic pattern makes these tests hang."""

from __future__ import annotations

import unicodedata

import pytest

from sightline.model import fence
from sightline.model.fence import MIN_NAME_LENGTH, OPENING_BRACKETS, fold_character, neutralize
from sightline.model.labels import find_call_id, is_label
from tests.requirements import requirement

LONG = 500_000


@pytest.mark.parametrize("text", ["<tool_result tool_call_id=" + "a" * LONG, "[image from the tool call " + "(" * LONG])
def test_a_long_text_is_not_a_label(text: str) -> None:
    assert not is_label(text)
    assert find_call_id(text) is None


@requirement("fence.neutral")
@pytest.mark.parametrize("text", ["<" + " " * LONG, "< " * (LONG // 2), "<" + " " * LONG + "/" + " " * LONG])
def test_a_bracket_with_many_spaces_opens_no_fence(text: str) -> None:
    assert neutralize(text) == text
    assert neutralize(f"{text}vision_proxy_x").endswith("vision_proxy_x")


MANY = 200_000


@requirement("fence.neutral")
@pytest.mark.parametrize(
    "text",
    [
        "<v" * MANY,
        "<vision_proxy" * MANY,
        "<vision_proxy " * MANY,
        "\u2039" * MANY,
        "<\u200b" * MANY,
        "<" + "\u200b" * MANY,
        "<vision" + "\u0301" * MANY,
        "<" + "/" * MANY,
        "<" + "\\" * MANY,
        "<v" + " " * MANY + "<v",
        "<v\x1b[0m" * MANY,
        "<v" + "\x1b[0m" * MANY,
        "<vi\x1b[" + "1;" * MANY,
        "<v" + "\x1b[" * MANY,
        "<v\x1b]" + "a" * MANY,
        "<v" + "\x1b]a" * MANY,
        "\u00e9<v" + "\x1b[0m" * MANY,
        "\u00e9<v" + "\x1b]a" * MANY,
        "\U000e003c" * MANY,
        "<" + "\U000e003c\U000e0076" * MANY,
    ],
)
def test_almost_fences_are_read_once(text: str) -> None:
    assert neutralize(text) == text
    assert neutralize(f"{text}<vision_proxy_x") == f"{text}&lt;vision_proxy_x"


@requirement("fence.neutral")
@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "\u2039",
        "\uff1c",
        "<\u200b",
        "<\u00e9",
        "\u2039v",
        "\u2039vision_proxy",
        "\U000e003c",
        "\U000e003c\U000e0076",
        "\U000e003cvision_proxy",
    ],
)
def test_only_the_last_of_adjacent_brackets_is_examined(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(letter: str, *, tags: bool) -> str:
        read.append(letter)
        return fold_character(letter, tags=tags)

    text = "\u00e9" + unit * 1000
    assert neutralize(text) == text  # ASCII is read once for all
    monkeypatch.setattr(fence, "fold_character", counted)
    assert neutralize(text) == text
    assert len(read) <= 50
    assert neutralize(f"{text}\u2039vision_proxy_x") == f"{text}&lt;vision_proxy_x"


@requirement("fence.neutral")
def test_the_name_of_a_fence_is_longer_than_what_is_skipped() -> None:
    name = "vision_proxy_"
    composed = [chr(number) for number in range(0x110000) if unicodedata.decomposition(chr(number))]
    spelled = {fold_character(each, tags=False) for each in composed}
    fewest = [0] * (len(name) + 1)  # characters for the rest of the name, from each of its letters on
    for start in reversed(range(len(name))):
        longer = range(start + 2, len(name) + 1)
        ends = [start + 1, *(end for end in longer if name[start:end] in spelled)]
        ends += [len(name)] if any(each.startswith(name[start:]) for each in spelled) else []
        fewest[start] = 1 + min(fewest[end] for end in ends)
    assert fewest[0] >= MIN_NAME_LENGTH
    assert all(fold_character(each, tags=False).startswith("<") for each in OPENING_BRACKETS)
