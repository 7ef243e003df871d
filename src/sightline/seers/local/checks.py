"""Check boxes and radio buttons: whether one is checked, which are, and how many."""

from __future__ import annotations

import re

from sightline.seers.local.finding import of_kind
from sightline.seers.local.listing import and_unread, called_part
from sightline.seers.local.seen import Part, PartKind
from sightline.seers.local.subjects import Asked, Said, Subject, part_thing, spots_at, subject, things

_ON = r"(?:checked|ticked|selected|chosen|enabled|activated|(?:turned |switched )?on)"
_OFF = r"(?:unchecked|unticked|unselected|deselected|disabled|(?:turned |switched )?off)"
_STATE = rf"(?:(?P<on>{_ON})|(?P<off>{_OFF}))"
_NOUN = r"(?:(?:(?:check|tick) ?)?box(?:es)?|radio buttons?|options?|settings?|ones)"
_is = re.compile(rf"^(?:is|are|was) (?P<what>.+?) {_STATE}$")
_some = re.compile(
    r"^(?P<which>how many|(?:which|what)(?:'s| is| are)?)(?: of)?(?: the)?"
    rf"(?: {_NOUN})?(?: is| are)? {_STATE}(?: {_NOUN})?(?: are there| is there| are shown)?$"
)


def checks(asked: Asked) -> Said | None:
    boxes = of_kind(asked.seen, "check", "radio")
    if not boxes:
        return None
    if match := _some.search(asked.low):
        return _told(asked, boxes, match, on=match["on"] is not None)
    match = _is.search(asked.low)
    return _state(asked, match["what"], on=match["on"] is not None) if match else None


def _told(asked: Asked, boxes: list[Part], match: re.Match[str], *, on: bool) -> Said:
    there = [box for box in boxes if box.checked is on]
    unknown = sum(box.checked is None for box in boxes)
    spots = tuple(part_thing(box, asked.seen).spot for box in there)
    doubt = f"of {unknown} it cannot be told" if unknown else ""
    if match["which"] == "how many":
        return Said(f"{len(there)}{', and ' + doubt if doubt else ''}{and_unread(asked.seen)}", spots)
    names = ", ".join(called_part(box, asked.seen) for box in there) or f"None is {match['on'] or match['off']}"
    return Said("; ".join(filter(None, (names, doubt))) + ("" if there else "."), spots)


def _state(asked: Asked, what: str, *, on: bool) -> Said | None:
    about = subject(what, asked.quoted)
    kinds: tuple[PartKind, ...] = ("check", "radio")
    there = [thing for kind in kinds for thing in things(asked.seen, Subject(about.name, kind, about.spelled))]
    if not there or there[0].part is None or there[0].part.checked is None:
        return None
    checked = there[0].part.checked
    yes, done = "Yes" if checked is on else "No", "checked" if there[0].part.kind == "check" else "chosen"
    return Said(f"{yes}: it is {done if checked else f'not {done}'}", spots_at(there[:1]))
