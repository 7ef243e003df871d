"""Writes the page of upstreams from the presets: `python -m tests.profiles.document`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.model.profile import ImageLimits
from sightline.profiles import ModelRule, Preset
from sightline.profiles.presets import CHECKED_ON, PRESETS

PAGE = Path(__file__).parents[2] / "docs" / "upstreams.md"

OPENING = f"""\
# Upstreams

The providers and local servers that Sightline knows by name, according to their documentation and public tables on
{CHECKED_ON}. Your settings take precedence over these tables, and so does what Sightline learns when an upstream
rejects an image, or what the upstream itself publishes about its models (OpenRouter, Mistral, Kimi, Ollama, LM Studio,
llama.cpp). A model that matches no pattern is assumed to see. `sightline models` lists what is known and why.

`python -m tests.profiles.document` generates this page; a test checks that it is up to date.
"""


def page() -> str:
    return "\n".join([OPENING, *_addresses(), "", *_models(), "", *_limits(), ""])


def _table(*head: str) -> list[str]:
    return [_line(*head), _line(*("---" for _ in head))]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words) or "–"


def _addresses() -> Iterator[str]:
    yield "## Addresses and keys\n"
    yield from _table("name", "wire", "address", "key")
    for preset in PRESETS.values():
        for wire, base in preset.bases.items():
            yield _line(_code(preset.name), wire, base, _code(*preset.key_variables))


def _models() -> Iterator[str]:
    yield "## Which models see\n"
    yield "The first matching pattern decides. The sibling describes images for text-only models of its provider.\n"
    yield from _table("name", "model", "sees", "wires", "sibling")
    for preset in PRESETS.values():
        for row in preset.rules or (ModelRule("*", vision=None),):
            yield _line(
                _code(preset.name),
                _code(row.pattern),
                {True: "yes", False: "no", None: "not known"}[row.vision],
                ", ".join(row.wires) or "all",
                _sibling(preset, row),
            )


def _sibling(preset: Preset, row: ModelRule) -> str:
    name = row.sibling or preset.sibling
    return _code(name) if name and row.vision is not True else "–"


def _limits() -> Iterator[str]:
    yield "## Limits\n"
    yield "The bytes of an image are the length of its base64. A dash means that no limit is known.\n"
    yield from _table("name", "formats", "bytes", "edge, px", "edge with many images", "images", "request bytes")
    for preset in PRESETS.values():
        yield _limits_line(preset.name, preset.limits)
        for row in preset.rules:
            if row.limits:
                yield _limits_line(f"{preset.name}/{row.pattern}", row.limits)


def _limits_line(name: str, limits: ImageLimits) -> str:
    crowd = f"{limits.crowd_edge} over {limits.crowd} images" if limits.crowd else "–"
    formats = ", ".join(mime.removeprefix("image/") for mime in limits.formats)
    numbers = (limits.encoded_bytes, limits.edge, limits.count, limits.request_bytes)
    weight, edge, count, request = (f"{number:,}" if number else "–" for number in numbers)
    return _line(_code(name), formats, weight, edge, crowd, count, request)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
