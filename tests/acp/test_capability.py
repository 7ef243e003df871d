"""What is promised to an editor: all that is done, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.capability import ImageCapability
from sightline.model.profile import Limits, Profile
from sightline.surfaces.acp.capability import Agent, Ready, meant_for, promised
from tests.requirements import requirement

OWN = ImageCapability(5_242_880, 8000, 524_288)
ALL = Ready(OWN, "trust", refits=True, looks=True)
SEEING = Agent("a", images=True)
MODEL = Profile("a", "openai_chat", "m")
NARROW = ImageCapability(1000, 500, 400)


@requirement("capability.true")
def test_a_promise_is_made_only_where_it_is_kept() -> None:
    full = replace(OWN, auto_handles_oversized=True, auto_handles_wrong_model=True)
    assert promised(ALL, SEEING) == full
    assert promised(replace(ALL, looks=False), SEEING) == replace(full, auto_handles_wrong_model=False)
    assert promised(replace(ALL, refits=False), SEEING) == replace(full, auto_handles_oversized=False)
    user = replace(OWN, auto_handles_wrong_model=False)
    assert promised(replace(ALL, own=user), SEEING) == replace(full, auto_handles_wrong_model=False)
    boast = replace(OWN, auto_handles_wrong_model=True)
    assert promised(replace(ALL, own=boast, looks=False), SEEING) == replace(full, auto_handles_wrong_model=False)


@requirement("capability.true")
def test_an_agent_that_takes_no_images_does_so_where_they_can_be_told() -> None:
    assert promised(ALL, Agent("a")) == promised(ALL, SEEING)
    assert promised(replace(ALL, looks=False), Agent("a")) is None
    assert meant_for(replace(MODEL, vision=True, settled=True), ALL, Agent("a")).vision is False


@requirement("capability.true")
def test_what_an_agent_promises_counts_as_far_as_it_is_believed() -> None:
    says = ImageCapability(auto_handles_oversized=True, auto_handles_wrong_model=True)
    agent, none = Agent("a", images=True, capability=says), replace(ALL, refits=False, looks=False)
    trusted = promised(none, agent)
    assert trusted is not None
    assert (trusted.auto_handles_oversized, trusted.auto_handles_wrong_model) == (True, True)
    for trust in ("verify", "ignore"):
        doubted = promised(replace(none, trust=trust), agent)
        assert doubted is not None
        assert (doubted.auto_handles_oversized, doubted.auto_handles_wrong_model) == (False, False)
    known = promised(none, replace(agent, name="qwen-code"))
    assert known is not None
    assert (known.auto_handles_oversized, known.auto_handles_wrong_model) == (True, False)


@requirement("capability.target")
def test_where_images_are_refitted_our_limits_are_told_and_the_agents_are_the_goal() -> None:
    agent = Agent("a", images=True, capability=NARROW)
    told = promised(ALL, agent)
    assert told is not None
    assert (told.max_bytes, told.max_dimension, told.downsample_target_bytes) == (5_242_880, 8000, 524_288)
    limits = meant_for(MODEL, ALL, agent).limits
    assert (limits.encoded_bytes, limits.edge, limits.refit_bytes) == (1000, 500, 400 // 3 * 4)
    tighter = promised(replace(ALL, refits=False), agent)
    assert tighter is not None
    assert (tighter.max_bytes, tighter.max_dimension, tighter.downsample_target_bytes) == (1000, 500, 400)


@requirement("capability.target")
def test_an_agent_that_says_nothing_gets_what_we_promise_and_one_that_refits_gets_it_as_it_is() -> None:
    limits = meant_for(MODEL, ALL, SEEING).limits
    assert (limits.encoded_bytes, limits.edge, limits.refit_bytes) == (5_242_880, 8000, 524_288 // 3 * 4)
    handles = Agent("a", images=True, capability=replace(NARROW, auto_handles_oversized=True))
    assert meant_for(MODEL, ALL, handles).limits == Limits()
    doubted = meant_for(MODEL, replace(ALL, trust="verify"), handles).limits
    assert doubted.edge == 500
    ignored = meant_for(MODEL, replace(ALL, trust="ignore"), handles).limits
    assert ignored.edge == 8000


@pytest.mark.parametrize("vision", [True, False, None])
def test_an_agent_that_looks_by_itself_is_left_to_do_so_unless_the_user_says_otherwise(vision: bool | None) -> None:
    agent = Agent("sudocode", images=True, capability=ImageCapability(auto_handles_wrong_model=True))
    assert meant_for(replace(MODEL, vision=vision), ALL, agent).vision is True
    settled = replace(MODEL, vision=vision, settled=True)
    assert meant_for(settled, ALL, agent).vision is vision
    assert meant_for(settled, ALL, SEEING, suspected=True).vision is vision
    assert meant_for(replace(MODEL, vision=vision), ALL, SEEING, suspected=True).vision is False
