"""A JSON body as text: lift its base64 out, parse the skeleton that is left, splice edits into the original.

A body with images is nearly all base64. Lifting replaces each long base64 run with a placeholder (`TOKEN0;`, `TOKEN1;`
…), so that only the small skeleton is ever parsed. A run is found without looking at every byte: one place every few
kilobytes is probed, and from a hit the search jumps to the closing quote.

Splicing rewrites exactly the values that an edit names. Every other byte of the result is a byte of the original, in
its place: clients' fields are never lost, and prompt caches see the same prefix. Four ways give that result, from the
fastest to the most general:

1. `_find_append`: the edits append to a list of the body, as offering a tool does. Its end is found in the text.
2. `_edit_images`: the edits are at short values with a lifted run, as those of images are. Each is found around it.
3. `_rewrite`: the skeleton is written just as orjson writes it. Then the edited tree is dumped again.
4. `patch_text`: the values are located in the text and replaced there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from operator import itemgetter

import orjson

from sightline.model.image import BASE64_CHARACTERS, BASE64_RUN_TABLE
from sightline.model.refusal import Refusal
from sightline.model.scene import Edit, Insert, Json, JsonPath
from sightline.model.value import value_class
from sightline.wire.json_edits import graft, patch_text
from sightline.wire.json_image_edits import Change, ImageEditFinder, write_value
from sightline.wire.json_tree import Buffer, count_values, measure_json

STRIDE = 4096  # bytes between two probes: a run of twice this length is always found
_PROBE_LENGTH = 64  # base64 characters in a row that make a run likely
_SEARCH_STEP = 256 * 1024
_BACKSLASH = 0x5C
_MAX_ESCAPE = 5  # characters after a backslash at most, as in \u00e9
_match_run = re.compile(rb"[%b]{%d}" % (re.escape(BASE64_CHARACTERS), _PROBE_LENGTH)).match
_match_backslashes = re.compile(rb"\\*").match
_find_huge_number = re.compile(rb"[:,\[\s]-?[0-9]{19}").search
_AS_DIGITS = bytes(0x30 if 0x30 <= letter <= 0x39 else 0x20 for letter in range(256))
_SAMPLE_STEP = 6  # of 19 digits in a row, every sixth character still gives three in a row
_MAX_SLOW_VALUES = 150_000  # of a text that the slow standard library parses
# Finding an edit around its run takes as long as writing this much text again; for a few edits, neither takes long.
_TEXT_PER_EDIT, _FEW_EDITS = 2048, 8
_FEW_BYTES = 2048  # of edited values: to write them takes a microsecond, however short the rest is
_get_span = itemgetter(0, 1)
_FEW_DIGITS, _MANY_DIGITS = b"0" * 3, b"0" * 19

# The token of documents that nothing was lifted out of. No JSON text contains its zeros.
_NO_TOKEN = "\0nothing was lifted\0"  # noqa: S105

FindKnownRun = Callable[[bytes | bytearray, int], bytes | None]
"""Returns the run that begins at an index of a body, if it was seen before and a quote ends it there.

