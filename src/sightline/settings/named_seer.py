"""Which vision model the settings name, at which address it is asked, and which key it gets. Pure.

`seer` is the setting for it. The others that name a model are read as well, in this order: `auxiliary.vision.model`,
then `seer` and `model` in the environment, then `seer`, `provider` with `modelId`, and `model` in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sightline.model.seer import LOCAL_SEER
from sightline.settings.keys import API_KEY_NAME

if TYPE_CHECKING:
    from sightline.settings import Settings

AUXILIARY = "auxiliary.vision"


@dataclass(frozen=True, slots=True)
class NamedSeer:
    """The vision model that the settings name. The provider may be empty."""

    provider: str
    model: str
    provider_key: str  # the setting that names the provider
    is_auxiliary: bool = False
    is_main_model: bool = False  # the model that agents talk to, in S2's words: it is asked only if it can see


def find_named_seer(settings: Settings) -> NamedSeer | None:
    """Return the vision model that the settings name; None: they leave the choice to Sightline, or want none."""
    if name := settings.auxiliary_vision_model:
        if "/" in name and not settings.auxiliary_vision_provider:
            return _split_name(name, f"{AUXILIARY}.model", is_auxiliary=True)
        provider_key = f"{AUXILIARY}.provider" if settings.auxiliary_vision_provider else "provider"
        provider = settings.auxiliary_vision_provider or settings.provider
        return NamedSeer(provider, name, provider_key, is_auxiliary=True)
    own = _split_name(settings.seer, "seer") if settings.seer not in ("auto", "off") else None
    if (
        settings.model
        and _is_from_environment(settings, "model")
        and not (own and _is_from_environment(settings, "seer"))
    ):
        return _find_model(settings)
    if own:
        return own
    if settings.model_id:
        return NamedSeer(settings.provider, settings.model_id, "provider")
    return _find_model(settings) if settings.model else None


def find_address(settings: Settings, seer: NamedSeer) -> str:
    """Return the name of the setting with the address of the named model; empty: its provider's usual one."""
    if seer.is_auxiliary and settings.auxiliary_vision_base_url:
        return f"{AUXILIARY}.baseUrl"
    return "baseUrl" if settings.main_base_url and _is_meant(settings, seer, "baseUrl") else ""


def find_seer_key(settings: Settings, seer: NamedSeer) -> str:
    """Return the name of the setting with the key for the named model; empty: none of them is meant for it.

    A key in the file goes to no provider and no address that only the environment names.
    """
    address = find_address(settings, seer)
    if seer.is_auxiliary and settings.auxiliary_vision_api_key:
        name = f"{AUXILIARY}.{API_KEY_NAME}"
    elif not settings.main_api_key or address == f"{AUXILIARY}.baseUrl" or not _is_meant(settings, seer, API_KEY_NAME):
        return ""
    else:
        name = API_KEY_NAME
    is_foreign = _is_from_environment(settings, seer.provider_key) and not (
        seer.provider == settings.provider and settings.sources["provider"] == "file"
    )
    is_elsewhere = bool(address) and _is_from_environment(settings, address)
    return "" if settings.sources[name] == "file" and (is_foreign or is_elsewhere) else name


def _is_meant(settings: Settings, seer: NamedSeer, name: str) -> bool:
    """Return whether a general setting, which belongs to `provider`, is meant for the named model."""
    if seer.provider == settings.provider:
        return True
    if seer.is_auxiliary:
        return False
    in_environment = all(_is_from_environment(settings, each) for each in (name, seer.provider_key))
    return not settings.provider or in_environment


def _find_model(settings: Settings) -> NamedSeer:
    is_main = settings.sources["model"] == "file"
    if "/" in settings.model:
        return _split_name(settings.model, "model", is_main_model=is_main)
    return NamedSeer(settings.provider, settings.model, "provider", is_main_model=is_main)


def _split_name(name: str, key: str, *, is_auxiliary: bool = False, is_main_model: bool = False) -> NamedSeer:
    provider, _, model = name.partition("/")
    return NamedSeer(provider, LOCAL_SEER if name == LOCAL_SEER else model, key, is_auxiliary, is_main_model)


def _is_from_environment(settings: Settings, name: str) -> bool:
    return settings.sources[name].startswith("environment")
