"""SVG against reference pictures of others: a folder with name.svg and name.png, and fonts/ if the texts need some.

Exact: at most 20 pixels differ by more than 1 level. Close: less than 1 % of the pixels differ by more than 48. Each
file is drawn as the product does it, without references to other files, in a worker with its limits on time and
memory. The worker is not isolated, because it has to read the fonts of the folder. The folder may have subfolders.
"""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.pixels.renderers import LIMITS
from sightline.pixels.renderers.choose_renderer import run_on_deep_stack
from sightline.pixels.renderers.svg import SvgFonts, clean_svg, draw_svg, read_svg_text
from sightline.pixels.renderers.text_fonts import list_font_files
from sightline.pixels.workers import WorkerPool

FONT_SUFFIXES = (".ttf", ".otf", ".ttc")
# Those that resvg's own tests are drawn with.
FAMILIES = {
    "default": "Noto Sans",
    "serif": "Noto Serif",
    "sans": "Noto Sans",
    "cursive": "Yellowtail",
    "fantasy": "Sedgwick Ave Display",
    "mono": "Noto Mono",
}


def draw_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Draw an SVG at a size, in a worker."""
    fonts = SvgFonts(arguments["fonts"], **FAMILIES) if arguments["fonts"] else SvgFonts(list_font_files())
    text = read_svg_text(data)
    drawing = text if isinstance(text, Refusal) else clean_svg(text)
    if isinstance(drawing, Refusal):
        return drawing
    png = run_on_deep_stack(lambda: draw_svg(drawing.text, Size(*arguments["size"]), fonts))
    return png if isinstance(png, Refusal) else ({}, png)


def compare(drawn: bytes, reference: bytes) -> str:
    """Return whether two pictures are exact, close, different or of different sizes, on a white ground."""
    from PIL import Image, ImageChops

    pictures = []
    for data in (drawn, reference):
        picture = Image.open(io.BytesIO(data)).convert("RGBA")
        ground = Image.new("RGBA", picture.size, "white")
        ground.alpha_composite(picture)
        pictures.append(ground.convert("RGB"))
    if pictures[0].size != pictures[1].size:
        return "another size"
    red, green, blue = ImageChops.difference(*pictures).split()
    levels = ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
    if sum(levels[2:]) <= 20:
        return "exact"
    return "close" if sum(levels[49:]) < 0.01 * sum(levels) else "different"


def run(folder: Path, out: Path | None) -> None:
    """Draw all pairs of a folder, and print how many are exact, close, different, refused or crashed."""
    from PIL import Image

    fonts = [str(path) for path in sorted((folder / "fonts").rglob("*")) if path.suffix.lower() in FONT_SUFFIXES]
    pairs = [path for path in sorted(folder.rglob("*.svg")) if path.with_suffix(".png").exists()]
    if not pairs:
        raise SystemExit(f"bench: {folder} has no name.svg with a name.png beside it")
    outcomes: dict[str, str] = {}
    with WorkerPool({"draw": "svg_corpus:draw_task"}, limits=LIMITS, subject="file") as pool:
        for path in pairs:
            reference = path.with_suffix(".png").read_bytes()
            size = Image.open(io.BytesIO(reference)).size
            reply = pool.run_sync("draw", path.read_bytes(), {"size": size, "fonts": fonts})
            if isinstance(reply, Refusal):
                outcome = "crashed" if "crash" in reply.what else f"refused as {reply.code}"
            else:
                outcome = compare(reply.data, reference)
            outcomes[str(path.relative_to(folder))] = outcome
    counts = Counter(outcomes.values())
    close = counts["exact"] + counts["close"]
    print(f"{len(pairs):,} pairs, {len(fonts)} fonts")
    print(f"exact: {counts['exact']:,} ({counts['exact'] / len(pairs):.1%}), close or exact: {close:,}")
    for outcome, count in counts.most_common():
        print(f"- {outcome}: {count:,}")
    if out is not None:
        out.write_text(json.dumps(outcomes, indent=1) + "\n")
