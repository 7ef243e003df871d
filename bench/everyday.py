"""What people type about the screens in samples/, and about others that are drawn from a seed, in plain words.

An empty answer means that nothing on the screen says it: only a plain no is right.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pages
import questions
from PIL import Image as Pillow
from questions import NO, PAINTS, Draw, Screen

from sightline.engine.local import local_seer, readers
from sightline.model.refusal import Refusal

RESULTS = Path(__file__).resolve().parent / "results"
SEEDS = range(60, 64)
RIGHT, INVENTED = 0.9, 0
PEOPLE = ("Bob Marsh", "Ines Duarte", "Kofi Mensah", "Lena Vogt", "Samir Haddad", "Tuva Berg", "Noel Price")
CITIES = ("Leeds", "Porto", "Aarhus", "Ghent", "Turin")
OPTIONS = ("Dark mode", "Email alerts", "Auto update", "Show hints", "Sound effects", "Two-step login")
LANDS = ("Norway", "Chile", "Kenya", "Japan", "Malta", "Peru", "Oman")

SAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "dialog": (
        ("what went wrong?", "Backup could not be completed"),
        ("What does the error say?", "Backup could not be completed"),
        ("whats the error code", "0x80070070"),
        ("What's the name of the program?", "Backup Manager"),
        ("how much space is free on the drive?", "1.7 GB"),
        ("How much space is required?", "12.4 GB"),
        ("When was the last successful backup?", "11 March 2026, 22:40"),
        ("what buttons can I click", "Try again|Free up space|Cancel"),
        ("Which button is highlighted?", "Try again"),
        ("Which button is blue?", "Try again"),
        ("Which button is greyed out?", "Cancel"),
        ("Is there a Cancel button?", "yes"),
        ("Is there a Help button?", "No. Nothing"),
        ("what is the dominant color", "blue"),
        ("Is there any text in this image?", "yes"),
        ("Does it mention ERROR_DISK_FULL?", "yes"),
        ("How big is this picture?", "1040"),
        ("what drive is full", ""),
        ("Who took this screenshot?", ""),
        ("What operating system is this?", ""),
        ("How long did the backup take?", ""),
        ("What is the email address?", ""),
    ),
    "form": (
        ("what's the customer's full name?", "Marguerite O'Connell"),
        ("whats the email", "m.oconnell@example.org"),
        ("what company is it?", "Blue Heron Logistics"),
        ("Which field has an error?", "VAT number"),
        ("What does the error message say?", "Enter a valid VAT number: 9 digits after GB"),
        ("How much is the VAT?", "69.60"),
        ("what's the total?", "417.60"),
        ("How much do I have to pay today?", "417.60"),
        ("How much does it cost per month?", "29.00"),
        ("Which fields are empty?", "No field is empty"),
        ("Is the terms checkbox ticked?", "yes"),
        ("What's on the button?", "Create account"),
        ("list all the fields", "Postcode"),
        ("what are the menu items?", "Shipments"),
        ("how many labels can I print each month", "2,500"),
        ("What's the uptime?", "99.95"),
        ("what is the postcode", "BS1 6XN"),
        ("What plan is it?", "Business plan"),
        ("What is the phone number?", ""),
        ("What is the password?", ""),
        ("What is Bob's email address?", ""),
        ("Which country does she live in?", ""),
        ("What's the discount?", ""),
    ),
    "chart": (
        ("What is this chart about?", "Quarterly revenue by region"),
        ("how much did Europe make in Q3?", "38"),
        ("What was the revenue of Asia Pacific in Q4", "52"),
        ("Which region had the highest revenue in Q1?", "North America"),
        ("which quarter was the worst for Europe", "Q2"),
        ("How many bars are there?", "=12"),
        ("how many regions are shown?", "=3"),
        ("What's the label of the y axis?", "Revenue (million USD)"),
        ("What does the x axis show?", "Quarter"),
        ("what colour is Europe", "orange"),
        ("Is this a bar chart or a pie chart?", "bar"),
        ("What are the categories?", "Q1"),
        ("What's in the legend?", "North America"),
        ("How many lines are in the chart?", "No line chart"),
        ("What is the sum of Europe over all quarters?", "142"),
        ("What was the revenue of Africa in Q2?", ""),
        ("What will the revenue be in 2026?", ""),
        ("Why did sales grow?", ""),
    ),
    "small9": (
        ("what language is the code in?", ""),
        ("Which user has the IP 192.168.54.9?", "user_611097"),
        ("What is the status of user_151262?", "pending"),
        ("What's the date for user_801710?", "2026-06-20"),
        ("how many users are suspended?", "=3"),
        ("Which RFC is mentioned?", "RFC-0193"),
        ("what is RETRYABLE set to", "429, 500, 502, 503, 504"),
        ("Which classes are defined?", "Token"),
        ("What is the quantum?", "250 ms"),
        ("what is the IP of user_438485", "192.168.141.108"),
        ("Does the text mention starvation?", "yes"),
        ("What is the email of user_729070?", ""),
        ("What is the status of user_000001?", ""),
        ("Who wrote the code?", ""),
    ),
}  # fmt: skip


def contacts(seed: int) -> Screen:
    draw = Draw("contacts", (1000, 460), "#ffffff", seed)
    draw.text(40, 22, "Team contacts", draw.large)
    names, xs = draw.chance.sample(PEOPLE, 5), (40, 260, 540, 740)
    rows = [
        (name, f"{name.split()[0].lower()}@example.net", f"555-0{draw.chance.randrange(100, 999)}", city)
        for name, city in zip(names, draw.chance.sample(CITIES, 5), strict=True)
    ]
    draw.pen.rectangle((30, 70, 970, 104), "#e7ebf0")
    for x, head in zip(xs, ("Name", "Email", "Phone", "City"), strict=True):
        draw.text(x, 78, head, draw.bold)
    for at, row in enumerate(rows):
        draw.pen.line((30, 146 + at * 42, 970, 146 + at * 42), "#d5d9df")
        for x, cell in zip(xs, row, strict=True):
            draw.text(x, 118 + at * 42, cell)
    one, two, three, four, _ = draw.chance.sample(rows, 5)
    first = one[0].split()[0]
    draw.ask(one[2], f"what's {first}'s phone number", f"whats the phone of {one[0]}", f"{first}'s phone?")
    draw.ask(two[1], f"email of {two[0]}?", f"What's {two[0].split()[0]}'s email?", f"give me the email for {two[0]}")
    draw.ask(
        three[0], f"who has the phone number {three[2]}?", f"whose number is {three[2]}", f"who lives in {three[3]}?"
    )
    draw.ask(four[3], f"which city is {four[0]} in", f"In which city is {four[0].split()[0]}?", f"city of {four[0]}")
    draw.ask("=5", "How many rows are there?", "how many rows in the table")
    missing = next(name for name in PEOPLE if name not in names)
    draw.screen.absent = [f"what's {missing.split()[0]}'s email?", f"how old is {one[0]}?", "what's Bob's fax number"]
    return draw.screen


def options(seed: int) -> Screen:
    draw = Draw("options", (800, 560), "#f2f4f7", seed)
    draw.pen.rounded_rectangle((60, 30, 740, 530), 10, "#ffffff", "#d7dbe0")
    draw.text(92, 52, "Preferences", draw.large)
    language = draw.chance.choice(("English", "Deutsch", "Polski"))
    draw.text(92, 104, "Language", colour="#4a4f57")
    draw.pen.rounded_rectangle((92, 128, 420, 166), 6, "#ffffff", "#aab0b8")
    draw.text(106, 138, language)
    names = draw.chance.sample(OPTIONS, 4)
    on = dict(zip(names, draw.chance.sample((True, True, False, False), 4), strict=True))
    for at, (name, checked) in enumerate(on.items()):
        y = 196 + at * 46
        draw.pen.rectangle(
            (92, y, 108, y + 16), "#1d5fd1" if checked else "#ffffff", "#1d5fd1" if checked else "#6b7280"
        )
        if checked:
            draw.pen.line((95, y + 8, 99, y + 12, 105, y + 4), "#ffffff", 2)
        draw.text(122, y - 1, name)
    x = draw.button(92, 440, "Save changes", PAINTS["green"], "#ffffff")
    draw.button(x, 440, "Reset", "#ffffff", "#1b1f24")
    some = draw.chance.choice(names)
    low = some.lower()
    draw.ask(
        "Yes: it is checked" if on[some] else "No: it is not checked",
        f"is {low} turned on?",
        f"is {low} on",
        f"Is {low} enabled?",
    )
    draw.ask(language, "what's the language set to", "which language is selected?", "what language is chosen")
    draw.ask(
        next(name for name in names if on[name]), "which boxes are ticked?", "what's checked?", "Which options are on?"
    )
    draw.ask("=2", "how many boxes are checked", "How many checkboxes are ticked?", "how many are checked?")
    draw.ask("Save changes", "which button is green?", "what does the green button say")
    missing = next(name for name in OPTIONS if name not in names)
    draw.screen.absent = [f"is {missing.lower()} turned on?", "what's the wifi password", "who changed the settings?"]
    return draw.screen


def lying(seed: int) -> Screen:
    draw = Draw("lying", (900, 520), "#ffffff", seed)
    draw.text(280, 14, "Coffee bags sold in May", draw.large)
    lands, colour = draw.chance.sample(LANDS, 5), draw.chance.choice(list(PAINTS))
    left, right, bottom = 130, 850, 450
    for value in range(0, 101, 20):
        x = left + (right - left) * value / 100
        draw.pen.line((x, 60, x, bottom), "#e2e2e2")
        draw.text(x - draw.pen.textlength(str(value), draw.sans) / 2, bottom + 10, str(value))
    values = dict(zip(lands, draw.chance.sample(range(10, 96), 5), strict=True))
    for at, (land, value) in enumerate(values.items()):
        y = 76 + at * 74
        draw.pen.rectangle((left, y, left + (right - left) * value / 100, y + 48), PAINTS[colour])
        draw.text(left - 14 - draw.pen.textlength(land, draw.sans), y + 15, land)
    draw.pen.line((left, 60, left, bottom), "#333333")
    some, other = draw.chance.sample(lands, 2)
    draw.ask(f"~{values[some]}", f"what's the value for {some}?", f"how many bags in {some}", f"{some}?")
    draw.ask(f"~{values[other]}", f"How many coffee bags were sold in {other}?", f"what did {other} sell")
    most, least = max(lands, key=values.__getitem__), min(lands, key=values.__getitem__)
    draw.ask(most, "which bar is the longest?", "who sold the most bags?", "Which country sold the most?")
    draw.ask(least, "which has the lowest value", "What's the smallest bar?", "Which country sold the least?")
    draw.ask(colour, "what color are the bars", f"what colour is the bar of {some}?")
    missing = next(land for land in LANDS if land not in lands)
    draw.screen.absent = [
        f"what's the value for {missing}?",
        f"how many people live in {some}?",
        "how much did it cost?",
    ]
    return draw.screen


def bill(seed: int) -> Screen:
    draw = Draw("bill", (820, 560), "#ffffff", seed)
    draw.text(60, 30, "INVOICE", draw.large)
    number, due = f"INV-{draw.chance.randrange(2000, 9999)}", f"{draw.chance.randrange(1, 28)} June 2026"
    name = draw.chance.choice(PEOPLE)
    facts = (("Invoice no.", number), ("Billed to", name), ("Due date", due))
    for at, (label, value) in enumerate(facts):
        draw.text(60, 90 + at * 34, f"{label}: {value}")
    sums = {"Net amount": draw.money(), "VAT 20%": draw.money(), "Grand total": draw.money()}
    for at, (label, value) in enumerate(sums.items()):
        draw.text(60, 250 + at * 44, label, draw.bold if at == 2 else draw.sans)
        draw.text(720 - draw.pen.textlength(value, draw.sans), 250 + at * 44, value)
    draw.text(60, 470, "Please pay within 14 days. Questions? Call 555-0199.")
    draw.ask(number, "what's the invoice number", "whats the invoice no", "which invoice is this?")
    draw.ask(due, "when is it due?", "what's the due date", "When is the payment due?")
    draw.ask(name, "who is it billed to?", "billed to whom?", "who's the customer it is billed to")
    draw.ask(sums["Grand total"], "what's the grand total", "how much is the total?", "total?")
    draw.ask("555-0199", "what number do I call?", "Which number should I call with questions", "phone number to call?")
    draw.screen.absent = ["what's the IBAN?", "what's the discount?", "who signed it?"]
    return draw.screen


def failure(seed: int) -> Screen:
    draw = Draw("failure", (900, 460), "#ffffff", seed)
    place = draw.chance.choice(("/reports/march", "/users/list", "/billing/plans"))
    draw.text(120, 60, "404", pages.font(pages.BOLD, 64))
    draw.text(120, 160, "Page not found", draw.large)
    draw.text(120, 210, f"The page {place} could not be found on this server.")
    request = f"{draw.chance.randrange(16**8):08x}"
    draw.text(120, 244, f"Request ID: {request}")
    x = draw.button(120, 310, "Back to start", PAINTS["blue"], "#ffffff")
    draw.button(x, 310, "Report a problem", "#ffffff", "#1b1f24")
    draw.ask("could not be found", "what's the error?", "What's wrong?", "what does the error message say")
    draw.ask(request, "request id?", "what's the request ID", "give me the request id")
    draw.ask(place, "which page could not be found", "What page was not found?")
    draw.ask("Report a problem", "what buttons are there", "list the buttons", "which buttons can i press?")
    draw.ask("yes", "Is there a button to report a problem?", "does it say 404?", 'does it say "Page not found"?')
    draw.screen.absent = ["when did it happen?", "what's the phone number?", "why was it deleted?"]
    return draw.screen


def screens() -> Iterator[Screen]:
    yield from (draw(seed) for seed in SEEDS for draw in (contacts, options, lying, bill, failure))
    for name, asked in SAMPLES.items():
        with Pillow.open(pages.SAMPLES / f"{name}.png") as image:
            page = pages.Page(name, image.convert("RGB"))
        yield Screen(page, [each for each in asked if each[1]], [question for question, wanted in asked if not wanted])


async def measured(*, show: bool) -> dict[str, object]:
    work = readers()
    seer = local_seer(Path(), work)
    if isinstance(seer, Refusal):
        raise SystemExit(f"bench: {seer}")
    count = {"asked": 0, "right": 0, "refused": 0, "unanswerable": 0, "invented": 0}
    told: list[str] = []
    try:
        for screen in screens():
            for question, wanted in [*screen.asked, *((each, "") for each in screen.absent)]:
                answer = await questions.put(seer, screen, question)
                good = (
                    any(questions.right(answer, each) for each in wanted.split("|"))
                    if wanted
                    else bool(NO.match(answer))
                )
                count["asked" if wanted else "unanswerable"] += 1
                count["right"] += bool(wanted) and good
                count["refused"] += bool(wanted) and not good and answer.startswith("No: only text")
                count["invented"] += not wanted and not good
                if not good or show:
                    told.append(
                        f"{screen.page.name}: {question} -> {answer.partition(chr(10))[0]} ({wanted or 'not there'})"
                    )
    finally:
        await work.close()
    return {**count, "wrong": told}


def _good(answer: str, wanted: str) -> bool:
    no = NO.match(answer) is not None and "it says:" not in answer  # that holds every name is no answer
    if not wanted or wanted.lower().startswith("no"):
        return (NO.match(answer) is not None) and questions.right(answer, wanted)
    return not no and any(questions.right(answer, each) for each in wanted.split("|"))


def run(file: Path, *, show: bool = False) -> None:
    found = asyncio.run(measured(show=show))
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"questions that can be answered: {found['right']} of {found['asked']} right, {found['refused']} a plain no")
    print(f"questions that cannot: {found['invented']} of {found['unanswerable']} answered with an invention")
    print("\n".join(found["wrong"]))
    print("met" if found["right"] >= RIGHT * found["asked"] and found["invented"] <= INVENTED else "MISSED")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS / "everyday.json")
    parser.add_argument("--all", action="store_true", help="show every answer, not only the wrong ones")
    options_given = parser.parse_args()
    run(options_given.json, show=options_given.all)
