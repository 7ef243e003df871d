"""Monospaced text by the shapes of its letters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from sightline.reader.ocr.glyphs import read_by_shape
from sightline.reader.ocr.mono_grid import MonoLine
from sightline.reader.reading import Pixels
from tests.requirements import requirement

WIDE, HIGH, ZOOM, STEP, LEFT = 6, 11, 2, 30, 20  # of the drawn font; the distance of two rows, and where they begin

PROGRAM = ("const total = items.length;", "function sum(a, b) { return a }", "return total; }", "items[1].push(x);")


def draw_rows(rows: list[str]) -> Pixels:
    """Draw rows of text, each letter in its column."""
    image = Image.new("L", (800, STEP * (len(rows) + 1)), 255)
    for row, text in enumerate(rows):
        small = Image.new("L", (WIDE * max(1, len(text)), HIGH), 255)
        ImageDraw.Draw(small).text((0, 0), text, 0, ImageFont.load_default_imagefont())
        image.paste(small.resize((small.width * ZOOM, HIGH * ZOOM), Image.Resampling.NEAREST), (LEFT, STEP * row + 10))
    return np.asarray(image.convert("RGB"))


def make_line(
    pixels: Pixels, row: int, text: str, read: str | None = None, *, certain: float = 0.99, known: bool = True
) -> MonoLine:
    """Return a line of which `read` was read; its spaces are columns without a letter."""
    said = [(at, letter) for at, letter in enumerate(text if read is None else read) if letter.strip()]
    strip = pixels[STEP * row + 8 : STEP * row + 36].min(2) < 128
    rows, columns = np.flatnonzero(strip.any(1)), np.flatnonzero(strip.any(0))
    return MonoLine(
        tuple(letter for _, letter in said),
        tuple(LEFT + (at + 0.5) * WIDE * ZOOM for at, _ in said),
        (float(columns[0]), float(columns[-1] + 1)),
        (float(STEP * row + 8 + rows[0]), float(STEP * row + 9 + rows[-1])),
        tuple(certain for _ in said),
        float(WIDE * ZOOM) if known else None,
    )


def read_last(
    text: str, read: str = "", *, known: bool = False, program: tuple[str, ...] = PROGRAM, certain: float = 0.8
) -> str | None:
    """Read a row below a program; return None if it stays as it was read."""
    rows = [*program, text]
    pixels = draw_rows(rows)
    lines = [make_line(pixels, row, each) for row, each in enumerate(program)]
    lines.append(make_line(pixels, len(program), text, read, certain=certain, known=known))
    found = read_by_shape(pixels, lines)
    assert set(found) <= {len(program)}, "lines that were read rightly stay"
    letters = found.get(len(program))
    return None if letters is None else "".join(f"{' ' * each.spaced}{each.text}" for each in letters)


def test_punctuation_that_the_network_could_not_read_is_read_by_its_shape() -> None:
    assert read_last("});".replace(")", "]")) == "}];"
    assert read_last("}", "}") == "}"


def test_lost_letters_are_added_where_their_ink_is() -> None:
    assert read_last("{ return x }", "  return x", known=True) == "{ return x }"


def test_a_letter_that_looks_like_another_is_replaced() -> None:
    assert read_last("items[1]", "items[l]", known=True) == "items[1]"


def test_a_shape_that_was_never_seen_is_not_guessed() -> None:
    assert read_last("}@#") is None
    assert read_last("totalQ", "totalO", known=True) is None


def test_a_row_of_one_sign_is_read_where_some_of_it_was() -> None:
    assert read_last("-" * 40, "-" * 12) == "-" * 40
    assert read_last("-" * 40, "-=" * 6) == "-" * 40
    assert read_last("~" * 40, "~-" * 6) is None


def test_a_row_of_carets_is_not_read_as_letters() -> None:
    assert read_last("^" * 12, "A" * 12, known=True, certain=0.95) == "^" * 12


def test_columns_are_as_wide_as_the_strokes_show() -> None:
    """The network sees the letters a little nearer to each other than they are."""
    long = 'return "a value that is rather long, and then some more of it"'
    pixels = draw_rows([long, long.replace("value", "digit"), long.replace("then", "also"), "=" * len(long)])
    lines = [make_line(pixels, row, long) for row in range(3)]
    near = [
        replace(
            line,
            centres=tuple(LEFT + 0.99 * (centre - LEFT) for centre in line.centres),
            inked=line.centres,
            pitch=0.99 * WIDE * ZOOM,
        )
        for line in lines
    ]
    last = make_line(pixels, 3, "=" * len(long), "=" * 12, certain=0.8, known=False)
    (row,) = (letters for at, letters in read_by_shape(pixels, [*near, last]).items() if at == 3)
    assert "".join(each.text for each in row) == "=" * len(long)


def test_rows_that_share_no_columns_are_left_alone() -> None:
    pixels = draw_rows(["const", "}"])
    lines = [make_line(pixels, 0, "const"), make_line(pixels, 1, "}", "", known=False)]
    assert read_by_shape(pixels, lines) == {}


def test_underscores_are_read_by_ink_below_the_letters() -> None:
    assert read_last("__sum", "  sum", known=True) == "__sum"


def test_a_line_below_a_text_is_no_underscore() -> None:
    pixels = draw_rows([*PROGRAM, "sum of a"]).copy()
    row = len(PROGRAM)
    pixels[STEP * row + 32 : STEP * row + 34, LEFT : LEFT + 8 * WIDE * ZOOM] = 0
    lines = [make_line(pixels, at, text) for at, text in enumerate(PROGRAM)]
    assert row not in read_by_shape(pixels, [*lines, make_line(pixels, row, "sum of a")])


def test_a_zero_is_not_read_where_the_letter_o_was_never_seen() -> None:
    program = ("const start = 0 + 10 + 200;", *PROGRAM)
    assert read_last("allOf", "allof", known=True, program=program) == "allOf"


def test_single_letters_that_stay_unread_are_marked_in_a_long_row() -> None:
    assert read_last("~" + "-" * 40, " " + "-" * 12) == "?" + "-" * 40


@requirement("reader.mono")
@pytest.mark.parametrize("text", ['"""', "...", "=====", '"-"', "+"])
def test_signs_of_simple_shapes_are_read_where_the_page_has_no_other(text: str) -> None:
    assert read_last(text) == text


