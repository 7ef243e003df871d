"""Pixels for a model that sees: every image of the request within the limits of the model it goes to.

The whole history is judged on every request: one image more can make an old one illegal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sightline.model.facts import Check, Facts, Keep, Kept, Need, Needs, Probe, Refit
from sightline.model.fate import Fate, Refitted, Refused, Shown
from sightline.model.image import Image, Picture, Target
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline
from sightline.passes.frontier import NEWEST
from sightline.passes.words import absence

_Lacking = tuple[Need, ...]
_AS_SENT = Shown()
_UNREADABLE = Refusal("corrupt", "the provider could not read it", "ask for the image again in another format")


def target(limits: Limits, images: int = 1, encoded: int = 0) -> Target:
    """What one of so many images has to be, `encoded` being the base64 length of all of them together."""
    each = limits.encoded_bytes
    # A tenth of the request is left to its words. The shares halve when the images double: with a share for each
    # number of images, every new one would change all that were sent before, and the cached prefix with them.
    room = limits.request_bytes * 9 // 10 if limits.request_bytes is not None else None
    if room is not None and encoded > room:
        each = min(each or room, room >> (images - 1).bit_length())
    return Target(limits.formats, each, limits.edge_among(images), still=limits.still)


def fit(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if rules.blind:
        return scene
    live = [sight for sight in scene.sights if sight.fate is None]
    encoded = sum(len(s.source.text) for s in live if isinstance(s.source, Inline))
    goal = target(rules.profile.limits, len(live), encoded)
    most = rules.profile.limits.count
    leaving = _beyond_count(live, most)
    needs: list[Need] = []
    sights: list[Sight] = []
    for sight in scene.sights:
        if sight.fate is not None:
            sights.append(sight)
            continue
        gone = id(sight) in leaving
        outcome = _left_out(sight, most, facts) if gone else _fate(sight, goal, facts, rules)
        if isinstance(outcome, tuple):
            needs += outcome
        elif not needs:
            sights.append(sight.meets(outcome))
    return Needs(frozenset(needs)) if needs else scene.with_sights(tuple(sights))


def _beyond_count(live: Sequence[Sight], most: int | None) -> set[int]:
    """Those that leave, by identity, where a provider takes only so many: several at once, so that it happens seldom.

    A fold over their arrival, so that what has left stays away. The oldest of what tools brought go first, then what
    the user pasted, and last what only the provider can open; the newest never, since somebody waits for them.
    """
    if most is None or len(live) <= most:
        return set()
    batch, newest = max(1, most // 4), max(1, min(NEWEST, most - 1))
    left: set[int] = set()
    staying: list[Sight] = []
    for sight in live:
        staying.append(sight)
        if len(staying) > most:
            old = [each for each in staying[:-newest] if not each.fixed]
            order = sorted(old, key=lambda each: (not isinstance(each.source, Inline), each.role != "tool"))
            left |= set(map(id, order[:batch]))
            staying = [each for each in staying if id(each) not in left]
    return left


def _left_out(sight: Sight, most: int | None, facts: Facts) -> Fate | _Lacking:
    what = f"the provider takes at most {most} images in a request and others were kept"
    if isinstance(sight.source, Inline):
        kept = facts.answer(Keep(sight.source), Kept)
        if kept is None:
            return (Keep(sight.source),)
        what += f"; it is remembered as sha256:{kept.sha256}" if isinstance(kept, Kept) else ""
    no = Refusal("too_large", what, "ask for the image again to see it")
    return Refused(absence(no, sight.filename), no)


def _fate(sight: Sight, goal: Target, facts: Facts, rules: Rules) -> Fate | _Lacking:
    source = sight.source
    if not isinstance(source, Inline):
        return _AS_SENT
    if rules.poison and source.key in rules.poison:
        return Refused(absence(_UNREADABLE, sight.filename), _UNREADABLE)
    # A provider that choked on some image may have choked on any: then each is decoded to its last pixel.
    need = Check(source) if rules.distrust else Probe(source)
    seen = facts.answer(need, Picture)
    match seen:
        case None:
            return (need,)
        case Refusal():
            return Refused(absence(seen, sight.filename), seen)
        case Picture() if goal.admits(seen, len(source.text)) and not rules.recode:
            return _AS_SENT if seen.mime == source.declared else Shown(seen.mime)
        case Picture():
            # What is made anew is made so that nobody resizes it again.
            made = replace(_brought_down(goal, seen, source, rules), sizing=rules.profile.sizing)
            return _refitted(sight, source, made, _why(seen, len(source.text), goal), facts)


def _brought_down(goal: Target, seen: Picture, source: Inline, rules: Rules) -> Target:
    """Somebody may want what is too large to be much smaller than it has to be."""
    wanted = rules.profile.limits.refit_bytes
    too_wide = goal.edge is not None and seen.size.edge > goal.edge
    too_heavy = goal.encoded_bytes is not None and len(source.text) > goal.encoded_bytes
    if wanted is None or not (too_wide or too_heavy):
        return goal
    return replace(goal, encoded_bytes=min(wanted, goal.encoded_bytes or wanted))


def _refitted(sight: Sight, source: Inline, made: Target, why: str, facts: Facts) -> Fate | _Lacking:
    need = Refit(source, made)
    match facts.answer(need, Image):
        case None:
            return need, Keep(source)  # what was sent is not lost for what it became
        case Refusal() as no:
            return Refused(absence(no, sight.filename), no)
        case Image() as image:
            return Refitted(image, why)


def _why(seen: Picture, encoded: int, goal: Target) -> str:
    if seen.mime not in goal.formats:
        return f"{seen.mime} is not taken there"
    if goal.still and seen.moving:
        return "animations are not taken there"
    if goal.edge is not None and seen.size.edge > goal.edge:
        return f"{seen.size} is over {goal.edge} px"
    if goal.encoded_bytes is not None and encoded > goal.encoded_bytes:
        return _too_heavy(seen.bytes, encoded, goal.encoded_bytes)
    return "the provider could not read it as it was"


def _too_heavy(size: int, encoded: int, limit: int) -> str:
    """Say by how much, in bytes of the file. Only where its base64 has line breaks is that text itself to blame."""
    most = limit // 4 * 3
    return (
        f"{size:,} bytes are over {most:,}"
        if size > most
        else f"its base64 text of {encoded:,} letters is over {limit:,}"
    )
