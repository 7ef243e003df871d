"""Receipts: one line for each sight, in words and as JSON, and nothing in them that is nobody's business."""

from __future__ import annotations

import json
import re

import pytest

from sightline.model import receipt
from sightline.model.facts import Check, Facts, Keep, Kept, Need, Probe
from sightline.model.fate import Fate, Refitted, Refused, Retired, Shown, Told
from sightline.model.geometry import Size
from sightline.model.image import Image, Picture
from sightline.model.refusal import Refusal
from sightline.model.scene import Call, Scene, Sight
from sightline.model.sizing import Flat, Padded, tokens
from sightline.model.source import Inline, Link
from tests.requirements import requirement

SOURCE = Inline("image/png", b"cGl4ZWxz" * 100)
SIZING = Padded()
SIZE = Size(560, 280)
COST = tokens(SIZE, SIZING)
PICTURE = Picture("image/png", SIZE, 600)
SIGHT = Sight(("messages", 3, "a/b~c"), SOURCE, "tool", Call("c1", "read"))
SMALLER = Image("0" * 64, "image/jpeg", Size(28, 28), b"secret pixels")
FACTS = Facts({Probe(SOURCE): PICTURE})


def line(fate: Fate | None, facts: Facts = FACTS, sight: Sight = SIGHT) -> receipt.Line:
    met = sight if fate is None else sight.meets(fate)
    (found,) = receipt.of(Scene("m", (met,)), "up", SIZING, facts).sights
    return found


@requirement("receipts.tokens")
@pytest.mark.parametrize(
    ("fate", "name", "fact", "after"),
    [
        pytest.param(None, "shown", "", COST, id="undecided"),
        pytest.param(Shown(), "shown", "", COST, id="shown"),
        pytest.param(Shown("image/gif"), "shown", "image/gif", COST, id="its true type"),
        pytest.param(Refitted(SMALLER, "too wide"), "refitted", "28x28 image/jpeg (too wide)", 1, id="refitted"),
        pytest.param(Told("w" * 41, "up/eye"), "told", "up/eye", 11, id="told"),
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
def test_each_fate_has_its_words_and_its_price(fate: Fate | None, name: str, fact: str, after: int) -> None:
    found = line(fate)
    assert (found.place, found.fate, bool(found.why)) == ("/messages/3/a~1b~0c", name, bool(fact))
    assert fact in found.words
    assert (found.before, found.after) == (COST, after)
    assert str(found).startswith(f"/messages/3/a~1b~0c: {found.words}; {COST} -> {after}")


@requirement("receipts.tokens")
def test_what_was_moved_is_said_and_what_was_text_is_counted_as_text() -> None:
    moved = Sight(("a",), SOURCE, "tool", Call("c1"), within=(0,), label="[from c1]")
    found = line(Shown("image/png"), sight=moved)
    assert found.why.count(", ") >= 2, "taken out of the text, moved, and declared as what it is"
    assert "image/png" in found.why
    assert (found.before, found.after) == (len(SOURCE.text) // 4, COST)


@pytest.mark.parametrize(
    ("need", "answer"),
    [
        (Probe(SOURCE), PICTURE),
        (Check(SOURCE), PICTURE),
        (Keep(SOURCE), Kept("0" * 64, PICTURE)),
    ],
)
def test_a_size_is_taken_from_whatever_was_found_out(need: Need, answer: Picture | Kept) -> None:
    assert line(Shown(), Facts({need: answer})).before == COST


def test_the_size_of_what_was_described_is_known() -> None:
    assert line(Told("words", "up/eye", SIZE), Facts()).before == COST


@pytest.mark.parametrize(
    "facts", [Facts(), Facts({Probe(SOURCE): Refusal("corrupt", "x"), Keep(SOURCE): Refusal("corrupt", "x")})]
)
def test_what_nobody_knows_is_not_guessed(facts: Facts) -> None:
    assert "; ? -> ?" in str(line(Shown(), facts))
    assert line(Shown(), sight=Sight(("a",), Link("https://a/b"), "user")).before is None
    (unsized,) = receipt.of(Scene("m", (SIGHT.meets(Refitted(SMALLER, "x")),)), "up").sights
    assert (unsized.before, unsized.after) == (None, None)


@requirement("receipts", "receipts.json")
def test_a_receipt_is_json_without_pixels_and_whole_texts_and_safe_for_a_terminal() -> None:
    long = Refusal("corrupt", "\x1b[31m" + "x" * 5000)
    sights = (SIGHT.meets(Refitted(SMALLER, "x")), SIGHT.meets(Told("the whole description", "up/eye")))
    made = receipt.of(
        Scene("m\x07" * 500, (*sights, SIGHT.meets(Refused("w", long)))), "up", Flat(9), FACTS, ("a note",)
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
        (receipt.Receipt("openai", "gpt-6"), r"gpt-6 \w+ openai: \w.*"),
        (receipt.Receipt("", "", notes=("a note",)), "a note"),
        (receipt.Receipt("openai", "", notes=("a note",)), "openai: a note"),
        (receipt.Receipt("openai", "gpt-6", notes=("a", "b")), r"gpt-6 \w+ openai: a; b"),
    ],
)
def test_a_receipt_is_a_whole_sentence_also_where_there_is_little_to_say(found: receipt.Receipt, said: str) -> None:
    assert re.fullmatch(said, str(found))
