"""How exact the coordinate map is: marks are drawn on a page, found in the fitted image, and mapped back."""

import io
import math
import random
from collections.abc import Iterator

from pages import Page
from PIL import Image, ImageDraw

from sightline.model.geometry import PixelMap, Rect
from sightline.model.image import ImageTarget
from sightline.model.refusal import Refusal
from sightline.pixels.encode import is_dark
from sightline.pixels.fit_image import fit_image
from sightline.pixels.fold import DARK_GAMMA

SIDE = 15  # pixels of a mark
ACROSS, DOWN = 6, 8
MAGENTA = (255, 0, 255)
# A dark page is scaled by its light: how much of a pixel a mark covers is its light there and not its shade.
_LIGHT = [round(255 * (shade / 255) ** DARK_GAMMA) for shade in range(256)]
SPREAD = 3  # pixels around a mark into which a resize may carry its colour


def measure_error(page: Page, target: ImageTarget) -> float:
    """Return the largest distance, in pixels of the page, between a mark and where the map says it was."""
    image, chance = page.image.copy(), random.Random(page.name)
    wide, high = image.width // ACROSS, image.height // DOWN
    places = [
        (column * wide + chance.randrange(wide - 2 * SIDE), row * high + chance.randrange(high - 2 * SIDE))
        for column in range(ACROSS)
        for row in range(DOWN)
    ]
    for x, y in places:
        ImageDraw.Draw(image).rectangle((x, y, x + SIDE - 1, y + SIDE - 1), MAGENTA)
    file = io.BytesIO()
    image.save(file, "PNG")
    made = fit_image(file.getvalue(), target)
    assert not isinstance(made, Refusal), made
    found, night = [], is_dark(image)
    for part in made.parts:
        with Image.open(io.BytesIO(part.image.data)) as opened:
            result = opened.convert("RGB").point(_LIGHT * 3) if night else opened.convert("RGB")
            found += _list_errors(result, part.map, places)
    assert len(found) > len(places) * 3 // 4, f"{page.name}: only {len(found)} marks of {len(places)} were found again"
    return max(found)


def _list_errors(result: Image.Image, where: PixelMap, places: list[tuple[int, int]]) -> Iterator[float]:
    for x, y in places:
        for piece in where.pieces:
            if piece.source.contains(x - 1, y - 1) and piece.source.contains(x + SIDE + 1, y + SIDE + 1):
                there = Rect(x, y, SIDE, SIDE).transform(piece.source, piece.result)
                centre = where.to_source(*_find_centre(result, there))
                assert centre is not None, "a mark lies where the map knows nothing"
                yield math.dist(centre, (x + SIDE / 2, y + SIDE / 2))


def _find_centre(result: Image.Image, there: Rect) -> tuple[float, float]:
    """Return the centre of what is magenta in and around a rectangle."""
    weights = []
    right, bottom = math.ceil(there.x + there.width) + SPREAD, math.ceil(there.y + there.height) + SPREAD
    for x in range(max(0, int(there.x) - SPREAD), min(result.width, right)):
        for y in range(max(0, int(there.y) - SPREAD), min(result.height, bottom)):
            red, green, blue = result.getpixel((x, y))
            weights.append((max(0, min(red, blue) - green), x + 0.5, y + 0.5))
    total = sum(weight for weight, _, _ in weights)
    assert total, "a mark is not to be seen where it should be"
    return sum(w * x for w, x, _ in weights) / total, sum(w * y for w, _, y in weights) / total
