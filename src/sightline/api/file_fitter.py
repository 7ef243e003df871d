"""Fit the images of `vision_analyze` and `video_analyze` to the limits of the model that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from sightline.api.input_file import MIB
from sightline.model.base64_text import compute_base64_length
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.seer import Seer
from sightline.passes.show import build_target
from sightline.pixels.fit_image import pack_target, unpack_fit_result
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.workers import WorkerPool

Fit = Literal["auto", "never"]
MAX_SENT_BYTES = 5 * MIB  # of an image that is sent unchanged


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
