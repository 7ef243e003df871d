"""Texts that replace images: nothing from outside opens or closes a fence."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import Description
from sightline.model.fence import escape_attribute, neutralize
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.passes.wording import explain_fallback, write_absence, write_description
from tests.requirements import requirement

SHA = "a" * 64


def seen(text: str = "A red square.", seer: str = "up/eye") -> Description:
    return Description(SHA, Size(640, 480), text, seer)


def fences(text: str) -> list[str]:
    """Return whatever a model could take for a fence, found in another way than by the code under test.

    A blank behind the bracket and no slash is a comparison.
    """
    found = re.findall(r"<(?:\s*/\s*)?vision_proxy_", text.replace("\uff1c", "<").lower())
    return ["".join(each.split()) for each in found]


@requirement("tell.fence")
def test_a_description_is_in_its_fence() -> None:
    lead, _, fence = write_description(seen("Text: “404”\nA red square.\n"), "my shot.png").partition("\n")
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


def test_the_local_reader_is_not_called_a_model() -> None:
    lead = write_description(seen(seer="local"), None).partition("\n")[0]
    assert ("data" in lead, "instructions" in lead, "model" in lead) == (True, True, False)
    assert "model" in write_description(seen(), None).partition("\n")[0]


@requirement("boxes.one_way")
def test_a_description_with_boxes_explains_their_numbers() -> None:
    pointed = write_description(replace(seen(), boxes_block="<vision_proxy_boxes>…"), None)
    assert pointed.partition("\n")[0].endswith(" x1, y1, x2, y2.]")
    assert "x1" not in write_description(seen(), None)


def test_a_description_without_a_file_has_no_filename() -> None:
    assert "filename" not in write_description(seen(), None)


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
def test_text_cannot_open_or_close_a_fence(text: str) -> None:
    assert fences(neutralize(text)) == []
    assert neutralize(neutralize(text)) == neutralize(text)


@requirement("fence.neutral")
@given(hostile, hostile, hostile)
def test_a_described_image_has_exactly_its_own_fence(text: str, filename: str, seer: str) -> None:
    words = write_description(seen(text, seer), filename)
    assert fences(words) == ["<vision_proxy_", "</vision_proxy_"]
    head = words.partition("<vision_proxy_description")[2].partition(">\n")[0]
    assert re.fullmatch(r'(\n    [a-z_]+="[^"<>\x00-\x1f]*")+', head), head


@requirement("fence.neutral")
@given(hostile)
def test_a_refusal_opens_no_fence(filename: str) -> None:
    assert fences(write_absence(Refusal("corrupt", "it is broken"), filename)) == []


@given(st.text())
def test_text_without_a_fence_stays_unchanged(text: str) -> None:
    if "vision_proxy_" not in text.lower():
        assert neutralize(text) == text


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
    assert escape_attribute(value) == written


def test_a_refusal_says_what_why_and_what_to_do() -> None:
    said = write_absence(Refusal("too_large", "why it is not", "do something"), "a\nb.png")
    assert re.fullmatch(r"\[[^\n]* a b\.png [^\n]*: why it is not\. [^\n]*\. Do something\.\]", said)
    assert re.fullmatch(r"\[[^\n]*: damaged\. [^\n]*\.\]", write_absence(Refusal("corrupt", "damaged")))


def test_a_fallback_is_explained_in_one_sentence() -> None:
    said = explain_fallback(Refusal("no_consent", "openai/gpt-5.4 needs a yes", "run sightline consent"), "local")
    assert (said[0], said[-2:], said.count("\n")) == ("(", ".)", 0)
    assert all(fact in said for fact in ("local", "openai/gpt-5.4 needs a yes", "run sightline consent"))
