"""Images that a library has written into a tool's text: found, lowered as images, and nothing else changed."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import SHOWN_BELOW
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import Fate, InlineSource, Json, Refitted, Refused, Scene, Shown, Told
from sightline.wire import ANTHROPIC, OPENAI_CHAT
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import PlainTexts
from tests.requirements import requirement
from tests.wire.bodies import (
    HOISTING,
    MARK,
    block,
    body,
    calling,
    image,
    lower_body,
    part,
    read,
    result,
    text,
    tool,
    user,
)

BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "image/tiff": b"II*\0\x08\0\0\0",
    "image/avif": b"\0\0\0\x1cftypavif\0\0\0\0",
    "image/bmp": b"BM\x46\0\0\0\0\0\0\0",
    "image/x-icon": b"\0\0\1\0\1\0\x10\x10",
}


def data(mime: str = "image/png", length: int = 200, seed: int = 0) -> bytes:
    """Return bytes that begin like an image."""
    filling = bytes((seed * 31 + index * 7) % 256 for index in range(length))
    return BEGINNINGS[mime] + filling


def encoded(mime: str = "image/png", length: int = 200, seed: int = 0) -> str:
    return b64encode(data(mime, length, seed)).decode()


SHORT = encoded()
LIFTED = encoded(length=9_001)
"""Long enough to be lifted out of the body; some of it in the other alphabet is no letter of the first."""
READ = text("Image read successfully")
SENTENCE = Refused("[not available]", Refusal("corrupt", "it is broken"))
TOLD = Told("[told]", "up/eye")
NATIVE = Profile("up", "openai_chat", "m", tool_images="native")


def answered(content: Json) -> dict[str, Json]:
    """Return a call and its result."""
    return body(calling("c1"), {"role": "tool", "tool_call_id": "c1", "content": content})


def after(content: Json, *fates: Fate, profile: Profile = HOISTING) -> list[Any]:
    """Return the messages after the call."""
    lowered_body: Any = lower_body(OPENAI_CHAT, answered(content), fates, profile)
    found: list[Any] = lowered_body["messages"][1:]
    return found


def shown(*parts: Json) -> dict[str, Json]:
    label = text("[image from the tool call c1 (read)]")
    return user(*(each for one in parts for each in (label, one)))


Made = Callable[[str], Json]
FORMS: dict[str, Made] = {
    "media": lambda b64: {"type": "media", "data": b64, "mediaType": "image/png"},
    "image-data": lambda b64: {"type": "image-data", "data": b64, "mediaType": "image/png"},
    "file-data": lambda b64: {"type": "file-data", "data": b64, "mediaType": "image/png", "filename": "small.png"},
    "image-url": lambda b64: {"type": "image-url", "url": f"data:image/png;base64,{b64}"},
    "file": lambda b64: {"type": "file", "data": {"type": "data", "data": b64}, "mediaType": "image/png"},
    "file, other order": lambda b64: {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": b64}},
    "file with a name": lambda b64: {
        "type": "file", "data": {"type": "data", "data": b64}, "filename": "small.png", "mediaType": "image/png",
    },
    "MCP": lambda b64: {"type": "image", "data": b64, "mimeType": "image/png"},
    "Messages": block,
    "Chat": part,
    "Responses": lambda b64: {"type": "input_image", "image_url": f"data:image/png;base64,{b64}"},
}  # fmt: skip


@requirement("rescue.media", "rescue.mcp", "law.4", "read.stringified")
@pytest.mark.parametrize("payload", [SHORT, LIFTED], ids=["short", "lifted out"])
@pytest.mark.parametrize("form", FORMS)
def test_a_stringified_list_of_parts_becomes_text_and_image(form: str, payload: str) -> None:
    for stringified in (json.dumps([READ, FORMS[form](payload)]), json.dumps([READ, FORMS[form](payload)], indent=1)):
        words: Json = {"role": "tool", "tool_call_id": "c1", "content": f"Image read successfully\n{SHOWN_BELOW}"}
        assert after(stringified, Shown("image/png")) == [words, shown(part(payload))]
        told: Json = {"role": "tool", "tool_call_id": "c1", "content": "Image read successfully\n[told]"}
        assert after(stringified, TOLD) == [told]
        assert after(stringified, Shown("image/png"), profile=NATIVE) == [tool("c1", READ, part(payload))]


@requirement("rescue.mcp")
def test_the_whole_result_of_an_mcp_call_is_its_content() -> None:
    mcp = {"content": [READ, FORMS["MCP"](SHORT), text("done")], "isError": False}
    words: Json = {"role": "tool", "tool_call_id": "c1", "content": f"Image read successfully\ndone\n{SHOWN_BELOW}"}
    assert after(json.dumps(mcp), Shown("image/png")) == [words, shown(part(SHORT))]


@requirement("hoist.json", "rescue.mcp")
def test_json_with_more_than_mcp_content_stays_json() -> None:
    mcp = {"content": [FORMS["MCP"](SHORT)], "structuredContent": {"png": LIFTED, "n": 1}}
    rest = {"content": [text("[image]")], "structuredContent": {"png": "[image]", "n": 1}}
    held, moved = after(json.dumps(mcp), Shown("image/png"), Shown("image/png"))
    assert [json.loads(held["content"][0]["text"]), held["content"][1]] == [rest, text(SHOWN_BELOW)]
    assert moved == shown(part(SHORT), part(LIFTED))


@requirement("rescue.json", "hoist.json")
@pytest.mark.parametrize("payload", [SHORT, LIFTED], ids=["short", "lifted out"])
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda b64: {"path": "/a.png", "b64": b64}, id="a free key"),
        pytest.param(lambda b64: [1, {"a": ["x", b64]}, None], id="deep in a list"),
        pytest.param(lambda b64: {"shot": f"data:image/png;base64,{b64}", "at": 1.50}, id="a data URL"),
        pytest.param(lambda b64: [{"type": "screenshot", "id": 7, "png": b64}], id="a part of nobody's"),
        pytest.param(lambda b64: {"output": json.dumps({"png": b64, "n": [1]})}, id="JSON in JSON"),
        pytest.param(lambda b64: [text(json.dumps([b64, text("é")]))], id="JSON in a text part"),
    ],
)
def test_a_leaf_of_free_json_is_lowered_and_the_rest_stays_valid_json(made: Made, payload: str) -> None:
    held, moved = after(json.dumps(made(payload), indent=2), Shown("image/png"))
    kept, marker = held["content"]
    assert (marker, moved) == (text(SHOWN_BELOW), shown(part(payload)))
    expected = json.loads(
        json.dumps(made("IMAGE")).replace("data:image/png;base64,IMAGE", "IMAGE").replace("IMAGE", "[image]")
    )
    assert levelled(json.loads(kept["text"])) == levelled(expected)


def levelled(value: Any) -> Any:
    """Return a value with the JSON in its texts parsed, so that blanks in it don't count."""
    match value:
        case str() if value[:1] in ("{", "["):
            try:
                return json.loads(value)
            except ValueError:
                return value
        case list():
            return [levelled(item) for item in value]
        case dict():
            return {key: levelled(item) for key, item in value.items()}
        case _:
            return value


