"""The relay between an ACP editor and its agent: starts the agent and forwards the messages of both.

Only a few lines are read: `initialize` and its response, requests for sessions, prompts, what the agent says in reply,
and lists of commands. `Relay` decides which these are and what handles them. All other lines pass through as they
arrive, and a cancellation overtakes queued lines. If anything fails here, the line is forwarded unchanged.

The agent ends as it would without the relay: it gets our signals, its input closes when the editor disconnects, and it
is terminated only if it stays silent after that.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from sightline.surfaces.acp.messages import add_server, parse_message, read_words
from sightline.surfaces.acp.pipes import MAX_LINE, HeldLine, LinePump, LineWriter, MessageHead
from sightline.surfaces.acp.prompt_queue import PromptQueue
from sightline.surfaces.acp.relay_state import CANCEL, PROMPT, AgentMonitor, PendingRequest, RelayState, RequestId

if TYPE_CHECKING:
    from sightline.model.scene import Json

Message = dict[str, Any]
PrintStatus = Callable[[str], None]
GetServer = Callable[[], "dict[str, Json] | None"]
"""Returns the configuration of our MCP server for an agent, or None if the user doesn't want it."""

_UPDATE = "session/update"
_OPENING_METHODS = ("session/new", "session/load", "session/resume", "session/fork")
_MODEL_METHODS = ("session/set_model", "session/set_config_option")
_CANCEL_REQUEST = "$/cancel_request"
_READ_METHODS = frozenset({"initialize", PROMPT, CANCEL, _CANCEL_REQUEST, *_OPENING_METHODS, *_MODEL_METHODS})
_MAX_UPDATE = 1024 * 1024  # bytes: a longer one is not a list of commands

_GRACE = 5.0  # seconds of silence before an agent whose editor has left is terminated, and then killed
_PROMPT_GRACE = 60.0  # … while it has a prompt to answer
_DRAIN = 0.5  # seconds of silence after which the output of programs that the agent left running is ignored
_POLL = 0.2
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_SIGNALS = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")


class Relay:
    """Decides which lines are read, and passes each of them to the object that handles it."""

    def __init__(
        self, to_agent: LineWriter, to_editor: LineWriter, name: str, print_status: PrintStatus, get_server: GetServer
    ) -> None:
        """Build the relay. `name` is used for the agent until it reports its own name."""
        self._to_agent, self._to_editor = to_agent, to_editor
        self._get_server = get_server
        self._expects_line = False  # a line of the agent should be held, and is not complete yet
        self._state = RelayState()
        self._monitor = AgentMonitor(self._state, name)
        self._prompts = PromptQueue(to_agent, to_editor, self._state, self._monitor.get_agent, print_status)

    def limit_editor_line(self, head: MessageHead) -> int:
        """Return how many bytes of an editor's line to hold; 0: it passes through."""
        if head.method in _READ_METHODS or head.is_undecided:
            return MAX_LINE
        return MAX_LINE if self._prompts.active_sessions and head.method is not None else 0

    def limit_agent_line(self, head: MessageHead) -> int:
        """Return how many bytes of an agent's line to hold; 0: it passes through."""
        if self._expects_line:  # the last one was too long to be held
            self._state.note_activity()
        self._expects_line = not head.is_response and self._state.awaits_activity
        if self._expects_line:
            return MAX_LINE
        if head.method is not None:
            return _MAX_UPDATE if head.method == _UPDATE else 0
        if head.object_member == "params":
            return _MAX_UPDATE
        requests = self._state.requests
        if requests and (head.id is None or head.id in requests):
            return MAX_LINE
        return _MAX_UPDATE if head.is_undecided else 0

    def handle_editor_line(self, line: HeldLine) -> None:
        try:
            if not self._handle_editor_message(line):
                self._to_agent.write(line.data)
        except Exception as error:  # noqa: BLE001, the agent needs the line in any case
            self._prompts.report_error(error)
            self._to_agent.write(line.data)

    def _handle_editor_message(self, line: HeldLine) -> bool:
        """Return whether a message was handled; otherwise it is forwarded unchanged."""
        message = parse_message(line.data)
        if message is None:
            return False
        method, request, params = message.get("method"), _get_id(message), _get_params(message)
        if method in (CANCEL, _CANCEL_REQUEST):
            self._prompts.cancel(method, params)
            return False
        session = self._state.get_session(params.get("sessionId"), create=method == PROMPT)
        if method == PROMPT and session is not None and request is not None:
            return self._prompts.take_prompt(line.data, request, session, read_words(params))
        if method == "initialize" and request is not None:
            self._monitor.start()
            self._state.add_request(request, PendingRequest("initialize"))
        edited = line.data
        if method in _OPENING_METHODS and request is not None:
            self._state.add_request(request, PendingRequest(method, str(params.get("sessionId") or ""), params))
            edited = self._add_server(line.data)
        if method in _MODEL_METHODS and session is not None:
            session.select_model(params)
        if self._prompts.queue_line(session, edited):
            return True
        if edited is not line.data:
            self._to_agent.write(edited)
        return edited is not line.data

    def _add_server(self, line: bytes) -> bytes:
        """Return a request for a session with our MCP server added."""
        server = self._get_server()
        return line if server is None else add_server(line, server)

    def handle_agent_line(self, line: HeldLine) -> None:
        self._expects_line = False
        try:
            lines = self._handle_agent_message(line)
        except Exception as error:  # noqa: BLE001, the editor needs the line in any case
            self._prompts.report_error(error)
            lines = (line.data,)
        for each in lines:
            self._to_editor.pass_on(each, ends_line=True)

    def _handle_agent_message(self, line: HeldLine) -> tuple[bytes, ...]:
        """Return the lines that the editor gets."""
        message = None if line.head.method == _UPDATE else parse_message(line.data) or {}
        if message is None or message.get("method") == _UPDATE:
            return (self._monitor.handle_update(line.data),)
        if line.head.method is not None or "method" in message:
            if "id" in message or not message:
                self._state.note_activity(_get_params(message).get("sessionId"))
            return (line.data,)
        request = _get_id(message)
        pending = None if request is None else self._state.take_request(request)
        if pending is None or request is None:
            return (line.data,)
        if pending.method == "initialize":
            return (self._monitor.advertise_images(line.data, message),)
        if pending.method == PROMPT:
            return self._prompts.handle_response(line.data, request, message, pending)
        return self._monitor.open_session(line.data, message, pending)

    def cancel_all(self) -> None:
        """Cancel everything that waits, because the editor has disconnected."""
        self._prompts.cancel_all()

    @property
    def has_open_prompt(self) -> bool:
        return self._state.has_open_prompt


