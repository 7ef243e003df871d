"""Records for the inspector: conversations with images of every fate, and names that try to be HTML."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from io import BytesIO

from PIL import Image as Picture
from PIL import ImageDraw, ImageFont

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import FitResult, Image, ImageTarget
from sightline.model.ports import Store
from sightline.model.records import FateName, FiledReceipt, LedgerEntry, Receipt, ReceiptLine, StoredView
from sightline.model.request_trace import RequestTrace, TraceParts
from sightline.model.scene import Json
from sightline.model.seer import Usage
from sightline.pixels.fit_image import fit_image

SCRIPT = "<script>document.title='run'</script>"
HOSTILE_NAME = "<img src=x onerror=\"document.title='run'\">.png"
HOSTILE_TEXT = f"{SCRIPT} <svg onload=\"document.title='run'\"> </pre></script><b>bold</b>"
SEER = "zai/glm-5v"
SIZE = (960, 600)
QUESTIONS = ("What does the dialog say?", "Which buttons are there?", "Which bar is the highest?")
WORDS = (
    "A settings window. Text: Deploy, Cancel. Button Deploy [620, 470, 760, 520]; button Cancel [780, 470, 900, 520]."
)


def paint_window(number: int) -> Image:
    """Return a picture like a screenshot of a small application."""
    chance = random.Random(number)
    hue = tuple(chance.randrange(60, 200) for _ in range(3))
    page = Picture.new("RGB", SIZE, (246, 247, 250))
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, 0, SIZE[0], 56), fill=hue)
    draw.text((24, 14), f"Release {number}", fill="white", font=ImageFont.load_default(26))
    draw.rectangle((0, 56, 200, SIZE[1]), fill=(232, 235, 241))
    for row in range(7):
        draw.rounded_rectangle((24, 84 + row * 44, 176, 112 + row * 44), 6, fill=hue if row == number % 7 else "white")
    for bar in range(9):
        height = chance.randrange(40, 280)
        draw.rectangle((250 + bar * 74, 400 - height, 300 + bar * 74, 400), fill=hue)
    draw.rounded_rectangle((620, 470, 760, 520), 8, fill=hue)
    draw.text((652, 482), "Deploy", fill="white", font=ImageFont.load_default(22))
    draw.rounded_rectangle((780, 470, 900, 520), 8, outline=(120, 130, 140), width=2)
    draw.text((806, 482), "Cancel", fill=(60, 66, 74), font=ImageFont.load_default(22))
    out = BytesIO()
    page.save(out, "PNG")
    data = out.getvalue()
    return Image(sha256(data).hexdigest(), "image/png", Size(*SIZE), data)


def record_conversation(
    record: Store,
    turns: int,
    *,
    hostile: bool = False,
    first: str = "Fix the page.",
    names: tuple[str, str, str] = ("deepseek", "deepseek-chat", "claude-cli/2.1 (external, cli)"),
    seed: int = 0,
) -> None:
    """File the receipts of a conversation with an image in each turn: the oldest retire, some are refitted.

    `names` are the upstream, the model and the client. Another seed gives other images.
    """
    first_image = seed + 1000 * hostile
    images = [paint_window(first_image + number) for number in range(turns)]
    for number, image in enumerate(images):
        record.images.keep("", image)
        name = HOSTILE_NAME if hostile else f"shot-{number}.png"
        text = HOSTILE_TEXT if hostile else WORDS
        record.descriptions.keep("", Description(image.sha256, image.size, text, SEER), "prompt")
        about: dict[str, Json] = {"question": HOSTILE_TEXT if hostile else QUESTIONS[number % len(QUESTIONS)]}
        about["answer"] = HOSTILE_TEXT if hostile else "It says that the release was deployed."
        if number % 3 == 1:
            about["crop_resolved_pixels"] = ["600,450,320,90"]
        usage = Usage(1200 + number, 150)
        record.ledger.add_entry(
            "", LedgerEntry("vision_proxy.tool_call", (image.sha256,), SEER, usage, 0.0011, latency_ms=900, about=about)
        )
        lines = tuple(_write_lines(images[: number + 1], name, first_image))
        place = f"/messages/{2 * number}/content/1"
        before: Json = {"type": "image", "source": {"data": "A" * 400}}
        after: Json = {"type": "text", "text": text}
        trace = RequestTrace("", "c" * 64, number + 1, 2 * number + 1, 2 * number or None, 900 * (number + 1))
        parts = TraceParts(first, ((place, before, after),), trace)
        receipt = Receipt(names[0], names[1], lines)
        client = HOSTILE_TEXT if hostile else names[2]
        record.ledger.file_receipt(
            "", FiledReceipt(receipt, "anthropic", client=client, usage=_count_usage(number), parts=parts)
        )


def _count_usage(number: int) -> Usage:
    """Return the usage of a turn: images retire in every eighth, so that little of it comes from the cache."""
    total, before = 4200 + 990 * number, 3210 + 990 * number
    cached = 0 if number == 0 else 3200 if number % 8 == 0 else before
    return Usage(total, 180 + number, cached, total - cached - 40)


@cache
def _refit(number: int) -> Image:
    """Return what a provider that takes at most 800 pixels gets."""
    fitted = fit_image(paint_window(number).data, ImageTarget(("image/png",), edge=800, keeps_geometry=True))
    assert isinstance(fitted, FitResult)
    return fitted.parts[0].image


def _write_lines(images: list[Image], name: str, first: int) -> Iterator[ReceiptLine]:
    for index, image in enumerate(images):
        fate, why, after = _choose_fate(index, len(images))
        sent = _refit(first + index) if fate == "refitted" else None
        yield ReceiptLine(
            f"/messages/{2 * index}/content/1",
            fate,
            why,
            1334,
            after,
            image.sha256,
            name,
            SIZE,
            (sent.size.width, sent.size.height) if sent else None,
            len(image.data),
            len(sent.data) if sent else None,
            SEER if fate == "told" else "",
            sent.sha256 if sent else "",
        )


def _choose_fate(index: int, count: int) -> tuple[FateName, str, int]:
    if index < (count // 8) * 8 - 3:
        return "retired", "keeping it costs more than rewriting the cache", 32
    if index % 5 == 3:
        return "refitted", "to 800x500 image/png (the provider takes at most 800 pixels)", 534
    return "told", f"by {SEER} (the model takes no images)", 88


def record_view(record: Store, number: int, crop: tuple[int, int, int, int]) -> None:
    """Keep what a tool has shown of an image: a part of it."""
    x, y, width, height = crop
    out = BytesIO()
    Picture.open(BytesIO(paint_window(number).data)).crop((x, y, x + width, y + height)).save(out, "PNG")
    data = out.getvalue()
    pixels = Image(sha256(data).hexdigest(), "image/png", Size(width, height), data)
    record.images.keep_view("", StoredView(json.dumps({"crop": crop}), paint_window(number).sha256, pixels))


def record_many(record: Store, conversations: int, images: int, client: str = "codex/1") -> None:
    """File many small conversations, each with so many images that share one picture."""
    picture = paint_window(0)
    record.images.keep("", picture)
    for number in range(conversations):
        lines = tuple(
            ReceiptLine(f"/messages/0/content/{n}", "shown", "", 100, 100, picture.sha256, f"{n}.png", SIZE)
            for n in range(images)
        )
        parts = TraceParts(f"{client} {number}", (), RequestTrace("", "", 1, 1, 0, 10))
        receipt = Receipt("openai", "gpt-5", lines)
        record.ledger.file_receipt("", FiledReceipt(receipt, "openai_chat", client=client, parts=parts))
