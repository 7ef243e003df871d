"""Questions to the local seer about screens that were drawn from a seed: what can be read off, and what cannot."""

import argparse
import asyncio
import hashlib
import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pages
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from sightline.engine.local import local_seer, readers
from sightline.model.asking import Question
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.seers.local.seer import LocalSeer

RESULTS = Path(__file__).resolve().parent / "results"
SEEDS = 4
RIGHT, INVENTED = 0.9, 0
NO = re.compile(r"(?:no\b|nothing|none|the chart says nothing|there is no)", re.IGNORECASE)

PAINTS = {"blue": "#1d5fd1", "red": "#d22f2f", "green": "#1f9d45", "orange": "#f08a1c", "purple": "#7b3fb8"}
FIELDS = (
    "Full name", "Email address", "Company", "Street address", "Postcode", "Country", "Phone number", "Account ID",
)  # fmt: skip
NAMES = ("Marguerite Odell", "Tomas Lindqvist", "Priya Raman", "Owen Castellanos", "Hannah Weiss", "Luca Moretti")
ACTIONS = ("Save", "Cancel", "Retry", "Delete file", "Continue", "Open folder", "Send report", "Apply", "Close")
TITLES = ("Backup Manager", "Network Setup", "Printer Wizard", "Disk Cleanup", "Update Center", "Sync Monitor")
HEADINGS = ("Transfer was interrupted", "Update could not be installed", "Connection has expired", "Nothing was saved")
ITEMS = ("Walnut desk", "Floor lamp", "Office chair", "Bookshelf", "Side table", "Filing cabinet", "Coat stand")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun")
REGIONS = ("North", "South", "East", "West")

UNSEEN = (
    "What breed is the dog?",
    "Is the person in the picture smiling?",
    "What does the icon mean?",
    "How many people are in the picture?",
    "What will happen if I press the first button?",
    "Which font is used?",
    "Who designed this screen?",
    "Is this layout beautiful?",
    "What emotion does the picture express?",
    "What colour is the car?",
    "What is the weather like?",
    "Where was this photo taken?",
    "What is the phone number of the courier?",
    "Why did the author choose this?",
    "What animal is shown?",
)


@dataclass
class Screen:
    page: pages.Page
    asked: list[tuple[str, str]] = field(default_factory=list)  # question, and what the answer must hold
    absent: list[str] = field(default_factory=list)  # questions that nothing on it answers


class Draw:
    """A pen with a chance of its own."""

    def __init__(self, name: str, size: tuple[int, int], colour: str, seed: int) -> None:
        self.chance = random.Random(f"{name} {seed}")
        self.screen = Screen(pages.Page.blank(f"{name} {seed}", size, colour))
        self.sans, self.bold, self.large = (
            pages.font(pages.SANS, 15), pages.font(pages.BOLD, 15), pages.font(pages.BOLD, 22)
        )  # fmt: skip

    @property
    def pen(self) -> ImageDraw.ImageDraw:
        return self.screen.page.pen

    def text(
        self, x: float, y: float, words: str, font: ImageFont.FreeTypeFont | None = None, colour: str = "#1b1f24"
    ) -> None:
        self.screen.page.write(x, y, words, font or self.sans, colour)

    def button(self, x: int, y: int, words: str, colour: str, ink: str) -> int:
        width = round(self.pen.textlength(words, self.sans)) + 44
        self.pen.rounded_rectangle((x, y, x + width, y + 36), 6, colour, "#b4b9c0" if colour == "#ffffff" else None)
        self.text(x + 22, y + 9, words, colour=ink)
        return x + width + 14

    def ask(self, answer: str, *ways: str) -> None:
        """A question in one of the ways in which people put it."""
        self.screen.asked.append((self.chance.choice(ways), answer))

    def money(self) -> str:
        return f"${self.chance.randrange(12, 980)}.{self.chance.randrange(10, 99)}"


