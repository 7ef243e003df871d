"""The passes for images that stay images: fit them into the model's limits, and label those that need a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sightline.model.facts import Check, Facts, Keep, KeptImage, Need, Needs, Probe, Refit, Rules
from sightline.model.image import FitPart, ImageInfo, ImageTarget, compute_seen_size, is_illegibly_tall
from sightline.model.labels import build_label, build_reference
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.scene import AS_SENT, Fate, InlineSource, Json, Refitted, Refused, Scene, Shown, Sight
from sightline.passes.frontier import NEWEST_KEPT
from sightline.passes.wording import write_absence

_NeedTuple = tuple[Need, ...]
_PIXEL_FATES = (Shown, Refitted)  # a tuple: a union would be built again for every sight
_UNREADABLE = Refusal("corrupt", "the provider could not read it", "ask for the image again in another format")
_COMPUTER_USE = frozenset({"computerUse", "computer_use"})  # keys of a tool on Gemini's wire
_MAX_SCHEMA_DEPTH = 40
_USER_ROLES = ("user", "tool")  # on some wires a user's text shares a message with tool results


def build_target(
    limits: ImageLimits, images: int = 1, encoded: int = 0, *, keeps_geometry: bool = False
) -> ImageTarget:
    """Return the limits for each of several images; `encoded` is the total length of their base64 texts."""
    max_encoded = limits.encoded_bytes
    # A tenth of the request is reserved for text. The share of an image is halved when the number of images doubles:
    # a share that changed with every new image would change all images sent before, and invalidate the prompt cache.
    budget = limits.request_bytes * 9 // 10 if limits.request_bytes is not None else None
    if budget is not None and encoded > budget:
        max_encoded = min(max_encoded or budget, budget >> (images - 1).bit_length())
    edge = limits.get_max_edge(images)
    return ImageTarget(limits.formats, max_encoded, edge, still=limits.still, keeps_geometry=keeps_geometry)


def show(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Fit the images to the limits of the model, and label those that move and those that can be referred to."""
    fates = _choose_fates(scene, facts, rules)
    if isinstance(fates, Needs):
        return fates
    is_blind = rules.is_blind
    if is_blind and not any(isinstance(fate, _PIXEL_FATES) for fate in fates):
        return scene
    needs: set[Need] = set()
    sights: list[Sight] = []
    moves, refers = rules.profile.moves_tool_images, rules.add_references
    for sight, fate in zip(scene.sights, fates, strict=True):
        text = sight.label
        if moves and sight.role == "tool":
            text = _choose_label(sight, fate)
        elif refers and isinstance(sight.source, InlineSource) and _takes_reference(sight, fate, scene):
            kept = facts.find_kept(sight.source)
            if kept is None:
                needs.add(Keep(sight.source))
            elif isinstance(kept, KeptImage):
                text = build_reference(kept.sha256)
        sights.append(sight.with_label_and_fate(text, fate))
    if needs:
        return Needs(frozenset(needs))
    if Refitted in map(type, fates) and not is_blind and _declares_coordinates(scene):
        sights = [_note_scale(sight, facts, rules) for sight in sights]
    return scene.with_sights(tuple(sights))


def _choose_fates(scene: Scene, facts: Facts, rules: Rules) -> list[Fate | None] | Needs:
    """Return a fate for every sight that makes its image meet the limits of the model.

    The whole history counts: a new image can tighten a limit.
    """
    fates = [sight.fate for sight in scene.sights]
    if rules.is_blind:
        return fates
    live = [sight for sight in scene.sights if sight.fate is None]
    encoded = sum([len(s.source.text) for s in live if isinstance(s.source, InlineSource)])
    target = build_target(rules.profile.limits, len(live), encoded, keeps_geometry=True)
    folding = _FoldingCheck(scene)
    max_count = rules.profile.limits.count
    dropped = _find_over_count(live, max_count) if max_count is not None and len(live) > max_count else ()
    needs: list[Need] = []
    for index, sight in enumerate(scene.sights):
        if sight.fate is not None:
            continue
        if id(sight) in dropped:
            outcome = _refuse_over_count(sight, max_count, facts)
        else:
            outcome = _choose_fate(sight, target, facts, rules, folding)
        if isinstance(outcome, tuple):
            needs += outcome
        elif sight.pixels_only and not isinstance(outcome, _PIXEL_FATES):
            fates[index] = AS_SENT
        else:
            fates[index] = outcome
    return Needs(frozenset(needs)) if needs else fates


def _note_scale(sight: Sight, facts: Facts, rules: Rules) -> Sight:
    """Say beside a scaled image by which factor: the model is asked for coordinates."""
    fate, source = sight.fate, sight.source
    if not isinstance(fate, Refitted) or not isinstance(source, InlineSource) or not _takes_note(sight):
        return sight
    info = facts.get(Check(source), ImageInfo) if rules.check_all_images else facts.find_info(source)
    size = fate.image.size
    if not isinstance(info, ImageInfo) or info.size == size:
        return sight
    note = f"scaled by {size.width / info.size.width:.4g}, from {info.size} to {size}"
    return sight.with_fate(replace(fate, note=note))


