"""How many there are, which, and whether there is one at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sightline.model.asking import Spot
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.finding import (
    of_kind,
    tables,
    text_of,
    words,
)
from sightline.seers.local.seen import Part, PartKind, Seen
from sightline.seers.local.subjects import (
    STOP,
    Asked,
    Said,
    Subject,
    absent,
    bare,
    called,
    part_thing,
    spots_at,
    spots_of,
    subject,
    things,
)

_COUNTED: Mapping[str, PartKind] = {
    r"radio buttons?": "radio",
    r"buttons?": "button",
    r"(?:(?:text|input|entry|form) )?(?:fields?|inputs?)|text ?boxes|text box": "field",
    r"(?:check|tick) ?box(?:es)?": "check",
    r"panels?|cards?": "panel",
}
_many = re.compile(r"\b(?:how many|(?:the )?number of|count(?: of)?(?: all)?(?: the)?) (?P<what>.+)")
_FILL = frozenset(
    """can see seen contain contains contained exist exists appear appears find found visible total altogether
    overall labelled labeled shows show""".split()
)


def counted(asked: Asked) -> Said | None:
    match = _many.search(asked.low)
    if match is None:
        return None
    what = match["what"]
    if re.match(r"times\b|occurrences\b", what) and asked.quoted:
        return _occurrences(asked.quoted[0], asked.seen)
    for shape, kind in _COUNTED.items():
        if noun := re.search(rf"\b(?:{shape})\b", what):
            return _parts_counted(asked, kind, what.replace(noun[0], " ", 1))
    return _things_counted(asked, what)


def _occurrences(phrase: str, seen: Seen) -> Said:
    lines = [line for line in seen.lines if phrase.casefold() in line.text.casefold()]
    times = sum(line.text.casefold().count(phrase.casefold()) for line in lines)
    return Said(f"{times}", spots_of(lines))


def _parts_counted(asked: Asked, kind: PartKind, rest: str) -> Said | None:
    parts = of_kind(asked.seen, kind)
    left = [word for word in words(rest) if word not in STOP and word not in _FILL]
    for word in list(left):
        keep = _SORTS.get(word)
        if keep is None and word in _COLOURS:
            keep = _coloured(word)
        if keep is not None:
            parts = [part for part in parts if keep(part)]
            left.remove(word)
    if left:
        return None
    return Said(f"{len(parts)}", tuple(part_thing(part, asked.seen).spot for part in parts))


_SORTS: Mapping[str, Callable[[Part], bool]] = {
    **dict.fromkeys(("checked", "ticked", "selected"), lambda part: part.checked is True),
    **dict.fromkeys(("unchecked", "unticked", "unselected"), lambda part: part.checked is False),
    **dict.fromkeys(("empty",), lambda part: not part.lines),
    **dict.fromkeys(("filled",), lambda part: bool(part.lines)),
}
_COLOURS = frozenset("black grey gray white red pink magenta orange brown yellow green teal cyan blue purple".split())


def _coloured(word: str) -> Callable[[Part], bool]:
    return lambda part: word.replace("gray", "grey") in colour_name(part.colour).split()


def _things_counted(asked: Asked, what: str) -> Said | None:
    """What is no part of an interface but can be counted: rows, bars, words."""
    seen, noun = asked.seen, next(iter(words(bare(what))), "")
    marks = [mark for chart in seen.charts for mark in chart.marks]
    found = tables(seen)
    table = found[0] if found else None
    counts: Mapping[str, int | None] = {
        "row": len(table.rows) - 1 if table else None,
        "column": max((len(row) for row in table.rows), default=0) if table else None,
        "table": len(found),
        "chart": len(seen.charts),
        "graph": len(seen.charts),
        "bar": sum(len(chart.marks) for chart in seen.charts if chart.kind == "bar") if seen.charts else None,
        "series": len({mark.series for mark in marks}) if marks else None,
        "category": len({mark.category for mark in marks}) if marks else None,
        "word": sum(len(line.text.split()) for line in seen.lines),
        "line": len(seen.lines),
        "code": len(seen.codes),
        "qr": len(seen.codes),
    }
    one = {"categories": "category", "series": "series"}.get(noun, noun.removesuffix("s"))
    count = counts.get(one)
    left = [word for word in words(what)[1:] if word not in STOP and word not in _FILL and word not in _PLACES]
    if count is None or left:
        return None
    heads = ", below its head" if one == "row" else ""
    return Said(f"{count}{heads}", tuple(Spot("table", each.box) for each in found[:1] if one == "row"))


_PLACES = frozenset("of in code codes text table chart graph plot screen read body".split())


_listed = re.compile(
    r"^(?:what|which|list|name|give me|tell me)(?: are)?(?: all)?(?: of)?(?: the)? "
    r"(?P<what>buttons?|fields?|input fields?|check ?boxes|columns?|column (?:names|headers|headings)|series"
    r"|categories)\b"
    r"(?P<rest>.*)$"
)


def listed(asked: Asked) -> Said | None:
    match = _listed.search(asked.low)
    if match is None or [word for word in words(match["rest"]) if word not in STOP and word not in _FILL]:
        return None
    what, seen = match["what"], asked.seen
    if what.startswith("column"):
        heads = [" ".join(seen.lines[at].text for at in cell) for table in tables(seen)[:1] for cell in table.rows[0]]
        return Said(", ".join(heads)) if heads else None
    if what in ("series", "categories"):
        marks = [mark for chart in seen.charts for mark in chart.marks]
        names = dict.fromkeys(mark.series if what == "series" else mark.category for mark in marks)
        return Said(", ".join(filter(None, names))) if any(names) else None
    kind: PartKind = "button" if what.startswith("button") else "check" if "box" in what else "field"
    parts = of_kind(seen, kind)
    said = ", ".join(f'"{text_of(part, seen)}"' for part in parts) or f"No {kind} was found."
    return Said(said, tuple(part_thing(part, seen).spot for part in parts))


_checked = re.compile(r"^(?:is|are|was) (?P<what>.+?) (?P<how>un)?(?:checked|ticked|selected|chosen)$")
_there = re.compile(
    r"^(?:is|are) there (?:an? |any )?(?P<a>.+)$|^do you see (?P<b>.+)$"
    r"|^does (?:it|the \w+|this \w+) (?:contain|say|show|have|include|mention|read) (?P<c>.+)$"
)


def is_checked(asked: Asked) -> Said | None:
    match = _checked.search(asked.low)
    if match is None:
        return None
    about = subject(match["what"], asked.quoted)
    kinds: tuple[PartKind, PartKind] = ("check", "radio")
    there = [thing for kind in kinds for thing in things(asked.seen, Subject(about.name, kind, about.spelled))]
    if not there or there[0].part is None or there[0].part.checked is None:
        return None
    checked, done = there[0].part.checked, "checked" if there[0].part.kind == "check" else "chosen"
    return Said(f"{'Yes' if checked != bool(match['how']) else 'No'}: it is {done if checked else f'not {done}'}",
                spots_at(there[:1]))  # fmt: skip


def exists(asked: Asked) -> Said | None:
    match = _there.search(asked.low)
    if match is None:
        return None
    about = subject(next(filter(None, match.groups())), asked.quoted)
    there = things(asked.seen, about)
    if there:
        return Said("Yes: " + ", ".join(called(thing) for thing in there[:5]), spots_at(there))
    no = absent(about)
    return Said(f"No. {no.text}") if no else None
