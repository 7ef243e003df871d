"""What a question is about: the words of it that matter, and the things in the image that they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.finding import found, of_kind, text_of
from sightline.seers.local.labelled import named
from sightline.seers.local.phrases import key, words
from sightline.seers.local.seen import Colour, Line, Part, PartKind, Seen

_quotes = re.compile("\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|(?<!\\w)'([^']+)'(?!\\w)|‘([^’]+)’")
_PLACE = "image|picture|screenshot|screen|dialog|dialogue|form|page|window|document|chart|graph|plot|table|photo|view"
_tail = re.compile(
    rf"(?: (?:please|here|there|exactly|located|placed|shown|displayed|listed|visible|given|now|currently|reads?|says?)"
    rf"|,? (?:in|on|of|from|inside|within|by) (?:the |this |that |an? )?(?:{_PLACE}|ui|interface))+$"
)
_head = re.compile(r"^(?:(?:the|a|an|this|that|these|those|any|its|my|your|all|some|of) )+")
_KINDS: Mapping[str, PartKind | None] = {
    "button": "button",
    "field": "field",
    "input field": "field",
    "input": "field",
    "text field": "field",
    "text box": "field",
    "textbox": "field",
    "box": "field",
    "check box": "check",
    "checkbox": "check",
    "tick box": "check",
    "radio button": "radio",
    "radio": "radio",
    "panel": "panel",
    "card": "panel",
    "title bar": "bar",
    "bar": "bar",
    "text": None,
    "word": None,
    "words": None,
    "phrase": None,
    "line": None,
    "label": None,
    "link": None,
    "heading": None,
    "message": None,
    "menu item": None,
    "item": None,
    "tab": None,
}
_KIND = "|".join(sorted(_KINDS, key=len, reverse=True))
_before = re.compile(
    rf"^(?P<kind>{_KIND})s? (?:(?:labell?ed|named|called|that says|which says|saying|marked|titled|reading|for|to"
    rf"|with (?:the )?(?:text|label|words?|caption)) )?(?P<name>.+)$"
)
_after = re.compile(rf"^(?P<name>.+?) (?P<kind>{_KIND})s?$")
_alone = re.compile(rf"^(?P<kind>{_KIND})s?$")

_time = re.compile(
    r"\d[:/-]\d|\d\.\d{1,2}\.\d|\b(?:19|20)\d\d\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:to(?:day|morrow)|yesterday|now|ago|[ap]m)\b",
    re.IGNORECASE,
)

STOP = frozenset(
    """a an the this that these those of in on at to for from by with and or is are was were be been do does did has
    have had it its what which who whom whose when where why how much many there here i me my you your we our can
    could would should will shall may might must please tell give show say says said read reads reading written
    shown displayed given listed stand stands value values text texts image picture screenshot screen dialog form
    page window document field fields box input entered typed named called name labelled labeled exact exactly any
    as about according mentioned stated printed set into inside per each s t not no yes also then than if so""".split()
)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: words, and the places that they are about."""

    text: str
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A question about one image."""

    question: str
    seen: Seen
    pixel: Callable[[int, int], Colour] | None = None

    @cached_property
    def low(self) -> str:
        """In small letters, without the signs around and the spaces between."""
        plain = " ".join(self.question.replace("’", "'").casefold().split())
        plain = re.sub(r"^(what|where|who|when|how)s\b", r"\1's", plain)
        return plain.strip(" ?!.").removeprefix("please ").removeprefix("can you ").removeprefix("could you ")

    @cached_property
    def quoted(self) -> tuple[str, ...]:
        return tuple(next(filter(None, groups)).strip() for groups in _quotes.findall(self.question))

    @cached_property
    def known(self) -> frozenset[str]:
        """Every word that was read."""
        return frozenset(word for line in self.seen.lines for word in words(line.text))

    def wants(self, text: str) -> bool:
        """Whether a text is of the kind that is asked for: a time, or a number."""
        if re.match(r"when\b|(?:what|which) (?:time|date|day)\b", self.low):
            return _time.search(text) is not None
        if re.match(r"who(?:m|se)?\b", self.low) and re.match(r"[\d$€£¥]", text):
            return False
        return not re.match(r"how (?:much|many|long|high|old|far)\b", self.low) or re.search(r"\d", text) is not None

    def strangers(self, text: str, allowed: frozenset[str] = frozenset()) -> list[str]:
        """The words that matter, stand nowhere in the image, and mean nothing to whoever asks: it is about more."""
        run = key(" ".join(line.text for line in self.seen.lines))
        return [
            word for word in words(text)
            if word not in STOP and word not in allowed and word not in self.known
            and word.removesuffix("s") not in self.known and not (len(word) > 4 and key(word) in run)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    name: str  # empty: any of its kind
    kind: PartKind | None = None
    spelled: bool = False  # in quotes: these very words are meant


def subject(phrase: str, quoted: tuple[str, ...] = ()) -> Subject:
    """What a phrase such as `the "OK" button` is about."""
    plain = bare(phrase)
    for quote in quoted:
        if quote.casefold() in phrase:
            kind = re.search(rf"\b({_KIND})\b", phrase.replace(quote.casefold(), " "))
            return Subject(quote, _KINDS[kind[1]] if kind else None, spelled=True)
    for shape in (_alone, _before, _after):
        if match := shape.match(plain):
            return Subject(bare(match.groupdict().get("name") or ""), _KINDS[match["kind"]])
    return Subject(plain)


def bare(phrase: str) -> str:
    """Without articles in front and places behind."""
    plain = phrase.strip(" ?!.,:")
    while (shorter := _tail.sub("", _head.sub("", plain)).strip(" ?!.,:\"'“”‘’`")) != plain:
        plain = shorter
    return plain


@dataclass(frozen=True, slots=True)
class Thing:
    """What a subject means in the image: a part of it, or a line."""

    label: str
    box: Box
    part: Part | None = None
    line: Line | None = None

    @property
    def spot(self) -> Spot:
        return Spot(self.label, self.box)


def things(seen: Seen, about: Subject) -> list[Thing]:
    """Parts of its kind by that name; else lines that say it."""
    if about.kind and not about.name:
        return [part_thing(part, seen) for part in of_kind(seen, about.kind)]
    if about.kind and (parts := named(seen, about.name, about.kind)):
        return [part_thing(part, seen) for part in parts]
    if about.kind in ("field", "check", "radio", "bar"):
        return []
    return [Thing(line.text, line.box, line=line) for line in found(seen, about.name)]


def part_thing(part: Part, seen: Seen) -> Thing:
    return Thing(text_of(part, seen) or part.kind, part.box, part)


def spots_of(lines: Sequence[Line]) -> tuple[Spot, ...]:
    return tuple(Spot(line.text, line.box) for line in lines)


def spots_at(there: Sequence[Thing]) -> tuple[Spot, ...]:
    return tuple(thing.spot for thing in there)


def absent(about: Subject) -> Said | None:
    """Of words and parts of an interface it can be said that they are not there; of a thing in a picture, not."""
    if about.kind == "bar":
        return None  # of a window, or of a chart
    if not about.name and about.kind:
        return Said(f"No {about.kind} was found.")
    if about.spelled or about.kind:
        return Said(f'Nothing that was read says "{about.name}".')
    return None


def called(thing: Thing) -> str:
    kind = f"{thing.part.kind} " if thing.part else ""
    return f'{kind}"{thing.label}"'
