"""What a setting may be: how plain text becomes a value, and what is wrong with one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from sightline.model.capability import DEFAULT_CAPABILITY, FIELDS, ImageCapability, image_capability
from sightline.model.fence import sound
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.rules import Retention
from sightline.model.scene import Json
from sightline.model.toolset import TOOL_NAMES, TOOLSET
from sightline.model.upstream import Upstream
from sightline.profiles.presets import PRESETS

HIDDEN = "apiKey"  # under this name, at the top or within an object, stands a provider's key

APIS: tuple[WireName, ...] = get_args(WireName)
_SKILLS = ("vision", "pdf", "video", "audio", "toolResultImages")
_FLAGS: Mapping[str, bool] = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a setting may be: `fault` says what is wrong with a value, or nothing; `read` parses plain text."""

    allowed: str
    fault: Callable[[Any], str]
    read: Callable[[str], Json] = str
    example: str = ""  # where what is allowed is more than a few words
    doubt: Callable[[Any], str] = lambda value: ""  # what is surely meant otherwise; a file may hold it all the same
    convert: Callable[[Any], object] = lambda value: value  # from a valid JSON value to that of the typed field

    def refusal(self, name: str, value: Json) -> Refusal | None:
        """Return why it cannot be set to a value, or None."""
        fault = self.fault(value) or self.doubt(value)
        if not fault:
            return None
        if self.example:
            return Refusal("invalid_input", f"{name}: {fault}", f"write it like {self.example}")
        return Refusal("invalid_input", f"{name} cannot be {value!r:.60}", f"allowed: {self.allowed}")


def choice(*names: str) -> Kind:
    allowed = ", ".join(names)
    return Kind(allowed, lambda value: "" if value in names else f"{value!r:.60} is not one of {allowed}")


def count(low: int, high: int) -> Kind:
    def fault(value: object) -> str:
        whole = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return "" if whole else f"{value!r:.60} is not a whole number from {low} to {high}"

    return Kind(f"{low}–{high}", fault, lambda text: int(text) if re.fullmatch(r"\d{1,9}", text) else text)


def number(low: float, high: float) -> Kind:
    def fault(value: object) -> str:
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
        return "" if numeric else f"{value!r:.60} is not a number from {low} to {high}"

    return Kind(f"{low}–{high}", fault, _json)


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
        if not isinstance(facts, dict) or not all(isinstance(facts.get(name, True), bool) for name in _SKILLS):
            return f'{pattern!r} should be like {{"vision": false}}'
        if not isinstance(way := facts.get("grounding", True), bool) and (fault := _format_fault(way)):
            return f"{pattern!r}: {fault}"
    return ""


def _models_doubt(value: Mapping[str, Mapping[str, Json]]) -> str:
    known = (*_SKILLS, "grounding")
    wrong = ((pattern, name) for pattern, facts in value.items() for name in facts if name not in known)
    return next(
        (f"{pattern!r} has {name!r:.60}, which is not one of {', '.join(known)}" for pattern, name in wrong), ""
    )


def _tools_doubt(value: list[str]) -> str:
    known = (TOOLSET, *TOOL_NAMES)
    return next((f"{name!r:.60} is not one of {', '.join(known)}" for name in value if name not in known), "")


