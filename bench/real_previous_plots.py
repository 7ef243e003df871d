"""Pages with charts that libraries draw of public data sets, which are the truth about them, for the previous part."""

import csv
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGES = 3  # of each library


@dataclass(frozen=True)
class Measure:
    """A table of plotnine, and which of its columns make a chart; values are averages."""

    file: str
    title: str
    name: str
    value: str
    series: str = ""
    cut: int = 24  # characters of a name, e.g. 4 for a year
    most: int = 9
    unit: float = 1


MEASURES = (
    Measure("plotnine/data/mpg.csv", "Highway mileage by class", "class", "hwy"),
    Measure("plotnine/data/mpg.csv", "City mileage by maker", "manufacturer", "cty", most=8),
    Measure("plotnine/data/mpg.csv", "Engine size by maker", "manufacturer", "displ", most=7),
    Measure("plotnine/data/economics.csv", "Unemployed, thousands", "date", "unemploy", cut=4, most=12),
    Measure("plotnine/data/economics.csv", "Personal savings rate", "date", "psavert", cut=4, most=14),
    Measure("plotnine/data/diamonds.csv", "Price of diamonds by cut", "cut", "price"),
    Measure("plotnine/data/diamonds.csv", "Carat by colour", "color", "carat"),
    Measure("plotnine/data/diamonds.csv", "Price by cut and colour", "cut", "price", "color"),
    Measure("plotnine/data/msleep.csv", "Hours asleep", "vore", "sleep_total"),
    Measure("plotnine/data/txhousing.csv", "House sales in Texas", "year", "sales", most=16),
    Measure("plotnine/data/txhousing.csv", "Median price by month", "month", "median", most=12, unit=1000),
    Measure("plotnine/data/txhousing.csv", "Sales in three cities", "year", "sales", "city", most=8),
    Measure("plotnine/data/huron.csv", "Level of Lake Huron", "decade", "level", most=10),
    Measure("plotnine/data/meat.csv", "Beef by year", "date", "beef", cut=4, most=10),
    Measure("plotnine/data/meat.csv", "Veal by year", "date", "veal", cut=4, most=14),
    Measure("plotnine/data/mtcars.csv", "Horsepower by cylinders", "cyl", "hp", "gear"),
    Measure("plotnine/data/penguins.csv", "Bill length of penguins", "species", "bill_length_mm", "sex"),
    Measure("plotnine/data/midwest.csv", "Adults with a degree", "state", "percollege"),
)
TIMES = ("date", "year", "month", "decade")
HIGH = 285
STYLES = {
    "uplot": ("uplot/dist/uPlot.min.css",),
    "billboard.js": ("billboard.js/dist/billboard.min.css",),
    "nvd3": ("nvd3/build/nv.d3.min.css",),
    "chartist": ("chartist/dist/index.css",),
    "dygraphs": ("dygraphs/dist/dygraph.min.css",),
    "@toast-ui/chart": ("@toast-ui_chart/dist/toastui-chart.min.css",),
}
SCRIPTS = {
    "chart.js": ("chart.js/dist/chart.umd.min.js",),
    "uplot": ("uplot/dist/uPlot.iife.min.js",),
    "frappe-charts": ("frappe-charts/dist/frappe-charts.min.umd.js",),
    "billboard.js": ("billboard.js/dist/billboard.pkgd.min.js",),
    "nvd3": ("d3@3/d3.min.js", "nvd3/build/nv.d3.min.js"),
    "chartist": ("chartist/dist/index.umd.js",),
    "dygraphs": ("dygraphs/dist/dygraph.min.js",),
    "@observablehq/plot": ("d3/dist/d3.min.js", "@observablehq_plot/dist/plot.umd.min.js"),
    "@bokeh/bokehjs": ("@bokeh_bokehjs/build/js/bokeh.min.js", "@bokeh_bokehjs/build/js/bokeh-api.min.js"),
    "@toast-ui/chart": ("@toast-ui_chart/dist/toastui-chart.min.js",),
}
LIGHT_ONLY = ("nvd3", "chartist", "dygraphs", "@bokeh/bokehjs", "frappe-charts", "billboard.js")
LINES_ONLY = ("dygraphs",)
HIDDEN = ("@bokeh/bokehjs",)  # libraries that hide their canvas from scripts: a picture is around it
TITLED = ("chart.js", "frappe-charts", "billboard.js", "dygraphs", "@bokeh/bokehjs", "@toast-ui/chart", "uplot")
DRAW = {
    "chart.js": """
    const ink = dark ? '#ddd' : '#444', canvas = box.appendChild(document.createElement('canvas'));
    Chart.defaults.color = ink;
    Chart.defaults.borderColor = dark ? '#444' : '#e3e3e3';
    const colours = ['#4e79a7', '#f28e2b', '#59a14f'];
    new Chart(canvas, { type: c.kind, data: { labels: c.names, datasets: c.series.map((s, i) => ({ label: s.name,
            data: s.values, backgroundColor: colours[i], borderColor: colours[i] })) },
        options: { animation: false, maintainAspectRatio: false, indexAxis: c.side ? 'y' : 'x',
            plugins: { title: { display: true, text: c.title }, legend: { display: c.series.length > 1 } } } });""",
    "uplot": """
    const colours = ['#c0392b', '#2471a3', '#1e8449'], ink = dark ? '#ccc' : '#222', grid = { stroke: dark ? '#333' : '#eee' };
    const paths = c.kind === 'bar' ? uPlot.paths.bars({ size: [0.6, 60] }) : undefined, rows = c.series.slice(0, c.kind === 'bar' ? 1 : 3);
    c.series = rows;
    new uPlot({ title: c.title, width: box.clientWidth, height: high - 60, legend: { live: false }, scales: { x: { time: false, range: [-0.6, c.names.length - 0.4] },
            y: c.kind === 'bar' ? { range: (u, low, high) => [0, high * 1.1] } : {} },
        axes: [{ stroke: ink, grid, splits: () => c.names.map((n, i) => i), values: (u, at) => at.map(i => c.names[i]) },
            { stroke: ink, grid, size: 60 }],
        series: [{}, ...rows.map((s, i) => ({ label: s.name, stroke: colours[i], fill: c.kind === 'bar' ? colours[i] : undefined,
            paths, width: 2, points: { show: c.kind === 'line' } }))] }, [c.names.map((n, i) => i), ...rows.map(s => s.values)], box);""",
    "frappe-charts": """
    new frappe.Chart(box, { title: c.title, type: c.kind, height: high, animate: false, truncateLegends: true,
        data: { labels: c.names, datasets: c.series.map(s => ({ name: s.name, values: s.values })) } });""",
    "billboard.js": """
    bb.generate({ bindto: box, size: { height: high }, title: { text: c.title }, transition: { duration: 0 },
        data: { type: c.kind, columns: c.series.map(s => [s.name, ...s.values]) }, legend: { show: c.series.length > 1 },
        axis: { rotated: c.side, x: { type: 'category', categories: c.names } } });""",
    "nvd3": """
    const svg = d3.select(box).append('svg').style('height', `${high}px`);
    const rows = c.series.map(s => ({ key: s.name, values: s.values.map((y, x) => ({ x, y })) }));
    const chart = (c.kind === 'bar' ? nv.models.multiBarChart().showControls(false).reduceXTicks(false) : nv.models.lineChart())
        .duration(0).margin({ left: 70 }).showLegend(c.series.length > 1);
    chart.xAxis.tickFormat(x => c.names[x]);
    if (c.kind === 'line') chart.xAxis.tickValues(c.names.map((n, i) => i));
    chart.yAxis.tickFormat(d3.format(',.1f'));
    svg.datum(rows).call(chart);""",
    "chartist": """
    const kind = c.kind === 'bar' ? 'BarChart' : 'LineChart';
    box.classList.add('ct-chart');
    new Chartist[kind](box, { labels: c.names, series: c.series.map(s => s.values) },
        { height: high, horizontalBars: c.side, seriesBarDistance: 14, axisY: { offset: c.side ? 90 : 50 } });""",
    "dygraphs": """
    const file = c.names.map((n, i) => [i, ...c.series.map(s => s.values[i])]);
    new Dygraph(box, file, { title: c.title, labels: ['at', ...c.series.map(s => s.name)], legend: 'never', strokeWidth: 2,
        drawPoints: c.side, axes: { x: { drawGrid: false, valueFormatter: x => c.names[x], axisLabelFormatter: x => c.names[x] || '',
            ticker: () => c.names.map((n, v) => ({ v, label: n })) } } });""",
    "@observablehq/plot": """
    const rows = c.series.flatMap(s => c.names.map((name, i) => ({ name, series: s.name, value: s.values[i] })));
    const many = c.series.length > 1, fill = many ? 'series' : '#5b8ff9', bar = c.kind === 'bar';
    const names = { type: bar ? 'band' : 'point', domain: c.names, label: null };
    const values = { grid: true, label: null };
    box.append(Plot.plot({ width: box.clientWidth, height: high, marginLeft: 90, marginBottom: 40,
        style: { fontSize: '12px', background: dark ? '#161616' : '#fff', color: dark ? '#eee' : '#222' },
        color: many ? { legend: true } : undefined,
        ...(many && bar ? { fx: { domain: c.names, label: null }, x: { axis: null }, y: values } : c.side && bar
            ? { x: values, y: names } : { x: names, y: values }),
        marks: [many && bar ? Plot.barY(rows, { fx: 'name', x: 'series', y: 'value', fill })
            : bar && c.side ? Plot.barX(rows, { y: 'name', x: 'value', fill })
            : bar ? Plot.barY(rows, { x: 'name', y: 'value', fill })
            : Plot.lineY(rows, { x: 'name', y: 'value', stroke: fill, marker: true }),
            ...(bar && c.side && !many ? [Plot.ruleX([0])] : bar ? [Plot.ruleY([0])] : [])] }));""",
    "@bokeh/bokehjs": """
    const api = Bokeh.Plotting, colours = ['#1f77b4', '#ff7f0e', '#2ca02c'], bar = c.kind === 'bar';
    const figure = api.figure({ title: c.title, width: box.clientWidth, height: high, toolbar_location: null, x_range: c.names,
        ...(bar ? { y_range: [0, Math.max(...c.series.flatMap(s => s.values)) * 1.1] } : {}) });
    if (bar) c.series = c.series.slice(0, 1);
    c.series.forEach((s, i) => bar
        ? figure.vbar({ x: c.names, top: s.values, width: 0.8, color: colours[i] })
        : figure.line(c.names, s.values, { line_color: colours[i], line_width: 2 }));
    api.show(figure, box);""",
    "@toast-ui/chart": """
    const data = { categories: c.names, series: c.series.map(s => ({ name: s.name, data: s.values })) };
    const options = { chart: { title: c.title, width: box.clientWidth, height: high, animation: false }, exportMenu: { visible: false },
        legend: { visible: c.series.length > 1 }, usageStatistics: false,
        theme: dark ? { chart: { backgroundColor: '#161616' }, title: { color: '#eee' }, legend: { label: { color: '#eee' } },
            xAxis: { label: { color: '#ddd' }, color: '#888' }, yAxis: { label: { color: '#ddd' }, color: '#888' } } : {} };
    const draw = c.kind === 'line' ? 'lineChart' : c.side ? 'barChart' : 'columnChart';
    toastui.Chart[draw]({ el: box, data, options });""",
}
PAGE = """<!DOCTYPE html><meta charset="utf-8">{styles}
<style>body {{ font-family: 'Liberation Sans', sans-serif; margin: 22px; background: {back}; color: {ink} }}
h1 {{ font-size: 23px }} h2 {{ font-size: 16px }} #all {{ display: flex; flex-wrap: wrap; gap: 22px }}
.box {{ display: block; width: {wide}px; height: {high}px }}</style>
<h1>{head}</h1><p>{lead}</p><div id="all"></div>{scripts}<script>
const dark = {dark}, high = {high};
window.realCharts = [];
window.isDrawn = () => [...document.querySelectorAll('.box')].filter(b => b.querySelector('svg, canvas, .bk-Figure'))
    .length === {count};
for (const c of {charts}) {{
    const cell = document.createElement('div'), box = document.createElement('{tag}');
    if (!{titled}) cell.append(Object.assign(document.createElement('h2'), {{ textContent: c.title }}));
    box.className = 'box';
    cell.append(box);
    document.getElementById('all').append(cell);
    {draw}
    if (!window.Chart) realCharts.push({{ element: box, kind: c.kind, values: c.series.flatMap(s => s.values) }});
}}
</script>"""
HEADS = ("Annual report", "Facts at a glance", "Statistics", "Survey results", "Monitoring")
LEAD = "Averages of the published figures. See the notes for sources and definitions."


