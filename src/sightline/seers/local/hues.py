"""What colour something has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.phrases import key
from sightline.seers.local.seen import Colour, Mark
from sightline.seers.local.subjects import (
    Asked,
    Said,
    Thing,
    absent,
    bare,
    spots_at,
    subject,
    things,
)


def hued(colour: Colour) -> str:
    """A colour as people and programs call it."""
    return f"{colour_name(colour)} (#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x})"


_shade = re.compile(
    r"\bcolou?r(?:ed)?(?: \w+)? (?:is|are|does|do|has|have|was) (?P<is>.+?)(?: have| painted| coloured)?$"
    r"|\bcolou?r (?:of|for|at) (?P<of>.+)$|^is (?P<yes>.+) (?:colou?red)$"
)
_common = re.compile(
    r"\b(?:main|dominant|common|commonest|which|what|most) (?:\w+ )?colou?rs\b"
    r"|\b(?P<one>main|dominant|commonest|most common|primary|prevailing) colou?r\b(?!.*\b(?:button|text|bar|field)\b)"
)
_point = re.compile(r"\(?\b(\d{1,5})\s*[,;x ]\s*(?:y\s*=?\s*)?(\d{1,5})\)?")


def coloured(asked: Asked) -> Said | None:
    return _of_colour(asked) if re.search(r"\bcolou?rs?\b", asked.low) else None


def _of_colour(asked: Asked) -> Said | None:
    if not asked.quoted and (point := _point.search(asked.low)):
        return _colour_at(asked, int(point[1]), int(point[2]))
    if re.search(r"\b(?:main|dominant|common|commonest|which|what|most) (?:\w+ )?colou?rs\b", asked.low):
        return _commonest(asked)
    if re.search(
        r"\b(?:main|dominant|commonest|most common|primary|prevailing) colou?r\b(?!.*\b(?:button|text)\b)", asked.low
    ):
        return _commonest(asked, 1)
    match = _shade.search(asked.low)
    if match is None:
        return None
    phrase = match["is"] or match["of"] or match["yes"]
    if bare(phrase) in ("background", "background colour", "") and asked.seen.colours:
        return Said(f"mostly {hued(asked.seen.colours[0][0])}")
    ink = bool(re.search(r"\b(?:text|font|letters?|ink|word|writing)\b", asked.low.replace(phrase, "")))
    return _colour_of(
        asked, phrase, ink=ink or bool(re.match(r"(?:the )?(?:text|letters|writing) (?:of|in|on) ", phrase))
    )


def _commonest(asked: Asked, most: int | None = None) -> Said | None:
    told = ", ".join(f"{hued(colour)} {share:.0%}" for colour, share in asked.seen.colours[:most])
    return Said(told) if told else None


def _colour_at(asked: Asked, x: int, y: int) -> Said | None:
    if asked.pixel is None or not (x < asked.seen.size.width and y < asked.seen.size.height):
        return Said(f"There is no pixel at {x}, {y}: the image is {asked.seen.size}.")
    return Said(hued(asked.pixel(x, y)), (Spot(f"{x}, {y}", Box(x, y, 1, 1)),))


def _colour_of(asked: Asked, phrase: str, *, ink: bool) -> Said | None:
    plain = re.sub(r"^(?:the )?(?:text|letters|writing|background) (?:of|in|on) ", "", phrase)
    bars = re.sub(r"\b(?:bars?|columns|series|lines?|points|the|for|of)\b", "", plain)
    if marks := _marks(asked, bars, plain):
        return _of_marks(marks)
    if not key(bars) and bars != plain:
        return None  # of bars, which are none of a chart
    about = subject(plain, asked.quoted)
    there = things(asked.seen, about)
    if not there:
        return absent(about)
    if asked.seen.photograph:  # where letters and their ground have no colour of their own
        return None
    return Said("; ".join(dict.fromkeys(_hue(thing, asked, ink=ink) for thing in there)), spots_at(there))


def _marks(asked: Asked, name: str, phrase: str) -> list[Mark]:
    """The bars of that name; all of them, where only bars are spoken of."""
    marks = [mark for chart in asked.seen.charts for mark in chart.marks]
    named = [mark for mark in marks if key(name) and key(name) in (key(mark.series), key(mark.category))]
    return named or (marks if phrase and not key(name) else [])


def _of_marks(marks: Sequence[Mark]) -> Said:
    """The one colour that they have, or that of each series."""
    hues = dict.fromkeys((mark.series or mark.category, hued(mark.colour)) for mark in marks)
    told = ", ".join(f"{name} {hue}" for name, hue in hues)
    one = len({hue for _, hue in hues}) == 1
    return Said(
        hued(marks[0].colour) if one else told, tuple(Spot(mark.series or mark.category, mark.box) for mark in marks)
    )


def _hue(thing: Thing, asked: Asked, *, ink: bool) -> str:
    line = thing.line or next((asked.seen.lines[at] for at in (thing.part.lines if thing.part else ())), None)
    written = hued(line.ink) if line and line.ink else "a colour that could not be told"
    if thing.part and not ink:
        return hued(thing.part.colour) + (f", with {written} text" if line and line.ink else "")
    return written + (f" on {hued(line.ground)}" if line and line.ground else "")