def dialog(seed: int) -> Screen:
    draw = Draw("dialog", (900, 520), "#2f4858", seed)
    title, heading = draw.chance.choice(TITLES), draw.chance.choice(HEADINGS)
    draw.pen.rectangle((150, 90, 750, 430), "#f4f4f4")
    draw.pen.rectangle((150, 90, 750, 126), "#ffffff")
    draw.text(166, 99, title)
    draw.text(190, 150, heading, draw.large)
    code, when = f"E-{draw.chance.randrange(1000, 9999)}", f"{draw.chance.randrange(1, 28)} May 2026, 18:4{seed % 10}"
    draw.text(190, 210, f"Error code: {code}")
    draw.text(190, 244, f"Last attempt: {when}")
    draw.pen.rectangle((150, 366, 750, 430), "#e4e4e4")
    colour = draw.chance.choice(list(PAINTS))
    names, x = draw.chance.sample(ACTIONS, 3), 190
    for at, name in enumerate(names):
        x = draw.button(x, 380, name, PAINTS[colour] if at == 0 else "#ffffff", "#ffffff" if at == 0 else "#1b1f24")
    draw.ask(
        title, "What is the title of the dialog?", "What does the title bar say?", "What is the title of this window?"
    )
    draw.ask(code, "What is the error code?", "Which error code is shown?", "Tell me the error code.")
    draw.ask(when, "When was the last attempt?", "What is the last attempt?", "When was the last attempt made?")
    draw.ask("=3", "How many buttons are there?", "How many buttons does it have?", "Count the buttons.")
    draw.ask(
        colour,
        f"What colour is the {names[0]} button?",
        f'What is the color of the "{names[0]}" button?',
        f"Which colour does the {names[0]} button have?",
    )
    missing = next(name for name in ACTIONS if name not in names)
    draw.screen.absent = [f"Where is the {missing} button?", "What is the serial number?"]
    return draw.screen


def form(seed: int) -> Screen:
    draw = Draw("form", (1000, 760), "#eef1f4", seed)
    draw.pen.rounded_rectangle((80, 40, 640, 720), 10, "#ffffff")
    heading = draw.chance.choice(("Create your account", "Delivery details", "Contact form", "Edit your profile"))
    draw.text(112, 64, heading, draw.large)
    labels, values = draw.chance.sample(FIELDS, 5), {}
    for at, label in enumerate(labels):
        y = 116 + at * 92
        values[label] = _value(label, draw.chance)
        draw.text(112, y, label, colour="#4a4f57")
        draw.pen.rounded_rectangle((112, y + 26, 600, y + 66), 6, "#ffffff", "#aab0b8")
        draw.text(126, y + 37, values[label])
    checked, colour = draw.chance.random() < 0.5, draw.chance.choice(list(PAINTS))
    inside, edge = ("#1d5fd1", "#1d5fd1") if checked else ("#ffffff", "#6b7280")
    draw.pen.rectangle((112, 588, 128, 604), inside, edge, 1)
    if checked:
        draw.pen.line((115, 596, 119, 600, 125, 592), "#ffffff", 2)
    draw.text(142, 587, "Send me the newsletter")
    draw.button(112, 640, "Submit form", PAINTS[colour], "#ffffff")
    one, two = draw.chance.sample(labels, 2)
    draw.ask(
        values[one],
        f"What is the value of the {one} field?",
        f"What is the {one.lower()}?",
        f'What does the field "{one}" contain?',
    )
    draw.ask(values[two], f"What is entered in {two}?", f"What is written in the {two} field?", f"{two}?")
    draw.ask(
        "=5",
        "How many input fields are there?",
        "How many fields does the form have?",
        "How many text fields are on the form?",
    )
    draw.ask(heading, "What is the heading of the form?", "What is the heading?", "Which heading does the form have?")
    draw.ask(
        colour,
        "What colour is the Submit form button?",
        "What is the colour of the Submit form button?",
        'What color is "Submit form"?',
    )
    missing = next(label for label in FIELDS if label not in labels)
    draw.screen.absent = [f"What is the value of the {missing} field?", "What is the date of birth?"]
    return draw.screen


def _value(label: str, chance: random.Random) -> str:
    name = chance.choice(NAMES)
    made: dict[str, Callable[[], str]] = {
        "Full name": lambda: name,
        "Email address": lambda: f"{name.split()[0].lower()}@example.org",
        "Company": lambda: chance.choice(("Blue Heron Ltd", "Northgate Supplies", "Orchard and Sons")),
        "Street address": lambda: f"{chance.randrange(2, 190)} Quayside Lane",
        "Postcode": lambda: f"BS{chance.randrange(1, 9)} {chance.randrange(1, 9)}XN",
        "Country": lambda: chance.choice(("Portugal", "Denmark", "Ireland", "Japan")),
        "Phone number": lambda: f"+44 20 7946 {chance.randrange(1000, 9999)}",
        "Account ID": lambda: f"AC-{chance.randrange(10000, 99999)}",
    }
    return made[label]()


