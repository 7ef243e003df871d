"""Draw the charts of a file with seaborn: real_set_aside_seaborn.py CHARTS FOLDER.

It runs with the packages of the part that is set aside, not with those of this environment.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import seaborn


def draw_charts(pages: list[tuple[str, list[dict[str, Any]]]], folder: Path) -> None:
    matplotlib.use("Agg")
    for style, charts in pages:
        seaborn.set_theme(style=style, palette="deep" if style != "white" else "muted")
        for at, chart in enumerate(charts):
            figure, axes = plt.subplots(figsize=(9, 5.2) if len(charts) == 1 else (6, 5))
            _draw_chart(chart, axes)
            figure.tight_layout()
            figure.savefig(folder / f"seaborn_{style}_{at}.png", dpi=200)
            plt.close(figure)


def _draw_chart(chart: dict[str, Any], axes: Any) -> None:
    rows: dict[str, list[Any]] = {"name": [], "series": [], "value": []}
    for series in chart["series"]:
        for name, value in zip(chart["names"], series["values"], strict=True):
            rows["name"].append(name)
            rows["series"].append(series["name"])
            rows["value"].append(value)
    hue = "series" if len(chart["series"]) > 1 else None
    if chart["kind"] == "line":
        seaborn.lineplot(rows, x="name", y="value", hue=hue, marker="o", ax=axes)
    elif chart["side"]:
        seaborn.barplot(rows, y="name", x="value", hue=hue, ax=axes)
    else:
        seaborn.barplot(rows, x="name", y="value", hue=hue, ax=axes)
    if not chart["side"]:
        axes.tick_params(axis="x", rotation=35)
    axes.set(title=chart["title"], xlabel="", ylabel="")


if __name__ == "__main__":
    draw_charts(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
