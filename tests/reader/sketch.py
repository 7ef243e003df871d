"""Screens drawn for a test, with the lines that a perfect reader would find on them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from sightline.model.geometry import Box
from sightline.reader.reading import Pixels, TextLine

Place = tuple[float, float, float, float]


@dataclass
class Sketch:
    size: tuple[int, int] = (640, 480)
    ground: str = "#ffffff"
    ink: str = "#202020"
    lines: list[TextLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = Image.new("RGB", self.size, self.ground)
        self.pen = ImageDraw.Draw(self.image)

    @property
    def pixels(self) -> Pixels:
        return np.asarray(self.image)

    def write(self, x: float, y: float, text: str, size: int = 13, ink: str = "", anchor: str = "lm") -> None:
        """A text whose edge or middle stands at a place."""
        font = ImageFont.load_default(size)
        left, top, right, bottom = (round(each) for each in self.pen.textbbox((x, y), text, font, anchor))
        self.pen.text((x, y), text, ink or self.ink, font, anchor)
        self.lines.append(TextLine(text, Box(left, top, right - left, bottom - top)))

    def box(self, place: Place, fill: str, outline: str = "", radius: int = 0) -> None:
        """A rectangle from its left top to its right bottom, which are outside of it."""
        x0, y0, x1, y1 = place
        self.pen.rounded_rectangle((x0, y0, x1 - 1, y1 - 1), radius, fill, outline or None)


BLUE, ORANGE, GREEN = "#1f77b4", "#ff7f0e", "#2ca02c"


def bar_chart(dark: bool = False, side: bool = False) -> Sketch:
    """Draw two series in three groups on an axis from 0 to 100: 80 30, 55 65, 20 95."""
    sketch = Sketch(ground="#101418", ink="#d0d0d0") if dark else Sketch()
    sketch.write(320, 20, "Orders by channel", 18, anchor="mm")
    low, high = (100, 600) if side else (420, 70)
    for step in range(6):
        at = low + (high - low) * step / 5
        if side:
            sketch.box((at, 70, at + 1, 420), "#808080")
            sketch.write(at + 0.5, 436, f"{step * 20}%", 12, anchor="mm")
        else:
            sketch.box((72, at, 600, at + 1), "#808080")
            sketch.write(64, at + 0.5, f"{step * 20}%", 12, anchor="rm")
    for group, (name, values) in enumerate({"North": (80, 30), "South": (55, 65), "East": (20, 95)}.items()):
        for row, (value, colour) in enumerate(zip(values, (BLUE, ORANGE), strict=True)):
            tip = low + (high - low) * value / 100
            start = (80 if side else 110) + group * (110 if side else 160) + row * 40
            sketch.box((low, start, tip, start + 38) if side else (start, tip, start + 38, low), colour)
        middle = (80 if side else 110) + group * (110 if side else 160) + 39
        sketch.write(*((90, middle) if side else (middle, 440)), name, 12, anchor="rm" if side else "mm")
    for place, (name, colour) in enumerate({"Online": BLUE, "Retail": ORANGE}.items()):
        sketch.box((240 + place * 100, 42, 254 + place * 100, 54), colour)
        sketch.write(262 + place * 100, 48, name, 12)
    return sketch