def table(seed: int) -> Screen:
    draw = Draw("table", (960, 480), "#ffffff", seed)
    title = draw.chance.choice(("Open orders", "Stock list", "Furniture prices"))
    draw.text(40, 24, title, draw.large)
    heads, xs = ("Item", "Price", "Quantity", "Warehouse"), (40, 300, 480, 660)
    items = draw.chance.sample(ITEMS, 5)
    rows = [(item, draw.money(), str(draw.chance.randrange(3, 400)), draw.chance.choice(("Leeds", "Porto", "Aarhus")))
            for item in items]  # fmt: skip
    draw.pen.rectangle((30, 74, 930, 108), "#e7ebf0")
    for x, head in zip(xs, heads, strict=True):
        draw.text(x, 81, head, draw.bold)
    for at, row in enumerate(rows):
        y = 120 + at * 40
        draw.pen.line((30, y + 30, 930, y + 30), "#d5d9df")
        for x, cell in zip(xs, row, strict=True):
            draw.text(x, y, cell)
    one, two, three = draw.chance.sample(rows, 3)
    most = max(rows, key=lambda row: float(row[1][1:]))
    draw.ask(
        one[1],
        f"What is the price of the {one[0]}?",
        f"How much is the {one[0]}?",
        f"Which price does the {one[0]} have?",
    )
    draw.ask(two[2], f"What is the quantity of {two[0]}?", f"What quantity is listed for {two[0]}?")
    draw.ask(three[3], f"In which warehouse is the {three[0]}?", f"What is the warehouse of the {three[0]}?")
    draw.ask("=5", "How many rows does the table have?", "How many rows are in the table?")
    draw.ask(most[0], "Which item has the highest price?", "What is the item with the highest price?")
    missing = next(item for item in ITEMS if item not in items)
    draw.screen.absent = [f"What is the price of the {missing}?", f"What is the weight of the {one[0]}?"]
    return draw.screen


def chart(seed: int) -> Screen:
    draw = Draw("chart", (900, 560), "#ffffff", seed)
    names, months = draw.chance.sample(REGIONS, 2), MONTHS[: 4 + seed % 2]
    colours = draw.chance.sample(list(PAINTS), 2)
    title = draw.chance.choice(("Parcels shipped by region", "Orders by region", "Visitors by region"))
    draw.text(300, 14, title, draw.large)
    left, bottom, top = 90, 490, 70
    for value in range(0, 101, 20):
        y = bottom - (bottom - top) * value / 100
        draw.pen.line((left, y, 860, y), "#e2e2e2")
        draw.text(left - 14 - draw.pen.textlength(str(value), draw.sans), y - 9, str(value))
    values = {}
    step = (860 - left) / len(months)
    for at, month in enumerate(months):
        middle = left + step * (at + 0.5)
        draw.text(middle - draw.pen.textlength(month, draw.sans) / 2, bottom + 10, month)
        for which, name in enumerate(names):
            value = values[name, month] = draw.chance.randrange(10, 96)
            x = middle + (which - 1) * step * 0.32
            tip = bottom - (bottom - top) * value / 100
            draw.pen.rectangle((x, tip, x + step * 0.32 - 4, bottom), PAINTS[colours[which]])
    draw.pen.line((left, bottom, 860, bottom), "#333333")
    for which, name in enumerate(names):
        draw.pen.rectangle((620 + which * 120, 46, 634 + which * 120, 60), PAINTS[colours[which]])
        draw.text(640 + which * 120, 44, name)
    (one, first), (two, second) = draw.chance.sample(sorted(values), 2)
    best = max((value, month) for (name, month), value in values.items() if name == names[0])
    draw.ask(
        f"~{values[one, first]}",
        f"What is the value of {one} in {first}?",
        f"What was {one} in {first}?",
        f"How much was {one} in {first}?",
    )
    draw.ask(
        f"~{values[two, second]}",
        f"How high is the bar for {two} in {second}?",
        f"What is the {second} value of {two}?",
    )
    draw.ask(title, "What is the title of the chart?", "What is the chart's title?", "What is the title?")
    draw.ask(
        colours[0],
        f"What colour are the {names[0]} bars?",
        f"Which colour has the series {names[0]}?",
        f"What is the colour of {names[0]}?",
    )
    draw.ask(
        best[1],
        f"Which month has the highest value for {names[0]}?",
        f"In which month is {names[0]} highest?",
        f"When is {names[0]} at its maximum?",
    )
    missing = next(name for name in REGIONS if name not in names)
    draw.screen.absent = [f"What is the value of {missing} in {first}?", f"What is the value of {one} in October?"]
    return draw.screen


