"""The web as a source: read only where the host grants the network, and only through the dialler of `net`."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from sightline.model.refusal import Refusal
from sightline.net import LARGEST, WEB, Reach, Resolver, fetch, look_up

_NOT_GRANTED = Refusal("not_permitted", "web addresses are not read here", "save the file and give its path")


@dataclass(frozen=True, slots=True)
class Page:
    data: bytes = field(repr=False)
    url: str  # where it was in the end
    name: str  # the last part of its path, perhaps empty


async def read(
    url: str, *, granted: bool, most: int = LARGEST, resolve: Resolver = look_up, reach: Reach = WEB
) -> Page | Refusal:
    if not granted:
        return _NOT_GRANTED
    found = await fetch(url, most=most, resolve=resolve, reach=reach)
    if isinstance(found, Refusal):
        return found
    return Page(found.data, found.url, unquote(urlsplit(found.url).path).rpartition("/")[2])
