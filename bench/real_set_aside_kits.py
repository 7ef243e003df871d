"""Pages of applications in interface kits that the other parts have nothing of, for the part that is set aside.

Each kit has a page of settings, a list of records and a dialog. Kits that are style sheets are used in the markup that
each one documents; the others draw their components themselves, in the places that real_previous_kits.py has for them.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from real_previous_kits import (
    BUTTON_PLACE,
    FIELD_PLACE,
    PLACE,
    REACT_MOUNT,
    READ_PLACE,
    SELECT_PLACE,
    SWITCH_PLACE,
    TABS_PLACE,
)

REACT = ("react/umd/react.production.min.js", "react-dom/umd/react-dom.production.min.js")
STYLED = (*REACT, "react-is/umd/react-is.production.min.js", "styled-components/dist/styled-components.min.js")
PRIME = (*REACT, "react-transition-group/dist/react-transition-group.min.js", "primereact/primereact.all.min.js")
GRID = '<div class="grid" data-part="Grid"></div>'
PAGES_PLACE = '<div data-part="Pages" data-value="{number}"></div>'
FLUENT = (
    "FluentUIReact.initializeIcons('@fluentui_font-icons-mdl2/fonts/'); const F = FluentUIReact;"
    + REACT_MOUNT.replace(
        "CHOOSE",
        """
    part === 'Button' ? make(value === 'strong' ? F.PrimaryButton : F.DefaultButton, { text, disabled })
    : part === 'Input' ? make(F.TextField, { label: text, value, disabled, onChange: off })
    : part === 'Select' ? make(F.Dropdown, { label: text, options: [{ key: value, text: value }], selectedKey: value, disabled })
    : part === 'Switch' ? make(F.Toggle, { label: text, inlineLabel: true, checked, disabled, onChange: off })
    : part === 'Radio' ? make(F.ChoiceGroup, { options: [{ key: 'it', text, disabled }], selectedKey: checked ? 'it' : '' })
    : part === 'Tab' ? make(F.Pivot, { selectedKey: value },
        items.split('|').map(name => make(F.PivotItem, { headerText: name, itemKey: name, key: name })))
    : part === 'Grid' ? make(F.DetailsList, { items: realRows.slice(1).map((row, key) => ({ key, ...row })), layoutMode: 1,
        columns: realRows[0].map((name, at) => ({ key: name, name, fieldName: String(at), minWidth: 90, maxWidth: 190 })),
        selection: realSelection, selectionMode: 2, checkboxVisibility: 1 })
    : make(F.Checkbox, { label: text, checked, disabled, onChange: off })""",
    ).replace(
        "for (const place",
        """
