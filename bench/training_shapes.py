"""Draw sheets of toggles in looks that no package has, and of small shapes that are none, for training.

A sheet has blocks; each block is one look, drawn several times with a text beside it: switches with large knobs, thin
tracks, words, grooves and gradients, check boxes with crosses, squares and dots, radio buttons that are filled; and
signs of trees, letters in tiles, steps, swatches, days, sliders, arrows and dots of states.
"""

import random
from collections.abc import Callable

from PIL import Image, ImageColor, ImageDraw, ImageFont
from training_pages import ACCENTS, DARK, GREYS, LIGHT
from training_sketches import FINE, TrainingSketch

SIZE = (640, 480)
SCALES = (1, 1, 1.25, 1.5, 2)
FADED = 0.45  # how much of a pale toggle is left


def make_sheet(number: int) -> TrainingSketch:
    """Draw one sheet; its number decides all."""
    chance = random.Random(f"shapes {number}")
    dark = chance.random() < 0.35
    ground, ink = chance.choice(DARK if dark else LIGHT), "#dddddd" if dark else "#222222"
    scale = chance.choice(SCALES)
    sheet = TrainingSketch(chance, (round(SIZE[0] * scale), round(SIZE[1] * scale)), ground, ink)
    for column in range(3):
        x, y = round((20 + 210 * column) * scale), round(20 * scale)
        while y < sheet.size[1] - 70 * scale:
            y = _draw_block(sheet, x, y, scale, dark=dark)
    return sheet


def _draw_block(sheet: TrainingSketch, x: int, y: int, scale: float, *, dark: bool) -> int:
    """Draw a few shapes of one look below each other; return where they end."""
    chance = sheet.chance
    draw = chance.choice(TOGGLES * 2 + DECOYS)
    look = Look(chance, dark=dark, ground=sheet.ground)
    high = round(chance.choice((12, 13, 14, 15, 16, 16, 18, 20, 22, 24, 28)) * scale)
    letters = round(chance.choice((12, 13, 14, 15, 16)) * scale)
    step = round(max(high * 1.36, letters * 1.3) + chance.choice((2, 6, 10, 16)) * scale)
    seed = chance.random()
    for _ in range(chance.randint(1, 5)):
        if y + step > sheet.size[1]:
            return y
        on, pale = chance.random() < 0.5, chance.random() < 0.12
        kind, wide = draw(sheet, (x, y, high), look, random.Random(seed), on, pale)
        if kind:
            sheet.add(kind, [x, y, x + wide, y + high], disabled=pale, checked=on)
        if chance.random() < 0.93:
            gap = round(chance.choice((5, 7, 9, 12)) * scale)
            sheet.write(x + wide + gap, y + high / 2, sheet.name(2)[:16], letters, "#999999" if pale else "")
        y += step
    return y + round(chance.choice((6, 14)) * scale)


class Look:
    """The colours of one block."""

    def __init__(self, chance: random.Random, *, dark: bool, ground: str) -> None:
        tone = [chance.randint(10, 110), chance.randint(60, 190), chance.randint(110, 240)]
        chance.shuffle(tone)
        self.accent = chance.choice((chance.choice(ACCENTS), "#" + "".join(f"{each:02x}" for each in tone)))
        self.line = chance.choice(("#555", "#666", "#888", "#444b58", "#999") if dark else (*GREYS, "#333", "#000"))
        self.inner = chance.choice(
            (ground, ground, "#fff" if not dark else "#1b1b1b", "#f0f0f0" if not dark else "#333")
        )
        self.mark = chance.choice(("#fff", "#fff", "#fff", "#111"))
        self.track = chance.choice(
            ("#444", "#555", "#3a3f4b", "#777") if dark else ("#ccc", "#bbb", "#ddd", "#999", "#e5e5e5", "#767676")
        )
        self.ground = ground


