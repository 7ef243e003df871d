"""One call to a vision model over HTTP: bounded, tried twice at the most, and honest about what went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import orjson

from sightline.model.ports import Http, Reply
from sightline.model.refusal import Refusal
from sightline.model.scene import Json

SECONDS = 60.0
_PAUSE = 1.0
_LONGEST = 30_000  # characters of a description: nobody reads more, and everybody pays for it
_LONGEST_PAUSE = 10.0


async def asked(
    http: Http,
    seer: str,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    answer: Callable[[Json], str],
    pause: float = _PAUSE,
) -> str | Refusal:
    """The words of the model. What the provider says of its own troubles never reaches the model that asked."""
    reply = await posted(http, url, headers, body, SECONDS, pause, unheard=True)
    if isinstance(reply, Refusal):
        return Refusal("unavailable", f"{seer} could not be reached to describe it", _RETRY)
    if reply.status != 200:
        return Refusal("unavailable", f"{seer} did not describe it (status {reply.status})", _RETRY)
    try:
        words = answer(orjson.loads(reply.body)).strip()
    except orjson.JSONDecodeError:
        words = ""
    return words[:_LONGEST] or Refusal("unavailable", f"{seer} gave no description of it", _RETRY)


async def posted(
    http: Http,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    seconds: float,
    pause: float = _PAUSE,
    *,
    unheard: bool = False,
) -> Reply | Refusal:
    """One answer, asked for again when the trouble may be of the moment; with `unheard`, also when nothing came."""
    sent = {**headers, "content-type": "application/json", "accept-encoding": "identity"}
    payload = orjson.dumps(body)
    reply = await http.ask("POST", url, sent, payload, seconds)
    again = unheard if isinstance(reply, Refusal) else reply.status in (408, 429) or reply.status >= 500
    if not again:
        return reply
    await asyncio.sleep(_pause(reply, pause))
    return await http.ask("POST", url, sent, payload, seconds)


_RETRY = "send another message in a while to have it looked at again"


def _pause(reply: Reply | Refusal, pause: float) -> float:
    named = {} if isinstance(reply, Refusal) else {name.lower(): value for name, value in reply.headers}
    try:
        return min(max(0.0, float(named["retry-after"])), _LONGEST_PAUSE)
    except (KeyError, ValueError):
        return pause
