"""The user's settings, typed: the only reader of the environment and of settings files.

Each key is decided on its own: by the environment, else by the file, else by its default. A value out of range is
ignored with a warning; setting one is refused. A provider's key is never shown, only whether it is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import platformdirs

from sightline.model.capability import ImageCapability, Trust
from sightline.model.refusal import Refusal
from sightline.model.rules import Mode, Retention
from sightline.model.scene import Json
from sightline.model.upstream import Upstream
from sightline.settings import file as files
from sightline.settings.keys import KEYS, Key, find
from sightline.settings.kinds import HIDDEN

__all__ = ["FILE_NAME", "KEYS", "Key", "Settings", "find", "load"]

FILE_NAME = "vision-proxy.json"
_NAME_IT = "sightline config set imageModel MODEL"
# An object in the place of one of these holds the keys below it, not a value of its own.
_PARENTS = {key.name for key in KEYS if any(other.name.startswith(f"{key.name}.") for other in KEYS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting as a typed value: one field for each of `KEYS`, under the name that `Key.field` gives it."""

    file: Path
    folder: Path  # of the record
    sources: Mapping[str, str]  # what decided each key: default, file, environment NAME
    warnings: tuple[str, ...]
    json_values: Mapping[str, Json] = field(repr=False)  # by key, as the file writes them
    environment: Mapping[str, str] = field(repr=False)

    mode: Mode
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
    models: Mapping[str, Mapping[str, Json]]
    upstreams: Mapping[str, Upstream] = field(repr=False)  # one that a preset completes may have no address of its own
    image_capability: ImageCapability
    trust_peer_capability: Trust
    retention: Retention
    retention_pasted: bool
    lowering: Literal["byWire", "hoist"]
    grounding: bool
    boxes: bool
    joint: Literal["auto", "turn"]
    vision_fit: Literal["auto", "never"]
    vision_cache: bool
    max_images_per_turn: int
    max_tool_calls_per_turn: int
    seer: Literal["auto", "off"]
    image_model: str
    references: bool
    acp_mcp_server: bool
    record: Literal["disk", "memory"]
    store: str
    blobs: str

    def override(self, values: Mapping[str, Json], source: str = "") -> Settings:
        """Return these settings with other values, by key; `source`: what decided them, if that changes, too."""
        json_values = {**self.json_values, **values}
        sources = {**self.sources, **dict.fromkeys(values, source)} if source else self.sources
        return replace(self, json_values=json_values, sources=sources, **_convert(json_values))

    @property
    def data(self) -> Path:
        """The folder for downloaded models: beside the record, which may be deleted."""
        return self.folder.parent

    @property
    def advice(self) -> tuple[str, ...]:
        """What is allowed and yet does not do what it seems to."""
        doubts = ((key, key.kind.doubt(self.json_values[key.name])) for key in KEYS)
        advice = [f"{key.name} ({self.sources[key.name]}): {doubt}" for key, doubt in doubts if doubt]
        if self.mode == "route" and not self.image_model:
            advice.append(f"mode is route and imageModel is not set: images are described as in fallback ({_NAME_IT})")
        return tuple(advice)

    @property
    def api_key(self) -> str:
        """The key for the vision model."""
        if not self.auxiliary_vision_model:
            return self.main_api_key
        elsewhere = self._is_elsewhere or self.auxiliary_vision_base_url
        return self.auxiliary_vision_api_key or ("" if elsewhere else self.main_api_key)

    @property
    def base_url(self) -> str:
        """The address of the vision model."""
        if not self.auxiliary_vision_model:
            return self.main_base_url
        return self.auxiliary_vision_base_url or ("" if self._is_elsewhere else self.main_base_url)

    @property
    def _is_elsewhere(self) -> bool:
        """Whether the vision model is not one of `provider`, whose key and address it must not get then."""
        return self.named_seer is not None and self.named_seer[0] != self.provider

    @property
    def hoist(self) -> bool:
        """Whether images leave tool results also where the wire would take them there."""
        return self.lowering == "hoist"

    @property
    def named_seer(self) -> tuple[str, str] | None:
        """Provider and model of the vision model, if the user has named one; the provider may be empty."""
        if named := self.auxiliary_vision_model:
            if "/" in named and not self.auxiliary_vision_provider:
                return _split(named)
            return self.auxiliary_vision_provider or self.provider, named
        if self.sources["model"].startswith("environment") or not self.model_id:
            return None if not self.model else _split(self.model) if "/" in self.model else (self.provider, self.model)
        return self.provider, self.model_id

    @property
    def seer_key(self) -> str:
        """The key for the named model: one of the file only for a model that the file names, too."""
        elsewhere = any(self.sources[name].startswith("environment") for name in ("model", "provider", "modelId"))
        return "" if elsewhere and self.sources[HIDDEN] == "file" else self.api_key

    @property
    def is_main_model(self) -> bool:
        """The named one is the file's main model, which looks only when it sees."""
        named_otherwise = self.model_id or self.auxiliary_vision_model
        return self.sources["model"] == "file" and not named_otherwise

    def variable(self, names: Iterable[str]) -> str:
        """The first of these environment variables that is set, by its value."""
        return next((value for name in names if (value := self.environment.get(name, "").strip())), "")

    def shown(self, name: str) -> Json:
        """Return a value as it may be shown: of a secret only whether it is set."""
        return files.hide_secrets({name: self.json_values[name]})[name]

    def lock(self, name: str) -> str:
        """The environment variable that fixes a key, or nothing."""
        decisive = ("model", name) if name in ("provider", "modelId") else (name,)
        fixed = [self.sources[key] for key in decisive if self.sources[key].startswith("environment")]
        return fixed[0].removeprefix("environment ") if fixed else ""

    def save(self, name: str, text: str) -> Refusal | None:
        """Write one key into the file, which keeps everything else it holds."""
        key = find(name)
        if isinstance(key, Refusal):
            return key
        if locked := self._check_lock(name):
            return locked
        value = key.kind.read(text)
        return key.kind.refusal(name, value) or files.change(self.file, name, value)

    def unset(self, name: str) -> Refusal | None:
        """Take one key out of the file: its default counts again."""
        key = find(name)
        if isinstance(key, Refusal):
            return key
        return self._check_lock(name) or files.remove(self.file, name, below=name in _PARENTS)

    def _check_lock(self, name: str) -> Refusal | None:
        if variable := self.lock(name):
            return Refusal("not_permitted", f"{name} is fixed by the environment", f"unset {variable} to change it")
        return None

    def is_secret(self, name: str, text: str) -> bool:
        """Return whether a value given for a setting holds a provider's key."""
        key = find(name)
        return not isinstance(key, Refusal) and files.has_secret({name: key.kind.read(text)})


