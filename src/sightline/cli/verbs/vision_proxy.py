"""`sightline vision-proxy`: the commands of /vision-proxy, as they are typed into a chat; and `sightline consent`."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sightline.cli import terminal
from sightline.cli.verbs import open_disk_record, open_record
from sightline.cli.verbs.describe import describe
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.commands import Command, Consent
    from sightline.model.ports import Store
    from sightline.settings import Settings

EXAMPLE = """  sightline vision-proxy status
  sightline vision-proxy mode always
  sightline vision-proxy describe shot.png --question "What is the error?" --crop 0:r=top
  sightline vision-proxy grounding-models add ollama/my-model --format qwen_pixels"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = "Run a /vision-proxy command, as you would type it into a chat; the default is status."
    parser.add_argument("words", nargs=REMAINDER, metavar="VERB ...", help="describe, redescribe, consent, mode, …")


def run(args: Namespace) -> terminal.VerbOutcome:
    from sightline.commands import ANSWER_PREFIX, Describe, Redescribe
    from sightline.commands.grammar import parse_words

    command = parse_words(args.words)
    if isinstance(command, Refusal):
        return terminal.for_shell(command, "vision-proxy")
    if isinstance(command, Redescribe):
        command = command.as_describe()
    if isinstance(command, Describe):  # the look is noted in the ledger with its question
        return describe(command, as_json=False, prefix=ANSWER_PREFIX)
    settings = terminal.read_settings()
    code = terminal.print_outcome(_execute(command, settings), as_json=False)
    if code == 0:
        _add_ledger_entry(command, settings)
    return code


def _execute(command: Command, settings: Settings) -> terminal.VerbOutcome:
    from sightline.commands import ANSWER_PREFIX, Consent, ListImages, Status
    from sightline.commands.execution import change_settings, report_status

    if isinstance(command, Consent):
        changed = _change_consent(command, settings)
        if not isinstance(changed, terminal.VerbResult):
            return changed
        return replace(changed, lines=[f"{ANSWER_PREFIX} {line}" for line in changed.lines])
    with open_record(settings) as record:
        match command:
            case ListImages():
                lines = [*_list_images(settings, record)]
            case Status():
                lines = [*report_status(settings, record)]
            case _:
                done = change_settings(command, settings, record, terminal.confirm)
                if isinstance(done, Refusal):
                    return done
                terminal.print_warnings([done.warning] if done.warning else [])
                lines = [*done.lines]
    return terminal.VerbResult({}, [f"{ANSWER_PREFIX} {line}" for line in lines])


def _add_ledger_entry(command: Command, settings: Settings) -> None:
    from sightline.commands.execution import note_command

    with open_record(settings) as record:
        record.ledger.add_entry(record.compute_scope(""), note_command(command))


def _list_images(settings: Settings, record: Store) -> Iterator[str]:
    """List the images that a model was asked about, each with the last question."""
    from sightline.settings.upstreams import format_provider

    latest: dict[str, str] = {}
    for entry in record.ledger.list_entries():
        for sha256 in entry.images if entry.seer else ():  # the command of a look at several images is a separate entry
            latest.pop(sha256, None)
            question = str(entry.about.get("question") or "described")
            latest[sha256] = f"{format_provider(settings, entry.seer)}: {question[:120]}"
    if not latest:
        yield "no model has been asked about an image yet"
    for sha256, last in latest.items():
        yield f"sha256:{sha256} {last}"


class ConsentVerb:
    """The verb `consent`."""

    EXAMPLE = """  sightline consent yes openai
  sightline consent list"""

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.description = (
            "Allow or forbid sending images, crops, pages and frames to the vision models of a provider."
            " Consent applies to that provider only. The provider that your agent uses needs none."
            " The proxy and ACP also send the end of the conversation with an image (includeContext)."
        )
        terminal.add_command_arguments(parser, "consent")
        terminal.add_json(parser)

    @staticmethod
    def run(args: Namespace) -> terminal.VerbOutcome:
        from sightline.commands import Consent

        return _change_consent(Consent(args.answer or "list", args.provider or ""), terminal.read_settings())


def _change_consent(command: Consent, settings: Settings) -> terminal.VerbOutcome:
    """List consents, or write one into the record on disk: one in memory would be gone with this process."""
    from sightline.commands.execution import describe_consent, find_provider, list_consents

    if command.answer == "list":
        with open_record(settings) as record:
            consents = dict(record.policy.read_consents())
        return terminal.VerbResult({"consents": {**consents}}, list_consents(settings, consents))
    provider = find_provider(settings, command.provider)
    if isinstance(provider, Refusal):
        return provider
    if settings.record != "disk" and not settings.shared_address:
        return Refusal("unavailable", "the record is in memory", "run: sightline config set record disk")
    given = command.answer == "yes"
    with open_disk_record(settings) as record:
        refusal = record if isinstance(record, Refusal) else record.policy.set_consent(provider, given)
    if refusal:
        return replace(refusal, what=f"the consent could not be written: {refusal.what}")
    sentence = describe_consent(settings, provider, given=given)
    return terminal.VerbResult({"provider": provider, "consent": given}, [sentence])
