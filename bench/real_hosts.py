"""Pages that hold a data grid, an API viewer, an editor or a terminal out of a package that development has not."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINES = 60
ACE_THEMES = (
    "chrome",
    "dracula",
    "eclipse",
    "gruvbox",
    "monokai",
    "nord_dark",
    "solarized_light",
    "sqlserver",
    "xcode",
)
MODES = {".py": "python", ".ts": "typescript", ".js": "javascript", ".less": "less", ".scss": "scss", ".md": "markdown"}
HEAD = '<!DOCTYPE html><meta charset="utf-8"><style>html, body {{ margin: 0; height: 100% }}</style>'
ACE = (
    HEAD + '<div id="box" style="height: 100%; font-size: {size}px"></div>'
    '<script src="ace-builds/src-min-noconflict/ace.js"></script><script>'
    "const editor = ace.edit('box', {{ value: {text}, mode: 'ace/mode/{mode}', theme: 'ace/theme/{theme}', "
    "showPrintMargin: false, useWorker: false, firstLineNumber: {first} }}); editor.clearSelection();</script>"
)
JSON_EDITOR = (
    HEAD + '<body class="{shade}"><link rel="stylesheet" href="vanilla-jsoneditor/themes/jse-theme-dark.css">'
    '<div id="box" style="height: 100%" class="{shade}"></div><script type="module">'
    "import {{ createJSONEditor }} from './vanilla-jsoneditor/standalone.js';"
    "createJSONEditor({{ target: document.getElementById('box'), props: {{ content: {{ json: {data} }}, mode: '{mode}' "
    "}} }});</script>"
)
TERMINAL = (
    HEAD + '<link rel="stylesheet" href="jquery.terminal/css/jquery.terminal.min.css">'
    '<body style="--background: {back}; --color: {ink}; --size: {size}; background: {back}"><div id="box"></div>'
    '<script src="jquery/dist/jquery.min.js"></script>'
    '<script src="jquery.terminal/js/jquery.terminal.min.js"></script><script>'
    "const t = $('#box').terminal(() => {{}}, {{ greetings: false, prompt: '$ ', enabled: false }});"
    "for (const line of {lines}) t.echo(line, {{ formatters: false }});</script>"
)
PLAYER = (
    HEAD + '<link rel="stylesheet" href="asciinema-player/dist/bundle/asciinema-player.css">'
    '<div id="box" style="width: 1200px; height: 740px; margin: 16px"></div>'
    '<script src="asciinema-player/dist/bundle/asciinema-player.min.js"></script><script>'
    "AsciinemaPlayer.create({{ data: {cast} }}, document.getElementById('box'), {{ autoPlay: true, theme: '{theme}', "
    "controls: false, fit: 'both' }});</script>"
)
SWAGGER = (
    HEAD + '<link rel="stylesheet" href="swagger-ui-dist/swagger-ui.css"><div id="box"></div>'
    '<script src="swagger-ui-dist/swagger-ui-bundle.js"></script><script>'
    "SwaggerUIBundle({{ spec: {data}, dom_id: '#box', docExpansion: '{depth}' }});</script>"
)
REDOC = (
    HEAD + '<div id="box"></div><script src="redoc/bundles/redoc.standalone.js"></script><script>'
    "Redoc.init({data}, {{ disableSearch: {quiet} }}, document.getElementById('box'));</script>"
)
GRID = (
    HEAD + '<link rel="stylesheet" href="ag-grid-community/styles/ag-grid.css">'
    '<link rel="stylesheet" href="ag-grid-community/styles/ag-theme-{look}.css">'
    '<div id="box" class="ag-theme-{look}" style="height: 100%"></div>'
    '<script src="ag-grid-community/dist/ag-grid-community.min.js"></script><script>const rows = {rows};'
    "agGrid.createGrid(document.getElementById('box'), {{ rowData: rows, rowSelection: 'multiple', "
    "defaultColDef: {{ flex: 1 }}, suppressColumnVirtualisation: true, "
    "columnDefs: Object.keys(rows[0]).map((k, i) => ({{ field: k, headerName: k, "
    "checkboxSelection: {checks} && !i }})), "
    "onFirstDataRendered: e => e.api.forEachNode((n, i) => {{ if (i % 5 === 1) n.setSelected(true); }}) }});</script>"
)
TABULATOR = (
    HEAD + '<link rel="stylesheet" href="tabulator-tables/dist/css/tabulator{look}.min.css"><div id="box"></div>'
    '<script src="tabulator-tables/dist/js/tabulator.min.js"></script><script>'
    "new Tabulator('#box', {{ data: {rows}, autoColumns: true, layout: 'fitColumns' }});</script>"
)
GRIDJS = (
    HEAD + '<link rel="stylesheet" href="gridjs/dist/theme/mermaid.min.css"><div id="box" style="padding: 20px"></div>'
    '<script src="gridjs/dist/gridjs.umd.js"></script><script>const rows = {rows};'
    "new gridjs.Grid({{ columns: Object.keys(rows[0]), data: rows.map(r => Object.values(r)), search: {checks}, "
    "sort: true, pagination: {{ enabled: {checks}, limit: 9 }} }}).render(document.getElementById('box'));</script>"
)
TABLES = ("cars.json", "penguins.json", "movies.json", "barley.json", "ohlc.json", "gapminder.json")
AGRID = ("balham", "quartz-dark", "alpine")
TABULATOR_LOOKS = ("_midnight", "_simple", "_site")
PLAYER_THEMES = ("asciinema", "solarized-light", "nord")


def write_pages(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        link = folder / name.replace("/", "_")
        if not link.is_symlink():
            link.symlink_to(home)
    for number, (kind, text) in enumerate(_write_all(packages, chance)):
        file = f"{kind.replace(' ', '_')}_{number}.html"
        (folder / file).write_text(text)
        yield f"{kind} {number}", folder, file


def _write_all(packages: dict[str, Path], chance: random.Random) -> Iterator[tuple[str, str]]:
    definitions = sorted(packages["@readme/oas-examples"].glob("3.0/json/*.json"))
    files = _list_sources(packages)
    for number, file in enumerate(chance.sample(definitions, 4)):
        data = file.read_text()
        yield ("swagger", SWAGGER.format(data=data, depth=chance.choice(("list", "full"))))
        if number % 2:
            yield "redoc", REDOC.format(data=data, quiet=chance.choice(("true", "false")))
        else:
            shade, mode = chance.choice(("", "jse-theme-dark")), ("text", "tree")[number == 2]
            yield "json editor", JSON_EDITOR.format(data=data, shade=shade, mode=mode)
    for look, other in zip(AGRID, TABULATOR_LOOKS, strict=True):
        checks = chance.choice(("true", "false"))
        yield "ag grid", GRID.format(rows=_draw_rows(packages, chance), look=look, checks=checks)
        yield "tabulator", TABULATOR.format(rows=_draw_rows(packages, chance), look=other)
        yield "gridjs", GRIDJS.format(rows=_draw_rows(packages, chance), checks=checks)
    for theme in ACE_THEMES:
        source, first = chance.choice(files), chance.choice((1, 1, 87, 340))
        text, mode = json.dumps("\n".join(_read_part(source, chance))), MODES[source.suffix]
        yield "ace", ACE.format(text=text, mode=mode, theme=theme, first=first, size=chance.choice((13, 14, 16)))
    for theme in PLAYER_THEMES:
        yield "asciinema", PLAYER.format(cast=_write_cast(_write_session(chance.choice(files), chance)), theme=theme)
    for back, ink in (("#fdf6e3", "#586e75"), ("#300a24", "#eeeeec")):
        lines = json.dumps(_write_session(chance.choice(files), chance))
        yield "terminal", TERMINAL.format(lines=lines, back=back, ink=ink, size=chance.choice((1, 1.2)))


def _list_sources(packages: dict[str, Path]) -> list[Path]:
    return [
        path for name in ("textual", "rich", "pygments", "vega-lite", "apexcharts") for path in
        sorted(packages[name].rglob("*")) if path.suffix in MODES and 1_500 < path.stat().st_size < 60_000
        and ".min." not in path.name and "build" not in path.parts
    ]  # fmt: skip


def _draw_rows(packages: dict[str, Path], chance: random.Random) -> str:
    """Return some columns of some rows of a data set."""
    rows: list[dict[str, Any]] = json.loads((packages["vega-datasets"] / "data" / chance.choice(TABLES)).read_text())
    start, names = chance.randrange(len(rows) - 20), list(rows[0])[: chance.choice((4, 5, 6))]
    return json.dumps([{name.replace("_", " "): row.get(name) for name in names} for row in rows[start : start + 20]])


def _read_part(source: Path, chance: random.Random) -> list[str]:
    lines = source.read_text(errors="replace").expandtabs(4).splitlines()
    start = chance.randrange(max(1, len(lines) - LINES))
    return [line[:110] for line in lines[start : start + LINES] if line.isascii()]


def _write_session(source: Path, chance: random.Random) -> list[str]:
    """Write a session: the sizes of the files beside a file, and where a word is found in it."""
    beside = sorted(each for each in source.parent.iterdir() if each.is_file())[:12]
    sizes = [f"{len(each.read_bytes()):>8} {each.name}" for each in beside]
    found = [f"{at}: {line}"[:100] for at, line in enumerate(_read_part(source, chance), 1) if line.strip()][:18]
    return [f"$ wc -c {source.parent.name}/*", *sizes, f"$ grep -n '' {source.name} | head -18", *found, "$ "]


def _write_cast(lines: list[str]) -> str:
    """Write a recording that shows all lines at once, prompts in green."""
    text = "\r\n".join(f"\x1b[32m{line}\x1b[0m" if line.startswith("$") else line for line in lines)
    head = {"version": 2, "width": 100, "height": len(lines) + 1}
    return json.dumps("\n".join([json.dumps(head), json.dumps([0.01, "o", text]), json.dumps([10, "o", ""])]))
