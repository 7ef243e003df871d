"""The image and audio capabilities that an ACP or MCP peer declares in `initialize`. Every field is optional."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from sightline.model.image import ImageInfo, compute_base64_length
from sightline.model.scene import Json

TrustLevel = Literal["trust", "verify", "ignore"]
Promise = Literal["autoHandlesOversized", "autoHandlesWrongModel"]


@dataclass(frozen=True, slots=True)
class ImageCapability:
    """What a peer declares about the images that it accepts; None: it doesn't say.

    The target is never above `max_bytes`: a larger one is lowered to it.
    """

    max_bytes: int | None = None  # of the decoded image
    max_dimension: int | None = None  # of either side, in pixels
    downsample_target_bytes: int | None = None
    auto_handles_oversized: bool | None = None  # it reduces images that are too large
    auto_handles_wrong_model: bool | None = None  # it describes images for models without vision

    def __post_init__(self) -> None:
        _clamp_target(self)

    def as_dict(self) -> dict[str, Json]:
        """Return the declared fields under their names on the wire."""
        return _to_wire_names(IMAGE_FIELDS, asdict(self))

    def apply_trust(self, trust: TrustLevel, verified: Collection[Promise] = ()) -> ImageCapability:
        """Return what to believe: everything, the limits and the verified promises, or nothing.

        Some peers promise what they do not do, so promises are checked first.
        """
        if trust == "trust":
            return self
        if trust == "ignore":
            return ImageCapability()
        return replace(self, **{IMAGE_FIELDS[promise]: None for promise in PROMISES if promise not in verified})

    def accepts(self, picture: ImageInfo) -> bool:
        """Return whether an image is within all limits. Some peers count its base64 text against maxBytes."""
        return (self.max_bytes is None or compute_base64_length(picture.bytes) <= self.max_bytes) and (
            self.max_dimension is None or picture.size.edge <= self.max_dimension
        )


@dataclass(frozen=True, slots=True)
class AudioCapability:
    """What a peer declares about the audio that it accepts; None: it doesn't say."""

    max_bytes: int | None = None
    max_duration_ms: int | None = None
    downsample_target_bytes: int | None = None
    auto_handles_oversized: bool | None = None
    auto_handles_wrong_model: bool | None = None

    def __post_init__(self) -> None:
        _clamp_target(self)

    def as_dict(self) -> dict[str, Json]:
        return _to_wire_names(AUDIO_FIELDS, asdict(self))


def _clamp_target(capability: ImageCapability | AudioCapability) -> None:
    target, limit = capability.downsample_target_bytes, capability.max_bytes
    if target is not None and limit is not None and target > limit:
        object.__setattr__(capability, "downsample_target_bytes", limit)


# Names on the wire, and our names.
IMAGE_FIELDS: Mapping[str, str] = {
    "maxBytes": "max_bytes",
    "maxDimension": "max_dimension",
    "downsampleTargetBytes": "downsample_target_bytes",
    "autoHandlesOversized": "auto_handles_oversized",
    "autoHandlesWrongModel": "auto_handles_wrong_model",
}
TRUST_LEVELS: tuple[TrustLevel, ...] = get_args(TrustLevel)
PROMISES: tuple[Promise, ...] = get_args(Promise)
AUDIO_FIELDS: Mapping[str, str] = {
    "maxBytes": "max_bytes",
    "maxDurationMs": "max_duration_ms",
    "downsampleTargetBytes": "downsample_target_bytes",
    "autoHandlesOversized": "auto_handles_oversized",
    "autoHandlesWrongModel": "auto_handles_wrong_model",
}
DEFAULT_TARGET_BYTES = 524_288
DEFAULT_CAPABILITY: dict[str, Json] = {
    "maxBytes": 5_242_880,
    "maxDimension": 8000,
    "downsampleTargetBytes": DEFAULT_TARGET_BYTES,
}

# Where an answer to `initialize` may declare it; for each field, the first place that has it counts. {} is the kind.
_PLACES = (
    "_meta",
    "agentCapabilities._meta",
    "capabilities.session.prompt.{}._meta",
    "_meta.sudocode",
)


def read_image_capability(answer: object) -> ImageCapability | None:
    """Return what an answer to `initialize` declares about images, or None.

    answer: the message or its result, as a dict; anything else declares nothing.
    """
    fields = _collect_fields(answer, "image", IMAGE_FIELDS)
    return None if fields is None else ImageCapability(**fields)


def read_audio_capability(answer: object) -> AudioCapability | None:
    """Return what an answer to `initialize` declares about audio, or None.

    answer: the message or its result, as a dict; anything else declares nothing.
    """
    fields = _collect_fields(answer, "audio", AUDIO_FIELDS)
    return None if fields is None else AudioCapability(**fields)


def parse_image_capability(values: Mapping[str, object]) -> ImageCapability:
    """Parse the five fields; an invalid one counts as absent."""
    return ImageCapability(**_parse_fields(IMAGE_FIELDS, values))


def _collect_fields(answer: object, kind: str, fields: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the valid fields from all places; None: no place declares anything."""
    inner = _get_path(answer, "result")
    result = answer if inner is None else inner
    declared = [_get_path(result, f"{place.format(kind)}.{kind}Capability") for place in reversed(_PLACES)]
    objects = [each for each in declared if isinstance(each, dict)]
    return {name: value for each in objects for name, value in _parse_fields(fields, each).items()} if objects else None


def _get_path(value: object, path: str) -> object:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _parse_fields(fields: Mapping[str, str], values: Mapping[str, object]) -> dict[str, Any]:
    parsed = {name: _parse_field(name, values.get(written)) for written, name in fields.items()}
    return {name: value for name, value in parsed.items() if value is not None}


def _parse_field(name: str, value: object) -> int | None:
    """Return a flag, or a positive whole number, which JSON may also write as 8e3 or 8000.0; None: it is invalid."""
    if name.startswith("auto_") or isinstance(value, bool):
        return value if isinstance(value, bool) and name.startswith("auto_") else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value > 0 else None


def _to_wire_names(fields: Mapping[str, str], values: Mapping[str, Json]) -> dict[str, Json]:
    return {written: values[name] for written, name in fields.items() if values[name] is not None}
