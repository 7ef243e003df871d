"""The command as `pip install sightline` brings it: without the extras."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cli.command import ALONE, Ended, sightline
from tests.look.bad import PNG
from tests.requirements import requirement

MISSING = "local is not installed (pip install 'sightline[local]')"
# Where what the extra `local` brings is not there.
BASE = """
import importlib.util as util
import sys
found, absent = util.find_spec, ("numpy", "onnxruntime")
util.find_spec = lambda name, *more: None if name in absent else found(name, *more)
from sightline.cli.main import main
sys.exit(main())
"""


def base(folder: Path, *words: str) -> Ended:
    return sightline(*words, env=ALONE, folder=folder, command=(sys.executable, "-c", BASE))


@requirement("seer.local.absent")
def test_without_the_local_reader_it_is_said_once_and_in_short(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    (tmp_path / "v.mp4").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom")
    assert base(tmp_path, "describe", "shot.png", "--model", "local").err == f"sightline: {MISSING}\n"
    named = base(tmp_path, "ask", "shot.png", "What is it?", "--model", "local")
    assert named.json["error"] == f"VISION_NOT_SUPPORTED: {MISSING}"
    for model in ([], ["--model", "local"]):
        film = base(tmp_path, "video", "v.mp4", *model).json["error"]
        assert film.startswith(f"VIDEO_NOT_SUPPORTED: {MISSING}, and takes no videos: name a model")
    report = base(tmp_path, "doctor").out
    assert f"\n  {MISSING}\n" in report
    assert report.count("sightline[local]") == 1
    assert "no model that could look" not in report
    assert "\n  nobody: name one with" in report


@requirement("seer.local.absent")
def test_where_nobody_is_named_it_is_one_of_the_ways_out(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    for said in (
        base(tmp_path, "describe", "shot.png").err,
        base(tmp_path, "ask", "shot.png", "What is it?").json["error"],
    ):
        assert "no model that could look was found, and local is not installed" in said
        assert "ollama pull" in said
        assert said.count("sightline[local]") == 1
