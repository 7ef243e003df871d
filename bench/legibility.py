"""How much of a page is still read after the provider's own downscale: our fit compared with what others send."""

import hashlib
import io
import json
import os
import platform
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import coordinate_error
import pages
import peer_environments
from legibility_score import Found, score_page
from PIL import Image

from sightline.model.geometry import PixelMap, Size
from sightline.model.image import ImageTarget, PaddedSizing, PatchSizing, Sizing, TileSizing, compute_seen_size
from sightline.model.refusal import Refusal
from sightline.pixels.fit_image import fit_image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the scripted provider is in `tests`
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.scripted.provider import Provider

READER = Path(__file__).resolve().parent / "rapidocr_reader.py"
RULES: dict[str, Sizing] = {
    "Claude": PaddedSizing(),
    "Claude, high": PaddedSizing(2576, 4784),
    "OpenAI, patches": PatchSizing(),
    "OpenAI, tiles": TileSizing(),
}
MODELS = {  # a model of each rule, for requests through the proxy
    "Claude": "claude-sonnet-4-5",
    "Claude, high": "claude-opus-4-7",
    "OpenAI, patches": "gpt-5.2",
    "OpenAI, tiles": "gpt-4o",
}
FORMATS = ("image/png", "image/jpeg", "image/webp", "image/gif")
OURS = "Sightline"
PROXY, PROXY_OFF = "the proxy", "the proxy, legible off"
TALL = {"page 1280x6000": 1, "page 1200x12000": 4}  # how many images may be sent in place of one
READ, UNREAD = 97.0, 65.0  # per cent of a tall page: at least ours, at most the others'
HALF_A_POINT = 0.5
LOOP_BYTES = 500_000

Sent = list[tuple[bytes, PixelMap]]
"""Images as they go out, each with the way back to the page."""


@dataclass(frozen=True)
class LegibilityFigure:
    characters: float
    lines: float
    kib: float
    images: int


def fit_ours(page: pages.Page, rule: Sizing) -> Sent:
    made = fit_image(_encode_png(page.image), choose_target(page, rule))
    assert not isinstance(made, Refusal), made
    return [(part.image.data, part.map) for part in made.parts]


def choose_target(page: pages.Page, rule: Sizing) -> ImageTarget:
    return ImageTarget(FORMATS, sizing=rule, images=TALL.get(page.name, 1))


def fit_edge_1568(page: pages.Page, rule: Sizing) -> Sent:
    return [_scale_page(page, Size(*page.image.size).fit_within(1568))]


def fit_short_768(page: pages.Page, rule: Sizing) -> Sent:
    return [_scale_page(page, compute_seen_size(Size(*page.image.size), TileSizing()))]


def lower_jpeg_quality(page: pages.Page, rule: Sizing) -> Sent:
    """Full size, at ever lower quality; smaller only when even the lowest is too heavy."""
    size = Size(*page.image.size)
    while True:
        image = page.image if size == Size(*page.image.size) else _resize(page.image, size)
        for quality in range(95, 20, -10):
            file = io.BytesIO()
            image.save(file, "JPEG", quality=quality)
            if len(file.getvalue()) <= LOOP_BYTES:
                return [(file.getvalue(), PixelMap.from_scaling(Size(*page.image.size), size))]
        size = size.scale(0.75)


POLICIES: dict[str, Callable[[pages.Page, Sizing], Sent]] = {
    OURS: fit_ours,
    "edge 1568, PNG": fit_edge_1568,
    "2048/768, PNG": fit_short_768,
    "JPEG loop": lower_jpeg_quality,
}


