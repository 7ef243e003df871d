"""Which vision model the settings name, at which address it is asked, and which key it gets. Pure.

`seer` is the setting for it. The others that name a model are read as well, in this order: `auxiliary.vision.model`,
then `seer` and `model` in the environment, then `seer`, `provider` with `modelId`, and `model` in the file. With
`seer` off, those after it don't count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sightline.model.scene import Json
from sightline.model.seer import LOCAL_SEER
from sightline.settings.setting_kinds import API_KEY_NAME

AUXILIARY = "auxiliary.vision"


@dataclass(frozen=True, slots=True)
class NamedSeer:
    """The vision model that the settings name. The provider may be empty."""

    provider: str
    model: str
    provider_key: str  # the setting that names the provider
    is_auxiliary: bool = False
    is_main_model: bool = False  # the model that agents talk to: it is asked only if it can see


class SeerSettings:
    """The settings about the vision model, by key, and where each comes from."""

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
