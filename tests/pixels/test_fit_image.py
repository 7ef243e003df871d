"""Fitting: within every limit, upright, legible, deterministic; hostile files cost only a refusal."""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from sightline.model.geometry import PixelMap, Rect, Size
from sightline.model.image import (
    MAX_EDGE,
    MAX_FILE_BYTES,
    CropSizing,
    FitResult,
    FlatSizing,
    ImageInfo,
    ImageTarget,
    PaddedSizing,
    PatchSizing,
    Sizing,
    TileSizing,
    compute_base64_length,
    compute_seen_size,
    count_image_tokens,
)
from sightline.model.image import Image as Made
from sightline.model.refusal import Refusal
from sightline.pixels import pack_target
from sightline.pixels import unpack_fit_result as read_back
from sightline.pixels.decode import check_image, decode
from sightline.pixels.fit_image import fit_image, fit_task
from sightline.pixels.probe import probe_within_limits
from tests.pixels import large
from tests.pixels.bitmaps import BLUE, FORMATS, RED, exif, flag, photo, png_of, saved
from tests.pixels.paper import legible, page
from tests.requirements import requirement
from tests.scripted.pictures import html_page, some_colours, too_heavy, too_wide, truncated_jpeg, undecodable_png

COMMON = ("image/png", "image/jpeg", "image/webp", "image/gif")
ANTHROPIC = ImageTarget(COMMON, encoded_bytes=10 * 1024 * 1024, edge=8000)


def refit(data: bytes, target: ImageTarget) -> Made | Refusal:
    """Fit to one image without trimming or moving anything."""
    made = fit_image(data, replace(target, keeps_geometry=True))
    return made if isinstance(made, Refusal) else made.parts[0].image


def fitted(data: bytes, target: ImageTarget) -> Made:
    """Fit an image and check that the target accepts it and that its description is true."""
    image = refit(data, target)
    assert isinstance(image, Made), image
    whole(image, target)
    return image


def whole(image: Made, target: ImageTarget) -> None:
    picture = probe_within_limits(image.data)
    assert picture == ImageInfo(image.mime, image.size, len(image.data))
    assert isinstance(picture, ImageInfo)
    bitmap = decode(image.data, picture)
    assert not isinstance(bitmap, Refusal)
    assert Size(bitmap.width, bitmap.height) == image.size
    assert target.accepts(picture, compute_base64_length(len(image.data)))
    assert image.sha256 == hashlib.sha256(image.data).hexdigest()


def legibly(data: bytes, target: ImageTarget) -> FitResult:
    """Fit an image and check that each part is within the limits."""
    made = fit_image(data, target)
    assert isinstance(made, FitResult), made
    assert 1 <= len(made.parts) <= target.images
    for part in made.parts:
        whole(part.image, target.split_between(len(made.parts)))
        assert part.map.result == part.image.size
    return made


def opened(image: Made) -> Image.Image:
    return Image.open(io.BytesIO(image.data)).convert("RGBA")


def near(pixel: object, colour: tuple[int, ...], by: int = 12) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(a - b) <= by for a, b in zip(pixel, colour, strict=False))


def test_one_pixel_too_wide_becomes_exactly_as_wide_as_allowed() -> None:
    image = fitted(too_wide(some_colours(0)), ANTHROPIC)
    assert (image.mime, image.size) == ("image/png", Size(8000, 600))


def test_a_heavy_photo_becomes_a_jpeg_of_the_same_size() -> None:
    heavy = too_heavy(some_colours(0))
    before = check_image(heavy)
    assert isinstance(before, ImageInfo)
    assert compute_base64_length(before.bytes) > 10 * 1024 * 1024
    image = fitted(heavy, ANTHROPIC)
    assert (image.mime, image.size) == ("image/jpeg", before.size)


@requirement("input.bitmaps")
@pytest.mark.parametrize("mime", FORMATS)
@pytest.mark.parametrize("to", ["image/png", "image/jpeg", "image/webp"])
def test_every_format_becomes_every_format(mime: str, to: str) -> None:
    image = fitted(saved(flag(60, 40), mime), ImageTarget((to,)))
    assert (image.mime, image.size) == (to, Size(60, 40))
    assert near(opened(image).getpixel((10, 10)), RED, 30)
    assert near(opened(image).getpixel((50, 30)), BLUE, 30)


