"""What a peer says of images, and what a client does with it."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

import sightline
from sightline.model.image import Image
from sightline.model.media_capability import PROMISES, AudioCapability, ImageCapability, Promise
from tests.pixels.bitmaps import flag, photo, saved
from tests.requirements import requirement

ALL = {
    "maxBytes": 5_242_880,
    "maxDimension": 8000,
    "downsampleTargetBytes": 524_288,
    "autoHandlesOversized": True,
    "autoHandlesWrongModel": False,
}
READ = ImageCapability(5_242_880, 8000, 524_288, auto_handles_oversized=True, auto_handles_wrong_model=False)
PHOTO = saved(photo(900, 700), "image/jpeg", quality=95)


@requirement("capability.read", "capability.fields")
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize(
    "result",
    [
        {"_meta": {"imageCapability": ALL}},
        {"agentCapabilities": {"_meta": {"imageCapability": ALL}}},
        {"capabilities": {"session": {"prompt": {"image": {"_meta": {"imageCapability": ALL}}}}}},
        {"_meta": {"sudocode": {"imageCapability": ALL}}},
        {"_meta": {"imageCapability": ALL, "sudocode": {"imageCapability": {"maxBytes": 1}}}},
    ],
)
def test_a_capability_is_read_from_every_place_that_peers_use(result: dict[str, Any], wrapped: bool) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": result} if wrapped else result
    assert sightline.read_image_capability(answer) == READ
    assert READ.as_dict() == ALL


@requirement("capability.read")
@pytest.mark.parametrize(
    "answer", [None, 7, [], {}, {"_meta": None}, {"_meta": {"imageCapability": 5}}, {"result": {}}]
)
def test_a_missing_capability_is_silent(answer: object) -> None:
    assert sightline.read_image_capability(answer) is None
    assert sightline.read_audio_capability(answer) is None


@requirement("capability.read")
def test_every_field_is_optional_and_invalid_ones_are_ignored() -> None:
    said = {"maxBytes": -5, "maxDimension": "wide", "downsampleTargetBytes": True, "autoHandlesOversized": 1}
    assert sightline.read_image_capability({"_meta": {"imageCapability": said}}) == ImageCapability()
    some = {"_meta": {"imageCapability": {"maxDimension": 100, "later": {}}}}
    assert sightline.read_image_capability(some) == ImageCapability(max_dimension=100)
    assert ImageCapability().as_dict() == {}


@requirement("capability.numbers")
def test_whole_numbers_are_read_in_every_json_form() -> None:
    said = json.loads('{"maxBytes": 5242880.0, "maxDimension": 8e3, "downsampleTargetBytes": 5.24288E5}')
    found = sightline.read_image_capability({"_meta": {"imageCapability": said}})
    assert found == ImageCapability(5_242_880, 8000, 524_288)
    assert json.dumps(found.as_dict()) == '{"maxBytes": 5242880, "maxDimension": 8000, "downsampleTargetBytes": 524288}'
    wrong = json.loads('{"maxBytes": 1e999, "maxDimension": 0.5, "downsampleTargetBytes": NaN}')
    assert sightline.read_image_capability({"_meta": {"imageCapability": wrong}}) == ImageCapability()
    sound = sightline.read_audio_capability({"_meta": {"audioCapability": {"maxDurationMs": 6e4}}})
    assert sound == AudioCapability(max_duration_ms=60_000)


@requirement("capability.merged")
def test_fields_are_merged_and_the_first_place_wins() -> None:
    full = {"maxBytes": 1000, "maxDimension": 500, "autoHandlesOversized": True}
    for hiding in ({}, {"maxBytes": None}, {"maxBytes": "many"}, {"unknown": 1}):
        answer = {"_meta": {"imageCapability": hiding}, "agentCapabilities": {"_meta": {"imageCapability": full}}}
        assert sightline.read_image_capability(answer) == ImageCapability(1000, 500, auto_handles_oversized=True)
    partly = {"maxBytes": 700}
    answer = {"_meta": {"imageCapability": partly, "sudocode": {"imageCapability": full}}}
    assert sightline.read_image_capability(answer) == ImageCapability(700, 500, auto_handles_oversized=True)
    silent = {"_meta": {"audioCapability": {}, "sudocode": {"audioCapability": {"maxBytes": 5}}}}
    assert sightline.read_audio_capability(silent) == AudioCapability(max_bytes=5)


@requirement("capability.target.clamped")
def test_the_target_is_never_above_the_limit() -> None:
    for place in ({"maxBytes": 1000, "downsampleTargetBytes": 4000}, {"maxBytes": 1e3, "downsampleTargetBytes": 4e3}):
        found = sightline.read_image_capability({"_meta": {"imageCapability": place}})
        assert found == ImageCapability(1000, None, 1000)
    assert ImageCapability(1000, None, 4000).downsample_target_bytes == 1000
    assert AudioCapability(1000, None, 4000).downsample_target_bytes == 1000


@requirement("capability.audio")
def test_an_audio_capability_has_a_duration_instead_of_a_size() -> None:
    said = {"maxBytes": 9, "maxDurationMs": 60_000, "autoHandlesOversized": False}
    places = [{"_meta": {"audioCapability": said}}, {"agentCapabilities": {"_meta": {"audioCapability": said}}}]
    for place in places:
        found = sightline.read_audio_capability(place)
        assert found == AudioCapability(max_bytes=9, max_duration_ms=60_000, auto_handles_oversized=False)
        assert found.as_dict() == said


NAMES = st.sampled_from(["_meta", "imageCapability", "agentCapabilities", "result", "maxBytes", "sudocode"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner)))
def test_any_response_can_be_parsed(answer: object) -> None:
    found = sightline.read_image_capability(answer)
    assert found is None or isinstance(found, ImageCapability)


def fitted(capability: object, data: bytes = PHOTO, **more: Any) -> Image:
    made = sightline.fit_for(capability, data, **more)  # type: ignore[arg-type]
    assert isinstance(made, Image), made
    return made


@requirement("capability.fit_for", "library.fit_for")
@pytest.mark.parametrize(
    "capability",
    [
        None,
        {},
        ImageCapability(),
        {"maxBytes": 1000, "autoHandlesOversized": True},
        {"maxBytes": 10_000_000, "maxDimension": 900},
        {"downsampleTargetBytes": 1000},
    ],
)
def test_an_image_that_needs_no_fitting_is_unchanged(capability: object) -> None:
    made = fitted(capability)
    assert made.data is PHOTO
    assert (made.mime, made.size.width) == ("image/jpeg", 900)


@requirement("capability.fit_for.target", "capability.base64", "library.fit_for")
@pytest.mark.parametrize(
    ("capability", "most", "edge"),
    [
        ({"maxBytes": 60_000}, 45_000, 900),
        ({"maxBytes": 60_000, "downsampleTargetBytes": 20_000}, 20_000, 900),
        ({"maxBytes": 60_000, "downsampleTargetBytes": 500_000}, 45_000, 900),
        ({"maxDimension": 300}, 10**9, 300),
        ({"maxDimension": 300, "downsampleTargetBytes": 9000, "autoHandlesOversized": False}, 9000, 300),
    ],
)
def test_an_image_over_a_limit_is_refitted_to_the_target(capability: dict[str, Any], most: int, edge: int) -> None:
    made = fitted(capability)
    assert len(made.data) <= most
    assert made.size.edge <= edge
    assert Pillow.open(BytesIO(made.data)).size == (made.size.width, made.size.height)
    assert abs(made.size.width / made.size.height - 9 / 7) < 0.05
    assert fitted(capability) == made


@requirement("capability.base64")
def test_the_base64_text_counts_against_the_limit() -> None:
    data = saved(flag(400, 300), "image/bmp")
    assert fitted({"maxBytes": len(data) * 2}, data).data is data
    assert fitted({"maxBytes": len(data) + 100}, data).data is not data


SAID = {"maxBytes": 60_000, "autoHandlesOversized": True, "autoHandlesWrongModel": True}
OVERSIZED: Promise = "autoHandlesOversized"
WRONG_MODEL: Promise = "autoHandlesWrongModel"


@requirement("capability.trust")
def test_the_promises_of_a_trusted_peer_count() -> None:
    assert fitted(SAID, trust="trust").data is PHOTO
    assert sightline.may_send(SAID, PHOTO, sees=False, trust="trust")


@requirement("capability.verify")
def test_the_promises_of_a_verified_peer_count_once_it_kept_them() -> None:
    assert len(fitted(SAID, trust="verify").data) <= 45_000
    assert len(fitted(SAID, trust="verify", verified=[WRONG_MODEL]).data) <= 45_000
    assert fitted(SAID, trust="verify", verified=[OVERSIZED]).data is PHOTO
    assert not sightline.may_send(SAID, PHOTO, trust="verify")
    assert sightline.may_send(SAID, PHOTO, trust="verify", verified=[OVERSIZED])
    assert not sightline.may_send(SAID, sees=False, trust="verify", verified=[OVERSIZED])
    assert sightline.may_send(SAID, sees=False, trust="verify", verified=[WRONG_MODEL])
    unsaid = {"maxBytes": 60_000}
    assert len(fitted(unsaid, trust="verify", verified=[OVERSIZED]).data) <= 45_000


@requirement("capability.ignore")
def test_the_capability_of_an_ignored_peer_does_not_count() -> None:
    for verified in ((), (OVERSIZED, WRONG_MODEL)):
        assert fitted(SAID, trust="ignore", verified=verified).data is PHOTO
        assert fitted({"maxDimension": 9}, trust="ignore", verified=verified).data is PHOTO
        assert sightline.may_send({"maxDimension": 9}, PHOTO, trust="ignore", verified=verified)
        assert not sightline.may_send(SAID, sees=False, trust="ignore", verified=verified)


@requirement("capability.trust", "capability.verify", "capability.ignore")
@pytest.mark.parametrize(
    ("trust", "warns"), [("trust", [False, False]), ("verify", [True, True]), ("ignore", [False, True])]
)
def test_the_setting_decides_how_far_a_peer_is_trusted(
    trust: str, warns: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_TRUST_PEER_CAPABILITY", trust)
    assert [not sightline.may_send(SAID, PHOTO), not sightline.may_send(SAID, sees=False)] == warns
    assert (fitted(SAID).data is not PHOTO) == (trust == "verify")
    assert fitted(SAID, trust="trust").data is PHOTO, "what the caller says stands over the setting"


@requirement("capability.may_send", "capability.may_send.blind")
def test_may_send_says_whether_to_warn() -> None:
    assert sightline.may_send(None, PHOTO)
    assert sightline.may_send(None, sees=True)
    assert sightline.may_send(None, sees=None)
    blind = sightline.may_send(None, sees=False)
    assert (blind.ok, "900x700" in blind.warning, bool(blind.warning)) == (False, False, True)
    assert sightline.may_send({"autoHandlesWrongModel": True}, sees=False)
    large = sightline.may_send({"maxDimension": 500}, PHOTO)
    assert (large.ok, "900x700" in large.warning) == (False, True)
    assert sightline.may_send({"maxDimension": 500, "autoHandlesOversized": True}, PHOTO)
    assert not sightline.may_send(None, b"not an image")


def test_damaged_image_data_is_refused() -> None:
    assert isinstance(sightline.fit_for(None, b"not an image"), sightline.Failure)
    assert isinstance(sightline.fit_for({"maxBytes": 100}, PHOTO[:5000]), sightline.Failure)


@pytest.mark.parametrize("image", ["text", None, 7, [b"x"], object()])
def test_an_argument_that_is_not_an_image_is_refused(image: Any) -> None:
    refusal = sightline.fit_for(None, image)
    assert isinstance(refusal, sightline.Failure)
    assert refusal.reason == ("not_found" if image == "text" else "invalid_input"), "a text is the path of a file"
    if image is not None:
        assert not sightline.may_send(None, image)


@requirement("capability.arguments")
@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        *(({"capability": capability}, ["read_image_capability"]) for capability in (7, "maxBytes", [], [1], object())),
        *(({"trust": trust}, ["trust, verify, ignore"]) for trust in ("x", "", 7, ["trust"])),
        *(({"verified": verified}, list(PROMISES)) for verified in ("x", "autoHandlesOversized", 7, [["x"]], {"x": 1})),
    ],
)
def test_an_invalid_argument_is_refused_with_the_valid_ones(wrong: Any, names: list[str]) -> None:
    data = saved(flag(9, 9), "image/png")
    given: dict[str, Any] = {"capability": SAID, "image": data, **wrong}
    no = sightline.fit_for(**given)
    assert isinstance(no, sightline.Failure)
    assert no.reason == "invalid_input"
    assert all(name in no.message for name in names)
    assert sightline.may_send(**given) == sightline.SendDecision(ok=False, warning=no.message)
    assert str(sightline.may_send(**given)) == no.message