def test_json_that_stays_keeps_every_character() -> None:
    odd = '"dup":1, "dup":2, "big": 123456789012345678901234567890'
    stringified = f'{{ "a" : 1.50,\n "b64":"{SHORT}", {odd} }}'
    held, _ = after(stringified, Shown("image/png"))
    assert held["content"][0]["text"] == stringified.replace(SHORT, "[image]")


@requirement("rescue.whole_value")
@pytest.mark.parametrize("payload", [SHORT, LIFTED], ids=["short", "lifted out"])
@pytest.mark.parametrize("written", ["{}", "data:image/png;base64,{}", " {}\n", "data:;base64,{}"])
def test_a_text_that_is_only_an_image_becomes_the_marker(written: str, payload: str) -> None:
    held, moved = after(written.format(payload), Shown("image/png"))
    assert held["content"] == SHOWN_BELOW
    assert moved == shown(part(payload))


@pytest.mark.parametrize("mime", BEGINNINGS)
def test_every_kind_of_image_is_known_by_its_first_bytes(mime: str) -> None:
    (sight,) = read(OPENAI_CHAT, answered(json.dumps({"x": encoded(mime)}))).scene.sights
    assert isinstance(sight.source, InlineSource)
    assert (sight.source.declared_mime, bytes(sight.source.text).decode()) == ("", encoded(mime))


