"""Write screens of Textual apps as SVG pages, with what their widgets hold: python real_textual.py FOLDER DATA SOURCE.

It runs by itself, with Textual and what that needs in PYTHONPATH. DATA is a JSON file with the rows of a table, SOURCE
a file of code.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.demo.demo_app import DemoApp
from textual.widget import Widget
from textual.widgets import (
    Button,
    Checkbox,
    DataTable,
    Footer,
    Header,
    Input,
    Label,
    RadioButton,
    RadioSet,
    Switch,
    Tabs,
    TextArea,
)  # fmt: skip

SIZE = (104, 34)
THEMES = ("textual-dark", "textual-light", "nord", "gruvbox")
KINDS: dict[type[Widget], str] = {
    Checkbox: "check",
    RadioButton: "radio",
    Switch: "switch",
    Button: "button",
    Input: "field",
    DataTable: "table",
}
CSS = """
Vertical { width: 1fr; padding: 1 2; } Horizontal { height: auto; } Label { padding: 1 1 0 0; }
Horizontal > Switch { margin: 0 1 0 0; }
"""


class FormApp(App[None]):
    """A form with toggles, buttons and fields."""

    CSS = CSS

    def compose(self) -> ComposeResult:
        yield Header()
        yield Tabs("General", "Network", "Storage", "Advanced")
        with Horizontal():
            with Vertical():
                yield Checkbox("Start at boot", value=True)
                yield Checkbox("Keep a log")
                yield Checkbox("Compress backups", value=True, disabled=True)
                with RadioSet():
                    yield RadioButton("Every hour")
                    yield RadioButton("Every day", value=True)
                    yield RadioButton("Every week")
            with Vertical():
                yield Input("backup.example", placeholder="Host")
                yield Input(placeholder="Folder")
                for text, on in (("Encrypt", True), ("Verify", False)):
                    with Horizontal():
                        yield Switch(value=on, animate=False)
                        yield Label(text)
                with Horizontal():
                    yield Button("Save", variant="primary")
                    yield Button("Cancel")
        yield Footer()


class TableApp(App[None]):
    """A table."""

    CSS = CSS

    def __init__(self, rows: list[list[str]]) -> None:
        super().__init__()
        self.rows = rows

    def compose(self) -> ComposeResult:
        yield Header()
        yield DataTable(zebra_stripes=True, show_cursor=False)
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns(*self.rows[0])
        table.add_rows(self.rows[1:])


class CodeApp(App[None]):
    """An editor with line numbers."""

    CSS = CSS

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        yield TextArea(self.text, show_line_numbers=True, soft_wrap=False, read_only=True)
        yield Footer()


def list_parts(app: App[Any]) -> list[dict[str, Any]]:
    """Return the toggles, buttons, fields and tables of an app, in cells of the screen."""
    parts = []
    for widget in app.screen.query(Widget):
        region = widget.content_region
        kind = KINDS.get(type(widget))
        if not kind or not region.area:
            continue
        if kind in ("button", "field"):
            region = widget.region
        wide = 3 if kind in ("check", "radio") else region.width
        part = {"kind": kind, "box": [region.x, region.y, region.x + wide, region.bottom], "disabled": widget.disabled}
        part["checked"] = bool(getattr(widget, "value", False)) if kind in ("check", "radio", "switch") else None
        part["text"] = str(getattr(widget, "label", "")) or str(getattr(widget, "value", "") or "")
        if isinstance(widget, DataTable):
            part["rows"] = _list_rows(widget)
        parts.append(part)
    for editor in app.screen.query(TextArea):
        shown = editor.text.splitlines()[: editor.content_region.height]
        parts.append({"kind": "code", "lines": [{"text": t, "number": str(n)} for n, t in enumerate(shown, 1)]})
    return parts


def _list_rows(table: DataTable[Any]) -> list[list[tuple[str, list[int]]]]:
    """Return the cells that are in the screen, with their boxes."""
    region, edges = table.content_region, [0]
    for column in table.ordered_columns:
        edges.append(edges[-1] + column.get_render_width(table))
    texts = [[str(column.label) for column in table.ordered_columns]]
    texts += [[str(cell) for cell in table.get_row_at(at)] for at in range(table.row_count)]
    return [
        [(text, [region.x + edges[at], region.y + row, region.x + edges[at + 1], region.y + row + 1])
         for at, text in enumerate(cells) if edges[at + 1] <= region.width]
        for row, cells in enumerate(texts[: region.height])
    ]  # fmt: skip


async def write_screen(app: App[Any], name: str, theme: str, folder: Path, keys: str = "") -> None:
    async with app.run_test(size=SIZE) as pilot:
        app.theme = theme
        await pilot.pause()
        if keys:
            await pilot.press(*keys)
            await pilot.pause()
        app.set_focus(None)
        await pilot.pause()
        (folder / f"{name}.svg").write_text(app.export_screenshot(title=""))
        (folder / f"{name}.json").write_text(json.dumps(list_parts(app)))


async def write_screens(folder: Path, rows: list[list[str]], text: str) -> None:
    for number, theme in enumerate(THEMES):
        app = FormApp() if number < 2 else TableApp(rows)
        await write_screen(app, f"parts_{number}", theme, folder)
        if number % 2:
            await write_screen(CodeApp(text), f"code_{number}", theme, folder)
    await write_screen(DemoApp(), "demo", THEMES[1], folder, "p")


if __name__ == "__main__":
    asyncio.run(
        write_screens(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3]).read_text())
    )
