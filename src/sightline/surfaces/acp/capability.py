"""What is promised to an editor about images, and what an agent is given: by what each of both really does."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from sightline.model.asking import LOCAL
from sightline.model.capability import ImageCapability, Promise, Trust
from sightline.model.profile import Limits, Profile
from sightline.reader.ocr import weights
from sightline.settings import Settings, load


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


LOADING = threading.RLock()


BROKEN: Mapping[str, tuple[Promise, ...]] = {
    "qwen-code": ("autoHandlesWrongModel",),  # it promises so with no model at hand that could look
}
"""Promises that agents make and were seen not to keep, by what an agent calls itself."""


@dataclass(frozen=True, slots=True)
class Agent:
    """What an agent says of itself."""

    name: str = ""
    images: bool = False  # prompts may hold them
    capability: ImageCapability | None = None

    def believed(self, trust: Trust) -> ImageCapability:
        """What of it counts."""
        said = self.capability or ImageCapability()
        if trust != "trust" or self.name not in BROKEN:
            return said.believed(trust)
        kept: list[Promise] = [each for each in _PROMISES if each not in BROKEN[self.name]]
        return said.believed("verify", kept)


_PROMISES: tuple[Promise, ...] = ("autoHandlesOversized", "autoHandlesWrongModel")


@dataclass(frozen=True, slots=True)
class Ready:
    """What there is on this machine for an agent's images."""

    own: ImageCapability  # as the user has set it
    trust: Trust
    refits: bool  # pixels can be made smaller
    looks: bool  # somebody can say what is to be seen


def promised(ready: Ready, agent: Agent) -> ImageCapability | None:
    """What an editor is told; None: there is nothing to tell, since no image can be made use of."""
    theirs, own = agent.believed(ready.trust), ready.own
    if not (agent.images or ready.looks):
        return None
    limits = own if ready.refits else _tighter(own, theirs)
    oversized = ready.refits or bool(theirs.auto_handles_oversized)
    blind = ready.looks or bool(theirs.auto_handles_wrong_model)
    return replace(
        limits,
        auto_handles_oversized=oversized and own.auto_handles_oversized is not False,
        auto_handles_wrong_model=blind and own.auto_handles_wrong_model is not False,
    )


def meant_for(known: Profile, ready: Ready, agent: Agent, *, suspected: bool = False) -> Profile:
    """What is known of a model, as its agent takes images: a limit of the agent's is one of the model's, too.

    An agent that takes no images is blind whatever its model is; one that is believed to look for a blind model by
    itself is left to do so. `suspected`: it has said in this session that its model does not see.
    """
    theirs = agent.believed(ready.trust)
    fitted = replace(known, limits=known.limits.tightened(_limits(ready.own, theirs)), sibling=None)
    if not agent.images:
        return replace(fitted, vision=False, why=f"{agent.name or 'the agent'} takes no images in prompts")
    if theirs.auto_handles_wrong_model and not known.settled:
        return replace(fitted, vision=True, why=f"{agent.name} says that it looks for blind models itself")
    if suspected and not known.settled:
        return replace(fitted, vision=False, why=f"{agent.name or 'the agent'} has said that its model does not see")
    return fitted


def _limits(own: ImageCapability, theirs: ImageCapability) -> Limits:
    """Of whoever says any: the agent. What exceeds one is brought down to the target of whoever named it."""
    if theirs.auto_handles_oversized:
        return Limits()
    said = ImageCapability(theirs.max_bytes, theirs.max_dimension, theirs.downsample_target_bytes)
    peer = said if said != ImageCapability() else own
    goal = peer.downsample_target_bytes or own.downsample_target_bytes
    encoded = None if goal is None else goal // 3 * 4
    return Limits(encoded_bytes=peer.max_bytes, edge=peer.max_dimension, refit_bytes=encoded)


def _tighter(one: ImageCapability, other: ImageCapability) -> ImageCapability:
    def least(a: int | None, b: int | None) -> int | None:
        return min((n for n in (a, b) if n is not None), default=None)

    return ImageCapability(
        least(one.max_bytes, other.max_bytes),
        least(one.max_dimension, other.max_dimension),
        least(one.downsample_target_bytes, other.downsample_target_bytes),
        one.auto_handles_oversized,
        one.auto_handles_wrong_model,
    )
