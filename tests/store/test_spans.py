"""Entries of the ledger as OpenTelemetry spans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.trace import SpanKind, StatusCode

from sightline.model.ports import Store
from sightline.model.records import LedgerEntry
from sightline.model.seer import Usage
from sightline.store.sql_ledger import shorten
from tests.requirements import requirement
from tests.store.test_ledger_entries import CALL, CAT, DOG, OTHERS

_EXPORTER = InMemorySpanExporter()
_PROVIDER = TracerProvider()
_PROVIDER.add_span_processor(SimpleSpanProcessor(_EXPORTER))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """As a program sets it up; it can be done once in a process, so that it is taken back behind its back."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", _PROVIDER)
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


@requirement("telemetry.spans")
def test_a_call_is_a_span_with_the_names_of_the_conventions(record: Store, watched: InMemorySpanExporter) -> None:
    record.ledger.add_entry("scope", CALL)
    (span,) = watched.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == ("chat eye", SpanKind.CLIENT, StatusCode.UNSET)
    held = dict(span.attributes or {})
    assert {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_PROVIDER_NAME: "here",
        names.GEN_AI_REQUEST_MODEL: "eye",
        names.GEN_AI_TOOL_NAME: "analyze_image",
        names.GEN_AI_USAGE_INPUT_TOKENS: 1000,
        names.GEN_AI_USAGE_OUTPUT_TOKENS: 20,
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 400,
        "vision_proxy.entry": "vision_proxy.tool_call",
        "vision_proxy.images": (f"sha256:{CAT}", f"sha256:{DOG}"),
        "vision_proxy.cost_usd": 0.25,
        "vision_proxy.cache_hit": False,
        "vision_proxy.crop_form": "region",
    }.items() <= held.items()
    assert span.start_time is not None
    assert span.end_time == span.start_time + 1200 * 1_000_000


@requirement("telemetry.spans")
def test_cached_and_failed_calls_are_spans_too(record: Store, watched: InMemorySpanExporter) -> None:
    for entry in (*OTHERS, replace(CALL, cache_hit=True, usage=Usage())):
        record.ledger.add_entry("scope", entry)
    joint, command, skip, failed, hit = watched.get_finished_spans()
    assert (joint.name, dict(joint.attributes or {})["vision_proxy.phash_similarity"]) == ("chat eye", 0.9)
    assert [span.name for span in (command, skip, hit)] == [
        "vision_proxy.command",
        "vision_proxy.skip",
        "vision_proxy.tool_call",
    ]
    assert not any(str(name).startswith("gen_ai.usage") for name in (hit.attributes or {}))
    assert (failed.status.status_code, dict(failed.attributes or {})["error.type"]) == (StatusCode.ERROR, "unavailable")


@requirement("telemetry.short")
def test_text_is_shortened_in_a_span_and_complete_in_the_record(record: Store, watched: InMemorySpanExporter) -> None:
    question = "what\n\x1b[31m is\x00 it? " * 100
    entry = LedgerEntry(
        "vision_proxy.tool_call",
        (CAT,),
        f"here/{'m' * 500}\n",
        about={"question": question, "l": [question], "answer": "secret"},
    )
    record.ledger.add_entry("scope", entry)
    (span,) = watched.get_finished_spans()
    texts = [span.name, *(each for each in (span.attributes or {}).values() if isinstance(each, str))]
    texts += [str(each) for value in (span.attributes or {}).values() if isinstance(value, tuple) for each in value]
    assert all(len(text) <= 200 and text.isprintable() for text in texts), texts
    assert any("what" in text for text in texts)
    assert not any("secret" in text for text in texts), "answers stay in the record"
    assert record.ledger.list_entries()[0].about["question"] == question


@requirement("telemetry.short")
@given(st.text())
def test_any_text_can_be_shortened(text: str) -> None:
    assert len(shorten(text)) <= 200
    assert shorten(text).isprintable()
    if text.isprintable() and len(text) <= 200:
        assert shorten(text) == text.strip()


@requirement("telemetry.spans")
def test_a_failing_tracer_does_not_fail_the_call(record: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def get_tracer(self, *_: object) -> None:
            raise RuntimeError("no")

    monkeypatch.setattr(trace, "get_tracer", Broken().get_tracer)
    record.ledger.add_entry("scope", CALL)
    assert len(record.ledger.list_entries()) == 1


@requirement("telemetry.spans")
def test_opentelemetry_is_not_imported_without_need() -> None:
    code = (
        "import sys; from pathlib import Path; from sightline.store import open_record\n"
        "from sightline.model.records import LedgerEntry\n"
        "open_record(Path('unused'), kind='memory').ledger.add_entry('', LedgerEntry('vision_proxy.command'))\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
