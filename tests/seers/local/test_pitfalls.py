"""Everyday screens on which a question finds words that do not answer it."""

from __future__ import annotations

import pytest

from sightline.seers.local.seen import Seen
from tests.requirements import requirement
from tests.seers.local.test_questions import grid, lines, words_of

FACTS = grid(("Invoice no.", "2026-1188"), ("Issue date", "2 November 2026"), ("Customer no.", "40071"))
FILES = grid(("Name", "Type", "Size"), ("photos.zip", "Archive", "1.3 GB"), ("readme.txt", "Text", "2 KB"))
BOARD = grid(("14:12", "Lyon", "On time"), ("14:20", "Geneva", "On time"))


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (FACTS, "Who is the customer?", "no"),
        (FILES, "How big is photos.zip?", "no"),
        (FILES, "How big is the image?", "960 pixels wide and 480 high"),
        (FILES, "What is the size of the screenshot in pixels?", "960 pixels wide and 480 high"),
        (BOARD, "What time is it?", "no"),
        (lines("The picnic time is 14:00"), "What time is the picnic?", 'It says: "The picnic time is 14:00"'),
        (lines("budget_q4.xlsx", "Travel", "Licences"), "Which item is over budget?", "no"),
        (lines("Budget", "Travel", "Licences"), "Which item is under budget?", "no"),
        (lines("Budget", "Travel", "Licences"), "What stands under Budget?", '"Travel"'),
        (lines("2024", "Bilbao", "1,077"), "What did Espoo produce in 2024?", "no"),
        (lines("Test Suites: 1 failed, 2 passed, 3 total"), "How many tests passed?", "no"),
        (lines("Testspassed:41 of 42"), "How many tests passed?", 'It says: "Testspassed:41 of 42"'),
        (lines("def __init__(self, number: int, lines: list) -> None:"), "What is the number?", "no"),
        (lines('"account": {', '"limit": 1000,'), "What is the account?", "no"),
        (lines('"account": {', '"limit": 1000,'), "What is the limit?", '"1000" (in ""limit": 1000,")'),
        (lines("Needed: 48.2 GB Free: 11.7 GB"), "What is needed?", '"48.2 GB" (in "Needed: 48.2 GB Free: 11.7 GB")'),
    ],
)  # fmt: skip
def test_words_that_only_look_like_an_answer_are_none(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said
