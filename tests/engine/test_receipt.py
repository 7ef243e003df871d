"""Receipts: one line for each sight, as text and as JSON, without private content."""

from __future__ import annotations

import json
import re

import pytest

from sightline.model import records
from sightline.model.facts import Check, Facts, Keep, KeptImage, Need, Probe
from sightline.model.geometry import Size
from sightline.model.image import FlatSizing, Image, ImageInfo, PaddedSizing, count_image_tokens
from sightline.model.refusal import Refusal
from sightline.model.scene import (
    Fate,
    InlineSource,
    LinkSource,
    Refitted,
    Refused,
    Retired,
    Scene,
    Shown,
    Sight,
    Told,
    ToolCall,
)
from tests.requirements import requirement

SOURCE = InlineSource("image/png", b"cGl4ZWxz" * 100)
SIZING = PaddedSizing()
SIZE = Size(560, 280)
COST = count_image_tokens(SIZE, SIZING)
PICTURE = ImageInfo("image/png", SIZE, 600)
SIGHT = Sight(("messages", 3, "a/b~c"), SOURCE, "tool", ToolCall("c1", "read"))
SMALLER = Image("0" * 64, "image/jpeg", Size(28, 28), b"secret pixels")
FACTS = Facts({Probe(SOURCE): PICTURE})


def line(fate: Fate | None, facts: Facts = FACTS, sight: Sight = SIGHT) -> records.ReceiptLine:
    met = sight if fate is None else sight.with_fate(fate)
    (found,) = records.build_receipt(Scene("m", (met,)), "up", SIZING, facts).sights
    return found


@requirement("receipts.tokens")
@pytest.mark.parametrize(
    ("fate", "name", "fact", "after"),
    [
        pytest.param(None, "shown", "", COST, id="undecided"),
        pytest.param(Shown(), "shown", "", COST, id="shown"),
        pytest.param(Shown("image/gif"), "shown", "image/gif", COST, id="its true type"),
        pytest.param(Refitted(SMALLER, "too wide"), "refitted", "28x28 image/jpeg (too wide)", 1, id="refitted"),
        pytest.param(Told("w" * 41, "up/eye", why="blind"), "told", "by up/eye (blind)", 11, id="told"),
        pytest.param(Retired("w" * 40, "it is old"), "retired", "(it is old)", 10, id="retired"),
        pytest.param(
            Refused("w" * 39, Refusal("corrupt", "it is broken", "send it again")),
            "refused",
            "it is broken (send it again)",
            10,
            id="refused",
        ),
    ],
)
def test_each_fate_has_its_text_and_its_cost(fate: Fate | None, name: str, fact: str, after: int) -> None:
    found = line(fate)
    assert (found.place, found.fate, bool(found.why)) == ("/messages/3/a~1b~0c", name, bool(fact))
    assert fact in found.summary
    assert (found.before, found.after) == (COST, after)
    assert str(found).startswith(f"/messages/3/a~1b~0c: {found.summary}; {COST} -> {after}")


@requirement("receipts.tokens")
def test_hoisted_images_are_noted_and_text_is_counted_as_text() -> None:
    moved = Sight(("a",), SOURCE, "tool", ToolCall("c1"), path_in_text=(0,), label="[from c1]")
    found = line(Shown("image/png"), sight=moved)
    assert found.why.count(", ") >= 2, "taken out of the text, moved, and declared as what it is"
    assert "image/png" in found.why
    assert (found.before, found.after) == (len(SOURCE.text) // 4, COST)


@pytest.mark.parametrize(
    ("need", "answer"),
    [
        (Probe(SOURCE), PICTURE),
        (Check(SOURCE), PICTURE),
        (Keep(SOURCE), KeptImage("0" * 64, PICTURE)),
    ],
)
def test_sizes_come_from_whichever_fact_is_known(need: Need, answer: ImageInfo | KeptImage) -> None:
    assert line(Shown(), Facts({need: answer})).before == COST


def test_the_size_of_what_was_described_is_known() -> None:
    assert line(Told("words", "up/eye", SIZE), Facts()).before == COST


@pytest.mark.parametrize(
    "facts", [Facts(), Facts({Probe(SOURCE): Refusal("corrupt", "x"), Keep(SOURCE): Refusal("corrupt", "x")})]
)
def test_unknown_sizes_are_not_guessed(facts: Facts) -> None:
    assert "; ? -> ?" in str(line(Shown(), facts))
    assert line(Shown(), sight=Sight(("a",), LinkSource("https://a/b"), "user")).before is None
    (unsized,) = records.build_receipt(Scene("m", (SIGHT.with_fate(Refitted(SMALLER, "x")),)), "up").sights
    assert (unsized.before, unsized.after) == (None, None)


@requirement("receipts", "receipts.json")
def test_a_receipt_is_json_without_pixels_and_safe_for_a_terminal() -> None:
    long = Refusal("corrupt", "\x1b[31m" + "x" * 5000)
    sights = (SIGHT.with_fate(Refitted(SMALLER, "x")), SIGHT.with_fate(Told("the whole description", "up/eye")))
    made = records.build_receipt(
        Scene("m\x07" * 500, (*sights, SIGHT.with_fate(Refused("w", long)))), "up", FlatSizing(9), FACTS, ("a note",)
    )
    written = json.dumps(made.as_json())
    assert json.loads(written)["notes"] == ["a note"]
    assert json.loads(written)["sights"][0] == {
        "place": "/messages/3/a~1b~0c",
        "fate": "refitted",
        "why": made.sights[0].why,
        "tokens": {"before": 9, "after": 9},
    }
    for secret in ("cGl4ZWxz", "secret pixels", "the whole description", "\\u001b", "\\u0007"):
        assert secret not in written + repr(made)
    assert len(written) < 2000
    assert str(made).isprintable()


@requirement("receipts.text")
@pytest.mark.parametrize(
    ("found", "said"),
    [
        (records.Receipt("openai", "gpt-6"), r"gpt-6 \w+ openai: \w.*"),
        (records.Receipt("", "", notes=("a note",)), "a note"),
        (records.Receipt("openai", "", notes=("a note",)), "openai: a note"),
        (records.Receipt("openai", "gpt-6", notes=("a", "b")), r"gpt-6 \w+ openai: a; b"),
    ],
)
def test_a_short_receipt_is_a_complete_sentence(found: records.Receipt, said: str) -> None:
    assert re.fullmatch(said, str(found))
