"""Draws demo/screenshot.png: a failed deployment, in the font that the scripted models can read.

Everything is drawn at the font's own scale and enlarged as a whole, so that the letters stay exact.
"""

import sys
from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.scripted.eye import CELL, RGB  # noqa: E402
from tests.scripted.pictures import encode, stamp  # noqa: E402

SCALE = 3
DESK, SHADOW, BAR, PAPER, BOX = (92, 118, 142), (70, 92, 112), (43, 48, 59), (246, 247, 249), (228, 231, 236)
INK, SOFT, RED, BLUE, WHITE = (33, 37, 43), (104, 112, 124), (208, 46, 46), (38, 99, 208), (255, 255, 255)

TITLE = "Deploy - shop"
WORDS: tuple[tuple[str, RGB], ...] = (
    ("Release 4.2.17 did not reach web-3", INK),
    ("Migration orders.0042_add_refund failed:", SOFT),
    ('column "refund_id" does not exist', SOFT),
)
TRACE = "exit code 3, trace 7f3a-c41e"
BUTTONS = (("View log", BOX, INK), ("Roll back", BLUE, WHITE))


def centred(page: Image.Image, text: str, box: tuple[int, int, int, int], ink: RGB) -> None:
    """One line in the middle of a box."""
    left, top, right, bottom = box
    at = ((left + right - CELL[0] * len(text)) // 2, (top + bottom - CELL[1]) // 2)
    stamp(page, text, at, ink)


def draw() -> Image.Image:
    """The dialog, at the font's own scale."""
    page = Image.new("RGB", (400, 176), DESK)
    pen = ImageDraw.Draw(page)
    pen.rounded_rectangle((18, 16, 385, 163), 6, SHADOW)
    pen.rounded_rectangle((14, 12, 381, 159), 6, PAPER)
    pen.rounded_rectangle((14, 12, 381, 40), 6, BAR)
    pen.rectangle((14, 30, 381, 40), PAPER)
    pen.rectangle((14, 24, 381, 31), BAR)
    centred(page, TITLE, (14, 12, 381, 31), WHITE)
    for number, light in enumerate(((236, 106, 94), (244, 191, 79), (97, 197, 84))):
        pen.ellipse((22 + 12 * number, 18, 29 + 12 * number, 25), light)
    pen.ellipse((28, 46, 63, 81), RED)
    pen.line((38, 56, 53, 71), PAPER, 4)
    pen.line((38, 71, 53, 56), PAPER, 4)
    for row, (words, ink) in enumerate(WORDS):
        stamp(page, words, (80, 46 + row * 16), ink)
    pen.rounded_rectangle((80, 98, 368, 117), 3, BOX)
    centred(page, TRACE, (80, 98, 368, 117), INK)
    for number, (label, fill, ink) in enumerate(BUTTONS):
        box = (204 + 86 * number, 129, 282 + 86 * number, 148)
        pen.rounded_rectangle(box, 4, fill)
        centred(page, label, box, ink)
    return page


def main() -> None:
    """Write the picture beside this file."""
    page = draw()
    enlarged = page.resize((page.width * SCALE, page.height * SCALE), Image.Resampling.NEAREST)
    (HERE / "screenshot.png").write_bytes(encode(enlarged, optimize=1))


if __name__ == "__main__":
    main()