@pytest.mark.parametrize(("text", "read"), [("`total`", "'total'"), ("```", "```"), ("items `", "items 1")])
def test_backticks_are_told_by_their_ink(text: str, read: str) -> None:
    assert read_last(text, read, known=text != read) == text


@pytest.mark.parametrize(("text", "read", "column"), [("  l items", "  l items", 2), ("  items", "  items", 0)])
def test_a_bar_is_told_by_its_ink_and_one_before_all_letters_is_none(text: str, read: str, column: int) -> None:
    pixels = draw_rows([*PROGRAM, text.replace("l ", "  ")]).copy()
    base, left = STEP * len(PROGRAM) + 28, LEFT + column * WIDE * ZOOM + 5
    pixels[base - 14 : base + 4, left : left + 2] = 0
    lines = [make_line(pixels, row, each) for row, each in enumerate(PROGRAM)]
    found = read_by_shape(pixels, [*lines, make_line(pixels, len(PROGRAM), text, read)])
    letters = found.get(len(PROGRAM))
    assert (letters and "".join(each.text for each in letters)) == ("|items" if column else None)


def test_letters_beside_their_columns_are_in_the_next_ones_with_ink() -> None:
    """The network saw most letters half a column too far to the right, the last one where nothing is."""
    rows = [*PROGRAM, "return (total);"]
    pixels = draw_rows(rows)
    lines = [make_line(pixels, row, each) for row, each in enumerate(rows)]
    last = lines[-1]
    moved = tuple(centre + (6 if at > 2 else 0) for at, centre in enumerate(last.centres))
    found = read_by_shape(pixels, [*lines[:-1], replace(last, centres=moved, inked=last.centres)])
    assert "".join(each.text for each in found[len(PROGRAM)]) == "return(total);"


@pytest.mark.parametrize(("text", "read"), [("vow + x", "Vow + X"), ("VOX + 1", "vOx + 1")])
def test_the_case_of_a_letter_that_the_page_has_nowhere_else_is_told_by_its_height(text: str, read: str) -> None:
    program = ("fill the table(a, b)", "get that line", *PROGRAM[:2])
    assert not {"v", "x"} & set("".join(program))
    assert read_last(text, read, known=True, program=program) == text
    assert read_last(text, read, known=True, program=program, certain=0.99) is None


@requirement("reader.mono")
def test_a_row_of_carets_is_read_though_the_network_knows_another_letter() -> None:
    assert read_last("^" * 12, "Λ" * 12) == "^" * 12


