"""Questions about charts, answered from the values that were read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from sightline.model.asking import Spot
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.phrases import words
from sightline.seers.local.seen import Chart, Mark
from sightline.seers.local.subjects import STOP, Asked, Said

_most = re.compile(
    r"\b(?:highest|largest|greatest|biggest|most|maximum|max|tallest|top|best|longest|higher|larger|greater|bigger|more|taller)\b"
)
_least = re.compile(r"\b(?:lowest|smallest|least|minimum|min|fewest|shortest|worst|lower|smaller|less|fewer|shorter)\b")
_sum = re.compile(r"\b(?:sum|total|altogether|combined|add up)\b")
_about = re.compile(r"\b(?:charts?|bars?|graphs?|plots?|diagram|values?|data|series|points?|axis)\b")
TALK = frozenset(
    """highest largest greatest biggest most maximum max tallest top best longest lowest smallest least minimum min
    fewest shortest worst sum total altogether combined add up chart charts bar bars graph graphs plot diagram data
    series point points axis category categories quarter year month column columns row rows cell table header
    number amount figure figures high low size all every list record entry line higher larger greater bigger more
    taller lower smaller less fewer shorter over across during make made sell sold earn earned get got reach
    reached""".split()
)


def charted(asked: Asked) -> Said | None:
    """What the charts say: where several have an answer, each by its title; that none has one comes last."""
    found = [(chart, said) for chart in asked.seen.charts if chart.marks and (said := _of_chart(asked, chart))]
    told = [(chart, said) for chart, said in found if said.spots] or found[:1]
    if len(told) < 2:
        return told[0][1] if told else None
    titles = [f"{chart.title}: {said.text}" if chart.title else said.text for chart, said in told]
    return Said("\n".join(titles), tuple(spot for _, said in told for spot in said.spots))


def _of_chart(asked: Asked, chart: Chart) -> Said | None:
    if re.search(r"\bax[ie]s\b|^how many (?:\w+ )?(?:bars|lines|points|series)\b", asked.low):
        return None
    all_series, all_categories = ([getattr(mark, each) for mark in chart.marks] for each in ("series", "category"))
    series = mentioned(asked.low, all_series) or _by_a_word(asked, all_series) or _by_colour(asked, chart)
    categories = mentioned(asked.low, all_categories)
    extreme, total = extreme_of(asked.low), bool(_sum.search(asked.low))
    all_of_it = extreme or total or re.search(r"\b(?:list|values?|data)\b", asked.low)
    spoken_of = _about.search(asked.low) or set(words(asked.low)) & (set(words(chart.title)) - STOP)
    if not (series or categories or (all_of_it and spoken_of)):
        return None
    hues = frozenset(word for mark in chart.marks for word in colour_name(mark.colour).split())
    named = hues | frozenset(word for text in (chart.title, chart.unit, *series, *categories) for word in words(text))
    if strange := [word for word in asked.strangers(asked.low, TALK | named) if not _several(word, chart)]:
        return _of_all(asked, chart, extreme, strange) or _no_such(chart, strange)
    if extreme and total and len({mark.series for mark in chart.marks}) > 1:
        return None  # of sums, which are not drawn
    marks = [
        mark for mark in chart.marks
        if (not series or mark.series in series) and (not categories or mark.category in categories)
    ]  # fmt: skip
    return _figures(chart, marks, extreme, total=total and not extreme)


def _by_a_word(asked: Asked, names: Sequence[str]) -> list[str]:
    """The one name that has a word of the question, which no other has."""
    held: dict[str, set[str]] = {}
    for name in filter(None, names):
        for word in words(name):
            held.setdefault(word, set()).add(name)
    found = [held[word] for word in words(asked.low) if word in held and word not in STOP and word not in TALK]
    one = set.union(*found) if found else set()
    return [*one] if len(one) == 1 else []


def _by_colour(asked: Asked, chart: Chart) -> list[str]:
    """The series that are drawn in a colour that is asked for."""
    said = set(words(asked.low))
    return [*dict.fromkeys(mark.series for mark in chart.marks if said & set(colour_name(mark.colour).split()))]


def _of_all(asked: Asked, chart: Chart, extreme: int, strange: Sequence[str]) -> Said | None:
    """The bar with the most, by its name, where nothing but the word for what the bars are is not known."""
    noun = re.match(r"(?:in )?(?:which|what) (\w+)\b", asked.low)
    if not extreme or noun is None or strange != [noun[1]] or len({mark.series for mark in chart.marks}) > 1:
        return None
    most = max(extreme * mark.value for mark in chart.marks)
    marks = [mark for mark in chart.marks if number(extreme * mark.value, chart) == number(most, chart)]
    end = "highest" if extreme > 0 else "lowest"
    said = " and ".join(f'"{mark_name(mark)}"' for mark in marks)
    return Said(f"Of all in the chart, {said} is {end}: {number(told(marks[0]), chart)}", _spots(marks, chart))


def _several(word: str, chart: Chart) -> bool:
    """Whether a word is one of the chart's, of more than one."""
    one = word.removesuffix("s")
    return (one != word and any(one in words(text) for text in (chart.title, chart.unit))) or one in TALK


