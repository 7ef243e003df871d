"""What `/vision-proxy …` does: answers for the person who typed it, and changes where that was the user.

A message may have been written by a model. Such a command can look and ask, but it changes nothing of the user's: the
answer is then the command that does it in a shell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sightline.api.analysis import describe
from sightline.api.results import Refused
from sightline.api.session import Door
from sightline.commands.grammar import format_shell, parse
from sightline.commands.table import NAME, SETTINGS
from sightline.commands.values import (
    Change,
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
from sightline.grounding.families import added, adding, listing, removed
from sightline.model.fence import one_line
from sightline.model.ports import Store
from sightline.model.records import Entry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.passes.words import SENT
from sightline.settings import Settings
from sightline.settings.upstreams import called, directory, receiver
from sightline.vision.prompts import entries_of
from sightline.vision.providers import find_named_receiver, named_seer
from sightline.vision.seers.litellm import PROVIDERS

NOTHING_AGREED = "nothing has been agreed to: images stay on this machine"
NOT_SENT = "no image, crop, page or frame is sent to {} to be looked at"

Confirm = Callable[[str], bool]
"""Asks the user a yes-or-no question. Where no user can be asked, the answer is no."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What to tell the user about a change, or a list of what is set."""

    lines: tuple[str, ...]
    warning: str = ""


def answer_text(text: str, door: Door, images: Sequence[str] = (), *, owner: bool = False) -> str:
    """Answer a command as it is typed into a chat."""
    command = parse(text)
    return f"{NAME} {command}" if isinstance(command, Refusal) else answer(command, door, images, owner=owner)


def answer(command: Command, door: Door, images: Sequence[str] = (), *, owner: bool = False) -> str:
    """Do what a command says and return the answer.

    `images` are those of the conversation, by their references; `owner`: it was the user who typed it.
    """
    if changes_settings(command) and not owner:
        return f"{NAME} that changes your settings, so it is done in a shell: {format_shell(command)}"
    if not isinstance(command, Describe | Redescribe):  # looks are noted with what they asked
        door.record.ledger.add_entry(door.scope, note_command(command))
    match command:
        case Describe():
            return _describe(command, door)
        case Redescribe():
            return _describe(command.as_describe(), door)
        case ListImages():
            lines: Sequence[str] = images or ["there is no image in this conversation"]
        case Status():
            assert door.settings is not None, "a door through which a seer can be asked has settings"
            lines = [*report_status(door.settings, door.record)]
        case _:
            lines = _change(command, door)
    return "\n".join(f"{NAME} {line}" for line in lines)


def note_command(command: Command) -> Entry:
    """Return the entry of the ledger for a command."""
    return Entry("vision_proxy.command", about={"command": " ".join(command.words)})


def _change(command: Command, door: Door) -> Sequence[str]:
    assert door.settings is not None, "a user has settings"
    done = change_settings(command, door.settings, door.record)
    if isinstance(done, Refusal):
        return [str(done)]
    return [*([f"warning: {done.warning}"] if done.warning else []), *done.lines]


def _describe(command: Describe, door: Door) -> str:
    found = describe(
        door,
        command.images,
        question=command.question,
        crops=dict(command.crops),
        model=command.model,
        save=command.save,
    )
    if isinstance(found, Refused):
        return f"{NAME} {found.message}"
    seen = ", ".join(one_line(each.filename or each.id) for each in found.images)
    by = called(door.settings, found.seer) if door.settings else found.seer
    return f"{NAME} {seen} by {by}\n\n{found.text}"


def report_status(settings: Settings, record: Store) -> Iterator[str]:
    """Tell which model looks, whether it may be asked, and what each setting is."""
    named = settings.named_seer
    yield f"looks: {'/'.join(filter(None, named)) if named else 'found by itself (seer ' + settings.seer + ')'}"
    provider = find_named_receiver(settings) if named else ""
    if provider:
        yield f"consent: {provider} {'yes' if record.policy.read_consents().get(provider) else 'no'}"
    for verb, key in SETTINGS.items():
        value = settings.shown(key.name)
        shown = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        yield f"{verb}: {shown} ({settings.sources[key.name]})"


def change_settings(
    command: Command, settings: Settings, record: Store, confirm: Confirm = lambda question: False
) -> Changed | Refusal:
    """Change what a command says, or list it. The command must be one that changes or lists settings or consents."""
    changes: Mapping[type[Command], Callable[[Any], Changed | Refusal]] = {
        Consent: lambda asked: _change_consent(asked, settings, record),
        UseModel: lambda use: _use_model(settings, use.model),
        Change: lambda change: _save(settings, {change.key: _write_value(change)}),
        GroundingModels: lambda asked: _change_grounding(asked, settings, confirm),
    }
    return changes[type(command)](command)