def _get_params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _get_id(message: Message) -> RequestId | None:
    request = message.get("id")
    return request if isinstance(request, (str, int, float)) and not isinstance(request, bool) else None


def run_agent(argv: Sequence[str], name: str, print_status: PrintStatus, get_server: GetServer) -> int:
    """Start an agent, relay between it and our own stdin and stdout, and return its exit code."""
    with _forward_signals() as forward_to:
        before_start = _build_death_signal()  # before there is any other thread
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, bufsize=0, preexec_fn=before_start)  # noqa: PLW1509
        forward_to(process)
        assert process.stdin
        assert process.stdout
        changed = threading.Event()
        to_agent, to_editor = LineWriter(process.stdin.fileno()), LineWriter(1)
        relay = Relay(to_agent, to_editor, name, print_status, get_server)

        def on_editor_end() -> None:
            relay.cancel_all()
            to_agent.close()
            changed.set()

        def on_agent_end() -> None:
            to_editor.close()
            changed.set()

        def wait_for_process() -> None:
            process.wait()
            changed.set()

        from_editor = LinePump(0, to_agent, relay.limit_editor_line, relay.handle_editor_line, on_editor_end)
        output = process.stdout.fileno()
        from_agent = LinePump(output, to_editor, relay.limit_agent_line, relay.handle_agent_line, on_agent_end)
        for thread in (from_editor, from_agent, threading.Thread(target=wait_for_process, daemon=True)):
            thread.start()
        code = _wait_for_exit(process, from_editor, from_agent, relay, changed)
    return code if code >= 0 else 128 - code


def _build_death_signal() -> Callable[[], None] | None:
    """Return a function for the agent's process to run first, so that the system terminates it if we are killed.

    Editors kill the processes that they started. Only Linux supports this; elsewhere the agent notices closed pipes.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl, number = ctypes.CDLL(None).prctl, int(signal.SIGTERM)

    def request_signal() -> None:
        prctl(_SET_DEATH_SIGNAL, number)

    return request_signal


def _wait_for_exit(
    process: subprocess.Popen[bytes],
    from_editor: LinePump,
    from_agent: LinePump,
    relay: Relay,
    changed: threading.Event,
) -> int:
    """Wait for the agent. If its editor has disconnected and it stays silent, terminate it, and then kill it."""
    terminated_at = 0.0
    while process.poll() is None:
        changed.wait(_POLL if not from_editor.is_alive() else None)
        changed.clear()
        if from_editor.is_alive() or process.poll() is not None:
            continue
        now = time.monotonic()
        silence = now - max(from_editor.ended_at, from_agent.last_read_at)
        if terminated_at and now - terminated_at > _GRACE:
            process.kill()
        elif not terminated_at and silence > (_PROMPT_GRACE if relay.has_open_prompt else _GRACE):
            terminated_at = now
            process.terminate()
    exited_at = time.monotonic()
    while from_agent.is_alive() and (
        from_agent.is_busy or time.monotonic() - max(exited_at, from_agent.last_read_at) < _DRAIN
    ):
        from_agent.join(_POLL)
    return process.returncode


@contextmanager
def _forward_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Forward our signals to the agent; those that come before it has started are sent when it has.

    A terminal sends an interrupt to both processes, so it is not forwarded: the agent decides what to do.
    """
    agent: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    has_terminal = sys.stdin is not None and sys.stdin.isatty()

    def forward(signum: int, frame: FrameType | None) -> None:
        if has_terminal and signum in (signal.SIGINT, getattr(signal, "SIGQUIT", None)):
            return
        if agent:
            agent[0].send_signal(signum)
        else:
            early.append(signum)

    def forward_to(process: subprocess.Popen[bytes]) -> None:
        agent.append(process)
        for signum in early:
            process.send_signal(signum)

    signals = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    previous_handlers = {signum: signal.signal(signum, forward) for signum in signals}
    try:
        yield forward_to
    finally:
        for signum, previous in previous_handlers.items():
            signal.signal(signum, previous)
