"""What is open between an editor and its agent."""

from __future__ import annotations

from sightline.surfaces.acp.sessions import Open, Work
from tests.requirements import requirement


@requirement("acp.bounded")
def test_an_agent_that_names_ever_new_sessions_costs_no_more_memory() -> None:
    known = Open()
    busy = known.session("busy", make=True)
    assert busy is not None
    busy.working = Work(b"")
    for number in range(10_000):
        assert known.session(f"s{number}", make=True) is not None
    assert len(known.sessions) < 5_000
    assert known.session("busy") is busy, "in which something is under way"
    assert known.session("s9999") is not None
    assert known.session("s0") is None
