"""Write pages for training on which controls touch, and documents with boxes that are none.

Forms are often narrow: buttons of one colour are stacked without a gap, toggles touch each other and their texts, and the
text of a switch is below it or at the other end of its row. Documents have boxes with a text in them that nobody presses
or fills in: facts, signatures, heads of cards and columns, tags, steps, notes.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from training_pages import ICON_FONTS
from training_variety import VariedPage

CELLS = (9, 16)  # sections of a page, from and to
TYPES = "string integer boolean list time host path unset none 0 10s yes".split()


class DensePage(VariedPage):
    """Writes one page of narrow forms, or of a document."""

    def write(self, link: str) -> str:
        chance = self.chance
        forms: list[Callable[[], str]] = [
            self.stacked_buttons, self.stacked_buttons, self.touching_toggles, self.touching_toggles,
            self.touching_toggles, self.far_switches, self.far_switches, self.filled_fields, self.filled_fields,
            self.search_box, self.inline_buttons, self.form, self.segments,
        ]  # fmt: skip
        documents: list[Callable[[], str]] = [
            self.facts, self.facts, self.signature, self.signature, self.board, self.heads, self.prose, self.prose,
            self.prose, self.tags, self.search_box, self.inline_buttons, self.decoys, self.more_decoys, self.table,
        ]  # fmt: skip
        kinds = chance.choice(([*forms, self.prose, self.heads], documents, [*forms, *documents]))
        cells = [self.cell(chance.choice(kinds)) for _ in range(chance.randint(*CELLS))]
        width, scheme = chance.choice((260, 380, 560, 900)), "dark" if self.home_dark else "light"
        return (
            f'<!DOCTYPE html><html style="color-scheme: {scheme}"><meta charset="utf-8">{link}'
            f"<style>{self.write_style()}</style><body>"
            f'<div class="x-main" style="column-width: {width}px">{"".join(cells)}</div>'
        )

    def style_cell(self, ink: str, line: str, soft: str, ground: str) -> str:
        chance = self.chance
        box = f"background:{chance.choice((soft, soft, line, ground))};border:{chance.choice((0, 1, 1, 2))}px solid {line}"
        pad = f"{chance.choice((1, 3, 5, 8, 11))}px {chance.choice((6, 9, 12, 16))}px"
        rules = [
            super().style_cell(ink, line, soft, ground),
            f".x-fact{{display:inline-block;{box};color:{ink};padding:{pad};margin:0 {chance.choice((0, 2, 4))}px 4px 0;border-radius:{chance.choice((0, 0, 3, 6))}px}}",
            f".x-code{{{box};color:{ink};padding:{pad};font:{chance.choice((11, 12, 13, 14))}px 'DejaVu Sans Mono',monospace;overflow:hidden;white-space:nowrap}}",
            f".x-board{{display:flex;gap:{chance.choice((0, 6, 12))}px}}.x-board>div{{flex:1;border:1px solid {line}}}",
            f".x-title{{display:flex;justify-content:space-between;{box};color:{ink};padding:{pad};font-weight:{chance.choice(('bold', 'bold', 'normal'))}}}",
            f".x-tight{{margin:0;padding:0;display:block;line-height:{chance.choice((1, 1.2, 1.4))}}}.x-tight .x-row{{margin:0;gap:{chance.choice((0, 0, 2, 6))}px;display:flex}}.x-tight input{{margin:0!important}}",
            f".x-stack-buttons span{{display:{chance.choice(('block', 'inline-block'))};vertical-align:top}}.x-stack-buttons button{{display:block;margin:0}}",
            f".x-far{{display:flex;justify-content:space-between;align-items:center;padding:{chance.choice((2, 6, 10))}px 0}}.x-below{{display:block;margin:{chance.choice((2, 6))}px 0}}.x-below input{{display:block}}",
            f".x-filled{{display:block;box-sizing:border-box;width:{chance.choice((160, 220, 254))}px;border:0!important;padding:{pad}!important;{self.style_underline(line, soft)};color:{ink};font:inherit}}",
            self.style_bold_marks(line, ground),
        ]  # fmt: skip
        return "".join(rules)

    def style_underline(self, line: str, soft: str) -> str:
        """Return how a field without a frame is drawn: a soft area, a line below it, or both."""
        chance = self.chance
        colour, thick = chance.choice((line, self.accent, "#888")), chance.choice((1, 1, 2))
        drawn = f"background-image:linear-gradient({colour},{colour})!important;background-size:100% {thick}px!important;background-repeat:no-repeat!important;background-position:0 100%!important"
        return chance.choice((
            f"background:{soft}!important;border-bottom:{thick}px solid {colour}!important;border-radius:{chance.choice((0, 0, 4))}px {chance.choice((0, 4))}px 0 0",
            f"background:{soft}!important;box-shadow:inset 0 -{thick}px 0 {colour}", f"background-color:transparent;{drawn}",
            f"background-color:{soft}!important;{drawn}", f"background:{soft}!important;border-radius:{chance.choice((0, 4, 8))}px",
        ))  # fmt: skip

    def style_bold_marks(self, line: str, ground: str) -> str:
        """Return the rules of toggles with thick borders, and with marks that are larger than their boxes."""
        chance, accent = self.chance, self.accent
        if chance.random() < 0.4:
            return ""
        side = chance.choice((14, 16, 18, 20, 24))
        thick = chance.choice((1, 2, round(side * 0.15), round(side * 0.2), round(side * 0.25)))
        mark = chance.choice(("✓", "✔", "✔", "×"))
        hole = max(2, round((side - 2 * thick) * chance.choice((0.15, 0.2, 0.28))))
        grow = chance.choice((0.8, 1.1, 1.3, 1.5))
        base = f"appearance:none;box-sizing:border-box;position:relative;flex:none;width:{side}px;height:{side}px;border:{thick}px solid {chance.choice((line, '#888', accent))};background:{ground}"
        return (
            f"input.x-checkbox{{{base};border-radius:{chance.choice((0, 2, 4))}px}}input.x-radio{{{base};border-radius:50%}}"
            f"input.x-checkbox:checked::after{{content:'{mark}';position:absolute;left:0;top:{-round(side * (grow - 0.7) / 2)}px;font:{round(side * grow)}px/1 'DejaVu Sans';color:{chance.choice((accent, '#111' if not self.dark else '#eee'))};transform:none;border:0;inset:auto}}"
            f"input.x-radio:checked{{border-color:{chance.choice((line, accent, accent))};background:{ground}}}input.x-radio:checked::after{{content:'';position:absolute;inset:{hole}px;border-radius:50%;background:{accent};border:0;transform:none;width:auto;height:auto;left:{hole}px;top:{hole}px}}"
        )

    # -- narrow forms

    def stacked_buttons(self) -> str:
        """Write buttons of one colour, one above the other without a gap."""
        return f'<div class="x-stack-buttons" style="width: {self.chance.choice((90, 130, 170))}px">{"".join(f"<span><button>{self.name(1, 2)}</button></span>" for _ in range(self.chance.randint(2, 4)))}</div>'

    def touching_toggles(self) -> str:
        kind = self.chance.choice(("checkbox", "checkbox", "radio", "radio", "switch"))
        rows = "".join(f'<div class="x-tight">{self.toggle(kind)}</div>' for _ in range(self.chance.randint(3, 7)))
        return f"<h4>{self.name(1, 2)}</h4>{rows}"

    def far_switches(self) -> str:
        """Write switches whose text is below them, or where their row begins."""
        below, rows = self.chance.random() < 0.4, []
        for _ in range(self.chance.randint(1, 4)):
            state = self.chance.choice(("", "checked", "checked", "disabled"))
            mark = f'<input type="checkbox" role="switch" class="x-switch" {state}>'
            text = self.name(1, 3)
            rows.append(
                f'<label class="x-below">{mark}{text}</label>' if below else f'<div class="x-far">{text}{mark}</div>'
            )
        return f"<h4>{self.name(1, 2)}</h4>{''.join(rows)}"

    def filled_fields(self) -> str:
        rows = []
        for _ in range(self.chance.randint(1, 4)):
            text = self.chance.choice((f'value="{self.name(1, 3)}"', f'placeholder="{self.name(1, 3)}"', 'value="10435"', ""))  # fmt: skip
            state = "disabled" if self.chance.random() < 0.15 else ""
            rows.append(f'<label>{self.name(1, 2)}</label><input class="x-filled" type="text" {text} {state}>')
        return f"<div>{''.join(rows)}</div>"

    def search_box(self) -> str:
        """Write a small field with a small button beside it, as documents have."""
        text = self.chance.choice(("Go", "OK", "Go", "Find", "Search"))
        button = self.chance.choice((f'<input type="submit" value="{text}">', f"<button>{text}</button>"))
        size = self.chance.choice((11, 12, 13))
        return f'<p style="font-size: {size}px"><b>{self.name(1, 2)}</b><br><input style="font-size: {size}px; width: {self.chance.choice((90, 120, 170))}px"> {button}</p>'

    def inline_buttons(self) -> str:
        """Write small buttons within rows of text."""
        rows = "".join(
            f"<div>{self.name(1, 1)} : {{ <button>{self.chance.randint(1, 20)} {self.name(1, 1)}</button> }}</div>"
            for _ in range(3)
        )
        return f'<div style="font-family: monospace">{rows}</div>'

    # -- documents

    def facts(self) -> str:
        """Write boxes beside each other, with a name or a label with its value in each."""
        chance = self.chance
        word = "_".join(self.name(1, 2).lower().split())
        loud = chance.choice(("b", "i", "span"))
        boxes = [f"<b>{word}</b>", *(f"{self.name(1, 1)}{chance.choice((':', ':', ' =', ''))} <{loud}>{chance.choice(TYPES)}</{loud}>" for _ in range(chance.randint(1, 4)))]  # fmt: skip
        tag = chance.choice(("span", "span", "code"))
        return f"<p>{''.join(f'<{tag} class=x-fact>{box}</{tag}>' for box in boxes)}</p><p>{self.sentence()}</p>"

    def signature(self) -> str:
        names = ["_".join(self.name(1, 2).lower().split()) for _ in range(4)]
        text = self.chance.choice((
            f"#include &lt;{names[0]}.h&gt;", f"{names[0]}({names[1]}, {names[2]})", f"#define {names[0].upper()}({names[1]})",
            f"$ {names[0]} --{names[1]} {names[2]}", f"import {names[0]}", f"{names[0]} = {names[1]}", f"npm install {names[0]}",
            f"GET /{names[0]}/{names[1]}", f"{names[0]}: {names[1]};",
        ))  # fmt: skip
        return f'<h4>{names[3]}</h4><div class="x-code">{text}</div><p>{self.sentence()}</p>'

    def board(self) -> str:
        """Write columns with a head and cards."""
        side = self.chance.choice(("", "‹", "+ ‹", self.icon(14), "⋮", str(self.chance.randint(1, 20))))
        columns = "".join(
            f'<div><div class="x-title">{self.name(1, 2)}<span>{side}</span></div>'
            f"{''.join(f'<div class=x-card>{self.name(2, 5)}</div>' for _ in range(self.chance.randint(0, 2)))}</div>"
            for _ in range(self.chance.randint(2, 4))
        )
        return f'<div class="x-board">{columns}</div>'

    def heads(self) -> str:
        """Write boxes with a title above other boxes."""
        side = self.chance.choice(("", "", "▾", "▸", self.icon(14), "⌃"))
        rows = "".join(
            f'<div class="x-title">{self.name(1, 4)}<span>{side}</span></div>'
            f"{f'<p>{self.sentence()}</p>' if self.chance.random() < 0.6 else ''}"
            for _ in range(self.chance.randint(1, 4))
        )
        return f"<div>{rows}</div>"

    def prose(self) -> str:
        rows = "".join(f"<p>{self.sentence()} {self.sentence()} {self.sentence()}</p>" for _ in range(2))
        return f"<h3>{self.name(2, 4)}</h3>{rows}"

    def tags(self) -> str:
        """Write tags in a frame, as in a list of chosen words."""
        chips = " ".join(f'<span class="x-chip">{self.name(1, 1)}</span>' for _ in range(self.chance.randint(2, 5)))
        return f'<div class="{self.chance.choice(("x-code", "x-well", ""))}">{chips}</div>'


def write_dense_page(number: int, fonts: Mapping[str, Sequence[str]]) -> str:
    """Return the HTML of one page; icons with these names are beside it in `icons/`."""
    chance = random.Random(f"dense {number}")
    dark = chance.random() < 0.35
    font = chance.choice(list(ICON_FONTS)) if chance.random() < 0.7 else ""
    writer = DensePage(chance, (ICON_FONTS[font][1], fonts[font]) if font else None, dark=dark)
    return writer.write(f'<link rel="stylesheet" href="icons/{font}/{ICON_FONTS[font][0]}">' if font else "")
