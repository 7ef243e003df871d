"""CPU time of image operations and of starting, compared with sharp, Pillow and imagehash in interleaved rounds."""

import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import peer_environments
import report
from PIL import Image, ImageChops, ImageDraw, ImageFont
from pixel_task import EDGE

HERE = Path(__file__).resolve().parent
PEERS = ("Sightline", "sharp", "Pillow", "imagehash")
TIMES = 5  # in each round
# One core for each, and large pages of memory, as Sightline's own workers have them.
ENVIRONMENT = {**os.environ, "VIPS_CONCURRENCY": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


@dataclass(frozen=True)
class PixelTarget:
    """At most this, or this many times a peer, or another figure of our own."""

    at_most: float
    of: str = ""  # a peer; nothing: an absolute figure
    figure: str = ""  # whose figure, where it is not the same row


@dataclass(frozen=True)
class Row:
    name: str
    unit: float  # of a millisecond
    ways: dict[str, str]  # by peer: the way of imaging.py
    file: str
    targets: tuple[PixelTarget, ...]


RESIZE = (PixelTarget(1.1, "sharp"), PixelTarget(0.5, "Pillow"))
PROBES = {"Sightline": "probe", "Pillow": "open"}
RESIZES = {"Sightline": "resize", "sharp": "sharp", "Pillow": "thumbnail"}
HASHES = {"Sightline": "hash", "imagehash": "imagehash"}
DARK, LIGHT, PHOTO = "dark 4K screenshot, PNG", "light 4K screenshot, PNG", "12 MP photo, JPEG"


def _write_resize_code(file: str) -> str:
    return f"decode and resize to {EDGE}, {file}, ms"


ROWS = (
    *(
        Row(f"dimensions, {file}, µs", 1e-3, PROBES, file, (PixelTarget(5),))
        for file in ("PNG", "JPEG", "JPEG with EXIF and ICC", "GIF", "WebP", "WebP with EXIF and ICC")
    ),
    *(Row(_write_resize_code(file), 1, RESIZES, file, RESIZE) for file in (DARK, LIGHT, PHOTO)),
    *(
        Row(
            f"the whole of fit, {file}, ms",
            1,
            {"Sightline": "fit"},
            file,
            (PixelTarget(3, figure=_write_resize_code(file)),),
        )
        for file in (DARK, LIGHT, PHOTO)
    ),
    *(Row(f"perceptual hash, {file}, ms", 1, HASHES, file, (PixelTarget(0.5, "imagehash"),)) for file in (DARK, PHOTO)),
)
HELP, IMPORT = "sightline --help, ms", "import sightline above bare Python, ms"
STARTS = {HELP: PixelTarget(60), IMPORT: PixelTarget(30)}


@dataclass
class PixelSamples:
    """What the rounds measured, by figure and peer."""

    taken: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    versions: dict[str, str] = field(default_factory=dict)

    def median(self, figure: str, peer: str = "Sightline") -> float | None:
        values = self.taken[figure].get(peer)
        return statistics.median(values) if values else None


def _draw_screenshot(seed: int) -> Image.Image:
    """Draw an editor full of made-up code."""
    rng = random.Random(seed)
    page = Image.new("RGB", (3840, 2160), (30, 30, 30))
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(20)
    inks = [(212, 212, 212), (86, 156, 214), (206, 145, 120), (106, 153, 85), (197, 134, 192)]
    for y in range(20, 2140, 28):
        x = 20.0 + 40 * rng.randrange(6)
        while x < 3700 and rng.random() < 0.95:
            word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz_().:=", k=rng.randrange(2, 12)))
            draw.text((x, y), word, rng.choice(inks), font)
            x += draw.textlength(word, font) + 10
    return page


def _draw_photograph(seed: int) -> Image.Image:
    """Light that changes slowly under grain that changes fast."""
    size, coarse = (4000, 3000), (1000, 750)
    grain = Image.frombytes("RGB", coarse, random.Random(seed).randbytes(coarse[0] * coarse[1] * 3)).resize(size)
    return Image.blend(Image.linear_gradient("L").resize(size).convert("RGB"), grain, 0.4)


def _write_files(folder: Path) -> dict[str, Path]:
    page, photo = _draw_screenshot(1), _draw_photograph(1)
    tags = Image.Exif()
    tags[0x0112], tags[0x927C] = 6, bytes(50_000)
    tags.update({tag: tag for tag in range(0x0100, 0x0130) if tag != 0x0112})
    blocks = {"exif": tags.tobytes(), "icc_profile": random.Random(2).randbytes(300_000)}
    small = page.crop((0, 0, 1280, 800))
    made: dict[str, Callable[[Path], None]] = {
        DARK: lambda path: page.save(path, "PNG"),
        LIGHT: lambda path: ImageChops.invert(page).save(path, "PNG"),
        PHOTO: lambda path: photo.save(path, "JPEG", quality=90),
        "PNG": lambda path: small.save(path, "PNG"),
        "JPEG": lambda path: small.save(path, "JPEG"),
        "JPEG with EXIF and ICC": lambda path: small.save(path, "JPEG", **blocks),
        "GIF": lambda path: small.save(path, "GIF"),
        "WebP": lambda path: small.save(path, "WEBP"),
        "WebP with EXIF and ICC": lambda path: small.save(path, "WEBP", **blocks),
    }
    for name, save in made.items():
        save(folder / name)
    return {name: folder / name for name in made}


def _list_commands() -> dict[str, list[str]]:
    """Return the command of each peer, without its file and count."""
    imagehash, (node, sharp) = peer_environments.install_imagehash(), peer_environments.install_sharp()
    ours = [sys.executable, str(HERE / "pixel_task.py")]
    ways = {way: [*ours, way] for way in ("probe", "open", "resize", "thumbnail", "fit", "hash")}
    theirs = [str(imagehash / "bin" / "python"), str(HERE / "pixel_task.py"), "imagehash"]
    return {**ways, "imagehash": theirs, "sharp": [str(node), str(sharp / "resize.cjs")]}


def _measure(row: Row, file: Path, commands: dict[str, list[str]], samples: PixelSamples) -> None:
    for peer, way in row.ways.items():
        edge = [str(EDGE)] if way == "sharp" else []
        command = [*commands[way], str(file), *edge, str(TIMES)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"bench: {peer}: {done.stderr.strip().splitlines()[-1]}")
        seen = json.loads(done.stdout)
        samples.versions[peer] = seen["version"]
        samples.taken[row.name][peer].append(statistics.median(seen["taken"]) / row.unit)


def _measure_cpu_ms(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _measure_start(samples: PixelSamples) -> None:
    for _ in range(TIMES):
        samples.taken[HELP]["Sightline"].append(
            _measure_cpu_ms([str(Path(sys.executable).with_name("sightline")), "--help"])
        )
        bare, ours = (_measure_cpu_ms([sys.executable, "-c", code]) for code in ("pass", "import sightline"))
        samples.taken[IMPORT]["Sightline"].append(ours - bare)


def _write_verdict(samples: PixelSamples, figure: str, target: PixelTarget) -> str:
    ours, theirs = samples.median(figure), samples.median(target.figure or figure, target.of or "Sightline")
    if ours is None or not theirs:
        return "–"
    absolute = not target.of and not target.figure
    value = ours if absolute else ours / theirs
    sign, of = ("", "") if absolute else ("×", f" {target.of or 'that resize'}")
    shown = "" if absolute else f"{value:.2f}×{of} "
    return f"{shown}(≤ {target.at_most:g}{sign}: {'met' if value <= target.at_most else 'MISSED'})"


def write_table(samples: PixelSamples) -> str:
    heads = ["CPU", *(f"{peer} {samples.versions.get(peer, '')}".strip() for peer in PEERS), "targets"]
    targets = {row.name: row.targets for row in ROWS} | {name: (target,) for name, target in STARTS.items()}
    rows = [heads]
    for name, wanted in targets.items():
        values = [samples.median(name, peer) for peer in PEERS]
        cells = ["–" if value is None else f"{value:.3g}" for value in values]
        rows.append([name, *cells, ", ".join(_write_verdict(samples, name, target) for target in wanted)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def run(rounds: int, out: Path) -> None:
    """Make the pictures, measure, print the table and write it beside the figures."""
    commands, samples = _list_commands(), PixelSamples()
    with tempfile.TemporaryDirectory(prefix="sightline-bench-") as folder:
        files = _write_files(Path(folder))
        for number in range(rounds):
            print(f"bench: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            for row in ROWS:
                _measure(row, files[row.file], commands, samples)
            _measure_start(samples)
    text = write_table(samples)
    print(f"\n{text}")
    _publish(out, text, samples, rounds)
    for name in report.list_missed(text):
        print(f"MISSED: {name}")


def _publish(out: Path, text: str, samples: PixelSamples, rounds: int) -> None:
    figures = {
        name: {peer: {"median": samples.median(name, peer), "rounds": values} for peer, values in taken.items()}
        for name, taken in samples.taken.items()
    }
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    facts = {"machine": machine, "python": platform.python_version(), "rounds": rounds, "versions": samples.versions}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**facts, "figures": figures}, indent=2) + "\n")
    intro = f"Median of {rounds} interleaved rounds, Python {platform.python_version()}, {machine}.\n"
    out.with_suffix(".md").write_text(f"<!-- Generated by bench/run.py. -->\n{intro}\n{text}")
