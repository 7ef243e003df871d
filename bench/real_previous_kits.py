"""Pages with the components of interface kits that the other parts have nothing of, for the previous part.

Kits that are style sheets are used in the markup that each one documents; the others draw their components themselves.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGES = 2  # of each kit
VUE = ("vue/dist/vue.global.prod.js",)
REACT = ("react/umd/react.production.min.js", "react-dom/umd/react-dom.production.min.js", "moment/moment.js")
PLACE = '<div class="row" data-part="{part}" data-state="{state}" data-value="{value}">{text}</div>'
SWITCH_PLACE = PLACE.replace("{part}", "Switch")
BUTTON_PLACE = PLACE.replace("{part}", "Button").replace("div", "span")
FIELD_PLACE = PLACE.replace("{part}", "Input")
SELECT_PLACE = PLACE.replace("{part}", "Select")
TABS_PLACE = '<div data-part="Tab" data-items="{names}" data-value="{chosen}"></div>'
READ_PLACE = """
for (const place of document.querySelectorAll('[data-part]')) {
    const { part, state = '', value, items } = place.dataset, text = place.textContent;
    const disabled = /disabled/.test(state), checked = /(^| )checked/.test(state);
    place.textContent = '';
    DRAW
}"""
REACT_MOUNT = "const make = React.createElement, off = () => {};" + READ_PLACE.replace(
    "DRAW", "const root = ReactDOM.createRoot(place); root.render(CHOOSE);"
)
CHOOSE_NEXT = """
    part === 'Button' ? make(Next.Button, { type: value === 'strong' ? 'primary' : 'normal', disabled }, text)
    : part === 'Input' ? make('label', null, text, make('br'), make(Next.Input, { value, disabled, onChange: off }))
    : part === 'Switch' ? make('span', null, make(Next.Switch, { checked, onChange: off }), ' ', text)
    : part === 'Tab' ? make(Next.Tab, { activeKey: value },
        items.split('|').map(name => make(Next.Tab.Item, { title: name, key: name })))
    : make(Next[part], { checked, disabled, onChange: off }, text)"""
CHOOSE_SEMI = """
    part === 'Button' ? make(SemiUI.Button, { theme: value === 'strong' ? 'solid' : 'light', disabled }, text)
    : part === 'Input' ? make('label', null, text, make(SemiUI.Input, { value, disabled, onChange: off }))
    : part === 'Select' ? make('div', null, text, make('br'), make(SemiUI.Select, { value, disabled, optionList: [
        { value, label: value }] }))
    : part === 'Switch' ? make('span', { className: 'switch-row' }, make(SemiUI.Switch, { checked, disabled, onChange: off }), ' ', text)
    : part === 'Tab' ? make(SemiUI.Tabs, { activeKey: value },
        items.split('|').map(name => make(SemiUI.TabPane, { tab: name, itemKey: name, key: name })))
    : make(SemiUI[part], { checked, disabled, onChange: off }, text)"""
DEVEXTREME = """
document.body.classList.add('dx-viewport');
""" + READ_PLACE.replace(
    "DRAW",
    """
    const box = $('<div>').appendTo(place);
    if (part === 'Checkbox') box.dxCheckBox({ value: checked, text, disabled });
    if (part === 'Radio') box.dxRadioGroup({ items: [text], value: checked ? text : null });
    if (part === 'Button') box.dxButton({ text, type: value === 'strong' ? 'default' : 'normal', disabled });
    if (part === 'Input') box.before(text).dxTextBox({ value, disabled });
    if (part === 'Select') box.before(text).dxSelectBox({ items: [value], value, disabled });
    if (part === 'Tab') box.dxTabs({ items: items.split('|').map(text => ({ text })), width: 520,
        selectedIndex: items.split('|').indexOf(value) });""",
)
OOJS = READ_PLACE.replace(
    "DRAW",
    """
    const draw = widget => place.append(widget.$element[0]), label = text;
    const below = field => draw(new OO.ui.FieldLayout(field, { label, align: 'top' }));
    const beside = field => draw(new OO.ui.FieldLayout(field, { label, align: 'inline' }));
    if (part === 'Checkbox') beside(new OO.ui.CheckboxInputWidget({ selected: checked, disabled }));
    if (part === 'Radio') beside(new OO.ui.RadioInputWidget({ selected: checked, disabled }));
    if (part === 'Switch') beside(new OO.ui.ToggleSwitchWidget({ value: checked, disabled }));
    if (part === 'Button') draw(new OO.ui.ButtonInputWidget({ label, disabled,
        flags: value === 'strong' ? ['primary', 'progressive'] : [] }));
    if (part === 'Input') below(new OO.ui.TextInputWidget({ value, disabled }));
    if (part === 'Tab') {
        const tabs = new OO.ui.TabSelectWidget({ framed: false });
        tabs.addItems(items.split('|').map(name => new OO.ui.TabOptionWidget({ data: name, label: name })));
        tabs.selectItemByData(value);
        draw(tabs);
    }""",
)


@dataclass(frozen=True)
class Kit:
    """The markup of one kit. {box} is checkbox or radio; what a kit has no markup for is left out."""

    styles: tuple[str, ...]
    check: str
    radio: str = ""  # as `check`, if it is empty
    switch: str = ""
    button: str = ""
    field: str = ""
    select: str = ""
    table: str = '<table class="plain">'
    tabs: str = ""
    tab: str = ""
    active: str = ""  # what the chosen tab has more
    root: str = ""  # attributes of the page
    dark: str = ""  # the same when it is dark
    dark_style: str = ""  # a style sheet that takes the place of the first one when it is dark
    scripts: tuple[str, ...] = ()
    mount: str = ""


KITS: dict[str, Kit] = {
    "@stackoverflow/stacks": Kit(
        ("@stackoverflow_stacks/dist/css/stacks.css",),
        '<div class="s-{box} row"><input type="{box}" id="{id}" {state}><label class="s-label" for="{id}">{text}</label></div>',
        switch='<div class="d-flex ai-center g8 row"><input type="checkbox" class="s-toggle-switch" id="{id}" '
        '{state}><label class="s-label" for="{id}">{text}</label></div>',
        button='<button class="s-btn {strong:s-btn__filled|s-btn__outlined}" {state}>{text}</button>',
        field='<div class="row is-{state}"><label class="s-label" for="{id}">{text}</label>'
        '<input class="s-input" id="{id}" value="{value}" {state}></div>',
        select='<div class="row"><label class="s-label" for="{id}">{text}</label><div class="s-select">'
        '<select id="{id}" {state}><option>{value}</option></select></div></div>',
        table='<table class="s-table">',
        tabs='<nav class="s-navigation" role="tablist">{items}</nav>',
        tab='<button class="s-navigation--item {active}" role="tab" aria-selected="{on}">{text}</button>',
        active="is-selected",
        dark='class="theme-dark"',
    ),
    "@wikimedia/codex": Kit(
        ("@wikimedia_codex/dist/codex.style.css",),
        '<span class="cdx-{box} row"><div class="cdx-{box}__wrapper"><input id="{id}" class="cdx-{box}__input" '
        'type="{box}" {state}><span class="cdx-{box}__icon"></span><div class="cdx-{box}__label cdx-label">'
        '<label for="{id}" class="cdx-label__label"><span class="cdx-label__label__text">{text}</span></label></div>'
        "</div></span>",
        switch='<div class="row"><span class="cdx-toggle-switch"><input id="{id}" class="cdx-toggle-switch__input" type="checkbox" '
        'role="switch" {state}><span class="cdx-toggle-switch__switch"><span class="cdx-toggle-switch__switch__grip">'
        '</span></span><div class="cdx-toggle-switch__label cdx-label"><label for="{id}" class="cdx-label__label">'
        '<span class="cdx-label__label__text">{text}</span></label></div></span></div>',
        button='<button class="cdx-button {strong:cdx-button--action-progressive cdx-button--weight-primary|}" {state}>'
        "{text}</button>",
        field='<div class="row"><label for="{id}">{text}</label><div class="cdx-text-input">'
        '<input id="{id}" class="cdx-text-input__input" value="{value}" {state}></div></div>',
        select='<div class="row"><label for="{id}">{text}</label><br><select id="{id}" class="cdx-select" {state}>'
        "<option>{value}</option></select></div>",
        table='<div class="cdx-table"><table class="cdx-table__table cdx-table__table--layout-auto">',
        tabs='<div class="cdx-tabs"><div class="cdx-tabs__header"><div class="cdx-tabs__list" role="tablist">{items}'
        "</div></div></div>",
        tab='<button class="cdx-tabs__list__item" role="tab" aria-selected="{on}">{text}</button>',
    ),
    "@utrecht/component-library-css": Kit(
        ("@utrecht_design-tokens/dist/index.css", "@utrecht_component-library-css/dist/index.css"),
        '<div class="utrecht-form-field utrecht-form-field--checkbox row"><input type="checkbox" id="{id}" '
        'class="utrecht-checkbox utrecht-checkbox--html-input utrecht-checkbox--custom" {state}> '
        '<label class="utrecht-form-label utrecht-form-label--checkbox" for="{id}">{text}</label></div>',
        '<div class="utrecht-form-field utrecht-form-field--radio row"><input type="radio" id="{id}" '
        'class="utrecht-radio-button utrecht-radio-button--html-input" {state}> '
        '<label class="utrecht-form-label utrecht-form-label--radio" for="{id}">{text}</label></div>',
        button='<button class="utrecht-button utrecht-button--{strong:primary|secondary}-action" {state}>{text}</button>',
        field='<div class="utrecht-form-field row"><label class="utrecht-form-label" for="{id}">{text}</label>'
        '<input class="utrecht-textbox utrecht-textbox--html-input" id="{id}" value="{value}" {state}></div>',
        select='<div class="utrecht-form-field row"><label class="utrecht-form-label" for="{id}">{text}</label>'
        '<select class="utrecht-select utrecht-select--html-select" id="{id}" {state}><option>{value}</option></select>'
        "</div>",
        table='<table class="utrecht-table utrecht-table--html-table">',
        root='class="utrecht-theme"',
    ),
    "@mozilla-protocol/core": Kit(
        ("@mozilla-protocol_core/protocol/css/protocol.css", "@mozilla-protocol_core/protocol/css/protocol-components.css"),
        '<div class="mzp-c-choice"><input class="mzp-c-choice-control" type="{box}" id="{id}" {state}>'
        '<label class="mzp-c-choice-label" for="{id}">{text}</label></div>',
        button='<button class="mzp-c-button {strong:mzp-t-product|mzp-t-secondary}" {state}>{text}</button>',
        field='<div class="mzp-c-field"><label class="mzp-c-field-label" for="{id}">{text}</label>'
        '<input class="mzp-c-field-control" id="{id}" value="{value}" {state}></div>',
        select='<div class="mzp-c-field"><label class="mzp-c-field-label" for="{id}">{text}</label>'
        '<select class="mzp-c-field-control" id="{id}" {state}><option>{value}</option></select></div>',
        table='<table class="mzp-u-data-table">',
    ),
    "basecoat-css": Kit(
        ("basecoat-css/dist/basecoat.cdn.css",),
        '<label class="label gap-3 row"><input type="{box}" class="input" {state}>{text}</label>',
        switch='<label class="label gap-3 row"><input type="checkbox" role="switch" class="input" {state}>{text}</label>',
        button='<button class="btn" data-variant="{strong:primary|outline}" {state}>{text}</button>',
        field='<div class="row"><label class="label" for="{id}">{text}</label>'
        '<input class="input" id="{id}" value="{value}" {state}></div>',
        select='<div class="row"><label class="label" for="{id}">{text}</label><select class="select" id="{id}" {state}>'
        "<option>{value}</option></select></div>",
        table='<table class="table">',
        tabs='<div class="tabs"><nav role="tablist">{items}</nav></div>',
        tab='<button type="button" role="tab" aria-selected="{on}">{text}</button>',
        dark='class="dark"',
    ),
    "@hashicorp/design-system-components": Kit(
        (
            "@hashicorp_design-system-tokens/dist/products/css/tokens.css",
            "@hashicorp_design-system-components/dist/styles/@hashicorp/design-system-components.css",
        ),
        '<div class="hds-form-field--layout-flag row"><label class="hds-form-label hds-form-field__label" for="{id}">'
        '{text}</label><div class="hds-form-field__control"><input class="hds-form-{box}" type="{box}" id="{id}" {state}>'
        "</div></div>",
        switch='<div class="hds-form-field--layout-flag row"><label class="hds-form-label hds-form-field__label" '
        'for="{id}">{text}</label><div class="hds-form-field__control"><div class="hds-form-toggle"><input '
        'class="hds-form-toggle__control" type="checkbox" role="switch" id="{id}" {state}><div '
        'class="hds-form-toggle__facade"></div></div></div></div>',
        button='<button class="hds-button hds-button--size-medium hds-button--color-{strong:primary|secondary}" {state}>'
        '<span class="hds-button__text">{text}</span></button>',
        field='<div class="hds-form-field--layout-vertical row"><label class="hds-form-label" for="{id}">{text}</label>'
        '<div class="hds-form-field__control"><input class="hds-form-text-input" id="{id}" value="{value}" {state}></div>'
        "</div>",
        select='<div class="hds-form-field--layout-vertical row"><label class="hds-form-label" for="{id}">{text}</label>'
        '<div class="hds-form-field__control"><select class="hds-form-select" id="{id}" {state}><option>{value}</option>'
        "</select></div></div>",
        tabs='<div class="hds-tabs hds-tabs--size-medium"><div class="hds-tabs__tablist-wrapper"><ul '
        'class="hds-tabs__tablist" role="tablist">{items}</ul></div></div>',
        tab='<li class="hds-tabs__tab {active}" role="presentation"><button class="hds-tabs__tab-button" role="tab" '
        'aria-selected="{on}">{text}</button></li>',
        active="hds-tabs__tab--is-selected",
    ),
    "devextreme": Kit(
        ("devextreme/dist/css/dx.light.css", "devextreme/dist/css/dx.common.css"),
        PLACE, "", "", BUTTON_PLACE, FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE,
        dark='style="background: #363640; color: #dedede"',
        dark_style="devextreme/dist/css/dx.dark.css",
        scripts=("jquery/dist/jquery.min.js", "devextreme/dist/js/dx.web.js"),
        mount=DEVEXTREME,
    ),
    "@alifd/next": Kit(
        ("@alifd_next/dist/next.css",),
        PLACE, "", SWITCH_PLACE, BUTTON_PLACE, FIELD_PLACE,
        tabs=TABS_PLACE,
        scripts=(*REACT, "@alifd_next/dist/next.min.js"),
        mount=REACT_MOUNT.replace("CHOOSE", CHOOSE_NEXT),
    ),
    "@douyinfe/semi-ui": Kit(
        ("@douyinfe_semi-ui/dist/css/semi.min.css",),
        PLACE, "", SWITCH_PLACE, BUTTON_PLACE, FIELD_PLACE, SELECT_PLACE,
        tabs=TABS_PLACE,
        dark='theme-mode="dark" style="background: #16161a; color: #f9f9f9"',
        scripts=(*REACT, "@douyinfe_semi-ui/dist/umd/semi-ui.min.js"),
        mount=REACT_MOUNT.replace("CHOOSE", CHOOSE_SEMI),
    ),
    "oojs-ui": Kit(
        ("oojs-ui/dist/oojs-ui-apex.css",),
        PLACE, "", SWITCH_PLACE, BUTTON_PLACE, FIELD_PLACE,
        tabs=TABS_PLACE,
        scripts=(
            "jquery/dist/jquery.min.js", "oojs/dist/oojs.min.js", "oojs-ui/dist/oojs-ui.min.js",
            "oojs-ui/dist/oojs-ui-apex.min.js",
        ),
        mount=OOJS,
    ),
    "wave-ui": Kit(
        ("wave-ui/dist/wave-ui.css",),
        '<div class="row"><w-checkbox :model-value="{on}" :disabled="{off}">{text}</w-checkbox></div>',
        '<div class="row"><w-radio :model-value="{on}" :disabled="{off}">{text}</w-radio></div>',
        '<div class="row"><w-switch :model-value="{on}" :disabled="{off}">{text}</w-switch></div>',
        '<w-button {strong:bg-color="primary"|outline color="primary"} :disabled="{off}">{text}</w-button>',
        '<div class="row"><w-input outline label="{text}" label-position="left" model-value="{value}" '
        ':disabled="{off}"></w-input></div>',
        tabs="<w-tabs :items=\"'{names}'.split('|').map(title => ({{ title }}))\" :model-value=\"{number}\"></w-tabs>",
        scripts=(*VUE, "wave-ui/dist/wave-ui.umd.js"),
        mount="Vue.createApp({}).use(WaveUI.default || WaveUI, { theme: 'auto', colors: { dark: { primary: '#8ab4f8' } } }).mount('main')",
    ),
}  # fmt: skip
CHOICES = """Adaptive brightness|Answer calls with the camera off|Ask before printing|Blur the background|Card payments|
Close the shutters at dusk|Count returning visitors|Delay the first mail|Enlarge small targets|Forward to the branch|
Group by author|Hide solved tickets|Include weekends|Keep the left margin|List archived projects|Log failed sign-ins|
Merge duplicate rows|Night tariff|Offer a receipt|Pause on errors|Prefer the short route|Print in colour|Reserve a seat|
Ring twice|Roll back on failure|Send from my address|Share with partners|Sort by distance|Train only|Upload originals|
Vegetarian menu|Wait for approval|Window seat|Write protected"""
PRESSED = "Save changes|Revert|Create invoice|Scan again|Approve|Hand over|Compare|Print|Invite|Renew|Test run|Archive"
FILLED = "Reference:INV-20418|Contact:Mira Novak|Harbour:Travemünde|Budget:18,500|Phone:+45 33 12 80|Cost centre:7301"
CHOSEN = (
    "Region:Northern Europe|Language:Portuguese|Format:Comma separated|Interval:Every 15 minutes|Paper:A4 landscape"
)
SECTIONS = "Summary|Access|Devices|Usage|Invoices|Audit log|Labels|Rules"
RECORDS = (
    ("River", "Length in km", "Mouth", "Countries"),
    ("Danube", "2,850", "Black Sea", "10"), ("Rhine", "1,233", "North Sea", "6"), ("Elbe", "1,094", "North Sea", "2"),
    ("Vistula", "1,047", "Baltic Sea", "1"), ("Tagus", "1,007", "Atlantic", "2"), ("Loire", "1,006", "Atlantic", "1"),
    ("Ebro", "930", "Mediterranean", "1"), ("Oder", "854", "Baltic Sea", "3"), ("Po", "652", "Adriatic Sea", "1"),
)  # fmt: skip
LOOK = """<style>body {{ font-family: 'Liberation Sans', Arial, sans-serif; margin: 0 }} h2 {{ font-size: 19px;
margin: 0 0 14px; font-weight: 600 }} .row {{ margin-bottom: 10px }} main {{ padding: 18px 26px }}
.all {{ columns: {columns}; column-gap: 40px; max-width: 1180px; margin-top: 20px }} section {{ break-inside: avoid;
padding-bottom: 26px }} table.plain {{ border-collapse: collapse }} .plain td, .plain th {{ text-align: left;
border-bottom: 1px solid #8886; padding: 7px 14px 7px 0 }}</style>"""


def write_pages(packages: dict[str, Path], folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        if not (link := folder / name.replace("/", "_")).is_symlink():
            link.symlink_to(home)
    for name, kit in KITS.items():
        for number in range(PAGES):
            file = f"{name.replace('/', '_').strip('@')}_{number}.html"
            (folder / file).write_text(_write_page(kit, random.Random(f"{name} page {number}"), is_dark=number == 1))
            yield f"kit {name} {number}", folder, file


def _write_page(kit: Kit, chance: random.Random, *, is_dark: bool) -> str:
    sections = [
        _write_section(title, " ".join(_fill_all(markup, box, words, count, chance)))
        for title, markup, box, words, count in (
            (chance.choice(("Options", "Filters", "Rights")), kit.check, "checkbox", CHOICES, chance.randint(5, 7)),
            (chance.choice(("Tariff", "Priority")), kit.radio or kit.check, "radio", CHOICES, chance.randint(4, 5)),
            (chance.choice(("Automation", "Quick settings")), kit.switch, "checkbox", CHOICES, chance.randint(3, 5)),
            (chance.choice(("Details", "Order")), kit.field, "", FILLED, 3),
            (chance.choice(("View", "Export")), kit.select, "", CHOSEN, 2),
            (chance.choice(("What next?", "Commands")), kit.button, "", PRESSED, 4),
        )
        if markup
    ]
    sections.append(_write_section("Rivers", _write_table(kit.table, chance)))
    chance.shuffle(sections)
    dark = kit.dark if is_dark else ""
    root = dark or kit.root
    styles = (kit.dark_style, *kit.styles[1:]) if dark and kit.dark_style else kit.styles
    head = "".join(f'<link rel="stylesheet" href="{style}">' for style in styles)
    scripts = "".join(f'<script src="{script}"></script>' for script in kit.scripts)
    scripts += f"<script>{kit.mount}</script>" if kit.mount else ""
    look = LOOK.format(columns=chance.choice((2, 3)))
    body = f'<main>{_write_tabs(kit, chance)}<div class="all">{"".join(sections)}</div></main>{scripts}'
    title = chance.choice(("Preferences", "Workspace", "Branch office"))
    return f'<!DOCTYPE html><html {root}><meta charset="utf-8"><title>{title}</title>{look}{head}<body {root}>{body}'


def _write_section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _write_tabs(kit: Kit, chance: random.Random) -> str:
    names = chance.sample(SECTIONS.split("|"), 5)
    chosen = chance.choice(names)
    items = "".join(
        kit.tab.format(text=text, on=str(text == chosen).lower(), active=kit.active if text == chosen else "")
        for text in names
    )
    return kit.tabs.format(items=items, names="|".join(names), chosen=chosen, number=names.index(chosen))


def _write_table(markup: str, chance: random.Random) -> str:
    head, *rows = RECORDS
    cells = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in chance.sample(rows, 5))
    close = "".join(f"</{part.split()[0]}>" for part in reversed(markup.strip("<>").split("><")))
    return f"{markup}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody>{close}"


def _fill_all(markup: str, box: str, words: str, count: int, chance: random.Random) -> Iterator[str]:
    """Yield markup with texts and states by chance; of radio buttons one is chosen."""
    on = chance.randrange(count) if box == "radio" else None
    for at, text in enumerate(chance.sample(words.replace("\n", "").split("|"), count)):
        states = [
            "checked" if box and (at == on if box == "radio" else chance.random() < 0.5) else "",
            "disabled" if chance.random() < 0.3 else "",
        ]
        yield _fill(markup, box, text, " ".join(filter(None, states)), chance)


def _fill(markup: str, box: str, text: str, state: str, chance: random.Random) -> str:
    """Fill in markup; {strong:A|B} is A in a button that stands out, B otherwise."""
    is_strong = chance.random() < 0.5
    while "{strong:" in markup:
        before, rest = markup.split("{strong:", 1)
        choice, after = rest.split("}", 1)
        markup = before + choice.split("|")[not is_strong] + after
    text, _, value = text.partition(":")
    return markup.format(
        box=box, state=state, id=f"k{chance.randrange(10**6)}", text=text,
        value=value or ("strong" if is_strong else "plain"),
        on=str("checked" in state).lower(), off=str("disabled" in state).lower(),
        part="Radio" if box == "radio" else "Checkbox",
    )  # fmt: skip
