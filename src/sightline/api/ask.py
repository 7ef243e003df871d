"""`vision_analyze` and `video_analyze`: one question about one image, PDF or video.

A call is checked in this order, so that it fails in the same way everywhere: arguments, file, model, capability,
provider.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from sightline.api.failure import Failure
from sightline.api.file_fitter import FileFitter, Fit
from sightline.api.input_file import ONE_FILE, InputFile, read_input_file
from sightline.api.question_arguments import describe_file_question, refuse_file_question
from sightline.api.question_subject import Method, QuestionSubject, open_image_or_pdf, open_video
from sightline.api.session import ToolContext
from sightline.api.tool_results import IMAGE_ANSWER_CHARACTERS, VIDEO_ANSWER_CHARACTERS, FileAnswer
from sightline.api.views import SourceImage, find_source
from sightline.model.fence import neutralize, replace_surrogates
from sightline.model.image import Image
from sightline.model.records import LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import Usage
from sightline.passes.wording import explain_fallback
from sightline.runtime import Runtime, get_shared_runtime
from sightline.settings import Settings, load_settings
from sightline.vision import json_answers as json_schema
from sightline.vision.background_loop import run_blocking
from sightline.vision.chooser import advise_user
from sightline.vision.prompts import FILE_INSTRUCTIONS, SCHEMA_INSTRUCTIONS, STILLS_QUESTION, Prompt
from sightline.vision.providers import LOCAL_READER
from sightline.vision.service import VisionService
from sightline.vision.vision_request import Attempt, CacheRule, VisionImage, VisionRequest, VisionResult

DESCRIBE_VIDEO = "Describe this video in detail."
_SHAPE = 'use {"type": "json_schema", "schema": {"type": "object", …}}'
_NO_CROP = Refusal("invalid_input", "the file can't be a part of an image", "use analyze to ask about a part")
_NOBODY = Refusal(
    "unavailable",
    "there is no model to ask: the call names none, and the setting `seer` is off",
    "name one as PROVIDER/MODEL, or set seer to auto",
    stage="model",
)


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """The checked arguments of a call. Its file is read only when it is needed."""

    context: ToolContext
    settings: Settings
    tool: str
    prompt: str
    model: str | None
    read: Callable[[], QuestionSubject | Refusal]
    schema: dict[str, Json] | None = None
    fit: Fit = "auto"
    max_characters: int = IMAGE_ANSWER_CHARACTERS


def vision_analyze(context: ToolContext, **given: object) -> FileAnswer | Failure:
    return _answer(context, "vision_analyze", given, check_image_call(context, **given))


def video_analyze(context: ToolContext, **given: object) -> FileAnswer | Failure:
    return _answer(context, "video_analyze", given, check_video_call(context, **given))


def check_image_call(
    context: ToolContext,
    *,
    prompt: object = None,
    file_path: object = None,
    file_url: object = None,
    file_base64: object = None,
    file: object = None,
    model: object = None,
    format: object = None,  # noqa: A002, the tool's own name for it
    fit: object = None,
) -> FileQuestion | Refusal:
    settings = context.settings or load_settings()
    how = settings.vision_fit if fit is None else fit
    schema = _read_schema(context, format)

    def read() -> QuestionSubject | Refusal:
        given = _read_file(context, file, file_path, file_url, file_base64)
        return given if isinstance(given, Refusal) else open_image_or_pdf(context, settings, given, cast("Fit", how))

    ask = _check(context, settings, "vision_analyze", prompt, model, read)
    if isinstance(ask, Refusal) or isinstance(schema, Refusal):
        return ask if isinstance(ask, Refusal) else cast("Refusal", schema)
    if how not in ("auto", "never"):
        return Refusal("invalid_input", 'fit must be "auto" or "never"', "leave it out to use the setting visionFit")
    return replace(ask, schema=schema, fit=how)


def _read_file(context: ToolContext, file: object, *others: object, open_videos: bool = False) -> InputFile | Refusal:
    """Return the one file of a call. `file` is only given by programs, in any form that an image argument takes."""
    if file is None:
        return read_input_file(context, *others, open_videos=open_videos)
    if any(each is not None for each in others):
        return ONE_FILE
    found = find_source(context, file, open_videos=open_videos)
    if isinstance(found, SourceImage) and found.crop:
        return _NO_CROP
    return (
        replace(found, stage="file") if isinstance(found, Refusal) else InputFile(found.data, found.name, found.large)
    )


def check_video_call(
    context: ToolContext,
    *,
    file_url: object = None,
    file_path: object = None,
    file: object = None,
    prompt: object = None,
    model: object = None,
    method: object = None,
) -> FileQuestion | Refusal:
    settings = context.settings or load_settings()

    def read() -> QuestionSubject | Refusal:
        given = _read_file(context, file, file_path, file_url, open_videos=context.renderers is not None)
        how = cast("Method", method or "auto")
        return given if isinstance(given, Refusal) else open_video(context, settings, given, how)

    question = DESCRIBE_VIDEO if prompt is None else prompt
    ask = _check(context, settings, "video_analyze", question, model, read)
    if isinstance(ask, Refusal):
        return ask
    if method not in (None, "auto", "native", "frames"):
        return Refusal("invalid_input", 'method must be "auto", "native" or "frames"', "leave it out for auto")
    return replace(ask, max_characters=VIDEO_ANSWER_CHARACTERS)


def _check(
    context: ToolContext,
    settings: Settings,
    tool: str,
    prompt: object,
    model: object,
    read: Callable[[], QuestionSubject | Refusal],
) -> FileQuestion | Refusal:
    if not isinstance(prompt, str) or not prompt.strip():
        return Refusal("invalid_input", "the prompt is empty", "say what you want to know")
    if not isinstance(model, str | None):
        return Refusal("invalid_input", "the model must be a string", "write PROVIDER/MODEL")
    return FileQuestion(
        context, settings, tool, replace_surrogates(prompt), model if model is None else replace_surrogates(model), read
    )


def _read_schema(context: ToolContext, given: object) -> dict[str, Json] | Refusal | None:
    match given:
        case None:
            return None
        case {"type": "json_schema", "schema": {"type": "object"} as schema, **rest} if not rest:
            fault = json_schema.find_schema_fault(context.workers, schema) if _is_json(schema) else "it is not JSON"
            return _refuse_schema(fault) if fault else cast("dict[str, Json]", schema)
        case {"type": "json_schema", "schema": dict()}:
            return _refuse_schema("its top level must have the type object")
        case _:
            return _refuse_schema("it has the wrong shape")


def _refuse_schema(fault: str) -> Refusal:
    return Refusal("invalid_input", f"the format cannot be used: {fault}", _SHAPE)


def _is_json(schema: object) -> bool:
    try:
        json.dumps(schema, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):  # a lone surrogate is a ValueError as well
        return False
    return True


def find_missing_consent(ask: FileQuestion | Refusal) -> str:
    """Return the provider that needs only the user's consent to answer; empty: none does, or the call fails anyway."""
    if isinstance(ask, Refusal):
        return ""
    runtime = get_shared_runtime(ask.settings, ask.context.record)
    found = None if isinstance(runtime, Refusal) else runtime.chooser.find_missing_consent(ask.model, "none")
    if found is None:
        return ""
    candidate, receiver = found
    subject = ask.read()
    return "" if isinstance(subject, Refusal) or subject.admit(candidate) else receiver


