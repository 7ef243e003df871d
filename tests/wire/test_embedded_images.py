"""Images among words, as the libraries themselves write them: AutoGen, MCP objects in Python, dspy, Node's buffers."""

from __future__ import annotations

import json
from base64 import b64encode, encodebytes
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import SHOWN_BELOW
from sightline.model.profile import Profile
from sightline.model.scene import Fate, InlineSource, Json, Shown, Told
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from sightline.wire.embedded_images import find_embedded_images
from sightline.wire.json_tree import PlainTexts
from sightline.wire.text_images import find_text_images
from tests.passes.scenes import Table, rules
from tests.requirements import requirement
from tests.wire.bodies import HOISTING, body, calling, lower_body, part, read, text, tool, user

RAW = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40
LONG = b64encode(RAW).decode()
SHORT = b64encode(RAW[:200]).decode()
NATIVE = Profile("up", "openai_chat", "m", tool_images="native")
EVERY_SIZE = pytest.mark.parametrize("payload", [SHORT, LONG], ids=["short", "long"])


def build_chat(content: Json, arguments: str = "{}", name: str = "shot") -> dict[str, Json]:
    call: Json = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    asked: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
    return body(asked, {"role": "tool", "tool_call_id": "c1", "content": content})


def after(content: Json, *fates: Fate, profile: Profile = HOISTING) -> list[Any]:
    lowered: Any = lower_body(OPENAI_CHAT, build_chat(content), fates, profile)
    messages: list[Any] = lowered["messages"][1:]
    return messages


# Forms in quotes: the object around the image stays, with words in the image's place.
MCP_1 = "ImageContent(type='image', data='B64', mimeType='image/png', annotations=None, meta=None)"
MCP_2 = "ImageContent(type='image', data='B64', mime_type='image/png', annotations=None, meta=None)"
WORDS = """TextContent(type='text', text="it's here", annotations=None, meta=None)"""
QUOTED = {
    "llama-index": f"meta=None content=[{WORDS}, {MCP_1}] structuredContent=None isError=False",
    "llama-index with MCP 2": f"meta=None content=[{WORDS}, {MCP_2}] structured_content=None is_error=False",
    "the result itself": f"CallToolResult(meta=None, content=[{MCP_1}], structuredContent=None, isError=False)",
    "a list of blocks": f"[{WORDS}, {MCP_1}]",
    "crewai-tools": "type='image' data='B64' mimeType='image/png' annotations=None meta=None",
    "dspy in a tool's result": "[1] «type='image' data='B64' mimeType='image/png' annotations=None meta=None»",
    "AutoGen's MCP tool": "[{'type': 'image', 'data': 'B64', 'mimeType': 'image/png', 'annotations': None}]",
    "a resource": "EmbeddedResource(type='resource', resource=BlobResourceContents(uri=AnyUrl('a://b'), "
    "mimeType='image/png', blob='B64'), annotations=None)",
    "OpenAI's objects": "ChatCompletionContentPartImage(image_url=ImageURL(url='data:image/png;base64,B64', "
    "detail='auto'), type='image_url')",
    "a dictionary": "{'path': 'a.png', 'b64': 'B64', 'n': None}",
    "a list": "['B64', 'x']",
    "a dictionary with bytes": "{'data': b'B64', 'ok': True}",
    "JSON behind words": 'Screenshot taken\n[{"type":"image","data":"B64","mimeType":"image/png"}]',
    "JSON between words": 'Took one: {"type": "image-data", "data": "B64", "mediaType": "image/png"} in 3 s',
    "JSON in a text, behind words": "Result: "
    + json.dumps('{"type":"image","data":"B64","mimeType":"image/png"}').strip('"'),
    "a Chat part behind words": 'Done. [{"type": "image_url", "image_url": {"url": "data:image/png;base64,B64"}}]',
    "free JSON behind words": 'Screenshot taken\n{"screenshot": "B64"}',
    "free JSON behind lines": '### Result\n- [a page]\n\n{\n "n": [1],\n "png": "data:image/png;base64,B64"\n}\n',
    "the AI SDK's file behind words": "ok "
    '[{"type":"file","data":{"type":"data","data":"B64"},"mediaType":"image/png"}]',
}  # fmt: skip


