"""Which family of models writes coordinates in which format, and which of them are trusted to. Data, and its lookup."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sightline.grounding.formats import FORMATS
from sightline.model.facts import NO_FORM
from sightline.model.geometry import Size

Tier = Literal[
    1,  # made for it
    2,  # listed, with a caveat
    0,  # not listed: its coordinates are not to be relied on
]
FALLBACK = "qwen_pixels"  # for a model that nobody knows and a user who does not say


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    pattern: str  # found anywhere in the model's name: small letters, dashes for underscores and spaces
    format: str  # empty: it has none of its own
    tier: Tier = 1
    caveat: str = ""


_UNTRAINED = "was not trained to give coordinates, and those it gives are unreliable"

# The first that is found in a name decides. Versions of a family that write differently stand apart.
FAMILIES: tuple[Family, ...] = (
    Family("UI-TARS 1.5", r"ui-?tars-?1[.p-]5", "uitars_pixels"),
    Family("UI-TARS", r"ui-?tars-?(?:2|7|72)b", "qwen_normalized_1000"),
    Family("Qwen2.5-VL", r"qwen-?2[.p-]?5-?vl", "qwen_pixels"),
    Family("Qwen3-VL", r"qwen-?3-?vl", "qwen_normalized_1000"),
    Family("Qwen3.5 and later", r"qwen-?3[.p][5-8]", "qwen_normalized_1000"),
    Family("Qwen2-VL", r"qwen-?2-?vl", "qwen_normalized_1000"),
    Family("Qwen-VL", r"qwen-vl(?:-chat|$)", "qwen_normalized_1000"),
    Family("Molmo2", r"molmo-?2(?![0-9]*b)", "molmo2_points"),
    Family("Molmo", r"molmoe?-?[0-9]+b", "molmo_points"),
    Family("DeepSeek-VL2", r"deepseek-?vl-?2", "deepseek_bbox"),
    Family("DeepSeek-OCR", r"deepseek-?ocr", "deepseek_bbox"),
    Family("InternVL", r"internvl", "internvl_normalized_1000", caveat="its boxes have been seen to drift"),
    Family("GLM-4.5V and 4.6V", r"glm-?4[.p-]?[56]v", "glm_normalized_1000"),
    Family("CogVLM", r"cogvlm", "glm_normalized_1000"),
    Family("Florence-2", r"florence-?2", "florence_loc"),
    Family("PaliGemma", r"paligemma", "paligemma_loc"),
    Family("Kosmos-2", r"kosmos-?2(?![.0-9])", "kosmos_patches"),
    Family("Moondream", r"moondream", "unit_xyxy"),
    Family("Kimi-VL", r"kimi-?vl", "unit_xyxy"),
    Family("ShowUI", r"showui", "unit_xyxy"),
    Family("Gemini 2 and 3", r"gemini-?[23](?![0-9])", "gemini_normalized_1000", 2, "its boxes are good, not exact"),
    Family("Claude", r"claude", "claude_pixels", 0, _UNTRAINED),
    Family("GPT", r"gpt-?[4-9]|(?:^|/)o[134](?:-|$)", "gpt_pixels", 0, _UNTRAINED),
    Family("Llama Vision", r"llama.*vision", "", 0, _UNTRAINED),
)

# What version 1.4 of the settings file was shipped with. An entry that equals one of these is nobody's wish.
SHIPPED: Mapping[str, str] = {
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


@dataclass(frozen=True, slots=True)
class Adding:
    """What it means to list a model."""

    format: str
    warning: str = ""  # to be shown
    question: str = ""  # to be asked first; empty: nothing stands against it


def family(model: str) -> Family | None:
    name = _plain(model)
    return next((each for each in FAMILIES if re.search(each.pattern, name)), None)


def format_of(model: str, entries: Mapping[str, str] | None = None, also: Sequence[str] = ()) -> str:
    """The format in which a model is asked for coordinates, or `none`; the user's own entries come first.

    `also` are other names under which the user may speak of it.
    """
    chosen = _entry((model, *also), entries or {})
    if chosen is not None:
        return chosen
    known = family(model)
    return known.format if known and known.tier else NO_FORM


def adding(model: str, chosen: str = "") -> Adding:
    """What listing a model comes to, where its format may be left unsaid."""
    known = family(model)
    question = f"{model} {known.caveat}; list it all the same?" if known and not known.tier else ""
    if chosen:
        return Adding(chosen, question=question)
    if known and known.format:
        return Adding(known.format, question=question)
    warning = f"no format was named and none is known for {model}: {FALLBACK} is assumed; --format names another"
    return Adding(FALLBACK, warning, question)


def listing(entries: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Who is asked for coordinates: a name, its format, and what is to be said about it."""
    return [
        *((each.name, each.format, each.caveat) for each in FAMILIES if each.tier),
        *((name, said, "as shipped; its family decides" if SHIPPED.get(name) == said else "your entry")
          for name, said in entries.items()),
    ]  # fmt: skip


def added(entries: Mapping[str, str], model: str, chosen: str) -> dict[str, str]:
    return {**_without(entries, model), model: chosen}


def removed(entries: Mapping[str, str], model: str) -> dict[str, str]:
    """Without the model's own entry; one that its family lists is taken out by an entry that says so."""
    left = _without(entries, model)
    return left if format_of(model, left) == NO_FORM else {**left, model: NO_FORM}


def _without(entries: Mapping[str, str], model: str) -> dict[str, str]:
    return {name: chosen for name, chosen in entries.items() if _plain(name) != _plain(model)}


def _entry(names: Iterable[str], entries: Mapping[str, str]) -> str | None:
    """The user's word for this model: under a whole name, or under the last parts of it; the longest counts."""
    whole = [f"/{_plain(name)}" for name in names]
    own = {
        _plain(said): chosen
        for said, chosen in entries.items()
        if SHIPPED.get(said) != chosen
        and chosen in FORMATS
        and any(name.endswith(f"/{_plain(said)}") for name in whole)
    }
    return own[max(own, key=len)] if own else None


def _plain(model: str) -> str:
    return re.sub(r"[\s_]+", "-", model.strip().lower())


@dataclass(frozen=True, slots=True)
class Grid:
    """Both sides are multiples of `step`, and the area is within bounds; the shape may change a little."""

    step: int
    fewest: int  # pixels
    most: int

    def seen(self, size: Size) -> Size:
        width, height = (max(self.step, round(side / self.step) * self.step) for side in (size.width, size.height))
        if width * height > self.most:
            scale = math.sqrt(self.most / size.pixels) / self.step
            return Size(*(max(1, math.floor(side * scale)) * self.step for side in (size.width, size.height)))
        if width * height < self.fewest:
            scale = math.sqrt(self.fewest / size.pixels) / self.step
            return Size(*(math.ceil(side * scale) * self.step for side in (size.width, size.height)))
        return Size(width, height)


# The area is the smallest that servers of the family are set to: what is within it is within every larger one.
GRIDS: Mapping[str, Grid] = {
    "qwen_pixels": Grid(28, 4 * 28 * 28, 1280 * 28 * 28),
    "uitars_pixels": Grid(28, 100 * 28 * 28, 1280 * 28 * 28),
}
