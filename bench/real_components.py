"""Pages with the components of style packages that development has none of, in the markup that each one documents."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VARIANTS = 2  # pages of each package
VUE = ("vue/dist/vue.global.prod.js",)
REACT = ("react/umd/react.production.min.js", "react-dom/umd/react-dom.production.min.js")
MOUNT_REACT = """
const make = React.createElement;
const off = () => {{}};
for (const place of document.querySelectorAll('[data-part]')) {{
    const {{ part, state }} = place.dataset, text = place.textContent;
    const disabled = /disabled/.test(state), checked = /(^| )checked/.test(state);
    ReactDOM.createRoot(place).render({choose});
}}"""
CHOOSE_MUI = """part === 'Button' ? make(MaterialUI.Button, { variant: 'contained', disabled }, text)
    : part === 'TextField'
    ? make(MaterialUI.TextField, { label: text, defaultValue: 'Berlin', disabled, size: 'small' })
    : make(MaterialUI.FormControlLabel, {
        disabled, label: text, control: make(MaterialUI[part], { checked, onChange: off })
    })"""
CHOOSE_RSUITE = """part === 'Button' ? make(rsuite.Button, { appearance: 'primary', disabled }, text)
    : part === 'Input' ? make(rsuite.Input, { defaultValue: text, disabled })
    : part === 'Toggle' ? make('span', null, make(rsuite.Toggle, { checked, disabled, onChange: off }), ' ' + text)
    : make(rsuite[part], { checked, disabled, onChange: off }, text)"""


@dataclass(frozen=True)
class Framework:
    """The markup of one package; {box} says whether it is a checkbox or a radio button."""

    styles: tuple[str, ...]
    toggle: str
    switch: str = ""
    button: str = "<button {state}>{text}</button>"
    field: str = '<p><label>{text}<br><input type="text" value="{value}" {state}></label></p>'
    table: str = "<table>"
    tabs: str = ""
    tab: str = ""
    active: str = ""  # what the active tab has more
    dark: str = ""  # attributes of the body of a dark page
    scripts: tuple[str, ...] = ()
    mount: str = ""


FRAMEWORKS: dict[str, Framework] = {
    "@blueprintjs/core": Framework(
        ("@blueprintjs_core/lib/css/blueprint.css",),
        '<label class="bp5-control bp5-{box} {classes}"><input type="{box}" {state}>'
        '<span class="bp5-control-indicator"></span>{text}</label>',
        '<label class="bp5-control bp5-switch {classes}"><input type="checkbox" {state}>'
        '<span class="bp5-control-indicator"></span>{text}</label>',
        '<button class="bp5-button bp5-intent-{look}" {state}>{text}</button>',
        '<p><label class="bp5-label">{text}<input class="bp5-input" value="{value}" {state}></label></p>',
        '<table class="bp5-html-table bp5-html-table-bordered">',
        '<div class="bp5-tabs"><ul class="bp5-tab-list" role="tablist">{items}</ul></div>',
        '<li class="bp5-tab" role="tab" aria-selected="{on}">{text}</li>',
        dark='class="bp5-dark" style="background: #252a31"',
    ),
    "@clr/ui": Framework(
        ("@clr_ui/clr-ui.min.css",),
        '<div class="clr-{box}-wrapper"><input type="{box}" id="{id}" class="clr-{box}" {state}>'
        '<label for="{id}" class="clr-control-label">{text}</label></div>',
        '<div class="clr-toggle-wrapper"><input type="checkbox" id="{id}" class="clr-toggle" {state}>'
        '<label for="{id}" class="clr-control-label">{text}</label></div>',
        '<button class="btn btn-{look}" {state}>{text}</button>',
        '<div class="clr-form-control"><label for="{id}" class="clr-control-label">{text}</label>'
        '<div class="clr-control-container"><div class="clr-input-wrapper">'
        '<input class="clr-input" id="{id}" value="{value}" {state}></div></div></div>',
        '<table class="table">',
        '<ul class="nav" role="tablist">{items}</ul>',
        '<li class="nav-item"><button class="btn btn-link nav-link {active}" aria-selected="{on}">{text}</button></li>',
        "active",
    ),
    "carbon-components": Framework(
        ("carbon-components/css/carbon-components.min.css",),
        "",
        '<div class="bx--form-item"><input class="bx--toggle-input bx--toggle-input--small" id="{id}" type="checkbox"'
        ' {state}><label class="bx--toggle-input__label" for="{id}">{text}'
        '<span class="bx--toggle__switch"></span></label></div>',
        '<button class="bx--btn bx--btn--{look}" {state}>{text}</button>',
        '<div class="bx--form-item"><label class="bx--label" for="{id}">{text}</label>'
        '<input class="bx--text-input" id="{id}" value="{value}" {state}></div>',
        '<table class="bx--data-table">',
    ),
    "beercss": Framework(
        ("beercss/dist/cdn/beer.min.css",),
        '<p><label class="{box}"><input type="{box}" {state}><span>{text}</span></label></p>',
        '<p><label class="switch"><input type="checkbox" {state}><span></span></label> {text}</p>',
        "<button {state}>{text}</button>",
        '<div class="field label border"><input type="text" value="{value}" {state}><label class="active">{text}'
        "</label></div>",
        '<table class="border">',
        '<div class="tabs">{items}</div>',
        '<a class="{active}">{text}</a>',
        "active",
        dark='class="dark"',
    ),
    "@gouvfr/dsfr": Framework(
        ("@gouvfr_dsfr/dist/dsfr.min.css",),
        '<div class="fr-{box}-group"><input type="{box}" id="{id}" {state}><label class="fr-label" for="{id}">{text}'
        "</label></div>",
        '<div class="fr-toggle"><input type="checkbox" class="fr-toggle__input" id="{id}" {state}>'
        '<label class="fr-toggle__label" for="{id}">{text}</label></div>',
        '<button class="fr-btn fr-btn--{look}" {state}>{text}</button>',
        '<div class="fr-input-group"><label class="fr-label" for="{id}">{text}</label>'
        '<input class="fr-input" id="{id}" value="{value}" {state}></div>',
        '<table class="fr-table">',
        dark='data-dark="1"',
        mount="if (document.body.dataset.dark) document.documentElement.dataset.frTheme = 'dark'",
    ),
    "bootstrap-italia": Framework(
        ("bootstrap-italia/dist/css/bootstrap-italia.min.css",),
        '<div class="form-check"><input type="{box}" id="{id}" {state}><label for="{id}">{text}</label></div>',
        '<div class="form-check"><div class="toggles"><label for="{id}">{text}<input type="checkbox" id="{id}" {state}>'
        '<span class="lever"></span></label></div></div>',
        '<button class="btn btn-{look}" {state}>{text}</button>',
        '<div class="form-group"><label for="{id}" class="active">{text}</label>'
        '<input class="form-control" id="{id}" value="{value}" {state}></div>',
        '<table class="table">',
        '<ul class="nav nav-tabs">{items}</ul>',
        '<li class="nav-item"><a class="nav-link {active}" href="#">{text}</a></li>',
        "active",
    ),
    "papercss": Framework(
        ("papercss/dist/paper.min.css",),
        '<fieldset class="form-group"><label class="paper-{short}"><input type="{box}" {state}><span>{text}</span>'
        "</label></fieldset>",
        '<fieldset class="form-group"><label class="paper-switch"><input type="checkbox" {state}>'
        '<span class="paper-switch-slider round"></span></label> {text}</fieldset>',
        '<button class="btn-{look}" {state}>{text}</button>',
        '<div class="form-group"><label for="{id}">{text}</label><input id="{id}" value="{value}" {state}></div>',
    ),
    "@salesforce-ux/design-system": Framework(
        ("@salesforce-ux_design-system/assets/styles/salesforce-lightning-design-system.min.css",),
        '<p><span class="slds-{box}"><input type="{box}" id="{id}" {state}><label class="slds-{box}__label" for="{id}">'
        '<span class="slds-{box}_faux"></span><span class="slds-form-element__label">{text}</span></label></span></p>',
        '<p><label class="slds-checkbox_toggle"><input type="checkbox" {state}>'
        '<span class="slds-checkbox_faux_container"><span class="slds-checkbox_faux"></span></span> {text}</label></p>',
        '<button class="slds-button slds-button_{slds}" {state}>{text}</button>',
        '<div class="slds-form-element"><label class="slds-form-element__label" for="{id}">{text}</label>'
        '<input class="slds-input" id="{id}" value="{value}" {state}></div>',
        '<table class="slds-table slds-table_bordered slds-table_cell-buffer">',
        '<div class="slds-tabs_default"><ul class="slds-tabs_default__nav" role="tablist">{items}</ul></div>',
        '<li class="slds-tabs_default__item {active}"><a class="slds-tabs_default__link" role="tab"'
        ' aria-selected="{on}">{text}</a></li>',
        "slds-is-active",
    ),
    "picnic": Framework(
        ("picnic/picnic.min.css",),
        '<p><label><input type="{box}" {state}><span class="checkable">{text}</span></label></p>',
        button='<button class="{look}" {state}>{text}</button>',
        table='<table class="primary">',
    ),
    "vuetify": Framework(
        ("vuetify/dist/vuetify.min.css", "@mdi_font/css/materialdesignicons.min.css"),
        '<v-{box} label="{text}" :model-value="{on}" :disabled="{off}" hide-details value="true"></v-{box}>',
        '<v-switch label="{text}" :model-value="{on}" :disabled="{off}" color="primary" hide-details></v-switch>',
        '<v-btn color="{look}" :disabled="{off}">{text}</v-btn>',
        '<v-text-field label="{text}" model-value="{value}" variant="outlined" :disabled="{off}"></v-text-field>',
        '<div class="v-table v-table--density-default"><div class="v-table__wrapper"><table>',
        '<v-tabs model-value="on">{items}</v-tabs>',
        '<v-tab value="{active}">{text}</v-tab>',
        "on",
        'data-dark="1"',
        (*VUE, "vuetify/dist/vuetify.min.js"),
        "Vue.createApp({}).use(Vuetify.createVuetify({ theme: { defaultTheme: document.body.dataset.dark ? 'dark' :"
        " 'light' } })).mount('main')",
    ),
    "quasar": Framework(
        ("quasar/dist/quasar.prod.css",),
        '<div><q-{box} label="{text}" :model-value="{on}" :val="true" :disable="{off}"></q-{box}></div>',
        '<div><q-toggle label="{text}" :model-value="{on}" :disable="{off}"></q-toggle></div>',
        '<q-btn color="{look}" label="{text}" :disable="{off}"></q-btn>',
        '<q-input outlined label="{text}" model-value="{value}" :disable="{off}"></q-input>',
        '<table class="q-table">',
        '<q-tabs model-value="on">{items}</q-tabs>',
        '<q-tab name="{active}" label="{text}"></q-tab>',
        "on",
        'data-dark="1"',
        (*VUE, "quasar/dist/quasar.umd.prod.js"),
        "Vue.createApp({}).use(Quasar, { config: { dark: !!document.body.dataset.dark } }).mount('main')",
    ),
    "naive-ui": Framework(
        (),
        '<p><n-{box} :checked="{on}" :disabled="{off}">{text}</n-{box}></p>',
        '<p><n-switch :value="{on}" :disabled="{off}"></n-switch> {text}</p>',
        '<n-button type="{look}" :disabled="{off}">{text}</n-button>',
        '<p>{text}<n-input value="{value}" :disabled="{off}"></n-input></p>',
        scripts=(*VUE, "naive-ui/dist/index.prod.js"),
        mount="Vue.createApp({}).use(naive).mount('main')",
    ),
    "@mui/material": Framework(
        (),
        '<div data-part="{part}" data-state="{state}">{text}</div>',
        '<div data-part="Switch" data-state="{state}">{text}</div>',
        '<span data-part="Button" data-state="{state}">{text}</span>',
        '<p data-part="TextField" data-state="{state}">{text}</p>',
        scripts=(*REACT, "@mui_material/umd/material-ui.production.min.js"),
        mount=MOUNT_REACT.format(choose=CHOOSE_MUI),
    ),
    "rsuite": Framework(
        ("rsuite/dist/rsuite.min.css",),
        '<div data-part="{part}" data-state="{state}">{text}</div>',
        '<div data-part="Toggle" data-state="{state}">{text}</div>',
        '<span data-part="Button" data-state="{state}">{text}</span>',
        '<p data-part="Input" data-state="{state}">{text}</p>',
        scripts=(*REACT, "rsuite/dist/rsuite.min.js"),
        mount=MOUNT_REACT.format(choose=CHOOSE_RSUITE),
        dark='class="rs-theme-dark"',
    ),
}  # fmt: skip
# Packages whose check boxes and radio buttons differ more than by a word.
CARBON = {
    "checkbox": '<div class="bx--form-item bx--checkbox-wrapper"><input class="bx--checkbox" id="{id}" type="checkbox"'
    ' {state}><label class="bx--checkbox-label" for="{id}">{text}</label></div>',
    "radio": '<div class="bx--radio-button-wrapper"><input class="bx--radio-button" id="{id}" type="radio" {state}>'
    '<label class="bx--radio-button__label" for="{id}"><span class="bx--radio-button__appearance"></span>'
    "<span>{text}</span></label></div>",
}
OWN_TOGGLES = {"carbon-components": CARBON}
OPTIONS = """Allow comments|Archive daily|Attach the log|Compress images|Confirm before closing|Draw the grid|
Email receipts|Follow symlinks|Gift wrap|Hourly report|Include drafts|Keep me informed|Large print|Lock the layout|
Mark as read|Mute this thread|No onions|Open in background|Paper invoice|Play sounds|Pin to the top|Quiet hours|
Require a signature|Round corners|Save passwords|Show line endings|Snap to guides|Spell checking|Trim spaces|Warn me"""
ACTIONS = "Publish|Discard|Apply|Preview|Duplicate|Export|Back|Next step|Sign out|Retry|Add row|Merge"
FIELDS = "City:Rotterdam|Street:Lindenweg 8|Company:Acme Tools|Postcode:10435|Port:8443|Host:mail.example"
TABS = "Overview|Members|Billing|History|Files|Alerts|Keys"
ROWS = (
    ("Station", "Opened", "Platforms", "Daily users"),
    ("Anhalter", "1841", "6", "12,400"), ("Brighton", "1840", "8", "42,900"), ("Cornavin", "1858", "8", "87,300"),
    ("Delft", "1847", "4", "36,100"), ("Estoril", "1889", "2", "9,850"), ("Fribourg", "1862", "5", "31,200"),
    ("Gdynia", "1923", "12", "28,700"), ("Haarlem", "1839", "6", "39,400"),
)  # fmt: skip


def write_pages(packages: dict[str, Path], folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the packages beside the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, home in packages.items():
        link = folder / name.replace("/", "_")
        if not link.is_symlink():
            link.symlink_to(home)
    for name, framework in FRAMEWORKS.items():
        for number in range(VARIANTS):
            file = f"{name.replace('/', '_').strip('@')}_{number}.html"
            (folder / file).write_text(_write_page(name, framework, random.Random(f"{name} {number} aside")))
            yield f"components {name}", folder, file


def _write_page(name: str, framework: Framework, chance: random.Random) -> str:
    toggles = OWN_TOGGLES.get(name) or {"checkbox": framework.toggle, "radio": framework.toggle}
    sections = [
        _write_section(title, "".join(_fill(markup, box, at, chance) for at in range(count)))
        for title, markup, box, count in (
            ("Settings", toggles["checkbox"], "checkbox", chance.randint(4, 6)),
            ("Delivery", toggles["radio"], "radio", chance.randint(3, 5)),
            ("Notifications", framework.switch, "checkbox", chance.randint(2, 4)),
            ("Account", framework.field, "", 3),
            ("Actions", f"{framework.button} ", "", 3),
        )
        if markup
    ]
    sections.append(_write_section("Stations", _write_table(framework.table, chance), "width: 580px"))
    chance.shuffle(sections)
    head = "".join(f'<link rel="stylesheet" href="{style}">' for style in framework.styles)
    scripts = "".join(f'<script src="{script}"></script>' for script in framework.scripts)
    scripts += f"<script>{framework.mount}</script>" if framework.mount else ""
    dark = framework.dark if chance.random() < 0.4 else ""
    body = _write_tabs(framework, chance) + f'<div style="display: flex; flex-wrap: wrap">{"".join(sections)}</div>'
    style = "<style>body { font-family: 'DejaVu Sans', sans-serif } .part { width: 290px; padding: 14px 18px }</style>"
    return f'<!DOCTYPE html><meta charset="utf-8">{style}{head}<body {dark}><main>{body}</main>{scripts}'


def _write_section(title: str, body: str, style: str = "") -> str:
    title = f'<h3 style="font-size: 21px; line-height: 28px; margin: 6px 0 22px">{title}</h3>'
    return f'<section class="part" style="{style}">{title}{body}</section>'


def _write_tabs(framework: Framework, chance: random.Random) -> str:
    if not framework.tabs:
        return ""
    names = chance.sample(TABS.split("|"), 4)
    on = chance.randrange(4)
    items = "".join(
        framework.tab.format(text=text, on=str(at == on).lower(), active=framework.active if at == on else "")
        for at, text in enumerate(names)
    )
    return framework.tabs.format(items=items)


def _write_table(markup: str, chance: random.Random) -> str:
    head, *rows = ROWS
    lines = [f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in chance.sample(rows, 4)]
    close = "".join(f"</{part.split()[0].strip('<>')}>" for part in reversed(markup.replace("><", ">|<").split("|")))
    return f"{markup}<thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody>{close}"


def _fill(markup: str, box: str, at: int, chance: random.Random) -> str:
    """Fill in markup with a state and a text by chance."""
    state = chance.choice(("", "checked", "", "checked", "disabled", "checked disabled"))
    if not box:
        state = "disabled" if chance.random() < 0.25 else ""
    label, _, value = chance.choice(FIELDS.split("|")).partition(":")
    label = label if "{value}" in markup or "Input" in markup or "TextField" in markup else ""
    words = OPTIONS if box else ACTIONS
    look = ("primary", "secondary", "primary")[at % 3]
    return markup.format(
        box=box, state=state, value=value, id=f"c{chance.randrange(10**6)}", look=look,
        text=label or chance.choice(words.replace("\n", "").split("|")),
        on=str("checked" in state).lower(), off=str("disabled" in state).lower(),
        classes="bp5-disabled" if "disabled" in state else "",
        part="Radio" if box == "radio" else "Checkbox",
        short="radio" if box == "radio" else "check",
        slds="brand" if look == "primary" else "neutral",
    )  # fmt: skip
