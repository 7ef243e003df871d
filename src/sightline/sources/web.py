"""The web as a source: read through the guarded client in `net`, and only where settings or a host's code allow it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from sightline.model.fence import to_one_line
from sightline.model.refusal import Refusal
from sightline.net import MAX_FETCH_BYTES, PUBLIC_WEB, FetchPolicy, Resolver, fetch, resolve_name


@dataclass(frozen=True, slots=True)
class WebGrant:
    """The permission to fetch. Only code can set another resolver or policy; the settings cannot."""

    resolve: Resolver = resolve_name
    reach: FetchPolicy = PUBLIC_WEB


@dataclass(frozen=True, slots=True)
class WebFile:
    data: bytes = field(repr=False)
    url: str  # after redirects
    name: str  # the last part of its path; may be empty


async def fetch_web_file(url: str, grant: WebGrant | None, *, max_bytes: int = MAX_FETCH_BYTES) -> WebFile | Refusal:
    """Fetch a file. Without a grant, refuse: no name is looked up and no connection is made."""
    if grant is None:
        return _refuse_address(to_one_line(url)[:200])
    fetched = await fetch(url, max_bytes=max_bytes, resolve=grant.resolve, policy=grant.reach)
    if isinstance(fetched, Refusal):
        return fetched
    return WebFile(fetched.data, fetched.url, unquote(urlsplit(fetched.url).path).rpartition("/")[2])


def _refuse_address(url: str) -> Refusal:
    if url[:8].lower().startswith(("http://", "https://")):
        return Refusal(
            "not_permitted",
            "web addresses are not fetched while the setting network is off",
            "download it and view the file, or run: sightline config set network on",
        )
    return Refusal("not_permitted", f"addresses that begin with {url.split(':')[0]}: are not supported", "give a path")
