"""Pages with the check boxes, radio buttons and switches of style packages, in the markup that each one documents."""

import random
from collections.abc import Iterator
from pathlib import Path

VARIANTS = 3  # pages of each package
BOOTSTRAP = (
    '<div class="form-check {inline}"><input class="form-check-input" type="{type}" id="{id}" {state}>'
    '<label class="form-check-label" for="{id}">{text}</label></div>'
)
BOOTSTRAP_SWITCH = (
    '<div class="form-check form-switch">'
    '<input class="form-check-input" type="checkbox" role="switch" id="{id}" {state}>'
    '<label class="form-check-label" for="{id}">{text}</label></div>'
)
PLAIN = '<p><label><input type="{type}" name="{name}" {state}> {text}</label></p>'
MATERIALIZE = '<p><label><input type="{type}" name="{name}" {state}><span>{text}</span></label></p>'
MATERIALIZE_SWITCH = (
    '<div class="switch"><label>Off<input type="checkbox" {state}><span class="lever"></span>{text}</label></div>'
)
SPECTRE = (
    '<label class="form-{kind}"><input type="{type}" name="{name}" {state}><i class="form-icon"></i> {text}</label>'
)
SPECTRE_SWITCH = '<label class="form-switch"><input type="checkbox" {state}><i class="form-icon"></i> {text}</label>'
FOMANTIC = (
    '<p><span class="ui {kind} checkbox"><input type="{type}" name="{name}" {state}><label>{text}</label></span></p>'
)
FOMANTIC_SWITCH = '<p><span class="ui toggle checkbox"><input type="checkbox" {state}><label>{text}</label></span></p>'
FOUNDATION_SWITCH = (
    '<div class="switch"><input class="switch-input" id="{id}" type="checkbox" {state}>'
    '<label class="switch-paddle" for="{id}"></label></div>{text}'
)
ICHECK = (
    '<div class="icheck-primary"><input type="{type}" name="{name}" id="{id}" {state}>'
    '<label for="{id}">{text}</label></div>'
)
PRETTY = (
    '<p><span class="pretty p-default {round}"><input type="{type}" name="{name}" {state}>'
    '<span class="state p-primary"><label>{text}</label></span></span></p>'
)
PRETTY_SWITCH = (
    '<p><span class="pretty p-switch p-fill"><input type="checkbox" {state}>'
    '<span class="state p-success"><label>{text}</label></span></span></p>'
)
BOOTSTRAP_4 = (
    '<div class="custom-control custom-{kind}"><input class="custom-control-input" type="{type}" id="{id}" {state}>'
    '<label class="custom-control-label" for="{id}">{text}</label></div>'
)
BOOTSTRAP_4_SWITCH = BOOTSTRAP_4.replace("custom-{kind}", "custom-switch")
ANT = (
    '<p><label class="ant-{kind}-wrapper {classes}"><span class="ant-{kind} {classes}">'
    '<input type="{type}" class="ant-{kind}-input" {state}><span class="ant-{kind}-inner"></span></span>'
    "<span>{text}</span></label></p>"
)
ANT_SWITCH = (
    '<p><button type="button" role="switch" aria-checked="{on}" class="ant-switch {classes}" {state}>'
    '<div class="ant-switch-handle"></div><span class="ant-switch-inner"></span></button> {text}</p>'
)
ELEMENT = (
    '<p><label class="el-{kind} {classes}"><span class="el-{kind}__input {classes}">'
    '<span class="el-{kind}__inner"></span><input type="{type}" class="el-{kind}__original" {state}></span>'
    '<span class="el-{kind}__label">{text}</span></label></p>'
)
ELEMENT_SWITCH = (
    '<p><span role="switch" aria-checked="{on}" class="el-switch {classes}">'
    '<input type="checkbox" class="el-switch__input" {state}><span class="el-switch__core" style="width: 40px"></span>'
    "</span> {text}</p>"
)
DAISY = (
    '<p style="display: flex; gap: 8px"><input type="{type}" id="{id}" class="{kind}" {state}>'
    '<label for="{id}">{text}</label></p>'
)
PATTERNFLY = (
    '<div class="pf-c-{kind}"><input class="pf-c-{kind}__input" type="{type}" id="{id}" {state}>'
    '<label class="pf-c-{kind}__label" for="{id}">{text}</label></div>'
)
PATTERNFLY_SWITCH = (
    '<p><label class="pf-c-switch"><input class="pf-c-switch__input" type="checkbox" {state}>'
    '<span class="pf-c-switch__toggle"></span><span class="pf-c-switch__label">{text}</span></label></p>'
)
GOVUK = (
    '<div class="govuk-{plural}__item"><input class="govuk-{plural}__input" id="{id}" type="{type}" {state}>'
    '<label class="govuk-label govuk-{plural}__label" for="{id}">{text}</label></div>'
)
WINDOWS = '<div class="field-row"><input type="{type}" id="{id}" {state}><label for="{id}">{text}</label></div>'
USWDS = (
    '<div class="usa-{kind}"><input class="usa-{kind}__input" id="{id}" type="{type}" {state}>'
    '<label class="usa-{kind}__label" for="{id}">{text}</label></div>'
)
# For each package: its style sheet, a toggle, and a switch if it has one.
MORE_MARKUP: dict[str, tuple[str, str, str]] = {
    "bootstrap": ("dist/css/bootstrap.min.css", BOOTSTRAP_4, BOOTSTRAP_4_SWITCH),
    "antd": ("dist/antd.min.css", ANT, ANT_SWITCH),
    "element-ui": ("lib/theme-chalk/index.css", ELEMENT, ELEMENT_SWITCH),
    "daisyui": ("dist/full.css", DAISY, DAISY.replace('class="{kind}"', 'class="toggle"')),
    "@patternfly/patternfly": ("patternfly.min.css", PATTERNFLY, PATTERNFLY_SWITCH),
    "govuk-frontend": ("dist/govuk/govuk-frontend.min.css", GOVUK, ""),
    "98.css": ("dist/98.css", WINDOWS, ""),
    "uswds": ("dist/css/uswds.min.css", USWDS, ""),
}
MARKUP: dict[str, tuple[str, str, str]] = {
    "native": ("", PLAIN, ""),
    "@picocss/pico": ("css/pico.min.css", PLAIN, PLAIN.replace("<input", '<input role="switch"')),
    "bootstrap": ("dist/css/bootstrap.min.css", BOOTSTRAP, BOOTSTRAP_SWITCH),
    "@tabler/core": ("dist/css/tabler.min.css", BOOTSTRAP, BOOTSTRAP_SWITCH),
    "@coreui/coreui": ("dist/css/coreui.min.css", BOOTSTRAP, BOOTSTRAP_SWITCH),
    "halfmoon": ("css/halfmoon.min.css", BOOTSTRAP, BOOTSTRAP_SWITCH),
    "mdb-ui-kit": ("css/mdb.min.css", BOOTSTRAP, BOOTSTRAP_SWITCH),
    "bulma": ("css/bulma.min.css", PLAIN.replace("<label>", '<label class="checkbox">'), ""),
    "materialize-css": ("dist/css/materialize.min.css", MATERIALIZE, MATERIALIZE_SWITCH),
    "spectre.css": ("docs/dist/spectre.min.css", SPECTRE, SPECTRE_SWITCH),
    "uikit": ("dist/css/uikit.min.css", PLAIN.replace("<input", '<input class="uk-{kind}"'), ""),
    "fomantic-ui": ("dist/semantic.min.css", FOMANTIC, FOMANTIC_SWITCH),
    "foundation-sites": ("dist/css/foundation.min.css", PLAIN, FOUNDATION_SWITCH),
    "icheck-bootstrap": ("icheck-bootstrap.min.css", ICHECK, ""),
    "pretty-checkbox": ("dist/pretty-checkbox.min.css", PRETTY, PRETTY_SWITCH),
}
WORDS = """Remember this device|Send a copy|Weekly summary|Show hidden files|Accept the terms|Enable logging|Dark mode|
Standard delivery|Express delivery|Monthly|Yearly|Public|Private|Only me|Everyone|Notify on failure|Auto save|Use proxy|
Read only|Recursive|Ignore case|Whole word|Keep originals|Strict mode|Verbose|Beta features|Two factor|Share the data"""