class Pen:
    """Draws on a large canvas of one shape, in shares of its height, and pastes it smaller."""

    def __init__(
        self, sheet: TrainingSketch, place: tuple[int, int, int], wide: int, look: Look, *, pale: bool
    ) -> None:
        self.sheet, self.place, self.wide, self.pale = sheet, place, wide, pale
        self.side = place[2] * FINE
        self.margin = self.side // 6
        size = (wide * FINE + 2 * self.margin, self.side + 2 * self.margin)
        self.image = Image.new("RGB", size, look.ground)
        self.ground = ImageColor.getrgb(look.ground)
        self.light = self.ground[0] > 128
        self.pen = ImageDraw.Draw(self.image)

    def move(self, *edges: float) -> list[float]:
        return [self.margin + each * self.side for each in edges]

    def box(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        fill: str | None,
        line: str = "",
        thick: float = 0,
        corner: float = 0,
    ) -> None:
        self.pen.rounded_rectangle(
            self.move(x0, y0, x1, y1), corner * self.side, fill, line or None, round(thick * self.side)
        )

    def disc(self, x: float, y: float, radius: float, fill: str | None, line: str = "", thick: float = 0) -> None:
        edges = self.move(x - radius, y - radius, x + radius, y + radius)
        self.pen.ellipse(edges, fill, line or None, round(thick * self.side))

    def path(self, points: list[tuple[float, float]], ink: str, thick: float) -> None:
        moved = [tuple(self.move(*each)) for each in points]
        self.pen.line(moved, ink, round(thick * self.side), "curve")

    def sign(self, x: float, y: float, text: str, ink: str, size: float) -> None:
        font = ImageFont.load_default(max(8, round(size * self.side)))
        left, top = self.move(x, y)
        self.pen.text((left, top), text, ink, font, "mm")

    def shade(self, x: float, y: float, radius: float) -> None:
        """Draw a soft shadow below a knob."""
        for at in range(5, 0, -1):
            grey = 255 - 13 * (6 - at)
            self.disc(
                x,
                y + 0.05,
                radius + 0.025 * at,
                "#" + 3 * f"{grey:02x}" if self.light else "#000",
            )

    def finish(self) -> None:
        x, y, _ = self.place
        size = self.image.width // FINE, self.image.height // FINE
        drawn = self.image.resize(size, Image.Resampling.BOX)
        if self.pale:
            drawn = Image.blend(Image.new("RGB", size, self.ground[:3]), drawn, FADED)
        slack = self.margin // FINE
        cut = min(slack, x, y)
        part = drawn.crop((slack - cut, slack - cut, size[0] - slack + 2, size[1] - slack + 2))
        self.sheet.image.paste(part, (x - cut, y - cut))
        self.sheet.pen = ImageDraw.Draw(self.sheet.image)


Place = tuple[int, int, int]
Drawn = tuple[str, int]


