"""Pages that hold an editor or a terminal out of a package, with files of other packages in them."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

FILES = 10  # of each editor or terminal
LINES = 60
SUFFIXES = (".py", ".js", ".ts", ".css", ".md", ".json")
THEMES = {"monaco": ("vs", "vs-dark", "hc-black"), "codemirror": ("default", "darcula", "ayu-dark", "abcdef")}
MONACO = """<!DOCTYPE html><meta charset="utf-8">
<style>html, body, #box {{ margin: 0; height: 100%; overflow: hidden }}</style>
<div id="box"></div><script src="{package}/min/vs/loader.js"></script><script>
require.config({{ paths: {{ vs: '{package}/min/vs' }} }});
require(['vs/editor/editor.main'], () => monaco.editor.create(document.getElementById('box'), {{
    value: {text}, language: '{language}', theme: '{theme}', minimap: {{ enabled: false }}, automaticLayout: true
}}));
</script>"""
CODEMIRROR = """<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="{package}/lib/codemirror.css">
<link rel="stylesheet" href="{package}/theme/{theme}.css">
<style>body {{ margin: 0 }} .CodeMirror {{ height: 100vh }}</style>
<script src="{package}/lib/codemirror.js"></script><script src="{package}/mode/python/python.js"></script>
<script src="{package}/mode/javascript/javascript.js"></script><body><script>
CodeMirror(document.body, {{ value: {text}, lineNumbers: true, mode: '{language}', theme: '{theme}' }});
</script>"""
XTERM = """<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="{package}/css/xterm.css">
<style>body {{ margin: 0; background: {theme} }}</style><div id="box"></div>
<script src="{package}/lib/xterm.js"></script><script>
const theme = {{ background: '{theme}', foreground: '{ink}' }};
const terminal = new Terminal({{ cols: 110, rows: 40, fontSize: 15, theme }});
terminal.open(document.getElementById('box'));
terminal.write({text});
</script>"""


def write_hosts(packages: dict[str, Path], folder: Path, chance: random.Random) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the package beside the page."""
    files = _draw_files(packages, chance)
    for number in range(FILES):
        for kind, package, write in (
            ("monaco", "monaco-editor", _write_monaco),
            ("codemirror", "codemirror", _write_codemirror),
            ("xterm", "@xterm/xterm", _write_terminal),
        ):
            host = folder / kind
            host.mkdir(parents=True, exist_ok=True)
            link = host / "package"
            if not link.is_symlink():
                link.symlink_to(packages[package])
            source = files[3 * number + len(kind) % 3]
            (host / f"{number}.html").write_text(write(source, chance))
            yield f"{kind} {number} {source.name}", host, f"{number}.html"


def _draw_files(packages: dict[str, Path], chance: random.Random) -> list[Path]:
    found = sorted(
        path for home in packages.values() for path in home.rglob("*")
        if path.suffix in SUFFIXES and 1_500 < path.stat().st_size < 60_000 and "min" not in path.parts
    )  # fmt: skip
    return chance.sample(found, 3 * FILES + 3)


def _read_part(source: Path, chance: random.Random) -> list[str]:
    lines = source.read_text(errors="replace").expandtabs(4).splitlines()
    start = chance.randrange(max(1, len(lines) - LINES))
    return [line[:110] for line in lines[start : start + LINES] if line.isascii()]


def _write_monaco(source: Path, chance: random.Random) -> str:
    text = json.dumps("\n".join(_read_part(source, chance)))
    language = {".py": "python", ".css": "css", ".md": "markdown", ".json": "json"}.get(source.suffix, "javascript")
    return MONACO.format(package="package", text=text, language=language, theme=chance.choice(THEMES["monaco"]))


def _write_codemirror(source: Path, chance: random.Random) -> str:
    text = json.dumps("\n".join(_read_part(source, chance)))
    language = "python" if source.suffix == ".py" else "javascript"
    return CODEMIRROR.format(package="package", text=text, language=language, theme=chance.choice(THEMES["codemirror"]))


def _write_terminal(source: Path, chance: random.Random) -> str:
    """Write a session: a listing of the file's folder, then the end of the file, some words coloured."""
    listing = [
        f"{each.stat().st_size:>9} {'d' if each.is_dir() else '-'} {each.name}"
        for each in sorted(source.parent.iterdir())
    ]
    shown = [
        "$ ls " + source.parent.name,
        *listing[:14],
        f"$ head {source.name}",
        *_read_part(source, chance)[:22],
        "$ ",
    ]
    coloured = [f"\x1b[3{chance.randint(1, 6)}m{line}\x1b[0m" if chance.random() < 0.2 else line for line in shown]
    theme, ink = chance.choice((("#000000", "#d0d0d0"), ("#1e1e2e", "#cdd6f4"), ("#ffffff", "#202020")))
    return XTERM.format(package="package", text=json.dumps("\r\n".join(coloured)), theme=theme, ink=ink)
