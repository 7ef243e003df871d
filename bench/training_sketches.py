"""Draw small screens with Pillow for training: toggles, dialogs, menus, and what looks like a control and is none.

Not every screen is a page in a browser. These have sharp edges, few things on them, and letters of another rasteriser.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from training_pages import ACCENTS, DARK, GREYS, LIGHT, WORDS

from sightline.model.geometry import Box
from sightline.reader.reading import Pixels, TextLine

FINE = 8  # toggles are drawn this many times as large, then made smaller, as a browser draws them
OFF, ON, MIXED = ("box", "ring", "off"), ("ticked", "filled tick", "dot", "disc dot", "double ring", "on"), ("dash",)
KINDS = {
    "box": "check", "ticked": "check", "filled tick": "check", "dash": "check", "ring": "radio", "dot": "radio",
    "disc dot": "radio", "double ring": "radio", "off": "switch", "on": "switch",
}  # fmt: skip
FADED = ("#aaaaaa", "#aaaaaa", "#a0a0a0", "#999999")
DECOYS = ("swatch", "disc", "box glyph", "ring glyph")


@dataclass
class TrainingSketch:
    """A picture that is being drawn, with its lines and what is on it."""

    chance: random.Random
    size: tuple[int, int]
    ground: str
    ink: str
    lines: list[TextLine] = field(default_factory=list)
    controls: list[dict[str, Any]] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = Image.new("RGB", self.size, self.ground)
        self.pen = ImageDraw.Draw(self.image)

    @property
    def pixels(self) -> Pixels:
        return np.asarray(self.image)

    @property
    def truth(self) -> dict[str, Any]:
        return {"controls": self.controls, "states": self.states, "pictures": []}

    def name(self, most: int = 3) -> str:
        words = " ".join(self.chance.choice(WORDS) for _ in range(self.chance.randint(1, most)))
        return words[:1].upper() + words[1:]

    def write(self, x: float, y: float, text: str, size: int, ink: str = "", anchor: str = "lm") -> Box:
        font = ImageFont.load_default(size)
        left, top, right, bottom = (round(each) for each in self.pen.textbbox((x, y), text, font, anchor))
        self.pen.text((x, y), text, ink or self.ink, font, anchor)
        self.lines.append(TextLine(text, Box(left, top, max(1, right - left), max(1, bottom - top))))
        return self.lines[-1].box

    def box(self, edges: tuple[float, ...], fill: str, outline: str = "", radius: int = 0) -> list[int]:
        x0, y0, x1, y1 = edges
        self.pen.rounded_rectangle((x0, y0, x1 - 1, y1 - 1), radius, fill, outline or None)
        return [round(each) for each in edges]

    def add(self, kind: str, box: list[int], *, disabled: bool = False, checked: bool | None = None) -> None:
        self.controls.append({"kind": kind, "box": box, "disabled": disabled, "checked": checked})

    def paste_decoy(self, x: int, y: int, side: int, look: str) -> None:
        """Draw the shape of a toggle that is none, such as the mark of a list."""
        big = Image.new("RGB", (side * FINE, side * FINE), self.ground)
        draw_toggle(ImageDraw.Draw(big), (side * FINE, side * FINE), look, self.chance, pale=False)
        self.image.paste(big.resize((side, side), Image.Resampling.LANCZOS), (x, y))

    def draw_box(self, x: int, y: int, side: int, line: str, fill: str) -> None:
        """Draw a check box without smooth edges."""
        box = self.box((x, y, x + side, y + side), fill, line)
        checked = self.chance.random() < 0.5
        if checked:
            ticked = [
                (x + 0.2 * side, y + 0.5 * side),
                (x + 0.45 * side, y + 0.75 * side),
                (x + 0.8 * side, y + 0.2 * side),
            ]
            self.pen.line(ticked, self.ink, max(2, side // 8))
        self.add("check", box, checked=checked)

    def paste_toggle(self, x: int, y: int, high: int, look: str, *, pale: bool, disabled: bool) -> None:
        """Draw a toggle, or what looks like one; one that is disabled may have only its text pale."""
        wide = round(high * self.chance.choice((1.7, 1.75, 1.8, 2.0))) if look in ("on", "off") else high
        big = Image.new("RGB", (wide * FINE, high * FINE), self.ground)
        draw_toggle(ImageDraw.Draw(big), (wide * FINE, high * FINE), look, self.chance, pale=pale)
        self.image.paste(big.resize((wide, high), Image.Resampling.LANCZOS), (x, y))
        if look.endswith("glyph"):
            glyph, font = self.chance.choice("i?!B3A1xRP+"), ImageFont.load_default(round(0.7 * high))
            self.pen.text((x + wide / 2, y + high / 2), glyph, "#202020", font, "mm")
        if look in KINDS:
            checked = None if look in MIXED else look in ON
            self.add(KINDS[look], [x, y, x + wide, y + high], disabled=disabled, checked=checked)


def draw_toggle(pen: Any, size: tuple[int, int], look: str, chance: random.Random, *, pale: bool) -> None:
    wide, high = size
    accent = "#cccccc" if pale else chance.choice(("#0d6efd", "#0d6efd", *ACCENTS))
    line = round(high / chance.choice((10, 12, 14, 14, 16)))
    white = chance.choice(("#ffffff", "#ffffff", "#fafafa"))
    grey = "#cccccc" if pale else chance.choice(("#adb5bd", "#888888", "#666666", "#666666", "#444444"))
    everything, corner = (0, 0, wide - 1, high - 1), round(high / chance.choice((5, 6, 6, 8, 100)))
    tick = [(0.22 * wide, 0.52 * high), (0.42 * wide, 0.72 * high), (0.78 * wide, 0.28 * high)]

    def circle(share: float, fill: str) -> None:
        pen.ellipse((wide * (0.5 - share), high * (0.5 - share), wide * (0.5 + share), high * (0.5 + share)), fill)

    if look in ("box", "ticked", "box glyph"):
        pen.rounded_rectangle(everything, corner, white, grey, line)
        if look == "ticked":
            pen.line(tick, "#bbbbbb" if pale else chance.choice(("#202020", accent)), 2 * line, "curve")
    elif look in ("filled tick", "dash", "swatch"):
        pen.rounded_rectangle(everything, corner, accent)
        if look == "dash":
            pen.rectangle((0.25 * wide, 0.43 * high, 0.75 * wide, 0.57 * high), white)
        elif look == "filled tick":
            pen.line(tick, white, 2 * line, "curve")
    elif look in ("ring", "dot", "ring glyph"):
        pen.ellipse(everything, white, grey, line)
        if look == "dot":
            circle(chance.choice((0.18, 0.22, 0.25, 0.3)), accent)
    elif look in ("disc", "disc dot", "double ring"):
        pen.ellipse(everything, accent)
        if look == "double ring":
            circle(0.41, white)
            circle(0.32, accent)
        elif look == "disc dot":
            circle(chance.choice((0.2, 0.25, 0.28)), white)
    else:
        pen.rounded_rectangle(everything, high // 2, accent if look == "on" else white, grey, line)
        left = wide - 0.85 * high if look == "on" else 0.15 * high
        pen.ellipse((left, 0.15 * high, left + 0.7 * high, 0.85 * high), white if look == "on" else grey)


def make_sketch(number: int) -> TrainingSketch:
    """Draw one sketch; its number decides all."""
    chance = random.Random(f"sketch {number}")
    dark = chance.random() < 0.35
    ground = chance.choice((*DARK, "#1f2430", "#1e1e1e") if dark else (*LIGHT, "#f3f3f3"))
    ink = chance.choice(("#dddddd", "#ffffff", "#888888") if dark else ("#202020", "#000000", "#444444", "#888888"))
    scale = chance.choice((1, 1, 2))
    draw = chance.choice((*(draw_toggles,) * 4, draw_dialog, draw_menu, draw_menu, draw_boxes, draw_boxes))
    size = chance.choice(((300, 80), (400, 100), (300, 200), (400, 300), (500, 200), (700, 100), (640, 480)))
    if draw in (draw_dialog, draw_boxes):
        size = (640, 480)
    sketch = TrainingSketch(chance, (size[0] * scale, size[1] * scale), ground, ink)
    draw(sketch, scale)
    return sketch


def draw_toggles(sketch: TrainingSketch, scale: int) -> None:
    """Draw a column of toggles of one kind, or of decoys, each with its text."""
    chance = sketch.chance
    high = scale * chance.choice((12, 13, 14, 16, 16, 18, 20, 24))
    kinds = [[look for look in KINDS if KINDS[look] == kind] for kind in ("check", "radio", "switch")]
    looks = chance.choice([*kinds, kinds[0], kinds[1], list(DECOYS)])
    pale_text = chance.random() < 0.3
    letters, x = round(high * chance.choice((0.7, 0.8, 0.9, 1.0))), scale * chance.choice((12, 20, 24, 60))
    bullets = chance.random() < 0.2
    step = round(high * chance.choice((1.6, 2, 2.5)))
    for y in range(scale * 20, sketch.size[1] - 2 * high, step)[: chance.choice((1, 1, 2, 3, 4, 6))]:
        disabled = chance.random() < 0.22 and looks[0] not in DECOYS
        pale = disabled and chance.random() < 0.7
        if bullets:
            side = round(letters * chance.choice((0.4, 0.5, 0.55)))
            if chance.random() < 0.6:
                sketch.paste_decoy(
                    x, round(y + high / 2 - side / 2), side, chance.choice(("ring", "disc", "disc", "box"))
                )
            else:
                shape = (x, y + high / 2 - side / 2, x + side, y + high / 2 + side / 2)
                sketch.pen.ellipse(shape, sketch.ground if chance.random() < 0.5 else sketch.ink, sketch.ink)
        elif looks[0] in DECOYS and chance.random() < 0.3:
            sketch.write(x, y + high / 2, chance.choice("OQ0o"), letters)
        else:
            sketch.paste_toggle(x, y, high, chance.choice(looks), pale=pale, disabled=disabled)
        gap = scale * chance.choice((6, 8, 10, 14))
        faded = chance.choice(FADED) if disabled and (not pale or pale_text or chance.random() < 0.5) else ""
        start = x + (2 if looks[0] in ("off", "on") else 1) * high + gap
        if faded or chance.random() < 0.93:
            sketch.write(start, y + high / 2, sketch.name(), letters, faded)


def draw_dialog(sketch: TrainingSketch, scale: int) -> None:
    """Draw a card with fields, toggles and buttons."""
    chance = sketch.chance
    light = sketch.ground in (*LIGHT, "#f3f3f3")
    card = chance.choice(("#ffffff", sketch.ground)) if light else chance.choice(("#2b2b2b", "#2b3035", sketch.ground))
    line = chance.choice(GREYS) if light else chance.choice(("#6a6a6a", "#555555", "#4a5268"))
    sketch.ink = "#202020" if light else "#dddddd"
    sketch.box((40 * scale, 30 * scale, 600 * scale, 450 * scale), card, radius=chance.choice((0, 8)))
    size, y, x = chance.choice((12, 13, 14)) * scale, 60 * scale, 60 * scale
    sketch.write(x, y, sketch.name(), round(1.5 * size))
    for _ in range(chance.randint(1, 4)):
        y += round(2.2 * size)
        if chance.random() < 0.8:
            sketch.write(x, y, sketch.name(2), size)
        high, wide = round(size * chance.choice((2, 2.4, 2.7))), scale * chance.choice((140, 220, 340, 420))
        y += size
        box = sketch.box((x, y, x + wide, y + high), card, line, scale * chance.choice((0, 3, 5)))
        content = chance.random()
        if content < 0.7:
            pale = chance.choice(("#bcc3ce", "#a0a0a0", "#989da2")) if content < 0.35 else ""
            sketch.write(x + size, y + high / 2, sketch.name(2), size, pale)
        sketch.add("field", box)
        if chance.random() < 0.25:
            sketch.box((x + wide - 1, y, x + wide + high, y + high), card, line)
        y += high
    for _ in range(chance.choice((0, 0, 1, 2, 3))):
        side = scale * chance.choice((13, 15, 16, 16, 18))
        y += side
        sketch.draw_box(x, y, side, line, card)
        sketch.write(x + side + 8 * scale, y + side / 2, sketch.name(), size)
        y += side
    x, y = 60 * scale, y + size
    for at in range(chance.randint(1, 4)):
        text, high = sketch.name(2), round(size * chance.choice((2, 2.3, 2.6)))
        wide = round(len(text) * 0.62 * size + size * chance.choice((2, 3, 5)))
        filled = at == 0 or chance.random() < 0.4
        fill, edge = (chance.choice(ACCENTS), "") if filled else (card, line)
        box = sketch.box((x, y, x + wide, y + high), fill, edge, chance.choice((0, 4, 5, high // 2)))
        if chance.random() < 0.2:
            sketch.pen.ellipse((x + size, y + high / 2 - size / 2, x + 2 * size, y + high / 2 + size / 2), "#202020")
            sketch.write(x + 2.8 * size, y + high / 2, text[: max(3, len(text) - 4)], size, "#ffffff" if filled else "")
        else:
            sketch.write(x + wide / 2, y + high / 2, text, size, "#ffffff" if filled else "", "mm")
        sketch.add("button", box)
        x += wide + scale * chance.choice((2, 8, 16))


def draw_menu(sketch: TrainingSketch, scale: int) -> None:
    """Draw a menu or a row of tabs, with or without a selected item."""
    chance = sketch.chance
    size, count = chance.choice((12, 13, 14, 15)) * scale, chance.randint(3, 7)
    picked = chance.randrange(count) if chance.random() < 0.75 else -1
    across, look = chance.random() < 0.45, chance.choice(("fill", "fill", "tint", "line", "line"))
    if chance.random() < 0.3:
        accent = chance.choice(ACCENTS)
        sketch.box((0, 0, *sketch.size), accent)
        sketch.ground, sketch.ink = accent, "#ffffff"
    step = scale * (chance.choice((90, 110, 120)) if across else chance.choice((30, 40, 50)))
    also = picked - 2 if not across and picked >= 2 and look != "line" and chance.random() < 0.3 else -1
    for at in range(count):
        x, y = (scale * 40 + at * step, scale * 50) if across else (scale * 40, scale * 30 + at * step)
        if x + step > sketch.size[0] or y + step / 2 > sketch.size[1]:
            return
        _draw_item(sketch, scale, (x, y), (step, size), look if at in (picked, also) else "", across=across)
    x = scale * 40 + count * step
    if across and x + scale * 160 < sketch.size[0] and chance.random() < 0.6:  # a field beside them
        box = sketch.box((x, scale * 32, x + scale * 150, scale * 68), "#ffffff", radius=chance.choice((0, 4)))
        sketch.write(
            x + scale * 12, scale * 50, sketch.name(2)[:14], size, chance.choice(("#a0a0a0", "#888888", "#bbbbbb"))
        )
        sketch.add("field", box)


def _draw_item(
    sketch: TrainingSketch, scale: int, place: tuple[int, int], space: tuple[int, int], look: str, *, across: bool
) -> None:
    """Draw one item of a menu, which is selected if it has a look."""
    chance, (x, y), (step, size) = sketch.chance, place, space
    ink = ""
    if look and look != "line":
        fill = "#ffffff" if sketch.ink == "#ffffff" else chance.choice((*ACCENTS, "#e9ecef", "#dddddd"))
        ink = chance.choice(ACCENTS) if fill in ("#ffffff", "#e9ecef", "#dddddd") else "#ffffff"
        right = x + (0.85 * step if across else scale * 150)
        sketch.box((x - scale * 12, y - 1.3 * size, right, y + 1.3 * size), fill, radius=chance.choice((0, 4)))
    box = sketch.write(x, y, sketch.name(1)[:10], size, ink)
    if look == "line":
        below = y + size * chance.choice((1, 1.3, 1.6))
        thick = scale * chance.choice((2, 2, 3))
        sketch.box((box.x - scale * 8, below, box.right + scale * 8, below + thick), chance.choice(ACCENTS))
    edges = [box.x, box.y, box.right, box.bottom]
    sketch.states.append({"kind": "selected" if look else "plain", "tag": "A", "box": edges})


def draw_boxes(sketch: TrainingSketch, scale: int) -> None:
    """Draw badges, tiles, strips, cells, bars and panels, which are no controls, and some that are."""
    chance, y = sketch.chance, scale * 30
    size = chance.choice((12, 13, 14)) * scale
    while y < sketch.size[1] - scale * 110:
        kind = chance.random()
        draw = next(each for limit, each in BOXES if kind < limit)
        draw(sketch, scale, scale * 60, y, size)
        y += scale * 70 if draw is _draw_window else 0
        y += scale * chance.choice((60, 70))


def _draw_badge(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    sketch.box((x, y, x + scale * 50, y + round(1.6 * size)), sketch.chance.choice(ACCENTS), radius=6)
    text = sketch.chance.choice(("New", "Beta", "3", "Open"))
    sketch.write(x + scale * 25, y + 0.8 * size, text, size, "#ffffff", "mm")


def _draw_tile(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    sketch.box((x, y, x + scale * 34, y + scale * 34), sketch.chance.choice(ACCENTS), radius=6)
    sketch.write(x + scale * 17, y + scale * 17, sketch.chance.choice("ABKTX"), round(1.2 * size), "#ffffff", "mm")


def _draw_note(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    wide = scale * sketch.chance.choice((360, 500))
    sketch.box((x, y, x + wide, y + scale * 36), sketch.chance.choice(("#e4e7ec", "#fff3cd", *GREYS)), radius=6)
    text = " ".join(sketch.name(4) for _ in range(2))[:40]
    anchor, left = sketch.chance.choice((("mm", wide / 2), ("lm", size)))
    sketch.write(x + left, y + scale * 18, text, size, "#202020", anchor)


def _draw_button(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    chance = sketch.chance
    wide, high = scale * chance.choice((110, 180, 360, 500)), scale * chance.choice((30, 36, 40))
    fill, edge = chance.choice((("#e4e7ec", ""), (chance.choice(ACCENTS), ""), ("#ffffff", "#bbbbbb")))
    sketch.add("button", sketch.box((x, y, x + wide, y + high), fill, edge, chance.choice((0, 5, 6))))
    ink, text = "#202020" if fill in ("#e4e7ec", "#ffffff") else "#ffffff", sketch.name(2)[:18]
    if chance.random() < 0.4 and wide > scale * 150:
        middle = y + high / 2
        sketch.pen.ellipse((x + 20 * scale, middle - 8 * scale, x + 36 * scale, middle + 8 * scale), ink)
        sketch.write(x + 52 * scale, middle, text, size, ink)
    else:
        sketch.write(x + wide / 2, y + high / 2, text[: round(wide / size)], size, ink, "mm")


def _draw_field(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    chance = sketch.chance
    wide, high = scale * chance.choice((112, 180, 240, 400)), scale * chance.choice((30, 36, 38))
    fill, line = ("#ffffff", "#bbbbbb") if sketch.ground in LIGHT else ("#3f474e", "#56606a")
    sketch.add("field", sketch.box((x, y, x + wide, y + high), fill, line, chance.choice((0, 3, 5))))
    if chance.random() < 0.7:
        text, ink = sketch.name(2)[:12], chance.choice(("#bcc3ce", "#989da2"))
        sketch.write(x + 12 * scale, y + high / 2, text, size, ink)
    if chance.random() < 0.3:
        sketch.box((x + wide - 1, y, x + wide + high, y + high), fill, line)


def _draw_cells(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    for at in range(sketch.chance.randint(2, 4)):
        left = x + scale * 159 * at
        if left + scale * 160 < sketch.size[0]:
            sketch.box((left, y, left + scale * 160, y + scale * 40), sketch.ground, "#bbbbbb")
            sketch.write(left + scale * 12, y + scale * 20, sketch.name(1), size)


def _draw_strip(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    colours = sketch.chance.choice(ACCENTS), sketch.chance.choice(ACCENTS)
    sketch.box((x, y, x + scale * 400, y + scale * 40), *colours)
    sketch.write(x + scale * 12, y + scale * 20, sketch.name(2), size, "#ffffff")


def _draw_window(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    sketch.box((x, y, x + scale * 400, y + scale * 30), "#ffffff", sketch.chance.choice(("", "#bbbbbb")))
    sketch.write(x + scale * 12, y + scale * 15, sketch.name(2), size, "#202020")
    sketch.box((x, y + scale * 30, x + scale * 400, y + scale * 100), "#f0f0f0")
    sketch.write(x + scale * 20, y + scale * 60, sketch.name(5), size, "#202020")


def _draw_buttons(sketch: TrainingSketch, scale: int, x: int, y: int, size: int) -> None:
    chance = sketch.chance
    for at in range(chance.randint(2, 3)):
        left, wide = x + scale * 120 * at, scale * 100
        fill, edge = chance.choice(((chance.choice(ACCENTS), ""), ("#dddddd", ""), ("#ffffff", "#888888")))
        sketch.add("button", sketch.box((left, y, left + wide, y + scale * 36), fill, edge, 4))
        ink = "#202020" if fill in ("#dddddd", "#ffffff") else "#ffffff"
        sketch.write(left + wide / 2, y + scale * 18, sketch.name(1)[:9], size, ink, "mm")


BOXES = (  # each up to its share
    (0.15, _draw_badge), (0.3, _draw_tile), (0.42, _draw_note), (0.56, _draw_button), (0.62, _draw_field),
    (0.68, _draw_cells), (0.75, _draw_strip), (0.85, _draw_window), (1.01, _draw_buttons),
)  # fmt: skip