def draw_switch(sheet: TrainingSketch, place: Place, look: Look, chance: random.Random, on: bool, pale: bool) -> Drawn:
    high, ratio = place[2], chance.choice((1.5, 1.6, 1.75, 1.9, 2, 2.2, 2.5))
    pen = Pen(sheet, place, round(high * ratio), look, pale=pale)
    w = round(high * ratio) / high
    style, square = (
        chance.choice(("plain", "thin", "large", "outline", "words", "groove", "half", "signs")),
        chance.random() < 0.25,
    )
    corner = chance.choice((0, 0.08, 0.15)) if square else 0.5
    knob = chance.choice(("#fff", "#fff", "#fafafa", "#eee", "#222"))
    tint = look.accent if on else look.track
    gap, thick = chance.choice((0.06, 0.1, 0.14, 0.2)), chance.choice((0.05, 0.07, 0.1))
    radius = 0.5 - gap
    if style == "thin":
        rail = chance.choice((0.08, 0.15, 0.25, 0.3))
        pen.box(0.1, rail, w - 0.1, 1 - rail, tint, corner=corner * (1 - 2 * rail))
        radius, knob = 0.5, chance.choice((look.accent if on else "#fff", knob))
    elif style == "outline":
        line = look.accent if on else look.line
        fill = chance.choice((look.inner, look.accent if on else look.inner))
        pen.box(0, 0, w, 1, fill, line, thick, corner)
        knob = look.mark if fill == look.accent else line
        radius = 0.5 - thick - chance.choice((0.06, 0.12, 0.18))
    elif style == "groove":
        pen.box(0, 0, w, 1, look.line, corner=corner)
        pen.box(0.05, 0.08, w - 0.03, 1, tint, corner=corner)
    elif style == "half":  # a knob that is half of the switch
        pen.box(0, 0, w, 1, tint, look.line, thick, corner * 0.4)
    else:
        pen.box(0, 0, w, 1, tint, look.line if chance.random() < 0.3 else "", thick, corner)
    x = w - gap - radius if on else gap + radius
    if style in ("thin", "outline"):
        x = w - 0.5 if on else 0.5
    if style in ("words", "groove"):
        word = chance.choice((("ON", "OFF"), ("I", "O"), ("Yes", "No"), ("1", "0")))[0 if on else 1]
        pen.sign(w - x, 0.5, word, look.mark if on else "#555", min(0.55, 1.2 * (w - 1) / max(1, len(word))))
    if chance.random() < 0.4:
        pen.shade(x, 0.5, radius)
    if style == "half":
        left = w / 2 if on else 0.0
        pen.box(left + 0.04, 0.04, left + w / 2 - 0.04, 0.96, knob, look.line, thick / 2, corner * 0.3)
    elif square:
        pen.box(
            x - radius,
            0.5 - radius,
            x + radius,
            0.5 + radius,
            knob,
            look.line if style == "groove" else "",
            thick,
            corner * 0.8,
        )
    else:
        pen.disc(x, 0.5, radius, knob, look.line if chance.random() < 0.3 else "", thick / 2)
    if style == "signs":
        pen.sign(x, 0.5, chance.choice("|v=") if on else chance.choice("xo="), look.accent if on else "#777", 0.5)
    pen.finish()
    return "switch", pen.wide


def draw_check(sheet: TrainingSketch, place: Place, look: Look, chance: random.Random, on: bool, pale: bool) -> Drawn:
    pen = Pen(sheet, place, place[2], look, pale=pale)
    thick, corner = chance.choice((0.05, 0.07, 0.1, 0.14)), chance.choice((0, 0, 0.1, 0.15, 0.25))
    filled, style = (
        chance.random() < 0.5,
        chance.choice(("tick", "tick", "tick", "tick", "tick", "cross", "square", "sunk", "over")),
    )
    fill = look.accent if on and filled else look.inner
    mark = look.mark if on and filled else chance.choice((look.accent, look.line))
    pen.box(0, 0, 1, 1, fill, look.accent if on and chance.random() < 0.7 else look.line, thick, corner)
    if style == "sunk":
        pen.box(thick, thick, 1, 1, None, "#999999", thick, corner)
    if on and style == "cross":
        pen.path([(0.27, 0.27), (0.73, 0.73)], mark, thick * 1.6)
        pen.path([(0.73, 0.27), (0.27, 0.73)], mark, thick * 1.6)
    elif on and style == "square":
        pen.box(0.26, 0.26, 0.74, 0.74, mark, corner=corner / 2)
    elif on:
        out = 0.18 if style == "over" else 0.0
        pen.path([(0.22, 0.52), (0.42, 0.72), (0.78 + out, 0.28 - out)], mark, thick * chance.choice((1.2, 1.6, 2)))
    pen.finish()
    return "check", pen.wide


def draw_radio(sheet: TrainingSketch, place: Place, look: Look, chance: random.Random, on: bool, pale: bool) -> Drawn:
    pen = Pen(sheet, place, place[2], look, pale=pale)
    thick, dot = chance.choice((0.05, 0.07, 0.1, 0.14)), chance.choice((0.14, 0.18, 0.22, 0.27, 0.33))
    style = chance.choice(("dot", "dot", "filled", "thick", "double"))
    line = look.accent if on and chance.random() < 0.8 else look.line
    if on and style in ("filled", "thick"):
        pen.disc(0.5, 0.5, 0.5, look.accent)
        pen.disc(0.5, 0.5, dot if style == "filled" else 0.5 - chance.choice((0.2, 0.27, 0.32)), look.mark)
    elif on and style == "double":
        pen.disc(0.5, 0.5, 0.5, look.accent)
        pen.disc(0.5, 0.5, 0.42, look.inner)
        pen.disc(0.5, 0.5, 0.33, look.accent)
    else:
        pen.disc(0.5, 0.5, 0.5, look.inner, line, thick)
        if on:
            pen.disc(0.5, 0.5, dot, chance.choice((look.accent, look.line)))
    pen.finish()
    return "radio", pen.wide


