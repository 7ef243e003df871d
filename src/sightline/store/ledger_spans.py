"""Entries of the ledger as spans of OpenTelemetry, with the names of its conventions for models."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from sightline.model.records import ANSWER_DETAIL, LedgerEntry

_log = logging.getLogger(__name__)
_MAX_SPAN_TEXT = 200  # characters; the record has the whole text
_NANOSECONDS = 1_000_000_000
SpanAttribute = str | bool | int | float | list[str]


def emit_span(entry: LedgerEntry) -> None:
    """Emit a span that ends now, if the program has imported OpenTelemetry. It is never imported here."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    try:
        _build_span(trace, entry)
    except Exception:  # noqa: BLE001, telemetry must not fail a request
        _log.debug("a span could not be emitted", exc_info=True)


def _build_span(trace: Any, entry: LedgerEntry) -> None:
    was_asked = bool(entry.seer) and not entry.cache_hit
    provider, _, model = entry.seer.partition("/")
    end = time.time_ns()
    span = trace.get_tracer("sightline").start_span(
        shorten(f"chat {model}") if was_asked else entry.kind,
        kind=trace.SpanKind.CLIENT if was_asked else trace.SpanKind.INTERNAL,
        start_time=end - (entry.latency_ms or 0) * _NANOSECONDS // 1000,
    )
    if not span.is_recording():
        return
    span.set_attributes({**dict(_list_model_attributes(entry, provider, model)), **dict(_list_own_attributes(entry))})
    if entry.error:
        span.set_status(trace.StatusCode.ERROR)
    span.end(end)


def _list_model_attributes(entry: LedgerEntry, provider: str, model: str) -> Iterator[tuple[str, SpanAttribute]]:
    if entry.seer:
        yield "gen_ai.operation.name", "chat"
        yield "gen_ai.provider.name", shorten(provider)
        yield "gen_ai.request.model", shorten(model)
    if entry.kind == "vision_proxy.tool_call":
        yield "gen_ai.tool.name", shorten(str(entry.about.get("tool") or "analyze_image"))
    counts = {
        "input_tokens": entry.usage.input,
        "output_tokens": entry.usage.output,
        "cache_read.input_tokens": entry.usage.cached,
    }
    yield from ((f"gen_ai.usage.{name}", count) for name, count in counts.items() if count is not None)
    if entry.error:
        yield "error.type", shorten(entry.error)


def _list_own_attributes(entry: LedgerEntry) -> Iterator[tuple[str, SpanAttribute]]:
    yield "vision_proxy.entry", entry.kind
    yield "vision_proxy.images", [f"sha256:{sha256}" for sha256 in entry.images]
    yield "vision_proxy.cache_hit", entry.cache_hit
    if entry.cost_usd is not None:
        yield "vision_proxy.cost_usd", entry.cost_usd
    yield from ((f"vision_proxy.{shorten(name)}", value) for name, value in _flatten(entry.about))


def _flatten(about: Mapping[str, Any]) -> Iterator[tuple[str, SpanAttribute]]:
    for name, value in about.items():
        if name == ANSWER_DETAIL:  # only for the inspector of this record
            continue
        match value:
            case bool() | int() | float():
                yield name, value
            case list():
                yield name, [shorten(str(each)) for each in value]
            case None:
                continue
            case _:
                yield name, shorten(str(value))


def shorten(text: str) -> str:
    """Return text as one line of limited length."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 2 * _MAX_SPAN_TEXT])
    return plain[:_MAX_SPAN_TEXT].strip()
