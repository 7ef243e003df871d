"""`sightline forget`: one image, or all, with everything that was said and shown of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.memory import opened
from sightline.cli.verb import add_json, answer, refused, warn
from sightline.model.ports import Record
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

EXAMPLE = """  sightline forget sha256:0f343b0931126a20f133d67c
  sightline forget --all"""


def arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("sha", nargs="?", metavar="SHA", help="sha256: and the digits of an image")
    which.add_argument("--all", action="store_true", help="every image; settings, consents and what was learnt stay")
    add_json(parser)


def run(args: Namespace) -> int:
    settings = load()
    warn(settings.warnings)
    with opened(settings) as record:
        chosen = None if args.all else _chosen(record, args.sha)
        if isinstance(chosen, Refusal):
            return refused(chosen)
        count = record.forget(chosen)
    if _left(settings, chosen):
        return refused(Refusal("unavailable", f"the record in {settings.folder} could not be written"))
    if chosen and not count:
        return refused(Refusal("not_found", f"the record holds no image sha256:{chosen}"))
    said = f"forgotten: sha256:{chosen}" if chosen else "forgotten: every image, and all that was said of it"
    return answer({"forgotten": f"sha256:{chosen}" if chosen else "all"}, [said], as_json=args.json)


def _chosen(record: Record, text: str) -> str | Refusal:
    from sightline.sources import reference
    from sightline.sources.reference import Stored

    asked = reference.parse(text if ":" in text else f"sha256:{text}")
    if isinstance(asked, Refusal):
        return asked
    if not isinstance(asked, Stored) or asked.crop:
        return Refusal("invalid_input", f"{text!r:.100} names no image", "write sha256: and its digits")
    if asked.exact:
        return asked.sha256
    return reference.only(asked, record.images_by_prefix(None, asked.sha256))


def _left(settings: Settings, sha256: str | None) -> bool:
    """Whether bytes are still on the disk: a record that cannot be used is held in memory, and forgets nothing."""
    return any(
        path.is_file() and not path.name.endswith(".part")
        for path in settings.folder.glob(f"blobs/??/??/{sha256 or '*'}")
    )
