"""Every setting: its name, its default, what it may be and what it means."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from sightline.model.profile import Api
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.profiles.presets import PRESETS

PREFIXES = ("SIGHTLINE_", "PI_VISION_PROXY_")
HIDDEN = "apiKey"  # under this name, at the top or within an object, stands a provider's key

APIS: tuple[Api, ...] = get_args(Api)
_FLAGS: Mapping[str, bool] = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a setting may be: `fault` says what is wrong with a value, or nothing; `read` takes plain text."""

    allowed: str
    fault: Callable[[Any], str]
    read: Callable[[str], Json] = str


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    default: Json
    kind: Kind
    meaning: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, the strongest first."""
        words = re.sub(r"(?=[A-Z])", "_", self.name).upper()
        return tuple(prefix + words for prefix in PREFIXES)


def _choice(*names: str) -> Kind:
    allowed = ", ".join(names)
    return Kind(allowed, lambda value: "" if value in names else f"{value!r:.60} is not one of {allowed}")


def _count(low: int, high: int) -> Kind:
    def fault(value: object) -> str:
        whole = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return "" if whole else f"{value!r:.60} is not a whole number from {low} to {high}"

    return Kind(f"{low}–{high}", fault, lambda text: int(text) if re.fullmatch(r"\d{1,9}", text) else text)


def _text_fault(value: object) -> str:
    return "" if isinstance(value, str) else "it is not text"


def _url_fault(value: object) -> str:
    if value == "":
        return ""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        return "it is not an address that begins with http:// or https://"
    return "it holds a password, which an address must not" if parts.username or parts.password else ""


def _models_fault(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for pattern, facts in value.items():
        if not isinstance(facts, dict) or not isinstance(facts.get("vision", True), bool):
            return f'{pattern!r} should be like {{"vision": false}}'
    return ""


def _upstreams_fault(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    return next((f"{name!r}: {fault}" for name, entry in value.items() if (fault := _upstream_fault(name, entry))), "")


def _upstream_fault(name: str, entry: object) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name):
        return "a name is made of small letters, digits, dots and dashes"
    if not isinstance(entry, dict):
        return "it is not a JSON object"
    base, preset = entry.get("baseUrl", ""), entry.get("preset", "")
    if preset and preset not in tuple(PRESETS):
        return f"the preset {preset!r:.60} is not one of {', '.join(PRESETS)}"
    if not (base or preset or name in PRESETS):
        return "it needs a baseUrl or a preset"
    bases = base if isinstance(base, dict) else {"openai_chat": base}
    if unknown := bases.keys() - set(APIS):
        return f"baseUrl has {min(unknown)!r}, which is not one of {', '.join(APIS)}"
    faults = [*map(_url_fault, bases.values()), _text_fault(entry.get(HIDDEN, ""))]
    return next(filter(None, faults), "")


def _json(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except ValueError:
        return text  # and that is not what any of these keys may be


_TEXT = Kind("text", _text_fault)
_URL = Kind("an http(s) address", _url_fault)
_FLAG = Kind(
    "true, false",
    lambda value: "" if isinstance(value, bool) else f"{value!r:.60} is not true or false",
    lambda text: _FLAGS.get(text.lower(), text),
)

KEYS: tuple[Key, ...] = (
    Key("mode", "fallback", _choice("fallback", "always", "off"),
        "when images are told in words: for blind models, always, or never"),
    Key("provider", "", _TEXT, "the provider of the model that looks; empty: found by itself"),
    Key("modelId", "", _TEXT, "the model that looks, by its name at that provider"),
    Key("systemPrompt", "", _TEXT, "instructions for the model that looks; empty: Sightline's own"),
    Key("includeContext", default=True, kind=_FLAG,
        meaning="kept for older files; so far every description is made without the conversation"),
    Key("model", "", _TEXT,
        "provider/model in one; in the environment it comes before provider and modelId"),
    Key("apiKey", "", _TEXT, "the key for the model that looks, where no usual variable holds it"),
    Key("baseUrl", "", _URL, "where the model that looks is served, if not at its provider's usual address"),
    Key("models", {}, Kind("a JSON object", _models_fault, _json),
        'what a model can do, by pattern: {"zai/glm-5*": {"vision": false}}'),
    Key("upstreams", {}, Kind("a JSON object", _upstreams_fault, _json),
        'providers by name: {"work": {"baseUrl": "https://llm.example.com/v1", "preset": "deepseek"}}'),
    Key("maxImagesPerTurn", 20, _count(0, 1000), "how many images of one request are described; 0: no limit"),
    Key("seer", "auto", _choice("auto", "off"),
        "auto: find a model that looks when none is named; off: only the named one"),
    Key("record", "disk", _choice("disk", "memory"), "where images and descriptions are remembered"),
)  # fmt: skip


def find(name: str) -> Key | Refusal:
    known = {key.name: key for key in KEYS}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, 1)
    remedy = f"did you mean {close[0]}?" if close else "config show lists them"
    return Refusal("not_found", f"there is no setting {name!r}", remedy)
