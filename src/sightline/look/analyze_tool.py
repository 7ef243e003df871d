"""`analyze_image` as a model is offered it: its words and its schema."""

from __future__ import annotations

from sightline.model.crop import REGIONS
from sightline.model.scene import Json

DESCRIPTION = """\
Use `analyze_image` when (a) the cached description of an image lacks a detail you need, (b) you need to compare or \
cross-reference multiple images, or (c) you need to focus on a specific region.

**Cropping.** Three forms, in order of preference:

- **`region`** — coarse cut by name. Use when you don't have exact dimensions: \
`{ image_index: 0, region: "bottom-right" }`.
- **`normalized`** — fractional coordinates 0.0–1.0. Default choice for precise crops without knowing image \
dimensions: `{ image_index: 0, normalized: { x: 0.5, y: 0.5, width: 0.4, height: 0.4 } }`.
- **`pixels`** — absolute pixels. Use only when you have authoritative coordinates from a prior \
`<vision_proxy_description>` or `<vision_proxy_analysis>` (which carry `width` and `height` attributes) or from a \
previous grounded response. Example: `{ image_index: 0, pixels: { x: 1840, y: 120, width: 840, height: 360 } }`.

Image dimensions and filenames are available in the `width`, `height`, and `filename` attributes of \
`<vision_proxy_description>`, `<vision_proxy_analysis>`, and `<vision_proxy_joint_description>` blocks in your context.

When a crop is applied, the response fence carries a `crop_origin` attribute (e.g. `crop_origin="1840,120"`). Add the \
origin's x to any returned x-coordinate and the origin's y to any returned y-coordinate to map coordinates back to the \
original full image.

The tool result is authoritative for the specific question asked; the cached generic description remains the default \
for everything else.

When a fence ends with `sent` (e.g. `sent="1316x728"`), pixel coordinates in its body are in an image of that size: \
scale them to `width` and `height` first, or take those of the `<vision_proxy_boxes>` block behind it, which are x1, \
y1, x2, y2 in pixels of the original image already."""


def properties(rectangle: Json, fractions: Json) -> dict[str, Json]:
    crop: Json = {
        "type": "object",
        "properties": {
            "image_index": {"type": "integer", "minimum": 0, "description": "Which of `images`, from 0."},
            "region": {"type": "string", "enum": list(REGIONS), "description": "A part by its name."},
            "normalized": fractions,
            "pixels": rectangle,
        },
        "required": ["image_index"],
        "additionalProperties": False,
    }
    return {
        "images": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": 20,
            "description": "Each the path of an image, or sha256: and its hex digits, as a fence has it.",
        },
        "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What you want to know."},
        "model": {"type": "string", "description": "Another model that shall look, as provider/model-id."},
        "crop": {"type": "array", "items": crop, "description": "The part of an image to look at, one entry an image."},
        "reason": {"type": "string", "description": "Why you ask; it is only noted."},
    }
