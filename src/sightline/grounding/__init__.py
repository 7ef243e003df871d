"""Coordinates in answers: how each family of models writes them, and where they are in the original image.

The formats are here: what a model is asked to write, how it is read, and which family uses which format. `readers`
finds numbers in a text, and `parse` places them in the image.

Pure: text and sizes in, boxes out. The family of the model decides in which space its numbers are. The numbers
themselves never decide that; they can only show that something does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from sightline.model.facts import NO_COORDINATES
from sightline.model.geometry import Size
from sightline.model.value import value_class

_LEAD = "When you describe a spatial element, follow the description with "
_IMAGES = " Use `Image-N:` prefix for multi-image inputs."


@value_class
class GroundingFormat:
    name: str
    instruction: str  # the end of the prompt
    readers: tuple[str, ...]  # names in `readers.READERS`, in order; what one has read, the next does not see
    scale: float | None = None  # the number for a whole side of the image; None: pixels of the image as it was seen
    max_value: float | None = None  # the largest possible number, if it is not the scale
    order: Literal["xy", "yx"] = "xy"
    tolerance: float = 0.05  # values outside by up to this fraction of the side are clamped to the edge
    is_integer: bool = True  # numbers are integers, so fractions of one show that another space is meant

    @property
    def counts_pixels(self) -> bool:
        return self.scale is None and self.name != NO_COORDINATES


_PIXEL_BOX = _LEAD + "bounding-box coordinates as `[x1, y1, x2, y2]` in absolute pixels relative to the image."
_JSON = '`{"bbox_2d": [x1, y1, x2, y2], "label": "..."}`'
_ALL = (
    GroundingFormat(NO_COORDINATES, "", ()),
    GroundingFormat("qwen_pixels", _PIXEL_BOX + _IMAGES, ("json_keys", "box_tags", "inline_boxes")),
    GroundingFormat(
        "qwen_normalized_1000",
        f"{_LEAD}its bounding box as {_JSON} in relative coordinates from 0 to 1000.{_IMAGES}",
        ("json_keys", "box_tags", "actions", "inline_boxes"),
        scale=1000,
    ),
    GroundingFormat(
        "molmo_points",
        _LEAD + 'point coordinates as `<point x="..." y="..." alt="..."/>` using your standard percentage-based '
        "convention.",
        ("point_tags", "inline_boxes"),
        scale=100,
        tolerance=0,
        is_integer=False,
    ),
    GroundingFormat(
        "molmo2_points",
        _LEAD + 'points as `<points coords="1 1 308 305">label</points>` using your standard convention: the number '
        "of the image, then for each point its number, x and y from 000 to 1000.",
        ("point_tags", "inline_boxes"),
        scale=1000,
    ),
    GroundingFormat(
        "deepseek_bbox",
        f"{_LEAD}`<|ref|>name<|/ref|><|det|>[[x1, y1, x2, y2]]<|/det|>` in coordinates from 0 to 999.{_IMAGES}",
        ("box_tags", "json_keys", "inline_boxes"),
        scale=999,
    ),
    GroundingFormat(
        "internvl_pixels",
        f"{_LEAD}`<ref>name</ref><box>[[x1, y1, x2, y2]]</box>` in absolute pixels relative to the image.{_IMAGES}",
        ("box_tags", "json_keys", "inline_boxes"),
    ),
    GroundingFormat(
        "internvl_normalized_1000",
        f"{_LEAD}`<ref>name</ref><box>[[x1, y1, x2, y2]]</box>` in coordinates from 0 to 1000.{_IMAGES}",
        ("box_tags", "json_keys", "inline_boxes"),
        scale=1000,
    ),
    GroundingFormat(
        "gemini_normalized_1000",
        f'{_LEAD}its bounding box as `{{"box_2d": [ymin, xmin, ymax, xmax], "label": "..."}}` normalized to 0-1000.'
        + _IMAGES,
        ("json_keys", "inline_boxes"),
        scale=1000,
        order="yx",
    ),
    GroundingFormat(
        "glm_normalized_1000",
        f"{_LEAD}`<|begin_of_box|>[[x1, y1, x2, y2]]<|end_of_box|>` in relative coordinates from 0 to 1000.{_IMAGES}",
        ("box_tags", "json_keys", "inline_boxes"),
        scale=1000,
    ),
    GroundingFormat("claude_pixels", _PIXEL_BOX + _IMAGES, ("json_keys", "inline_boxes", "inline_points")),
    GroundingFormat("gpt_pixels", _PIXEL_BOX + _IMAGES, ("json_keys", "inline_boxes", "inline_points")),
    GroundingFormat(
        "uitars_pixels",
        f"{_LEAD}its centre as `<point>x y</point>` in absolute pixels relative to the image.{_IMAGES}",
        ("actions", "box_tags", "json_keys", "inline_boxes", "inline_points"),
    ),
    GroundingFormat(
        "florence_loc",
        "Write each spatial element as its name and its bounding box in location tokens, left, top, right, bottom: "
        "`name<loc_x1><loc_y1><loc_x2><loc_y2>`.",
        ("loc_tokens", "inline_boxes"),
        scale=1000,
        max_value=999,
        tolerance=0,
    ),
    GroundingFormat(
        "paligemma_loc",
        "Write each spatial element as its bounding box in location tokens, top, left, bottom, right, and its name: "
        "`<locYYYY><locXXXX><locYYYY><locXXXX> name ;`.",
        ("bin_tokens", "inline_boxes"),
        scale=1024,
        max_value=1023,
        order="yx",
        tolerance=0,
    ),
    GroundingFormat(
        "kosmos_patches",
        "<grounding> Write each spatial element as "
        "`<phrase>name</phrase><object><patch_index_0000><patch_index_1023></object>`.",
        ("patch_tokens", "inline_boxes"),
        scale=1,
        is_integer=False,
    ),
    GroundingFormat(
        "unit_xyxy",
        f"{_LEAD}its bounding box as {_JSON} in fractions of the image's width and height, from 0 to 1.{_IMAGES}",
        ("json_keys", "named_sides", "inline_boxes", "inline_points"),
        scale=1,
        is_integer=False,
    ),
)
FORMATS: dict[str, GroundingFormat] = {each.name: each for each in _ALL}


Tier = Literal[
    1,  # trained to give coordinates
    2,  # used, with a caveat
    0,  # not used: its coordinates are unreliable
]
FALLBACK_FORMAT = "qwen_pixels"  # for an unknown model if the user names no format


@value_class
class GroundingFamily:
    name: str
    pattern: str  # found anywhere in the model's name, in lower case, with dashes for underscores and spaces
    format: str  # empty: it has none of its own
    tier: Tier = 1
    caveat: str = ""


_UNTRAINED = "was not trained to give coordinates, and those it gives are unreliable"

# The first one found in a name decides. Versions of a family with different formats have their own entries.
FAMILIES: tuple[GroundingFamily, ...] = (
    GroundingFamily("UI-TARS 1.5", r"ui-?tars-?1[.p-]5", "uitars_pixels"),
    GroundingFamily("UI-TARS", r"ui-?tars-?(?:2|7|72)b", "qwen_normalized_1000"),
    GroundingFamily("Qwen2.5-VL", r"qwen-?2[.p-]?5-?vl", "qwen_pixels"),
    GroundingFamily("Qwen3-VL", r"qwen-?3-?vl", "qwen_normalized_1000"),
    GroundingFamily("Qwen3.5 and later", r"qwen-?3[.p][5-8]", "qwen_normalized_1000"),
    GroundingFamily("Qwen2-VL", r"qwen-?2-?vl", "qwen_normalized_1000"),
    GroundingFamily("Qwen-VL", r"qwen-vl(?:-chat|$)", "qwen_normalized_1000"),
    GroundingFamily("Molmo2", r"molmo-?2(?![0-9]*b)", "molmo2_points"),
    GroundingFamily("Molmo", r"molmoe?-?[0-9]+b", "molmo_points"),
    GroundingFamily("DeepSeek-VL2", r"deepseek-?vl-?2", "deepseek_bbox"),
    GroundingFamily("DeepSeek-OCR", r"deepseek-?ocr", "deepseek_bbox"),
    GroundingFamily("InternVL", r"internvl", "internvl_normalized_1000", caveat="its boxes are sometimes off"),
    GroundingFamily("GLM-4.5V and 4.6V", r"glm-?4[.p-]?[56]v", "glm_normalized_1000"),
    GroundingFamily("CogVLM", r"cogvlm", "glm_normalized_1000"),
    GroundingFamily("Florence-2", r"florence-?2", "florence_loc"),
    GroundingFamily("PaliGemma", r"paligemma", "paligemma_loc"),
    GroundingFamily("Kosmos-2", r"kosmos-?2(?![.0-9])", "kosmos_patches"),
    GroundingFamily("Moondream", r"moondream", "unit_xyxy"),
    GroundingFamily("Kimi-VL", r"kimi-?vl", "unit_xyxy"),
    GroundingFamily("ShowUI", r"showui", "unit_xyxy"),
    GroundingFamily(
        "Gemini 2 and 3", r"gemini-?[23](?![0-9])", "gemini_normalized_1000", 2, "its boxes are close, but not exact"
    ),
    GroundingFamily("Claude", r"claude", "claude_pixels", 0, _UNTRAINED),
    GroundingFamily("GPT", r"gpt-?[4-9]|(?:^|/)o[134](?:-|$)", "gpt_pixels", 0, _UNTRAINED),
    GroundingFamily("Llama Vision", r"llama.*vision", "", 0, _UNTRAINED),
)

# What version 1.4 of the settings file contained. An entry that equals one of these is not the user's choice.
SHIPPED_ENTRIES: Mapping[str, str] = {
    "Qwen/Qwen2.5-VL-7B-Instruct": "qwen_pixels",
    "Qwen/Qwen2.5-VL-72B-Instruct": "qwen_pixels",
    "Qwen/Qwen3-VL-7B": "qwen_pixels",
    "allenai/Molmo2-8B": "molmo_points",
    "allenai/Molmo2-72B": "molmo_points",
    "deepseek-ai/deepseek-vl2": "deepseek_bbox",
    "deepseek-ai/deepseek-vl2-small": "deepseek_bbox",
    "OpenGVLab/InternVL3-8B": "internvl_pixels",
    "google/gemini-2.5-pro": "gemini_normalized_1000",
    "google/gemini-3-pro": "gemini_normalized_1000",
}


@value_class
class NewEntryAdvice:
    """What to say when the user adds a model."""

    format: str
    warning: str = ""
    question: str = ""  # to ask first; empty: none


def find_grounding_family(model: str) -> GroundingFamily | None:
    name = _normalize_name(model)
    return next((each for each in FAMILIES if re.search(each.pattern, name)), None)


def choose_format(model: str, entries: Mapping[str, str] | None = None, aliases: Sequence[str] = ()) -> str:
    """Return the format in which a model is asked for coordinates, or `none`; the user's own entries come first.

    `aliases` are other names that the user may give to it.
    """
    chosen = _find_entry((model, *aliases), entries or {})
    if chosen is not None:
        return chosen
    known = find_grounding_family(model)
    return known.format if known and known.tier else NO_COORDINATES


def check_new_entry(model: str, chosen: str = "") -> NewEntryAdvice:
    """Return the format of a model that the user adds, with a warning or question if there is one."""
    known = find_grounding_family(model)
    question = f"{model} {known.caveat}; list it anyway?" if known and not known.tier else ""
    if chosen:
        return NewEntryAdvice(chosen, question=question)
    if known and known.format:
        return NewEntryAdvice(known.format, question=question)
    warning = f"no format is known for {model}, so {FALLBACK_FORMAT} is assumed (use --format to name another)"
    return NewEntryAdvice(FALLBACK_FORMAT, warning, question)


def list_grounding_models(entries: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the models that are asked for coordinates: name, format and remark."""
    return [
        *((each.name, each.format, each.caveat) for each in FAMILIES if each.tier),
        *((name, chosen, "as shipped; its family decides" if SHIPPED_ENTRIES.get(name) == chosen else "your entry")
          for name, chosen in entries.items()),
    ]  # fmt: skip


