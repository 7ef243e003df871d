"""`vision_analyze` and `video_analyze`: one question about one file, one envelope.

Checked in this order, so that the same call gets the same refusal everywhere: arguments, file, model, capability,
provider.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

from sightline.api.given_file import MIB, File, check_size, read_file, refuse_kind
from sightline.api.results import MOST_OF_A_VIDEO, MOST_OF_AN_IMAGE, Envelope, Refused
from sightline.api.session import NATIVE, Door
from sightline.model.asking import Document, Usage
from sightline.model.fence import neutral, sound
from sightline.model.image import Image, base64_length
from sightline.model.ports import Seer
from sightline.model.records import Entry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.passes.fit import target
from sightline.passes.words import fallen
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.fit import fitted, task
from sightline.pixels.probe import PDF
from sightline.pixels.worker import Workers
from sightline.runtime import shared_runtime
from sightline.settings import Settings, load
from sightline.vision import schema as json_schema
from sightline.vision.bridge import wait
from sightline.vision.capabilities import provider_of, supports_pdf, supports_video, supports_vision
from sightline.vision.chooser import Candidate
from sightline.vision.prompts import FILE_INSTRUCTIONS, Prompt
from sightline.vision.providers import OURS
from sightline.vision.results import Attempt, CacheRule, VisionImage, VisionRequest, VisionResult
from sightline.vision.service import advise_user

Fit = Literal["auto", "never"]
Method = Literal["auto", "native", "frames"]
Ability = Literal["vision", "pdf", "video"]
DESCRIBE_VIDEO = "Describe this video in detail."
_IMAGE_BYTES = 5 * MIB  # of an image that is sent as it is
_SHAPE = 'write {"type": "json_schema", "schema": {"type": "object", …}}'
_TAKEN = "give a PNG, JPEG, GIF, WEBP or PDF"
_FILMED = "give an MP4, MOV or WebM"
_PAGES = "nothing here draws its pages: name a model that takes PDFs, as gemini/gemini-2.5-pro does"
_SAY = "the setting `models` says what is not known: {0}"
_FILM = "name a model that takes videos themselves"
_NOBODY = Refusal(
    "unavailable",
    "no model is named, and the setting `seer` is off",
    "name one as PROVIDER/MODEL, or set seer to auto",
    stage="model",
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about: an image, or a PDF or video as it is; and which candidates take it."""

    sha256: str
    admit: Callable[[Candidate], Refusal | None]
    image: Image | None = None
    document: Document | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A call whose arguments make sense, and how to read the file: it is read when it is wanted."""

    door: Door
    settings: Settings
    tool: str
    prompt: str
    model: str | None
    read: Callable[[], Subject | Refusal]
    schema: dict[str, Json] | None = None
    fit: Fit = "auto"
    most: int = MOST_OF_AN_IMAGE


def vision_analyze(door: Door, **given: object) -> Envelope | Refused:
    return _answer(check_image_call(door, **given))


def video_analyze(door: Door, **given: object) -> Envelope | Refused:
    return _answer(check_video_call(door, **given))


def check_image_call(
    door: Door,
    *,
    prompt: object = None,
    file_path: object = None,
    file_url: object = None,
    file_base64: object = None,
    model: object = None,
    format: object = None,  # noqa: A002, the tool's own word
    fit: object = None,
) -> Ask | Refusal:
    settings = door.settings or load()
    how = settings.vision_fit if fit is None else fit
    schema = _read_schema(door, format)

    def read() -> Subject | Refusal:
        file = read_file(door, file_path, file_url, file_base64)
        return file if isinstance(file, Refusal) else _open(door, settings, file, cast("Fit", how))

    ask = _check(door, settings, "vision_analyze", prompt, model, read)
    if isinstance(ask, Refusal) or isinstance(schema, Refusal):
        return ask if isinstance(ask, Refusal) else cast("Refusal", schema)
    if how not in ("auto", "never"):
        return Refusal("invalid_input", 'fit must be "auto" or "never"', "leave it out to use the setting visionFit")
    return replace(ask, schema=schema, fit=how)


def check_video_call(
    door: Door,
    *,
    file_url: object = None,
    file_path: object = None,
    prompt: object = None,
    model: object = None,
    method: object = None,
) -> Ask | Refusal:
    settings = door.settings or load()

    def read() -> Subject | Refusal:
        file = read_file(door, file_path, file_url)
        film = file if isinstance(file, Refusal) else _check_video(file)
        if isinstance(film, Refusal):
            return film
        document = Document(film.kind.mime, film.data, name=film.name)
        return Subject(
            film.sha256, partial(_admit_video, settings, cast("Method", method or "auto")), document=document
        )

    asked = DESCRIBE_VIDEO if prompt is None else prompt
    ask = _check(door, settings, "video_analyze", asked, model, read)
    if isinstance(ask, Refusal):
        return ask
    if method not in (None, "auto", "native", "frames"):
        return Refusal("invalid_input", 'method must be "auto", "native" or "frames"', "leave it out for auto")
    return replace(ask, most=MOST_OF_A_VIDEO)


def _check(
    door: Door, settings: Settings, tool: str, prompt: object, model: object, read: Callable[[], Subject | Refusal]
) -> Ask | Refusal:
    if not isinstance(prompt, str) or not prompt.strip():
        return Refusal("invalid_input", "there is no prompt", "say what you want to know")
    if not isinstance(model, str | None):
        return Refusal("invalid_input", "the model is not text", "write PROVIDER/MODEL")
    return Ask(door, settings, tool, sound(prompt), model if model is None else sound(model), read)


def _read_schema(door: Door, given: object) -> dict[str, Json] | Refusal | None:
    match given:
        case None:
            return None
        case {"type": "json_schema", "schema": {"type": "object"} as schema, **rest} if not rest:
            fault = json_schema.unusable(door.workers, schema) if _is_json(schema) else "it is no JSON"
            return _refuse_schema(fault) if fault else cast("dict[str, Json]", schema)
        case {"type": "json_schema", "schema": dict()}:
            return _refuse_schema("the type of its top level is not object")
        case _:
            return _refuse_schema("it has another shape")


def _refuse_schema(fault: str) -> Refusal:
    return Refusal("invalid_input", f"the format cannot be used: {fault}", _SHAPE)


def _is_json(schema: object) -> bool:
    try:
        json.dumps(schema, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):  # a lone surrogate is a ValueError as well
        return False
    return True


def find_unagreed(ask: Ask | Refusal) -> str:
    """Return the provider that only the user's consent keeps from being asked; empty: none, or more is missing."""
    if isinstance(ask, Refusal):
        return ""
    runtime = shared_runtime(ask.settings, ask.door.record)
    found = None if isinstance(runtime, Refusal) else runtime.chooser.find_unagreed(ask.model, "none")
    if found is None:
        return ""
    candidate, receiver = found
    subject = ask.read()
    return "" if isinstance(subject, Refusal) or subject.admit(candidate) else receiver


