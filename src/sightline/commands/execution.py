"""Execute `/vision-proxy …` commands, and write their answers.

A model may have written the message. So a command in a chat can list and describe, but can't change settings or
consents: its answer is then the shell command that makes the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sightline.api.analysis import describe
from sightline.api.failure import Failure
from sightline.api.session import ToolContext
from sightline.commands import (
    ANSWER_PREFIX,
    SETTINGS,
    ChangeSetting,
    Command,
    Consent,
    Describe,
    GroundingModels,
    ListImages,
    Redescribe,
    Status,
    UseModel,
    changes_settings,
)
from sightline.commands.grammar import format_shell, parse
from sightline.grounding import add_entry, check_new_entry, list_grounding_models, remove_entry
from sightline.model.fence import to_one_line
from sightline.model.ports import Store
from sightline.model.records import LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.passes.wording import CONSENT_TEXT
from sightline.settings import KEYS, Settings
from sightline.settings.upstreams import build_directory, format_provider, get_consent_name
from sightline.vision.prompts import read_grounding_settings
from sightline.vision.providers import find_configured_model, find_image_receiver
from sightline.vision.seers.litellm_client import LITELLM_PROVIDERS

NOTHING_AGREED = (
    "no consents: the proxy passes images on to the provider that your agent uses, and may ask a vision model of that"
    " provider to describe them; no other provider gets an image"
)
_OVERRIDING = "auxiliary.vision.model"
NOT_SENT = "no image, crop, page or frame is sent to {} to be described"

Confirm = Callable[[str], bool]
"""Ask the user a yes-or-no question. Where no user can be asked, the answer is no."""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """What to tell the user about a change, or a list of the current values."""

    lines: tuple[str, ...]
    warning: str = ""


def answer_text(text: str, context: ToolContext, images: Sequence[str] = (), *, owner: bool = False) -> str:
    """Answer a command that is typed into a chat."""
    command = parse(text)
    return (
        f"{ANSWER_PREFIX} {command}" if isinstance(command, Refusal) else answer(command, context, images, owner=owner)
    )


def answer(command: Command, context: ToolContext, images: Sequence[str] = (), *, owner: bool = False) -> str:
    """Execute a command, and return the answer.

    `images` are the references of the images in the conversation; `owner`: the user typed the command.
    """
    if changes_settings(command) and not owner:
        return f"{ANSWER_PREFIX} this changes your settings, so run it in a shell: {format_shell(command)}"
    if not isinstance(command, Describe | Redescribe):  # these add their own ledger entry
        context.record.ledger.add_entry(context.scope, note_command(command))
    match command:
        case Describe():
            return _run_describe(command, context)
        case Redescribe():
            return _run_describe(command.as_describe(), context)
        case ListImages():
            lines: Sequence[str] = images or ["there is no image in this conversation"]
        case Status():
            assert context.settings is not None, "the context of a user has settings"
            lines = [*report_status(context.settings, context.record)]
        case _:
            lines = _run_change(command, context)
    return "\n".join(f"{ANSWER_PREFIX} {line}" for line in lines)


def note_command(command: Command) -> LedgerEntry:
    """Return the entry of the ledger for a command."""
    return LedgerEntry("vision_proxy.command", about={"command": " ".join(command.words)})


def _run_change(command: Command, context: ToolContext) -> Sequence[str]:
    assert context.settings is not None, "the context of a user has settings"
    result = change_settings(command, context.settings, context.record)
    if isinstance(result, Refusal):
        return [str(result)]
    return [*([f"warning: {result.warning}"] if result.warning else []), *result.lines]


def _run_describe(command: Describe, context: ToolContext) -> str:
    analysis = describe(context, command.images, **command.options)
    if isinstance(analysis, Failure):
        return f"{ANSWER_PREFIX} {analysis.message}"
    names = ", ".join(to_one_line(each.filename or each.id) for each in analysis.members)
    by = format_provider(context.settings, analysis.seer) if context.settings else analysis.seer
    return f"{ANSWER_PREFIX} {names} by {by}\n\n{analysis.text}"


def report_status(settings: Settings, record: Store) -> Iterator[str]:
    """Report the vision model, its consent, and each setting with its source."""
    named = settings.named_seer
    automatic = f"chosen automatically (seer {settings.seer})"
    yield f"vision model: {'/'.join(filter(None, named)) if named else automatic}"
    provider = find_image_receiver(settings) if named else ""
    if provider:
        yield f"consent: {provider} {'yes' if record.policy.read_consents().get(provider) else 'no'}"
    for verb, key in SETTINGS.items():
        value = settings.mask_value(key.name)
        shown = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        yield f"{verb}: {shown} ({settings.sources[key.name]})"


def change_settings(
    command: Command, settings: Settings, record: Store, confirm: Confirm = lambda question: False
) -> ChangeResult | Refusal:
    """Change or list settings or consents. The command must be one that does so."""
    changes: Mapping[type[Command], Callable[[Any], ChangeResult | Refusal]] = {
        Consent: lambda request: _change_consent(request, settings, record),
        UseModel: lambda use: _use_model(settings, use.model),
        ChangeSetting: lambda change: _save(settings, {change.key: _write_value(change)}),
        GroundingModels: lambda request: _change_grounding(request, settings, confirm),
    }
    return changes[type(command)](command)


def _save(settings: Settings, values: Mapping[str, str]) -> ChangeResult | Refusal:
    if locked := next((variable for name in values if (variable := settings.find_lock(name))), ""):
        names = " and ".join(values) + (" are" if len(values) > 1 else " is")
        return Refusal("not_permitted", f"{names} set by the environment", f"unset {locked} to change it")
    for name, text in values.items():
        if refusal := settings.save(name, text):
            return refusal
    notes = {key.name: key.restart_note for key in KEYS}
    return ChangeResult(tuple(f"{name} is {text}{notes[name]}" for name, text in values.items()))


def check_model(settings: Settings, model: str) -> Refusal | None:
    """Return why a vision model can't be used."""
    directory = build_directory(settings)
    if isinstance(directory, Refusal):
        return directory
    values: dict[str, Json] = {"seer": model, _OVERRIDING: ""}
    seer = find_configured_model(settings.override(values, "file"), directory)
    return seer if isinstance(seer, Refusal) else None


