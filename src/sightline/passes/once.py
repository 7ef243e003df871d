"""An image that stands in a tool's result and is written into a text of it as well is shown once."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from sightline.model.base64_text import STANDARD
from sightline.model.facts import Facts, Needs
from sightline.model.fate import Repeated
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline

_NO_LETTERS = b" \t\r\n="


def once(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if len(scene.sights) < 2 or all(sight.within is None for sight in scene.sights):
        return scene
    results = groupby(enumerate(scene.sights), key=lambda each: _result(each[1]))
    again = {index for _, sights in results for index in _again([*sights])}
    if not again:
        return scene
    met = (sight.meets(Repeated()) if index in again else sight for index, sight in enumerate(scene.sights))
    return replace(scene, sights=tuple(met))


def _result(sight: Sight) -> tuple[int, str | None] | None:
    """Names the result that a sight is of, in which it stands or right beside which."""
    return (sight.message, sight.call.id if sight.call else None) if sight.role == "tool" else None


def _again(sights: list[tuple[int, Sight]]) -> list[int]:
    """Of the sights of one result, those in texts that say again what stands in a block, or in an earlier text."""
    if len(sights) < 2 or sights[0][1].role != "tool":
        return []
    seen: set[bytes] = set()
    found: list[int] = []
    for index, sight in sorted(sights, key=lambda each: each[1].within is not None):
        if sight.fate is not None or not isinstance(sight.source, Inline):
            continue
        letters = bytes(sight.source.text).translate(STANDARD, _NO_LETTERS)
        if sight.within is not None and letters in seen:
            found.append(index)
        seen.add(letters)
    return found
