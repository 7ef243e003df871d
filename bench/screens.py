"""The screens of the OCR benchmark: those of pages.py, and others drawn from a seed, with exact words and ink."""

import math
import random
from collections.abc import Callable, Iterator

from pages import (
    BOLD,
    SANS,
    Box,
    Line,
    Page,
    Words,
    draw_chart,
    draw_form,
    draw_ide,
    draw_small_text,
    draw_terminal,
    load_font,
)
from PIL import Image, ImageFilter

JAPANESE = "ipaexg.ttf"
_KANA = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん"
_KATAKANA = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン"
_KANJI = (
    "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員"
    "九入選立開手米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性的要用制"
    "治度務強気小七成期公持野協取都和統以機平総加山思家話世受区領多県続進正安設保改数記院女初北午指権心界支第産"
)


def draw_dialog(words: Words) -> Page:
    """Draw a message on a gradient, with buttons, one of them disabled."""
    page, sans, bold = Page.blank("dialog 1040x600", (1040, 600), "#1d4e74"), load_font(SANS, 14), load_font(BOLD, 17)
    shade = Image.linear_gradient("L").resize(page.image.size)
    page.image.paste(Image.new("RGB", page.image.size, "#0e2a40"), mask=shade)
    page.pen.rounded_rectangle((240, 150, 800, 450), 8, "#f3f3f3")
    page.pen.rectangle((240, 158, 800, 184), "white")
    page.write(254, 162, words.some(2).title(), load_font(SANS, 13), "#1a1a1a")
    page.write(300, 206, words.some(4).capitalize(), bold, "#1a1a1a")
    for y in range(250, 350, 24):
        page.write(300, y, words.sentence(words.between(4, 6)), sans, "#303030")
    page.pen.rectangle((240, 390, 800, 450), "#e5e5e5")
    kinds = (("#0067c0", "white"), ("#fbfbfb", "#1a1a1a"), ("#f5f5f5", "#9d9d9d"))
    for x, (ground, ink) in zip((440, 560, 680), kinds, strict=True):
        page.pen.rounded_rectangle((x, 404, x + 108, 436), 4, ground, "#d0d0d0")
        page.write(x + 18, 412, words.word()[:9].capitalize(), sans, ink)
    return page


def draw_table(words: Words) -> Page:
    page, sans, bold = Page.blank("table 1280x720", (1280, 720), "white"), load_font(SANS, 13), load_font(BOLD, 13)
    page.write(40, 20, words.some(3).title(), load_font(BOLD, 20), "#111827")
    lefts = (40, 120, 420, 640, 860, 1060, 1240)
    for row, y in enumerate(range(64, 690, 30)):
        page.pen.rectangle(
            (40, y, 1240, y + 30), "#eef2ff" if row == 0 else ("#f9fafb" if row % 2 else "white"), "#e5e7eb"
        )
        cells = [words.word()[:8].capitalize() for _ in range(6)]
        if row:
            money = f"{words.between(100, 99_999) / 100:,.2f}"
            day = f"2026-{words.between(1, 12):02}-{words.between(1, 28):02}"
            cells = [str(1000 + row), words.some(3), words.word(), money, day, words.word().upper()[:8]]
        for x, cell in zip(lefts, cells, strict=False):
            page.write(x + 10, y + 7, cell, bold if row == 0 else sans, "#111827")
    return page


def draw_scan(words: Words) -> Page:
    """Draw a scanned letter: skewed, grey and noisy."""
    page, sans, bold = Page.blank("scan 1240x1000", (1240, 1000), "#fbfaf6"), load_font(SANS, 18), load_font(BOLD, 26)
    page.write(120, 90, words.some(3).title(), bold, "#202020")
    for y in range(170, 560, 34):
        page.write(120, y, words.some(words.between(7, 9)), sans, "#252525")
    for y in range(620, 860, 40):
        page.write(120, y, words.some(3).capitalize(), sans, "#252525")
        page.write(860, y, f"{words.between(100, 999_999) / 100:,.2f}", sans, "#252525")
    return _scan_page(page, words.between(4, 9) / 10 * (-1) ** words.between(0, 1), words.between(0, 9999))


def _scan_page(page: Page, degrees: float, seed: int) -> Page:
    turned = page.image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor="#fbfaf6").filter(
        ImageFilter.GaussianBlur(0.6)
    )
    noise = Image.frombytes("L", turned.size, random.Random(seed).randbytes(turned.width * turned.height))
    grain = Image.merge("RGB", [noise] * 3)
    page.image = Image.blend(turned, grain, 0.08)
    width, height = page.image.size
    page.lines = [
        Line(
            line.text,
            _rotate_box(line.box, degrees, width, height),
            _rotate_box(line.ink or line.box, degrees, width, height),
        )
        for line in page.lines
    ]
    return page


def _rotate_box(box: Box, degrees: float, width: int, height: int) -> Box:
    """Return the rectangle around a box that was rotated with the page about its centre."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corners = [(x - width / 2, y - height / 2) for x in (box[0], box[2]) for y in (box[1], box[3])]
    xs = [x * cos + y * sin + width / 2 for x, y in corners]
    ys = [y * cos - x * sin + height / 2 for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def draw_cjk_page(words: Words) -> Page:
    page, gothic = Page.blank("CJK 1000x640", (1000, 640), "white"), load_font(JAPANESE, 20)
    for y in range(24, 600, 36):
        page.write(30, y, "".join(_choose_syllable(words) for _ in range(words.between(8, 16))), gothic, "#1f2937")
    return page


def _choose_syllable(words: Words) -> str:
    letters = (_KANJI, _KANJI, _KANA, _KATAKANA)[words.between(0, 3)]
    return "".join(letters[words.between(0, len(letters) - 1)] for _ in range(2))


MAKERS: tuple[Callable[[Words], Page], ...] = (
    draw_terminal,
    draw_ide,
    draw_form,
    draw_table,
    draw_chart,
    draw_dialog,
    draw_scan,
    draw_small_text,
    draw_cjk_page,
)


def draw_screens(seed: int) -> Iterator[Page]:
    for number, maker in enumerate(MAKERS):
        yield maker(Words(5000 * seed + number))
