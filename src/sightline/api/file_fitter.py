"""Fit images to the limits of the one that gets them: the model that is asked, or a peer.

`FileFitter` fits the images of `vision_analyze` and `video_analyze`. `fit_for` and `may_send` are for a peer, such as
an ACP agent, by the image capability that it advertises.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from sightline.api.failure import Failure
from sightline.api.input_file import MIB, GivenImage, read_image_input
from sightline.api.session import Session
from sightline.api.views import find_source
from sightline.model.image import Image, ImageInfo, ImageTarget, compute_base64_length
from sightline.model.media_capability import (
    PROMISES,
    TRUST_LEVELS,
    ImageCapability,
    Promise,
    TrustLevel,
    parse_image_capability,
)
from sightline.model.refusal import Refusal
from sightline.model.seer import Seer
from sightline.passes.show import build_target
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.probe import probe, probe_within_limits
from sightline.pixels.workers import WorkerPool
from sightline.runtime import get_shared_workers
from sightline.settings import load_settings

if TYPE_CHECKING:
    from sightline.api.input_file import ImageInput

Fit = Literal["auto", "never"]
MAX_SENT_BYTES = 5 * MIB  # of an image that is sent unchanged
_FORMATS = ("image/png", "image/jpeg", "image/webp")
CapabilityLike = ImageCapability | Mapping[str, Any] | None


class FileFitter:
    """Makes each image of a call fit the model that is asked, in at most 5 MiB."""

    def __init__(self, workers: WorkerPool, images: Sequence[Image], fit: Fit) -> None:
        self._workers = workers
        self._images = images
        self._fit = fit
        self._made: dict[str, Sequence[Image] | Refusal] = {}  # by the seer

    async def __call__(self, seer: Seer, form: str) -> Sequence[Image] | Refusal:
        """Return the images as the model takes them, unchanged where possible."""
        if seer.name not in self._made:
            self._made[seer.name] = await self._fit_images(seer)
        return self._made[seer.name]

    @property
    def sent(self) -> Sequence[Image]:
        """What was sent last."""
        result = next(reversed(self._made.values()), ())
        return () if isinstance(result, Refusal) else result

    @property
    def changed(self) -> bool:
        return any(sent is not given for sent, given in zip(self.sent, self._images, strict=False))

    async def _fit_images(self, seer: Seer) -> Sequence[Image] | Refusal:
        fitted = []
        for image in self._images:
            result = await self._fit_image(image, seer)
            if isinstance(result, Refusal):
                return result
            fitted.append(result)
        return fitted

    async def _fit_image(self, image: Image, seer: Seer) -> Image | Refusal:
        picture = probe_within_limits(image.data)
        if isinstance(picture, Refusal) or self._fit == "never":
            return picture if isinstance(picture, Refusal) else image
        total = sum(compute_base64_length(len(each.data)) for each in self._images)
        goal = build_target(seer.limits, len(self._images), total)
        light = len(image.data) <= MAX_SENT_BYTES and not image.is_rotated
        if light and goal.accepts(picture, compute_base64_length(len(image.data))):
            return image
        max_encoded = MAX_SENT_BYTES // 3 * 4
        tight = replace(goal, encoded_bytes=min(goal.encoded_bytes or max_encoded, max_encoded), keeps_geometry=True)
        result = await self._workers.run("fit", image.data, pack_target(tight))
        return result if isinstance(result, Refusal) else unpack_fit_result(result.facts, result.data).parts[0].image


@dataclass(frozen=True, slots=True)
class SendDecision:
    """Whether an image may be sent. If not, it is falsy, and `warning` says why."""

    ok: bool
    warning: str = ""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.warning or "the image may be sent"


def fit_for(
    capability: CapabilityLike,
    image: ImageInput,
    *,
    trust: TrustLevel | None = None,
    verified: Collection[Promise] = (),
) -> Image | Failure:
    """Resize an image to the limits of a peer; return it unchanged if the peer accepts it as it is.

    capability: what the peer advertises, as `read_image_capability` returns it, or its fields; None: nothing.
    image: a path, bytes, a file object, a PIL image or a `sha256:` reference.
    trust: "trust", "verify" or "ignore" what the peer promises; None: as the setting `trustPeerCapability` says.
    verified: promises that you have seen the peer keep: "autoHandlesOversized", "autoHandlesWrongModel".
    """
    result = _fit(_read_capability(capability, trust, verified), image)
    return Failure(result) if isinstance(result, Refusal) else result


def may_send(
    capability: CapabilityLike,
    image: ImageInput | None = None,
    *,
    sees: bool | None = None,
    trust: TrustLevel | None = None,
    verified: Collection[Promise] = (),
) -> SendDecision:
    """Decide whether an image may be sent without a warning.

    capability: what the peer advertises, as `read_image_capability` returns it, or its fields; None: nothing.
    image: what would be sent, as `fit_for` takes it; None: decide by the model alone.
    sees: whether the peer's model sees images; None: not known, which is no reason to warn.
    trust: "trust", "verify" or "ignore" what the peer promises; None: as the setting `trustPeerCapability` says.
    verified: promises that you have seen the peer keep: "autoHandlesOversized", "autoHandlesWrongModel".
    """
    known = _read_capability(capability, trust, verified)
    if isinstance(known, Refusal):
        return SendDecision(ok=False, warning=str(known))
    if sees is False and not known.auto_handles_wrong_model:
        return SendDecision(
            ok=False, warning="the agent's model does not see images, and the agent does not describe them for it"
        )
    if image is None or known.auto_handles_oversized:
        return SendDecision(ok=True)
    read = _read_picture(image)
    if isinstance(read, Refusal):
        return SendDecision(ok=False, warning=str(read))
    _, picture = read
    if known.accepts(picture):
        return SendDecision(ok=True)
    return SendDecision(
        ok=False, warning=f"the agent does not take an image of {picture.size} and {picture.bytes:,} bytes"
    )


def _fit(known: ImageCapability | Refusal, image: object) -> Image | Refusal:
    read = known if isinstance(known, Refusal) else _read_picture(image)
    if isinstance(known, Refusal) or isinstance(read, Refusal):
        return cast("Refusal", read)
    data, picture = read
    if known.auto_handles_oversized or known.accepts(picture):
        return Image(hashlib.sha256(data).hexdigest(), picture.mime, picture.size, data, picture.is_rotated)
    goal = ImageTarget(_FORMATS, _find_encoded_limit(known), known.max_dimension, keeps_geometry=True)
    answer = get_shared_workers().run_sync("fit", data, pack_target(goal))
    return answer if isinstance(answer, Refusal) else unpack_fit_result(answer.facts, answer.data).parts[0].image


def _read_capability(capability: object, trust: object, verified: object) -> ImageCapability | Refusal:
    """Return the limits and promises to rely on."""
    believed = load_settings().trust_peer_capability if trust is None else _read_trust(trust)
    if not isinstance(capability, ImageCapability | Mapping | None):
        return Refusal("invalid_input", "the capability must be an object", "give what read_image_capability returned")
    if believed is None:
        return Refusal("invalid_input", f"trust cannot be {trust!r:.60}", f"use one of {', '.join(TRUST_LEVELS)}")
    if not isinstance(verified, Collection) or any(each not in PROMISES for each in verified):
        return Refusal("invalid_input", "verified must be a list of promises", f"use {', '.join(PROMISES)}")
    declared = capability if isinstance(capability, ImageCapability) else parse_image_capability(capability or {})
    return declared.apply_trust(believed, verified)


def _read_trust(trust: object) -> TrustLevel | None:
    return next((each for each in TRUST_LEVELS if each == trust), None)


def _find_encoded_limit(known: ImageCapability) -> int | None:
    """Return the limit in characters of base64: that of the target, but at most maxBytes, which some peers mean so."""
    target = known.downsample_target_bytes
    limits = [known.max_bytes, None if target is None else target // 3 * 4]
    return min((limit for limit in limits if limit is not None), default=None)


def _read_picture(image: object) -> tuple[bytes, ImageInfo] | Refusal:
    """Return the bytes of an image, and what they are."""
    given = read_image_input(image)
    if isinstance(given, Refusal):
        return given
    found = given if isinstance(given, GivenImage) else find_source(Session().context, given)
    if isinstance(found, Refusal):
        return found
    picture = probe(found.data, len(found.data))
    assert picture is not None, "the probe of a whole file has a result"
    return picture if isinstance(picture, Refusal) else (found.data, picture)