class RunningProxy:
    """Sends pages through a proxy to a scripted provider, and returns what the provider gets."""

    def __init__(self, legible: str) -> None:
        self._stack = ExitStack()
        self._provider = self._stack.enter_context(Provider())
        home = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        flags = f"anthropic={self._provider.url}", f"openai={self._provider.url}"
        self._url = self._stack.enter_context(sightline(home, *flags, env={"SIGHTLINE_LEGIBLE": legible})).url
        self._lock = threading.Lock()

    def fit(self, page: pages.Page, rule: Sizing) -> Sent:
        """Return the page as the provider gets it; where its pixels were is found by fitting it again."""
        name = next(name for name, each in RULES.items() if each == rule)
        original = _encode_png(page.image)
        data = self._send(MODELS[name], b64encode(original).decode())
        if data == original:
            return [(data, PixelMap.from_scaling(Size(*page.image.size), Size(*page.image.size)))]
        for mime in FORMATS:
            for keeps in (False, True):
                made = fit_image(original, ImageTarget((mime,), sizing=rule, keeps_geometry=keeps))
                if not isinstance(made, Refusal) and made.parts[0].image.data == data:
                    return [(data, made.parts[0].map)]
        raise SystemExit(f"bench: {page.name} went through the proxy in a way that can't be made again")

    def _send(self, model: str, picture: str) -> bytes:
        block: dict[str, object] = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        where = "/u/openai/v1/chat/completions"
        if model.startswith("claude"):
            block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
            where = "/u/anthropic/v1/messages"
        body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}
        with self._lock:
            answer = exchange(self._url, where, json.dumps(body).encode())
            assert answer.status == 200, answer
            sent = json.loads(self._provider.exchanges.pop().body)["messages"][0]["content"][-1]
        return b64decode(sent["source"]["data"] if "source" in sent else sent["image_url"]["url"].partition(",")[2])

    def close(self) -> None:
        self._stack.close()


def _scale_page(page: pages.Page, size: Size) -> tuple[bytes, PixelMap]:
    return _encode_png(_resize(page.image, size)), PixelMap.from_scaling(Size(*page.image.size), size)


def _resize(image: Image.Image, size: Size) -> Image.Image:
    return image.resize((size.width, size.height), Image.Resampling.LANCZOS)


def _encode_png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def downscale_as_provider(data: bytes, where: PixelMap, rule: Sizing) -> tuple[bytes, PixelMap]:
    """Return an image as the model sees it, after the provider's downscale."""
    with Image.open(io.BytesIO(data)) as opened:
        image = opened.convert("RGB")
    size = Size(*image.size)
    inner = compute_seen_size(size, rule)
    return _encode_png(image if inner == size else _resize(image, inner)), where.then(
        PixelMap.from_scaling(size, inner)
    )


