"""The Gemini wire: every place where an image can be, in either spelling, and how each fate is written."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import SHOWN_BESIDE
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
from sightline.wire import GEMINI as WIRE
from sightline.wire.json_document import lift
from sightline.wire.scene_reader import Endpoint
from tests.invariants.conversations import IMAGE, NULL, WORDS, Conversation, contents, fates
from tests.requirements import requirement
from tests.wire.bodies import LONG, SMALL, TOKEN, image, lower_body, read

GEMINI3 = Profile("up", "gemini", "gemini-3-pro")
GEMINI25 = Profile("up", "gemini", "gemini-2.5-pro", tool_images="hoist")
PROFILES = pytest.mark.parametrize("profile", [GEMINI3, GEMINI25], ids=["3", "2.5"])
SENTENCE = Refused("[not available]", Refusal("corrupt", "it is broken"))
TOLD = Told("[told]", "eye")
WHOLE: dict[str, Any] = {"$ref": "a.png"}
UPLOADED = "https://generativelanguage.googleapis.com/v1beta/files/x"
# What begins as an image does, in letters that stand in both alphabets.
STRING = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAT0lEQVR42u3PMQ0AMAwEoffvf1tB" + "A" * 20_000


def picture(data: str = SMALL, mime: str = "image/png", **more: Json) -> dict[str, Json]:
    return {"inlineData": {"mimeType": mime, "data": data, **more}}


def snake(data: str = SMALL, mime: str = "image/png", **more: Json) -> dict[str, Json]:
    return {"inline_data": {"mime_type": mime, "data": data, **more}}


def text(words: str) -> dict[str, Json]:
    return {"text": words}


def user(*parts: Json) -> dict[str, Json]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> dict[str, Json]:
    return {"role": "model", "parts": list(parts)}


def call(name: str | None, tool: str = "view", file: str = "a") -> dict[str, Json]:
    args: Json = {"file_path": f"/home/me/{file}.png"}
    made: dict[str, Json] = {"name": tool, "args": args} if name is None else {"id": name, "name": tool, "args": args}
    return {"functionCall": made, "thoughtSignature": "c2tpcA=="}


def answer(name: str | None, *parts: Json, tool: str = "view", **response: Json) -> dict[str, Json]:
    given: dict[str, Json] = {"name": tool, "response": response}
    given |= {} if name is None else {"id": name}
    return {"functionResponse": given | ({"parts": list(parts)} if parts else {})}


def body(*contents: Json, **fields: Json) -> dict[str, Json]:
    return {"contents": list(contents), **fields}


def build_call(name: str, tool: str = "view", file: str = "a") -> ToolCall:
    return ToolCall(name, tool, f"/home/me/{file}.png")


def from_call(name: str, tool: str = "view") -> dict[str, Json]:
    return text(f"[image from the tool call {name} ({tool})]")


def png(data: str = SMALL, mime: str = "image/png") -> InlineSource:
    return InlineSource(mime, data.encode())


def file(uri: str, mime: str = "image/png") -> dict[str, Json]:
    return {"fileData": {"fileUri": uri, "mimeType": mime}}


@requirement("read.native", "read.sources")
@pytest.mark.parametrize(
    ("part", "source"),
    [
        pytest.param(picture(), png(), id="camelCase"),
        pytest.param(snake(), png(), id="snake_case"),
        pytest.param({"inlineData": {"data": SMALL, "mime_type": "image/png"}}, png(), id="both in one block"),
        pytest.param({"inline_data": {"data": LONG, "mimeType": "IMAGE/PNG"}}, png(LONG), id="lifted, URL-safe"),
        pytest.param(picture(displayName="a.png"), png(), id="with a name"),
        pytest.param({"inlineData": {"data": STRING}}, png(STRING, ""), id="without a type"),
        pytest.param(file("https://a.example/b.png"), LinkSource("https://a.example/b.png"), id="an address"),
        pytest.param(file("gs://bucket/b.png"), OpaqueSource("gs://bucket/b.png"), id="a bucket"),
        pytest.param(file("https://[/b.png"), OpaqueSource("https://[/b.png"), id="no address at all"),
        pytest.param(
            {"file_data": {"file_uri": UPLOADED, "mime_type": "image/png"}},
            OpaqueSource(UPLOADED),
            id="an uploaded file",
        ),
    ],
)  # fmt: skip
def test_an_image_is_found_in_contents_and_in_function_responses(part: Json, source: Source) -> None:
    assert read(WIRE, body(user(part, text("what is it")))).scene.sights == (
        Sight(("contents", 0, "parts", 0), source, "user"),
    )
    found = read(WIRE, body(model(call("c1")), user(answer("c1", part, output="here")))).scene.sights
    place: JsonPath = ("contents", 1, "parts", 0, "functionResponse", "parts", 0)
    assert found == (Sight(place, source, "tool", build_call("c1"), 1),)


@requirement("read.call")
def test_an_image_beside_a_function_response_is_the_tool_s_until_a_text() -> None:
    conversation = body(
        model(call("c1"), call("c2", file="b")),
        user(
            answer("c1", output="ok"), picture("MQ=="), answer("c2", output="ok"), picture("Mg=="),
            text("and look at mine"), picture("Mw=="),
        ),
    )  # fmt: skip
    scene = read(WIRE, conversation).scene
    assert [(s.role, s.hoisted, s.call) for s in scene.sights] == [
        ("tool", True, build_call("c1")),
        ("tool", True, build_call("c2", file="b")),
        ("user", False, None),
    ]
    assert scene.messages == (Message("assistant"), Message("tool", opens_turn=True))
    for profile in (GEMINI3, GEMINI25):
        assert lower_body(WIRE, conversation, [Shown()] * 3, profile) == conversation


def test_an_image_deep_in_a_response_is_found() -> None:
    deep: Json = STRING
    for _ in range(5):
        deep = [{"a": deep}]
    (sight,) = read(WIRE, body(model(call("c1")), user(answer("c1", output=deep)))).scene.sights
    assert sight.place[-10:] == (0, "a") * 5


@PROFILES
@pytest.mark.parametrize("fate", [Shown(), TOLD, SENTENCE], ids=lambda fate: type(fate).__name__)
def test_numbers_beside_an_image_stay_exact(fate: Fate, profile: Profile) -> None:
    numbers: dict[str, Json] = {"wei": 1234567890123456789012345, "least": -(10**19), "id": 2**64 - 1, "half": 0.5}
    given: Json = {"id": "c1", "name": "view", "response": numbers, "parts": [picture()]}
    conversation = body(model(call("c1")), user({"functionResponse": given}))
    after: Any = lower_body(WIRE, conversation, [fate], profile)
    said = after["contents"][1]["parts"][0]["functionResponse"]["response"]
    assert {key: (type(said[key]), said[key]) for key in numbers} == {
        key: (type(number), number) for key, number in numbers.items()
    }


@requirement("hoist.idempotent")
@pytest.mark.parametrize("lead", ["Tool result image:", '<tool_result tool_call_id="c1">'])
def test_an_image_that_a_peer_moved_is_the_tool_s(lead: str) -> None:
    conversation = body(model(call("c1")), user(answer("c1", output="ok")), user(text(lead), picture(LONG)))
    found = read(WIRE, conversation)
    (sight,) = found.scene.sights
    assert (sight.role, sight.hoisted, sight.call) == ("tool", True, build_call("c1"))
    assert not any(message.opens_turn for message in found.scene.messages)
    assert lower_body(WIRE, conversation, [Shown()], GEMINI25) == conversation


@requirement("read.call")
def test_calls_without_an_id_are_paired_by_name_and_order() -> None:
    conversation = body(
        model(call(None, file="a"), call(None, tool="shot"), call(None, file="b")),
        user(answer(None, picture("MQ==")), answer(None, picture("Mg==")), answer(None, picture("Mw=="), tool="shot")),
        model(call(None, file="c")),
        {"role": "function", "parts": [answer(None, picture("NA=="))]},
        user(answer(None, picture("NQ=="))),
    )
    assert [sight.call for sight in read(WIRE, conversation).scene.sights] == [
        build_call("view#1"), build_call("view#2", file="b"), build_call("shot#1", "shot"),
        build_call("view#3", file="c"), ToolCall("", "view"),
    ]  # fmt: skip


def test_an_unanswered_call_does_not_take_a_later_answer() -> None:
    conversation = body(
        model(call(None, file="a")), user(text("no, the other")), model(call(None, file="b")), model(text("hm")),
        user(answer(None, picture())),
    )  # fmt: skip
    assert [sight.call for sight in read(WIRE, conversation).scene.sights] == [build_call("view#2", file="b")]


def test_a_response_to_an_unknown_call_keeps_its_id_and_name() -> None:
    (sight,) = read(WIRE, body(user(answer("x__fc-1", picture())))).scene.sights
    assert sight.call == ToolCall("x__fc-1", "view")


@requirement("read.nowhere_else")
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({}, id="no contents"),
        pytest.param({"contents": "look"}, id="a text"),
        pytest.param(body(None, 7, "x", {}, {"parts": None}, {"parts": [None, 7, "x", []]}), id="all is odd"),
        pytest.param(body(model(picture())), id="an image that the model made"),
        pytest.param(body(user(picture(mime="audio/wav"), picture(mime="video/mp4"), picture(mime="application/pdf"))),
                     id="other media"),
        pytest.param(body(user({"inlineData": {"data": "UklGRiQ=" * 40}})), id="something without a type"),
        pytest.param(body(user({"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}})), id="a video"),
        pytest.param(body(user({"inlineData": None}, {"inlineData": {"data": 7}}, {"fileData": 1})), id="no data"),
        pytest.param(body(user({"functionResponse": None}, {"functionResponse": {"response": {"output": "x"}}})),
                     id="words"),
        pytest.param(body(model({"functionCall": {"args": {"image": STRING}}}, {"functionCall": 7})), id="arguments"),
    ],
)  # fmt: skip
def test_other_parts_are_not_sights(odd: Json) -> None:
    assert read(WIRE, odd).scene.sights == ()
    assert lower_body(WIRE, odd, []) == odd


@requirement("wire.gemini", "lower.gemini3")
@pytest.mark.parametrize(
    ("fate", "mime", "data"),
    [(None, "image/png", LONG), (Shown(), "image/png", LONG), (Shown("image/webp"), "image/webp", LONG),
     (Refitted(image(b"jpeg"), "too large"), "image/jpeg", "anBlZw==")],
)  # fmt: skip
def test_pixels_stay_in_place_in_their_own_spelling(fate: Fate | None, mime: str, data: str) -> None:
    more: dict[str, Any] = {"displayName": "a.png"}
    for block in (picture, snake):
        before = user(block(LONG), {**block(LONG, **more), "mediaResolution": {"level": "HIGH"}})
        after = user(block(data, mime), {**block(data, mime, **more), "mediaResolution": {"level": "HIGH"}})
        assert lower_body(WIRE, body(before), [fate, fate], GEMINI3) == body(after)
        held = body(model(call("c1")), user(answer("c1", block(LONG, **more), image={"$ref": "a.png"})))
        shown = body(model(call("c1")), user(answer("c1", block(data, mime, **more), image={"$ref": "a.png"})))
        assert lower_body(WIRE, held, [fate], GEMINI3) == shown
        beside = body(user(answer("c1", output="ok"), block(LONG)))
        assert lower_body(WIRE, beside, [fate], GEMINI25) == body(user(answer("c1", output="ok"), block(data, mime)))


@requirement("wire.gemini")
@PROFILES
@pytest.mark.parametrize("fate", [TOLD, SENTENCE, Retired("[seen]", "old")])
def test_words_become_a_part_or_go_into_the_response(fate: Told | Refused | Retired, profile: Profile) -> None:
    pasted = body(user(text("a"), picture(LONG), text("b")))
    assert lower_body(WIRE, pasted, [fate], profile) == body(user(text("a"), text(fate.text), text("b")))
    beside = body(user(answer("c1", output="ok"), picture(LONG)))
    assert lower_body(WIRE, beside, [fate], profile) == body(user(answer("c1", output="ok"), text(fate.text)))
    held = body(user(answer("c1", picture(LONG), output="ok")))
    assert lower_body(WIRE, held, [fate], profile) == body(user(answer("c1", output="ok", image=fate.text)))
    taken = body(user(answer("c1", picture(LONG), snake(), image="mine")))
    assert lower_body(WIRE, taken, [fate, fate], profile) == body(
        user(answer("c1", image="mine", image_=[fate.text, fate.text]))
    )
    bare: Json = {"functionResponse": {"name": "view", "parts": [picture()]}}
    assert lower_body(WIRE, body(user(bare)), [fate], profile) == body(user(answer(None, image=fate.text)))


@requirement("wire.gemini")
def test_references_to_removed_images_are_removed() -> None:
    held = body(
        user(answer("c1", picture("MQ==", displayName="a"), snake("Mg==", display_name="b"), seen=[{"$ref": "a"}],
                    other={"$ref": "b"}, third={"$ref": "a", "more": 1}))
    )  # fmt: skip
    assert lower_body(WIRE, held, [TOLD, Shown()], GEMINI3) == body(
        user(answer("c1", snake("Mg==", display_name="b"), seen=["[told]"], other={"$ref": "b"},
                    third={"$ref": "a", "more": 1}))
    )  # fmt: skip
    assert lower_body(WIRE, held, [TOLD, Shown()], GEMINI25) == body(
        user(
            answer("c1", seen=["[told]"], other="[image]", third={"$ref": "a", "more": 1}, image=SHOWN_BESIDE),
            from_call("c1"),
            snake("Mg=="),
        )
    )


@requirement("wire.gemini")
def test_a_response_that_is_nothing_but_a_reference_becomes_words_about_it() -> None:
    def held(*parts: Json, **response: Any) -> dict[str, Json]:
        return body(model(call("c1")), user(answer("c1", *parts, **response)))

    whole = held(picture("MQ==", displayName="a.png"), **WHOLE)
    moved = [from_call("c1"), picture("MQ==")]
    expected = body(model(call("c1")), user(answer("c1", image=SHOWN_BESIDE), *moved))
    assert lower_body(WIRE, whole, [Shown()], GEMINI25) == expected
    for profile in (GEMINI3, GEMINI25):
        assert lower_body(WIRE, whole, [TOLD], profile) == held(image="[told]")
    assert lower_body(WIRE, whole, [Shown("image/webp")], GEMINI3) == held(
        picture("MQ==", "image/webp", displayName="a.png"), **WHOLE
    )


@requirement("wire.gemini")
@PROFILES
def test_words_about_parts_of_one_name_replace_its_reference(profile: Profile) -> None:
    named = [picture(data, displayName="a") for data in ("MQ==", "Mg==")]
    conversation = body(user(answer("c1", *named, seen={"$ref": "a"})))
    after = lower_body(WIRE, conversation, [TOLD, SENTENCE], profile)
    assert after == body(user(answer("c1", seen="[told]\n[not available]")))
    reference: dict[str, Any] = {"$ref": "a"}
    whole = body(user(answer("c1", *named, **reference)))
    assert lower_body(WIRE, whole, [TOLD, SENTENCE], profile) == body(
        user(answer("c1", image=["[told]", "[not available]"]))
    )


@PROFILES
def test_a_name_that_is_an_image_itself_spoils_nothing(profile: Profile) -> None:
    name = STRING[:400]  # too short to be lifted out
    responses: list[dict[str, Any]] = [{"$ref": name}, {"a": {"$ref": name}}]
    for response in responses:
        conversation = body(user(answer("c1", picture(displayName=name), **response)))
        assert len(read(WIRE, conversation).scene.sights) == 2
        assert name not in json.dumps(lower_body(WIRE, conversation, [TOLD, TOLD], profile))


def test_repeated_parts_are_removed_twice() -> None:
    again = json.dumps([picture()])
    written = (
        f'{{"contents":[{{"role":"user","parts":[{{"functionResponse":{{"parts":{again},"name":"v",'
        f'"response":{{"output":"ok"}},"parts":{again}}}}}]}}]}}'
    )
    document = lift(written.encode(), TOKEN)
    assert document is not None
    scene = WIRE.read(document.tree, document)
    met = replace(scene, sights=tuple(sight.with_fate(TOLD) for sight in scene.sights))
    after = b"".join(document.splice(WIRE.lower(met, document.tree, GEMINI3))).decode()
    assert SMALL not in after
    assert json.loads(after) == body(user(answer(None, output="ok", image="[told]", tool="v")))


@requirement("lower.gemini25", "hoist.one_marker", "hoist.named", "hoist.kept")
def test_gemini_2_5_gets_an_image_beside_its_response() -> None:
    first, second = answer("c1", picture(LONG), {"new": 1}, picture("MQ=="), output="a"), answer("c2", output="b")
    conversation = body(model(call("c1"), call("c2")), user(first, second, text("go on")), tools=[])
    once = lower_body(WIRE, conversation, [Shown(), Shown("image/gif")], GEMINI25)
    assert once == body(
        model(call("c1"), call("c2")),
        user(
            answer("c1", {"new": 1}, output="a", image=SHOWN_BESIDE),
            from_call("c1"),
            picture(LONG),
            from_call("c1"),
            picture("MQ==", "image/gif"),
            second,
            text("go on"),
        ),
        tools=[],
    )
    again = read(WIRE, once)
    assert [(s.hoisted, s.call) for s in again.scene.sights] == [(True, build_call("c1"))] * 2
    assert lower_body(WIRE, once, [Shown(), Shown()], GEMINI25) == once


def test_snake_case_stays_snake_case() -> None:
    response: Json = {"name": "view", "response": {"content": STRING}, "parts": [snake()]}
    conversation = body(user({"function_response": response}))
    after: Json = {"name": "view", "response": {"content": "[image]"}, "parts": [snake(), snake(STRING)]}
    fates: list[Fate | None] = [Shown("image/png"), Shown()]
    assert lower_body(WIRE, conversation, fates, GEMINI3) == body(user({"function_response": after}))


@requirement("read.stringified", "rescue.json", "rescue.mcp")
@pytest.mark.parametrize(
    ("said", "kept", "told"),
    [
        pytest.param({"output": STRING}, {"output": "[image]"}, {"output": "[told]"}, id="a text that is nothing else"),
        pytest.param({"a": [{"b64": f"data:image/png;base64,{STRING}"}]}, {"a": [{"b64": "[image]"}]},
                     {"a": [{"b64": "[told]"}]}, id="a leaf"),
        pytest.param({"output": json.dumps({"path": "a.png", "b64": STRING})},
                     {"output": '{"path": "a.png", "b64": "[image]"}'},
                     {"output": '{"path": "a.png", "b64": "[image]"}', "image": "[told]"}, id="JSON in a text"),
        pytest.param({"content": json.dumps([{"type": "text", "text": "here"},
                                             {"type": "image", "data": STRING, "mimeType": "image/png"}])},
                     {"content": "here\n[image]"}, {"content": "here\n[told]"}, id="parts in a text"),
    ],
)  # fmt: skip
def test_images_are_extracted_from_the_texts_of_a_response(
    said: dict[str, Any], kept: dict[str, Any], told: dict[str, Any]
) -> None:
    conversation = body(model(call("c1")), user(answer("c1", **said)))
    (sight,) = read(WIRE, conversation).scene.sights
    assert (sight.role, sight.call, sight.hoisted) == ("tool", build_call("c1"), False)
    head = model(call("c1"))
    fate = Shown("image/png")
    assert lower_body(WIRE, conversation, [fate], GEMINI3) == body(head, user(answer("c1", picture(STRING), **kept)))
    assert lower_body(WIRE, conversation, [fate], GEMINI25) == body(
        head, user(answer("c1", **kept, image=SHOWN_BESIDE), from_call("c1"), picture(STRING))
    )
    assert lower_body(WIRE, conversation, [TOLD], GEMINI3) == body(head, user(answer("c1", **told)))


def test_turns_begin_with_a_person_s_words() -> None:
    conversation = body(
        user(text("go")), model(call("c1")), user(answer("c1", output="ok")), user(text("<system-reminder>x")),
        user(picture()), {"parts": [text("and now?")]},
    )  # fmt: skip
    assert [(m.role, m.opens_turn) for m in read(WIRE, conversation).scene.messages] == [
        ("user", True), ("assistant", False), ("tool", False), ("user", False), ("user", False), ("user", True),
    ]  # fmt: skip


def test_tools_model_and_cached_content_are_read() -> None:
    declared: Json = [{"functionDeclarations": [{"name": "a"}]}, {"function_declarations": [{"name": "b"}, None]}]
    scene = read(WIRE, body(user(picture()), tools=declared, model="models/gemini-x")).scene
    assert (scene.tools, scene.model, scene.is_partial) == (frozenset({"a", "b"}), "gemini-x", False)
    for key in ("cachedContent", "cached_content"):
        assert read(WIRE, body(user(picture()), **{key: "cachedContents/1"})).scene.is_partial


@requirement("route.count")
@pytest.mark.parametrize("key", ["generateContentRequest", "generate_content_request"])
def test_a_count_may_contain_a_whole_request(key: str) -> None:
    inner = body(user(answer("c1", picture(LONG), output="a")), model="models/gemini-x")
    found = read(WIRE, {key: inner})
    (sight,) = found.scene.sights
    assert sight.place == (key, "contents", 0, "parts", 0, "functionResponse", "parts", 0)
    assert (found.scene.model, found.scene.is_partial) == ("gemini-x", True)
    after: Any = lower_body(WIRE, {key: inner}, [TOLD], GEMINI3)
    assert after == {key: {**inner, "contents": [user(answer("c1", output="a", image="[told]"))]}}


@requirement("route.gemini")
@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/v1beta/models/gemini-3:generateContent", Endpoint("", False, "gemini-3", False)),
        ("/v1/models/gemini-3:streamGenerateContent", Endpoint("", False, "gemini-3", True)),
        ("/v1beta/models/gemini-3%3AcountTokens", Endpoint("", True, "gemini-3", False)),
        ("/v1beta/tunedModels/mine-1:generateContent", Endpoint("", False, "mine-1", False)),
        ("/v1beta1/publishers/google/models/gemini-3:generateContent", Endpoint("", False, "gemini-3", False)),
    ],
)
def test_the_path_says_model_and_stream(path: str, endpoint: Endpoint) -> None:
    found = WIRE.match_path(path)
    assert found == Endpoint(path, endpoint.counts_tokens, endpoint.model, endpoint.stream)
    scene = found.apply_to(read(WIRE, body()).scene)
    assert (scene.model, scene.stream) == (endpoint.model, endpoint.stream)


@requirement("route.gemini")
def test_a_path_without_a_version_gets_one() -> None:
    bare = WIRE.match_path("/models/gemini-3:generateContent")
    assert bare == Endpoint("/v1beta/models/gemini-3:generateContent", False, "gemini-3", False)
    for path in ("/v1beta/models", "/v1beta/models/gemini-3", "/v1beta/models/x:embedContent", "/v1/files/x:upload"):
        assert WIRE.match_path(path) is None


@st.composite
def talks(draw: st.DrawFn) -> Conversation:
    talk = Conversation()
    ids = count()
    blocks = st.sampled_from([picture, snake])

    def filled(kinds: list[str]) -> list[Json]:
        others: dict[str, Json] = {WORDS: text("words"), NULL: None}
        return [draw(blocks)(talk.payload()) if kind == IMAGE else others[kind] for kind in kinds]

    for kind in draw(st.lists(st.sampled_from(["user", "model", "calls"]), max_size=6)):
        if kind == "user":
            talk.messages.append(user(*filled(draw(contents))))
        elif kind == "model":
            talk.messages.append(model(text("words")))
        else:
            calls = [f"c{next(ids)}" for _ in range(draw(st.integers(1, 3)))]
            talk.messages.append(model(*map(call, calls)))
            parts: list[Json] = []
            for name in draw(st.permutations(calls)):
                inside = filled([IMAGE] * draw(st.integers(0, 2)))
                parts += [answer(name, *inside, output="words"), *filled(draw(contents))]
            talk.messages.append(user(*parts))
    return talk


def payloads(value: Any) -> list[str]:
    match value:
        case {"inlineData": {"data": str(data)}} | {"inline_data": {"data": str(data)}}:
            return [data]
        case dict():
            return [found for each in value.values() for found in payloads(each)]
        case list():
            return [found for each in value for found in payloads(each)]
        case _:
            return []


def named(contents: list[Any], kind: str) -> list[list[Any]]:
    """Return the ids of the calls, or of the answers, of each content."""
    return [[p[kind]["id"] for p in c["parts"] if isinstance(p, dict) and kind in p] for c in contents]


@PROFILES
@requirement("lower.gemini3", "lower.gemini25")
@given(talk=talks(), data=st.data())
def test_a_conversation_keeps_its_content(profile: Profile, talk: Conversation, data: st.DataObject) -> None:
    met = data.draw(fates(len(talk.payloads)))
    after: Any = lower_body(WIRE, body(*talk.messages), met, profile)
    assert [c["role"] for c in after["contents"]] == [c["role"] for c in talk.messages]
    for kind in ("functionCall", "functionResponse"):
        assert named(after["contents"], kind) == named(talk.messages, kind)
    assert [c for c in after["contents"] if c["role"] == "model"] == [c for c in talk.messages if c["role"] == "model"]
    kept = zip(talk.payloads, met, strict=True)
    shown = ["cmVmaXR0ZWQ=" if isinstance(f, Refitted) else p for p, f in kept if isinstance(f, Shown | Refitted)]
    assert payloads(after) == shown
    inside = [p for c in after["contents"] for p in c["parts"] if isinstance(p, dict) and "functionResponse" in p]
    assert profile is GEMINI3 or not payloads(inside)
    again = read(WIRE, after)
    assert lower_body(WIRE, after, [Shown()] * len(again.scene.sights), profile) == after
