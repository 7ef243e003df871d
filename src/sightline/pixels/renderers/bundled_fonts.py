"""The fonts that come with Sightline, so that text looks the same on every machine and is never missing."""

from __future__ import annotations

from pathlib import Path

FONT_FOLDER = Path(__file__).parent / "fonts"
SANS_FAMILY = "DejaVu Sans"
MONO_FAMILY = "DejaVu Sans Mono"


def list_font_files() -> list[str]:
    """Return the paths of all fonts, in order."""
    return sorted(str(each) for each in FONT_FOLDER.glob("*.ttf"))
