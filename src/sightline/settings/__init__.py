"""The user's settings as typed fields. Only this package reads the environment and the settings file.

The value of each key comes from the environment, else from the file, else it is the default. An invalid value is
ignored with a warning, and refused when it is set. A provider's key is never shown, only whether it is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import platformdirs

from sightline.model.facts import ProxyMode, Retention
from sightline.model.media_capability import ImageCapability, TrustLevel
from sightline.model.profile import Upstream
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import LOCAL_SEER
from sightline.model.shared_address import SharedAddress
from sightline.model.value import value_class
from sightline.settings import settings_file as files
from sightline.settings.setting_kinds import API_KEY_NAME
from sightline.settings.settings_file import KEYS, Setting, find_key

__all__ = ["COMMAND_LINE", "FILE_NAME", "KEYS", "Setting", "Settings", "find_key", "load_settings"]

FILE_NAME = "vision-proxy.json"
COMMAND_LINE = "command line"  # the source of a value that an option of a command gives
_IMAGE_MODEL_COMMAND = "sightline config set imageModel MODEL"
# Where one of these has an object, that object has the keys below it and is no value.
_PARENT_KEYS = {key.name for key in KEYS if any(other.name.startswith(f"{key.name}.") for other in KEYS)}
AUXILIARY = "auxiliary.vision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting as a typed value: one field for each of `KEYS`, named by `Setting.field`."""

    file: Path
    record_folder: Path  # of the record
    sources: Mapping[str, str]  # where each value comes from: default, file, environment NAME
    warnings: tuple[str, ...]
    entry_warnings: tuple[str, ...]  # those of `warnings` about one entry of a setting: the others are in use
    json_values: Mapping[str, Json] = field(repr=False)  # by key, as a file would write them
    environment: Mapping[str, str] = field(repr=False)

    mode: ProxyMode
    provider: str
    model_id: str
    system_prompt: str
    include_context: bool
    tool: Literal["auto", "on", "off"]
    max_images_per_call: int
    max_batch: int
    cache_size: int
    phash_similarity_threshold: float
    grounding_models: Mapping[str, Mapping[str, Json]]
    model: str
    main_api_key: str = field(repr=False)
    main_base_url: str
    auxiliary_vision_model: str
    auxiliary_vision_provider: str
    auxiliary_vision_api_key: str = field(repr=False)
    auxiliary_vision_base_url: str
    toolset: frozenset[str]
    list_images: Literal["folder", "all"]
    fs_reach: tuple[Path, ...]
    network: bool  # whether images at public web addresses may be fetched
    render: bool  # whether tools may render files that are not images
    models: Mapping[str, Mapping[str, Json]]
    upstreams: Mapping[str, Upstream] = field(repr=False)  # one that a preset completes may have no address
    image_capability: ImageCapability
    trust_peer_capability: TrustLevel
    retention: Retention
    retention_pasted: bool
    lowering: Literal["byWire", "hoist"]
    legible: Literal["auto", "off"]
    grounding: bool
    boxes: bool
    joint: Literal["auto", "turn"]
    vision_fit: Literal["auto", "never"]
    vision_cache: bool
    max_images_per_turn: int
    max_tool_calls_per_turn: int
    seer: str  # auto, off, local, or PROVIDER/MODEL
    image_model: str
    references: bool
    acp_mcp_server: bool
    record: Literal["disk", "memory"]
    store: str = field(repr=False)  # it may contain a password
    blobs: str

    def override(self, values: Mapping[str, Json], source: str = "") -> Settings:
        """Return these settings with other JSON values by key, and with their `source` if one is given."""
        json_values = {**self.json_values, **values}
        sources = {**self.sources, **dict.fromkeys(values, source)} if source else self.sources
        return replace(self, json_values=json_values, sources=sources, **_convert(json_values))

    @property
    def data_folder(self) -> Path:
        """The folder for downloaded models. It is beside the record, which users delete."""
        return self.record_folder.parent

    @property
    def shared_address(self) -> SharedAddress | None:
        """Where the record is if it is on servers; None: it is on this machine."""
        return SharedAddress(self.store, self.blobs, self.environment) if self.store or self.blobs else None

    @property
    def advice(self) -> tuple[str, ...]:
        """Values that are valid but are probably mistakes."""
        doubts = ((key, key.kind.find_doubt(self.json_values[key.name])) for key in KEYS)
        advice = [f"{key.name} ({self.sources[key.name]}): {doubt}" for key, doubt in doubts if doubt]
        if self.seer != "auto" and self.overriding_model:
            advice.append(f"seer ({self.sources['seer']}): {self.overriding_model}")
        if self.mode == "route" and not self.image_model:
            advice.append(f"mode is route but imageModel is not set: mode fallback applies ({_IMAGE_MODEL_COMMAND})")
        return tuple(advice)

    @property
    def overriding_model(self) -> str:
        """Why `seer` has no effect, and what to do about it; empty: it has."""
        name = f"{AUXILIARY}.model"
        if not self.auxiliary_vision_model:
            return ""
        remedy = f"unset {lock}" if (lock := self.find_lock(name)) else f"sightline config unset {name}"
        return f"{name} is set to {self.auxiliary_vision_model} and overrides it ({remedy})"

    @property
    def _seer(self) -> SeerSettings:
        return SeerSettings(self.json_values, self.sources)

    @property
    def api_key_name(self) -> str:
        """The setting with the key for the vision model; empty: none is meant for the model that the settings name."""
        seer = self._seer.find_seer()
        return self._seer.find_key(seer) if seer else API_KEY_NAME

    @property
    def api_key(self) -> str:
        """The key for the vision model."""
        return self._seer.get(self.api_key_name)

    @property
    def base_url(self) -> str:
        """The address of the vision model that the settings name; empty: its provider's usual one."""
        seer = self._seer.find_seer()
        return self._seer.get(self._seer.find_address(seer)) if seer else ""

    @property
    def hoist(self) -> bool:
        """Whether images are moved out of tool results even where the wire supports them there."""
        return self.lowering == "hoist"

    @property
    def named_seer(self) -> tuple[str, str] | None:
        """The provider and the model of the vision model, if the user has named one. The provider may be empty."""
        seer = self._seer.find_seer()
        return (seer.provider, seer.model) if seer else None

    @property
    def uses_main_model(self) -> bool:
        """Whether the named vision model is the main model in the file, which is used only if it can see."""
        seer = self._seer.find_seer()
        return seer is not None and seer.is_main_model

    def find_variable(self, names: Iterable[str]) -> str:
        """Return the value of the first of these environment variables that is set, or an empty string."""
        return self.environment.get(self.find_variable_name(names), "").strip()

    def find_variable_name(self, names: Iterable[str]) -> str:
        """Return the first of these environment variables that is set, or an empty string."""
        return next((name for name in names if self.environment.get(name, "").strip()), "")

    def mask_value(self, name: str) -> Json:
        """Return the JSON value of a key, with secrets replaced by whether they are set."""
        return files.mask_secrets({name: self.json_values[name]})[name]

    def find_lock(self, name: str) -> str:
        """Return the environment variable that sets a key and so overrides the file, or an empty string."""
        keys = ("model", name) if name in ("provider", "modelId", "seer") else (name,)
        sources = [self.sources[key] for key in keys if self.sources[key].startswith("environment")]
        return sources[0].removeprefix("environment ") if sources else ""

    def save(self, name: str, text: str) -> Refusal | None:
        """Write one key to the file, and keep everything else in it."""
        key = find_key(name)
        if isinstance(key, Refusal):
            return key
        if locked := self._check_lock(name):
            return locked
        value = key.kind.parse(text)
        return key.kind.refuse_value(name, value) or files.set_value(self.file, name, value)

    def unset(self, name: str) -> Refusal | None:
        """Remove one key from the file, so that its default applies."""
        key = find_key(name)
        if isinstance(key, Refusal):
            return key
        return self._check_lock(name) or files.remove_value(self.file, name, keep_object=name in _PARENT_KEYS)

    def _check_lock(self, name: str) -> Refusal | None:
        if variable := self.find_lock(name):
            return Refusal("not_permitted", f"{name} is set by the environment", f"unset {variable} to change it")
        return None

    def has_secret(self, name: str, text: str) -> bool:
        """Return whether a value for a setting contains a provider's key."""
        key = find_key(name)
        return not isinstance(key, Refusal) and files.has_secret({name: key.kind.parse(text)})


