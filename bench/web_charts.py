"""Draw charts as web pages do: soft edges, round tops, pale grids, cards, legends of dots, two side by side."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from pages import BOLD, SANS, load_font
from PIL import Image, ImageDraw

KINDS = ("vertical", "horizontal", "grouped", "stacked", "grouped on its side", "stacked on its side", "line")
SOFT = 4  # times as large is drawn what gets soft edges
STEPS = 5  # of the axis
CATEGORIES = (
    "Jan Feb Mar Apr May Jun",
    "North South East West",
    "2021 2022 2023 2024 2025",
    "Web Mobile Desktop Kiosk",
)
SERIES = ("Visitors", "Sign ups", "Paid plans")
PALETTES = (
    ("#4e79a7", "#f28e2b", "#76b7b2"),
    ("#2563eb", "#16a34a", "#f59e0b"),
    ("#5470c6", "#91cc75", "#ee6666"),
    ("#8b5cf6", "#22d3ee", "#f472b6"),
)
LIGHT = {"page": "#f4f6f8", "card": "#ffffff", "ink": "#1f2937", "pale": "#6b7280", "grid": "#e5e7eb"}
DARK = {"page": "#0d1117", "card": "#161b22", "ink": "#e6edf3", "pale": "#8b949e", "grid": "#30363d"}

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class ChartText:
    text: str
    place: tuple[float, float]
    anchor: str
    colour: str
    size: int = 11


@dataclass
class WebChart:
    """A page with charts, and what they say."""

    name: str
    kind: str
    size: tuple[int, int]
    look: dict[str, str]
    words: list[ChartText] = field(default_factory=list)
    boxes: list[tuple[Box, str, float]] = field(default_factory=list)  # place, colour, radius
    lines: list[tuple[list[tuple[float, float]], str]] = field(default_factory=list)
    marks: list[tuple[str, str, float, float]] = field(default_factory=list)  # category, series, value, axis

    def draw(self) -> tuple[Image.Image, list[tuple[str, tuple[int, int, int, int]]]]:
        """Shapes large and then made small, texts on them; and the texts with left, top, width, height."""
        large = Image.new("RGB", (self.size[0] * SOFT, self.size[1] * SOFT), self.look["page"])
        pen = ImageDraw.Draw(large)
        for (x0, y0, x1, y1), colour, radius in self.boxes:
            place = (x0 * SOFT, y0 * SOFT, x1 * SOFT - 1, y1 * SOFT - 1)
            pen.rounded_rectangle(place, radius * SOFT, colour)
        for points, colour in self.lines:
            pen.line([(x * SOFT, y * SOFT) for x, y in points], colour, 2 * SOFT, "curve")
        image = large.resize(self.size, Image.Resampling.BOX)
        pen = ImageDraw.Draw(image)
        found = []
        for word in self.words:
            face = load_font(BOLD if word.size > 14 else SANS, word.size)
            pen.text(word.place, word.text, word.colour, face, word.anchor)
            edges = pen.textbbox(word.place, word.text, face, word.anchor)
            left, top, right, bottom = (round(edge) for edge in edges)
            found.append((word.text, (left, top, right - left, bottom - top)))
        return image, found


@dataclass(frozen=True)
class PlotArea:
    """The area of a chart, and what it shows."""

    left: float
    upper: float
    right: float
    bottom: float
    side: bool
    stacked: bool
    top: float  # value of the axis
    names: list[str]
    values: list[list[float]]  # of each series
    palette: tuple[str, ...]

    @property
    def room(self) -> float:
        """For each name."""
        return ((self.bottom - self.upper) if self.side else (self.right - self.left)) / len(self.names)

    def middle(self, place: int) -> float:
        return (self.upper if self.side else self.left) + (place + 0.5) * self.room

    def at(self, value: float) -> float:
        share = value / self.top
        if self.side:
            return self.left + (self.right - self.left) * share
        return self.bottom - (self.bottom - self.upper) * share


def draw_charts(seed: int) -> Iterator[WebChart]:
    for kind in KINDS:
        for shade, look in (("light", LIGHT), ("dark", DARK)):
            chance = random.Random(f"{seed} {kind} {shade}")
            count = chance.choice((1, 2))
            size = (chance.randint(560, 760) * count, chance.randint(360, 520))
            board = WebChart(f"{seed} {kind} {shade}", kind, size, look)
            wide = size[0] / count
            for number in range(count):
                _draw_card(chance, board, (number * wide + 12, 12.0, (number + 1) * wide - 12, size[1] - 12.0))
            yield board


def _draw_card(chance: random.Random, board: WebChart, card: Box) -> None:
    board.boxes.append((card, board.look["card"], 10))
    title = f"{chance.choice(('Orders', 'Traffic', 'Usage'))} by {chance.choice(('month', 'region', 'device'))}"
    board.words.append(ChartText(title, (card[0] + 20, card[1] + 34), "ls", board.look["ink"], 16))
    kind = board.kind
    rows = chance.randint(2, 3) if kind not in ("vertical", "horizontal") else 1
    side, stacked = kind == "horizontal" or "side" in kind, "stacked" in kind
    names, top = chance.choice(CATEGORIES).split(), chance.choice((10, 50, 400, 8000))
    values = [
        [round(chance.uniform(0.06, 0.95) * top / (rows if stacked else 1), 2) for _ in names] for _ in range(rows)
    ]
    left, upper = card[0] + (76 if side else 58), card[1] + (78 if rows > 1 else 58)
    palette = chance.choice(PALETTES)
    plot = PlotArea(left, upper, card[2] - 24, card[3] - 36, side, stacked, top, names, values, palette)
    for row, series in enumerate(values):
        called = SERIES[row] if rows > 1 else ""
        board.marks += [(name, called, value, float(top)) for name, value in zip(names, series, strict=True)]
    if rows > 1:
        _draw_legend(board, plot, card[1] + 53, dots=chance.random() < 0.5)
    _draw_axes(board, plot)
    for row in range(rows):
        _draw_line(board, plot, row) if kind == "line" else _draw_bars(board, plot, row)


def _draw_legend(board: WebChart, plot: PlotArea, y: float, *, dots: bool) -> None:
    x = plot.left
    for called, colour in zip(SERIES, plot.palette[: len(plot.values)], strict=False):
        board.boxes.append(((x, y - 5, x + 10, y + 5), colour, 5 if dots else 1))
        board.words.append(ChartText(called, (x + 16, y), "lm", board.look["pale"], 12))
        x += 16 + load_font(SANS, 12).getlength(called) + 26


def _draw_axes(board: WebChart, plot: PlotArea) -> None:
    pale = board.look["pale"]
    for step in range(STEPS + 1):
        value = plot.top * step / STEPS
        at, text = plot.at(value), f"{value:,.0f}" if plot.top >= 50 else f"{value:g}"
        line = (at, plot.upper, at + 1, plot.bottom) if plot.side else (plot.left, at, plot.right, at + 1)
        board.boxes.append((line, board.look["grid"], 0))
        place = (at + 0.5, plot.bottom + 14) if plot.side else (plot.left - 10, at + 0.5)
        board.words.append(ChartText(text, place, "mm" if plot.side else "rm", pale))
    for number, name in enumerate(plot.names):
        middle = plot.middle(number)
        place = (plot.left - 10, middle) if plot.side else (middle, plot.bottom + 16)
        board.words.append(ChartText(name, place, "rm" if plot.side else "mm", pale))


def _draw_bars(board: WebChart, plot: PlotArea, row: int) -> None:
    rows = 1 if plot.stacked else len(plot.values)
    width = plot.room * 0.6 / rows
    for number, value in enumerate(plot.values[row]):
        low = sum(series[number] for series in plot.values[:row]) if plot.stacked else 0.0
        start = plot.middle(number) - rows * width / 2 + (0 if plot.stacked else row * width)
        foot, tip, end = plot.at(low), plot.at(low + value), start + width * 0.94
        box = (foot, start, tip, end) if plot.side else (start, tip, end, foot)
        board.boxes.append((box, plot.palette[row], 0 if plot.stacked else min(3, width / 6)))


def _draw_line(board: WebChart, plot: PlotArea, row: int) -> None:
    points = [(plot.middle(number), plot.at(value)) for number, value in enumerate(plot.values[row])]
    board.lines.append((points, plot.palette[row]))
    board.boxes += [((x - 3, y - 3, x + 3, y + 3), plot.palette[row], 3) for x, y in points]
