"""CPU time of rendering a page, compared with the library alone, and the results for documents of other projects."""

import gzip
import io
import json
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

import peer_environments

TIMES = 5  # in each round, after one that is ignored
# Where real documents come from: documentation and icons. A kind of file is added by a package that has some.
PACKAGES = {
    "gnuplot-doc": "5.4.4+dfsg1-2",
    "texlive-humanities-doc": "2022.20230122-4",
    "texlive-latex-recommended-doc": "2022.20230122-3",
    "adwaita-icon-theme": "43-1",
    "xlsx2csv": "1:0.7.8-1",
    "libreoffice-help-ca": "4:7.4.7-1+deb12u14",
    "faust-common": "2.54.9+ds0-1",
    "python-skimage-doc": "0.19.3-8",
    "python-sphinx-gallery-doc": "0.10.1-3",
    "python-nbconvert-doc": "6.5.3-3",
}
PYTHON_PACKAGES = {"nbclient": "0.11.0", "nbval": "0.11.0", "papermill": "2.7.0"}  # on PyPI, with notebooks in tests
SUFFIXES = (".pdf", ".svg", ".svgz", ".ipynb", ".docx", ".odt", ".pptx", ".xlsx", ".ods", ".odp")
LEAST = 300  # documents
MANUAL, PAGES = "gnuplot.pdf", range(20, 31)  # whose pages are timed: text with coloured links
GREY_MANUAL, GREY_PAGES = "dramatist.pdf", range(5, 16)  # text without colour
DOTS = 150 / 72
FILM_VERSION = 1


@dataclass(frozen=True)
class Figure:
    """CPU milliseconds of one page or file: ours, and the library alone."""

    name: str
    at_most: float  # milliseconds
    work: Callable[[], object]
    items: int = 1  # that the work draws
    peer: str = ""  # empty: there is none
    peer_work: Callable[[], object] | None = None
    times: float | None = None  # at most this many times the peer
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def measure(self) -> None:
        """Add one round."""
        self.ours.append(_time(self.work, self.items))
        if self.peer_work is not None:
            self.theirs.append(_time(self.peer_work, self.items))

    def row(self) -> str:
        ours = statistics.median(self.ours)
        verdicts = [f"≤ {self.at_most:g} ms: {'met' if ours <= self.at_most else 'MISSED'}"]
        if not self.theirs:
            return f"| {self.name} | {ours:.1f} | | | {verdicts[0]} |"
        theirs = statistics.median(self.theirs)
        if self.times is not None:
            verdicts.append(f"≤ {self.times:g}×: {'met' if ours <= self.times * theirs else 'MISSED'}")
        shown = f"{ours:.1f} | {self.peer}: {theirs:.1f} | {ours / theirs:.2f}×"
        return f"| {self.name} | {shown} | {', '.join(verdicts)} |"


def _time(work: Callable[[], object], items: int) -> float:
    """Return the CPU milliseconds of one of `items` things that `work` does."""
    work()
    taken = []
    for _ in range(TIMES):
        began = time.process_time()
        work()
        taken.append((time.process_time() - began) * 1000 / items)
    return statistics.median(taken)


def _render(data: bytes, renderer: str, pages: range = range(1, 2), **options: object) -> None:
    from sightline.pixels.renderers.choose_renderer import render_task

    for page in pages:
        which = {"page": page} if page > 1 else {}
        drawn = render_task(data, {"renderer": renderer, "options": {**options, **which}})
        assert isinstance(drawn, tuple), drawn


def _make_render_anew(data: bytes, pages: range) -> Callable[[], None]:
    """Return work that draws each page out of a document of its own, so that each is opened."""
    variants = [data + b"\n" * number for number in range(1, len(pages) + 1)]

    def render_anew() -> None:
        for page, variant in zip(pages, variants, strict=True):
            _render(variant, "pdfium", range(page, page + 1))

    return render_anew


def _draw_by_pdfium(data: bytes, pages: range = PAGES, *, writes: bool) -> None:
    """Draw pages by pypdfium2 alone, opening the file for each page as a worker does."""
    import pypdfium2

    for page in pages:
        with pypdfium2.PdfDocument(data) as document:
            bitmap = document[page - 1].render(scale=DOTS)
            if writes:
                bitmap.to_pil().save(io.BytesIO(), "PNG")


def _draw_by_resvg(data: bytes) -> None:
    import resvg_py

    resvg_py.svg_to_bytes(svg_string=data.decode(), width=512, height=512, dpi=96.0)


def _list_figures(manual: bytes, grey: bytes, icon: bytes) -> list[Figure]:
    code = "\n".join(Path(__file__).read_text().split("\n")[:100]).encode()
    film = _make_film().read_bytes()
    count = len(PAGES)
    pixels, files = partial(_draw_by_pdfium, manual, writes=False), partial(_draw_by_pdfium, manual, writes=True)
    next_page = partial(_render, manual, "pdfium", PAGES)
    first_page, grey_page = _make_render_anew(manual, PAGES), _make_render_anew(grey, GREY_PAGES)
    grey_pixels = partial(_draw_by_pdfium, grey, GREY_PAGES, writes=False)
    return [
        Figure("100 lines of code", 250, partial(_render, code, "code", suffix=".py")),
        Figure("a page of a PDF at 150 dpi", 40, next_page, count, "pypdfium2, pixels only", pixels, 1.3),
        Figure("the same, of a PDF not seen before", 40, first_page, count, "pypdfium2, pixels only", pixels, 1.3),
        Figure("the same, of a PDF not seen before", 40, first_page, count, "pypdfium2, to PNG", files, 1.3),
        Figure("the same, without colour", 40, grey_page, count, "pypdfium2, pixels only", grey_pixels, 1.3),
        Figure("an SVG icon", 60, partial(_render, icon, "resvg"), 1, "resvg-py", partial(_draw_by_resvg, icon)),
        Figure("a still at 37 s of a 60 s video, 1080p", 400, partial(_render, film, "ffmpeg", at=37.0)),
    ]