Its bytes are compared with those of the body, and so are read once. Else they are also searched for the quote.
"""


@value_class
class JsonDocument:
    body: bytes | bytearray
    tree: Json  # the parsed skeleton, with a placeholder for each lifted run
    skeleton: bytes | bytearray = field(repr=False)
    spans: tuple[Buffer, ...] = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)  # of the spans in the body
    token: str

    def expand_text(self, leaf: str) -> Buffer:
        """Return the text of a string of the tree, with the runs that were lifted out of it."""
        if not self.spans:
            return leaf.encode("utf-8", "surrogatepass")
        if leaf.startswith(self.token) and (alone := leaf[len(self.token) : -1]).isdecimal():
            return self.spans[int(alone)]  # the whole string was lifted out
        if self.token not in leaf:
            return leaf.encode("utf-8", "surrogatepass")
        parts = self._expand(leaf.encode("utf-8", "surrogatepass"))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def splice(self, edits: Sequence[Edit]) -> list[Buffer]:
        """Return the body after `edits`, as a list of buffers; without an edit, the body itself."""
        if not edits:
            return [self.body]
        if not self.spans and (found := self._find_append(edits)):
            at, more = found
            body = memoryview(self.body)
            return [body[:at], more, body[at:]]
        may_be_local = len(edits) <= _FEW_EDITS or len(edits) <= len(self.skeleton) // _TEXT_PER_EDIT
        if may_be_local and (edited := self._edit_images(edits)) is not None:
            return edited
        return self._expand(self._rewrite(edits) or patch_text(self.skeleton.decode("utf-8"), edits).encode())

    def _find_append(self, edits: Sequence[Edit]) -> tuple[int, bytes] | None:
        """Return where to insert, and what, if all edits append to the same list of the body's object; else None."""
        place = edits[0].place
        values = [edit.value for edit in edits if type(edit) is Insert and edit.place == place]
        if len(place) != 2 or len(values) < len(edits):
            return None
        try:
            end = _find_list_end(self.tree, self.skeleton, place)
            return None if end is None else (end, b"".join([b"," + write_value(value) for value in values]))
        except TypeError:  # orjson can't write a value
            return None

    def _edit_images(self, edits: Sequence[Edit]) -> list[Buffer] | None:
        """Return the body after `edits`, if each is at a short value with one lifted run; else None.

        The value is around its run. If it is written there as orjson writes it, nothing else is read or written: with
        100 KB of text beside the value of an image, this takes a fifteenth of the time of `_rewrite` and `_expand`.
        They take less time if the values themselves are much of the text.
        """
        if not self.spans:
            return None
        token = self.token.encode()
        budget = max(_FEW_BYTES, len(self.skeleton) // 4)
        finder = ImageEditFinder(self.body, self.tree, self.spans, self.starts, token, budget)
        found: list[Change] = []
        try:
            for edit in edits:
                change = finder.find_change(edit)
                if change is None or finder.bytes_left < 0:
                    return None
                found.append(change)
        except TypeError:  # nested too deep for orjson, or a lone surrogate
            return None
        if len(found) > 1:
            found.sort(key=_get_span)  # an insertion comes before the value that is at the same place
        pieces: list[Buffer] = []
        body, at = memoryview(self.body), 0
        for start, end, new in found:
            if start > at:
                pieces.append(body[at:start])
            elif start < at:  # inside a value that another edit replaces
                return None
            pieces += self._expand(new) if token in new else (new,)
            at = end
        return [*pieces, body[at:]] if at < len(body) else pieces

    def _rewrite(self, edits: Sequence[Edit]) -> bytes | None:
        """Return the skeleton after `edits`, if it is written just as orjson writes, as by most clients; else None.

        Then everything that no edit touches is written exactly as it was, and no value has to be located.
        """
        try:
            return orjson.dumps(graft(self.tree, edits)) if orjson.dumps(self.tree) == self.skeleton else None
        except TypeError:  # nested too deep for it, or a lone surrogate in an edit
            return None

    def _expand(self, text: bytes) -> list[Buffer]:
        first, *others = text.split(self.token.encode())
        parts: list[Buffer] = [first] if first else []
        for other in others:
            number, _, rest = other.partition(b";")
            parts += [self.spans[int(number)], rest] if rest else [self.spans[int(number)]]
        return parts


def _find_list_end(tree: Json, skeleton: bytes | bytearray, place: JsonPath) -> int | None:
    """Return where the list at `place` ends in the skeleton, if an edit appends to it and the end is easily found.

    It is if the skeleton begins with everything up to the end of the list, or ends with everything from its key
    on, just as orjson writes it. Such a beginning can be read in one way only, whatever follows. Such an end closes the
    outermost object, and isn't within a string: the key's first quote would end that, and letters can't follow. The
    part without another list, or with fewer elements, is written and compared; the other one, most of the body, is
    neither read nor copied.
    """
    key, index = place
    if not isinstance(tree, dict) or not isinstance(key, str) or not key.isidentifier():
        return None
    elements = tree.get(key)
    if not isinstance(elements, list) or not elements or index != len(elements):
        return None
    items, kinds, at = [*tree.items()], [*map(type, tree.values())], [*tree].index(key)
    before, after = items[:at], items[at + 1 :]
    has_lists_after = list in kinds[at + 1 :]
    if has_lists_after and (list not in kinds[:at] or _count_elements(before) < _count_elements(after)):
        beginning = orjson.dumps(dict(items[: at + 1]))[:-1]
        # If a key comes twice, its last value counts.
        is_last = skeleton.find(b'"%b"' % key.encode(), len(beginning)) < 0
        return len(beginning) - 1 if is_last and skeleton.startswith(beginning) else None
    rest = b"," + orjson.dumps(dict(after))[1:] if after else b"}"
    written = b'"%b":%b%b' % (key.encode(), orjson.dumps(elements), rest)
    is_same = skeleton.endswith(written) and skeleton[-len(written) - 1] in b"{,"
    return len(skeleton) - len(rest) - 1 if is_same else None


def _count_elements(items: Iterable[tuple[str, Json]]) -> int:
    return sum([len(value) for _, value in items if isinstance(value, (list, dict))])


def lift(body: bytes | bytearray, token: str) -> JsonDocument | None:
    """Read a body; return None if it isn't JSON that can be read and written back, or is too large to be parsed.

    `token` begins every placeholder. Neither the body nor the text of an edit may contain it, so callers draw it at
    random.
    """
    lifted = lift_runs(body, token)
    return None if isinstance(lifted.measure(), Refusal) else lifted.parse()


def parse_short(body: bytes | bytearray) -> JsonDocument | None:
    """Return the document of a body of up to `STRIDE` bytes, which has no long run; None if it isn't JSON."""
    tree = parse_object(body)
    return None if tree is None else JsonDocument(body, tree, body, (), (), _NO_TOKEN)


@value_class
class LiftedBody:
    """A body whose base64 was lifted out, and that hasn't been parsed yet."""

    body: bytes | bytearray
    skeleton: bytes | bytearray = field(repr=False)
    spans: tuple[Buffer, ...] = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)  # of the spans in the body
    token: str

    def measure(self) -> int | Refusal:
        """Return about how many values have to be parsed, or why these are too many."""
        return measure_json(self.skeleton)

    def parse(self) -> JsonDocument | None:
        """Return the document, or None if it isn't JSON that can be read and written back."""
        tree = parse_object(self.skeleton)
        if tree is None or self.skeleton.count(self.token.encode()) != len(self.spans):
            return None
        return JsonDocument(self.body, tree, self.skeleton, self.spans, self.starts, self.token)