def drop_url(written: str) -> str:
    return written.replace("data:image/png;base64,B64", "B64")


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("form", QUOTED)
def test_an_image_in_quotes_follows_the_text_that_keeps_the_rest(form: str, payload: str) -> None:
    written = QUOTED[form].replace("B64", payload)
    held, moved = after(written, Shown("image/png"))
    assert moved["content"][1] == part(payload)
    kept = held["content"] if isinstance(held["content"], str) else "\n".join(each["text"] for each in held["content"])
    assert kept == f"{drop_url(QUOTED[form]).replace('B64', '[image]')}\n{SHOWN_BELOW}"
    (told,) = after(written, Told("[told]", "eye"))
    assert payload not in json.dumps(told)
    assert "[told]" in json.dumps(told)
    native = after(written, Shown("image/png"), profile=NATIVE)[0]["content"]
    assert native[-1] == part(payload)


CUT = {
    "AutoGen": "Here.\n[Image: B64]\nDone.",
    "dspy": '[[ ## shot ## ]]\n<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url", "image_url": {"url": '
    '"data:image/png;base64,B64"}}]<<CUSTOM-TYPE-END-IDENTIFIER>>\n\n[[ ## question ## ]]\nWhat?',
}


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("form", CUT)
def test_a_form_that_is_only_an_image_is_extracted(form: str, payload: str) -> None:
    before, behind = {"AutoGen": ("Here.", "Done.")}.get(form, ("[[ ## shot ## ]]", "[[ ## question ## ]]\nWhat?"))
    written = CUT[form].replace("B64", payload)
    held, moved = after(written, Shown("image/png"))
    assert (held["content"], moved["content"][1]) == (f"{before}\n{behind}\n{SHOWN_BELOW}", part(payload))
    assert after(written, Told("[told]", "eye"))[0]["content"] == f"{before}\n[told]\n{behind}"
    native = after(written, Shown("image/png"), profile=NATIVE)[0]["content"]
    assert native == [text(before), part(payload), text(behind)]


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("written", ["B64", "data:image/png;base64,B64", "B64\n\n"])
@pytest.mark.parametrize(
    "words", ["Screenshot taken\n", "Screenshot taken: ", "### Result\n- URL: http://a/\n", "a\nb "]
)
def test_base64_behind_words_is_cut_out(words: str, written: str, payload: str) -> None:
    held, moved = after(f"{words}{written.replace('B64', payload)}", Shown("image/png"))
    assert (held["content"], moved["content"][1]) == (f"{words.strip()}\n{SHOWN_BELOW}", part(payload))


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("url", ["", "data:image/png;base64,"])
def test_json_after_a_colon_keeps_its_form(url: str, payload: str) -> None:
    written = f'Exit code: 0\nOutput: {{"ok": true, "png": "{url}{payload}"}}\n'
    held, moved = after(written, Shown("image/png"))
    assert held["content"] == f'Exit code: 0\nOutput: {{"ok": true, "png": "[image]"}}\n\n{SHOWN_BELOW}'
    assert moved["content"][1] == part(payload)
    logged = "info: {x}\n" * 9 + f'{{"png": "{url}{payload}"}}'
    assert after(logged, Shown("image/png"))[1]["content"][1] == part(payload)


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("output", ["B64", "data:image/png;base64,B64", '{"png": "B64"}', 'took it\n{"png": "B64"}'])
def test_the_output_of_a_shell_ends_before_what_the_tool_adds(output: str, payload: str) -> None:
    command, end = "Command: node shoot.mjs\nDirectory: (root)", "Error: (none)\nExit Code: 0\nSignal: (none)"
    written = f"{command}\nOutput: {output.replace('B64', payload)}\n{end}\nProcess Group PGID: 4711"
    held, moved = after(written, Shown("image/png"))
    assert moved["content"][1] == part(payload)
    assert payload not in held["content"]
    assert held["content"].startswith(command)
    assert end in held["content"]
    other = written.replace("Output: ", "Icon: ") if output == "B64" else "none"
    assert read(OPENAI_CHAT, build_chat(other)).scene.sights == ()


