"""Words from outside that would keep a careless pattern busy for minutes: each of these ends at once, or never."""

from __future__ import annotations

import pytest

from sightline.model.fence import neutral
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
        "\U000e003c" * MANY,
        "<" + "\U000e003c\U000e0076" * MANY,
    ],
)
def test_what_is_almost_a_fence_is_read_once(text: str) -> None:
    assert neutral(text) == text
    assert neutral(f"{text}<vision_proxy_x") == f"{text}&lt;vision_proxy_x"
