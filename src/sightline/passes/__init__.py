"""Decisions: each pass gives sights their fates, or returns what it must know first. Pure: no I/O.

The first passes are here: they refuse images that are too large, resolve sources, and skip copies of an image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from sightline.model.facts import Facts, Fetch, Need, Needs, Probe, ReopenFile, Rules
from sightline.model.image import MAX_FILE_BYTES, URLSAFE_TO_STANDARD, ImageInfo, compute_decoded_size
from sightline.model.refusal import Refusal
from sightline.model.scene import DamagedSource, InlineSource, LinkSource, Refused, Repeated, Scene, Sight
from sightline.passes.retain import retain
from sightline.passes.show import show
from sightline.passes.tell import flag_sights_to_tell, tell
from sightline.passes.wording import write_absence

_MAX_TEXT = MAX_FILE_BYTES // 3 * 4 + 4
_MAX_TEXT_WITH_BREAKS = _MAX_TEXT // 8 * 9  # line breaks and escapes make base64 longer than its bytes require
_IGNORED = b" \t\r\n="


def permit(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Refuse images that are too large. Nothing that is refused here is decoded, fetched or sent anywhere."""
    if all(map(is_permitted, scene.sights)):
        return scene
    return replace(scene, sights=tuple(sight if is_permitted(sight) else _refuse(sight) for sight in scene.sights))


def is_permitted(sight: Sight) -> bool:
    """Return whether `permit` leaves a sight as it is: its image has no more bytes than any file may have."""
    source = sight.source
    if not isinstance(source, InlineSource) or len(source.text) <= _MAX_TEXT:
        return True
    return len(source.text) <= _MAX_TEXT_WITH_BREAKS and compute_decoded_size(source.text) <= MAX_FILE_BYTES


def _refuse(sight: Sight) -> Sight:
    refusal = Refusal("too_large", f"it is larger than {MAX_FILE_BYTES >> 20} MiB", "ask for a smaller copy of it")
    return sight.with_fate(Refused(write_absence(refusal, sight.filename), refusal))


def resolve(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Drop sights in texts that are no images or have to stay, reopen damaged ones, and fetch links to be described."""
    if all(sight.path_in_text is None and isinstance(sight.source, InlineSource) for sight in scene.sights):
        return scene  # as nearly always
    may_fetch = rules.may_pay and rules.mode != "off"
    stays_in_text = rules.profile.tool_images == "as_sent"
    pairs = [
        (sight, may_fetch and is_told)
        for sight, is_told in zip(scene.sights, flag_sights_to_tell(scene, rules), strict=True)
        if is_told or sight.path_in_text is None or not stays_in_text
    ]
    if len(pairs) < len(scene.sights):
        scene = replace(scene, sights=tuple(sight for sight, _ in pairs))
    if not any(s.path_in_text is not None or (fetch and isinstance(s.source, LinkSource)) for s, fetch in pairs):
        return scene
    needs: set[Need] = set()
    sights: list[Sight] = []
    for sight, fetch in pairs:
        outcome = _resolve_sight(sight, facts, fetch=fetch) if sight.fate is None else sight
        if isinstance(outcome, Sight):
            sights.append(outcome)
        elif outcome is not None:
            needs.add(outcome)
    if needs:
        return Needs(frozenset(needs))
    return replace(scene, sights=tuple(sights))


def _resolve_sight(sight: Sight, facts: Facts, *, fetch: bool) -> Sight | Need | None:
    """Return the sight with its true source, or what must be known first, or None if it is not an image."""
    if isinstance(sight.source, InlineSource) and sight.path_in_text is not None:
        need: Need = Probe(sight.source)
        info = facts.get(need, ImageInfo)
        return need if info is None else None if isinstance(info, Refusal) else sight
    if isinstance(sight.source, DamagedSource):
        return _replace_source(sight, ReopenFile(sight.source, sight.message), sight.source.path, facts)
    if isinstance(sight.source, LinkSource) and fetch:
        return _replace_source(sight, Fetch(sight.source), sight.filename, facts)
    return sight


def _replace_source(sight: Sight, need: Need, name: str | None, facts: Facts) -> Sight | Need:
    """Return the sight with the image that answers a need, or with the sentence that says why there is none."""
    match facts.get(need, InlineSource):
        case None:
            return need
        case Refusal() as refusal:
            return sight.with_fate(Refused(write_absence(refusal, name), refusal))
        case InlineSource() as source:
            return replace(sight, source=source)


def deduplicate(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Show an image once if a tool result contains it as a block and again in one of its texts."""
    if len(scene.sights) < 2 or all(sight.path_in_text is None for sight in scene.sights):
        return scene
    results = groupby(enumerate(scene.sights), key=lambda each: _get_result_key(each[1]))
    copies = {index for _, sights in results for index in _find_copies([*sights])}
    if not copies:
        return scene
    sights = (sight.with_fate(Repeated()) if index in copies else sight for index, sight in enumerate(scene.sights))
    return replace(scene, sights=tuple(sights))


def _get_result_key(sight: Sight) -> tuple[int, str | None] | None:
    """Return a key that sights of one tool result share; None for a sight that is not from a tool."""
    return (sight.message, sight.call.id if sight.call else None) if sight.role == "tool" else None


def _find_copies(sights: list[tuple[int, Sight]]) -> list[int]:
    """Return the indexes of sights in texts whose image is also in a block, or in an earlier text, of the result."""
    if len(sights) < 2 or sights[0][1].role != "tool":
        return []
    seen: set[bytes] = set()
    copies: list[int] = []
    for index, sight in sorted(sights, key=lambda each: each[1].path_in_text is not None):
        if sight.fate is not None or not isinstance(sight.source, InlineSource):
            continue
        text = bytes(sight.source.text).translate(URLSAFE_TO_STANDARD, _IGNORED)
        if sight.path_in_text is not None and text in seen:
            copies.append(index)
        seen.add(text)
    return copies


Pass = Callable[[Scene, Facts, Rules], Scene | Needs]

_LAST_PASSES: Sequence[Pass] = (retain, show)
PASSES: Sequence[Pass] = (permit, resolve, deduplicate, tell, *_LAST_PASSES)


def decide(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Return the scene with a fate for every sight, or what the first pass that cannot decide needs to know."""
    # In most requests, the model sees, and every image is in a block of its own: the first passes would change nothing.
    sees = not rules.is_blind and not rules.pixels_this_turn_only
    for run_pass in _LAST_PASSES if sees and all(map(_is_ordinary, scene.sights)) else PASSES:
        outcome = run_pass(scene, facts, rules)
        if isinstance(outcome, Needs):
            return outcome
        scene = outcome
    return scene


def _is_ordinary(sight: Sight) -> bool:
    """Return whether only the last passes can change a sight, if the model sees."""
    source = sight.source
    return sight.path_in_text is None and isinstance(source, InlineSource) and len(source.text) <= _MAX_TEXT
