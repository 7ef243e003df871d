"""The pass `show`: every image meets the limits of its model, counted as the provider counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Check, Facts, Keep, Needs, Probe, Refit, Rules
from sightline.model.geometry import Size
from sightline.model.image import FitPart, ImageInfo, ImageTarget, PaddedSizing, compute_seen_size
from sightline.model.profile import UNKNOWN_SIZING, ImageLimits, Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import Fate, Json, LinkSource, OpaqueSource, Refitted, Refused, Shown
from sightline.passes.show import build_target, show, takes_coordinates
from sightline.passes.wording import write_absence
from tests.passes.scenes import BLIND, PNG, Table, fitted, image, inline, name_of, rules, scene
from tests.requirements import requirement

ANTHROPIC = ImageLimits(
    ("image/jpeg", "image/png"), encoded_bytes=10_000, edge=8000, crowd=20, crowd_edge=2000, count=100
)


def picture(width: int, height: int = 10, mime: str = "image/png") -> ImageInfo:
    return ImageInfo(mime, Size(width, height), 500)


def is_refitted(fate: Fate | None, *facts: str) -> bool:
    """Return whether an image was refitted for a reason that names these facts."""
    return isinstance(fate, Refitted) and fate.image == image() and all(fact in fate.why for fact in (*facts, " "))


@requirement("fit.base64")
@pytest.mark.parametrize(
    ("seen", "length", "others", "why"),
    [
        pytest.param(picture(8000), 10_000, 0, None, id="at every limit"),
        pytest.param(picture(8001), 10, 0, ["8001x10", "8000 px"], id="too wide"),
        pytest.param(picture(10, 8001), 10, 0, ["10x8001", "8000 px"], id="too high"),
        pytest.param(replace(picture(10), bytes=7_501), 10_004, 0, ["7,501", "7,500"], id="too heavy"),
        pytest.param(picture(10, mime="image/tiff"), 10, 0, ["image/tiff"], id="a foreign format"),
        pytest.param(picture(2001), 10, 19, None, id="twenty images"),
        pytest.param(picture(2000), 10, 20, None, id="the twenty-first, within the edge of a crowd"),
        pytest.param(picture(2001), 10, 20, ["2001x10", "2000 px"], id="the twenty-first, over it"),
    ],
)
def test_limits_are_those_of_the_provider(seen: ImageInfo, length: int, others: int, why: list[str] | None) -> None:
    crowd = [inline(f"other {n}") for n in range(others)]
    table = Table(lambda source: seen if name_of(source) == "a" else PNG)
    fate, *rest = table.fates(scene(inline(length=length), *crowd), rules(ANTHROPIC))
    assert fate == Shown() if why is None else is_refitted(fate, *why)
    assert rest == [Shown()] * others


@requirement("fit.history")
def test_the_twenty_first_image_makes_only_the_too_wide_one_illegal() -> None:
    wide = {"old": picture(2500), "fine": picture(1999)}
    history = [inline("old"), inline("fine"), *(inline(f"{n}") for n in range(18))]
    table = Table(lambda source: wide.get(name_of(source), PNG))
    assert table.fates(scene(*history), rules(ANTHROPIC)) == [Shown()] * 20
    after = table.fates(scene(*history, inline("new")), rules(ANTHROPIC))
    assert is_refitted(after[0], "2500x10", "2000 px")
    assert after[1:] == [Shown()] * 20


@pytest.mark.parametrize(
    ("limits", "images", "encoded", "goal"),
    [
        (ImageLimits(), 5, 10**9, ImageTarget(ImageLimits().formats)),
        (ANTHROPIC, 20, 10**9, ImageTarget(ANTHROPIC.formats, 10_000, 8000)),
        (ANTHROPIC, 21, 0, ImageTarget(ANTHROPIC.formats, 10_000, 2000)),
        (ImageLimits(crowd=20, crowd_edge=2000), 21, 0, ImageTarget(ImageLimits().formats, None, 2000)),
        (ImageLimits(edge=1000, crowd=20, crowd_edge=2000), 21, 0, ImageTarget(ImageLimits().formats, None, 1000)),
        (ImageLimits(request_bytes=1000), 3, 900, ImageTarget(ImageLimits().formats)),
        (ImageLimits(request_bytes=1000), 3, 901, ImageTarget(ImageLimits().formats, 225)),
        (ImageLimits(request_bytes=1000, encoded_bytes=200), 3, 901, ImageTarget(ImageLimits().formats, 200)),
        (ImageLimits(request_bytes=1000, encoded_bytes=500), 3, 901, ImageTarget(ImageLimits().formats, 225)),
    ],
)
def test_the_target_of_an_image(limits: ImageLimits, images: int, encoded: int, goal: ImageTarget) -> None:
    assert build_target(limits, images, encoded) == goal


@requirement("fit.request")
def test_images_that_are_too_large_together_share_the_room() -> None:
    laws = rules(ImageLimits(request_bytes=1000))
    weights = {"a": 75, "b": 636}
    table = Table(lambda source: replace(PNG, bytes=weights[name_of(source)]))
    small, heavy, link = inline("a", 100), inline("b", 850), LinkSource("https://a/b")
    first, second, third = table.fates(scene(small, heavy, link), laws)
    assert (first, is_refitted(second, "636", "168"), third) == (Shown(), True, Shown())
    assert table.rounds == [
        {Probe(small), Probe(heavy)},
        {
            Refit(heavy, ImageTarget(ImageLimits().formats, 225, sizing=UNKNOWN_SIZING, keeps_geometry=True)),
            Keep(heavy),
        },
    ]


@pytest.mark.parametrize(
    ("declared", "fate"),
    [
        ("image/png", Shown()),
        ("image/jpeg", Shown("image/png")),
        ("image/jpg", Shown("image/png")),
        ("application/octet-stream", Shown("image/png")),
        ("", Shown("image/png")),
    ],
)
def test_a_wrong_declared_type_is_corrected(declared: str, fate: Fate) -> None:
    assert Table().fates(scene(inline(declared=declared)), rules(ANTHROPIC)) == [fate]


@requirement("fit.count", "fit.opaque")
def test_the_oldest_images_over_the_limit_are_dropped_and_kept() -> None:
    table = Table()
    one, two, three = inline("1"), inline("2"), LinkSource("https://a/3")
    first, *rest = table.fates(scene(one, two, three, filename="old.png"), rules(ImageLimits(count=2)))
    assert isinstance(first, Refused)
    assert first.text == write_absence(first.refusal, "old.png")
    assert first.refusal.code == "too_large"
    assert all(fact in first.refusal.what for fact in ("2 images", f"sha256:{'5' * 64}"))
    assert rest == [Shown(), Shown()]
    assert set(table.asked) == {Probe(two), Keep(one)}


def test_tool_images_are_dropped_before_pasted_ones() -> None:
    held = OpaqueSource("file_1")
    what = scene(held, inline("pasted"), inline("brought"), *(inline(each) for each in "xyz"))
    sights = (*what.sights[:2], replace(what.sights[2], role="tool"), *what.sights[3:])
    for most, left in ((5, [2]), (4, [1, 2])):
        fates = Table().fates(replace(what, sights=sights), rules(ImageLimits(count=most)))
        assert [n for n, fate in enumerate(fates) if isinstance(fate, Refused)] == left


@requirement("fit.count", "law.2")
@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_the_newest_stay_and_dropped_images_stay_dropped(most: int) -> None:
    what = scene(*(inline(f"p{n}") for n in range(9)), *(inline(f"v{n}") for n in range(9)))
    sights = tuple(replace(each, role="user" if n < 9 else "tool") for n, each in enumerate(what.sights))
    gone: set[int] = set()
    for count in range(1, len(sights) + 1):
        fates = Table().fates(replace(what, sights=sights[:count]), rules(ImageLimits(count=most)))
        left = {n for n, fate in enumerate(fates) if isinstance(fate, Refused)}
        assert gone <= left
        assert count - 1 not in left
        assert count - len(left) <= most
        gone = left


@requirement("fit.seldom")
def test_images_are_dropped_in_batches() -> None:
    laws = rules(ImageLimits(count=8, request_bytes=100_000))
    left_out = []
    for images in range(8, 14):
        fates = Table().fates(scene(*(inline(chr(97 + n), 10) for n in range(images))), laws)
        left_out.append(sum(isinstance(fate, Refused) for fate in fates))
    assert left_out == [0, 2, 2, 4, 4, 6]
    shares = {build_target(laws.profile.limits, images, encoded=95_000).encoded_bytes for images in range(9, 17)}
    assert len(shares) == 1


@requirement("fit.opaque")
def test_sources_that_only_the_provider_can_open_are_shown() -> None:
    table = Table()
    assert table.fates(scene(LinkSource("https://a/b"), OpaqueSource("file_1")), rules(ANTHROPIC)) == [Shown(), Shown()]
    assert table.asked == []


CORRUPT = Refusal("corrupt", "damaged", "attach it again")


def test_an_unreadable_image_is_refused() -> None:
    (fate,) = Table(CORRUPT).fates(scene(inline()), rules())
    assert fate == Refused(write_absence(CORRUPT), CORRUPT)


def test_an_image_that_cannot_be_refitted_is_refused() -> None:
    (fate,) = Table(picture(9000), refit=CORRUPT).fates(scene(inline()), rules(ANTHROPIC))
    assert isinstance(fate, Refused)
    assert fate.refusal == CORRUPT


def test_every_image_is_decoded_after_an_unnamed_rejection() -> None:
    good, bad = inline("good"), inline("bad")
    table = Table(lambda source: CORRUPT if source == bad else PNG)
    shown, refused = table.fates(scene(good, bad), rules(ANTHROPIC, check_all_images=True))
    assert table.rounds == [{Check(good), Check(bad)}]
    assert shown == Shown()
    assert isinstance(refused, Refused)


def test_rejected_images_that_decode_are_reencoded() -> None:
    table = Table()
    (fate,) = table.fates(scene(inline()), rules(ANTHROPIC, check_all_images=True, reencode=True))
    assert is_refitted(fate)
    assert table.rounds == [
        {Check(inline())},
        {
            Refit(inline(), ImageTarget(ANTHROPIC.formats, 10_000, 8000, sizing=UNKNOWN_SIZING, keeps_geometry=True)),
            Keep(inline()),
        },
    ]


@requirement("fit.presized")
def test_a_refitted_image_needs_no_resizing_by_the_provider() -> None:
    table = Table(ImageInfo("image/png", Size(9000, 600), 500))
    laws = Rules(Profile("up", "anthropic", "m", limits=ANTHROPIC, sizing=PaddedSizing()))
    table.fates(scene(inline()), laws)
    (refit,) = [need for need in table.asked if isinstance(need, Refit)]
    made = refit.target.find_largest_size(Size(9000, 600))
    assert compute_seen_size(made, PaddedSizing()) == made
    assert made.edge > 1500


def test_an_image_within_limits_is_sent_even_if_the_provider_resizes() -> None:
    table = Table(ImageInfo("image/png", Size(4000, 600), 500))
    laws = Rules(Profile("up", "anthropic", "m", limits=ANTHROPIC, sizing=PaddedSizing()))
    assert table.fates(scene(inline()), laws) == [Shown()]


def test_an_image_that_the_provider_named_is_refused_unopened() -> None:
    table = Table()
    named, other = table.fates(
        scene(inline("named"), inline("other")), rules(unreadable_keys=frozenset({inline("named").key}))
    )
    assert isinstance(named, Refused)
    assert named.refusal.code == "corrupt"
    assert other == Shown()
    assert table.asked == [Probe(inline("other"))]


def test_images_for_a_model_without_vision_are_not_fitted() -> None:
    sights = scene(inline())
    assert show(sights, Facts(), BLIND) is sights


def test_the_same_image_in_two_places_is_one_need() -> None:
    outcome = show(scene(inline(), inline()), Facts(), rules())
    assert outcome == Needs(frozenset({Probe(inline())}))


NOTE = "folded into 4 columns, to be read from left to right"
FOLDING = Rules(Profile("up", "anthropic", "m", limits=ANTHROPIC, sizing=PaddedSizing()), fold_pages=True)
PAGE = picture(1280, 6000)


@requirement("fit.page_folded")
@pytest.mark.parametrize("seen", [PAGE, picture(1280, 9000)], ids=str)
def test_a_tall_page_that_the_provider_would_make_illegible_is_folded(seen: ImageInfo) -> None:
    table = Table(seen, refit=fitted(NOTE))
    (fate,) = table.fates(scene(inline()), FOLDING, show)
    assert is_refitted(fate, NOTE, str(seen.size))
    assert isinstance(fate, Refitted)
    assert fate.note == NOTE
    (target,) = [need.target for need in table.asked if isinstance(need, Refit)]
    assert (target.keeps_geometry, target.sizing, target.images) == (False, PaddedSizing(), 1)
    assert Keep(inline()) in table.asked


@requirement("fit.page_folded", "fit.only_needed")
@pytest.mark.parametrize(
    "seen", [picture(1280, 1600), picture(900, 1800), picture(4000, 3000), picture(6000, 1280)], ids=str
)
def test_an_image_that_is_not_tall_or_stays_legible_is_not_folded(seen: ImageInfo) -> None:
    table = Table(seen, refit=fitted(NOTE))
    assert table.fates(scene(inline()), FOLDING, show) == [Shown()]
    assert not any(isinstance(need, Refit) for need in table.asked)


@requirement("fit.page_folded", "law.9")
@pytest.mark.parametrize("found", [fitted(), CORRUPT], ids=["no better layout", "a refusal"])
def test_a_long_image_without_a_better_layout_is_sent_as_it_is(found: FitPart | Refusal) -> None:
    table = Table(PAGE, refit=found)
    assert table.fates(scene(inline()), FOLDING, show) == [Shown()]
    assert Keep(inline()) not in table.asked


@requirement("fit.page_off")
def test_no_page_is_folded_unless_the_rules_say_so_or_for_a_text_only_model() -> None:
    for law in (replace(FOLDING, fold_pages=False), replace(FOLDING, mode="always")):
        table = Table(PAGE, refit=fitted(NOTE))
        table.decided(scene(inline()), law, show)
        assert not any(isinstance(need, Refit) for need in table.asked)


def schema(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


NUMBER: Json = {"type": "number"}


@requirement("fit.page_geometry")
@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "computer_20250124", "name": "computer", "display_width_px": 1280}, True),
        ({"type": "computer_use_preview", "display_width": 1280}, True),
        ({"type": "computer"}, True),
        ({"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, True),
        ({"computer_use": {}}, True),
        ({"name": "click", "input_schema": schema(x=NUMBER, y=NUMBER)}, True),
        ({"type": "function", "function": {"name": "drag", "parameters": schema(startX=NUMBER, startY=NUMBER)}}, True),
        ({"functionDeclarations": [{"name": "tap", "parameters": schema(coordinate={"type": "array"})}]}, True),
        ({"type": "function", "name": "box", "parameters": schema(at=schema(x1=NUMBER, y1=NUMBER))}, True),
        ({"type": "namespace", "tools": [{"name": "tap", "parameters": schema(x=NUMBER, y=NUMBER)}]}, True),
        ({"name": "Read", "input_schema": schema(file_path={"type": "string"}, index=NUMBER)}, False),
        ({"name": "plot", "input_schema": schema(x=NUMBER, description={"type": "string"})}, False),
        ({"type": "web_search_20250305", "name": "web_search"}, False),
        ("computer", False),
    ],
)
def test_a_conversation_with_coordinates_is_known_by_its_tools(tool: Json, expected: bool) -> None:
    what = replace(scene(inline()), declared_tools=([tool],))
    assert takes_coordinates(what) is expected
    (fate,) = Table(PAGE, refit=fitted(NOTE)).fates(what, FOLDING, show)
    assert isinstance(fate, Shown if expected else Refitted)


@requirement("fit.page_geometry")
def test_a_page_is_not_folded_where_tools_are_unknown_or_no_text_can_be_beside_it() -> None:
    what = scene(inline())
    fixed = replace(what, sights=tuple(replace(sight, pixels_only=True) for sight in what.sights))
    written = replace(what, sights=tuple(replace(sight, path_in_text=()) for sight in what.sights))
    for each in (replace(what, is_partial=True), fixed, written):
        assert Table(PAGE, refit=fitted(NOTE)).fates(each, FOLDING, show) == [Shown()]


@requirement("fit.scale_said")
def test_the_factor_of_a_scaled_image_is_said_where_a_tool_takes_coordinates() -> None:
    clicks: Json = {"name": "click", "input_schema": schema(x=NUMBER, y=NUMBER)}
    what = replace(scene(inline()), declared_tools=([clicks],))
    size = image().size
    wide = ImageInfo("image/png", Size(size.width * 4000, size.height * 4000), 500)
    (fate,) = Table(wide).fates(what, rules(ANTHROPIC), show)
    assert isinstance(fate, Refitted)
    assert all(fact in fate.note for fact in ("0.00025", str(wide.size), str(size)))
    fixed = replace(what, sights=tuple(replace(sight, pixels_only=True) for sight in what.sights))
    same = ImageInfo("image/tiff", size, 500)  # another format, in the same size
    for seen, each in ((wide, scene(inline())), (wide, fixed), (same, what)):
        (fate,) = Table(seen).fates(each, rules(ANTHROPIC), show)
        assert isinstance(fate, Refitted)
        assert not fate.note
