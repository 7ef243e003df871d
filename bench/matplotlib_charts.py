"""Draw charts with matplotlib and write their values beside them: python matplotlib_charts.py FOLDER SEED…"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

KINDS = ("vertical", "horizontal", "grouped", "stacked", "grouped on its side", "stacked on its side", "line")
STYLES = ("default", "dark_background", "ggplot", "seaborn-v0_8-whitegrid", "fivethirtyeight", "Solarize_Light2", "bmh")
CATEGORIES = (
    "Jan Feb Mar Apr May Jun Jul Aug",
    "Q1 Q2 Q3 Q4",
    "2019 2020 2021 2022 2023 2024",
    "Lisbon Oslo Prague Turin Vienna",
    "Mon Tue Wed Thu Fri Sat Sun",
    "Alpha Beta Gamma Delta Epsilon Zeta",
)
SERIES = ("Online", "Retail store", "Partners", "Wholesale")
FORMATS = {
    "plain": "{:g}",
    "percent": "{:g}%",
    "money": "${:g}",
    "thousands": "{:,.0f}",
    "short": "{:g}k",
}
SCALES = (1, 10, 100, 1000, 25_000)


def draw_chart(seed: int, kind: str, style: str, folder: Path) -> None:
    """Write one chart as a PNG, and beside it its texts with their boxes and the values of its marks."""
    chance = random.Random(f"{seed} {kind} {style}")
    with plt.style.context(style):
        dpi = chance.choice((80, 100, 130))
        figure, axes = plt.subplots(figsize=(chance.uniform(6, 12), chance.uniform(4, 7)), dpi=dpi)
        names = chance.choice(CATEGORIES).split()
        count = chance.randint(2, 4) if "grouped" in kind or "stacked" in kind or kind == "line" else 1
        values = _choose_values(chance, len(names), count, kind)
        series = list(SERIES[:count]) if count > 1 else [""]
        _plot(chance, axes, kind, names, series, values)
        form = chance.choice([each for each in FORMATS if each != "thousands" or np.abs(values).max() > 400])
        value_axis = axes.xaxis if "side" in kind or kind == "horizontal" else axes.yaxis
        value_axis.set_major_formatter(FuncFormatter(lambda value, _: FORMATS[form].format(value)))
        if chance.random() < 0.8:
            axes.set_title(chance.choice(("Orders by channel", "Revenue, fiscal year 2025", "Visits per week")))
        if count > 1:
            _place_legend(chance, axes, kind)
        figure.tight_layout()
        figure.canvas.draw()
        shift = 1e3 if form == "short" else 1.0
        truth = [
            {"category": name, "series": series[row], "value": float(values[row, column]) * shift}
            for row in range(count)
            for column, name in enumerate(names)
        ]
        low, high = value_axis.get_view_interval()
        name = f"{seed}-{kind}-{style}".replace(" ", "_")
        figure.savefig(folder / f"{name}.png", dpi=dpi)
        words = _list_texts(figure, folder / f"{name}.png")
        said = {"kind": kind, "style": style, "marks": truth, "axis": (high - low) * shift, "texts": words}
        (folder / f"{name}.json").write_text(json.dumps(said))
        plt.close(figure)


def _choose_values(chance: random.Random, columns: int, rows: int, kind: str) -> Any:
    scale = chance.choice(SCALES)
    values = np.array([[chance.uniform(0.05, 1) * scale for _ in range(columns)] for _ in range(rows)])
    if kind in ("vertical", "horizontal", "grouped") and chance.random() < 0.25:
        values[:, chance.randrange(columns)] *= -0.6
    return np.round(values, 2 if scale == 1 else 0 if scale >= 100 else 1)


def _plot(chance: random.Random, axes: Any, kind: str, names: list[str], series: list[str], values: Any) -> None:
    places = np.arange(len(names))
    side = "side" in kind or kind == "horizontal"
    bar = axes.barh if side else axes.bar
    edge: dict[str, Any] = {"edgecolor": "white", "linewidth": 1} if chance.random() < 0.2 else {}
    width = chance.uniform(0.5, 0.85)
    bottom = np.zeros(len(names))
    for row, label in enumerate(series):
        if kind == "line":
            axes.plot(
                places,
                values[row],
                label=label,
                marker=chance.choice(("o", "s", "")),
                linewidth=chance.choice((1.5, 2, 3)),
            )
        elif "stacked" in kind:
            bars = bar(
                places, values[row], width, label=label, **({"left": bottom} if side else {"bottom": bottom}), **edge
            )
            bottom += values[row]
        else:
            each = width / len(series)
            bars = bar(places + (row - (len(series) - 1) / 2) * each, values[row], each, label=label, **edge)
            if chance.random() < 0.3:
                axes.bar_label(bars)
    (axes.set_yticks if side else axes.set_xticks)(places, names)
    if side:
        axes.invert_yaxis()
    if chance.random() < 0.4:
        axes.grid(axis="x" if side else "y", alpha=0.4)
        axes.set_axisbelow(chance.random() < 0.7)
    (axes.set_xlabel if side else axes.set_ylabel)("Amount (units)")


def _place_legend(chance: random.Random, axes: Any, kind: str) -> None:
    """Place the legend where it covers nothing: beside the plot, above it, or in space that is added for it."""
    count = len(axes.get_legend_handles_labels()[1])
    match chance.randrange(3):
        case 0:
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
        case 1:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=count)
        case _:
            low, high = axes.get_ylim()
            axes.set_ylim(
                (low - (high - low) * 0.0, high + (high - low) * 0.45)
                if low < high
                else (low, high + (high - low) * 0.45)
            )
            axes.legend(loc="upper right")


def _list_texts(figure: Any, image: Path) -> list[dict[str, Any]]:
    """Return the visible texts, with boxes tight around their ink."""
    pixels = (plt.imread(image)[..., :3] * 255).astype(int)
    height, width = pixels.shape[:2]
    found = []
    hidden = set(_find_hidden_labels(figure))
    for text in figure.findobj(Text):
        if text in hidden or not text.get_visible() or not text.get_text().strip() or text.get_rotation():
            continue
        extent = text.get_window_extent()
        x0, x1 = max(0, int(extent.x0) - 1), min(width, int(extent.x1) + 2)
        y0, y1 = max(0, int(height - extent.y1) - 1), min(height, int(height - extent.y0) + 2)
        part = pixels[y0:y1, x0:x1]
        if part.size == 0:
            continue
        shades, counts = np.unique(part.reshape(-1, 3), axis=0, return_counts=True)
        inked = np.abs(part - shades[counts.argmax()]).max(axis=2) > 60
        rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
        if len(rows) and len(columns):
            box = (x0 + columns[0], y0 + rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1)
            found.append({"text": text.get_text(), "box": [int(each) for each in box]})
    return found


def _find_hidden_labels(figure: Any) -> Iterator[Text]:
    """Yield labels beyond the ends of an axis, which are not drawn."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                yield tick.label2
                if not low <= tick.get_loc() <= high:
                    yield tick.label1


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for given in sys.argv[2:]:
        for shape in KINDS:
            for look in STYLES:
                draw_chart(int(given), shape, look, target)