@requirement("read.stringified")
def test_urlsafe_wrapped_and_unpadded_base64_is_normalized() -> None:
    raw = data(length=9_001)
    plain = b64encode(raw).decode()
    urlsafe = urlsafe_b64encode(raw).decode()
    assert "-" in urlsafe
    broken = "\r\n".join(plain[at : at + 76] for at in range(0, len(plain), 76))
    for spelt in (urlsafe, urlsafe.rstrip("="), broken, f"\n{plain}"):
        for content in (json.dumps({"png": spelt}), spelt):
            _, moved = after(content, Shown("image/png"))
            assert moved == shown(part(plain))


SLASHES = {"as it is": "/", "as PHP writes it": r"\/", "by its number": r"\u002f", "by its number, large": r"\u002F"}


@requirement("read.stringified", "law.4")
@pytest.mark.parametrize("slash", SLASHES)
@pytest.mark.parametrize("length", [60, 3_000, 4_096, 9_001, 30_000])
@pytest.mark.parametrize("mime", BEGINNINGS)
def test_every_kind_is_found_in_either_alphabet_and_with_escaped_slashes(mime: str, length: int, slash: str) -> None:
    raw = data(mime, length)
    plain = b64encode(raw).decode()
    for spelt in (plain, urlsafe_b64encode(raw).decode()):
        for prefix in ("", "data:image/png;base64,"):
            once = json.dumps({"at": "/", "png": prefix + spelt}).replace("/", SLASHES[slash])
            twice = json.dumps({"out": once}).replace("/", SLASHES[slash])
            for content in (once, twice):
                (sight,) = read(OPENAI_CHAT, answered(content)).scene.sights
                assert isinstance(sight.source, InlineSource)
                assert bytes(sight.source.text).decode() == spelt
                _, moved = after(content, Shown(mime))
                assert moved == shown(part(plain, mime))


@requirement("rescue.source_stays", "rescue.whole_value")
@pytest.mark.parametrize("payload", [SHORT, LIFTED], ids=["short", "lifted out"])
@pytest.mark.parametrize(
    "source",
    [
        pytest.param('<img src="data:image/png;base64,{}">', id="HTML"),
        pytest.param("a {{ background: url(data:image/png;base64,{}) }}", id="CSS"),
        pytest.param('<svg><image href="data:image/png;base64,{}"/></svg>', id="SVG"),
        pytest.param('const icon = "data:image/png;base64,{}";\n', id="code"),
        pytest.param('{{ icon: "data:image/png;base64,{}" }}', id="an object of a program"),
        pytest.param('["data:image/png;base64,{}", // a note\n]', id="a list of a program"),
        pytest.param('[1] {{"a": "{}"}}', id="more than one JSON value"),
        pytest.param('1\t{{"a": "{}"}}', id="JSON with the numbers of its lines"),
        pytest.param("here it is:{}", id="a word directly before it"),
        pytest.param("{} was read", id="words after it"),
        pytest.param("{}\nread", id="a word on the next line"),
    ],
)
def test_source_that_an_agent_reads_stays_unchanged(source: str, payload: str) -> None:
    whole = answered(source.format(payload))
    assert read(OPENAI_CHAT, whole).scene.sights == ()
    inside = answered(json.dumps({"page": source.format(payload)}))
    assert read(OPENAI_CHAT, inside).scene.sights == () or source[:1] in "[{"


