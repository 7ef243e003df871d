"""Answers with coordinates: every notation is read, and values that do not fit are flagged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.grounding import FORMATS
from sightline.grounding.parse import Flag, SeenPlace, parse_places
from sightline.model.geometry import Size
from tests.grounding.writing import HANDS, Hand
from tests.requirements import requirement

SIZE = Size(800, 400)


def read(text: str, name: str, *sizes: Size) -> list[tuple[int | None, str, tuple[float, ...] | None, Flag]]:
    return [
        (each.image, each.label, each.coordinates, each.flag) for each in parse_places(text, name, sizes or (SIZE,))
    ]


# Words that occur in answers with coordinates, in any order: the most likely place for a reader to stumble.
SHARDS = st.sampled_from(
    """[ ] ( ) { } , : ; " ' = / > 1 2 300 0.5 -7 1e9 99999999999 <box> </box> <ref> </ref> <|ref|> <|/ref|> <|det|>
    <|/det|> <|box_start|> <|box_end|> <|begin_of_box|> <|end_of_box|> <point <points <tracks x= y= x1= y1= coords= alt=
    <point> </point> </points> <loc_1> <loc_999> <loc0001> <loc1023> <seg001> <phrase> </phrase> <object> </object>
    <patch_index_0044> <patch_index_9999> start_box= click( "bbox_2d": "box_2d": "point_2d": "label": "x_min": "y_min":
    "x_max": "y_max": "x": "y": ```json Image-1: Image-2: \\" \\ \n \t é ＜ \x00""".split(" ")
)
ANY_TEXT = st.text() | st.lists(SHARDS, max_size=60).map("".join) | st.lists(SHARDS, max_size=60).map(" ".join)


@requirement("grounding.any_text")
@given(ANY_TEXT, st.sampled_from([*FORMATS, "unheard of"]), st.integers(0, 3))
def test_any_text_can_be_parsed(text: str, name: str, images: int) -> None:
    for each in parse_places(text, name, [SIZE] * images):
        assert isinstance(each, SeenPlace)
        assert len(each.values) in (2, 4)
        assert (each.coordinates is None) == (each.flag in ("misfit", "no_image"))
        assert each.image is None or 0 <= each.image < images
        assert len(each.label) <= 120
        each.label.encode()


@requirement("grounding.formats", "grounding.round_trip")
@pytest.mark.parametrize("name", HANDS)
@given(data=st.data())
def test_written_places_are_read_back(name: str, data: st.DataObject) -> None:
    hand = HANDS[name]
    size = Size(data.draw(st.integers(40, 2000)), data.draw(st.integers(40, 2000)))
    x1, y1 = data.draw(st.integers(0, size.width - 16)), data.draw(st.integers(0, size.height - 16))
    x2, y2 = data.draw(st.integers(x1 + 16, size.width)), data.draw(st.integers(y1 + 16, size.height))
    found = parse_places(hand.write((x1, y1, x2, y2), size), hand.format, [size])
    assert [(each.image, each.flag) for each in found] == [(0, "")]
    assert found[0].coordinates is not None
    drawn = (x1, y1) if hand.point else (x1, y1, x2, y2)
    sides = (size.width, size.height) * 2
    for got, meant, side in zip(found[0].coordinates, drawn, sides, strict=False):
        assert abs(got - meant) <= max(2, hand.step * side), (found, drawn)
    assert len(found[0].coordinates) == len(drawn)


def test_every_format_has_a_writer() -> None:
    assert {hand.format for hand in HANDS.values()} == FORMATS.keys() - {"none"}


@pytest.mark.parametrize(
    "hand",
    [hand for name, hand in HANDS.items() if not hand.point and name not in ("Moondream", "Kosmos-2")],
    ids=lambda hand: hand.write.__name__,
)
def test_labels_come_from_the_answer(hand: Hand) -> None:
    [found] = parse_places(hand.write((80, 40, 400, 200), SIZE), hand.format, [SIZE])
    assert found.label.removeprefix("The ") == "thing"


@requirement("grounding.told_apart")
def test_qwen_2_5_writes_pixels_and_qwen_3_thousandths() -> None:
    text = '[{"bbox_2d": [100, 200, 300, 400], "label": "a"}]'
    assert read(text, "qwen_pixels") == [(0, "a", (100, 200, 300, 400), "")]
    assert read(text, "qwen_normalized_1000") == [(0, "a", (80, 80, 240, 160), "")]


@requirement("grounding.gemini_order")
def test_gemini_writes_y_before_x() -> None:
    text = '[{"box_2d": [100, 200, 300, 400], "mask": "data:image/png;base64,AA=", "label": "a"}, {"point": [10, 20]}]'
    assert read(text, "gemini_normalized_1000") == [(0, "a", (160, 40, 320, 120), ""), (0, "", (16, 4), "")]
    assert read("It [100, 200, 300, 400]", "gemini_normalized_1000") == [(0, "It", (160, 40, 320, 120), "")]


@requirement("grounding.edges")
@pytest.mark.parametrize("coords", ["1 1 0 0 2 5 1000 3 1000 7", "1 1 000 000 2 005 1000 3 1000 007"])
def test_points_at_the_edge_may_have_short_numbers(coords: str) -> None:
    found = read(f'<points coords="{coords}">dots</points>', "molmo2_points", Size(1000, 1000))
    assert [at for _, _, at, _ in found] == [(0, 0), (5, 1000), (1000, 7)]
    assert {flag for _, _, _, flag in found} == {""}
    assert read('<points coords="1 1 0 0">dot</points>', "molmo2_points") == [(0, "dot", (0, 0), "")]


def test_molmo2_numbers_its_images() -> None:
    text = '<points coords="1 1 500 500;2 1 250 250 2 750 750">eyes</points>'
    assert read(text, "molmo2_points", Size(100, 100), Size(200, 400)) == [
        (0, "eyes", (50, 50), ""),
        (1, "eyes", (50, 100), ""),
        (1, "eyes", (150, 300), ""),
    ]
    assert [(image, flag) for image, _, _, flag in read(text, "molmo2_points")] == [
        (0, ""), (None, "no_image"), (None, "no_image"),
    ]  # fmt: skip


def test_several_points_or_boxes_in_one_element_are_read() -> None:
    points = '<points x1="10" y1="20" x2="30.5" y2="40" alt="a > b">a &gt; b</points>'
    assert [at for _, _, at, _ in read(points, "molmo_points")] == [(80, 80), (244, 160)]
    boxes = "<|ref|>cat<|/ref|><|det|>[[0, 0, 999, 999], [0, 0, 333, 333]]<|/det|>"
    assert [(label, at) for _, label, at, _ in read(boxes, "deepseek_bbox")] == [
        ("cat", (0, 0, 800, 400)),
        ("cat", pytest.approx((0, 0, 266.67, 133.33), abs=0.01)),
    ]
    patches = (
        "<phrase>two</phrase><object><patch_index_0000><patch_index_0000></delimiter_of_multi_objects/>"
        "<patch_index_0033><patch_index_1023></object>"
    )
    assert [at for _, _, at, _ in read(patches, "kosmos_patches", Size(320, 320))] == [
        (0, 0, 10, 10),
        (15, 15, 315, 315),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[{"bbox_2d": [1, 2, 30, 40], "label": "a"}, {"bbox_2d": [5, 6, 70',
        '[{"bbox_2d": [1, 2, 30, 40], "label": "a"}, {"bbox_2d"',
        "[{'label': 'a', 'bbox_2d': [1, 2, 30, 40]}, {'lab",
        "<ref>a</ref><box>[[1, 2, 30, 40], [5, 6, 7",
        "Here: ```json\n[{\"label\": \"a\", \"confidence\": 0.9, \"bbox_2d\": [1, 2, 30, 40]}, ",
    ],
)  # fmt: skip
def test_a_truncated_answer_loses_only_its_last_box(text: str) -> None:
    assert read(text, "qwen_pixels") == [(0, "a", (1, 2, 30, 40), "")]


def test_a_plain_answer_in_box_tags_is_not_a_box() -> None:
    assert read("<|begin_of_box|>12, 13, 14, 15<|end_of_box|>", "glm_normalized_1000") == []
    assert read("<|begin_of_box|>Paris<|end_of_box|>", "glm_normalized_1000") == []


def test_labels_may_come_before_or_after_and_have_escapes() -> None:
    text = '[{"label": "a } \\"b\\" {", "bbox_2d": [1, 2, 3, 40]}, {"bbox_2d": [5, 6, 7, 80], "label": "\\u00e9 ]"}]'
    assert [label for _, label, _, _ in read(text, "qwen_pixels")] == ['a } "b" {', "é ]"]


@requirement("grounding.inline")
@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"none"}))
def test_four_numbers_in_brackets_are_a_box_in_every_format(name: str) -> None:
    form = FORMATS[name]
    quarter = [0.25, 0.25, 0.5, 0.5]
    side = form.scale or SIZE.height
    written = [value * side if side == 1 else round(value * side) for value in quarter]
    found = parse_places(f"The error dialog {written} says no.", name, [SIZE])
    assert [(each.label, each.flag) for each in found] == [("The error dialog", "")]
    wide = SIZE.width if form.scale else SIZE.height
    assert found[0].coordinates == pytest.approx((wide / 4, 100, wide / 2, 200), abs=1)


