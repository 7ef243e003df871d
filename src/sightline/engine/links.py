"""Addresses that a body only names: fetched for a model that takes no images, where the network is granted."""

from __future__ import annotations

import pybase64

from sightline.model.refusal import Refusal
from sightline.model.source import Inline, Link
from sightline.sources import web


async def fetched(link: Link, grant: web.Grant | None) -> Inline | Refusal:
    page = await web.read(link.url, grant)
    return page if isinstance(page, Refusal) else Inline("", pybase64.b64encode(page.data))
