"""What a description costs besides the vision model: known images, twenty at once, an answer with 200 boxes."""

import asyncio
import io
import json
import os
import statistics
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

import sightline
import sightline.api
from sightline.api import Analysis
from sightline.engine import Engine
from sightline.grounding.parse import parse_places
from sightline.model.geometry import Size
from sightline.model.profile import RequestOrigin, Upstream
from sightline.model.refusal import Refusal
from sightline.runtime import Runtime, build_runtime
from sightline.settings import load_settings
from sightline.wire import ANTHROPIC

CALL = 0.4  # seconds that the scripted model takes over one look
IMAGES, AT_ONCE, BOXES = 20, 4, 200
SEEN = Size(1288, 728)
TARGETS = {"cached": 1.0, "at_once": IMAGES / AT_ONCE * 1.1, "parse": 2.0}


class Model:
    """Answers every look after the same time, on loopback, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _read_head(reader):
            lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if b": " in line)
            await reader.readexactly(int(lines.get(b"content-length", b"0")))
            self.calls += 1
            await asyncio.sleep(CALL)
            said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": f"A page, {self.calls}."}}]}
            body = json.dumps(said).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.CancelledError):  # the client has gone, or all is done
        return b""


def draw_picture(number: int) -> bytes:
    """Return a page that is different for each number."""
    page, file = Image.new("RGB", (1280, 720), (250, 250, 245)), io.BytesIO()
    ImageDraw.Draw(page).text((40, 40), f"Page {number}\n" * 30, fill=(20, 20, 20))
    page.save(file, "png")
    return file.getvalue()


def build_answers() -> dict[str, tuple[str, str]]:
    """200 boxes as the families write them: the format, and the answer."""
    boxes = [(7 * (n % 150), 3 * n, 7 * (n % 150) + 60, 3 * n + 40, f"button {n}") for n in range(BOXES)]

    def join_boxes(key: str) -> str:
        return json.dumps([{key: [*box], "label": label} for *box, label in boxes])

    def each(pattern: str) -> str:
        return "\n".join(pattern.format(*box) for box in boxes)

    return {
        "bbox_2d": ("qwen_normalized_1000", join_boxes("bbox_2d")),
        "box_2d": ("gemini_normalized_1000", join_boxes("box_2d")),
        "in words": ("claude_pixels", each("The {4} [{0}, {1}, {2}, {3}] is red.")),
        "<box>": ("internvl_pixels", each("<ref>{4}</ref><box>[[{0}, {1}, {2}, {3}]]</box>")),
        "<points>": ("molmo2_points", each('<points coords="1 1 {0:03} {1:03}">{4}</points>')),
        "<loc_>": ("florence_loc", each("{4}<loc_{1}><loc_{1}><loc_{3}><loc_{3}>")),
        "<loc>": ("paligemma_loc", each("<loc{1:04}><loc{1:04}><loc{3:04}><loc{3:04}> {4} ;")),
        "<det>": ("deepseek_bbox", each("<|ref|>{4}<|/ref|><|det|>[[{1}, {1}, {3}, {3}]]<|/det|>")),
        "<begin_of_box>": ("glm_normalized_1000", each("The {4} <|begin_of_box|>[[{1}, {1}, {3}, {3}]]<|end_of_box|>")),
        "<point>": ("molmo_points", each('<point x="{1:.1f}" y="{3:.1f}" alt="{4}">{4}</point>')),
        "<patch_index>": (
            "kosmos_patches",
            each("<phrase>{4}</phrase><object><patch_index_{1:04}><patch_index_{3:04}></object>"),
        ),
        "click": ("uitars_pixels", each("click(start_box='({0},{1})')")),
        "x_min": ("unit_xyxy", json.dumps({"objects": [_format_sides(box, label) for *box, label in boxes]})),
    }


def _format_sides(box: list[int], label: str) -> dict[str, object]:
    """Return a box as Moondream writes it, with all digits of the fractions."""
    return {
        **dict(zip(("x_min", "y_min", "x_max", "y_max"), [side / 1300 for side in box], strict=True)),
        "label": label,
    }


def measure_milliseconds(work: Callable[[], object], times: int) -> float:
    """Return the median CPU time in milliseconds."""
    taken = []
    for _ in range(times):
        begun = time.process_time()
        work()
        taken.append((time.process_time() - begun) * 1000)
    return statistics.median(taken)


def measure_parsing(rounds: int) -> dict[str, float]:
    found = {}
    for name, (form, text) in build_answers().items():
        assert len(parse_places(text, form, [SEEN])) == BOXES, name
        found[name] = measure_milliseconds(lambda form=form, text=text: parse_places(text, form, [SEEN]), 20 * rounds)
    return found


def build_body(images: list[bytes]) -> bytes:
    shown = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64encode(data).decode()}}
        for data in images
    ]
    said = {"role": "user", "content": [*shown, {"type": "text", "text": "What is it?"}]}
    return json.dumps({"model": "blind", "messages": [said]}).encode()


async def prepare_request(engine: Engine, request: bytes) -> None:
    reading = engine.read(request, ANTHROPIC)
    assert reading is not None
    visitor = RequestOrigin(Upstream("up", {"anthropic": "http://127.0.0.1:9"}), "anthropic", "bench")
    made = await engine.prepare(reading, visitor)
    assert b"A page" in b"".join(bytes(piece) for piece in made.body)


async def measure_looks(whole: Runtime, rounds: int) -> dict[str, float]:
    """Measure twenty new images, in calls, and a known one, in milliseconds."""
    together, known = [], []
    for number in range(rounds):
        images = [draw_picture(1000 * number + n) for n in range(IMAGES)]
        begun = time.perf_counter()
        await prepare_request(whole.engine, build_body(images))
        together.append((time.perf_counter() - begun) / CALL)
        one = build_body(images[:1])
        for _ in range(20):
            begun = time.process_time()
            await prepare_request(whole.engine, one)
            known.append((time.process_time() - begun) * 1000)
    return {"at_once": statistics.median(together), "request_ms": statistics.median(known)}


async def measure_with_model(rounds: int) -> dict[str, float]:
    model = Model()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    os.environ["SIGHTLINE_UPSTREAMS"] = json.dumps(
        {"mine": {"baseUrl": {"openai_chat": f"http://127.0.0.1:{port}/v1"}}}
    )
    os.environ |= {"SIGHTLINE_PROVIDER": "mine", "SIGHTLINE_MODEL_ID": "eye"}
    os.environ["SIGHTLINE_MODELS"] = '{"blind": {"vision": false}, "eye": {"vision": true}}'
    whole = build_runtime(load_settings())
    assert not isinstance(whole, Refusal), whole
    found = await measure_looks(whole, rounds)
    await whole.close()
    found["describe_ms"] = await asyncio.to_thread(measure_describe, rounds)
    server.close()
    return found


def measure_describe(rounds: int) -> float:
    """Measure the library's `describe` of a file that it has described before."""
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        file.write(draw_picture(7))
        file.flush()
        session = sightline.Session()

        def again() -> Analysis:
            found = sightline.describe(file.name, session=session)
            assert isinstance(found, Analysis), found
            return found

        assert not again().cached
        assert again().cached
        return measure_milliseconds(again, 20 * rounds)


