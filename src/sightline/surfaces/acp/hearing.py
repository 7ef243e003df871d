"""What an agent says of itself and of its sessions: heard, and told the editor with what is added here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sightline.surfaces.acp.loading import LOADING
from sightline.surfaces.acp.sessions import COMMANDS, Asked, Later, Open, listed, model_of

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
        from sightline.surfaces.acp.ready import ready

    return ready()