@requirement("rescue.not_images")
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b64encode(b"this is a plain text note " * 9).decode(), id="a note"),
        pytest.param(b64encode(b"%PDF-1.7\n" + bytes(200)).decode(), id="a document"),
        pytest.param(b64encode(b"RIFF\x24\0\0\0WAVEfmt " + bytes(200)).decode(), id="a sound"),
        pytest.param(b64encode(b"\0\0\0\x1cftypisom" + bytes(200)).decode(), id="a film"),
        pytest.param(b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'>" + bytes(200)).decode(), id="a drawing"),
        pytest.param("iVBORw0KGgo=", id="too short for an image"),
        pytest.param("iVBORw0KGgoAAAANSUhEUg(text of 500 characters, shortened)" + "A" * 64, id="shortened"),
        pytest.param("A" * 20_000, id="letters"),
    ],
)
def test_data_that_is_not_an_image_is_left_alone(payload: str) -> None:
    for content in (json.dumps([READ, FORMS["media"](payload)]), json.dumps({"png": payload}), payload):
        conversation = answered(content)
        assert read(OPENAI_CHAT, conversation).scene.sights == ()
        assert lower_body(OPENAI_CHAT, conversation, []) == conversation


def test_null_parts_are_skipped() -> None:
    stringified = json.dumps([READ, None, FORMS["media"](SHORT)])
    (held, moved) = after(stringified, Shown("image/png"))
    assert (held["content"], moved) == (f"Image read successfully\n{SHOWN_BELOW}", shown(part(SHORT)))
    held, moved = after([None, text(stringified), None], Shown("image/png"))
    assert (held["content"], moved) == ([None, READ, None, text(SHOWN_BELOW)], shown(part(SHORT)))


@requirement("rescue.json", "hoist.one_marker")
def test_each_image_of_a_text_gets_its_own_fate() -> None:
    stringified = json.dumps([FORMS["media"](SHORT), READ, FORMS["MCP"](LIFTED), FORMS["file"](encoded("image/gif"))])
    refitted = Refitted(image(b"jpeg"), "too large")
    held, moved = after(stringified, SENTENCE, refitted, Shown("image/gif"))
    assert held["content"] == f"[not available]\nImage read successfully\n{SHOWN_BELOW}"
    assert moved == shown(part("anBlZw==", "image/jpeg"), part(encoded("image/gif"), "image/gif"))


@requirement("hoist.json")
def test_a_text_part_that_is_json_stays_a_part_of_its_own() -> None:
    held, _ = after(json.dumps([text('{"ok": true}'), FORMS["media"](SHORT)]), Shown("image/png"))
    assert held["content"] == [text('{"ok": true}'), text(SHOWN_BELOW)]
    held, _ = after(json.dumps([text("[a screenshot]"), FORMS["media"](SHORT)]), Shown("image/png"))
    assert held["content"] == f"[a screenshot]\n{SHOWN_BELOW}"


@requirement("rescue.json", "hoist.json")
@pytest.mark.parametrize(
    "made",
    [
        lambda b64: [{"type": "image", "data": b64, "id": "shot-17", "url": "https://app/login", "caption": "after"}],
        lambda b64: {"results": [{"type": "file", "path": "/a/report.pdf", "size": 99, "thumbnail": b64}]},
        lambda b64: [text("here"), {"type": "image", "source": {"type": "base64", "data": b64, "alt": "a cat"}}],
        lambda b64: [{"type": "image", "data": b64, "mimeType": "image/png", "_meta": {"cost": 1}}],
    ],
)
def test_other_fields_of_an_image_part_stay(made: Made) -> None:
    held, moved = after(json.dumps(made(SHORT)), Shown("image/png"))
    kept, marker = held["content"]
    assert (json.loads(kept["text"]), marker) == (made("[image]"), text(SHOWN_BELOW))
    assert moved == shown(part(SHORT))


@requirement("rescue.mcp")
@pytest.mark.parametrize("beside", [{"isError": True}, {"_meta": {"cost": 1}}, {"isError": True, "_meta": None}])
def test_an_mcp_call_s_error_flag_and_meta_stay(beside: dict[str, Json]) -> None:
    content: list[Json] = [READ, FORMS["MCP"](SHORT)]
    held, moved = after(json.dumps({"content": content, **beside}), Shown("image/png"))
    kept, marker = held["content"]
    assert (json.loads(kept["text"]), marker) == ({"content": [READ, text("[image]")], **beside}, text(SHOWN_BELOW))
    assert moved == shown(part(SHORT))


