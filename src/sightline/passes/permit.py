"""May this be read at all? Nothing that this pass has refused is decoded, fetched or sent anywhere."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.base64_text import decoded_size
from sightline.model.facts import Facts, Needs
from sightline.model.fate import Refused
from sightline.model.image import MAX_BYTES
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline
from sightline.passes.words import absence

_LARGEST_TEXT = MAX_BYTES // 3 * 4 + 4
_WITH_BREAKS = _LARGEST_TEXT // 8 * 9  # in lines, and with escapes, it is longer than it says


def permit(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if not any(map(_is_too_large, scene.sights)):
        return scene
    return replace(scene, sights=tuple(_judged(sight) if _is_too_large(sight) else sight for sight in scene.sights))


def _is_too_large(sight: Sight) -> bool:
    if not isinstance(sight.source, Inline) or len(sight.source.text) <= _LARGEST_TEXT:
        return False
    return len(sight.source.text) > _WITH_BREAKS or decoded_size(sight.source.text) > MAX_BYTES


def _judged(sight: Sight) -> Sight:
    no = Refusal("too_large", f"it is larger than {MAX_BYTES >> 20} MiB", "ask for a smaller copy of it")
    return sight.meets(Refused(absence(no, sight.filename), no))
