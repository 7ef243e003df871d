"""Which there are, which of them stands out, and whether there is one at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sightline.seers.local.boxes import corners
from sightline.seers.local.cells import grids
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.finding import of_kind, text_of, unread, unread_in
from sightline.seers.local.hints import PALER, contrast, is_hint
from sightline.seers.local.hues import hued
from sightline.seers.local.labelled import labels
from sightline.seers.local.phrases import words
from sightline.seers.local.seen import Part, PartKind, Seen
from sightline.seers.local.subjects import (
    STOP,
    Asked,
    Said,
    absent,
    called,
    part_thing,
    spots_at,
    spots_of,
    subject,
    things,
)

FILL = frozenset(
    """can see seen contain contains contained exist exists appear appears find found visible total altogether
    overall labelled labeled shows show click press tap choose use available""".split()
)


def _holds(part: Part, seen: Seen) -> bool:
    return bool(part.lines) or unread_in(seen, part.box)


_EMPTY = ("empty", "blank", "unfilled")
_Sort = Callable[[Part, Seen], bool]
_SORTS: Mapping[str, _Sort] = {
    **dict.fromkeys(("checked", "ticked", "selected"), lambda part, seen: part.checked is True),
    **dict.fromkeys(("unchecked", "unticked", "unselected"), lambda part, seen: part.checked is False),
    **dict.fromkeys(_EMPTY, lambda part, seen: not _holds(part, seen)),
    **dict.fromkeys(("filled",), _holds),
}
_COLOURS = frozenset("black grey gray white red pink magenta orange brown yellow green teal cyan blue purple".split())


def sorted_out(parts: Sequence[Part], phrase: str, seen: Seen) -> list[Part] | None:
    """The parts that are as a phrase says, by colour or state; None where it says something else of them."""
    left, kept = [word for word in words(phrase) if word not in STOP and word not in FILL], list(parts)
    for word in left:
        keep = _SORTS.get(word) or (_coloured(word) if word in _COLOURS else None)
        if keep is None:
            return None
        kept = [part for part in kept if keep(part, seen)]
    return kept


def _coloured(word: str) -> _Sort:
    return lambda part, seen: word.replace("gray", "grey") in colour_name(part.colour).split()


_listed = re.compile(
    r"^(?:what|which|list|name|give me|tell me|show me)(?:'s| is| are| does| do)?(?: on| in)?(?: all)?(?: of)?(?: the)?"
    r"(?P<before>(?: \w+)??) (?P<what>radio buttons?|buttons?|(?:input |text )?fields?|check ?box(?:es)?"
    r"|columns?|column (?:names|headers|headings)|series|legend|categories)\b(?P<rest>.*)$"
)
_advice = re.compile(r"\b(?:should|would|must|need|will|to)\b|\b(?:do|mean|for)$")


def listed(asked: Asked) -> Said | None:
    match = _listed.search(asked.low)
    if match is None or _advice.search(match["rest"]):
        return None
    what, how, seen = match["what"], f"{match['before']} {match['rest']}", asked.seen
    kind = next((kind for noun, kind in _KINDS.items() if noun in what), None)
    if kind:
        return _parts_listed(asked, kind, how)
    if [word for word in words(how) if word not in STOP and word not in FILL]:
        return None
    if what.startswith("column"):
        heads = [head for grid in grids(seen)[:1] for head in grid.heads()]
        return Said(", ".join(heads)) if heads else None
    marks = [mark for chart in seen.charts for mark in chart.marks]
    names = dict.fromkeys(mark.category if what == "categories" else mark.series for mark in marks)
    return Said(", ".join(filter(None, names))) if any(names) else None


_KINDS: Mapping[str, PartKind] = {"radio": "radio", "button": "button", "field": "field", "box": "check"}


def _parts_listed(asked: Asked, kind: PartKind, how: str) -> Said | None:
    seen = asked.seen
    parts, every = sorted_out(of_kind(seen, kind), how, seen), of_kind(seen, kind)
    if parts is None:
        return None
    spots = tuple(part_thing(part, seen).spot for part in parts)
    if not every:
        return Said(f"No {kind} was found{and_unread(seen)}.")
    if not parts:
        state = " ".join(word for word in words(how) if word in _SORTS or word in _COLOURS)
        return Said(f"No {kind} is {state}{hinted(every, how, seen)}{and_unread(seen)}.")
    whole = len(parts) == len(every) and not any(word in _SORTS for word in words(how))
    told = ", ".join(called_part(part, seen, whole=whole) for part in parts)
    return Said(f"{told}{hinted(every, how, seen)}", spots)


def hinted(parts: Sequence[Part], how: str, seen: Seen) -> str:
    """What must be added where it is asked for empty fields: a hint at what to type is not typed."""
    empty = any(word in _EMPTY for word in words(how))
    pale = [called_part(part, seen) for part in parts if empty and part.kind == "field" and is_hint(part, seen)]
    return f"; pale text, perhaps no more than a hint, stands in {', '.join(pale)}" if pale else ""


def and_unread(seen: Seen) -> str:
    return f"; {more}" if (more := unread(seen)) else ""


def called_part(part: Part, seen: Seen, *, whole: bool = False) -> str:
    """A button by its words; a field by its label, and with what it holds where all are told."""
    label = labels(seen).get(part)
    if part.kind == "button" or label is None:
        return f'"{text_of(part, seen)}"' if part.lines else f"one at {corners(part.box)}"
    held = f'"{text_of(part, seen)}"' if part.lines else "not read" if unread_in(seen, part.box) else "empty"
    return f'"{label.text}": {held}' if whole and part.kind == "field" else f'"{label.text}"'


_stands_out = re.compile(r"^(?:which|what)\b.*\bbuttons?\b|^(?:which|what)(?:'s| is) the \w+(?: ?-?out)? button$")
_strong = re.compile(r"\b(?:highlighted|emphasi[sz]ed|primary|default|active|prominent|accented)\b")
_pale = re.compile(r"\b(?:disabled|inactive|unavailable|(?:grey|gray)(?:ed)?[ -]?out|dimmed|faded)\b")
_NEUTRAL = frozenset({"white", "light grey", "grey", "dark grey", "black"})


def outstanding(asked: Asked) -> Said | None:
    """A button that looks unlike the others, with what is seen of it: what that means is not written anywhere."""
    buttons = of_kind(asked.seen, "button")
    if not _stands_out.search(asked.low) or len(buttons) < 2:
        return None
    if _strong.search(asked.low):
        return _of_own_colour(asked.seen, buttons)
    return _paler(asked.seen, buttons) if _pale.search(asked.low) else None


def _of_own_colour(seen: Seen, buttons: Sequence[Part]) -> Said | None:
    for button in buttons:
        others = {part.colour for part in buttons if part is not button}
        plain = len(buttons) > 2 or (colour_name(button.colour) not in _NEUTRAL >= {*map(colour_name, others)})
        if len({*map(colour_name, others)}) == 1 and colour_name(button.colour) != colour_name(min(others)) and plain:
            rest = f"the other{' is' if len(buttons) == 2 else 's are'} {hued(min(others))}"
            said = f'"{text_of(button, seen)}" is the only one in {hued(button.colour)}; {rest}.'
            return Said(said, (part_thing(button, seen).spot,))
    return None


def _paler(seen: Seen, buttons: Sequence[Part]) -> Said | None:
    inked = [(button, seen.lines[button.lines[0]]) for button in buttons if button.lines]
    looks = sorted((each for each in inked if each[1].ink and each[1].ground), key=lambda each: contrast(each[1]))
    if len(looks) != len(buttons) or contrast(looks[0][1]) > PALER * contrast(looks[1][1]):
        return None
    button, line = looks[0]
    ink, ground = line.ink or (0, 0, 0), line.ground or (0, 0, 0)
    said = f'"{text_of(button, seen)}" has paler text than the others: {hued(ink)} on {hued(ground)}.'
    return Said(f"{said} Nothing says more of it.", (part_thing(button, seen).spot,))


_there = re.compile(
    r"^(?:is|are) there (?:an? |any )?(?P<a>.+)$|^do you see (?P<b>.+)$"
    r"|^does (?:it|the \w+|this \w+) (?:contain|say|show|have|include|mention|read) (?P<c>.+)$"
)


_any_text = re.compile(
    r"^(?:is|are) there (?:any |some )?(?:text|words?|writing)(?: (?:here|at all|(?:in|on) (?:it|(?:the|this) \w+)))?$"
    r"|^does (?:it|(?:the|this) \w+) (?:contain|have|show) (?:any |some )?(?:text|words|writing)$"
)


def exists(asked: Asked) -> Said | None:
    if _any_text.search(asked.low):
        count = len(asked.seen.lines)
        read = f"{count} line{'s' if count != 1 else ''}" if count else ""
        yes = "; ".join(filter(None, (read, unread(asked.seen))))
        return Said(f"Yes: {yes}" if yes else "No text was found.", spots_of(asked.seen.lines))
    match = _there.search(asked.low)
    if match is None:
        return None
    about = subject(next(filter(None, match.groups())), asked.quoted)
    there = things(asked.seen, about)
    if there:
        return Said("Yes: " + ", ".join(called(thing) for thing in there[:5]), spots_at(there))
    no = absent(about)
    return Said(f"No. {no.text}") if no else None