def lift_runs(body: bytes | bytearray, token: str, find_known: FindKnownRun | None = None) -> LiftedBody:
    """Lift the long base64 runs out of a body, without parsing it."""
    return _replace_runs(body, token, _find_runs(body, find_known))


def lift_few_runs(
    body: bytes | bytearray, token: str, max_runs: int, find_known: FindKnownRun | None = None
) -> LiftedBody | None:
    """Do the same, or return None if there are more than `max_runs` of them."""
    if len(body) <= STRIDE:  # too short for a long run
        return LiftedBody(body, body, (), (), token)
    found = list(islice(_find_runs(body, find_known), max_runs + 1))
    return _replace_runs(body, token, found) if len(found) <= max_runs else None


def _replace_runs(body: bytes | bytearray, token: str, runs: Iterable[tuple[int, int, bytes | None]]) -> LiftedBody:
    view = memoryview(body)
    pieces: list[Buffer] = []
    spans: list[Buffer] = []
    starts: list[int] = []
    at = 0
    for start, end, known in runs:
        pieces += [view[at:start], f"{token}{len(spans)};".encode()]
        spans.append(view[start:end] if known is None else known)
        starts.append(start)
        at = end
    skeleton = b"".join([*pieces, view[at:]]) if spans else body
    return LiftedBody(body, skeleton, tuple(spans), tuple(starts), token)