@requirement("fit.upright")
@pytest.mark.parametrize("mime", ["image/jpeg", "image/png", "image/webp", "image/tiff", "image/avif"])
@pytest.mark.parametrize("turn", range(2, 9))
def test_an_image_is_turned_upright(mime: str, turn: int) -> None:
    image = fitted(saved(flag(64, 32), mime, exif=exif(turn)), ImageTarget(COMMON))
    size = Size(32, 64) if turn >= 5 else Size(64, 32)
    x = size.width // 4 if turn in (4, 5, 8) else 3 * size.width // 4
    y = size.height // 4 if turn in (2, 5, 6) else 3 * size.height // 4
    assert image.size == size
    assert near(opened(image).getpixel((x, y)), RED, 30)


def test_an_image_that_fits_already_is_encoded_again() -> None:
    data = saved(photo(50, 40), "image/jpeg", comment=b"what a strict reader may choke on")
    image = fitted(data, ANTHROPIC)
    assert b"choke" not in image.data
    assert (image.mime, image.size) == ("image/jpeg", Size(50, 40))


@requirement("fit.sharp")
def test_a_screenshot_stays_sharp_and_a_photo_becomes_a_jpeg() -> None:
    page = Image.new("RGB", (900, 600), "white")
    for line in range(30):
        ImageDraw.Draw(page).text((10, 20 * line), f"line {line} of a page that must stay legible", "black")
    target = ImageTarget(COMMON, edge=800)
    assert fitted(saved(page, "image/png"), target).mime == "image/png"
    assert fitted(saved(photo(900, 600), "image/png"), target).mime == "image/jpeg"
    assert fitted(saved(photo(900, 600).convert("L"), "image/png"), target).mime == "image/jpeg"


def test_a_jpeg_keeps_its_colours_at_full_resolution() -> None:
    image = fitted(saved(photo(200, 100), "image/png"), ImageTarget(("image/jpeg",)))
    with Image.open(io.BytesIO(image.data)) as opened:
        assert getattr(opened, "layer")[0][1:3] == (1, 1)  # noqa: B009 - not in its types


@requirement("fit.transparency")
def test_transparency_stays_or_becomes_white() -> None:
    clear = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    clear.paste(RED, (0, 0, 30, 40))
    data = saved(clear, "image/tiff")
    kept, flat = fitted(data, ImageTarget(COMMON)), fitted(data, ImageTarget(("image/jpeg",)))
    assert kept.mime == "image/png"
    assert opened(kept).getpixel((50, 20)) == (0, 0, 0, 0)
    assert near(opened(flat).getpixel((50, 20)), (255, 255, 255))


def test_an_opaque_alpha_channel_is_dropped() -> None:
    image = fitted(saved(photo(300, 200).convert("RGBA"), "image/png"), ImageTarget(COMMON, edge=200))
    assert image.mime == "image/jpeg"


@pytest.mark.parametrize("mode", ["L", "RGB", "1"])
def test_a_transparent_colour_of_a_palette_is_transparent(mode: str) -> None:
    image = Image.new(mode, (20, 20), "black")
    image.paste("white", (0, 0, 10, 20))
    data = saved(image, "image/png", transparency=(0, 0, 0) if mode == "RGB" else 0)
    found = opened(fitted(data, ImageTarget(("image/png",))))
    assert [found.getpixel((x, 5)) for x in (5, 15)] == [(255, 255, 255, 255), (0, 0, 0, 0)]


def test_a_palette_with_transparency_is_read_as_it_looks() -> None:
    palette = Image.new("P", (40, 40), 1)
    palette.putpalette([255, 0, 0, 0, 0, 255])
    data = saved(palette, "image/png", transparency=bytes([255, 0]))
    assert opened(fitted(data, ImageTarget(("image/png",)))).getpixel((5, 5)) == (0, 0, 255, 0)


