"""Lifting base64 out of a body and splicing edits into it: nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from sightline.model.scene import Edit, Insert, Json, Rebuild, Remove, Replace
from sightline.wire import json_document
from sightline.wire.json_document import STRIDE, JsonDocument, lift, lift_few_runs, lift_runs, parse_short
from sightline.wire.json_edits import graft, patch_text
from tests.requirements import requirement
from tests.wire.json_texts import (
    Box,
    any_values,
    base64_like,
    documents,
    documents_and_edits,
    edited,
    marks,
    written,
)

TOKEN = "sightline-0123456789abcdef-"


def lifted(body: str | bytes) -> JsonDocument:
    document = lift(body.encode() if isinstance(body, str) else body, TOKEN)
    assert document is not None
    return document


def splice(document: JsonDocument, edits: list[Edit]) -> bytes:
    return b"".join(document.splice(edits))


def strings(tree: Json) -> Iterator[str]:
    """Yield every string of a tree, keys too, in the order of writing."""
    match tree:
        case str():
            yield tree
        case list():
            for item in tree:
                yield from strings(item)
        case dict():
            for key, value in tree.items():
                yield key
                yield from strings(value)


@requirement("law.1", "body.splice")
@given(documents_and_edits(marks))
def test_an_edit_changes_the_bytes_of_its_own_value_and_no_other(case: tuple[Box, list[Edit]]) -> None:
    text, edits = case
    body = written(text).encode()
    assert splice(lifted(body), edits).decode() == written(edited(text, edits))


@given(documents_and_edits(marks), st.data())
def test_an_edit_inside_a_replaced_value_is_lost(case: tuple[Box, list[Edit]], data: st.DataObject) -> None:
    text, edits = case
    body = written(text)
    above = {edit.place[:end] for edit in edits for end in range(1, len(edit.place))} - {edit.place for edit in edits}
    if not above:
        reject()
    place = data.draw(st.sampled_from(sorted(above, key=str)))
    mixed = [*edits]
    mixed.insert(data.draw(st.integers(0, len(edits))), Replace(place, 7))
    left = [edit for edit in mixed if edit.place == place or edit.place[: len(place)] != place]
    assert patch_text(body, mixed) == patch_text(body, left)
    tree: Json = json.loads(body)
    assert graft(tree, mixed) == graft(tree, left) == json.loads(patch_text(body, mixed))


def test_the_first_of_two_replacements_counts() -> None:
    both: list[Edit] = [Insert(("a", 0), 0), Replace(("a", 0), 1), Replace(("a", 0), 2)]
    assert patch_text('{"a": [7]}', both) == '{"a": [0,1]}'
    assert graft({"a": [7]}, both) == {"a": [0, 1]}


@requirement("body.splice")
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=6), st.data())
def test_a_removal_removes_every_occurrence_of_its_key(pairs: list[tuple[str, int]], data: st.DataObject) -> None:
    blank = data.draw(st.sampled_from(["", " ", "\n  "]))
    body = f"{{{blank}" + f",{blank}".join(f'"{key}"{blank}:{value}' for key, value in pairs) + f"{blank}}}"
    gone = data.draw(st.sets(st.sampled_from(sorted(dict(pairs)))))
    edits: list[Edit] = [Remove((key,)) for key in sorted(gone)]
    kept = [[key, value] for key, value in pairs if key not in gone]
    after = patch_text(body, edits)
    assert json.loads(after, object_pairs_hook=lambda found: [list(each) for each in found]) == kept
    assert graft(dict(pairs), edits) == {key: value for key, value in pairs if key not in gone}


@given(documents_and_edits(any_values))
def test_any_value_is_written_so_that_it_is_read_back(case: tuple[Box, list[Edit]]) -> None:
    text, edits = case
    assert json.loads(splice(lifted(written(text)), edits)) == json.loads(written(edited(text, edits)))


@requirement("law.1", "body.splice")
@given(documents_and_edits(any_values))
def test_a_body_without_blanks_is_spliced_as_any_other(case: tuple[Box, list[Edit]]) -> None:
    text, edits = case
    try:
        body = orjson.dumps(orjson.loads(written(text)))
    except orjson.JSONDecodeError:  # a lone surrogate: it is only ever written with an escape
        reject()
    assert splice(lifted(body), edits) == patch_text(body.decode(), edits).encode()


@requirement("law.1", "body.same_object")
@given(documents)
def test_a_body_without_an_edit_is_the_very_same_object(text: Box) -> None:
    body = written(text).encode()
    (same,) = lifted(body).splice([])
    assert same is body


@given(documents)
def test_every_string_can_be_expanded(text: Box) -> None:
    body = written(text)
    document = lifted(body)
    found = [bytes(document.expand_text(each)) for each in strings(document.tree)]
    assert found == [each.encode("utf-8", "surrogatepass") for each in strings(json.loads(body))]


AROUND = [*range(STRIDE - 66, STRIDE + 67), *range(2 * STRIDE - 66, 2 * STRIDE + 67), 5 * STRIDE - 1, 40_000]


@requirement("body.lift.whole")
@pytest.mark.parametrize("before", [0, 1, STRIDE - 20, STRIDE - 12, STRIDE, 3 * STRIDE + 5])
def test_base64_of_every_length_around_the_stride_comes_back_whole(before: int) -> None:
    for length in AROUND:
        payload = base64_like(length)
        body = json.dumps({"a": "x " * (before // 2), "b": payload, "c": [payload[::-1], "é"]})
        document = lifted(body)
        tree = document.tree
        assert isinstance(tree, dict)
        assert isinstance(tree["b"], str)
        assert bytes(document.expand_text(tree["b"])) == payload.encode()
        assert splice(document, [Replace(("c", 1), "e")]).decode() == body.replace(r"\u00e9", "e")


@requirement("body.lift")
@pytest.mark.parametrize("length", [2 * STRIDE, 2 * STRIDE + 1, 3 * STRIDE, 100_000])
def test_base64_of_twice_the_stride_never_reaches_the_parser(length: int) -> None:
    for shift in range(0, STRIDE, 61):
        document = lifted(json.dumps({"a": " " * shift, "b": base64_like(length)}))
        assert len(document.skeleton) < STRIDE + 200
        assert [len(span) for span in document.spans] == [length]


def test_base64_that_a_library_stringified_is_lifted_out_of_the_string() -> None:
    payload = base64_like(30_000)
    inner = json.dumps([{"type": "text", "text": "read"}, {"type": "media", "data": payload, "mediaType": "image/png"}])
    twice = json.dumps({"deeper": inner})
    for content in (inner, twice, f"{payload}\n{payload}", f'"{payload}"', f"\\{payload}\\", f"data:,{payload}"):
        body = json.dumps({"messages": [{"role": "tool", "content": content}, {"role": "user", "content": "é"}]})
        document = lifted(body)
        found = list(strings(document.tree))
        assert bytes(document.expand_text(found[4])) == content.encode()
        assert splice(document, [Replace(("messages", 1, "content"), "e")]).decode() == body.replace(r"\u00e9", "e")


@requirement("body.lift.whole")
@pytest.mark.parametrize("escape", [r"\n", r"\/", r"\u0041", r"\ud83d\ude00", r"\\", r"\"", r"\u003d"])
@pytest.mark.parametrize("place", ["before", "inside", "after"])
def test_an_escape_beside_base64_is_not_taken_for_base64(escape: str, place: str) -> None:
    payload = base64_like(20_000)
    raw = {
        "before": escape + payload,
        "inside": payload[:9_000] + escape + payload[9_000:],
        "after": payload + escape,
    }[place]
    body = f'{{"model": "m", "content": "{raw}"}}'
    document = lifted(body)
    assert [bytes(document.expand_text(each)) for each in strings(document.tree)][3] == json.loads(body)[
        "content"
    ].encode()
    assert splice(document, [Replace(("model",), "n")]).decode() == body.replace('"m"', '"n"')


def test_spans_move_with_an_edit_that_carries_their_placeholders() -> None:
    one, two = base64_like(9_000), base64_like(12_000, start=5)
    document = lifted(json.dumps({"images": [one, f"data:image/png;base64,{two}"], "shown": []}))
    tree = document.tree
    assert isinstance(tree, dict)
    match tree["images"]:
        case [str(first), str(second)]:
            edits: list[Edit] = [
                Insert(("shown", 0), {"moved": second}),
                Replace(("images", 0), [first, first]),
                Replace(("images", 1), "gone"),
            ]
            after = json.loads(splice(document, edits))
            assert after == {"images": [[one, one], "gone"], "shown": [{"moved": f"data:image/png;base64,{two}"}]}
        case other:
            raise AssertionError(other)


def test_a_long_number_before_a_string_is_not_base64() -> None:
    number = " " * (STRIDE - 100) + "1" * 300  # where the search looks first
    body = f'{{"n": [{number}, "{base64_like(9_000)}"], "m": "é"}}'
    assert splice(lifted(body), [Replace(("m",), "e")]).decode() == body.replace("é", "e")


NESTED = 5_000


@given(st.integers() | st.integers(-(10**40), 10**40))
@example(2**64)
@example(-(2**63) - 1)
def test_large_integers_are_read_and_written_exactly(number: int) -> None:
    for body in (f'{{"a":{number}}}', f'{{"a": [1.5,\n{number}]}}', f'{{"a":[{number},0]}}'):
        document = lifted(body)
        assert document.tree == json.loads(body)
        assert json.loads(splice(document, [Replace(("a",), [document.tree])])) == {"a": [json.loads(body)]}


def test_a_large_number_beside_deep_nesting_is_read() -> None:
    deep = "[" * 1000 + "]" * 1000
    assert lifted(f'{{"n": {10**20}, "deep": {deep}}}').tree is not None


@requirement("body.unreadable")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"hello", id="words"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'"text"', id="a string"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"a": 1', id="a cut object"),
        pytest.param(b'{"a": "' + base64_like(20_000).encode(), id="cut in base64"),
        pytest.param(b'{"a": "' + base64_like(20_000).encode() + b'"', id="cut after base64"),
        pytest.param(b'{"a": 1} {"b": 2}', id="two objects"),
        pytest.param(b"{'a': 1}", id="wrong quotes"),
        pytest.param(b'{"a": "\xff\xfe"}', id="no UTF-8"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', id="a byte order mark"),
        pytest.param('{"a": 1}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b'{"a": ' + b"[" * NESTED + b"]" * NESTED + b"}", id="nested too deep"),
        pytest.param(b'{"a": "x\ny"}', id="a bare line end in a string"),
        pytest.param(b'{"a": "%s0;"}' % TOKEN.encode(), id="the token itself"),
    ],
)
def test_a_body_that_cannot_be_written_back_is_not_read(body: bytes) -> None:
    assert lift(body, TOKEN) is None
    assert lift(bytearray(body), TOKEN) is None


@given(st.binary(max_size=200))
@example(b'{"a":\x00}')
def test_any_bytes_can_be_lifted(body: bytes) -> None:
    document = lift(body, TOKEN)
    assert document is None or isinstance(json.loads(body), dict)


@settings(max_examples=30)
@given(documents, st.integers(0, 10_000))
def test_a_cut_body_is_never_read_as_another(text: Box, cut: int) -> None:
    body = written(text).encode()
    assert lift(body[: cut % len(body)], TOKEN) is None


def test_nesting_that_is_read_can_be_written_back() -> None:
    for depth in (10, 100, 400):
        body = '{"deep": %s, "a": 1}' % ("[" * depth + "]" * depth)
        assert splice(lifted(body), [Replace(("a",), 2)]).decode() == body.replace("1", "2")


_LISTS = st.sampled_from([[1], [{"name": "a"}], [{"name": "a"}, {"name": "é"}]])
_VALUES = _LISTS | st.builds(lambda tools: {"tools": tools}, _LISTS) | st.just("é")
_BLANKS = st.sampled_from([(",", ":"), (", ", ": ")])
_MEMBERS = st.tuples(st.sampled_from(["tools", "other", "x", '\\"tools', ',\\"tools']), _VALUES, _BLANKS)


@settings(max_examples=300)
@example([("tools", [1], (",", ":")), ("x", [1], (",", ":"))], [1], (",", ":"), 1, ",")
@given(st.lists(_MEMBERS, max_size=4), _LISTS, _BLANKS, st.integers(0, 4), st.sampled_from([",", ", "]))
def test_appending_to_a_list_changes_nothing_else(
    members: list[tuple[str, Any, tuple[str, str]]], tools: list[Any], blanks: tuple[str, str], at: int, comma: str
) -> None:
    """The same list may be elsewhere, too: in another member, under the same key before it, or under one like it."""
    before = [(key, value, blanks if key == "tools" else way) for key, value, way in members[:at]]
    members = [*before, ("tools", tools, blanks), *(each for each in members[at:] if each[0] != "tools")]
    pairs = [f'"{key}"{way[1]}{json.dumps(value, separators=way, ensure_ascii=False)}' for key, value, way in members]
    body = f"{{{comma.join(pairs)}}}".encode()
    document = lift(body, TOKEN)
    assert document is not None
    made = b"".join(document.splice([Insert(("tools", len(tools)), {"new": number}) for number in (1, 2)]))
    assert json.loads(made)["tools"] == [*tools, {"new": 1}, {"new": 2}]
    assert made.replace(b',{"new":1},{"new":2}', b"") == body


LONG = "iVBORw0KGgo" * 800


def build_image(number: int) -> dict[str, Json]:
    return {"type": "image", "source": {"data": f"{LONG}{number}", "n": 1.0}}


@pytest.mark.parametrize("item", [",", ", "])
@pytest.mark.parametrize("rest", ["{}", '{"n": 1e0, "text":"\\u00e9 {\\"type\\":\\"image\\"}" }'])
def test_edits_of_images_change_nothing_else(item: str, rest: str) -> None:
    first, second = (json.dumps(build_image(number), separators=(item, ":")) for number in range(2))
    body = f'{{"n":{rest},"content":[{first},{rest},{second}]}}'
    label: Json = {"type": "text", "text": "é"}
    wanted = json.dumps(label, ensure_ascii=False, separators=(",", ":"))
    document = lifted(body)
    assert len(document.spans) == 2
    edits: list[Edit] = [Insert(("content", 0), label), Insert(("content", 0), 2), Replace(("content", 2), label)]
    changed = f'{{"n":{rest},"content":[{wanted},2,{first},{rest},{wanted}]}}'
    assert splice(document, edits).decode() == changed
    assert splice(document, edits[::-1]).decode() == changed.replace(f"{wanted},2", f"2,{wanted}")


def test_edits_of_images_and_of_other_values_are_applied_together() -> None:
    body = json.dumps({"content": [build_image(0), 1, build_image(1)]}, separators=(",", ":"))
    edits: list[Edit] = [Replace(("content", 0, "source"), 3), Insert(("content", 1), 4), Replace(("content", 2), 5)]
    changed = json.dumps({"content": [{"type": "image", "source": 3}, 4, 1, 5]}, separators=(",", ":"))
    assert splice(lifted(body), edits).decode() == changed
    assert splice(lifted(body), [edits[0], edits[2]]).decode() == changed.replace("4,", "")
    removed: list[Edit] = [Remove(("content", 0, "source"))]
    assert (
        splice(lifted(body), removed)
        == body.replace(f',"source":{json.dumps(build_image(0)["source"], separators=(",", ":"))}', "", 1).encode()
    )


_KINDS = st.sampled_from(["image", "image", "image", "words", "null"])
_MESSAGES = st.lists(st.lists(_KINDS, min_size=1, max_size=2), min_size=1, max_size=4)
_NEW: list[Json] = [{"text": "new"}, {"content": [f"{TOKEN}0;"]}]


@given(_MESSAGES, st.sampled_from([",", ",", ", "]), st.data())
def test_edits_around_base64_give_the_bytes_of_edits_in_the_text(
    kinds: list[list[str]], comma: str, data: st.DataObject
) -> None:
    blocks = {"image": json.dumps(build_image(0), separators=(",", ":")), "null": "null", "words": '{"text":"é"}'}
    contents = [comma.join(blocks[kind] for kind in message) for message in kinds]
    document = lifted(f'{{"messages":[{comma.join(f"""{{"content":[{each}]}}""" for each in contents)}]}}')
    edits: list[Edit] = []
    for _ in range(data.draw(st.integers(1, 3))):
        at, new = data.draw(st.integers(0, len(kinds) - 1)), data.draw(st.sampled_from(_NEW))
        last, behind = len(kinds[at]) - 1, data.draw(st.integers(0, 1))
        choices: list[Edit] = [
            Rebuild(("messages", at, "content"), (*data.draw(st.sets(st.integers(0, last))), {"text": "below"})),
            Insert(("messages", at + behind), new),
            Insert(("messages", at, "content", last + behind), new),
            Replace(("messages", at, "content", last), new),
            Replace(("messages", at), new),
        ]
        edits.append(data.draw(st.sampled_from(choices)))
    if "image" in str(kinds):
        text = patch_text(document.skeleton.decode(), edits).encode()
        assert splice(document, edits) == b"".join(document._expand(text))


@pytest.mark.parametrize("comma", [",", ", ", " ,"])
@pytest.mark.parametrize("following", ['{"text":1}', "null"])
def test_an_image_that_moves_is_inserted_before_the_next_message(comma: str, following: str) -> None:
    image = json.dumps(build_image(0), separators=(",", ":"))
    document = lifted(f'{{"messages":[{image}{comma}{following}]}}')
    edits: list[Edit] = [Replace(("messages", 0), 2), Insert(("messages", 1), {"data": f"{TOKEN}0;"})]
    assert splice(document, edits).decode() == f'{{"messages":[2{comma}{{"data":"{LONG}0"}},{following}]}}'


@pytest.mark.parametrize("results", [1, 4])
def test_a_long_text_beside_an_image_is_not_written_again_for_each_edit(
    results: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: Json = {"type": "text", "text": "word " * 4000}
    messages: list[Json] = [{"content": [build_image(number), words]} for number in range(results)]
    document = lifted(json.dumps({"messages": messages}, separators=(",", ":")))
    edits: list[Edit] = []
    for number in range(results):
        edits.append(Rebuild(("messages", number, "content"), ({"text": "below"}, 1)))
        edits.append(Insert(("messages", number + 1), {"content": [f"{TOKEN}{number};"]}))
    dump, written = orjson.dumps, list[int]()

    def count_bytes(value: object) -> bytes:
        text = dump(value)
        written.append(len(text))
        return text

    changed = splice(document, edits)
    assert changed == b"".join(document._expand(patch_text(document.skeleton.decode(), edits).encode()))
    monkeypatch.setattr(orjson, "dumps", count_bytes)
    assert document._edit_images(edits) is None
    assert sum(written) <= len(document.skeleton) // 4 + max(written)


def test_a_long_text_in_another_message_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[Json] = ["word " * 4000, {"content": [build_image(0)]}, {"content": [build_image(1)]}]
    document = lifted(json.dumps({"messages": messages}, separators=(",", ":")))
    edits: list[Edit] = [Insert(("messages", 2), number) for number in range(9)]
    dump, written = orjson.dumps, list[object]()

    def note(value: object) -> bytes:
        written.append(value)
        return dump(value)

    monkeypatch.setattr(orjson, "dumps", note)
    assert document._edit_images(edits) is not None
    assert len(written) == len(edits) + 1  # the message behind all of them is written once


_NAMES = st.sampled_from(["model", "name", "text", json_document._NO_TOKEN, f"{json_document._NO_TOKEN}0;", "é", '"'])


@given(st.dictionaries(_NAMES, _NAMES | st.integers() | st.lists(_NAMES)))
def test_a_short_body_is_read_as_any_other(body: dict[str, Json]) -> None:
    """Its token may be in its texts, which aren't changed by that."""
    written = json.dumps(body).encode()
    short, other = parse_short(written), lift(written, TOKEN)
    assert short is not None
    assert other is not None
    assert (short.tree, short.skeleton, short.spans) == (other.tree, other.skeleton, other.spans)
    assert all(short.expand_text(text) == other.expand_text(text) for text in (*body, *map(str, body.values())))
    edits: list[Edit] = [Insert((key, 0), json_document._NO_TOKEN) for key, value in body.items() if value == []]
    assert json.loads(splice(short, edits)) == json.loads(splice(other, edits))


