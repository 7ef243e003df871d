"""Words from outside that would keep a careless pattern busy for minutes: each of these ends at once, or never."""

from __future__ import annotations

import unicodedata

import pytest

from sightline.model import fence
from sightline.model.fence import FEWEST, neutral
from sightline.model.lookalikes import BRACKETS, read_as
from sightline.model.marks import call_in, leads
from tests.requirements import requirement

LONG = 2_000_000


@pytest.mark.parametrize("text", ["<tool_result tool_call_id=" + "a" * LONG, "[image from the tool call " + "(" * LONG])
def test_a_long_text_is_nobody_s_mark(text: str) -> None:
    assert not leads(text)
    assert call_in(text) is None


@requirement("fence.neutral")
@pytest.mark.parametrize("text", ["<" + " " * LONG, "< " * (LONG // 2), "<" + " " * LONG + "/" + " " * LONG])
def test_blanks_behind_a_bracket_open_no_fence(text: str) -> None:
    assert neutral(text) == text
    assert neutral(f"{text}vision_proxy_x").endswith("vision_proxy_x")


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
def test_what_is_almost_a_fence_is_read_once(text: str) -> None:
    assert neutral(text) == text
    assert neutral(f"{text}<vision_proxy_x") == f"{text}&lt;vision_proxy_x"


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
def test_of_brackets_side_by_side_only_the_last_is_looked_at(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(letter: str, *, tags: bool) -> str:
        read.append(letter)
        return read_as(letter, tags=tags)

    text = "\u00e9" + unit * 1000
    assert neutral(text) == text  # ASCII is read once for all
    monkeypatch.setattr(fence, "read_as", counted)
    assert neutral(text) == text
    assert len(read) <= 50
    assert neutral(f"{text}\u2039vision_proxy_x") == f"{text}&lt;vision_proxy_x"


@requirement("fence.neutral")
def test_the_name_of_a_fence_takes_more_characters_than_are_skipped() -> None:
    name = "vision_proxy_"
    composed = [chr(number) for number in range(0x110000) if unicodedata.decomposition(chr(number))]
    spelled = {read_as(each, tags=False) for each in composed}
    fewest = [0] * (len(name) + 1)  # characters for the rest of the name, from each of its letters on
    for start in reversed(range(len(name))):
        longer = range(start + 2, len(name) + 1)
        ends = [start + 1, *(end for end in longer if name[start:end] in spelled)]
        ends += [len(name)] if any(each.startswith(name[start:]) for each in spelled) else []
        fewest[start] = 1 + min(fewest[end] for end in ends)
    assert fewest[0] >= FEWEST
    assert all(read_as(each, tags=False).startswith("<") for each in BRACKETS)
