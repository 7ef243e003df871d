"""The formats: what a model is asked to write, how that is read, and the space and order of its numbers. Data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sightline.grounding.readers import (
    Reader,
    acted,
    binned,
    inline,
    inline_points,
    keyed,
    located,
    named,
    patched,
    pointed,
    tagged,
)
from sightline.model.facts import NO_FORM

_LEAD = "When you describe a spatial element, follow the description with "
_IMAGES = " Use `Image-N:` prefix for multi-image inputs."


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    instruction: str  # what the prompt of a model that grounds ends with
    readers: tuple[Reader, ...]  # in their order; what one has read, the next does not see
    scale: float | None = None  # what stands for the whole side of the image; None: pixels of the image as it was seen
    top: float | None = None  # the largest number there is, where that is not the scale
    order: Literal["xy", "yx"] = "xy"
    slack: float = 0.05  # how far beyond the edge, as a part of the side, is still taken for the edge
    whole: bool = True  # numbers are whole by nature, so that fractions of one show another space

    @property
    def counts_pixels(self) -> bool:
        return self.scale is None and self.name != NO_FORM


_PIXEL_BOX = _LEAD + "bounding-box coordinates as `[x1, y1, x2, y2]` in absolute pixels relative to the image."
_JSON = '`{"bbox_2d": [x1, y1, x2, y2], "label": "..."}`'
_ALL = (
    Format(NO_FORM, "", ()),
    Format("qwen_pixels", _PIXEL_BOX + _IMAGES, (keyed, tagged, inline)),
    Format(
        "qwen_normalized_1000",
        f"{_LEAD}its bounding box as {_JSON} in relative coordinates from 0 to 1000.{_IMAGES}",
        (keyed, tagged, acted, inline),
        scale=1000,
    ),
    Format(
        "molmo_points",
        _LEAD + 'point coordinates as `<point x="..." y="..." alt="..."/>` using your standard percentage-based '
        "convention.",
        (pointed, inline),
        scale=100,
        slack=0,
        whole=False,
    ),
    Format(
        "molmo2_points",
        _LEAD + 'points as `<points coords="1 1 308 305">label</points>` using your standard convention: the number '
        "of the image, then for each point its number, x and y from 000 to 1000.",
        (pointed, inline),
        scale=1000,
    ),
    Format(
        "deepseek_bbox",
        f"{_LEAD}`<|ref|>name<|/ref|><|det|>[[x1, y1, x2, y2]]<|/det|>` in coordinates from 0 to 999.{_IMAGES}",
        (tagged, keyed, inline),
        scale=999,
    ),
    Format(
        "internvl_pixels",
        f"{_LEAD}`<ref>name</ref><box>[[x1, y1, x2, y2]]</box>` in absolute pixels relative to the image.{_IMAGES}",
        (tagged, keyed, inline),
    ),
    Format(
        "internvl_normalized_1000",
        f"{_LEAD}`<ref>name</ref><box>[[x1, y1, x2, y2]]</box>` in coordinates from 0 to 1000.{_IMAGES}",
        (tagged, keyed, inline),
        scale=1000,
    ),
    Format(
        "gemini_normalized_1000",
        f'{_LEAD}its bounding box as `{{"box_2d": [ymin, xmin, ymax, xmax], "label": "..."}}` normalized to 0-1000.'
        + _IMAGES,
        (keyed, inline),
        scale=1000,
        order="yx",
    ),
    Format(
        "glm_normalized_1000",
        f"{_LEAD}`<|begin_of_box|>[[x1, y1, x2, y2]]<|end_of_box|>` in relative coordinates from 0 to 1000.{_IMAGES}",
        (tagged, keyed, inline),
        scale=1000,
    ),
    Format("claude_pixels", _PIXEL_BOX + _IMAGES, (keyed, inline, inline_points)),
    Format("gpt_pixels", _PIXEL_BOX + _IMAGES, (keyed, inline, inline_points)),
    Format(
        "uitars_pixels",
        f"{_LEAD}its centre as `<point>x y</point>` in absolute pixels relative to the image.{_IMAGES}",
        (acted, tagged, keyed, inline, inline_points),
    ),
    Format(
        "florence_loc",
        "Write each spatial element as its name and its bounding box in location tokens, left, top, right, bottom: "
        "`name<loc_x1><loc_y1><loc_x2><loc_y2>`.",
        (located, inline),
        scale=1000,
        top=999,
        slack=0,
    ),
    Format(
        "paligemma_loc",
        "Write each spatial element as its bounding box in location tokens, top, left, bottom, right, and its name: "
        "`<locYYYY><locXXXX><locYYYY><locXXXX> name ;`.",
        (binned, inline),
        scale=1024,
        top=1023,
        order="yx",
        slack=0,
    ),
    Format(
        "kosmos_patches",
        "<grounding> Write each spatial element as "
        "`<phrase>name</phrase><object><patch_index_0000><patch_index_1023></object>`.",
        (patched, inline),
        scale=1,
        whole=False,
    ),
    Format(
        "unit_xyxy",
        f"{_LEAD}its bounding box as {_JSON} in fractions of the image's width and height, from 0 to 1.{_IMAGES}",
        (keyed, named, inline, inline_points),
        scale=1,
        whole=False,
    ),
)
FORMATS: dict[str, Format] = {each.name: each for each in _ALL}
