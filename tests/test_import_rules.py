"""The import rules: imports go downward, packages on one line never import each other, pure packages stay pure.

Every import counts, also inside a function, under TYPE_CHECKING, or by `import_module`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.requirements import requirement

PACKAGE = "sightline"
SOURCE = Path(__file__).parent.parent / "src" / PACKAGE

# From the top down. A package imports itself and the lines below its own. `surfaces.*` is a package per surface.
LINES = (
    ("__main__",),
    ("cli",),
    ("agents",),
    ("surfaces.*",),
    ("__init__",),
    ("commands",),
    ("api",),
    ("runtime",),
    ("engine",),
    ("vision",),
    ("reader",),
    ("settings",),
    ("sources", "pixels", "store"),
    ("net",),
    ("dial", "disk", "memory_reads", "server"),
    ("wire", "passes", "profiles", "grounding"),
    ("model",),
)
HEIGHT = {package: -line for line, packages in enumerate(LINES) for package in packages}

PURE = ("wire", "passes", "profiles", "grounding", "model")
PURE_LIBRARIES = {"blake3", "orjson", "pybase64", "typing_extensions"}
IMPURE_STDLIB = set(
    """asyncio builtins concurrent contextvars ctypes datetime fcntl fileinput ftplib getpass glob http
    importlib io locale logging mmap multiprocessing os pathlib pickle pkgutil platform posix queue
    random resource sched secrets select selectors shelve shutil signal site smtplib socket socketserver
    sqlite3 ssl subprocess sys tempfile termios threading time tracemalloc urllib.request uuid webbrowser
    zoneinfo""".split()
)
IMPURE_BUILTINS = {"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}


@dataclass(frozen=True, slots=True)
class Import:
    """One import of a module (never of a name in it), and the line that makes it."""

    module: str
    line: int


def modules_of(source: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name; a package goes by the name of its folder."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))
        found[name] = path
    return found


def imports_of(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[Import]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(names=names, level=level):
                up = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                origin = ".".join([*up, *filter(None, [node.module])])
                for alias in names:
                    inner = f"{origin}.{alias.name}"
                    yield Import(inner if inner in known else origin, node.lineno)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module")):
                match node.args:
                    case [ast.Constant(value=str() as module)]:
                        yield Import(module, node.lineno)
                    case _:
                        yield Import("(unreadable)", node.lineno)


def package_of(module: str) -> str:
    parts = module.split(".")[1:]
    if not parts:
        return "__init__"
    return ".".join(parts[:2]) if parts[0] == "surfaces" else parts[0]


def height_of(package: str) -> int | None:
    return HEIGHT.get("surfaces.*" if package.split(".")[0] == "surfaces" else package)


def is_ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def misplaced(here: str, there: str) -> str | None:
    """Why a package may not import another, or None."""
    if here == there:
        return None
    low, high = height_of(here), height_of(there)
    if low is None or high is None:
        return f"{here if low is None else there} is not in the table of packages"
    if low < high:
        return f"{here} imports {there}, which is above it"
    return f"{here} imports {there}, which is on its own line" if low == high else None


def impure(module: str) -> str | None:
    top = module.split(".")[0]
    if top in sys.stdlib_module_names:
        dotted = {".".join(module.split(".")[:size]) for size in range(1, module.count(".") + 2)}
        return f"imports {module}" if dotted & IMPURE_STDLIB else None
    return None if top in PURE_LIBRARIES else f"imports {module}"


def breaches(source: Path) -> list[str]:
    """Every place where the package at `source` breaks an import rule."""
    known = modules_of(source)
    graph: dict[str, set[str]] = {}
    found = []
    for name, path in known.items():
        package, where = package_of(name), path.relative_to(source).as_posix()
        if height_of(package) is None:
            found.append(f"{where}: {package} is not in the table of packages")
        graph[name] = set()
        for each in imports_of(name, path, known):
            if is_ours(each.module):
                graph[name].add(each.module)
                reason = misplaced(package, package_of(each.module))
            elif each.module == "(unreadable)":
                reason = "import_module of a name that is not written out"
            else:
                reason = impure(each.module) if package in PURE else None
            if reason:
                found.append(f"{where}:{each.line}: {reason}")
        if package in PURE:
            found += [f"{where}:{line}: calls {word}" for word, line in impure_calls(path)]
    return sorted(found) + cycles(graph)


def impure_calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Name(id=word, ctx=ast.Load()) if word in IMPURE_BUILTINS:
                yield word, node.lineno


def cycles(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["cycle: " + " > ".join(reversed(error.args[1]))]
    return []


@requirement("law.3", "rooms.downward")
def test_imports_go_downward_and_the_middle_is_pure() -> None:
    assert breaches(SOURCE) == []


FAKE_TREES: list[tuple[str, dict[str, str], list[str]]] = [
    (
        "a package may import the lines below it, and itself",
        {
            "__init__.py": "from sightline.api import view",
            "__main__.py": "from sightline.cli.main import main",
            "cli/main.py": "def main():\n    from sightline.cli import serve\n    from sightline import view",
            "cli/serve.py": "import sightline.surfaces.proxy.app",
            "surfaces/proxy/app.py": "from sightline.engine import Engine\nfrom sightline.model import scene",
            "api.py": "from sightline.settings import read",
            "engine.py": "import sightline.wire",
            "settings.py": "import os",
            "wire/__init__.py": "from sightline.wire import anthropic\nWIRES = (anthropic,)",
            "wire/anthropic.py": "from sightline.wire import json_document\nimport orjson, re, urllib.parse",
            "wire/json_document.py": "from sightline.model.scene import Scene\nimport blake3, hashlib, binascii",
            "model/scene.py": "from dataclasses import dataclass\nfrom collections.abc import Mapping",
        },
        [],
    ),
    (
        "an upward import",
        {"engine.py": "", "store/sql_store.py": "import sightline.engine"},
        ["store/sql_store.py:1: store imports engine, which is above it"],
    ),
    (
        "an upward import inside a function",
        {"engine.py": "", "passes/show.py": "def fit():\n    from sightline.engine import Engine"},
        ["passes/show.py:2: passes imports engine, which is above it"],
    ),
    (
        "an upward import for types alone",
        {
            "api.py": "",
            "engine.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sightline.api",
        },
        ["engine.py:3: engine imports api, which is above it"],
    ),
    (
        "an upward import by a relative name",
        {"engine.py": "", "wire/chat.py": "from ..engine import Engine\nfrom .. import engine"},
        [
            "wire/chat.py:1: wire imports engine, which is above it",
            "wire/chat.py:2: wire imports engine, which is above it",
        ],
    ),
    (
        "an upward import by import_module",
        {"engine.py": "", "net.py": "import importlib\nimportlib.import_module('sightline.engine')"},
        ["net.py:2: net imports engine, which is above it"],
    ),
    (
        "an import_module that cannot be read",
        {"engine.py": "from importlib import import_module\nimport_module(f'sightline.{NAME}')"},
        ["engine.py:2: import_module of a name that is not written out"],
    ),
    (
        "the whole package from inside",
        {"__init__.py": "", "engine.py": "from sightline import view"},
        ["engine.py:1: engine imports __init__, which is above it"],
    ),
    (
        "a surface that imports its sibling",
        {"surfaces/mcp.py": "", "surfaces/proxy/app.py": "from sightline.surfaces import mcp"},
        ["surfaces/proxy/app.py:1: surfaces.proxy imports surfaces.mcp, which is on its own line"],
    ),
    (
        "the settings, which do not know who reads them",
        {"settings.py": "import sightline.engine", "engine.py": ""},
        ["settings.py:1: settings imports engine, which is above it"],
    ),
    (
        "two packages of the outside world, which never meet",
        {"store/files.py": "", "sources/files.py": "from sightline.store.files import read"},
        ["sources/files.py:1: sources imports store, which is on its own line"],
    ),
    (
        "the reader, which does not know who asks",
        {"vision/seers/local.py": "", "reader/report.py": "from sightline.vision.seers.local import LocalSeer"},
        ["reader/report.py:1: reader imports vision, which is above it"],
    ),
    (
        "the client for chosen upstreams, which does not know the guarded one",
        {"net.py": "", "dial.py": "from sightline.net import fetch"},
        ["dial.py:1: dial imports net, which is above it"],
    ),
    (
        "two pure packages, which never meet",
        {"profiles/presets.py": "", "passes/tell.py": "from sightline.profiles import presets"},
        ["passes/tell.py:1: passes imports profiles, which is on its own line"],
    ),
    (
        "the clock, the disk and the network in pure packages",
        {
            "model/scene.py": "import time",
            "wire/sse.py": "def read():\n    from urllib.request import urlopen",
            "passes/__init__.py": "from pathlib import PurePath",
            "profiles/presets.py": "import importlib.resources",
        },
        [
            "model/scene.py:1: imports time",
            "passes/__init__.py:1: imports pathlib",
            "profiles/presets.py:1: imports importlib.resources",
            "wire/sse.py:2: imports urllib.request",
        ],
    ),
    (
        "pixels, and any library that is not known to be pure, in a pure package",
        {"passes/show.py": "from PIL import Image\nimport numpy"},
        ["passes/show.py:1: imports PIL", "passes/show.py:2: imports numpy"],
    ),
    (
        "a builtin that reads or writes in a pure package",
        {"wire/chat.py": "text = open('x').read()\nshow = print"},
        ["wire/chat.py:1: calls open", "wire/chat.py:2: calls print"],
    ),
    (
        "a cycle inside one package",
        {
            "store/a.py": "import sightline.store.b",
            "store/b.py": "def late():\n    from sightline.store import c",
            "store/c.py": "from sightline.store.a import x",
        },
        ["cycle: sightline.store.a > sightline.store.b > sightline.store.c > sightline.store.a"],
    ),
    (
        "a module that no line of the table names",
        {"helpers.py": ""},
        ["helpers.py: helpers is not in the table of packages"],
    ),
]


@pytest.mark.parametrize(
    ("tree", "expected"), [pytest.param(tree, expected, id=name) for name, tree, expected in FAKE_TREES]
)
def test_a_broken_rule_is_found(tree: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    for name, text in tree.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert breaches(tmp_path) == expected


def test_the_rules_find_the_package() -> None:
    assert {"sightline", "sightline.model"} <= modules_of(SOURCE).keys()
