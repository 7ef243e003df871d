"""`sightline forget`: remove one image or all from the record, with everything that was said about them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, print_warnings, read_settings
from sightline.cli.verbs import open_disk_record
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.settings import Settings

EXAMPLE = """  sightline forget sha256:0f343b0931126a20f133d67c
  sightline forget --all
  sightline forget --all --usage"""


def add_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("sha", nargs="?", metavar="SHA", help="sha256: and at least 12 digits of an image")
    which.add_argument(
        "--all",
        action="store_true",
        help="delete every image and everything said about it; settings, consents, lessons and costs are kept",
    )
    parser.add_argument("--usage", action="store_true", help="with --all: also delete the costs (`sightline usage`)")
    add_json(parser)


def run(args: Namespace) -> VerbOutcome:
    if args.usage and not args.all:
        return Refusal("invalid_input", "--usage works only with --all", "add --all, or leave --usage out")
    settings = read_settings()
    with open_disk_record(settings) as record:
        is_opened = not isinstance(record, Refusal)
        forgotten = _remove(record, settings, whole=args.all) if isinstance(record, Refusal) else _forget(record, args)
    if isinstance(forgotten, Refusal):
        return forgotten
    if forgotten:
        return VerbResult({"forgotten": forgotten}, [f"forgotten: {forgotten}"])
    usage_kept = is_opened and not args.usage
    note = "; the costs stay in `sightline usage`, unless you add --usage" if usage_kept else ""
    line = f"forgotten: every image and everything said about it{note}"
    return VerbResult({"forgotten": "all", "usage_kept": usage_kept}, [line])


def _forget(record: Store, args: Namespace) -> str | Refusal:
    """Return the reference of the image that was forgotten; empty: all."""
    chosen = None if args.all else _choose(record, args.sha)
    if isinstance(chosen, Refusal):
        return chosen
    count = record.forget(chosen, usage=args.usage)
    if isinstance(count, Refusal):
        return count
    if chosen and not count:
        return Refusal("not_found", f"the record has no image sha256:{chosen}", "there is nothing to forget")
    return f"sha256:{chosen}" if chosen else ""


def _remove(trouble: Refusal, settings: Settings, *, whole: bool) -> str | Refusal:
    """Delete a record that can't be opened, if all of it should be forgotten."""
    from sightline.store import delete_record

    if not whole or trouble.code != "corrupt":
        return trouble
    refusal = delete_record(settings.record_folder)
    if refusal is None:
        print_warnings([f"{trouble.what}; the whole record was removed, with consents and lessons"])
    return refusal or ""


def _choose(record: Store, text: str) -> str | Refusal:
    from sightline.sources import RecordReference, choose_image, parse_reference

    parsed = parse_reference(text if ":" in text else f"sha256:{text}")
    if isinstance(parsed, Refusal) and ":" not in text and not set(text.lower()) <= set("0123456789abcdef"):
        how = "`sightline view FILE` prints the sha256 of an image"
        return Refusal("invalid_input", f"{text!r:.100} is not the sha256 of an image", how)
    if isinstance(parsed, Refusal):
        return parsed
    if not isinstance(parsed, RecordReference) or parsed.crop:
        return Refusal("invalid_input", f"{text!r:.100} is not an image of the record", "write sha256: and its digits")
    if parsed.is_exact:
        return parsed.sha256
    found = record.find_known_images(parsed.sha256)
    return found if isinstance(found, Refusal) else choose_image(parsed, found)
