"""Write random pages of controls around style packages, from which the recogniser of controls is trained.

A page is a package's style sheet, or none, with random overrides of it (borders, corners, paddings, fonts, colours) and
random sections: forms, tool bars, menus, tabs, lists, tables, and much that looks like a control and is none.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    "M3 4h18M3 12h18M3 20h18", "M4 4h16v16H4z", "M12 3a9 9 0 1 0 .01 0z", "M5 12h14M12 5v14", "M6 9l6 6 6-6",
    "M10 4a6 6 0 1 0 .01 0zM15 15l6 6", "M4 6h16v12H4zM4 6l8 7 8-7", "M12 2l3 7h7l-6 4 2 8-6-5-6 5 2-8-6-4h7z",
    "M5 5l14 14M19 5L5 19", "M4 12l6 6L20 6", "M12 4v12M6 11l6 6 6-6M4 21h16", "M3 11l9-8 9 8v10H3z",
    "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z", "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0",
    "M3 7a4 4 0 0 1 4-4h10a4 4 0 0 1 4 4v10a4 4 0 0 1-4 4H7a4 4 0 0 1-4-4z", "M12 3v18M5 8h14M8 14h8",
)  # fmt: skip


ICON_FONTS = {  # the style sheet, what is before a name, and the pattern of a name
    "@fortawesome/fontawesome-free": ("css/all.min.css", "fa-solid ", r"\.(fa-[a-z0-9-]+)\{--fa:"),
    "bootstrap-icons": ("font/bootstrap-icons.min.css", "bi ", r"\.(bi-[a-z0-9-]+)::before"),
    "@mdi/font": ("css/materialdesignicons.min.css", "mdi ", r"\.(mdi-[a-z0-9-]+)::before"),
    "remixicon": ("fonts/remixicon.css", "", r"\.(ri-[a-z0-9-]+):before"),
    "boxicons": ("css/boxicons.min.css", "bx ", r"\.(bxs?-[a-z0-9-]+):before"),
}
# Icons that look like a toggle, even to people.
TOGGLE_ICONS = re.compile(
    r"checkbox|radio|toggle|switch|check-?(square|circle)|(square|circle)-check|(circle|square|record|stop|dot|bulls)[a-z0-9-]*$"
)


@dataclass(frozen=True)
class StylePackage:
    """The style sheets of a package, and the classes and markup that it documents; plain HTML where it has none."""

    styles: tuple[str, ...] = ()
    button: tuple[str, ...] = ("",)
    field: str = ""
    select: str = ""
    check: str = '<label><input type="{type}" name="{id}" {state}> {text}</label>'
    switch: str = ""
    card: str = "x-card"
    badge: str = "x-badge"
    tabs: str = ""  # the items of a row of tabs, around {items}
    tab: str = ""  # one of them, with {on} where it is active and {text}
    on: str = "active"


BOOTSTRAP = {
    "button": ("btn btn-primary", "btn btn-secondary", "btn btn-outline-primary", "btn btn-light", "btn btn-danger", "btn btn-success btn-sm", "btn btn-outline-secondary btn-lg", "btn btn-info", "btn btn-dark", "btn btn-warning"),
    "field": "form-control", "select": "form-select",
    "check": '<div class="form-check"><input class="form-check-input" type="{type}" id="{id}" {state}><label class="form-check-label" for="{id}">{text}</label></div>',
    "switch": '<div class="form-check form-switch"><input class="form-check-input" type="checkbox" role="switch" id="{id}" {state}><label class="form-check-label" for="{id}">{text}</label></div>',
    "card": "card card-body", "badge": "badge bg-secondary",
    "tabs": '<ul class="nav {tabkind}">{items}</ul>', "tab": '<li class="nav-item"><a class="nav-link {on}" href="#">{text}</a></li>',
}  # fmt: skip
THEMES = "cerulean cosmo cyborg darkly flatly journal litera lumen lux materia minty morph pulse quartz sandstone simplex sketchy slate solar spacelab superhero united vapor yeti zephyr".split()
PLAIN_BUTTON = ("",)
PACKAGES: dict[str, StylePackage] = {
    "": StylePackage(),
    "water.css": StylePackage(("out/light.css", "out/dark.css")),
    "mvp.css": StylePackage(("mvp.css",)),
    "sakura.css": StylePackage(("css/sakura.css", "css/sakura-dark.css", "css/sakura-vader.css", "css/sakura-ink.css")),
    "@exampledev/new.css": StylePackage(("new.css",)),
    "simpledotcss": StylePackage(("simple.min.css",)),
    "holiday.css": StylePackage(("dist/holiday.css",)),
    "awsm.css": StylePackage(("dist/awsm.min.css", "dist/awsm_theme_black.min.css", "dist/awsm_theme_gondola.min.css")),
    "tacit-css": StylePackage(("dist/tacit-css.min.css",)),
    "bamboo.css": StylePackage(("dist/bamboo.min.css", "dist/dark.min.css", "dist/light.min.css")),
    "marx-css": StylePackage(("css/marx.min.css",)),
    "chota": StylePackage(("dist/chota.min.css",), ("button primary", "button outline", "button", "button error", "button secondary"), tabs='<nav class="tabs">{items}</nav>', tab='<a class="{on}" href="#">{text}</a>', card="card", badge="tag"),
    "purecss": StylePackage(("build/pure-min.css",), ("pure-button", "pure-button pure-button-primary", "pure-button pure-button-active"), tabs='<div class="pure-menu pure-menu-horizontal"><ul class="pure-menu-list">{items}</ul></div>', tab='<li class="pure-menu-item {on}"><a href="#" class="pure-menu-link">{text}</a></li>', on="pure-menu-selected active"),
    "skeleton-css": StylePackage(("css/skeleton.css",), ("", "button-primary")),
    "@primer/css": StylePackage(("dist/primer.css",), ("btn", "btn btn-primary", "btn btn-danger", "btn btn-outline", "btn btn-sm"), "form-control", "form-select", tabs='<div class="UnderlineNav"><div class="UnderlineNav-body">{items}</div></div>', tab='<a class="UnderlineNav-item {on}" href="#">{text}</a>', on="selected", card="Box p-3", badge="Label"),
    "nes.css": StylePackage(("css/nes.min.css",), ("nes-btn", "nes-btn is-primary", "nes-btn is-success", "nes-btn is-error"), "nes-input", "", '<label><input type="{type}" class="nes-{kind}" name="{id}" {state}><span>{text}</span></label>', card="nes-container"),
    "xp.css": StylePackage(("dist/XP.css", "dist/98.css"), check='<div class="field-row"><input type="{type}" id="{id}" {state}><label for="{id}">{text}</label></div>', tabs='<menu role="tablist">{items}</menu>', tab='<button role="tab" {selected}>{text}</button>'),
    "7.css": StylePackage(("dist/7.css",), check='<div class="field-row"><input type="{type}" id="{id}" {state}><label for="{id}">{text}</label></div>', tabs='<section class="tabs"><menu role="tablist">{items}</menu></section>', tab='<button role="tab" {selected}>{text}</button>'),
    "papercss": StylePackage(("dist/paper.min.css",), ("", "btn-secondary", "btn-small", "btn-primary-outline"), check='<label class="paper-{kind}"><input type="{type}" name="{id}" {state}><span>{text}</span></label>', switch='<fieldset class="form-group"><label class="paper-switch"><input type="checkbox" {state}><span class="paper-switch-slider"></span></label> {text}</fieldset>', card="card", badge="badge"),
    "cirrus-ui": StylePackage(("dist/cirrus.min.css",), ("btn", "btn-primary", "btn btn-info", "btn btn-danger outline", "btn-dark")),
    "siimple": StylePackage(("siimple.css",), ("button", "button is-primary")),
    "picnic": StylePackage(("picnic.css",), ("button", "success", "warning", "error"), check='<label><input type="{type}" name="{id}" {state}><span class="checkable">{text}</span></label>', card="card"),
    "mini.css": StylePackage(("dist/mini-default.min.css", "dist/mini-dark.min.css", "dist/mini-nord.min.css"), ("", "primary", "secondary", "tertiary small", "inverse"), card="card"),
    "wingcss": StylePackage(("dist/wing.min.css",), ("btn", "btn-outline")),
    "turretcss": StylePackage(("dist/turretcss.min.css",), ("button", "button primary", "button secondary", "button error"), "input", "", '<label class="control {type}"><input type="{type}" name="{id}" {state}><span class="control-indicator"></span><span class="control-label">{text}</span></label>'),
    "@blaze/css": StylePackage(("dist/blaze/blaze.css",), ("c-button", "c-button c-button--brand", "c-button c-button--ghost", "c-button c-button--success"), "c-field", "c-field", '<label class="c-field c-field--choice"><input type="{type}" name="{id}" {state}> {text}</label>', '<label class="c-toggle">{text}<input type="checkbox" {state}><div class="c-toggle__track"><div class="c-toggle__handle"></div></div></label>', tabs='<div class="c-tabs"><div class="c-tabs__nav"><div class="c-tabs__headings">{items}</div></div></div>', tab='<button class="c-tab-heading {on}">{text}</button>', on="c-tab-heading--active active"),
    "beercss": StylePackage(("dist/cdn/beer.min.css",), ("", "border", "small", "secondary"), check='<nav><label class="{kind}"><input type="{type}" name="{id}" {state}><span>{text}</span></label></nav>', switch='<nav><label class="switch"><input type="checkbox" {state}><span></span></label><span>{text}</span></nav>', tabs='<div class="tabs">{items}</div>', tab='<a class="{on}">{text}</a>'),
    "missing.css": StylePackage(("dist/missing.min.css",)),
    "jquery-ui-dist": StylePackage(("jquery-ui.min.css",), ("ui-button ui-widget ui-corner-all ui-state-default",), tabs='<div class="ui-tabs ui-widget ui-widget-content"><ul class="ui-tabs-nav ui-widget-header">{items}</ul></div>', tab='<li class="ui-tab ui-state-default {on}"><a class="ui-tabs-anchor">{text}</a></li>', on="ui-tabs-active ui-state-active active"),
    "@clr/ui": StylePackage(("clr-ui.min.css",), ("btn", "btn btn-primary", "btn btn-success-outline", "btn btn-sm", "btn btn-danger"), "clr-input", "clr-select", '<div class="clr-{kind}-wrapper"><input type="{type}" id="{id}" class="clr-{kind}" {state}><label for="{id}" class="clr-control-label">{text}</label></div>', '<div class="clr-toggle-wrapper"><input type="checkbox" id="{id}" class="clr-toggle" {state}><label for="{id}">{text}</label></div>', tabs='<ul class="nav" role="tablist">{items}</ul>', tab='<li class="nav-item"><button class="btn btn-link nav-link {on}" {selected}>{text}</button></li>', card="card", badge="badge badge-info"),
    "@salesforce-ux/design-system": StylePackage(("assets/styles/salesforce-lightning-design-system.min.css",), ("slds-button slds-button_neutral", "slds-button slds-button_brand", "slds-button slds-button_outline-brand", "slds-button slds-button_destructive"), "slds-input", "slds-select", '<div class="slds-{kind}"><input type="{type}" id="{id}" {state}><label class="slds-{kind}{tail}" for="{id}"><span class="slds-{kind}_faux"></span><span class="slds-form-element__label">{text}</span></label></div>', '<label class="slds-checkbox_toggle slds-grid"><span class="slds-m-right_small">{text}</span><input type="checkbox" {state}><span class="slds-checkbox_faux_container"><span class="slds-checkbox_faux"></span></span></label>', tabs='<div class="slds-tabs_default"><ul class="slds-tabs_default__nav">{items}</ul></div>', tab='<li class="slds-tabs_default__item {on}"><a class="slds-tabs_default__link">{text}</a></li>', on="slds-is-active active", card="slds-box", badge="slds-badge"),
    "@blueprintjs/core": StylePackage(("lib/css/blueprint.css",), ("bp6-button", "bp6-button bp6-intent-primary", "bp6-button bp6-intent-danger", "bp6-button bp6-outlined", "bp6-button bp6-large"), "bp6-input", "", '<label class="bp6-control bp6-{kind}"><input type="{type}" name="{id}" {state}><span class="bp6-control-indicator"></span>{text}</label>', '<label class="bp6-control bp6-switch"><input type="checkbox" {state}><span class="bp6-control-indicator"></span>{text}</label>', card="bp6-card", badge="bp6-tag"),
    "rsuite": StylePackage(("dist/rsuite.min.css",), ("rs-btn rs-btn-default", "rs-btn rs-btn-primary", "rs-btn rs-btn-ghost", "rs-btn rs-btn-subtle"), "rs-input", ""),
    "element-plus": StylePackage(("dist/index.css",), ("el-button", "el-button el-button--primary", "el-button el-button--danger is-plain", "el-button el-button--success el-button--small", "el-button is-round"), "", "", '<label class="el-{kind} {classes}"><span class="el-{kind}__input {classes}"><input type="{type}" class="el-{kind}__original" {state}><span class="el-{kind}__inner"></span></span><span class="el-{kind}__label">{text}</span></label>', '<div class="el-switch {classes}"><input class="el-switch__input" type="checkbox" role="switch" {state}><span class="el-switch__core"><div class="el-switch__action"></div></span></div> {text}', tabs='<div class="el-tabs__header"><div class="el-tabs__nav">{items}</div></div>', tab='<div class="el-tabs__item is-top {on}" role="tab" {selected}>{text}</div>', on="is-active"),
    "flowbite": StylePackage(("dist/flowbite.min.css",), ("text-white bg-blue-700 rounded-lg text-sm px-5 py-2.5", "text-gray-900 bg-white border border-gray-300 rounded-lg text-sm px-5 py-2.5"), "bg-gray-50 border border-gray-300 rounded-lg p-2.5", "bg-gray-50 border border-gray-300 rounded-lg p-2.5"),
    "w3-css": StylePackage(("w3.css",), ("w3-button w3-blue", "w3-button w3-border", "w3-btn w3-teal", "w3-button w3-black w3-round"), "w3-input w3-border", "w3-select w3-border", '<p><input class="w3-{kindshort}" type="{type}" {state}> <label>{text}</label></p>', tabs='<div class="w3-bar w3-light-grey">{items}</div>', tab='<a class="w3-bar-item w3-button {on}">{text}</a>', on="w3-green active"),
    **{f"bootswatch {theme}": StylePackage((f"dist/{theme}/bootstrap.min.css",), **BOOTSTRAP) for theme in THEMES},  # type: ignore[arg-type]
}  # fmt: skip


class PageWriter:
    """Writes one page; all that is random comes from one seed."""

    def __init__(
        self, chance: random.Random, package: StylePackage, glyphs: tuple[str, Sequence[str]] | None, *, dark: bool
    ) -> None:
        self.chance, self.package, self.dark = chance, package, dark
        self.glyphs = glyphs  # what is before the name of an icon, and the names
        self.number = 0
        self.accent = chance.choice(ACCENTS)
        self.own_toggles = chance.random() < (0.75 if not package.styles else 0.3)
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
        if kind < 0.3 and style and not state:
            return f'<a href="#" class="{style}" role="button">{label}</a>'
        return f'<button type="button" class="{style}" {state}>{label}</button>'

    def field(self) -> str:
        state = "disabled" if self.chance.random() < 0.1 else ""
        kind = self.chance.random()
        width = self.chance.choice(("120px", "160px", "200px", "240px", "300px", "360px", "100%", "100%"))
        wide = f'style="width: {width}"' if self.chance.random() < 0.7 else ""
        if kind < 0.25:
            options = "".join(f"<option>{self.name(1, 3)}</option>" for _ in range(3))
            return f'<select class="{self.package.select or self.package.field}" {state} {wide}>{options}</select>'
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
        return f'<input type="{which}" class="{self.package.field}" {text} {state} {wide}>'

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
        on = self.chance.random() < 0.5
        state = ("checked " if on else "") + ("disabled" if self.chance.random() < 0.2 else "")
        label = self.name(1, 4) if text is None else text
        if kind == "switch" and (self.own_toggles or not self.package.switch):
            knob = self.chance.choice(("span", "before"))
            return f'<label class="x-row x-switch-row"><input type="checkbox" role="switch" class="x-switch {knob}" {state}><span>{label}</span></label>'
        if self.own_toggles:
            return f'<label class="x-row"><input type="{kind}" class="x-{kind}" name="{self.next_id()}" {state}><span>{label}</span></label>'
        short = "radio" if kind == "radio" else "checkbox"
        template = self.package.switch if kind == "switch" else self.package.check
        return template.format(
            type="radio" if kind == "radio" else "checkbox", kind=short, id=self.next_id(), state=state, text=label,
            kindshort="radio" if kind == "radio" else "check", tail="__label",
            classes=" ".join(f"is-{name}" for name in state.split()),
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
        look = self.chance.choice(("fill", "tint", "mark", "under", "bold", "ink", "box", "tint"))
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
            lambda: "".join(f'<span class="x-chip">{self.name(1, 2)} ×</span> ' for _ in range(3)),
        ]  # fmt: skip
        return "".join(f"<div>{self.chance.choice(ways)()}</div>" for _ in range(self.chance.randint(1, 4)))

    # -- the page

    def write(self, link: str) -> str:
        chance = self.chance
        sections: list[Callable[[], str]] = [
            self.form, self.form, self.toolbar, self.options, self.options, self.settings, self.table, self.tabs, self.menu,
            self.menu, self.pagination, self.list_group, self.cards, self.decoys, self.decoys, self.decoys, self.button_grid,
            self.button_grid, self.wells, self.filters, self.group, self.group,
        ]  # fmt: skip
        if chance.random() < 0.05:
            sections = [*sections, self.pins]
        cells = [f'<div class="x-cell">{chance.choice(sections)()}</div>' for _ in range(chance.randint(7, 14))]
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
        return f'<!DOCTYPE html><html data-bs-theme="{"dark" if self.dark else "light"}" data-theme="{"dark" if self.dark else "light"}"><meta charset="utf-8">{link}<style>{self.write_style()}</style><body>{body}{self.mix_indeterminate()}'

    def write_style(self) -> str:
        chance, accent = self.chance, self.accent
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
        radius = chance.choice((0, 2, 3, 4, 6, 8, 12, 20, 999))
        thick = chance.choice((1, 1, 1, 1.5, 2, 2, 3))
        layout = (
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
            f".x-slider{{position:relative;display:inline-block;width:120px;height:6px;border-radius:9px;background:{line}}}.x-slider i{{position:absolute;top:-5px;width:16px;height:16px;border-radius:50%;background:{accent}}}"
        )
        rules = [
            layout,
            self.style_menus(ink, line, soft),
            self.style_tables(line, soft),
            self.style_toggles(line, ground),
        ]
        if self.plain or chance.random() < 0.25:
            rules.append(
                f"html,body{{background:{ground};color:{ink};margin:0}}a{{color:{chance.choice((accent, ink))}}}"
            )
        if self.plain or chance.random() < 0.5:
            rules.append(
                f"body{{font-family:{chance.choice(FONTS)!r};font-size:{chance.choice((12, 13, 14, 15, 16, 16, 17, 18))}px}}"
            )
        if chance.random() < (0.85 if self.plain else 0.3):
            rules.append(self.style_controls(ink, line, soft, ground, radius, thick))
        return "".join(rules)

    def style_controls(self, ink: str, line: str, soft: str, ground: str, radius: float, thick: float) -> str:
        chance, accent = self.chance, self.accent
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
        button = f"button:not([role]),input[type=submit],input[type=button],input[type=reset]{{{one};border-radius:{radius}px;padding:{pad};font-family:{family};font-size:{chance.choice((12, 13, 14, 15, 16))}px;box-shadow:{chance.choice(('none', 'none', '0 1px 2px #0004', '0 2px 6px #0005'))};text-transform:{chance.choice(('none', 'none', 'none', 'uppercase'))}}}"
        button += (
            f"button:nth-of-type(even){{{other}}}button:disabled{{opacity:{chance.choice((0.3, 0.4, 0.5, 0.6, 0.65))}}}"
        )
        box = chance.random()
        border = f"border:{thick}px solid {line};background:{chance.choice((ground, soft, '#fff' if not self.dark else '#000'))}"
        if box < 0.12:
            border = f"border:0;border-bottom:{thick}px solid {line};background:{soft}"
        elif box < 0.22:
            border = f"border:0;background:{soft}"
        field = f"input:not([type=checkbox]):not([type=radio]):not([type=submit]):not([type=button]):not([type=reset]),select,textarea{{{border};color:{ink};border-radius:{min(radius, 24)}px;padding:{chance.choice(('2px 4px', '4px 8px', '6px 10px', '8px 12px', '10px 14px'))};font-family:{family};font-size:{chance.choice((13, 14, 15, 16))}px;max-width:100%}}"
        field += f"input:disabled,select:disabled{{opacity:{chance.choice((0.4, 0.5, 0.6, 1))};color:{chance.choice(('#888', '#999', '#aaa'))}}}"
        parts = [button if chance.random() < 0.85 else "", field if chance.random() < 0.85 else ""]
        return "".join(parts)

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
            f".x-look-bold .active>a{{font-weight:bold;color:{chance.choice((accent, ink))}}}.x-look-ink .active>a{{color:{accent}}}.x-look-box .active>a{{border:1px solid {line};border-bottom-color:transparent;background:{soft}}}"
        )

    def style_tables(self, line: str, soft: str) -> str:
        chance = self.chance
        cell = chance.choice((f"border:1px solid {line}", f"border-bottom:1px solid {line}", "border:0"))
        stripe = f".x-table tbody tr:nth-child(even){{background:{soft}}}" if chance.random() < 0.3 else ""
        return (
            f".x-table{{border-collapse:collapse}}.x-table td,.x-table th{{{cell};padding:{chance.choice((3, 6, 8, 10))}px 10px;text-align:left}}"
            f".x-table th{{background:{chance.choice(('transparent', soft, line))}}}{stripe}.x-table tr.x-chosen,.x-table tr.x-chosen td{{background:{self.accent}{chance.choice(('22', '33', '55', ''))}}}"
        )

    def style_toggles(self, line: str, ground: str) -> str:
        chance, accent = self.chance, self.accent
        side = chance.choice((12, 13, 14, 15, 16, 16, 17, 18, 20, 22, 24, 26, 30, 36, 40))
        edge = chance.choice((1, 1, 1, 1.5, 2, 2, 3))
        strong = chance.choice((line, accent, "#888", "#666" if not self.dark else "#aaa"))
        tick = chance.choice(TICKS[:4] if chance.random() < 0.85 else TICKS)
        filled = chance.random() < 0.6
        mark = "white" if filled else accent
        image = f"url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='{tick}' fill='none' stroke='{mark.replace('#', '%23')}' stroke-width='{chance.choice((1.5, 2, 2.5, 3))}'/%3E%3C/svg%3E\")"
        inner = chance.choice((ground, "transparent", "#fff" if not self.dark else "#222"))
        shade = chance.choice(
            (
                "none",
                "none",
                "none",
                "inset 1px 1px 0 #0006,inset -1px -1px 0 #fff",
                "0 1px 2px #0004",
                f"0 0 0 3px {accent}33",
            )
        )
        check = (
            f"input.x-checkbox{{appearance:none;box-sizing:border-box;width:{side}px;height:{side}px;flex:none;margin:0;border:{edge}px solid {strong};border-radius:{chance.choice(('0', '2px', '3px', '4px', '6px', '25%', '50%' if chance.random() < 0.3 else '3px'))};background:{inner};box-shadow:{shade}}}"
            f"input.x-checkbox:checked{{background:{accent if filled else inner} {image} center/{chance.choice((70, 80, 100))}% no-repeat;border-color:{accent}}}"
            f"input.x-checkbox:indeterminate{{background:linear-gradient({accent},{accent}) center/60% 2px no-repeat}}"
        )
        if chance.random() < 0.06:  # a tick without its box
            check += f"input.x-checkbox:checked{{background:{image.replace('white', accent.replace('#', '%23'))} center/100% no-repeat;border-color:transparent}}"
        if chance.random() < 0.12:  # a full square inside, as some have
            check += f"input.x-checkbox:checked{{background:linear-gradient({accent},{accent}) center/60% 60% no-repeat;border-color:{strong}}}"
        if chance.random() < 0.4:  # neither on nor off, on a filled box
            check += f"input.x-checkbox:indeterminate{{background:linear-gradient(#fff,#fff) center/{chance.choice((50, 60, 70))}% {chance.choice((2, 3))}px no-repeat {accent};border-color:{accent}}}"
        dot = chance.choice((30, 35, 40, 45, 50))
        radio = f"input.x-radio{{appearance:none;box-sizing:border-box;width:{side}px;height:{side}px;flex:none;margin:0;border:{edge}px solid {strong};border-radius:50%;background:{inner};box-shadow:{shade}}}"
        radio += chance.choice((
            f"input.x-radio:checked{{border-color:{accent};background:radial-gradient({accent} {dot}%,transparent {dot + 6}%)}}",
            f"input.x-radio:checked{{border-color:{accent};background:radial-gradient(#fff {dot - 8}%,{accent} {dot - 2}%)}}",
            f"input.x-radio:checked{{border:{round(side * chance.choice((0.25, 0.3, 0.33)))}px solid {accent};background:#fff}}",
        ))  # fmt: skip
        tall = chance.choice((14, 16, 18, 20, 22, 24, 26, 28, 32))
        wide = round(tall * chance.choice((1.6, 1.75, 1.8, 2, 2, 2.2)))
        gap = chance.choice((1, 2, 2, 3, 4))
        knob = tall - 2 * gap
        off = chance.choice((line, "#bbb" if not self.dark else "#555", "#999"))
        outline = chance.random() < 0.25
        base = (
            f"border:{chance.choice((1, 2))}px solid {strong};background:{inner}"
            if outline
            else f"border:0;background:{off}"
        )
        dotted = off if outline else chance.choice(("#fff", "#fff", "#f4f4f4"))
        switch = (
            f"input.x-switch{{appearance:none;box-sizing:border-box;position:relative;width:{wide}px;height:{tall}px;flex:none;margin:0;border-radius:{chance.choice((99, 99, 99, 4))}px;{base}}}"
            f"input.x-switch::after{{content:'';position:absolute;box-sizing:border-box;top:50%;left:{gap}px;transform:translateY(-50%);width:{knob}px;height:{knob}px;border-radius:{chance.choice(('50%', '50%', '50%', '3px'))};background:{dotted};box-shadow:{chance.choice(('none', 'none', '0 1px 3px #0006'))}}}"
            f"input.x-switch:checked{{background:{accent};border-color:{accent}}}input.x-switch:checked::after{{left:calc(100% - {knob + gap}px);background:#fff}}"
        )
        if chance.random() < 0.15:  # a knob that is higher than its track
            switch = (
                f"input.x-switch{{appearance:none;position:relative;width:{wide}px;height:{round(0.6 * tall)}px;flex:none;margin:{round(0.2 * tall)}px 4px;border-radius:99px;background:{off}}}"
                f"input.x-switch::after{{content:'';position:absolute;top:50%;left:0;transform:translate(-10%,-50%);width:{tall}px;height:{tall}px;border-radius:50%;background:{chance.choice(('#fff', '#f1f1f1', '#ddd'))};box-shadow:0 1px 3px #0008}}"
                f"input.x-switch:checked{{background:{accent}80}}input.x-switch:checked::after{{left:calc(100% - {tall}px);transform:translate(10%,-50%);background:{accent}}}"
            )
        pale = f"input:disabled+span,input.x-checkbox:disabled,input.x-radio:disabled,input.x-switch:disabled{{opacity:{chance.choice((0.35, 0.4, 0.5, 0.6))}}}"
        return check + radio + switch + pale


def write_page(name: str, package: StylePackage, number: int, fonts: Mapping[str, Sequence[str]]) -> str:
    """Return the HTML of one page; the package is beside it in `package/`, and icons with these names in `icons/`."""
    chance = random.Random(f"{name} {number}")
    dark = chance.random() < 0.3
    font = chance.choice(list(ICON_FONTS)) if chance.random() < 0.6 else ""
    writer = PageWriter(chance, package, (ICON_FONTS[font][1], fonts[font]) if font else None, dark=dark)
    styles = [f"package/{chance.choice(package.styles)}"] if package.styles else []
    styles += [f"icons/{font}/{ICON_FONTS[font][0]}"] if font else []
    return writer.write("".join(f'<link rel="stylesheet" href="{style}">' for style in styles))


def list_icons(font: str, home: Path) -> list[str]:
    """Return the names of the icons of a package."""
    style, _, pattern = ICON_FONTS[font]
    names = set(re.findall(pattern, (home / style).read_text()))
    return sorted(name for name in names if not TOGGLE_ICONS.search(name))
