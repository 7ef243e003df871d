"""What a peer says it does with images and with sound: read from wherever peers say it. Every field is optional."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from sightline.model.image import Picture, base64_length
from sightline.model.scene import Json

Trust = Literal["trust", "verify", "ignore"]
Promise = Literal["autoHandlesOversized", "autoHandlesWrongModel"]


@dataclass(frozen=True, slots=True)
class ImageCapability:
    max_bytes: int | None = None  # of the decoded image
    max_dimension: int | None = None  # of either side, in pixels
    downsample_target_bytes: int | None = None
    auto_handles_oversized: bool | None = None  # it makes what is too large smaller by itself
    auto_handles_wrong_model: bool | None = None  # it tells a blind model what is to be seen

    def as_dict(self) -> dict[str, Json]:
        """As it is advertised: what is not said is left out."""
        return _written(FIELDS, asdict(self))

    def believed(self, trust: Trust, verified: Collection[Promise] = ()) -> ImageCapability:
        """All of it, its limits with the promises that were seen to be kept, or nothing: peers say what is not so."""
        if trust == "trust":
            return self
        if trust == "ignore":
            return ImageCapability()
        return replace(self, **{FIELDS[promise]: None for promise in PROMISES if promise not in verified})

    def admits(self, picture: Picture) -> bool:
        """Within every limit that is said; the base64 text is what some peers count against maxBytes."""
        return (self.max_bytes is None or base64_length(picture.bytes) <= self.max_bytes) and (
            self.max_dimension is None or picture.size.edge <= self.max_dimension
        )


@dataclass(frozen=True, slots=True)
class AudioCapability:
    max_bytes: int | None = None
    max_duration_ms: int | None = None
    downsample_target_bytes: int | None = None
    auto_handles_oversized: bool | None = None
    auto_handles_wrong_model: bool | None = None

    def as_dict(self) -> dict[str, Json]:
        return _written(AUDIO_FIELDS, asdict(self))


# As they are written, and as we call them.
FIELDS: Mapping[str, str] = {
    "maxBytes": "max_bytes",
    "maxDimension": "max_dimension",
    "downsampleTargetBytes": "downsample_target_bytes",
    "autoHandlesOversized": "auto_handles_oversized",
    "autoHandlesWrongModel": "auto_handles_wrong_model",
}
TRUSTS: tuple[Trust, ...] = get_args(Trust)
PROMISES: tuple[Promise, ...] = get_args(Promise)
AUDIO_FIELDS: Mapping[str, str] = {
    "maxBytes": "max_bytes",
    "maxDurationMs": "max_duration_ms",
    "downsampleTargetBytes": "downsample_target_bytes",
    "autoHandlesOversized": "auto_handles_oversized",
    "autoHandlesWrongModel": "auto_handles_wrong_model",
}
DEFAULT_CAPABILITY: dict[str, Json] = {"maxBytes": 5_242_880, "maxDimension": 8000, "downsampleTargetBytes": 524_288}

# Where an answer to `initialize` may say it; the first that does counts. {} is image or audio.
_PLACES = (
    "_meta",
    "agentCapabilities._meta",
    "capabilities.session.prompt.{}._meta",
    "_meta.sudocode",
)


def read_image_capability(answer: object) -> ImageCapability | None:
    """What an answer to `initialize` says about images; None where it says nothing.

    answer: the message or its result, as an object; anything else says nothing.
    """
    said = _said(answer, "image")
    return None if said is None else image_capability(said)


def read_audio_capability(answer: object) -> AudioCapability | None:
    """What an answer to `initialize` says about sound; None where it says nothing.

    answer: the message or its result, as an object; anything else says nothing.
    """
    said = _said(answer, "audio")
    return None if said is None else AudioCapability(**_read(AUDIO_FIELDS, said))


def image_capability(said: Mapping[str, object]) -> ImageCapability:
    """From its five fields; one that makes no sense counts as not said."""
    return ImageCapability(**_read(FIELDS, said))


def _said(answer: object, kind: str) -> Mapping[str, object] | None:
    inner = _within(answer, "result")
    result = answer if inner is None else inner
    for place in _PLACES:
        found = _within(result, f"{place.format(kind)}.{kind}Capability")
        if isinstance(found, dict):
            return found
    return None


def _within(value: object, path: str) -> object:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _read(fields: Mapping[str, str], said: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: said[written] for written, name in fields.items() if written in said and _sensible(name, said[written])
    }


def _sensible(name: str, value: object) -> bool:
    if name.startswith("auto_"):
        return isinstance(value, bool)
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _written(fields: Mapping[str, str], held: Mapping[str, Json]) -> dict[str, Json]:
    return {written: held[name] for written, name in fields.items() if held[name] is not None}
