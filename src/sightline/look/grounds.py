"""How a model is asked for coordinates: as the user says of it, or as its family writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sightline.grounding.families import FALLBACK, format_of
from sightline.model.asking import LOCAL
from sightline.model.facts import NO_FORM
from sightline.profiles.names import matches
from sightline.settings import Settings
from sightline.vision.chooser import Named


def coordinates_of(settings: Settings, seer: str, named: Named | None) -> str:
    """The way of a seer, which may be the one that was named and have other names as well."""
    if not settings.values["grounding"] or seer == LOCAL:  # which measures instead
        return NO_FORM
    own = named is not None and seer == f"{named.provider}/{named.model}"
    return grounding_of(settings, (seer, *(named.names if named and own else ())))


def entries_of(settings: Settings) -> dict[str, str]:
    """The user's word about how models write coordinates."""
    said = cast("Mapping[str, Any]", settings.values["groundingModels"])
    return {model: str(entry["format"] if isinstance(entry, dict) else entry) for model, entry in said.items()}


def grounding_of(settings: Settings, names: Sequence[str]) -> str:
    """The grounding format of a model that is known by several names."""
    said = _grounds(settings, names)
    if said is False or isinstance(said, str):
        return said or NO_FORM
    found = format_of(names[0], entries_of(settings), names[1:])
    return FALLBACK if said and found == NO_FORM else found


def _grounds(settings: Settings, names: Sequence[str]) -> bool | str | None:
    """Whether models of these names write coordinates, or how, where the user says so of a pattern."""
    known = (*names, *(name.partition("/")[2] for name in names))
    said = (facts for pattern, facts in settings.models.items() if any(matches(pattern, name) for name in known))
    ways = (way for facts in said if isinstance(way := facts.get("grounding"), bool | str))
    return next(ways, None)
