"""Draws demo/screenshot.png: a failed deployment, in the font that comes with Pillow."""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).parent
RGB = tuple[int, int, int]
Box = tuple[int, int, int, int]

DESK, SHADOW, BAR, PAPER, BOX = (92, 118, 142), (70, 92, 112), (43, 48, 59), (246, 247, 249), (228, 231, 236)
INK, SOFT, RED, BLUE, WHITE = (33, 37, 43), (84, 92, 104), (208, 46, 46), (38, 99, 208), (255, 255, 255)
LETTERS = 26

TITLE = "Deploy - shop"
WORDS: tuple[tuple[str, RGB], ...] = (
    ("Release 4.2.17 did not reach web-3", INK),
    ("Migration orders.0042_add_refund failed:", SOFT),
    ('column "refund_id" does not exist', SOFT),
)
TRACE = "exit code 3, trace 7f3a-c41e"
BUTTONS = (("View log", BOX, INK), ("Roll back", BLUE, WHITE))


def centred(pen: ImageDraw.ImageDraw, text: str, box: Box, ink: RGB) -> None:
    """One line in the middle of a box."""
    left, top, right, bottom = box
    pen.text(((left + right) / 2, (top + bottom) / 2), text, ink, ImageFont.load_default(LETTERS), anchor="mm")


def draw() -> Image.Image:
    """The dialog on its desk."""
    page = Image.new("RGB", (1200, 528), DESK)
    pen = ImageDraw.Draw(page)
    pen.rounded_rectangle((54, 48, 1158, 492), 18, SHADOW)
    pen.rounded_rectangle((42, 36, 1146, 480), 18, PAPER)
    pen.rounded_rectangle((42, 36, 1146, 120), 18, BAR)
    pen.rectangle((42, 96, 1146, 120), PAPER)
    centred(pen, TITLE, (42, 36, 1146, 96), WHITE)
    for number, light in enumerate(((236, 106, 94), (244, 191, 79), (97, 197, 84))):
        pen.ellipse((66 + 36 * number, 54, 90 + 36 * number, 78), light)
    pen.ellipse((84, 138, 192, 246), RED)
    pen.line((114, 168, 162, 216), PAPER, 12)
    pen.line((114, 216, 162, 168), PAPER, 12)
    for row, (words, ink) in enumerate(WORDS):
        pen.text((240, 140 + row * 48), words, ink, ImageFont.load_default(LETTERS))
    pen.rounded_rectangle((240, 294, 1107, 354), 9, BOX)
    centred(pen, TRACE, (240, 294, 1107, 354), INK)
    for number, (label, fill, ink) in enumerate(BUTTONS):
        box = (612 + 258 * number, 387, 849 + 258 * number, 447)
        pen.rounded_rectangle(box, 12, fill)
        centred(pen, label, box, ink)
    return page


if __name__ == "__main__":
    draw().save(HERE / "screenshot.png", optimize=True)
