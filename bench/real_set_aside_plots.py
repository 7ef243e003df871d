"""Pages with charts that libraries draw of public data sets, which are the truth about them, for the part set aside."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_pictures import HERE
from real_previous_plots import PAGE, TIMES, Measure, choose_chart

PAGES = 3  # of each library
HIGH = 285
DATA = "statsmodels/datasets"
MEASURES = (
    Measure("gapminder/gapminder.csv", "Life expectancy", "year", "lifeExp", "continent", most=10),
    Measure("gapminder/gapminder.csv", "Income per person", "continent", "gdpPercap"),
    Measure("gapminder/gapminder.csv", "Population, millions", "year", "pop", most=12, unit=1e6),
    Measure("gapminder/gapminder.csv", "Years of life by continent", "continent", "lifeExp"),
    Measure(f"{DATA}/macrodata/macrodata.csv", "Unemployment rate", "year", "unemp", most=14),
    Measure(f"{DATA}/macrodata/macrodata.csv", "Consumer prices", "year", "cpi", most=11),
    Measure(f"{DATA}/macrodata/macrodata.csv", "Treasury bills", "year", "tbilrate", most=15),
    Measure(f"{DATA}/nile/nile.csv", "Flow of the Nile", "year", "volume", most=16),
    Measure(f"{DATA}/co2/co2.csv", "Carbon dioxide, ppm", "date", "co2", cut=4, most=12),
    Measure(f"{DATA}/grunfeld/grunfeld.csv", "Investment by firm", "year", "invest", "firm", most=9),
    Measure(f"{DATA}/grunfeld/grunfeld.csv", "Value of firms", "firm", "value", cut=14, most=7),
    Measure(f"{DATA}/statecrime/statecrime.csv", "Murders by state", "state", "murder", cut=14),
    Measure(f"{DATA}/statecrime/statecrime.csv", "High school graduates", "state", "hs_grad", cut=14, most=8),
    Measure(f"{DATA}/scotland/scotvote.csv", "Yes votes by council", "COUNCILDIST", "YES", cut=14, most=8),
    Measure(f"{DATA}/copper/copper.csv", "Price of copper", "YEAR", "COPPERPRICE", most=13),
    Measure(f"{DATA}/sunspots/sunspots.csv", "Sunspots", "YEAR", "SUNACTIVITY", cut=4, most=14),
)
STYLES = {
    "c3": ("c3/c3.min.css",),
    "morris.js": ("morris.js/morris.css",),
    "@carbon/charts": ("@carbon_charts/dist/styles.min.css",),
}
REACT = ("react/umd/react.production.min.js", "react-dom/umd/react-dom.production.min.js")
SCRIPTS = {
    "recharts": (*REACT, "prop-types/prop-types.min.js", "recharts/umd/Recharts.js"),
    "victory": (*REACT, "victory/dist/victory.min.js"),
    "c3": ("d3@5/dist/d3.min.js", "c3/c3.min.js"),
    "@antv/g2": ("@antv_g2/dist/g2.min.js",),
    "ag-charts-community": ("ag-charts-community/dist/umd/ag-charts-community.min.js",),
    "anychart": ("anychart/dist/js/anychart-base.min.js",),
    "lightweight-charts": ("lightweight-charts/dist/lightweight-charts.standalone.production.js",),
    "morris.js": ("jquery/dist/jquery.min.js", "raphael/raphael.min.js", "morris.js/morris.min.js"),
    "@carbon/charts": ("@carbon_charts/dist/umd/bundle.umd.js",),
}
LIGHT_ONLY = ("victory", "c3", "morris.js", "anychart", "recharts")
LINES_ONLY = ("lightweight-charts",)
TITLED = ("c3", "ag-charts-community", "anychart", "@carbon/charts")
ROWS = """
    const rows = c.names.map((name, i) => ({ name, ...Object.fromEntries(c.series.map(s => [s.name, s.values[i]])) }));
    const many = c.series.length > 1, line = c.kind === 'line', wide = box.clientWidth;"""
DRAW = {
    "recharts": """
    const R = Recharts, make = React.createElement, colours = ['#8884d8', '#82ca9d', '#ff7300'], side = c.side && !line;
    ReactDOM.createRoot(box).render(make(line ? R.LineChart : R.BarChart, { width: wide, height: high, data: rows,
        layout: side ? 'vertical' : 'horizontal', margin: { left: 30, right: 20 } },
        make(R.CartesianGrid, { strokeDasharray: '3 3' }), make(R.XAxis, side ? { type: 'number' } : { dataKey: 'name' }),
        make(R.YAxis, side ? { type: 'category', dataKey: 'name', width: 100 } : { domain: line ? ['auto', 'auto'] : [0, 'auto'] }),
        many ? make(R.Legend) : null, ...c.series.map((s, i) => make(line ? R.Line : R.Bar, { key: s.name, dataKey: s.name,
            fill: colours[i], stroke: colours[i], isAnimationActive: false }))));""",
    "victory": """
    const V = Victory, make = React.createElement, data = s => c.names.map((x, i) => ({ x, y: s.values[i] }));
    const colours = ['#4f7db3', '#b3544f', '#7fb34f'];
    const marks = c.series.map((s, i) => make(line ? V.VictoryLine : V.VictoryBar, { key: i, data: data(s),
        style: { data: line ? { stroke: colours[i] } : { fill: colours[i] } } }));
    ReactDOM.createRoot(box).render(make(V.VictoryChart, { width: wide, height: high, theme: V.VictoryTheme.material,
        domainPadding: { x: 30 }, padding: { top: 20, bottom: 40, left: 70, right: 30 } },
        ...(many && !line ? [make(V.VictoryGroup, { offset: 12, key: 'all' }, marks)] : marks)));""",
    "c3": """
    c3.generate({ bindto: box, size: { height: high }, title: { text: c.title }, transition: { duration: 0 },
        data: { type: c.kind, columns: c.series.map(s => [s.name, ...s.values]) }, legend: { show: many },
        axis: { rotated: c.side && !line, x: { type: 'category', categories: c.names } } });""",
    "@antv/g2": """
    const data = c.series.flatMap(s => c.names.map((name, i) => ({ name, series: s.name, value: s.values[i] })));
    const chart = new G2.Chart({ container: box, width: wide, height: high, theme: dark ? 'dark' : 'light' });
    chart.data(data);
    chart.animate(false);
    chart.scale('value', { nice: true, ...(line ? {} : { min: 0 }) });
    if (c.side && !line) chart.coordinate().transpose();
    const mark = (line ? chart.line() : chart.interval()).position('name*value');
    if (many) mark.color('series');
    if (many && !line) mark.adjust([{ type: 'dodge', marginRatio: 0 }]);
    if (line) chart.point().position('name*value').color(many ? 'series' : '#5b8ff9').shape('circle');
    chart.render();""",
    "ag-charts-community": """
    agCharts.AgCharts.create({ container: box, width: wide, height: high, animation: { enabled: false }, title: { text: c.title },
        data: rows, theme: dark ? 'ag-default-dark' : 'ag-default', legend: { enabled: many }, series: c.series.map(s => ({ type: c.kind,
            ...(line ? {} : { direction: c.side ? 'horizontal' : 'vertical' }), xKey: 'name', yKey: s.name, yName: s.name })) });""",
    "anychart": """
    const chart = line ? anychart.line() : c.side ? anychart.bar() : anychart.column();
    for (const s of c.series) {
        const data = c.names.map((x, i) => [x, s.values[i]]);
        const mark = line ? chart.line(data) : c.side ? chart.bar(data) : chart.column(data);
        mark.name(s.name);
    }
    chart.title(c.title);
    chart.animation(false);
    chart.legend(many);
    chart.container(box);
    chart.draw();""",
    "lightweight-charts": """
    const chart = LightweightCharts.createChart(box, { width: wide, height: high, layout: { background: { color: dark ? '#161616' : '#fff' },
        textColor: dark ? '#d1d4dc' : '#191919' }, grid: { vertLines: { color: '#8883' }, horzLines: { color: '#8883' } } });
    c.series.forEach((s, i) => chart[many || c.side ? 'addLineSeries' : 'addAreaSeries']({ priceLineVisible: false,
        ...(many ? { color: ['#2962ff', '#e91e63', '#26a69a'][i] } : {}) })
        .setData(c.names.map((name, at) => ({ time: `${name}-01-01`, value: s.values[at] }))));
    chart.timeScale().fitContent();""",
    "morris.js": """
    Morris[line ? 'Line' : 'Bar']({ element: box, data: rows, xkey: 'name', ykeys: c.series.map(s => s.name),
        labels: c.series.map(s => s.name), parseTime: false, hideHover: 'always', ymin: line ? 'auto' : 0, xLabelAngle: 30 });""",
    "@carbon/charts": """
    const data = c.series.flatMap(s => c.names.map((key, i) => ({ group: s.name, key, value: s.values[i] })));
    const names = { mapsTo: 'key', scaleType: 'labels' }, values = { mapsTo: 'value', includeZero: !line }, side = c.side && !line;
    const Chart = line ? Charts.LineChart : many ? Charts.GroupedBarChart : Charts.SimpleBarChart;
    new Chart(box, { data, options: { title: c.title, animations: false, toolbar: { enabled: false }, height: `${high}px`,
        width: `${wide}px`, theme: dark ? 'g100' : 'white', legend: { enabled: many }, axes: { left: side ? names : values, bottom: side ? values : names } } });""",
}
HEADS = ("Quarterly review", "Open figures", "Key indicators", "Annual statistics", "Research notes")
LEAD = "Means of published series. Sources are given in the appendix."
SEABORN_PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ font-family: 'Liberation Serif', serif; margin: 26px;
background: {back}; color: {ink} }} img {{ width: {wide}px; margin-right: 20px }}</style><h1>{head}</h1><p>{lead}</p>{pictures}<script>
window.realCharts = [...document.images].map((element, at) => ({{ element, ...{charts}[at] }}));
window.isDrawn = () => [...document.images].every(i => i.complete && i.naturalWidth);</script>"""
SEABORN_STYLES = ("darkgrid", "whitegrid", "white", "ticks")


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
    yield from _write_seaborn(packages, folder, chance)


