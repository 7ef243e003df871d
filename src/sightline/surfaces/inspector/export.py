"""Write one conversation as a single HTML file: the pages, their style and scripts, and what the API would answer.

The file loads nothing, and its policy allows exactly the scripts and the style in it. It contains no key, also where a
description or an edited place has one: the keys of the settings and everything that looks like a key are replaced.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256

from sightline.model.image import Image, ImageTarget
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.workers import WorkerPool
from sightline.surfaces.inspector import SCRIPTS, read_static
from sightline.surfaces.inspector.queries import Queries

_EDGE = 800
_MAX_IMAGES = 400
_MASK = "[key]"
_key_like = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt]))(?:"  # edited places are JSON: a line break in them is two characters
    r"(?:sk|pk|rk|xai|gsk|hf|ghp|gho|ghs|glpat|github_pat|AKIA|ASIA|AIza|ya29|xox[abprs])[-_.A-Za-z0-9]{16,}"
    r"|(?i:bearer)\s+[-_.~+/A-Za-z0-9]{20,}=*"
    r"|eyJ[-_A-Za-z0-9]{10,}\.eyJ[-_A-Za-z0-9]{10,}\.[-_A-Za-z0-9]{16,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)",
    re.DOTALL,
)
_LIVE_ONLY = ("try.js", "settings.js")
_NO_CONVERSATION = Refusal(
    "not_found", "the record has no such conversation", "run `sightline inspect` to see which there are"
)


def write_page(
    queries: Queries, conversation: str, pictures: Mapping[str, str], keys: Collection[str] = ()
) -> bytes | Refusal:
    """Return a conversation as an HTML file; `pictures` are data URLs by sha256, `keys` must not be in it."""
    answers: dict[str, Json] = {}
    requests: list[Json] = []
    after: Json = 0
    while isinstance(after, int):
        page = queries.read_conversation(conversation, after)
        if isinstance(page, Refusal):
            return page
        rows = page["requests"]
        assert isinstance(rows, list)
        requests += rows
        answers["conversation"] = {"summary": page["summary"], "requests": requests, "next": None}
        after = page["next"]
    for digest in pictures:
        answers[f"image/{digest}"] = queries.read_image(digest)
    forms = {form for key in keys for form in (key, json.dumps(key)[1:-1])}
    masked = _mask_keys(answers, forms)
    return _fill_page({"conversation": conversation, "answers": masked, "pictures": dict(pictures)})


def _mask_keys(value: Json, keys: Collection[str]) -> Json:
    if isinstance(value, dict):
        return {name: _mask_keys(each, keys) for name, each in value.items()}
    if isinstance(value, list):
        return [_mask_keys(each, keys) for each in value]
    if not isinstance(value, str):
        return value
    for key in keys:
        value = value.replace(key, _MASK)
    return _key_like.sub(_MASK, value)


def find_pictures(record: Store, conversation: str, make: Callable[[Image], str | None]) -> dict[str, str]:
    """Return the images of a conversation as data URLs by sha256. An image that can't be made small is left out."""
    found: dict[str, str] = {}
    after = 0
    while (requests := record.ledger.read_conversation(conversation, 200, after)) and len(found) < _MAX_IMAGES:
        after = requests[-1].id
        for line in (line for filed in requests for line in filed.receipt.sights):
            if line.sha256 and line.sha256 not in found and len(found) < _MAX_IMAGES:
                image = record.images.read(None, line.sha256)
                found[line.sha256] = (make(image) if image else None) or ""
    return found


def make_small(workers: WorkerPool, image: Image) -> str | None:
    """Return a small copy of an image as a data URL."""
    target = ImageTarget(("image/webp", "image/jpeg"), edge=_EDGE, still=True, keeps_geometry=True)
    fitted = workers.run_sync("fit", image.data, pack_target(target))
    return None if isinstance(fitted, Refusal) else unpack_fit_result(fitted.facts, fitted.data).parts[0].image.data_url


def choose_conversation(record: Store, conversation: str) -> str | Refusal:
    """Return the id of a conversation, which may be shortened; empty: the newest one."""
    offset = 0
    while rows := record.ledger.list_conversations(200, offset):
        for each in rows:
            if each.id.startswith(conversation):
                return each.id
        offset += len(rows)
    return _NO_CONVERSATION


def _fill_page(data: Mapping[str, Json]) -> bytes:
    style = read_static("inspector.css")
    scripts = read_static(*(name for name in SCRIPTS if name not in _LIVE_ONLY))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(scripts)}';"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    html = read_static("inspector.html").decode()
    head = f'<meta http-equiv="content-security-policy" content="{policy}">'
    html = html.replace('<link rel="icon" href="icon.svg">\n', "")
    html = html.replace('<link rel="stylesheet" href="inspector.css">', f"{head}\n<style>{style.decode()}</style>")
    start, end = html.index("<!-- scripts -->"), html.index("<!-- end of scripts -->")
    text = json.dumps(data).replace("<", "\\u003c")  # no text can end the element
    block = f'<script type="application/json" id="exported">{text}</script>\n<script>{scripts.decode()}</script>'
    return (html[:start] + block + html[end:]).encode()


def _hash(text: bytes) -> str:
    return f"sha256-{b64encode(sha256(text).digest()).decode()}"