@pytest.mark.parametrize(
    ("mode", "shades"),
    [
        ("I;16", (65535, 32767, 0)),
        ("I", (71000, 35000, -1000)),
        ("F", (1.0, 0.5, 0.0)),
        ("L", (255, 127, 0)),
        ("1", (255, 255, 0)),
    ],
)
def test_deep_greys_keep_their_shades(mode: str, shades: tuple[float, ...]) -> None:
    deep = Image.new(mode, (3, 1))
    for x, shade in enumerate(shades):
        deep.putpixel((x, 0), shade)
    image = opened(fitted(saved(deep, "image/tiff"), ImageTarget(("image/png",))))
    middle = 255 if mode == "1" else 127
    assert all(near(image.getpixel((x, 0)), (grey, grey, grey, 255), 1) for x, grey in enumerate((255, middle, 0)))


def test_an_even_grey_image_of_wide_range_is_fitted() -> None:
    fitted(saved(Image.new("F", (9, 9), 7.5), "image/tiff"), ImageTarget(("image/png",)))


@requirement("fit.animation")
def test_an_animation_becomes_its_first_frame() -> None:
    frames = [Image.new("RGB", (30, 20), colour) for colour in (RED, BLUE)]
    data = saved(frames[0], "image/gif", save_all=True, append_images=frames[1:])
    image = fitted(data, ImageTarget(("image/png",)))
    assert near(opened(image).getpixel((5, 5)), RED)


@requirement("fit.sharp")
def test_a_drawing_that_is_too_heavy_loses_colours_before_it_loses_pixels() -> None:
    ink = random.Random(2)
    drawing = Image.new("RGB", (1200, 800), "white")
    for top in range(0, 800, 14):
        words = "".join(chr(ink.randrange(33, 126)) for _ in range(200))
        ImageDraw.Draw(drawing).text((0, top), words, ink.choice(["black", "navy", "maroon"]))
    data = saved(drawing, "image/png")
    target = ImageTarget(("image/png", "image/jpeg"), edge=900)
    first = fitted(data, target)
    lighter = fitted(data, replace(target, encoded_bytes=compute_base64_length(len(first.data)) - 4))
    assert (lighter.mime, lighter.size) == (first.mime, first.size) == ("image/png", Size(900, 600))
    lightest = fitted(data, replace(target, encoded_bytes=compute_base64_length(len(first.data)) // 4))
    assert lightest.mime == "image/png"
    assert lightest.size.edge < 900


@requirement("fit.base64")
@pytest.mark.parametrize("limit", [200_000, 50_000, 5_000, 900])
def test_an_image_is_made_smaller_until_it_is_light_enough(limit: int) -> None:
    image = fitted(saved(photo(800, 500), "image/png"), ImageTarget(COMMON, encoded_bytes=limit))
    assert image.size.edge > 8
    assert compute_base64_length(len(image.data)) > limit / 8


def test_a_limit_that_no_image_meets_is_a_refusal() -> None:
    found = refit(saved(flag(20, 20), "image/png"), ImageTarget(COMMON, encoded_bytes=20))
    assert isinstance(found, Refusal)
    assert found.code == "too_large"


def test_unknown_formats_of_a_target_are_refused() -> None:
    found = refit(saved(flag(20, 20), "image/png"), ImageTarget(("image/heic",)))
    assert isinstance(found, Refusal)
    assert found.code == "unsupported_type"


@requirement("fit.deterministic")
def test_the_same_bytes_and_target_give_the_same_image_in_any_thread() -> None:
    data, target = saved(photo(600, 400), "image/png"), ImageTarget(COMMON, encoded_bytes=60_000, edge=500)
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: refit(data, target), range(8)))
    assert found == {refit(data, target)}


@requirement("bound.hostile", "bound.pixels", "bound.refit")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (png_of(50_000, 50_000), "too_large"),
        (png_of(65_536, 1), "too_large"),
        (png_of(20_001, 15_000), "too_large"),
        (png_of(12_000, 9_999), "corrupt"),
        (undecodable_png(), "corrupt"),
        (truncated_jpeg(), "corrupt"),
        (html_page(), "unsupported_type"),
        (bytes(8) + saved(flag(9, 9), "image/png")[8:], "unsupported_type"),
        (b"", "corrupt"),
        (bytes(MAX_FILE_BYTES + 1), "too_large"),
    ],
    ids=["bomb", "too wide", "too many pixels", "few rows", "garbage", "cut", "html", "magic", "empty", "heavy"],
)
def test_a_hostile_file_costs_a_refusal(data: bytes, code: str) -> None:
    for found in (check_image(data), fit_image(data, ImageTarget(("image/webp",)))):
        assert isinstance(found, Refusal)
        assert found.code == code


