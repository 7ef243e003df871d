"""What a question about images comes to: a description, an answer, a comparison, or a filled schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.seers.local.answer import answer
from sightline.seers.local.compare import compare, is_comparison, regions
from sightline.seers.local.fill import fill
from sightline.seers.local.noes import NO
from sightline.seers.local.say import NOTE, describe, turn
from sightline.seers.local.seen import Colour, Seen
from sightline.seers.local.subjects import Said

if TYPE_CHECKING:
    from sightline.seers.local.regions import Pixels


# All that is to be seen, in the words in which people mostly ask for it.
_IT = r"(?:(?:this|these|the|my|that|it)(?: (?:images?|pictures?|photos?|screenshots?|screens?|pages?|files?))?)"
_everything = re.compile(
    r"(?:please |can you |could you )?(?:(?:describe|summari[sz]e|explain|analy[sz]e) (?:this|the|these|my) "
    r"(?:image|picture|photo|screenshot|screen|page|file|attached \w+)\b[^?]{0,40}"
    r"|what (?:do you|can you|can be) seen?\b.{0,30}"
    rf"|(?:describe|summari[sz]e|explain|analy[sz]e|look at|tell me about) {_IT}(?: (?:to|for) me)?(?: in detail)?"
    r"|what(?:'?s| is| are) (?:this|that|it|these)(?: (?:image|picture|photo|screenshot))?(?: (?:about|of|here))?"
    rf"|what(?:'s| is) (?:in|on|shown (?:in|on)|visible (?:in|on)|to be seen (?:in|on)) {_IT}"
    r"|what(?:'s| is) (?:shown|visible|to be seen|there|here)(?: here)?"
    rf"|what does {_IT} show|what am i (?:looking at|seeing)(?: here)?"
    r"|(?:tell me|say) what (?:you (?:can )?see|this is|it is|it shows|this shows)"
    r"|describe)?[.?! ]*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Page:
    """An image that was read, and its pixels, both as it stands when it is read."""

    seen: Seen
    pixels: Pixels

    @property
    def pixel(self) -> Callable[[int, int], Colour]:
        def at(x: int, y: int) -> Colour:
            red, green, blue = (int(each) for each in self.pixels[y, x])
            return red, green, blue

        return at


def reply(question: str, schema: Json, pages: Sequence[Page]) -> Said | Refusal:
    if schema is not None:
        return fill(schema, [page.seen for page in pages], NOTE)
    question = "" if _everything.match(" ".join(question.replace("’", "'").split())) else question
    if len(pages) > 1:
        return _together(question, pages)
    (page,) = pages
    if not question:
        return describe(page.seen)
    said = answer(question, page.seen, page.pixel)
    note = f"{turn(page.seen)} {NOTE}" if page.seen.turned else NOTE
    return said if isinstance(said, Refusal) else replace(said, text=f"{said.text}\n\n{note}")


def _together(question: str, pages: Sequence[Page]) -> Said | Refusal:
    parts = []
    if is_comparison(question):
        for at, (one, other) in enumerate(pairwise(pages)):
            parts.append(compare(one.seen, other.seen, regions(one.pixels, other.pixels), at))
    else:
        parts = [_numbered(answer(question, page.seen, page.pixel), at) for at, page in enumerate(pages)]
        if not any(part.text for part in parts):
            return NO
    if not question:
        parts = [_numbered(describe(page.seen), at) for at, page in enumerate(pages)] + parts
    text = "\n\n".join(part.text.replace(NOTE, "").rstrip() for part in parts if part.text)
    return Said(f"{text}\n\n{NOTE}", tuple(spot for part in parts for spot in part.spots))


def _numbered(said: Said | Refusal, at: int) -> Said:
    """An answer about one of several; what one image does not answer, another may."""
    if isinstance(said, Refusal):
        return Said("")
    return Said(f"Image {at + 1}: {said.text}", tuple(replace(spot, image=at) for spot in said.spots))
