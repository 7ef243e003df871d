"""What is known of the sessions of a conversation, and what is under way in them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sightline.surfaces.acp.eyes import Looked

T = TypeVar("T")
Id = str | int | float
PROMPT, CANCEL = "session/prompt", "session/cancel"
COMMANDS = "available_commands_update"
_MOST = 4096  # sessions that are known: an agent may name as many as it likes
SHORT = 400  # letters: an answer that says no more than that its model does not see


@dataclass(slots=True, eq=False)
class Session:
    id: str
    folders: tuple[str, ...] = ()
    model: str = ""
    suspected: bool = False  # its agent has said that its model does not see
    images: tuple[str, ...] = ()  # those of its prompts, by their references
    waiting: deque[Work] = field(default_factory=deque)
    working: Work | None = None
    listed: bool = False  # its agent has said which commands there are
    choice: str = "model"  # the option by which its model is chosen
    heard: str | None = None  # what the agent answers to pixels; None: it has got none

    def chosen(self, params: Mapping[str, Any]) -> None:
        """The editor changes the model."""
        if isinstance(model := params.get("modelId"), str):
            self.model, self.suspected = model, False
        elif params.get("configId") == self.choice and isinstance(value := params.get("value"), str):
            self.model, self.suspected = value, False

    def noticed(self, kind: object, update: Mapping[str, Any]) -> None:
        """The agent has news."""
        if kind == COMMANDS:
            self.listed = True
        elif kind == "config_option_update":
            model, _ = model_of(update)
            if model and model != self.model:
                self.model, self.suspected = model, False
        elif kind == "agent_message_chunk" and self.heard is not None:
            content = update.get("content")
            words = content.get("text") if isinstance(content, dict) else ""
            self.heard = (self.heard + str(words or ""))[: SHORT + 1]


@dataclass(slots=True, eq=False)
class Work:
    """A line that waits for its turn, or is looked at."""

    line: bytes
    request: Id | None = None  # of a prompt
    plain: bool = False  # there is nothing in it to look at
    refused: str = ""  # the agent has said so, and it is tried again
    looked: Looked | None = None
    future: Future[Any] | None = None
    cancelled: bool = False
    settled: bool = False  # it has gone on, or was answered: there is nothing left to be cancelled here

    @property
    def asked(self) -> bytes:
        """What the editor has written, or what was made of it: not what the agent has answered."""
        return self.looked.line if self.looked is not None else self.line


@dataclass(slots=True)
class Asked:
    """A request that the agent has not answered yet."""

    method: str
    session: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    looked: Looked | None = None
    acted: bool = False  # the agent has done something since it got this: it may not get it twice


class Open:
    """What is open between an editor and its agent: requests without an answer, and sessions. Threads share it."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.asked: dict[Id, Asked] = {}
        self.sessions: dict[str, Session] = {}

    def session(self, name: object, *, make: bool = False) -> Session | None:
        if not isinstance(name, str):
            return None
        with self.lock:
            if make and name not in self.sessions:
                if len(self.sessions) >= _MOST:
                    self._forget()
                self.sessions[name] = Session(name)
            return self.sessions.get(name)

    def _forget(self) -> None:
        """The session that was opened first, of those in which nothing is under way."""
        idle = next((name for name, session in self.sessions.items() if session.working is None), None)
        if idle is not None:
            del self.sessions[idle]

    def note(self, request: Id, asked: Asked) -> None:
        with self.lock:
            self.asked[request] = asked

    def answered(self, request: Id) -> Asked | None:
        with self.lock:
            return self.asked.pop(request, None)

    @property
    def watched(self) -> bool:
        """Is there a prompt with pixels on which the agent has done nothing yet?"""
        with self.lock:
            return any(asked.looked is not None and not asked.acted for asked in self.asked.values())

    def acted(self, session: object = None) -> None:
        """The agent has done something in a session; where no prompt of that one is open, it may be for any."""
        with self.lock:
            prompts = [asked for asked in self.asked.values() if asked.method == PROMPT]
            for asked in [each for each in prompts if each.session == session] or prompts:
                asked.acted = True

    @property
    def thinking(self) -> bool:
        """Has the agent a prompt to answer?"""
        with self.lock:
            return any(asked.method == PROMPT for asked in self.asked.values())


class Later(Generic[T]):
    """What is found out beside everything else."""

    def __init__(self, make: Callable[[], T]) -> None:
        from concurrent.futures import Future

        self.future: Future[T] = Future()
        threading.Thread(target=self._run, args=(make,), daemon=True).start()

    def _run(self, make: Callable[[], T]) -> None:
        from concurrent.futures import InvalidStateError

        with suppress(InvalidStateError):  # nobody wants it any more
            try:
                self.future.set_result(make())
            except InvalidStateError:
                raise
            except BaseException as fault:  # noqa: BLE001, for whoever asks for the result
                self.future.set_exception(fault)


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def model_of(said: Mapping[str, Any]) -> tuple[str, str]:
    """The model of a session, where its agent says which it is, and the option by which another one is chosen."""
    options = [each for each in listed(said.get("configOptions")) if isinstance(each, dict)]
    option = next((each for each in options if "model" in (each.get("category"), each.get("id"))), {})
    models = said.get("models")
    current = models.get("currentModelId") if isinstance(models, dict) else None
    return str(current or option.get("currentValue") or ""), str(option.get("id") or "")