const realSelection = new F.Selection();
realSelection.setItems(realRows.slice(1).map((row, key) => ({ key, ...row })), true);
for (const at of realChosen) realSelection.setIndexSelected(at, true, false);
for (const place""",
        1,
    )
)
PRIMEREACT = "const P = primereact;" + REACT_MOUNT.replace(
    "CHOOSE",
    """
    part === 'Button' ? make(P.Button, { label: text, outlined: value !== 'strong', disabled })
    : part === 'Input' ? make('label', { className: 'above' }, text, make(P.InputText, { value, disabled, onChange: off }))
    : part === 'Select' ? make('label', { className: 'above' }, text, make(P.Dropdown, { value, options: [value], disabled }))
    : part === 'Switch' ? make('label', { className: 'beside' }, make(P.InputSwitch, { checked, disabled, onChange: off }), text)
    : part === 'Radio' ? make('label', { className: 'beside' }, make(P.RadioButton, { checked, disabled, onChange: off }), text)
    : part === 'Tab' ? make(P.TabMenu, { activeIndex: items.split('|').indexOf(value), model: items.split('|').map(label => ({ label })) })
    : part === 'Pages' ? make(P.Paginator, { first: 10 * value, rows: 10, totalRecords: 48, onPageChange: off })
    : part === 'Grid' ? make(P.DataTable, { value: realRecords, dataKey: 'key', selectionMode: 'checkbox',
        selection: realRecords.filter((_, at) => realChosen.includes(at)), onSelectionChange: off },
        make(P.Column, { selectionMode: 'multiple', headerStyle: { width: '3rem' } }),
        ...realRows[0].map((header, at) => make(P.Column, { header, field: `c${at}`, key: at })))
    : make('label', { className: 'beside' }, make(P.Checkbox, { checked, disabled, onChange: off }), text)""",
)
GROMMET = "const G = Grommet;" + REACT_MOUNT.replace(
    "CHOOSE",
    """make(G.Grommet, { theme: G.grommet, background: 'transparent' },
    part === 'Button' ? make(G.Button, { label: text, primary: value === 'strong', disabled })
    : part === 'Input' ? make('label', { className: 'above' }, text, make(G.TextInput, { value, disabled, onChange: off }))
    : part === 'Select' ? make('label', { className: 'above' }, text, make(G.Select, { value, options: [value], disabled }))
    : part === 'Switch' ? make(G.CheckBox, { toggle: true, label: text, checked, disabled, onChange: off })
    : part === 'Radio' ? make(G.RadioButton, { name: text, label: text, checked, disabled, onChange: off })
    : part === 'Tab' ? make(G.Tabs, { activeIndex: items.split('|').indexOf(value), justify: 'start' },
        items.split('|').map(title => make(G.Tab, { title, key: title })))
    : part === 'Pages' ? make(G.Pagination, { numberItems: 48, page: +value, onChange: off })
    : part === 'Grid' ? make(G.DataTable, { primaryKey: 'key', data: realRecords, select: realChosen, onSelect: off,
        columns: realRows[0].map((header, at) => ({ property: `c${at}`, header })) })
    : make(G.CheckBox, { label: text, checked, disabled, onChange: off }))""",
)
EVERGREEN = "const E = EvergreenUI;" + REACT_MOUNT.replace(
    "CHOOSE",
    """
    part === 'Button' ? make(E.Button, { appearance: value === 'strong' ? 'primary' : 'default', disabled }, text)
    : part === 'Input' ? make(E.TextInputField, { label: text, value, disabled, onChange: off })
    : part === 'Select' ? make(E.SelectField, { label: text, disabled }, make('option', null, value))
    : part === 'Switch' ? make('label', { className: 'beside' }, make(E.Switch, { checked, disabled, onChange: off }), text)
    : part === 'Radio' ? make(E.Radio, { name: text, label: text, checked, disabled, onChange: off })
    : part === 'Tab' ? make(E.Tablist, null, items.split('|').map(name => make(E.Tab, { key: name, isSelected: name === value }, name)))
    : part === 'Pages' ? make(E.Pagination, { page: +value, totalPages: 5 })
    : part === 'Grid' ? make('div', { role: 'table' }, make(E.Table.Head, { role: 'row' }, realRows[0].map(name =>
        make(E.Table.TextHeaderCell, { key: name, role: 'columnheader' }, name))), make(E.Table.Body, null, realRecords.map((record, at) =>
        make(E.Table.Row, { key: at, role: 'row', isSelectable: true, isSelected: realChosen.includes(at), 'aria-selected': realChosen.includes(at) },
            realRows[0].map((name, i) => make(E.Table.TextCell, { key: i, role: 'cell' }, record[`c${i}`]))))))
    : make(E.Checkbox, { label: text, checked, disabled, onChange: off })""",
)
SYNCFUSION = READ_PLACE.replace(
    "DRAW",
    """
    const add = (tag, before = place) => before.appendChild(document.createElement(tag));
    const draw = (widget, tag = 'input') => widget.appendTo(add(tag));
    const titled = widget => { add('label').textContent = text; draw(widget); };
    if (part === 'Checkbox') draw(new ej.buttons.CheckBox({ label: text, checked, disabled }));
    if (part === 'Radio') draw(new ej.buttons.RadioButton({ label: text, name: text, checked, disabled }));
    if (part === 'Switch') { draw(new ej.buttons.Switch({ checked, disabled })); place.append(' ', text); }
    if (part === 'Button') { const it = add('button'); it.textContent = text; new ej.buttons.Button({ isPrimary: value === 'strong', disabled }, it); }
    if (part === 'Input') titled(new ej.inputs.TextBox({ value, enabled: !disabled }));
    if (part === 'Select') titled(new ej.dropdowns.DropDownList({ dataSource: [value], value, enabled: !disabled }));
    if (part === 'Tab') draw(new ej.navigations.Tab({ selectedItem: items.split('|').indexOf(value),
        items: items.split('|').map(name => ({ header: { text: name }, content: ' ' })) }), 'div');
    if (part === 'Pages') draw(new ej.grids.Pager({ totalRecordsCount: 48, pageSize: 10, pageCount: 5, currentPage: +value }), 'div');
    if (part === 'Grid') draw(new ej.grids.Grid({ dataSource: realRecords, allowSorting: true, rowSelected: off => off,
        selectionSettings: { checkboxOnly: true }, dataBound() { if (!this.was) { this.was = true; this.selectRows(realChosen); } },
        columns: [{ type: 'checkbox', width: 50 }, ...realRows[0].map((headerText, at) => ({ field: `c${at}`, headerText, width: 150 }))] }), 'div');
""",
)
WEBIX = READ_PLACE.replace(
    "DRAW",
    """
    const draw = it => webix.ui({ container: place, borderless: true, disabled, ...it });
    if (part === 'Checkbox') draw({ view: 'checkbox', labelRight: text, labelWidth: 0, value: +checked, width: text ? 330 : 40 });
    if (part === 'Radio') draw({ view: 'radio', labelWidth: 0, value: +checked, options: [{ id: 1, value: text }], width: 330 });
    if (part === 'Switch') draw({ view: 'switch', labelRight: text, labelWidth: 0, value: +checked, width: 330 });
    if (part === 'Button') draw({ view: 'button', value: text, autowidth: true, css: value === 'strong' ? 'webix_primary' : '' });
    if (part === 'Input') draw({ view: 'text', label: text, labelPosition: 'top', value, width: 330 });
    if (part === 'Select') draw({ view: 'richselect', label: text, labelPosition: 'top', value, options: [value], width: 330 });
    if (part === 'Tab') draw({ view: 'tabbar', value, options: items.split('|'), width: 620 });
    for (const hidden of place.querySelectorAll('input[type=checkbox], input[type=radio]')) hidden.remove();
    if (disabled) for (const one of place.querySelectorAll('button, input')) one.setAttribute('aria-disabled', 'true');
""",
)
# The toggles of some kits are elements without a role beside or around hidden inputs: the page says what they are.
TELL_TOGGLES = """
setTimeout(() => {
    for (const input of document.querySelectorAll('input[type=checkbox], input[type=radio]')) {
        const drawn = FIND;
        drawn?.setAttribute('role', input.closest('[data-part=Switch], .md-switch') ? 'switch' : input.type === 'radio' ? 'radio' : 'checkbox');
        drawn?.setAttribute('aria-checked', input.checked || !!input.closest('.md-checked'));
        if (input.disabled) drawn?.setAttribute('aria-disabled', 'true');
    }
}, 500);"""
VUESTIC_GRID = (
    '<div class="grid"><va-data-table :items="rows" :columns="columns" selectable :model-value="chosen" select-mode="multiple">'
    "</va-data-table></div>"
)
VUE_DATA = """data: () => ({ rows: realRecords, chosen: realRecords.filter((_, at) => realChosen.includes(at)),
    columns: realRows[0].map((label, at) => ({ key: `c${at}`, label })) })"""


@dataclass(frozen=True)
class AppKit:
    """The markup of one kit. {box} is checkbox or radio; what a kit has no markup for is left out."""

    styles: tuple[str, ...]
    check: str
    radio: str = ""  # as `check`, if it is empty
    switch: str = ""
    button: str = ""  # with {look}, one of these two
    looks: tuple[str, str] = ("strong", "plain")
    field: str = ""
    select: str = ""
    tabs: str = ""
    tab: str = ""
    active: str = ""  # what a chosen tab, item of a menu or page has more
    menu: str = '<nav class="menu">{items}</nav>'
    entry: str = '<a class="entry {active}" href="#" {current}>{text}</a>'
    pages: str = ""
    page: str = ""
    table: str = '<table class="plain">'  # or a place for the kit's own
    row_check: str = ""  # a check box in a row
    chosen: str = ""  # what a chosen row has more
    form: tuple[str, str] = ("", "")  # around all
    root: str = ""  # attributes of the page
    dark: str = ""  # the same when it is dark
    dark_style: str = ""  # a style sheet that takes the place of the first one when it is dark
    accent: str = "#2563eb"
    scripts: tuple[str, ...] = ()
    mount: str = ""
    before: str = ""  # a script before the others
    cells: tuple[tuple[str, str], ...] = ()  # what its tables have in place of plain cells


BOOTSTRAP_TABS = '<ul class="nav nav-tabs" role="tablist">{items}</ul>'
BOOTSTRAP_TAB = (
    '<li class="nav-item"><a class="nav-link {active}" href="#" role="tab" aria-selected="{on}">{text}</a></li>'
)
BOOTSTRAP_PAGES = '<nav><ul class="pagination">{items}</ul></nav>'
BOOTSTRAP_PAGE = '<li class="page-item {active}"><a class="page-link" href="#" {current}>{text}</a></li>'
BOOTSTRAP_MENU = '<ul class="nav nav-pills flex-column">{items}</ul>'
BOOTSTRAP_ENTRY = '<li class="nav-item"><a class="nav-link {active}" href="#">{text}</a></li>'
TAILWIND_FIELD = (
    '<div class="mb-3"><label for="{id}" class="block text-sm font-medium {ink}">{text}</label>'
    '<div class="mt-1">INNER</div></div>'
)
TAILWIND_INPUT = (
    "block w-full rounded-md border {edge} {paper} px-3 py-1.5 text-sm {ink} shadow-sm disabled:cursor-not-allowed "
    "disabled:bg-gray-100 disabled:text-gray-400"
)
TAILWIND = AppKit(
    (),
    '<div class="mb-2 flex items-center gap-3"><input id="{id}" type="checkbox" {state} class="size-4 appearance-none rounded '
    'border {edge} {paper} checked:border-indigo-600 checked:bg-indigo-600 disabled:opacity-40 tick">'
    '<label for="{id}" class="text-sm {ink}">{text}</label></div>',
    '<div class="mb-2 flex items-center gap-3"><input id="{id}" type="radio" {state} class="relative size-4 appearance-none '
    "rounded-full border {edge} {paper} before:absolute before:inset-1 before:rounded-full before:bg-white not-checked:before:hidden "
    'checked:border-indigo-600 checked:bg-indigo-600 disabled:opacity-40">'
    '<label for="{id}" class="text-sm {ink}">{text}</label></div>',
    '<div class="mb-2 flex items-center justify-between"><span class="text-sm {ink}">{text}</span><button type="button" '
    'role="switch" aria-checked="{on}" {off} class="relative inline-flex h-6 w-11 rounded-full {on:bg-indigo-600|bg-gray-300} '
    'disabled:opacity-40"><span class="mt-0.5 size-5 rounded-full bg-white shadow {on:translate-x-5.5|translate-x-0.5}"></span>'
    "</button></div>",
    '<button type="button" {state} class="rounded-md px-3 py-2 text-sm font-semibold shadow-xs {look} disabled:opacity-40">{text}</button>',
    ("bg-indigo-600 text-white", "ring-1 ring-gray-400 {ink}"),
    TAILWIND_FIELD.replace("INNER", f'<input id="{{id}}" value="{{value}}" {{state}} class="{TAILWIND_INPUT}">'),
    TAILWIND_FIELD.replace(
        "INNER", f'<select id="{{id}}" {{state}} class="{TAILWIND_INPUT}"><option>{{value}}</option></select>'
    ),
    tabs='<nav class="mb-4 flex gap-6 border-b {edge}">{items}</nav>',
    tab='<a href="#" {current} class="border-b-2 px-1 py-3 text-sm font-medium {on:border-indigo-500 text-indigo-500|border-transparent text-gray-500}">{text}</a>',
    menu='<nav class="flex flex-col gap-1">{items}</nav>',
    entry='<a href="#" {current} class="rounded-md px-3 py-2 text-sm font-semibold {on:bg-indigo-600 text-white|text-gray-500}">{text}</a>',
    pages='<nav class="isolate mt-4 inline-flex -space-x-px rounded-md">{items}</nav>',
    page='<a href="#" {current} class="px-4 py-2 text-sm font-semibold ring-1 ring-inset {on:bg-indigo-600 text-white ring-indigo-600|ring-gray-400}">{text}</a>',
    table='<table class="min-w-full divide-y divide-gray-400 text-left text-sm [&_td]:px-3 [&_td]:py-2.5 [&_th]:px-3 [&_th]:py-2.5">',
    row_check='<input type="checkbox" {state} class="size-4 appearance-none rounded border {edge} {paper} checked:border-indigo-600 checked:bg-indigo-600 tick">',
    chosen='class="bg-indigo-500/15" aria-selected="true"',
    dark='class="dark bg-gray-900 text-white"',
    accent="#4f46e5",
    scripts=("@tailwindcss_browser/dist/index.global.js",),
)
KITS: dict[str, AppKit] = {
    "@tailwindcss/browser": TAILWIND,
    "@atlassian/aui": AppKit(
        ("@atlassian_aui/dist/aui/aui-prototyping.css",),
        '<div class="{box}"><input class="{box}" type="{box}" id="{id}" {state}><span class="aui-form-glyph"></span><label for="{id}">{text}</label></div>',
        button='<button type="button" class="aui-button {look}" aria-disabled="{off:true|false}" {off}>{text}</button>',
        looks=("aui-button-primary", ""),
        field='<div class="field-group"><label for="{id}">{text}</label><input class="text" id="{id}" value="{value}" {state}></div>',
        select='<div class="field-group"><label for="{id}">{text}</label><select class="select" id="{id}" {state}>'
        "<option>{value}</option></select></div>",
        tabs='<div class="aui-tabs horizontal-tabs"><ul class="tabs-menu" role="tablist">{items}</ul></div>',
        tab='<li class="menu-item {on:active-tab|}"><a href="#" role="tab" aria-selected="{on}">{text}</a></li>',
        active="aui-nav-selected",
        menu='<nav class="aui-navgroup aui-navgroup-vertical"><div class="aui-navgroup-inner"><ul class="aui-nav">{items}</ul></div></nav>',
        entry='<li class="{active}"><a href="#">{text}</a></li>',
        pages='<ol class="aui-nav aui-nav-pagination">{items}</ol>',
        page='<li class="{active}"><a href="#" {current}>{text}</a></li>',
        table='<table class="aui aui-table-list">',
        form=('<form class="aui top-label">', "</form>"),
        root='class="aui-page-focused"',
        accent="#0052cc",
    ),
    "@swisspost/design-system-styles": AppKit(
        ("@swisspost_design-system-styles/index.css",),
        '<div class="form-check"><input id="{id}" class="form-check-input" type="{box}" {state}>'
        '<label class="form-check-label" for="{id}">{text}</label></div>',
        switch='<div class="form-check form-switch"><input id="{id}" class="form-check-input" type="checkbox" role="switch" {state}>'
        '<label class="form-check-label" for="{id}">{text}</label></div>',
        button='<button type="button" class="btn {look}" {state}>{text}</button>',
        looks=("btn-primary", "btn-secondary"),
        field='<div class="mb-3"><label class="form-label" for="{id}">{text}</label><input class="form-control" id="{id}" '
        'value="{value}" {state}></div>',
        select='<div class="mb-3"><label class="form-label" for="{id}">{text}</label><select class="form-select" id="{id}" {state}>'
        "<option>{value}</option></select></div>",
        pages='<nav class="pagination"><ul class="pagination">{items}</ul></nav>',
        page=BOOTSTRAP_PAGE,
        active="active",
        table='<table class="table table-hover">',
        accent="#8a6a00",
    ),
    "@kern-ux/native": AppKit(
        ("@kern-ux_native/dist/kern.min.css",),
        '<div class="kern-form-check"><input class="kern-form-check__{box}" id="{id}" type="{box}" {state}>'
        '<label class="kern-label" for="{id}">{text}</label></div>',
        button='<button type="button" class="kern-btn {look}" {state}><span class="kern-label">{text}</span></button>',
        looks=("kern-btn--primary", "kern-btn--secondary"),
        field='<div class="kern-form-input"><label class="kern-label" for="{id}">{text}</label>'
        '<input class="kern-form-input__input" id="{id}" value="{value}" {state}></div>',
        select='<div class="kern-form-input"><label class="kern-label" for="{id}">{text}</label>'
        '<div class="kern-form-input__select-wrapper"><select class="kern-form-input__select" id="{id}" {state}>'
        "<option>{value}</option></select></div></div>",
        table='<table class="kern-table kern-table--striped">',
        root='data-kern-theme="light"',
        dark='data-kern-theme="dark" style="background: #0c0e1a; color: #eee"',
        accent="#2a3055",
        cells=(("<th>", '<th class="kern-table__header">'), ("<td>", '<td class="kern-table__cell">'), ("<tr ", '<tr class="kern-table__row" ')),
    ),
    "bootstrap-material-design": AppKit(
        ("bootstrap-material-design/dist/css/bootstrap-material-design.min.css",),
        '<div class="checkbox"><label><input type="checkbox" {state}><span class="checkbox-decorator"><span class="check"></span>'
        '<div class="ripple-container"></div></span> {text}</label></div>',
        '<div class="radio"><label><input type="radio" {state}><span class="bmd-radio"><div class="ripple-container"></div></span>'
        " {text}</label></div>",
        '<div class="switch"><label><input type="checkbox" {state}><span class="bmd-switch-track"></span> {text}</label></div>',
        '<button type="button" class="btn btn-raised {look}" {state}>{text}</button>',
        ("btn-primary", "btn-secondary"),
        '<div class="form-group"><label for="{id}" class="bmd-label-static">{text}</label>'
        '<input class="form-control" id="{id}" value="{value}" {state}></div>',
        '<div class="form-group"><label for="{id}" class="bmd-label-static">{text}</label><select class="form-control" id="{id}" {state}>'
        "<option>{value}</option></select></div>",
        tabs=BOOTSTRAP_TABS,
        tab=BOOTSTRAP_TAB,
        menu=BOOTSTRAP_MENU,
        entry=BOOTSTRAP_ENTRY,
        pages=BOOTSTRAP_PAGES,
        page=BOOTSTRAP_PAGE,
        active="active",
        table='<table class="table table-striped">',
        row_check='<div class="checkbox mb-0"><label><input type="checkbox" {state}><span class="checkbox-decorator">'
        '<span class="check"></span></span></label></div>',
        accent="#009688",
    ),
    "metro4": AppKit(
        ("metro4/build/css/metro-all.min.css",),
        '<div><input type="checkbox" data-role="checkbox" data-caption="{text}" {state}></div>',
        '<div><input type="radio" data-role="radio" data-caption="{text}" {state}></div>',
        '<div><input type="checkbox" data-role="switch" data-caption="{text}" {state}></div>',
        '<button type="button" class="button {look}" {state}>{text}</button>',
        ("primary", ""),
        '<div class="form-group"><label>{text}</label><input type="text" data-role="input" data-clear-button="false" value="{value}" {state}></div>',
        '<div class="form-group"><label>{text}</label><select data-role="select" data-filter="false" {state}><option selected>{value}</option></select></div>',
        tabs='<ul data-role="tabs" data-expand="true">{items}</ul>',
        tab='<li class="{active}"><a href="#">{text}</a></li>',
        menu='<ul class="v-menu">{items}</ul>',
        entry='<li class="{active}"><a href="#">{text}</a></li>',
        pages='<ul class="pagination">{items}</ul>',
        page='<li class="page-item {active}"><a class="page-link" href="#">{text}</a></li>',
        active="active",
        table='<table class="table striped row-border">',
        row_check='<input type="checkbox" data-role="checkbox" {state}>',
        accent="#0366d6",
        scripts=("metro4/build/js/metro.min.js",),
    ),
    "@fluentui/react": AppKit(
        (), PLACE, "", SWITCH_PLACE, BUTTON_PLACE, ("strong", "plain"), FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE, table=GRID, accent="#0078d4",
        scripts=(*REACT, "@fluentui_react/dist/fluentui-react.umd.js"), mount=FLUENT, before="window.FabricConfig = { iconBaseUrl: '@fluentui_font-icons-mdl2/fonts/' };",
    ),
    "primereact": AppKit(
        ("primereact/resources/themes/saga-green/theme.css",),
        PLACE, "", SWITCH_PLACE, BUTTON_PLACE, ("strong", "plain"), FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE, pages=PAGES_PLACE, table=GRID, accent="#22a95f",
        dark='style="background: #17212f; color: #eee"', dark_style="primereact/resources/themes/vela-orange/theme.css",
        scripts=PRIME, mount=PRIMEREACT,
    ),
    "grommet": AppKit(
        (), PLACE, "", SWITCH_PLACE, BUTTON_PLACE, ("strong", "plain"), FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE, pages=PAGES_PLACE, table=GRID, accent="#7d4cdb",
        scripts=(*STYLED, "grommet/grommet.min.js"), mount=GROMMET,
    ),
    "evergreen-ui": AppKit(
        (), PLACE, "", SWITCH_PLACE, BUTTON_PLACE, ("strong", "plain"), FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE, pages=PAGES_PLACE, table=GRID, accent="#3366ff",
        scripts=(*STYLED, "evergreen-ui/umd/evergreen.min.js"), mount=EVERGREEN + TELL_TOGGLES.replace("FIND", "input.nextElementSibling"),
    ),
    "@syncfusion/ej2": AppKit(
        ("@syncfusion_ej2/material.css",),
        PLACE, "", SWITCH_PLACE, BUTTON_PLACE, ("strong", "plain"), FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE, pages=PAGES_PLACE, table=GRID, accent="#e3165b",
        dark='style="background: #1e1e1e; color: #eee"', dark_style="@syncfusion_ej2/tailwind-dark.css",
        scripts=("@syncfusion_ej2/dist/ej2.min.js",), mount=SYNCFUSION,
    ),
    "webix": AppKit(
        ("webix/webix.min.css",),
        PLACE, "", SWITCH_PLACE, BUTTON_PLACE, ("strong", "plain"), FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE, row_check='<div data-part="Checkbox" data-state="{state}"></div>', accent="#1ca1c1",
        dark='style="background: #393939; color: #eee"', dark_style="webix/skins/contrast.min.css",
        scripts=("webix/webix.min.js",), mount=WEBIX,
    ),
    "vuestic-ui": AppKit(
        ("vuestic-ui/dist/vuestic-ui.css", "material-icons/iconfont/material-icons.css"),
        '<div class="row"><va-checkbox :model-value="{on}" :disabled="{off:true|false}" label="{text}"></va-checkbox></div>',
        '<div class="row"><va-radio :model-value="{on}" :option="true" :disabled="{off:true|false}" label="{text}"></va-radio></div>',
        '<div class="row"><va-switch :model-value="{on}" :disabled="{off:true|false}" label="{text}"></va-switch></div>',
        '<va-button preset="{look}" :disabled="{off:true|false}">{text}</va-button> ',
        ("default", "secondary"),
        '<div class="row"><va-input label="{text}" model-value="{value}" :disabled="{off:true|false}"></va-input></div>',
        tabs='<va-tabs model-value="{chosen}"><template #tabs>{items}</template></va-tabs>',
        tab='<va-tab name="{text}">{text}</va-tab>',
        pages='<va-pagination :model-value="{number}" :pages="5"></va-pagination>',
        table=VUESTIC_GRID,
        accent="#154ec1",
        before="for (const name of ['vue', 'vue$1']) Object.defineProperty(window, name, { get: () => window.Vue });",
        scripts=("vue/dist/vue.global.prod.js", "vuestic-ui/dist/iife/main.js"),
        mount=f"Vue.createApp({{ {VUE_DATA} }}).use(vuestic.createVuestic()).mount('main');"
        + TELL_TOGGLES.replace("FIND", "input.closest('.va-checkbox')?.querySelector('.va-checkbox__square')"),
    ),
    "vue-material": AppKit(
        ("vue-material/dist/vue-material.min.css", "vue-material/dist/theme/default.css"),
        '<div class="row"><md-checkbox :model="{on}" :disabled="{off:true|false}">{text}</md-checkbox></div>',
        '<div class="row"><md-radio :model="{on}" :value="true" :disabled="{off:true|false}">{text}</md-radio></div>',
        '<div class="row"><md-switch :model="{on}" :disabled="{off:true|false}">{text}</md-switch></div>',
        '<md-button class="md-raised {look}" :disabled="{off:true|false}">{text}</md-button>',
        ("md-primary", ""),
        '<md-field><label>{text}</label><md-input value="{value}" :disabled="{off:true|false}"></md-input></md-field>',
        tabs='<md-tabs md-active-tab="tab-{number}">{items}</md-tabs>',
        tab='<md-tab id="tab-{at}" md-label="{text}"></md-tab>',
        table='<md-table md-card>',
        accent="#448aff",
        scripts=("vue@2/dist/vue.min.js", "vue-material/dist/vue-material.min.js"),
        mount="Vue.use(VueMaterial.default); new Vue({ el: 'main' });"
        + TELL_TOGGLES.replace("FIND", "input.closest('[class*=-container]')"),
    ),
}  # fmt: skip
CHOICES = """Archive after a year|Ask for a second opinion|Attach the terms|Book the return trip|Copy the team lead|Daily digest|
Encrypt backups|Extra luggage|Fasten the lid|Flag overdue items|Free cancellation|Gift wrapping|Ignore weekends|Insure the parcel|
Join with audio only|Keep a paper trail|Label fragile goods|Leave at the door|Limit to members|Mask account numbers|Mute at night|
Notify by text message|Open on Sundays|Pay in instalments|Pin to the top|Quiet coach|Recalculate prices|Remember this device|
Round to five cents|Sign in with a key|Skip public holidays|Step-free access|Track mileage|Translate replies|Use local time|
Verify addresses|Warn at 80 percent|Weekly summary"""
PRIORITIES = "Standard delivery|Express delivery|Collect in store|By courier|Economy|As soon as possible|Next business day|On request"
PRESSED = "Save|Cancel|Apply|Export|Duplicate|Assign|Merge|Discard|Publish|Add member|Reset|Continue"
FILLED = "Name:Ines Carvalho|Reference:PO 48211|Depot:Gothenburg|Telephone:+44 20 7946 0958|Limit:2,500|Street:Rue du Lac 14|Postcode:8004"
CHOSEN = "Currency:Swiss franc|Time zone:Central Europe|Role:Maintainer|Retention:90 days|Team:Operations|Sort by:Last changed"
SECTIONS = "Overview|Orders|Members|Billing|Shipping|Alerts|Reports|Devices"
LOOK = """<style>body {{ font-family: 'Liberation Sans', Arial, sans-serif; margin: 0; {body} }} main {{ min-height: 100vh }}
.top {{ display: flex; gap: 26px; align-items: center; height: 52px; padding: 0 24px; background: {accent}; color: #fff; font-size: 15px }}
.top b {{ font-size: 18px }} .frame {{ display: flex }} .side {{ width: 190px; padding: 20px 12px; flex: none }}
.work {{ flex: 1; padding: 18px 24px; min-width: 0 }} .work h1 {{ font-size: 24px; margin: 0 0 12px }} h2 {{ font-size: 17px; margin: 0 0 10px }}
.cards {{ columns: {columns}; column-gap: 36px; margin-top: 16px }} .card-of {{ break-inside: avoid; padding-bottom: 20px }}
.row {{ margin-bottom: 8px }} .above {{ display: flex; flex-direction: column; gap: 4px; margin-bottom: 10px }} .beside {{ display: flex; gap: 8px; align-items: center }}
.bar {{ display: flex; gap: 12px; align-items: end; margin: 12px 0; flex-wrap: wrap }} .bar > * {{ margin-bottom: 0 !important }}
.menu {{ display: flex; flex-direction: column }} .entry {{ padding: 9px 12px; color: inherit; text-decoration: none; border-radius: 5px; font-size: 15px }}
.entry[aria-current] {{ background: {accent}; color: #fff !important }} table.plain {{ border-collapse: collapse }} .plain td, .plain th {{ text-align: left;
border-bottom: 1px solid #8886; padding: 8px 14px 8px 0 }} .box {{ width: {wide}px; margin: 60px auto 0; padding: 26px 30px; border-radius: 8px;
box-shadow: 0 6px 30px #0005; {box} }} .tick:checked {{ background-image: url("data:image/svg+xml,%3Csvg viewBox='0 0 16 16' fill='white' xmlns='http://www.w3.org/2000/svg'%3E%3Cpath d='M12.207 4.793a1 1 0 010 1.414l-5 5a1 1 0 01-1.414 0l-2-2a1 1 0 011.414-1.414L6.5 9.086l4.293-4.293a1 1 0 011.414 0z'/%3E%3C/svg%3E") }}</style>"""
LAYOUTS = ("settings", "records", "dialog")


@dataclass(frozen=True)
class AppPage:
    """One page in a kit; chance decides what is on it."""

    kit: AppKit
    chance: random.Random
    rows: list[list[str]]  # of a table, the first one with its heads
    is_dark: bool

    def write_settings(self) -> str:
        kit, sections = self.kit, self.chance.sample(SECTIONS.split("|"), 6)
        cards = [
            self.write_card(("Options", "Rights", "Reminders"), kit.check, "checkbox", CHOICES, self.chance.randint(5, 7)),
            self.write_card(("Delivery", "Priority"), kit.radio or kit.check, "radio", PRIORITIES, 4),
            self.write_card(("Automatic", "Features"), kit.switch, "checkbox", CHOICES, self.chance.randint(3, 5)),
            self.write_card(("Contact", "Account"), kit.field, "", FILLED, 3),
            self.write_card(("Defaults", "Preferences"), kit.select, "", CHOSEN, 2),
        ]  # fmt: skip
        self.chance.shuffle(cards)
        buttons = " ".join(self.fill_all(kit.button, "", PRESSED, 4))
        title = self.chance.choice(("Settings", "Warehouse", "Workspace"))
        body = f'<h1>{title}</h1>{self.write_tabs()}<div class="cards">{"".join(cards)}</div><div class="bar">{buttons}</div>'
        return self.write_frame(sections, body)

    def write_records(self) -> str:
        kit, sections = self.kit, self.chance.sample(SECTIONS.split("|"), 5)
        bar = [*self.fill_all(kit.field, "", "Search:zur", 1), *self.fill_all(kit.select, "", CHOSEN, 1)]
        bar += self.fill_all(kit.button, "", PRESSED, 3)
        pages = self.write_items(kit.pages, kit.page, ["1", "2", "3", "4", "5"])
        title = self.chance.choice(("Airports", "Stations", "Destinations"))
        return self.write_frame(
            sections, f'<h1>{title}</h1><div class="bar">{"".join(bar)}</div>{self.write_table()}{pages}'
        )

    def write_dialog(self) -> str:
        kit = self.kit
        cards = [
            self.write_card(("Notify me", "Include"), kit.check, "checkbox", CHOICES, 4),
            self.write_card(("How?", "When?"), kit.radio or kit.check, "radio", PRIORITIES, 3),
            self.write_card(("More",), kit.switch, "checkbox", CHOICES, 3),
            self.write_card(("Recipient",), kit.field, "", FILLED, 2),
        ]
        buttons = " ".join(self.fill_all(kit.button, "", PRESSED, 3))
        title = self.chance.choice(("New shipment", "Invite a guest", "Plan a visit"))
        return f'<div class="box"><h1>{title}</h1><div class="cards">{"".join(cards)}</div><div class="bar">{buttons}</div></div>'

    def write_frame(self, sections: list[str], body: str) -> str:
        menu = self.write_items(self.kit.menu, self.kit.entry, sections)
        top = "".join(f"<span>{name}</span>" for name in ("Home", "Help", "Ines Carvalho"))
        return f'<div class="top"><b>Northwind</b>{top}</div><div class="frame"><div class="side">{menu}</div><div class="work">{body}</div></div>'

    def write_card(self, titles: tuple[str, ...], markup: str, box: str, words: str, count: int) -> str:
        if not markup:
            return ""
        body = " ".join(self.fill_all(markup, box, words, count))
        return f'<section class="card-of"><h2>{self.chance.choice(titles)}</h2>{body}</section>'

    def write_tabs(self) -> str:
        return self.write_items(self.kit.tabs, self.kit.tab, self.chance.sample(SECTIONS.split("|"), 4))

    def write_items(self, around: str, markup: str, names: list[str]) -> str:
        """Write tabs, the entries of a menu or page numbers, one of them chosen."""
        at = self.chance.randrange(len(names))
        items = "".join(
            self.fill(
                markup, text=name, at=str(number), on=number == at, active=self.kit.active if number == at else "",
                current='aria-current="page"' if number == at else "",
            )
            for number, name in enumerate(names)
        )  # fmt: skip
        number = at + 1 if names[0] == "1" else at
        return self.fill(around, items=items, names="|".join(names), chosen=names[at], number=str(number))

    def write_table(self) -> str:
        if not self.kit.table.startswith("<table") and not self.kit.table.startswith("<md-table"):
            return self.kit.table
        check = self.kit.row_check or self.kit.check.split("<label")[0].replace("{box}", "checkbox")
        check += "</div>" * (check.count("<div") - check.count("</div"))
        head, *rows = self.rows
        table, row, cell = (
            ("md-table", "md-table-row", "md-table-cell") if "md-table" in self.kit.table else ("table", "tr", "td")
        )
        lines = [
            f"<{row}><{cell}></{cell}>{''.join(f'<th>{c}</th>' if cell == 'td' else f'<md-table-head>{c}</md-table-head>' for c in head)}</{row}>"
        ]
        for cells in rows:
            on = self.chance.random() < 0.25
            box = self.fill(check, text="", state="checked" if on else "", on=on, off=False)
            lines.append(
                f"<{row} {self.kit.chosen if on else ''}><{cell}>{box}</{cell}>{''.join(f'<{cell}>{c}</{cell}>' for c in cells)}</{row}>"
            )
        if table == "table":
            lines = ["<thead>", lines[0], "</thead><tbody>", *lines[1:], "</tbody>"]
        text = "".join(lines)
        for plain, own in self.kit.cells:
            text = text.replace(plain, own)
        return f"{self.fill(self.kit.table)}{text}</{table}>"

    def fill_all(self, markup: str, box: str, words: str, count: int) -> Iterator[str]:
        """Yield markup with texts and states by chance; of radio buttons one is chosen."""
        if not markup:
            return
        chosen = self.chance.randrange(count) if box == "radio" else None
        for at, text in enumerate(self.chance.sample(words.replace("\n", "").split("|"), count)):
            on = bool(box) and (at == chosen if box == "radio" else self.chance.random() < 0.5)
            off = self.chance.random() < 0.27
            yield self.fill(
                markup, box=box, text=text.partition(":")[0], value=text.partition(":")[2], on=on, off=off,
                state=" ".join(name for name, is_so in (("checked", on), ("disabled", off)) if is_so),
            )  # fmt: skip

    def fill(self, markup: str, *, on: bool = False, off: bool = False, value: str = "", **texts: str) -> str:
        """Fill in markup; {on:A|B} is A if it is on, B otherwise."""
        is_strong = self.chance.random() < 0.5
        markup = markup.replace("{look}", self.kit.looks[not is_strong])
        for name, is_so in (("on", on), ("off", off)):
            while f"{{{name}:" in markup:
                before, rest = markup.split(f"{{{name}:", 1)
                choice, after = rest.split("}", 1)
                markup = before + choice.split("|")[not is_so] + after
        texts |= {
            "ink": "text-white" if self.is_dark else "text-gray-900",
            "paper": "bg-white/5" if self.is_dark else "bg-white",
        }
        texts |= {
            "edge": "border-gray-600" if self.is_dark else "border-gray-300",
            "id": f"a{self.chance.randrange(10**6)}",
        }
        texts |= {
            "on": str(on).lower(),
            "off": "disabled" if off else "",
            "value": value or ("strong" if is_strong else "plain"),
        }
        texts["part"] = "Radio" if texts.get("box") == "radio" else "Checkbox"
        for name, text in texts.items():
            markup = markup.replace(f"{{{name}}}", text)
        return markup


def write_pages(packages: dict[str, Path], folder: Path, rows: list[list[str]]) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        if not (link := folder / name.replace("/", "_")).is_symlink():
            link.symlink_to(home)
    for name, kit in KITS.items():
        for layout in LAYOUTS:
            chance = random.Random(f"{name} {layout}")
            some = [rows[0], *chance.sample(rows[1:], 9)]
            is_dark = bool(kit.dark) and layout == chance.choice(("settings", "dialog"))
            file = f"{name.replace('/', '_').strip('@')}_{layout}.html"
            (folder / file).write_text(_write_page(AppPage(kit, chance, some, is_dark), layout))
            yield f"app {name} {layout}", folder, file


def _write_page(page: AppPage, layout: str) -> str:
    kit, chance = page.kit, page.chance
    body = getattr(page, f"write_{layout}")()
    if page.is_dark and kit.dark_style:
        kit = replace(kit, styles=(kit.dark_style, *kit.styles[1:]))
    head = "".join(f'<link rel="stylesheet" href="{style}">' for style in kit.styles)
    records = [{"key": at, **{f"c{i}": cell for i, cell in enumerate(row)}} for at, row in enumerate(page.rows[1:])]
    data = (
        f"const realRows = {json.dumps(page.rows)}, realRecords = {json.dumps(records)}, "
        f"realChosen = {json.dumps(sorted(chance.sample(range(9), 2)))};"
    )
    scripts = f"<script>{data}{kit.before}</script>" + "".join(
        f'<script src="{script}"></script>' for script in kit.scripts
    )
    scripts += f"<script>{kit.mount}</script>" if kit.mount else ""
    root = kit.dark if page.is_dark else kit.root
    look = LOOK.format(
        columns=2 if layout == "dialog" else chance.choice((2, 3)), accent=kit.accent, wide=chance.choice((680, 760)),
        body="background: #eef0f3" if layout == "dialog" and not page.is_dark else "",
        box="background: #8882" if page.is_dark else "background: #fff",
    )  # fmt: skip
    return (
        f'<!DOCTYPE html><html {root}><meta charset="utf-8"><title>Northwind</title>{head}{look}'
        f"<body {root}>{kit.form[0]}<main>{body}</main>{kit.form[1]}{scripts}"
    )