def _answer(
    context: ToolContext, tool: str, given: Mapping[str, object], ask: FileQuestion | Refusal
) -> FileAnswer | Failure:
    """Answer a question about a file. One that is refused before it reaches the vision service is noted here."""
    ready = _prepare(ask)
    if isinstance(ready, Refusal) or isinstance(ask, Refusal):
        return refuse_file_question(context, tool, given.get("prompt"), cast("Refusal", ready))
    subject, runtime = ready
    return run_blocking(_look(runtime.vision, ask, subject))


async def _look(vision: VisionService, ask: FileQuestion, subject: QuestionSubject) -> FileAnswer | Failure:
    """Ask the first candidate. Whether it gets a document or its pages or stills depends on which that is."""
    candidates = await vision.choose(None, ask.model, "none")
    candidate = await (await candidates.limit_to_first()).find_first()
    pages = await asyncio.to_thread(subject.render, candidate) if candidate else None
    if isinstance(pages, Refusal):
        refusal = replace(pages, stage=pages.stage or "file")
        return await asyncio.to_thread(refuse_file_question, ask.context, ask.tool, ask.prompt, refusal)
    if pages is not None:
        subject = replace(subject, document=None, pages=pages)
    fitter = FileFitter(ask.context.workers, subject.images, ask.fit)
    result = await vision.look(_build_request(ask, subject, fitter), candidates)
    if isinstance(result, Refusal):
        return Failure(result, "ask")
    answer = await asyncio.to_thread(_build_answer, ask, result)
    if pages is None or pages.times:
        return replace(answer, fitted=fitter.changed, frames=pages.times if pages else ())
    return replace(answer, fitted=True, pages=(len(pages.images), pages.total))


