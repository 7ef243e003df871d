"""The conversation between an editor and its agent, with eyes lent to it.

Only a few lines are read: `initialize` and its answer, requests for sessions, prompts, lists of commands. While a
prompt of a session is looked at, later lines of that session wait behind it; all others go on, and a cancellation
overtakes. Whatever goes wrong here, a line goes on as it came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.model.refusal import Refusal
from sightline.surfaces.acp.lines import WHOLE, Head, Held
from sightline.surfaces.acp.pipes import Outlet
from sightline.surfaces.acp.sessions import Asked, Id, Later, Session, Work, listed, model_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sightline.model.scene import Json
    from sightline.surfaces.acp.capability import Agent, Ready
    from sightline.surfaces.acp.eyes import Looked

T = TypeVar("T")
Message = dict[str, Any]
Server = Callable[[], "dict[str, Json] | None"]
"""Our MCP server, as an agent starts it; None: it is not wanted."""

_PROMPT, _CANCEL, _UPDATE = "session/prompt", "session/cancel", "session/update"
_OPENINGS = ("session/new", "session/load", "session/resume", "session/fork")
_CHOICES = ("session/set_model", "session/set_config_option")
_CANCEL_REQUEST = "$/cancel_request"
_READ = frozenset({"initialize", _PROMPT, _CANCEL, _CANCEL_REQUEST, *_OPENINGS, *_CHOICES})
_SIGNS = (b'"image"', b'"blob"', b'"resource_link"', b"/vision-proxy")  # of a prompt that is worth looking at
_NEWS = (b"available_commands_update", b"config_option_update")
_LONGEST_UPDATE = 1024 * 1024  # bytes: a longer one brings no list of commands
_MOST_HELD = 512 * 1024 * 1024  # bytes of prompts that are looked at; then the editor has to wait
_SOON = 15.0  # seconds in which it is found out what there is for images
_SHORT = 400  # letters: an answer that says no more than that its model does not see
_CANCELLED = -32800


class Relay:
    def __init__(
        self, to_agent: Outlet, to_editor: Outlet, name: str, say: Callable[[str], None], server: Server
    ) -> None:
        self._to_agent, self._to_editor = to_agent, to_editor
        self._name, self._say = name, say
        self._server = server
        self._lock = threading.Condition()
        self._asked: dict[Id, Asked] = {}
        self._sessions: dict[str, Session] = {}
        self._busy = 0  # sessions in which something is looked at
        self._held = 0  # bytes of it
        self._ready: Later[Ready] | None = None
        self._agent: Agent | None = None

    # What is read.

    def up(self, head: Head) -> int:
        if head.method in _READ or (head.method is None and head.holds == "params"):
            return WHOLE
        return WHOLE if self._busy and head.method is not None else 0

    def down(self, head: Head) -> int:
        if head.method is not None:
            return _LONGEST_UPDATE if head.method == _UPDATE else 0
        if head.holds == "params":
            return _LONGEST_UPDATE
        return WHOLE if self._asked and (head.id is None or head.id in self._asked) else 0

    # From the editor.

    def said(self, line: Held) -> None:
        try:
            if not self._heard(line):
                self._to_agent.write(line.data)
        except Exception as fault:  # noqa: BLE001, whatever it was: the agent waits for a line
            self._trouble(fault)
            self._to_agent.write(line.data)

    def _heard(self, line: Held) -> bool:
        """Whether a line has been seen to; else it goes on as it came."""
        message = _read(line.data)
        if message is None:
            return False
        method, known, params = message.get("method"), _id(message), message.get("params")
        params = params if isinstance(params, dict) else {}
        if method in (_CANCEL, _CANCEL_REQUEST):
            self._cancel(method, params)
            return False
        session = self._session(params.get("sessionId"), make=method == _PROMPT)
        if method == _PROMPT and session is not None and known is not None:
            return self._prompted(line.data, known, session)
        if method == "initialize" and known is not None:
            self._ready = self._ready or Later(_ready)
            self._note(known, Asked("initialize"))
        written = line.data
        if method in _OPENINGS and known is not None:
            self._note(known, Asked(method, str(params.get("sessionId") or ""), params))
            written = self._served(line.data)
        if method in _CHOICES and session is not None:
            self._chosen(session, params)
        return self._queued(session, written) or (written is not line.data and self._sent(written))

    def _sent(self, line: bytes) -> bool:
        self._to_agent.write(line)
        return True

    def _served(self, line: bytes) -> bytes:
        """A request for a session, with our MCP server among its own."""
        from sightline.surfaces.acp.messages import with_server

        server = self._server()
        return line if server is None else with_server(line, server)

    def _chosen(self, session: Session, params: Mapping[str, Any]) -> None:
        """The editor changes the model of a session."""
        if isinstance(model := params.get("modelId"), str):
            session.model, session.suspected = model, False
        elif params.get("configId") == session.choice and isinstance(value := params.get("value"), str):
            session.model, session.suspected = value, False

    def _session(self, name: object, *, make: bool = False) -> Session | None:
        if not isinstance(name, str):
            return None
        with self._lock:
            if make and name not in self._sessions:
                self._sessions[name] = Session(name)
            return self._sessions.get(name)

    def _note(self, request: Id, asked: Asked) -> None:
        with self._lock:
            self._asked[request] = asked

    # Prompts.

    def _prompted(self, line: bytes, request: Id, session: Session) -> bool:
        self._note(request, Asked(_PROMPT, session.id))
        if not any(sign in line for sign in _SIGNS):
            session.heard = None
            return self._queued(session, line, request)
        self._begin(session, Work(line, request))
        return True

    def _queued(self, session: Session | None, line: bytes, request: Id | None = None) -> bool:
        """Whether a line has to wait behind a prompt of its session."""
        with self._lock:
            if session is None or session.working is None:
                return False
            self._held += len(line)
            session.waiting.append(Work(line, request, plain=True))
            return True

    def _begin(self, session: Session, work: Work) -> None:
        with self._lock:
            while self._held and self._held + len(work.line) > _MOST_HELD:
                self._lock.wait()
            self._held += len(work.line)
            session.waiting.append(work)
            if session.working is None:
                self._start(session)

    def _start(self, session: Session) -> None:
        self._busy += 1
        session.working = session.waiting.popleft()
        threading.Thread(target=self._work, args=(session,), daemon=True).start()

    def _work(self, session: Session) -> None:
        """All that waits in a session, one after the other."""
        while (work := session.working) is not None:
            try:
                line = self._looked(session, work)
            except Exception as fault:  # noqa: BLE001, whatever it was: the agent waits for a line
                self._trouble(fault)
                line = self._given_up(work) if work.refused else work.line
            if line and self._settled(work):
                self._to_agent.write(line)
            with self._lock:
                self._held -= len(work.line)
                session.working = session.waiting.popleft() if session.waiting else None
                self._busy -= session.working is None
                self._lock.notify_all()

    def _settled(self, work: Work, *, answered: bool = False) -> bool:
        """Whether it is ours to send or to answer: it is not, once it was cancelled, and cannot be cancelled then."""
        with self._lock:
            if work.cancelled:
                return False
            work.settled = True
            if answered and work.request is not None:
                self._asked.pop(work.request, None)
            return True

    def _looked(self, session: Session, work: Work) -> bytes:
        """A line as it goes to the agent; nothing where it has been answered here."""
        if work.plain or work.request is None:
            return work.line
        from sightline.surfaces.acp import eyes

        where = eyes.Where(session.folders, session.model, session.suspected)
        if work.looked is not None:
            return self._again(session, work, work.looked)
        if b"/vision-proxy" in work.line and (text := eyes.typed(work.line)) is not None:
            self._command(session, work, partial(eyes.command, text, work.line, where, session.images))
            return b""
        outcome = eyes.look(work.line, self._known_agent(), where)
        if isinstance(outcome, Refusal):
            self._say(f"a prompt with images went on as it came: {outcome}")
            outcome = None
        looked = self._awaited(work, outcome) if outcome else None
        session.heard = "" if looked and looked.shows else None
        if looked is None:
            return work.line
        session.images = tuple(dict.fromkeys([*session.images, *looked.references]))
        with self._lock:
            if looked.shows and (asked := self._asked.get(work.request)) is not None:
                asked.looked = looked
        return looked.line

    def _command(self, session: Session, work: Work, asked: Callable[[], tuple[str, tuple[str, ...]]]) -> None:
        """What is typed as a command. It may take long: whoever cancels it does not wait for it."""
        outcome = self._awaited(work, Later(asked).future)
        if outcome is not None:
            words, images = outcome
            session.images = tuple(dict.fromkeys([*session.images, *images]))
            self._answer(session, work, words)

    def _awaited(self, work: Work, future: Future[T]) -> T | None:
        from concurrent.futures import CancelledError

        with self._lock:
            work.future = future
            if work.cancelled:
                future.cancel()
        try:
            return future.result()
        except CancelledError:
            return None

    def _again(self, session: Session, work: Work, before: Looked) -> bytes:
        """A prompt that the agent has refused because of its images: told in words, or its refusal."""
        from sightline.surfaces.acp import eyes

        assert work.request is not None
        after = self._awaited(work, eyes.again(before, work.refused))
        with self._lock:
            if work.cancelled:
                return b""
            if after is not None:
                self._asked[work.request] = Asked(_PROMPT, session.id, looked=after)
        session.heard = None
        return self._given_up(work) if after is None else after.line

    def _given_up(self, work: Work) -> bytes:
        """The agent's refusal goes to the editor, as it would have at once."""
        if self._settled(work, answered=True):
            self._to_editor.write(work.line)
        return b""

    def _answer(self, session: Session, work: Work, words: str) -> None:
        """As an agent would."""
        from sightline.surfaces.acp import messages

        assert work.request is not None
        if not self._settled(work, answered=True):
            return
        chunk: dict[str, Json] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}
        self._to_editor.write(
            messages.update(session.id, chunk), messages.result(work.request, {"stopReason": "end_turn"})
        )

    def _cancel(self, method: object, params: Mapping[str, Any]) -> None:
        """What is looked at or waits is given up, and answered: the agent has never heard of it."""
        from sightline.surfaces.acp import messages

        answers: list[bytes] = []
        with self._lock:
            for session in [*self._sessions.values()]:
                open_works = [each for each in (session.working, *session.waiting) if each and not each.settled]
                for work in [each for each in open_works if not each.cancelled]:
                    whole = method == _CANCEL and params.get("sessionId") == session.id
                    alone = method == _CANCEL_REQUEST and work.request == params.get("requestId")
                    if work.request is None or not (whole or alone):
                        continue
                    work.cancelled = True
                    self._asked.pop(work.request, None)
                    if work.future is not None:
                        work.future.cancel()
                    answers.append(
                        messages.result(work.request, {"stopReason": "cancelled"})
                        if whole
                        else messages.error(work.request, _CANCELLED, "the request was cancelled")
                    )
        if answers:  # from a thread of its own: an editor that writes may not be reading
            threading.Thread(target=self._to_editor.write, args=answers, daemon=True).start()

    # From the agent.

    def answered(self, line: Held) -> None:
        written = line.data
        try:
            after: tuple[bytes, ...] | None = self._told(line)
        except Exception as fault:  # noqa: BLE001, whatever it was: the editor waits for a line
            self._trouble(fault)
            after = (written,)
        if after:
            for each in after:
                self._to_editor.pass_on(each, ends=True)

    def _told(self, line: Held) -> tuple[bytes, ...]:
        """The lines that go to the editor instead."""
        message = None if line.head.method == _UPDATE else _read(line.data) or {}
        if message is None or message.get("method") == _UPDATE:
            return (self._updated(line.data),)
        request = None if "method" in message else _id(message)
        with self._lock:
            asked = None if request is None else self._asked.pop(request, None)
        if asked is None or request is None:
            return (line.data,)
        if asked.method == "initialize":
            return (self._introduced(line.data, message),)
        if asked.method == _PROMPT:
            return self._turned(line.data, request, message, asked)
        return self._opened(line.data, message, asked)

    def _introduced(self, line: bytes, message: Message) -> bytes:
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

    def _opened(self, line: bytes, message: Message, asked: Asked) -> tuple[bytes, ...]:
        """A session begins: it has folders and a model, and one command more."""
        from sightline.surfaces.acp import messages

        if "error" in message:
            return (line,)
        result = message.get("result")
        result = result if isinstance(result, dict) else {}
        name = result.get("sessionId") if asked.method in ("session/new", "session/fork") else asked.session
        session = self._session(name, make=True)
        if session is None:
            return (line,)
        places = [asked.params.get("cwd"), *listed(asked.params.get("additionalDirectories"))]
        session.folders = tuple(each for each in places if isinstance(each, str))
        before = self._session(asked.session)
        model, choice = model_of(result)
        session.model = model or session.model or (before.model if before else "")
        session.choice = choice or session.choice
        if session.listed:
            return (line,)
        offer: dict[str, Json] = {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [messages.offered()],
        }
        return line, messages.update(session.id, offer)

    def _updated(self, line: bytes) -> bytes:
        """News of a session: a list of commands gets ours, a change of the model is noted, a refusal is heard."""
        listening = any(session.heard is not None for session in [*self._sessions.values()])
        if not any(sign in line for sign in _NEWS) and not (listening and b"agent_message_chunk" in line):
            return line
        from sightline.surfaces.acp import messages

        params = messages.within(_read(line), "params")
        update, name = messages.within(params, "update"), messages.within(params, "sessionId")
        kind = messages.within(update, "sessionUpdate")
        session = self._session(name, make=kind == "available_commands_update")
        if session is not None and isinstance(update, dict):
            self._noticed(session, kind, update)
        return messages.with_command(line) if kind == "available_commands_update" else line

    def _noticed(self, session: Session, kind: object, update: Mapping[str, Any]) -> None:
        if kind == "available_commands_update":
            session.listed = True
        elif kind == "config_option_update":
            model, _ = model_of(update)
            if model and model != session.model:
                session.model, session.suspected = model, False
        elif kind == "agent_message_chunk" and session.heard is not None:
            content = update.get("content")
            words = content.get("text") if isinstance(content, dict) else ""
            session.heard = (session.heard + str(words or ""))[: _SHORT + 1]

    def _turned(self, line: bytes, request: Id, message: Message, asked: Asked) -> tuple[bytes, ...]:
        """A prompt is answered: by a refusal that teaches, or not."""
        session = self._session(asked.session)
        looked = asked.looked
        if looked is None or session is None:
            return (line,)
        from sightline.surfaces.acp import eyes

        error = message.get("error")
        if error is not None and looked.shows and looked.prepared.taught is None:
            with self._lock:
                self._asked[request] = asked
                self._held += len(line)
                session.waiting.appendleft(Work(line, request, refused=_text(error), looked=looked))
                if session.working is None:
                    self._start(session)
            return ()
        if error is None:
            eyes.taken(looked)
        if session.heard and len(session.heard) <= _SHORT and eyes.refuses(session.heard):
            session.suspected = True
            self._say(f"{self._known_agent().name} says that its model does not see; images are described from now on")
        session.heard = None
        return (line,)

    # The whole.

    def finish(self) -> None:
        with self._lock:
            while self._busy:
                self._lock.wait()

    @property
    def thinking(self) -> bool:
        with self._lock:
            return any(asked.method == _PROMPT for asked in self._asked.values())

    def _known_agent(self) -> Agent:
        from sightline.surfaces.acp.capability import Agent

        return self._agent or Agent(self._name, images=True)

    def _trouble(self, fault: Exception) -> None:
        self._say(f"a fault of Sightline's own, the message went on as it came: {type(fault).__name__}: {fault}")


def _read(line: bytes) -> Message | None:
    from sightline.surfaces.acp.messages import read

    return read(line)


def _id(message: Message) -> Id | None:
    request = message.get("id")
    return request if isinstance(request, (str, int, float)) and not isinstance(request, bool) else None


def _ready() -> Ready:
    from sightline.surfaces.acp.ready import ready

    return ready()


def _text(error: object) -> str:
    import json

    return json.dumps({"error": error})