def _no_such(chart: Chart, strange: Sequence[str]) -> Said:
    kinds = "; ".join(", ".join(dict.fromkeys(filter(None, each))) for each in (
        [mark.category for mark in chart.marks], [mark.series for mark in chart.marks]))  # fmt: skip
    return Said(f"The chart says nothing of {', '.join(strange)}. It has: {kinds.strip('; ')}.")


def _figures(chart: Chart, marks: Sequence[Mark], extreme: int, *, total: bool) -> Said | None:
    if not marks:
        return None
    doubts = f" ({chart.doubts})" if chart.doubts and (extreme or total) else ""
    if extreme:
        most = max(extreme * mark.value for mark in marks)
        marks = [mark for mark in marks if number(mark.value, chart) == number(extreme * most, chart)]
    if total:
        return Said(
            f"{number(sum(map(told, marks)), chart)}{_unit(chart)}, the sum of {len(marks)} values{doubts}",
            _spots(marks, chart),
        )
    if len(marks) == 1:
        said = f"{number(told(marks[0]), chart)}{_unit(chart)} ({mark_name(marks[0])}){doubts}"
        return Said(said, _spots(marks, chart))
    listed = (f"{mark_name(mark)}: {number(told(mark), chart)}" for mark in marks)
    return Said("\n".join(listed), _spots(marks, chart))


def _spots(marks: Iterable[Mark], chart: Chart) -> tuple[Spot, ...]:
    return tuple(Spot(f"{mark_name(mark)}: {number(told(mark), chart)}", mark.box) for mark in marks)


def mark_name(mark: Mark) -> str:
    return ", ".join(filter(None, (mark.category, mark.series))) or "bar"


def told(mark: Mark) -> float:
    """The roundest of the values that it may have; a bar that is there is not nothing."""
    size, exponent = abs(mark.value), math.ceil(math.log10(abs(mark.value) or 1.0))
    if not mark.slack or not size:
        return mark.value
    for unit in (step * 10.0**power for power in range(exponent, exponent - 16, -1) for step in (1.0, 0.5, 0.2)):
        near = round(size / unit) * unit
        if near and abs(near - size) <= mark.slack:
            return math.copysign(float(f"{near:.12g}"), mark.value)
    return mark.value


def number(value: float, chart: Chart) -> str:
    """As exact as it can be seen in its chart: a five-hundredth of the greatest value there, and no more."""
    greatest = max((abs(mark.value) for mark in chart.marks), default=0.0) or abs(value) or 1.0
    places = max(-12, min(12, math.ceil(-math.log10(greatest / 500))))
    rounded = round(value, places)
    return f"{rounded:.0f}" if rounded.is_integer() else f"{rounded:.{max(places, 0)}f}".rstrip("0").rstrip(".")


def _unit(chart: Chart) -> str:
    return f" {chart.unit}" if chart.unit else ""


def extreme_of(low: str) -> int:
    return 1 if _most.search(low) else -1 if _least.search(low) else 0


def mentioned(low: str, names: Iterable[str]) -> list[str]:
    """The names that a question has in it, the longest of those that overlap."""
    asked = f" {' '.join(words(low.replace(chr(39) + 's', '')))} "
    there = [name for name in dict.fromkeys(names) if words(name) and f" {' '.join(words(name))} " in asked]
    return [name for name in there if not any(name != other and _inside(name, other) for other in there)]


def _inside(name: str, other: str) -> bool:
    return f" {' '.join(words(name))} " in f" {' '.join(words(other))} " and len(words(other)) > len(words(name))
