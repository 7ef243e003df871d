"""The names of messages: the same for the same conversation however it is written, new from any change on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.scene import Json
from sightline.wire import ANTHROPIC, OPENAI_CHAT, Wire
from sightline.wire import hash_chain as chain_module
from sightline.wire.hash_chain import HashChain, build_hash_chain
from sightline.wire.json_document import STRIDE, lift
from sightline.wire.json_tree import PlainTexts
from tests.requirements import requirement
from tests.wire.bodies import LONG, MARK, TOKEN, block, body, calling, part, result, text, tool, user
from tests.wire.json_texts import base64_like


def named(tree: Json, wire: Wire = ANTHROPIC, written: str | None = None) -> HashChain:
    document = lift((written or json.dumps(tree)).encode(), TOKEN)
    assert document is not None
    sights = wire.read(document.tree, document).sights
    return build_hash_chain(document.tree, wire.head_keys, wire.messages_key, document, sights)


def names(*messages: Json, wire: Wire = ANTHROPIC, **head: Json) -> tuple[str, ...]:
    return named(body(*messages, **head), wire).names


USE: Json = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/a.png"}}
ASKED: Json = {"role": "assistant", "content": [USE]}
TALK: list[Json] = [
    user(text("look")),
    ASKED,
    user(result("t1", text("here"), block(LONG))),
    {"role": "assistant", "content": "I see"},
]


@requirement("chain.hash")
def test_a_growing_conversation_keeps_its_names() -> None:
    known = names(*TALK)
    assert len(set(known)) == len(TALK)
    for length in range(len(TALK)):
        assert names(*TALK[:length]) == known[:length]


@requirement("chain.hash")
@pytest.mark.parametrize("head", [{"system": "be brief"}, {"tools": [{"name": "Read"}]}])
def test_the_chain_begins_with_system_prompt_and_tools(head: dict[str, Json]) -> None:
    plain, other = named(body(*TALK)), named(body(*TALK, **head))
    assert plain.head_name != other.head_name
    assert not set(plain.names) & set(other.names)
    assert named(body(**head)).names == ()
    assert named(body(**head)).head_name == other.head_name


@pytest.mark.parametrize("field", [{"model": "other"}, {"max_tokens": 5}, {"stream": True}, {"metadata": {"id": "x"}}])
def test_other_fields_change_no_name(field: dict[str, Json]) -> None:
    assert named({**body(*TALK), **field}).names == names(*TALK)


def marked(value: Any, depth: int) -> Any:
    """Return a value with a cache mark on every object at a depth."""
    match value:
        case dict():
            inner = {key: marked(item, depth - 1) for key, item in value.items()}
            return {**inner, "cache_control": MARK} if depth == 0 else inner
        case list():
            return [marked(item, depth) for item in value]
        case _:
            return value


@requirement("chain.normalised")
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_cache_marks_change_no_name(depth: int) -> None:
    assert names(*(marked(message, depth) for message in TALK)) == names(*TALK)
    system: list[Json] = [text("a"), text("b")]
    assert names(*TALK, system=[*system[:1], {**text("b"), "cache_control": MARK}]) == names(*TALK, system=system)


@requirement("chain.normalised")
def test_a_list_of_one_text_block_equals_the_text() -> None:
    held: Json = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    assert names({"role": "user", "content": "look"}, user(held)) == names(
        user({**text("look"), "cache_control": MARK}), user(result("t", text("done")))
    )
    assert names(system="brief") == names(system=[text("brief")])
    assert named(body(system="brief")).head_name == named(body(system=[text("brief")])).head_name
    assert names(user(text("a"), text("b"))) != names({"role": "user", "content": "ab"})
    assert names(user({**text("look"), "citations": True})) != names(user(text("look")))


@requirement("chain.normalised")
def test_key_order_and_blanks_change_no_name() -> None:
    turned: list[Any] = [turned_round(message) for message in TALK]
    assert [list(message) for message in turned] != [list(message) for message in json.loads(json.dumps(TALK))]
    assert names(*turned) == names(*TALK)
    tree = body(*TALK)
    assert named(tree, written=json.dumps(tree, indent=3, ensure_ascii=False)).names == names(*TALK)


def turned_round(value: Any) -> Any:
    match value:
        case dict():
            return {key: turned_round(value[key]) for key in reversed(value)}
        case list():
            return [turned_round(item) for item in value]
        case _:
            return value


@requirement("chain.normalised")
@pytest.mark.parametrize("length", [40, 5_000, 7_000, 2 * STRIDE, 30_000])
def test_an_image_counts_by_its_content(length: int) -> None:
    """Base64 of a middle length is lifted out at some places of a body and not at others."""
    payload = base64_like(length)
    stringified = json.dumps({"png": payload, "other": base64_like(length, 9)})
    talk = [calling("c1"), tool("c1", part(payload), text(stringified)), user(text("é"))]
    found = set()
    for push in range(0, STRIDE, 509):
        tree = {"pad": "." * push, **body(*talk)}
        found.add(named(tree, OPENAI_CHAT).names)
    assert len(found) == 1
    changed = [calling("c1"), tool("c1", part(payload + "x"), text(stringified)), user(text("é"))]
    assert names(*changed, wire=OPENAI_CHAT)[1] not in next(iter(found))


def test_lifted_text_that_is_not_an_image_counts() -> None:
    one, other = base64_like(12_000), base64_like(12_000, start=3)
    thought: Json = {"type": "thinking", "thinking": "", "signature": one}
    changed: Json = {"type": "thinking", "thinking": "", "signature": other}
    assert names({"role": "assistant", "content": [thought]}) != names({"role": "assistant", "content": [changed]})
    assert named(body(system=one)).head_name != named(body(system=other)).head_name
    short = base64_like(5_000)
    found = {
        named({"pad": "." * push, **body({"role": "user", "content": short})}).names for push in range(0, STRIDE, 509)
    }
    assert len(found) == 1


@requirement("chain.forks")
def test_forks_share_names_up_to_where_they_differ() -> None:
    known = names(*TALK)
    fork = names(*TALK[:3], {"role": "assistant", "content": "I see nothing"})
    assert fork[:3] == known[:3]
    assert fork[3] != known[3]
    edited = names(user(text("look again")), *TALK[1:])
    assert not set(edited) & set(known)
    compacted = names(user(text("a summary")), *TALK[3:])
    assert not set(compacted) & set(known)
    repeated = names(*TALK, *TALK)
    assert len(set(repeated)) == 2 * len(TALK)


@requirement("chain.hash")
def test_tokens_are_those_of_the_text_alone() -> None:
    words = "word " * 400
    for payload in (base64_like(60), base64_like(5_000), LONG):
        talk: list[Json] = [user(text(words), part(payload)), user(part(payload), part(payload), text(words))]
        lifted = named(body(*talk), OPENAI_CHAT)
        whole = build_hash_chain(
            body(*talk),
            OPENAI_CHAT.head_keys,
            OPENAI_CHAT.messages_key,
            PlainTexts(),
            OPENAI_CHAT.read(body(*talk), PlainTexts()).sights,
        )
        for tokens in (*lifted.tokens, *whole.tokens):
            assert 500 <= tokens < 560
    assert 400 < named(body(system=words)).head_tokens < 560


odd = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[]), max_size=9),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=9), inside, max_size=3),
    max_leaves=6,
)


@given(st.lists(odd, max_size=4), odd)
def test_any_message_is_named_and_any_change_renames_it(messages: list[Any], other: Any) -> None:
    first = build_hash_chain({"messages": messages}, ("tools",), "messages", PlainTexts())
    assert len(first.names) == len(messages)
    changed = build_hash_chain({"messages": [*messages, other]}, ("tools",), "messages", PlainTexts())
    assert changed.names[:-1] == first.names
    if messages and json.dumps(other) != json.dumps(messages[-1]) and isinstance(other, str):
        swapped = build_hash_chain({"messages": [*messages[:-1], other]}, ("tools",), "messages", PlainTexts())
        assert swapped.names[-1] != first.names[-1]


def test_the_work_grows_linearly_with_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    real = chain_module._dump_canonical

    def counted(value: Json) -> bytes:
        written.append(len(json.dumps(value)))
        return real(value)

    monkeypatch.setattr(chain_module, "_dump_canonical", counted)
    sizes = []
    for length in (50, 100, 200):
        written.clear()
        names(*(user(text(f"message {number:05}"), block(base64_like(9_000, number))) for number in range(length)))
        sizes.append(sum(written))
    assert sizes[2] < 2.2 * sizes[1] < 2.2 * 2.2 * sizes[0]


@requirement("retain.fold")
def test_tokens_of_a_message_do_not_depend_on_its_place() -> None:
    signed: Json = {"type": "thinking", "thinking": "so", "signature": base64_like(STRIDE)}
    talk: list[Json] = [*TALK, {"role": "assistant", "content": [signed]}]
    weights = {named(body(*talk, metadata={"pad": "x" * pad})).tokens for pad in range(0, 2 * STRIDE, 509)}
    assert len(weights) == 1
    padded = json.dumps({"metadata": "x" * 3000, **body(*talk)})
    assert named({}, written=padded).tokens in weights


def test_a_billing_header_changes_no_name() -> None:
    def with_nonce(nonce: str) -> HashChain:
        return named(body(*TALK, system=[text(f"x-anthropic-billing-header: a; cch={nonce};"), text("be brief")]))

    assert with_nonce("1") == with_nonce("2")
    assert with_nonce("1") != named(body(*TALK, system=[text("be long")]))


@requirement("load.many_images")
def test_a_message_of_many_images_is_named_by_their_content() -> None:
    images = [base64_like(100 if number % 2 else 2 * STRIDE, number) for number in range(100)]

    def of(payloads: list[str], pad: int = 0) -> HashChain:
        return named(body(user(*map(block, payloads), text("what is it")), metadata={"pad": "x" * pad}))

    assert len({of(images, pad).names for pad in range(0, STRIDE, 1500)}) == 1
    for changed in (0, 1, 99):
        others = [*images]
        others[changed] = base64_like(len(images[changed]), 1000)
        assert of(others).names != of(images).names
    assert of(images).tokens[0] < 100 * 200, "their payloads are no words"
