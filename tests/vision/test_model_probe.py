"""The verdicts of the model probe: only proof counts, in either direction."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import Lesson
from sightline.pixels.trial_card import COLOURS, LETTERS, TrialCard
from sightline.vision.model_probe import (
    PROBE_QUESTION,
    PROBE_WIRES,
    ProbeFinding,
    ProbeResult,
    draw_card,
    judge_answer,
    lower_body,
)
from sightline.wire import WIRES
from sightline.wire.json_tree import PlainTexts
from tests.requirements import requirement

CARD = TrialCard(("red", "gray", "blue", "pink"), "7NTX4K")


@requirement("probe.strict")
@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("red gray blue pink 7NTX4K", "sees"),
        ("Red, Grey, Blue, Pink, 7ntx4k", "sees"),
        ("red gray blue pink 7 N T X 4 K", "sees"),
        ("The quarters are **red**, **gray**, **blue** and **pink**; the code is `7NTX4K`.", "sees"),
        ("red gray pink blue 7NTX4K", "could not tell"),  # the code alone, in a picture that was seen badly
        ("red gray blue pink", "could not tell"),
        ("red gray blue pink 7NTX4M", "could not tell"),
        ("red gray blue green ACDEFH", "could not tell"),
        ("green yellow orange black ACDEFH", "does not see"),
        ("green yellow orange black ABC123", "does not see"),
        ("NO PICTURE", "does not see"),
        ("I'm sorry, but I cannot see any images.", "does not see"),
        ("I don't see an image in our conversation.", "does not see"),
        ("I see no image.", "does not see"),
        ("I am unable to view pictures.", "does not see"),
        ("There isn't an image attached.", "does not see"),
        ("", "could not tell"),
        ("Lorem ipsum dolor sit amet.", "could not tell"),
        (" ".join([*COLOURS, "red gray blue pink 7NTX4K"]), "could not tell"),
        (PROBE_QUESTION.replace("NO PICTURE", ""), "does not see"),
    ],
)
def test_an_answer_is_judged_strictly(answer: str, verdict: str) -> None:
    assert judge_answer(CARD, answer).verdict == verdict


@requirement("probe.strict")
@given(st.lists(st.sampled_from([*COLOURS, *LETTERS, "code", "7NTX4J", "no", "picture", "\n", "the"])).map(" ".join))
def test_only_the_colours_and_the_code_prove_sight(answer: str) -> None:
    seen = judge_answer(CARD, answer).verdict == "sees"
    assert not seen or ("red gray blue pink" in " ".join(answer.split()) and "7 N T X 4 K" in answer)


@given(st.text(), st.integers(0, 2**32))
def test_any_answer_has_a_verdict_in_one_line(answer: str, seed: int) -> None:
    found = judge_answer(TrialCard.from_random(Random(seed)), answer)
    assert found.verdict != "sees"
    assert "\n" not in found.why
    assert len(found.why) < 400


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize(("way", "hoisted"), [("native", False), ("hoist", True), ("bridge", True)])
def test_a_tool_image_is_placed_where_the_proxy_would_put_it(wire: object, way: object, hoisted: bool) -> None:
    codec = next(each for each in WIRES if each is wire)
    tree = PROBE_WIRES[codec.name].build_tool_body("m", PROBE_QUESTION, draw_card(CARD))
    moved = lower_body(tree, codec.name, "m", way)  # type: ignore[arg-type]
    assert (moved == tree) is not hoisted
    (before,), (after,) = codec.read(tree, PlainTexts()).sights, codec.read(moved, PlainTexts()).sights
    assert (before.is_in_tool_result, after.is_in_tool_result) == (True, not hoisted)
    assert before.call == after.call
    if hoisted:
        assert lower_body(moved, codec.name, "m", way) == moved  # type: ignore[arg-type]


SEES, NOT, REFUSED, UNKNOWN = (
    ProbeFinding(verdict, "") for verdict in ("sees", "does not see", "refused", "could not tell")
)


@requirement("probe.remembers")
def test_the_lesson_follows_from_the_findings() -> None:
    def learnt(**places: ProbeFinding) -> Lesson | None:
        found = ProbeResult("openai_chat", places).lesson  # type: ignore[arg-type]
        return None if found is None else Lesson(found.blind, tool_images=found.tool_images)

    assert learnt(user=UNKNOWN) is None
    assert learnt(user=NOT) == learnt(user=REFUSED) == Lesson(blind=True)
    assert learnt(user=SEES, tool=SEES, hoisted=SEES) == Lesson(False, tool_images={"openai_chat": "native"})
    assert learnt(user=SEES, tool=NOT, hoisted=SEES) == Lesson(False, tool_images={"openai_chat": "hoist"})
    assert learnt(user=SEES, tool=NOT, hoisted=REFUSED, bridged=SEES) == Lesson(
        False, tool_images={"openai_chat": "bridge"}
    )
    assert learnt(user=SEES, tool=UNKNOWN, hoisted=UNKNOWN) == Lesson(blind=False)
    assert ProbeResult("gemini", {"user": SEES}).lesson_days == 30
    assert ProbeResult("gemini", {"user": REFUSED}).lesson_days == 7
