"""What this process has done, counted, in the text that Prometheus reads: no names of images, no words, no keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from sightline.model.receipt import Receipt

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_HELP: Mapping[str, str] = {
    "sightline_requests_total": "Requests answered, by the wire they came on, their upstream and the answer's status.",
    "sightline_sights_total": "Images found in requests, by what became of them.",
    "sightline_tokens_total": "Estimated tokens of images, as they came and as they went on.",
    "sightline_repairs_total": "Requests sent once more after the upstream refused an image.",
}


class Metrics:
    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._under_way = 0

    def begun(self) -> None:
        self._under_way += 1

    def ended(self, wire: str, upstream: str, status: int) -> None:
        self._under_way -= 1
        self._add("sightline_requests_total", wire=wire, upstream=upstream, status=str(status))

    def prepared(self, receipt: Receipt, *, again: bool) -> None:
        if again:
            self._add("sightline_repairs_total", upstream=receipt.upstream)
            return
        for line in receipt.sights:
            self._add("sightline_sights_total", fate=line.fate)
            self._add("sightline_tokens_total", line.before or 0, side="before")
            self._add("sightline_tokens_total", line.after or 0, side="after")

    def _add(self, name: str, count: int = 1, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += count

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, about in _HELP.items():
            yield f"# HELP {name} {about}"
            yield f"# TYPE {name} counter"
            yield from (f"{each}{{{_said(of)}}} {n}" for (each, of), n in sorted(self._counts.items()) if each == name)
        yield "# HELP sightline_requests_under_way Requests that are being answered."
        yield "# TYPE sightline_requests_under_way gauge"
        yield f"sightline_requests_under_way {self._under_way}"


def _said(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
