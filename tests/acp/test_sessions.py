"""The state that the relay keeps of sessions."""

from __future__ import annotations

from sightline.surfaces.acp.relay_state import QueuedLine, RelayState
from tests.requirements import requirement


@requirement("acp.bounded")
def test_an_agent_that_names_ever_new_sessions_costs_no_more_memory() -> None:
    known = RelayState()
    busy = known.get_session("busy", create=True)
    assert busy is not None
    busy.current = QueuedLine(b"")
    for number in range(10_000):
        assert known.get_session(f"s{number}", create=True) is not None
    assert len(known.sessions) < 5_000
    assert known.get_session("busy") is busy, "in which something is under way"
    assert known.get_session("s9999") is not None
    assert known.get_session("s0") is None
