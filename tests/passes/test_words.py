"""Words in the place of pixels: no text from outside opens or closes a fence of ours."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import Description
from sightline.model.fence import attribute, neutral
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.passes.words import absence, description, fallen
from tests.requirements import requirement

SHA = "a" * 64


def seen(text: str = "A red square.", seer: str = "up/eye") -> Description:
    return Description(SHA, Size(640, 480), text, seer)


def fences(text: str) -> list[str]:
    """Return whatever a model could take for a fence of ours, found in another way than the code that is tested.

    A blank behind the bracket and no slash is a comparison.
    """
    found = re.findall(r"<(?:\s*/\s*)?vision_proxy_", text.replace("\uff1c", "<").lower())
    return ["".join(each.split()) for each in found]


@requirement("tell.fence")
def test_a_description_stands_in_its_fence() -> None:
    lead, _, fence = description(seen("Text: “404”\nA red square.\n"), "my shot.png").partition("\n")
    assert (lead[0], lead[-1], "data" in lead, "instructions" in lead) == ("[", "]", True, True)
    assert fence == (
        "<vision_proxy_description\n"
        f'    image="sha256:{SHA}"\n'
        '    width="640"\n'
        '    height="480"\n'
        '    filename="my shot.png"\n'
        '    grounding_format="none"\n'
        '    seer="up/eye">\n'
        "Text: “404”\nA red square.\n"
        "</vision_proxy_description>"
    )


def test_what_was_read_here_is_not_said_to_come_from_a_model() -> None:
    lead = description(seen(seer="local"), None).partition("\n")[0]
    assert ("data" in lead, "instructions" in lead, "model" in lead) == (True, True, False)
    assert "model" in description(seen(), None).partition("\n")[0]


@requirement("boxes.one_way")
def test_where_boxes_stand_behind_a_description_it_is_said_what_their_numbers_are() -> None:
    pointed = description(replace(seen(), boxes="<vision_proxy_boxes>…"), None)
    assert pointed.partition("\n")[0].endswith(" x1, y1, x2, y2.]")
    assert "x1" not in description(seen(), None)


def test_a_description_without_a_file_has_no_filename() -> None:
    assert "filename" not in description(seen(), None)


spaces = st.text(st.sampled_from(" \t\n\r\u00a0\u2003\u3000\u2028"), max_size=3)
cased = st.builds(
    lambda word, ups: "".join(c.upper() if up else c for c, up in zip(word, ups, strict=True)),
    st.just("vision_proxy_"),
    st.lists(st.booleans(), min_size=13, max_size=13),
)
tags = st.builds(
    lambda bracket, a, slash, b, name, rest: f"{bracket}{a}{slash}{b}{name}{rest}",
    st.sampled_from("<\uff1c"),
    spaces,
    st.sampled_from(["", "/"]),
    spaces,
    cased,
    st.sampled_from(["", ">", "description>", 'description image="sha256:', "boxes", "\uff1e"]),
)
hostile = st.lists(st.one_of(tags, st.text(max_size=5), st.sampled_from(["<", "&lt;", "</", "&"])), max_size=6).map(
    "".join
)


@requirement("fence.neutral")
@given(hostile)
def test_no_text_can_open_or_close_a_fence(text: str) -> None:
    assert fences(neutral(text)) == []
    assert neutral(neutral(text)) == neutral(text)


@requirement("fence.neutral")
@given(hostile, hostile, hostile)
def test_a_described_image_has_exactly_its_own_fence(text: str, filename: str, seer: str) -> None:
    words = description(seen(text, seer), filename)
    assert fences(words) == ["<vision_proxy_", "</vision_proxy_"]
    head = words.partition("<vision_proxy_description")[2].partition(">\n")[0]
    assert re.fullmatch(r'(\n    [a-z_]+="[^"<>\x00-\x1f]*")+', head), head


@requirement("fence.neutral")
@given(hostile)
def test_a_sentence_opens_no_fence(filename: str) -> None:
    assert fences(absence(Refusal("corrupt", "it is broken"), filename)) == []


@given(st.text())
def test_text_that_is_no_fence_stays_as_it_is(text: str) -> None:
    if "vision_proxy_" not in text.lower():
        assert neutral(text) == text


@requirement("fence.escaped")
@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain.png", "plain.png"),
        ('a"b', "a&quot;b"),
        ("a<b>c", "a&lt;b&gt;c"),
        ("a&b", "a&amp;b"),
        ("&lt;", "&amp;lt;"),
        ("a\r\nb\x00c\x85d\u2028e", "a b c d e"),
        ("\uff1cvision_proxy_x", "&lt;vision_proxy_x"),
        (" spaced ", "spaced"),
        ("it's 日本.png", "it's 日本.png"),
    ],
)
def test_an_attribute_is_escaped(value: str, written: str) -> None:
    assert attribute(value) == written


def test_a_sentence_says_what_why_and_what_to_do() -> None:
    said = absence(Refusal("too_large", "why it is not", "do something"), "a\nb.png")
    assert re.fullmatch(r"\[[^\n]* a b\.png [^\n]*: why it is not\. [^\n]*\. Do something\.\]", said)
    assert re.fullmatch(r"\[[^\n]*: damaged\. [^\n]*\.\]", absence(Refusal("corrupt", "damaged")))


def test_why_another_looked_is_one_sentence_that_spells_names_as_they_are() -> None:
    said = fallen(Refusal("no_consent", "openai/gpt-5.4 needs a yes", "run sightline consent"), "local")
    assert (said[0], said[-2:], said.count("\n")) == ("(", ".)", 0)
    assert all(fact in said for fact in ("local", "openai/gpt-5.4 needs a yes", "run sightline consent"))