def summary(seed: int) -> Screen:
    draw = Draw("summary", (760, 460), "#f7f8fa", seed)
    draw.pen.rounded_rectangle((60, 40, 700, 420), 10, "#ffffff", "#d7dbe0")
    title = draw.chance.choice(("Invoice summary", "Order receipt", "Payment overview"))
    draw.text(92, 64, title, draw.large)
    rows = {
        "Subtotal": draw.money(), "Shipping": draw.money(), "Tax": draw.money(), "Total due": draw.money(),
        "Status": draw.chance.choice(("Paid", "Overdue", "Pending")),
    }  # fmt: skip
    for at, (label, value) in enumerate(rows.items()):
        y = 120 + at * 44
        draw.text(92, y, label, colour="#4a4f57")
        draw.text(660 - draw.pen.textlength(value, draw.sans), y, value)
    draw.button(92, 356, "Pay now", PAINTS["green"], "#ffffff")
    for label in ("Shipping", "Total due", "Status"):
        draw.ask(
            rows[label],
            f"What is the {label.lower()}?",
            f"How much is the {label.lower()}?" if label != "Status" else "Which status is shown?",
            f"Show me the {label.lower()}",
        )
    draw.ask("=1", "How many buttons are there?", "How many buttons does it have?", "Count the buttons.")
    draw.ask("Pay now" if seed % 2 else title, "Which button is there?" if seed % 2 else "What is the heading?")
    draw.screen.absent = ["What is the discount?", "What is the customer number?"]
    return draw.screen


def screens() -> list[Screen]:
    made = [draw(seed) for seed in range(SEEDS) for draw in (dialog, form, table, chart, summary)]
    unseen = [*UNSEEN] * 2
    for at, screen in enumerate(made):  # 40 of what is not there, and 10 of what no reader sees
        if at % 2:
            screen.absent.append(unseen[at // 2 + at % 5])
    return made


def right(answer: str, wanted: str) -> bool:
    said = answer.partition("\n\n")[0]
    if wanted.startswith("="):
        return re.split(r"\W", said)[0] == wanted[1:]
    if wanted.startswith("~"):  # within one per cent of an axis of a hundred
        number = re.match(r"-?[\d.]+", said)
        return number is not None and abs(float(number[0]) - float(wanted[1:])) <= 1
    return re.sub(r"\W", "", wanted).casefold() in re.sub(r"\W", "", said).casefold()


async def put(seer: LocalSeer, screen: Screen, question: str) -> str:
    file = io.BytesIO()
    screen.page.image.save(file, "PNG")
    data = file.getvalue()
    with Pillow.open(io.BytesIO(data)) as opened:
        size = Size(*opened.size)
    image = Image(hashlib.sha256(data).hexdigest(), "image/png", size, data)
    answer = await seer.ask(Question(question, (image,)))
    return f"No: {answer.what}" if isinstance(answer, Refusal) else answer.text


async def measured(*, show: bool) -> dict[str, object]:
    work = readers()
    seer = local_seer(Path(), work)
    if isinstance(seer, Refusal):
        raise SystemExit(f"bench: {seer}")
    good = asked = invented = unasked = 0
    wrong: list[str] = []
    try:
        for screen in screens():
            for question, wanted in screen.asked:
                answer = await put(seer, screen, question)
                asked, good = asked + 1, good + right(answer, wanted)
                if not right(answer, wanted) or show:
                    wrong.append(f"{screen.page.name}: {question} -> {answer.partition(chr(10))[0]} ({wanted})")
            for question in screen.absent:
                answer = await put(seer, screen, question)
                unasked, made_up = unasked + 1, NO.match(answer) is None
                invented += made_up
                if made_up or show:
                    wrong.append(f"{screen.page.name}: {question} -> {answer.partition(chr(10))[0]} (not there)")
    finally:
        await work.close()
    return {"asked": asked, "right": good, "unanswerable": unasked, "invented": invented, "wrong": wrong}


def run(file: Path, *, show: bool = False) -> None:
    found = asyncio.run(measured(show=show))
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    met = found["right"] >= RIGHT * found["asked"] and found["invented"] <= INVENTED
    print(f"questions that can be answered: {found['right']} of {found['asked']} right")
    print(f"questions that cannot: {found['invented']} of {found['unanswerable']} answered with an invention")
    print("\n".join(found["wrong"]))
    print("met" if met else "MISSED")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS / "questions.json")
    parser.add_argument("--all", action="store_true", help="show every answer, not only the wrong ones")
    options = parser.parse_args()
    run(options.json, show=options.all)
