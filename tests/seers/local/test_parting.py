"""Pairs in a line, sums in a table, several questions in one: what is meant is told, and nothing that is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.scene import Json
from sightline.seers.local.fill import fill
from sightline.seers.local.parting import questions
from sightline.seers.local.phrases import pairs
from sightline.seers.local.seen import Seen
from tests.requirements import requirement
from tests.seers.local.test_questions import grid, lines, words_of

DEPLOY = lines("Release 4.2.17 did not reach web-3", "Migration orders.0042 failed:", "exit code 3, trace 7f3a-c41e")
BILL = grid(("Item", "Qty", "Price"), ("Bolt", "100", "12.50"), ("Nut", "80", "9.20"), ("Total", "", "21.70"))
SUMS = grid(("Item", "Qty", "Price"), ("Bolt", "100", "12.50"), ("Total", "180", "21.70"))
TAXED = grid(("Item", "Net", "Gross"), ("Bolt", "10.00", "12.50"), ("Total", "17.30", "21.70"))
BELOW = grid(("Work", "Hours", "Fee"), ("Design", "12", "90.00"), ("", "VAT", "18.00"), ("", "Total due", "108.00"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("exit code 3, trace 7f3a-c41e", [("exit code", "3"), ("trace", "7f3a-c41e")]),
        ("PID 4412 | CPU 3.2 % | MEM 120 MB", [("PID", "4412"), ("CPU", "3.2 %"), ("MEM", "120 MB")]),
        ("Temp: 21.5 C; Sky: clear", [("Temp", "21.5 C"), ("Sky", "clear")]),
        ("Name: Smith, John", []),
        ("Test Suites: 1 failed, 2 passed, 3 total", []),
        ("Monday, 3 May 2026", []),
        ("at 5 pm, on 3 May", []),
        ("exit code 3", []),
    ],
)
def test_a_line_of_labels_and_values_is_parted_and_no_other(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs(text) == found


@given(st.text(max_size=200) | st.text("ab1 ,;:|=$%", max_size=60))
def test_whatever_a_line_says_its_pairs_stand_in_it(text: str) -> None:
    found = pairs(text)
    assert len(found) != 1
    assert all(label and value and label in text and value in text for label, value in found)


@given(st.text(max_size=200) | st.lists(st.sampled_from("what is the a b and , . ? it if which".split())).map(" ".join))
def test_whatever_is_asked_its_questions_stand_in_it_and_are_shorter(text: str) -> None:
    plain = " ".join(text.split())
    for one in questions(text):
        assert one in plain
        assert len(one) < len(plain)


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (DEPLOY, "What is the trace?", '"7f3a-c41e" (in "exit code 3, trace 7f3a-c41e")'),
        (DEPLOY, "What is the exit code?", '"3" (in "exit code 3, trace 7f3a-c41e")'),
        (DEPLOY, "The deploy stopped. Which migration failed, and what is the trace?",
         '"Migration orders.0042 failed:"\n"7f3a-c41e" (in "exit code 3, trace 7f3a-c41e")'),
        (DEPLOY, "What is the trace, and who wrote the code?",
         '"7f3a-c41e" (in "exit code 3, trace 7f3a-c41e")\nNot answered by what was read: "who wrote the code?"'),
        (DEPLOY, "Who wrote the code, and what is the weather?", "no"),
        (DEPLOY, "Suppose it were another one. What is the trace?", "no"),
        (DEPLOY, "What is the exit code, and what does it mean?", "no"),
        (DEPLOY, "What is the trace of web-4?", "no"),
        (BILL, "The total?", '"21.70" (stands for "Total")'),
        (BILL, "What is the total amount?", '"21.70" (stands for "Total")'),
        (BILL, "What is the amount due?", "no"),
        (BELOW, "What is the amount due?", '"108.00" (stands for "Total due")'),
        (BILL, "What is the total items?", "no"),
        (BILL, "How many items in total?", "no"),
        (BILL, "What is the total weight?", "no"),
        (BILL, "What is the subtotal?", "no"),
        (BILL, "Which item has the highest price?", "Bolt (12.50)"),
        (BELOW, "What is the total?", '"108.00" (stands for "Total due")'),
        (BELOW, "What is the VAT?", '"18.00" (stands for "VAT")'),
        (BELOW, "What is the discount?", "no"),
        (SUMS, "What is the total?", '"21.70" (stands for "Total")'),
        (TAXED, "What is the total?", "17.30 (Net of Total); 21.70 (Gross of Total)"),
        (TAXED, "What is the Nut?", "no"),
        (lines("Job 221 could not be printed."), "What is the job?", 'It says: "Job 221 could not be printed."'),
        (lines("Uploaded 5 files"), "Who uploaded?", 'It says: "Uploaded 5 files"'),
        (lines("Net total: $4.00", "Total: $5.00"), "What is the order total?", "no"),
    ],
)  # fmt: skip
def test_pairs_sums_and_several_questions_are_answered_by_what_stands_there(
    seen: Seen, question: str, said: str
) -> None:
    assert words_of(question, seen) == said


@requirement("seer.local.fill")
@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (DEPLOY, {"exit_code": 3, "trace": "7f3a-c41e", "user": None}),
        (BILL, {"total": 21.7, "total_amount": 21.7, "tax": None}),
        (SUMS, {"total": 21.7, "sub_total": None}),
        (TAXED, {"total": None}),
        (BELOW, {"total": 108, "discount": None}),
    ],
)
def test_a_schema_is_filled_from_pairs_and_sums(seen: Seen, wanted: dict[str, Json]) -> None:
    kinds = {name: {"type": "string" if isinstance(value, str) else "number"} for name, value in wanted.items()}
    said = fill({"type": "object", "properties": kinds}, [seen], "")  # type: ignore[dict-item]
    assert json.loads(said.text.partition("\n")[0]) == wanted
