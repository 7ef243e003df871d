"""The bytes of an image as programs print them: numbers, hexadecimal digits and literals."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from sightline.model.labels import SHOWN_BELOW
from sightline.model.scene import DamagedSource, Json, Shown
from sightline.wire import OPENAI_CHAT
from sightline.wire.image_bytes import build_from_bytes, list_remains
from sightline.wire.json_tree import PlainTexts
from sightline.wire.text_images import find_text_images
from tests.requirements import requirement
from tests.wire.bodies import HOISTING, body, lower_body, part, tool

FILLING = bytes(range(256)) * 2
FILES = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + FILLING,
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0" + FILLING,
    "gif": b"GIF89a\x01\0\x01\0" + FILLING,
    "webp": b"RIFF\x24\x02\0\0WEBPVP8 " + FILLING,
    "bmp": b"BM" + struct.pack("<IHHII", 1000, 0, 0, 54, 40) + FILLING,
}
EVERY_FORMAT = pytest.mark.parametrize("kind", FILES)


def write_hex(data: bytes) -> str:
    return " ".join(f"{byte:02x}" for byte in data)


def write_numbers(data: bytes, between: str = ", ") -> str:
    return between.join(map(str, data))


def write_rows(data: bytes) -> str:
    """Return numbers in rows and columns, as Node prints them."""
    return ",\n".join("  " + ", ".join(f"{byte:3}" for byte in data[at : at + 12]) for at in range(0, len(data), 12))


def answer(content: str) -> dict[str, Json]:
    call: Json = {"id": "c1", "function": {"name": "shot", "arguments": "{}"}}
    return body({"role": "assistant", "tool_calls": [call]}, {**tool("c1"), "content": content})


@requirement("rescue.bytes", "law.4")
@EVERY_FORMAT
def test_printed_bytes_are_the_image(kind: str) -> None:
    data = FILES[kind]
    for written in (
        f"<Buffer {write_hex(data)}>",
        f"Uint8Array({len(data)}) [\n{write_rows(data)}\n]",
        f"Uint8ClampedArray({len(data)}) [ {write_numbers(data)} ]",
        f"Buffer({len(data)}) [Uint8Array] [{write_numbers(data)}]",
        write_numbers(data),
        write_numbers(data, ","),
        repr(data),
    ):
        assert [*find_text_images(written, PlainTexts())] == [((), build_from_bytes(data))]
        (found,) = find_text_images(json.dumps({"n": 1, "out": f"took\n{written}"}), PlainTexts())
        assert found[1] == build_from_bytes(data)
        lowered: Any = lower_body(OPENAI_CHAT, answer(f"took\n{written}"), [Shown("image/png")], HOISTING)
        held, moved = lowered["messages"][1:]
        assert held["content"] == f"took\n{SHOWN_BELOW}"
        assert moved["content"][1] == part(build_from_bytes(data).leaf)


@requirement("rescue.bytes", "law.4")
@EVERY_FORMAT
def test_a_literal_inside_an_object_is_the_image(kind: str) -> None:
    (found,) = find_text_images(f"BinaryContent(data={FILES[kind]!r}, media_type='image/x')", PlainTexts())
    assert found[1] == build_from_bytes(FILES[kind])


@requirement("rescue.bytes", "rescue.damaged", "law.4")
@EVERY_FORMAT
def test_bytes_that_node_has_left_out_damage_the_image(kind: str) -> None:
    data = FILES[kind]
    for size, written in (
        (50, f"<Buffer {write_hex(data[:50])} ... {len(data) - 50} more bytes>"),
        (100, f"[Uint8Contents]: <{write_hex(data[:100])} ... {len(data) - 100} more bytes>"),
        (100, f"Uint8Array({len(data)}) [\n{write_rows(data[:100])},\n  ... {len(data) - 100} more items\n]"),
    ):
        (found,) = find_text_images(f"{{ ok: true, png: {written} }}", PlainTexts(), "/a.png")
        assert found[1] == DamagedSource("/a.png", list_remains(data[:size]))


@requirement("rescue.source_stays", "rescue.not_images")
@pytest.mark.parametrize(
    "written",
    [
        f"const png = new Uint8Array([{write_numbers(FILES['png'])}]);",
        f"DATA = bytes([{write_numbers(FILES['png'])}])\n",
        f"static const unsigned char logo[] = {{{write_numbers(FILES['png'])}}};",
        f"<Buffer {write_hex(bytes(200))}>",
        f"<Buffer {write_hex(FILES['png'][:20])}>",
        f"Uint8Array(3) [{write_numbers(bytes(range(200)))}]",
        f"Uint8Array(3) [{write_numbers(FILES['png'])}, 999]",
        write_numbers(bytes(range(200))),
        repr(b"RIFF\x24\0\0\0WAVEfmt " + FILLING),
        repr(b"BMW is no image \0" + FILLING),
    ],
)
def test_other_numbers_and_source_stay(written: str) -> None:
    assert [*find_text_images(written, PlainTexts())] == []


@requirement("rescue.bytes")
def test_printed_bytes_are_searched_in_linear_time() -> None:
    """Each candidate is looked at once, however many there are: these would take minutes otherwise."""
    row = "89 50 " * 30
    for piece in (f"<Buffer {row}", f"<{row}", "Uint8Array(1) [1,2,3,", "Buffer(1111111", "137,80,\n", "b'GIF8\\x00"):
        [*find_text_images(f"x {piece * 20_000}", PlainTexts())]


ENDS = {"png": b"\0\0\0\0IEND\xaeB`\x82", "jpeg": b"\xff\xd9", "gif": b"\0;", "webp": b"", "bmp": b""}


def complete(kind: str) -> bytes:
    data = FILES[kind] + ENDS[kind]
    if kind == "webp":
        return data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
    return data[:2] + struct.pack("<I", len(data)) + data[6:] if kind == "bmp" else data


def wrap(digits: str, length: int = 60) -> str:
    return "\n".join(digits[at : at + length] for at in range(0, len(digits), length))


@requirement("rescue.bytes", "law.4")
@EVERY_FORMAT
def test_hexadecimal_digits_at_the_end_are_the_image(kind: str) -> None:
    data = complete(kind)
    for digits in (data.hex(), data.hex().upper(), f"0x{data.hex()}", f"\\x{data.hex()}", wrap(data.hex())):
        assert [*find_text_images(digits, PlainTexts())] == [((), build_from_bytes(data))]
        for written in (f"took\n{digits}\n", f"hex: {digits}", json.dumps({"n": 1, "shot": digits})):
            (found,) = find_text_images(written, PlainTexts())
            assert found[1] == build_from_bytes(data)


@requirement("rescue.not_images", "rescue.bytes")
@EVERY_FORMAT
def test_the_first_bytes_of_a_file_in_digits_are_no_image(kind: str) -> None:
    digits = complete(kind)[:-4].hex()
    for written in (digits, digits[:-1], wrap(digits), f"{digits} is", f"a{digits}", f"deadbeef\n{digits}", "ab" * 300):
        assert [*find_text_images(written, PlainTexts())] == []


@requirement("rescue.bytes", "law.4")
@EVERY_FORMAT
def test_a_list_of_numbers_in_json_behind_words_is_the_image(kind: str) -> None:
    data = FILES[kind]
    for value in (json.dumps({"bytes": [*data]}), json.dumps({"n": 1, "b": [*data], "c": [1]}, separators=(",", ":"))):
        lowered: Any = lower_body(OPENAI_CHAT, answer(f"Screenshot taken\n{value}"), [Shown("image/png")], HOISTING)
        held, moved = lowered["messages"][1:]
        numbers = json.dumps([*data]) if ": " in value else write_numbers(data, ",").join("[]")
        assert held["content"] == f"Screenshot taken\n{value.replace(numbers, '[image]')}\n{SHOWN_BELOW}"
        assert moved["content"][1] == part(build_from_bytes(data).leaf)
    assert [*find_text_images(f"x = new Uint8Array({[*data]})", PlainTexts())] == []