def _capability_fault(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    wrong = (FIELDS.keys() & value.keys()) - image_capability(value).as_dict().keys()
    return f"{min(wrong)} is {value[min(wrong)]!r:.60}, which it cannot be" if wrong else ""


def _grounding_fault(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for model, entry in value.items():
        if fault := _format_fault(entry.get("format") if isinstance(entry, dict) else entry):
            return f"{model!r}: {fault}"
    return ""


def _format_fault(name: object) -> str:
    from sightline.grounding.formats import FORMATS  # with all their readers, which few settings speak of

    known = isinstance(name, str) and name in FORMATS
    return "" if known else f"the format {name!r:.60} is not one of {', '.join(FORMATS)}"


def _retention_fault(value: object) -> str:
    known = isinstance(value, str) and re.fullmatch(r"auto|off|turns:\d{1,4}", value)
    return "" if known else f"{value!r:.60} is not one of auto, turns:N, off"


def _words_fault(value: object) -> str:
    named = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    return "" if named else "it is not a list of names"


def _folders_fault(value: object) -> str:
    if fault := _words_fault(value):
        return fault
    folders = cast("list[str]", value)
    relative = [each for each in folders if not (Path(each).is_absolute() or each == "~" or each.startswith("~/"))]
    return f"{relative[0]!r:.60} is not an absolute path" if relative else ""


def _split_by(separator: str) -> Callable[[str], Json]:
    def read(text: str) -> Json:
        return _json(text) if text[:1] in "[{" else [each.strip() for each in text.split(separator) if each.strip()]

    return read


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
    lowering = entry.get("lowering", "byWire")
    known = lowering in ("byWire", "hoist")
    faults = [
        *map(_url_fault, bases.values()),
        _text_fault(entry.get(HIDDEN, "")),
        "" if known else f"lowering is {lowering!r:.60}, which is not one of byWire, hoist",
    ]
    return next(filter(None, faults), "")


def _json(text: str) -> Json:
    try:
        return strict_json(text)
    except (ValueError, RecursionError):
        return text  # and that is not what any of these keys may be


def strict_json(text: str) -> Json:
    """What every program reads as JSON: Python alone takes NaN and Infinity for it."""

    def no_number(name: str) -> Json:
        raise ValueError(f"{name} is no number in JSON")

    return cast("Json", json.loads(text, parse_constant=no_number))


def _convert_folders(folders: list[str]) -> tuple[Path, ...]:
    """Return the absolute paths; one below a home folder that is not known is left out."""
    expanded = (Path(os.path.expanduser(folder)) for folder in folders)  # noqa: PTH111, it does not raise
    return tuple(path for path in expanded if path.is_absolute())


def _convert_upstreams(entries: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Upstream]:
    return {
        name: Upstream(
            name,
            _convert_bases(entry.get("baseUrl", "")),
            entry.get("preset", ""),
            api_key=entry.get(HIDDEN, ""),
            hoist=None if "lowering" not in entry else entry["lowering"] == "hoist",
        )
        for name, entry in entries.items()
    }


def _convert_bases(base: str | dict[WireName, str]) -> Mapping[WireName, str]:
    if isinstance(base, dict):
        return {wire: url for wire, url in base.items() if url}
    return dict.fromkeys(APIS, base) if base else {}


def _convert_capability(value: dict[str, Json]) -> ImageCapability:
    return image_capability({**DEFAULT_CAPABILITY, **value})


def _convert_retention(value: str) -> Retention:
    return Retention(int(value.partition(":")[2]) if value.startswith("turns:") else None, off=value == "off")


TEXT = Kind("text", _text_fault)
PROMPT = replace(TEXT, convert=sound)
NETWORK = replace(choice("off", "on"), convert=lambda value: value == "on")
PASTED = replace(choice("keep", "retire"), convert=lambda value: value == "retire")
URL = Kind("an http(s) address", _url_fault, example="https://llm.example.com/v1")
FLAG = Kind(
    "true, false",
    lambda value: "" if isinstance(value, bool) else f"{value!r:.60} is not true or false",
    lambda text: _FLAGS.get(text.lower(), text),
)
_OBJECT = "a JSON object"
MODELS = Kind(_OBJECT, _models_fault, _json, '{"zai/glm-5*": {"vision": false}}', _models_doubt)
UPSTREAMS = Kind(
    _OBJECT, _upstreams_fault, _json, '{"work": {"baseUrl": "https://llm.example.com/v1"}}', convert=_convert_upstreams
)
CAPABILITY = Kind(_OBJECT, _capability_fault, _json, '{"maxBytes": 5242880}', convert=_convert_capability)
GROUNDING = Kind(_OBJECT, _grounding_fault, _json, '{"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}')
RETENTION = Kind("auto, turns:N, off", _retention_fault, convert=_convert_retention)
TOOLS = Kind("names", _words_fault, _split_by(","), "view_image,analyze_image", _tools_doubt, frozenset)
FOLDERS = Kind(
    "absolute paths",
    _folders_fault,
    _split_by(os.pathsep),
    f"/home/me/pictures{os.pathsep}/data",
    convert=_convert_folders,
)
