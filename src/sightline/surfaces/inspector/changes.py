"""What the pages can do beyond reading: try an image, give or withdraw a consent, change a setting.

A consent and a setting are changed only if the request says that the user has confirmed it. Keys cannot be set here.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from sightline.api.analysis import describe
from sightline.api.failure import Failure
from sightline.api.input_file import GivenImage
from sightline.api.session import ToolContext
from sightline.commands.command_values import Consent
from sightline.commands.execution import change_settings
from sightline.model.geometry import PixelCrop
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings.upstreams import format_provider

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
