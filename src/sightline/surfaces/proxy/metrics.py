"""What was done, counted, in the text that Prometheus reads: no names of images, no words, no keys.

Of several processes on one port any may be asked, so each tells the counts of all: whoever reads them must not see
them fall.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping

import orjson

from sightline.model.receipt import Receipt

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_HELP: Mapping[str, str] = {
    "sightline_requests_total": "Requests answered, by the wire they came on, their upstream and the answer's status.",
    "sightline_sights_total": "Images found in requests, by what became of them.",
    "sightline_tokens_total": "Estimated tokens of images, as they came and as they went on.",
    "sightline_repairs_total": "Requests sent once more after the upstream refused an image.",
}


Counts = Counter[tuple[str, tuple[tuple[str, str], ...]]]


class Together:
    """The counts of several processes in memory that they share, made before they part: each writes its own place."""

    _ROOM = 256 * 1024
    _HEAD = struct.Struct("<II")  # length and checksum: a reader may come while somebody writes
    _TRIES = 100

    def __init__(self, number: int) -> None:
        self._memory = mmap.mmap(-1, number * self._ROOM)
        self._number = number

    def write(self, who: int, counts: Counts, under_way: int) -> None:
        data = orjson.dumps((under_way, [(name, labels, count) for (name, labels), count in counts.items()]))
        if len(data) + self._HEAD.size <= self._ROOM:
            at = who * self._ROOM
            self._memory[at : at + self._HEAD.size] = self._HEAD.pack(len(data), zlib.crc32(data))
            self._memory[at + self._HEAD.size : at + self._HEAD.size + len(data)] = data

    def read(self, who: int) -> tuple[Counts, int]:
        """What one has done, and how many requests it is at."""
        at = who * self._ROOM
        for _ in range(self._TRIES):
            length, checksum = self._HEAD.unpack_from(self._memory, at)
            data = self._memory[at + self._HEAD.size : at + self._HEAD.size + length]
            if length and zlib.crc32(data) == checksum:
                under_way, rows = orjson.loads(data)
                pairs = ((name, tuple((key, value) for key, value in labels), count) for name, labels, count in rows)
                return Counter({(name, labels): count for name, labels, count in pairs}), under_way
        return Counter(), 0

    def others(self, who: int) -> Iterator[tuple[Counts, int]]:
        return (self.read(each) for each in range(self._number) if each != who)


class Metrics:
    def __init__(self, together: Together | None = None, who: int = 0) -> None:
        """`who` of those who count together this is; one that takes the place of another goes on from there."""
        self._together = together
        self._who = who
        self._counts = together.read(who)[0] if together else Counts()
        self._under_way = 0
        self._share()

    def begun(self) -> None:
        self._under_way += 1
        self._share()

    def ended(self, wire: str, upstream: str, status: int) -> None:
        self._under_way -= 1
        self._add("sightline_requests_total", wire=wire, upstream=upstream, status=str(status))
        self._share()

    def _share(self) -> None:
        if self._together is not None:
            self._together.write(self._who, self._counts, self._under_way)

    def prepared(self, receipt: Receipt, *, again: bool) -> None:
        if again:
            self._add("sightline_repairs_total", upstream=receipt.upstream)
            return
        if not receipt.sights:
            return
        fates: dict[str, int] = {}
        before = after = 0
        for line in receipt.sights:
            fates[line.fate] = fates.get(line.fate, 0) + 1
            before += line.before or 0
            after += line.after or 0
        for fate, count in fates.items():
            self._add("sightline_sights_total", count, fate=fate)
        self._add("sightline_tokens_total", before, side="before")
        self._add("sightline_tokens_total", after, side="after")

    def _add(self, name: str, count: int = 1, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += count

    def text(self) -> str:
        counts, under_way = Counts(self._counts), self._under_way
        for others, theirs in self._together.others(self._who) if self._together else ():
            counts.update(others)
            under_way += theirs
        return "\n".join(_lines(counts, under_way)) + "\n"


def _lines(counts: Counts, under_way: int) -> Iterator[str]:
    for name, about in _HELP.items():
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} counter"
        yield from (f"{each}{{{_said(of)}}} {n}" for (each, of), n in sorted(counts.items()) if each == name)
    yield "# HELP sightline_requests_under_way Requests that are being answered."
    yield "# TYPE sightline_requests_under_way gauge"
    yield f"sightline_requests_under_way {under_way}"


def _said(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