def _find_runs(
    body: bytes | bytearray, find_known: FindKnownRun | None = None
) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield the long base64 runs, each up to a quote (or to the backslashes that escape it), and known ones."""
    at = STRIDE
    floor = 0  # no run begins before the end of the last one
    while at < len(body):
        if not _match_run(body, at):
            at += STRIDE
            continue
        known = None if find_known is None else _match_known(body, max(floor, at - STRIDE), at, find_known)
        if known is not None:
            yield known
            floor = known[1]
            at = max(floor + 1, at + STRIDE)
            continue
        end = _find_stop(body, at)
        quote = body.find(b'"', end)
        if quote < 0:
            return
        start = max(floor, at - STRIDE)
        start = max(start, body.rfind(b'"', start, at) + 1)
        start += body[start:at].translate(BASE64_RUN_TABLE).rfind(b" ") + 1
        if body[start - 1] == _BACKSLASH:
            start += _MAX_ESCAPE
        # A run with an escape in it isn't the text that it represents: such a string is left to the parser.
        # Backslashes just before the quote escape the quote and are fine.
        if _match_run(body, end - _PROBE_LENGTH) and (end == quote or _has_only_escapes(body, end, quote)):
            yield start, end, None
            floor = end
        at = max(quote + 1, at + STRIDE)


def _match_known(
    body: bytes | bytearray, floor: int, at: int, find_known: FindKnownRun
) -> tuple[int, int, bytes] | None:
    """Return the known run around `at` that begins just after a quote or a comma."""
    start = max(body.rfind(b'"', floor, at), body.rfind(b",", floor, at)) + 1
    known = find_known(body, start) if start else None
    if known is None or not _match_run(body, start + len(known) - _PROBE_LENGTH):
        return None
    return start, start + len(known), known


def _has_only_escapes(body: bytes | bytearray, at: int, quote: int) -> bool:
    found = _match_backslashes(body, at)
    return found is not None and found.end() == quote


def _find_stop(body: bytes | bytearray, at: int) -> int:
    """Return where the next quote or backslash is; the end if there is none.

    Both searches run over a step that fits into the processor's cache, so that the second one is nearly free.
    """
    while at < len(body):
        quote = body.find(b'"', at, at + _SEARCH_STEP)
        backslash = body.find(b"\\", at, at + _SEARCH_STEP if quote < 0 else quote)
        if backslash >= 0 or quote >= 0:
            return backslash if backslash >= 0 else quote
        at += _SEARCH_STEP
    return len(body)


def parse_object(skeleton: bytes | bytearray) -> Json:
    """Return the object that a JSON text is, or None. Check with `measure_json` first whether it is too large.

    The standard library reads what orjson doesn't (lone surrogates, NaN), and keeps integers above 64 bits, of which
    orjson makes floats. It takes up to ten times as long, in one call, so it doesn't get texts with the most values.
    """
    parsed: Json = None
    try:
        parsed = orjson.loads(skeleton)
        if not _has_huge_number(skeleton):
            return _object_or_none(parsed)
    except orjson.JSONDecodeError:
        pass
    if count_values(skeleton, _MAX_SLOW_VALUES) > _MAX_SLOW_VALUES:
        return None
    try:
        return _object_or_none(json.loads(skeleton.decode("utf-8")))
    except (ValueError, RecursionError):
        return _object_or_none(parsed)


def _has_huge_number(skeleton: bytes | bytearray) -> bool:
    """Return whether there may be an integer above 64 bits. The fast checks come first and are nearly always enough."""
    return (
        skeleton[::_SAMPLE_STEP].translate(_AS_DIGITS).find(_FEW_DIGITS) >= 0
        and _MANY_DIGITS in skeleton.translate(_AS_DIGITS)
        and bool(_find_huge_number(skeleton))
    )


def _object_or_none(value: Json) -> Json:
    return value if isinstance(value, dict) else None
