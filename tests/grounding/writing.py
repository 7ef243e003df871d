"""Writers for the tests: one object in the notation of each model family, independent of the readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sightline.model.geometry import Size

Corners = tuple[float, float, float, float]
Write = Callable[[Corners, Size], str]


@dataclass(frozen=True, slots=True)
class Hand:
    """A notation, and its precision: half a step of its numbers, as a fraction of the side."""

    format: str
    write: Write
    step: float = 0.0
    point: bool = False


def _scaled(corners: Corners, size: Size, scale: float, top: float | None = None) -> list[int]:
    sides = (size.width, size.height) * 2
    limit = scale if top is None else top
    return [round(min(value * scale / side, limit)) for value, side in zip(corners, sides, strict=True)]


def _json(key: str, scale: float | None, order: str = "xy") -> Write:
    def write(corners: Corners, size: Size) -> str:
        numbers = [round(each) for each in corners] if scale is None else _scaled(corners, size, scale)
        x1, y1, x2, y2 = numbers
        values = [x1, y1, x2, y2] if order == "xy" else [y1, x1, y2, x2]
        return f'```json\n[{{"{key}": {values}, "label": "thing"}}]\n```'

    return write


def _around(opening: str, closing: str, scale: float | None) -> Write:
    def write(corners: Corners, size: Size) -> str:
        numbers = [round(each) for each in corners] if scale is None else _scaled(corners, size, scale)
        return f"{opening}[[{', '.join(map(str, numbers))}]]{closing}"

    return write


def _corner_pairs(corners: Corners, size: Size) -> str:
    x1, y1, x2, y2 = _scaled(corners, size, 1000)
    return f"<|object_ref_start|>thing<|object_ref_end|><|box_start|>({x1},{y1}),({x2},{y2})<|box_end|>"


def _first_boxes(corners: Corners, size: Size) -> str:
    x1, y1, x2, y2 = _scaled(corners, size, 1000)
    return f"<ref>thing</ref><box>({x1},{y1}),({x2},{y2})</box>"


def _pixel_words(corners: Corners, _size: Size) -> str:
    return f"The thing [{', '.join(str(round(each)) for each in corners)}] is red."


def _percent(corners: Corners, size: Size) -> str:
    x, y = corners[0] * 100 / size.width, corners[1] * 100 / size.height
    return f'<point x="{x:.1f}" y="{y:.1f}" alt="thing">thing</point>'


def _molmo2(corners: Corners, size: Size) -> str:
    x, y, _, _ = _scaled(corners, size, 1000)
    return f'<points coords="1 1 {x:03} {y:03}">thing</points>'


def _click(corners: Corners, _size: Size) -> str:
    return f"Action: click(start_box='({round(corners[0])},{round(corners[1])})')"


def _point_tag(corners: Corners, _size: Size) -> str:
    return f"thing <point>{round(corners[0])} {round(corners[1])}</point>"


def _florence(corners: Corners, size: Size) -> str:
    return "thing" + "".join(f"<loc_{each}>" for each in _scaled(corners, size, 1000, 999))


def _florence_text(corners: Corners, size: Size) -> str:
    x1, y1, x2, y2 = _scaled(corners, size, 1000, 999)
    return "thing" + "".join(f"<loc_{each}>" for each in (x1, y1, x2, y1, x2, y2, x1, y2))


def _paligemma(corners: Corners, size: Size) -> str:
    x1, y1, x2, y2 = _scaled(corners, size, 1024, 1023)
    return "".join(f"<loc{each:04}>" for each in (y1, x1, y2, x2)) + " thing ; "


def _kosmos(corners: Corners, size: Size) -> str:
    sides = (size.width, size.height) * 2
    x1, y1, x2, y2 = (min(int(value * 32 / side), 31) for value, side in zip(corners, sides, strict=True))
    cells = f"<patch_index_{y1 * 32 + x1:04}><patch_index_{y2 * 32 + x2:04}>"
    return f"<grounding> <phrase>thing</phrase><object>{cells}</object>"


def _unit(corners: Corners, size: Size) -> list[float]:
    sides = (size.width, size.height) * 2
    return [round(value / side, 4) for value, side in zip(corners, sides, strict=True)]


def _kimi(corners: Corners, size: Size) -> str:
    return f'[{{"bbox_2d": {_unit(corners, size)}, "label": "thing"}}]'


def _moondream(corners: Corners, size: Size) -> str:
    x1, y1, x2, y2 = _unit(corners, size)
    return f'{{"objects": [{{"x_min": {x1}, "y_min": {y1}, "x_max": {x2}, "y_max": {y2}}}]}}'


def _moondream_point(corners: Corners, size: Size) -> str:
    x, y, _, _ = _unit(corners, size)
    return f'{{"points": [{{"x": {x}, "y": {y}}}]}}'


def _showui(corners: Corners, size: Size) -> str:
    x, y, _, _ = _unit(corners, size)
    return f"[{x}, {y}]"


HANDS: dict[str, Hand] = {
    "Qwen-VL": Hand("qwen_normalized_1000", _first_boxes, 1 / 1000),
    "Qwen2-VL": Hand("qwen_normalized_1000", _corner_pairs, 1 / 1000),
    "Qwen2.5-VL": Hand("qwen_pixels", _json("bbox_2d", None)),
    "Qwen2.5-VL, inline": Hand("qwen_pixels", _pixel_words),
    "Qwen3-VL": Hand("qwen_normalized_1000", _json("bbox_2d", 1000), 1 / 1000),
    "Molmo": Hand("molmo_points", _percent, 1 / 1000, point=True),
    "Molmo2": Hand("molmo2_points", _molmo2, 1 / 1000, point=True),
    "DeepSeek-VL2": Hand("deepseek_bbox", _around("<|ref|>thing<|/ref|><|det|>", "<|/det|>", 999), 1 / 999),
    "InternVL": Hand("internvl_normalized_1000", _around("<ref>thing</ref><box>", "</box>", 1000), 1 / 1000),
    "InternVL, in pixels": Hand("internvl_pixels", _around("<ref>thing</ref><box>", "</box>", None)),
    "Gemini": Hand("gemini_normalized_1000", _json("box_2d", 1000, "yx"), 1 / 1000),
    "GLM-4.5V": Hand("glm_normalized_1000", _around("thing <|begin_of_box|>", "<|end_of_box|>", 1000), 1 / 1000),
    "GLM-4.5V, as JSON": Hand("glm_normalized_1000", _json("bbox_2d", 1000), 1 / 1000),
    "CogVLM": Hand("glm_normalized_1000", _around("thing ", "", 1000), 1 / 1000),
    "Claude": Hand("claude_pixels", _pixel_words),
    "GPT": Hand("gpt_pixels", _pixel_words),
    "UI-TARS 1.5": Hand("uitars_pixels", _click, point=True),
    "UI-TARS 1.5, a point": Hand("uitars_pixels", _point_tag, point=True),
    "Florence-2": Hand("florence_loc", _florence, 2 / 1000),
    "Florence-2, a line of text": Hand("florence_loc", _florence_text, 2 / 1000),
    "PaliGemma": Hand("paligemma_loc", _paligemma, 2 / 1024),
    "Kosmos-2": Hand("kosmos_patches", _kosmos, 2 / 32),
    "Kimi-VL": Hand("unit_xyxy", _kimi, 1 / 10000),
    "Moondream": Hand("unit_xyxy", _moondream, 1 / 10000),
    "Moondream, a point": Hand("unit_xyxy", _moondream_point, 1 / 10000, point=True),
    "ShowUI": Hand("unit_xyxy", _showui, 1 / 10000, point=True),
}