@requirement("type.truncated")
@pytest.mark.parametrize("mime", FORMATS)
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_corrupt(mime: str, part: float) -> None:
    data = saved(photo(120, 90), mime)
    found = check_image(data[: int(len(data) * part)])
    assert isinstance(found, Refusal)
    assert found.code == "corrupt"


@pytest.mark.parametrize("mime", FORMATS)
def test_a_complete_file_is_fitted(mime: str) -> None:
    data = saved(photo(120, 90), mime)
    assert check_image(data) == ImageInfo(mime, Size(120, 90), len(data))


@requirement("bound.refit")
def test_an_image_of_the_largest_size_is_refitted() -> None:
    strip = saved(Image.new("RGB", (MAX_EDGE, 20), RED), "image/png")
    assert fitted(strip, ImageTarget(("image/webp",))).size.width == 16_383
    assert fitted(strip, ImageTarget(("image/png",), edge=MAX_EDGE - 1)).size.width == MAX_EDGE - 1


@requirement("bound.refit", "render.fold", "fit.legible")
def test_a_page_too_tall_for_memory_is_folded_and_stays_legible() -> None:
    """Blank areas are trimmed although the page was shrunk while it was decoded."""
    tall = Image.new("L", (1300, 60_000), 255)
    for top in (0, 58_000):
        tall.paste(page(1300, 2000).convert("L"), (0, top))
    found = fit_image(saved(tall, "image/png"), ImageTarget(COMMON, edge=2000))
    assert not isinstance(found, Refusal)
    assert "folded into" in found.note
    assert all(legible(found, 2000))
    (part,) = found.parts
    assert part.map.source == Size(1300, 60_000)


@requirement("bound.refit", "fit.map")
@pytest.mark.parametrize("turn", [1, 6])
def test_a_photo_too_large_for_memory_is_refitted_upright(turn: int) -> None:
    data = large.jpeg(20_000, 15_000, turn=turn)
    found = fit_image(data, ImageTarget(COMMON, edge=1500, keeps_geometry=True))
    assert not isinstance(found, Refusal)
    (part,) = found.parts
    assert part.image.size == (Size(1500, 1125) if turn == 1 else Size(1125, 1500))
    assert part.map.source == (Size(20_000, 15_000) if turn == 1 else Size(15_000, 20_000))


def test_odd_metadata_does_not_prevent_fitting() -> None:
    data = saved(flag(64, 32), "image/jpeg", exif=exif(6)[:-8])
    assert isinstance(check_image(data), ImageInfo)


SOURCES = [
    *(saved(photo(90, 50), mime) for mime in FORMATS),
    *(saved(flag(50, 90), mime) for mime in FORMATS),
    saved(Image.new("RGBA", (40, 40), (9, 9, 9, 9)), "image/png"),
    saved(flag(64, 32), "image/jpeg", exif=exif(6)),
    saved(Image.new("1", (1, 300)), "image/png"),
]


@requirement("fit.any_target")
@given(
    st.sampled_from(SOURCES),
    st.lists(st.sampled_from(["image/png", "image/jpeg", "image/webp"]), min_size=1, unique=True),
    st.none() | st.integers(1, 20_000),
    st.none() | st.integers(1, 120),
)
@examples(max_examples=150)
def test_any_target_is_met_or_refused(data: bytes, formats: list[str], encoded: int | None, edge: int | None) -> None:
    target = ImageTarget(tuple(formats), encoded, edge)
    found = refit(data, target)
    if isinstance(found, Refusal):
        assert found.code == "too_large"
        assert encoded is not None
        assert encoded < 1500
    else:
        assert fitted(data, target) == found


