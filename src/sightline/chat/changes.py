"""What `/vision-proxy` changes of the user's, for a door where it is the user who types: words, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sightline.commands.values import Change, Command, Consent, GroundingModels, UseModel
from sightline.grounding.families import added, adding, listing, removed
from sightline.look.grounds import entries_of
from sightline.look.upstreams import called, directory, receiver
from sightline.look.whole import named_seer
from sightline.model.ports import PolicyStore
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.passes.words import SENT
from sightline.seers.others import PROVIDERS
from sightline.settings import Settings

NOTHING_AGREED = "nothing has been agreed to: images stay on this machine"
NOT_SENT = "no image, crop, page or frame is sent to {} to be looked at"

Confirm = Callable[[str], bool]
"""Asks the user a question; where there is nobody to ask, the answer is no."""


@dataclass(frozen=True, slots=True)
class Done:
    lines: tuple[str, ...]
    warning: str = ""


def changed(
    command: Command, settings: Settings, policy: PolicyStore, confirm: Confirm = lambda question: False
) -> Done | Refusal:
    doings: Mapping[type[Command], Callable[[Any], Done | Refusal]] = {
        Consent: lambda asked: _consented(asked, settings, policy),
        UseModel: lambda use: _used(settings, _named(use.model)),
        Change: lambda change: set_all(settings, [(change.key, _text(change))]),
        GroundingModels: lambda asked: _grounding(asked, settings, confirm),
    }
    return doings[type(command)](command)


def set_all(settings: Settings, pairs: list[tuple[str, str]]) -> Done | Refusal:
    if locked := next((variable for name, _ in pairs if (variable := settings.lock(name))), ""):
        names = " and ".join(name for name, _ in pairs) + (" are" if len(pairs) > 1 else " is")
        return Refusal("not_permitted", f"{names} fixed by the environment", f"unset {locked} to change it")
    for name, text in pairs:
        if no := settings.save(name, text):
            return no
    return Done(tuple(f"{name} is {text}" for name, text in pairs))


def _used(settings: Settings, pairs: list[tuple[str, str]]) -> Done | Refusal:
    """Nobody who could not be asked: whoever names a provider that is not known would hear of it in every answer."""
    named = {**settings.values, **dict(pairs)}
    asked = replace(settings, values=named, sources={**settings.sources, **dict.fromkeys(dict(pairs), "file")})
    found = directory(settings)
    seer = found if isinstance(found, Refusal) else named_seer(asked, found)
    return seer if isinstance(seer, Refusal) else set_all(settings, pairs)


def _named(model: str) -> list[tuple[str, str]]:
    """A model as the settings name it; without a provider, it is the provider's only one."""
    provider, _, name = model.partition("/")
    return [("provider", provider), ("modelId", name or provider)]


def _text(change: Change) -> str:
    return {True: "true", False: "false"}[change.value] if isinstance(change.value, bool) else str(change.value)


def _consented(command: Consent, settings: Settings, policy: PolicyStore) -> Done | Refusal:
    if command.answer == "list":
        said = policy.read_consents().items()
        lines = tuple(sentence(settings, provider, given=given) for provider, given in said)
        return Done(lines or (NOTHING_AGREED,))
    provider = provider_named(settings, command.provider)
    if isinstance(provider, Refusal):
        return provider
    given = command.answer == "yes"
    if no := policy.set_consent(provider, given):
        meanwhile = "" if given else f"; until then only this process sends nothing to {provider}"
        return replace(no, what=f"the consent could not be written: {no.what}", remedy=f"{no.remedy}{meanwhile}")
    return Done((sentence(settings, provider, given=given),))


def provider_named(settings: Settings, name: str) -> str | Refusal:
    """Whoever is meant, by the name under which consent is asked for: an unknown address goes by its host."""
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


def sentence(settings: Settings, provider: str, *, given: bool) -> str:
    words = f"{SENT}, by the proxy with the end of their conversation (includeContext)" if given else NOT_SENT
    return f"{called(settings, provider)}: {words.format(provider)}"


def _grounding(command: GroundingModels, settings: Settings, confirm: Confirm) -> Done | Refusal:
    entries, done, warning = entries_of(settings), command.model, ""
    match command.action:
        case "list":
            rows = listing(entries)
            return Done(tuple(f"{name}: {form}" + (f" ({note})" if note else "") for name, form, note in rows))
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
    return Done((f"grounding-models {command.action} {done}".rstrip(),), warning)