def _answer(ask: Ask | Refusal) -> Envelope | Refused:
    subject = ask if isinstance(ask, Refusal) else ask.read()
    if isinstance(ask, Refusal) or isinstance(subject, Refusal):
        return Refused(cast("Refusal", subject), "ask")
    runtime = shared_runtime(ask.settings, ask.door.record)
    if isinstance(runtime, Refusal):
        return Refused(replace(runtime, stage="model"), "ask")
    fitter = _Fitter(ask.door.workers, subject.image, ask.fit)
    made = wait(runtime.vision.look(_build_request(ask, subject, fitter)))
    return Refused(made, "ask") if isinstance(made, Refusal) else _seal(ask, made, fitted_image=fitter.changed)


def _build_request(ask: Ask, subject: Subject, fitter: _Fitter) -> VisionRequest:
    remembers = ask.settings.vision_cache
    image, document = subject.image, subject.document
    return VisionRequest(
        scope=ask.door.scope,
        prompt=Prompt(FILE_INSTRUCTIONS, ask.prompt, schema=ask.schema, documents=(document,) if document else ()),
        fit=fitter,
        fit_first=True,
        identity=[ask.tool, subject.sha256, cast("Json", ask.schema)],
        entries=partial(_write_entries, ask, subject),
        nobody=_NOBODY,
        images=(VisionImage(image),) if image else (),
        sha256s=(subject.sha256,),
        model=ask.model,
        check="none",
        first_only=True,
        admit=subject.admit,
        grounded=False,
        cache=CacheRule(
            version=(lambda form: _name_question(ask, fitter.sent)) if remembers else None, shared=remembers
        ),
        fault=partial(_find_fault, ask.schema) if ask.schema is not None else None,
        advise=partial(advise_user, settings=ask.settings),
        since=time.time(),
    )


