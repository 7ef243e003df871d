"""Simulated sessions of an agent that looks at images, from a seed: their length, their texts, their pauses."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from sightline.passes.frontier import HistoryImage, HistoryMessage


@dataclass(frozen=True)
class Request:
    end: int  # index of its last message
    pause: float  # seconds since the one before it


@dataclass
class Talk:
    """What is said between two compactions."""

    head: int  # tokens of system and tools
    begins: bool  # the session: not even the head is cached
    beats: list[HistoryMessage] = field(default_factory=list)
    views: list[HistoryImage] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def words(self) -> int:
        return sum(beat.tokens for beat in self.beats)


def simulate_session(dice: random.Random) -> Sequence[Talk]:
    """20 to 200 steps in one to sixty turns; each session has habits of its own."""
    steps = dice.randint(20, 200)
    turns = min(steps, round(_choose_log_uniform(dice, 1, 60)))
    opens = {0, *dice.sample(range(1, steps), turns - 1)}
    looks = dice.choice([0.08, 0.15, 0.3, 0.5, 0.8])  # how often a step brings images
    smallest, largest = dice.choice([(400, 4784), (400, 1600), (1500, 4784)])  # in tokens
    wordy = _choose_log_uniform(dice, 200, 2000)  # tokens of a tool's usual answer
    thinks = _choose_log_uniform(dice, 20, 900)  # seconds between turns
    room = dice.randint(60_000, 160_000)  # tokens of words, until the client compacts
    talks = [Talk(dice.randint(3_000, 25_000), begins=True)]
    for step in range(steps):
        talk, pause = talks[-1], _choose_pause(dice)
        if talk.words > room:
            pause = dice.uniform(20, 60)
            talk = Talk(talk.head, begins=False, beats=[HistoryMessage(dice.randint(2_000, 6_000), opens_turn=True)])
            talks.append(talk)
        if step in opens:
            pause = dice.expovariate(1 / thinks)
            talk.beats.append(HistoryMessage(dice.randint(20, 500), opens_turn=True))
        talk.requests.append(Request(len(talk.beats) - 1, pause))
        talk.beats.append(HistoryMessage(_choose_about(dice, 200, 4_000), by_assistant=True))
        if step + 1 not in opens and step + 1 < steps:
            talk.beats.append(HistoryMessage(_choose_about(dice, wordy, 12_000)))
            images = dice.choice([1, 1, 1, 1, 2, 3]) if dice.random() < looks else 0
            size = [round(_choose_log_uniform(dice, smallest, largest)) for _ in range(images)]
            talk.views += [HistoryImage(len(talk.beats) - 1, tokens) for tokens in size]
    return talks


def _choose_pause(dice: random.Random) -> float:
    """Within a turn: as long as a tool runs, which is seldom long."""
    return dice.uniform(60, 1200) if dice.random() < 0.02 else dice.uniform(3, 30)


def _choose_log_uniform(dice: random.Random, low: float, high: float) -> float:
    """Return a number whose logarithm is uniformly distributed."""
    return math.exp(dice.uniform(math.log(low), math.log(high)))


def _choose_about(dice: random.Random, usual: float, most: int) -> int:
    return min(most, round(dice.lognormvariate(math.log(usual), 0.9)))
