"""The documents tell the truth: what they show was run, what they name is there."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sightline
from sightline.cli.main import VERBS, main
from tests.requirements import requirement

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")])
README = (ROOT / "README.md").read_text("utf-8")


@requirement("demo")
def test_the_transcript_in_the_readme_is_what_the_demo_prints() -> None:
    demo = subprocess.run([sys.executable, ROOT / "demo" / "demo.py"], capture_output=True, text=True, check=True)
    said = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", demo.stdout).rstrip()
    shown = re.search(r"```text\n(.*?)\n```", README, re.DOTALL)
    assert shown
    assert shown[1] == said


@requirement("readme.figures")
def test_the_figures_in_the_documents_are_those_of_the_last_benchmark() -> None:
    measured = (ROOT / "bench" / "results" / "proxy.md").read_text("utf-8").splitlines()
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    figures = [line for line in page.splitlines() if line.startswith(("|", "Median"))]
    assert len(figures) > 10
    assert set(figures) <= set(measured)
    ratios = [
        re.findall(r"([\d.]+×) \(", line)
        for size in ("2 KB", "20 MB")
        for line in measured
        if line.startswith(f"| CPU ms per request, {size}, 1 connection ")
    ]
    sentence = README.partition("\n## Performance\n")[2].partition("\n## ")[0]
    assert [ratio for column in zip(*ratios, strict=True) for ratio in column] == re.findall(r"[\d.]+×", sentence)


@requirement("readme.figures")
def test_the_parts_about_the_proxy_are_written_from_its_last_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    pages = importlib.import_module("pages_of_results")
    measured = (ROOT / "bench" / "results" / "proxy.md").read_text("utf-8")
    assert pages.read_part(pages.BENCHMARKS, "proxy") == pages.select_rows(measured), "run: python bench/run.py proxy"
    assert pages.read_part(pages.README, "proxy") == pages.write_sentence(measured), "run: python bench/run.py proxy"
    assert pages.read_part(pages.PERFORMANCE, "proxy") == pages.write_excess(measured), "run: python bench/run.py proxy"


@requirement("docs.performance_figures")
@pytest.mark.parametrize(("relay", "gone"), [(0.5, "33 %"), (1.5, "100 %"), (1.9, "more than all"), (2.5, "more than")])
def test_the_table_says_what_would_have_to_go_whatever_the_relay_takes(
    relay: float, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    pages = importlib.import_module("pages_of_results")
    report = (
        "| | nginx 1 | relay | relay that compares | Sightline 0 | Sightline ÷ nginx |\n"
        f"| CPU ms per request, 5 MB | 1 | {relay} | 3 | 2 | 2.0× (≤ 1.5×: MISSED) |\n"
        "| CPU ms per request, 2 KB | 1 | 1 | 1 | 1 | 1.0× (≤ 1.5×: met) |\n"
    )
    row = pages.write_excess(report).splitlines()[2:]
    assert len(row) == 1
    assert row[0].startswith("| 5 MB | 1 |")
    assert gone in row[0]


@requirement("docs.performance_figures")
@pytest.mark.parametrize(("benchmark", "module"), [("profile", "cpu_profile"), ("bytecodes", "bytecodes")])
def test_the_tables_of_the_performance_page_are_those_of_the_last_run(
    benchmark: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    pages = importlib.import_module("pages_of_results")
    measured = json.loads((ROOT / "bench" / "results" / f"{benchmark}.json").read_text())
    for name, text in importlib.import_module(module).render_parts(measured).items():
        assert pages.read_part(pages.PERFORMANCE, name) == text.strip(), f"run: python bench/run.py {benchmark}"


@requirement("docs.reading_figures")
def test_the_table_of_the_page_about_the_reader_is_that_of_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    pages = importlib.import_module("pages_of_results")
    measured = json.loads((ROOT / "bench" / "results" / "real.json").read_text())
    written = pages.write_reading(measured["set aside"]["counts"])
    assert pages.read_part(pages.LOCAL, "real") == written, "run: python bench/run.py real"


@requirement("docs.record_figures")
@pytest.mark.parametrize(("benchmark", "page"), [("soak", "reliability.md"), ("scale", "scale.md")])
def test_the_pages_about_the_record_are_written_from_the_last_benchmarks(
    benchmark: str, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    results = ROOT / "bench" / "results"
    measured = json.loads((results / f"{benchmark}.json").read_text())
    assert not measured.get("short"), f"a short run is no result; run: python bench/run.py {benchmark}"
    written = importlib.import_module(benchmark).render_page(measured)
    for copy in (ROOT / "docs" / page, results / f"{benchmark}.md"):
        assert copy.read_text("utf-8") == written, f"run: python bench/run.py {benchmark}"


@requirement("docs.api")
def test_the_api_reference_is_generated_from_the_code() -> None:
    checked = subprocess.run([sys.executable, ROOT / "scripts" / "api-reference", "--check"], check=False)
    assert checked.returncode == 0, "docs/api.md is out of date; run scripts/api-reference"
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    documented = set(re.findall(r"^### (\w+)", page, re.MULTILINE))
    assert {name for name in dir(sightline) if not name.startswith("_")} <= documented


@requirement("docs.links")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_on_a_page_has_a_target(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


@requirement("docs.commands")
def test_every_command_in_the_readme_exists() -> None:
    named = re.findall(r"^sightline (\w+)", README, re.MULTILINE)
    assert named
    assert set(named) <= VERBS.keys()


@requirement("docs.commands", "render.command")
def test_the_rendering_command_in_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = re.findall(r"`sightline (view README.md [^`]*)`", README)
    (tmp_path / "README.md").write_text(README, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 0
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


@requirement("docs.rooms")
def test_every_package_is_on_the_architecture_page() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    packages = {path.stem for path in (ROOT / "src" / "sightline").iterdir() if not path.name.startswith(("_", "py."))}
    assert {package for package in packages if f"{package}/" not in page and f"{package}.py" not in page} == set()
