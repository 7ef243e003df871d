"""Where something stands, and what stands at a place: titles, regions, what is beside what."""

from __future__ import annotations

import re

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.boxes import corners, overlap_across
from sightline.seers.local.finding import found, within
from sightline.seers.local.seen import Seen
from sightline.seers.local.subjects import (
    Asked,
    Said,
    Subject,
    Thing,
    absent,
    bare,
    called,
    spots_at,
    spots_of,
    subject,
    things,
)
from sightline.seers.local.titles import Titles, titles
from sightline.seers.local.values import value_of

_where = re.compile(
    r"^where(?:'s| is| are| does| do| can i (?:find|see|click))? (?P<a>.+)$"
    r"|^(?:find|locate|point to|point at|show) (?P<b>.+)$"
    r"|(?:position|location|coordinates|bounding box|box|place) (?:of|for|around) (?P<c>.+)$"
)


def located(asked: Asked) -> Said | None:
    match = _where.search(asked.low)
    if match is None:
        return None
    about = subject(next(filter(None, match.groups())), asked.quoted)
    there = things(asked.seen, about) or _by_value(asked, about)
    if not there:
        return absent(about)
    return Said(
        "\n".join(f"{called(thing)} at {corners(thing.box)}, {_side(thing.box, asked.seen)}" for thing in there),
        spots_at(there),
    )


def _by_value(asked: Asked, about: Subject) -> list[Thing]:
    value = value_of(asked.seen, about.name) if about.name else None
    return [Thing(value.text or value.label.text, value.box)] if value else []


def _side(box: Box, seen: Seen) -> str:
    """Where a box lies, in words."""
    x, y = (box.x + box.width / 2) / max(1, seen.size.width), (box.y + box.height / 2) / max(1, seen.size.height)
    down = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else "middle"
    across = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "centre"
    return f"{down} {across}" if (down, across) != ("middle", "centre") else "centre"


_title = re.compile(
    r"\b(?P<what>title|heading|headline|caption)\b(?: bar)?(?: text)?"
    r"(?: (?:of|in|on|for|at) (?:the |this )?(?:\w+ )?(?P<of>\w+))?"
    r"|\bname of (?:the|this) (?P<app>program|programme|app|application|window|software|tool)$"
    r"|^what(?:'s| is) (?:the|this) (?:bar |line )?(?P<about>chart|graph|plot|diagram) about$"
)
_TITLED = frozenset(
    "dialog dialogue window page form chart graph plot diagram screen image screenshot document app top box".split()
)


def titled(asked: Asked) -> Said | None:
    match = _title.search(asked.low)
    if match is None or _beside.search(asked.low) or (match["of"] or "page") not in _TITLED:
        return None
    if not re.match(r"what|which|read|tell|give", asked.low) or re.search(r"\bcolou?r|\bfont\b|\bsize\b", asked.low):
        return None
    there = titles(asked.seen)
    if match["app"]:
        return Said(f'The title bar says "{there.bar.text}".', spots_of([there.bar])) if there.bar else None
    of_charts = [chart.title for chart in asked.seen.charts if chart.title]
    if of_charts and (match["about"] or match["of"] in ("chart", "graph", "plot", "diagram") or not there.bar):
        said = ", ".join(f'"{title}"' for title in of_charts)
        spots = spots_of([line for title in of_charts for line in found(asked.seen, title)[:1]])
        return Said(f"Its title is {said}." if match["about"] else said, spots)
    return _headed(there, match["what"]) if match["what"] else None


def _headed(there: Titles, what: str) -> Said | None:
    lines = [line for line in (there.bar, there.heading) if line is not None]
    if what != "title":
        lines.reverse()
    if not lines:
        return None
    size = "the largest text" if there.largest else "larger than most of the text"
    kinds = {id(there.heading): size, id(there.bar): "in the title bar"}
    first, more = lines[0], lines[1:]
    rest = "".join(f'; {size} is "{line.text}"' for line in more if line is there.heading)
    return Said(f'"{first.text}" ({kinds[id(first)]}{rest})', spots_of([first, *more]))


_IMAGE = r"(?:the |this )?(?:image|picture|screenshot|screen|photo)"
_size = re.compile(
    rf"(?:\b(?:dimensions|resolution|size|width|height) of {_IMAGE}|how (?:big|large|wide|tall|high) is {_IMAGE}"
    r"|image (?:size|dimensions|resolution))(?: in pixels)?$"
)


def sized(asked: Asked) -> Said | None:
    if not _size.search(asked.low):
        return None
    return Said(f"{asked.seen.size.width} pixels wide and {asked.seen.size.height} high")