def _save(settings: Settings, values: Mapping[str, str]) -> Changed | Refusal:
    if locked := next((variable for name in values if (variable := settings.lock(name))), ""):
        names = " and ".join(values) + (" are" if len(values) > 1 else " is")
        return Refusal("not_permitted", f"{names} fixed by the environment", f"unset {locked} to change it")
    for name, text in values.items():
        if no := settings.save(name, text):
            return no
    return Changed(tuple(f"{name} is {text}" for name, text in values.items()))


def _use_model(settings: Settings, model: str) -> Changed | Refusal:
    """Save the model that looks, unless it could not be asked; without a provider, it is the provider's only one."""
    provider, _, name = model.partition("/")
    values = {"provider": provider, "modelId": name or provider}
    found = directory(settings)
    seer = found if isinstance(found, Refusal) else named_seer(settings.override(values, "file"), found)
    return seer if isinstance(seer, Refusal) else _save(settings, values)


def _write_value(change: Change) -> str:
    return {True: "true", False: "false"}[change.value] if isinstance(change.value, bool) else str(change.value)


def _change_consent(command: Consent, settings: Settings, record: Store) -> Changed | Refusal:
    if command.answer == "list":
        return Changed(list_consents(settings, record.policy.read_consents()))
    provider = find_provider(settings, command.provider)
    if isinstance(provider, Refusal):
        return provider
    given = command.answer == "yes"
    if no := record.policy.set_consent(provider, given):
        meanwhile = "" if given else f"; until then only this process sends nothing to {provider}"
        return replace(no, what=f"the consent could not be written: {no.what}", remedy=f"{no.remedy}{meanwhile}")
    return Changed((describe_consent(settings, provider, given=given),))


def find_provider(settings: Settings, name: str) -> str | Refusal:
    """Return the name under which consent is asked for; an empty name means the configured provider.

    An address that belongs to no known provider goes by its host.
    """
    found = directory(settings)
    if isinstance(found, Refusal):
        return found
    seer = named_seer(settings, found)
    if isinstance(seer, Refusal):
        return seer
    receivers = {name: receiver(upstream) for name, upstream in found.named.items()}
    known = {**receivers, **{host: host for host in (*receivers.values(), *PROVIDERS)}}
    if seer is not None:
        known[seer.provider] = known[""] = seer.provider
    if not name and seer is None:
        return Refusal("invalid_input", "no provider is named", "sightline consent yes PROVIDER")
    if name not in known:
        return Refusal("not_found", f"there is no provider {name!r}", f"known are {', '.join(sorted(receivers))}")
    return known[name]


def list_consents(settings: Settings, consents: Mapping[str, bool]) -> tuple[str, ...]:
    lines = (describe_consent(settings, provider, given=given) for provider, given in consents.items())
    return tuple(lines) or (NOTHING_AGREED,)


def describe_consent(settings: Settings, provider: str, *, given: bool) -> str:
    words = f"{SENT}, by the proxy with the end of their conversation (includeContext)" if given else NOT_SENT
    return f"{called(settings, provider)}: {words.format(provider)}"


def _change_grounding(command: GroundingModels, settings: Settings, confirm: Confirm) -> Changed | Refusal:
    entries, done, warning = entries_of(settings), command.model, ""
    match command.action:
        case "list":
            rows = listing(entries)
            return Changed(tuple(f"{name}: {form}" + (f" ({note})" if note else "") for name, form, note in rows))
        case "add":
            what = adding(command.model, command.format)
            if what.question and not command.yes and not confirm(what.question):
                return Refusal("not_permitted", what.question.rstrip("?"), "--yes lists it all the same")
            warning = what.warning
            entries, done = added(entries, command.model, what.format), f"{command.model}: {what.format}"
        case "remove":
            left = removed(entries, command.model)
            if left == entries:
                return Refusal(
                    "not_found",
                    f"{command.model} is not listed",
                    "`sightline vision-proxy grounding-models list` shows who is",
                )
            entries = left
        case "reset":
            entries = {}
    held: Json = {model: {"format": form} for model, form in entries.items()}
    if no := settings.save("groundingModels", json.dumps(held)):
        return no
    return Changed((f"grounding-models {command.action} {done}".rstrip(),), warning)
