"""What the user has laid down: the only reader of the environment and of settings files.

Environment over file over default, for each key on its own. What is out of range there is ignored with a
warning; setting it is refused. A provider's key is never shown: only whether it is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import platformdirs

from sightline.model.capability import DEFAULT_CAPABILITY, ImageCapability, Trust, image_capability
from sightline.model.fence import sound
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.rules import Mode, Retention
from sightline.model.scene import Json
from sightline.model.upstream import Upstream
from sightline.settings import file as files
from sightline.settings.keys import KEYS, Key, find
from sightline.settings.kinds import APIS, HIDDEN

__all__ = ["FILE_NAME", "KEYS", "Key", "Settings", "find", "load"]

FILE_NAME = "vision-proxy.json"
_NAME_IT = "sightline config set imageModel MODEL"
# An object in the place of one of these holds the keys below it, not a value of its own.
_PARENTS = {key.name for key in KEYS if any(other.name.startswith(f"{key.name}.") for other in KEYS)}


@dataclass(frozen=True, slots=True)
class Settings:
    file: Path
    folder: Path  # of the record
    sources: Mapping[str, str]  # what decided each key: default, file, environment NAME
    warnings: tuple[str, ...]
    values: Mapping[str, Json] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    @property
    def data(self) -> Path:
        """Where lies what was fetched for good: beside the record, which may be thrown away."""
        return self.folder.parent

    @property
    def mode(self) -> Mode:
        return cast("Mode", self.values["mode"])

    @property
    def advice(self) -> tuple[str, ...]:
        """What is allowed and yet does not do what it seems to."""
        doubts = ((key, key.kind.doubt(self.values[key.name])) for key in KEYS)
        advice = [f"{key.name} ({self.sources[key.name]}): {doubt}" for key, doubt in doubts if doubt]
        if self.mode == "route" and not self.values["imageModel"]:
            advice.append(f"mode is route and imageModel is not set: images are described as in fallback ({_NAME_IT})")
        return tuple(advice)

    @property
    def system_prompt(self) -> str:
        return sound(str(self.values["systemPrompt"]))

    @property
    def api_key(self) -> str:
        """The key for the model that looks at images."""
        return self._of_seer("apiKey")

    @property
    def base_url(self) -> str:
        """The address of the model that looks at images."""
        return self._of_seer("baseUrl")

    def _of_seer(self, name: str) -> str:
        """Where the auxiliary model has none of its own, the general one: but a key goes to no other provider."""
        own, general = self._auxiliary(name), str(self.values[name])
        if not self._auxiliary("model"):
            return general
        elsewhere = self.named_seer is not None and self.named_seer[0] != self.values["provider"]
        return own or ("" if elsewhere or (name == HIDDEN and self._auxiliary("baseUrl")) else general)

    def _auxiliary(self, name: str) -> str:
        return str(self.values[f"auxiliary.vision.{name}"])

    @property
    def toolset(self) -> frozenset[str]:
        return frozenset(cast("list[str]", self.values["toolset"]))

    @property
    def fs_reach(self) -> tuple[Path, ...]:
        return tuple(Path(folder).expanduser() for folder in cast("list[str]", self.values["fsReach"]))

    @property
    def network(self) -> bool:
        """Whether images at public web addresses may be fetched."""
        return self.values["network"] == "on"

    @property
    def image_capability(self) -> ImageCapability:
        """What the user has said of it, over the defaults."""
        return image_capability({**DEFAULT_CAPABILITY, **cast("dict[str, Json]", self.values["imageCapability"])})

    @property
    def trust_peer_capability(self) -> Trust:
        return cast("Trust", self.values["trustPeerCapability"])

    @property
    def models(self) -> Mapping[str, Mapping[str, Json]]:
        return cast("Mapping[str, Mapping[str, Json]]", self.values["models"])

    @property
    def max_images_per_turn(self) -> int:
        return cast("int", self.values["maxImagesPerTurn"])

    @property
    def seer(self) -> Literal["auto", "off"]:
        return cast('Literal["auto", "off"]', self.values["seer"])

    @property
    def record(self) -> Literal["disk", "memory"]:
        return cast('Literal["disk", "memory"]', self.values["record"])

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """As they are written; one that a preset completes may have no address of its own."""
        entries = cast("Mapping[str, Mapping[str, Any]]", self.values["upstreams"])
        return {
            name: Upstream(
                name,
                _bases(entry),
                entry.get("preset", ""),
                api_key=entry.get(HIDDEN, ""),
                hoist=None if "lowering" not in entry else entry["lowering"] == "hoist",
            )
            for name, entry in entries.items()
        }

    @property
    def retention(self) -> Retention:
        how = str(self.values["retention"])
        turns = int(how.partition(":")[2]) if how.startswith("turns:") else None
        return Retention(turns, off=how == "off", pasted=self.values["retention.pasted"] == "retire")

    @property
    def hoist(self) -> bool:
        """Whether images leave tool results also where the wire would take them there."""
        return self.values["lowering"] == "hoist"

    @property
    def named_seer(self) -> tuple[str, str] | None:
        """Provider and model of the one who looks, if the user has named one; the provider may be empty."""
        if looks := self._auxiliary("model"):
            if "/" in looks and not self._auxiliary("provider"):
                return _split(looks)
            return self._auxiliary("provider") or str(self.values["provider"]), looks
        provider, model_id, model = (str(self.values[name]) for name in ("provider", "modelId", "model"))
        if self.sources["model"].startswith("environment") or not model_id:
            return None if not model else _split(model) if "/" in model else (provider, model)
        return provider, model_id

    @property
    def seer_key(self) -> str:
        """The key for the named model: one of the file only for a model that the file names, too."""
        elsewhere = any(self.sources[name].startswith("environment") for name in ("model", "provider", "modelId"))
        return "" if elsewhere and self.sources[HIDDEN] == "file" else self.api_key

    @property
    def is_main_model(self) -> bool:
        """The named one is the file's main model, which looks only when it sees."""
        named_otherwise = self.values["modelId"] or self._auxiliary("model")
        return self.sources["model"] == "file" and not named_otherwise

    def variable(self, names: Iterable[str]) -> str:
        """The first of these environment variables that is set, by its value."""
        return next((value for name in names if (value := self.environment.get(name, "").strip())), "")

    def shown(self, name: str) -> Json:
        """A value as it may be seen by anybody."""
        return files.veiled({name: self.values[name]})[name]

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
        if locked := self._locked(name):
            return locked
        value = key.kind.read(text)
        return key.kind.refusal(name, value) or files.change(self.file, name, value)

    def unset(self, name: str) -> Refusal | None:
        """Take one key out of the file: its default counts again."""
        key = find(name)
        if isinstance(key, Refusal):
            return key
        return self._locked(name) or files.remove(self.file, name, below=name in _PARENTS)

    def _locked(self, name: str) -> Refusal | None:
        if variable := self.lock(name):
            return Refusal("not_permitted", f"{name} is fixed by the environment", f"unset {variable} to change it")
        return None

    def is_secret(self, name: str, text: str) -> bool:
        """Whether a value that somebody gives for a key holds a provider's key."""
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
    return Settings(
        file=file,
        folder=folder,
        sources={name: source for name, (_, source) in decided.items()},
        warnings=tuple(warnings),
        values={name: value for name, (value, _) in decided.items()},
        environment=environment,
    )


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
    value = files.found(held, key.name)
    if value is not None and not (isinstance(value, dict) and key.name in _PARENTS):
        found.append(("file", value))
    for source, value in found:
        if not (fault := key.kind.fault(value)):
            return value, source
        warnings.append(f"{key.name} ({source}): {fault}; it is ignored")
    return key.default, "default"


def _bases(entry: Mapping[str, Any]) -> Mapping[WireName, str]:
    base = entry.get("baseUrl", "")
    if isinstance(base, dict):
        return cast("Mapping[WireName, str]", {wire: url for wire, url in base.items() if url})
    return dict.fromkeys(APIS, base) if base else {}


def _split(model: str) -> tuple[str, str]:
    provider, _, name = model.partition("/")
    return provider, name
