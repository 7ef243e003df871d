"""Answers of the tool loop: kept for their scope, completed once, forgotten with their images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.model.ports import Store
from sightline.model.records import LoopAnswer
from sightline.model.scene import Json
from sightline.store import open_record
from sightline.store.retention import BOUNDED_TABLES
from tests.requirements import requirement

SHA = "ab" * 32
LEGS: list[Json] = [{"text": "Hm.", "asks": [[{"input": {"images": [f"sha256:{SHA}"]}}, 3, 0]]}]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Store]:
    opened = open_record(tmp_path)
    yield opened
    opened.close()


def kept(record: Store, scope: str = "a") -> list[LoopAnswer]:
    return [*record.conversations.read_answers(scope, ["k", "other"])]


@requirement("loop.kept")
def test_an_answer_is_found_by_its_key_in_its_scope_in_every_process(record: Store, tmp_path: Path) -> None:
    assert not record.conversations.has_answers("a")
    record.conversations.keep_answer("a", LoopAnswer("k", "v", "h", LEGS, [{"x": 1}]))
    again = open_record(tmp_path)
    assert again.conversations.has_answers("a")
    assert not again.conversations.has_answers("b")
    assert [(each.key, each.visible_hash, each.conversation, each.legs, each.results) for each in kept(again)] == [
        ("k", "v", "h", LEGS, [{"x": 1}])
    ]
    assert kept(again, "b") == []
    again.close()


@requirement("loop.kept")
def test_the_first_results_of_a_call_are_kept(record: Store) -> None:
    late = LoopAnswer("k", "v", "", LEGS, None)
    record.conversations.keep_answer("a", late)
    assert kept(record)[0].results is None
    record.conversations.keep_results("a", late, [{"first": True}])
    record.conversations.keep_results("a", late, [{"first": False}])
    record.conversations.keep_answer("a", LoopAnswer("k", "v", "", [], []))
    (one,) = kept(record)
    assert (one.results, one.legs) == ([{"first": True}], LEGS)


@requirement("loop.kept")
def test_forgetting_an_image_forgets_the_answers_that_mention_it(record: Store) -> None:
    record.conversations.keep_answer("a", LoopAnswer("k", "v", "", LEGS, ()))
    late = LoopAnswer("other", "v", "", [], None)
    record.conversations.keep_answer("a", late)
    record.conversations.keep_results(
        "a", late, [{"text": f'<vision_proxy_analysis image="sha256:{SHA}#crop:0,0,1,1">'}]
    )
    record.conversations.keep_answer("b", LoopAnswer("k", "v", "", [], ()))
    record.forget(SHA)
    assert kept(record) == []
    assert len(kept(record, "b")) == 1
    record.forget(None)
    assert kept(record, "b") == []
    assert "legs" in BOUNDED_TABLES