def write_galleries(
    packages: dict[str, Path], folder: Path, markup: dict[str, tuple[str, str, str]]
) -> Iterator[tuple[str, Path, str]]:
    """Yield the name, folder and file of each page; the folder has the package beside the page."""
    for name, toggles in markup.items():
        host = folder / name.replace("/", "_")
        host.mkdir(parents=True, exist_ok=True)
        if name in packages and not (host / "package").is_symlink():
            (host / "package").symlink_to(packages[name])
        for number in range(VARIANTS):
            (host / f"{number}.html").write_text(_write_page(name, toggles, random.Random(f"{name} {number}")))
            yield f"gallery {name}", host, f"{number}.html"


def _write_page(name: str, toggles: tuple[str, str, str], chance: random.Random) -> str:
    style, toggle, switch = toggles
    sections = [
        ("Options", [_fill(toggle, "checkbox", chance) for _ in range(6)]),
        ("Choose one", [_fill(toggle, "radio", chance) for _ in range(5)]),
        ("Preferences", [_fill(switch, "switch", chance) for _ in range(4)] if switch else []),
    ]
    chance.shuffle(sections)
    wide = chance.choice((240, 320, 420))
    body = "".join(
        f'<section style="width: {wide}px; padding: 16px"><h3>{title}</h3>{"".join(rows)}</section>'
        for title, rows in sections if rows
    )  # fmt: skip
    dark = ' style="background: #1f2430; color: #ddd"' if name == "native" and chance.random() < 0.4 else ""
    link = f'<link rel="stylesheet" href="package/{style}">' if style else ""
    flow = "display: flex; flex-wrap: wrap"
    return f'<!DOCTYPE html><meta charset="utf-8">{link}<body{dark}><div style="{flow}">{body}</div>'


def _fill(markup: str, kind: str, chance: random.Random) -> str:
    state = chance.choice(("", "checked", "", "checked", "disabled", "checked disabled"))
    number = chance.randrange(10**6)
    return markup.format(
        type="radio" if kind == "radio" else "checkbox",
        kind="radio" if kind == "radio" else "checkbox",
        round="p-round" if kind == "radio" else "",
        state=state,
        id=f"t{number}",
        name=f"n{number}",
        inline=chance.choice(("", "")),
        plural="radios" if kind == "radio" else "checkboxes",
        classes=" ".join(f"is-{name} ant-{kind}-{name}" for name in state.split()),
        on=str("checked" in state).lower(),
        text=chance.choice(WORDS.replace("\n", "").split("|")),
    )