def _name_question(ask: Ask, sent: Sequence[Image]) -> str:
    """Return the name under which an answer is remembered like a description: with its image it is forgotten."""
    asked = [ask.tool, ask.prompt, ask.schema, [each.sha256 for each in sent]]
    return f"ask:{hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()}"


class _Fitter:
    """Makes the image of a call fit the seer that is asked, and never more than 5 MiB of it."""

    def __init__(self, workers: Workers, image: Image | None, fit: Fit) -> None:
        self._workers = workers
        self._image = image
        self._fit = fit
        self._made: dict[str, Sequence[Image] | Refusal] = {}  # by the seer

    async def __call__(self, seer: Seer, form: str) -> Sequence[Image] | Refusal:
        """Return the image as the seer takes it: the very same where that will do."""
        if seer.name not in self._made:
            made = await self._fit_image(self._image, seer) if self._image else None
            self._made[seer.name] = made if isinstance(made, Refusal) else [made] if made else []
        return self._made[seer.name]

    @property
    def sent(self) -> Sequence[Image]:
        """What was made to fit last."""
        made = next(reversed(self._made.values()), ())
        return () if isinstance(made, Refusal) else made

    @property
    def changed(self) -> bool:
        return any(each is not self._image for each in self.sent)

    async def _fit_image(self, image: Image, seer: Seer) -> Image | Refusal:
        picture = within_bounds(image.data)
        if isinstance(picture, Refusal) or self._fit == "never":
            return picture if isinstance(picture, Refusal) else image
        goal = target(seer.limits)
        light = len(image.data) <= _IMAGE_BYTES and not image.turned
        if light and goal.admits(picture, base64_length(len(image.data))):
            return image
        most = _IMAGE_BYTES // 3 * 4
        tight = replace(goal, encoded_bytes=min(goal.encoded_bytes or most, most), plain=True)
        made = await self._workers.run("fit", image.data, task(tight))
        return made if isinstance(made, Refusal) else fitted(made.facts, made.data).parts[0].image


def _find_fault(shape: Mapping[str, Json], text: str) -> str:
    """Return why an answer is not the JSON that was asked for; other breaches of the schema are told beside it."""
    found = json_schema.object_in(text)
    if found is None:
        return "it is no JSON object"
    absent = json_schema.missing(found, shape)
    return f"it lacks {', '.join(absent)[:200]}" if absent else ""


def _seal(ask: Ask, made: VisionResult, *, fitted_image: bool) -> Envelope:
    text, candidate = made.answer.text, made.candidate
    found = json_schema.object_in(text) if ask.schema is not None else None
    breaches = json_schema.errors(ask.door.workers, found, ask.schema) if found is not None else []
    assert candidate is not None
    named = candidate.named or OURS
    return Envelope(
        neutral(text + (f"\n\n{fallen(made.instead, made.seer)}" if made.instead else "")),
        named.model,
        named.upstream.name,
        Usage(0, 0) if made.cached else made.answer.usage,
        0.0 if made.cached else made.cost_usd,
        None if found is None else json_schema.harmless(found),
        tuple(map(neutral, breaches)),
        made.cached,
        fitted_image,
        ask.most,
    )


