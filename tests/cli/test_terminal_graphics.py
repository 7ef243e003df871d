"""`sightline view` on terminals that show pictures, and on others."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.cli.command import environment
from tests.cli.forked import Forked
from tests.pixels.bitmaps import flag, saved
from tests.requirements import requirement

NAMES = {"TERM", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "TMUX"}
XTERM, KITTY, ITERM = ({"TERM": "xterm-256color"}, {"TERM": "xterm-kitty"}, {"TERM_PROGRAM": "iTerm.app"})
SIXEL_ANSWER, OTHER_ANSWER = b"\033[?62;4;22c", b"\033[?1;2c"
QUESTION = b"\033[c"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flag.png").write_bytes(saved(flag(300, 200), "image/png"))
    return tmp_path


def view_on_terminal(folder: Path, env: dict[str, str], *words: str, answer: bytes = b"", width: int = 1000) -> bytes:
    """Return all that a terminal got, which answers the question for its attributes."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, width, 800))
    variables = {name: value for name, value in environment().items() if name not in NAMES} | XTERM | env
    process = Forked(["view", "flag.png", *words], variables, folder, (slave, slave, slave))
    os.close(slave)
    heard, answered = b"", False
    try:
        while piece := os.read(master, 65536):
            heard += piece
            if QUESTION in heard and not answered:
                answered = True
                os.write(master, answer)
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(60) == 0
    return heard.replace(b"\r\n", b"\n")


def open_png(data: bytes) -> Pillow.Image:
    return Pillow.open(BytesIO(data)).convert("RGB")


def decode_sixels(data: bytes) -> Pillow.Image:
    """Draw sixels as a terminal does."""
    raster = re.match(rb'"1;1;(\d+);(\d+)', data)
    assert raster
    picture = Pillow.new("RGB", (int(raster[1]), int(raster[2])))
    palette: dict[int, tuple[int, int, int]] = {}
    x = y = colour = 0
    tokens = re.compile(rb"#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)(.)|([$-])|([?-~])|\n")
    for token in tokens.finditer(data, raster.end()):
        number, red, green, blue, count, repeated, move, single = token.groups()
        if number:
            colour = int(number)
            if red:
                palette[colour] = (round(int(red) * 2.55), round(int(green) * 2.55), round(int(blue) * 2.55))
        elif move:
            x, y = 0, y + 6 * (move == b"-")
        elif character := repeated or single:
            width = int(count or 1)
            for row in range(6):
                if character[0] - 63 >> row & 1:
                    picture.paste(palette[colour], (x, y + row, x + width, y + row + 1))
            x += width
    return picture


@requirement("view.command.terminal")
def test_kitty_gets_a_png_in_chunks_before_the_lines(folder: Path) -> None:
    heard = view_on_terminal(folder, KITTY)
    chunks = re.findall(rb"\033_G([^;]*);([^\033]*)\033\\", heard)
    assert chunks[0][0].startswith(b"a=T,f=100,")
    assert [control[-3:] for control, _ in chunks] == [*[b"m=1"] * (len(chunks) - 1), b"m=0"]
    assert all(len(text) <= 4096 for _, text in chunks)
    assert open_png(b64decode(b"".join(text for _, text in chunks))).tobytes() == flag(300, 200).tobytes()
    assert QUESTION not in heard
    assert heard.split(b"\033\\")[-1].startswith(b"\nflag.png: image/png, 300x200 ")


@requirement("view.command.terminal")
def test_iterm_gets_a_png_that_is_no_wider_than_the_terminal(folder: Path) -> None:
    heard = view_on_terminal(folder, ITERM, width=150)
    found = re.search(rb"\033\]1337;File=inline=1;size=(\d+):([^\a]*)\a", heard)
    assert found
    png = b64decode(found[2])
    assert len(png) == int(found[1])
    assert open_png(png).size == (150, 100)


@requirement("view.command.terminal")
@pytest.mark.parametrize("env", [XTERM, {"TERM": "tmux-256color", "TMUX": "/tmp/tmux", **ITERM}], ids=["xterm", "tmux"])
def test_a_terminal_that_answers_that_it_has_sixels_gets_them(folder: Path, env: dict[str, str]) -> None:
    heard = view_on_terminal(folder, env, answer=SIXEL_ANSWER)
    found = re.search(rb"\033Pq([^\033]*)\033\\", heard)
    assert found
    picture = decode_sixels(found[1])
    assert picture.size == (300, 200)
    differences = zip(picture.tobytes(), flag(300, 200).tobytes(), strict=True)
    assert max(abs(drawn - meant) for drawn, meant in differences) <= 3  # levels are in percent
    assert SIXEL_ANSWER not in heard  # it is not echoed


@requirement("view.command.terminal")
@pytest.mark.parametrize(
    ("env", "words", "answer"),
    [
        (XTERM, (), OTHER_ANSWER),
        (XTERM, (), b""),
        ({"TERM": "dumb"}, (), SIXEL_ANSWER),
        (KITTY, ("--json",), b""),
        (KITTY, ("--out", "copy.png"), b""),
    ],
    ids=["without pictures", "silent", "dumb", "json", "out"],
)
def test_nothing_but_the_lines_is_printed(
    folder: Path, env: dict[str, str], words: tuple[str, ...], answer: bytes
) -> None:
    heard = view_on_terminal(folder, env, *words, answer=answer)
    left = re.sub(rb"sightline: rendering \S+|\r\033\[K|\033\[c", b"", heard)
    assert b"300" in left
    assert b"\033" not in left
