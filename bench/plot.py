"""Draw lines on logarithmic axes, several plots side by side, as one SVG that reads on light and dark pages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 420, 300, 56, 36, 44, 90
COLOURS = {"sightline": "#2563eb", "nginx": "#6b7280"}
STYLE = "text{font:12px system-ui,sans-serif;fill:#6b7280}line{stroke:#9ca3af;stroke-opacity:.4}"

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One plot: what is counted below, what is measured at the side, and a line for each name."""

    below: str
    side: str
    lines: Mapping[str, Line]


def draw_panels(panels: Sequence[Panel]) -> str:
    """Return the plots side by side."""
    drawn = "".join(_draw_panel(panel, number * WIDTH) for number, panel in enumerate(panels))
    size = f'width="{WIDTH * len(panels)}" height="{HEIGHT}" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{drawn}</svg>\n'


def _draw_panel(panel: Panel, left: int) -> str:
    points = [point for line in panel.lines.values() for point in line]
    across = _Axis([x for x, _ in points], left + LEFT, left + WIDTH - RIGHT)
    upward = _Axis([y for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [_write_text(left + LEFT, TOP - 16, panel.side), _write_text(left + LEFT, HEIGHT - 8, panel.below)]
    counts = sorted({x for x, _ in points})
    parts += [_write_text(across.place(x), HEIGHT - BOTTOM + 18, f"{x:g}", anchor="middle") for x in counts]
    for tick in upward.list_ticks():
        y = upward.place(tick)
        parts.append(f'<line x1="{left + LEFT}" x2="{left + WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_write_text(left + LEFT - 6, y + 4, f"{tick:g}", anchor="end"))
    for name, line in panel.lines.items():
        parts.append(_draw_line(name, [(across.place(x), upward.place(y)) for x, y in line]))
    return "".join(parts)


def _draw_line(name: str, points: Line) -> str:
    colour = COLOURS.get(name, "#16a34a")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    end_x, end_y = points[-1]
    label = _write_text(end_x + 8, end_y + 4, name.replace("sightline", "Sightline"), colour=colour)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{label}'


def _write_text(x: float, y: float, words: str, anchor: str = "start", colour: str = "") -> str:
    style = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(words)}</text>'


class _Axis:
    """Where values lie between two pixels, by their logarithm."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low, self.high = math.log(min(values)), math.log(max(values))
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        share = (math.log(value) - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def list_ticks(self) -> list[float]:
        """Return 1, 2 and 5 times the powers of ten between the lowest and the highest value."""
        powers = range(math.floor(self.low / math.log(10)), math.ceil(self.high / math.log(10)) + 1)
        ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        return [tick for tick in ticks if self.low <= math.log(tick) <= self.high]
