"""Pages that hold a table, an API viewer, code or a terminal out of a package, for the previous part.

A page whose DOM does not say what it shows, such as which number is beside a line, says so in `realParts`.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINES = 34
HEAD = (
    '<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0; font-family: Liberation Sans, sans-serif }}</style>'
)
TELL = """
const tellLines = (top, high, lines, first) => {
    const count = Math.floor((innerHeight - top) / high);
    const told = lines.slice(0, count).map((text, at) => ({ text, ...(first ? { number: String(first + at) } : {}) }));
    window.realParts = { code: [{ lines: told, numbers: !!first }] };
};"""
PRISM = (
    HEAD + '<link rel="stylesheet" href="prismjs/themes/{theme}.css">'
    '<link rel="stylesheet" href="prismjs/plugins/line-numbers/prism-line-numbers.css">'
    "<style>pre[class] {{ margin: 14px; font-size: {size}px; overflow: hidden }}</style>"
    '<pre class="line-numbers" data-start="{first}"><code class="language-{language}" id="code"></code></pre>'
    '<script>document.getElementById("code").textContent = {text}</script><script src="prismjs/prism.js"></script>'
    '<script src="prismjs/components/prism-python.js"></script>'
    '<script src="prismjs/plugins/line-numbers/prism-line-numbers.js"></script><script>{tell}'
    "addEventListener('load', () => {{ const row = document.querySelector('.line-numbers-rows > span');"
    "tellLines(row.getBoundingClientRect().top, row.getBoundingClientRect().height, {text}.split('\\n'), {first}); }});"
    "</script>"
)
HIGHLIGHT = (
    HEAD + '<link rel="stylesheet" href="@highlightjs_cdn-assets/styles/{theme}.min.css">'
    "<style>pre {{ margin: 16px; font-size: {size}px; overflow: hidden }}</style>"
    '<pre><code class="language-{language}" id="code"></code></pre>'
    '<script src="@highlightjs_cdn-assets/highlight.min.js"></script>'
    '<script>document.getElementById("code").textContent = {text}; hljs.highlightAll()</script>'
)
FLASK = (
    HEAD + "<style>#box {{ position: relative; height: 100vh }} .codeflask {{ font-size: {size}px }}</style>"
    '<div id="box"></div><script src="codeflask/build/codeflask.min.js"></script><script>{tell}'
    "const flask = new CodeFlask('#box', {{ language: 'js', lineNumbers: true }}); flask.updateCode({text});"
    "addEventListener('load', () => {{ const row = document.querySelector('.codeflask__lines__line');"
    "tellLines(row.getBoundingClientRect().top, row.getBoundingClientRect().height, {text}.split('\\n'), 1); }});</script>"
)
JAR = (
    HEAD + '<link rel="stylesheet" href="@highlightjs_cdn-assets/styles/{theme}.min.css">'
    "<style>#box {{ margin: 20px; padding: 12px; font: {size}px/1.5 'DejaVu Sans Mono'; border-radius: 6px;"
    "box-shadow: 0 2px 8px #0008 }}</style>"
    '<div id="box" class="hljs language-{language}"></div>'
    '<script src="@highlightjs_cdn-assets/highlight.min.js"></script><script>{tell}</script><script type="module">'
    "import {{ CodeJar }} from './codejar/dist/codejar.js'; const box = document.getElementById('box');"
    "const paint = e => {{ delete e.dataset.highlighted; hljs.highlightElement(e); }};"
    "CodeJar(box, paint).updateCode({text});"
    "tellLines(box.getBoundingClientRect().top + 12, {size} * 1.5, {text}.split('\\n'), 0);</script>"
)
ANSI = (
    HEAD + '<body style="background: {back}; color: {ink}"><pre id="box" style="margin: 12px; font: {size}px/1.35 '
    '\'DejaVu Sans Mono\'"></pre><script type="module">import {{ AnsiUp }} from "./ansi_up/ansi_up.js";'
    "document.getElementById('box').innerHTML = new AnsiUp().ansi_to_html({text});</script>"
)
ELEMENTS = (
    HEAD + '<link rel="stylesheet" href="@stoplight_elements/styles.min.css"><body style="height: 100vh">'
    '<script src="@stoplight_elements/web-components.min.js"></script>'
    '<elements-api id="box" router="hash" layout="{layout}"></elements-api><script>'
    "location.hash = '{place}'; const box = document.getElementById('box'); box.apiDescriptionDocument = {data};"
    # The chosen page has a colour in the list of pages, but no attribute that says so.
    "window.isDrawn = () => {{ const on = document.querySelector('a:has(> .sl-bg-primary-tint)');"
    "on?.setAttribute('aria-current', 'page'); return box.innerText.length > 300 && (on || '{layout}' === 'stacked'); }};"
    "</script>"
)
DATATABLES = (
    HEAD + '<link rel="stylesheet" href="datatables.net-dt/css/dataTables.dataTables.css">'
    '<div style="margin: 20px"><h1>{title}</h1><table id="box" class="display {look}"></table></div>'
    '<script src="jquery/dist/jquery.min.js"></script><script src="datatables.net/js/dataTables.js"></script>'
    '<script src="datatables.net-dt/js/dataTables.dataTables.js"></script><script>const rows = {rows};'
    "new DataTable('#box', {{ data: rows.slice(1), columns: rows[0].map(title => ({{ title }})), displayStart: {start} }});"
    "</script>"
)
SPREADSHEET = (
    HEAD + '<link rel="stylesheet" href="jsuites/dist/jsuites.css">'
    '<link rel="stylesheet" href="jspreadsheet-ce/dist/jspreadsheet.css"><h2 style="margin: 16px">{title}</h2>'
    '<div id="box" style="margin: 16px"></div><script src="jsuites/dist/jsuites.js"></script>'
    '<script src="jspreadsheet-ce/dist/index.js"></script><script>const rows = {rows};'
    "jspreadsheet(document.getElementById('box'), {{ worksheets: [{{ data: rows.slice(1), columns: rows[0].map(title => "
    "({{ title, width: 170 }})) }}] }});</script>"
)
GOOD_TABLE = (
    HEAD + '<link rel="stylesheet" href="vue-good-table/dist/vue-good-table.css">'
    '<div id="box" style="margin: 20px"><h1>{title}</h1><vue-good-table :columns="columns" :rows="rows" theme="{look}" '
    ':select-options="{{ enabled: true }}" :search-options="{{ enabled: true }}" '
    ':pagination-options="{{ enabled: true, perPage: 10 }}"></vue-good-table></div>'
    '<script src="vue@2/dist/vue.min.js"></script><script src="vue-good-table/dist/vue-good-table.js"></script><script>'
    "const rows = {rows}; Vue.use(window['vue-good-table'].default || window['vue-good-table']);"
    "new Vue({{ el: '#box', data: {{ columns: rows[0].map((label, at) => ({{ label, field: 'c' + at }})), "
    "rows: rows.slice(1).map((row, at) => ({{ ...Object.fromEntries(row.map((c, i) => ['c' + i, c])), "
    "vgtSelected: at % 4 === 1 }})) }} }});</script>"
)
PRISM_THEMES = ("prism", "prism-tomorrow", "prism-solarizedlight", "prism-okaidia")
HIGHLIGHT_THEMES = ("github", "atom-one-dark", "kimbie-light", "mono-blue", "a11y-dark")
JAR_THEMES = ("androidstudio", "docco")
INKS = (("#0b132b", "#e0e6f0"), ("#fbf3db", "#53676d"), ("#1c1c1c", "#d7d7af"))
PLACES = (("sidebar", "/"), ("sidebar", "/operations/getAllData"), ("stacked", "/"))
COLUMNS = ("name", "capital", "region", "subregion", "area", "cca3")
LOOKS = (("", "default"), ("compact stripe", "nocturnal"), ("cell-border", "polar-bear"))


def write_pages(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        if not (link := folder / name.replace("/", "_")).is_symlink():
            link.symlink_to(home)
    for number, (kind, text) in enumerate([*_write_code(packages, chance), *_write_tables(packages, chance)]):
        file = f"{kind.replace(' ', '_')}_{number}.html"
        (folder / file).write_text(text)
        yield f"{kind} {number}", folder, file


def list_sources(packages: dict[str, Path]) -> list[Path]:
    """Return files of code that are neither short nor long."""
    return [
        path for name, pattern in (("urwid", "urwid/*.py"), ("plotnine", "plotnine/*/*.py"),
                                   ("@observablehq/plot", "src/**/*.js"))
        for path in sorted(packages[name].glob(pattern)) if 2_000 < path.stat().st_size < 60_000
    ]  # fmt: skip


def _write_code(packages: dict[str, Path], chance: random.Random) -> Iterator[tuple[str, str]]:
    sources = list_sources(packages)
    scripts = [source for source in sources if source.suffix == ".js"]
    for theme in PRISM_THEMES:
        first = chance.choice((1, 1, 96, 412))
        yield "prism", _fill(PRISM, chance.choice(sources), chance, theme=theme, first=first, tell=TELL)
    for theme in HIGHLIGHT_THEMES:
        yield "highlight", _fill(HIGHLIGHT, chance.choice(sources), chance, theme=theme)
    for _ in range(3):
        yield "codeflask", _fill(FLASK, chance.choice(scripts), chance, tell=TELL)
    for theme in JAR_THEMES:
        yield "codejar", _fill(JAR, chance.choice(sources), chance, theme=theme, tell=TELL)
    for back, ink in INKS:
        session = json.dumps(_write_session(chance.choice(sources), chance))
        yield "session", ANSI.format(text=session, back=back, ink=ink, size=chance.choice((14, 15, 16)))


def _write_tables(packages: dict[str, Path], chance: random.Random) -> Iterator[tuple[str, str]]:
    data = (packages["@scalar/galaxy"] / "dist" / "latest.json").read_text().replace("</", "<\\/")
    for layout, place in PLACES:
        yield "elements", ELEMENTS.format(data=data, layout=layout, place=place)
    for look, theme in LOOKS:
        title = chance.choice(("Countries", "Gazetteer", "Regions of the world"))
        start = 10 * chance.randrange(3)
        yield (
            "datatables",
            DATATABLES.format(rows=_draw_rows(packages, 40, chance), title=title, look=look, start=start),
        )
        yield "spreadsheet", SPREADSHEET.format(rows=_draw_rows(packages, 22, chance), title=title)
        yield "good table", GOOD_TABLE.format(rows=_draw_rows(packages, 30, chance), title=title, look=theme)


def _fill(markup: str, source: Path, chance: random.Random, **more: Any) -> str:
    text = json.dumps("\n".join(_read_part(source, chance))).replace("</", "<\\/")
    language = "python" if source.suffix == ".py" else "javascript"
    return markup.format(text=text, language=language, size=chance.choice((13, 14, 15)), **more)


def _read_part(source: Path, chance: random.Random) -> list[str]:
    """Return some lines of a file, as wide as a window has room for."""
    lines = source.read_text().expandtabs(4).splitlines()
    start = chance.randrange(max(1, len(lines) - LINES))
    while start < len(lines) - 1 and not lines[start].strip():
        start += 1
    return [line[:104].rstrip() for line in lines[start : start + LINES] if line.isascii()]


def _write_session(source: Path, chance: random.Random) -> str:
    """Write a session: the lengths of some files, and the changes that a tool would make in one of them."""
    beside = [each for each in sorted(source.parent.iterdir()) if each.is_file()][:9]
    counts = [f"{len(each.read_text(errors='replace').splitlines()):>7} \x1b[36m{each.name}\x1b[0m" for each in beside]
    part = [line for line in _read_part(source, chance) if line.strip()][:20]
    signs = [chance.choice((" ", " ", "+", "-")) for _ in part]
    inks = {"+": "\x1b[32m", "-": "\x1b[31m", " ": ""}
    changes = [f"{inks[sign]}{sign}{line}\x1b[0m" for sign, line in zip(signs, part, strict=True)]
    head = f"\x1b[1mdiff --git a/{source.name} b/{source.name}\x1b[0m"
    return "\n".join(["$ wc -l *", *counts, f"$ git diff {source.name}", head, *changes, "$ "])


def _draw_rows(packages: dict[str, Path], count: int, chance: random.Random) -> str:
    """Return names of columns, and countries in a row of their file."""
    countries: list[dict[str, Any]] = json.loads((packages["world-countries"] / "countries.json").read_text())
    names = [*COLUMNS[:2], *sorted(chance.sample(COLUMNS[2:], 3))]
    start = chance.randrange(len(countries) - count)
    rows = [[_read_cell(country, name) for name in names] for country in countries[start : start + count]]
    return json.dumps([[name.capitalize() for name in names], *rows])


def _read_cell(country: dict[str, Any], name: str) -> str:
    value = country[name]
    if name == "name":
        return str(value["common"])
    return (
        ", ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, float | int) else str(value)
    )
