"""The web as a source: read only where the setting `network` or a host's code grants it, and only through `net`."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from sightline.model.fence import one_line
from sightline.model.refusal import Refusal
from sightline.net import LARGEST, WEB, Reach, Resolver, fetch, look_up


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission to read the web. Other names and places than those of the system are for code alone."""

    resolve: Resolver = look_up
    reach: Reach = WEB


@dataclass(frozen=True, slots=True)
class Page:
    data: bytes = field(repr=False)
    url: str  # where it was in the end
    name: str  # the last part of its path, perhaps empty


async def read(url: str, grant: Grant | None, *, most: int = LARGEST) -> Page | Refusal:
    """Return what is at an address. Without a grant no name is looked up and nothing is dialled."""
    if grant is None:
        return _not_here(one_line(url)[:200])
    found = await fetch(url, most=most, resolve=grant.resolve, reach=grant.reach)
    if isinstance(found, Refusal):
        return found
    return Page(found.data, found.url, unquote(urlsplit(found.url).path).rpartition("/")[2])


def _not_here(url: str) -> Refusal:
    if url[:8].lower().startswith(("http://", "https://")):
        return Refusal(
            "not_permitted",
            "a web address is not read while the setting network is off",
            "download it and view the file, or the user runs: sightline config set network on",
        )
    return Refusal(
        "not_permitted", f"an address that begins with {url.split(':')[0]}: is not read", "give a plain path"
    )