def load_settings(environment: Mapping[str, str] | None = None, config_file: Path | None = None) -> Settings:
    """Load the settings from the environment and the user's file. Files in a project's folder are never read."""
    environment = dict(os.environ if environment is None else environment)
    warnings: list[str] = []
    entry_warnings: list[str] = []
    file, folder = _find_paths(environment, config_file, warnings)
    file_values = files.read_settings_file(file)
    if isinstance(file_values, Refusal):
        warnings.append(f"{file_values}; the file is ignored")
        file_values = {}
    elif files.has_exposed_secret(file, file_values):
        warnings.append(f"{file} contains a key and can be read by others; the key is ignored (run: chmod 600 {file})")
        file_values = files.remove_secrets(file_values)
    resolved = {key.name: _resolve_key(key, environment, file_values, warnings, entry_warnings) for key in KEYS}
    values = {name: value for name, (value, _) in resolved.items()}
    return Settings(
        file=file,
        record_folder=folder,
        sources={name: source for name, (_, source) in resolved.items()},
        warnings=(*warnings, *entry_warnings),
        entry_warnings=tuple(entry_warnings),
        json_values=values,
        environment=environment,
        **_convert(values),
    )


def _convert(values: Mapping[str, Json]) -> dict[str, Any]:
    """Return the typed value of each key, by the name of its field."""
    fields: dict[str, Any] = {key.field: key.kind.convert(values[key.name]) for key in KEYS}
    fields["retention"] = replace(fields["retention"], includes_pasted=fields["retention_pasted"])
    return fields


