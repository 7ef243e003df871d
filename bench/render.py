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
}
SUFFIXES = (".pdf", ".svg", ".svgz", ".ipynb", ".docx", ".odt", ".pptx", ".xlsx", ".ods", ".odp")
LEAST = 300  # documents
MANUAL = "gnuplot.pdf"  # whose pages are timed
PAGES = range(20, 31)
DOTS = 150 / 72


@dataclass(frozen=True)
class Figure:
    """CPU milliseconds of one page or file: ours, and the library alone."""

    name: str
    peer: str
    at_most: float  # milliseconds
    times: float | None  # at most this many times the peer
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def row(self) -> str:
        ours, theirs = statistics.median(self.ours), statistics.median(self.theirs)
        verdicts = [f"≤ {self.at_most:g} ms: {'met' if ours <= self.at_most else 'MISSED'}"]
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


def _render(data: bytes, renderer: str, pages: range) -> None:
    from sightline.pixels.renderers.render_worker import render_task

    for page in pages:
        drawn = render_task(data, {"renderer": renderer, "options": {"page": page} if page > 1 else {}})
        assert isinstance(drawn, tuple), drawn


def _draw_by_pdfium(data: bytes, *, writes: bool) -> None:
    """Draw pages by pypdfium2 alone, opening the file for each page as a worker does."""
    import pypdfium2

    for page in PAGES:
        with pypdfium2.PdfDocument(data) as document:
            bitmap = document[page - 1].render(scale=DOTS)
            if writes:
                bitmap.to_pil().save(io.BytesIO(), "PNG")


def _draw_by_resvg(data: bytes) -> None:
    import resvg_py

    resvg_py.svg_to_bytes(svg_string=data.decode(), width=512, height=512, dpi=96.0)


def _measure(rounds: int, manual: bytes, icon: bytes) -> list[Figure]:
    figures = [
        Figure("a page of a PDF at 150 dpi, to a file", "pypdfium2, to PNG", 40, 1.3),
        Figure("the same", "pypdfium2, pixels only", 40, None),
        Figure("an SVG icon", "resvg-py", 60, None),
    ]
    for number in range(rounds):
        peer_environments.print_status(f"round {number + 1} of {rounds}")
        page = _time(lambda: _render(manual, "pdfium", PAGES), len(PAGES))
        written = _time(lambda: _draw_by_pdfium(manual, writes=True), len(PAGES))
        drawn = _time(lambda: _draw_by_pdfium(manual, writes=False), len(PAGES))
        ours = _time(lambda: _render(icon, "resvg", range(1, 2)), 1)
        theirs = _time(lambda: _draw_by_resvg(icon), 1)
        for figure, mine, other in zip(figures, (page, page, ours), (written, drawn, theirs), strict=True):
            figure.ours.append(mine)
            figure.theirs.append(other)
    return figures


def _find_documents() -> list[Path]:
    files = (
        path for folder in peer_environments.unpack_debian_packages(PACKAGES) for path in sorted(folder.rglob("*"))
    )
    return [path for path in files if path.name.removesuffix(".gz").endswith(SUFFIXES) and path.is_file()]


def _is_empty(picture: bytes) -> bool:
    from PIL import Image

    extrema = Image.open(io.BytesIO(picture)).convert("RGB").getextrema()
    return all(low == high for low, high in extrema)


def _draw_all(documents: list[Path]) -> tuple[Counter[str], list[str]]:
    """Draw the first page of each document in the workers; return what became of them, and which were not drawn."""
    from sightline.model.refusal import Refusal
    from sightline.pixels.probe import identify_file
    from sightline.pixels.renderers import choose_renderer
    from sightline.pixels.renderers.render_worker import start_renderers
    from sightline.pixels.renderers.renderer import Renderer

    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with start_renderers() as pool:
        for path in documents:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            renderer = choose_renderer(identify_file(data[:4096]), data, path.name, programs=False)
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
    if MANUAL not in by_name:
        raise SystemExit(f"bench: {MANUAL} is missing: the package gnuplot-doc is needed")
    figures = _measure(rounds, by_name[MANUAL].read_bytes(), icon.read_bytes())
    outcomes, wrong = _draw_all(documents)
    enough = f"≥ {LEAST}: {'met' if len(documents) >= LEAST else 'MISSED'}"
    head = f"Median of {rounds} interleaved rounds, Python {platform.python_version()}, {platform.machine()}, "
    head += f"pypdfium2 {version('pypdfium2')}, resvg-py {version('resvg-py')}."
    lines = [
        "<!-- Generated by bench/run.py. -->",
        head,
        "",
        "| CPU, warm | Sightline, ms | the library alone, ms | ratio | targets |",
        "|---|---|---|---|---|",
        *(figure.row() for figure in figures),
        "",
        f"Documents: {len(documents):,} ({enough}) out of "
        + ", ".join(f"{name} {number}" for name, number in PACKAGES.items())
        + ".",
        "",
        *(f"- {outcome}: {count:,}" for outcome, count in sorted(outcomes.items())),
        *(f"  - {line}" for line in wrong),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    out.parent.mkdir(exist_ok=True)
    facts = {figure.name + ", " + figure.peer: [figure.ours, figure.theirs] for figure in figures}
    out.write_text(json.dumps({"cpu_ms": facts, "documents": outcomes, "wrong": wrong}, indent=1) + "\n")
    out.with_suffix(".md").write_text(text)
    if wrong:
        print(f"bench: {len(wrong)} documents were not drawn", file=sys.stderr)
