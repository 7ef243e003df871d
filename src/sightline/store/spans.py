"""Entries as spans, where whoever runs this has set up OpenTelemetry. Names are those of its conventions for models."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from sightline.model.records import Entry

_log = logging.getLogger(__name__)
_LONGEST = 200  # characters of a text: the record has it whole
_NANO = 1_000_000_000
Attribute = str | bool | int | float | list[str]


def emit(entry: Entry) -> None:
    """A span that ends now. Nobody who has set anything up has not imported the library: else nothing is loaded."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    try:
        _emit(trace, entry)
    except Exception:  # noqa: BLE001, whoever watches must not disturb
        _log.debug("an entry could not become a span", exc_info=True)


def _emit(trace: Any, entry: Entry) -> None:
    asked = bool(entry.seer) and not entry.cache_hit
    provider, _, model = entry.seer.partition("/")
    end = time.time_ns()
    span = trace.get_tracer("sightline").start_span(
        short(f"chat {model}") if asked else entry.kind,
        kind=trace.SpanKind.CLIENT if asked else trace.SpanKind.INTERNAL,
        start_time=end - (entry.latency_ms or 0) * _NANO // 1000,
    )
    if not span.is_recording():
        return
    span.set_attributes({**dict(_model(entry, provider, model)), **dict(_own(entry))})
    if entry.error:
        span.set_status(trace.StatusCode.ERROR)
    span.end(end)


def _model(entry: Entry, provider: str, model: str) -> Iterator[tuple[str, Attribute]]:
    if entry.seer:
        yield "gen_ai.operation.name", "chat"
        yield "gen_ai.provider.name", short(provider)
        yield "gen_ai.request.model", short(model)
    if entry.kind == "vision_proxy.tool_call":
        yield "gen_ai.tool.name", short(str(entry.about.get("tool") or "analyze_image"))
    counts = {
        "input_tokens": entry.usage.input,
        "output_tokens": entry.usage.output,
        "cache_read.input_tokens": entry.usage.cached,
    }
    yield from ((f"gen_ai.usage.{name}", count) for name, count in counts.items() if count is not None)
    if entry.error:
        yield "error.type", short(entry.error)


def _own(entry: Entry) -> Iterator[tuple[str, Attribute]]:
    yield "vision_proxy.entry", entry.kind
    yield "vision_proxy.images", [f"sha256:{sha256}" for sha256 in entry.images]
    yield "vision_proxy.cache_hit", entry.cache_hit
    if entry.cost_usd is not None:
        yield "vision_proxy.cost_usd", entry.cost_usd
    yield from ((f"vision_proxy.{short(name)}", value) for name, value in _told(entry.about))


def _told(about: Mapping[str, Any]) -> Iterator[tuple[str, Attribute]]:
    for name, value in about.items():
        match value:
            case bool() | int() | float():
                yield name, value
            case list():
                yield name, [short(str(each)) for each in value]
            case None:
                continue
            case _:
                yield name, short(str(value))


def short(text: str) -> str:
    """Free text for those who watch: one line, of a length that nobody can fill a log with."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * _LONGEST])
    return plain[:_LONGEST].strip()
