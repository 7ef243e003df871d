"""Readings of screens in which everything was read correctly, so that tests depend on nothing else."""

from __future__ import annotations

from sightline.model.geometry import Box, Size
from sightline.reader.reading import Chart, ChartMark, Colour, ImageReading, InterfacePart, Table, TextLine

WHITE, BLACK, GREY, BLUE, RED, ORANGE = (
    (255, 255, 255),
    (0, 0, 0),
    (120, 120, 120),
    (29, 95, 209),
    (210, 47, 47),
    (240, 138, 28),
)


def line(text: str, x: int, y: int, height: int = 12, ink: Colour = BLACK, ground: Colour = WHITE) -> TextLine:
    return TextLine(text, Box(x, y, max(4, len(text) * height // 2), height), 0.99, ink, ground)


def dialog() -> ImageReading:
    lines = (
        line("Backup Manager", 254, 160),
        line("Backup could not be completed", 333, 209, 16),
        line("The drive (E:) has only 1.7 GB free, but 12.4 GB is", 332, 250),
        line("required. Error code: 0x80070070 (DISK_FULL).", 333, 270),
        line("Last successful backup: 11 March 2026, 22:40", 333, 310),
        line("Try again", 471, 414, ink=WHITE, ground=BLUE),
        line("Cancel", 707, 414, ink=GREY),
    )
    parts = (
        InterfacePart("bar", Box(240, 150, 560, 34), WHITE, (0,)),
        InterfacePart("panel", Box(240, 184, 560, 206), (243, 243, 243), (1, 2, 3, 4)),
        InterfacePart("button", Box(450, 404, 100, 32), BLUE, (5,)),
        InterfacePart("button", Box(676, 404, 104, 32), WHITE, (6,)),
    )
    return ImageReading(Size(1040, 600), lines, "", parts, colours=(((22, 62, 95), 0.6), (WHITE, 0.2)))


def form() -> ImageReading:
    lines = (
        line("Shipments", 700, 20),
        line("Invoices", 800, 20),
        line("Settings", 900, 20),
        line("Create your account", 108, 129, 22),
        line("Full name", 108, 173),
        line("Marguerite O'Connell", 122, 204),
        line("VAT number", 108, 246),
        line("GB 294 8371 06", 122, 277),
        line("Enter a valid VAT number: 9 digits after GB", 108, 308, ink=RED),
        line("Company (optional)", 108, 340),
        line("I agree to the terms", 132, 420),
        line("Create account", 134, 460, ink=WHITE, ground=BLUE),
        line("Business plan", 700, 129, 16),
        line("Subtotal £348.00", 700, 176),
        line("Total due today £417.60", 700, 200),
    )
    parts = (
        InterfacePart("panel", Box(80, 96, 560, 500), WHITE, tuple(range(3, 12))),
        InterfacePart("panel", Box(680, 96, 500, 400), (238, 243, 255), (12, 13, 14)),
        InterfacePart("field", Box(108, 189, 504, 40), WHITE, (5,)),
        InterfacePart("field", Box(108, 262, 504, 40), WHITE, (7,)),
        InterfacePart("field", Box(108, 358, 504, 40), WHITE),
        InterfacePart("check", Box(112, 420, 13, 13), BLUE, (10,), checked=True),
        InterfacePart("button", Box(108, 450, 153, 40), BLUE, (11,)),
    )
    return ImageReading(Size(1280, 900), lines, "", parts, colours=((WHITE, 0.8),))


def chart() -> ImageReading:
    values = {("Q1", "Europe"): 31, ("Q1", "Asia"): 18, ("Q2", "Europe"): 29, ("Q2", "Asia"): 52}
    marks = tuple(
        ChartMark(quarter, region, float(value), Box(100 + 60 * at, 500 - value * 5, 50, value * 5), hue)
        for at, ((quarter, region), value) in enumerate(values.items())
        for hue in [BLUE if region == "Europe" else ORANGE]
    )
    lines = (
        line("Revenue by region", 300, 15, 16),
        line("Europe", 800, 70),
        line("Asia", 800, 92),
        line("Q1", 120, 552),
        line("Q2", 240, 552),
        line("0", 40, 537),
        line("50", 36, 287),
    )
    found = Chart("bar", Box(30, 10, 900, 560), "Revenue by region", marks, "million USD")
    return ImageReading(Size(1000, 600), lines, "", charts=(found,))


def table() -> ImageReading:
    cells = (
        ("Item", "Price", "Quantity"),
        ("Floor lamp", "$134.16", "378"),
        ("Side table", "$348.52", "44"),
        ("Coat stand", "$83.60", "12"),
    )
    lines = tuple(line(text, 40 + 200 * x, 80 + 40 * y) for y, row in enumerate(cells) for x, text in enumerate(row))
    rows = tuple(tuple((y * 3 + x,) for x in range(3)) for y in range(4))
    return ImageReading(Size(960, 480), lines, "", tables=(Table(Box(30, 74, 900, 200), rows),))


ALL = {"dialog": dialog, "form": form, "chart": chart, "table": table}
