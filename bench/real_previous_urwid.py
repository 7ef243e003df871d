"""Write screens of urwid apps as pages, with what their widgets hold: python real_previous_urwid.py FOLDER ROWS SOURCE.

It runs by itself, with urwid and what that needs in PYTHONPATH. ROWS is a JSON file with the rows of a table, SOURCE a
file of code. A page has one element for each line of the screen, and says in `realParts` what the widgets are.
"""

import html
import json
import sys
from pathlib import Path
from typing import Any

import urwid

SIZE = (104, 32)
LOOKS: dict[str, dict[str, tuple[str, str]]] = {
    "blue": {"": ("#ffff55", "#0000aa"), "head": ("#000000", "#00aaaa"), "field": ("#ffffff", "#000066"),
             "on": ("#000000", "#aaaaaa")},
    "dark": {"": ("#d0d0d0", "#181818"), "head": ("#ffffff", "#5f0087"), "field": ("#ffffff", "#3a3a3a"),
             "on": ("#101010", "#87d787")},
    "light": {"": ("#303030", "#f4f4ee"), "head": ("#ffffff", "#00688b"), "field": ("#000000", "#d8d8d0"),
              "on": ("#ffffff", "#444444")},
}  # fmt: skip
FORMS = (
    (("Synchronise the clock", True), ("Mount the archive", False), ("Verify signatures", True), ("Beep", False)),
    (("Keep old kernels", False), ("Install documentation", True), ("Allow downgrades", False), ("Use a mirror", True)),
)
CHOICES = (("Guided, whole disk", "Guided, largest space", "Manual"), ("Stable", "Testing", "Unstable"))
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0; background: {back}; overflow: hidden }}
div {{ font: 20px/24px 'DejaVu Sans Mono'; white-space: pre; height: 24px }}</style>{rows}<script>
const probe = document.querySelector('span').getBoundingClientRect(), wide = probe.width / {probe};
const place = cells => cells.map((edge, at) => Math.round(edge * (at % 2 ? 24 : wide) * devicePixelRatio));
const parts = {parts};
for (const each of [...parts.controls, ...parts.states]) each.box = place(each.box);
for (const table of parts.tables) {{
    table.rows = table.rows.map(row => row.map(([text, box]) => [text, place(box)]));
    const boxes = table.rows.flat().map(cell => cell[1]);
    table.box = [0, 1, 2, 3].map(at => (at < 2 ? Math.min : Math.max)(...boxes.map(box => box[at])));
}}
window.realParts = parts;
</script>"""


def build_form(number: int) -> urwid.Widget:
    """Return a form with check boxes, radio buttons, fields and buttons."""
    group: list[urwid.RadioButton] = []
    left = [urwid.Text("Services"), urwid.Divider(), *(urwid.CheckBox(text, on) for text, on in FORMS[number % 2])]
    left += [urwid.Divider(), urwid.Text("Method"), urwid.Divider()]
    left += [urwid.RadioButton(group, text, at == number % 3) for at, text in enumerate(CHOICES[number % 2])]
    fields = (("Host name", "ferry-07"), ("Domain", "harbour.example"), ("Port", "8022"))
    right: list[urwid.Widget] = [urwid.Text("Network"), urwid.Divider()]
    for label, value in fields:
        edit = urwid.AttrMap(urwid.Edit("", value), "field")
        right += [urwid.Columns([(14, urwid.Text(label)), (26, edit)]), urwid.Divider()]
    right.append(urwid.Columns([(14, urwid.Button(text)) for text in ("Back", "Continue")], dividechars=2))
    body = urwid.Columns([urwid.ListBox(left), urwid.ListBox(right)], dividechars=4)
    return urwid.Frame(urwid.Padding(body, left=3, right=3), _write_bar("Installer"), _write_bar("F1 Help  F10 Quit"))


def build_table(rows: list[list[str]], chosen: int) -> urwid.Widget:
    """Return a list of rows, one of which is chosen."""
    lines = [
        urwid.Columns([(wide, urwid.Text(cell)) for cell, wide in zip(row, _measure(rows), strict=True)])
        for row in rows
    ]
    shown = [urwid.AttrMap(line, "on" if at == chosen else "head" if not at else "") for at, line in enumerate(lines)]
    return urwid.Frame(urwid.ListBox(shown), _write_bar("Gazetteer"), _write_bar("Up Down  Enter  Q Quit"))


def build_pager(lines: list[str]) -> urwid.Widget:
    """Return lines with their numbers."""
    shown = [urwid.Text(f"{at:>4} {line}", wrap="clip") for at, line in enumerate(lines, 1)]
    return urwid.Frame(urwid.ListBox(shown), footer=_write_bar("Line 1  UTF-8  Read only"))


def _write_bar(text: str) -> urwid.Widget:
    return urwid.AttrMap(urwid.Text(f" {text}"), "head")


def _measure(rows: list[list[str]]) -> list[int]:
    return [max(len(row[at]) for row in rows) + 3 for at in range(len(rows[0]))]


def list_toggles(rows: list[str]) -> list[dict[str, Any]]:
    """Return the check boxes and radio buttons on a screen, in cells."""
    found: list[dict[str, Any]] = []
    for y, row in enumerate(rows):
        for kind, on, off in (("check", "[X]", "[ ]"), ("radio", "(X)", "( )")):
            for mark in (on, off):
                if (x := row.find(mark)) >= 0:
                    text = row[x + 4 :].split("   ")[0].strip()
                    box = [x, y, x + 3, y + 1]
                    found.append({"kind": kind, "box": box, "checked": mark == on, "disabled": False, "text": text})
    return found


def list_runs(screen: list[list[tuple[str, str]]], name: str) -> list[dict[str, Any]]:
    """Return the runs of an attribute on a screen, as fields in cells."""
    found: list[dict[str, Any]] = []
    for y, row in enumerate(screen):
        x = 0
        for attribute, text in row:
            if attribute == name:
                box = [x, y, x + len(text), y + 1]
                found.append({"kind": "field", "box": box, "disabled": False, "text": text.strip()})
            x += len(text)
    return found


def render(widget: urwid.Widget) -> list[list[tuple[str, str]]]:
    """Return the runs of each line of a screen: attribute and text."""
    canvas = widget.render(SIZE, focus=False)
    return [[(attribute or "", text.decode()) for attribute, _, text in row] for row in canvas.content()]


def write_page(file: Path, screen: list[list[tuple[str, str]]], look: str, parts: dict[str, Any]) -> None:
    inks = LOOKS[look]
    rows = [
        "<div>" + "".join(
            f'<span style="color: {inks[name][0]}; background: {inks[name][1]}">{html.escape(text)}</span>'
            for name, text in row
        ) + "</div>" for row in screen
    ]  # fmt: skip
    told = {"controls": [], "states": [], "tables": [], "code": [], **parts}
    data = json.dumps(told).replace("</", "<\\/")
    page = PAGE.format(back=inks[""][1], rows="".join(rows), parts=data, probe=len(screen[0][0][1]))
    file.write_text(page)


def write_form(file: Path, number: int, look: str) -> None:
    screen = render(build_form(number))
    toggles = list_toggles(["".join(text for _, text in row) for row in screen])
    write_page(file, screen, look, {"controls": toggles + list_runs(screen, "field")})


def write_table(file: Path, rows: list[list[str]], chosen: int, look: str) -> None:
    wide = _measure(rows)
    edges = [sum(wide[:at]) for at in range(len(wide) + 1)]
    cells = [
        [(text, [edges[at], y, edges[at + 1], y + 1]) for at, text in enumerate(row)]
        for y, row in enumerate(rows[: SIZE[1] - 2], 1)
    ]
    box = [0, chosen + 1, SIZE[0], chosen + 2]
    state = {"kind": "selected", "tag": "TR", "box": box, "text": " ".join(rows[chosen])}
    parts = {"tables": [{"asked": True, "rows": cells}], "states": [state]}
    write_page(file, render(build_table(rows, chosen)), look, parts)


def write_pager(file: Path, lines: list[str], look: str) -> None:
    told = [{"text": line, "number": str(at)} for at, line in enumerate(lines[: SIZE[1] - 1], 1)]
    write_page(file, render(build_pager(lines)), look, {"code": [{"lines": told, "numbers": True}]})


def write_screens(folder: Path, rows: list[list[str]], lines: list[str]) -> None:
    urwid.set_encoding("utf-8")
    for number, look in enumerate(LOOKS):
        write_form(folder / f"form_{number}.html", number, look)
    for number, look in ((1, "dark"), (2, "light")):
        write_table(folder / f"table_{number}.html", rows, 3 + 2 * number, look)
        write_pager(folder / f"pager_{number}.html", lines, look)


if __name__ == "__main__":
    write_screens(
        Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3]).read_text().splitlines()
    )
