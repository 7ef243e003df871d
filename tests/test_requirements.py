"""The manifest and the tests agree: what holds is shown by a test, and a test shows only what is claimed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from tests.requirements import OPEN, REQUIREMENTS, Requirement, requirement

TESTS = Path(__file__).parent


def marks(tree: ast.Module) -> Iterator[ast.Call]:
    """Each `requirement(...)` that marks a test function, a test class or (as `pytestmark`) a module."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
                candidates: Sequence[ast.expr] = node.decorator_list
            case ast.ClassDef() if node.name.startswith("Test"):
                candidates = node.decorator_list
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                candidates = value.elts if isinstance(value, ast.List) else [value]
            case _:
                continue
        for candidate in candidates:
            match candidate:
                case ast.Call(func=ast.Name(id="requirement")):
                    yield candidate


def shown_by(folder: Path) -> dict[str, list[str]]:
    """The ids that the tests of a folder carry, each with the places where they stand."""
    shown: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for mark in marks(ast.parse(path.read_text("utf-8"))):
            where = f"{path.relative_to(folder)}:{mark.lineno}"
            ids = [arg.value for arg in mark.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            assert 0 < len(ids) == len(mark.args), f"{where}: requirement ids are written out as strings"
            for name in ids:
                shown.setdefault(name, []).append(where)
    return shown


def disagreements(
    manifest: Sequence[Requirement], still_open: AbstractSet[str], shown: dict[str, list[str]]
) -> list[str]:
    counts = Counter(each.id for each in manifest)
    return sorted(
        [f"{name}: listed {count} times" for name, count in counts.items() if count > 1]
        + [f"{each.id}: lacks a sentence or a source" for each in manifest if not (each.sentence and each.source)]
        + [f"{name}: open, but not in the manifest" for name in still_open - counts.keys()]
        + [f"{name}: no test shows it" for name in counts.keys() - still_open - shown.keys()]
        + [f"{name}: shown by {shown[name][0]}, but open" for name in shown.keys() & still_open]
        + [f"{name}: shown by {shown[name][0]}, but unknown" for name in shown.keys() - counts.keys()]
    )


@requirement("manifest")
def test_requirements_and_tests_agree() -> None:
    assert disagreements(REQUIREMENTS, OPEN, shown_by(TESTS)) == []


ONE = Requirement("a", "A holds.", "law 1")


@pytest.mark.parametrize(
    ("manifest", "still_open", "test", "expected"),
    [
        pytest.param([ONE], set(), '@requirement("a")\ndef test_x(): ...', [], id="in agreement"),
        pytest.param([ONE], {"a"}, "def test_x(): ...", [], id="open and not shown"),
        pytest.param([ONE], set(), 'pytestmark = [requirement("a")]', [], id="a whole module shows it"),
        pytest.param([ONE], set(), "def test_x(): ...", ["a: no test shows it"], id="not shown"),
        pytest.param([ONE], set(), '@requirement("a")\ndef x(): ...', ["a: no test shows it"], id="not on a test"),
        pytest.param(
            [ONE],
            {"a"},
            '@requirement("a")\ndef test_x(): ...',
            ["a: shown by test_x.py:1, but open"],
            id="open yet shown",
        ),
        pytest.param(
            [],
            set(),
            '@requirement("b")\nasync def test_x(): ...',
            ["b: shown by test_x.py:1, but unknown"],
            id="unknown",
        ),
        pytest.param([], {"b"}, "", ["b: open, but not in the manifest"], id="open but unknown"),
        pytest.param([ONE, ONE], {"a"}, "", ["a: listed 2 times"], id="twice"),
        pytest.param([Requirement("a", "", "")], {"a"}, "", ["a: lacks a sentence or a source"], id="says nothing"),
    ],
)
def test_a_mismatch_is_found(
    manifest: list[Requirement], still_open: set[str], test: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "test_x.py").write_text(test, "utf-8")
    assert disagreements(manifest, still_open, shown_by(tmp_path)) == expected


def test_an_id_that_is_not_a_literal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("@requirement(NAME)\ndef test_x(): ...", "utf-8")
    with pytest.raises(AssertionError, match=r"test_x\.py:1: requirement ids are written out"):
        shown_by(tmp_path)
