"""Write pages without a package on which every section has a look of its own, for training.

A package has one look for its check boxes; thousands of packages that were never seen have others. Here borders, sizes,
corners, marks, knobs and colours are drawn at random for each section, and so is what looks like a control and is none.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from training_kits import StylePackage
from training_pages import ACCENTS, ICON_FONTS, PageWriter

CELLS = (16, 26)  # sections of a page, from and to
GLYPHS = "★ ☆ ♥ ⚙ ✉ ☎ ⚑ ▶ ■ ● ○ ◆ ✓ ✗ ⊕ ⓘ ⏸ ↻ 😀 🚀 📦 🔒 ✅ ☑️ 🔘 ⭐ 🟢 🔴 ⬜ ◻ ◯ ❌ ➕".split()


class VariedPage(PageWriter):
    """Writes one page whose sections differ in their looks and grounds."""

    def __init__(self, chance: random.Random, glyphs: tuple[str, Sequence[str]] | None, *, dark: bool) -> None:
        super().__init__(chance, StylePackage(), glyphs, dark=dark)
        self.home_dark = dark
        self.cells = 0

    def cell(self, section: Callable[[], str]) -> str:
        self.cells += 1
        self.own_toggles = self.chance.random() < 0.9
        return f'<div class="x-cell x-v{self.cells}">{section()}</div>'

    def write(self, link: str) -> str:
        chance = self.chance
        sections: list[Callable[[], str]] = [
            self.options, self.options, self.options, self.toggle_row, self.toggle_row, self.settings, self.settings,
            self.form, self.form, self.toolbar, self.filters, self.boxed_fields, self.boxed_fields, self.button_grid,
            self.menu, self.menu, self.tabs, self.list_group, self.segments, self.pagination, self.table, self.cards,
            self.decoys, self.decoys, self.more_decoys, self.more_decoys, self.more_decoys, self.wells, self.group,
        ]  # fmt: skip
        cells = [self.cell(chance.choice(sections)) for _ in range(chance.randint(*CELLS))]
        width = chance.choice((260, 320, 380, 460))
        scheme = "dark" if self.home_dark else "light"
        return (
            f'<!DOCTYPE html><html style="color-scheme: {scheme}"><meta charset="utf-8">{link}'
            f"<style>{self.write_style()}</style><body>"
            f'<div class="x-main" style="column-width: {width}px">{"".join(cells)}</div>{self.mix_indeterminate()}'
        )

    def pick_accent(self) -> str:
        """Return any colour that is neither nearly white nor nearly black."""
        if self.chance.random() < 0.4:
            return self.chance.choice(ACCENTS)
        levels = [self.chance.randint(20, 90), self.chance.randint(60, 160), self.chance.randint(120, 235)]
        self.chance.shuffle(levels)
        return "#" + "".join(f"{level:02x}" for level in levels)

    def write_style(self) -> str:
        chance = self.chance
        ink, _, _, ground = self.pick_colours()
        family, size = chance.choice(("Arial", "DejaVu Sans", "Liberation Serif", "Noto Sans")), chance.randint(12, 18)
        rules = [
            f"html,body{{background:{ground};color:{ink};margin:0;font-family:{family!r};font-size:{size}px}}",
            ".x-main{padding:12px;column-gap:20px}.x-cell{break-inside:avoid;margin-bottom:14px}",
        ]
        for look in range(1, self.cells + 1):
            self.dark = self.home_dark if chance.random() < 0.75 else not self.home_dark
            self.accent = self.pick_accent()
            own = self.pick_colours()
            back = self.dark != self.home_dark or chance.random() < 0.2
            colours = own if back else (ink, own[1], own[2], ground)
            box = f"background:{own[3]};color:{own[0]};padding:{chance.choice((6, 10, 16))}px;" if back else ""
            rules.append(f".x-v{look}{{{box}{self.style_cell(*colours)}}}")
        return "".join(rules)

    def style_cell(self, ink: str, line: str, soft: str, ground: str) -> str:
        """Return the rules of one section, which are nested in its own."""
        chance = self.chance
        rules = [
            self.style_layout(ink, line, soft, ground), self.style_menus(ink, line, soft),
            self.style_tables(line, soft), self.style_toggles("", line, ground), self.style_wrappers(line, soft, ground),
        ]  # fmt: skip
        if chance.random() < 0.9:
            rules.append(self.style_controls("", ink, line, soft, ground))
        if chance.random() < 0.45:
            rules.append(self.style_odd_switches(line, ground))
        if chance.random() < 0.35:
            rules.append(self.style_odd_boxes(line, ground))
        return "".join(rules)

    # -- controls that are drawn in other ways

    def style_odd_switches(self, line: str, ground: str) -> str:
        """Return the rules of a switch with a thin track, a square one, a pale one, or one with signs on it."""
        chance, accent = self.chance, self.accent
        shape = chance.choice(("thin", "thin", "square", "pale", "dot", "wide"))
        tall = chance.choice((14, 16, 18, 20, 22, 24, 28))
        wide = round(tall * chance.choice((1.6, 1.8, 2, 2.2)))
        side, over, corner, gap = tall, 0, 99, 0
        track = chance.choice((line, "#555" if self.dark else "#ccc", "#444" if self.dark else "#e3e3e3"))
        off, on = chance.choice(("#fff", "#fafafa", "#bbb")), chance.choice(("#fff", accent, accent))
        fill, border, shadow = f"{accent}{chance.choice(('', '80', '59'))}", "0", "0 1px 4px #0006"
        if shape == "thin":
            over = round(tall * chance.choice((0.15, 0.2, 0.25, 0.3)))
        elif shape == "square":
            corner, gap, side = chance.choice((0, 0, 2, 4)), chance.choice((0, 1, 2)), tall // 2 * 2
            side, fill = side - 2 * gap, accent
        elif shape == "pale":
            gap, side, shadow = 2, tall - 4, chance.choice(("0 1px 2px #0004", "0 0 0 1px #0002"))
            track = "#2c2c2c" if self.dark else chance.choice(("#f0f0f0", "#f5f5f5", "#eaeaea"))
            fill, on = accent, "#fff"
        elif shape == "dot":
            side, fill, on, shadow = round(tall * 0.5), accent, "#fff", "none"
            gap, border, track = round(tall * 0.2), f"{chance.choice((1, 2))}px solid {line}", "transparent"
            off = line
        else:
            gap, side, wide, fill, on = 2, tall - 4, round(tall * 2.4), accent, "#fff"
        sign = chance.choice(("''", "''", "''", "'✓'", "'×'", "'|'", "'•'", "'≡'"))
        high = tall - 2 * over
        middle = f"top:50%;transform:translateY(-50%);width:{side}px;height:{side}px"
        return (
            f"input.x-switch{{appearance:none;box-sizing:border-box;position:relative;flex:none;width:{wide}px;height:{high}px;"
            f"margin:{over}px 2px;border-radius:{corner}px;border:{border};background:{track};box-shadow:none}}"
            f"input.x-switch::after{{content:{sign};font:{max(6, side // 2)}px/{side}px Arial;text-align:center;color:#888;"
            f"position:absolute;box-sizing:border-box;left:{gap}px;{middle};border-radius:{'50%' if corner == 99 else f'{corner}px'};"
            f"background:{off};box-shadow:{shadow}}}"
            f"input.x-switch:checked{{background:{fill};border-color:{accent}}}"
            f"input.x-switch:checked::after{{left:calc(100% - {side + gap}px);width:{side}px;height:{side}px;background:{on}}}"
            f"input.x-switch:disabled{{{self.fade_toggle()}}}"
        )

    def style_odd_boxes(self, line: str, ground: str) -> str:
        """Return the rules of check boxes and radio buttons that are lit, sunk, double, round or full."""
        chance, accent = self.chance, self.accent
        side, thick = chance.choice((14, 16, 18, 20, 22, 24)), chance.choice((1, 1, 2, 2, 3))
        inner = chance.choice((ground, "#fff" if not self.dark else "#1c1c1c"))
        soft = chance.choice((f"{accent}22", f"{accent}11", ground))
        edge = chance.choice((line, "#777", accent))
        base = (
            f"appearance:none;box-sizing:border-box;position:relative;flex:none;width:{side}px;height:{side}px;margin:2px;"
            f"border:{thick}px solid {edge};background:{inner};box-shadow:{chance.choice(('none', f'0 0 0 3px {accent}2a', f'0 0 0 1px {line}'))}"
        )
        mark = chance.choice(("✓", "✔", "✓", "×", "■", "●"))
        full = chance.random() < 0.5
        tick = (
            f"content:'{mark}';position:absolute;inset:0;font:bold {round(side * chance.choice((0.6, 0.7, 0.8)))}px/{side - 2 * thick}px 'DejaVu Sans';"
            f"text-align:center;color:{'#fff' if full else accent}"
        )
        hook = (
            f"content:'';position:absolute;left:{round(side * 0.3)}px;top:{round(side * 0.08)}px;width:{round(side * 0.22)}px;height:{round(side * 0.48)}px;"
            f"border:solid {'#fff' if full else accent};border-width:0 {chance.choice((2, 2, 3))}px {chance.choice((2, 2, 3))}px 0;transform:rotate(45deg)"
        )
        dot = f"content:'';position:absolute;inset:{round(side * chance.choice((0.12, 0.16, 0.22, 0.28)))}px;border-radius:50%;background:{'#fff' if full else accent}"
        checked = f"background:{accent if full else soft};border-color:{accent}"
        return (
            f"input.x-checkbox{{{base};border-radius:{chance.choice(('0', '2px', '4px', '30%', '50%'))}}}"
            f"input.x-checkbox:checked{{{checked}}}input.x-checkbox:checked::after{{{chance.choice((tick, hook, hook))}}}"
            f"input.x-checkbox:indeterminate{{background:{accent};border-color:{accent}}}"
            f"input.x-checkbox:indeterminate::after{{content:'';position:absolute;inset:{round(side * 0.36)}px {round(side * 0.18)}px;background:#fff;border:0;transform:none;width:auto;height:auto;left:{round(side * 0.18)}px;top:{round(side * 0.36)}px}}"
            f"input.x-radio{{{base};border-radius:50%}}input.x-radio:checked{{{checked}}}input.x-radio:checked::after{{{chance.choice((dot, dot, dot, hook))}}}"
            f":is(input.x-checkbox,input.x-radio):disabled{{{self.fade_toggle()}}}"
        )

    def style_wrappers(self, line: str, soft: str, ground: str) -> str:
        chance = self.chance
        thick, radius = chance.choice((1, 1, 1, 2)), chance.choice((0, 2, 4, 6, 10, 99))
        look = chance.choice((
            f"border:{thick}px solid {line};background:{chance.choice((ground, soft))};border-radius:{radius}px",
            f"border:{thick}px solid {line};background:{ground};border-radius:{radius}px",
            f"background:{soft};border-bottom:{chance.choice((1, 2))}px solid {chance.choice((line, self.accent))};border-radius:{min(radius, 6)}px {min(radius, 6)}px 0 0",
            f"background:{soft};border-radius:{radius}px",
            f"border-bottom:{thick}px solid {line}",
        ))  # fmt: skip
        return (
            f".x-box{{display:flex;align-items:center;gap:8px;{look};padding:{chance.choice((3, 5, 8, 11))}px {chance.choice((6, 10, 14))}px;margin:6px 0;width:{chance.choice((160, 220, 260))}px;max-width:100%;box-sizing:border-box}}"
            f".x-box>:is(input,select,textarea).x-bare{{border:0;background:transparent;outline:0;flex:1;min-width:0;padding:0;color:inherit;font:inherit;font-size:{chance.choice((13, 14, 15, 16))}px;box-shadow:none;appearance:none;border-radius:0}}"
            f".x-box small{{display:block;font-size:10px;opacity:.7}}.x-stack{{flex-direction:column;align-items:stretch;gap:1px}}"
            f".x-parts{{display:inline-flex;{chance.choice((f'background:{soft};padding:3px', f'border:1px solid {line}'))};border-radius:{chance.choice((0, 6, 99))}px;overflow:hidden}}.x-parts button{{border:0;background:transparent;color:inherit;padding:5px 14px;font:inherit;border-radius:{chance.choice((0, 5, 99))}px;box-shadow:none}}"
            f".x-parts button.active{{background:{chance.choice((self.accent, ground, ground))};color:{chance.choice(('inherit', self.accent))};box-shadow:{chance.choice(('none', '0 1px 3px #0004'))}}}"
            f".x-steps{{display:flex;gap:6px;align-items:center}}.x-steps i{{width:{chance.choice((6, 8, 10))}px;height:{(dot := chance.choice((6, 8, 10)))}px;border-radius:9px;background:{line}}}.x-steps i.on{{width:{round(2.2 * dot)}px;background:{self.accent}}}"
            f".x-days.x-lined div{{border:1px solid {line}}}.x-plot{{position:relative;height:130px;width:260px;border-left:1px solid {line};border-bottom:1px solid {line};margin:8px 0 26px 40px}}.x-plot *{{position:absolute;font-size:{chance.choice((10, 11, 12))}px}}.x-plot b{{background:{self.accent};width:22px;bottom:0}}.x-plot u{{left:0;right:0;height:1px;background:{line};opacity:.5}}"
            f".x-mark{{display:inline-block;width:{chance.choice((10, 12, 14, 16, 18))}px;aspect-ratio:1;border-radius:{chance.choice(('50%', '50%', '3px'))};border:{chance.choice((2, 3, 4))}px solid {self.accent};background:{chance.choice((ground, soft, self.accent))};box-sizing:border-box;vertical-align:middle}}"
        )

    def boxed_fields(self) -> str:
        """Write fields in a frame with an icon, a small label, a unit or an arrow."""
        return "".join(self.boxed_field() for _ in range(self.chance.randint(1, 4)))

    def boxed_field(self) -> str:
        chance = self.chance
        state = "disabled" if chance.random() < 0.12 else ""
        text = chance.choice((f'value="{self.name(1, 3)}"', f'placeholder="{self.name(1, 3)}"', ""))
        bare = f'<input class="x-bare" type="{chance.choice(("text", "text", "email", "search", "password"))}" {text} {state}>'
        arrow = chance.choice(("▾", "⌄", "▼", self.icon(14)))
        pick = f'<select class="x-bare" {state}><option>{self.name(1, 2)}</option></select>'
        inner = chance.choice((
            f"{self.icon(16)}{bare}", f"{bare}{self.icon(16)}", f"<span>{chance.choice(('$', '€', '@', 'https://'))}</span>{bare}",
            f"{bare}<span>{chance.choice(('kg', '.com', 'px', '%'))}</span>", f"{pick}<span>{arrow}</span>", f"{pick}<span>{arrow}</span>", bare,
        ))  # fmt: skip
        label = f"<label>{self.name(1, 2)}</label>" if chance.random() < 0.4 else ""
        if chance.random() < 0.25:
            return f'<div class="x-box x-stack"><small>{self.name(1, 2)}</small>{bare}</div>'
        return f'{label}<div class="x-box">{inner}</div>'

    def segments(self) -> str:
        """Write a row of joined buttons, one of which is pressed."""
        count = self.chance.randint(2, 5)
        picked = self.chance.randrange(count)
        names = ["active" if at == picked else "plain" for at in range(count)]
        buttons = "".join(f"<button class={name}>{self.name(1, 1)}</button>" for name in names)
        return f'<div class="x-parts">{buttons}</div>'

    # -- what is none

    def more_decoys(self) -> str:
        chance = self.chance
        side = chance.choice((14, 16, 18, 20, 24, 28))
        ways: list[Callable[[], str]] = [
            self.plot, self.plot, self.gallery, self.gallery, self.marks, self.marks,
            lambda: "".join(f'<span style="font-size: {side}px">{chance.choice(GLYPHS)}</span> {self.name(1, 2)}<br>' for _ in range(5)),
            self.marked_table, self.steps, self.lined_days,
            lambda: "".join(f"<p>{chance.choice(('0', 'O', 'o', 'Q', 'D', '[ ]', '( )', '[x]', '{}', '();', '=>', '::'))} {self.name(1, 3)}</p>" for _ in range(4)),
            self.thumbnails,
            lambda: f'<div class="x-gallery">{"".join(f"<div><span class=x-tile>{self.icon(16)}</span><br>{self.name(1, 1)}</div>" for _ in range(8))}</div>',
            lambda: "".join(f'<span class="x-badge">{self.icon(12)} {self.name(1, 1)}</span> ' for _ in range(5)),
            lambda: f'<span class="x-slider"><i style="left: {chance.randint(0, 80)}%"></i></span><br><div class="x-progress" style="width: {chance.choice((30, 40, 60, 200))}px"><div style="width: {chance.randint(20, 80)}%"></div></div>',
            self.calendar, self.people,
        ]  # fmt: skip
        return "".join(f"<div>{chance.choice(ways)()}</div>" for _ in range(chance.randint(1, 3)))

    def marked_table(self) -> str:
        """Write a table whose cells are signs."""
        signs = "✓ ✗ ✔ — • 0 1".split()
        rows = "".join(
            f"<tr><td>{self.name(1, 2)}</td>{''.join(f'<td>{self.chance.choice(signs)}</td>' for _ in range(3))}</tr>"
            for _ in range(4)
        )
        return f'<table class="x-table">{rows}</table>'

    def steps(self) -> str:
        """Write the dots below a row of slides."""
        return f'<div class="x-steps"><i></i><i></i><i class="on"></i>{"<i></i>" * self.chance.randint(1, 4)}</div>'

    def lined_days(self) -> str:
        return f'<div class="x-days x-lined">{"".join(f"<div>{day}</div>" for day in range(1, 29))}</div>'

    def thumbnails(self) -> str:
        """Write small pictures, each with its name."""
        side, corner = self.chance.choice((14, 16, 20, 24, 28)), self.chance.choice((0, 4, 99))
        shape = f"display: inline-block; width: {side}px; height: {side}px; border-radius: {corner}px"
        cells = "".join(
            f'<div><span style="{shape}; background: {self.photograph()}"></span> <small>{self.name(1, 1)}</small></div>'
            for _ in range(8)
        )
        return f'<div class="x-gallery">{cells}</div>'

    def marks(self) -> str:
        """Write small shapes before texts: a legend, states, a course of events."""
        return "".join(f'<div class="x-line"><span class="x-mark"></span> {self.name(1, 3)}</div>' for _ in range(4))

    def plot(self) -> str:
        """Write a chart of bars with the numbers of its axis and the names of its bars."""
        chance, step = self.chance, self.chance.choice((5, 10, 20, 50, 100))
        rules = "".join(f'<u style="bottom: {30 * at}px"></u><span style="left: -34px; bottom: {30 * at - 6}px">{step * at}</span>' for at in range(5))  # fmt: skip
        bars = "".join(f'<b style="left: {18 + 48 * at}px; height: {chance.randint(8, 120)}px"></b><span style="left: {16 + 48 * at}px; bottom: -20px">{chance.choice(("Q1", "Jan", "A", "12", "Mon"))}</span>' for at in range(5))  # fmt: skip
        return f'<div class="x-plot">{rules}{bars}</div>'


def write_varied_page(number: int, fonts: Mapping[str, Sequence[str]]) -> str:
    """Return the HTML of one page; icons with these names are beside it in `icons/`."""
    chance = random.Random(f"varied {number}")
    dark = chance.random() < 0.35
    font = chance.choice(list(ICON_FONTS)) if chance.random() < 0.7 else ""
    writer = VariedPage(chance, (ICON_FONTS[font][1], fonts[font]) if font else None, dark=dark)
    return writer.write(f'<link rel="stylesheet" href="icons/{font}/{ICON_FONTS[font][0]}">' if font else "")
