"""Images of the record as resources: `sightline://sha256/` and the 64 hex digits of one. Pure."""

from __future__ import annotations

import re

from sightline.model.fence import one_line
from sightline.model.image import Kept

TEMPLATE = "sightline://sha256/{sha256}"
_URI = re.compile(r"sightline://sha256/([0-9a-f]{64})/?", re.IGNORECASE | re.ASCII)


def uri(sha256: str) -> str:
    return TEMPLATE.format(sha256=sha256)


def sha256_of(address: str) -> str | None:
    found = _URI.fullmatch(address)
    return found[1].lower() if found else None


def title(kept: Kept) -> str:
    """As a person finds it in a list."""
    name = one_line(re.split(r"[/\\]", kept.path)[-1]) or f"sha256:{kept.sha256[:12]}"
    return f"{name} ({kept.mime}, {kept.size})"
