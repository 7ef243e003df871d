"""Names from outside: one line, with nothing that hides or reverses the text around it."""

from __future__ import annotations

import json
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as some

from sightline.model.fence import (
    dump_json_line,
    dump_rows,
    escape_attribute,
    escape_for_brackets,
    to_one_line,
    to_printable,
)
from sightline.model.labels import build_label
from sightline.model.refusal import Refusal
from sightline.model.scene import ToolCall
from sightline.passes.wording import write_absence
from tests.requirements import requirement

ODD = "\n\r\x00\x1b\x7f\x85\u2028\u200b\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\u00ad\u3164\U000e0041\U000e01ef"
names = some.text(some.one_of(some.characters(), some.sampled_from(ODD)), max_size=40)


def hidden(text: str) -> str:
    """Return the characters that a reader would not see, or would see elsewhere, independent of the code under test."""
    kinds = ("Cc", "Cf", "Zl", "Zp")
    return "".join(letter for letter in text if unicodedata.category(letter) in kinds or letter in "\u3164\U000e01ef")


@requirement("fence.visible")
@given(names)
def test_invisible_characters_in_a_name_are_escaped(name: str) -> None:
    no = Refusal("not_found", f"there is no {name}", name)
    for shown in (
        to_one_line(name),
        escape_attribute(name),
        dump_json_line({"path": name}),
        dump_rows([{"filename": name}], 4),
    ):
        assert hidden(shown) == "", ascii(shown)
    assert hidden(str(no) + no.what + no.remedy) == ""
    assert len(str(no).splitlines()) == 1
    assert to_one_line(to_one_line(name)) == to_one_line(name)
    assert hidden(to_printable(name)) == "", "nor on a terminal"


@requirement("fence.visible")
@given(names)
def test_escaped_json_parses_to_the_same_value(name: str) -> None:
    assert json.loads(dump_json_line({"path": name})) == {"path": name}
    (read,) = json.loads(dump_rows([{"filename": name}], 4))
    assert read == {"filename": name}


@requirement("fence.visible")
def test_all_format_and_control_characters_are_escaped() -> None:
    whole = "".join(map(chr, range(sys.maxunicode + 1))).encode("utf-8", "ignore").decode()
    left = set(hidden(to_one_line(whole)))
    # Signs before numbers and letters of a few scripts: they are seen.
    assert {f"{ord(each):04x}" for each in left} <= {
        *(f"{number:04x}" for number in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2)),
        "110bd", "110cd", *(f"{number:04x}" for number in range(0x13430, 0x13456)),
    }  # fmt: skip
    assert to_one_line("gnp.\u202etoh\ns ❤\ufe0f") == "gnp.\\u202etoh s ❤\ufe0f"


@requirement("fence.brackets")
@given(some.text(some.characters() | some.sampled_from("[]()［］⁅⁆⟦⟧〚〛"), max_size=20))
def test_a_name_cannot_close_the_square_brackets_around_it(name: str) -> None:
    for line in (
        f"[{escape_for_brackets(name)}]",
        write_absence(Refusal("corrupt", name), name),
        build_label(ToolCall(name, name)),
    ):
        assert not set(line[1:-1]) & set("[]［］⁅⁆⟦⟧〚〛"), line
        assert (line[0], line[-1]) == ("[", "]")
        assert len(line.splitlines()) == 1