def _use_model(settings: Settings, model: str) -> ChangeResult | Refusal:
    """Save the vision model, unless it can't be used."""
    saved = check_model(settings, model) or _save(settings, {"seer": model})
    return saved if isinstance(saved, Refusal) else replace(saved, warning=settings.overriding_model)


def _write_value(change: ChangeSetting) -> str:
    return {True: "true", False: "false"}[change.value] if isinstance(change.value, bool) else str(change.value)


def _change_consent(command: Consent, settings: Settings, record: Store) -> ChangeResult | Refusal:
    if command.answer == "list":
        return ChangeResult(list_consents(settings, record.policy.read_consents()))
    provider = find_provider(settings, command.provider)
    if isinstance(provider, Refusal):
        return provider
    given = command.answer == "yes"
    if refusal := record.policy.set_consent(provider, given):
        meanwhile = "" if given else f"; until then, only this process stops sending images to {provider}"
        return replace(
            refusal, what=f"the consent could not be written: {refusal.what}", remedy=f"{refusal.remedy}{meanwhile}"
        )
    return ChangeResult((describe_consent(settings, provider, given=given),))


def find_provider(settings: Settings, name: str) -> str | Refusal:
    """Return the name under which a provider's consent is stored; an empty name means the configured provider.

    A provider that has no name is known by the host of its address.
    """
    directory = build_directory(settings)
    if isinstance(directory, Refusal):
        return directory
    seer = find_configured_model(settings, directory)
    if isinstance(seer, Refusal):
        return seer
    receivers = {name: get_consent_name(upstream) for name, upstream in directory.by_name.items()}
    known = {**receivers, **{host: host for host in (*receivers.values(), *LITELLM_PROVIDERS)}}
    if seer is not None:
        known[seer.provider] = known[""] = seer.provider
    if not name and seer is None:
        return Refusal("invalid_input", "no provider is named", "run: sightline consent yes PROVIDER")
    if name not in known:
        return Refusal("not_found", f"there is no provider {name!r}", f"use one of {', '.join(sorted(receivers))}")
    return known[name]


def list_consents(settings: Settings, consents: Mapping[str, bool]) -> tuple[str, ...]:
    lines = (describe_consent(settings, provider, given=given) for provider, given in consents.items())
    return tuple(lines) or (NOTHING_AGREED,)


def describe_consent(settings: Settings, provider: str, *, given: bool) -> str:
    text = (
        f"{CONSENT_TEXT}; the proxy and ACP also send the end of the conversation (includeContext)"
        if given
        else NOT_SENT
    )
    return f"{format_provider(settings, provider)}: {text.format(provider)}"


def _change_grounding(command: GroundingModels, settings: Settings, confirm: Confirm) -> ChangeResult | Refusal:
    entries, detail, warning = read_grounding_settings(settings), command.model, ""
    match command.action:
        case "list":
            rows = list_grounding_models(entries)
            return ChangeResult(tuple(f"{name}: {form}" + (f" ({note})" if note else "") for name, form, note in rows))
        case "add":
            advice = check_new_entry(command.model, command.format)
            if advice.question and not command.yes and not confirm(advice.question):
                what = advice.question.removesuffix("; list it anyway?")
                return Refusal("not_permitted", what, "add --yes to list it anyway")
            warning = advice.warning
            entries, detail = add_entry(entries, command.model, advice.format), f"{command.model}: {advice.format}"
        case "remove":
            left = remove_entry(entries, command.model)
            if left == entries:
                return Refusal(
                    "not_found",
                    f"{command.model} is not listed",
                    "run `sightline vision-proxy grounding-models list` to see which are",
                )
            entries = left
        case "reset":
            entries = {}
    saved: Json = {model: {"format": form} for model, form in entries.items()}
    if refusal := settings.save("groundingModels", json.dumps(saved)):
        return refusal
    return ChangeResult((f"grounding-models {command.action} {detail}".rstrip(),), warning)
