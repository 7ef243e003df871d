"""Numbers as people write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box
from sightline.reader.charts import format_value
from sightline.reader.phrases import parse_number, parse_whole_number, points_separate_thousands
from sightline.reader.reading import Chart, ChartMark


@pytest.mark.parametrize(
    ("text", "value"),
    [("$1,234.50", 1234.5), ("12 %", 12.0), ("-3", -3.0), ("1.234,5 €", 1234.5), ("3,5", 3.5), ("£69.60", 69.6),
     ("12 GB", 12.0), ("1.200.000", 1.2e6), ("1.2M", 1.2e6), ("$3k", 3000.0), ("64 B", 64.0), ("12,34,567", 1234567.0),
     ("(5)", -5.0), ("1 234,5", 1234.5), ("1e999", None),
     ("v1.2.3", None), ("", None), ("Paid", None), ("11 March 2026", None)],
)  # fmt: skip
def test_only_amounts_are_parsed_as_numbers(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30))
def test_a_number_has_a_digit(text: str) -> None:
    assert parse_number(text) is None or re.search(r"\d", text)


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ((0.034, 0.012, 0.047, 0.0255), ["0.034", "0.012", "0.047", "0.0255"]),
        ((1.204, 1.231), ["1.204", "1.231"]),
        ((42.03, 63.0), ["42", "63"]),
        ((1240854.0, 980321.0), ["1241000", "980000"]),
    ],
)
def test_a_value_is_written_as_exactly_as_its_chart_shows_it(values: tuple[float, ...], written: list[str]) -> None:
    marks = tuple(ChartMark(f"Q{n}", "", value, Box(0, 0, 9, 9), (0, 0, 255)) for n, value in enumerate(values))
    chart = Chart("bar", Box(0, 0, 99, 99), marks=marks)
    assert [format_value(mark.value, chart) for mark in marks] == written


@pytest.mark.parametrize(
    ("column", "thousands"),
    [
        (["1.250", "980", "12.400", "75"], True),
        (["1.250 kg", "", "Bolt", "80 kg"], True),
        (["1.250", "0.98", "12.4"], False),
        (["1.250", "2.400"], False),
    ],
)
def test_a_column_shows_whether_points_separate_thousands(column: list[str], thousands: bool) -> None:
    assert points_separate_thousands(column) is thousands


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.200", 1200), ("1.200.000", 1_200_000), ("1,200", 1200), ("12", 12), ("1.5", None), ("0.125", None)],
)
def test_a_whole_number_keeps_its_thousands(text: str, value: int | None) -> None:
    assert parse_whole_number(text) == value
