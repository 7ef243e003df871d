"""Images: probed in this process, decoded, fitted and encoded in workers.

Here is what is sent to a worker that fits an image, and what it replies, as JSON and bytes. This imports none of the
modules that decode: only workers need them.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, astuple
from typing import Any, get_args

from sightline.model.geometry import MapPiece, PixelMap, Rect, Size
from sightline.model.image import FitPart, FitResult, Image, ImageTarget, Sizing


def pack_fit_result(fitted: FitResult) -> tuple[dict[str, Any], bytes]:
    """Return a fitted image as a task replies it."""
    parts = [
        {
            "mime": part.image.mime,
            "bytes": len(part.image.data),
            "words": part.note,
            "source": astuple(part.map.source),
            "result": astuple(part.map.result),
            "pieces": [astuple(piece) for piece in part.map.pieces],
        }
        for part in fitted.parts
    ]
    return {"parts": parts}, b"".join(part.image.data for part in fitted.parts)


def pack_target(target: ImageTarget) -> dict[str, Any]:
    """Return the arguments of a task that fits an image to `target`."""
    fields = asdict(target)
    if target.sizing is not None:
        fields["sizing"] = {"rule": type(target.sizing).__name__, **fields["sizing"]}
    return {"target": fields}


def unpack_fit_result(facts: dict[str, Any], data: bytes) -> FitResult:
    """Return the fitted image that a task replied."""
    parts, start = [], 0
    for part in facts["parts"]:
        file = data[start : start + part["bytes"]]
        start += part["bytes"]
        pieces = tuple(MapPiece(Rect(*source), Rect(*end)) for source, end in part["pieces"])
        full_map = PixelMap(Size(*part["source"]), Size(*part["result"]), pieces)
        parts.append(FitPart(build_image(file, part["mime"], full_map.result), full_map, part["words"]))
    return FitResult(tuple(parts))


def unpack_target(arguments: dict[str, Any]) -> ImageTarget:
    """Return the target that `pack_target` packed."""
    fields = arguments["target"]
    rules = {rule.__name__: rule for rule in get_args(Sizing)}
    rule = dict(fields["sizing"]) if fields["sizing"] is not None else None
    sizing = rules[rule.pop("rule")](**rule) if rule is not None else None
    return ImageTarget(**{**fields, "formats": tuple(fields["formats"]), "sizing": sizing})


def build_image(data: bytes, mime: str, size: Size) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), mime, size, data)
