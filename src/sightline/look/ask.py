"""`vision_analyze` and `video_analyze`: one question about one file, one envelope.

Checked in this order, so that the same call gets the same no everywhere: arguments, file, model, capability, provider.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from sightline.look import ask_schema
from sightline.look.ask_envelope import MOST_OF_A_VIDEO, Envelope, Unanswered
from sightline.look.ask_model import chosen
from sightline.look.ask_question import Call, answered
from sightline.look.ask_source import Fit, Taken, filmed, judged, taken
from sightline.look.ask_subject import Film, Method, Paper, Picture, Subject
from sightline.look.doors import Door
from sightline.look.loop import wait
from sightline.model.fence import sound
from sightline.model.image import Image
from sightline.model.scene import Json
from sightline.settings import Settings, load

DESCRIBE_VIDEO = "Describe this video in detail."
_SHAPE = 'write {"type": "json_schema", "schema": {"type": "object", …}}'


@dataclass(frozen=True, slots=True)
class Ask:
    """A call, and how to find out what it is about: the file is read when it is wanted."""

    call: Call
    subject: Callable[[], Subject | Unanswered]


def vision_analyze(door: Door, **given: object) -> Envelope | Unanswered:
    return _answered(of_image(door, **given))


def of_image(
    door: Door,
    *,
    prompt: object = None,
    file_path: object = None,
    file_url: object = None,
    file_base64: object = None,
    model: object = None,
    format: object = None,  # noqa: A002, the tool's own word
    fit: object = None,
) -> Ask | Unanswered:
    settings = door.settings or load()
    how = settings.values["visionFit"] if fit is None else fit
    schema = _schema(door, format)
    call = _call(door, settings, "vision_analyze", prompt, model)
    if isinstance(call, Unanswered):
        return call
    if isinstance(schema, Unanswered):
        return schema
    if how not in ("auto", "never"):
        return Unanswered("INVALID_INPUT", "fit is neither auto nor never")

    def subject() -> Subject | Unanswered:
        file = taken(door, file_path, file_url, file_base64)
        return file if isinstance(file, Unanswered) else _seen(door, file, how)

    return Ask(replace(call, schema=schema), subject)


def _seen(door: Door, file: Taken, fit: Fit) -> Subject | Unanswered:
    match judged(door, file, fit):
        case Image() as image:
            return Picture(door, image, fit)
        case Taken() as paper:
            return Paper(paper, fit)
        case Unanswered() as no:
            return no


def video_analyze(door: Door, **given: object) -> Envelope | Unanswered:
    return _answered(of_video(door, **given))


def of_video(
    door: Door,
    *,
    file_url: object = None,
    file_path: object = None,
    prompt: object = None,
    model: object = None,
    method: object = None,
) -> Ask | Unanswered:
    call = _call(door, door.settings or load(), "video_analyze", DESCRIBE_VIDEO if prompt is None else prompt, model)
    if isinstance(call, Unanswered):
        return call
    if method not in (None, "auto", "native", "frames"):
        return Unanswered("INVALID_INPUT", "method is none of auto, native and frames")
    how: Method = method or "auto"

    def subject() -> Subject | Unanswered:
        file = taken(door, file_path, file_url)
        film = file if isinstance(file, Unanswered) else filmed(file)
        return film if isinstance(film, Unanswered) else Film(film, how)

    return Ask(replace(call, most=MOST_OF_A_VIDEO), subject)


def awaited(ask: Ask | Unanswered) -> str:
    """The provider that only the user's consent keeps from being asked; empty: there is none, or more is missing."""
    if isinstance(ask, Unanswered):
        return ""
    who = wait(chosen(ask.call.settings, ask.call.door.record, ask.call.model, agreed=True))
    if isinstance(who, Unanswered) or not who.receiver:
        return ""
    subject = ask.subject()
    return "" if isinstance(subject, Unanswered) or subject.beyond(who) is not None else who.receiver


def _answered(ask: Ask | Unanswered) -> Envelope | Unanswered:
    subject = ask if isinstance(ask, Unanswered) else ask.subject()
    if isinstance(ask, Unanswered) or isinstance(subject, Unanswered):
        return cast("Unanswered", subject)
    return answered(ask.call, subject)


def _call(door: Door, settings: Settings, tool: str, prompt: object, model: object) -> Call | Unanswered:
    if not isinstance(prompt, str) or not prompt.strip():
        return Unanswered("INVALID_INPUT", "there is no prompt (say what you want to know)")
    if not isinstance(model, str | None):
        return Unanswered("INVALID_INPUT", "the model is not text (write PROVIDER/MODEL)")
    return Call(door, settings, tool, sound(prompt), model if model is None else sound(model))


def _schema(door: Door, given: object) -> dict[str, Json] | Unanswered | None:
    match given:
        case None:
            return None
        case {"type": "json_schema", "schema": {"type": "object"} as schema, **rest} if not rest:
            fault = ask_schema.unusable(door.workers, schema) if _is_json(schema) else "it is no JSON"
            return _no_schema(fault) if fault else cast("dict[str, Json]", schema)
        case {"type": "json_schema", "schema": dict()}:
            return _no_schema("the type of its top level is not object")
        case _:
            return _no_schema("it has another shape")


def _no_schema(fault: str) -> Unanswered:
    return Unanswered("INVALID_INPUT", f"the format cannot be used: {fault} ({_SHAPE})")


def _is_json(schema: object) -> bool:
    try:
        json.dumps(schema, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):  # half a letter is a ValueError as well
        return False
    return True