def _find_paths(environment: Mapping[str, str], config: Path | None, warnings: list[str]) -> tuple[Path, Path]:
    """Return the path of the settings file and the folder of the record."""
    paths = {}
    for name in ("SIGHTLINE_HOME", "SIGHTLINE_CONFIG"):
        path = Path(environment.get(name, ""))
        if path.is_absolute():
            paths[name] = path
        elif environment.get(name):  # a relative path would lead into the project that the agent works in
            warnings.append(f"{name} is not an absolute path and is ignored")
    if home := paths.get("SIGHTLINE_HOME"):
        file, folder = home / FILE_NAME, home / "record"
    else:
        file = platformdirs.user_config_path("sightline", appauthor=False) / FILE_NAME
        folder = platformdirs.user_data_path("sightline", appauthor=False) / "record"
    return config or paths.get("SIGHTLINE_CONFIG", file), folder


def _resolve_key(
    key: Setting,
    environment: Mapping[str, str],
    file_values: Mapping[str, Json],
    warnings: list[str],
    entry_warnings: list[str],
) -> tuple[Json, str]:
    texts = {name: environment.get(name, "").strip() for name in key.variables}
    candidates = [(f"environment {name}", key.kind.parse(text)) for name, text in texts.items() if text]
    value = files.find_value(file_values, key.name)
    if value is not None and not (isinstance(value, dict) and key.name in _PARENT_KEYS):
        candidates.append(("file", value))
    for source, written in candidates:
        value, faults = key.kind.drop_entries(written)
        entry_warnings += (f"{key.name} ({source}): {fault}; this entry is ignored" for fault in faults)
        if not (fault := key.kind.find_fault(value)):
            return value, source
        warnings.append(f"{key.name} ({source}): {fault}; it is ignored")
    return key.default, "default"


@value_class
class NamedSeer:
    """The vision model that the settings name. The provider may be empty."""

    provider: str
    model: str
    provider_key: str  # the setting that names the provider
    is_auxiliary: bool = False
    is_main_model: bool = False  # the model that agents talk to: it is asked only if it can see


