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
    from sightline.commands.values import Command, Consent

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
        return refused(in_shell(command, "vision-proxy"))
    code = _done(command)
    if code == 0 and command.words[0] not in _NOTED:
        _note(command)
    return code


_NOTED = ("describe", "redescribe")  # with what they asked, by whoever looks


def _note(command: Command) -> None:
    from sightline.model.records import Entry

    with opened(load()) as record:
        said = " ".join(command.words)
        record.ledger.add_entry(record.scope_of(""), Entry("vision_proxy.command", about={"command": said}))


def _done(command: Command) -> int:
    from sightline.commands import values

    doings: Mapping[type[Command], Callable[[Any], int]] = {
        values.Describe: lambda asked: described(asked, as_json=False),
        values.Redescribe: lambda asked: described(
            values.Describe((asked.image,), model=asked.model, save=True), as_json=False
        ),
        values.Consent: _consent,
        values.UseModel: _changed,
        values.Change: _changed,
        values.GroundingModels: _changed,
        values.ListImages: lambda _: _told(_images),
        values.Status: lambda _: _told(_status),
    }
    return doings[type(command)](command)


def _consent(command: Consent) -> int:
    from sightline.cli import consent

    return consent.run(Namespace(action=command.answer, provider=command.provider, json=False))


def _settings() -> Settings:
    settings = load()
    warn(settings.warnings)
    return settings


def _changed(command: Command) -> int:
    from sightline.chat.changes import changed

    settings = _settings()
    with opened(settings) as record:
        done = changed(command, settings, record.policy, confirmed)
    if isinstance(done, Refusal):
        return refused(done)
    if done.warning:
        say(f"warning: {done.warning}")
    for line in done.lines:
        print(plain(f"{NAME} {line}"))
    return 0


def _told(lines: Callable[[Settings], Iterator[str]]) -> int:
    settings = _settings()
    for line in lines(settings):
        print(plain(f"{NAME} {line}"))
    return 0


def _images(settings: Settings) -> Iterator[str]:
    """The images that were asked about, each with what was asked of it last."""
    from sightline.look.upstreams import called

    latest: dict[str, str] = {}
    with opened(settings) as record:
        for entry in record.ledger.list_entries():
            for sha256 in entry.images if entry.seer else ():  # of a joint look the command is noted apart
                latest.pop(sha256, None)
                latest[sha256] = (
                    f"{called(settings, entry.seer)}: {str(entry.about.get('question') or 'described')[:120]}"
                )
    if not latest:
        yield "no image was asked about yet"
    for sha256, last in latest.items():
        yield f"sha256:{sha256} {last}"


def _status(settings: Settings) -> Iterator[str]:
    from sightline.chat import status

    with opened(settings) as record:
        yield from status(settings, record.policy)