def draw_sign(sheet: TrainingSketch, place: Place, look: Look, chance: random.Random, on: bool, pale: bool) -> Drawn:
    """Draw a sign in a frame: of a tree that opens, a letter in a tile, a step, a day, a help."""
    pen = Pen(sheet, place, place[2], look, pale=pale)
    filled, thick = chance.random() < 0.5, chance.choice((0.05, 0.07, 0.1))
    fill = chance.choice((look.accent, look.track)) if filled else look.inner
    line = "" if filled else chance.choice((look.line, look.accent))
    if chance.random() < 0.5:
        pen.disc(0.5, 0.5, 0.5, fill, line, thick)
    else:
        pen.box(0, 0, 1, 1, fill, line, thick, chance.choice((0, 0.1, 0.2, 0.3)))
    signs = chance.choice(
        ("+-", "+-", "><", "AB", "JM", "12", "34", "ix", "?!", "PS", "<>", "^v", "QO", "x+", "BI", "UT", "7H")
    )
    pen.sign(0.5, 0.5, signs[0 if on else 1], look.mark if filled else look.line, chance.choice((0.55, 0.65, 0.8)))
    pen.finish()
    return "", pen.wide


def draw_mark(sheet: TrainingSketch, place: Place, look: Look, chance: random.Random, on: bool, pale: bool) -> Drawn:
    """Draw a swatch, a dot of a state, an avatar, a play sign, a ring of progress, or bars."""
    pen = Pen(sheet, place, place[2], look, pale=pale)
    style = chance.choice(
        (
            "swatch",
            "dot",
            "person",
            "play",
            "progress",
            "bars",
            "image",
            "folder",
            "lock",
            "tick",
            "tick",
            "screen",
            "card",
        )
    )
    tint = look.accent if on else chance.choice((look.track, chance.choice(ACCENTS)))
    if style == "swatch":
        pen.box(0, 0, 1, 1, tint, look.line if chance.random() < 0.3 else "", 0.05, chance.choice((0, 0.15, 0.3)))
    elif style == "dot":
        pen.disc(0.5, 0.5, chance.choice((0.2, 0.25, 0.3, 0.4, 0.5)), tint)
    elif style == "person":
        pen.disc(0.5, 0.5, 0.5, tint)
        pen.disc(0.5, 0.38, 0.17, look.mark)
        pen.disc(0.5, 0.9, 0.3, look.mark)
    elif style == "play":
        pen.disc(0.5, 0.5, 0.5, tint if chance.random() < 0.5 else look.inner, tint, 0.07)
        pen.pen.polygon([tuple(pen.move(*each)) for each in ((0.4, 0.3), (0.72, 0.5), (0.4, 0.7))], look.mark)
    elif style == "progress":
        pen.disc(0.5, 0.5, 0.5, look.inner, look.track, 0.12)
        pen.pen.arc(pen.move(0, 0, 1, 1), 270, 270 + chance.randint(40, 300), look.accent, round(0.12 * pen.side))
    elif style == "bars":
        for at in range(3):
            pen.box(0.1, 0.2 + 0.25 * at, 0.9, 0.3 + 0.25 * at, look.line)
    elif style == "image":
        pen.box(0, 0.1, 1, 0.9, look.inner, look.line, 0.06, 0.08)
        pen.disc(0.3, 0.35, 0.1, look.line)
        pen.path([(0.05, 0.85), (0.4, 0.5), (0.6, 0.7), (0.75, 0.55), (0.95, 0.8)], look.line, 0.06)
    elif style in ("tick", "screen", "card"):
        _draw_thing(pen, look, chance, style)
    elif style == "folder":
        pen.box(0, 0.15, 0.5, 0.5, tint, corner=0.05)
        pen.box(0, 0.25, 1, 0.9, tint, corner=0.05)
    else:
        pen.disc(0.5, 0.35, 0.25, look.ground, look.line, 0.09)
        pen.box(0.15, 0.4, 0.85, 0.95, look.line, corner=0.06)
    pen.finish()
    return "", pen.wide


