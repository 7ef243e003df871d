"""What the relay knows: the agent, its sessions, the queued lines and the requests that have no response yet.

Everything heavy is imported when it is first needed, because the editor waits for the agent to start.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sightline.surfaces.acp import IMPORT_LOCK, messages
from sightline.surfaces.acp.messages import SessionMessage

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sightline.model.scene import Json
    from sightline.surfaces.acp.negotiation import AcpAgent, ImageSupport
    from sightline.surfaces.acp.prompt_images import PreparedPrompt

T = TypeVar("T")
RequestId = str | int | float
PROMPT, CANCEL = "session/prompt", "session/cancel"
COMMANDS = "available_commands_update"

_MAX_TEXT = 1000  # characters that are kept of each message
_MAX_HISTORY = 8  # messages that are kept of a session
_MAX_SESSIONS = 4096  # an agent may name as many as it likes
_SUPPORT_SECONDS = 15.0  # to find out what this machine can do with images
_WATCHED_UPDATES = (b"available_commands_update", b"config_option_update")
_PASSIVE_UPDATES = frozenset(  # they don't report that the agent works on a prompt
    {
        COMMANDS,
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
        "user_message_chunk",
    }
)


@dataclass(slots=True, eq=False)
class AcpSession:
    id: str
    folders: tuple[str, ...] = ()
    model: str = ""
    suspected_blind: bool = False  # its agent has said that its model can't see images
    has_seen: bool = False  # its model has answered a prompt with pixels, and not that it can't see them
    images: tuple[str, ...] = ()  # those of its prompts, by their references
    waiting: deque[QueuedLine] = field(default_factory=deque)
    current: QueuedLine | None = None
    has_commands: bool = False  # its agent has listed its commands
    model_option: str = "model"  # the option that selects its model
    reply: str | None = None  # the beginning of the agent's reply; None: it has no prompt to reply to
    history: tuple[SessionMessage, ...] = ()  # the last messages, without the reply that is still coming

    def begin_turn(self, words: str) -> None:
        """Note a prompt that goes to the agent."""
        self.end_turn()
        self._add_message(SessionMessage("user", words[:_MAX_TEXT]))
        self.reply = ""

    def end_turn(self) -> None:
        """Note that the agent's reply is complete."""
        if self.reply:
            self._add_message(SessionMessage("assistant", self.reply))
        self.reply = None

    def _add_message(self, message: SessionMessage) -> None:
        self.history = (*self.history, message)[-_MAX_HISTORY:]

    def select_model(self, params: Mapping[str, Any]) -> None:
        """Note that the editor selects another model."""
        if isinstance(model := params.get("modelId"), str):
            self._change_model(model)
        elif params.get("configId") == self.model_option and isinstance(value := params.get("value"), str):
            self._change_model(value)

    def _change_model(self, model: str) -> None:
        self.model, self.suspected_blind, self.has_seen = model, False, False

    def apply_update(self, kind: object, update: Mapping[str, Any]) -> None:
        """Note what the agent reports about the session."""
        if kind == COMMANDS:
            self.has_commands = True
        elif kind == "config_option_update":
            model, _ = find_model(update)
            if model and model != self.model:
                self._change_model(model)
        elif kind == "agent_message_chunk" and self.reply is not None:
            content = update.get("content")
            text = content.get("text") if isinstance(content, dict) else ""
            self.reply = (self.reply + str(text or ""))[:_MAX_TEXT]


@dataclass(slots=True, eq=False)
class QueuedLine:
    """A line that is being prepared for the agent, or waits for that."""

    line: bytes
    request: RequestId | None = None  # of a prompt
    words: str = ""  # of a prompt
    is_plain: bool = False  # it has no images
    rejection: str = ""  # the agent's error for this prompt, which is sent once more
    prepared: PreparedPrompt | None = None
    future: Future[Any] | None = None
    cancelled: bool = False
    settled: bool = False  # it was sent on or answered, so it can't be cancelled here any more

    @property
    def editor_line(self) -> bytes:
        """The editor's line or its prepared form; `line` itself may be the agent's response."""
        return self.prepared.line if self.prepared is not None else self.line


@dataclass(slots=True)
class PendingRequest:
    """A request that the agent has not answered yet."""

    method: str
    session: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    prepared: PreparedPrompt | None = None
    has_acted: bool = False  # the agent has worked on it, so it must not be sent again


