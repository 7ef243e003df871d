"""Callers take turns: a caller with many requests doesn't block another."""

from __future__ import annotations

import asyncio
from hashlib import sha256

from sightline.vision.concurrency import FairSemaphore
from tests.engine.parts import ScriptedSeer, Stage, a_while, asking, picture, turns, visitor
from tests.requirements import requirement


@requirement("load.turns")
async def test_a_caller_with_many_requests_does_not_block_another() -> None:
    semaphore, order = FairSemaphore(1), list[str]()

    async def work(caller: str) -> None:
        async with semaphore.take_turn(caller):
            order.append(caller)
            await asyncio.sleep(0)

    await asyncio.gather(*(work("greedy") for _ in range(10)), work("modest"), work("modest"))
    assert order[:5] == ["greedy", "greedy", "modest", "greedy", "modest"]
    assert len(order) == 12


@requirement("load.turns")
async def test_a_cancelled_turn_goes_to_the_next_caller() -> None:
    semaphore, order = FairSemaphore(1), list[int]()

    async def work(number: int) -> None:
        async with semaphore.take_turn("one"):
            order.append(number)
            await asyncio.sleep(0)

    tasks = [asyncio.ensure_future(work(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    tasks[2].cancel()  # perhaps just as it was given its turn
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order[0] == 0
    assert order[-1] == 3
    async with semaphore.take_turn("one"):
        pass


@requirement("load.turns")
async def test_questions_of_one_caller_do_not_block_those_of_another() -> None:
    seer = ScriptedSeer()
    seer.gate.clear()
    stage = Stage(seer)
    greedy = asyncio.ensure_future(stage.prepare(asking(*(picture(seed) for seed in range(12))), visitor("greedy")))
    await turns(lambda: seer.at_once == 4)
    theirs, name = visitor("modest"), sha256(picture(20)).hexdigest()
    modest = asyncio.ensure_future(stage.prepare(asking(picture(20)), theirs))
    await turns(lambda: stage.record.images.read(theirs.scope, name))  # it is kept just before it waits to be looked at
    await a_while()
    seer.gate.set()
    await asyncio.gather(greedy, modest)
    assert picture(20) in [image.data for image in seer.looks[:6]]
