"""Names from outside: one line, and nothing in it that hides or turns what stands beside it."""

from __future__ import annotations

import json
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as some

from sightline.model.fence import attribute, in_brackets, json_line, one_line, plain, rows
from sightline.model.marks import label
from sightline.model.refusal import Refusal
from sightline.model.scene import Call
from sightline.passes.words import absence
from tests.requirements import requirement

ODD = "\n\r\x00\x1b\x7f\x85\u2028\u200b\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\u00ad\u3164\U000e0041\U000e01ef"
names = some.text(some.one_of(some.characters(), some.sampled_from(ODD)), max_size=40)


def hidden(text: str) -> str:
    """What a reader would not see, or would see elsewhere, with an eye of this test's own."""
    kinds = ("Cc", "Cf", "Zl", "Zp")
    return "".join(letter for letter in text if unicodedata.category(letter) in kinds or letter in "\u3164\U000e01ef")


@requirement("fence.visible")
@given(names)
def test_nothing_hides_in_a_name(name: str) -> None:
    no = Refusal("not_found", f"there is no {name}", name)
    for shown in (one_line(name), attribute(name), json_line({"path": name}), rows([{"filename": name}], 4)):
        assert hidden(shown) == "", ascii(shown)
    assert hidden(str(no) + no.what + no.remedy) == ""
    assert len(str(no).splitlines()) == 1
    assert one_line(one_line(name)) == one_line(name)
    assert hidden(plain(name)) == "", "nor on a terminal"


@requirement("fence.visible")
@given(names)
def test_what_is_json_reads_back_the_same(name: str) -> None:
    assert json.loads(json_line({"path": name})) == {"path": name}
    (read,) = json.loads(rows([{"filename": name}], 4))
    assert read == {"filename": name}


@requirement("fence.visible")
def test_what_unicode_calls_a_format_or_a_control_is_none_of_it_left_out() -> None:
    whole = "".join(map(chr, range(sys.maxunicode + 1))).encode("utf-8", "ignore").decode()
    left = set(hidden(one_line(whole)))
    # Signs before numbers and letters of a few scripts: they are seen.
    assert {f"{ord(each):04x}" for each in left} <= {
        *(f"{number:04x}" for number in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2)),
        "110bd", "110cd", *(f"{number:04x}" for number in range(0x13430, 0x13456)),
    }  # fmt: skip
    assert one_line("gnp.\u202etoh\ns ❤\ufe0f") == "gnp.\\u202etoh s ❤\ufe0f"


@requirement("fence.brackets")
@given(some.text(some.characters() | some.sampled_from("[]()［］⁅⁆⟦⟧〚〛"), max_size=20))
def test_a_name_in_square_brackets_does_not_end_them(name: str) -> None:
    for line in (f"[{in_brackets(name)}]", absence(Refusal("corrupt", name), name), label(Call(name, name))):
        assert not set(line[1:-1]) & set("[]［］⁅⁆⟦⟧〚〛"), line
        assert (line[0], line[-1]) == ("[", "]")
        assert len(line.splitlines()) == 1
