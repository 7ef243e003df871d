"""SVG drawings for tests, harmless and hostile."""

from __future__ import annotations

import gzip

XMLNS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def drawing(inner: str, size: str = 'width="40" height="30"', before: str = "") -> bytes:
    return f"{before}<svg {XMLNS} {size}>{inner}</svg>".encode()


def square(colour: str) -> str:
    return f'<rect width="40" height="30" fill="{colour}"/>'


def entity_bomb() -> bytes:
    entities = ['<!ENTITY a0 "lollollollollol">']
    entities += [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)]
    return drawing("<text>&a11;</text>", before=f"<!DOCTYPE svg [{''.join(entities)}]>")


def use_bomb(levels: int = 8) -> bytes:
    """Return a drawing of 10 to the power of `levels` uses of a square."""
    uses = '<g id="u0"><rect width="1" height="1"/></g>'
    for level in range(1, levels + 1):
        uses += f'<g id="u{level}">' + f'<use href="#u{level - 1}"/>' * 10 + "</g>"
    return drawing(f'<defs>{uses}</defs><use href="#u{levels}"/>')


def nested_groups(depth: int = 60_000) -> bytes:
    return drawing("<g>" * depth + square("red") + "</g>" * depth)


def slow_filter() -> bytes:
    effect = '<filter id="f" x="0" y="0" width="1" height="1"><feMorphology operator="dilate" radius="900"/></filter>'
    return drawing(f'{effect}<rect width="2000" height="2000" filter="url(#f)"/>', 'width="2000" height="2000"')


def large_masks(count: int = 8) -> bytes:
    """Return an icon of 16 pixels with filtered masks that are much larger, as Inkscape and Cairo write them."""
    inner = '<filter id="f" x="0" y="0" width="1" height="1"><feColorMatrix values="%s"/></filter>'
    inner %= "0 0 0 0 1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 0"
    for at in range(count):
        inner += f'<mask id="m{at}"><g filter="url(#f)"><rect width="1024" height="800"/></g></mask>'
        inner += f'<g mask="url(#m{at})"><rect x="{at}" width="1" height="16" fill="red"/></g>'
    return drawing(inner, 'viewBox="0 0 16 16" width="16" height="16"')


def compressed_bomb() -> bytes:
    """Return a compressed drawing of 200 MB of spaces."""
    return gzip.compress(drawing(" " * 1000) + b" " * 200_000_000, 1)
