"""Every image of a request within the limits of the model it goes to, judged as the provider counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Check, Facts, Keep, Needs, Probe, Refit
from sightline.model.fate import Fate, Refitted, Refused, Shown
from sightline.model.geometry import Size
from sightline.model.image import Picture, Target
from sightline.model.profile import UNSIZED, Limits, Profile
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.sizing import Padded, seen
from sightline.model.source import Link, Opaque
from sightline.passes.fit import fit, target
from sightline.passes.words import absence
from tests.passes.scenes import BLIND, PNG, Table, image, inline, name_of, rules, scene
from tests.requirements import requirement

ANTHROPIC = Limits(("image/jpeg", "image/png"), encoded_bytes=10_000, edge=8000, crowd=20, crowd_edge=2000, count=100)


def picture(width: int, height: int = 10, mime: str = "image/png") -> Picture:
    return Picture(mime, Size(width, height), 500)


def is_refitted(fate: Fate | None, *facts: str) -> bool:
    """Whether an image was made anew for a reason that names these facts."""
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
def test_limits_are_those_of_the_provider(seen: Picture, length: int, others: int, why: list[str] | None) -> None:
    crowd = [inline(f"other {n}") for n in range(others)]
    table = Table(lambda source: seen if name_of(source) == "a" else PNG)
    fate, *rest = table.fates(scene(inline(length=length), *crowd), rules(ANTHROPIC))
    assert fate == Shown() if why is None else is_refitted(fate, *why)
    assert rest == [Shown()] * others


@requirement("fit.history")
def test_the_twenty_first_image_makes_an_old_one_illegal_and_only_that_one() -> None:
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
        (Limits(), 5, 10**9, Target(Limits().formats)),
        (ANTHROPIC, 20, 10**9, Target(ANTHROPIC.formats, 10_000, 8000)),
        (ANTHROPIC, 21, 0, Target(ANTHROPIC.formats, 10_000, 2000)),
        (Limits(crowd=20, crowd_edge=2000), 21, 0, Target(Limits().formats, None, 2000)),
        (Limits(edge=1000, crowd=20, crowd_edge=2000), 21, 0, Target(Limits().formats, None, 1000)),
        (Limits(request_bytes=1000), 3, 900, Target(Limits().formats)),
        (Limits(request_bytes=1000), 3, 901, Target(Limits().formats, 225)),
        (Limits(request_bytes=1000, encoded_bytes=200), 3, 901, Target(Limits().formats, 200)),
        (Limits(request_bytes=1000, encoded_bytes=500), 3, 901, Target(Limits().formats, 225)),
    ],
)
def test_what_an_image_has_to_become(limits: Limits, images: int, encoded: int, goal: Target) -> None:
    assert target(limits, images, encoded) == goal


@requirement("fit.request")
def test_images_that_are_too_heavy_together_share_the_room() -> None:
    laws = rules(Limits(request_bytes=1000))
    weights = {"a": 75, "b": 636}
    table = Table(lambda source: replace(PNG, bytes=weights[name_of(source)]))
    small, heavy, link = inline("a", 100), inline("b", 850), Link("https://a/b")
    first, second, third = table.fates(scene(small, heavy, link), laws)
    assert (first, is_refitted(second, "636", "168"), third) == (Shown(), True, Shown())
    assert table.rounds == [
        {Probe(small), Probe(heavy)},
        {Refit(heavy, Target(Limits().formats, 225, sizing=UNSIZED)), Keep(heavy)},
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
def test_a_declaration_that_lies_is_corrected(declared: str, fate: Fate) -> None:
    assert Table().fates(scene(inline(declared=declared)), rules(ANTHROPIC)) == [fate]


@requirement("fit.count", "fit.opaque")
def test_with_more_images_than_are_taken_the_oldest_are_left_out_and_kept() -> None:
    table = Table()
    one, two, three = inline("1"), inline("2"), Link("https://a/3")
    first, *rest = table.fates(scene(one, two, three, filename="old.png"), rules(Limits(count=2)))
    assert isinstance(first, Refused)
    assert first.words == absence(first.refusal, "old.png")
    assert first.refusal.code == "too_large"
    assert all(fact in first.refusal.what for fact in ("2 images", f"sha256:{'5' * 64}"))
    assert rest == [Shown(), Shown()]
    assert set(table.asked) == {Probe(two), Keep(one)}


def test_what_tools_brought_leaves_before_what_was_pasted_and_a_file_of_the_provider_leaves_last() -> None:
    held = Opaque("file_1")
    what = scene(held, inline("pasted"), inline("brought"), *(inline(each) for each in "xyz"))
    sights = (*what.sights[:2], replace(what.sights[2], role="tool"), *what.sights[3:])
    for most, left in ((5, [2]), (4, [1, 2])):
        fates = Table().fates(replace(what, sights=sights), rules(Limits(count=most)))
        assert [n for n, fate in enumerate(fates) if isinstance(fate, Refused)] == left


@requirement("fit.count", "law.2")
@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_the_newest_stay_where_there_are_too_many_and_what_has_left_stays_away(most: int) -> None:
    what = scene(*(inline(f"p{n}") for n in range(9)), *(inline(f"v{n}") for n in range(9)))
    sights = tuple(replace(each, role="user" if n < 9 else "tool") for n, each in enumerate(what.sights))
    gone: set[int] = set()
    for count in range(1, len(sights) + 1):
        fates = Table().fates(replace(what, sights=sights[:count]), rules(Limits(count=most)))
        left = {n for n, fate in enumerate(fates) if isinstance(fate, Refused)}
        assert gone <= left
        assert count - 1 not in left
        assert count - len(left) <= most
        gone = left


@requirement("fit.seldom")
def test_what_leaves_for_want_of_room_leaves_in_batches_so_that_old_images_seldom_change() -> None:
    laws = rules(Limits(count=8, request_bytes=100_000))
    left_out = []
    for images in range(8, 14):
        fates = Table().fates(scene(*(inline(chr(97 + n), 10) for n in range(images))), laws)
        left_out.append(sum(isinstance(fate, Refused) for fate in fates))
    assert left_out == [0, 2, 2, 4, 4, 6]
    shares = {target(laws.profile.limits, images, encoded=95_000).encoded_bytes for images in range(9, 17)}
    assert len(shares) == 1


@requirement("fit.opaque")
def test_what_only_the_provider_can_open_is_shown() -> None:
    table = Table()
    assert table.fates(scene(Link("https://a/b"), Opaque("file_1")), rules(ANTHROPIC)) == [Shown(), Shown()]
    assert table.asked == []


CORRUPT = Refusal("corrupt", "damaged", "attach it again")


def test_what_cannot_be_read_becomes_a_sentence() -> None:
    (fate,) = Table(CORRUPT).fates(scene(inline()), rules())
    assert fate == Refused(absence(CORRUPT), CORRUPT)


def test_what_cannot_be_refitted_becomes_a_sentence() -> None:
    (fate,) = Table(picture(9000), refit=CORRUPT).fates(scene(inline()), rules(ANTHROPIC))
    assert isinstance(fate, Refused)
    assert fate.refusal == CORRUPT


def test_a_provider_that_choked_on_some_image_gets_only_images_that_decode() -> None:
    good, bad = inline("good"), inline("bad")
    table = Table(lambda source: CORRUPT if source == bad else PNG)
    shown, refused = table.fates(scene(good, bad), rules(ANTHROPIC, distrust=True))
    assert table.rounds == [{Check(good), Check(bad)}]
    assert shown == Shown()
    assert isinstance(refused, Refused)


def test_images_that_decode_and_were_refused_are_encoded_anew() -> None:
    table = Table()
    (fate,) = table.fates(scene(inline()), rules(ANTHROPIC, distrust=True, recode=True))
    assert is_refitted(fate)
    assert table.rounds == [
        {Check(inline())},
        {Refit(inline(), Target(ANTHROPIC.formats, 10_000, 8000, sizing=UNSIZED)), Keep(inline())},
    ]


@requirement("fit.presized")
def test_what_is_made_anew_is_made_so_that_the_provider_does_not_resize_it_again() -> None:
    table = Table(Picture("image/png", Size(9000, 600), 500))
    laws = Rules(Profile("up", "anthropic", "m", limits=ANTHROPIC, sizing=Padded()))
    table.fates(scene(inline()), laws)
    (refit,) = [need for need in table.asked if isinstance(need, Refit)]
    made = refit.target.largest(Size(9000, 600))
    assert seen(made, Padded()) == made
    assert made.edge > 1500


def test_an_image_within_the_limits_goes_on_though_the_provider_will_resize_it() -> None:
    table = Table(Picture("image/png", Size(4000, 600), 500))
    laws = Rules(Profile("up", "anthropic", "m", limits=ANTHROPIC, sizing=Padded()))
    assert table.fates(scene(inline()), laws) == [Shown()]


def test_an_image_that_the_provider_named_is_left_out_and_not_opened_again() -> None:
    table = Table()
    named, other = table.fates(scene(inline("named"), inline("other")), rules(poison=frozenset({inline("named").key})))
    assert isinstance(named, Refused)
    assert named.refusal.code == "corrupt"
    assert other == Shown()
    assert table.asked == [Probe(inline("other"))]


def test_a_blind_model_s_images_are_not_fitted() -> None:
    sights = scene(inline())
    assert fit(sights, Facts(), BLIND) is sights


def test_the_same_image_in_two_places_is_asked_for_once() -> None:
    outcome = fit(scene(inline(), inline()), Facts(), rules())
    assert outcome == Needs(frozenset({Probe(inline())}))
