"""Sources that cannot be viewed, and the reason that each has to be given."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import Store
from tests.pixels.bitmaps import flag, gif_of, photo, png_of, saved

PNG = saved(flag(40, 30), "image/png")
JPEG = saved(photo(200, 150), "image/jpeg")


@dataclass(frozen=True, slots=True)
class Bad:
    reason: str
    reference: Callable[[Path], str]  # makes it in a folder that may be read, and says how it is asked for


def _written(name: str, data: bytes) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(data)
        return name

    return make


def _folder(folder: Path) -> str:
    (folder / "folder.png").mkdir()
    return "folder.png"


def _fifo(folder: Path) -> str:
    os.mkfifo(folder / "fifo.png")
    return "fifo.png"


def _upward(folder: Path) -> str:
    (folder / "inner").mkdir()
    (folder / "image.png").write_bytes(PNG)
    return "inner/../image.png"


def _link_out(folder: Path) -> str:
    outside = folder.parent / "outside.png"
    outside.write_bytes(PNG)
    (folder / "link.png").symlink_to(outside)
    return "link.png"


def _link_to_nothing(folder: Path) -> str:
    (folder / "dangling.png").symlink_to(folder / "nothing.png")
    return "dangling.png"


def _zip(folder: Path) -> str:
    with zipfile.ZipFile(folder / "some.zip", "w") as archive:
        archive.writestr("image.png", PNG)
    return "some.zip"


def _huge(folder: Path) -> str:
    """A PNG of 70 MiB, nearly all of it a hole in the file."""
    with (folder / "huge.png").open("wb") as file:
        file.write(PNG)
        file.truncate(70 * 1024 * 1024)
    return "huge.png"


HTML = b"<!DOCTYPE html><html><body>not a picture</body></html>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
BAD: dict[str, Bad] = {
    "absent": Bad("not_found", lambda folder: "absent.png"),
    "no text": Bad("invalid_input", lambda folder: "   "),
    "a name with a zero": Bad("invalid_input", lambda folder: "a\0b.png"),
    "a data URL of a damaged image": Bad("corrupt", lambda folder: "data:image/png;base64,iVBORw0KGgo="),
    "a name that is too long": Bad("invalid_input", lambda folder: "x" * 5000),
    "empty": Bad("corrupt", _written("empty.png", b"")),
    "a folder": Bad("invalid_input", _folder),
    "a fifo that nobody writes": Bad("not_permitted", _fifo),
    "/dev/zero": Bad("not_permitted", lambda folder: "/dev/zero"),
    "a path that goes up": Bad("not_permitted", _upward),
    "a path elsewhere": Bad("not_permitted", lambda folder: "/etc/hostname"),
    "a link out of the policy": Bad("not_permitted", _link_out),
    "a link to nothing": Bad("not_found", _link_to_nothing),
    "HTML named .jpg": Bad("unsupported_type", _written("page.jpg", HTML)),
    "an SVG named .png": Bad("unsupported_type", _written("drawing.png", SVG)),
    "text named .webp": Bad("unsupported_type", _written("words.webp", b"just words\n")),
    "a PDF named .PNG": Bad("unsupported_type", _written("page.PNG", b"%PDF-1.7\n")),
    "a truncated PNG": Bad("corrupt", _written("half.png", saved(photo(64, 64), "image/png")[:-2000])),
    "a truncated JPEG": Bad("corrupt", _written("half.jpg", JPEG[: len(JPEG) // 2])),
    "a PNG that is only a header": Bad("corrupt", _written("head.png", PNG[:40])),
    "a PNG with zeroed magic": Bad("unsupported_type", _written("zeroed.png", bytes(8) + PNG[8:])),
    "a bomb of 50,000 by 50,000": Bad("too_large", _written("bomb.png", png_of(50_000, 50_000))),
    "an animation of 30,000 frames": Bad("too_large", _written("endless.gif", gif_of(30_000))),
    "a zip": Bad("unsupported_type", _zip),
    "noise": Bad("unsupported_type", _written("noise", bytes(range(128, 256)) * 10)),
    "a PNG of 70 MiB": Bad("too_large", _huge),
    "PostScript": Bad("render_unavailable", _written("page.ps", b"%!PS-Adobe-3.0\n")),
    "text": Bad("render_unavailable", _written("notes.md", b"# Notes\n")),
    "a component": Bad("render_unavailable", _written("App.tsx", b"export const App = () => <p>Hi</p>;\n")),
    "a video": Bad("render_unavailable", _written("clip.mp4", b"\0\0\0\x18ftypisom\0\0\2\0isomiso2" + bytes(64))),
    "sha256: of nothing": Bad("not_found", lambda folder: "sha256:" + "0" * 64),
    "a prefix of nothing": Bad("not_found", lambda folder: "sha256:0123456789ab"),
    "a prefix that is too short": Bad("invalid_input", lambda folder: "sha256:0123456789a"),
    "a prefix that is no number": Bad("invalid_input", lambda folder: "sha256:xyzxyzxyzxyz"),
    "a prefix that fits two images": Bad("invalid_input", lambda folder: "sha256:ABCDEFABCDEF"),
    "a URL": Bad("not_permitted", lambda folder: "https://example.com/image.png"),
    "a URL of a file": Bad("not_permitted", lambda folder: "file:///etc/hostname"),
}


def keep_two_that_begin_alike(record: Store, scope: str) -> None:
    """No two real images do, so these have names that are not theirs."""
    for last in "12":
        record.images.keep(scope, Image("abcdefabcdef" + last * 52, "image/png", Size(40, 30), PNG))


RENDERED = frozenset({"text", "a component", "a video"})  # are rendered where that is granted
OUTSIDE = frozenset({"a path that goes up", "a path elsewhere", "a link out of the policy"})
"""What a model may not read, and a person may."""
