"""Prompts on their way to the agent: looked at, one after the other in each session, and given up when cancelled.

While a prompt of a session is looked at, later lines of that session wait behind it. Whatever goes wrong, a line goes
on as it came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.model.refusal import Refusal
from sightline.surfaces.acp.capability import LOADING
from sightline.surfaces.acp.pipes import Outlet
from sightline.surfaces.acp.sessions import CANCEL, PROMPT, SHORT, Asked, Id, Later, Open, Session, Work

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sightline.model.profile import Lesson
    from sightline.model.scene import Json
    from sightline.surfaces.acp.capability import Agent
    from sightline.surfaces.acp.eyes import Looked

T = TypeVar("T")
_SIGNS = (b'"image"', b'"blob"', b'"resource_link"', b"/vision-proxy")  # of a prompt that is worth looking at
_MOST_HELD = 512 * 1024 * 1024  # bytes of prompts that are looked at; then the editor has to wait
_CANCELLED = -32800


class Prompts:
    def __init__(
        self,
        to_agent: Outlet,
        to_editor: Outlet,
        known: Open,
        agent: Callable[[], Agent],
        say: Callable[[str], None],
    ) -> None:
        self._to_agent, self._to_editor = to_agent, to_editor
        self._open, self._lock = known, known.lock
        self._agent, self._say = agent, say
        self.busy = 0  # sessions in which something is looked at
        self._held = 0  # bytes of it
        self._lessons: tuple[Lesson, ...] = ()  # about a model that the agent does not name

    def taken(self, line: bytes, request: Id, session: Session) -> bool:
        """Whether a prompt is looked at, or has to wait; else it goes on as it came."""
        self._open.note(request, Asked(PROMPT, session.id))
        if not any(sign in line for sign in _SIGNS):
            session.heard = None
            return self.queued(session, line, request)
        self._begin(session, Work(line, request))
        return True

    def queued(self, session: Session | None, line: bytes, request: Id | None = None) -> bool:
        """Whether a line has to wait behind a prompt of its session."""
        with self._lock:
            if session is None or session.working is None:
                return False
            self._held += len(line)
            session.waiting.append(Work(line, request, plain=True))
            return True

    def cancel(self, method: object, params: Mapping[str, Any]) -> None:
        """What is looked at or waits is given up, and answered: the agent has never heard of it."""
        from sightline.surfaces.acp import messages

        answers: list[bytes] = []
        with self._lock:
            for request, asked in self._open.asked.items():
                own = (
                    asked.session == params.get("sessionId") if method == CANCEL else request == params.get("requestId")
                )
                asked.acted = asked.acted or own  # nobody wants it a second time
            for session in [*self._open.sessions.values()]:
                open_works = [each for each in (session.working, *session.waiting) if each and not each.settled]
                for work in [each for each in open_works if not each.cancelled]:
                    whole = method == CANCEL and params.get("sessionId") == session.id
                    alone = method != CANCEL and work.request == params.get("requestId")
                    if work.request is None or not (whole or alone):
                        continue
                    work.cancelled = True
                    self._open.asked.pop(work.request, None)
                    if work.future is not None:
                        work.future.cancel()
                    name = messages.token(work.asked)
                    answers.append(
                        messages.result(name, {"stopReason": "cancelled"})
                        if whole
                        else messages.error(name, _CANCELLED, "the request was cancelled")
                    )
        if answers:  # from a thread of its own: an editor that writes may not be reading
            threading.Thread(target=self._to_editor.write, args=answers, daemon=True).start()

    def answered(self, line: bytes, request: Id, message: Mapping[str, Any], asked: Asked) -> tuple[bytes, ...]:
        """What the editor gets of an agent's answer: nothing, where it is a refusal that may be mended.

        A prompt for which the agent has done anything is not sent again: it would be done twice.
        """
        session = self._open.session(asked.session)
        looked = asked.looked
        if looked is None or session is None:
            return (line,)
        with LOADING:
            from sightline.surfaces.acp import eyes

        error = message.get("error")
        if error is not None and looked.shows and looked.prepared.taught is None and not asked.acted:
            with self._lock:
                self._open.asked[request] = asked
                self._held += len(line)
                session.waiting.appendleft(Work(line, request, refused=_text(error), looked=looked))
                if session.working is None:
                    self._start(session)
            return ()
        if error is None and looked.prepared.taught is not None:
            said, lesson = eyes.taken(looked)
            self._lessons += () if lesson is None else (lesson,)
            self._say(said)
        words = session.heard if session.heard and len(session.heard) <= SHORT else ""
        if any(said and eyes.refuses(said) for said in (words, _text(error) if error is not None else "")):
            session.suspected = True
            self._say(f"{self._agent().name} says that its model does not see; images are described from now on")
        session.heard = None
        return (line,)

    def finish(self) -> None:
        """The editor has left: nothing is looked at for nobody, and no agent is set to work."""
        with self._lock:
            for name in [*self._open.sessions]:
                self.cancel(CANCEL, {"sessionId": name})
            while self.busy:
                self._lock.wait()

    def trouble(self, fault: Exception) -> None:
        self._say(f"a fault of Sightline's own, the message went on as it came: {type(fault).__name__}: {fault}")

    def _begin(self, session: Session, work: Work) -> None:
        with self._lock:
            while self._held and self._held + len(work.line) > _MOST_HELD:
                self._lock.wait()
            self._held += len(work.line)
            session.waiting.append(work)
            if session.working is None:
                self._start(session)

    def _start(self, session: Session) -> None:
        self.busy += 1
        session.working = session.waiting.popleft()
        threading.Thread(target=self._work, args=(session,), daemon=True).start()

    def _work(self, session: Session) -> None:
        """All that waits in a session, one after the other."""
        while (work := session.working) is not None:
            try:
                line = self._looked(session, work)
            except Exception as fault:  # noqa: BLE001, whatever it was: the agent waits for a line
                self.trouble(fault)
                line = self._given_up(work) if work.refused else work.line
            if line and self._settled(work):
                self._to_agent.write(line)
            with self._lock:
                self._held -= len(work.line)
                session.working = session.waiting.popleft() if session.waiting else None
                self.busy -= session.working is None
                self._lock.notify_all()

    def _settled(self, work: Work, *, answered: bool = False) -> bool:
        """Whether it is ours to send or to answer: it is not, once it was cancelled, and cannot be cancelled then."""
        with self._lock:
            if work.cancelled:
                return False
            work.settled = True
            if answered and work.request is not None:
                self._open.asked.pop(work.request, None)
            return True

    def _looked(self, session: Session, work: Work) -> bytes:
        """A line as it goes to the agent; nothing where it has been answered here."""
        if work.plain or work.request is None:
            return work.line
        if work.cancelled:  # while it waited
            return b""
        with LOADING:
            from sightline.surfaces.acp import eyes

        where = eyes.Where(session.folders, session.model, session.suspected, self._lessons)
        if work.looked is not None:
            return self._again(session, work, work.looked)
        if b"/vision-proxy" in work.line and (found := eyes.typed(work.line)) is not None:
            text, owner = found
            self._command(session, work, partial(eyes.command, text, work.line, where, session.images, owner=owner))
            return b""
        outcome = eyes.look(work.line, self._agent(), where)
        if isinstance(outcome, Refusal):
            self._say(f"a prompt with images went on as it came: {outcome}")
            outcome = None
        looked = self._awaited(work, outcome) if outcome else None
        session.heard = "" if looked and looked.shows else None
        if looked is None:
            return work.line
        session.images = tuple(dict.fromkeys([*session.images, *looked.references]))
        with self._lock:
            if looked.shows and (asked := self._open.asked.get(work.request)) is not None:
                asked.looked, asked.acted = looked, False
        return looked.line

    def _command(self, session: Session, work: Work, asked: Callable[[], tuple[str, tuple[str, ...]]]) -> None:
        """What is typed as a command. It may take long: whoever cancels it ends what it waits for."""
        from sightline.vision.bridge import WAITS, Waits

        waits = Waits()

        def answer() -> tuple[str, tuple[str, ...]]:
            WAITS.set(waits)  # for this thread alone
            return asked()

        future = Later(answer).future
        future.add_done_callback(lambda _: waits.end())
        outcome = self._awaited(work, future)
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
        with LOADING:
            from sightline.surfaces.acp import eyes

        assert work.request is not None
        after = self._awaited(work, eyes.again(before, work.refused))
        with self._lock:
            if work.cancelled:
                return b""
            if after is not None:
                self._open.asked[work.request] = Asked(PROMPT, session.id, looked=after)
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
        name = messages.token(work.asked)
        self._to_editor.write(messages.update(session.id, chunk), messages.result(name, {"stopReason": "end_turn"}))


def _text(error: object) -> str:
    import json

    return json.dumps({"error": error})