def write_pages(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        if not (link := folder / name.replace("/", "_")).is_symlink():
            link.symlink_to(home)
    for library in SCRIPTS:
        for number in range(PAGES):
            file = f"{library.replace('/', '_').strip('@')}_{number}.html"
            (folder / file).write_text(_write_page(library, packages, chance, number))
            yield f"charts {library} {number}", folder, file


def _write_page(library: str, packages: dict[str, Path], chance: random.Random, number: int) -> str:
    count, is_dark = (1, 2, 4)[number], number == 1 and library not in LIGHT_ONLY
    measures = [each for each in MEASURES if each.name in TIMES or library not in LINES_ONLY]
    charts = [choose_chart(packages, measure, chance) for measure in chance.sample(measures, count)]
    for chart in charts if library in LINES_ONLY else ():
        chart["kind"] = "line"
    return PAGE.format(
        styles="".join(f'<link rel="stylesheet" href="{each}">' for each in STYLES.get(library, ())),
        scripts="".join(f'<script src="{each}"></script>' for each in SCRIPTS[library]),
        back="#161616" if is_dark else "#ffffff", ink="#eeeeee" if is_dark else "#222222", dark=str(is_dark).lower(),
        wide=chance.choice((820, 1100)) if count == 1 else 590, high=HIGH + (200 if count < 3 else 0), lead=LEAD,
        head=chance.choice(HEADS), count=count, charts=json.dumps(charts), draw=DRAW[library],
        titled=str(library in TITLED).lower(), tag="picture" if library in HIDDEN else "div",
    )  # fmt: skip


def choose_chart(packages: dict[str, Path], measure: Measure, chance: random.Random) -> dict[str, Any]:
    """Return a chart of a table: most often lines for times, bars for everything else."""
    with (packages["plotnine"] / measure.file).open() as lines:
        names, series = _average(measure, list(csv.DictReader(lines)))
    is_time = measure.name in TIMES
    kind = "line" if is_time and chance.random() < 0.8 else "bar"
    side = not is_time and chance.random() < 0.35
    return {"kind": kind, "side": side, "title": measure.title, "names": names, "series": series}


def _average(measure: Measure, rows: list[dict[str, str]]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names and the averages of each series, where all series have a value for all names."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        name, value = row[measure.name], row[measure.value]
        series = row[measure.series] if measure.series else measure.title
        if name not in ("", "NA") and value not in ("", "NA", "nan") and series not in ("", "NA", "nan"):
            found[series][name[: measure.cut]].append(float(value) / measure.unit)
    chosen = dict(list(found.items())[:3])
    names = [name for name in next(iter(chosen.values())) if all(name in values for values in chosen.values())]
    if all(name.isdigit() for name in names):
        names.sort(key=int)
    names = names[:: max(1, -(-len(names) // measure.most))]
    return names, [
        {"name": series, "values": [round(sum(values[name]) / len(values[name]), 1) for name in names]}
        for series, values in chosen.items()
    ]