def _draw_thing(pen: Pen, look: Look, chance: random.Random, style: str) -> None:
    """Draw a tick without a box, a screen, or a sign on a card."""
    if style == "tick":
        pen.path([(0.1, 0.55), (0.4, 0.85), (0.9, 0.2)], look.line, chance.choice((0.08, 0.12, 0.16)))
    elif style == "screen":
        pen.box(0, 0.08, 1, 0.76, look.inner, look.line, chance.choice((0.07, 0.1)), 0.08)
        pen.box(0.3, 0.84, 0.7, 0.94, look.line)
    else:
        pen.box(0, 0, 1, 1, look.inner, look.line, 0.04, chance.choice((0.1, 0.25)))
        pen.box(0.28, 0.28, 0.72, 0.42, look.line)
        pen.box(0.34, 0.48, 0.66, 0.74, chance.choice((look.line, look.accent)))


def draw_pill(sheet: TrainingSketch, place: Place, look: Look, chance: random.Random, on: bool, pale: bool) -> Drawn:
    """Draw a badge, a bar of progress, a slider, two joined segments, a battery, or a chip with a dot."""
    pen = Pen(sheet, place, round(place[2] * chance.choice((1.6, 2, 2.4, 2.8))), look, pale=pale)
    w, tint = pen.wide / place[2], look.accent if on else look.track
    style, thick = chance.choice(("badge", "badge", "progress", "slider", "segments", "battery", "chip", "card")), 0.06
    corner = chance.choice((0, 0.15, 0.3, 0.5))
    if style == "badge":
        pen.box(0, 0.05, w, 0.95, tint, corner=corner)
        pen.sign(w / 2, 0.5, chance.choice(("12", "New", "3", "99+", "v2", "Pro")), look.mark, 0.6)
    elif style == "progress":
        pen.box(0, 0.25, w, 0.75, look.track, corner=corner / 2)
        pen.box(0, 0.25, w * chance.uniform(0.2, 0.8), 0.75, look.accent, corner=corner / 2)
    elif style == "slider":
        pen.box(0, 0.42, w, 0.58, look.track)
        pen.disc(w * chance.uniform(0.3, 0.7), 0.5, 0.4, look.accent)
    elif style == "segments":
        pen.box(0, 0, w, 1, look.inner, look.line, thick, 0.1)
        pen.box(w / 2 if on else 0, 0, w if on else w / 2, 1, look.track, corner=0.1)
        pen.sign(w / 4, 0.5, chance.choice("<ABL-"), look.line, 0.5)
        pen.sign(3 * w / 4, 0.5, chance.choice(">BIR+"), look.line, 0.5)
    elif style == "battery":
        pen.box(0, 0.15, w - 0.12, 0.85, look.inner, look.line, thick, 0.12)
        pen.box(0.12, 0.27, w * chance.uniform(0.3, 0.8), 0.73, look.accent)
        pen.box(w - 0.12, 0.38, w, 0.62, look.line)
    elif style == "chip":
        pen.box(0, 0, w, 1, look.inner, look.line, thick, 0.5)
        pen.disc(0.5, 0.5, 0.18, tint)
        pen.sign((w + 0.7) / 2, 0.5, chance.choice(("ok", "up", "on")), look.line, 0.5)
    else:
        pen.box(0, 0, w, 1, tint, corner=0.12)
        pen.box(0, 0.2, w, 0.4, look.line)
    pen.finish()
    return "", pen.wide


Draw = Callable[[TrainingSketch, Place, Look, random.Random, bool, bool], Drawn]
TOGGLES: list[Draw] = [draw_switch, draw_switch, draw_check, draw_radio]
DECOYS: list[Draw] = [draw_sign, draw_sign, draw_mark, draw_mark, draw_pill]