def _prepare(ask: FileQuestion | Refusal) -> tuple[QuestionSubject, Runtime] | Refusal:
    """Return the file of a question and what answers it."""
    subject = ask if isinstance(ask, Refusal) else ask.read()
    if isinstance(ask, Refusal) or isinstance(subject, Refusal):
        return cast("Refusal", subject)
    runtime = get_shared_runtime(ask.settings, ask.context.record)
    return replace(runtime, stage="model") if isinstance(runtime, Refusal) else (subject, runtime)


def _build_request(ask: FileQuestion, subject: QuestionSubject, fitter: FileFitter) -> VisionRequest:
    remembers = ask.settings.vision_cache
    image = subject.image
    return VisionRequest(
        scope=ask.context.scope,
        prompt=_build_prompt(ask, subject),
        fit=fitter,
        fit_first=True,
        identity=[ask.tool, subject.sha256, cast("Json", ask.schema)],
        make_entries=partial(_write_entries, ask, subject),
        no_candidate=_NOBODY,
        images=(VisionImage(image),) if image else (),
        sha256s=(subject.sha256,),
        model=ask.model,
        check="none",
        first_only=True,
        check_candidate=subject.admit,
        ask_coordinates=False,
        cache=CacheRule(
            hash_prompt=(lambda form: _name_question(ask, fitter.sent)) if remembers else None, join_others=remembers
        ),
        find_fault=partial(_find_fault, ask.schema) if ask.schema is not None else None,
        advise=partial(advise_user, settings=ask.settings),
        since=time.time(),
    )


def _build_prompt(ask: FileQuestion, subject: QuestionSubject) -> Prompt:
    """Return the question; the model also reads which pages it gets of how many, or the times of the stills."""
    documents, pages = (subject.document,) if subject.document else (), subject.pages
    instructions = FILE_INSTRUCTIONS if ask.schema is None else f"{FILE_INSTRUCTIONS} {SCHEMA_INSTRUCTIONS}"
    question, reader_question = ask.prompt, ask.prompt
    if pages is not None and pages.times:
        question = STILLS_QUESTION.format(times=", ".join(pages.times), words=ask.prompt)
        reader_question = "" if ask.prompt == DESCRIBE_VIDEO else ask.prompt
    elif pages is not None:
        question = f"{ask.prompt}\n\n{pages.write_line(subject.name)}"
    return Prompt(instructions, question, reader_question, schema=ask.schema, documents=documents)


def _name_question(ask: FileQuestion, sent: Sequence[Image]) -> str:
    """Return the key under which an answer is cached like a description, so that it is forgotten with its image."""
    question = [ask.tool, ask.prompt, ask.schema, [each.sha256 for each in sent]]
    return f"ask:{hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()}"


def _find_fault(shape: Mapping[str, Json], text: str) -> str:
    """Return why an answer has to be asked for again. Lesser breaches of the schema are reported with the answer."""
    found = json_schema.find_object(text)
    if found is None:
        return "it is not a JSON object"
    absent = json_schema.find_missing_fields(found, shape)
    return f"it lacks {', '.join(absent)[:200]}" if absent else ""


def _build_answer(ask: FileQuestion, made: VisionResult) -> FileAnswer:
    text, candidate = made.answer.text, made.candidate
    found = json_schema.find_object(text) if ask.schema is not None else None
    breaches: list[str] = []
    if found is not None:
        found, breaches = json_schema.check_answer(ask.context.workers, found, ask.schema)
    assert candidate is not None
    named = candidate.vision_model or LOCAL_READER
    return FileAnswer(
        neutralize(text + (f"\n\n{explain_fallback(made.fallback_reason, made.seer)}" if made.fallback_reason else "")),
        named.model,
        named.upstream.name,
        Usage(0, 0) if made.cached else made.answer.usage,
        0.0 if made.cached else made.cost_usd,
        None if found is None else json_schema.neutralize_fences(found),
        tuple(map(neutralize, breaches)),
        made.cached,
        max_characters=ask.max_characters,
    )


def _write_entries(ask: FileQuestion, subject: QuestionSubject, attempt: Attempt) -> Sequence[LedgerEntry]:
    """Return the ledger entry, with the error prefix that the caller reads."""
    about = describe_file_question(ask.tool, ask.prompt, attempt.form)
    entry = attempt.make_entry("vision_proxy.tool_call", (subject.sha256,), about)
    if isinstance(attempt.outcome, Refusal):
        return (replace(entry, error=Failure(attempt.outcome, "ask").prefix, cost_usd=attempt.cost_usd),)
    return (replace(entry, cost_usd=0.0) if attempt.cached else entry,)