class RelayState:
    """The open requests and the sessions. Several threads share it."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.requests: dict[RequestId, PendingRequest] = {}
        self.sessions: dict[str, AcpSession] = {}

    def get_session(self, name: object, *, create: bool = False) -> AcpSession | None:
        if not isinstance(name, str):
            return None
        with self.lock:
            if create and name not in self.sessions:
                if len(self.sessions) >= _MAX_SESSIONS:
                    self._drop_idle_session()
                self.sessions[name] = AcpSession(name)
            return self.sessions.get(name)

    def _drop_idle_session(self) -> None:
        """Drop the oldest session that has no line in work."""
        idle = next((name for name, session in self.sessions.items() if session.current is None), None)
        if idle is not None:
            del self.sessions[idle]

    def add_request(self, request: RequestId, pending: PendingRequest) -> None:
        with self.lock:
            self.requests[request] = pending

    def take_request(self, request: RequestId) -> PendingRequest | None:
        with self.lock:
            return self.requests.pop(request, None)

    @property
    def awaits_activity(self) -> bool:
        """Whether there is a prompt with pixels that the agent has not worked on yet."""
        with self.lock:
            return any(each.prepared is not None and not each.has_acted for each in self.requests.values())

    def note_activity(self, session: object = None) -> None:
        """Note that the agent works on the prompts of a session, or on any prompt if that session has none."""
        with self.lock:
            prompts = [each for each in self.requests.values() if each.method == PROMPT]
            for prompt in [each for each in prompts if each.session == session] or prompts:
                prompt.has_acted = True

    @property
    def has_open_prompt(self) -> bool:
        """Whether the agent still has to answer a prompt."""
        with self.lock:
            return any(each.method == PROMPT for each in self.requests.values())


class AgentMonitor:
    """Follows what the agent says about itself and its sessions, and edits those messages for the editor."""

    def __init__(self, state: RelayState, name: str) -> None:
        self._state, self._name = state, name
        self._support: BackgroundResult[ImageSupport] | None = None
        self._agent: AcpAgent | None = None

    def start(self) -> None:
        """Start to find out what this machine can do with images, while the agent answers `initialize`."""
        self._support = self._support or BackgroundResult(_find_image_support)

    def get_agent(self) -> AcpAgent:
        with IMPORT_LOCK:
            from sightline.surfaces.acp.negotiation import AcpAgent

        return self._agent or AcpAgent(self._name, takes_images=True)

    def advertise_images(self, line: bytes, message: Mapping[str, Any]) -> bytes:
        """Return the agent's response to `initialize` with the image capability that we advertise."""
        with IMPORT_LOCK:
            from sightline.model.media_capability import read_image_capability
            from sightline.surfaces.acp.negotiation import AcpAgent, build_promise

        if not isinstance(message.get("result"), dict) or self._support is None:
            return line
        self._agent = AcpAgent(
            messages.get_agent_name(message) or self._name,
            messages.takes_images(message),
            read_image_capability(message),
            messages.takes_embedded_files(message),
        )
        promise = build_promise(self._support.future.result(_SUPPORT_SECONDS), self._agent)
        return line if promise is None else messages.advertise(line, promise)

    def open_session(self, line: bytes, message: Mapping[str, Any], request: PendingRequest) -> tuple[bytes, ...]:
        """Note the folders and the model of a new session, and offer our command in it."""
        if "error" in message:
            return (line,)
        result = message.get("result")
        result = result if isinstance(result, dict) else {}
        name = result.get("sessionId") if request.method in ("session/new", "session/fork") else request.session
        session = self._state.get_session(name, create=True)
        if session is None:
            return (line,)
        folders = [request.params.get("cwd"), *as_list(request.params.get("additionalDirectories"))]
        session.folders = tuple(each for each in folders if isinstance(each, str))
        parent = self._state.get_session(request.session)
        model, option = find_model(result)
        session.model = model or session.model or (parent.model if parent else "")
        session.model_option = option or session.model_option
        if session.has_commands:
            return (line,)
        offer: dict[str, Json] = {"sessionUpdate": COMMANDS, "availableCommands": [messages.build_command_offer()]}
        return line, messages.build_update(session.id, offer)

    def handle_update(self, line: bytes) -> bytes:
        """Note what an update says about its session, and add our command to a list of commands."""
        has_listener = any(session.reply is not None for session in [*self._state.sessions.values()])
        is_reply = has_listener and b"agent_message_chunk" in line
        if not any(kind in line for kind in _WATCHED_UPDATES) and not is_reply and not self._state.awaits_activity:
            return line
        params = messages.get_member(messages.parse_message(line), "params")
        update, name = messages.get_member(params, "update"), messages.get_member(params, "sessionId")
        kind = messages.get_member(update, "sessionUpdate")
        if kind not in _PASSIVE_UPDATES:
            self._state.note_activity(name)
        session = self._state.get_session(name, create=kind == COMMANDS)
        if session is not None and isinstance(update, dict):
            session.apply_update(kind, update)
        return messages.add_command(line) if kind == COMMANDS else line


class BackgroundResult(Generic[T]):
    """The result of a function that runs in a thread of its own, as a future."""

    def __init__(self, function: Callable[[], T]) -> None:
        from concurrent.futures import Future

        self.future: Future[T] = Future()
        threading.Thread(target=self._run, args=(function,), daemon=True).start()

    def _run(self, function: Callable[[], T]) -> None:
        from concurrent.futures import InvalidStateError

        with suppress(InvalidStateError):  # it was cancelled
            try:
                self.future.set_result(function())
            except InvalidStateError:
                raise
            except BaseException as error:  # noqa: BLE001, raised again where the result is asked for
                self.future.set_exception(error)


def _find_image_support() -> ImageSupport:
    with IMPORT_LOCK:
        from sightline.surfaces.acp.negotiation import find_image_support

    return find_image_support()


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def find_model(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return the model that an agent reports for a session, and the option that selects it; empty: not reported."""
    options = [each for each in as_list(report.get("configOptions")) if isinstance(each, dict)]
    option = next((each for each in options if "model" in (each.get("category"), each.get("id"))), {})
    models = report.get("models")
    current = models.get("currentModelId") if isinstance(models, dict) else None
    return str(current or option.get("currentValue") or ""), str(option.get("id") or "")