def _write_entries(ask: Ask, subject: Subject, attempt: Attempt) -> Sequence[Entry]:
    """Return the entry of the ledger; its error is the word that the caller reads."""
    if not attempt.fitted:
        return ()
    about: Mapping[str, Json] = {"tool": ask.tool, "question": ask.prompt, "crop_form": "none"}
    entry = attempt.as_entry("vision_proxy.tool_call", (subject.sha256,), about)
    if isinstance(attempt.outcome, Refusal):
        return (replace(entry, error=Refused(attempt.outcome, "ask").prefix, cost_usd=attempt.cost_usd),)
    return (replace(entry, cost_usd=0.0) if attempt.cached else entry,)


def _open(door: Door, settings: Settings, file: File, fit: Fit) -> Subject | Refusal:
    """Return an image with all its pixels, or a PDF as it is."""
    if file.kind is PDF:
        paper = check_size(file)
        if isinstance(paper, Refusal):
            return paper
        document = Document(file.kind.mime, file.data, name=file.name)
        return Subject(file.sha256, partial(_admit_pdf, settings, fit), document=document)
    if file.kind.family != "bitmap":
        return refuse_kind(f"this is {file.kind.name}", _TAKEN)
    picture = within_bounds(file.data)
    no = picture if isinstance(picture, Refusal) else _check_unfitted(file) if fit == "never" else None
    checked = no or door.workers.ask("check", file.data)
    if isinstance(picture, Refusal) or isinstance(checked, Refusal):
        return replace(cast("Refusal", checked), stage="file")
    image = Image(file.sha256, picture.mime, picture.size, file.data, picture.turned)
    return Subject(file.sha256, partial(_admit_image, settings), image=image)


def _check_unfitted(file: File) -> Refusal | None:
    """Return why an image cannot be sent as it is."""
    if file.kind.mime not in NATIVE:
        return refuse_kind(f"this is {file.kind.name}", "with fit auto it is converted")
    if len(file.data) > _IMAGE_BYTES:
        return Refusal("too_large", "the image is larger than 5 MiB", "with fit auto it is made smaller")
    return None


def _check_video(file: File) -> File | Refusal:
    if file.kind.family != "video":
        return refuse_kind(f"this is {file.kind.name}, not a video", _FILMED)
    return check_size(file)


_SUPPORTS: Mapping[Ability, Callable[[str, str, Settings], bool]] = {
    "vision": supports_vision,
    "pdf": supports_pdf,
    "video": supports_video,
}


def _takes(ability: Ability, candidate: Candidate, settings: Settings) -> bool:
    """Return whether a candidate is known to take such files. The reader, and what was found here, take images."""
    named = candidate.named
    if named is None or named is OURS or candidate.found:
        return ability == "vision"
    return _SUPPORTS[ability](named.model, provider_of(named.upstream, settings), settings)


def _refuse_ability(ability: Ability, what: str, remedy: str) -> Refusal:
    return Refusal("unsupported_type", what, remedy, stage=ability)


def _admit_image(settings: Settings, candidate: Candidate) -> Refusal | None:
    if candidate.named is None or _takes("vision", candidate, settings):
        return None
    return _refuse_ability("vision", f"{candidate.shown} is not known to see images", _SAY.format("vision"))


def _admit_pdf(settings: Settings, fit: Fit, candidate: Candidate) -> Refusal | None:
    if candidate.named is None or _takes("pdf", candidate, settings):
        return None
    why = _PAGES if fit == "auto" and _takes("vision", candidate, settings) else _SAY.format("pdf")
    return _refuse_ability("pdf", f"{candidate.shown} is not known to take PDFs", why)


def _admit_video(settings: Settings, method: Method, candidate: Candidate) -> Refusal | None:
    if candidate.named is None:
        return None
    if candidate.named is OURS and candidate.refusal:
        return _refuse_ability("video", f"{candidate.refusal}, and takes no videos: {_FILM}", "")
    video = _takes("video", candidate, settings)
    if method == "frames" or (method == "auto" and not video and _takes("vision", candidate, settings)):
        return _refuse_ability("video", f"nothing here makes stills of a video for {candidate.shown}", _FILM)
    if not video:
        return _refuse_ability("video", f"{candidate.shown} is not known to take videos", _SAY.format("video"))
    return None
