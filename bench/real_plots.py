"""Pages with charts that libraries draw of public data sets, which are the truth about them."""

import csv
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGES = 4  # of each library


@dataclass(frozen=True)
class DataSet:
    """A table of vega-datasets, and which of its columns make a chart; values are averages."""

    file: str
    title: str
    category: str
    value: str
    series: str = ""
    cut: int = 40  # characters of the category, e.g. 4 for a year
    most: int = 8


DATA = (
    DataSet("stocks.csv", "Stock price by year", "year", "price", "symbol", most=6),
    DataSet("iowa-electricity.csv", "Electricity in Iowa, GWh", "year", "net_generation", "source", cut=4, most=10),
    DataSet("seattle-weather.csv", "Seattle, highest temperature", "month", "temp_max", most=12),
    DataSet("seattle-weather.csv", "Seattle, wind by weather", "weather", "wind"),
    DataSet("co2-concentration.csv", "CO2 in the air, ppm", "Date", "CO2", cut=4, most=12),
    DataSet("barley.json", "Barley yield by site", "site", "yield", "year"),
    DataSet("cars.json", "Miles per gallon", "Year", "Miles_per_Gallon", "Origin", cut=4, most=7),
    DataSet("cars.json", "Horsepower by cylinders", "Cylinders", "Horsepower"),
    DataSet("wheat.json", "Price of wheat", "year", "wheat", most=10),
    DataSet("penguins.json", "Body mass of penguins", "Species", "Body Mass (g)", "Sex"),
    DataSet("penguins.json", "Flipper length by island", "Island", "Flipper Length (mm)"),
    DataSet("movies.json", "Running time by genre", "Major Genre", "Running Time min", most=7),
    DataSet("crimea.json", "Deaths by disease", "date", "disease", cut=7, most=9),
    DataSet("gapminder.json", "Life expectancy", "year", "life_expect", most=11),
)
KINDS = ("bar", "bar", "side", "stacked", "line", "line", "pie")
SOURCES = {
    "plotly.js-dist-min": ("plotly.min.js",),
    "apexcharts": ("dist/apexcharts.min.js",),
    "highcharts": ("highcharts.js",),
    "echarts": ("dist/echarts.min.js",),
    "vega": ("../vega/build/vega.min.js", "../vega-lite/build/vega-lite.min.js"),
}
DRAW = {
    "plotly.js-dist-min": """
    const line = c.kind === 'line', side = c.kind === 'side';
    Plotly.newPlot(box, c.kind === 'pie' ? [{ type: 'pie', labels: c.names, values: c.series[0].values }]
        : c.series.map(s => ({ type: line ? 'scatter' : 'bar', mode: 'lines+markers', name: s.name,
            [side ? 'y' : 'x']: c.names, [side ? 'x' : 'y']: s.values, orientation: side ? 'h' : undefined })),
        { title: { text: c.title }, barmode: c.kind === 'stacked' ? 'stack' : 'group',
          width: box.clientWidth, height: 360,
          ...(dark ? { paper_bgcolor: '#111', plot_bgcolor: '#111', font: { color: '#eee' } } : {}),
          xaxis: { type: side ? undefined : 'category' }, yaxis: { type: side ? 'category' : undefined } },
        { displayModeBar: false });""",
    "apexcharts": """
    const pie = c.kind === 'pie';
    new ApexCharts(box, { chart: { type: pie ? 'pie' : c.kind === 'line' ? 'line' : 'bar', height: 360,
            stacked: c.kind === 'stacked', animations: { enabled: false }, toolbar: { show: c.tools } },
        theme: { mode: dark ? 'dark' : 'light' }, dataLabels: { enabled: pie },
        plotOptions: { bar: { horizontal: c.kind === 'side' } }, title: { text: c.title },
        series: pie ? c.series[0].values : c.series.map(s => ({ name: s.name, data: s.values })),
        ...(pie ? { labels: c.names } : { xaxis: { categories: c.names } }) }).render();""",
    "highcharts": """
    const ink = dark ? '#ddd' : '#333';
    const type = { bar: 'column', side: 'bar', stacked: 'column', line: 'line', pie: 'pie' }[c.kind];
    Highcharts.chart(box, { chart: { type, height: 360, backgroundColor: dark ? '#1b1b1f' : '#ffffff' },
        title: { text: c.title, style: { color: ink } }, legend: { itemStyle: { color: ink } },
        xAxis: { categories: c.names, labels: { style: { color: ink } } },
        yAxis: { title: { style: { color: ink } }, labels: { style: { color: ink } } },
        plotOptions: { series: { animation: false, stacking: c.kind === 'stacked' ? 'normal' : undefined } },
        credits: { enabled: c.tools },
        series: type === 'pie' ? [{ data: c.names.map((n, i) => ({ name: n, y: c.series[0].values[i] })) }]
            : c.series.map(s => ({ name: s.name, data: s.values })) });""",
    "echarts": """
    const names = { type: 'category', data: c.names }, values = { type: 'value' }, side = c.kind === 'side';
    box.style.height = '360px';
    echarts.init(box, dark ? 'dark' : null, { renderer: 'svg' }).setOption({ animation: false,
        title: { text: c.title }, legend: { bottom: 0, show: c.series.length > 1 },
        ...(c.kind === 'pie' ? {} : { xAxis: side ? values : names, yAxis: side ? names : values }),
        series: c.kind === 'pie'
            ? [{ type: 'pie', data: c.names.map((n, i) => ({ name: n, value: c.series[0].values[i] })) }]
            : c.series.map(s => ({ type: c.kind === 'line' ? 'line' : 'bar', name: s.name, data: s.values,
                stack: c.kind === 'stacked' ? 'all' : undefined })) });""",
    "vega": """
    const rows = c.series.flatMap(s => c.names.map((n, i) => ({ name: n, series: s.name, value: s.values[i] })));
    const name = { field: 'name', type: 'nominal', title: null, sort: null };
    const value = { field: 'value', type: 'quantitative', title: null };
    const many = c.series.length > 1, side = c.kind === 'side';
    const encoding = c.kind === 'pie' ? { theta: value, color: name } : {
        [side ? 'y' : 'x']: name, [side ? 'x' : 'y']: value,
        ...(many ? { color: { field: 'series', type: 'nominal', title: null } } : {}),
        ...(many && /^(bar|side)$/.test(c.kind) ? { [side ? 'yOffset' : 'xOffset']: { field: 'series' } } : {}) };
    const spec = vegaLite.compile({
        data: { values: rows }, title: c.title, width: box.clientWidth - 150, height: 270, encoding,
        mark: { type: c.kind === 'line' ? 'line' : c.kind === 'pie' ? 'arc' : 'bar' },
        config: dark ? { background: '#222', title: { color: '#fff' }, style: { 'guide-label': { fill: '#fff' },
            'guide-title': { fill: '#fff' } },
            axis: { domainColor: '#fff', gridColor: '#555', tickColor: '#fff' } } : {},
    }).spec;
    new vega.View(vega.parse(spec), { renderer: 'svg' }).initialize(box).run();""",
}
PAGE = """<!DOCTYPE html><meta charset="utf-8">
<style>body {{ font-family: sans-serif; margin: 24px; background: {back}; color: {ink} }} h1 {{ font-size: 22px }}
#all {{ display: flex; flex-wrap: wrap; gap: 24px }} .box {{ width: {wide}px; min-height: 360px }}</style>
<h1>{head}</h1><div id="all"></div>{scripts}<script>
const dark = {dark};
window.realCharts = [];
window.isDrawn = () => realCharts.every(c => c.element.querySelector('svg text'));
for (const c of {charts}) {{
    const box = document.createElement('div');
    box.className = 'box';
    document.getElementById('all').append(box);
    {draw}
    const kind = c.kind === 'line' ? 'line' : c.kind === 'pie' ? 'other' : 'bar';
    realCharts.push({{ element: box, kind, values: c.series.flatMap(s => s.values) }});
}}
</script>"""


