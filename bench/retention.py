"""What images in simulated sessions cost at real cache prices: our retention, fixed rules and the best choice."""

import json
import math
import platform
import random
import statistics
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import peer_environments
from sessions import Talk, simulate_session

from sightline.model.profile import CachePrice, ImageLimits
from sightline.passes.frontier import LINE_TOKENS, NEWEST_KEPT, STALE_AFTER_STEPS, compute_frontier

PRICES = {
    "1.25 / 0.1, 5 min (Anthropic)": CachePrice(1.25, 0.1, 300),
    "1 / 0.02, 4 h (DeepSeek)": CachePrice(1, 0.02, 4 * 3600),
    "1 / 0.1, 10 min (OpenAI)": CachePrice(1, 0.1, 600),
    "1 / 0.5, 10 min (OpenAI, older)": CachePrice(1, 0.5, 600),
}
SEEDS, SESSIONS = 5, 80
MEAN, TAIL = 1.03, 1.12
OURS = "Sightline"
CROWD, BATCH = 20, 8

Gone = list[int]
"""For each image, the first request that goes without it; their number, if none does."""


@dataclass(frozen=True)
class Priced:
    """A talk at a price, with what every rule needs to know about its requests."""

    talk: Talk
    price: CachePrice
    words: Sequence[int]  # tokens before each message, the head included
    arrived: Sequence[int]  # images that are there, by request
    turned: Sequence[int]  # … and are of an earlier turn
    stale: Sequence[int]  # … and are stale
    cold: Sequence[bool]

    @property
    def never(self) -> int:
        return len(self.talk.requests)


def price_session(talk: Talk, price: CachePrice) -> Priced:
    turn = list(accumulate(beat.opens_turn for beat in talk.beats))
    step = list(accumulate(beat.by_assistant for beat in talk.beats))
    places = [view.message for view in talk.views]
    ends = [request.end for request in talk.requests]
    arrived = [bisect_left(places, end + 1) for end in ends]
    turned = [sum(turn[place] < turn[end] for place in places[:here]) for end, here in zip(ends, arrived, strict=True)]
    aged = [
        sum(step[end] - step[place] > STALE_AFTER_STEPS for place in places[:here])
        for end, here in zip(ends, arrived, strict=True)
    ]
    stale = [
        max(0, min(here - NEWEST_KEPT, max(of_old, old)))
        for here, of_old, old in zip(arrived, turned, aged, strict=True)
    ]
    words = [talk.head, *accumulate((beat.tokens for beat in talk.beats), initial=talk.head)][1:]
    cold = [request.pause > price.seconds for request in talk.requests]
    return Priced(talk, price, words, arrived, turned, stale, cold)


def compute_cost(given: Priced, gone: Gone) -> float:
    """Return the cost of all requests in plain input tokens: a cached prefix is read, the rest written."""
    talk, price = given.talk, given.price
    paid, before = 0.0, 0
    for number, request in enumerate(talk.requests):
        here = [LINE_TOKENS if gone[n] <= number else talk.views[n].tokens for n in range(given.arrived[number])]
        length = given.words[request.end + 1] + sum(here)
        cached = before if number else (0 if talk.begins else talk.head)
        newly = next((n for n, since in enumerate(gone[: given.arrived[number - 1]]) if since == number), None)
        if number and newly is not None:
            cached = given.words[talk.views[newly].message + 1] + sum(here[:newly])
        if given.cold[number]:
            cached = 0
        paid += price.read * cached + price.write * (length - cached)
        before = length
    return paid


def find_best_cost(given: Priced) -> float:
    """Return the least possible cost if the whole session is known and stale images are removed oldest first.

    By the number of images that have left: the cheapest way to the request before, and from there to this one.
    Going on from f images costs the writing of everything after the f-th, whatever the new number.
    """
    talk, price = given.talk, given.price
    extra = price.write - price.read
    images = list(accumulate((view.tokens for view in talk.views), initial=0))
    front = [given.words[view.message + 1] + number * LINE_TOKENS for number, view in enumerate(talk.views)]
    least = [0.0, *[math.inf] * len(talk.views)]
    before: list[int] = []
    for number, request in enumerate(talk.requests):
        here, words = given.arrived[number], given.words[request.end + 1]
        length = [words + left * LINE_TOKENS + images[here] - images[left] for left in range(here + 1)]
        reached = [math.inf] * len(least)
        lowest = math.inf  # of all that have fewer images left
        for left in range(given.stale[number] + 1):
            stay = least[left]
            if number == 0 or given.cold[number]:
                cached = 0 if talk.begins or given.cold[number] else talk.head
                lowest = min(lowest, stay)
                reached[left] = lowest + price.write * length[left] - extra * cached
                continue
            known = before[left] if left < len(before) else 0
            moved = lowest + price.write * length[left]
            reached[left] = min(stay + price.write * length[left] - extra * known, moved)
            if left < len(front):
                lowest = min(lowest, stay - extra * front[left])
        least, before = reached, length
    return min(least)


def retire_ours(given: Priced) -> Gone:
    talk = given.talk
    cold = {request.end for number, request in enumerate(talk.requests) if given.cold[number]}
    cold |= set() if talk.begins else {talk.requests[0].end}
    beats = [beat._replace(cold=index in cold) for index, beat in enumerate(talk.beats)]
    gone = [given.never] * len(talk.views)
    ends = [request.end for request in talk.requests]
    for number, left in compute_frontier(beats, talk.views, given.price, ImageLimits()).items():
        gone[number] = bisect_left(ends, left.message)
    return gone