@requirement("load.beside")
def test_a_body_with_more_runs_than_a_limit_is_not_lifted() -> None:
    body = json.dumps({"images": ["A" * 2 * STRIDE] * 3}).encode()
    assert lift_few_runs(body, TOKEN, 3) == lift_runs(body, TOKEN)
    assert lift_few_runs(body, TOKEN, 2) is None
    assert lift_few_runs(b"{}", TOKEN, 0) == lift_runs(b"{}", TOKEN)


_BEFORE = st.sampled_from(["", "data:image/png;base64,", "words, and ", '{"data": "', "\\", "\n", "A" * 70])
_AFTER = st.sampled_from(["", '"}', "\n", " more words", "==", "%3D"])
_LENGTHS = st.sampled_from([100, STRIDE - 1, 2 * STRIDE, 2 * STRIDE + 77, 30_000])
_PIECES = st.lists(st.tuples(_BEFORE, _LENGTHS, st.integers(0, 3), _AFTER, st.integers(0, STRIDE)), max_size=4)


@requirement("body.lift")
@given(_PIECES, st.data())
def test_a_body_is_lifted_in_the_same_way_if_its_runs_are_known(
    pieces: list[tuple[str, int, int, str, int]], draw: st.DataObject
) -> None:
    contents = [
        (before + base64_like(length, start) + after, " " * gap) for before, length, start, after, gap in pieces
    ]
    body = json.dumps({"contents": contents}).encode()
    plain = lift_runs(body, TOKEN)
    runs = sorted({bytes(span) for span in plain.spans} | {base64_like(length).encode() for _, length, *_ in pieces})
    known = draw.draw(st.lists(st.sampled_from(runs), unique=True)) if runs else []

    def find_known(body: bytes | bytearray, start: int) -> bytes | None:
        return next((run for run in known if body[start : start + len(run) + 1] == run + b'"'), None)

    assert lift_runs(body, TOKEN, find_known) == plain