def add_entry(entries: Mapping[str, str], model: str, chosen: str) -> dict[str, str]:
    return {**_drop_entry(entries, model), model: chosen}


def remove_entry(entries: Mapping[str, str], model: str) -> dict[str, str]:
    """Return the entries without a model. If its family has a format, an entry `none` excludes it."""
    left = _drop_entry(entries, model)
    return left if choose_format(model, left) == NO_COORDINATES else {**left, model: NO_COORDINATES}


def _drop_entry(entries: Mapping[str, str], model: str) -> dict[str, str]:
    return {name: chosen for name, chosen in entries.items() if _normalize_name(name) != _normalize_name(model)}


def _find_entry(names: Iterable[str], entries: Mapping[str, str]) -> str | None:
    """Return the user's entry for a model, by its whole name or the end of it; the longest match counts."""
    whole = [f"/{_normalize_name(name)}" for name in names]
    own = {
        _normalize_name(entry): chosen
        for entry, chosen in entries.items()
        if SHIPPED_ENTRIES.get(entry) != chosen
        and chosen in FORMATS
        and any(name.endswith(f"/{_normalize_name(entry)}") for name in whole)
    }
    return own[max(own, key=len)] if own else None


def _normalize_name(model: str) -> str:
    return re.sub(r"[\s_]+", "-", model.strip().lower())


@value_class
class PixelGrid:
    """Resizing to multiples of `step` with an area within bounds; the aspect ratio may change a little."""

    step: int
    min_pixels: int
    max_pixels: int

    def compute_seen_size(self, size: Size) -> Size:
        width, height = (max(self.step, round(side / self.step) * self.step) for side in (size.width, size.height))
        if width * height > self.max_pixels:
            scale = math.sqrt(self.max_pixels / size.pixels) / self.step
            return Size(*(max(1, math.floor(side * scale)) * self.step for side in (size.width, size.height)))
        if width * height < self.min_pixels:
            scale = math.sqrt(self.min_pixels / size.pixels) / self.step
            return Size(*(math.ceil(side * scale) * self.step for side in (size.width, size.height)))
        return Size(width, height)


# The area is the smallest default of the family's servers: an image within it is within every larger one.
GRIDS: Mapping[str, PixelGrid] = {
    "qwen_pixels": PixelGrid(28, 4 * 28 * 28, 1280 * 28 * 28),
    "uitars_pixels": PixelGrid(28, 100 * 28 * 28, 1280 * 28 * 28),
}
