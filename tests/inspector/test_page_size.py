"""What makes the pages fast, whatever the record holds: bounded answers, indexes, and thumbnails made once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.model.ports import Store
from sightline.model.profile import UpstreamDirectory
from sightline.model.records import FiledReceipt, Receipt, ReceiptLine
from sightline.model.refusal import Refusal
from sightline.model.request_trace import RequestTrace, TraceParts
from sightline.pixels.workers import WorkerPool
from sightline.settings import load_settings
from sightline.store import open_record
from sightline.store.sql_ledger import CONVERSATION_QUERY, NEWEST_QUERY, SUMMARY_QUERY
from sightline.store.sql_store import SqlStore
from sightline.surfaces.inspector.queries import (
    MAX_IMAGES,
    MAX_NEW_IMAGES,
    PAGE_SIZE,
    THUMBNAIL_EDGE,
    PictureMaker,
    Queries,
)
from tests.inspector.recorded import paint_window, record_many
from tests.requirements import requirement

MAX_LIST_BYTES = 32 * 1024
MAX_TIMELINE_BYTES = 1024 * 1024


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """A record of 1,000 conversations and 10,000 images; one of them has 2,000 new images in one request."""
    opened = open_record(tmp_path_factory.mktemp("record"))
    record_many(opened, 1000, 8)
    record_many(opened, 1, 2000, client="big/1")
    record_growing(opened, PAGE_SIZE + 10)
    assert isinstance(opened, SqlStore)
    yield opened
    opened.close()


def record_growing(record: Store, requests: int) -> None:
    """File a conversation of which each request repeats the images of the one before, and adds two."""
    lines = tuple(ReceiptLine(f"/messages/{n}", "shown", "", 9, 9, f"{n:064x}") for n in range(2 * requests))
    for number in range(requests):
        parts = TraceParts("growing", (), RequestTrace("", "", number + 1, number + 1))
        receipt = Receipt("openai", "gpt-5", lines[: 2 * number + 2])
        record.ledger.file_receipt("", FiledReceipt(receipt, "openai_chat", client="growing/1", parts=parts))


@pytest.fixture(scope="module")
def queries(record: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> Queries:
    settings = load_settings({"SIGHTLINE_HOME": str(tmp_path_factory.mktemp("home"))})
    return Queries(record, lambda: settings, lambda: UpstreamDirectory({}, {}))


def find(queries: Queries, client: str) -> str:
    offset: Any = 0
    while offset is not None:
        page: Any = queries.list_conversations(offset)
        for each in page["conversations"]:
            if each["client"] == client:
                return str(each["id"])
        offset = page["next"]
    raise AssertionError(client)


@requirement("inspector.fast")
def test_the_first_page_is_bounded(queries: Queries) -> None:
    page: Any = queries.list_conversations(0)
    assert len(page["conversations"]) == PAGE_SIZE
    assert page["next"] == PAGE_SIZE
    assert len(json.dumps(page)) < MAX_LIST_BYTES


@requirement("inspector.fast")
def test_a_request_with_many_images_lists_them_by_pages(queries: Queries) -> None:
    chosen = find(queries, "big/1")
    page: Any = queries.read_conversation(chosen, 0)
    (request,) = page["requests"]
    assert (len(request["images"]), request["new_images"], request["fates"]) == (MAX_NEW_IMAGES, 2000, {"shown": 2000})
    assert len(json.dumps(page)) < MAX_LIST_BYTES
    images: Any = queries.list_images(chosen, request["id"], 0)
    assert (len(images["images"]), images["next"]) == (MAX_IMAGES, MAX_IMAGES)
    rest: Any = queries.list_images(chosen, request["id"], 2000 - MAX_IMAGES)
    assert (len(rest["images"]), rest["next"]) == (MAX_IMAGES, None)
    assert isinstance(queries.list_images(chosen, request["id"] + 1, 0), Refusal)


@requirement("inspector.fast")
def test_a_request_shows_only_images_that_are_new_or_changed(queries: Queries) -> None:
    chosen = find(queries, "growing/1")
    page: Any = queries.read_conversation(chosen, 0)
    assert {len(each["images"]) for each in page["requests"]} == {2}
    assert page["requests"][-1]["fates"] == {"shown": 2 * PAGE_SIZE}
    assert len(json.dumps(page)) < MAX_TIMELINE_BYTES
    later: Any = queries.read_conversation(chosen, page["next"])
    assert [len(each["images"]) for each in later["requests"]] == [2] * 10


@requirement("inspector.fast")
def test_queries_of_the_pages_use_indexes(record: SqlStore) -> None:
    plans = {
        SUMMARY_QUERY.format(""): "COVERING INDEX",
        SUMMARY_QUERY.format("AND conversation = 'a'"): "SEARCH receipts USING COVERING INDEX",
        CONVERSATION_QUERY.replace("?", "1"): "SEARCH receipts USING COVERING INDEX",
    }
    for query, expected in plans.items():
        plan = _explain(record, query.replace("?", "1"))
        assert expected in plan, query
        assert not [step for step in plan.split("; ") if step == "SCAN receipts"]
    assert "TEMP B-TREE" not in _explain(record, NEWEST_QUERY.replace("?", "1"))


def _explain(record: SqlStore, query: str) -> str:
    return "; ".join(str(row[3]) for row in record.transactions.fetch_all(f"EXPLAIN QUERY PLAN {query}"))


class CountingWorkers(WorkerPool):
    fits = 0

    async def run(self, *args: Any, **given: Any) -> Any:
        self.fits += 1
        return await super().run(*args, **given)


@requirement("inspector.fast")
async def test_a_thumbnail_is_made_once_in_a_worker(tmp_path: Path) -> None:
    record = open_record(tmp_path / "record")
    image = paint_window(0)
    record.images.keep("", image)
    with CountingWorkers(count=1) as workers:
        pictures = PictureMaker(record.images, workers)
        made = await asyncio.gather(*[pictures.scale(image.sha256, THUMBNAIL_EDGE) for _ in range(5)])
        again = await pictures.scale(image.sha256, THUMBNAIL_EDGE)
        assert workers.fits == 1
    record.close()
    assert {*made, again} == {again}
