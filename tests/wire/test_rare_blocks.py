"""Images in the rarer blocks of the wires: documents of blocks, search results, remote tools, files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sightline.model.labels import SHOWN_BELOW
from sightline.model.profile import Profile
from sightline.model.scene import Fate, Json, Refitted, Shown, Told, ToolCall
from sightline.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from tests.requirements import requirement
from tests.wire.bodies import MARK, block, body, calling, image, lower_body, read, result, text, tool, user
from tests.wire.test_text_images import LIFTED, SHORT

NATIVE = Profile("up", "anthropic", "m")
HOISTING = Profile("up", "anthropic", "m", tool_images="hoist")
TOLD = Told("[told]", "eye")
SHOWN = Shown("image/png")
REFITTED = Refitted(image(b"jpeg"), "too large")
EITHER = pytest.mark.parametrize("profile", [NATIVE, HOISTING], ids=["native", "hoist"])


def after(given: Json, *fates: Fate, profile: Profile = NATIVE) -> Any:
    found: Any = lower_body(ANTHROPIC, given, fates, profile)
    return found["messages"]


def document(*content: Json) -> dict[str, Json]:
    return {"type": "document", "source": {"type": "content", "content": list(content)}, "title": "a page"}


def found(words: str) -> dict[str, Json]:
    return {"type": "search_result", "source": "https://a", "title": "t", "content": [text("first"), text(words)]}


def moved(call: str, *images: Json) -> list[Json]:
    lead = text(f"[image from the tool call {call}]")
    return [each for one in images for each in (lead, one)]


@requirement("read.native", "wire.anthropic")
@EITHER
def test_images_of_a_document_of_blocks_are_sights(profile: Profile) -> None:
    given = body(user(text("look"), document(text("p. 1"), block(LIFTED), block(SHORT)), text("and?")))
    assert [sight.role for sight in read(ANTHROPIC, given).scene.sights] == ["user", "user"]
    assert after(given, Shown(), Shown(), profile=profile) == given["messages"]
    kept = document(text("p. 1"), text("[told]"), block("anBlZw==", "image/jpeg"))
    assert after(given, TOLD, REFITTED, profile=profile) == [user(text("look"), kept, text("and?"))]


@requirement("read.native", "wire.anthropic", "hoist.one_marker")
def test_images_of_a_tool_s_document_are_the_tool_s() -> None:
    held = document(text("p. 1"), block(LIFTED), block(SHORT))
    given = body(user(result("t", text("read"), {**held, "cache_control": MARK}, block(SHORT))))
    assert [sight.call for sight in read(ANTHROPIC, given).scene.sights] == [ToolCall("t")] * 3
    assert after(given, Shown(), Shown(), Shown()) == given["messages"]
    told = {**document(text("p. 1"), text("[told]"), block(SHORT)), "cache_control": MARK}
    assert after(given, TOLD, Shown(), Shown()) == [user(result("t", text("read"), told, block(SHORT)))]
    gone = {**document(text("p. 1"), text("[told]"), text("[image]")), "cache_control": MARK}
    assert after(given, TOLD, Shown(), Shown(), profile=HOISTING) == [
        user(result("t", text("read"), gone, text(SHOWN_BELOW)), *moved("t", block(SHORT), block(SHORT)))
    ]


def test_a_document_beside_a_split_text_keeps_its_images() -> None:
    given = body(user(result("t", text(json.dumps({"png": SHORT})), document(block(LIFTED), text("p. 1")))))
    assert after(given, SHOWN, Shown()) == [
        user(result("t", text('{"png": "[image]"}'), block(SHORT), document(block(LIFTED), text("p. 1"))))
    ]


@requirement("law.4", "read.stringified")
@EITHER
@pytest.mark.parametrize("payload", [SHORT, LIFTED], ids=["short", "lifted out"])
def test_a_search_result_can_contain_only_text(payload: str, profile: Profile) -> None:
    words = json.dumps({"n": 1, "png": payload})
    inside = body(user(result("t", found(words)), text("go on")))
    kept = found(json.dumps({"n": 1, "png": "[image]"}))
    assert after(inside, SHOWN, profile=profile) == [
        user(result("t", kept, text(SHOWN_BELOW)), *moved("t", block(payload)), text("go on"))
    ]
    told = found(json.dumps({"n": 1, "png": "[told]"}))
    assert after(inside, TOLD, profile=profile) == [user(result("t", told), text("go on"))]
    alone = body(user(text("look"), found(words), text("go on")))
    assert after(alone, TOLD, profile=profile) == [user(text("look"), told, text("go on"))]
    marked = found(json.dumps({"n": 1, "png": SHOWN_BELOW}))
    assert after(alone, SHOWN, profile=profile) == [user(text("look"), marked, block(payload), text("go on"))]


@requirement("read.nowhere_else")
def test_odd_documents_and_search_results_have_no_image() -> None:
    odd: list[Json] = [
        {"type": "document"}, {"type": "document", "source": {"type": "content", "content": "words"}},
        {"type": "document", "source": {"type": "other", "content": [block(SHORT)]}},
        {"type": "search_result"}, {"type": "search_result", "content": [None, 7, {"type": "text", "text": 7}]},
    ]  # fmt: skip
    whole: Json = {"type": "search_result", "content": json.dumps({"png": SHORT})}
    given = body(user(*odd, result("t", *odd, whole)))
    assert read(ANTHROPIC, given).scene.sights == ()
    assert after(given) == given["messages"]


def remote(content: Json) -> dict[str, Json]:
    used: Json = {"type": "mcp_tool_use", "id": "m", "name": "shot", "server_name": "s", "input": {}}
    return {"role": "assistant", "content": [used, {"type": "mcp_tool_result", "tool_use_id": "m", "content": content}]}


@requirement("law.4", "read.stringified")
@EITHER
def test_images_of_a_remote_tool_go_into_the_next_message(profile: Profile) -> None:
    contents: list[tuple[Json, Json]] = [
        (json.dumps({"png": SHORT}), json.dumps({"png": SHOWN_BELOW})),
        ([text("a page"), text(json.dumps({"png": SHORT}))], [text("a page"), text(json.dumps({"png": SHOWN_BELOW}))]),
    ]
    for content, kept in contents:
        spoken: list[Json] = ["go on", [text("go on")]]
        for said in spoken:
            given = body(user(text("x")), remote(content), {"role": "user", "content": said})
            assert after(given, SHOWN, profile=profile)[1:] == [
                remote(kept), user(*moved("m", block(SHORT)), text("go on"))
            ]  # fmt: skip
        told = json.loads(json.dumps(remote(kept)).replace(SHOWN_BELOW, "[told]"))
        assert after(given, TOLD, profile=profile)[1:] == [told, user(text("go on"))]
        results = body(remote(content), user(result("t", text("ok")), text("go on")))
        assert after(results, SHOWN, profile=profile)[1:] == [
            user(result("t", text("ok")), *moved("m", block(SHORT)), text("go on"))
        ]
        nobody: list[list[Json]] = [[], [{"role": "user", "content": None}], [{"role": "user", "content": " "}], [None]]
        nobody.append([remote("x")])
        for last in nobody:
            assert read(ANTHROPIC, body(user(text("x")), remote(content), *last)).scene.sights == ()


@requirement("read.native", "wire.openai_chat")
def test_an_image_file_is_a_sight_on_chat() -> None:
    def file(data: str, mime: str = "image/png") -> dict[str, Json]:
        return {"type": "file", "file": {"filename": "a.png", "file_data": f"data:{mime};base64,{data}"}}

    given = body(user(text("look"), file(LIFTED)))
    assert lower_body(OPENAI_CHAT, given, [Shown()]) == given
    assert lower_body(OPENAI_CHAT, given, [TOLD]) == body(user(text("look"), text("[told]")))
    assert lower_body(OPENAI_CHAT, given, [REFITTED]) == body(user(text("look"), file("anBlZw==", "image/jpeg")))
    held = body(calling("c1"), tool("c1", file(LIFTED)))
    label = text("[image from the tool call c1 (read)]")
    assert lower_body(OPENAI_CHAT, held, [Shown()]) == body(
        calling("c1"), tool("c1", text(SHOWN_BELOW)), user(label, file(LIFTED))
    )
    others: list[Json] = [file(SHORT, "application/pdf"), {"type": "file", "file": {"file_id": "f"}}, {"type": "file"}]
    for other in others:
        assert read(OPENAI_CHAT, body(user(other))).scene.sights == ()


@requirement("read.native", "wire.openai_responses")
def test_an_image_file_is_a_sight_on_responses() -> None:
    def file(data: str, mime: str = "image/png") -> dict[str, Json]:
        return {"type": "input_file", "filename": "a.png", "file_data": f"data:{mime};base64,{data}"}

    def build_body(*content: Json) -> Json:
        return {"model": "m", "input": [{"role": "user", "content": list(content)}]}

    def answered(*output: Json) -> Json:
        return {"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": list(output)}]}

    word: Json = {"type": "input_text", "text": "[told]"}
    for build in (build_body, answered):
        assert lower_body(OPENAI_RESPONSES, build(file(LIFTED)), [Shown()], NATIVE) == build(file(LIFTED))
        assert lower_body(OPENAI_RESPONSES, build(file(LIFTED)), [TOLD], NATIVE) == build(word)
        assert lower_body(OPENAI_RESPONSES, build(file(LIFTED)), [REFITTED], NATIVE) == build(
            file("anBlZw==", "image/jpeg")
        )
        assert read(OPENAI_RESPONSES, build(file(SHORT, "application/pdf"))).scene.sights == ()
        assert read(OPENAI_RESPONSES, build({"type": "input_file", "file_id": "f"})).scene.sights == ()
