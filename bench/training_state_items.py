"""Write items of menus, tabs and lists, and draw at random how one that is selected or disabled differs, for training."""

from training_variety import VariedPage

SHADES = ("#0003", "#0001", "#fff2", "#fff1", "#8883", "#8882")


class ItemPage(VariedPage):
    """Writes items whose look is drawn for each section of a page."""

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
        full = f"background:{chance.choice((accent, accent, f'linear-gradient({chance.choice((90, 180, 45))}deg, {accent}, {accent}99)'))};color:#fff"
        short = f"position:relative}}.y-item.active::before{{content:'';position:absolute;background:{chance.choice((accent, ink))};"
        short += chance.choice(
            (
                "left:0;top:20%;bottom:20%;width:3px",
                "left:0;top:0;bottom:0;width:4px",
                "left:20%;right:20%;bottom:0;height:3px",
                "right:0;top:0;bottom:0;width:4px",
            )
        )
        side = chance.choice(("bottom", "bottom", "bottom", "left", "left", "top", "right"))
        ways = {
            "ground": chance.choice((full, f"background:{back}", f"background:{back}")),
            "ink": f"color:{chance.choice(inks)}",
            "weight": f"font-weight:{chance.choice((600, 700, 700))}",
            "line": f"border-{side}:{chance.choice((2, 2, 3, 4))}px solid {chance.choice((accent, ink))};border-radius:0",
            "frame": f"border:1px solid {chance.choice((accent, line))};box-shadow:{chance.choice(('none', '0 2px 6px #0003'))}",
            "under": f"text-decoration:underline {chance.choice(('', '2px '))}{accent};text-underline-offset:{chance.choice((3, 6))}px",
            "short": short,
        }
        kinds = ["ground", "ground", "ground", "ink", "ink", "line", "line", "weight", "frame"]
        kinds += ["short", "short", "under"] if chance.random() < 0.5 else []
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

    def choose_one(self, count: int) -> int:
        """Return the place of the item that is selected, or mostly none."""
        return self.chance.randrange(count) if self.chance.random() < 0.85 else -1

    def mark(self, at: int, on: int) -> str:
        return "active" if at == on else ""
