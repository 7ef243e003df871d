"""Pages that hold a table, an API viewer, JSON, code or a terminal out of a package, for the part that is set aside.

A page whose DOM does not say what it shows, such as which number is beside a line, says so in `realParts`.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_previous_hosts import HEAD, TELL

LINES = 33
SPEED = (
    HEAD + '<link rel="stylesheet" href="@speed-highlight_core/dist/themes/{theme}.css">'
    "<style>.shj-multiline {{ font-size: {size}px !important; margin: 12px !important; tab-size: 4 }}</style>"
    '<div id="code" class="shj-lang-{short}"></div><script>{tell}</script><script type="module">'
    "import {{ highlightElement }} from './@speed-highlight_core/dist/index.js'; const box = document.getElementById('code');"
    "box.textContent = {text}; await highlightElement(box);"
    "const look = getComputedStyle(box), high = parseFloat(look.lineHeight) || 1.2 * parseFloat(look.fontSize);"
    "tellLines(box.getBoundingClientRect().top + parseFloat(look.paddingTop), high, {text}.split('\\n'), 0);</script>"
)
PRETTIFY = (
    HEAD + '<link rel="stylesheet" href="code-prettify/src/prettify.css">'
    '<link rel="stylesheet" href="code-prettify/styles/{theme}.css"><style>pre.prettyprint {{ margin: 16px; font-size: {size}px; '
    "width: auto !important; overflow: hidden; white-space: pre !important }}</style>"
    '<pre class="prettyprint" id="code"></pre><script>document.getElementById("code").textContent = {text}</script>'
    '<script src="code-prettify/src/prettify.js"></script><script>PR.prettyPrint()</script>'
)  # fmt: skip
MICROLIGHT = (
    HEAD + '<body style="background: {back}; color: {ink}"><pre class="microlight" id="code" style="margin: 18px; '
    'font: {size}px/1.4 \'DejaVu Sans Mono\'"></pre><script>document.getElementById("code").textContent = {text}</script>'
    '<script src="microlight/microlight.js"></script>'
)
SUGAR = (
    HEAD
    + "<style>:root {{ {inks} }} body {{ background: {back} !important; color: {ink} }} pre {{ margin: 20px; padding: 14px; "
    "border: 1px solid #8885; border-radius: 8px; font: {size}px/1.45 'DejaVu Sans Mono'; overflow: hidden }}</style>"
    '<pre><code id="code"></code></pre><script type="module">import {{ highlight }} from "./sugar-high/lib/index.js";'
    "document.getElementById('code').innerHTML = highlight({text});</script>"
)
TERMYNAL = (
    HEAD + '<link rel="stylesheet" href="termynal/dist/style.css"><style>[data-termynal] {{ margin: 24px; width: 1150px !important; '
    'max-width: none !important; font-size: {size}px !important }} [data-ty] {{ white-space: pre; line-height: 1.5 }}</style><div id="termynal" data-termynal>{lines}</div><script>'
    "const isIn = e => e.getBoundingClientRect().bottom <= innerHeight, said = e => (e.dataset.ty ? '$ ' : '') + e.textContent;"
    "window.realParts = {{ code: [{{ lines: [...document.querySelectorAll('[data-ty]')].filter(isIn).map(e => ({{ text: said(e) }})), "
    "numbers: false }}] }};</script>"
)  # fmt: skip
GRAPHIQL = (
    HEAD + '<link rel="stylesheet" href="graphiql/graphiql.min.css"><div id="box" style="height: 100vh"></div>'
    '<script src="react/umd/react.production.min.js"></script><script src="react-dom/umd/react-dom.production.min.js"></script>'
    '<script src="graphiql/graphiql.min.js"></script><script>localStorage.clear();'
    "ReactDOM.createRoot(document.getElementById('box')).render(React.createElement(GraphiQL, {{ fetcher: async () => ({data}), "
    "defaultQuery: {query}, response: {answer}, forcedTheme: '{look}' }}));</script>"
)  # fmt: skip
SCALAR = (
    HEAD + '<script>localStorage.clear()</script><div id="app"></div><script src="@scalar_api-reference/dist/browser/standalone.js">'
    "</script><script>Scalar.createApiReference('#app', {{ content: {data}, layout: '{layout}', darkMode: {dark}, withDefaultFonts: false, "
    "hideClientButton: true }}); location.hash = '{place}';</script>"
)  # fmt: skip
JQUERY_JSON = (
    HEAD + '<link rel="stylesheet" href="jquery.json-viewer/json-viewer/jquery.json-viewer.css">'
    '<h2 style="margin: 16px">{title}</h2><pre id="box" style="margin: 16px; font-size: 14px; padding-left: 24px"></pre>'
    '<script src="jquery/dist/jquery.min.js"></script><script src="jquery.json-viewer/json-viewer/jquery.json-viewer.js"></script>'
    "<script>$('#box').jsonViewer({data}, {{ withQuotes: {quotes} }});</script>"
)
FORMATTER = (
    HEAD
    + '<link rel="stylesheet" href="json-formatter-js/dist/json-formatter.css"><body style="background: {back}; padding: 10px 18px">'
    '<div id="box"></div><script src="json-formatter-js/dist/json-formatter.umd.js"></script><script>'
    "const Formatter = window.JSONFormatter?.default || window.JSONFormatter;"
    "document.getElementById('box').append(new Formatter({data}, 3, {{ theme: '{look}' }}).render());</script>"
)
VUE_JSON = (
    HEAD
    + '<link rel="stylesheet" href="vue-json-pretty/lib/styles.css"><div id="box" style="margin: 18px"><h2>{title}</h2>'
    '<vue-json-pretty :data="data" show-line-number show-icon :deep="4" theme="{look}"></vue-json-pretty></div>'
    '<script src="vue/dist/vue.global.prod.js"></script><script src="vue-json-pretty/lib/vue-json-pretty.js"></script><script>'
    "Vue.createApp({{ data: () => ({{ data: {data} }}) }}).component('vue-json-pretty', VueJsonPretty.default || VueJsonPretty)"
    ".mount('#box');</script>"
)
HANDSONTABLE = (
    HEAD + '<link rel="stylesheet" href="handsontable/styles/handsontable.min.css">'
    '<link rel="stylesheet" href="handsontable/styles/ht-theme-{look}.min.css"><style>body {{ {dark} }}</style><h2 style="margin: 14px 18px">{title}</h2>'
    '<div id="box" style="margin: 18px"></div><script src="handsontable/dist/handsontable.full.min.js"></script><script>'
    "const rows = {rows}; new Handsontable(document.getElementById('box'), {{ data: rows.slice(1, 17), colHeaders: rows[0], "
    "rowHeaders: {numbers}, stretchH: 'all', width: 1200, height: 'auto', themeName: 'ht-theme-{look}' + ('{dark}' ? '-dark' : ''), columnSorting: true, "
    "licenseKey: 'non-commercial-and-evaluation' }});</script>"
    # Its heads and numbers are tables of their own above and beside the cells.
    "<script>Object.defineProperty(window, 'realParts', {{ get() {{ const toBox = e => {{ const r = e.getBoundingClientRect();"
    "return [r.left, r.top, r.right, r.bottom].map(v => Math.round(v * devicePixelRatio)); }}, all = s => [...document.querySelectorAll(s)];"
    "const heads = all('.ht_clone_top thead th').filter(e => e.innerText.trim()), numbers = all('.ht_clone_inline_start tbody th');"
    "const cells = all('.ht_master tbody tr').map((row, at) => [...numbers.slice(at, at + 1), ...row.querySelectorAll('td')]);"
    "const rows = [heads, ...cells].map(row => row.map(e => [e.innerText.trim(), toBox(e)])), edges = rows.flat().map(c => c[1]);"
    "const box = [0, 1, 2, 3].map(i => (i < 2 ? Math.min : Math.max)(...edges.map(b => b[i])));"
    "return {{ tables: [{{ box, asked: true, rows }}] }}; }} }});</script>"
)
BOOTSTRAP_TABLE = (
    HEAD + '<link rel="stylesheet" href="bootstrap-table/dist/themes/bootstrap-table/bootstrap-table.min.css">'
    '<link rel="stylesheet" href="@fortawesome_fontawesome-free/css/all.min.css"><style>body {{ {paper} }}</style>'
    '<div style="margin: 20px"><h3>{title}</h3><table id="box" class="{look}"></table></div>'
    '<script src="jquery/dist/jquery.min.js"></script>'
    '<script src="bootstrap-table/dist/bootstrap-table.min.js"></script>'
    '<script src="bootstrap-table/dist/themes/bootstrap-table/bootstrap-table.min.js"></script><script>const rows = {rows};'
    "$('#box').bootstrapTable({{ search: true, showRefresh: true, showColumns: true, pagination: true, pageSize: 10, pageNumber: {page}, "
    "clickToSelect: true, columns: [{{ field: 'state', checkbox: true }}, ...rows[0].map((title, at) => ({{ field: 'c' + at, title, "
    "sortable: true }}))], data: rows.slice(1).map((row, at) => ({{ ...Object.fromEntries(row.map((c, i) => ['c' + i, c])), "
    "state: at % 4 === 1 }})) }});</script>"
)
DATATABLES = (
    HEAD + '<link rel="stylesheet" href="datatables/media/css/jquery.dataTables.min.css">'
    '<div style="margin: 22px"><h2>{title}</h2><table id="box" class="{look}"></table></div>'
    '<script src="jquery/dist/jquery.min.js"></script><script src="datatables/media/js/jquery.dataTables.min.js"></script><script>'
    "const rows = {rows}; $('#box').DataTable({{ data: rows.slice(1), columns: rows[0].map(title => ({{ title }})), "
    "displayStart: {start} }});</script>"
)
EASY_TABLE = (
    HEAD
    + '<link rel="stylesheet" href="vue-easytable/libs/theme-{look}/index.css"><div id="box" style="padding: 20px; {paper}">'
    '<h2>{title}</h2><ve-table :columns="columns" :table-data="rows" row-key-field-name="key" border-y '
    ':checkbox-option="{{ selectedRowKeys: [2, 5] }}" :style="{{ width: \'1150px\' }}"></ve-table><br>'
    '<ve-pagination :total="240" :page-index="3"></ve-pagination></div>'
    '<script src="vue@2/dist/vue.min.js"></script><script src="vue-easytable/libs/umd/index.js"></script><script>const rows = {rows};'
    "Vue.use(VETable.default || VETable); new Vue({{ el: '#box', data: {{ columns: [{{ field: '', key: 'a', type: 'checkbox', width: 50 }}, "
    "...rows[0].map((title, at) => ({{ title, field: 'c' + at, key: 'c' + at, align: 'left' }}))], rows: rows.slice(1, 13).map((row, at) => "
    "({{ key: at, ...Object.fromEntries(row.map((c, i) => ['c' + i, c])) }})) }} }});</script>"
)
SPEED_THEMES = ("github-light", "atom-dark", "visual-studio-dark", "default")
PRETTIFY_THEMES = ("desert", "sons-of-obsidian", "sunburst")
LIGHT_INKS = (
    "--sh-class: #2d5e9d; --sh-identifier: #354150; --sh-sign: #8996a3; --sh-string: #00a99a; --sh-keyword: #f47067; "
    "--sh-comment: #a19595; --sh-jsxliterals: #6266d1; --sh-property: #0550ae; --sh-entity: #249a97"
)
DARK_INKS = (
    "--sh-class: #8d85ff; --sh-identifier: #c7d0e0; --sh-sign: #8996a3; --sh-string: #44c2b3; --sh-keyword: #ff8a80; "
    "--sh-comment: #8b8b8b; --sh-jsxliterals: #b4a7ff; --sh-property: #7cb7ff; --sh-entity: #5ac8c5"
)
SUGAR_INKS = ((LIGHT_INKS, "#fdfdfd", "#222"), (DARK_INKS, "#20222b", "#c7d0e0"))
TABLE_LOOKS = (
    ("main", "table-striped", "display", "default", ""),
    ("horizon", "table-bordered table-hover", "stripe", "dark", "background: #232324; color: #ddd"),
    ("classic", "table-sm", "cell-border", "default", ""),
    ("main", "table-borderless table-striped", "hover row-border", "default", ""),
)
TAGS = ("gists", "licenses", "gitignore", "emojis", "meta", "markdown", "projects-classic", "interactions")
QUERY = """# Airports of one country, with their codes.
query Find($country: String!) {
  airports(country: $country) {
    totalCount
    nodes {
      name
      city
      code
      altitude
    }
  }
}"""


def write_pages(
    packages: dict[str, Path], folder: Path, chance: random.Random, rows: list[list[str]]
) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        if not (link := folder / name.replace("/", "_")).is_symlink():
            link.symlink_to(home)
    pages = [*_write_code(packages, chance), *_write_data(packages, chance, rows), *_write_tables(chance, rows)]
    for number, (kind, text) in enumerate(pages):
        file = f"{kind.replace(' ', '_')}_{number}.html"
        (folder / file).write_text(text)
        yield f"{kind} {number}", folder, file


def list_sources(packages: dict[str, Path], suffix: str) -> list[Path]:
    """Return files of code that are neither short nor long."""
    return [
        path for name, pattern in (("django", "django/*/*.py"), ("seaborn", "seaborn/*.py"), ("statsmodels", "statsmodels/tools/*.py"),
                                   ("recharts", "es6/util/*.js"), ("code-prettify", "src/*.js"))
        for path in sorted(packages[name].glob(pattern))
        if path.suffix == suffix and 3_000 < path.stat().st_size < 60_000
    ]  # fmt: skip


def _write_code(packages: dict[str, Path], chance: random.Random) -> Iterator[tuple[str, str]]:
    python, scripts = list_sources(packages, ".py"), list_sources(packages, ".js")
    for theme in SPEED_THEMES:
        yield "speed highlight", _fill(SPEED, chance.choice(python + scripts), chance, theme=theme, tell=TELL)
    for theme in PRETTIFY_THEMES:
        yield "prettify", _fill(PRETTIFY, chance.choice(python), chance, theme=theme)
    for back, ink in (("#fffff8", "#333"), ("#0f1c2e", "#dfe6ee")):
        yield "microlight", _fill(MICROLIGHT, chance.choice(python + scripts), chance, back=back, ink=ink)
    for inks, back, ink in SUGAR_INKS:
        yield "sugar high", _fill(SUGAR, chance.choice(scripts), chance, inks=inks, back=back, ink=ink)
    for _ in range(2):
        yield (
            "termynal",
            TERMYNAL.format(lines=_write_session(chance.choice(python), chance), size=chance.choice((14, 15))),
        )


def _write_data(packages: dict[str, Path], chance: random.Random, rows: list[list[str]]) -> Iterator[tuple[str, str]]:
    """Yield pages with an API viewer or JSON."""
    known = json.loads((packages["@octokit/openapi"] / "generated" / "api.github.com.json").read_text())
    for number, look in enumerate(("light", "dark")):
        nodes = [
            dict(zip(("name", "city", "country", "code", "altitude"), row, strict=True))
            for row in chance.sample(rows[1:], 5)
        ]
        answer = json.dumps({"data": {"airports": {"totalCount": len(nodes), "nodes": nodes}}}, indent=2)
        yield "graphiql", GRAPHIQL.format(query=json.dumps(QUERY), answer=json.dumps(answer), data=answer, look=look)
        layout, dark = ("modern", "false") if number else ("classic", "true")
        data = json.dumps(_choose_paths(known, chance.sample(TAGS, 4))).replace("</", "<\\/")
        yield "scalar", SCALAR.format(data=data, layout=layout, dark=dark, place="")
        schema = chance.choice([each for each in _list_examples(known) if 500 < len(json.dumps(each)) < 1100])
        part, title = json.dumps(schema).replace("</", "<\\/"), chance.choice(("Response", "Example", "Payload"))
        yield "json viewer", JQUERY_JSON.format(data=part, title=title, quotes=("false", "true")[number])
        schema = chance.choice([each for each in _list_examples(known) if 500 < len(json.dumps(each)) < 1100])
        part = json.dumps(schema).replace("</", "<\\/")
        yield "json formatter", FORMATTER.format(data=part, look=("", "dark")[number], back=("#fff", "#1b1b1f")[number])
        yield "vue json", VUE_JSON.format(data=part, title=title, look="light")


def _choose_paths(known: dict[str, Any], tags: list[str]) -> dict[str, Any]:
    """Return the part of an API that has these tags, without what it refers to."""
    paths = {
        path: {verb: {**each, "responses": {"200": {"description": "Response"}}} for verb, each in verbs.items() if set(each["tags"]) & set(tags)}
        for path, verbs in known["paths"].items()
    }  # fmt: skip
    chosen = {path: verbs for path, verbs in paths.items() if verbs}
    parameters = known["components"]["parameters"]
    info = {
        "title": known["info"]["title"],
        "version": known["info"]["version"],
        "description": known["info"]["description"],
    }
    return {
        "openapi": known["openapi"], "info": info, "servers": known["servers"], "paths": chosen,
        "components": {"parameters": {name: {**each, "schema": {"type": "string"}} for name, each in parameters.items()}},
    }  # fmt: skip


def _list_examples(known: dict[str, Any]) -> list[Any]:
    return [each["value"] for each in known["components"]["examples"].values() if "value" in each]


def _write_tables(chance: random.Random, rows: list[list[str]]) -> Iterator[tuple[str, str]]:
    for number, look in enumerate(TABLE_LOOKS):
        theme, classes, classes_of_data, theme_of_easy, paper = look
        first, second, third, fourth = (json.dumps([rows[0], *chance.sample(rows[1:], 42)]) for _ in range(4))
        title = chance.choice(("Airports", "Airfields of the world", "Landing sites"))
        numbers = ("false", "true")[number % 2]
        yield "handsontable", HANDSONTABLE.format(rows=first, title=title, look=theme, numbers=numbers, dark=paper)
        yield (
            "bootstrap table",
            BOOTSTRAP_TABLE.format(rows=second, title=title, look=classes, page=1 + number, paper=""),
        )
        start = 10 * chance.randrange(4)
        yield "datatables", DATATABLES.format(rows=third, title=title, look=classes_of_data, start=start)
        yield "easy table", EASY_TABLE.format(rows=fourth, title=title, look=theme_of_easy, paper=paper)


def _fill(markup: str, source: Path, chance: random.Random, **more: Any) -> str:
    text = json.dumps("\n".join(_read_part(source, chance))).replace("</", "<\\/")
    short = "py" if source.suffix == ".py" else "js"
    return markup.format(text=text, short=short, size=chance.choice((13, 14, 15)), **more)


def _read_part(source: Path, chance: random.Random) -> list[str]:
    """Return some lines of a file, as wide as a window has room for."""
    lines = source.read_text().expandtabs(4).splitlines()
    start = chance.randrange(max(1, len(lines) - LINES))
    while start and not lines[start].strip():
        start -= 1
    return [line[:104] if line.isascii() else "" for line in lines[start : start + LINES]]


def _write_session(source: Path, chance: random.Random) -> str:
    """Write a session: the sizes of the files beside a file, and where a word is found in it."""
    beside = sorted(each for each in source.parent.iterdir() if each.is_file())[:9]
    found = [line for line in _read_part(source, chance) if line.strip()][:14]
    escape = [line.replace("&", "&amp;").replace("<", "&lt;") for line in found]
    lines = [f'<span data-ty="input">wc -c {source.parent.name}/*</span>']
    lines += [f"<span data-ty>{len(each.read_bytes()):>8} {each.name}</span>" for each in beside]
    lines += [
        f'<span data-ty="input">head -n {len(escape)} {source.name}</span>',
        *(f"<span data-ty>{line}</span>" for line in escape),
    ]
    return "".join(lines)
