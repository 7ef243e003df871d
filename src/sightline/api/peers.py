"""What a client does with an agent's image capability: size an image for it, and know whether to warn."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sightline.api.results import Refused
from sightline.model.capability import PROMISES, TRUSTS, ImageCapability, Promise, Trust, image_capability
from sightline.model.image import Image, Picture, Target
from sightline.model.refusal import Refusal
from sightline.pixels.fit import fitted, task
from sightline.pixels.probe import probe
from sightline.runtime import shared_workers
from sightline.settings import load

_FORMATS = ("image/png", "image/jpeg", "image/webp")
CapabilityLike = ImageCapability | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Sending:
    """Whether an image may be sent; false with the sentence that a person should read first."""

    ok: bool
    warning: str = ""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.warning


def fit_for(
    capability: CapabilityLike, image: bytes, *, trust: Trust | None = None, verified: Collection[Promise] = ()
) -> Image | Refused:
    """The image as the peer takes it: untouched wherever that will do.

    capability: what the peer advertises, as `read_image_capability` gives it, or its fields; None: nothing.
    image: the bytes of the file.
    trust: how far the peer is believed: "trust", "verify" or "ignore"; else as the setting `trustPeerCapability` says.
    verified: the promises that the caller has seen the peer keep: "autoHandlesOversized", "autoHandlesWrongModel".
    """
    made = _fitted(_known(capability, trust, verified), image)
    return Refused(made) if isinstance(made, Refusal) else made


def may_send(
    capability: CapabilityLike,
    image: bytes | None = None,
    *,
    sees: bool | None = None,
    trust: Trust | None = None,
    verified: Collection[Promise] = (),
) -> Sending:
    """Whether an image may be sent without a warning; it is false with the sentence to warn with.

    capability: what the peer advertises, as `read_image_capability` gives it, or its fields; None: nothing.
    image: the bytes that would be sent; None: only the model is asked about.
    sees: what the client knows of the agent's model; None: nothing, and then it is not warned of.
    trust: how far the peer is believed: "trust", "verify" or "ignore"; else as the setting `trustPeerCapability` says.
    verified: the promises that the caller has seen the peer keep: "autoHandlesOversized", "autoHandlesWrongModel".
    """
    known = _known(capability, trust, verified)
    if isinstance(known, Refusal):
        return Sending(ok=False, warning=str(known))
    if sees is False and not known.auto_handles_wrong_model:
        return Sending(ok=False, warning="the model does not see images, and the agent does not describe them for it")
    if image is None or known.auto_handles_oversized:
        return Sending(ok=True)
    picture = _picture(image)
    if isinstance(picture, Refusal):
        return Sending(ok=False, warning=str(picture))
    if known.admits(picture):
        return Sending(ok=True)
    return Sending(ok=False, warning=f"the agent does not take an image of {picture.size} and {picture.bytes:,} bytes")


def _fitted(known: ImageCapability | Refusal, image: bytes) -> Image | Refusal:
    picture = known if isinstance(known, Refusal) else _picture(image)
    if isinstance(known, Refusal) or isinstance(picture, Refusal):
        return cast("Refusal", picture)
    if known.auto_handles_oversized or known.admits(picture):
        return Image(hashlib.sha256(image).hexdigest(), picture.mime, picture.size, image, picture.turned)
    goal = Target(_FORMATS, _most_encoded(known), known.max_dimension, plain=True)
    answer = shared_workers().ask("fit", image, task(goal))
    return answer if isinstance(answer, Refusal) else fitted(answer.facts, answer.data).parts[0].image


def _known(capability: object, trust: object, verified: object) -> ImageCapability | Refusal:
    """What may be counted on; or why nobody can tell."""
    believed = load().trust_peer_capability if trust is None else _named(trust)
    if not isinstance(capability, ImageCapability | Mapping | None):
        return Refusal("invalid_input", "the capability is no object", "give what read_image_capability has found")
    if believed is None:
        return Refusal("invalid_input", f"there is no trust {trust!r:.60}", f"one of {', '.join(TRUSTS)}")
    if not isinstance(verified, Collection) or any(each not in PROMISES for each in verified):
        return Refusal("invalid_input", "verified is no list of promises", f"of these: {', '.join(PROMISES)}")
    said = capability if isinstance(capability, ImageCapability) else image_capability(capability or {})
    return said.believed(believed, verified)


def _named(trust: object) -> Trust | None:
    return next((each for each in TRUSTS if each == trust), None)


def _most_encoded(known: ImageCapability) -> int | None:
    """Of the base64 text: what the target stands for, and never more than maxBytes, which some peers count so."""
    target = known.downsample_target_bytes
    limits = [known.max_bytes, None if target is None else target // 3 * 4]
    return min((limit for limit in limits if limit is not None), default=None)


def _picture(image: object) -> Picture | Refusal:
    if not isinstance(image, bytes):
        return Refusal("invalid_input", "the image is not given as bytes", "give the bytes of a file")
    found = probe(image, len(image))
    assert found is not None, "a whole file always has an answer"
    return found
