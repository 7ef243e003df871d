"""How many there are, and of what kind a chart is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sightline.model.asking import Spot
from sightline.seers.local.boxes import inside
from sightline.seers.local.cells import grids
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.finding import of_kind
from sightline.seers.local.headed import tables
from sightline.seers.local.listing import FILL, and_unread, hinted, sorted_out
from sightline.seers.local.phrases import words
from sightline.seers.local.seen import Mark, Part, PartKind, Seen
from sightline.seers.local.subjects import STOP, Asked, Said, bare, part_thing, spots_of

_COUNTED: Mapping[str, PartKind] = {
    r"radio buttons?": "radio",
    r"buttons?": "button",
    r"(?:(?:text|input|entry|form) )?(?:fields?|inputs?)|text ?boxes|text box": "field",
    r"(?:check|tick) ?box(?:es)?": "check",
    r"panels?|cards?": "panel",
}
_many = re.compile(r"\b(?:how many|(?:the )?number of|count(?: of)?(?: all)?(?: the)?) (?P<what>.+)")


def counted(asked: Asked) -> Said | None:
    match = _many.search(asked.low)
    if match is None:
        return None
    what = match["what"]
    if re.match(r"times\b|occurrences\b", what) and asked.quoted:
        return _occurrences(asked.quoted[0], asked.seen)
    if bars := re.match(r"(\w+) bars?\b", what):
        return _bars_of(asked, bars[1])
    for shape, kind in _COUNTED.items():
        if noun := re.search(rf"\b(?:{shape})\b", what):
            return _parts_counted(asked, kind, what.replace(noun[0], " ", 1))
    return _things_counted(asked, what)


def _occurrences(phrase: str, seen: Seen) -> Said:
    lines = [line for line in seen.lines if phrase.casefold() in line.text.casefold()]
    times = sum(line.text.casefold().count(phrase.casefold()) for line in lines)
    return Said(f"{times}{and_unread(seen)}", spots_of(lines))


def _parts_counted(asked: Asked, kind: PartKind, rest: str) -> Said | None:
    every = of_kind(asked.seen, kind)
    parts = sorted_out(every, rest, asked.seen)
    if parts is None:
        return None
    large = _large_buttons(asked.seen) if kind == "button" and len(parts) == len(every) else ""
    more = f"{_nested(parts)}{large}{hinted(every, rest, asked.seen)}{and_unread(asked.seen)}"
    return Said(f"{len(parts)}{more}", tuple(part_thing(part, asked.seen).spot for part in parts))


def _nested(parts: Sequence[Part]) -> str:
    """Of panels that stand in others it is said that they do: which of them are meant, nobody can tell."""
    within = [part for part in parts if any(part is not other and inside(part.box, other.box) for other in parts)]
    return f", {len(within)} of them within others" if within else ""


def _large_buttons(seen: Seen) -> str:
    """What must be added to a number of buttons: panels that hold no more than a word in their middle."""
    held = [(part.box, seen.lines[part.lines[0]].box) for part in of_kind(seen, "panel") if len(part.lines) == 1]
    large = sum(
        abs(box.x + box.right - text.x - text.right) <= max(8, 0.1 * box.width)
        and abs(box.y + box.bottom - text.y - text.bottom) <= max(8, 0.2 * box.height)
        for box, text in held
    )
    return f"; {large} panels with one text in the middle may be large buttons" if large > 1 else ""


def _things_counted(asked: Asked, what: str) -> Said | None:
    """What is no part of an interface but can be counted: rows, bars, words."""
    noun = next(iter(words(bare(what))), "")
    one = {"categories": "category", "series": "series"}.get(noun, noun.removesuffix("s"))
    left = [word for word in words(what)[1:] if word not in STOP and word not in FILL and word not in _PLACES]
    return _COUNTS[one](asked) if one in _COUNTS and not left else None


_PLACES = frozenset("of in code codes text table chart charts graph graphs plot screen read body".split())


def _rows(asked: Asked) -> Said | None:
    grid = next(iter(grids(asked.seen)), None)
    if grid is None:
        return None
    about = ", below its head" if grid.headed and grid.surely_headed else ""
    count = len(grid.body) if about or not grid.headed else len(grid.cells)
    doubt = ", of which the first may be a head" if grid.headed and not about else ""
    return Said(f"{count}{about}{doubt}", tuple(Spot("table", each.box) for each in tables(asked.seen)[:1]))


def _columns(asked: Asked) -> Said | None:
    grid = next(iter(grids(asked.seen)), None)
    return Said(f"{grid.width}") if grid else None


def _tables(asked: Asked) -> Said:
    return Said(f"{len(asked.seen.tables)}" if asked.seen.tables else "No table was found.")


def _charts(asked: Asked) -> Said:
    count = len(asked.seen.charts)
    if not count:
        return Said("No bar chart and no line chart was read; others are not looked for.")
    return Said(f"{count} that {'was' if count == 1 else 'were'} read; only bar charts and line charts are looked for")


def _bars(asked: Asked) -> Said | None:
    marks = _marks(asked.seen, "bar")
    return Said(f"{len(marks)}") if marks else Said("No bar chart was read.") if asked.seen.charts else None


def _bars_of(asked: Asked, colour: str) -> Said | None:
    """The bars of one colour; what else bars may be asked for by is not counted."""
    marks = _marks(asked.seen, "bar")
    there = [mark for mark in marks if colour in colour_name(mark.colour).split()]
    return Said(f"{len(there)}", tuple(Spot(mark.category, mark.box) for mark in there)) if there else None


def _lines(asked: Asked) -> Said | None:
    """Lines of text, or those of a line chart, whichever is spoken of."""
    drawn, text = len({mark.series for mark in _marks(asked.seen, "line")}), len(asked.seen.lines)
    if re.search(r"\b(?:charts?|graphs?|plots?|diagrams?)\b", asked.low):
        return Said(f"{drawn}" if drawn else "No line chart was read.")
    if re.search(r"\btext\b", asked.low):
        return Said(f"{text}{and_unread(asked.seen)}", spots_of(asked.seen.lines))
    more = f"; the line chart has {drawn} lines" if drawn else ""
    return Said(f"{text} lines of text{more}{and_unread(asked.seen)}", spots_of(asked.seen.lines))


def _words(asked: Asked) -> Said:
    return Said(f"{sum(len(line.text.split()) for line in asked.seen.lines)}{and_unread(asked.seen)}")


def _marks(seen: Seen, *kinds: str) -> list[Mark]:
    return [mark for chart in seen.charts if chart.kind in kinds for mark in chart.marks]


def _named(of: Callable[[Mark], str]) -> Callable[[Asked], Said | None]:
    def count(asked: Asked) -> Said | None:
        names = {of(mark) for mark in _marks(asked.seen, "bar", "line")}
        return Said(f"{len(names)}") if names else None

    return count


_COUNTS: Mapping[str, Callable[[Asked], Said | None]] = {
    "row": _rows,
    "column": _columns,
    "table": _tables,
    "chart": _charts,
    "graph": _charts,
    "bar": _bars,
    "line": _lines,
    "series": _named(lambda mark: mark.series),
    "category": _named(lambda mark: mark.category),
    "word": _words,
    "code": lambda asked: Said(f"{len(asked.seen.codes)}"),
    "qr": lambda asked: Said(f"{len(asked.seen.codes)}"),
}

_kind = re.compile(
    r"^what (?:kind|type|sort) of (?:chart|graph|plot|diagram)\b|^is (?:this|it|that) (?P<how>an? .*\b(?:chart|graph))"
)


def kind_of_chart(asked: Asked) -> Said | None:
    """A kind that was read is told; that a chart is of another kind can be told only then."""
    match = _kind.search(asked.low)
    kinds = sorted({chart.kind for chart in asked.seen.charts})
    if match is None or not kinds:
        return None
    said = " and ".join(f"a {kind} chart" for kind in kinds)
    spots = tuple(Spot(f"{chart.kind} chart", chart.box) for chart in asked.seen.charts)
    if match["how"] is None or re.search(r"\bor\b", match["how"]):
        return Said(said, spots)
    right = any(re.search(rf"\b{kind}\b", match["how"]) for kind in kinds)
    return Said(f"{'Yes' if right else 'No'}: {said}", spots)


_asks_for = re.compile(
    r"^(?:how many|count|(?:what is )?the number of|which|list|where|is there|are there|does it have"
    r"|what (?:buttons|fields|tables|charts))\b"
)
_shapes = re.compile(
    r"\b(?:(?P<table>tables?|rows?|columns?)|(?P<chart>charts?|graphs?|bars?|slices?)"
    r"|buttons?|fields?|inputs?|(?:text|check|tick) ?box(?:es)?|panels?|cards?)\b"
)


def unlooked(asked: Asked) -> bool:
    """Whether a question is about shapes that are not looked for in a photograph, and none was found by its text."""
    match = _shapes.search(asked.low) if _asks_for.search(asked.low) else None
    if match is None:
        return False
    return not (asked.seen.tables if match["table"] else asked.seen.charts if match["chart"] else asked.seen.parts)
