"""The image capability that the editor is promised: only what is really done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.media_capability import ImageCapability
from sightline.model.profile import ImageLimits, Profile
from sightline.surfaces.acp.negotiation import AcpAgent, ImageSupport, adapt_profile, build_promise
from tests.requirements import requirement

OWN = ImageCapability(5_242_880, 8000, 524_288)
ALL = ImageSupport(OWN, "trust", can_refit=True, can_describe=True)
SEEING = AcpAgent("a", takes_images=True)
MODEL = Profile("a", "openai_chat", "m")
NARROW = ImageCapability(1000, 500, 400)


@requirement("capability.true")
def test_only_promises_that_are_kept_are_made() -> None:
    full = replace(OWN, auto_handles_oversized=True, auto_handles_wrong_model=True)
    assert build_promise(ALL, SEEING) == full
    assert build_promise(replace(ALL, can_describe=False), SEEING) == replace(full, auto_handles_wrong_model=False)
    assert build_promise(replace(ALL, can_refit=False), SEEING) == replace(full, auto_handles_oversized=False)
    user = replace(OWN, auto_handles_wrong_model=False)
    assert build_promise(replace(ALL, own_capability=user), SEEING) == replace(full, auto_handles_wrong_model=False)
    boast = replace(OWN, auto_handles_wrong_model=True)
    assert build_promise(replace(ALL, own_capability=boast, can_describe=False), SEEING) == replace(
        full, auto_handles_wrong_model=False
    )


@requirement("capability.true")
def test_an_agent_without_images_takes_them_if_they_can_be_described() -> None:
    assert build_promise(ALL, AcpAgent("a")) == build_promise(ALL, SEEING)
    assert build_promise(replace(ALL, can_describe=False), AcpAgent("a")) is None
    assert adapt_profile(replace(MODEL, vision=True, vision_by_user=True), ALL, AcpAgent("a")).vision is False


@requirement("capability.true")
def test_an_agents_promises_count_as_far_as_they_are_trusted() -> None:
    says = ImageCapability(auto_handles_oversized=True, auto_handles_wrong_model=True)
    agent, none = AcpAgent("a", takes_images=True, capability=says), replace(ALL, can_refit=False, can_describe=False)
    trusted = build_promise(none, agent)
    assert trusted is not None
    assert (trusted.auto_handles_oversized, trusted.auto_handles_wrong_model) == (True, True)
    for trust in ("verify", "ignore"):
        doubted = build_promise(replace(none, trust=trust), agent)
        assert doubted is not None
        assert (doubted.auto_handles_oversized, doubted.auto_handles_wrong_model) == (False, False)
    known = build_promise(none, replace(agent, name="qwen-code"))
    assert known is not None
    assert (known.auto_handles_oversized, known.auto_handles_wrong_model) == (True, False)


@requirement("capability.target")
def test_our_limits_are_advertised_if_images_are_resized() -> None:
    agent = AcpAgent("a", takes_images=True, capability=NARROW)
    told = build_promise(ALL, agent)
    assert told is not None
    assert (told.max_bytes, told.max_dimension, told.downsample_target_bytes) == (5_242_880, 8000, 524_288)
    limits = adapt_profile(MODEL, ALL, agent).limits
    assert (limits.encoded_bytes, limits.edge, limits.refit_bytes) == (1000, 500, 400 // 3 * 4)
    tighter = build_promise(replace(ALL, can_refit=False), agent)
    assert tighter is not None
    assert (tighter.max_bytes, tighter.max_dimension, tighter.downsample_target_bytes) == (1000, 500, 400)


@requirement("capability.target.clamped")
def test_the_advertised_target_is_never_above_the_advertised_limit() -> None:
    agent = AcpAgent("a", takes_images=True, capability=ImageCapability(max_bytes=1000))
    told = build_promise(replace(ALL, can_refit=False), agent)
    assert told is not None
    assert (told.max_bytes, told.downsample_target_bytes) == (1000, 1000)


@requirement("capability.target")
def test_our_limits_count_for_an_agent_that_states_none() -> None:
    limits = adapt_profile(MODEL, ALL, SEEING).limits
    assert (limits.encoded_bytes, limits.edge, limits.refit_bytes) == (5_242_880, 8000, 524_288 // 3 * 4)
    handles = AcpAgent("a", takes_images=True, capability=replace(NARROW, auto_handles_oversized=True))
    assert adapt_profile(MODEL, ALL, handles).limits == ImageLimits(unchanged_bytes=None)
    doubted = adapt_profile(MODEL, replace(ALL, trust="verify"), handles).limits
    assert doubted.edge == 500
    ignored = adapt_profile(MODEL, replace(ALL, trust="ignore"), handles).limits
    assert ignored.edge == 8000


@pytest.mark.parametrize("vision", [True, False, None])
def test_an_agent_that_describes_images_itself_gets_them(vision: bool | None) -> None:
    agent = AcpAgent("sudocode", takes_images=True, capability=ImageCapability(auto_handles_wrong_model=True))
    assert adapt_profile(replace(MODEL, vision=vision), ALL, agent).vision is True
    settled = replace(MODEL, vision=vision, vision_by_user=True)
    assert adapt_profile(settled, ALL, agent).vision is vision
    assert adapt_profile(settled, ALL, SEEING, suspected_blind=True).vision is vision
    assert adapt_profile(replace(MODEL, vision=vision), ALL, SEEING, suspected_blind=True).vision is False
