"""docs/library.md is run: each block of code, in order, prints the block of text that follows it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from tests.requirements import requirement

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def without_digits(text: str) -> str:
    """Sizes and digests of files follow the version of their encoder."""
    return re.sub(r"'bytes': \d+|\d,\d+ bytes", "'bytes': N", re.sub(r"sha256:[0-9a-f…]+", "sha256:…", text))


@requirement("library.page", "library.view")
def test_every_code_block_prints_the_documented_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shot = Pillow.new("RGB", (640, 400), "white")
    shot.paste((40, 90, 200), (40, 40, 600, 120))
    shot.save("shot.png")
    Path("notes.md").write_text("one\n")
    assert len(BLOCKS) == PAGE.count("```python")
    names: dict[str, Any] = {}
    for code, expected in BLOCKS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "library.md", "exec"), names)
        assert without_digits(printed.getvalue()) == without_digits(expected)