def read_all(rows: list[tuple[str, str, float]]) -> list[str]:
    """Read rows of which each has its text, what was read of it, and how certain that is."""
    pixels = draw_rows([text for text, _, _ in rows])
    lines = [make_line(pixels, at, text, read, certain=certain) for at, (text, read, certain) in enumerate(rows)]
    found = read_by_shape(pixels, lines)
    return [
        "".join(f"{' ' * each.spaced}{each.text}" for each in found[at]) if at in found else read
        for at, (_, read, _) in enumerate(rows)
    ]


@requirement("reader.mono")
def test_letters_that_were_read_wrongly_do_not_show_what_others_look_like() -> None:
    known = [(text, text, 0.99) for text in PROGRAM]
    assert read_all([*known, ("const sum", "coost sum", 0.99)])[-1] == "const sum"


@requirement("reader.mono")
def test_a_digit_among_letters_is_the_letter_that_it_looks_like() -> None:
    known = [(text, text, 0.99) for text in (*PROGRAM, "Open = Other + Only", "total = 0 + 30 + 200")]
    assert read_all([*known, ("oneOf", "one0f", 0.93)])[-1] == "oneOf"
    assert read_all([(text, text, 0.99) for text in PROGRAM] + [("</li>", "</1i>", 0.93)])[-1] == "</li>"
    assert read_all([*known, ("one0f", "one0f", 0.93)])[-1] == "one0f"


@requirement("reader.mono")
def test_a_shape_without_a_letter_is_marked_in_a_line_that_was_read() -> None:
    known = [(text, text, 0.99) for text in PROGRAM]
    assert read_all([*known, ("return @sum(items)", "return  sum(items)", 0.99)])[-1] == "return ?sum(items)"


@requirement("reader.mono")
def test_commas_and_brackets_are_told_by_their_ink() -> None:
    known = [(text, text, 0.99) for text in PROGRAM if "[" not in text]
    assert read_all([*known, ("sum(a, b);", "sum(a; b):", 0.95)])[-1] == "sum(a, b);"
    assert read_all([*known, ("] + total", "1 + total", 0.92)])[-1] == "] + total"


@requirement("reader.mono")
def test_a_line_with_a_lost_letter_is_in_the_columns_of_its_strokes() -> None:
    rows = [*PROGRAM, "return items(total)"]
    pixels = draw_rows(rows)
    lines = [make_line(pixels, at, text) for at, text in enumerate(rows)]
    last, wide = lines[-1], WIDE * ZOOM
    moved = tuple(centre - 0.45 * wide for centre in last.centres[7:])
    lost = replace(
        last,
        texts=last.texts[:6] + last.texts[7:],
        centres=last.centres[:6] + moved,
        certain=last.certain[1:],
        inked=last.centres,
    )
    letters = read_by_shape(pixels, [*lines[:-1], lost])[len(PROGRAM)]
    assert "".join(f"{' ' * each.spaced}{each.text}" for each in letters) == rows[-1]


@requirement("reader.mono")
def test_the_edge_of_a_box_beside_a_prompt_is_no_letter_of_it() -> None:
    program = (">>> import names", ">>> names.sort()", ">>> len(names)", "4")
    pixels = draw_rows([f" {text}" for text in (*program, ">>>")]).copy()
    pixels[:, LEFT + 5] = 0
    lines = [make_line(draw_rows([f" {text}" for text in (*program, ">>>")]), row, f" {text}")
             for row, text in enumerate(program)]  # fmt: skip
    prompt = make_line(pixels, len(program), " >>>", " >>)", certain=0.8, known=False)
    found = read_by_shape(pixels, [*lines, prompt])
    assert "".join(each.text for each in found[len(program)]) == ">>>"


@requirement("reader.mono")
def test_no_letter_is_marked_as_lost_where_each_stroke_has_its_letter() -> None:
    """Digits of a proportional font may be about as wide as the columns of a program above them."""
    long = 'return "a value that is rather long, and then some more of it"'
    pixels = draw_rows([long, long.replace("value", "digit"), long.replace("then", "also"), "#" + long[1:]])
    lines = [make_line(pixels, row, long) for row in range(3)]
    last = make_line(pixels, 3, "#" + long[1:], " " + long[1:], certain=0.8)
    lost = replace(last, inked=(LEFT + WIDE, *last.centres))
    assert read_by_shape(pixels, [*lines, lost])[3][0].text == "?"
    assert 3 not in read_by_shape(pixels, [*lines, replace(last, inked=last.centres)])
