"""The kinds of settings. A kind parses, checks and converts the values of a setting."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from sightline.model.facts import Retention
from sightline.model.fence import replace_surrogates
from sightline.model.media_capability import DEFAULT_CAPABILITY, IMAGE_FIELDS, ImageCapability, parse_image_capability
from sightline.model.profile import Upstream, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import TOOL_NAMES, TOOLSET_NAME, Json
from sightline.model.seer import LOCAL_SEER
from sightline.model.shared_address import find_blobs_fault, find_store_fault
from sightline.model.value import value_class
from sightline.profiles.presets import PRESETS
from sightline.profiles.profile_lookup import spread_address

STORE_NAME = "store"  # its address may contain a password
API_KEY_NAME = "apiKey"  # the name of a provider's key, at the top or within an object

WIRE_NAMES: tuple[WireName, ...] = get_args(WireName)
_MODEL_FACTS = ("vision", "pdf", "video", "audio", "toolResultImages")
_FLAG_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


@value_class
class SettingKind:
    """The values that a setting may have, and how they are parsed, checked and converted.

    `find_fault` and `find_doubt` return what is wrong with a value, or an empty string.
    """

    allowed: str
    find_fault: Callable[[Any], str]
    parse: Callable[[str], Json] = str
    example: str = ""  # for values that `allowed` cannot describe in a few words
    find_doubt: Callable[[Any], str] = lambda value: ""  # a likely mistake, which a file may contain
    convert: Callable[[Any], object] = lambda value: value  # from a valid JSON value to the typed field
    find_entry_fault: Callable[[str, Any], str] | None = None  # for an object of entries that count one by one
    words: tuple[str, ...] = ()  # the values that can be listed

    def drop_entries(self, value: Json) -> tuple[Json, list[str]]:
        """Return a value without its invalid entries, and what is wrong with each, if any is valid.

        A command refuses such a value instead.
        """
        if self.find_entry_fault is None or not isinstance(value, dict):
            return value, []
        faults = {name: self.find_entry_fault(name, entry) for name, entry in value.items()}
        valid: Json = {name: value[name] for name in value if not faults[name]}
        return (valid, [*filter(None, faults.values())]) if valid else (value, [])

    def refuse_value(self, name: str, value: Json) -> Refusal | None:
        """Return why a setting cannot have a value, or None."""
        fault = self.find_fault(value) or self.find_doubt(value)
        if not fault:
            return None
        if self.example:
            return Refusal("invalid_input", f"{name}: {fault}", f"write it like {self.example}")
        return Refusal("invalid_input", f"{name} cannot be {value!r:.60}", f"allowed: {self.allowed}")


def choice(*names: str) -> SettingKind:
    allowed = ", ".join(names)
    return SettingKind(
        allowed, lambda value: "" if value in names else f"{value!r:.60} is not one of {allowed}", words=names
    )


def whole_number(low: int, high: int) -> SettingKind:
    def find_fault(value: object) -> str:
        is_valid = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return "" if is_valid else f"{value!r:.60} is not a whole number from {low} to {high}"

    return SettingKind(f"{low}–{high}", find_fault, lambda text: int(text) if re.fullmatch(r"\d{1,9}", text) else text)


def number(low: float, high: float) -> SettingKind:
    def find_fault(value: object) -> str:
        is_valid = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
        return "" if is_valid else f"{value!r:.60} is not a number from {low} to {high}"

    return SettingKind(f"{low}–{high}", find_fault, _parse_json)


def _check_text(value: object) -> str:
    return "" if isinstance(value, str) else "it is not text"


def _check_url(value: object) -> str:
    if value == "":
        return ""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        return "it is not an address that begins with http:// or https://"
    return "an address must not contain a login" if parts.username or parts.password else ""


def _build_object_check(find_entry_fault: Callable[[str, Any], str]) -> Callable[[object], str]:
    """Return a check of an object, which is as good as its first bad entry."""

    def find_fault(value: object) -> str:
        if not isinstance(value, dict):
            return "it is not a JSON object"
        return next((fault for name, entry in value.items() if (fault := find_entry_fault(name, entry))), "")

    return find_fault


def _check_model(pattern: str, facts: object) -> str:
    if not isinstance(facts, dict) or not all(isinstance(facts.get(name, True), bool) for name in _MODEL_FACTS):
        return f'{pattern!r} should be like {{"vision": false}}'
    if not isinstance(name := facts.get("grounding", True), bool) and (fault := _check_format(name)):
        return f"{pattern!r}: {fault}"
    return ""


def _check_fact_names(value: Mapping[str, Mapping[str, Json]]) -> str:
    allowed = (*_MODEL_FACTS, "grounding")
    wrong = ((pattern, name) for pattern, facts in value.items() for name in facts if name not in allowed)
    return next(
        (f"{pattern!r} has {name!r:.60}, which is not one of {', '.join(allowed)}" for pattern, name in wrong), ""
    )


def _check_tool_names(value: list[str]) -> str:
    allowed = (TOOLSET_NAME, *TOOL_NAMES)
    return next((f"{name!r:.60} is not one of {', '.join(allowed)}" for name in value if name not in allowed), "")


def _check_capability_field(name: str, entry: Any) -> str:
    is_read = name not in IMAGE_FIELDS or name in parse_image_capability({name: entry}).as_dict()
    return "" if is_read else f"{name} cannot be {entry!r:.60}"


def _check_grounding_model(model: str, entry: object) -> str:
    fault = _check_format(entry.get("format") if isinstance(entry, dict) else entry)
    return f"{model!r}: {fault}" if fault else ""


def _check_format(name: object) -> str:
    from sightline.grounding import FORMATS  # heavy, and few settings name a format

    allowed = isinstance(name, str) and name in FORMATS
    return "" if allowed else f"the format {name!r:.60} is not one of {', '.join(FORMATS)}"


def _check_seer(value: object) -> str:
    provider, _, model = value.partition("/") if isinstance(value, str) else ("", "", "")
    is_valid = value in ("auto", "off", LOCAL_SEER) or (provider and model)
    return "" if is_valid else f"{value!r:.60} is not auto, off, {LOCAL_SEER} or PROVIDER/MODEL"


def _check_retention(value: object) -> str:
    allowed = isinstance(value, str) and re.fullmatch(r"auto|off|turns:\d{1,4}", value)
    return "" if allowed else f"{value!r:.60} is not one of auto, turns:N, off"


def _check_names(value: object) -> str:
    is_valid = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    return "" if is_valid else "it is not a list of names"


def _check_folders(value: object) -> str:
    if fault := _check_names(value):
        return fault
    folders = cast("list[str]", value)
    relative = [each for each in folders if not (Path(each).is_absolute() or each == "~" or each.startswith("~/"))]
    return f"{relative[0]!r:.60} is not an absolute path" if relative else ""


def _build_list_parser(separator: str) -> Callable[[str], Json]:
    def parse(text: str) -> Json:
        return (
            _parse_json(text) if text[:1] in "[{" else [each.strip() for each in text.split(separator) if each.strip()]
        )

    return parse


def _check_upstream(name: str, entry: object) -> str:
    fault = _find_upstream_fault(name, entry)
    return f"{name!r}: {fault}" if fault else ""


def check_upstream_name(name: str) -> str:
    """Return what is wrong with the name of an upstream, which is a part of paths; empty: nothing."""
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name):
        return ""
    return "a name may have only lower-case letters, digits, dots, dashes and underscores"


def _find_upstream_fault(name: str, entry: object) -> str:
    if fault := check_upstream_name(name):
        return fault
    if not isinstance(entry, dict):
        return "it is not a JSON object"
    base, preset = entry.get("baseUrl", ""), entry.get("preset", "")
    if preset and preset not in tuple(PRESETS):
        return f"the preset {preset!r:.60} is not one of {', '.join(PRESETS)}"
    if not (base or preset or name in PRESETS):
        return "it needs a baseUrl or a preset"
    bases = base if isinstance(base, dict) else {"openai_chat": base}
    if unknown := bases.keys() - set(WIRE_NAMES):
        return f"baseUrl has {min(unknown)!r}, which is not one of {', '.join(WIRE_NAMES)}"
    lowering = entry.get("lowering", "byWire")
    is_known = lowering in ("byWire", "hoist")
    faults = [
        *map(_check_url, bases.values()),
        _check_text(entry.get(API_KEY_NAME, "")),
        "" if is_known else f"lowering is {lowering!r:.60}, which is not one of byWire, hoist",
    ]
    return next(filter(None, faults), "")


def _parse_json(text: str) -> Json:
    try:
        return parse_strict_json(text)
    except (ValueError, RecursionError):
        return text  # which `find_fault` rejects


def parse_strict_json(text: str) -> Json:
    """Parse JSON without NaN and Infinity, which Python would accept."""

    def reject_constant(name: str) -> Json:
        raise ValueError(f"{name} is not a number in JSON")

    return cast("Json", json.loads(text, parse_constant=reject_constant))


def _convert_folders(folders: list[str]) -> tuple[Path, ...]:
    """Return the absolute paths, without those in an unknown home folder."""
    expanded = (Path(os.path.expanduser(folder)) for folder in folders)  # noqa: PTH111, it does not raise
    return tuple(path for path in expanded if path.is_absolute())


def _convert_upstreams(entries: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Upstream]:
    return {
        name: Upstream(
            name,
            _convert_bases(entry.get("baseUrl", ""), entry.get("preset") or (name if name in PRESETS else "")),
            entry.get("preset", ""),
            api_key=entry.get(API_KEY_NAME, ""),
            hoist=None if "lowering" not in entry else entry["lowering"] == "hoist",
        )
        for name, entry in entries.items()
    }


def _convert_bases(base: str | dict[WireName, str], preset: str) -> Mapping[WireName, str]:
    if isinstance(base, dict):
        return {wire: url for wire, url in base.items() if url}
    return spread_address(base, preset) if base else {}


def _convert_capability(value: dict[str, Json]) -> ImageCapability:
    return parse_image_capability({**DEFAULT_CAPABILITY, **value})


def _convert_retention(value: str) -> Retention:
    return Retention(int(value.partition(":")[2]) if value.startswith("turns:") else None, is_off=value == "off")


def _build_address_check(find_fault: Callable[[str], str]) -> Callable[[object], str]:
    """Return a check that allows an empty text. A wrong address is refused where the record is opened."""
    return lambda value: find_fault(value) if isinstance(value, str) and value else ""


TEXT = SettingKind("text", _check_text)
STORE = replace(TEXT, find_doubt=_build_address_check(find_store_fault), example="postgresql://USER@HOST/DATABASE")
BLOBS = replace(TEXT, find_doubt=_build_address_check(find_blobs_fault), example="s3://BUCKET/PREFIX")
PROMPT = replace(TEXT, convert=replace_surrogates)
SWITCH = replace(choice("off", "on"), convert=lambda value: value == "on")
PASTED = replace(choice("keep", "retire"), convert=lambda value: value == "retire")
URL = SettingKind("an http(s) address", _check_url, example="https://llm.example.com/v1")
FLAG = SettingKind(
    "true, false",
    lambda value: "" if isinstance(value, bool) else f"{value!r:.60} is not true or false",
    lambda text: _FLAG_WORDS.get(text.lower(), text),
    words=("true", "false"),
)
_OBJECT = "a JSON object"
MODELS = SettingKind(
    _OBJECT,
    _build_object_check(_check_model),
    _parse_json,
    '{"zai/glm-5*": {"vision": false}}',
    _check_fact_names,
    find_entry_fault=_check_model,
)
UPSTREAMS = SettingKind(
    _OBJECT,
    _build_object_check(_check_upstream),
    _parse_json,
    '{"work": {"baseUrl": "https://llm.example.com/v1"}}',
    convert=_convert_upstreams,
    find_entry_fault=_check_upstream,
)
CAPABILITY = SettingKind(
    _OBJECT,
    _build_object_check(_check_capability_field),
    _parse_json,
    '{"maxBytes": 5242880}',
    convert=_convert_capability,
    find_entry_fault=_check_capability_field,
)
GROUNDING = SettingKind(
    _OBJECT,
    _build_object_check(_check_grounding_model),
    _parse_json,
    '{"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}',
    find_entry_fault=_check_grounding_model,
)
SEER = SettingKind(f"auto, off, {LOCAL_SEER}, PROVIDER/MODEL", _check_seer, words=("auto", "off", LOCAL_SEER))
RETENTION = SettingKind("auto, turns:N, off", _check_retention, convert=_convert_retention, words=("auto", "off"))
TOOLS = SettingKind(
    "names", _check_names, _build_list_parser(","), "view_image,analyze_image", _check_tool_names, frozenset
)
FOLDERS = SettingKind(
    "absolute paths",
    _check_folders,
    _build_list_parser(os.pathsep),
    f"/home/me/pictures{os.pathsep}/data",
    convert=_convert_folders,
)