def keep_all(given: Priced) -> Gone:
    return [given.never] * len(given.talk.views)


def keep_last(given: Priced) -> Gone:
    return _retire_when_stale(given, [max(0, here - NEWEST_KEPT) for here in given.arrived])


def retire_each_turn(given: Priced) -> Gone:
    return _retire_when_stale(given, given.turned)


def retire_at_limit(given: Priced) -> Gone:
    left, leaving = 0, []
    for here in given.arrived:
        left += max(0, math.ceil((here - left - CROWD) / BATCH)) * BATCH
        leaving.append(left)
    return _retire_when_stale(given, leaving)


def _retire_when_stale(given: Priced, leaving: Sequence[int]) -> Gone:
    """Return how many of the oldest images are gone at each request."""
    return [bisect_left(leaving, number + 1) for number in range(len(given.talk.views))]


POLICIES: dict[str, Callable[[Priced], Gone]] = {
    OURS: retire_ours,
    "keep all": keep_all,
    f"keep the last {NEWEST_KEPT}, at each step": keep_last,
    "retire at each turn": retire_each_turn,
    f"{BATCH} at once above {CROWD}": retire_at_limit,
}


@dataclass(frozen=True)
class RetentionFigure:
    mean: float
    tail: float  # 95th percentile
    worst: float
    moves: float  # requests of a session, in the mean, in which images leave and something is cached

    def __str__(self) -> str:
        return f"{self.mean:.3f} / {self.tail:.3f} / {self.worst:.3f}"


def measure_sessions(seeds: Sequence[int], sessions: int) -> dict[tuple[str, str], list[tuple[float, int]]]:
    """Return, by policy and price, each session's cost over the least possible and how often images left."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = {(p, q): [] for p in POLICIES for q in PRICES}
    for seed in seeds:
        dice = random.Random(seed)
        for _ in range(sessions):
            talks = simulate_session(dice)
            for name, price in PRICES.items():
                each = [price_session(talk, price) for talk in talks]
                least = sum(map(find_best_cost, each))
                for policy, rule in POLICIES.items():
                    chosen = [rule(one) for one in each]
                    paid = sum(map(compute_cost, each, chosen))
                    found[policy, name].append((paid / least, sum(map(_count_moves, each, chosen))))
        peer_environments.print_status(f"seed {seed}: {sessions} sessions")
    return found


def _count_moves(given: Priced, gone: Gone) -> int:
    return len({since for since in gone if since < given.never and not given.cold[since]})


def build_figure(sessions: Sequence[tuple[float, int]]) -> RetentionFigure:
    ratios = sorted(ratio for ratio, _ in sessions)
    tail = statistics.quantiles(ratios, n=20, method="inclusive")[-1]
    return RetentionFigure(statistics.fmean(ratios), tail, ratios[-1], statistics.fmean(moves for _, moves in sessions))


def run(seeds: int, file: Path) -> None:
    found = measure_sessions(range(1, seeds + 1), SESSIONS)
    figures = {
        policy: {
            "all": build_figure([one for name in PRICES for one in found[policy, name]]),
            **{name: build_figure(found[policy, name]) for name in PRICES},
        }
        for policy in POLICIES
    }
    text = write_table(figures, seeds)
    rows = [{"policy": p, "price": q, **vars(one)} for p, row in figures.items() for q, one in row.items()]
    file.write_text(json.dumps({"seeds": seeds, "sessions": SESSIONS, "figures": rows}, indent=1) + "\n")
    file.with_suffix(".md").write_text(f"<!-- Generated by bench/run.py. -->\n{text}")
    print(text)


MEANING = (
    "Each figure is the cost of a session divided by the least possible cost (mean / 95th percentile / worst). The "
    "least possible cost is that of a rule that knows the whole session, but is bound as Sightline is: it removes only "
    "stale images (of earlier turns, or more than eight steps back) and always keeps the newest three. The rules below "
    "that retire at each step or turn also remove images that aren't stale, or one of the newest three, which a model "
    "may still need; that is why they can cost less than 1."
)


def write_table(figures: dict[str, dict[str, RetentionFigure]], seeds: int) -> str:
    """Build the page: what the figures mean, the table, and which targets are met."""
    heads = ["", "all prices", *PRICES, "moves in a session"]
    rows = [heads, ["---"] * len(heads)]
    for policy, row in figures.items():
        rows.append([policy, *map(str, row.values()), f"{row['all'].moves:.1f}"])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    mine = figures[OURS]["all"]
    others = min(row["all"].mean for policy, row in figures.items() if policy != OURS)
    verdicts = [
        f"mean ≤ {MEAN}: {_format_verdict(mine.mean <= MEAN)}",
        f"95th percentile ≤ {TAIL}: {_format_verdict(mine.tail <= TAIL)}",
        f"mean below every other: {_format_verdict(mine.mean < others)}",
    ]
    about = (
        f"{seeds} seeds of {SESSIONS} sessions, write / read price of the cache, Python {platform.python_version()}."
    )
    return "\n".join([f"{about} {MEANING}", "", *lines, "", f"Targets: {'; '.join(verdicts)}.", ""])


def _format_verdict(holds: bool) -> str:
    return "met" if holds else "MISSED"