@requirement("grounding.inline")
@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"none"}))
def test_a_prefix_selects_the_image(name: str) -> None:
    form = FORMATS[name]
    box = [0.1, 0.1, 0.5, 0.5] if form.scale == 1 else [10, 10, 50, 50]
    text = f"Image-1: the lamp {box}. The sofa {box}\nImage-2: a chair {box}\n**Image 1 (a (b).png):** x {box}"
    found = parse_places(text.replace("a (b).png", "a.png"), name, [Size(100, 100), Size(200, 200)])
    assert [(each.image, each.label) for each in found] == [
        (0, "the lamp"), (0, "The sofa"), (1, "a chair"), (0, "x"),
    ]  # fmt: skip


def test_an_answer_about_several_images_must_name_one() -> None:
    text = 'the lamp [10, 10, 50, 50] [{"bbox_2d": [1, 2, 30, 40], "label": "Image-2: lamp"}]\nImage-9: [1, 2, 3, 40]'
    assert read(text, "qwen_pixels", SIZE, SIZE) == [
        (None, "the lamp", None, "no_image"),
        (1, "lamp", (1, 2, 30, 40), ""),
        (None, "", None, "no_image"),
    ]


@requirement("grounding.flagged")
@pytest.mark.parametrize(
    ("name", "text", "flags"),
    [
        ("qwen_normalized_1000", "[100, 100, 900, 1003]", ["clamped"]),
        ("qwen_normalized_1000", "[-4, 100, 900, 900]", ["clamped"]),
        ("qwen_normalized_1000", "[1840, 120, 2680, 480]", ["misfit"]),
        ("qwen_normalized_1000", "a [1840, 120, 2680, 480] b [10, 10, 50, 50]", ["misfit", "doubtful"]),
        ("qwen_normalized_1000", "[0.1, 0.2, 0.5, 0.6]", ["misfit"]),
        ("qwen_normalized_1000", "[0, 0, 1, 1]", ["misfit"]),
        ("qwen_normalized_1000", "[0, 0, 1, 1] [0, 0, 100, 100]", ["", ""]),
        ("qwen_pixels", "[0.1, 0.2, 0.5, 0.6]", ["misfit"]),
        ("qwen_pixels", "[10, 10, 820, 390]", ["clamped"]),
        ("qwen_pixels", "[10, 10, 1600, 390]", ["misfit"]),
        ("qwen_pixels", "[10, 10, 1" + "0" * 400 + ", 390]", ["misfit"]),
        ("gemini_normalized_1000", "[10, 10, 2000, 390]", ["misfit"]),
        ("molmo_points", '<point x="100.0" y="0.4" alt="a"/>', [""]),
        ("molmo_points", '<point x="100.1" y="3" alt="a"/>', ["misfit"]),
        ("molmo_points", '<points coords="1 1 308 305">a</points>', ["misfit"]),
        ("molmo2_points", '<points coords="1 1 0.3 0.3">a</points>', ["misfit"]),
        ("unit_xyxy", "[0.1, 0.1, 1.01, 0.5]", ["clamped"]),
        ("unit_xyxy", "[10, 10, 50, 50]", ["misfit"]),
        ("paligemma_loc", "<loc0000><loc0000><loc1023><loc1024> a", ["misfit"]),
        ("florence_loc", "a<loc_0><loc_0><loc_999><loc_1000>", ["misfit"]),
        ("kosmos_patches", "<object><patch_index_0000><patch_index_1500></object>", ["misfit"]),
    ],
)
def test_values_outside_their_space_are_flagged(name: str, text: str, flags: list[Flag]) -> None:
    found = parse_places(text, name, [SIZE])
    assert [each.flag for each in found] == flags
    assert all(each.coordinates is None for each in found if each.flag == "misfit")


def test_a_model_without_coordinates_has_no_places() -> None:
    assert parse_places("[1, 2, 30, 40]", "none", [SIZE]) == []
    assert parse_places("It is a cat, (see note 1), 4 years old.", "qwen_pixels", [SIZE]) == []
