"""Images in rarer tool results: JSON lines, structured content, shell and remote output, and the same image twice."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import SHOWN_BELOW, SHOWN_BESIDE
from sightline.model.profile import Profile
from sightline.model.scene import Fate, Json, Repeated, Scene, Shown, Told
from sightline.wire import ANTHROPIC, GEMINI, MCP, MODEL_MESSAGE, OPENAI_CHAT, OPENAI_RESPONSES, Codec
from tests.passes.scenes import Table, rules
from tests.requirements import requirement
from tests.wire.bodies import block, body, calling, lower_body, part, read, result, text, tool, user

RAW = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40
LONG = b64encode(RAW).decode()
SHORT = b64encode(RAW[:200]).decode()
TOLD = Told("[told]", "eye")
NATIVE = Profile("up", "openai_responses", "m")
HOISTING = Profile("up", "openai_chat", "m", tool_images="hoist")


def chat(content: Json) -> dict[str, Json]:
    return body(calling("c1"), {"role": "tool", "tool_call_id": "c1", "content": content})


def after(content: Json, *fates: Fate) -> list[Any]:
    found: Any = lower_body(OPENAI_CHAT, chat(content), fates, HOISTING)
    messages: list[Any] = found["messages"][1:]
    return messages


LINES = [
    pytest.param('{"n": 1.10, "n": 2}\n{"png": "B64"}\n\n', id="one to a line"),
    pytest.param('{"png":\n "B64"}\n[7]', id="over several lines"),
    pytest.param('{"a": 1}\r\n{"deep": [{"png": "data:image/png;base64,B64"}]}\r\n', id="deep, as a data URL"),
    pytest.param('{"a": 1}\n{"out": "{\\"n\\": 1}\\n{\\"png\\": \\"B64\\"}"}', id="lines in a text of a line"),
]


@requirement("rescue.lines", "law.4")
@pytest.mark.parametrize("payload", [SHORT, LONG], ids=["short", "lifted out"])
@pytest.mark.parametrize("written", LINES)
def test_images_are_extracted_from_json_lines(written: str, payload: str) -> None:
    held, moved = after(written.replace("B64", payload), Shown("image/png"))
    bare = written.replace("data:image/png;base64,B64", "B64")
    assert held["content"] == [text(bare.replace("B64", "[image]")), text(SHOWN_BELOW)]
    assert moved["content"][1] == part(payload)


@requirement("rescue.lines", "rescue.whole_value")
@pytest.mark.parametrize(
    "written",
    [
        '{"png": "B64"}\nand words',
        'Exit code: 0\n{"png": "B64"}\ndone',
        '{"png": "B64"}\n7',
        '{"png": "B64"},\n{"a": 1}',
        '[12:00] {"png": "B64"}\n[12:01] {"a": 1}',
        '[1] {"png": "B64"}',
        '{"a": 1}{"png": "B64"}',
    ],
)
def test_text_that_is_partly_json_is_left_alone(written: str) -> None:
    assert read(OPENAI_CHAT, chat(written.replace("B64", SHORT))).scene.sights == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just(SHORT),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=6,
)
LEAST = st.dictionaries(st.text(), VALUES, max_size=3) | st.lists(VALUES, max_size=3)


@requirement("rescue.lines")
@given(st.lists(LEAST, min_size=2, max_size=4), st.sampled_from(["\n", " \n ", "\r\n\n"]))
def test_other_values_of_json_lines_stay(values: list[Any], between: str) -> None:
    written = between.join(map(json.dumps, values))
    found = read(OPENAI_CHAT, chat(written))
    count = written.count(f'"{SHORT}"') - sum(each.count(f'"{SHORT}": ') for each in map(json.dumps, values))
    assert len(found.scene.sights) == count
    if count:
        held, moved = after(written, *[Shown("image/png")] * count)
        assert moved["content"][1::2] == [part(SHORT)] * count
        assert held["content"][0]["text"] == between.join(json.dumps(without(each)) for each in values)


def without(value: Any) -> Any:
    match value:
        case str():
            return "[image]" if value == SHORT else value
        case list():
            return [without(each) for each in value]
        case dict():
            return {key: without(each) for key, each in value.items()}
        case _:
            return value


def mcp_image(data: str) -> dict[str, Json]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


@requirement("rescue.structured", "wire.mcp", "law.4")
def test_images_of_structured_content_go_into_the_content() -> None:
    structured: Json = {"n": 1.5, "shot": {"png": LONG, "note": "words"}, "log": f'{{"png": "{SHORT}"}}'}
    given: Json = {"content": [text("a page")], "structuredContent": structured, "isError": False}
    kept: Json = {"n": 1.5, "shot": {"png": "[image]", "note": "words"}, "log": '{"png": "[image]"}'}
    found = read(MCP, given)
    assert found.texts() == [LONG, SHORT]
    assert lower_body(MCP, given, [Shown("image/png")] * 2, NATIVE) == {
        "content": [text("a page"), mcp_image(LONG), mcp_image(SHORT)], "structuredContent": kept, "isError": False,
    }  # fmt: skip
    told: Json = {"n": 1.5, "shot": {"png": "[told]", "note": "words"}, "log": '{"png": "[told]"}'}
    assert lower_body(MCP, given, [TOLD, TOLD], NATIVE) == {**given, "structuredContent": told}  # type: ignore[dict-item]


@requirement("rescue.structured")
@pytest.mark.parametrize("content", [[text("x"), text(SHORT)], [], None, "x"])
def test_images_of_structured_content_go_into_any_content(content: Json) -> None:
    given: Json = {"content": content, "structuredContent": {"png": LONG}}
    sights = read(MCP, given).scene.sights
    after: Any = lower_body(MCP, given, [Shown("image/png")] * len(sights), NATIVE)
    assert after["structuredContent"] == {"png": "[image]"}
    assert after["content"][-1] == mcp_image(LONG)
    bare: Any = lower_body(MCP, {"structuredContent": {"png": LONG}}, [Shown("image/png")], NATIVE)
    assert bare == {"structuredContent": {"png": "[image]"}, "content": [mcp_image(LONG)]}


def called(name: str, kind: str = "function_call") -> dict[str, Json]:
    return {"type": kind, "call_id": name, "name": "shell", "arguments": "{}"}


def answered(name: str, output: Json = "ok", kind: str = "function_call_output") -> dict[str, Json]:
    return {"type": kind, "call_id": name, "output": output}


def build_body(*items: Json) -> dict[str, Json]:
    return {"model": "m", "input": list(items)}


def shown(name: str, payload: str, tool_name: str = "shell") -> dict[str, Json]:
    words: Json = {"type": "input_text", "text": f"[image from the tool call {name} ({tool_name})]"}
    image: Json = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{payload}"}
    return {"type": "message", "role": "user", "content": [words, image]}


@requirement("rescue.responses", "law.4")
@pytest.mark.parametrize("payload", [SHORT, LONG], ids=["short", "lifted out"])
def test_images_of_a_shell_s_output_go_into_the_next_message(payload: str) -> None:
    end: Json = {"type": "exit", "exit_code": 0}

    def ran(out: str, err: str) -> Json:
        return [{"stdout": "first", "stderr": "", "outcome": end}, {"stdout": out, "stderr": err, "outcome": end}]

    before = build_body(
        called("c1", "shell_call"), answered("c1", ran(payload, f'{{"png": "{payload}"}}'), "shell_call_output")
    )
    after = lower_body(OPENAI_RESPONSES, before, [Shown("image/png")] * 2, NATIVE)
    both: Any = shown("c1", payload)
    both["content"] *= 2
    assert after == build_body(
        called("c1", "shell_call"),
        answered("c1", ran("[image]", f'{{"png": "{SHOWN_BELOW}"}}'), "shell_call_output"),
        both,
    )
    assert lower_body(OPENAI_RESPONSES, before, [TOLD, TOLD], NATIVE) == build_body(
        called("c1", "shell_call"), answered("c1", ran("[told]", '{"png": "[told]"}'), "shell_call_output")
    )
    assert read(OPENAI_RESPONSES, after).scene.sights[0].hoisted


THOUGHT: Json = {"type": "reasoning", "id": "r", "summary": []}
SPOKE: Json = {"type": "message", "role": "assistant", "content": "I see."}
SAID: Json = {"type": "message", "role": "user", "content": "go on"}


def remote(output: str) -> dict[str, Json]:
    return {"type": "mcp_call", "id": "m1", "server_label": "s", "name": "shot", "arguments": "{}", "output": output}


@requirement("rescue.responses", "law.4", "hoist.parallel")
@pytest.mark.parametrize(
    ("ahead", "behind"),
    [
        pytest.param([THOUGHT], [], id="the last word"),
        pytest.param([THOUGHT], [[], [SPOKE, SAID]], id="an answer"),
        pytest.param([THOUGHT], [[called("c1"), answered("c1")], [SPOKE]], id="called together with another"),
        pytest.param([called("c0")], [[THOUGHT, called("c1"), answered("c0"), answered("c1")], [THOUGHT, called("c2"),
                     answered("c2")]], id="among several"),
        pytest.param([], [[], [THOUGHT, SPOKE, SAID, called("c1"), answered("c1")]], id="an answer to the next words"),
    ],
)  # fmt: skip
def test_images_of_a_remote_call_separate_no_call_from_its_answer(ahead: list[Json], behind: list[list[Json]]) -> None:
    near, far = behind or [[], []]
    before = build_body(SAID, *ahead, remote(json.dumps({"png": LONG})), *near, *far)
    (sight,) = read(OPENAI_RESPONSES, before).scene.sights
    assert (sight.role, sight.call and sight.call.name) == ("tool", "shot")
    kept = remote(json.dumps({"png": SHOWN_BELOW}))
    assert lower_body(OPENAI_RESPONSES, before, [Shown("image/png")], NATIVE) == build_body(
        SAID, *ahead, kept, *near, shown("m1", LONG, "shot"), *far
    )


@requirement("hoist.one_marker", "rescue.responses")
def test_an_output_of_texts_has_one_marker() -> None:
    other = b64encode(RAW + b"!").decode()
    three = remote(json.dumps({"a": LONG, "b": [other], "c": SHORT}))
    after: Any = lower_body(
        OPENAI_RESPONSES, build_body(SAID, three), [Shown("image/png"), Shown("image/png"), TOLD], NATIVE
    )
    assert json.loads(after["input"][1]["output"]) == {"a": "[image]", "b": [SHOWN_BELOW], "c": "[told]"}
    lines = remote(f'{{"a": "{LONG}"}}\n{{"b": "{other}"}}')
    after = lower_body(OPENAI_RESPONSES, build_body(SAID, lines), [Shown("image/png")] * 2, NATIVE)
    assert after["input"][1]["output"] == f'{{"a": "[image]"}}\n{{"b": "{SHOWN_BELOW}"}}'


@requirement("read.nowhere_else")
@pytest.mark.parametrize("output", [None, "", "words", 7, ["x"]])
def test_a_remote_call_without_an_image_is_left_alone(output: Json) -> None:
    before = build_body(
        SAID, {**remote(""), "output": output}, answered("c1", [None, 7, {"stdout": 7}], "shell_call_output")
    )
    assert read(OPENAI_RESPONSES, before).scene.sights == ()
    assert lower_body(OPENAI_RESPONSES, before, [], NATIVE) == before


# An image that stands twice in one result

LAWS = rules()
URLSAFE = urlsafe_b64encode(RAW).decode().rstrip("=")


def fates(scene: Scene) -> list[type]:
    return [type(fate) for fate in Table().fates(scene, LAWS)]


def read_and_lower(wire: Codec, given: Json, profile: Profile) -> Any:
    return lower_body(wire, given, Table().fates(read(wire, given).scene, LAWS), profile)


@requirement("lower.once")
@pytest.mark.parametrize(
    "spelt", [LONG, URLSAFE, f"data:image/png;base64,{LONG}"], ids=["same", "URL-safe", "data URL"]
)
def test_an_image_as_block_and_as_text_is_shown_once(spelt: str) -> None:
    data = json.dumps({"png": spelt, "n": 1.5})
    kept = json.dumps({"png": "[image]", "n": 1.5})
    both: list[list[Json]] = [[part(LONG), text(data)], [text(data), part(LONG)]]
    for content in both:
        held, moved = read_and_lower(OPENAI_CHAT, chat(content), HOISTING)["messages"][1:]
        assert held["content"] == [text(kept), text(SHOWN_BELOW)]
        assert moved["content"][1:] == [part(LONG)]
    for blocks in ([block(LONG), text(data)], [text(data), block(LONG)]):
        given = body(user(result("c1", *blocks)))
        inner = [each if each["type"] == "image" else text(kept) for each in blocks]
        assert read_and_lower(ANTHROPIC, given, NATIVE) == body(user(result("c1", *inner)))


@requirement("lower.once")
def test_a_text_that_repeats_the_image_becomes_a_placeholder() -> None:
    marked: Json = {**text(LONG), "cache_control": {"type": "ephemeral"}}
    given = body(user(result("c1", block(LONG), marked)))
    word: Json = {**text("[image]"), "cache_control": {"type": "ephemeral"}}
    assert read_and_lower(ANTHROPIC, given, NATIVE) == body(user(result("c1", block(LONG), word)))


@requirement("lower.once", "rescue.structured")
def test_the_first_of_several_texts_is_shown() -> None:
    stringified = json.dumps({"content": [mcp_image(LONG)], "structuredContent": {"png": LONG, "n": 1}})
    held, moved = read_and_lower(OPENAI_CHAT, chat(stringified), HOISTING)["messages"][1:]
    kept = {"content": [text("[image]")], "structuredContent": {"png": "[image]", "n": 1}}
    assert (json.loads(held["content"][0]["text"]), held["content"][1:]) == (kept, [text(SHOWN_BELOW)])
    assert moved["content"][1:] == [part(LONG)]
    mcp: Json = {"content": [mcp_image(LONG)], "structuredContent": {"png": LONG}}
    once: Json = {"content": [mcp_image(LONG)], "structuredContent": {"png": "[image]"}}
    assert read_and_lower(MCP, mcp, NATIVE) == once
    parts = json.dumps([text("a page"), mcp_image(LONG), mcp_image(LONG)])
    held, moved = read_and_lower(OPENAI_CHAT, chat(parts), HOISTING)["messages"][1:]
    assert held["content"] == f"a page\n[image]\n{SHOWN_BELOW}"
    assert moved["content"][1:] == [part(LONG)]


@requirement("lower.once")
def test_a_repeated_image_is_shown_once_on_every_wire() -> None:
    answer: Json = {"id": "c1", "name": "v", "response": {"png": LONG}, "parts": [
        {"inlineData": {"mimeType": "image/png", "data": LONG}}]}  # fmt: skip
    given: Json = {"contents": [{"role": "user", "parts": [{"functionResponse": answer}]}]}
    once: Json = {**answer, "response": {"png": "[image]"}}  # type: ignore[dict-item]
    assert read_and_lower(GEMINI, given, NATIVE) == {
        "contents": [{"role": "user", "parts": [{"functionResponse": once}]}]
    }
    image: Json = {"inlineData": {"mimeType": "image/png", "data": LONG}}
    beside: Json = [{"functionResponse": {"id": "c1", "name": "v", "response": {"png": LONG}}}, image]
    kept: Json = [{"functionResponse": {"id": "c1", "name": "v", "response": {"png": "[image]"}}}, image]
    for profile in (NATIVE, HOISTING):
        after = read_and_lower(GEMINI, {"contents": [{"role": "user", "parts": beside}]}, profile)
        assert after == {"contents": [{"role": "user", "parts": kept}]}
    output: Json = [{"type": "input_image", "image_url": f"data:image/png;base64,{LONG}"}, {"type": "input_text",
                    "text": LONG}]  # fmt: skip
    after = read_and_lower(OPENAI_RESPONSES, build_body(called("c1"), answered("c1", output)), NATIVE)
    assert after["input"][1]["output"] == [output[0], {"type": "input_text", "text": "[image]"}]  # type: ignore[index]
    ran: Json = [{"stdout": LONG, "stderr": LONG}]
    after = read_and_lower(OPENAI_RESPONSES, build_body(answered("c1", ran, "shell_call_output")), NATIVE)
    assert after["input"][0]["output"] == [{"stdout": SHOWN_BELOW, "stderr": "[image]"}]
    value: Json = [{"type": "media", "data": LONG, "mediaType": "image/png"}, text(json.dumps({"png": LONG}))]
    brought: Json = {"type": "tool-result", "toolCallId": "c1", "toolName": "v", "output": {"type": "content",
                     "value": value}}  # fmt: skip
    after = read_and_lower(MODEL_MESSAGE, {"messages": [{"role": "tool", "content": [brought]}]}, HOISTING)
    assert [len(message["content"]) for message in after["messages"]] == [1, 2]


@requirement("lower.once", "hoist.json")
@pytest.mark.parametrize("wanted", [Shown("image/png"), TOLD], ids=["shown", "told"])
@pytest.mark.parametrize("profile", [NATIVE, HOISTING], ids=["native", "hoist"])
def test_json_with_a_repeated_image_stays_json_on_gemini(wanted: Fate, profile: Profile) -> None:
    said: dict[str, Json] = {"output": json.dumps({"a": LONG, "b": LONG})}
    given: Json = {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "v", "response": said}}]}]}
    after: Any = lower_body(GEMINI, given, [wanted, Repeated()], profile)
    response = after["contents"][0]["parts"][0]["functionResponse"]["response"]
    assert json.loads(response["output"]) == {"a": "[image]", "b": "[image]"}
    assert response.get("image") == ("[told]" if wanted is TOLD else SHOWN_BESIDE if profile is HOISTING else None)


@requirement("lower.once")
def test_images_of_other_results_and_other_images_are_shown() -> None:
    two = body(user(result("c1", block(LONG)), result("c2", text(LONG))), user(block(LONG)))
    assert fates(read(ANTHROPIC, two).scene) == [Shown, Shown, Shown]
    blocks = body(user(result("c1", block(LONG), block(LONG))))
    assert fates(read(ANTHROPIC, blocks).scene) == [Shown, Shown]
    other = b64encode(RAW + b"!").decode()
    assert fates(read(ANTHROPIC, body(user(result("c1", block(LONG), text(other))))).scene) == [Shown, Shown]
    assert fates(read(ANTHROPIC, body(user(result("c1", block(LONG), text(LONG))))).scene) == [Shown, Repeated]


# A part that stands alone where a list of parts is meant


@requirement("wire.openai_chat", "read.native")
def test_a_single_part_is_read_as_a_list() -> None:
    lone: Json = part(LONG)
    pasted = body({"role": "user", "content": lone})
    (sight,) = read(OPENAI_CHAT, pasted).scene.sights
    assert (sight.place, sight.role) == (("messages", 0, "content"), "user")
    assert lower_body(OPENAI_CHAT, pasted, [Shown()], HOISTING) == pasted
    assert lower_body(OPENAI_CHAT, pasted, [TOLD], HOISTING) == body(user(text("[told]")))
    assert lower_body(OPENAI_CHAT, pasted, [Shown("image/gif")], HOISTING) == body(user(part(LONG, "image/gif")))
    system = body({"role": "system", "content": lone})
    assert lower_body(OPENAI_CHAT, system, [TOLD], HOISTING) == body({"role": "system", "content": [text("[told]")]})


@requirement("wire.openai_chat", "hoist.after_run")
@pytest.mark.parametrize("lone", [part(LONG), text(LONG), mcp_image(LONG)], ids=["image", "text", "MCP"])
def test_a_single_part_in_a_tool_message_is_hoisted(lone: Json) -> None:
    held, moved = after(lone, Shown("image/png"))
    assert held["content"] == [text(SHOWN_BELOW)]
    assert moved["content"][1] == part(LONG)
    assert after(lone, TOLD) == [tool("c1", text("[told]"))]


@requirement("read.nowhere_else")
def test_text_and_odd_objects_are_not_images() -> None:
    odd = body({"role": "user", "content": text("hello")}, {"role": "tool", "content": {}}, {"role": "user", "content":
               {"type": "image_url", "image_url": 7}})  # fmt: skip
    scene = read(OPENAI_CHAT, odd).scene
    assert scene.sights == ()
    assert [message.opens_turn for message in scene.messages] == [True, False, False]
    assert lower_body(OPENAI_CHAT, odd, []) == odd
