"""A question, answered from what was read; or a plain no where reading is not enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sightline.model.asking import Spot
from sightline.model.refusal import Refusal
from sightline.seers.local.cells import row_of, rowed, tabled
from sightline.seers.local.checks import checks
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.figures import charted
from sightline.seers.local.finding import unread_in
from sightline.seers.local.hints import PALE_TEXT, is_hint
from sightline.seers.local.hues import coloured
from sightline.seers.local.listing import exists, listed, outstanding
from sightline.seers.local.noes import NO, UNLOOKED
from sightline.seers.local.parting import questions
from sightline.seers.local.phrases import key, words
from sightline.seers.local.places import coded, located, sized, text_at, titled
from sightline.seers.local.quoting import quoted
from sightline.seers.local.seen import Colour, Line, Seen
from sightline.seers.local.subjects import (
    Asked,
    Said,
    bare,
    spots_of,
    subject,
)
from sightline.seers.local.tallies import counted, kind_of_chart, unlooked
from sightline.seers.local.values import Value, value_of


def answer(question: str, seen: Seen, pixel: Callable[[int, int], Colour] | None = None) -> Said | Refusal:
    """The first way of reading the question that leads to something in the image."""
    if any(not _is_written(found, seen) for found in _beyond.finditer(_quotes.sub(" ", question))):
        return NO
    asked = Asked(question, seen, pixel)
    if seen.photograph and unlooked(asked):
        return UNLOOKED
    for way in _WAYS:
        if said := way(asked):
            return said
    return _one_by_one(asked) or NO


def _one_by_one(asked: Asked) -> Said | None:
    """Several questions in one, each by itself; what remains open of them is said."""
    each = questions(asked.question)
    said = [answer(one, asked.seen, asked.pixel) for one in each]
    told = [one for one in said if isinstance(one, Said)]
    if not told:
        return None
    left = [f'Not answered by what was read: "{one}"' for one, no in zip(each, said, strict=True) if no not in told]
    return Said("\n".join([*(one.text for one in told), *left]), tuple(spot for one in told for spot in one.spots))


# Words that turn a question into another one, which none of the ways knows how to answer.
_beyond = re.compile(
    r"\b(?:not|without|except|neither|nor|difference|average|mean value|how (?:much|many) (?:more|less|fewer)|"
    r"(?:more|less|fewer|higher|lower|greater|larger|smaller|bigger|longer|shorter) than)\b|n't\b", re.IGNORECASE
)  # fmt: skip


def _is_written(found: re.Match[str], seen: Seen) -> bool:
    """Whether such a word is one of a text that is asked about: "could not be" stands there too."""
    before, after = words(found.string[: found.start()])[-1:], words(found.string[found.end() :])[:1]
    phrase = f" {' '.join([*before, *words(found[0]), *after])} "
    return bool(before and after) and any(phrase in f" {' '.join(words(line.text))} " for line in seen.lines)


_quotes = re.compile(r"\"[^\"]*\"|“[^”]*”|'[^']{2,}'(?!\w)")

_what = (
    re.compile(
        r"(?:value|contents?|entry|input|text) (?:of|in|for|inside|entered in|entered for|under|shown for) (?P<x>.+)$"
    ),
    re.compile(
        r"^(?:what|which \w+|what \w+) (?:is|was|are|has been|'s) "
        r"(?:entered|typed|written|filled in|given|shown|set|selected|displayed|listed)? ?"
        r"(?:in|into|inside|for|as|under) (?P<x>.+)$"
    ),
    re.compile(r"^(?:what|which|when|who|how much|how long|how old)(?:'s| is| are| was| were| does| do)? (?P<x>.+)$"),
    re.compile(r"^(?:give|tell|show|read)(?: me)? (?P<x>.+)$"),
    re.compile(r"^(?P<x>.+)$"),
)


def _value(asked: Asked) -> Said | None:
    for shape in _what:
        match = shape.search(asked.low)
        for name in _names(match["x"], asked) if match else ():
            if said := _told(value_of(asked.seen, name), asked):
                return said
    return None


def _names(phrase: str, asked: Asked) -> Sequence[str]:
    """What a field may be called: as it is asked for, and without whose it is."""
    about = subject(phrase, asked.quoted)
    whole = bare(phrase)
    named_so = whole if re.search(r"(?<!menu) items?$", whole) else about.name  # "total items" is no total
    plain = re.sub(r"^(?:(?:value|content|contents|text) (?:of|in|for)|it|this|that) ", "", named_so)
    owner = _owner.match(plain)
    named = [plain, f"{owner['who']} {plain[owner.end() :]}"] if owner else [plain]
    if owner and owner["who"] in _ANYBODY:
        named.append(plain[owner.end() :])
    elif owner:  # what another has is not theirs
        return named
    shortened = _shown.sub("", named[-1])
    return [name for name in dict.fromkeys((*named, bare(named[-1]), bare(shortened))) if key(name)]


_owner = re.compile(r"(?P<who>(?:[^\W\d_]+ ){0,3}[^\W\d_]+)(?:'s|(?<=s)') ")
_ANYBODY = frozenset("user customer person account client applicant member form".split())
_shown = re.compile(
    r" (?:is|are|was|were)(?: (?:shown|listed|given|displayed|entered|written|there|here|it|this|mentioned))?$"
    r"|(?: (?:is|are|was|were))? (?:set|selected|chosen|picked|made)(?: to)?$| whom$"
    r"| (?:of|for) the (?:user|customer|person|account|client)$"
)


def _told(value: Value | None, asked: Asked) -> Said | None:
    if value is None or (value.text and not asked.wants(value.text)):
        return None
    kind = value.part.kind if value.part else "text"
    label = value.label.text if value.text not in value.label.text else ""
    if kind in ("check", "radio") and value.part is not None:
        done = "checked" if kind == "check" else "chosen"
        state = {None: f"not known to be {done}", True: done, False: f"not {done}"}[value.part.checked]
        return Said(f"{state} ({value.label.text})", (Spot(value.label.text, value.part.box),))
    if not value.text and unread_in(asked.seen, value.box):
        return Said(
            f'What stands in the field "{value.label.text}" could not be read.', (Spot(value.label.text, value.box),)
        )
    if not value.text:
        return Said(f'The field "{value.label.text}" is empty.', (Spot(value.label.text, value.box),))
    pale = PALE_TEXT if value.part and kind == "field" and is_hint(value.part, asked.seen) else ""
    of = f' ({kind if kind == "field" else "stands for"} "{label}"{pale})' if label else f' (in "{value.label.text}")'
    return Said(f'"{value.text}"{of}', (Spot(value.text, value.box),))


_trouble = re.compile(
    r"\b(?:errors?|fail(?:ed|ure|s)?|could not|cannot|can't|invalid|exception|denied|not found|fatal|traceback|warning|"
    r"unable|refused|missing|required|enter a valid)\b", re.IGNORECASE
)  # fmt: skip
_wrong = re.compile(
    r"^(?:what|which|read|tell me|show me|is there)\b.*\b(?:errors?|warnings?|wrong|problem|failed|failure)"
    r"(?: messages?)?"
    r"(?: (?:is|are|was|does|do|shown|displayed|says?|here|there|appears?|it|on|in|the|this|about) ?.*)?$"
)


def _error(asked: Asked) -> Said | None:
    """What is said of trouble: by its words, or in red."""
    if not _wrong.search(asked.low) or asked.strangers(asked.low, _WRONG):
        return None
    lines = [line for line in asked.seen.lines if _trouble.search(line.text) or _red(line)]
    return Said("\n".join(f'"{line.text}"' for line in lines), spots_of(lines)) if lines else None


_WRONG = frozenset(
    "error errors message messages warning warnings wrong went problem failed failure appear appears".split()
)


def _red(line: Line) -> bool:
    return line.ink is not None and colour_name(line.ink) in ("red", "dark red")


_WAYS: tuple[Callable[[Asked], Said | None], ...] = (
    checks,
    counted,
    coded,
    outstanding,
    listed,
    coloured,
    sized,
    kind_of_chart,
    titled,
    located,
    charted,
    tabled,
    exists,
    text_at,
    _value,
    _error,
    quoted,
    row_of,
    rowed,
)