def _write_page(library: str, packages: dict[str, Path], chance: random.Random, number: int) -> str:
    count, is_dark = (1, 2, 4)[number], number == 1 and library not in LIGHT_ONLY
    charts = _choose_charts(packages, chance, count, only_lines=library in LINES_ONLY)
    return PAGE.format(
        styles="".join(f'<link rel="stylesheet" href="{each}">' for each in STYLES.get(library, ())),
        scripts="".join(f'<script src="{each}"></script>' for each in SCRIPTS[library]),
        back="#161616" if is_dark else "#ffffff", ink="#eeeeee" if is_dark else "#222222", dark=str(is_dark).lower(),
        wide=chance.choice((820, 1100)) if count == 1 else 590, high=HIGH + (200 if count < 3 else 0), lead=LEAD,
        head=chance.choice(HEADS), count=count, charts=json.dumps(charts), draw=ROWS + DRAW[library],
        titled=str(library in TITLED).lower(), tag="div",
    )  # fmt: skip


def _choose_charts(
    packages: dict[str, Path], chance: random.Random, count: int, *, only_lines: bool = False
) -> list[dict[str, Any]]:
    measures = [each for each in MEASURES if each.name in TIMES or not only_lines]
    charts = [
        choose_chart({"plotnine": packages[each.file.split("/")[0]]}, each, chance)
        for each in chance.sample(measures, count)
    ]
    for chart in charts if only_lines else ():
        chart["kind"] = "line"
    return charts


def _write_seaborn(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield pages with pictures that seaborn draws."""
    pages = [(style, _choose_charts(packages, chance, 1 + number % 2)) for number, style in enumerate(SEABORN_STYLES)]
    (folder / "seaborn.json").write_text(json.dumps(pages))
    path = os.pathsep.join(str(home) for home in packages.values() if home.parent.name == "pypi")
    command = [sys.executable, HERE / "real_set_aside_seaborn.py", folder / "seaborn.json", folder]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path, "MPLCONFIGDIR": str(folder)})
    for number, (style, charts) in enumerate(pages):
        dark = number == len(pages) - 1
        (folder / f"seaborn_{style}.html").write_text(
            SEABORN_PAGE.format(
                back="#202124" if dark else "#fff", ink="#eee" if dark else "#222", head=chance.choice(HEADS), lead=LEAD,
                wide=900 if len(charts) == 1 else 590,
                pictures="".join(f'<img src="seaborn_{style}_{at}.png">' for at in range(len(charts))),
                charts=json.dumps([{"kind": c["kind"], "values": [value for s in c["series"] for value in s["values"]]} for c in charts]),
            )
        )  # fmt: skip
        yield f"charts seaborn {number}", folder, f"seaborn_{style}.html"