@requirement("rescue.words", "law.4")
@EVERY_SIZE
def test_a_data_url_at_the_end_of_any_line_is_cut_out(payload: str) -> None:
    written = f"1. data:image/png;base64,{payload}\n2. data:image/png;base64,{payload}\r\nDone."
    held, moved = after(written, Shown("image/png"), Shown("image/png"))
    assert payload not in json.dumps(held)
    assert part(payload) in moved["content"]


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("url", ["", "data:image/png;base64,"])
@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("<image>B64</image>", "<image>\n</image>"),
        ("ok\n<shot at='3'>\nB64\n</shot>\nDone.", "ok\n<shot at='3'>\n</shot>\nDone."),
    ],
)
def test_an_element_of_xml_that_is_an_image_keeps_its_tags(written: str, kept: str, url: str, payload: str) -> None:
    held, moved = after(written.replace("B64", url + payload), Shown("image/png"))
    assert (held["content"], moved["content"][1]) == (f"{kept}\n{SHOWN_BELOW}", part(payload))


@requirement("rescue.words", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize(
    ("written", "kept"), [("![a page](B64)", ""), ("# Shots\n\n![](B64)\n\n![x](B64)\nDone.", "# Shots\nDone.\n")]
)
def test_an_image_of_markdown_on_its_own_line_is_cut_out(written: str, kept: str, payload: str) -> None:
    held, moved = after(
        written.replace("B64", f"data:image/png;base64,{payload}"), *[Shown("image/png")] * written.count("B64")
    )
    assert payload not in json.dumps(held)
    assert moved["content"][1] == part(payload)
    for line in kept.split():
        assert line in held["content"]
    arguments, name = json.dumps({"path": "/a/README.md"}), "read_file"
    url = f"data:image/png;base64,{payload}"
    assert read(OPENAI_CHAT, build_chat(written.replace("B64", url), arguments, name)).scene.sights == ()


WRAPPED = encodebytes(RAW).decode()


@requirement("rescue.words", "read.stringified", "law.4")
@pytest.mark.parametrize(
    "written",
    [
        f"[ImageContent(type='image', data={WRAPPED!r}, mimeType='image/png')]",
        f"type='image' data={WRAPPED.replace(chr(10), chr(13) + chr(10))!r} mimeType='image/png'",
        "Screenshot taken\n" + json.dumps([{"type": "image", "data": WRAPPED, "mimeType": "image/png"}]),
        "Screenshot taken\n" + json.dumps({"screenshot": WRAPPED}),
        "Result: " + json.dumps(json.dumps({"type": "image", "data": WRAPPED, "mimeType": "image/png"})),
        f"Screenshot taken\n{WRAPPED}",
    ],
    ids=["repr", "repr with CRLF", "a part", "free JSON", "JSON in JSON", "lines"],
)
def test_wrapped_base64_among_words_is_one_image(written: str) -> None:
    held, moved = after(written, Shown("image/png"))
    assert moved["content"][1] == part(LONG)
    assert WRAPPED[:20] not in json.dumps(held)


SEMANTIC_KERNEL = (
    "[ImageContent(inner_content=ImageContent(type='image', data='B64', mimeType='image/png', annotations=None, "
    "meta=None), ai_model_id=None, metadata={}, content_type='image', uri=None, data_uri='data:image/png;,B64')]"
)


@requirement("rescue.words", "lower.once")
@EVERY_SIZE
def test_semantic_kernel_writes_an_image_twice_and_it_is_shown_once(payload: str) -> None:
    given = build_chat(SEMANTIC_KERNEL.replace("B64", payload))
    scene = read(OPENAI_CHAT, given).scene
    assert len(scene.sights) == 2
    lowered: Any = lower_body(OPENAI_CHAT, given, Table().fates(scene, rules()))
    held, moved = lowered["messages"][1:]
    assert payload not in json.dumps(held)
    assert [each for each in moved["content"] if each["type"] == "image_url"] == [part(payload)]
    held, moved = after(f"data:image/png;,{payload}", Shown("image/png"))
    assert (held["content"], moved["content"][1]) == (SHOWN_BELOW, part(payload))


NUMBERS = list(RAW)
BYTES = {
    "Buffer": json.dumps({"type": "Buffer", "data": NUMBERS}),
    "Buffer, compact": json.dumps({"type": "Buffer", "data": NUMBERS}, separators=(",", ":")),
    "Uint8Array": json.dumps({str(index): byte for index, byte in enumerate(RAW)}, separators=(",", ":")),
    "list": json.dumps(NUMBERS),
}


@requirement("rescue.bytes", "law.4")
@pytest.mark.parametrize("form", BYTES)
def test_the_numbers_of_an_image_s_bytes_are_the_image(form: str) -> None:
    held, moved = after(BYTES[form], Shown("image/png"))
    assert (held["content"], moved["content"][1]) == (SHOWN_BELOW, part(LONG))
    held, moved = after(f'{{"shot": {BYTES[form]}, "n": 1.50}}', Shown("image/png"))
    assert json.loads(held["content"][0]["text"]) == {"shot": text("[image]"), "n": 1.5}
    assert moved["content"][1] == part(LONG)
    held, moved = after(json.dumps([text("here"), json.loads(BYTES[form])]), Shown("image/png"))
    assert "137" not in json.dumps(held)
    assert moved["content"][1] == part(LONG)


@requirement("rescue.bytes", "law.4")
@pytest.mark.parametrize("form", ["Buffer", "Buffer, compact", "Uint8Array"])
def test_bytes_after_words_are_extracted(form: str) -> None:
    held, moved = after(f"Screenshot taken\n{BYTES[form]} in 3 s", Shown("image/png"))
    assert (held["content"], moved["content"][1]) == (f"Screenshot taken\nin 3 s\n{SHOWN_BELOW}", part(LONG))


@requirement("rescue.bytes", "law.4")
def test_bytes_as_python_writes_them_are_extracted() -> None:
    for written in (f"{{'png': {RAW!r}, 'n': 1}}", f"took {RAW!r}"):
        held, moved = after(written, Shown("image/png"))
        assert "PNG" not in json.dumps(held)
        assert moved["content"][1] == part(LONG)


@requirement("rescue.bytes", "rescue.not_images")
@pytest.mark.parametrize(
    "numbers", [[1, 2, 3] * 30, [137, 80, 78, 71], [137, 80, 78, 71, 999] * 20, [137, 80, "x"] * 20, [255, 215] * 40]
)
def test_other_numbers_are_left_alone(numbers: list[Any]) -> None:
    for value in (numbers, {"type": "Buffer", "data": numbers}, {str(at): each for at, each in enumerate(numbers)}):
        for written in (json.dumps(value), f"took {json.dumps(value)}", json.dumps({"a": value})):
            assert read(OPENAI_CHAT, build_chat(written)).scene.sights == ()


@requirement("rescue.source_stays")
@EVERY_SIZE
@pytest.mark.parametrize(
    "source",
    [
        pytest.param('<link rel="icon" type="image/png" href="data:image/png;base64,B64">', id="an icon of a page"),
        pytest.param("<link rel='icon' type='image/png' href='data:image/png;base64,B64'>", id="in other quotes"),
        pytest.param('<object type="image/png" data="data:image/png;base64,B64"></object>', id="an object of a page"),
        pytest.param('<input type="image" src="data:image/png;base64,B64">', id="a button of a page"),
        pytest.param("const part = { type: 'image', data: 'B64' };", id="JavaScript"),
        pytest.param('ICON = "B64"  # type: image', id="Python"),
        pytest.param("see ![image](data:image/png;base64,B64)", id="Markdown behind words"),
        pytest.param("![image](data:image/png;base64,B64) here", id="Markdown before words"),
        pytest.param("[image](data:image/png;base64,B64)", id="a link of Markdown"),
        pytest.param("<script>x = B64</script>", id="a script of a page"),
        pytest.param("<a>B64</b>", id="two elements"),
        pytest.param("[image]: data:image/png;base64,B64", id="a reference of Markdown"),
        pytest.param("url(data:image/png;base64,B64) /* image */", id="CSS"),
        pytest.param("the image is B64 I think", id="words"),
        pytest.param("[Image: a.png B64]", id="another AutoGen"),
        pytest.param("logo: |\n  B64\n", id="a block of YAML"),
        pytest.param('X = """\nB64\n"""\n', id="a text of Python"),
        pytest.param("base64 -d <<EOF\nB64\nEOF\n", id="a shell script"),
        pytest.param("@@ -1 +1 @@\n-old\n+B64\n", id="a difference"),
        pytest.param('const icon =\n{ png: "B64" }\n', id="an object of JavaScript behind words"),
        pytest.param('see\n{"png": "B64"}\nand more', id="JSON between words"),
        pytest.param("see\n{\"png\": \"B64\"} and type='image' data='x'", id="JSON before another object"),
    ],
)
def test_source_that_an_agent_reads_stays_unchanged(source: str, payload: str) -> None:
    assert read(OPENAI_CHAT, build_chat(source.replace("B64", payload))).scene.sights == ()


# A user's message


def build_message(wire: Wire, words: str) -> Json:
    key, content = ("input", "content") if wire is OPENAI_RESPONSES else ("messages", "content")
    if wire is GEMINI:
        return {"contents": [{"role": "user", "parts": [{"text": words}]}]}
    return {"model": "m", key: [{"role": "user", content: words}]}


def list_blocks(wire: Wire, tree: Any) -> list[Any]:
    (message,) = tree["contents" if wire is GEMINI else "input" if wire is OPENAI_RESPONSES else "messages"]
    blocks: list[Any] = message["parts" if wire is GEMINI else "content"]
    return blocks


DSPY = (
    '<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url", "image_url": {"url": "data:image/png;base64,B64"}}]'
    "<<CUSTOM-TYPE-END-IDENTIFIER>>"
)
MESSAGES = {
    "dspy": CUT["dspy"],
    "dspy in a list": json.dumps([{"a": DSPY}]),
    "dspy's trajectory": "[[ ## observation_0 ## ]]\n[1] «type='image' data='B64' mimeType='image/png' meta=None»\n",
    "AutoGen": CUT["AutoGen"],
}


@requirement("rescue.messages", "law.4")
@EVERY_SIZE
@pytest.mark.parametrize("form", MESSAGES)
@pytest.mark.parametrize("wire", [OPENAI_CHAT, ANTHROPIC, OPENAI_RESPONSES, GEMINI], ids=lambda wire: wire.name)
def test_an_image_that_a_library_wrote_into_a_user_s_message_is_shown(wire: Wire, form: str, payload: str) -> None:
    given = build_message(wire, MESSAGES[form].replace("B64", payload))
    (sight,) = read(wire, given).scene.sights
    assert (sight.role, sight.call, sight.is_in_tool_result) == ("user", None, False)
    assert isinstance(sight.source, InlineSource)
    assert bytes(sight.source.text).decode() == payload
    native = Profile("up", wire.name, "m", tool_images="native")
    shown = lower_body(wire, given, [Shown("image/png")], native)
    words = "".join(block.get("text", "") for block in list_blocks(wire, shown))
    assert payload not in words
    assert len(read(wire, shown).scene.sights) == 1
    assert lower_body(wire, shown, [Shown()], native) == shown
    told = json.dumps(lower_body(wire, given, [Told("[told]", "eye")], native))
    assert payload not in told
    assert "[told]" in told


@requirement("rescue.messages")
@EVERY_SIZE
@pytest.mark.parametrize(
    "words",
    [
        'why is [{"type":"image","data":"B64","mimeType":"image/png"}] rejected?',
        "what is {'type': 'image', 'data': 'B64'}?",
        '<link type="image/png" href="data:image/png;base64,B64">',
        "B64",
        "why?\nB64",
        '{"type":"Buffer","data":[137,80]}',
        "why is [ImageContent(type='image', data='B64', mimeType='image/png', annotations=None)] not shown?",
        "type='image' data='B64' mimeType='image/png'",
    ],
)
def test_text_that_a_person_pastes_stays(words: str, payload: str) -> None:
    given = build_message(OPENAI_CHAT, words.replace("B64", payload))
    assert read(OPENAI_CHAT, given).scene.sights == ()
    assert lower_body(OPENAI_CHAT, given, []) == given


@requirement("rescue.messages")
def test_an_image_block_beside_such_a_text_stays_with_its_mark() -> None:
    mark: Json = {"type": "ephemeral"}
    marked: Json = {**text(CUT["AutoGen"].replace("B64", SHORT)), "cache_control": mark}
    given = body(user(marked, part(LONG), text("?")))
    lowered: Any = lower_body(OPENAI_CHAT, given, [Shown("image/png"), Shown()])
    content = lowered["messages"][0]["content"]
    done: Json = {**text("Done."), "cache_control": mark}
    assert content == [text("Here."), part(SHORT), done, part(LONG), text("?")]


# Laws

WORDS_BETWEEN = st.text(st.sampled_from("ab '\"\\[]{}<>:=,\n"), max_size=12)
FORMS = st.sampled_from([each.replace("B64", SHORT) for each in (*QUOTED.values(), *CUT.values())])


@requirement("rescue.words", "law.4")
@given(st.lists(st.tuples(WORDS_BETWEEN, FORMS), min_size=1, max_size=3), WORDS_BETWEEN)
def test_text_around_the_forms_stays(pairs: list[tuple[str, str]], end: str) -> None:
    written = "took " + "".join(f"{words} image: {form}" for words, form in pairs) + f" {end}"
    found = [*find_embedded_images(written, PlainTexts())]
    spans = [(start, stop) for start, stop, _ in found]
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    fates = [Shown("image/png")] * len(found)
    assert len(read(OPENAI_CHAT, build_chat(written)).scene.sights) == len(found)
    lowered: Any = lower_body(OPENAI_CHAT, build_chat(written), fates)
    if not found:
        assert lowered == build_chat(written)
        return
    rest, at = "", 0
    for start, stop in spans:
        rest, at = rest + written[at:start], stop
    held = lowered["messages"][1]["content"]
    kept = held if isinstance(held, str) else "".join(each["text"] for each in held)
    assert "".join(kept.replace("[image]", "").replace(SHOWN_BELOW, "").split()) == "".join(
        (rest + written[at:]).split()
    )
    again = read(OPENAI_CHAT, lowered).scene.sights
    assert all(sight.hoisted for sight in again), "nothing is found again in the words"


@requirement("rescue.words")
@given(st.text(max_size=300))
def test_any_text_can_be_searched(written: str) -> None:
    for leaf in (written, f"{written} image type='image' data='{SHORT}' {written}"):
        for way, _ in find_text_images(leaf, PlainTexts()):
            assert len(way) <= 1


@requirement("rescue.words")
def test_a_long_text_is_searched_in_linear_time() -> None:
    """Each candidate is looked at once, however many there are: these would take minutes otherwise."""
    run = "iVBORw0KGg" + "A" * 60
    for piece in (
        " image '/9j/", f" image '{run}", f"type='image' data='{run}' ", '{"type":"Buffer","data":[1,2', '{"0":1,"1":2',
        "b'\\x89PNG\\\\", f"<<CUSTOM-TYPE-START-IDENTIFIER>>{run}", "image[{((",
    ):  # fmt: skip
        [*find_embedded_images(piece * 5_000, PlainTexts())]
    [*find_embedded_images('{"0":1' + " " * 300_000 + "x", PlainTexts())]


@requirement("rescue.words", "law.4")
@EVERY_SIZE
def test_an_image_at_the_start_of_a_text_is_extracted(payload: str) -> None:
    held, moved = after(f"[Image: {payload}] done", Shown("image/png"))
    assert moved["content"][1] == part(payload)
    assert payload not in json.dumps(held)
    (told,) = after(f"[Image: {payload}] done", Told("[told]", "eye"))
    assert payload not in json.dumps(told)
    assert "[told]" in json.dumps(told)


def test_calls_without_an_image_in_their_text_are_unchanged() -> None:
    given = body(calling("c1"), tool("c1", text('Screenshot taken\n[{"type": "image"}]')))
    assert read(OPENAI_CHAT, given).scene.sights == ()
    assert lower_body(OPENAI_CHAT, given, []) == given
