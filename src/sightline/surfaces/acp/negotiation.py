"""Negotiates images between an editor and its agent.

`build_promise` returns the capability that we advertise to the editor: only what this machine and the agent really do.
`adapt_profile` narrows what is known about a model to what its agent accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from sightline.model.media_capability import ImageCapability, Promise, TrustLevel
from sightline.model.profile import ImageLimits, Profile
from sightline.model.seer import LOCAL_SEER
from sightline.reader.ocr import weights
from sightline.settings import Settings
from sightline.settings.live_settings import get_process_settings
from sightline.surfaces.acp import IMPORT_LOCK


def find_image_support() -> ImageSupport:
    """Find out what this machine can do with images, by the user's settings."""
    settings = get_process_settings().get()
    usable, can_describe = (True, True) if _has_local_reader(settings) else _check_seers(settings)
    return ImageSupport(
        settings.image_capability,
        settings.trust_peer_capability,
        can_refit=usable and find_spec("pyvips") is not None,
        can_describe=can_describe and settings.mode != "off",
    )


def _has_local_reader(settings: Settings) -> bool:
    """Return whether the local reader is what describes images, and is installed."""
    named = settings.named_seer
    is_chosen = LOCAL_SEER in named if named else settings.seer == "auto"
    return (
        is_chosen
        and weights.is_runtime_installed()
        and any(weights.find_pair(pair, settings.data_folder) for pair in weights.PAIRS)
    )


def _check_seers(settings: Settings) -> tuple[bool, bool]:
    """Return whether the settings can be used at all, and whether a vision model can be asked.

    This builds the whole runtime, which takes long to import.
    """
    with IMPORT_LOCK:
        from sightline.api.body_preparation import find_runtime
        from sightline.model.refusal import Refusal
        from sightline.vision.background_loop import run_blocking

    runtime = find_runtime(settings)
    if isinstance(runtime, Refusal):
        return False, False
    return True, run_blocking(runtime.chooser.has_seer())


BROKEN_PROMISES: Mapping[str, tuple[Promise, ...]] = {
    "qwen-code": ("autoHandlesWrongModel",),  # it promises this even if it has no vision model
}
"""Promises that agents make and don't keep, by the name that an agent gives itself."""


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """What an agent says about itself."""

    name: str = ""
    takes_images: bool = False  # prompts may contain them
    capability: ImageCapability | None = None
    takes_embedded_files: bool = True  # prompts may contain them

    def get_trusted_capability(self, trust: TrustLevel) -> ImageCapability:
        """Return the part of its capability that counts."""
        claimed = self.capability or ImageCapability()
        if trust != "trust" or self.name not in BROKEN_PROMISES:
            return claimed.apply_trust(trust)
        kept: list[Promise] = [each for each in _PROMISES if each not in BROKEN_PROMISES[self.name]]
        return claimed.apply_trust("verify", kept)


_PROMISES: tuple[Promise, ...] = ("autoHandlesOversized", "autoHandlesWrongModel")


@dataclass(frozen=True, slots=True)
class ImageSupport:
    """What this machine can do with an agent's images."""

    own_capability: ImageCapability  # from the user's settings
    trust: TrustLevel
    can_refit: bool  # make images smaller
    can_describe: bool  # ask a vision model or the local reader


def build_promise(support: ImageSupport, agent: AcpAgent) -> ImageCapability | None:
    """Return the capability to advertise to the editor; None: no image could be used at all."""
    agent_capability, own = agent.get_trusted_capability(support.trust), support.own_capability
    if not (agent.takes_images or support.can_describe):
        return None
    limits = own if support.can_refit else _tighten(own, agent_capability)
    oversized = support.can_refit or bool(agent_capability.auto_handles_oversized)
    blind = support.can_describe or bool(agent_capability.auto_handles_wrong_model)
    return replace(
        limits,
        auto_handles_oversized=oversized and own.auto_handles_oversized is not False,
        auto_handles_wrong_model=blind and own.auto_handles_wrong_model is not False,
    )


def adapt_profile(known: Profile, support: ImageSupport, agent: AcpAgent, *, suspected_blind: bool = False) -> Profile:
    """Return what is known about a model, with the limits of its agent.

    An agent that takes no images makes every model blind. An agent that we trust to describe images for a blind model
    gets the images. `suspected_blind`: the agent has said in this session that its model can't see images.
    """
    agent_capability = agent.get_trusted_capability(support.trust)
    limits = known.limits.tighten(_find_limits(support.own_capability, agent_capability))
    if agent_capability.auto_handles_oversized:
        limits = replace(limits, unchanged_bytes=None)
    fitted = replace(known, limits=limits, sibling=None)
    if not agent.takes_images:
        return replace(fitted, vision=False, why=f"{agent.name or 'the agent'} takes no images in prompts")
    if agent_capability.auto_handles_wrong_model and not known.vision_by_user:
        return replace(fitted, vision=True, why=f"{agent.name} says that it describes images for blind models itself")
    if suspected_blind and not known.vision_by_user:
        return replace(
            fitted, vision=False, why=f"{agent.name or 'the agent'} has said that its model can't see images"
        )
    return fitted


def _find_limits(own: ImageCapability, theirs: ImageCapability) -> ImageLimits:
    """Return the agent's limits, or our own if it names none, and the size to which larger images are reduced."""
    if theirs.auto_handles_oversized:
        return ImageLimits()
    stated = ImageCapability(theirs.max_bytes, theirs.max_dimension, theirs.downsample_target_bytes)
    peer = stated if stated != ImageCapability() else own
    goal = peer.downsample_target_bytes or own.downsample_target_bytes
    encoded = None if goal is None else goal // 3 * 4
    return ImageLimits(encoded_bytes=peer.max_bytes, edge=peer.max_dimension, refit_bytes=encoded)


def _tighten(one: ImageCapability, other: ImageCapability) -> ImageCapability:
    def least(a: int | None, b: int | None) -> int | None:
        return min((n for n in (a, b) if n is not None), default=None)

    return ImageCapability(
        least(one.max_bytes, other.max_bytes),
        least(one.max_dimension, other.max_dimension),
        least(one.downsample_target_bytes, other.downsample_target_bytes),
        one.auto_handles_oversized,
        one.auto_handles_wrong_model,
    )
