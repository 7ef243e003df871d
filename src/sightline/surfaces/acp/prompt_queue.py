"""Prepares the images of prompts on their way to the agent, one prompt after the other in each session.

While a prompt is prepared, later lines of its session wait behind it. A prompt can be cancelled until it is sent. If
the agent rejects a prompt because of its images before it has done anything, the prompt is repaired and sent once more.
If anything fails here, the line is forwarded unchanged.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.model.refusal import Refusal
from sightline.surfaces.acp import IMPORT_LOCK, messages
from sightline.surfaces.acp.pipes import LineWriter
from sightline.surfaces.acp.relay_state import (
    CANCEL,
    PROMPT,
    AcpSession,
    BackgroundResult,
    PendingRequest,
    QueuedLine,
    RelayState,
    RequestId,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sightline.model.profile import Lesson
    from sightline.model.scene import Json
    from sightline.surfaces.acp.negotiation import AcpAgent
    from sightline.surfaces.acp.prompt_images import PreparedPrompt

T = TypeVar("T")
_MARKERS = (b'"image"', b'"blob"', b'"resource_link"', b"/vision-proxy")  # of a prompt that has to be prepared
_MAX_HELD = 512 * 1024 * 1024  # bytes of queued lines; above that, the editor has to wait
_CANCELLED = -32800


class PromptQueue:
    def __init__(
        self,
        to_agent: LineWriter,
        to_editor: LineWriter,
        state: RelayState,
        get_agent: Callable[[], AcpAgent],
        print_status: Callable[[str], None],
    ) -> None:
        self._to_agent, self._to_editor = to_agent, to_editor
        self._state, self._lock = state, state.lock
        self._get_agent, self._print_status = get_agent, print_status
        self.active_sessions = 0  # sessions that have a line in work
        self._held_bytes = 0  # of all queued lines
        self._lessons: tuple[Lesson, ...] = ()  # about a model that the agent does not name

    def take_prompt(self, line: bytes, request: RequestId, session: AcpSession, words: str) -> bool:
        """Queue a prompt if it has to be prepared or has to wait. Return False if it can be sent on unchanged."""
        self._state.add_request(request, PendingRequest(PROMPT, session.id))
        if not any(marker in line for marker in _MARKERS):
            if self.queue_line(session, line, request, words):
                return True
            session.begin_turn(words)
            return False
        self._enqueue(session, QueuedLine(line, request, words))
        return True

    def queue_line(
        self, session: AcpSession | None, line: bytes, request: RequestId | None = None, words: str = ""
    ) -> bool:
        """Queue a line if a prompt of its session is being prepared. Return whether it was."""
        with self._lock:
            if session is None or session.current is None:
                return False
            self._held_bytes += len(line)
            session.waiting.append(QueuedLine(line, request, words, is_plain=True))
            return True

    def cancel(self, method: object, params: Mapping[str, Any]) -> None:
        """Give up lines that the agent has not got yet, and answer them in its place."""
        answers: list[bytes] = []
        with self._lock:
            for request, pending in self._state.requests.items():
                own = (
                    pending.session == params.get("sessionId")
                    if method == CANCEL
                    else request == params.get("requestId")
                )
                pending.has_acted = pending.has_acted or own  # a cancelled prompt is not sent again
            for session in [*self._state.sessions.values()]:
                unsettled = [each for each in (session.current, *session.waiting) if each and not each.settled]
                for work in [each for each in unsettled if not each.cancelled]:
                    whole_session = method == CANCEL and params.get("sessionId") == session.id
                    this_request = method != CANCEL and work.request == params.get("requestId")
                    if work.request is None or not (whole_session or this_request):
                        continue
                    work.cancelled = True
                    self._state.requests.pop(work.request, None)
                    if work.future is not None:
                        work.future.cancel()
                    request_id = messages.get_raw_id(work.editor_line)
                    answers.append(
                        messages.build_result(request_id, {"stopReason": "cancelled"})
                        if whole_session
                        else messages.build_error(request_id, _CANCELLED, "the request was cancelled")
                    )
        if answers:  # in a thread of its own: an editor that is writing may not be reading
            threading.Thread(target=self._to_editor.write, args=answers, daemon=True).start()

    def handle_response(
        self, line: bytes, request: RequestId, message: Mapping[str, Any], pending: PendingRequest
    ) -> tuple[bytes, ...]:
        """Return what the editor gets of the agent's response: nothing yet, if it is an error that may be repaired.

        A prompt that the agent has worked on is not sent again, because that work would be done twice.
        """
        session = self._state.get_session(pending.session)
        prompt = pending.prepared
        if prompt is None or session is None:
            if session is not None:
                session.end_turn()
            return (line,)
        with IMPORT_LOCK:
            from sightline.surfaces.acp import prompt_images

        error = message.get("error")
        if error is not None and prompt.shows_pixels and prompt.repair_lesson is None and not pending.has_acted:
            with self._lock:
                self._state.requests[request] = pending
                self._held_bytes += len(line)
                session.waiting.appendleft(QueuedLine(line, request, rejection=_get_error_text(error), prepared=prompt))
                if session.current is None:
                    self._start_worker(session)
            return ()
        if error is None and prompt.repair_lesson is not None:
            status, lesson = prompt_images.record_lesson(prompt)
            self._lessons += () if lesson is None else (lesson,)
            self._print_status(status)
        if self._is_blind(session, prompt, message):
            session.suspected_blind = True
            self._print_status(
                f"{self._get_agent().name} says that its model can't see images; from now on they are described"
            )
        session.end_turn()
        return (line,)

    def _is_blind(self, session: AcpSession, prompt: PreparedPrompt, message: Mapping[str, Any]) -> bool:
        """Return whether the response to a prompt with pixels says that the model can't see; note if it could.

        What an agent says counts less than an error: never against a model that is known to see, or has seen.
        """
        with IMPORT_LOCK:
            from sightline.profiles.blind_replies import admits_blindness
            from sightline.surfaces.acp import prompt_images

        if message.get("error") is not None:
            return prompt_images.reports_blind_model(_get_error_text(message["error"]))
        if not session.reply or not prompt.shows_pixels:
            return False
        if admits_blindness(session.reply):
            return not session.has_seen and prompt.request.rules.profile.vision is not True
        session.has_seen = messages.get_member(message, "result", "stopReason") == "end_turn" or session.has_seen
        return False

    def cancel_all(self) -> None:
        """Give up all queued lines, because the editor has left, and wait until no line is in work."""
        with self._lock:
            for name in [*self._state.sessions]:
                self.cancel(CANCEL, {"sessionId": name})
            while self.active_sessions:
                self._lock.wait()

    def report_error(self, error: Exception) -> None:
        self._print_status(f"internal error, so the message was passed on unchanged: {type(error).__name__}: {error}")

    def _enqueue(self, session: AcpSession, work: QueuedLine) -> None:
        with self._lock:
            while self._held_bytes and self._held_bytes + len(work.line) > _MAX_HELD:
                self._lock.wait()
            self._held_bytes += len(work.line)
            session.waiting.append(work)
            if session.current is None:
                self._start_worker(session)

    def _start_worker(self, session: AcpSession) -> None:
        self.active_sessions += 1
        session.current = session.waiting.popleft()
        threading.Thread(target=self._run_worker, args=(session,), daemon=True).start()

    def _run_worker(self, session: AcpSession) -> None:
        """Send on all queued lines of a session, one after the other."""
        while (work := session.current) is not None:
            try:
                line = self._prepare_line(session, work)
            except Exception as error:  # noqa: BLE001, the agent needs the line in any case
                self.report_error(error)
                line = self._return_rejection(work) if work.rejection else work.line
            if line and self._settle(work):
                self._to_agent.write(line)
            with self._lock:
                self._held_bytes -= len(work.line)
                session.current = session.waiting.popleft() if session.waiting else None
                self.active_sessions -= session.current is None
                self._lock.notify_all()

    def _settle(self, work: QueuedLine, *, answered: bool = False) -> bool:
        """Return whether a line may be sent or answered here. From then on it can't be cancelled."""
        with self._lock:
            if work.cancelled:
                return False
            work.settled = True
            if answered and work.request is not None:
                self._state.requests.pop(work.request, None)
            return True

    def _prepare_line(self, session: AcpSession, work: QueuedLine) -> bytes:
        """Return a line as it goes to the agent; empty: it was answered here."""
        if work.is_plain or work.request is None:
            if work.request is not None and not work.cancelled:
                session.begin_turn(work.words)
            return work.line
        if work.cancelled:  # while it waited
            return b""
        with IMPORT_LOCK:
            from sightline.surfaces.acp import prompt_images

        context = prompt_images.PromptContext(
            session.folders, session.model, session.suspected_blind, self._lessons, session.history
        )
        if work.prepared is not None:
            return self._retry(session, work, work.prepared)
        if b"/vision-proxy" in work.line and (found := prompt_images.find_typed_command(work.line)) is not None:
            text, owner = found
            run = partial(prompt_images.run_command, text, work.line, context, session.images, owner=owner)
            self._run_command(session, work, run)
            return b""
        outcome = prompt_images.prepare_prompt(work.line, self._get_agent(), context)
        if isinstance(outcome, Refusal):
            self._print_status(f"the images of a prompt were passed on unchanged: {outcome}")
            outcome = None
        prompt = self._wait_for(work, outcome) if outcome else None
        session.begin_turn(work.words)
        if prompt is None:
            return work.line
        session.images = tuple(dict.fromkeys([*session.images, *prompt.references]))
        with self._lock:
            if prompt.shows_pixels and (pending := self._state.requests.get(work.request)) is not None:
                pending.prepared, pending.has_acted = prompt, False
        return prompt.line

    def _run_command(
        self, session: AcpSession, work: QueuedLine, run: Callable[[], tuple[str, tuple[str, ...]]]
    ) -> None:
        """Answer a command that the user has typed. Cancelling it also cancels the requests that it waits for."""
        from sightline.vision.background_loop import PENDING_WORK, PendingWork

        requests = PendingWork()

        def answer() -> tuple[str, tuple[str, ...]]:
            PENDING_WORK.set(requests)  # of this thread
            return run()

        future = BackgroundResult(answer).future
        future.add_done_callback(lambda _: requests.cancel())
        outcome = self._wait_for(work, future)
        if outcome is not None:
            text, images = outcome
            session.images = tuple(dict.fromkeys([*session.images, *images]))
            self._send_answer(session, work, text)

    def _wait_for(self, work: QueuedLine, future: Future[T]) -> T | None:
        from concurrent.futures import CancelledError

        with self._lock:
            work.future = future
            if work.cancelled:
                future.cancel()
        try:
            return future.result()
        except CancelledError:
            return None

    def _retry(self, session: AcpSession, work: QueuedLine, before: PreparedPrompt) -> bytes:
        """Return the repaired prompt; if its images were not the reason for the error, give the error to the editor."""
        with IMPORT_LOCK:
            from sightline.surfaces.acp import prompt_images

        assert work.request is not None
        after = self._wait_for(work, prompt_images.repair_prompt(before, work.rejection))
        with self._lock:
            if work.cancelled:
                return b""
            if after is not None:
                self._state.requests[work.request] = PendingRequest(PROMPT, session.id, prepared=after)
        session.reply = None if after is None else ""
        return self._return_rejection(work) if after is None else after.line

    def _return_rejection(self, work: QueuedLine) -> bytes:
        """Give the agent's error to the editor, and nothing to the agent."""
        if self._settle(work, answered=True):
            self._to_editor.write(work.line)
        return b""

    def _send_answer(self, session: AcpSession, work: QueuedLine, text: str) -> None:
        """Answer a prompt in the place of the agent."""
        assert work.request is not None
        if not self._settle(work, answered=True):
            return
        chunk: dict[str, Json] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        request_id = messages.get_raw_id(work.editor_line)
        self._to_editor.write(
            messages.build_update(session.id, chunk), messages.build_result(request_id, {"stopReason": "end_turn"})
        )


def _get_error_text(error: object) -> str:
    return json.dumps({"error": error})
