"""The client's own body, sent when the upstream rejects what Sightline made of it.

Law 9: Sightline must not be worse than no Sightline. An edit that an upstream does not accept (an image that was taken
out of a text or moved out of a tool result, a tool of our own) would otherwise fail the same conversation on every
turn. These are the rules:

1. What counts as a rejection: the status 400 or 422, or an error of that kind at the beginning of a stream with status
   200. Not 401, 403, 404, 429 or 5xx: they are about the caller, the address or the time, and clients know what to do
   with them.
2. The order: the edited body; then, if the rejection says what is wrong, one repaired body, and a second with smaller
   images if they are still too large; then the client's own, byte for byte as it came (only `/vision-proxy` commands,
   which are not meant for a model, stay out of it). It is sent at most once for each request of the client, and not at
   all if it was one of the bodies before.
3. Which answer the client gets: the one to its own body, accepted or not. So errors are about what the client wrote.
4. What is learned, if the client's own body was accepted. Images that were taken out of texts or moved out of tool
   results stay as the client sends them (the placement `as_sent`), if the request had such edits. Sightline's tools are
   no longer offered, if it had those; if the rejection names one of them, only that is learned. If PDFs were replaced,
   only that is blamed, and they stay. A lesson is for one upstream and model, lasts seven days, and `sightline config`
   lists and forgets it like any other. Other edits (refitted, described and retired images, references beside pasted
   ones) put the same kind of block, or a text, where one was: they are not blamed, but the client's own body is sent
   for them, too.
   When: at once if the error is about the form of the request, else when the same edits are rejected again and were
   not accepted in between, since an error may be about anything (moderation, a failing server). A rejection for
   the length of a request teaches nothing, since every edit changes the length. Neither does counting tokens: that
   endpoint may accept less than the one for answers.
5. Pixels for a text-only model: only those that the client itself addressed to it. Sightline adds none.
6. What it costs: one more request. Some clients repeat a request up to 84 times: a body that was rejected in both forms
   is remembered for ten minutes, and its repetitions are sent only as the client wrote them. Not if the client's own
   was rejected because of its images: then only an edited form can be accepted. Counting tokens costs nothing, and is
   tried in both forms each time.
7. Streams: rejections are read before the client gets the head of a response, so it notices nothing.
8. The tool loop: if a request with restored calls is rejected, it is first sent without them (`ToolLoop.send`), and
   then the client's own body: two more requests. The first of them can't be left out, since images for a text-only
   model are accepted only in an edited form. If a later leg of an answer is rejected and the answer is not streamed,
   the client's own body is sent. If a part of it was streamed, it can't be taken back, and the stream ends with the
   wire's error. In both cases our tools are not offered to that model for an hour, so that the client's next attempt
   succeeds.
"""

from __future__ import annotations

import time

from blake3 import blake3

from sightline.engine import Engine
from sightline.model.profile import Lesson
from sightline.model.records import Receipt
from sightline.model.value import value_class
from sightline.profiles.rejections import is_about_length, is_about_shape, parse_rejection
from sightline.surfaces.proxy.bodies import BufferedBody
from sightline.surfaces.proxy.request_context import RequestContext
from sightline.vision.concurrency import LruCache
from sightline.wire.sse import StreamRejection

REJECTED_STATUSES = (400, 422)
_REMEMBERED_SECONDS = 600.0
_MAX_REMEMBERED = 1024
_MAX_BLAMED = 256
_SENT = "the upstream returned {} for the changed request, so the client's own request was sent and "


@value_class
class RejectedEdits:
    """An edited request that an upstream has rejected."""

    model: str
    rejection: StreamRejection
    lesson: Lesson | None  # what it teaches if the client's own body is accepted; None: nothing
    is_named: bool = False  # the rejection names what the lesson is about


class OwnBodyFallback:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rejected: LruCache[float] = LruCache(_MAX_REMEMBERED)  # bodies without any accepted form, and since when

        self._blamed: LruCache[bool] = LruCache(_MAX_BLAMED)  # by edits: rejected once, and not accepted since

    @property
    def blames_edits(self) -> bool:
        """Whether any edits were rejected: then `clear_blame` has to be called when some are accepted."""
        return bool(self._blamed)

    def was_rejected(self, context: RequestContext, own: BufferedBody) -> bool:
        """Return whether a body was rejected in both forms a short time ago, so that only its own is sent."""
        since = self._rejected.get(_identify(context, own)) if self._rejected else None
        return since is not None and time.monotonic() - since <= _REMEMBERED_SECONDS

    def forget_rejection(self, context: RequestContext, own: BufferedBody) -> None:
        """Forget that a body was rejected, because it was accepted now."""
        self._rejected.put(_identify(context, own), -_REMEMBERED_SECONDS)

    def clear_blame(self, context: RequestContext, model: str, lesson: Lesson | None) -> None:
        """Take back that edits may be the cause of a rejection, because such edits were accepted."""
        if lesson is not None:
            self._blamed.put(_identify_edits(context, model, lesson), value=False)

    async def learn(
        self, context: RequestContext, own: BufferedBody, rejected: RejectedEdits, again: StreamRejection | None
    ) -> Receipt:
        """Remember how the upstream took the client's own body (`again`: it rejects that too), and return a receipt."""
        note = _SENT.format(rejected.rejection.status)
        if again is not None:
            needs_edits = parse_rejection(again.status, again.words) is not None
            if again.status in REJECTED_STATUSES and not needs_edits and not context.route.endpoint.counts_tokens:
                self._rejected.put(_identify(context, own), time.monotonic())
            return _build_receipt(context, rejected, f"{note}got {again.status}")
        lesson = rejected.lesson
        if lesson is None or context.route.endpoint.counts_tokens or is_about_length(rejected.rejection.words):
            return _build_receipt(context, rejected, f"{note}was accepted")
        blamed = _identify_edits(context, rejected.model, lesson)
        if not (rejected.is_named or is_about_shape(rejected.rejection.words) or self._blamed.get(blamed)):
            self._blamed.put(blamed, value=True)
            return _build_receipt(context, rejected, f"{note}was accepted")
        await self._engine.keep_lesson(context.caller, rejected.model, lesson)
        return _build_receipt(context, rejected, f"{note}was accepted; from now on {_describe(lesson)}")


def _build_receipt(context: RequestContext, rejected: RejectedEdits, note: str) -> Receipt:
    return Receipt(context.route.upstream.name, rejected.model, notes=(note,))


def _describe(lesson: Lesson) -> str:
    images = ["images of tool results stay as the client sends them"] if lesson.tool_images else []
    tools = ["Sightline's tools are not offered"] if lesson.takes_own_tools is False else []
    pdf = ["PDFs stay as the client sends them"] if lesson.takes_pdf else []
    return " and ".join([*images, *tools, *pdf])


def _identify_edits(context: RequestContext, model: str, lesson: Lesson) -> tuple[str, str, str]:
    return context.route.upstream.name, model, _describe(lesson)


def _identify(context: RequestContext, own: BufferedBody) -> tuple[str, str, bytes]:
    return context.caller.scope, context.route.url, blake3(own.data).digest()