def _make_film() -> Path:
    """Return a video of 60 seconds, 1920x1080, 30 frames a second, which is made once."""
    import av
    import numpy as np

    path = peer_environments.find_cache() / f"render-film-{FILM_VERSION}.mp4"
    if path.exists():
        return path
    peer_environments.print_status("making a video of 60 seconds, once")
    random = np.random.default_rng(1)
    ground = random.integers(0, 256, (270, 480, 3), np.uint8).repeat(4, axis=0).repeat(4, axis=1)
    part = path.with_suffix(".part")
    with av.open(str(part), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "veryfast", "crf": "23", "g": "250"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for number in range(1800):
            picture = np.roll(ground, (number // 600 * 200, number * 4), (0, 1))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    part.replace(path)
    return path


def _find_documents() -> list[Path]:
    folders = [
        *peer_environments.unpack_debian_packages(PACKAGES),
        *peer_environments.unpack_python_packages(PYTHON_PACKAGES),
    ]
    files = (path for folder in folders for path in sorted(folder.rglob("*")))
    return [path for path in files if path.name.removesuffix(".gz").endswith(SUFFIXES) and path.is_file()]


def _is_empty(picture: bytes) -> bool:
    from PIL import Image

    extrema = Image.open(io.BytesIO(picture)).convert("RGB").getextrema()
    return all(low == high for low, high in extrema)


def _draw_all(documents: list[Path]) -> tuple[Counter[str], list[str]]:
    """Draw the first page of each document in the workers; return what became of them, and which were not drawn."""
    from sightline.model.refusal import Refusal
    from sightline.pixels.file_types import identify_file
    from sightline.pixels.renderers import start_renderers
    from sightline.pixels.renderers.choose_renderer import choose_renderer
    from sightline.pixels.renderers.renderer import Renderer

    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with start_renderers() as pool:
        for path in documents:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            name = path.name.removesuffix(".gz")
            renderer = choose_renderer(identify_file(data[:4096]), data, name, programs=False)
            if not isinstance(renderer, Renderer) or renderer.render is None:
                outcomes["no renderer"] += 1
                continue
            reply = pool.run_sync("render", data, {"renderer": renderer.name, "options": {}})
            if isinstance(reply, Refusal):
                outcome = "crashed" if "crash" in reply.what else reply.code
            else:
                outcome = "empty" if _is_empty(reply.data) else "drawn"
            outcomes[f"{renderer.name}: {outcome}"] += 1
            if outcome != "drawn":
                wrong.append(f"{path.name}: {outcome}{f' ({reply})' if isinstance(reply, Refusal) else ''}")
    return outcomes, wrong


def run(rounds: int, out: Path) -> None:
    """Measure, draw all documents, print the table and write it beside the figures."""
    documents = _find_documents()
    by_name = {path.name: path for path in documents}
    icon = next(path for path in documents if path.suffix == ".svg" and "icons" in path.parts)
    if missing := {MANUAL, GREY_MANUAL} - by_name.keys():
        raise SystemExit(f"bench: {', '.join(missing)} is missing: gnuplot-doc and texlive-humanities-doc are needed")
    figures = _list_figures(*(by_name[name].read_bytes() for name in (MANUAL, GREY_MANUAL)), icon.read_bytes())
    for number in range(rounds):
        peer_environments.print_status(f"round {number + 1} of {rounds}")
        for figure in figures:
            figure.measure()
    outcomes, wrong = _draw_all(documents)
    enough = f"≥ {LEAST}: {'met' if len(documents) >= LEAST else 'MISSED'}"
    head = f"Median of {rounds} interleaved rounds, Python {platform.python_version()}, {platform.machine()}, "
    head += f"pypdfium2 {version('pypdfium2')}, resvg-py {version('resvg-py')}, PyAV {version('av')}."
    lines = [
        "<!-- Generated by bench/run.py. -->",
        head,
        "",
        "| CPU, warm | Sightline, ms | the library alone, ms | ratio | targets |",
        "|---|---|---|---|---|",
        *(figure.row() for figure in figures),
        "",
        f"Documents: {len(documents):,} ({enough}) out of "
        + ", ".join(f"{name} {number}" for name, number in (PACKAGES | PYTHON_PACKAGES).items())
        + ".",
        "",
        *(f"- {outcome}: {count:,}" for outcome, count in sorted(outcomes.items())),
        *(f"  - {line}" for line in wrong),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    out.parent.mkdir(exist_ok=True)
    facts = {f"{figure.name}, {figure.peer}": [figure.ours, figure.theirs] for figure in figures}
    out.write_text(json.dumps({"cpu_ms": facts, "documents": outcomes, "wrong": wrong}, indent=1) + "\n")
    out.with_suffix(".md").write_text(text)
    if wrong:
        print(f"bench: {len(wrong)} documents were not drawn", file=sys.stderr)