class Readers:
    """Processes that read, and what they have read before: the same image is read once."""

    def __init__(self, home: Path) -> None:
        self._home = home / "read"
        self._home.mkdir(exist_ok=True)
        command = [home / "bin" / "python", READER]
        self._all = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                     for _ in range(min(2, os.cpu_count() or 1))]  # fmt: skip
        self._idle: queue.Queue[subprocess.Popen[str]] = queue.Queue()
        for process in self._all:
            self._idle.put(process)

    def read(self, image: bytes) -> list[Found]:
        path = self._home / f"{hashlib.sha256(image).hexdigest()}.json"
        if not path.exists():
            picture = path.with_suffix(f".{threading.get_ident()}.png")
            picture.write_bytes(image)
            process = self._idle.get()
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps(str(picture)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            self._idle.put(process)
            picture.unlink()
            if not answer:
                raise SystemExit("bench: the reader ended; its words are above")
            path.write_text(answer)
        found: list[Found] = json.loads(path.read_text())
        return found

    def close(self) -> None:
        for process in self._all:
            assert process.stdin
            process.stdin.close()
            process.wait()


def measure_page(readers: Readers, page: pages.Page, rule: Sizing, policy: str) -> LegibilityFigure:
    sent = POLICIES[policy](page, rule)
    views = [downscale_as_provider(data, where, rule) for data, where in sent]
    found = score_page(page, [(where, readers.read(image)) for image, where in views])
    return LegibilityFigure(found.characters, found.lines, sum(len(data) for data, _ in sent) / 1024, len(sent))


def run(seeds: int, file: Path, only: str = "") -> None:
    readers = Readers(peer_environments.install_legibility_reader())
    proxies = {PROXY: RunningProxy("auto"), PROXY_OFF: RunningProxy("off")}
    POLICIES.update({name: proxy.fit for name, proxy in proxies.items()})
    todo = [page for seed in range(1, seeds + 1) for page in pages.draw_pages(seed)] + list(pages.load_samples())
    todo = [page for page in todo if only in page.name]
    jobs = [(page, rule, policy) for page in todo for rule in RULES for policy in POLICIES]
    figures: dict[tuple[str, str, str], list[LegibilityFigure]] = defaultdict(list)
    with ThreadPoolExecutor(2) as threads:
        made = threads.map(lambda job: measure_page(readers, job[0], RULES[job[1]], job[2]), jobs)
        for number, ((page, rule, policy), figure) in enumerate(zip(jobs, made, strict=True), 1):
            figures[page.name, rule, policy].append(figure)
            peer_environments.print_status(
                f"{number}/{len(jobs)} {page.name}, {rule}, {policy}: {figure.characters:.1f} %"
            )
    readers.close()
    for proxy in proxies.values():
        proxy.close()
    errors = {
        rule: max(coordinate_error.measure_error(page, choose_target(page, RULES[rule])) for page in todo)
        for rule in RULES
    }
    means = {key: _average(several) for key, several in figures.items()}
    text = write_table(means, errors, seeds)
    rows = [{"page": p, "rule": r, "policy": o, **vars(f)} for (p, r, o), f in means.items()]
    file.write_text(json.dumps({"seeds": seeds, "map_error_px": errors, "figures": rows}, indent=1) + "\n")
    file.with_suffix(".md").write_text(f"<!-- Generated by bench/run.py. -->\n{text}")
    print(text)


def _average(several: list[LegibilityFigure]) -> LegibilityFigure:
    characters, lines, kib = (
        statistics.fmean(getattr(one, name) for one in several) for name in ("characters", "lines", "kib")
    )
    return LegibilityFigure(characters, lines, kib, max(one.images for one in several))


def write_table(means: dict[tuple[str, str, str], LegibilityFigure], errors: dict[str, float], seeds: int) -> str:
    """Write a table of characters read in per cent, lines without a fault in per cent, KiB sent, and images sent."""
    heads = ["", "", *POLICIES, "target"]
    rows = [heads, ["---"] * len(heads)]
    for page, rule in dict.fromkeys((page, rule) for page, rule, _ in means):
        found = {policy: means[page, rule, policy] for policy in POLICIES}
        rows.append([page, rule, *map(_format_cell, found.values()), write_verdict(page, found)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    maps = "; ".join(f"{rule} {error:.2f} px" for rule, error in errors.items())
    met = "met" if max(errors.values()) <= 1 else "MISSED"
    several = f"Mean of {seeds} seeds" if seeds > 1 else "One seed"
    about = f"{several}, reader rapidocr, Python {platform.python_version()}. {write_table.__doc__}"
    exact = f"Largest error of the coordinate map (at most 1 px: {met}): {maps}."
    return "\n".join([about, "", *lines, "", exact, ""])


def _format_cell(figure: LegibilityFigure) -> str:
    several = f", {figure.images} images" if figure.images > 1 else ""
    return f"{figure.characters:.1f} / {figure.lines:.0f}, {figure.kib:.0f} KiB{several}"


def write_verdict(page: str, found: dict[str, LegibilityFigure]) -> str:
    mine = found[OURS]
    peers = [figure for policy, figure in found.items() if policy not in (OURS, PROXY, PROXY_OFF)]
    best = max(peers, key=lambda one: (one.characters, -one.kib))
    if page in TALL:
        peers_fail = "" if best.characters <= UNREAD else f"; the best other reads {best.characters:.0f} %"
        return f"≥ {READ:g} %: {'met' if mine.characters >= READ else 'MISSED'}{peers_fail}"
    legible, light = mine.characters >= best.characters - HALF_A_POINT, mine.kib <= best.kib
    return f"≥ best − {HALF_A_POINT}: {'met' if legible else 'MISSED'}, ≤ its bytes: {'met' if light else 'MISSED'}"
