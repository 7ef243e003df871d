"""JSON as clients write it, for property tests: odd whitespace, escapes, numbers, repeated keys, long base64.

A `Text` keeps how each value is written, so that an edit of it says exactly which bytes must come out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from hypothesis import strategies as st

from sightline.model.scene import Edit, Insert, Json, JsonPath, Rebuild, Remove, Replace
from sightline.wire.json_document import STRIDE

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"


def base64_like(length: int, start: int = 0) -> str:
    """Return text of base64 letters; another start gives another text."""
    return (ALPHABET * (length // len(ALPHABET) + 2))[start % len(ALPHABET) :][:length]


@dataclass(frozen=True)
class Leaf:
    raw: str


@dataclass(frozen=True)
class Item:
    """A value with the text around it; `key` is empty in a list."""

    value: Text
    before: str = ""
    after: str = ""
    key: str = ""  # as it is written, with its colon


@dataclass(frozen=True)
class Box:
    brackets: str  # "{}" or "[]"
    items: tuple[Item, ...] = ()
    blank: str = ""  # inside an empty one


Text = Leaf | Box


def written(text: Text) -> str:
    match text:
        case Leaf(raw):
            return raw
        case Box(brackets, items, blank):
            inner = ",".join(f"{i.before}{i.key}{written(i.value)}{i.after}" for i in items) if items else blank
            return f"{brackets[0]}{inner}{brackets[1]}"


def places(text: Text, path: JsonPath = ()) -> Iterator[tuple[JsonPath, Text]]:
    """Yield every value that a parser sees, with its place: the last one of a repeated key."""
    if isinstance(text, Leaf):
        return
    for step, item in _steps(text).items():
        yield (*path, step), item.value
        yield from places(item.value, (*path, step))


def _steps(box: Box) -> dict[str | int, Item]:
    if box.brackets == "[]":
        return dict(enumerate(box.items))
    return {json.loads(item.key.rpartition(":")[0]): item for item in box.items}


def edited(text: Text, edits: Sequence[Edit]) -> Text:
    """Return the text with the edits and no other difference."""
    for place, group in groupby(sorted(edits, key=_inner_first), lambda edit: edit.place):
        together = list(group)
        put_in = [json.dumps(e.value) for e in together if isinstance(e, Insert)]
        instead = [json.dumps(e.value) for e in together if isinstance(e, Replace)]
        instead += [_rebuilt(text, e) for e in together if isinstance(e, Rebuild)]
        gone = any(isinstance(e, Remove) for e in together)
        text = _without(text, place) if gone else _changed(text, place, put_in, instead)
    return text


def _without(text: Text, place: JsonPath) -> Text:
    """Remove a member: the first one with the blanks after it, any other with those before it."""
    assert isinstance(text, Box)
    step, *rest = place
    item = _steps(text)[step]
    number = next(n for n, each in enumerate(text.items) if each is item)
    others = [*text.items]
    if rest:
        others[number] = replace(item, value=_without(item.value, tuple(rest)))
        return replace(text, items=tuple(others))
    del others[number]
    if number == 0:
        others[0] = replace(others[0], before=item.before)
    else:
        others[number - 1] = replace(others[number - 1], after=item.after)
    return replace(text, items=tuple(others))


def _rebuilt(text: Text, edit: Rebuild) -> str:
    for step in edit.place:
        assert isinstance(text, Box)
        text = _steps(text)[step].value
    assert isinstance(text, Box)
    kept = [written(item.value) for item in text.items]
    return f"[{','.join(kept[e] if isinstance(e, int) else json.dumps(e) for e in edit.elements)}]"


def _inner_first(edit: Edit) -> tuple[int, bool, list[tuple[bool, str | int]]]:
    """Return the text of an object, with what is inserted after its last member."""
    at_end = isinstance(edit, Insert | Remove) and isinstance(edit.place[-1], str)
    return -len(edit.place), at_end, [(isinstance(step, str), step) for step in edit.place]


def _changed(text: Text, place: JsonPath, put_in: list[str], instead: list[str]) -> Text:
    assert isinstance(text, Box)
    step, *rest = place
    steps = _steps(text)
    if step not in steps:
        assert not rest
        assert not instead
        return _appended(text, put_in if text.brackets == "[]" else [f"{json.dumps(step)}:{each}" for each in put_in])
    item = steps[step]
    value = _changed(item.value, tuple(rest), put_in, instead) if rest else _put(item.value, put_in, instead)
    return replace(text, items=tuple(replace(i, value=value) if i is item else i for i in text.items))


def _put(value: Text, put_in: list[str], instead: list[str]) -> Text:
    return Leaf(",".join([*put_in, *(instead or [written(value)])]))


def _appended(box: Box, put_in: list[str]) -> Box:
    if not box.items:
        return replace(box, blank=",".join(put_in) + box.blank)
    last = box.items[-1]
    return replace(box, items=(*box.items[:-1], replace(last, value=Leaf(",".join([written(last.value), *put_in])))))


blanks = st.sampled_from(["", "", "", " ", "\n  ", "\t", "\r\n "])
lengths = st.sampled_from(
    [0, 1, 63, 64, 65, STRIDE - 65, STRIDE - 1, STRIDE, STRIDE + 63, 2 * STRIDE - 1, 2 * STRIDE, 2 * STRIDE + 64]
)
payloads = st.builds(base64_like, lengths, st.integers(0, len(ALPHABET) - 1))
ESCAPES = r"\n \/ \\ \" \t \u0000 \u003d \u00e9 \u00E9 \ud83d\ude00 \ud800 \udfff \u2028".split()
letters = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\')
words = st.one_of(st.sampled_from(ESCAPES), st.text(letters, max_size=8))


def _quoted(parts: list[str]) -> str:
    return f'"{"".join(parts)}"'


strings = st.lists(words | payloads, max_size=4).map(_quoted)
numbers = st.sampled_from(
    ["0", "-0", "7", "1.50", "1E2", "-2.5e-3", "123456789012345678901234567890", "1.00000000000000000000001", "1e400"]
)
leaves = st.one_of(strings, numbers, st.sampled_from(["true", "false", "null"])).map(Leaf)
# Short keys repeat, and one of them is written in two ways.
keys = st.one_of(
    st.sampled_from(['"a"', '"b"', r'"\u0061"', '"messages"', '""']), st.lists(words, max_size=2).map(_quoted)
)


def _lists(inside: st.SearchStrategy[Text]) -> st.SearchStrategy[Text]:
    items = st.builds(Item, inside, blanks, blanks)
    return st.builds(Box, st.just("[]"), st.lists(items, max_size=4).map(tuple), blanks)


def _objects(inside: st.SearchStrategy[Text]) -> st.SearchStrategy[Box]:
    named = st.builds(lambda key, before, after: f"{key}{before}:{after}", keys, blanks, blanks)
    items = st.builds(Item, inside, blanks, blanks, named)
    return st.builds(Box, st.just("{}"), st.lists(items, max_size=4).map(tuple), blanks)


texts: st.SearchStrategy[Text] = st.recursive(leaves, lambda inside: _lists(inside) | _objects(inside), max_leaves=12)
documents: st.SearchStrategy[Box] = _objects(texts)


any_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=[])),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=4,
)
marks: st.SearchStrategy[Json] = st.integers(0, 999)  # written in one way only


@st.composite
def documents_and_edits(draw: st.DrawFn, values: st.SearchStrategy[Json]) -> tuple[Box, list[Edit]]:
    """Draw a document and edits of it, in any order; no edit is inside a value that another one replaces."""
    document = draw(documents)
    edits: list[Edit] = []
    replaced: list[JsonPath] = []
    for place, value in [((), document), *places(document)]:
        if any(place[: len(gone)] == gone for gone in replaced):
            continue
        if place and draw(st.integers(0, 3)) == 0:
            replaced.append(place)
            edits.append(Replace(place, draw(values)))
        elif isinstance(value, Box) and value.brackets == "[]" and draw(st.integers(0, 3)) == 0:
            replaced.append(place)
            made = st.lists(st.sampled_from([*range(len(value.items)), {}]), max_size=4)
            edits.append(Rebuild(place, tuple(draw(made))))
        elif isinstance(value, Box) and value.brackets == "{}":
            new = draw(st.sampled_from([None, "new", 'n"w']))
            edits += [Insert((*place, new), draw(values))] if new and new not in _steps(value) else []
            if not new and len(value.items) == len(_steps(value)) > 1:
                removed = (*place, draw(st.sampled_from([*_steps(value)])))
                replaced.append(removed)
                edits.append(Remove(removed))
        elif isinstance(value, Box) and value.brackets == "[]":
            indexes = draw(st.lists(st.integers(0, len(value.items)), max_size=3))
            edits += [Insert((*place, index), draw(values)) for index in indexes]
    return document, draw(st.permutations(edits))
