"""Find edits of images in the text of a body: each is at a value with a lifted run, and so is found around its run.

Such a value is written as orjson writes it, and compared with the body before and behind the run. Nothing else of the
body is read. That is fast only if the values are short, so a finder has a budget of bytes that it may write.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sightline.model.scene import Edit, Insert, Json, Remove, Replace
from sightline.wire.json_edits import WrittenObject
from sightline.wire.json_tree import Buffer, get_known

Change = tuple[int, int, bytes]
"""The start and end of what an edit replaces in a body, and the text that takes its place."""


class ImageEditFinder:
    """Finds edits around the lifted runs `spans`, which are at `starts` in a body, until it has written `max_bytes`."""

    __slots__ = ("_body", "_found", "_spans", "_starts", "_token", "_tree", "bytes_left")

    def __init__(
        self,
        body: bytes | bytearray,
        tree: Json,
        spans: Sequence[Buffer],
        starts: Sequence[int],
        token: bytes,
        max_bytes: int,
    ) -> None:
        self._body = body
        self._tree = tree
        self._spans = spans
        self._starts = starts
        self._token = token
        self._found: dict[int, tuple[int, int] | None] = {}  # by the identity of values, which stay in the tree
        self.bytes_left = max_bytes

    def find_change(self, edit: Edit) -> Change | None:
        """Return the change that an edit makes; None if there is no run to find it by, or too much would be written."""
        if isinstance(edit, Insert):
            return self._find_insertion(edit) if edit.place else None
        if isinstance(edit, Remove):
            return None
        value = get_known(self._tree, edit.place)
        span = self._find_span(value)
        if span is None:
            return None
        if isinstance(edit, Replace):
            return *span, write_value(edit.value)
        assert isinstance(value, list)
        written = orjson.dumps([value[each] if isinstance(each, int) else each for each in edit.elements])
        self.bytes_left -= len(written)
        return *span, written

    def _find_insertion(self, edit: Insert) -> Change | None:
        """Return the change that inserts into a list, before an element with a run or behind one."""
        elements, index = get_known(self._tree, edit.place[:-1]), edit.place[-1]
        if not isinstance(elements, list) or not isinstance(index, int):
            return None
        is_last = index == len(elements)
        if not is_last and (span := self._find_span(elements[index])):
            return span[0], span[0], write_value(edit.value) + b","
        span = self._find_span(elements[index - 1]) if index else None
        if span is None or not (is_last or self._body[span[1] : span[1] + 2] == b",{"):  # no blank between the two
            return None
        return span[1], span[1], b"," + write_value(edit.value)

    def _find_span(self, value: Json) -> tuple[int, int] | None:
        """Return where a value of the tree is in the body, if it has one run; each value is searched for only once."""
        key = id(value)
        if key in self._found:
            return self._found[key]
        span = self._found[key] = self._search_span(value) if self.bytes_left > 0 else None
        return span

    def _search_span(self, value: Json) -> tuple[int, int] | None:
        written = orjson.dumps(value)
        self.bytes_left -= len(written)
        before, _, rest = written.partition(self._token)
        number, _, after = rest.partition(b";")
        if not number or self._token in after or self.bytes_left < 0:
            return None
        run = int(number)
        start, run_end = self._starts[run] - len(before), self._starts[run] + len(self._spans[run])
        is_same = start >= 0 and self._body.startswith(before, start) and self._body.startswith(after, run_end)
        return (start, run_end + len(after)) if is_same else None


def write_value(value: Json) -> bytes:
    """Return the text of a value, as orjson writes it."""
    return value.text if isinstance(value, WrittenObject) else orjson.dumps(value)