def test_a_repeated_key_in_a_part_stays_repeated() -> None:
    odd = '{"type":"shape","a":1,"a":2}'
    held, _ = after(f"[{odd}, {json.dumps(FORMS['MCP'](SHORT))}]", Shown("image/png"))
    assert held["content"] == [text(odd), text(SHOWN_BELOW)]
    twice = f'[{{"type": "{SHORT}", "type": "image", "data": "x"}}]'
    held, _ = after(twice, Shown("image/png"))
    assert held["content"] == [text(twice.replace(SHORT, "[image]")), text(SHOWN_BELOW)]


def test_repeated_keys_are_not_confused() -> None:
    images = [encoded(seed=seed) for seed in (1, 2, 3, 4)]
    written = '{"a": "%s", "a": "%s", "a\\u0000again\\u00000": "%s", "a\\u0000": "%s"}'
    held, moved = after(written % tuple(images), *[Shown("image/png")] * 4)
    assert held["content"][0]["text"] == written % (("[image]",) * 4)
    assert moved == shown(*map(part, images))


def test_two_images_in_one_part_are_both_found() -> None:
    both = {"type": "image", "data": SHORT, "preview": encoded("image/gif")}
    held, moved = after(json.dumps([both]), Shown("image/png"), Shown("image/gif"))
    assert json.loads(held["content"][0]["text"]) == [{"type": "image", "data": "[image]", "preview": "[image]"}]
    assert moved == shown(part(SHORT), part(encoded("image/gif"), "image/gif"))


def test_an_unchanged_sight_leaves_the_text_unchanged() -> None:
    conversation = answered(json.dumps([READ, FORMS["media"](LIFTED)]))
    found = read(OPENAI_CHAT, conversation)
    assert len(found.scene.sights) == 1
    assert OPENAI_CHAT.lower(Scene("m"), found.document.tree, HOISTING) == []


@requirement("cache_mark.moves")
def test_a_text_s_cache_mark_stays_with_its_rest() -> None:
    marked: Json = {**text(json.dumps([READ, FORMS["media"](SHORT)])), "cache_control": MARK}
    held, _ = after([marked], Shown("image/png"))
    assert held["content"] == [{**READ, "cache_control": MARK}, text(SHOWN_BELOW)]
    only: Json = {**text(SHORT), "cache_control": MARK}
    held, _ = after([only], Shown("image/png"))
    assert held["content"] == [{**text(SHOWN_BELOW), "cache_control": MARK}]


@requirement("law.4")
def test_a_text_becomes_blocks_inside_the_result_on_messages() -> None:
    native = Profile("up", "anthropic", "m")
    stringified = json.dumps([READ, FORMS["media"](LIFTED)])
    contents: list[Json] = [stringified, [text(stringified)]]
    for content in contents:
        held: Json = {"type": "tool_result", "tool_use_id": "t", "content": content}
        assert lower_body(ANTHROPIC, body(user(held)), [Shown("image/png")], native) == body(
            user(result("t", READ, block(LIFTED)))
        )
    hoisted = lower_body(ANTHROPIC, body(user(result("t", text(stringified)))), [Shown("image/png")], HOISTING)
    label = text("[image from the tool call t]")
    assert hoisted == body(user(result("t", READ, text(SHOWN_BELOW)), label, block(LIFTED)))


@pytest.mark.parametrize("profile", [NATIVE, HOISTING], ids=["native", "hoist"])
def test_an_error_contains_only_text_on_messages(profile: Profile) -> None:
    native = result("t", text("boom"), block(SHORT))
    stringified = {**result("t"), "content": json.dumps([text("boom"), block(SHORT)])}
    for held in (native, stringified):
        after: Any = lower_body(ANTHROPIC, body(user({**held, "is_error": True})), [Shown("image/png")], profile)
        failed, *moved = after["messages"][0]["content"]
        assert failed["content"] in ([text("boom"), text(SHOWN_BELOW)], f"boom\n{SHOWN_BELOW}")
        assert moved == [text("[image from the tool call t]"), block(SHORT)]
        assert failed["is_error"]
        (again,) = read(ANTHROPIC, after).scene.sights
        assert again.hoisted