class _FoldingCheck:
    """Whether pages of a scene may be folded. Its tools are searched once, and only if there is a page to fold."""

    __slots__ = ("_found", "_scene")

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._found: bool | None = None

    def may_fold(self) -> bool:
        """Return whether no tool of the conversation takes coordinates."""
        if self._found is None:
            self._found = not takes_coordinates(self._scene)
        return self._found


def takes_coordinates(scene: Scene) -> bool:
    """Return whether a tool of the conversation takes coordinates in an image, or may: not all tools are known."""
    return scene.is_partial or _declares_coordinates(scene)


def _declares_coordinates(scene: Scene) -> bool:
    return any(map(_has_coordinates, scene.declared_tools))


def _has_coordinates(value: Json, depth: int = 0) -> bool:
    """Return whether a declaration is one of a computer-use tool, or has parameters for coordinates."""
    if isinstance(value, list):
        return depth < _MAX_SCHEMA_DEPTH and any(_has_coordinates(item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return False
    kind, properties = value.get("type"), value.get("properties")
    if isinstance(kind, str) and kind.startswith("computer"):
        return True
    if not value.keys().isdisjoint(_COMPUTER_USE) or (isinstance(properties, dict) and _names_point(properties)):
        return True
    return depth < _MAX_SCHEMA_DEPTH and any(_has_coordinates(item, depth + 1) for item in value.values())


def _names_point(names: Iterable[str]) -> bool:
    """Return whether parameters of these names form a point: x and y, x1 and y1, a coordinate, or a box."""
    lower = {name.lower() for name in names}
    pairs = ("y".join((before, after)) for before, x, after in (name.rpartition("x") for name in lower) if x)
    return not lower.isdisjoint(pairs) or any("coord" in name or "bbox" in name for name in lower)


def _find_over_count(live: Sequence[Sight], limit: int) -> set[int]:
    """Return the identities of the sights to drop where a provider limits the number of images.

    Several are dropped at once, so that it happens rarely. This is a fold over the sights in order, so dropped ones
    stay dropped. The oldest from tools go first, then pasted ones, and last those that only the provider
    can open. The newest are never dropped, since the model is about to look at them.
    """
    batch, newest = max(1, limit // 4), max(1, min(NEWEST_KEPT, limit - 1))
    dropped: set[int] = set()
    kept: list[Sight] = []
    for sight in live:
        kept.append(sight)
        if len(kept) > limit:
            old = [each for each in kept[:-newest] if not each.pixels_only]
            order = sorted(old, key=lambda each: (not isinstance(each.source, InlineSource), each.role != "tool"))
            dropped |= set(map(id, order[:batch]))
            kept = [each for each in kept if id(each) not in dropped]
    return dropped


def _refuse_over_count(sight: Sight, limit: int | None, facts: Facts) -> Fate | _NeedTuple:
    what = f"the provider takes at most {limit} images in a request and others were kept"
    if isinstance(sight.source, InlineSource):
        kept = facts.find_kept(sight.source)
        if kept is None:
            return (Keep(sight.source),)
        what += f"; it is remembered as sha256:{kept.sha256}" if isinstance(kept, KeptImage) else ""
    refusal = Refusal("too_large", what, "ask for the image again to see it")
    return Refused(write_absence(refusal, sight.filename), refusal)


_FIRST_FRAME = "only its first frame is shown"


def _choose_fate(
    sight: Sight, target: ImageTarget, facts: Facts, rules: Rules, folding: _FoldingCheck
) -> Fate | _NeedTuple:
    source = sight.source
    if not isinstance(source, InlineSource):
        return AS_SENT
    # If the provider could not read one image and did not say which, every image is decoded completely.
    info = facts.get(Check(source), ImageInfo) if rules.check_all_images else facts.find_info(source)
    if rules.unreadable_keys and source.key in rules.unreadable_keys:
        info = _UNREADABLE
    if info is None:
        return (Check(source) if rules.check_all_images else Probe(source),)
    if isinstance(info, Refusal):
        return Refused(write_absence(info, sight.filename), info)
    if rules.profile.limits.unchanged_bytes is not None:
        target = _limit_bytes(target, info, rules.profile.limits.unchanged_bytes)
    is_tall = rules.fold_pages and is_illegibly_tall(info.size, rules.profile.sizing)
    if is_tall and folding.may_fold() and (folded := _fold_page(sight, source, info, target, facts, rules)):
        return folded
    if target.accepts(info, len(source.text)) and not rules.reencode:
        return AS_SENT if info.mime == source.declared_mime else Shown(info.mime)
    # An image that must be encoded anew is made in the size that the provider does not resize again.
    own_target = replace(_shrink_target(target, info, source, rules), sizing=rules.profile.sizing)
    why = _explain_refit(info, len(source.text), target, rules.profile.limits.unchanged_bytes)
    return _refit(sight, source, own_target, f"{why}; {_FIRST_FRAME}" if info.is_animated else why, facts)


def _limit_bytes(target: ImageTarget, info: ImageInfo, max_bytes: int) -> ImageTarget:
    """Return the target of an image: one that is too heavy to be sent unchanged must become lighter."""
    if info.bytes <= max_bytes:
        return target
    encoded = _encode_limit(max_bytes)
    return replace(target, encoded_bytes=min(encoded, target.encoded_bytes or encoded))


def _encode_limit(max_bytes: int) -> int:
    """Return the limit for base64, rounded down, so that a file of one byte more is over it too."""
    return max_bytes // 3 * 4


def _shrink_target(target: ImageTarget, info: ImageInfo, source: InlineSource, rules: Rules) -> ImageTarget:
    """Return the target for an image over a limit: a setting may ask for less than the limit."""
    wanted = rules.profile.limits.refit_bytes
    too_wide = target.edge is not None and info.size.edge > target.edge
    too_heavy = target.encoded_bytes is not None and len(source.text) > target.encoded_bytes
    if wanted is None or not (too_wide or too_heavy):
        return target
    return replace(target, encoded_bytes=min(wanted, target.encoded_bytes or wanted))


def _refit(sight: Sight, source: InlineSource, target: ImageTarget, why: str, facts: Facts) -> Fate | _NeedTuple:
    need = Refit(source, target)
    match facts.get(need, FitPart):
        case None:
            return need, Keep(source)  # the original can still be viewed later
        case Refusal() as refusal:
            return Refused(write_absence(refusal, sight.filename), refusal)
        case FitPart(image=image):
            return Refitted(image, why)


def _fold_page(
    sight: Sight, source: InlineSource, info: ImageInfo, target: ImageTarget, facts: Facts, rules: Rules
) -> Fate | _NeedTuple | None:
    """Return the fate of a tall page that is more legible in another layout; None: it has no such layout."""
    sizing = rules.profile.sizing
    if not _takes_note(sight) or info.is_animated:
        return None
    need = Refit(source, replace(target, sizing=sizing, keeps_geometry=False))
    fitted = facts.get(need, FitPart)
    if fitted is None:
        return (need,)
    if isinstance(fitted, Refusal) or not fitted.note:
        return None
    if facts.find_kept(source) is None:
        return (Keep(source),)  # the original can still be viewed later
    why = f"{fitted.note}; the provider would reduce {info.size} to {compute_seen_size(info.size, sizing)}"
    return Refitted(fitted.image, why, fitted.note)


def _takes_note(sight: Sight) -> bool:
    """Return whether a text can be beside an image."""
    return not sight.pixels_only and sight.path_in_text is None and isinstance(sight.place[-1], int)


def _explain_refit(info: ImageInfo, encoded: int, target: ImageTarget, unchanged_bytes: int | None) -> str:
    if info.mime not in target.formats:
        return f"{info.mime} is not accepted"
    if target.still and info.is_animated:
        return "animations are not accepted"
    if target.edge is not None and info.size.edge > target.edge:
        return f"{info.size} is over {target.edge} px"
    if target.encoded_bytes is not None and encoded > target.encoded_bytes:
        return _explain_size(info.bytes, encoded, target.encoded_bytes, unchanged_bytes)
    return "the provider could not read it as it was"


def _explain_size(size: int, encoded: int, limit: int, unchanged_bytes: int | None) -> str:
    """Explain the limit in bytes of the file, unless only line breaks in its base64 text exceed it."""
    max_size = limit // 4 * 3
    if unchanged_bytes is not None and limit == _encode_limit(unchanged_bytes):
        max_size = unchanged_bytes
    if size > max_size:
        return f"{size:,} bytes are over {max_size:,}"
    return f"its base64 text has {encoded:,} characters, and the limit is {limit:,}"


def label(scene: Scene, facts: Facts, rules: Rules) -> Scene:
    """Label the images that move out of tool results with the calls that they came from."""
    if not rules.profile.moves_tool_images or not any(sight.is_in_tool_result for sight in scene.sights):
        return scene
    sights = (sight.with_label_and_fate(_choose_label(sight, sight.fate), sight.fate) for sight in scene.sights)
    return scene.with_sights(tuple(sights))


def _choose_label(sight: Sight, fate: Fate | None) -> str:
    """Return the label of a sight where images move out of tool results."""
    moves = sight.is_in_tool_result and isinstance(fate, _PIXEL_FATES)
    return build_label(sight.call) if moves and sight.call else sight.label


def _takes_reference(sight: Sight, fate: Fate | None, scene: Scene) -> bool:
    """Return whether a reference can be beside an image that a user pasted, and the model gets its pixels."""
    if sight.role != "user" or sight.path_in_text is not None or not isinstance(fate, _PIXEL_FATES):
        return False
    return sight.message >= len(scene.messages) or scene.messages[sight.message].role in _USER_ROLES