def run(rounds: int, file: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["SIGHTLINE_HOME"] = home
        figures: dict[str, Any] = {**asyncio.run(measure_with_model(rounds)), "parse_ms": measure_parsing(rounds)}
    slowest = max(figures["parse_ms"].values())
    parsing = f"an answer of {BOXES} boxes, read (the slowest of {len(figures['parse_ms'])} ways to write it)"
    rows = [
        ("a request with a description that is known", figures["request_ms"], TARGETS["cached"], "ms"),
        ("`describe` of a file that is known", figures["describe_ms"], TARGETS["cached"], "ms"),
        (f"{IMAGES} images described at once", figures["at_once"], TARGETS["at_once"], "calls"),
        (parsing, slowest, TARGETS["parse"], "ms"),
    ]
    lines = [
        "| | Sightline | target |",
        "|---|---|---|",
        *(
            f"| {name} | {value:.2f} {unit} | ≤ {most:g} {unit}: {'met' if value <= most else 'MISSED'} |"
            for name, value, most, unit in rows
        ),
        "",
        "Reading 200 boxes, by the way in which they are written: "
        + ", ".join(f"{name} {value:.2f} ms" for name, value in figures["parse_ms"].items())
        + ".",
        "",
    ]
    file.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    file.with_suffix(".md").write_text("\n".join(lines), "utf-8")
    sys.stdout.write("\n".join(lines))
