"""`sightline consent`: the providers to which images may be sent so that a model there looks at them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from sightline.cli.memory import kept, opened
from sightline.cli.verb import add_json, answer, refused, warn
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import Settings, load

EXAMPLE = """  sightline consent yes openai
  sightline consent list"""


def arguments(parser: ArgumentParser) -> None:
    parser.description = (
        "Say to which provider images, crops, pages and frames may be sent so that a model there looks at them."
        " It counts for exactly that provider. The provider that an agent itself asks needs no consent."
        " With an image that the proxy has described goes the end of its conversation (includeContext)."
    )
    parser.add_argument("action", nargs="?", choices=("list", "yes", "no"), default="list")
    parser.add_argument("provider", nargs="?", metavar="PROVIDER", help="default: the one in the settings")
    add_json(parser)


def run(args: Namespace) -> int:
    settings = load()
    warn(settings.warnings)
    if args.action == "list":
        return _list(settings, as_json=args.json)
    from sightline.chat.changes import provider_named, sentence

    provider = provider_named(settings, args.provider or "")
    if isinstance(provider, Refusal):
        return refused(provider, as_json=args.json)
    if settings.record != "disk":
        return refused(
            Refusal("unavailable", "the record is in memory", "sightline config set record disk"), as_json=args.json
        )
    given = args.action == "yes"
    with kept(settings) as record:
        no = record if isinstance(record, Refusal) else record.policy.set_consent(provider, given)
    if no:
        return refused(replace(no, what=f"the consent could not be written: {no.what}"), as_json=args.json)
    found: dict[str, Json] = {"provider": provider, "consent": given}
    return answer(found, [sentence(settings, provider, given=given)], as_json=args.json)


def _list(settings: Settings, *, as_json: bool) -> int:
    from sightline.chat.changes import NOTHING_AGREED, sentence

    with opened(settings) as record:
        consents = dict(record.policy.read_consents())
    lines = [sentence(settings, provider, given=given) for provider, given in consents.items()]
    return answer({"consents": {**consents}}, lines or [NOTHING_AGREED], as_json=as_json)
