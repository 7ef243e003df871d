"""`sightline usage`: what vision models have cost, by day and model; or what was done to the last requests."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, cast

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, format_dollars, read_settings
from sightline.cli.verbs import open_record
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.records import FiledReceipt, Spending
    from sightline.model.scene import Json
    from sightline.settings import Settings

EXAMPLE = """  sightline usage
  sightline usage --json
  sightline usage --receipts 5"""

_RECEIPTS = 10  # shown by default


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--receipts", type=_read_count, nargs="?", const=_RECEIPTS, metavar="N",
        help=f"what the proxy did to the last N requests with images; default: {_RECEIPTS}",
    )  # fmt: skip
    add_json(parser)


def _read_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r:.20} is not a number of requests (give 1 or more)")
    return int(text)


def run(args: Namespace) -> VerbOutcome:
    settings = read_settings()
    if args.receipts is not None:
        return _list_receipts(settings, args.receipts)
    from sightline.settings.upstreams import format_provider

    with open_record(settings) as record:
        spent = record.find_trouble() or record.ledger.sum_spending()
    if isinstance(spent, Refusal):
        return spent
    rows = [{"day": each.day, "seer": each.seer, **_sum_up([each])} for each in spent]
    total = _sum_up(spent)
    return VerbResult({"days": [*rows], "total": total}, _list_lines(rows, total, partial(format_provider, settings)))


def _list_receipts(settings: Settings, limit: int) -> VerbOutcome:
    with open_record(settings) as record:
        found = record.find_trouble() or record.ledger.list_receipts(min(limit, sys.maxsize))
    if isinstance(found, Refusal):
        return found
    return VerbResult({"receipts": [each.as_json() for each in found]}, _list_receipt_lines(found))


def _list_receipt_lines(found: Sequence[FiledReceipt]) -> Iterator[str]:
    if not found:
        yield "there have been no requests with images yet"
    for filed in found:
        when = datetime.fromtimestamp(filed.at).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006, the user's local time
        labels = "".join(f" [{name} {value}]" for name, value in filed.labels)
        yield f"{when}  {filed.receipt}{labels}"


def _sum_up(spent: Sequence[Spending]) -> dict[str, Json]:
    priced = [each.cost_usd for each in spent if each.cost_usd is not None]
    return {
        "calls": sum(each.calls for each in spent),
        "input_tokens": sum(each.usage.input or 0 for each in spent),
        "output_tokens": sum(each.usage.output or 0 for each in spent),
        "cost_usd": sum(priced) if priced else None,
        "unpriced": sum(each.unpriced for each in spent),
        "failed": sum(each.failed for each in spent),
    }


def _list_lines(rows: Sequence[dict[str, Json]], total: dict[str, Json], shown: Callable[[str], str]) -> Iterator[str]:
    if not rows:
        yield "no model has been asked yet"
        return
    names = [shown(str(row["seer"])) for row in rows]
    widest = max(map(len, names))
    for row, name in zip(rows, names, strict=True):
        yield f"{row['day']}  {name:<{widest}}  {_format_row(row)}"
    yield f"{'total':<10}  {'':<{widest}}  {_format_row(total)}"


def _format_row(row: dict[str, Json]) -> str:
    priced = row["cost_usd"] is not None and bool(row["cost_usd"] or not row["unpriced"])
    cost = format_dollars(cast("float", row["cost_usd"])) if priced else "price unknown"
    unknown = f" and {row['unpriced']} of unknown price" if row["unpriced"] and priced else ""
    calls = "1 call" if row["calls"] == 1 else f"{row['calls']} calls"
    failed = f" ({row['failed']} failed)" if row["failed"] else ""
    return f"{calls}{failed}, {row['input_tokens']:,} tokens in, {row['output_tokens']:,} out, {cost}{unknown}"
