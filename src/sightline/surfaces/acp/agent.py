"""The agent's process: started, told what we are told, and ended with its editor as it would be without us."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from sightline.surfaces.acp.pipes import Head, Held, Outlet, Pump

_GRACE = 5.0  # seconds of silence after which an agent whose editor has left is asked to leave, and then made to
_THINKING = 60.0  # … while it has a prompt to answer
_LEFT_BEHIND = 0.5  # seconds of silence after which nothing more comes from what an agent has left running
_POLL = 0.2
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_SIGNALS = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")


class Conversation(Protocol):
    """What is done with lines; the process knows no more of it than this."""

    def up(self, head: Head) -> int:
        """How many bytes of a line of the editor's are held; 0: it goes on as it comes."""
        ...

    def down(self, head: Head) -> int: ...

    def said(self, line: Held) -> None:
        """A line of the editor's that was held."""
        ...

    def answered(self, line: Held) -> None: ...

    def finish(self) -> None:
        """The editor says no more: what is still looked at for it is given up."""
        ...

    @property
    def thinking(self) -> bool:
        """Has the agent a prompt to answer?"""
        ...


def relay(argv: Sequence[str], begin: Callable[[Outlet, Outlet], Conversation]) -> int:
    """The exit code of the agent, between whose pipes and ours `begin` puts a conversation."""
    with _signals() as follow:
        ask = _leaves_with_us()  # there is no other thread yet
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, bufsize=0, preexec_fn=ask)  # noqa: PLW1509
        follow(process)
        assert process.stdin
        assert process.stdout
        changed = threading.Event()
        to_agent, to_editor = Outlet(process.stdin.fileno()), Outlet(1)
        talk = begin(to_agent, to_editor)

        def editor_left() -> None:
            talk.finish()
            to_agent.close()
            changed.set()

        def agent_left() -> None:
            to_editor.close()
            changed.set()

        up = Pump(0, to_agent, talk.up, talk.said, editor_left)
        down = Pump(process.stdout.fileno(), to_editor, talk.down, talk.answered, agent_left)

        def ended() -> None:
            process.wait()
            changed.set()

        waiting = threading.Thread(target=ended, daemon=True)
        for thread in (up, down, waiting):
            thread.start()
        code = _end(process, up, down, talk, changed)
    return code if code >= 0 else 128 - code


def _leaves_with_us() -> Callable[[], None] | None:
    """What an agent does before it starts, so that it is told when we are killed, as editors kill what they started.

    Only Linux has a way for that; elsewhere an agent learns it from its pipes.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl, told = ctypes.CDLL(None).prctl, int(signal.SIGTERM)

    def ask() -> None:
        prctl(_SET_DEATH_SIGNAL, told)

    return ask


def _end(process: subprocess.Popen[bytes], up: Pump, down: Pump, talk: Conversation, changed: threading.Event) -> int:
    """Waits for its end. When its editor has left and it says nothing any more, it is asked to leave, then made to."""
    asked = 0.0
    while process.poll() is None:
        changed.wait(_POLL if not up.is_alive() else None)
        changed.clear()
        if up.is_alive() or process.poll() is not None:
            continue
        now = time.monotonic()
        if asked and now - asked > _GRACE:
            process.kill()
        elif not asked and now - max(up.ended, down.heard) > (_THINKING if talk.thinking else _GRACE):
            asked = now
            process.terminate()
    left = time.monotonic()
    while down.is_alive() and (down.busy or time.monotonic() - max(left, down.heard) < _LEFT_BEHIND):
        down.join(_POLL)
    return process.returncode


@contextmanager
def _signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """What we are told, the agent is told; what comes before there is one, it is told then.

    A terminal tells both of an interrupt: there the agent alone decides what it means.
    """
    agent: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    shared = sys.stdin is not None and sys.stdin.isatty()

    def pass_on(signum: int, frame: FrameType | None) -> None:
        if shared and signum in (signal.SIGINT, getattr(signal, "SIGQUIT", None)):
            return
        if agent:
            agent[0].send_signal(signum)
        else:
            early.append(signum)

    def follow(process: subprocess.Popen[bytes]) -> None:
        agent.append(process)
        for signum in early:
            process.send_signal(signum)

    known = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    former = {signum: signal.signal(signum, pass_on) for signum in known}
    try:
        yield follow
    finally:
        for signum, handler in former.items():
            signal.signal(signum, handler)
