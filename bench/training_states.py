"""Write pages of menus, tabs, pages, lists and tables, of which one item is selected and some are disabled, for training.

How the selected item differs (background, ink, weight, a line beside or below it, a frame) is drawn at random for each
group, and so is what else differs and is no state: headings, links, badges, first columns, states of orders, buttons.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from training_pages import ICON_FONTS
from training_state_items import ItemPage

SIGNS = "‹ › « » ← → … Prev Next Previous First Last".split()


class StatePage(ItemPage):
    """Writes one page in the shape of an application: a bar at the top, a menu at the side, cards with groups of items."""

    def write(self, link: str) -> str:
        chance = self.chance
        sections: list[Callable[[], str]] = [
            self.item_tabs, self.item_tabs, self.item_tabs, self.item_menu, self.item_menu, self.pager, self.pager,
            self.item_list, self.item_list, self.chosen_table, self.chosen_table, self.segments, self.item_tree,
            self.links, self.facts, self.headed_list, self.plain_table, self.actions, self.crumbs, self.stages,
            self.prices, self.article, self.button_grid, self.form, self.form, self.options, self.options, self.methods,
            self.panels, self.toolbar, self.toggle_row, self.boxed_fields, self.chips, self.chips, self.double_list,
            self.double_list, self.month, self.month, self.switcher, self.switcher, self.boxed_pager, self.centred_menu,
            self.wide_items, self.wide_items, self.deep_tree, self.deep_tree, self.icon_tabs, self.filter_row, self.totals,
            self.menu_with_ends, self.menu_with_ends, self.steps,
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

    def double_list(self) -> str:
        """Write items of two lines: a name and a smaller text, perhaps with a time at the right."""
        count = self.chance.randint(3, 6)
        on, time = self.choose_one(count), self.chance.random() < 0.5
        items = [
            self.item(
                f'<b style="font-weight:{self.chance.choice((400, 600))}">{self.name(1, 2)}</b>{f"""<span style="float:right;font-size:11px">{at + 1}:30</span>""" if time else ""}<br><small>{self.name(2, 5)}</small>',
                self.mark(at, on),
            )
            for at in range(count)
        ]
        return f'<div class="y-group y-lined">{"".join(items)}</div>'

    def month(self) -> str:
        """Write a calendar with one day selected; another may have a ring or the days of other months be pale."""
        chance = self.chance
        on, start, side = chance.randint(1, 28), chance.randint(0, 6), chance.choice((28, 34, 40))
        cell = f"display:flex;align-items:center;justify-content:center;width:{side}px;height:{side}px;padding:0"
        days = [
            f'<a href="#" class="y-item {self.mark(day, on)}" style="{cell};{"opacity:.4" if not 1 <= day <= 30 else ""}">{(day - 1) % 30 + 1}</a>'
            for day in range(1 - start, 36 - start)
        ]
        head = "".join(f'<small style="{cell}">{day}</small>' for day in "Mo Tu We Th Fr Sa Su".split())
        return f'<div style="display:grid;grid-template-columns:repeat(7,{side + chance.choice((0, 2, 6))}px)">{head}{"".join(days)}</div>'

    def switcher(self) -> str:
        """Write segments in one box, of which the selected one is raised or filled."""
        chance = self.chance
        count, radius = chance.randint(2, 5), chance.choice((0, 4, 8, 99))
        on = self.choose_one(count)
        box = f"display:inline-flex;gap:{chance.choice((0, 0, 2, 4))}px;padding:{chance.choice((0, 2, 4))}px;border-radius:{radius}px;background:{chance.choice(('#8882', '#8881', 'transparent'))};border:{chance.choice((0, 1))}px solid #8885"
        return (
            f'<div style="{box}">{"".join(self.item(self.name(1, 1), self.mark(at, on)) for at in range(count))}</div>'
        )

    def boxed_pager(self) -> str:
        """Write page numbers in boxes, of which the current one is filled or has a frame of its own."""
        chance = self.chance
        count, side = chance.randint(3, 8), chance.choice((26, 32, 38))
        on = self.choose_one(count)
        box = f"display:inline-flex;align-items:center;justify-content:center;min-width:{side}px;height:{side}px;padding:0;box-sizing:border-box"
        texts = [str(at + 1) for at in range(count)]
        if count > 5:
            texts[-2] = "…"
        items = [
            f'<a href="#" class="y-item {self.mark(at, on)}" style="{box}">{text}</a>' for at, text in enumerate(texts)
        ]
        ends = chance.choice((("Previous", "Next"), ("‹", "›"), ("", "")))
        return f'<div style="display:flex;gap:{chance.choice((0, 4, 8))}px;align-items:center"><a>{ends[0]}</a>{"".join(items)}<a>{ends[1]}</a></div>'

    def centred_menu(self) -> str:
        """Write items whose texts are in the middle or at the right, perhaps below an icon."""
        count = self.chance.randint(3, 6)
        on, top = self.choose_one(count), self.chance.random() < 0.5
        items = [
            self.item(f"{f'{self.icon(20)}<br>' if top else ''}{self.name(1, 1)}", self.mark(at, on))
            for at in range(count)
        ]
        return f'<div class="y-group" style="width:{self.chance.choice((90, 140, 200))}px;text-align:{self.chance.choice(("center", "center", "right"))}">{"".join(items)}</div>'

    def wide_items(self) -> str:
        """Write items with an icon at the left and a count or an arrow at the right."""
        chance = self.chance
        count = chance.randint(3, 7)
        on = self.choose_one(count)
        rows = []
        for at in range(count):
            tail = chance.choice(
                (str(chance.randint(1, 99)), "›", "", f'<span class="y-pill">{chance.randint(1, 9)}</span>')
            )
            rows.append(
                self.item(
                    f'<span style="display:flex;gap:10px;align-items:center">{self.icon(18)}<span style="flex:1">{self.name(1, 2)}</span>{tail}</span>',
                    self.mark(at, on),
                )
            )
        return f'<div class="y-group">{"".join(rows)}</div>'

    def deep_tree(self) -> str:
        """Write rows at several depths, with arrows or icons, one of them selected over all its width."""
        chance = self.chance
        count, step = chance.randint(5, 10), chance.choice((12, 16, 20, 24))
        on, depth, rows = self.choose_one(count), 0, []
        sign = chance.choice(("▸ ", "", self.icon(14) + " ", self.icon(16) + " "))
        for at in range(count):
            rows.append(
                f'<a href="#" class="y-item {self.mark(at, on)}" style="padding:{3}px 8px {3}px {8 + depth * step}px">{sign}{self.name(1, 2)}</a>'
            )
            depth = max(0, min(3, depth + chance.choice((-1, 0, 0, 1, 1))))
        return f'<div class="y-group">{"".join(rows)}</div>'

    def icon_tabs(self) -> str:
        count = self.chance.randint(2, 5)
        on, above = self.choose_one(count), self.chance.random() < 0.5
        items = [
            self.item(f"{self.icon(18)}{'<br>' if above else ' '}{self.name(1, 1)}", self.mark(at, on))
            for at in range(count)
        ]
        return f'<div class="y-row" style="text-align:center">{"".join(items)}</div>'

    def steps(self) -> str:
        """Write steps with numbers in circles, one of them current."""
        count = self.chance.randint(3, 5)
        on = self.choose_one(count)
        return f'<div class="y-row" style="border:0">{"".join(self.item(f"{at + 1}. {self.name(1, 1)}", self.mark(at, on)) for at in range(count))}</div>'

    # -- what differs from its siblings and is no state

    def filter_row(self) -> str:
        """Write a row of links that ends in a button, or begins with a name in bold."""
        chance = self.chance
        links = "".join(self.item(self.name(1, 1)) for _ in range(chance.randint(2, 5)))
        button = f'<button style="background:{self.accent};color:#fff">{self.name(1, 2)}</button>'
        return f'<div class="y-bar">{f"<b>{self.name(1, 1)}</b>" if chance.random() < 0.6 else ""}<div class="y-row">{links}</div>{button}</div>'

    def totals(self) -> str:
        """Write a table whose last row or column is bold, whose rows alternate, or with one row that is a head."""
        chance = self.chance
        count, columns, how = (
            chance.randint(3, 7),
            chance.randint(2, 4),
            chance.choice(("total", "stripes", "column", "head")),
        )
        middle, rows = chance.randrange(1, count), []
        for at in range(count):
            back = "background:#8882" if (how == "stripes" and at % 2) or (how == "head" and at == middle) else ""
            bold = (how == "total" and at == count - 1) or (how == "head" and at == middle)
            cells = [
                f'<td style="font-weight:{700 if bold or (how == "column" and column == 0) else 400}">{chance.choice((self.name(1, 2), str(chance.randint(1, 9999))))}</td>'
                for column in range(columns)
            ]
            rows.append(f'<tr style="{back}">{"".join(cells)}</tr>')
        return f'<table class="x-table">{"".join(rows)}</table>'

    def menu_with_ends(self) -> str:
        """Write a menu with headings between its items, and one that leads out in a colour or as a button."""
        chance = self.chance
        end = chance.choice(
            (
                f'<a href="#" class="y-item" style="color:#dc2626">{self.name(1, 1)}</a>',
                f'<button style="background:{self.accent};color:#fff">{self.name(1, 2)}</button>',
                f'<div class="y-head">{self.name(1, 1)}</div>',
            )
        )
        return f'<div class="y-group"><div class="y-head">{self.name(1, 2)}</div>{self.items(chance.randint(2, 5), 2)}<div class="y-head">{self.name(1, 2)}</div>{self.items(chance.randint(2, 4), 2, -1)}{end}</div>'

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