def test_only_error_results_lose_their_images_on_messages() -> None:
    fine, failed = result("t1", block(SHORT)), {**result("t2", block(LIFTED)), "is_error": True}
    after = lower_body(ANTHROPIC, body(user(fine, failed)), [Shown(), Shown()], NATIVE)
    told = {**result("t2", text(SHOWN_BELOW)), "is_error": True}
    assert after == body(user(fine, told, text("[image from the tool call t2]"), block(LIFTED)))


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_among_the_parts_becomes_no_block(blank: str) -> None:
    stringified = json.dumps([text(blank), FORMS["media"](SHORT)])
    contents: list[Json] = [stringified, [text(stringified)]]
    for content in contents:
        held: Json = {"type": "tool_result", "tool_use_id": "t", "content": content}
        after = lower_body(ANTHROPIC, body(user(held)), [Shown("image/png")], NATIVE)
        assert after == body(user(result("t", block(SHORT))))


@pytest.mark.parametrize("form", ["MCP", "Messages"])
def test_a_block_of_another_protocol_in_a_tool_s_message_becomes_one_of_this_wire(form: str) -> None:
    content: list[Json] = [READ, FORMS[form](LIFTED)]
    for fate in (Shown(), Shown("image/png")):
        assert after(content, fate) == [tool("c1", READ, text(SHOWN_BELOW)), shown(part(LIFTED))]
        assert after(content, fate, profile=NATIVE) == [tool("c1", READ, part(LIFTED))]
    refitted = Refitted(image(b"jpeg"), "too large")
    assert after(content, refitted, profile=NATIVE) == [tool("c1", READ, part("anBlZw==", "image/jpeg"))]
    assert after(content, TOLD) == [tool("c1", READ, text("[told]"))]


@requirement("rescue.whole_value")
@pytest.mark.parametrize("payload", [SHORT, LIFTED], ids=["short", "lifted out"])
@pytest.mark.parametrize("before", ["", "\n ", "data:image/png;base64,", "\n data:image/png;base64,"])
def test_a_quoted_or_indented_image_is_found(before: str, payload: str) -> None:
    written = before + payload
    for content in (written, json.dumps(written), json.dumps(json.dumps(written))):
        held, moved = after(content, Shown("image/png"))
        assert (held["content"], moved) == (SHOWN_BELOW, shown(part(payload)))
    for value in ({"png": written}, {"png": json.dumps(written)}):
        held, moved = after(json.dumps(value), Shown("image/png"))
        assert (json.loads(held["content"][0]["text"]), moved) == ({"png": "[image]"}, shown(part(payload)))


def test_json_in_quotes_stays_json_in_quotes() -> None:
    held, moved = after(json.dumps(json.dumps({"n": 1, "png": SHORT})), Shown("image/png"))
    assert held["content"] == json.dumps(json.dumps({"n": 1, "png": "[image]"})) + f"\n{SHOWN_BELOW}"
    assert moved == shown(part(SHORT))


def test_every_image_under_a_repeated_key_is_found() -> None:
    first, second, third = (encoded(seed=seed) for seed in (1, 2, 3))
    for written, images in (
        ('{"a": "%s", "a" : "%s","b":0, "a":1.50}', [first, second]),
        ('{"a": "%s", "a": {"b": "%s", "b": ["%s"]}}', [first, second, third]),
        ('[{"a": ["x", "%s"], "a": null}, {"a": "%s"}]', [first, second]),
    ):
        held, moved = after(written % tuple(images), *[Shown("image/png")] * len(images))
        assert held["content"][0]["text"] == written % tuple("[image]" for _ in images)
        assert moved == shown(*(part(each) for each in images))


def test_texts_of_user_and_assistant_are_not_split() -> None:
    said = json.dumps([FORMS["media"](SHORT)])
    conversation = body({"role": "user", "content": said}, {"role": "assistant", "content": said}, user(text(said)))
    assert read(OPENAI_CHAT, conversation).scene.sights == ()