def write_pages(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = packages["vega-datasets"] / "data"
    for library, sources in SOURCES.items():
        for name in {library, "vega-lite"}:
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(packages[name])
        for number in range(PAGES):
            (folder / f"{library}{number}.html").write_text(_write_page(library, sources, tables, chance))
            yield f"plots {library} {number}", folder, f"{library}{number}.html"


def _write_page(library: str, sources: tuple[str, ...], tables: Path, chance: random.Random) -> str:
    count, dark = chance.choice((1, 2, 2, 2)), chance.random() < 0.35
    charts = [choose_chart(tables, chance) for _ in range(count)]
    scripts = "".join(f'<script src="{(Path(library) / source)}"></script>' for source in sources)
    return PAGE.format(
        back="#161616" if dark else "#ffffff", ink="#eeeeee" if dark else "#222222", dark=str(dark).lower(),
        wide=1100 if count == 1 else 580, head=chance.choice(("Yearbook", "Open data", "Figures")),
        scripts=scripts, charts=json.dumps(charts), draw=DRAW[library],
    )  # fmt: skip


def choose_chart(tables: Path, chance: random.Random) -> dict[str, Any]:
    """Return a chart by chance: its kind, title, names and series."""
    data = chance.choice(DATA)
    kind = chance.choice([each for each in KINDS if (each == "stacked") <= bool(data.series)])
    if data.series and kind == "pie":
        kind = "bar"
    names, series = _average(data, _read_rows(tables / data.file))
    return {"kind": kind, "title": data.title, "names": names, "series": series, "tools": chance.random() < 0.5}


def _read_rows(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".json":
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        return rows
    rows = list(csv.DictReader(file.read_text().splitlines()))
    for row in rows:
        if "date" in row:
            row["year"], row["month"] = row["date"][-4:], row["date"][5:7]
    return rows


def _average(data: DataSet, rows: list[dict[str, Any]]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names and the averages of each series, where all series have a value for all names."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        name, value = row.get(data.category), row.get(data.value)
        series = str(row.get(data.series)) if data.series else data.title
        if name is not None and value not in (None, "") and series not in ("None", "."):
            found[series][str(name)[: data.cut]].append(float(value))
    shared = [name for name in next(iter(found.values())) if all(name in values for values in found.values())]
    step = max(1, -(-len(shared) // data.most))
    names = shared[::step]
    return names, [
        {"name": series, "values": [round(sum(values[name]) / len(values[name]), 1) for name in names]}
        for series, values in list(found.items())[:3]
    ]
