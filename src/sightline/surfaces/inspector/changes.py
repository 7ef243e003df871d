"""Who may open the inspector, and what the pages can do beyond reading: try an image, change a consent or a setting.

A link works once, then there is a cookie. A ticket and a session are files in a folder that only the user can read,
named by the hash of a random token. So all processes of the user agree on them, and a stolen folder listing opens
nothing. Redeeming a ticket deletes its file: the first one to do so gets the session.

A consent and a setting are changed only if the request says that the user has confirmed it. Keys cannot be set here.
"""

from __future__ import annotations

import binascii
import hmac
import re
import secrets
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from sightline.api.analysis import describe
from sightline.api.failure import Failure
from sightline.api.input_file import GivenImage
from sightline.api.session import ToolContext
from sightline.commands import Consent
from sightline.commands.execution import change_settings
from sightline.disk import write_atomically
from sightline.model.geometry import PixelCrop
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings.upstreams import format_provider

COOKIE = "sightline-inspector"
TICKET_SECONDS = 300.0
SESSION_SECONDS = 12 * 3600.0


class InspectorAccess:
    def __init__(self, folder: Path) -> None:
        """`folder` is created with access for its owner only."""
        self._folder = folder

    def issue_ticket(self) -> str:
        """Return a ticket for one session; it expires after five minutes."""
        ticket = secrets.token_urlsafe(32)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._sweep()
        write_atomically(self._find_file("ticket", ticket), b"")
        return ticket

    def has_ticket(self, digest: str) -> bool:
        """Return whether there is a ticket with this hash, which doesn't use it."""
        return digest.isalnum() and _is_fresh(self._folder / f"ticket-{digest}", TICKET_SECONDS)

    def redeem(self, ticket: str) -> str | None:
        """Use up a ticket, and return the token of a new session; None: there is no such ticket."""
        file = self._find_file("ticket", ticket)
        fresh = _is_fresh(file, TICKET_SECONDS)
        try:
            file.unlink()
        except OSError:
            return None
        if not fresh:
            return None
        session = secrets.token_urlsafe(32)
        write_atomically(self._find_file("session", session), b"")
        return session

    def is_open(self, session: str) -> bool:
        return bool(session) and _is_fresh(self._find_file("session", session), SESSION_SECONDS)

    def _find_file(self, kind: str, token: str) -> Path:
        return self._folder / f"{kind}-{hash_token(token)}"

    def _sweep(self) -> None:
        for kind, seconds in (("ticket", TICKET_SECONDS), ("session", SESSION_SECONDS)):
            for file in self._folder.glob(f"{kind}-*"):
                if not _is_fresh(file, seconds):
                    file.unlink(missing_ok=True)


def hash_token(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def compute_form_token(session: str) -> str:
    """Return what a page of this session must send with each change, and what no other page can know."""
    return hmac.new(session.encode(), b"form", sha256).hexdigest()


def _is_fresh(file: Path, seconds: float) -> bool:
    try:
        return 0 <= time.time() - file.stat().st_mtime + 1 <= seconds + 1
    except OSError:
        return False


MAX_IMAGES = 2
_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch
_NOT_CONFIRMED = Refusal("invalid_input", "this change was not confirmed", "confirm it on the page")
_NO_KEYS = Refusal("not_permitted", "keys can't be set on this page", "run: sightline config set NAME -")
_NO_IMAGE = Refusal("invalid_input", "there is no image", "drop or paste one or two images")
_BAD_CROP = Refusal("invalid_input", "the crop is not four whole numbers", "draw it again")

Change = Callable[[Mapping[str, Json]], dict[str, Json] | Refusal]


class Changes:
    def __init__(self, open_context: Callable[[], ToolContext]) -> None:
        """`open_context` returns the context of the user, by the current settings."""
        self._open_context = open_context

    def find(self, path: str) -> Change | None:
        """Return what answers a POST to this path of the API."""
        return {"try": self._try_images, "consent": self._set_consent, "setting": self._set_setting}.get(path)

    def _try_images(self, given: Mapping[str, Json]) -> dict[str, Json] | Refusal:
        """Describe one image or compare two, as `sightline describe` does."""
        images = _read_images(given.get("images"))
        crop = _read_crop(given.get("crop"))
        if isinstance(images, Refusal):
            return images
        if isinstance(crop, Refusal):
            return crop
        context, question = self._open_context(), given.get("question")
        crops = {0: crop} if crop else {}
        found = describe(context, images, question=question if isinstance(question, str) else "", crops=crops)
        if isinstance(found, Failure):
            return {"ok": False, "message": found.message}
        assert context.settings is not None, "the context of the user has settings"
        sizes: list[Json] = [[each.size.width, each.size.height] for each in found.members]
        return {**found.as_dict(), "by": format_provider(context.settings, found.seer), "sizes": sizes}

    def _set_consent(self, given: Mapping[str, Json]) -> dict[str, Json] | Refusal:
        provider = given.get("provider")
        if given.get("confirmed") is not True or not isinstance(provider, str):
            return _NOT_CONFIRMED
        context = self._open_context()
        assert context.settings is not None, "the context of the user has settings"
        command = Consent("yes" if given.get("given") is True else "no", provider)
        done = change_settings(command, context.settings, context.record)
        return done if isinstance(done, Refusal) else {"ok": True, "lines": [*done.lines]}

    def _set_setting(self, given: Mapping[str, Json]) -> dict[str, Json] | Refusal:
        name, value = given.get("name"), given.get("value")
        if given.get("confirmed") is not True or not isinstance(name, str) or not isinstance(value, str):
            return _NOT_CONFIRMED
        settings = self._open_context().settings
        assert settings is not None, "the context of the user has settings"
        if settings.has_secret(name, value):
            return _NO_KEYS
        refusal = settings.unset(name) if value == "" else settings.save(name, value)
        return refusal or {"ok": True}


def _read_images(value: Json) -> list[object] | Refusal:
    """Return images that a page has sent as base64, or as the sha256 of one in the record."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_IMAGES:
        return _NO_IMAGE
    images: list[object] = []
    for each in value:
        row: dict[str, Any] = each if isinstance(each, dict) else {}
        data, sha256, name = row.get("data"), row.get("sha256"), row.get("name")
        if isinstance(sha256, str) and _is_sha256(sha256):
            images.append(f"sha256:{sha256}")
        elif isinstance(data, str):
            try:
                images.append(GivenImage(b64decode(data, validate=True), name if isinstance(name, str) else ""))
            except (binascii.Error, ValueError):
                return _NO_IMAGE
        else:
            return _NO_IMAGE
    return images


def _read_crop(value: Json) -> PixelCrop | Refusal | None:
    """Return a crop in pixels; None: the whole image."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 4:
        return _BAD_CROP
    numbers = [each for each in value if isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 10**6]
    return PixelCrop(*numbers) if len(numbers) == 4 else _BAD_CROP
