"""The conversation between an editor and its agent, with eyes lent to it.

Only a few lines are read: `initialize` and its answer, requests for sessions, prompts, lists of commands. Here is
decided which, and who sees to each; all others go on, and a cancellation overtakes. Whatever goes wrong here, a line
goes on as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sightline.surfaces.acp.capability import LOADING
from sightline.surfaces.acp.pipes import WHOLE, Head, Held, Outlet
from sightline.surfaces.acp.prompts import Prompts
from sightline.surfaces.acp.sessions import CANCEL, COMMANDS, PROMPT, Asked, Id, Later, Open, listed, model_of

if TYPE_CHECKING:
    from sightline.model.scene import Json
    from sightline.surfaces.acp.capability import Agent, Ready


_NEWS = (b"available_commands_update", b"config_option_update")
_QUIET = frozenset(  # news that are not of anything done for a prompt
    {
        COMMANDS,
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
        "user_message_chunk",
    }
)
_SOON = 15.0  # seconds in which it is found out what there is for images


class Hearing:
    def __init__(self, known: Open, name: str) -> None:
        self._open, self._name = known, name
        self._ready: Later[Ready] | None = None
        self._agent: Agent | None = None

    def asked(self) -> None:
        """The agent is about to be introduced: what there is for images is found out meanwhile."""
        self._ready = self._ready or Later(_ready)

    def agent(self) -> Agent:
        from sightline.surfaces.acp.capability import Agent

        return self._agent or Agent(self._name, images=True)

    def introduced(self, line: bytes, message: Mapping[str, Any]) -> bytes:
        """The agent's answer to `initialize`, with what is promised about images."""
        from sightline.model.capability import read_image_capability
        from sightline.surfaces.acp import messages
        from sightline.surfaces.acp.capability import Agent, promised

        if not isinstance(message.get("result"), dict) or self._ready is None:
            return line
        self._agent = Agent(
            messages.named(message) or self._name, messages.takes_images(message), read_image_capability(message)
        )
        said = promised(self._ready.future.result(_SOON), self._agent)
        return line if said is None else messages.advertised(line, said)

    def opened(self, line: bytes, message: Mapping[str, Any], asked: Asked) -> tuple[bytes, ...]:
        """A session begins: it has folders and a model, and one command more."""
        from sightline.surfaces.acp import messages

        if "error" in message:
            return (line,)
        result = message.get("result")
        result = result if isinstance(result, dict) else {}
        name = result.get("sessionId") if asked.method in ("session/new", "session/fork") else asked.session
        session = self._open.session(name, make=True)
        if session is None:
            return (line,)
        places = [asked.params.get("cwd"), *listed(asked.params.get("additionalDirectories"))]
        session.folders = tuple(each for each in places if isinstance(each, str))
        before = self._open.session(asked.session)
        model, choice = model_of(result)
        session.model = model or session.model or (before.model if before else "")
        session.choice = choice or session.choice
        if session.listed:
            return (line,)
        offer: dict[str, Json] = {"sessionUpdate": COMMANDS, "availableCommands": [messages.offered()]}
        return line, messages.update(session.id, offer)

    def updated(self, line: bytes) -> bytes:
        """News of a session: a list of commands gets ours, a change of the model is noted, a refusal is heard."""
        listening = any(session.heard is not None for session in [*self._open.sessions.values()])
        heard = listening and b"agent_message_chunk" in line
        if not any(sign in line for sign in _NEWS) and not heard and not self._open.watched:
            return line
        from sightline.surfaces.acp import messages

        params = messages.within(messages.read(line), "params")
        update, name = messages.within(params, "update"), messages.within(params, "sessionId")
        kind = messages.within(update, "sessionUpdate")
        if kind not in _QUIET:
            self._open.acted(name)
        session = self._open.session(name, make=kind == COMMANDS)
        if session is not None and isinstance(update, dict):
            session.noticed(kind, update)
        return messages.with_command(line) if kind == COMMANDS else line


def _ready() -> Ready:
    with LOADING:
        from sightline.surfaces.acp.capability import ready

    return ready()


Message = dict[str, Any]
Server = Callable[[], "dict[str, Json] | None"]
"""Our MCP server, as an agent starts it; None: it is not wanted."""

_UPDATE = "session/update"
_OPENINGS = ("session/new", "session/load", "session/resume", "session/fork")
_CHOICES = ("session/set_model", "session/set_config_option")
_CANCEL_REQUEST = "$/cancel_request"
_READ = frozenset({"initialize", PROMPT, CANCEL, _CANCEL_REQUEST, *_OPENINGS, *_CHOICES})
_LONGEST_UPDATE = 1024 * 1024  # bytes: a longer one brings no list of commands


