"""`sightline consent`: the providers to which images may be sent so that a model there looks at them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.memory import opened
from sightline.cli.verb import add_json, answer, refused, warn
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.passes.words import SENT
from sightline.settings import Settings, load

EXAMPLE = """  sightline consent yes openai
  sightline consent list"""

NOT_SENT = "no image, crop, page or frame is sent to {} to be looked at"


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
    provider = _provider(settings, args.provider or "")
    if isinstance(provider, Refusal):
        return refused(provider, as_json=args.json)
    if settings.record != "disk":
        return refused(
            Refusal("unavailable", "the record is in memory", "sightline config set record disk"), as_json=args.json
        )
    given = args.action == "yes"
    with opened(settings) as record:
        record.consent(provider, given)
    with opened(settings) as record:  # again, because a record that cannot be used is held in memory
        noted = record.consents().get(provider) is given
    if not noted:
        return refused(
            Refusal(
                "unavailable", f"the record in {settings.folder} could not be written", "see to the disk and repeat"
            ),
            as_json=args.json,
        )
    found: dict[str, Json] = {"provider": provider, "consent": given}
    return answer(found, [_sentence(provider, given=given)], as_json=args.json)


def _list(settings: Settings, *, as_json: bool) -> int:
    with opened(settings) as record:
        consents = dict(record.consents())
    lines = [_sentence(provider, given=given) for provider, given in consents.items()]
    return answer({"consents": {**consents}}, lines or ["no provider has been named yet"], as_json=as_json)


def _provider(settings: Settings, name: str) -> str | Refusal:
    """Whoever is meant, by the name under which consent is asked for: an unknown address goes by its host."""
    from sightline.cli import compose
    from sightline.seers.others import PROVIDERS

    found = compose.directory(settings)
    if isinstance(found, Refusal):
        return found
    seer = compose.named_seer(settings, found)
    if isinstance(seer, Refusal):
        return seer
    receivers = {name: compose.receiver(upstream) for name, upstream in found.named.items()}
    known = {**receivers, **{host: host for host in (*receivers.values(), *PROVIDERS)}}
    if seer is not None:
        known[seer.provider] = known[""] = seer.provider
    if not name and seer is None:
        return Refusal("invalid_input", "no provider is named", "sightline consent yes PROVIDER")
    if name not in known:
        return Refusal("not_found", f"there is no provider {name!r}", f"known are {', '.join(sorted(receivers))}")
    return known[name]


def _sentence(provider: str, *, given: bool) -> str:
    words = f"{SENT}, by the proxy with the end of their conversation (includeContext)" if given else NOT_SENT
    return f"{provider}: {words.format(provider)}"
