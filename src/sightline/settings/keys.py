"""Every setting: its name, default, meaning and kind. The kind parses, checks and converts its values."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
from sightline.profiles.presets import PRESETS

PREFIXES = ("SIGHTLINE_", "PI_VISION_PROXY_")
API_KEY_NAME = "apiKey"  # the name of a provider's key, at the top or within an object

WIRE_NAMES: tuple[WireName, ...] = get_args(WireName)
_MODEL_FACTS = ("vision", "pdf", "video", "audio", "toolResultImages")
_FLAG_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


@dataclass(frozen=True, slots=True)
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
    return SettingKind(allowed, lambda value: "" if value in names else f"{value!r:.60} is not one of {allowed}")


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


def _check_models(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for pattern, facts in value.items():
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


def _check_capability(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    wrong = (IMAGE_FIELDS.keys() & value.keys()) - parse_image_capability(value).as_dict().keys()
    return f"{min(wrong)} cannot be {value[min(wrong)]!r:.60}" if wrong else ""


def _check_grounding(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for model, entry in value.items():
        if fault := _check_format(entry.get("format") if isinstance(entry, dict) else entry):
            return f"{model!r}: {fault}"
    return ""


def _check_format(name: object) -> str:
    from sightline.grounding.formats import FORMATS  # heavy, and few settings name a format

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


def _check_upstreams(value: object) -> str:
    if not isinstance(value, dict):
        return "it is not a JSON object"
    return next((f"{name!r}: {fault}" for name, entry in value.items() if (fault := _check_upstream(name, entry))), "")


def _check_upstream(name: str, entry: object) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name):
        return "a name may have only lower-case letters, digits, dots, dashes and underscores"
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
            _convert_bases(entry.get("baseUrl", "")),
            entry.get("preset", ""),
            api_key=entry.get(API_KEY_NAME, ""),
            hoist=None if "lowering" not in entry else entry["lowering"] == "hoist",
        )
        for name, entry in entries.items()
    }


def _convert_bases(base: str | dict[WireName, str]) -> Mapping[WireName, str]:
    if isinstance(base, dict):
        return {wire: url for wire, url in base.items() if url}
    return dict.fromkeys(WIRE_NAMES, base) if base else {}


def _convert_capability(value: dict[str, Json]) -> ImageCapability:
    return parse_image_capability({**DEFAULT_CAPABILITY, **value})


def _convert_retention(value: str) -> Retention:
    return Retention(int(value.partition(":")[2]) if value.startswith("turns:") else None, is_off=value == "off")


TEXT = SettingKind("text", _check_text)
PROMPT = replace(TEXT, convert=replace_surrogates)
SWITCH = replace(choice("off", "on"), convert=lambda value: value == "on")
PASTED = replace(choice("keep", "retire"), convert=lambda value: value == "retire")
URL = SettingKind("an http(s) address", _check_url, example="https://llm.example.com/v1")
FLAG = SettingKind(
    "true, false",
    lambda value: "" if isinstance(value, bool) else f"{value!r:.60} is not true or false",
    lambda text: _FLAG_WORDS.get(text.lower(), text),
)
_OBJECT = "a JSON object"
MODELS = SettingKind(_OBJECT, _check_models, _parse_json, '{"zai/glm-5*": {"vision": false}}', _check_fact_names)
UPSTREAMS = SettingKind(
    _OBJECT,
    _check_upstreams,
    _parse_json,
    '{"work": {"baseUrl": "https://llm.example.com/v1"}}',
    convert=_convert_upstreams,
)
CAPABILITY = SettingKind(_OBJECT, _check_capability, _parse_json, '{"maxBytes": 5242880}', convert=_convert_capability)
GROUNDING = SettingKind(
    _OBJECT, _check_grounding, _parse_json, '{"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}'
)
SEER = SettingKind(f"auto, off, {LOCAL_SEER}, PROVIDER/MODEL", _check_seer)
RETENTION = SettingKind("auto, turns:N, off", _check_retention, convert=_convert_retention)
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


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. A dot in its name means a nested object; a file may write it either way."""

    name: str
    default: Json
    kind: SettingKind
    meaning: str
    variable: str = ""  # its name in the environment, if that is not derived from `name`
    attribute: str = ""  # its field in `Settings`, if that is not derived from `name`
    needs_restart: bool = False  # processes that run already don't use a new value

    @property
    def field(self) -> str:
        """The field of `Settings` that has its typed value."""
        return self.attribute or _snake_case(self.name)

    @property
    def restart_note(self) -> str:
        """What to tell the user who sets it; empty: running processes use it within a second."""
        return "; commands that run already use it after a restart" if self.needs_restart else ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it; the first that is set wins."""
        words = self.variable or _snake_case(self.name).upper()
        return tuple(prefix + words for prefix in PREFIXES)


def _snake_case(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).replace(".", "_").lower()


KEYS: tuple[Setting, ...] = (
    Setting("mode", "fallback", choice("fallback", "always", "off", "route"),
        "fallback: images are described for text-only models; always: for every model; off: for none; "
        "route: turns with new images go to `imageModel`, and the images are described afterwards"),
    Setting("provider", "", TEXT,
        "older than `seer`: the provider of the vision model; `apiKey` and `baseUrl` belong to it if it is set"),
    Setting("modelId", "", TEXT, "older than `seer`: the vision model, by its name at `provider`"),
    Setting("systemPrompt", "", PROMPT, "instructions for the vision model; empty: Sightline's own"),
    Setting("includeContext", default=True, kind=FLAG,
        meaning="the vision model also gets the end of the conversation when it describes a new image"),
    Setting("tool", "auto", choice("auto", "on", "off"),
        "auto: the proxy offers analyze_image to text-only models; on: to every model; off: to none, "
        "and the library does not list it either"),
    Setting("maxImagesPerCall", 10, whole_number(1, 20),
        "how many images one call of analyze_image, or one describe, may have"),
    Setting("maxBatch", 4, whole_number(1, 10),
        "how many images of one turn are also described together, to compare them; 1: never"),
    Setting("cacheSize", 50, whole_number(0, 500), "how many answers of analyze_image a process remembers; 0: none"),
    Setting("pHashSimilarityThreshold", 0.8, number(0, 1),
        "how much two images must be alike to count as similar", "PHASH_THRESHOLD", "phash_similarity_threshold"),
    Setting("groundingModels", {}, GROUNDING,
        'how a model writes coordinates: {"Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"}}'),
    Setting("model", "", TEXT,
        "older than `seer`: the vision model as PROVIDER/MODEL; in the environment it overrides the settings file"),
    Setting("apiKey", "", TEXT, "the key for the vision model, if none of its provider's usual variables is set",
        attribute="main_api_key"),
    Setting("baseUrl", "", URL, "where the vision model is served, if not at its provider's usual address",
        attribute="main_base_url"),
    Setting("auxiliary.vision.model", "", TEXT,
        "the vision model; overrides `seer` and all other settings that name one"),
    Setting("auxiliary.vision.provider", "", TEXT, "its provider; empty: as `provider`"),
    Setting("auxiliary.vision.apiKey", "", TEXT, "its key; empty: as `apiKey`, if provider and address are the same"),
    Setting("auxiliary.vision.baseUrl", "", URL,
        "its address; empty: as `baseUrl`, if the provider is the same"),
    Setting("toolset", ["vision"], TOOLS, "the tools to offer, by name; vision stands for all but edit_file"),
    Setting("listImages", "folder", choice("folder", "all"),
        "the images that list_images lists: those that were found in the working folder, or all in the record"),
    Setting("fsReach", [], FOLDERS,
        "folders that tools may read, and edit_file may write, besides the working folder and the temporary one"),
    Setting("network", "off", SWITCH,
        "on: an image at a public https address is fetched when a text-only model is sent one, or a tool is asked to "
        "view one; off: no name is resolved and nothing is fetched, except an address given to ask or as file_url"),
    Setting("render", "on", SWITCH,
        "on: tools also show files that are not images, such as drawings and documents, by rendering them; off: they "
        "show images only; the command line always renders"),
    Setting("models", {}, MODELS, 'what a model can do, by pattern: {"zai/glm-5*": {"vision": false}}'),
    Setting("upstreams", {}, UPSTREAMS,
        'providers by name: {"work": {"baseUrl": "https://llm.example.com/v1", "preset": "deepseek"}}'),
    Setting("imageCapability", DEFAULT_CAPABILITY, CAPABILITY,
        "the image capability that is advertised to ACP clients; fields that are left out keep their default"),
    Setting("trustPeerCapability", "trust", choice("trust", "verify", "ignore"),
        "whether to rely on a peer's promises about images: trust: yes; verify: once the peer has kept them; "
        "ignore: no"),
    Setting("retention", "auto", RETENTION,
        "when an image that its tool can show again is replaced by a line about it: "
        "auto: when that is cheaper than keeping it in the prompt cache; turns:N: after N turns; off: never"),
    Setting("retention.pasted", "keep", PASTED,
        "whether pasted images are retired too, if a tool can show them again"),
    Setting("lowering", "byWire", choice("byWire", "hoist"),
        "byWire: images of tool results stay where the wire allows it; hoist: they always get a message of their own; "
        "an entry of `upstreams` can override it"),
    Setting("grounding", default=True, kind=FLAG,
        meaning="ask vision models for coordinates, if they can give them"),
    Setting("boxes", default=True, kind=FLAG,
        meaning="add the coordinates in an answer, in pixels of the original image"),
    Setting("joint", "auto", choice("auto", "turn"),
        "how long a description of several images together stays in the conversation: auto: as long as keeping it "
        "costs less than removing it; turn: in its own turn only"),
    Setting("visionFit", "auto", choice("auto", "never"),
        "what to do with an image that is too large for vision_analyze: auto: refit it; never: refuse it"),
    Setting("visionCache", default=False, kind=FLAG, meaning="vision_analyze and video_analyze remember their answers"),
    Setting("maxImagesPerTurn", 20, whole_number(0, 1000),
        "how many images are described in one turn, the newest first; 0: no limit"),
    Setting("maxToolCallsPerTurn", 10, whole_number(0, 1000),
        "how many calls of analyze_image in one turn may ask a vision model; 0: no limit"),
    Setting("seer", "auto", SEER,
        "the vision model that describes images; auto: chosen for each request; local: Sightline's own reader; "
        "off: none, unless an older setting names one"),
    Setting("imageModel", "", TEXT,
        "with mode route: the model that gets turns with new images, by its name at the same upstream"),
    Setting("references", default=True, kind=FLAG,
        meaning="the proxy adds a label with its sha256 to each pasted image, so that tools can refer to it"),
    Setting("acp.mcpServer", default=True, kind=FLAG,
        meaning="sessions behind `sightline acp` get Sightline's own MCP server, unless they have it already"),
    Setting("record", "disk", choice("disk", "memory"),
        "where images and descriptions are stored: disk: on disk, until they expire; memory: until the process ends",
        needs_restart=True),
    Setting("store", "", TEXT, "not supported yet: the address of another store for the rows of the record",
        needs_restart=True),
    Setting("blobs", "", TEXT, "not supported yet: the address of another store for the bytes of the record",
        needs_restart=True),
)  # fmt: skip


def find_key(name: str) -> Setting | Refusal:
    """Return the setting of a name, or refuse with a suggestion."""
    allowed = {key.name: key for key in KEYS}
    if name in allowed:
        return allowed[name]
    close = difflib.get_close_matches(name, allowed, 1)
    remedy = f"did you mean {close[0]}?" if close else "sightline config show lists all settings"
    return Refusal("not_found", f"there is no setting {name!r}", remedy)
