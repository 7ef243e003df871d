"""Write pages of menus, tabs, pages, lists and tables, of which one item is selected and some are disabled, for training.

How the selected item differs (background, ink, weight, a line beside or below it, a frame) is drawn at random for each
group, and so is what else differs and is no state: headings, links, badges, first columns, states of orders, buttons.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from training_pages import ICON_FONTS
from training_variety import VariedPage

SHADES = ("#0003", "#0001", "#fff2", "#fff1", "#8883", "#8882")
SIGNS = "‹ › « » ← → … Prev Next Previous First Last".split()


class StatePage(VariedPage):
    """Writes one page in the shape of an application: a bar at the top, a menu at the side, cards with groups of items."""

    def write(self, link: str) -> str:
        chance = self.chance
        sections: list[Callable[[], str]] = [
            self.item_tabs, self.item_tabs, self.item_tabs, self.item_menu, self.item_menu, self.pager, self.pager,
            self.item_list, self.item_list, self.chosen_table, self.chosen_table, self.segments, self.item_tree,
            self.links, self.facts, self.headed_list, self.plain_table, self.actions, self.crumbs, self.stages,
            self.prices, self.article, self.button_grid, self.form, self.form, self.options, self.options, self.methods,
            self.panels, self.toolbar, self.toggle_row, self.boxed_fields, self.chips, self.chips,
        ]  # fmt: skip
        cells = [self.cell(chance.choice(sections)) for _ in range(chance.randint(6, 12))]
        side = self.cell(self.side_menu) if chance.random() < 0.7 else ""
        top = self.cell(self.top_bar) if chance.random() < 0.7 else ""
        width, wide = chance.choice((300, 380, 460, 600)), chance.choice((170, 200, 240, 280))
        scheme = "dark" if self.home_dark else "light"
        return (
            f'<!DOCTYPE html><html style="color-scheme: {scheme}"><meta charset="utf-8">{link}'
            f"<style>{self.write_style()}.y-page{{display:flex}}.y-side{{width:{wide}px;flex:none}}.x-main{{flex:1}}"
            f'</style><body>{top}<div class="y-page"><div class="y-side">{side}</div>'
            f'<div class="x-main" style="column-width: {width}px">{"".join(cells)}</div></div>'
        )

    def style_cell(self, ink: str, line: str, soft: str, ground: str) -> str:
        return super().style_cell(ink, line, soft, ground) + self.style_items(ink, line, soft, ground)

    def style_toggles(self, home: str, line: str, ground: str) -> str:
        """Return the rules of toggles; the label of one that is disabled may be paler."""
        look = self.chance.choice(("opacity:.5", "opacity:.6", "opacity:.7", "color:#888", "opacity:1"))
        return f"{super().style_toggles(home, line, ground)}{home}input:disabled+span{{{look}}}"

    def style_items(self, ink: str, line: str, soft: str, ground: str) -> str:
        """Return the rules of the items of one section, and how the one that is selected differs."""
        chance = self.chance
        muted = chance.choice((ink, ink, "#888", "#999" if self.dark else "#666", self.accent))
        pad = f"{chance.choice((3, 5, 8, 10, 13))}px {chance.choice((6, 10, 14, 20))}px"
        base = (
            f"color:{muted};text-decoration:none;padding:{pad};border-radius:{chance.choice((0, 0, 0, 4, 8, 99))}px;"
            f"font-size:{chance.choice((12, 13, 14, 15, 16))}px;font-weight:{chance.choice((400, 400, 400, 500, 600))};"
            f"text-transform:{chance.choice(('none', 'none', 'none', 'none', 'uppercase'))};"
            f"border:{chance.choice((0, 0, 0, 1))}px solid {chance.choice((line, 'transparent'))}"
        )
        return (
            f".y-item{{display:block;{base}}}.y-item.active{{{self.mark_item(ink, line, soft, ground, muted)}}}"
            f".y-item.disabled{{{self.fade_item(muted)}}}"
            f".y-row{{display:flex;flex-wrap:wrap;gap:{chance.choice((0, 0, 2, 8, 20))}px;border-bottom:{chance.choice((0, 0, 1, 2))}px solid {line};background:{chance.choice(('transparent', 'transparent', soft))}}}"
            f".y-group{{background:{chance.choice(('transparent', 'transparent', soft))};padding:{chance.choice((0, 4, 8))}px}}"
            f".y-lined .y-item{{border-bottom:1px solid {line};border-radius:0}}.y-sub .y-item{{padding-left:{chance.choice((28, 36, 44))}px}}"
            f".y-head{{font-size:{chance.choice((10, 11, 12))}px;text-transform:{chance.choice(('none', 'uppercase'))};opacity:{chance.choice((0.6, 0.8, 1))};padding:{pad};font-weight:{chance.choice((400, 700))}}}"
            f".y-bar{{display:flex;align-items:center;gap:{chance.choice((8, 16, 30))}px;padding:{chance.choice((0, 4, 8))}px 16px;border-bottom:1px solid {line}}}"
            f"tr.active td{{background:{chance.choice((soft, f'{self.accent}22', f'{self.accent}44', self.accent))}}}tr.active td:first-child{{box-shadow:{chance.choice(('none', 'none', f'inset 3px 0 {self.accent}'))}}}"
            f".y-link{{color:{self.accent}}}.y-good{{color:#16a34a}}.y-bad{{color:#dc2626}}.y-pill{{background:{self.accent};color:#fff;padding:1px 7px;border-radius:99px;font-size:11px}}"
        )

    def mark_item(self, ink: str, line: str, soft: str, ground: str, muted: str) -> str:
        """Return how a selected item is drawn: by one or more of background, ink, weight, line and frame."""
        chance, accent = self.chance, self.accent
        inks = [each for each in (accent, ink, "#fff" if self.dark else "#000") if each != muted]
        back = chance.choice((soft, f"{accent}1a", f"{accent}33", ground, chance.choice(SHADES), line))
        full = f"background:{accent};color:#fff"
        side = chance.choice(("bottom", "bottom", "bottom", "left", "left", "top", "right"))
        ways = {
            "ground": chance.choice((full, f"background:{back}", f"background:{back}")),
            "ink": f"color:{chance.choice(inks)}",
            "weight": f"font-weight:{chance.choice((600, 700, 700))}",
            "line": f"border-{side}:{chance.choice((2, 2, 3, 4))}px solid {chance.choice((accent, ink))};border-radius:0",
            "frame": f"border:1px solid {chance.choice((accent, line))};box-shadow:{chance.choice(('none', '0 2px 6px #0003'))}",
        }
        kinds = ["ground", "ground", "ground", "ink", "ink", "line", "line", "weight", "frame"]
        chosen = {chance.choice(kinds) for _ in range(chance.choice((1, 2, 2, 3)))}
        if ways["ground"] == full and "ground" in chosen:
            chosen.discard("ink")
        return ";".join(ways[kind] for kind in ways if kind in chosen)

    def fade(self, line: str, soft: str) -> str:
        """Return how a disabled button or field is drawn: seen through, in greys, or on another background only."""
        chance, kind = self.chance, self.chance.random()
        if kind < 0.45:
            return f"opacity:{chance.choice((0.3, 0.38, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75))}"
        greys = (
            ("#444", "#555", "#666", "#777", "#888") if self.dark else ("#777", "#888", "#999", "#aaa", "#bbb", "#ccc")
        )
        back = chance.choice(
            (soft, line, "#ddd" if not self.dark else "#2a2a2a", "#f5f5f5" if not self.dark else "#222")
        )
        if kind < 0.8:
            edge = chance.choice((line, back, "transparent"))
            return f"color:{chance.choice(greys)};background:{back};border-color:{edge};box-shadow:none"
        return f"color:{chance.choice(greys)};border-color:{line}" if kind < 0.9 else f"background:{back}"

    def fade_toggle(self) -> str:
        chance = self.chance
        grey = chance.choice(("#444", "#555", "#666") if self.dark else ("#bbb", "#ccc", "#ddd", "#e5e5e5"))
        back = chance.choice(("#2a2a2a", "#333", "#444") if self.dark else ("#eee", "#f4f4f4", "#e5e5e5", "#ddd"))
        faded = f"opacity:{chance.choice((0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75))}"
        return chance.choice(
            (faded, faded, faded, f"border-color:{grey};background-color:{back}", f"border-color:{grey}")
        )

    def fade_item(self, muted: str) -> str:
        chance = self.chance
        grey = chance.choice(("#555", "#666") if self.dark else ("#aaa", "#bbb", "#999"))
        return chance.choice((f"opacity:{chance.choice((0.3, 0.4, 0.5, 0.6))}", f"color:{grey}"))

    def item(self, text: str, state: str = "", more: str = "") -> str:
        return f'<a href="#" class="y-item {state}">{text}{more}</a>'

    def items(self, count: int, words: int = 2, picked: int | None = None) -> str:
        """Write items, mostly with one that is selected."""
        chance = self.chance
        on = chance.randrange(count) if picked is None and chance.random() < 0.8 else -1 if picked is None else picked
        off = chance.randrange(count) if chance.random() < 0.15 else -1
        icons, tail = chance.random() < 0.35, chance.random() < 0.15
        return "".join(
            self.item(
                (f"{self.icon(16)} " if icons else "") + self.name(1, words),
                "active" if at == on else "disabled" if at == off else "",
                f' <span class="x-badge">{chance.randint(1, 99)}</span>' if tail and chance.random() < 0.5 else "",
            )
            for at in range(count)
        )

    def item_tabs(self) -> str:
        return f'<div class="y-row">{self.items(self.chance.randint(2, 6), 2)}</div><p>{self.sentence()}</p>'

    def item_menu(self) -> str:
        head = f'<div class="y-head">{self.name(1, 2)}</div>' if self.chance.random() < 0.4 else ""
        return f'<div class="y-group">{head}{self.items(self.chance.randint(3, 8), 3)}</div>'

    def item_list(self) -> str:
        return f'<div class="y-group y-lined">{self.items(self.chance.randint(3, 7), 4)}</div>'

    def item_tree(self) -> str:
        inner = f'<div class="y-sub">{self.items(self.chance.randint(2, 5), 2)}</div>'
        above = self.items(self.chance.randint(2, 4), 2, self.chance.choice((-1, -1, 0, 1)))
        return f'<div class="y-group">{above}{inner}{self.items(self.chance.randint(1, 4), 2, -1)}</div>'

    def side_menu(self) -> str:
        heads = [f'<div class="y-head">{self.name(1, 2)}</div>' if self.chance.random() < 0.6 else "" for _ in range(2)]
        inner = self.item_tree() if self.chance.random() < 0.3 else self.item_menu()
        title = f"<h3>{self.icon(24)} {self.name(1, 2)}</h3>" if self.chance.random() < 0.6 else ""
        return f"{title}{heads[0]}{inner}{heads[1]}{self.items(self.chance.randint(2, 6), 2, -1)}"

    def top_bar(self) -> str:
        mark = f"<b>{self.name(1, 2)}</b>" if self.chance.random() < 0.8 else ""
        tail = self.chance.choice((self.button(), self.field(), self.icon(20), self.name(1, 2), ""))
        return f'<div class="y-bar">{mark}<div class="y-row">{self.items(self.chance.randint(3, 7), 2)}</div><span style="flex:1"></span>{tail}</div>'

    def pager(self) -> str:
        chance = self.chance
        count, start = chance.randint(3, 9), chance.choice((1, 1, 1, 4, 17))
        on = chance.randrange(count)
        texts = [(str(start + at), "active" if at == on else "") for at in range(count)]
        if chance.random() < 0.7:
            before, after = chance.choice((("‹", "›"), ("«", "»"), ("Previous", "Next"), ("Prev", "Next"), ("←", "→")))
            texts = [(before, "disabled" if on == 0 and chance.random() < 0.7 else ""), *texts, (after, "")]
        return f'<div class="y-row">{"".join(self.item(*each) for each in texts)}</div>'

    def chosen_table(self) -> str:
        return self.data_table(self.chance.random() < 0.8)

    def plain_table(self) -> str:
        return self.data_table(chosen=False)

    def data_table(self, chosen: bool) -> str:
        """Write a table; its first column may be bold or links, and a column may have states in colours."""
        chance = self.chance
        count, columns = chance.randint(3, 8), chance.randint(2, 5)
        on = chance.randrange(count) if chosen else -1
        first = chance.choice(("{}", "{}", "<b>{}</b>", '<a class="y-link" href="#">{}</a>'))
        states, hues = chance.random() < 0.4, chance.sample(("y-good", "y-bad", "x-badge", "y-pill", ""), 2)
        common = chance.choice((0.5, 0.8, 0.9))
        rows = []
        for at in range(count):
            cells = [f"<td>{first.format(self.name(1, 2))}</td>"]
            cells += [
                f"<td>{chance.choice((self.name(1, 2), str(chance.randint(1, 9999))))}</td>" for _ in range(columns - 1)
            ]
            if states:
                cells.append(f'<td><span class="{hues[chance.random() < common]}">{self.name(1, 1)}</span></td>')
            rows.append(f'<tr class="{"active" if at == on else ""}">{"".join(cells)}</tr>')
        head = "".join(f"<th>{self.name(1, 2)}</th>" for _ in range(columns + states))
        return f'<table class="x-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'

    # -- what differs from its siblings and is no state

    def links(self) -> str:
        """Write a column or row of texts, some of which are links or bold."""
        tags = (
            '<a class="y-link" href="#">{}</a>',
            "{}",
            "<b>{}</b>",
            "<small>{}</small>",
            '<span class="y-pill">{}</span>',
        )
        one, other = self.chance.sample(tags, 2)
        rate = self.chance.choice((0.15, 0.3, 0.5))
        gap = self.chance.choice(("<br>", "<br>", " &nbsp; &nbsp; "))
        return gap.join((one if self.chance.random() < rate else other).format(self.name(1, 3)) for _ in range(6))

    def facts(self) -> str:
        tag = self.chance.choice(("b", "small", "strong", "span"))
        rows = [f"<{tag}>{self.name(1, 2)}</{tag}><br>{self.name(1, 4)}" for _ in range(4)]
        return "".join(f"<p>{row}</p>" for row in rows)

    def headed_list(self) -> str:
        tag = self.chance.choice(("h3", "h4", "h5", "b", "strong"))
        lists = [
            f"<div><{tag}>{self.name(1, 2)}</{tag}>{''.join(f'<div>{self.name(1, 3)}</div>' for _ in range(self.chance.randint(2, 5)))}</div>"
            for _ in range(self.chance.randint(1, 3))
        ]
        return f'<div class="x-bar" style="gap: 30px; align-items: start">{"".join(lists)}</div>'

    def actions(self) -> str:
        """Write a row or column of buttons, one of which is the main one."""
        style = self.chance.choice(("x-bar", "x-bar", "x-column"))
        main = f'<button style="background: {self.accent}; color: #fff">{self.name(1, 2)}</button>'
        rest = "".join(f"<button>{self.name(1, 2)}</button>" for _ in range(self.chance.randint(1, 4)))
        return f'<div class="{style}">{main + rest if self.chance.random() < 0.5 else rest + main}</div>'

    def methods(self) -> str:
        """Write rows that begin with a badge, most of them in one colour."""
        chance = self.chance
        shape = f"display: inline-block; padding: {chance.choice((2, 5, 8))}px 12px; min-width: 60px; color: #fff"
        rows = []
        for _ in range(chance.randint(2, 6)):
            word, colour = chance.choice(
                (("GET", "#2563eb"), ("GET", "#2563eb"), ("POST", "#16a34a"), ("PUT", self.accent))
            )
            frame = f"border: 1px solid {colour}; background: {colour}1a; margin: 5px 0"
            rows.append(
                f'<div style="{frame}"><b style="{shape}; background: {colour}">{word}</b> /{self.name(1, 2)}</div>'
            )
        return "".join(rows)

    def panels(self) -> str:
        """Write cards, each with a head in a colour of its own or in one of two."""
        chance, rate = self.chance, self.chance.choice((0.3, 0.6, 1))
        heads = [
            f"background: {self.accent if chance.random() < rate else '#64748b'}; color: #fff; padding: 6px 10px"
            for _ in range(4)
        ]
        cards = [
            f'<div class="x-card" style="padding: 0"><div style="{head}">{self.name(1, 2)}</div><div style="padding: 6px 10px">{self.name(1, 4)}</div></div>'
            for head in heads
        ]
        style = chance.choice(("x-bar", "x-grid", ""))
        return f'<div class="{style}">{"".join(cards)}</div>'

    def chips(self) -> str:
        """Write a table or list whose rows have a badge of one shape, mostly in one of two or three colours."""
        chance = self.chance
        radius, pad = chance.choice((0, 3, 99)), chance.choice(("1px 6px", "2px 8px", "4px 12px"))
        soft, colours = chance.random() < 0.5, chance.sample(("#16a34a", "#dc2626", "#d97706", "#2563eb", "#7c3aed"), 3)
        rate, dot = chance.choice((0.5, 0.7, 0.85)), "● " if chance.random() < 0.3 else ""
        rows = []
        for _ in range(chance.randint(3, 7)):
            colour = colours[0] if chance.random() < rate else chance.choice(colours[1:])
            look = f"background: {colour}22; color: {colour}" if soft else f"background: {colour}; color: #fff"
            chip = f'<span style="{look}; border-radius: {radius}px; padding: {pad}; font-size: 12px">{dot}{self.name(1, 1)}</span>'
            cells = [self.name(1, 2), chip, str(chance.randint(1, 999))]
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        return f'<table class="x-table">{"".join(rows)}</table>'

    def crumbs(self) -> str:
        sign = self.chance.choice(("/", "›", ">", "»"))
        steps = [f'<a class="y-link" href="#">{self.name(1, 2)}</a>' for _ in range(self.chance.randint(1, 4))]
        return f" {sign} ".join([*steps, f"<span>{self.name(1, 2)}</span>"])

    def stages(self) -> str:
        """Write figures with their names, some in colours."""
        figure = [
            f'<div><div style="font-size: 22px">{self.chance.randint(1, 9999)}</div><span class="{self.chance.choice(("y-good", "y-bad", "", ""))}">{self.name(1, 2)}</span></div>'
            for _ in range(4)
        ]
        return f'<div class="x-bar" style="gap: 24px">{"".join(figure)}</div>'

    def prices(self) -> str:
        """Write cards of plans beside each other, one of which stands out."""
        on = self.chance.randrange(3)
        cards = [
            f'<div class="x-card" style="{f"background: {self.accent}; color: #fff" if at == on else ""}"><h4>{self.name(1, 1)}</h4>{self.name(1, 2)}<br>{self.name(1, 2)}</div>'
            for at in range(3)
        ]
        return f'<div class="x-bar">{"".join(cards)}</div>'

    def article(self) -> str:
        inner = f'<a class="y-link" href="#">{self.name(1, 3)}</a>'
        return f"<h2>{self.name(1, 4)}</h2><p>{self.sentence()} {inner} {self.sentence()}</p><h3>{self.name(1, 3)}</h3><p>{self.sentence()}</p>"


def write_state_page(number: int, fonts: Mapping[str, Sequence[str]]) -> str:
    """Return the HTML of one page; icons with these names are beside it in `icons/`."""
    chance = random.Random(f"states {number}")
    dark = chance.random() < 0.35
    font = chance.choice(list(ICON_FONTS)) if chance.random() < 0.7 else ""
    writer = StatePage(chance, (ICON_FONTS[font][1], fonts[font]) if font else None, dark=dark)
    return writer.write(f'<link rel="stylesheet" href="icons/{font}/{ICON_FONTS[font][0]}">' if font else "")
