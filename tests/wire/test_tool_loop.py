"""Our own calls in a stream: the same is sent however it is cut, and everything else is sent unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.json_edits import graft
from sightline.wire.json_tree import Block
from sightline.wire.tool_loop import LOOPS, StoredLeg
from sightline.wire.tool_loop.leg import add_usages, fingerprint_blocks, fingerprint_legs
from sightline.wire.tool_loop.leg import build_leg as leg_of
from tests.proxy.legs import ITEMS, WIRES, Call, Json, Leg, echo, events, heard, joined, said
from tests.proxy.legs import seen as shown
from tests.requirements import requirement

NAMES = frozenset({"analyze_image", "view_image"})
_WORDS = st.text(max_size=12)
_IDS = st.sampled_from(["call_0123456789abcdef", "Read:0", "", "functions.Read:1"])
_CALLS = st.builds(Call, _IDS, st.sampled_from(["analyze_image", "Read"]), st.fixed_dictionaries({"path": _WORDS}))
LEGS = st.builds(Leg, _WORDS, st.lists(_CALLS, max_size=3).map(tuple), st.sampled_from(["", "hm"]))
EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@EVERY_WIRE
@requirement("stream.own_calls", "loop.one_message")
@given(leg=LEGS, cuts=st.lists(st.integers(0, 10**6), max_size=12), crlf=st.booleans())
def test_the_same_is_sent_for_any_split_of_a_stream(wire: str, leg: Leg, cuts: list[int], crlf: bool) -> None:
    stream = b"".join(events(wire, leg, "1"))
    stream = stream.replace(b"\n", b"\r\n") if crlf else stream
    once, often = LOOPS[wire].build_listener(NAMES), LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    whole = once.feed(stream) + once.finish()
    parts = b"".join(map(often.feed, pieces(stream, cuts))) + often.finish()
    assert (whole, once.ending, once.calls_ours, once.continues) == (
        parts,
        often.ending,
        often.calls_ours,
        often.continues,
    )
    assert once.calls_ours == bool(leg.asks)
    assert once.continues == (bool(leg.asks) and not leg.visible.calls)
    if not leg.asks:
        assert whole == stream, "what is not ours goes out as it came"
    elif not once.continues:
        got = heard(wire, (whole + once.ending).replace(b"\r\n", b"\n"), stream=True)
        assert shown(wire, got) == joined(wire, [leg])
    if leg.asks:
        assert [ask.call.id for ask in once.build_leg().own_calls] == [call.id for call in leg.asks]
        assert [ask.call.parsed_arguments for ask in once.build_leg().own_calls] == [call.given for call in leg.asks]


@EVERY_WIRE
@requirement("stream.own_calls")
@given(data=st.binary(max_size=300), names=st.booleans())
def test_other_bytes_are_sent_unchanged(wire: str, data: bytes, names: bool) -> None:
    said_ = data + (b'data: {"x": "analyze_image"}\n\n' if names else b"")
    listener = LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    assert listener.feed(said_) + listener.finish() + listener.ending == said_


@EVERY_WIRE
@requirement("loop.substituted")
@given(legs=st.lists(LEGS, min_size=1, max_size=3))
def test_an_answer_that_comes_back_is_recognized_and_no_other(wire: str, legs: list[Leg]) -> None:
    """For any stored legs, the restored answer equals what was said, or nothing is restored."""
    loop = LOOPS[wire]  # type: ignore[index]
    listeners = []
    for leg in legs:
        listener = loop.build_listener(NAMES)
        listener.feed(b"".join(events(wire, leg, "1")) + b'data: {"analyze_image": "analyze_image"}\n\n')
        listener.finish()
        listeners.append(listener.build_leg())
    pasts = [StoredLeg.from_leg(each, [{"result": index}]) for index, each in enumerate(listeners)]
    assert [StoredLeg.parse(json.loads(json.dumps(past.as_json()))) for past in pasts] == pasts
    for other in legs:
        tree: Json = {"messages": said(wire, other), "input": said(wire, other), "contents": said(wire, other)}
        for run in loop.find_answers(tree):
            found = loop.restore_answer(tree, run, pasts, [])
            if found is not None:
                assert fingerprint_legs(pasts) == fingerprint_blocks(run.blocks, loop.classify_block)


@requirement("loop.usage")
def test_usage_is_the_last_input_and_all_output() -> None:
    legs: list[Block] = [
        {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "completion_tokens_details": {"x": 1}},
        {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22, "completion_tokens_details": {"x": 2}},
    ]
    whole = add_usages(legs, ("completion_tokens", "completion_tokens_details"), "total_tokens", "prompt_tokens")
    assert whole == {
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "total_tokens": 23,
        "completion_tokens_details": {"x": 3},
    }
    assert add_usages([{}, {}], ("output_tokens",)) == {}


def test_the_scripted_conversation_echoes_itself() -> None:
    for wire in WIRES:
        leg = Leg("Hm.", (Call("c", "Read", {"path": "x"}),), "so")
        assert echo(wire, heard(wire, b"".join(events(wire, leg, "1")), stream=True)) == said(wire, leg)


def kept(wire: str, said_: list[Block], results: list[Block] | None = None) -> StoredLeg:
    """Return the stored form of a leg with these blocks."""
    return StoredLeg.from_leg(leg_of(said_, LOOPS[wire].classify_block, NAMES), results or [])  # type: ignore[index]


def put_back(
    wire: str, items: list[Block], pasts: list[StoredLeg], results: list[Block] | None = None
) -> list[Block] | None:
    """Return a conversation with its answer restored; None if nothing is restored."""
    loop, key = LOOPS[wire], ITEMS[wire]  # type: ignore[index]
    tree: Json = {key: items}
    edits = loop.restore_answer(tree, loop.find_answers(tree)[0], pasts, results or [])
    return None if edits is None else graft(tree, edits)[key]  # type: ignore[index, call-overload, return-value]


THOUGHT, AGAIN = ({"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "x"} for n in "12")
SEARCH: Block = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
WORDS: Block = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
ASKS: list[Block] = [
    {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "analyze_image", "arguments": "{}"}
    for n in (1, 2)
]
OUTPUTS: list[Block] = [{"type": "function_call_output", "call_id": f"c{n}", "output": "It is E42."} for n in (1, 2)]


@requirement("loop.assistant")
@pytest.mark.parametrize(
    "first", [[THOUGHT, ASKS[0], AGAIN, ASKS[1]], [THOUGHT, SEARCH, ASKS[0]], [SEARCH, THOUGHT, ASKS[0]]]
)
def test_reasoning_stays_before_its_call_on_responses(first: list[Block]) -> None:
    results = OUTPUTS[: sum(item in ASKS for item in first)]
    pasts = [kept("openai_responses", first, results), kept("openai_responses", [WORDS])]
    sees = [item for item in (*first, WORDS) if item not in ASKS]
    assert put_back("openai_responses", sees, pasts) == [*first, *results, WORDS]


@requirement("loop.assistant")
@pytest.mark.parametrize(
    ("thought", "kept"),
    [
        ({"encrypted_content": "x"}, True),
        ({"content": [{"type": "reasoning_text", "text": "hm"}]}, True),
        ({"encrypted_content": None, "content": []}, False),
    ],
)
def test_complete_reasoning_goes_into_the_next_leg_on_responses(thought: Block, kept: bool) -> None:
    """Reasoning that no upstream stores is dropped together with the ids of the items after it."""
    item: Block = {"type": "reasoning", "id": "rs_1", "summary": [], **thought}
    looks = leg_of([item, ASKS[0]], LOOPS["openai_responses"].classify_block, NAMES)
    edits = LOOPS["openai_responses"].append_legs({"input": []}, [(looks, OUTPUTS[:1])])
    told = [edit.value for edit in edits]  # type: ignore[union-attr]
    nameless = {key: value for key, value in ASKS[0].items() if key != "id"}
    assert told == [*([item, ASKS[0]] if kept else [nameless]), OUTPUTS[0]]


@requirement("loop.assistant")
def test_a_server_tool_s_result_stays_before_our_call_on_messages() -> None:
    ours: Block = {"type": "tool_use", "id": "t1", "name": "analyze_image", "input": {}}
    found: list[Block] = [
        {"type": "text", "text": "I search."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ]
    then: list[Block] = [{"type": "thinking", "thinking": "so", "signature": "s"}, {"type": "text", "text": "Done."}]
    result: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "It is E42."}
    pasts = [kept("anthropic", [*found, ours], [result]), kept("anthropic", then)]
    assert put_back("anthropic", [{"role": "assistant", "content": [*found, *then]}], pasts) == [
        {"role": "assistant", "content": [*found, ours]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": then},
    ]


@requirement("loop.assistant")
def test_a_part_with_only_a_signature_stays_in_its_leg_on_gemini() -> None:
    signed: Block = {"text": "", "thoughtSignature": "S1"}
    ours: Block = {"functionCall": {"name": "analyze_image", "args": {}}}
    result: Block = {"functionResponse": {"name": "analyze_image", "response": {"output": "It is E42."}}}
    pasts = [kept("gemini", [signed, ours], [result]), kept("gemini", [{"text": "Done."}])]
    assert put_back("gemini", [{"role": "model", "parts": [signed, {"text": "Done."}]}], pasts) == [
        {"role": "model", "parts": [signed, ours]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]


@requirement("loop.substituted")
@pytest.mark.parametrize("sent", [["Done."], ["\n\n", "Done."], ["\n\nDone."], ["\n\n", "Done. "]])
def test_blanks_that_a_client_drops_or_trims_change_nothing(sent: list[str]) -> None:
    ours: Block = {"type": "tool_use", "id": "t1", "name": "analyze_image", "input": {}}
    result: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "It is E42."}
    pasts = [
        kept("anthropic", [{"type": "text", "text": "\n\n"}, ours], [result]),
        kept("anthropic", [{"type": "text", "text": "Done."}]),
    ]
    blocks: list[Block] = [{"type": "text", "text": text} for text in sent]
    assert fingerprint_legs(pasts) == fingerprint_blocks(blocks, LOOPS["anthropic"].classify_block)
    back = put_back("anthropic", [{"role": "assistant", "content": [*blocks]}], pasts)
    assert back is not None
    kinds = [block["type"] for message in back for block in message["content"] if block.get("text") != "\n\n"]  # type: ignore[union-attr, index, call-overload]
    assert kinds[:2] == ["tool_use", "tool_result"]
    assert set(kinds[2:]) == {"text"}


@EVERY_WIRE
@requirement("loop.substituted")
def test_a_call_without_a_result_is_not_restored(wire: str) -> None:
    leg = Leg("Look.", (Call("c1", "analyze_image", {}), Call("c2", "Read", {})))
    pasts = [kept(wire, [part for item in said(wire, leg) for part in blocks_of(wire, item)])]
    assert put_back(wire, said(wire, leg.visible), pasts, []) is None


def blocks_of(wire: str, item: Json) -> list[Block]:
    if wire == "openai_responses":
        return [item]
    if wire == "openai_chat":
        return [{"content": item["content"]}, *item["tool_calls"]]
    return list(item["content"] if wire == "anthropic" else item["parts"])


def chunk(delta: Json, end: str | None = None) -> bytes:
    said_ = {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
    return b"data: " + json.dumps(said_).encode() + b"\n\n"


def piece(index: int, name: str = "", call: str = "", given: str = "") -> Json:
    made: Json = {"index": index, "function": {"name": name, "arguments": given} if name else {"arguments": given}}
    return {"tool_calls": [{**made, "id": call, "type": "function"} if call else made]}


ODD: dict[str, list[Json]] = {
    "the name comes late": [
        piece(0, call="c1"),
        piece(0, "analyze_image"),
        piece(0, given="{}"),
        piece(1, "Read", "c2", "{}"),
    ],
    "the name comes again": [
        piece(0, "analyze_image", "c1"),
        piece(0, "analyze_image", given="{}"),
        piece(1, "Read", "c2", "{}"),
    ],
    "all calls have one number": [piece(0, "analyze_image", "c1", "{}"), piece(0, "Read", "c2", "{}")],
    "numbers begin with one": [piece(1, "analyze_image", "c1", "{}"), piece(2, "Read", "c2", "{}")],
    "theirs comes late": [piece(0, call="c2"), piece(0, "Read", given="{}"), piece(1, "analyze_image", "c1", "{}")],
}


@requirement("stream.own_calls")
@pytest.mark.parametrize("deltas", ODD.values(), ids=ODD.keys())
def test_odd_chat_streams_are_read(deltas: list[Json]) -> None:
    deltas[0] = {"role": "assistant", **deltas[0]}
    listener = LOOPS["openai_chat"].build_listener(NAMES)
    out = b"".join(listener.feed(chunk(delta)) for delta in deltas) + listener.feed(
        chunk({}, "tool_calls") + b"data: [DONE]\n\n"
    )
    out += listener.finish() + listener.ending
    assert [(ask.call.id, ask.call.parsed_arguments) for ask in listener.build_leg().own_calls] == [("c1", {})]
    got = heard("openai_chat", out, stream=True)["choices"][0]["message"]
    assert [(call["id"], call["function"]["name"]) for call in got["tool_calls"]] == [("c2", "Read")]
    assert out.count(b'"role"') == 1, "who speaks is said once"


@requirement("stream.own_calls")
def test_a_last_event_without_a_blank_line_is_read() -> None:
    listener = LOOPS["openai_chat"].build_listener(NAMES)
    out = listener.feed(chunk(piece(0, "analyze_image", "c1", "{}"), "tool_calls").rstrip())
    assert (out + listener.finish(), listener.continues) == (b"", True)


@EVERY_WIRE
@requirement("loop.fails")
def test_an_answer_cut_in_our_call_makes_no_call(wire: str) -> None:
    cut = {"tool_use": "max_tokens", "tool_calls": "length", "STOP": "MAX_TOKENS", "completed": "incomplete"}
    stream = b"".join(events(wire, Leg("Hm.", (Call("c1", "analyze_image", {}),)), "1")).decode()
    for whole, short in cut.items():
        stream = stream.replace(f'": "{whole}"', f'": "{short}"').replace(f".{whole}", f".{short}")
    listener = LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    listener.feed(stream.encode())
    listener.finish()
    assert not listener.calls_ours


@requirement("loop.one_message")
def test_the_last_chunk_is_never_empty_on_gemini() -> None:
    """Programs that keep each chunk as a content take one without parts for a failed answer."""
    listener = LOOPS["gemini"].build_listener(NAMES)
    chunks: list[Json] = [
        {"content": {"role": "model", "parts": [{"functionCall": {"name": "Read", "args": {}}}]}},
        {"content": {"role": "model", "parts": [{"functionCall": {"name": "analyze_image", "args": {}}}]}},
    ]
    chunks[1]["finishReason"] = "STOP"
    for chunk_ in chunks:
        listener.feed(b"data: " + json.dumps({"responseId": "1", "candidates": [chunk_]}).encode() + b"\n\n")
    assert json.loads(listener.ending[6:])["candidates"][0]["content"]["parts"] == [{"text": ""}]


@EVERY_WIRE
@requirement("load.answers")
def test_an_endless_event_is_sent_and_not_kept_in_memory(wire: str) -> None:
    listener = LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    piece = b"x" * (1 << 20)
    told = [listener.feed(each) for each in (b'data: {"text":"', *[piece] * 40)]
    assert sum(map(len, told)) > 30 << 20
    rest = b'"}\n\ndata: {"name":"analyze_image"}\n\n'
    assert (
        b"".join([*told, listener.feed(rest), listener.finish(), listener.ending])
        == b'data: {"text":"' + piece * 40 + rest
    )
    assert not listener.calls_ours


@EVERY_WIRE
@requirement("load.answers")
def test_an_endless_event_after_our_call_ends_the_listening(wire: str) -> None:
    listener = LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    listener.begin_next_leg()
    piece = b"x" * (1 << 20)
    told = [listener.feed(each) for each in (b'data: {"text":"', *[piece] * 40)]
    assert sum(map(len, told)) > 30 << 20
    assert listener.failed


@EVERY_WIRE
@requirement("load.answers")
def test_an_event_of_too_many_values_is_sent_unread(wire: str) -> None:
    listener = LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    event = b'data: {"name":"analyze_image","x":[' + b"1," * 400_000 + b"1]}\n\n"
    assert listener.feed(event) + listener.finish() == event
    assert not listener.calls_ours


@EVERY_WIRE
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("whole", [True, False])
@requirement("stream.own_calls")
def test_the_done_of_an_inner_leg_is_not_relayed(wire: str, end: bytes, whole: bool) -> None:
    """Some upstreams end every stream with it; the OpenAI SDK stops reading there."""
    listener = LOOPS[wire].build_listener(NAMES)  # type: ignore[index]
    done = b"data: [DONE]\n\n"

    def feed(leg: Leg, name: str) -> bytes:
        stream = (b"".join(events(wire, leg, name)).removesuffix(done) + done).replace(b"\n", end)
        pieces = [stream] if whole else [bytes([byte]) for byte in stream]
        return b"".join(map(listener.feed, pieces)) + listener.finish()

    out = feed(Leg("Hm.", (Call("c1", "analyze_image", {}),)), "1")
    assert listener.continues
    assert b"[DONE]" not in out
    assert b"analyze_image" not in out
    listener.begin_next_leg()
    out += feed(Leg("A cat."), "2") + listener.ending
    assert out.count(b"[DONE]") == 1
    assert out.endswith(done.replace(b"\n", end)), "it comes behind the event that completes the answer"


@requirement("loop.usage")
@pytest.mark.parametrize("done", [b"data: [DONE]\n\n", b""], ids=["with an end", "without"])
def test_usage_beside_an_empty_choice_is_kept(done: bytes) -> None:
    """LiteLLM sends the usage of a stream in a chunk whose only choice is empty."""
    listener = LOOPS["openai_chat"].build_listener(NAMES)
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    counted = json.loads(chunk({}).removeprefix(b"data: ")) | {"usage": usage}
    tail = b"data: " + json.dumps(counted).encode() + b"\n\n" + done
    out = listener.feed(chunk(piece(0, "analyze_image", "c1", "{}")) + chunk({}, "tool_calls") + tail)
    out += listener.finish()
    listener.begin_next_leg()
    out += listener.feed(chunk({"content": "A cat."}) + chunk({}, "stop") + tail) + listener.finish() + listener.ending
    got = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
    assert [each["usage"]["completion_tokens"] for each in got if each.get("usage")] == [4]


@requirement("loop.prefix")
@pytest.mark.parametrize(
    "extra", [{"annotations": []}, {"annotations": [], "provider_specific_fields": {"refusal": None}}]
)
@pytest.mark.parametrize("stream", [False, True])
def test_fields_that_say_nothing_are_not_part_of_a_leg(extra: Block, stream: bool) -> None:
    """Otherwise the next leg has them, the next turn doesn't, and the provider's cache misses."""
    loop = LOOPS["openai_chat"]
    call: Block = {"id": "c1", "type": "function", "function": {"name": "analyze_image", "arguments": "{}"}}
    if stream:
        listener = loop.build_listener(NAMES)
        listener.feed(chunk({"content": "Hm.", **extra}) + chunk({"tool_calls": [{"index": 0, **call}]}))
        listener.feed(chunk({}, "tool_calls"))
        listener.finish()
        leg = listener.build_leg()
    else:
        message: Block = {"role": "assistant", "content": "Hm.", "refusal": None, **extra, "tool_calls": [call]}
        answer: Block = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
        leg = leg_of(loop.list_blocks(answer), loop.classify_block, NAMES)
    result: Block = {"role": "tool", "tool_call_id": "c1", "content": "A cat."}
    tree: Json = {"messages": [{"role": "user", "content": "hi"}]}
    grown: Json = graft(tree, loop.append_legs(tree, [(leg, [result])]))  # type: ignore[assignment]
    ending = leg_of([{"content": "Done."}], loop.classify_block, NAMES)
    pasts = [StoredLeg.from_leg(leg, [result]), StoredLeg.from_leg(ending, [])]
    restored = put_back("openai_chat", [{"role": "assistant", "content": "Hm.Done."}], pasts)
    assert restored is not None
    assert restored[:2] == grown["messages"][1:]
