"""What this machine can do for an agent's images, found out without loading what would do it."""

from __future__ import annotations

from importlib.util import find_spec

from sightline.model.asking import LOCAL
from sightline.reader.ocr import weights
from sightline.settings import Settings, load
from sightline.surfaces.acp.capability import Ready
from sightline.surfaces.acp.loading import LOADING


def ready() -> Ready:
    settings = load()
    usable, looks = (True, True) if _reads(settings) else _somebody(settings)
    return Ready(
        settings.image_capability,
        settings.trust_peer_capability,
        refits=usable and find_spec("pyvips") is not None,
        looks=looks and settings.mode != "off",
    )


def _reads(settings: Settings) -> bool:
    """Is there, for a look that nobody is named for, what reads on this machine?"""
    named = settings.named_seer
    meant = LOCAL in named if named else settings.seer == "auto"
    return (
        meant
        and weights.is_runtime_installed()
        and any(weights.find_pair(pair, settings.data) for pair in weights.PAIRS)
    )


def _somebody(settings: Settings) -> tuple[bool, bool]:
    """Whether anything can be done with these settings, and whether anybody can be asked to look.

    That is found out by whoever would ask, which is a lot to load.
    """
    with LOADING:
        from sightline.api.bodies import find_runtime
        from sightline.model.refusal import Refusal
        from sightline.vision.bridge import wait

    runtime = find_runtime(settings)
    if isinstance(runtime, Refusal):
        return False, False
    return True, any(each.name for each in wait(runtime.chooser.choose()))
