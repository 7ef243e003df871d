"""Report what was read of some images: the lines and parts related to a question first, then everything.

The reader doesn't answer questions. "Related" means that words are the same, in any language; the caller reasons.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sightline.model.scene import Json
from sightline.model.seer import LabelledBox
from sightline.reader.charts import format_value, name_mark, round_mark
from sightline.reader.describe import (
    DescribedItem,
    Report,
    describe_rotation,
    find_controls,
    find_titles_and_codes,
    list_findings,
    list_line_spots,
    list_part_spots,
    name_text_colour,
    quote_line,
    transcribe,
)
from sightline.reader.reading import ImageReading
from sightline.reader.rectangles import are_level, enclose_boxes, format_box, is_inside
from sightline.reader.sections import ALL_TEXT, HINT, NOTE, RELATED
from sightline.reader.tables import read_tables

if TYPE_CHECKING:
    from sightline.reader.reading import Pixels

_LONG = 6_000  # characters at which some callers clip a report
_MAX_RELATED = 12
_PLACES = re.compile(r"\b(?:where|locat\w*|positions?|coordinates?|bounding|boxes|pixels|click\w*)\b", re.IGNORECASE)
_NEAR_BEST = 0.4  # of the best score; what scores less is not related
_NEIGHBOURS = 3  # other texts of a line's row that are quoted with it
_PREFIX, _ENDING = 4, 3  # letters that two forms of a word share, at least, and letters that one may add
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u3040-\u30ff]+")
_WORD = re.compile(r"[^\W_]+")
_BOX = re.compile(r"\[\d+(?:, \d+){3}\]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# English words that say nothing about an image. In other languages rare words simply count for more than common ones.
_STOP_WORDS = frozenset(
    """a an the this that these those of in on at to for from by with and or is are was were be been do does did has
    have had it its what which who whom whose when where why how much many there here i me my you your we our can
    could would should will shall may might must please tell give show say says said read describe
    image picture screenshot s t if so as any""".split()
)


@dataclass(frozen=True, slots=True)
class ReadImage:
    """An image that was read, and its pixels, both upright."""

    reading: ImageReading
    pixels: Pixels


def report_images(question: str, schema: Json, images: Sequence[ReadImage], *, described: bool = False) -> Report:
    """Return what the images say: a filled schema, or everything that was read, what the question names first.

    A question about positions gets a list of all parts with their boxes. `described` means that the caller has a
    description of each image already: only what is related and what differs is returned then.
    """
    if schema is not None:
        from sightline.reader.schema_lookup import fill_schema

        return fill_schema(schema, [image.reading for image in images])
    related = [_report_related_items(question, image.reading, at, len(images)) for at, image in enumerate(images)]
    changes = _report_changes(images) if len(images) > 1 else []
    leading = "\n\n".join(each.text for each in (*related, *changes) if each.text)
    positions = _PLACES.search(question) is not None
    whole = "" if described and len(images) > 1 else _write_everything(images, positions=positions)
    spots = tuple(spot for each in (*related, *changes) for spot in each.spots)
    return Report(_join(leading, whole), spots or _list_spots(images))


def _report_changes(images: Sequence[ReadImage]) -> list[Report]:
    from sightline.reader.compare import compare_images, find_changed_regions

    return [
        compare_images(one.reading, other.reading, find_changed_regions(one.pixels, other.pixels), at)
        for at, (one, other) in enumerate(pairwise(images))
    ]


def _join(leading: str, whole: str) -> str:
    """Join both with the note between them, where a caller that clips the end does not remove it."""
    note = f"{NOTE} {HINT}" if len(leading) + len(whole) > _LONG else NOTE
    if not leading:
        return f"{whole}\n\n{NOTE}" if note == NOTE else f"{note}\n\n{whole}"
    return "\n\n".join(filter(None, (leading, note, whole and f"{ALL_TEXT}\n{whole}")))


def _write_everything(images: Sequence[ReadImage], *, positions: bool) -> str:
    numbered = [f"Image {at + 1}:\n" if len(images) > 1 else "" for at in range(len(images))]
    return "\n\n".join(
        f"{number}{transcribe(image.reading)}\n\n{list_findings(image.reading, positions=positions)}"
        for number, image in zip(numbered, images, strict=True)
    )


def _list_spots(images: Sequence[ReadImage]) -> tuple[LabelledBox, ...]:
    """Return the boxes of all parts before those of lines: where there are too many, the last ones are cut."""
    return tuple(
        replace(spot, image=at)
        for list_kind in (list_part_spots, list_line_spots)
        for at, image in enumerate(images)
        for spot in list_kind(image.reading)
    )


def _report_related_items(question: str, reading: ImageReading, at: int, images: int) -> Report:
    found = find_related_items(question, reading)
    if not found:
        return Report("")
    heading = f"{RELATED[:-1]}, in image {at + 1}:" if images > 1 else RELATED
    turned = [describe_rotation(reading)] if reading.rotation else []
    text = "\n".join([heading, *turned, *(f"- {each.sentence}" for each in found)])
    return Report(text, tuple(LabelledBox(each.label, each.box, at) for each in found if each.box))


def find_related_items(question: str, reading: ImageReading) -> list[DescribedItem]:
    """Return the lines and parts that share words with the question, the most related first."""
    wanted = _extract_question_terms(question)
    if not wanted:
        return []
    candidates = list(_list_candidates(reading))
    terms = [_extract_terms(_BOX.sub(" ", candidate.sentence)) for candidate in candidates]
    matches = [{term for term in wanted if _has_term(term, there)} for there in terms]
    common = Counter(term for each in matches for term in each)
    weight = {term: math.log(1 + len(candidates) / count) for term, count in common.items()}
    scores = [sum(weight[term] for term in each) for each in matches]
    best = max(scores, default=0.0)
    ranked = sorted(range(len(candidates)), key=lambda place: -scores[place])
    kept = [place for place in ranked if scores[place] > 0 and scores[place] >= _NEAR_BEST * best]
    return [_quote_neighbours(candidates[place], reading) for place in kept[:_MAX_RELATED]]


def _list_candidates(reading: ImageReading) -> Iterator[DescribedItem]:
    """Yield what may be related: parts, table rows, chart values, and the lines that are in none of them."""
    found = [*find_titles_and_codes(reading), *find_controls(reading), *_list_table_rows(reading)]
    yield from found
    yield from _list_chart_values(reading)
    covered = {at for each in found for at in each.lines} | set(_list_chart_labels(reading))
    for at, line in enumerate(reading.lines):
        if at not in covered:
            colour = name_text_colour(line, reading)
            yield DescribedItem(quote_line(line) + (f", in {colour}" if colour else ""), line.box, line.text, (at,))


def _quote_neighbours(found: DescribedItem, reading: ImageReading) -> DescribedItem:
    """Add the other texts in the row of a line: often its value, or its label."""
    if len(found.lines) != 1 or found.box != reading.lines[found.lines[0]].box:
        return found
    own = reading.lines[found.lines[0]]
    level = [line for line in reading.lines if line is not own and are_level(line.box, own.box)]
    if not 0 < len(level) <= _NEIGHBOURS:
        return found
    quoted = " and ".join(f'"{line.marked_text}"' for line in level)
    return replace(found, sentence=f"{found.sentence.removesuffix('.')}, beside {quoted}")


def _list_table_rows(reading: ImageReading) -> Iterator[DescribedItem]:
    places = {line.box: at for at, line in enumerate(reading.lines)}
    for table in read_tables(reading):
        heads = table.get_heads()
        first = len(table.cells) - len(table.body)
        for cells, boxes in zip(table.cells[first:], table.boxes[first:], strict=True):
            box = enclose_boxes(each for each in boxes if each)
            named = [f"{heads[at]}: {cell}" if at < len(heads) and heads[at] else cell for at, cell in enumerate(cells)]
            text = " | ".join(filter(None, named))
            lines = tuple(places[each] for each in boxes if each in places)
            yield DescribedItem(
                f"A table row at {format_box(box)}: {text}", box, " | ".join(filter(None, cells)), lines
            )


def _list_chart_values(reading: ImageReading) -> Iterator[DescribedItem]:
    for chart in reading.charts:
        title = f' "{chart.title}"' if chart.title else ""
        for mark in chart.marks:
            value = f"{name_mark(mark)}: {format_value(round_mark(mark), chart)}"
            unit = f" {chart.unit}" if chart.unit else ""
            yield DescribedItem(
                f"In the {chart.kind} chart{title}: {value}{unit} at {format_box(mark.box)}", mark.box, value
            )


def _list_chart_labels(reading: ImageReading) -> Iterator[int]:
    """Yield the lines that only name the values of a chart, which are listed by those names."""
    for chart in reading.charts:
        names = {name for mark in chart.marks for name in (mark.category, mark.series)}
        yield from (
            at for at, line in enumerate(reading.lines) if line.text in names and is_inside(line.box, chart.box)
        )


def _extract_question_terms(question: str) -> set[str]:
    """Return the words that matter, also joined in pairs: a recogniser may lose the space between two words."""
    words = [word for word in _WORD.findall(_normalize(question)) if word not in _STOP_WORDS]
    return {*(_extract_terms(question) - _STOP_WORDS), *(one + other for one, other in pairwise(words))}


def _extract_terms(text: str) -> set[str]:
    """Return the words of a text, and of Chinese, Japanese and Korean every pair of characters."""
    plain = _normalize(text)
    pairs = {run[at : at + 2] for run in _CJK.findall(plain) for at in range(max(1, len(run) - 1))}
    return {*_WORD.findall(_CJK.sub(" ", plain)), *pairs}


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", _CAMEL.sub(" ", text)).casefold()


def _has_term(term: str, there: set[str]) -> bool:
    """Return whether a word is among others, also in another form: "migrations" for "migration"."""
    return term in there or any(_is_form_of(term, other) for other in there)


def _is_form_of(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _PREFIX and long.startswith(short) and len(long) - len(short) <= _ENDING