# Free JSON of any shape, in which some leaves are images.
images = st.builds(encoded, st.sampled_from(sorted(BEGINNINGS)), st.sampled_from([60, 3_000, 9_001]), st.integers(0, 9))
documents: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9) | images,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text("abc", max_size=2), inside, max_size=4),
    max_leaves=9,
)
boxes = documents.filter(lambda value: isinstance(value, dict | list))
PREFIXES = tuple(b64encode(begin).decode()[:10] for begin in BEGINNINGS.values())


def without_images(value: Any, found: list[str]) -> Any:
    """Return the document with words in the places of its images, which are collected in a list."""
    match value:
        case str() if value.startswith(PREFIXES) and len(value) > 64:
            found.append(value)
            return "[image]"
        case list():
            return [without_images(item, found) for item in value]
        case dict():
            return {key: without_images(item, found) for key, item in value.items()}
        case _:
            return value


@requirement("rescue.json", "hoist.json", "law.4")
@given(boxes, st.booleans(), st.sampled_from([None, 1]))
def test_images_of_any_json_move_and_the_rest_stays(value: Any, whole: bool, indent: int | None) -> None:
    expected: list[str] = []
    rest = without_images(value, expected)
    conversation = answered(json.dumps(value, indent=indent))
    found = read(OPENAI_CHAT, conversation)
    assert found.texts() == expected
    sent: Any = lower_body(OPENAI_CHAT, conversation, [Shown("image/png")] * len(expected))
    if whole:  # the same on objects
        scene = OPENAI_CHAT.read(conversation, PlainTexts())
        assert [s.path_in_text for s in scene.sights] == [s.path_in_text for s in found.scene.sights]
        met = Scene("m", tuple(s.with_fate(Shown("image/png")) for s in scene.sights))
        grafted: Any = graft(conversation, OPENAI_CHAT.lower(met, conversation, NATIVE))
        assert (
            [p for p in grafted["messages"][1]["content"] if p["type"] == "image_url"] == [part(e) for e in expected]
            if expected
            else grafted is conversation
        )
    if not expected:
        assert sent == conversation
        return
    held, moved = sent["messages"][1:]
    assert json.loads(held["content"][0]["text"]) == rest
    assert held["content"][1:] == [text(SHOWN_BELOW)]
    assert moved == shown(*(part(each) for each in expected))
    assert read(OPENAI_CHAT, sent).scene.sights[0].hoisted
    assert lower_body(OPENAI_CHAT, sent, [Shown()] * len(expected)) == sent


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), images | st.integers()), max_size=6))
def test_no_image_stays_in_text_with_repeated_keys(pairs: list[tuple[str, str | int]]) -> None:
    written = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs).join("{}")
    found = [value for _, value in pairs if isinstance(value, str)]
    sent: Any = lower_body(OPENAI_CHAT, answered(written), [Shown("image/png")] * len(found))
    if found:
        held = json.loads(sent["messages"][1]["content"][0]["text"], object_pairs_hook=list)
        assert held == [(key, "[image]" if isinstance(value, str) else value) for key, value in pairs]


@requirement("rescue.source_stays")
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.sampled_from("<>(){};'\"`é."), images)
def test_an_image_inside_other_text_is_never_extracted(words: str, letter: str, payload: str) -> None:
    for content in (
        words + letter + payload,
        payload + letter + words,
        f"{letter}data:image/png;base64,{payload}{letter}",
    ):
        try:
            json.loads(content)
        except ValueError:
            assert read(OPENAI_CHAT, answered(content)).scene.sights == ()


@given(st.text(st.characters(exclude_categories=[]), max_size=60), st.sampled_from(["", "[", "{", '["', '{"a":"']))
def test_any_text_can_be_searched(words: str, before: str) -> None:
    for content in (before + words, before + SHORT + words, before + words + SHORT):
        found = read(OPENAI_CHAT, answered(content))
        lower_body(OPENAI_CHAT, answered(content), [Shown("image/png")] * len(found.scene.sights))
