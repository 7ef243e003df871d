"""The Responses wire: every place where an image can be, and how each fate is written."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import BRIDGE_TEXT, SHOWN_BELOW
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import (
    Fate,
    InlineSource,
    Json,
    JsonPath,
    LinkSource,
    Message,
    OpaqueSource,
    Refitted,
    Refused,
    Retired,
    Shown,
    Sight,
    Source,
    Told,
    ToolCall,
)
from sightline.wire import OPENAI_RESPONSES as WIRE
from tests.invariants.conversations import IMAGE, NULL, WORDS, Conversation, contents, fates
from tests.requirements import requirement
from tests.wire.bodies import LONG, SMALL, image, lower_body, read

NATIVE = Profile("up", "openai_responses", "m")
HOISTING = Profile("up", "openai_responses", "m", tool_images="hoist")
BRIDGING = Profile("up", "openai_responses", "m", tool_images="bridge")
SENTENCE = Refused("[not available]", Refusal("corrupt", "it is broken"))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAT0lEQVR42u3PMQ0AMAwEoffvf1tB"  # begins as an image does
STRING = PNG + LONG.replace("-", "+").replace("_", "/")


def picture(data: str = SMALL, mime: str = "image/png", **more: Json) -> dict[str, Json]:
    return {"type": "input_image", "image_url": f"data:{mime};base64,{data}", **more}


def text(words: str) -> dict[str, Json]:
    return {"type": "input_text", "text": words}


def build_message(role: str, *content: Json, **more: Json) -> dict[str, Json]:
    return {"type": "message", "role": role, "content": list(content), **more}


def user(*content: Json) -> dict[str, Json]:
    return build_message("user", *content)


def call(name: str, tool: str = "view") -> dict[str, Json]:
    arguments = json.dumps({"path": f"/home/me/{name}.png"})
    return {"type": "function_call", "call_id": name, "name": tool, "arguments": arguments, "id": f"fc_{name}"}


def output(name: str, *parts: Json, kind: str = "function_call_output") -> dict[str, Json]:
    return {"type": kind, "call_id": name, "output": list(parts)}


def words(name: str, output: str) -> dict[str, Json]:
    return {"type": "function_call_output", "call_id": name, "output": output}


def thought(name: str) -> dict[str, Json]:
    return {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": "gAAAAA" + "x" * 40}


def body(*items: Json, **fields: Json) -> dict[str, Json]:
    return {"model": "m", "input": list(items), **fields}


def build_call(name: str, tool: str = "view") -> ToolCall:
    return ToolCall(name, tool, f"/home/me/{name}.png")


def from_call(name: str, tool: str = "view") -> dict[str, Json]:
    return text(f"[image from the tool call {name} ({tool})]")


def png(data: str = SMALL, mime: str = "image/png") -> InlineSource:
    return InlineSource(mime, data.encode())


@requirement("read.native", "read.sources")
@pytest.mark.parametrize(
    ("part", "source"),
    [
        pytest.param(picture(), png(), id="a data URL"),
        pytest.param(picture(LONG), png(LONG), id="one that was lifted out"),
        pytest.param(picture(detail="high"), png(), id="with detail"),
        pytest.param(picture(mime="IMAGE/PNG"), png(), id="a type in capitals"),
        pytest.param({"type": "input_image", "image_url": "https://a/b.png"}, LinkSource("https://a/b.png"), id="link"),
        pytest.param({"type": "input_image", "file_id": "file-1"}, OpaqueSource("file-1"), id="file"),
        pytest.param(
            {"type": "input_image", "image_url": None, "file_id": "file-1"}, OpaqueSource("file-1"), id="null"
        ),
    ],
)
def test_an_image_is_found_in_messages_and_in_outputs(part: Json, source: Source) -> None:
    in_message = read(WIRE, body(user(part, text("what is it")))).scene.sights
    assert in_message == (Sight(("input", 0, "content", 0), source, "user"),)
    for kind, calls in (("function_call_output", "function_call"), ("custom_tool_call_output", "custom_tool_call")):
        asked: Json = {"type": calls, "call_id": "c1", "name": "view", "input": "look", "arguments": "{}"}
        found = read(WIRE, body(asked, output("c1", text("here"), None, part, kind=kind))).scene.sights
        assert found == (Sight(("input", 1, "output", 2), source, "tool", ToolCall("c1", "view"), 1),)


@requirement("read.call")
def test_an_image_has_its_call_and_messages_need_no_type() -> None:
    conversation = body({"role": "user", "content": [picture()]}, call("c1"), output("c1", picture(LONG)))
    pasted, brought = read(WIRE, conversation).scene.sights
    assert (pasted.role, pasted.message) == ("user", 0)
    assert brought == Sight(("input", 2, "output", 0), png(LONG), "tool", build_call("c1"), 2)


@requirement("hoist.json")
@pytest.mark.parametrize("kind", ["local_shell_call", "apply_patch_call", "shell_call"])
@pytest.mark.parametrize("profile", [NATIVE, HOISTING], ids=["native", "hoist"])
def test_an_output_that_must_be_text_stays_text(kind: str, profile: Profile) -> None:
    asked: Json = {"type": kind, "call_id": "c1"}
    lead = text("[image from the tool call c1]")
    moved = user(lead, picture(STRING, detail="auto"))
    for wrap in ('{{"output": "{}", "metadata": {{"exit_code": 0}}}}', "{}", '[{{"type":"image","data":"{}"}}]'):
        held: dict[str, Json] = {"type": f"{kind}_output", "call_id": "c1", "output": wrap.format(STRING)}
        conversation = body(asked, held, words("c2", "done"))
        after: Any = lower_body(WIRE, conversation, [Shown("image/png")], profile)
        kept = after["input"][1]["output"]
        assert SHOWN_BELOW in kept
        assert json.loads(kept) if wrap != "{}" else kept == SHOWN_BELOW
        assert after["input"][2:] == [words("c2", "done"), moved]
        assert lower_body(WIRE, after, [Shown()], profile) == after
        told: Any = lower_body(WIRE, conversation, [SENTENCE], profile)
        assert told["input"] == [
            asked,
            {**held, "output": kept.replace(SHOWN_BELOW, "[not available]")},
            words("c2", "done"),
        ]


def test_a_moved_image_belongs_to_the_outputs_just_before_it() -> None:
    lead = text("Attached image(s) from tool result:")
    earlier = [call("c1"), words("c1", "a"), build_message("assistant", text("now the other"))]
    (sight,) = read(WIRE, body(*earlier, call("c2"), words("c2", "b"), user(lead, picture()))).scene.sights
    assert (sight.call, sight.hoisted) == (build_call("c2"), True)
    answered = [call("c1"), words("c1", "a"), user(text("wait")), user(picture())]
    assert [s.role for s in read(WIRE, body(*answered)).scene.sights] == ["user"]


def test_the_screenshot_of_a_computer_may_be_refitted_and_never_moved_or_replaced() -> None:
    shot: dict[str, Json] = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{LONG}"}
    asked: Json = {"type": "computer_call", "call_id": "c1", "action": {"type": "screenshot"}}
    conversation = body(asked, {"type": "computer_call_output", "call_id": "c1", "output": shot})
    (sight,) = read(WIRE, conversation).scene.sights
    assert sight == Sight(("input", 1, "output"), png(LONG), "tool", ToolCall("c1"), 1, pixels_only=True)
    assert sight.with_fate(Told("words", "eye")).fate == Shown()
    for profile in (NATIVE, HOISTING):
        assert lower_body(WIRE, conversation, [Shown()], profile) == conversation
        after: Any = lower_body(WIRE, conversation, [Refitted(image(b"jpeg"), "too large")], profile)
        assert after["input"][1]["output"] == {**shot, "image_url": "data:image/jpeg;base64,anBlZw=="}
    kept: Json = {"type": "computer_screenshot", "file_id": "file-1"}
    (opaque,) = read(WIRE, body({"type": "computer_call_output", "call_id": "c1", "output": kept})).scene.sights
    assert (opaque.source, opaque.pixels_only) == (OpaqueSource("file-1"), True)


@requirement("read.nowhere_else")
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"model": "m"}, id="no input"),
        pytest.param({"model": "m", "input": f"data:image/png;base64,{PNG}"}, id="input is a text"),
        pytest.param({"model": 7, "input": [None, 7, "x", [], {}, {"type": 7}], "stream": "yes"}, id="all is odd"),
        pytest.param(body(user(None, 1, "x", [picture()])), id="parts that are none"),
        pytest.param(body(user({"type": "input_image"})), id="no address"),
        pytest.param(body(user({"type": "input_image", "image_url": {"url": "https://a/b"}})), id="an object"),
        pytest.param(body({"type": "image_generation_call", "id": "ig_1", "result": LONG}), id="made by the model"),
        pytest.param(body(build_message("assistant", {"type": "output_text", "text": PNG})), id="said by the model"),
        pytest.param(body(call("c1"), words("c1", "a text")), id="a text"),
        pytest.param(body({"type": "computer_call_output", "output": None}), id="no screenshot"),
        pytest.param(body({"type": "function_call_output", "output": 7}), id="an output of no kind"),
        pytest.param(body(user(picture(mime="application/pdf"))), id="declared as something else"),
    ],
)
def test_other_parts_are_not_sights(odd: Json) -> None:
    assert read(WIRE, odd).scene.sights == ()
    assert lower_body(WIRE, odd, []) == odd


@requirement("wire.openai_responses")
@pytest.mark.parametrize(
    ("fate", "after"),
    [
        pytest.param(None, picture(detail="low"), id="undecided"),
        pytest.param(Shown(), picture(detail="low"), id="shown"),
        pytest.param(Shown("image/webp"), picture(mime="image/webp", detail="low"), id="shown under its true type"),
        pytest.param(Refitted(image(b"j"), "large"), picture("ag==", "image/jpeg", detail="low"), id="refitted"),
        pytest.param(Told("<a fence>", "up/eye"), text("<a fence>"), id="told"),
        pytest.param(SENTENCE, text("[not available]"), id="refused"),
        pytest.param(Retired("[seen]", "old"), text("[seen]"), id="retired"),
    ],
)
@requirement("lower.responses")
def test_each_fate_is_written_in_the_place_of_the_image(fate: Fate | None, after: Json) -> None:
    for size in (SMALL, LONG):
        before, expected = (json.loads(json.dumps(p).replace(SMALL, size)) for p in (picture(detail="low"), after))
        for item in (user, lambda *parts: output("c1", *parts)):
            asked = body(call("c1"), item(text("a"), before, text("b")), store=False)
            assert lower_body(WIRE, asked, [fate], NATIVE) == body(
                call("c1"), item(text("a"), expected, text("b")), store=False
            )


@requirement("read.stringified", "rescue.media", "rescue.json")
def test_images_in_a_text_become_parts() -> None:
    parts = json.dumps([{"type": "text", "text": "here"}, {"type": "media", "data": STRING, "mediaType": "image/png"}])
    for stringified, kept in ((STRING, []), (parts, [text("here")])):
        conversation = body(call("c1"), words("c1", stringified))
        (sight,) = read(WIRE, conversation).scene.sights
        assert (sight.role, sight.call, sight.place) == ("tool", build_call("c1"), ("input", 1, "output"))
        assert lower_body(WIRE, conversation, [Shown("image/png")], NATIVE) == body(
            call("c1"), output("c1", *kept, picture(STRING, detail="auto"))
        )
        told: Any = lower_body(WIRE, conversation, [Told("[told]", "eye")], NATIVE)
        assert told["input"][1]["output"] == "\n".join([*(["here"] if kept else []), "[told]"])
    free = json.dumps({"path": "a.png", "b64": STRING})
    after: Any = lower_body(WIRE, body(call("c1"), words("c1", free)), [Shown("image/png")], HOISTING)
    kept_json, marker = after["input"][1]["output"]
    assert json.loads(kept_json["text"]) == {"path": "a.png", "b64": "[image]"}
    assert marker == text(SHOWN_BELOW)


@requirement("read.stringified")
def test_images_in_a_text_part_become_parts_beside_it() -> None:
    conversation = body(call("c1"), output("c1", text("a"), text(STRING), text("b")))
    assert lower_body(WIRE, conversation, [Shown("image/png")], NATIVE) == body(
        call("c1"), output("c1", text("a"), picture(STRING, detail="auto"), text("b"))
    )


@requirement("lower.upstream_departs", "hoist.after_run", "hoist.parallel", "hoist.named")
def test_hoisted_images_follow_the_run_in_call_order() -> None:
    conversation = body(
        thought("1"), call("c1"), thought("2"), call("c2"),
        output("c2", text("two"), picture("Mg==", detail="high")), output("c1", picture("MQ==")),
        thought("3"), call("c3"), words("c3", "done"),
    )  # fmt: skip
    assert lower_body(WIRE, conversation, [Shown(), Shown()], HOISTING) == body(
        thought("1"),
        call("c1"),
        thought("2"),
        call("c2"),
        output("c2", text("two"), text(SHOWN_BELOW)),
        output("c1", text(SHOWN_BELOW)),
        user(from_call("c1"), picture("MQ==", detail="auto"), from_call("c2"), picture("Mg==", detail="high")),
        thought("3"),
        call("c3"),
        words("c3", "done"),
    )


def test_a_bridge_comes_before_hoisted_images() -> None:
    conversation = body(call("c1"), output("c1", picture()))
    once = lower_body(WIRE, conversation, [Shown()], BRIDGING)
    assert once == body(
        call("c1"),
        output("c1", text(SHOWN_BELOW)),
        {"type": "message", "role": "assistant", "content": BRIDGE_TEXT},
        user(from_call("c1"), picture(detail="auto")),
    )
    (sight,) = read(WIRE, once).scene.sights
    assert (sight.hoisted, sight.call) == (True, build_call("c1"))
    assert lower_body(WIRE, once, [Shown()], BRIDGING) == once


@requirement("hoist.idempotent")
@pytest.mark.parametrize(
    "lead",
    [
        "Attached media from tool result:",
        "(attached media from previous tool call)",
        '<tool_result tool_name="view" tool_call_id="c1" file_id="6f0b26">',
    ],
)
def test_an_image_that_a_peer_moved_is_a_tool_s_and_stays(lead: str) -> None:
    conversation = body(call("c1"), words("c1", "Image read"), user(text(lead), picture(LONG)))
    found = read(WIRE, conversation)
    (sight,) = found.scene.sights
    assert (sight.role, sight.hoisted, sight.call) == ("tool", True, build_call("c1"))
    assert not any(message.opens_turn for message in found.scene.messages)
    assert lower_body(WIRE, conversation, [Shown()], HOISTING) == conversation


@requirement("hoist.peers")
def test_images_without_text_after_an_output_are_the_tool_s() -> None:
    answered = words("c1", "done")
    found = read(WIRE, body(call("c1"), answered, user(picture()), user(picture()))).scene.sights
    assert [(s.role, s.hoisted, s.call) for s in found] == [("tool", True, build_call("c1"))] * 2
    (pasted,) = read(WIRE, body(call("c1"), answered, user(text("mine"), picture()))).scene.sights
    assert pasted.role == "user"


def test_every_item_has_a_role() -> None:
    conversation = body(
        build_message("developer", text("rules")), {"role": "user", "content": "<environment_context>x"},
        user(text("go")), thought("1"), call("c1"), output("c1", picture()),
        build_message("assistant", {"type": "output_text", "text": "ok"}),
        {"type": "item_reference", "id": "x"}, None,
    )  # fmt: skip
    assert read(WIRE, conversation).scene.messages == (
        Message("other"),
        Message("user"),
        Message("user", opens_turn=True),
        Message("assistant"),
        Message("assistant"),
        Message("tool"),
        Message("assistant"),
        Message("other"),
        Message("other"),
    )
    assert read(WIRE, {"model": "m", "input": "hello"}).scene.messages == (Message("user", opens_turn=True),)


def test_tools_are_read_from_request_items_and_namespaces() -> None:
    space: Json = {"type": "namespace", "name": "mcp__shot", "tools": [{"type": "function", "name": "take_shot"}]}
    more: Json = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}, space]}
    scene = read(WIRE, body(more, tools=[{"type": "function", "name": "view_image"}, {"type": "web_search"}])).scene
    assert scene.tools >= {"view_image", "exec", "take_shot", "mcp__shot__take_shot"}
    asked: Json = {"type": "function_call", "call_id": "c1", "name": "take_shot", "namespace": "mcp__shot"}
    (sight,) = read(WIRE, body(asked, output("c1", picture()))).scene.sights
    assert sight.call == ToolCall("c1", "take_shot")


@pytest.mark.parametrize("space", ["mcp__sightline", "mcp__sightline__", "sightline"])
def test_our_mcp_tools_are_recognized_in_a_namespace(space: str) -> None:
    inner: list[Json] = [{"type": "function", "name": name} for name in ("analyze_image", "view_image")]
    scene = read(WIRE, body(tools=[{"type": "namespace", "name": space, "tools": inner}])).scene
    assert scene.find_own_tool("analyze_image") == f"{space.rstrip('_')}__analyze_image"
    other = read(WIRE, body(tools=[{"type": "namespace", "name": "mcp__other", "tools": inner}])).scene
    assert other.find_own_tool("analyze_image") is None


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_a_stored_conversation_is_partial(key: str) -> None:
    assert read(WIRE, body(user(picture()), **{key: "x"})).scene.is_partial
    assert not read(WIRE, body(user(picture()), **{key: None})).scene.is_partial
    assert read(WIRE, body(output("c9", picture()), **{key: "x"})).scene.sights[0].call == ToolCall("c9")


def test_the_body_says_model_and_stream() -> None:
    scene = read(WIRE, body(stream=True)).scene
    assert (scene.model, scene.stream) == ("m", True)


@requirement("route.responses")
def test_the_paths_of_responses() -> None:
    for path in ("/v1/responses", "/responses", "/v1/responses/compact"):
        endpoint = WIRE.match_path(path)
        assert endpoint is not None
        assert (endpoint.path, endpoint.counts_tokens, endpoint.model) == (path, False, None)
    counting = WIRE.match_path("/v1/responses/input_tokens")
    assert counting is not None
    assert counting.counts_tokens
    assert WIRE.match_path("/v1/responses/resp_1") is None


@st.composite
def talks(draw: st.DrawFn) -> Conversation:
    talk = Conversation()
    ids = count()

    def filled(kinds: list[str]) -> list[Json]:
        others: dict[str, Json] = {WORDS: text("words"), NULL: None}
        return [picture(talk.payload()) if kind == IMAGE else others[kind] for kind in kinds]

    for kind in draw(st.lists(st.sampled_from(["user", "assistant", "calls", "developer"]), max_size=6)):
        if kind in ("user", "developer"):
            talk.messages.append(build_message(kind, *filled(draw(contents))))
        elif kind == "assistant":
            talk.messages.append({"role": "assistant", "content": "words"})
        else:
            calls = [f"call_{next(ids)}" for _ in range(draw(st.integers(1, 3)))]
            for name in calls:
                talk.messages += [thought(name), call(name)] if draw(st.booleans()) else [call(name)]
            for name in draw(st.permutations(calls)):
                parts = draw(st.none() | contents)
                talk.messages.append(words(name, "words") if parts is None else output(name, *filled(parts)))
    return talk


def payloads(value: Any) -> list[str]:
    """Return the payloads of all images, in reading order."""
    match value:
        case {"type": "input_image", "image_url": str(url)}:
            return [url.partition(",")[2]]
        case dict():
            return [found for each in value.values() for found in payloads(each)]
        case list():
            return [found for each in value for found in payloads(each)]
        case _:
            return []


def shown(talk: Conversation, met: list[Fate]) -> list[str]:
    kept = zip(talk.payloads, met, strict=True)
    return ["cmVmaXR0ZWQ=" if isinstance(f, Refitted) else p for p, f in kept if isinstance(f, Shown | Refitted)]


def skeleton(items: list[Any]) -> list[Any]:
    """Return who speaks, calls and answers, in order, without the content."""
    return [
        {k: v for k, v in item.items() if k not in ("content", "output")}
        for item in items
        if "[image from the tool call" not in json.dumps(item)
    ]


@pytest.mark.parametrize("profile", [NATIVE, HOISTING], ids=["native", "hoist"])
@requirement("lower.responses")
@given(talk=talks(), data=st.data())
def test_a_conversation_keeps_its_content(profile: Profile, talk: Conversation, data: st.DataObject) -> None:
    met = data.draw(fates(len(talk.payloads)))
    after: Any = lower_body(WIRE, body(*talk.messages), met, profile)
    assert skeleton(after["input"]) == skeleton(talk.messages)
    found = payloads(after)
    assert sorted(found) == sorted(shown(talk, met))
    if profile is NATIVE:
        assert found == shown(talk, met)
    else:
        assert not any(payloads(item) for item in after["input"] if item.get("type") == "function_call_output")
    for before, item in zip(after["input"], after["input"][1:], strict=False):
        if "[image from the tool call" in json.dumps(item):
            assert before.get("type") == "function_call_output"
    again = read(WIRE, after)
    assert lower_body(WIRE, after, [Shown()] * len(again.scene.sights), profile) == after


def test_paths_of_sights_are_those_of_the_body() -> None:
    place: JsonPath = ("input", 1, "output", 0)
    assert [sight.place for sight in read(WIRE, body(call("c"), output("c", picture()))).scene.sights] == [place]
