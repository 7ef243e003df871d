"""The bytes of an image file as characters: restored if nothing is lost, else recognized as damaged."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.model.scene import DamagedSource, InlineSource, Json, Refused, Shown, ToolCall
from sightline.passes import resolve
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from sightline.wire.image_bytes import build_from_bytes, find_image_bytes, is_same_image, list_remains
from tests.passes.scenes import Table, rules
from tests.requirements import requirement
from tests.wire.bodies import body, calling, lower_body, part, read, result, tool, user


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(bytes(range(256)) * 3, 0))
    + chunk(b"IEND", b"")
)
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0H\0H\0\0" + bytes(range(256)) * 4 + b"\xff\xd9"
NOTE = b"!\xfe" + bytes([60]) + b"a comment of sixty characters, as some editors write it here" + b"\0"
GIF = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0" + NOTE + b",\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
WEBP = b"RIFF\x0c\x02\0\0WEBPVP8L\0\x02\0\0" + bytes(range(256)) * 2
BMP = (
    b"BM"
    + struct.pack("<IHHIIiiHHIIiiII", 326, 0, 0, 54, 40, 9, 9, 1, 24, 0, 272, 0, 0, 0, 0)
    + bytes(range(120, 136)) * 17
)
TIFF = b"II*\0\x08\0\0\0" + bytes(range(256)) * 2
FILES = {"png": PNG, "jpeg": JPEG, "gif": GIF, "webp": WEBP, "bmp": BMP}
EVERY_FORMAT = pytest.mark.parametrize("kind", FILES)


def find(text: str, path: str | None = "/a.png") -> tuple[int, int, InlineSource | DamagedSource]:
    found = find_image_bytes(text, path)
    assert found is not None
    return found


def as_windows_1252(data: bytes) -> str:
    """Return bytes as a browser decodes what it calls latin1: five of them have no character and stay as they are."""
    undefined = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
    return "".join(chr(byte) if byte in undefined else bytes([byte]).decode("cp1252") for byte in data)


@requirement("rescue.latin1", "law.4")
@EVERY_FORMAT
@pytest.mark.parametrize(("before", "behind"), [("", ""), ("path: a.png\ncontent: ", "\nlines_read: 3\n… é")])
def test_an_image_in_latin_1_is_restored(kind: str, before: str, behind: str) -> None:
    data = FILES[kind]
    for written in (data.decode("latin-1"), as_windows_1252(data)):
        start, end, source = find(before + written + behind)
        assert (start, end) == (len(before), len(before) + len(written))
        assert source == build_from_bytes(data)


@requirement("rescue.damaged", "law.4")
@EVERY_FORMAT
def test_an_image_with_replacement_characters_is_damaged(kind: str) -> None:
    data = FILES[kind]
    ways = {
        "replaced": data.decode("utf-8", "replace"),
        "dropped": data.decode("utf-8", "ignore"),
        "truncated": data.decode("latin-1")[:-40] if kind != "gif" else data.decode("latin-1")[:-4],
    }
    for how, written in ways.items():
        if how == "dropped" and kind in ("gif", "webp", "bmp"):
            continue  # too little is left to tell
        start, _, source = find(f"Content of a:\n{written}")
        assert isinstance(source, DamagedSource), how
        assert (source.path, source.remains) == ("/a.png", list_remains(written[start - 14 :].encode())), how
        assert is_same_image(source.remains, data), how
        assert not is_same_image(source.remains, b"x" * 200 + data), how


@requirement("rescue.latin1", "law.4")
def test_a_tiff_in_latin_1_is_restored() -> None:
    for data in (TIFF, b"MM\0*" + TIFF[4:]):
        assert find(f"a.tif:\n{data.decode('latin-1')}") == (7, 7 + len(data), build_from_bytes(data))


@requirement("rescue.damaged", "law.4")
@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_an_image_without_its_zero_bytes_is_damaged(kind: str, encoding: str) -> None:
    data = FILES[kind]
    written = data.decode(encoding, "replace").replace("\0", "")
    start, _, source = find(f"Content of a:\n{written}")
    assert isinstance(source, DamagedSource)
    assert start == 14
    assert is_same_image(source.remains, data)
    (sight,) = read(OPENAI_CHAT, answer(written)).scene.sights
    assert isinstance(sight.source, DamagedSource)


def test_a_png_without_any_control_character_is_damaged() -> None:
    written = "".join(each for each in PNG.decode("utf-8", "replace") if each >= " " or each in "\r\n")
    assert isinstance(find(written)[2], DamagedSource)


@requirement("rescue.damaged", "law.11")
def test_a_text_about_formats_is_no_image() -> None:
    words = "‰PNG, then IHDR; GIF89a – é; JFIF and Exif follow ÿØÿà; RIFF….WEBPVP8L\n"
    assert find_image_bytes(words * 20, None) is None
    garbled = PNG.decode("utf-8", "replace").replace("\0", "")
    assert read(OPENAI_CHAT, answer(garbled, path="/a/notes.md")).scene.sights == ()


NUMBERED = {"cat -n": "{:6}\t{}", "an arrow": "{:5}\u2192{}", "a bar": "{:05}| {}", "a colon": "{}: {}"}


@requirement("rescue.latin1", "rescue.damaged", "law.4")
@pytest.mark.parametrize("form", NUMBERED)
@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_the_numbers_of_lines_are_left_out(kind: str, form: str) -> None:
    data = FILES[kind]
    for encoding in ("latin-1", "utf-8"):
        lines = data.decode(encoding, "replace").split("\n")
        numbered = "\n".join(NUMBERED[form].format(index, line) for index, line in enumerate(lines, 1))
        start, end, source = find(f"<file>\n{numbered}\n</file>")
        assert start == 7
        if encoding == "latin-1":
            assert (source, end) == (build_from_bytes(data), 7 + len(numbered))
        else:
            assert isinstance(source, DamagedSource)
            assert is_same_image(source.remains, data)


@requirement("rescue.latin1", "rescue.damaged", "hoist.json", "law.4")
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_bytes_in_a_string_of_json_are_found(ensure_ascii: bool) -> None:
    for encoding, kind in (("latin-1", InlineSource), ("utf-8", DamagedSource)):
        for words in (PNG.decode(encoding, "replace"), f"Content:\n{PNG.decode(encoding, 'replace')}"):
            written = json.dumps({"n": 1.5, "content": words}, ensure_ascii=ensure_ascii)
            (sight,) = read(OPENAI_CHAT, answer(written)).scene.sights
            assert isinstance(sight.source, kind)
            refused = Refused("[damaged]", Refusal("corrupt", "it is damaged"))
            lowered: Any = lower_body(OPENAI_CHAT, answer(written), [refused])
            kept = lowered["messages"][1]["content"]
            assert "IHDR" not in json.dumps(kept)
            assert "[damaged]" in json.dumps(kept)
            assert json.loads(kept[0]["text"])["n"] == 1.5


def answer(content: str, path: str = "/a.png") -> dict[str, Json]:
    """Return a call that reads a file, and its result."""
    call: Json = {"id": "c1", "function": {"name": "read", "arguments": json.dumps({"path": path})}}
    return body({"role": "assistant", "tool_calls": [call]}, {**tool("c1"), "content": content})


@requirement("rescue.damaged")
def test_line_breaks_that_were_changed_damage_an_image() -> None:
    _, _, source = find(PNG.decode("latin-1").replace("\r\n", "\n"))
    assert isinstance(source, DamagedSource)
    assert is_same_image(source.remains, PNG)


@requirement("rescue.damaged")
def test_words_after_a_damaged_png_stay() -> None:
    written = PNG.decode("utf-8", "replace")
    _, end, _ = find(f"{written}\nlines_read: 3")
    assert f"{written}\nlines_read: 3"[end:] == "\nlines_read: 3"


@requirement("rescue.damaged")
@pytest.mark.parametrize(
    "words",
    [
        "",
        "PNG files begin with \\x89PNG\\r\\n",
        "GIF89a is a format\0",
        "\0" * 100,
        "RIFF and WEBP\0",
        "%PDF-1.7\n\ufffd\ufffd\0",
        "PK\3\4\0\0",
        "x" * 5_000 + PNG.decode("latin-1"),
    ],
)
def test_other_texts_are_not_images(words: str) -> None:
    assert find_image_bytes(words, None) is None


@given(st.text(max_size=80), st.sampled_from(sorted(FILES)), st.text(max_size=80))
def test_any_words_may_be_around_an_image(before: str, kind: str, behind: str) -> None:
    written = FILES[kind].decode("latin-1")
    start, end, source = find(before + written + behind)
    assert isinstance(source, DamagedSource) or FILES[kind] == (before + written)[start:end].encode("latin-1") or before


@requirement("rescue.damaged")
def test_a_file_is_recognized_only_by_enough_of_it() -> None:
    remains = list_remains(PNG)
    assert is_same_image(remains, PNG)
    assert is_same_image(remains[:-20], PNG), "the text was truncated"
    assert is_same_image(remains + b"lines_read: 3", PNG), "words follow"
    assert not is_same_image(remains, JPEG)
    assert not is_same_image(remains, b"")
    assert not is_same_image(remains, PNG[:30])


# In requests


def build_bodies(content: str) -> list[tuple[Any, Json]]:
    """Return a request of each wire, in which a call that names a file has this result."""
    use: Json = {"type": "tool_use", "id": "c1", "name": "read", "input": {"filepath": "/home/me/c1.png"}}
    call: Json = {
        "type": "function_call",
        "call_id": "c1",
        "name": "read",
        "arguments": '{"filepath":"/home/me/c1.png"}',
    }
    gemini: Json = {"functionCall": {"name": "read", "args": {"path": "/home/me/c1.png"}}}
    response: Json = {"functionResponse": {"name": "read", "response": {"output": content}}}
    return [
        (OPENAI_CHAT, body(calling("c1"), {**tool("c1"), "content": content})),
        (ANTHROPIC, body({"role": "assistant", "content": [use]}, user({**result("c1"), "content": content}))),
        (OPENAI_RESPONSES, {"input": [call, {"type": "function_call_output", "call_id": "c1", "output": content}]}),
        (GEMINI, {"contents": [{"role": "model", "parts": [gemini]}, {"role": "user", "parts": [response]}]}),
    ]


@requirement("rescue.latin1", "law.4")
@pytest.mark.parametrize("before", ["", "Content of c1.png:\n"])
def test_restored_bytes_are_shown_on_every_wire(before: str) -> None:
    written = before + PNG.decode("latin-1")
    encoded = build_from_bytes(PNG).leaf
    for wire, request in build_bodies(written):
        (sight,) = read(wire, request).scene.sights
        assert (sight.role, sight.filename) == ("tool", "c1.png")
        lowered = str(lower_body(wire, request, [Shown("image/png")]))
        assert encoded in lowered
        assert "IHDR" not in lowered
        assert before.strip() in lowered
    chat: Any = lower_body(OPENAI_CHAT, build_bodies(written)[0][1], [Shown("image/png")])
    assert chat["messages"][-1]["content"][1] == part(encoded)


@requirement("rescue.damaged", "law.4", "law.6")
def test_damaged_bytes_become_one_sentence_on_every_wire() -> None:
    written = f"Content of c1.png:\n{PNG.decode('utf-8', 'replace')}"
    for wire, request in build_bodies(written):
        scene = read(wire, request).scene
        (sight,) = scene.sights
        assert isinstance(sight.source, DamagedSource)
        assert (sight.source.path, sight.call and sight.call.path) == ("/home/me/c1.png", "/home/me/c1.png")
        (fate,) = Table().fates(scene, rules())
        assert isinstance(fate, Refused)
        assert "/home/me/c1.png" in fate.text
        lowered = str(lower_body(wire, request, [fate]))
        assert fate.text in lowered
        assert "IHDR" not in lowered


@requirement("rescue.damaged")
def test_a_reopened_file_is_shown() -> None:
    wire, request = build_bodies(PNG.decode("utf-8", "replace"))[0]
    reopened = build_from_bytes(PNG)
    table = Table(reopened=reopened)
    scene = table.decided(read(wire, request).scene, rules(), by=resolve)
    assert [sight.source for sight in scene.sights] == [reopened]
    assert len(table.asked) == 1
    refused = Table(reopened=Refusal("corrupt", "it is gone")).fates(read(wire, request).scene, rules())
    assert [type(fate) for fate in refused] == [Refused]


def test_the_path_of_a_call_is_known_by_each_name_that_clients_use() -> None:
    for key in ("file_path", "filePath", "filepath", "absolute_path", "path", "filename", "file"):
        call: Json = {"id": "c1", "function": {"name": "read", "arguments": f'{{"{key}": "/a.png"}}'}}
        given = body({"role": "assistant", "tool_calls": [call]}, {**tool("c1"), "content": PNG.decode("latin-1")})
        (sight,) = read(OPENAI_CHAT, given).scene.sights
        assert sight.call == ToolCall("c1", "read", "/a.png")