def load(env: Mapping[str, str] | None = None, config: Path | None = None) -> Settings:
    """Every key with what decided it. Nothing in a project's folder is looked for."""
    environment = dict(os.environ if env is None else env)
    warnings: list[str] = []
    file, folder = _places(environment, config, warnings)
    held = files.read(file)
    if isinstance(held, Refusal):
        warnings.append(f"{held}; it is ignored")
        held = {}
    elif files.exposes_secret(file, held):
        warnings.append(f"{file} holds a key that others can read; the key is ignored (chmod 600 {file})")
        held = files.without_secrets(held)
    decided = {key.name: _decide(key, environment, held, warnings) for key in KEYS}
    values = {name: value for name, (value, _) in decided.items()}
    return Settings(
        file=file,
        folder=folder,
        sources={name: source for name, (_, source) in decided.items()},
        warnings=tuple(warnings),
        json_values=values,
        environment=environment,
        **_convert(values),
    )


def _convert(values: Mapping[str, Json]) -> dict[str, Any]:
    """Return the typed value of each key, by the name of its field."""
    fields: dict[str, Any] = {key.field: key.kind.convert(values[key.name]) for key in KEYS}
    fields["retention"] = replace(fields["retention"], pasted=fields["retention_pasted"])
    return fields


def _places(env: Mapping[str, str], config: Path | None, warnings: list[str]) -> tuple[Path, Path]:
    """The settings file and the record's folder."""
    named = {}
    for name in ("SIGHTLINE_HOME", "SIGHTLINE_CONFIG"):
        path = Path(env.get(name, ""))
        if path.is_absolute():
            named[name] = path
        elif env.get(name):  # it would mean a file of whichever project the agent works in
            warnings.append(f"{name} is not an absolute path; it is ignored")
    if home := named.get("SIGHTLINE_HOME"):
        file, folder = home / FILE_NAME, home / "record"
    else:
        file = platformdirs.user_config_path("sightline", appauthor=False) / FILE_NAME
        folder = platformdirs.user_data_path("sightline", appauthor=False) / "record"
    return config or named.get("SIGHTLINE_CONFIG", file), folder


def _decide(key: Key, env: Mapping[str, str], held: Mapping[str, Json], warnings: list[str]) -> tuple[Json, str]:
    texts = {name: env.get(name, "").strip() for name in key.variables}
    found = [(f"environment {name}", key.kind.read(text)) for name, text in texts.items() if text]
    value = files.find_value(held, key.name)
    if value is not None and not (isinstance(value, dict) and key.name in _PARENTS):
        found.append(("file", value))
    for source, value in found:
        if not (fault := key.kind.fault(value)):
            return value, source
        warnings.append(f"{key.name} ({source}): {fault}; it is ignored")
    return key.default, "default"


def _split(model: str) -> tuple[str, str]:
    provider, _, name = model.partition("/")
    return provider, name
