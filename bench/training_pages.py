"""Write random pages of controls around style packages, from which the recogniser of controls is trained.

A page is a package's style sheet, or none, with random overrides of it (borders, corners, paddings, fonts, colours) and
random sections: forms, tool bars, menus, tabs, lists, tables, and much that looks like a control and is none.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from training_kits import StylePackage

WORDS = """account address archive audit backup billing branch browser bucket build cache calendar certificate change channel
client cluster code color comment commit company config contact container content copy country create currency customer
dashboard data database date default delete delivery deploy description design device discount document domain download
draft edit email environment event export feature field file filter folder format general group header help history host
image import inbox index invoice issue item job key label language layout library license limit link list local location
log login member memory menu merge message method metric mobile model module monitor name network note number office
option order owner package page password payment period phone plan platform policy port preview price private process
product profile project public query queue quota range record region release remote report request reset result role
rule save schedule schema script search security select server service session setting share shipping size source
stage standard start state status storage style submit summary support sync system table tag target task team template
test theme time title token tool total transfer type update upload usage user value version view volume webhook week
window workspace zone OK Go Yes No Cancel Apply Close Next Back Done Retry Send Sign 24 7 2026 100 3.5 12:30 v2 50%""".split()
FONTS = (
    "Arial",
    "DejaVu Sans",
    "Liberation Sans",
    "DejaVu Serif",
    "Liberation Serif",
    "Noto Sans",
    "monospace",
    "system-ui",
    "Verdana",
)
ACCENTS = ("#0d6efd", "#2563eb", "#7c3aed", "#16a34a", "#dc2626", "#ea580c", "#0891b2", "#111827", "#db2777", "#0f766e", "#f59e0b", "#475569", "#1976d2", "#4caf50", "#000080")  # fmt: skip
GREYS = (
    "#ccc",
    "#ddd",
    "#bbb",
    "#999",
    "#767676",
    "#d1d5db",
    "#e5e7eb",
    "#ced4da",
    "#8c8c8c",
    "#adb5bd",
    "#555",
    "#dfe3e8",
)
LIGHT = ("#fff", "#fff", "#fff", "#fafafa", "#f8f9fa", "#f4f6f8", "#f0f2f5", "#eef1f6", "#e9ecef", "#fdf6e3")
DARK = ("#111", "#121212", "#1e1e1e", "#1f2430", "#0d1117", "#212529", "#2b3035", "#1a1f2b", "#282c34", "#0f172a")
TICKS = (
    "M2 8l4 4 8-9", "M3 8.5l3.2 3.2L13 5", "M4 8l3 3 5-6", "M1.5 8.5 6 13 14.5 3", "M3 3l10 10M13 3L3 13", "M3 8h10",
)  # fmt: skip
ICONS = (
    "M3 4h18M3 12h18M3 20h18", "M5 12h14M12 5v14", "M6 9l6 6 6-6",
    "M10 4a6 6 0 1 0 .01 0zM15 15l6 6", "M4 6h16v12H4zM4 6l8 7 8-7", "M12 2l3 7h7l-6 4 2 8-6-5-6 5 2-8-6-4h7z",
    "M5 5l14 14M19 5L5 19", "M4 12l6 6L20 6", "M12 4v12M6 11l6 6 6-6M4 21h16", "M3 11l9-8 9 8v10H3z",
    "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z", "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0",
    "M12 3v18M5 8h14M8 14h8",
)  # fmt: skip


LOOKS = 3  # of the controls of one page
ICON_FONTS = {  # the style sheet, what is before a name, and the pattern of a name
    "@fortawesome/fontawesome-free": ("css/all.min.css", "fa-solid ", r"\.(fa-[a-z0-9-]+)\{--fa:"),
    "bootstrap-icons": ("font/bootstrap-icons.min.css", "bi ", r"\.(bi-[a-z0-9-]+)::before"),
    "line-awesome": ("dist/line-awesome/css/line-awesome.min.css", "las ", r"\.(la-[a-z0-9-]+):before"),
    "primeicons": ("primeicons.css", "pi ", r"\.(pi-[a-z0-9-]+):before"),
    "@phosphor-icons/web": ("src/regular/style.css", "ph ", r"\.ph\.(ph-[a-z0-9-]+):before"),
    "remixicon": ("fonts/remixicon.css", "", r"\.(ri-[a-z0-9-]+):before"),
    "boxicons": ("css/boxicons.min.css", "bx ", r"\.(bxs?-[a-z0-9-]+):before"),
}
# Icons that look like a toggle, even to people.
TOGGLE_ICONS = re.compile(
    r"checkbox|radio|toggle|switch|check-?(square|circle)|(square|circle)-check|(circle|square|record|stop|dot|bulls)[a-z0-9-]*$"
)


class PageWriter:
    """Writes one page; all that is random comes from one seed."""

    def __init__(
        self, chance: random.Random, package: StylePackage, glyphs: tuple[str, Sequence[str]] | None, *, dark: bool
    ) -> None:
        self.chance, self.package, self.dark = chance, package, dark
        self.glyphs = glyphs  # what is before the name of an icon, and the names
        self.number = 0
        self.accent = chance.choice(ACCENTS)
        self.own_toggles = False
        self.own = False  # whether all is as the package draws it
        self.plain = not package.styles

    def name(self, least: int = 1, most: int = 3) -> str:
        words = " ".join(self.chance.choice(WORDS) for _ in range(self.chance.randint(least, most)))
        return words[:1].upper() + words[1:] if self.chance.random() < 0.8 else words

    def sentence(self) -> str:
        return self.name(5, 18) + "."

    def icon(self, size: int = 0) -> str:
        side = size or self.chance.choice((14, 16, 18, 20, 24, 28))
        if self.glyphs and self.chance.random() < 0.85:
            before, names = self.glyphs
            tint = f";color:{self.accent}" if self.chance.random() < 0.2 else ""
            return f'<i class="{before}{self.chance.choice(names)}" style="font-size:{side}px{tint}"></i>'
        fill = "currentColor" if self.chance.random() < 0.3 else "none"
        return (
            f'<svg width="{side}" height="{side}" viewBox="0 0 24 24" fill="{fill}" stroke="currentColor" '
            f'stroke-width="{self.chance.choice((1.5, 2, 2, 3))}"><path d="{self.chance.choice(ICONS)}"/></svg>'
        )

    def next_id(self) -> str:
        self.number += 1
        return f"i{self.number}"

    # -- controls

    def button(self, text: str = "") -> str:
        label = text or self.name(1, 2)
        if self.chance.random() < 0.15:
            label = f"{self.icon(14)} {label}" if self.chance.random() < 0.7 else f"{label} {self.icon(14)}"
        style = self.chance.choice(self.package.button)
        state = "disabled" if self.chance.random() < 0.14 else ""
        kind = self.chance.random()
        if kind < 0.12 and "<" not in label:
            return f'<input type="{self.chance.choice(("submit", "button", "reset"))}" class="{style}" value="{label}" {state}>'
        text = self.package.inside.format(text=label)
        if kind < 0.3 and style and not state:
            return f'<a href="#" class="{style}" role="button">{text}</a>'
        return f'<button type="button" class="{style}" {state}>{text}</button>'

    def field(self) -> str:
        state = "disabled" if self.chance.random() < 0.1 else ""
        kind = self.chance.random()
        width = self.chance.choice(("120px", "160px", "200px", "240px", "300px", "360px", "100%", "100%"))
        wide = f'style="width: {width}"' if self.chance.random() < 0.7 else ""
        if kind < 0.25:
            options = "".join(f"<option>{self.name(1, 3)}</option>" for _ in range(3))
            return self.surround(
                f'<select class="{self.package.select or self.package.field}" {state} {wide}>{options}</select>'
            )
        if kind < 0.31:
            return self.surround(
                f'<textarea rows="2" class="{self.package.field}" {state} {wide}>{self.name(0, 6)}</textarea>'
            )
        if kind < 0.38:  # drawn by elements that are none
            arrow = self.chance.choice(("▾", "▼", "⌄", self.icon(12)))
            side = 'style="width: 220px; display: flex; justify-content: space-between; align-items: center"'
            return f'<div role="combobox" class="x-combo {self.package.field}" {side}><span>{self.name(1, 3)}</span><span>{arrow}</span></div>'
        filled = self.chance.random()
        text = (
            f'value="{self.name(1, 4)}"'
            if filled < 0.4
            else f'placeholder="{self.name(1, 4)}"'
            if filled < 0.75
            else ""
        )
        kinds = ("text", "email", "search", "tel", "url", "password", "number", "date")
        which = self.chance.choice(kinds) if self.chance.random() < 0.5 else "text"
        if which in ("number", "date", "time"):
            text = 'value="42"' if which == "number" else 'value="2026-11-18"'
        return self.surround(f'<input type="{which}" class="{self.package.field}" {text} {state} {wide}>')

    def surround(self, field: str) -> str:
        return self.package.around.format(field=field)

    def group(self) -> str:
        """Write a field that is joined with a text, an icon or a button."""
        addon = f'<span class="x-addon">{self.chance.choice((self.icon(16), "@", "$", "https://", ".00", self.name(1, 1)))}</span>'
        parts = self.chance.choice(
            (
                (addon, self.field()),
                (self.field(), addon),
                (self.field(), self.button()),
                (addon, self.field(), self.button()),
            )
        )
        return f'<div class="x-joined">{"".join(parts)}</div>'

    def button_grid(self) -> str:
        """Write many buttons, in rows or joined."""
        style = self.chance.choice(("x-bar", "x-bar", "x-joined", "x-column"))
        short = self.chance.random() < 0.3
        names = [
            self.chance.choice("+ - A B 1 2 12 24 48 JD OK < > x S M L XL".split()) if short else ""
            for _ in range(self.chance.randint(4, 16))
        ]
        return f'<div class="{style}">{" ".join(self.button(name) for name in names)}</div>'

    def wells(self) -> str:
        """Write boxes with a short text that are no controls: columns of a grid, segments, notes."""
        across = self.chance.random() < 0.5
        boxes = "".join(
            f'<div class="x-well">{self.chance.choice((self.name(1, 2), self.name(1, 4), "", self.sentence()))}</div>'
            for _ in range(self.chance.randint(2, 5))
        )
        return f'<div class="{"x-wells" if across else ""}">{boxes}</div>'

    def pins(self) -> str:
        return f'<p class="x-bar">{"".join("<input type=text maxlength=1 class=x-pin>" for _ in range(6))}</p>'

    def filters(self) -> str:
        """Write a row of fields with a button."""
        return f'<div class="x-bar">{"".join(f"<div><small>{self.name(1, 2)}</small><br>{self.field()}</div>" for _ in range(self.chance.randint(2, 4)))}{self.button()}</div>'

    def toggle(self, kind: str, text: str | None = None) -> str:
        on, off = self.chance.random() < 0.5, self.chance.random() < 0.2
        state = ("checked " if on else "") + ("disabled" if off else "")
        label = self.name(1, 4) if text is None else text
        if self.own and not self.package.switch:
            kind = "checkbox" if kind == "switch" else kind
        if kind == "switch" and (self.own_toggles or not self.package.switch):
            return f'<label class="x-row x-switch-row"><input type="checkbox" role="switch" class="x-switch" {state}><span>{label}</span></label>'
        if self.own_toggles:
            return f'<label class="x-row"><input type="{kind}" class="x-{kind}" name="{self.next_id()}" {state}><span>{label}</span></label>'
        short, package = "radio" if kind == "radio" else "checkbox", self.package
        template = package.switch if kind == "switch" else package.radio if kind == "radio" else ""
        if kind == "switch" and 'role="switch"' not in template:  # else it may be made neither on nor off
            template = template.replace('type="checkbox"', 'type="checkbox" role="switch"')
        return (template or package.check).format(
            type=short, kind=short, id=self.next_id(), state=state, text=label, off="disabled" if off else "",
            kindshort="radio" if kind == "radio" else "check", tail="__label", data="checked" if on else "unchecked",
            classes=" ".join(f"is-{name}" for name in state.split()), aria=f'aria-checked="{str(on).lower()}"',
            marks=f"{package.checked if on else ''} {package.disabled if off else ''}",
        )  # fmt: skip

    def toggles(self, kind: str, count: int) -> str:
        wrap = "div" if self.chance.random() < 0.7 else "span style='margin-right: 14px'"
        tail = wrap.split()[0]
        return "".join(f"<{wrap}>{self.toggle(kind)}</{tail}>" for _ in range(count))

    def mix_indeterminate(self) -> str:
        return f'<script>for (const e of document.querySelectorAll("input[type=checkbox]:not([role=switch])")) if (Math.abs(Math.sin(e.getBoundingClientRect().top * 7)) < {self.chance.choice((0, 0, 0.1, 0.25))}) e.indeterminate = true</script>'

    # -- sections

    def form(self) -> str:
        mode = self.chance.random()
        rows = []
        for _ in range(self.chance.randint(2, 6)):
            kind = self.chance.random()
            if kind < 0.62:
                label = self.name(1, 3) + self.chance.choice(("", ":", " *"))
                between = "<br>" if mode < 0.6 else ""
                aside = 'style="display: inline-block; width: 120px"' if mode >= 0.6 else ""
                hint = f"<small>{self.name(3, 7)}</small>" if self.chance.random() < 0.2 else ""
                rows.append(f"<p><label {aside}>{label}</label>{between}{self.field()} {hint}</p>")
            elif kind < 0.8:
                rows.append(
                    self.toggles(self.chance.choice(("checkbox", "radio", "switch")), self.chance.randint(1, 3))
                )
            else:
                rows.append(f'<p class="x-group">{self.field()}{self.button()}</p>')
        rows.append(f"<p>{self.button()} {self.button()}</p>")
        return f"<form><h3>{self.name(1, 3)}</h3>{''.join(rows)}</form>"

    def toolbar(self) -> str:
        items: list[Callable[[], str]] = [
            self.button,
            self.button,
            self.button,
            self.field,
            self.iconbutton,
            self.badge,
        ]
        return f'<div class="x-bar">{" ".join(self.chance.choice(items)() for _ in range(self.chance.randint(3, 7)))}</div>'

    def iconbutton(self) -> str:
        return f'<button type="button" class="{self.chance.choice(self.package.button)}" aria-label="x">{self.icon()}</button>'

    def badge(self) -> str:
        text = self.name(1, 1) if self.chance.random() < 0.6 else str(self.chance.randint(1, 99))
        return f'<span class="{self.package.badge}">{text}</span>'

    def options(self) -> str:
        kind = self.chance.choice(("checkbox", "radio", "switch"))
        return f"<section><h4>{self.name(1, 3)}</h4>{self.toggles(kind, self.chance.randint(3, 7))}</section>"

    def settings(self) -> str:
        rows = "".join(
            f'<div class="x-setting"><div><b>{self.name(1, 3)}</b><br><small>{self.name(4, 9)}</small></div>'
            f"{self.toggle(self.chance.choice(('switch', 'switch', 'checkbox')), '')}</div>"
            for _ in range(self.chance.randint(2, 5))
        )
        return f'<div class="{self.package.card} x-wide">{rows}</div>'

    def toggle_row(self) -> str:
        """Write toggles of all kinds beside each other."""
        kinds = [self.chance.choice(("checkbox", "radio", "switch")) for _ in range(self.chance.randint(4, 9))]
        return (
            f'<div class="x-bar">{"".join(f"<div>{self.toggle(kind, self.name(1, 1))}</div>" for kind in kinds)}</div>'
        )

    def table(self) -> str:
        boxes, buttons, chosen = self.chance.random() < 0.35, self.chance.random() < 0.35, self.chance.random() < 0.4
        columns = self.chance.randint(3, 5)
        head = "".join(f"<th>{self.name(1, 2)}</th>" for _ in range(columns))
        count, rows = self.chance.randint(3, 7), []
        picked = self.chance.randrange(count)
        for at in range(count):
            cells = "".join(f"<td>{self.name(1, 2)}</td>" for _ in range(columns))
            first = f"<td>{self.toggle('checkbox', '')}</td>" if boxes else ""
            last = f"<td>{self.button()}</td>" if buttons else ""
            rows.append(f'<tr class="{"active x-chosen" if chosen and at == picked else ""}">{first}{cells}{last}</tr>')
        extra = ("<th></th>" if boxes else "", "<th></th>" if buttons else "")
        return f'<table class="table x-table"><thead><tr>{extra[0]}{head}{extra[1]}</tr></thead><tbody>{"".join(rows)}</tbody></table>'

    def tabs(self) -> str:
        if self.package.tabs and self.chance.random() < 0.6:
            count = self.chance.randint(3, 6)
            picked = self.chance.randrange(count)
            items = "".join(
                self.package.tab.format(
                    on=self.package.on if at == picked else "", text=self.name(1, 2),
                    selected=f'aria-selected="{str(at == picked).lower()}"',
                )
                for at in range(count)
            )  # fmt: skip
            return self.package.tabs.format(
                items=items, tabkind=self.chance.choice(("nav-tabs", "nav-pills", "nav-underline"))
            )
        return self.menu("x-tabs")

    def menu(self, style: str = "") -> str:
        count = self.chance.randint(3, 8)
        picked = self.chance.randrange(count) if self.chance.random() < 0.85 else -1
        off = self.chance.randrange(count) if self.chance.random() < 0.2 else -1
        with_icons = self.chance.random() < 0.35
        items = "".join(
            f'<li class="{"active" if at == picked else "disabled" if at == off else ""}"><a href="#">'
            f"{self.icon(16) + ' ' if with_icons else ''}{self.name(1, 2)}</a></li>"
            for at in range(count)
        )
        look = self.chance.choice(("fill", "tint", "mark", "under", "bold", "ink", "box", "tint", "pill", "fill"))
        return f'<ul class="{style or self.chance.choice(("x-menu", "x-menu", "x-tabs"))} x-look-{look}">{items}</ul>'

    def pagination(self) -> str:
        picked = self.chance.randint(1, 5)
        items = "".join(
            f'<li class="{"active" if at == picked else ""}"><a href="#">{at}</a></li>' for at in range(1, 7)
        )
        return f'<ul class="x-tabs x-pages x-look-{self.chance.choice(("fill", "box", "tint"))}">{items}</ul>'

    def list_group(self) -> str:
        count = self.chance.randint(3, 6)
        picked = self.chance.randrange(count) if self.chance.random() < 0.6 else -1
        items = "".join(
            f'<li class="{"active" if at == picked else ""}">{self.name(1, 4)} {self.badge() if self.chance.random() < 0.3 else ""}</li>'
            for at in range(count)
        )
        return f'<ul class="x-list x-look-{self.chance.choice(("fill", "tint"))}">{items}</ul>'

    def cards(self) -> str:
        def card() -> str:
            top = self.chance.choice((
                f"<h4>{self.name(1, 3)}</h4>", f'<div class="x-head">{self.name(1, 3)}</div>', f"<b>{self.chance.randint(10, 9999)}</b>",
                '<div class="x-image"></div>', f"{self.icon(24)}",
            ))  # fmt: skip
            body = f"<p>{self.sentence()}</p>" if self.chance.random() < 0.7 else self.name(1, 2)
            foot = self.button() if self.chance.random() < 0.4 else ""
            return f'<div class="{self.package.card}">{top}{body}{foot}</div>'

        return f'<div class="x-grid">{"".join(card() for _ in range(self.chance.randint(2, 4)))}</div>'

    def decoys(self) -> str:
        """Write what looks like a control and is none."""
        accent = self.accent
        ways: list[Callable[[], str]] = [
            lambda: f"<p>Press <kbd>Ctrl</kbd> + <kbd>{self.chance.choice('ABCXYZ')}</kbd> or <kbd>{self.chance.choice(('Esc', 'Enter', 'F5'))}</kbd> to {self.name(1, 3)}</p>",
            lambda: f"<pre><code>{self.name(2, 5)}\n  {self.name(2, 6)}\n{self.name(1, 3)}</code></pre>",
            lambda: f"<p>Use <code>{self.name(1, 2)}</code> for {self.sentence()}</p>",
            lambda: f'<div class="x-progress"><div style="width: {self.chance.randint(5, 95)}%">{self.chance.choice(("", "", "45%"))}</div></div>',
            lambda: f'<div class="x-alert">{self.sentence()}</div>',
            lambda: "".join(f'<span class="x-avatar" style="background: {self.chance.choice(ACCENTS)}">{self.chance.choice(("A", "JD", "MK", "?", "3", ""))}</span>' for _ in range(4)),
            lambda: "".join(f'<span class="x-dot" style="background: {self.chance.choice(ACCENTS)}"></span> {self.name(1, 2)} ' for _ in range(4)),
            lambda: "".join(f'<span class="x-swatch" style="background: {self.chance.choice(ACCENTS)}"></span> {self.name(1, 2)} ' for _ in range(4)),
            lambda: f"<ul>{''.join(f'<li>{self.name(2, 6)}</li>' for _ in range(4))}</ul>",
            lambda: f"<ul style='list-style: {self.chance.choice(('circle', 'square', 'disc'))}'>{''.join(f'<li>{self.name(1, 4)}</li>' for _ in range(4))}</ul>",
            lambda: " ".join(f"{self.icon()} {self.name(1, 2)}" for _ in range(5)),
            lambda: "".join(f"<div>{self.icon()} {self.name(1, 2)}</div>" for _ in range(4)),
            lambda: "".join(f"<div>{self.icon(side)} {self.name(1, 2)}</div>" for side in [self.chance.choice((14, 16, 18, 20, 24))] for _ in range(6)),
            lambda: "".join(f'<span class="x-tile">{self.icon(side)}</span> {self.name(1, 2)} ' for side in [self.chance.choice((12, 14, 16))] for _ in range(4)),
            lambda: " ".join(self.icon(side) for side in [self.chance.choice((14, 16, 20, 24, 32))] for _ in range(14)),
            lambda: f"<p>O {self.name(1, 2)} □ {self.name(1, 2)} ○ {self.name(1, 1)} ● {self.name(1, 1)} ■ {self.name(1, 1)} ✓ {self.name(1, 1)} ☐ {self.name(1, 1)} ☑ {self.name(1, 1)}</p>",
            lambda: " ".join(self.badge() for _ in range(6)),
            lambda: "".join(f'<p><span class="x-ring">{self.chance.choice("i ? ! 1 2 3 A B x + P T F M S".split())}</span> {self.name(1, 2)}</p>' for _ in range(3)),
            lambda: "".join(f'<span class="x-ring">{self.chance.choice(("i", "?", "!", "B", "1", "×", "+", ">", "✓"))}</span> {self.name(1, 2)} ' for _ in range(3)),
            lambda: f"<blockquote>{self.sentence()}</blockquote>",
            lambda: "".join(f'<span class="x-step">{at}</span> {self.name(1, 2)} ' for at in range(1, 5)),
            lambda: f'<div class="x-tiles">{"".join(f"<div>{at}</div>" for at in range(1, 15))}</div>',
            lambda: f'<div class="x-bars">{"".join(f"<i style=%sheight: {self.chance.randint(10, 90)}px; background: {accent}%s></i>" % (chr(34), chr(34)) for _ in range(8))}</div>',
            lambda: f'<div class="x-crumbs">{" / ".join(self.name(1, 1) for _ in range(4))}</div>',
            lambda: f'<div class="x-tip">{self.name(2, 5)}</div>',
            lambda: f'<span class="x-slider"><i style="left: {self.chance.randint(0, 80)}%"></i></span> {self.name(1, 2)}',
            lambda: f"<h2>{self.name(2, 5)}</h2><p>{self.sentence()} {self.sentence()}</p>",
            lambda: f"<dl><dt>{self.name(1, 2)}</dt><dd>{self.name(1, 3)}</dd><dt>{self.name(1, 2)}</dt><dd>{self.name(1, 3)}</dd></dl>",
            lambda: f'<div class="x-head x-wide">{self.name(1, 3)}</div>',
            self.gallery,
            self.gallery,
            self.calendar,
            self.people,
            self.people,
            lambda: "".join(f'<span class="x-swatch" style="background: {self.chance.choice(ACCENTS)}"></span>' for _ in range(12)),
            lambda: "".join(f'<div class="x-line"><span class="x-avatar">{self.chance.choice(("A", "JD", "MK", self.icon(14)))}</span> <b>{self.name(1, 2)}</b> <small>{self.name(2, 5)}</small></div>' for _ in range(3)),
            lambda: "".join(f'<div class="x-line">{self.chance.choice("✓✔✗✘★☆▲▼●")} {self.name(1, 3)}</div>' for _ in range(4)),
            lambda: f'<p>{"".join(self.chance.choice("★☆") for _ in range(5))} {self.name(1, 2)}</p>',
            lambda: "".join(f'<span class="x-chip">{self.name(1, 2)} ×</span> ' for _ in range(3)),
        ]  # fmt: skip
        return "".join(f"<div>{self.chance.choice(ways)()}</div>" for _ in range(self.chance.randint(1, 4)))

    def gallery(self) -> str:
        """Write a grid of icons, each with its name below it or beside it."""
        side, framed = self.chance.choice((16, 20, 24, 28, 32)), self.chance.choice(("", "x-framed"))
        between = self.chance.choice(("<br>", "<br>", " "))
        cells = "".join(
            f'<div class="{framed}">{self.icon(side)}{between}<small>{self.name(1, 1)}</small></div>' for _ in range(12)
        )
        return f'<div class="x-gallery">{cells}</div>'

    def people(self) -> str:
        """Write names with small pictures before them."""
        side, corner = self.chance.choice((20, 24, 28, 32, 40)), self.chance.choice(("50%", "6px", "0", "12px"))
        wide = self.chance.choice((side, side, round(1.5 * side)))
        return "".join(
            f'<div class="x-line"><span style="display: inline-block; width: {wide}px; height: {side}px; '
            f'border-radius: {corner}; vertical-align: middle; background: {self.photograph()}"></span> '
            f"<b>{self.name(1, 2)}</b> {self.name(1, 3)}</div>"
            for _ in range(4)
        )

    def photograph(self) -> str:
        """Return a background of several soft colours, as a small photograph has."""
        chance = self.chance
        spots = [
            f"radial-gradient(circle at {chance.randint(20, 80)}% {chance.randint(10, 90)}%, "
            f"hsl({chance.randint(0, 360)} {chance.randint(10, 60)}% {chance.randint(20, 85)}%) {chance.randint(8, 30)}%, transparent {chance.randint(31, 60)}%)"
            for _ in range(3)
        ]
        ground = f"linear-gradient(hsl({chance.randint(0, 360)} 30% {chance.randint(15, 90)}%), hsl({chance.randint(0, 360)} 40% {chance.randint(15, 90)}%))"
        return ", ".join([*spots, ground])

    def calendar(self) -> str:
        """Write the days of a month, one of them marked."""
        today = self.chance.randint(1, 28)
        days = "".join(f'<div class="{"x-today" if day == today else ""}">{day}</div>' for day in range(1, 29))
        return f'<b>{self.name(1, 1)} 2026</b><div class="x-days">{days}</div>'

    # -- the page

    def write(self, link: str) -> str:
        chance = self.chance
        sections: list[Callable[[], str]] = [
            self.form, self.form, self.toolbar, self.options, self.options, self.options, self.options, self.settings,
            self.settings, self.toggle_row, self.toggle_row, self.table, self.tabs, self.menu,
            self.menu, self.pagination, self.list_group, self.cards, self.decoys, self.decoys, self.decoys, self.button_grid,
            self.button_grid, self.wells, self.filters, self.group, self.group,
        ]  # fmt: skip
        if chance.random() < 0.05:
            sections = [*sections, self.pins]
        cells = [self.cell(chance.choice(sections)) for _ in range(chance.randint(7, 14))]
        side = (
            f'<div class="x-side">{self.menu("x-menu")}{self.menu("x-menu") if chance.random() < 0.3 else ""}</div>'
            if chance.random() < 0.4
            else ""
        )
        top = (
            f'<div class="x-top">{self.name(1, 2)} {self.menu("x-tabs")} {self.field() if chance.random() < 0.4 else ""}</div>'
            if chance.random() < 0.4
            else ""
        )
        width = chance.choice((300, 360, 420, 560))
        body = f'{top}<div class="x-page">{side}<div class="x-main" style="column-width: {width}px">{"".join(cells)}</div></div>'
        return f'<!DOCTYPE html><html data-bs-theme="{"dark" if self.dark else "light"}" data-theme="{"dark" if self.dark else "light"}"><meta charset="utf-8">{link}<style>{self.package.more}{self.write_style()}</style><body {self.package.body.format(scheme="dark" if self.dark else "light")}>{body}{"" if self.own else self.mix_indeterminate()}'

    def cell(self, section: Callable[[], str]) -> str:
        """Write a section in one of the page's looks; the first look of a package's page is the package's own."""
        look = self.chance.randrange(LOOKS)
        self.own_toggles = not self.own and self.chance.random() < (0.75 if self.plain else 0.25)
        return f'<div class="x-cell x-v{look}">{section()}</div>'

    def write_style(self) -> str:
        chance, accent = self.chance, self.accent
        ink, line, soft, ground = self.pick_colours()
        rules = [
            self.style_layout(ink, line, soft, ground),
            self.style_menus(ink, line, soft),
            self.style_tables(line, soft),
            *(self.style_toggles(f".x-v{look} ", line, ground) for look in range(LOOKS)),
        ]
        if self.plain or chance.random() < 0.25:
            rules.append(
                f"html,body{{background:{ground};color:{ink};margin:0}}a{{color:{chance.choice((accent, ink))}}}"
            )
        if self.own:
            return "".join(rules)
        if self.plain or chance.random() < 0.5:
            rules.append(
                f"body{{font-family:{chance.choice(FONTS)!r};font-size:{chance.choice((12, 13, 14, 15, 16, 16, 17, 18))}px}}"
            )
        rules += [
            self.style_controls(f".x-v{look} ", ink, line, soft, ground)
            for look in range(LOOKS)
            if chance.random() < (0.85 if self.plain else 0.3 * look)
        ]
        return "".join(rules)

    def pick_colours(self) -> tuple[str, str, str, str]:
        """Return the colours of text, borders, soft areas and the background."""
        chance = self.chance
        ground = chance.choice(DARK if self.dark else LIGHT)
        ink = (
            chance.choice(("#eee", "#ddd", "#c9d1d9", "#fff"))
            if self.dark
            else chance.choice(("#111", "#222", "#333", "#212529", "#444", "#1f2937"))
        )
        line = (
            chance.choice(("#444", "#555", "#30363d", "#666", "#495057", "#3a3f4b"))
            if self.dark
            else chance.choice(GREYS)
        )
        soft = (
            chance.choice(("#2a2f3a", "#333", "#252525", "#161b22"))
            if self.dark
            else chance.choice(("#f1f3f5", "#eee", "#e9ecef", "#f6f8fa", "#e3e8ef", "#fff"))
        )
        return ink, line, soft, ground

    def style_layout(self, ink: str, line: str, soft: str, ground: str) -> str:
        """Return the rules of what surrounds controls, and of what looks like one."""
        chance, accent = self.chance, self.accent
        return (
            f".x-page{{display:flex;gap:16px}}.x-side{{width:{chance.choice((160, 200, 240))}px;flex:none;background:{(side := chance.choice((soft, ground, '#222', '#1e293b', accent)))};color:{ink if side in (soft, ground) else chance.choice(('#fff', '#ccc', '#aab'))};padding:{chance.choice((0, 8, 8, 16))}px}}"
            f".x-main{{flex:1;padding:{chance.choice((8, 16, 24))}px;column-gap:{chance.choice((16, 24, 32))}px}}.x-cell{{break-inside:avoid;margin-bottom:16px}}"
            f".x-top{{display:flex;align-items:center;gap:16px;padding:6px 16px;background:{chance.choice((accent, soft, '#222'))};color:{'#fff' if chance.random() < 0.5 else ink}}}"
            f".x-bar,.x-group{{display:flex;flex-wrap:wrap;gap:{chance.choice((0, 4, 8, 12))}px;align-items:{chance.choice(('center', 'stretch'))}}}"
            f".x-grid{{display:grid;grid-template-columns:1fr 1fr;gap:12px}}.x-card{{border:{chance.choice((0, 1, 1, 2))}px solid {line};background:{soft};padding:12px;border-radius:{chance.choice((0, 4, 8, 12))}px;box-shadow:{chance.choice(('none', '0 1px 4px #0003', '0 4px 12px #0002'))}}}"
            f".x-head{{background:{chance.choice((soft, accent, line))};padding:8px 12px;border:1px solid {line};margin:-1px}}.x-image{{height:80px;background:linear-gradient(45deg,{accent},{line})}}"
            f".x-joined{{display:flex;align-items:stretch;margin:6px 0}}.x-pin{{width:40px!important;text-align:center}}.x-column{{display:flex;flex-direction:column;gap:4px;align-items:flex-start}}"
            f".x-addon{{padding:4px 10px;border:{chance.choice((0, 1, 1))}px solid {line};background:{soft};display:flex;align-items:center}}"
            f".x-wells{{display:flex;gap:{chance.choice((0, 8, 12))}px}}.x-wells>*{{flex:1}}.x-well{{background:{chance.choice((soft, ground, soft))};border:{chance.choice((0, 1, 1))}px solid {line};padding:{chance.choice((4, 8, 12, 16))}px;margin:{chance.choice((0, 4, 8))}px 0;min-height:1em;text-align:{chance.choice(('left', 'left', 'center'))};border-radius:{chance.choice((0, 0, 4, 8))}px}}"
            f".x-setting{{display:flex;justify-content:space-between;align-items:center;padding:8px;border-bottom:1px solid {line}}}"
            f".x-row{{display:inline-flex;align-items:center;gap:{chance.choice((4, 6, 8, 10))}px;margin:{chance.choice((2, 4, 6))}px 0}}"
            f".x-badge,.x-chip{{display:inline-block;background:{chance.choice((accent, line, soft))};color:{chance.choice(('#fff', ink))};padding:{chance.choice(('1px 6px', '2px 8px', '3px 10px', '4px 12px'))};border-radius:{chance.choice((2, 4, 10, 99))}px;font-size:{chance.choice((10, 11, 12, 13))}px;border:{chance.choice((0, 0, 1))}px solid {line}}}"
            f"kbd{{border:1px solid {line};border-radius:3px;padding:1px 5px;background:{soft};color:{ink};font-size:12px}}"
            f".x-progress{{height:{chance.choice((4, 8, 12, 16, 22))}px;background:{line};border-radius:{chance.choice((0, 4, 99))}px;overflow:hidden;margin:8px 0}}.x-progress div{{background:{accent};height:100%;color:#fff;font-size:11px;text-align:center}}"
            f".x-alert,.x-tip{{background:{soft};border:{chance.choice((0, 1, 1))}px solid {accent};border-radius:{chance.choice((0, 4, 8))}px;padding:{chance.choice((6, 10, 14))}px 14px;margin:6px 0}}.x-tip{{display:inline-block;background:#222;color:#fff}}"
            f".x-avatar,.x-step{{display:inline-flex;width:{chance.choice((20, 24, 28, 32, 40))}px;aspect-ratio:1;border-radius:{chance.choice(('50%', '50%', '6px'))};background:{accent};color:#fff;align-items:center;justify-content:center;font-size:12px;margin:3px}}"
            f".x-tile{{display:inline-flex;width:{chance.choice((20, 24, 28, 32))}px;aspect-ratio:1;align-items:center;justify-content:center;border-radius:{chance.choice((0, 4, 6, 8, 99))}px;background:{chance.choice((soft, accent))};color:{chance.choice(('#fff', ink))};box-shadow:{chance.choice(('none', '0 2px 5px #0003'))};border:{chance.choice((0, 0, 1))}px solid {line}}}"
            f".x-ring{{display:inline-flex;width:{chance.choice((16, 18, 20, 22, 24))}px;aspect-ratio:1;align-items:center;justify-content:center;border:{chance.choice((1, 1, 1.5, 2))}px solid {chance.choice((line, accent, ink))};border-radius:{chance.choice(('50%', '50%', '3px', '0'))};font-size:{chance.choice((11, 12, 13, 14))}px}}"
            f".x-dot{{display:inline-block;width:{chance.choice((6, 8, 10, 12, 14))}px;aspect-ratio:1;border-radius:50%;background:{accent}}}.x-swatch{{display:inline-block;width:{chance.choice((10, 12, 14, 16, 20))}px;aspect-ratio:{chance.choice((1, 1, 2))};background:{accent};border-radius:{chance.choice((0, 2, 3))}px}}"
            f".x-tiles{{display:grid;grid-template-columns:repeat(7,{chance.choice((28, 34, 40))}px)}}.x-tiles div{{border:{chance.choice((0, 1))}px solid {line};text-align:center;padding:4px}}.x-bars{{display:flex;gap:6px;align-items:end;height:100px}}.x-bars i{{width:18px}}"
            f".x-gallery{{display:grid;grid-template-columns:repeat({chance.choice((4, 6, 6))},1fr);gap:{chance.choice((2, 6, 12))}px;text-align:center}}.x-framed{{border:1px solid {line};padding:6px;border-radius:{chance.choice((0, 3, 6))}px}}.x-line{{padding:{chance.choice((2, 5, 8))}px 0}}"
            f".x-days{{display:grid;grid-template-columns:repeat(7,{chance.choice((24, 30, 36))}px)}}.x-days div{{text-align:center;padding:{chance.choice((2, 5))}px}}.x-days .x-today{{background:{accent};color:#fff;border-radius:{chance.choice((0, 4, 99))}px}}"
            f".x-slider{{position:relative;display:inline-block;width:120px;height:6px;border-radius:9px;background:{line}}}.x-slider i{{position:absolute;top:-5px;width:16px;height:16px;border-radius:50%;background:{accent}}}"
        )

    def style_controls(self, home: str, ink: str, line: str, soft: str, ground: str) -> str:
        chance, accent = self.chance, self.accent
        radius, thick = chance.choice((0, 2, 3, 4, 6, 8, 12, 20, 999)), chance.choice((1, 1, 1, 1.5, 2, 2, 3))
        pad = chance.choice(("2px 8px", "4px 10px", "6px 12px", "8px 16px", "10px 20px", "12px 24px", "5px 30px"))
        gradient = f"linear-gradient({accent},{chance.choice(ACCENTS)})" if chance.random() < 0.15 else "none"
        if chance.random() < 0.15:
            gradient = f"linear-gradient({soft},{line})"
        looks = [
            f"background:{accent};color:#fff;border:0", f"background:{soft};color:{ink};border:{thick}px solid {line}",
            f"background:transparent;color:{accent};border:{thick}px solid {accent}", f"background:{soft};color:{ink};border:0",
            f"background:{accent};color:#fff;border:{thick}px solid {chance.choice(ACCENTS)}",
            f"background:{accent};background-image:{gradient};color:#fff;border:1px solid {line}",
        ]  # fmt: skip
        one, other = chance.sample(looks, 2)
        family = chance.choice(("inherit", "inherit", "Arial"))
        button = f"{home}:is(button:not([role]),input[type=submit],input[type=button],input[type=reset]){{{one};border-radius:{radius}px;padding:{pad};font-family:{family};font-size:{chance.choice((12, 13, 14, 15, 16))}px;box-shadow:{chance.choice(('none', 'none', '0 1px 2px #0004', '0 2px 6px #0005'))};text-transform:{chance.choice(('none', 'none', 'none', 'uppercase'))}}}"
        button += f"{home}button:not([role]):nth-of-type(even){{{other}}}{home}:is(button,input):disabled{{{self.fade(line, soft)}}}"
        box = chance.random()
        border = f"border:{thick}px solid {line};background:{chance.choice((ground, soft, '#fff' if not self.dark else '#000'))}"
        if box < 0.12:
            border = f"border:0;border-bottom:{thick}px solid {line};background:{soft}"
        elif box < 0.22:
            border = f"border:0;background:{soft}"
        field = f"{home}:is(input:not([type=checkbox]):not([type=radio]):not([type=submit]):not([type=button]):not([type=reset]),select,textarea,.x-combo){{{border};color:{ink};border-radius:{min(radius, 24)}px;padding:{chance.choice(('2px 4px', '4px 8px', '6px 10px', '8px 12px', '10px 14px'))};font-family:{family};font-size:{chance.choice((13, 14, 15, 16))}px;max-width:100%}}"
        field += f"{home}:is(input:not([type=button]),select):disabled{{{self.fade(line, soft)}}}"
        parts = [button if chance.random() < 0.85 else "", field if chance.random() < 0.85 else ""]
        return "".join(parts)

    def fade(self, line: str, soft: str) -> str:
        """Return how something disabled is drawn: by opacity, or in greys."""
        chance = self.chance
        if chance.random() < 0.5:
            return f"opacity:{chance.choice((0.25, 0.3, 0.38, 0.4, 0.5, 0.5, 0.6, 0.65, 0.7))}"
        grey = chance.choice(("#555", "#666", "#777") if self.dark else ("#888", "#999", "#aaa", "#bbb"))
        ground = chance.choice((soft, line, "#eee" if not self.dark else "#2a2a2a"))
        return f"color:{grey};background:{ground};border-color:{line};box-shadow:none"

    def style_menus(self, ink: str, line: str, soft: str) -> str:
        chance, accent = self.chance, self.accent
        tint = f"{accent}{chance.choice(('1a', '26', '33', '40'))}"
        pad = chance.choice(("4px 8px", "6px 12px", "8px 16px", "10px 14px"))
        return (
            f".x-menu,.x-tabs,.x-list{{list-style:none;padding:4px;margin:0}}.x-tabs{{display:flex;flex-wrap:wrap;border-bottom:{chance.choice((0, 0, 1))}px solid {line};gap:{chance.choice((0, 0, 4, 8))}px}}"
            f".x-menu a,.x-tabs a{{display:block;text-decoration:none;color:inherit;padding:{pad};border-radius:{chance.choice((0, 0, 4, 8, 99))}px}}.x-list li{{border:1px solid {line};padding:{pad};margin-top:-1px;list-style:none}}"
            f".x-pages li a{{border:{chance.choice((0, 1))}px solid {line}}}li.disabled a{{opacity:{chance.choice((0.4, 0.5))}}}"
            f".x-look-fill .active>a,.x-list.x-look-fill .active{{background:{accent};color:#fff}}.x-look-tint .active>a,.x-list.x-look-tint .active{{background:{tint};color:{chance.choice((accent, ink))}}}"
            f".x-look-mark .active>a{{border-left:{chance.choice((3, 4))}px solid {accent};color:{accent};background:{chance.choice((tint, 'transparent'))}}}.x-look-under .active>a{{border-bottom:{chance.choice((2, 3))}px solid {accent};border-radius:0;color:{chance.choice((accent, ink))}}}"
            f".x-look-bold .active>a{{font-weight:bold;color:{chance.choice((accent, ink))}}}.x-look-ink .active>a{{color:{accent}}}.x-look-pill{{background:{soft};border-radius:8px}}.x-look-pill .active>a{{background:{chance.choice((accent, '#fff' if not self.dark else '#555'))};color:{ink};box-shadow:0 1px 3px #0004}}.x-look-box .active>a{{border:1px solid {line};border-bottom-color:transparent;background:{soft}}}"
        )

    def style_tables(self, line: str, soft: str) -> str:
        chance = self.chance
        cell = chance.choice((f"border:1px solid {line}", f"border-bottom:1px solid {line}", "border:0"))
        stripe = f".x-table tbody tr:nth-child(even){{background:{soft}}}" if chance.random() < 0.3 else ""
        return (
            f".x-table{{border-collapse:collapse}}.x-table td,.x-table th{{{cell};padding:{chance.choice((3, 6, 8, 10))}px 10px;text-align:left}}"
            f".x-table th{{background:{chance.choice(('transparent', soft, line))}}}{stripe}.x-table tr.x-chosen,.x-table tr.x-chosen td{{background:{self.accent}{chance.choice(('22', '33', '55', ''))}}}"
        )

    def style_toggles(self, home: str, line: str, ground: str) -> str:
        return self.style_boxes(home, line, ground) + self.style_switches(home, line, ground)

    def pick_pair(self, ground: str, line: str) -> tuple[str, str]:
        """Return the colour of what is on, and one that is clear on it."""
        dark = self.chance.choice(("#fff", "#fff", "#fff", "#f8f8f8"))
        pairs = [(self.accent, dark)] * 4 + [(self.chance.choice(ACCENTS), dark)] * 2
        pairs += (
            [("#eee", "#111"), ("#9ecbff", "#06264d"), ("#bb86fc", "#222")]
            if self.dark
            else [("#111", "#fff"), ("#555", "#fff")]
        )
        return self.chance.choice(pairs)

    def style_boxes(self, home: str, line: str, ground: str) -> str:
        """Return the rules of check boxes and radio buttons."""
        chance = self.chance
        accent, mark = self.pick_pair(ground, line)
        side = chance.choice((12, 13, 14, 15, 16, 16, 16, 17, 18, 18, 20, 20, 22, 24, 26, 30, 36, 40))
        edge = chance.choice((1, 1, 1, 1.5, 2, 2, 3))
        strong = chance.choice((line, line, accent, "#888", "#666" if not self.dark else "#aaa"))
        filled = chance.random() < 0.6
        drawn = mark if filled else accent
        tick = chance.choice(TICKS[:4] if chance.random() < 0.85 else TICKS)
        image = f"url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='{tick}' fill='none' stroke='{drawn.replace('#', '%23')}' stroke-width='{chance.choice((1.5, 2, 2.5, 3))}' stroke-linecap='{chance.choice(('butt', 'round'))}'/%3E%3C/svg%3E\")"
        soft = "#f1f1f1" if not self.dark else "#3a3a3a"
        inner = chance.choice((ground, "transparent", "#fff" if not self.dark else "#222", soft))
        shade = chance.choice((
            "none", "none", "none", "none", "inset 1px 1px 0 #0006,inset -1px -1px 0 #fff", "0 1px 2px #0004",
            f"0 0 0 3px {accent}33", "inset 0 1px 2px #0003",
        ))  # fmt: skip
        base = f"appearance:none;box-sizing:border-box;width:{side}px;height:{side}px;flex:none;margin:0;border:{edge}px solid {strong};background:{inner};box-shadow:{shade}"
        corner = chance.choice(("0", "2px", "3px", "4px", "6px", "25%", "50%" if chance.random() < 0.3 else "3px"))
        rules = [
            f"input.x-checkbox{{{base};border-radius:{corner}}}",
            f"input.x-checkbox:checked{{background:{accent if filled else inner} {image} center/{chance.choice((65, 75, 85, 100))}% no-repeat;border-color:{accent}}}",
            f"input.x-checkbox:indeterminate{{background:linear-gradient({accent},{accent}) center/60% 2px no-repeat}}",
        ]
        special = chance.random()
        if special < 0.06:  # a tick without its box
            rules.append(
                f"input.x-checkbox:checked{{background:{image.replace('white', accent.replace('#', '%23'))} center/100% no-repeat;border-color:transparent}}"
            )
        elif special < 0.16:  # a full square inside, as some have
            rules.append(
                f"input.x-checkbox:checked{{background:linear-gradient({accent},{accent}) center/60% 60% no-repeat;border-color:{strong}}}"
            )
        if chance.random() < 0.4:  # neither on nor off, on a filled box
            rules.append(
                f"input.x-checkbox:indeterminate{{background:linear-gradient({mark},{mark}) center/{chance.choice((50, 60, 70))}% {chance.choice((2, 3))}px no-repeat {accent};border-color:{accent}}}"
            )
        dot = chance.choice((25, 30, 35, 40, 45, 50))
        ring = round(side * chance.choice((0.2, 0.25, 0.3, 0.33)))
        rules += [f"input.x-radio{{{base};border-radius:50%}}", chance.choice((
            f"input.x-radio:checked{{border-color:{accent};background:radial-gradient({accent} {dot}%,transparent {dot + 6}%)}}",
            f"input.x-radio:checked{{border-color:{chance.choice((accent, strong))};background:radial-gradient({accent} {dot}%,{inner} {dot + 6}%)}}",
            f"input.x-radio:checked{{border-color:{accent};background:radial-gradient({mark} {dot - 8}%,{accent} {dot - 2}%)}}",
            f"input.x-radio:checked{{border:{ring}px solid {accent};background:{mark}}}",
        ))]  # fmt: skip
        off = self.fade_toggle()
        rules.append(f":is(input.x-checkbox,input.x-radio):disabled{{{off}}}")
        rules.append(
            f"input:disabled+span{{{chance.choice(('opacity:.4', 'opacity:.5', 'opacity:.6', 'color:#999', 'opacity:1'))}}}"
        )
        return "".join(home + rule for rule in rules)

    def fade_toggle(self) -> str:
        return f"opacity:{self.chance.choice((0.25, 0.35, 0.4, 0.5, 0.5, 0.6))}"

    def style_switches(self, home: str, line: str, ground: str) -> str:
        """Return the rules of switches: a track, and a knob at its left or right end, each in its own colours."""
        chance = self.chance
        accent, mark = self.pick_pair(ground, line)
        tall = chance.choice((12, 14, 16, 18, 20, 20, 22, 24, 24, 26, 28, 32))
        wide = round(tall * chance.choice((1.5, 1.6, 1.75, 1.8, 2, 2, 2.2, 2.4)))
        gap = chance.choice((0, 1, 2, 2, 2, 3, 4)) if tall > 14 else chance.choice((0, 1, 2))
        greys = (
            ("#555", "#666", "#3a3f4b", "#444") if self.dark else ("#bbb", "#ccc", "#999", "#ddd", "#e5e5e5", "#e9e9ea")
        )
        track, edge = chance.choice((line, *greys)), chance.choice((0, 0, 0, 1, 1, 2))
        strong = chance.choice((line, "#888", accent, "#666" if not self.dark else "#aaa"))
        knob_off = chance.choice(("#fff", "#fff", "#f4f4f4", ground, "#aaa", "#222" if self.dark else "#fff"))
        if chance.random() < 0.3:  # an outline with a knob of the outline's colour
            track, edge, knob_off = chance.choice((ground, "transparent")), chance.choice((1, 1, 2)), strong
        knob_on = chance.choice((mark, mark, mark, knob_off))
        small = chance.choice((0, 0, 0, 0, 4, 6)) if tall >= 20 else 0  # how much smaller the knob is where it is off
        side = tall - 2 * gap - 2 * edge
        radius = chance.choice((99, 99, 99, 99, 4, 2, 0))
        corner = "50%" if radius == 99 or chance.random() < 0.2 else f"{max(0, radius - 1)}px"
        fill = f"background:{accent};border-color:{accent}"
        if chance.random() < 0.12:  # only the knob is in colour
            fill, knob_on = f"border-color:{strong}", accent
        over = 0
        if chance.random() < 0.18:  # a knob that is higher than its track
            over, gap, small, side = round(tall * 0.25), 0, 0, tall
            fill, knob_on = f"background:{accent}{chance.choice(('80', '66', ''))}", chance.choice((accent, "#fff"))
        rules = [
            f"input.x-switch{{appearance:none;box-sizing:border-box;position:relative;width:{wide}px;height:{tall - 2 * over}px;flex:none;margin:{over}px 2px;border-radius:{radius}px;border:{edge}px solid {strong};background:{track};box-shadow:{chance.choice(('none', 'none', 'none', 'inset 0 1px 3px #0005'))}}}",
            f"input.x-switch::after{{content:'';position:absolute;box-sizing:border-box;top:50%;left:{gap + small / 2}px;transform:translateY(-50%);width:{side - small}px;height:{side - small}px;border-radius:{corner};background:{knob_off};box-shadow:{chance.choice(('none', 'none', '0 1px 3px #0006', f'0 0 0 1px {strong}'))}}}",
            f"input.x-switch:checked{{{fill}}}",
            f"input.x-switch:checked::after{{width:{side}px;height:{side}px;left:calc(100% - {side + gap}px);background:{knob_on}}}",
            f"input.x-switch:disabled{{{self.fade_toggle()}}}",
        ]
        if chance.random() < 0.12 and wide >= 36:  # a word or a sign in the track
            word, other = chance.choice((("ON", "OFF"), ("I", "O"), ("✓", "×")))
            rules.append(
                f"input.x-switch::before{{content:'{other}';position:absolute;font:{round(tall * 0.4)}px Arial;right:{round(tall * 0.2)}px;top:50%;transform:translateY(-50%);color:{'#ddd' if self.dark else '#555'}}}{home}input.x-switch:checked::before{{content:'{word}';right:auto;left:{round(tall * 0.2)}px;color:{mark}}}"
            )
        return "".join(home + rule for rule in rules)


def write_page(
    name: str, package: StylePackage, number: int, fonts: Mapping[str, Sequence[str]], *, own: bool = False
) -> str:
    """Return the HTML of one page; the package is beside it in `package/`, and icons with these names in `icons/`.

    With `own`, no control is drawn in another way than the package does.
    """
    chance = random.Random(f"{name} {number}")
    dark = chance.random() < 0.3
    font = chance.choice(list(ICON_FONTS)) if chance.random() < 0.6 else ""
    writer = PageWriter(chance, package, (ICON_FONTS[font][1], fonts[font]) if font else None, dark=dark)
    writer.own = own
    styles = [f"package/{sheet}" for sheet in chance.choice(package.styles).split()] if package.styles else []
    styles += [f"icons/{font}/{ICON_FONTS[font][0]}"] if font else []
    return writer.write("".join(f'<link rel="stylesheet" href="{style}">' for style in styles))


def list_icons(font: str, home: Path) -> list[str]:
    """Return the names of the icons of a package."""
    style, _, pattern = ICON_FONTS[font]
    names = set(re.findall(pattern, (home / style).read_text()))
    return sorted(name for name in names if not TOGGLE_ICONS.search(name))