class Relay:
    def __init__(
        self, to_agent: Outlet, to_editor: Outlet, name: str, say: Callable[[str], None], server: Server
    ) -> None:
        self._to_agent, self._to_editor = to_agent, to_editor
        self._server = server
        self._unread = False  # what the agent says is read, and has not come yet
        self._open = Open()
        self._hearing = Hearing(self._open, name)
        self._prompts = Prompts(to_agent, to_editor, self._open, self._hearing.agent, say)

    # What is read.

    def up(self, head: Head) -> int:
        if head.method in _READ or head.tells_nothing:
            return WHOLE
        return WHOLE if self._prompts.busy and head.method is not None else 0

    def down(self, head: Head) -> int:
        if self._unread:  # it was too long
            self._open.acted()
        self._unread = not head.is_plain_answer and self._open.watched
        if self._unread:
            return WHOLE
        if head.method is not None:
            return _LONGEST_UPDATE if head.method == _UPDATE else 0
        if head.holds == "params":
            return _LONGEST_UPDATE
        asked = self._open.asked
        if asked and (head.id is None or head.id in asked):
            return WHOLE
        return _LONGEST_UPDATE if head.tells_nothing else 0

    # From the editor.

    def said(self, line: Held) -> None:
        try:
            if not self._heard(line):
                self._to_agent.write(line.data)
        except Exception as fault:  # noqa: BLE001, whatever it was: the agent waits for a line
            self._prompts.trouble(fault)
            self._to_agent.write(line.data)

    def _heard(self, line: Held) -> bool:
        """Whether a line has been seen to; else it goes on as it came."""
        message = _read(line.data)
        if message is None:
            return False
        method, known, params = message.get("method"), _id(message), _params(message)
        if method in (CANCEL, _CANCEL_REQUEST):
            self._prompts.cancel(method, params)
            return False
        session = self._open.session(params.get("sessionId"), make=method == PROMPT)
        if method == PROMPT and session is not None and known is not None:
            return self._prompts.taken(line.data, known, session)
        if method == "initialize" and known is not None:
            self._hearing.asked()
            self._open.note(known, Asked("initialize"))
        written = line.data
        if method in _OPENINGS and known is not None:
            self._open.note(known, Asked(method, str(params.get("sessionId") or ""), params))
            written = self._served(line.data)
        if method in _CHOICES and session is not None:
            session.chosen(params)
        return self._prompts.queued(session, written) or (written is not line.data and self._sent(written))

    def _sent(self, line: bytes) -> bool:
        self._to_agent.write(line)
        return True

    def _served(self, line: bytes) -> bytes:
        """A request for a session, with our MCP server among its own."""
        from sightline.surfaces.acp.messages import with_server

        server = self._server()
        return line if server is None else with_server(line, server)

    # From the agent.

    def answered(self, line: Held) -> None:
        self._unread = False
        try:
            after = self._told(line)
        except Exception as fault:  # noqa: BLE001, whatever it was: the editor waits for a line
            self._prompts.trouble(fault)
            after = (line.data,)
        for each in after:
            self._to_editor.pass_on(each, ends=True)

    def _told(self, line: Held) -> tuple[bytes, ...]:
        """The lines that go to the editor instead."""
        message = None if line.head.method == _UPDATE else _read(line.data) or {}
        if message is None or message.get("method") == _UPDATE:
            return (self._hearing.updated(line.data),)
        if line.head.method is not None or "method" in message:
            if "id" in message or not message:
                self._open.acted(_params(message).get("sessionId"))
            return (line.data,)
        request = _id(message)
        asked = None if request is None else self._open.answered(request)
        if asked is None or request is None:
            return (line.data,)
        if asked.method == "initialize":
            return (self._hearing.introduced(line.data, message),)
        if asked.method == PROMPT:
            return self._prompts.answered(line.data, request, message, asked)
        return self._hearing.opened(line.data, message, asked)

    # The whole.

    def finish(self) -> None:
        self._prompts.finish()

    @property
    def thinking(self) -> bool:
        return self._open.thinking


def _read(line: bytes) -> Message | None:
    from sightline.surfaces.acp.messages import read

    return read(line)


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _id(message: Message) -> Id | None:
    request = message.get("id")
    return request if isinstance(request, (str, int, float)) and not isinstance(request, bool) else None