def coded(asked: Asked) -> Said | None:
    if not re.search(r"\b(?:qr|bar) ?-?codes?\b|\bqr\b|\bbarcodes?\b", asked.low):
        return None
    codes = asked.seen.codes
    spots = tuple(Spot(code.text, code.box) for code in codes)
    return Said(
        "\n".join(f'{code.kind}: "{code.text}"' for code in codes) or "No QR code and no bar code was found.", spots
    )


_reads = re.compile(r"\b(?:text|says?|written|reads?|words?|stands?|transcribe|shown)\b")
_beside = re.compile(r"\b(?P<how>below|under|beneath|above|over|right of|left of|next to|beside) (?P<what>.+)$")
_PAPER = "(?:image|picture|screenshot|screen|dialog|page|document|text|sign|message|note|slide|photo|window)"
_whole = re.compile(
    r"^transcribe\b|\ball (?:of )?the (?:text|words)\b"
    rf"|^read (?:out )?(?:everything|it|(?:all )?(?:of )?(?:the )?(?:text|words|{_PAPER})(?: (?:in|on|of) .*)?)$"
    rf"|^what (?:text|words) (?:is|are|can|do|does)\b.*\b(?:here|there|see|read|{_PAPER})$"
    rf"|^what does (?:it|(?:the|this) {_PAPER}) (?:say|read)$"
    rf"|^what is written(?: here| (?:in|on) (?:it|(?:the|this) {_PAPER}))?$"
    rf"|^what(?:'s| is) the text(?: (?:in|on|of) (?:the|this) {_PAPER})?$"
)


def text_at(asked: Asked) -> Said | None:
    near = _beside.search(asked.low)
    if near and re.match(r"what(?:'s| is| text| stands| are)|which|read", asked.low) and not _figurative(asked):
        return _text_near(asked, near["how"], near["what"])
    if not _reads.search(asked.low):
        return None
    if (box := _region(asked)) is not None:
        lines = list(within(asked.seen, box))
        return Said("\n".join(line.text for line in lines) or "No text was read there.", spots_of(lines))
    if not _whole.search(asked.low) or asked.quoted:
        return None
    return Said(asked.seen.text or "\n".join(line.text for line in asked.seen.lines) or "No text was found.",
                spots_of(asked.seen.lines))  # fmt: skip


def _figurative(asked: Asked) -> bool:
    """Whether it is asked which one is "over budget" or "under review": that is no place in an image."""
    return re.match(r"which\b.*\b(?:over|under) (?!the |this |that |\W)", asked.low) is not None


def _region(asked: Asked) -> Box | None:
    width, height = asked.seen.size.width, asked.seen.size.height
    corner = (
        r"\b(?P<down>top|upper|bottom|lower)?[ -]?(?P<across>left|right)?(?: (?:corner|side|half|part|edge|third))\b"
    )
    match = re.search(corner, asked.low) or re.search(
        r"\b(?:at|in|on) the (?P<down>top|bottom)?[ -]?(?P<across>left|right)?$", asked.low
    )
    if match is None or not (match["down"] or match["across"]):
        return None
    x = 0 if match["across"] != "right" else width // 2
    y = height // 2 if match["down"] in ("bottom", "lower") else 0
    return Box(x, y, width // 2 if match["across"] else width, height // 2 if match["down"] else height)


def _text_near(asked: Asked, how: str, what: str) -> Said | None:
    about = subject(what, asked.quoted)
    title = titles(asked.seen)
    heads = {"heading": title.heading, "title": title.bar or title.heading}
    head = heads.get(bare(what))
    there = [Thing(head.text, head.box)] if head else things(asked.seen, about)
    if not there:
        return absent(about)
    anchor = there[0].box
    lines = [line for line in asked.seen.lines if line.box != anchor and _is(how, line.box, anchor)]
    nearest = min(lines, key=lambda line: abs(line.box.x - anchor.x) + 3 * abs(line.box.y - anchor.y), default=None)
    return Said(f'"{nearest.text}"', spots_of([nearest])) if nearest else Said(f"No text was read {how} it.")


def _is(how: str, box: Box, anchor: Box) -> bool:
    across = overlap_across(box, anchor)
    level = box.y < anchor.bottom and anchor.y < box.bottom
    if how in ("below", "under", "beneath"):
        return across and box.y >= anchor.bottom
    if how in ("above", "over"):
        return across and box.bottom <= anchor.y
    return level and (box.x >= anchor.right if how != "left of" else box.right <= anchor.x)
