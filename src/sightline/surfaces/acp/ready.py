"""What this machine can do for an agent's images, found out without loading what would do it."""

from __future__ import annotations

from importlib.util import find_spec

from sightline.seers.local import weights
from sightline.seers.local.seer import LOCAL
from sightline.settings import Settings, load
from sightline.surfaces.acp.capability import Ready


def ready() -> Ready:
    settings = load()
    return Ready(
        settings.image_capability,
        settings.trust_peer_capability,
        refits=find_spec("pyvips") is not None,
        looks=settings.mode != "off" and (_reads(settings) or _somebody(settings)),
    )


def _reads(settings: Settings) -> bool:
    """Is there, for a look that nobody is named for, what reads on this machine?"""
    named = settings.named_seer
    meant = LOCAL in named if named else settings.seer == "auto"
    return meant and weights.installed() and any(weights.find(pair, settings.data) for pair in weights.PAIRS)


def _somebody(settings: Settings) -> bool:
    """Can anybody be asked at all? That is found out by whoever would ask, which is a lot to load."""
    from sightline.look.analyze_seer import lookers
    from sightline.look.doors import opened
    from sightline.look.loop import wait
    from sightline.model.refusal import Refusal

    found, _ = wait(lookers(settings, opened(settings.folder, settings.record), ""))
    return any(not isinstance(each, Refusal) for each in found)
