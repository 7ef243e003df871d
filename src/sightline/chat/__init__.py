"""What `/vision-proxy …` answers in a conversation: words for a person who typed it among other words.

Whoever wrote the message may be a model: then one can look and ask, but nothing of the user's is changed; for that
the answer is the command that does it in a shell. Where it was the user, it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sightline.chat.changes import changed
from sightline.commands import NAME, parse, shell
from sightline.commands.values import SETTINGS, Command, Describe, ListImages, Redescribe, Status, alters
from sightline.look.analyze_image import describe
from sightline.look.analyze_result import Failed
from sightline.look.analyze_seer import receiver_of
from sightline.look.doors import Door
from sightline.look.upstreams import called
from sightline.model.fence import one_line
from sightline.model.ports import PolicyStore
from sightline.model.records import Entry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import Settings

__all__ = ["answered", "status"]


def answered(text: str, door: Door, images: Sequence[str] = (), *, owner: bool = False) -> str:
    """`images` are those of the conversation, by their references; `owner`: it was the user who typed it."""
    command = parse(text)
    if isinstance(command, Refusal):
        return f"{NAME} {command}"
    if alters(command) and not owner:
        return f"{NAME} that changes your settings, so it is done in a shell: {shell(command)}"
    if not isinstance(command, Describe | Redescribe):  # those note what they asked
        door.record.ledger.add_entry(
            door.scope, Entry("vision_proxy.command", about={"command": " ".join(command.words)})
        )
    return _ANSWERS.get(type(command), _settled)(command, door, images)


def _settled(command: Command, door: Door, images: Sequence[str]) -> str:
    assert door.settings is not None, "a user has some"
    done = changed(command, door.settings, door.record.policy)
    if isinstance(done, Refusal):
        return f"{NAME} {done}"
    warning = [f"warning: {done.warning}"] if done.warning else []
    return "\n".join(f"{NAME} {line}" for line in (*warning, *done.lines))


def _described(command: Describe, door: Door, images: Sequence[str]) -> str:
    found = describe(
        door,
        command.images,
        question=command.question,
        crops=dict(command.crops),
        model=command.model,
        save=command.save,
    )
    if isinstance(found, Failed):
        return f"{NAME} {found.message}"
    seen = ", ".join(one_line(each.filename or each.id) for each in found.images)
    by = called(door.settings, found.seer) if door.settings else found.seer
    return f"{NAME} {seen} by {by}\n\n{found.text}"


def _redescribed(command: Redescribe, door: Door, images: Sequence[str]) -> str:
    return _described(Describe((command.image,), model=command.model, save=True), door, images)


def _listed(command: ListImages, door: Door, images: Sequence[str]) -> str:
    return "\n".join(f"{NAME} {each}" for each in images) or f"{NAME} there is no image in this conversation"


def _state(command: Status, door: Door, images: Sequence[str]) -> str:
    assert door.settings is not None, "a door through which somebody can be asked has them"
    return "\n".join(f"{NAME} {line}" for line in status(door.settings, door.record.policy))


_ANSWERS: Mapping[type[Command], Callable[[Any, Door, Sequence[str]], str]] = {
    Describe: _described,
    Redescribe: _redescribed,
    ListImages: _listed,
    Status: _state,
}


def status(settings: Settings, policy: PolicyStore) -> Iterator[str]:
    """Who looks, who may be asked, and what is set by whom."""
    named = settings.named_seer
    yield f"looks: {'/'.join(filter(None, named)) if named else 'found by itself (seer ' + settings.seer + ')'}"
    provider = receiver_of(settings, "") if named else ""
    if provider:
        yield f"consent: {provider} {'yes' if policy.read_consents().get(provider) else 'no'}"
    for verb, key in SETTINGS.items():
        yield f"{verb}: {_switch(settings.shown(key.name))} ({settings.sources[key.name]})"


def _switch(value: Json) -> str:
    """A setting's value as its verb takes it: a flag is on or off."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
