"""The trained models of controls: that their weights fit the measures, and what they say of small pictures of pages."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours
from sightline.reader.control_features import list_boxes, list_lines, measure_controls, propose_controls
from sightline.reader.control_model import NONE, STATE_WEIGHTS, WEIGHTS, Question, load_toggle_networks, load_trees
from sightline.reader.controls import MOST, score_controls
from sightline.reader.examine import examine_image
from sightline.reader.item_features import measure_items
from sightline.reader.paleness import measure_paleness
from sightline.reader.reading import TOGGLES, ImageReading, InterfacePart, Pixels, TextLine
from sightline.reader.rectangles import contains_centre
from sightline.reader.regions import Segments, segment_image
from sightline.reader.states import MOST_LINES, find_states
from sightline.reader.toggle_features import measure_mates, measure_toggles, propose_toggles
from sightline.reader.toggles import ANSWERS, find_toggles
from tests.requirements import requirement

KEPT = Path(__file__).parent / "kept"
QUESTIONS: tuple[Question, ...] = ("button", "field", "selected", "disabled")


def open_kept(name: str) -> tuple[Pixels, list[TextLine], list[Any]]:
    """Return a kept picture, its lines, and its controls as the DOM has them."""
    known = json.loads((KEPT / f"controls-{name}.json").read_text())
    pixels = np.asarray(Image.open(KEPT / f"controls-{name}.png").convert("RGB"))
    return pixels, [TextLine(text, Box(*edges)) for text, edges in known["lines"]], known["controls"]


def read_kept(name: str) -> tuple[ImageReading, list[Any]]:
    pixels, lines, controls = open_kept(name)
    return examine_image(pixels, lines), controls


def list_controls(reading: ImageReading) -> list[InterfacePart]:
    return [part for part in reading.parts if part.kind in ("button", "field", *TOGGLES)]


def count_measures(question: Question) -> int:
    pixels, lines, _ = open_kept("form")
    page, boxes = list_lines(add_colours(pixels, lines)), list_boxes([Box(20, 20, 60, 20)])
    part = InterfacePart("button", Box(20, 20, 60, 20), (0, 0, 0))
    if question == "selected":
        return int(measure_items(pixels, page, boxes, [], range(len(page.boxes)))[0].shape[2])
    if question == "disabled":
        return len(measure_paleness(pixels, [part], page)[0])
    return len(measure_controls(pixels, boxes, np.zeros((1, 3), np.float32), page)[0])


def list_packages(pins: object) -> set[str]:
    """Return the names of all packages in pins."""
    if isinstance(pins, dict):
        return {pins["name"]} if "name" in pins else set[str]().union(*map(list_packages, pins.values()))
    return set[str]().union(*map(list_packages, pins)) if isinstance(pins, list) else set()


def test_no_package_is_trained_on_that_is_set_aside() -> None:
    bench = Path(__file__).parents[2] / "bench"
    others = json.loads((bench / "real_packages.json").read_text())
    aside = others.pop("set aside")
    del aside["tools"]  # such as Vue and jQuery, which draw nothing themselves
    trained = json.loads((bench / "training_packages.json").read_text())
    assert len(list_packages(aside)) > 50
    assert not list_packages(aside) & (list_packages(trained) | list_packages(others))


def test_the_weights_are_small() -> None:
    sizes = [len(files("sightline.reader").joinpath(name).read_bytes()) for name in (WEIGHTS, STATE_WEIGHTS)]
    assert max(sizes) <= 300_000


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_trees_ask_for_measures_that_there_are(question: Question) -> None:
    model = load_trees(question)
    assert model.feature.max() < count_measures(question)
    assert max(model.left.max(), model.right.max(), model.roots.max()) < len(model.value)
    assert 0 < model.limit < 1


def test_the_network_fits_the_pictures_and_kinds_of_toggles() -> None:
    pixels, lines, _ = open_kept("form")
    boxes = list_boxes([Box(20 + at, 20, 16, 16) for at in range(300)])
    measures = measure_toggles(pixels, boxes, list_lines(lines), measure_mates(boxes))
    scores = load_toggle_networks().score(measures)
    assert scores.shape == (300, 1 + len(ANSWERS))
    assert scores.sum(axis=1) == pytest.approx(np.ones(300), abs=1e-4)


def test_only_the_first_network_looks_at_what_it_holds_for_none() -> None:
    pixels, lines, _ = open_kept("form")
    boxes = propose_toggles(segment_image(pixels))
    measures = measure_toggles(pixels, boxes, list_lines(lines), measure_mates(boxes))
    networks = load_toggle_networks()
    first, scores = networks.networks[0].score(measures), networks.score(measures)
    sure = first[:, 0] >= NONE
    assert 0 < sure.sum() < len(sure)
    assert np.array_equal(scores[sure], first[sure])
    assert not np.isclose(scores[~sure], first[~sure]).all(axis=1).any()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_score_does_not_depend_on_the_other_rows(question: Question) -> None:
    rows = np.random.default_rng(1).normal(size=(700, count_measures(question))).astype(np.float32)
    scores = load_trees(question).score(rows)
    assert np.array_equal(scores[600:603], load_trees(question).score(rows[600:603]))
    assert len(load_trees(question).score(rows[:0])) == 0


@requirement("reader.controls")
def test_letters_icons_badges_cells_cards_bars_and_keys_are_no_controls() -> None:
    reading, _ = read_kept("decoys")
    assert [(part.kind, part.box) for part in list_controls(reading)] == []
    assert reading.states == ()


@requirement("reader.controls")
@pytest.mark.parametrize("name", ["form", "dark"])
def test_the_controls_of_a_form_are_found_with_their_states(name: str) -> None:
    reading, controls = read_kept(name)
    found = list_controls(reading)
    assert len(found) == len(controls)
    for kind, (left, top, right, bottom), checked, _ in controls:
        (part,) = [part for part in found if contains_centre(part.box, Box(left, top, right - left, bottom - top))]
        assert (part.kind, part.checked) == (kind, checked)


@requirement("reader.states")
def test_only_the_pale_button_is_disabled() -> None:
    reading, controls = read_kept("form")
    (off,) = [Box(left, top, right - left, bottom - top) for _, (left, top, right, bottom), _, pale in controls if pale]
    assert [state.kind for state in reading.states] == ["disabled"]
    assert contains_centre(off, reading.states[0].box)


def draw_grid(columns: int, rows: int, step: int = 20) -> Pixels:
    """Return a picture of small boxes with a border, each of which may be a control."""
    pixels = np.full((rows * step + 4, columns * step + 4, 3), 255, np.uint8)
    for y in range(4, rows * step, step):
        for x in range(4, columns * step, step):
            pixels[y : y + 16, x : x + 16] = 90
            pixels[y + 1 : y + 15, x + 1 : x + 15] = 230
    return pixels


@requirement("reader.controls")
def test_no_model_is_asked_about_more_places_than_the_limit() -> None:
    small, large = draw_grid(8, 8), draw_grid(40, MOST // 40 + 1)
    few, many = segment_image(small), segment_image(large)
    line = TextLine("Options", Box(0, 6, 3, 12), ink=(0, 0, 0), ground=(255, 255, 255))
    page = list_lines([line])
    assert len(propose_toggles(many)) > MOST
    assert len(propose_controls(many, page, large.shape[1::-1])[0]) > MOST
    assert score_controls(large, [line], many) == []
    assert len(score_controls(small, [line], few)) == 2 * len(propose_controls(few, page, small.shape[1::-1])[0]) > 0
    form, lines, _ = open_kept("form")
    wide = max(form.shape[1], large.shape[1])
    both = np.full((len(form) + len(large), wide, 3), 255, np.uint8)
    both[: len(form), : form.shape[1]], both[len(form) :, : large.shape[1]] = form, large
    assert find_toggles(form, lines, segment_image(form))
    assert find_toggles(both, lines, segment_image(both)) == []


def test_nothing_is_selected_among_more_lines_than_the_limit() -> None:
    colours = {"ink": (0, 0, 0), "ground": (255, 255, 255)}
    lines = [TextLine("Item", Box(20, 20 * at, 40, 12), **colours) for at in range(MOST_LINES + 1)]  # type: ignore[arg-type]
    assert list(find_states(np.full((40, 100, 3), 255, np.uint8), lines, [], [])) == []


def test_boxes_in_lines_are_left_out_of_any_number() -> None:
    boxes = tuple(Box(20 * at, 20 * row, 16, 16) for row in range(30) for at in range(60))
    lines = [TextLine("w" * 100, Box(0, 20 * row, 1200, 17)) for row in range(0, 30, 2)]
    kept, _ = propose_controls(Segments((), boxes), list_lines(lines), (1300, 700))
    assert np.array_equal(kept, list_boxes([box for box in boxes if box.y % 40]))


def test_a_text_above_a_thin_line_may_be_a_field() -> None:
    pixels = np.full((120, 400, 3), 255, np.uint8)
    pixels[60:62, 40:240] = 120
    lines = [TextLine("Rotterdam", Box(46, 40, 70, 14)), TextLine("Elsewhere", Box(260, 40, 70, 14))]
    kept, _ = propose_controls(segment_image(pixels), list_lines(lines), (400, 120))
    assert kept.tolist() == [[40, 34, 240, 62]]


def test_signs_digits_words_and_capitals_of_lines_are_measured() -> None:
    texts = ("Type: string", "#include <a.h>", "Save As", "10435", "")
    page = list_lines([TextLine(text, Box(0, 20 * at, 80, 14)) for at, text in enumerate(texts)])
    assert page.signs.tolist() == pytest.approx([1 / 12, 3 / 14, 0, 0, 0])
    assert page.digits.tolist() == [0, 0, 0, 1, 0]
    assert page.words.tolist() == [2, 2, 2, 1, 0]
    assert page.capitals.tolist() == [0.5, 0, 1, 0, 0]
