"""What a person sees of a look: the question whether it may be, that it goes on, who looked and what it cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sightline.cli.verb import say
from sightline.model.fence import plain

if TYPE_CHECKING:
    from sightline.model.asking import Usage
    from sightline.model.ports import Store
    from sightline.settings import Settings

NAME = "[Vision Proxy]"
_LEAST = 0.0001  # of a dollar, with as many digits as are shown
_BOLD, _PLAIN, _BACK = "\033[1;36m", "\033[0m", "\r\033[K"


def tell(line: str) -> None:
    """One line of ours among those of the answer."""
    named = f"{_BOLD}{NAME}{_PLAIN}" if sys.stdout.isatty() else NAME
    print(f"{named} {plain(line)}")


@contextmanager
def progress(words: str) -> Iterator[None]:
    """A line on a terminal while something takes its time, and gone when it is done."""
    live = sys.stderr.isatty()
    if live:
        print(f"sightline: {words}", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if live:
            print(_BACK, end="", file=sys.stderr, flush=True)


def confirmed(question: str) -> bool:
    """The user's answer, where there is one to be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{NAME} {plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def agreed(settings: Settings, record: Store, model: str) -> None:
    """On a terminal, the user is asked there and then; the answer counts for that provider alone."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from sightline.look.analyze_seer import receiver_of
    from sightline.look.upstreams import called
    from sightline.passes.words import SENT

    provider = receiver_of(settings, model)
    if not provider or record.policy.read_consents().get(provider, False):
        return
    if not confirmed(f"{SENT.format(called(settings, provider))}: is that all right?"):
        return
    if no := record.policy.set_consent(provider, given=True):
        say(f"that could not be remembered, so nothing is sent: {no}")


def figures(usage: Usage, cost_usd: float | None, *, cached: bool) -> str:
    if cached:
        return "remembered: nobody was asked"
    counts = [f"{count:,} tokens {way}" for way, count in (("in", usage.input), ("out", usage.output)) if count]
    price = [dollars(cost_usd)] if cost_usd is not None else []
    return ", ".join([*counts, *price]) or "done"


def dollars(cost: float) -> str:
    """As people read it: what costs nothing has no figures, and what costs something is never nothing."""
    if cost == 0:
        return "at no cost"
    return f"${cost:.4f}" if cost >= _LEAST else f"less than ${_LEAST:.4f}"