class SeerSettings:
    """The settings that name the vision model, its address and its key, and where each comes from.

    `seer` is the setting for it. The others that name a model are read as well, in this order:
    `auxiliary.vision.model`, then `seer` and `model` in the environment, then `seer`, `provider` with `modelId`, and
    `model` in the file. With `seer` off, those after it don't count.
    """

    def __init__(self, values: Mapping[str, Json], sources: Mapping[str, str]) -> None:
        self._values, self._sources = values, sources

    def get(self, name: str) -> str:
        """Return the value of a setting; for an empty name, an empty string."""
        return str(self._values[name]) if name else ""

    def find_seer(self) -> NamedSeer | None:
        """Return the vision model that is named; None: the choice is left to Sightline, or none is wanted."""
        if name := self.get(f"{AUXILIARY}.model"):
            own = self.get(f"{AUXILIARY}.provider")
            if "/" in name and not own:
                return _split_name(name, f"{AUXILIARY}.model", is_auxiliary=True)
            provider_key = f"{AUXILIARY}.provider" if own else "provider"
            return NamedSeer(self.get(provider_key), name, provider_key, is_auxiliary=True)
        seer = _split_name(self.get("seer"), "seer") if self.get("seer") not in ("auto", "off") else None
        model = self._find_model() if self.get("model") else None
        is_named = self.get("seer") != "auto"
        if model and self._is_from_environment("model") and not (is_named and self._is_from_environment("seer")):
            return model
        if self.get("seer") == "off":
            return None
        if seer is None and self.get("modelId"):
            return NamedSeer(self.get("provider"), self.get("modelId"), "provider")
        return seer or model

    def find_address(self, seer: NamedSeer) -> str:
        """Return the name of the setting with the address of the named model; empty: its provider's usual one."""
        if seer.is_auxiliary and self.get(f"{AUXILIARY}.baseUrl"):
            return f"{AUXILIARY}.baseUrl"
        return "baseUrl" if self.get("baseUrl") and self._is_meant(seer, "baseUrl") else ""

    def find_key(self, seer: NamedSeer) -> str:
        """Return the name of the setting with the key for the named model; empty: none of them is meant for it.

        A key in the file goes to no provider and no address that only the environment names.
        """
        address = self.find_address(seer)
        if seer.is_auxiliary and self.get(f"{AUXILIARY}.{API_KEY_NAME}"):
            name = f"{AUXILIARY}.{API_KEY_NAME}"
        elif address == f"{AUXILIARY}.baseUrl" or not self.get(API_KEY_NAME) or not self._is_meant(seer, API_KEY_NAME):
            return ""
        else:
            name = API_KEY_NAME
        is_in_file = self._sources["provider"] == "file" and seer.provider == self.get("provider")
        is_foreign = self._is_from_environment(seer.provider_key) and not is_in_file
        is_elsewhere = bool(address) and self._is_from_environment(address)
        return "" if self._sources[name] == "file" and (is_foreign or is_elsewhere) else name

    def _is_meant(self, seer: NamedSeer, name: str) -> bool:
        """Return whether a general setting, which belongs to `provider`, is meant for the named model."""
        if seer.provider == self.get("provider"):
            return True
        if seer.is_auxiliary:
            return False
        in_environment = all(map(self._is_from_environment, (name, seer.provider_key)))
        return not self.get("provider") or in_environment

    def _find_model(self) -> NamedSeer:
        name, is_main = self.get("model"), self._sources["model"] == "file"
        if "/" in name:
            return _split_name(name, "model", is_main_model=is_main)
        return NamedSeer(self.get("provider"), name, "provider", is_main_model=is_main)

    def _is_from_environment(self, name: str) -> bool:
        return self._sources[name].startswith("environment")


def _split_name(name: str, key: str, *, is_auxiliary: bool = False, is_main_model: bool = False) -> NamedSeer:
    provider, _, model = name.partition("/")
    return NamedSeer(provider, LOCAL_SEER if name == LOCAL_SEER else model, key, is_auxiliary, is_main_model)