@requirement("bound.hostile")
@given(st.sampled_from(SOURCES), st.data())
@examples(max_examples=150)
def test_a_file_with_wrong_bytes_is_refused_or_refitted(data: bytes, draw: st.DataObject) -> None:
    broken = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        broken[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    found = refit(bytes(broken), ImageTarget(("image/png",), edge=30))
    assert isinstance(found, (Made, Refusal))


RULES: list[Sizing] = [PaddedSizing(), PaddedSizing(2576, 4784), PatchSizing(), PatchSizing(2500), TileSizing()]
TALL = saved(page(1280, 6000), "image/png")


@requirement("fit.legible", "render.fold")
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_row_of_a_tall_page_can_be_read_in_one_image(rule: Sizing) -> None:
    made = legibly(TALL, ImageTarget(COMMON, sizing=rule))
    assert sum(legible(made, 6000)) >= 0.97 * len(legible(made, 6000))
    assert re.match(r"folded \D*\d+ columns", made.note)


def test_a_tall_page_that_is_only_shrunk_is_illegible() -> None:
    made = legibly(TALL, ImageTarget(COMMON, sizing=PaddedSizing(), keeps_geometry=True))
    assert sum(legible(made, 6000)) < 100
    assert made.note == ""


@requirement("fit.legible", "render.fold")
def test_a_very_tall_page_becomes_tiles_that_say_which_rows_they_show() -> None:
    data = saved(page(1200, 12000), "image/png")
    made = legibly(data, ImageTarget(COMMON, sizing=PaddedSizing(), images=4))
    assert len(made.parts) == 4
    assert all(legible(made, 12000))
    assert re.match(r"tile 1 of 4, rows \d", made.parts[0].note)
    assert made.note == "; ".join(part.note for part in made.parts)


@requirement("fit.legible")
def test_a_page_with_wide_margins_can_be_read_too() -> None:
    made = legibly(saved(page(2600, 1800, left=900), "image/png"), ImageTarget(COMMON, sizing=PaddedSizing()))
    assert all(legible(made, 1800, left=900))
    assert "margins" in made.note


@requirement("fit.provider_size")
@given(
    st.integers(1, 3000),
    st.integers(1, 3000),
    st.sampled_from([*RULES, CropSizing(), FlatSizing(1120, 2000)]),
    st.none() | st.integers(60, 2000),
    st.booleans(),
)
@examples(max_examples=40, deadline=None)
def test_the_provider_has_nothing_left_to_resize(
    width: int, height: int, rule: Sizing, budget: int | None, plain: bool
) -> None:
    target = ImageTarget(COMMON, sizing=rule, tokens=budget, keeps_geometry=plain)
    made = fit_image(saved(Image.new("RGB", (width, height), RED), "image/png"), target)
    if isinstance(made, Refusal):
        assert budget is not None
        assert count_image_tokens(Size(1, 1), rule) > budget
        return
    size = made.parts[0].image.size
    assert compute_seen_size(size, rule) == size
    assert budget is None or count_image_tokens(size, rule) <= budget


@requirement("fit.provider_size")
def test_the_published_sizes_are_met_exactly() -> None:
    screen = saved(photo(1920, 1080), "image/jpeg")
    assert legibly(screen, ImageTarget(COMMON, sizing=PaddedSizing(), keeps_geometry=True)).parts[0].image.size == Size(
        1456, 819
    )
    assert (
        legibly(screen, ImageTarget(COMMON, sizing=TileSizing(), keeps_geometry=True)).parts[0].image.size.height == 768
    )


def test_the_number_of_pixels_is_a_limit_of_its_own() -> None:
    made = legibly(saved(photo(900, 600), "image/png"), ImageTarget(COMMON, pixels=100_000))
    assert 99_000 < made.parts[0].image.size.pixels <= 100_000


def test_an_image_that_keeps_its_geometry_is_only_scaled() -> None:
    made = legibly(TALL, ImageTarget(COMMON, sizing=PaddedSizing(), images=5, keeps_geometry=True))
    [part] = made.parts
    assert part.note == ""
    assert len(part.map.pieces) == 1
    assert part.map.to_source(0, 0) == (0, 0)
    assert part.map.to_source(part.image.size.width, part.image.size.height) == (1280, 6000)


def test_an_image_that_fits_is_not_trimmed() -> None:
    image = page(1200, 700, left=300)
    made = legibly(saved(image, "image/png"), ImageTarget(COMMON, sizing=PaddedSizing()))
    assert made.parts[0].image.size == Size(1200, 700)
    assert made.note == ""


@requirement("fit.map")
@pytest.mark.parametrize("images", [1, 4])
@pytest.mark.parametrize("rule", [PaddedSizing(), PatchSizing(), TileSizing()], ids=str)
@pytest.mark.parametrize("size", [(800, 5000), (2400, 2200)], ids=str)
def test_the_map_is_exact_to_a_pixel(size: tuple[int, int], rule: Sizing, images: int) -> None:
    image, chance = page(*size, left=size[0] // 10), random.Random(7)
    marks = [(x, y) for x in range(90, size[0] - 90, 310) for y in range(70, size[1] - 70, 340)]
    marks = [(x + chance.randrange(40), y + chance.randrange(40)) for x, y in marks]
    for x, y in marks:
        ImageDraw.Draw(image).rectangle((x - 8, y - 8, x + 7, y + 7), "#ff00ff")
    made = legibly(saved(image, "image/png"), ImageTarget(COMMON, sizing=rule, images=images))
    found: list[float] = []
    for part in made.parts:
        result = Image.open(io.BytesIO(part.image.data)).convert("RGB")
        found += [away for x, y in marks if (away := _away(part.map, result, x, y)) is not None]
    assert len(found) > 0.9 * len(marks)
    assert max(found) <= 1


def _away(where: PixelMap, result: Image.Image, x: int, y: int) -> float | None:
    """Return the distance between the middle of the magenta and its place by the map."""
    mark = Rect(x - 9, y - 9, 18, 18)
    pieces = [
        p for p in where.pieces if p.source.contains(mark.x, mark.y) and p.source.contains(mark.x + 18, mark.y + 18)
    ]
    if not pieces:
        return None
    there, weights = mark.transform(pieces[0].source, pieces[0].result), []
    for across in range(max(0, int(there.x) - 1), min(result.width, int(there.x + there.width) + 2)):
        for down in range(max(0, int(there.y) - 1), min(result.height, int(there.y + there.height) + 2)):
            red, green, blue = _rgb(result, across, down)
            weights.append((max(0, min(red, blue) - green), across + 0.5, down + 0.5))
    total = sum(weight for weight, _, _ in weights)
    middle = where.to_source(sum(w * a for w, a, _ in weights) / total, sum(w * b for w, _, b in weights) / total)
    assert middle is not None
    return math.dist(middle, (x, y))


def _rgb(image: Image.Image, x: int, y: int) -> tuple[int, int, int]:
    pixel = image.getpixel((x, y))
    assert isinstance(pixel, tuple)
    red, green, blue = pixel
    return red, green, blue


@requirement("fit.deterministic")
def test_a_folded_page_is_the_same_every_time() -> None:
    target = ImageTarget(COMMON, sizing=PaddedSizing(), images=3)
    one, other = fit_image(TALL, target), fit_image(TALL, target)
    assert one == other


@pytest.mark.parametrize(
    "target",
    [
        ImageTarget(COMMON),
        ImageTarget(("image/webp",), 90_000, 700, 300_000, PaddedSizing(), 800, 2, keeps_geometry=True),
        *(ImageTarget(COMMON, sizing=rule, images=3) for rule in (*RULES, CropSizing(), FlatSizing(1120))),
    ],
    ids=str,
)
def test_a_worker_makes_the_same_image(target: ImageTarget) -> None:
    arguments, data = json.loads(json.dumps(pack_target(target))), saved(page(640, 3000), "image/png")
    made = fit_task(data, arguments)
    assert not isinstance(made, Refusal)
    result, pixels = made
    assert read_back(json.loads(json.dumps(result)), pixels) == fit_image(data, target)


def test_a_task_that_fails_is_a_refusal() -> None:
    found = fit_task(html_page(), pack_target(ImageTarget(COMMON)))
    assert isinstance(found, Refusal)
    assert found.code == "unsupported_type"
