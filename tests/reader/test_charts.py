"""Bar and line charts: values by the axis, names by labels and legend; and images without charts."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box, Size
from sightline.reader.charts import find_charts, round_mark
from sightline.reader.examine import examine_image
from sightline.reader.phrases import parse_number
from sightline.reader.reading import Chart, ChartMark, ImageReading
from tests.reader.sketch import BLUE, GREEN, ORANGE, Sketch, bar_chart
from tests.reader.statements import describe_reading

TOLD = {
    ("North", "Online"): 80,
    ("North", "Retail"): 30,
    ("South", "Online"): 55,
    ("South", "Retail"): 65,
    ("East", "Online"): 20,
    ("East", "Retail"): 95,
}


def only(sketch: Sketch) -> Chart:
    (chart,) = find_charts(sketch.pixels, sketch.lines)
    return chart


def values(chart: Chart) -> dict[tuple[str, str], float]:
    return {(mark.category, mark.series): mark.value for mark in chart.marks}


def ruled(sketch: Sketch, top: float, zero: float = 420, step: float = 20, count: int = 6) -> None:
    """Draw an upright axis with its labels at the left."""
    for place in range(count):
        y = zero + (top - zero) * place / (count - 1)
        sketch.box((72, y, 600, y + 1), "#c0c0c0")
        sketch.write(64, y + 0.5, f"{place * step:,g}", 12, anchor="rm")


@pytest.mark.parametrize(("dark", "side"), [*itertools.product((False, True), repeat=2)])
def test_grouped_bars_are_read_by_label_and_legend(dark: bool, side: bool) -> None:
    chart = only(bar_chart(dark, side))
    assert chart.kind == "bar"
    assert chart.title == "Orders by channel"
    assert chart.unit == "%"
    assert chart.doubts == ""
    assert values(chart) == pytest.approx(TOLD, abs=0.6)
    assert all(chart.box.x <= mark.box.x and mark.box.bottom <= chart.box.bottom for mark in chart.marks)


def test_stacked_bars_have_the_values_of_their_pieces() -> None:
    sketch = Sketch()
    ruled(sketch, 70)
    told = {"Q1": (40, 35, 20), "Q2": (10, 60, 5), "Q3": (25, 0, 50)}
    for place, (name, pieces) in enumerate(told.items()):
        reached = 420.0
        for value, colour in zip(pieces, (BLUE, ORANGE, GREEN), strict=True):
            sketch.box(
                (120 + place * 160, reached - 3.5 * value, 180 + place * 160, reached), colour
            ) if value else None
            reached -= 3.5 * value
        sketch.write(150 + place * 160, 440, name, 12, anchor="mm")
    chart = only(sketch)
    assert values(chart) == pytest.approx(
        {
            ("Q1", "blue"): 40,
            ("Q1", "orange"): 35,
            ("Q1", "green"): 20,
            ("Q2", "blue"): 10,
            ("Q2", "orange"): 60,
            ("Q2", "green"): 5,
            ("Q3", "blue"): 25,
            ("Q3", "green"): 50,
        },
        abs=0.6,
    )
    assert len(chart.doubts.split("; ")) == 2, "the colours are its only names, and one bar was not found"


def test_bars_below_zero_are_negative_and_printed_values_win() -> None:
    sketch = Sketch()
    for step, y in ((40, 70), (20, 160), (0, 250), (-20, 340)):
        sketch.box((72, y, 600, y + 1), "#c0c0c0")
        sketch.write(64, y + 0.5, str(step).replace("-", "−"), 12, anchor="rm")
    for place, (name, value) in enumerate({"Mon": 33.37, "Tue": -15.2, "Wed": 7.0}.items()):
        tip = 250 - value * 4.5
        sketch.box((120 + place * 160, min(250, tip), 180 + place * 160, max(250, tip)), BLUE)
        sketch.write(150 + place * 160, 440, name, 12, anchor="mm")
    sketch.write(150, 250 - 33.37 * 4.5 - 10, "33.37", 12, anchor="mm")
    told = values(only(sketch))
    assert told["Mon", ""] == 33.37
    assert told == pytest.approx({("Mon", ""): 33.37, ("Tue", ""): -15.2, ("Wed", ""): 7.0}, abs=0.6)


def test_values_of_bars_are_as_round_as_their_pixels_allow() -> None:
    sketch = Sketch((700, 450))
    for step in range(6):
        sketch.write(64, 380 - step * 60, str(step * 10), 16, anchor="rm")
        sketch.pen.line((75, 380 - step * 60, 80, 380 - step * 60), "#202020")
    for place, (name, value) in enumerate({"Q1": 12, "Q2": 35, "Q3": 28, "Q4": 46}.items()):
        x = 130 + place * 130
        sketch.pen.rectangle((x, 380 - value * 6, x + 70, 380), BLUE)
        sketch.write(x + 35, 398, name, 16, anchor="mm")
    seen = examine_image(sketch.pixels, sketch.lines)
    assert "Q1 12; Q2 35; Q3 28; Q4 46." in describe_reading(seen).text


@given(st.floats(-1e6, 1e6), st.floats(0, 1e3))
def test_the_value_of_a_bar_is_within_its_tolerance(value: float, slack: float) -> None:
    mark = ChartMark("a", "", value, Box(0, 0, 1, 1), (0, 0, 0), slack)
    assert abs(round_mark(mark) - value) <= slack + 1e-10 * abs(value)
    assert not value or round_mark(mark)


def test_lines_are_read_at_their_labels() -> None:
    sketch = Sketch()
    ruled(sketch, 70)
    told = {BLUE: (10, 60, 45, 90), ORANGE: (80, 20, 70, 30)}
    xs = [130 + 130 * place for place in range(4)]
    for colour, heights in told.items():
        sketch.pen.line([(x, 420 - 3.5 * value) for x, value in zip(xs, heights, strict=True)], colour, 3)
    for x, name in zip(xs, ("Jan", "Feb", "Mar", "Apr"), strict=True):
        sketch.write(x, 440, name, 12, anchor="mm")
    sketch.pen.line([(400, 30), (424, 30)], BLUE, 3)
    sketch.write(432, 30, "Online", 12)
    sketch.pen.line([(500, 30), (524, 30)], ORANGE, 3)
    sketch.write(532, 30, "Retail", 12)
    chart = only(sketch)
    assert chart.kind == "line"
    months = ("Jan", "Feb", "Mar", "Apr")
    expected = {(m, "Online"): v for m, v in zip(months, told[BLUE], strict=True)}
    expected |= {(m, "Retail"): v for m, v in zip(months, told[ORANGE], strict=True)}
    assert values(chart) == pytest.approx(expected, abs=1.0)


def test_two_adjacent_charts_are_read_separately() -> None:
    one, other = bar_chart(), bar_chart(dark=True)
    both = Sketch((1280, 480))
    both.image.paste(one.image, (0, 0))
    both.image.paste(other.image, (640, 0))
    both.lines = one.lines[:]
    both.lines += [replace(line, box=replace(line.box, x=line.box.x + 640)) for line in other.lines]
    found = find_charts(both.pixels, both.lines)
    assert [values(chart) for chart in found] == [pytest.approx(TOLD, abs=0.6)] * 2


def test_bars_without_labels_are_reported_with_a_doubt() -> None:
    sketch = bar_chart()
    sketch.lines = [line for line in sketch.lines if line.text not in ("North", "South", "East")]
    chart = only(sketch)
    assert {mark.category for mark in chart.marks} == {""}
    assert chart.doubts


def test_a_form_a_table_and_a_blank_page_are_not_charts() -> None:
    sketch = Sketch()
    for row in range(6):
        sketch.write(20, 40 + row * 30, str(row + 1))
        sketch.box((60, 28 + row * 30, 300, 52 + row * 30), "#ffffff", "#808080")
        sketch.write(70, 40 + row * 30, f"value {row}")
    sketch.box((60, 300, 160, 330), BLUE)
    assert find_charts(sketch.pixels, sketch.lines) == ()
    assert find_charts(Sketch().pixels, ()) == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,250", 1250),
        ("20%", 20),
        ("$40", 40),
        ("−5", -5),
        ("(5)", -5),
        ("1.5k", 1500),
        ("€1.2M", 1_200_000),
        ("1e6", 1_000_000),
        ("3,5", 3.5),
        ("1.000.000", 1_000_000),
        ("-$5", -5),
        ("O", 0),
        ("Q1", None),
        ("12:30", None),
        ("v2", None),
        ("", None),
    ],
)
def test_a_label_is_a_number_or_none(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@given(st.text(max_size=20) | st.from_regex(r"[$€(]?[-−+]?\d[\d.,' ]{0,12}(e\d{1,4})?[kM%)]?", fullmatch=True))
def test_any_text_is_a_finite_number_or_none(text: str) -> None:
    value = parse_number(text)
    assert value is None or math.isfinite(value)


@given(st.floats(-1e9, 1e9).map(lambda value: round(value, 2)))
def test_a_number_is_read_as_it_was_written(value: float) -> None:
    assert parse_number(f"{value:,.2f}") == pytest.approx(value)


def test_a_line_along_the_bottom_of_a_plot_is_not_a_bar() -> None:
    sketch = Sketch()
    ruled(sketch, 70)
    sketch.box((80, 417, 600, 420), "#c6c6c6")
    for place, name in enumerate(("Alpha", "Beta", "Gamma", "Delta")):
        sketch.write(120 + place * 140, 440, name, 12, anchor="mm")
    assert find_charts(sketch.pixels, sketch.lines) == ()


@pytest.mark.parametrize(
    ("labels", "greatest"),
    [
        (("0", "200.000", "400.000", "600.000", "800.000", "1.000.000"), 1_000_000),
        (("0", "200.000", "400.000", "600.000", "800.000"), 800_000),
        (("0.000", "0.250", "0.500", "0.750", "1.000"), 1),
        (("0.000", "1.250", "2.500", "3.750", "5.000"), 5),
    ],
)
def test_points_in_the_labels_of_an_axis_are_read_together(labels: tuple[str, ...], greatest: float) -> None:
    sketch = Sketch()
    for place, label in enumerate(labels):
        y = 420 - 350 * place / (len(labels) - 1)
        sketch.box((92, y, 600, y + 1), "#c0c0c0")
        sketch.write(84, y + 0.5, label, 12, anchor="rm")
    for place, (name, share) in enumerate({"North": 0.5, "South": 1.0, "East": 0.25}.items()):
        sketch.box((130 + place * 150, 420 - 350 * share, 190 + place * 150, 420), BLUE)
        sketch.write(160 + place * 150, 440, name, 12, anchor="mm")
    told = {(mark.category): mark.value for mark in only(sketch).marks}
    assert told == pytest.approx({"North": greatest / 2, "South": greatest, "East": greatest / 4}, rel=0.02)


def test_a_piece_beside_the_labels_is_not_background() -> None:
    sketch = Sketch()
    for place in range(6):
        sketch.box((80 + place * 100, 60, 81 + place * 100, 425), "#c0c0c0")
        sketch.write(80 + place * 100, 440, f"{place * 20}", 12, anchor="mm")
    for place, (name, first, second) in enumerate((("Q1", 20, 60), ("Q2", 50, 30), ("Q3", 15, 80))):
        top = 92 + place * 120
        sketch.box((80, top, 80 + 5 * first, top + 90), BLUE)
        sketch.box((80 + 5 * first, top, 80 + 5 * (first + second), top + 90), ORANGE)
        sketch.write(70, top + 45, name, 12, anchor="rm")
    told = sorted(mark.value for mark in only(sketch).marks)
    assert told == pytest.approx([15, 20, 30, 50, 60, 80], abs=1)


def test_an_edge_within_a_stack_leaves_every_piece_its_own_value() -> None:
    sketch = Sketch()
    ruled(sketch, 70)
    for place, name in enumerate(("Q1", "Q2", "Q3")):
        x = 120 + place * 160
        sketch.box((x, 280, x + 60, 420), BLUE)
        sketch.box((x, 277, x + 60, 280), "#303030")
        sketch.box((x, 140, x + 60, 277), ORANGE)
        sketch.box((x, 137, x + 60, 140), "#ff9f3e")
        sketch.write(x + 30, 440, name, 12, anchor="mm")
    assert [mark.value for mark in only(sketch).marks] == pytest.approx([40, 40] * 3, abs=1.5)


def test_bars_of_a_few_pixels_with_soft_edges_are_read() -> None:
    sketch = Sketch()
    for place in range(6):
        sketch.box((100 + place * 100, 410, 101 + place * 100, 416), "#606060")
        sketch.write(100 + place * 100, 436, f"{place * 20}", 12, anchor="mm")
    told = {("North", 80), ("South", 30), ("East", 55)}
    for place, (name, value) in enumerate(sorted(told)):
        y, tip = 120 + place * 90, 100 + 5 * value
        for row, colour in enumerate(("#2b7eb8", "#1f77b4", "#3685bb")):
            sketch.box((100, y + row, tip, y + row + 1), colour)
        sketch.write(90, y + 1, name, 12, anchor="rm")
    assert {(mark.category, round(mark.value)) for mark in only(sketch).marks} == told


def test_a_minus_sign_that_was_not_read_is_found_before_its_label() -> None:
    sketch = Sketch()
    for label, y in (("1.5k", 100), ("0.5k", 200), ("0.5k", 300)):
        sketch.box((90, y, 98, y + 1), "#202020")
        sketch.write(84, y + 0.5, label, 13, anchor="rm")
    minus = sketch.lines[-1].box
    sketch.box((minus.x - 8, 300, minus.x - 3, 301), "#202020")
    for place, (name, value) in enumerate((("North", 1000), ("South", -400), ("East", 600))):
        x, tip = 140 + place * 150, 250 - value / 10
        sketch.box((x, min(tip, 250), x + 60, max(tip, 250)), BLUE)
        sketch.write(x + 30, 440, name, 13, anchor="mm")
    assert [mark.value for mark in only(sketch).marks] == pytest.approx([1000, -400, 600], abs=15)


def test_narrow_bars_with_round_ends_have_their_whole_height() -> None:
    sketch = Sketch()
    ruled(sketch, 70)
    told = {"Mon": 50, "Tue": 20, "Wed": 82, "Thu": 40}
    for place, (name, value) in enumerate(told.items()):
        tip = 420 - round(3.5 * value)
        sketch.box((130 + 110 * place, tip + 3, 136 + 110 * place, 420), BLUE)
        sketch.box((132 + 110 * place, tip, 134 + 110 * place, tip + 3), BLUE)
        sketch.write(133 + 110 * place, 440, name, 12, anchor="mm")
    assert values(only(sketch)) == pytest.approx({(name, ""): value for name, value in told.items()}, abs=0.6)


def test_pieces_of_a_bar_that_cannot_be_told_apart_get_no_values() -> None:
    sketch = Sketch()
    ruled(sketch, 70)
    for place, (name, value) in enumerate({"North": 60, "South": 40, "East": 80}.items()):
        left, tip = 130 + 140 * place, 420 - 3.5 * value
        for part, colour in enumerate(("#1f77b4", "#2a80bd", "#1f77b4")):
            sketch.box((left, tip + part * (420 - tip) / 3, left + 60, tip + (part + 1) * (420 - tip) / 3 - 1), colour)
        sketch.write(left + 30, 440, name, 12, anchor="mm")
    charts = find_charts(sketch.pixels, sketch.lines)
    assert [mark for chart in charts for mark in chart.marks] == []


def test_an_area_over_a_row_of_labels_is_no_bar_chart() -> None:
    sketch = bar_chart()
    sketch.box((73, 60, 640, 419), "#ffffff")
    sketch.box((230, 200, 400, 420), BLUE)
    assert not [chart for chart in find_charts(sketch.pixels, sketch.lines) if chart.kind == "bar"]


def test_a_name_far_from_a_chart_is_none_of_its_series() -> None:
    sketch = Sketch((640, 1000))
    near = bar_chart()
    sketch.image.paste(near.image, (0, 0))
    sketch.lines = [line for line in near.lines if line.text not in {mark.series for mark in only(near).marks}]
    kept = only(sketch).marks
    sketch.box((72, 900, 84, 912), ORANGE)
    sketch.write(92, 906, "Page 1 of 3", 12)
    assert only(sketch).marks == kept


def draw_line(points: tuple[tuple[int, int], ...], wide: int = 640) -> Sketch:
    """Draw a line on an axis from 0 to 80 over five names."""
    sketch = Sketch((wide, 480))
    for step in range(5):
        sketch.box((72, 420 - 80 * step, 600, 421 - 80 * step), "#c0c0c0")
        sketch.write(64, 420.5 - 80 * step, str(20 * step), 12, anchor="rm")
    for place, name in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri")):
        sketch.write(110 + 110 * place, 440, name, 12, anchor="mm")
    sketch.pen.line(points, BLUE, 3)
    return sketch


def test_a_line_in_steps_has_no_values() -> None:
    heights = (300, 180, 260, 140, 220)
    points = [(x, y) for place, y in enumerate(heights) for x in (110 + 110 * place - 55, 110 + 110 * place + 55)]
    (chart,) = find_charts((sketch := draw_line(tuple(points))).pixels, sketch.lines)
    assert (chart.kind, chart.marks) == ("line", ())
    assert chart.doubts


def test_a_line_that_leaves_the_picture_is_not_read() -> None:
    points = ((110, 300), (290, 200), (300, -60), (352, -60), (362, 240), (550, 140))
    sketch = draw_line(points)
    assert find_charts(sketch.pixels, sketch.lines) == ()


def test_a_line_up_to_the_edge_of_the_picture_is_read() -> None:
    points = ((110, 300), (220, 180), (330, 260), (440, 140), (550, 220), (620, 220))
    sketch = draw_line(points, 600)
    assert [round(mark.value) for mark in only(sketch).marks] == [30, 60, 40, 70, 50]


def test_a_peak_between_two_labels_is_told() -> None:
    chart = only(sketch := draw_line(((110, 300), (220, 260), (275, 140), (330, 280), (440, 260), (550, 220))))
    assert [round(mark.value) for mark in chart.marks] == [30, 40, 35, 40, 50]
    name, value, place = chart.between.split(", ")
    assert (name, place) == ("it is highest", "between Tue and Wed")
    assert abs(float(value.removeprefix("about ")) - 70) <= 2
    reading = ImageReading(Size(640, 480), tuple(sketch.lines), charts=(chart,))
    assert f"Between its labels, {chart.between}." in describe_reading(reading).text


def test_lines_that_turn_at_their_labels_have_nothing_between_them() -> None:
    chart = only(draw_line(((110, 300), (220, 180), (330, 260), (440, 140), (550, 220))))
    assert chart.between == ""
