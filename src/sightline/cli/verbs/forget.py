"""`sightline forget`: forget one image, or all, with everything that was said and shown of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.terminal import CliAnswer, Outcome, add_json, read_settings, warn
from sightline.cli.verbs import kept
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.settings import Settings

EXAMPLE = """  sightline forget sha256:0f343b0931126a20f133d67c
  sightline forget --all"""


def arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("sha", nargs="?", metavar="SHA", help="sha256: and the digits of an image")
    which.add_argument("--all", action="store_true", help="every image; settings, consents and what was learnt stay")
    add_json(parser)


def run(args: Namespace) -> Outcome:
    settings = read_settings()
    with kept(settings) as record:
        gone = _remove(record, settings, whole=args.all) if isinstance(record, Refusal) else _forget(record, args)
    if isinstance(gone, Refusal):
        return gone
    said = gone or "every image, and all that was said of it"
    return CliAnswer({"forgotten": gone or "all"}, [f"forgotten: {said}"])


def _forget(record: Store, args: Namespace) -> str | Refusal:
    """Return what was forgotten, by its name; empty: all."""
    chosen = None if args.all else _choose(record, args.sha)
    if isinstance(chosen, Refusal):
        return chosen
    count = record.forget(chosen)
    if isinstance(count, Refusal):
        return count
    if chosen and not count:
        return Refusal("not_found", f"the record holds no image sha256:{chosen}", "nothing was to be forgotten")
    return f"sha256:{chosen}" if chosen else ""


def _remove(trouble: Refusal, settings: Settings, *, whole: bool) -> str | Refusal:
    """Remove a record that cannot be opened any more, where all of it is to be forgotten."""
    from sightline.store import remove

    if not whole or trouble.code != "corrupt":
        return trouble
    refusal = remove(settings.folder)
    if refusal is None:
        warn([f"{trouble.what}; it is removed whole, with consents and what was learnt"])
    return refusal or ""


def _choose(record: Store, text: str) -> str | Refusal:
    from sightline.sources import reference
    from sightline.sources.reference import Stored

    asked = reference.parse(text if ":" in text else f"sha256:{text}")
    if isinstance(asked, Refusal) and ":" not in text and not set(text.lower()) <= set("0123456789abcdef"):
        how = f"name it by its sha256, which `sightline view {text:.100}` tells"
        return Refusal("invalid_input", f"{text!r:.100} is no sha256 of an image", how)
    if isinstance(asked, Refusal):
        return asked
    if not isinstance(asked, Stored) or asked.crop:
        return Refusal("invalid_input", f"{text!r:.100} names no image", "write sha256: and its digits")
    if asked.exact:
        return asked.sha256
    found = record.find_remembered(asked.sha256)
    return found if isinstance(found, Refusal) else reference.only(asked, found)
