"""`sightline vision-proxy`: the commands that are typed into a chat as /vision-proxy; and `sightline consent`."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sightline.cli import terminal
from sightline.cli.verbs import kept, opened
from sightline.cli.verbs.describe import describe
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.commands import values
    from sightline.commands.values import Command
    from sightline.model.ports import Store
    from sightline.settings import Settings

EXAMPLE = """  sightline vision-proxy status
  sightline vision-proxy mode always
  sightline vision-proxy describe shot.png --question "What is the error?" --crop 0:r=top
  sightline vision-proxy grounding-models add ollama/my-model --format qwen_pixels"""


def arguments(parser: ArgumentParser) -> None:
    parser.description = "The commands of /vision-proxy, as they are typed into a chat; without any: status."
    parser.add_argument("words", nargs=REMAINDER, metavar="VERB ...", help="describe, redescribe, consent, mode, …")


def run(args: Namespace) -> terminal.Outcome:
    from sightline.commands import parse_words, values

    command = parse_words(args.words)
    if isinstance(command, Refusal):
        return terminal.for_shell(command, "vision-proxy")
    if isinstance(command, values.Redescribe):
        command = command.as_describe()
    if isinstance(command, values.Describe):  # a look is noted with what it asked
        return describe(command, as_json=False)
    settings = terminal.read_settings()
    code = terminal.finish(_execute(command, settings), as_json=False)
    if code == 0:
        _note(command, settings)
    return code


def _execute(command: Command, settings: Settings) -> terminal.Outcome:
    from sightline.commands import values
    from sightline.commands.answer import change_settings, report_status

    if isinstance(command, values.Consent):
        return _consent(command, settings)
    with opened(settings) as record:
        match command:
            case values.ListImages():
                lines = [*_list_images(settings, record)]
            case values.Status():
                lines = [*report_status(settings, record)]
            case _:
                done = change_settings(command, settings, record, terminal.confirm)
                if isinstance(done, Refusal):
                    return done
                terminal.warn([done.warning] if done.warning else [])
                lines = [*done.lines]
    return terminal.CliAnswer({}, [f"{terminal.NAME} {line}" for line in lines])


def _note(command: Command, settings: Settings) -> None:
    from sightline.commands.answer import note_command

    with opened(settings) as record:
        record.ledger.add_entry(record.scope_of(""), note_command(command))


def _list_images(settings: Settings, record: Store) -> Iterator[str]:
    """List the images that were asked about, each with what was asked of it last."""
    from sightline.settings.upstreams import called

    latest: dict[str, str] = {}
    for entry in record.ledger.list_entries():
        for sha256 in entry.images if entry.seer else ():  # of a joint look the command is noted apart
            latest.pop(sha256, None)
            asked = str(entry.about.get("question") or "described")
            latest[sha256] = f"{called(settings, entry.seer)}: {asked[:120]}"
    if not latest:
        yield "no image was asked about yet"
    for sha256, last in latest.items():
        yield f"sha256:{sha256} {last}"


class ConsentVerb:
    """The verb `consent`."""

    EXAMPLE = """  sightline consent yes openai
  sightline consent list"""

    @staticmethod
    def arguments(parser: ArgumentParser) -> None:
        parser.description = (
            "Say to which provider images, crops, pages and frames may be sent so that a model there looks at them."
            " It counts for exactly that provider. The provider that an agent itself asks needs no consent."
            " With an image that the proxy has described goes the end of its conversation (includeContext)."
        )
        terminal.add_arguments(parser, "consent")
        terminal.add_json(parser)

    @staticmethod
    def run(args: Namespace) -> terminal.Outcome:
        from sightline.commands import values

        return _consent(values.Consent(args.answer or "list", args.provider or ""), terminal.read_settings())


def _consent(command: values.Consent, settings: Settings) -> terminal.Outcome:
    """List consents, or write one into the record on the disk: elsewhere it would be gone with this process."""
    from sightline.commands.answer import describe_consent, find_provider, list_consents

    if command.answer == "list":
        with opened(settings) as record:
            consents = dict(record.policy.read_consents())
        return terminal.CliAnswer({"consents": {**consents}}, list_consents(settings, consents))
    provider = find_provider(settings, command.provider)
    if isinstance(provider, Refusal):
        return provider
    if settings.record != "disk":
        return Refusal("unavailable", "the record is in memory", "sightline config set record disk")
    given = command.answer == "yes"
    with kept(settings) as record:
        no = record if isinstance(record, Refusal) else record.policy.set_consent(provider, given)
    if no:
        return replace(no, what=f"the consent could not be written: {no.what}")
    sentence = describe_consent(settings, provider, given=given)
    return terminal.CliAnswer({"provider": provider, "consent": given}, [sentence])
