"""`sightline vision-proxy`: the commands that are typed into a chat as /vision-proxy, here with all their powers."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sightline.cli.describe import described
from sightline.cli.memory import opened
from sightline.cli.terminal import NAME, confirmed
from sightline.cli.verb import in_shell, refused, say, warn
from sightline.model.fence import plain
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.commands.values import Change, Command, Consent, GroundingModels
    from sightline.model.scene import Json

EXAMPLE = """  sightline vision-proxy status
  sightline vision-proxy mode always
  sightline vision-proxy describe shot.png --question "What is the error?" --crop 0:r=top
  sightline vision-proxy grounding-models add ollama/my-model --format qwen_pixels"""


def arguments(parser: ArgumentParser) -> None:
    parser.description = "The commands of /vision-proxy, as they are typed into a chat; without any: status."
    parser.add_argument("words", nargs=REMAINDER, metavar="VERB ...", help="describe, redescribe, consent, mode, …")


def run(args: Namespace) -> int:
    from sightline.commands import parse_words

    command = parse_words(args.words)
    if isinstance(command, Refusal):
        return refused(in_shell(command, "sightline vision-proxy"))
    code = _done(command)
    if code == 0 and command.words[0] not in _NOTED:
        _note(command)
    return code


_LISTED = "`sightline vision-proxy grounding-models list` shows who is"
_NOTED = ("describe", "redescribe")  # with what they asked, by whoever looks


def _note(command: Command) -> None:
    from sightline.model.entry import Entry

    with opened(load()) as record:
        said = " ".join(command.words)
        record.note(record.scope_of(""), Entry("vision_proxy.command", about={"command": said}))


def _done(command: Command) -> int:
    from sightline.commands import values

    doings: Mapping[type[Command], Callable[[Any], int]] = {
        values.Describe: lambda asked: described(asked, as_json=False),
        values.Redescribe: lambda asked: described(
            values.Describe((asked.image,), model=asked.model, save=True), as_json=False
        ),
        values.Consent: _consent,
        values.UseModel: lambda use: _set(_named(use.model)),
        values.Change: lambda change: _set([(change.key, _text(change))]),
        values.GroundingModels: _grounding,
        values.ListImages: lambda _: _told(_images),
        values.Status: lambda _: _told(_status),
    }
    return doings[type(command)](command)


def _named(model: str) -> list[tuple[str, str]]:
    """A model as the settings name it; without a provider, it is the provider's only one."""
    provider, _, name = model.partition("/")
    return [("provider", provider), ("modelId", name or provider)]


def _consent(command: Consent) -> int:
    from sightline.cli import consent

    return consent.run(Namespace(action=command.answer, provider=command.provider, json=False))


def _text(change: Change) -> str:
    return {True: "true", False: "false"}[change.value] if isinstance(change.value, bool) else str(change.value)


def _settings() -> Settings:
    settings = load()
    warn(settings.warnings)
    return settings


def _set(pairs: list[tuple[str, str]]) -> int:
    settings = _settings()
    if locked := next((variable for name, _ in pairs if (variable := settings.lock(name))), ""):
        names = " and ".join(name for name, _ in pairs) + (" are" if len(pairs) > 1 else " is")
        return refused(Refusal("not_permitted", f"{names} fixed by the environment", f"unset {locked} to change it"))
    for name, text in pairs:
        if no := settings.save(name, text):
            return refused(no)
        print(plain(f"{NAME} {name} is {text}"))
    return 0


def _told(lines: Callable[[Settings], Iterator[str]]) -> int:
    settings = _settings()
    for line in lines(settings):
        print(plain(f"{NAME} {line}"))
    return 0


def _grounding(command: GroundingModels) -> int:
    import json

    from sightline.grounding.families import added, adding, listing, removed
    from sightline.look.grounds import entries_of

    settings = _settings()
    entries, done = entries_of(settings), command.model
    match command.action:
        case "list":
            for name, form, note in listing(entries):
                print(plain(f"{NAME} {name}: {form}" + (f" ({note})" if note else "")))
            return 0
        case "add":
            what = adding(command.model, command.format)
            if what.question and not command.yes and not confirmed(what.question):
                return refused(Refusal("not_permitted", what.question.rstrip("?"), "--yes lists it all the same"))
            if what.warning:
                say(f"warning: {what.warning}")
            entries, done = added(entries, command.model, what.format), f"{command.model}: {what.format}"
        case "remove":
            left = removed(entries, command.model)
            if left == entries:
                return refused(Refusal("not_found", f"{command.model} is not listed", _LISTED))
            entries = left
        case "reset":
            entries = {}
    held: Json = {model: {"format": form} for model, form in entries.items()}
    if no := settings.save("groundingModels", json.dumps(held)):
        return refused(no)
    print(plain(f"{NAME} grounding-models {command.action} {done}".rstrip()))
    return 0


def _images(settings: Settings) -> Iterator[str]:
    """The images that were asked about, each with what was asked of it last."""
    latest: dict[str, str] = {}
    with opened(settings) as record:
        for entry in record.entries():
            for sha256 in entry.images if entry.seer else ():  # of a joint look the command is noted apart
                latest.pop(sha256, None)
                latest[sha256] = f"{entry.seer}: {str(entry.about.get('question') or 'described')[:120]}"
    if not latest:
        yield "no image was asked about yet"
    for sha256, last in latest.items():
        yield f"sha256:{sha256} {last}"


def _status(settings: Settings) -> Iterator[str]:
    from sightline.chat import status

    with opened(settings) as record:
        yield from status(settings, record)
