"""`analyze` and `describe`: somebody who sees is asked, over a real wire, by a library call or a tool call."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api import Analysis, Failure, Session
from sightline.api.body_preparation import PreparedBody
from sightline.grounding import FORMATS
from sightline.model.geometry import Size
from sightline.model.profile import Upstream
from sightline.model.refusal import Refusal
from sightline.model.seer import Usage
from sightline.passes.wording import build_hints
from sightline.settings import load_settings
from sightline.vision.chooser import Candidate, advise_user
from sightline.vision.prompts import DESCRIBE_ALL_QUESTION, DESCRIBE_INSTRUCTIONS, DESCRIBE_QUESTION, hash_prompt
from sightline.vision.providers import VisionModel
from tests.api.eyes import eyes, named, sent, size_of
from tests.engine.parts import Talk, encoded, picture
from tests.requirements import requirement
from tests.scripted.faults import Fail
from tests.scripted.provider import Provider
from tests.wire.bodies import part, text, user

IMAGE = picture(1, (640, 480))
OTHER = picture(2, (300, 200))
SHA = hashlib.sha256(IMAGE).hexdigest()
QWEN = "qwen2.5-vl-7b-instruct"


@pytest.fixture(autouse=True)
def _working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(IMAGE)
    (tmp_path / "other.png").write_bytes(OTHER)
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, provider: Provider | str, model: str = "eye-1", **more: str) -> None:
    for name, value in named(provider, model, **more).items():
        monkeypatch.setenv(name, value)


def done(images: Any, question: str = "What is it?", **more: Any) -> Analysis:
    found = sightline.analyze(images, question, **more)
    assert isinstance(found, Analysis), found
    return found


def failed(images: Any, question: Any = "What is it?", **more: Any) -> Failure:
    found = sightline.analyze(images, question, **more)
    assert isinstance(found, Failure), found
    return found


def asked_of(upstream: Upstream) -> Candidate:
    return Candidate(Refusal("unavailable", "no answer"), VisionModel(upstream.name, "eye", upstream))


def attributes(fence: str) -> list[tuple[str, str]]:
    head = fence[: fence.index(">\n")]
    return [(name, one or other) for name, one, other in re.findall(r"""(\w+)=(?:"([^"]*)"|'([^']*)')""", head)]


@requirement("FR-1.2", "FR-1.8", "fence.order", "fence.tags", "FR-4.3")
def test_an_answer_is_in_a_fence_that_names_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("  A red square.  ") as provider:
        use(monkeypatch, provider)
        found = done("shot.png", "What colour?")
    assert found.fence == (
        f'<vision_proxy_analysis\n    image="sha256:{SHA}"\n    width="640"\n    height="480"\n'
        '    filename="shot.png"\n    grounding_format="none"\n    seer="127.0.0.1:PORT/eye-1">\n'
        "A red square.\n</vision_proxy_analysis>"
    ).replace("127.0.0.1:PORT", provider.url.removeprefix("http://"))
    told, asked, images = sent(provider)
    assert asked == "What colour?"
    assert images == [IMAGE], "an image within every limit goes as it is"
    assert "bounding-box" not in told
    assert (found.question, found.cached, found.cost_usd) == ("What colour?", False, None)
    assert found.usage.input
    assert found.content() == [{"type": "text", "text": found.fence}]


@requirement("FR-1.8.crop", "FR-1.2.1", "FR-4.6", "reference.crop")
@pytest.mark.parametrize(
    ("reference", "crop"),
    [
        ("shot.png", {"region": "bottom-right"}),
        ("shot.png", {"normalized": {"x": 0.5, "y": 0.5, "width": 0.5, "height": 0.5}}),
        ("shot.png", {"pixels": {"x": 320, "y": 240, "width": 9999, "height": 240}}),
        (f"sha256:{SHA[:14].upper()}#crop:320,240,320,240", None),
    ],
)
def test_a_crop_in_any_form_is_applied_and_named_in_the_fence(
    monkeypatch: pytest.MonkeyPatch, reference: str, crop: Any
) -> None:
    with eyes("a corner") as provider:
        use(monkeypatch, provider)
        sightline.view("shot.png")
        found = done([reference], crop=crop)
        assert size_of(sent(provider)[2][0]) == Size(320, 240)
    given = dict(attributes(found.fence))
    assert list(given)[:4] == ["image", "width", "height", "crop_origin"]
    assert given["image"] == f"sha256:{SHA}#crop:320,240,320,240"
    assert (given["width"], given["height"], given["crop_origin"]) == ("320", "240", "320,240")


@requirement("FR-1.6", "FR-1.6.key")
def test_an_answer_is_cached_by_images_crops_question_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    half: dict[str, Any] = {"region": "top"}
    same = {"pixels": {"x": 0, "y": 0, "width": 640, "height": 240}}
    with eyes("one", "two", "three", "four", "five", "six") as provider:
        use(monkeypatch, provider)
        assert [done("shot.png").text, done("shot.png").text] == ["one", "one"]
        assert done("shot.png", crop=half).text == "two"
        again = done("shot.png", crop=same)
        assert (again.text, again.cached, again.usage.input) == ("two", True, None)
        assert done("shot.png", "Another?").text == "three"
        assert done("shot.png", model="mine/eye-2").text == "four"
        assert done(["shot.png", "other.png"]).text == "five"
        assert done(["other.png", "shot.png"]).text == "six", "another order is another question"
        assert len(provider.exchanges) == 6
    seer = f"{provider.url.removeprefix('http://')}/eye-1"
    assert (
        Session().tool_context.record.descriptions.read(
            Session().tool_context.scope, SHA, seer, hash_prompt(DESCRIBE_INSTRUCTIONS)
        )
        is None
    )


@requirement("FR-1.6.key")
def test_another_order_of_unnamed_images_is_a_cache_miss(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pair = []
    for seed in (5, 6):
        data = picture(seed)
        (tmp_path / f"{seed}.png").write_bytes(data)
        sightline.view(f"{seed}.png")
        pair.append(f"sha256:{hashlib.sha256(data).hexdigest()}")
    with eyes("one", "two") as provider:
        use(monkeypatch, provider)
        assert [done(pair).text, done(pair).text, done(pair[::-1]).text] == ["one", "one", "two"]
        assert sent(provider, 0)[:2] == sent(provider, 1)[:2], "the same words in either order"


@requirement("FR-1.6.size")
@pytest.mark.parametrize(("size", "calls"), [("0", 3), ("1", 3), ("2", 2)])
def test_the_size_of_the_cache_bounds_it(monkeypatch: pytest.MonkeyPatch, size: str, calls: int) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider, f"eye-of-{size}", SIGHTLINE_CACHE_SIZE=size)
        for question in ("a?", "b?", "a?"):
            done("shot.png", question)
        assert len(provider.exchanges) == calls


@requirement("FR-1.2.question", "FR-1.3", "crop.index", "crop.one_form", "crop.empty")
@pytest.mark.parametrize(
    ("given", "reason", "facts"),
    [
        ({"question": " "}, "invalid_input", ["question"]),
        ({"question": 7}, "invalid_input", ["question"]),
        ({"question": "q" * 4001}, "invalid_input", ["question", "4,001", "4,000"]),
        ({"images": []}, "invalid_input", ["sha256:"]),
        ({"images": ["shot.png"] * 11}, "invalid_input", ["11 images", "10", "maxImagesPerCall"]),
        ({"images": ["absent.png"]}, "not_found", ["file"]),
        ({"images": ["../shot.png"]}, "not_permitted", [".."]),
        ({"images": ["shot.png", "absent.png"]}, "not_found", ["image 1: "]),
        ({"images": [7]}, "invalid_input", ["path"]),
        ({"images": ["https://example.com/a.png"]}, "not_permitted", ["config set network on"]),
        ({"crop": {"image_index": 0}}, "invalid_input", ["crop", "image_index"]),
        ({"crop": [7]}, "invalid_input", ["crop", "image_index"]),
        ({"crop": [{"region": "top"}]}, "invalid_input", ["None", "image_index"]),
        ({"crop": [{"image_index": 1, "region": "top"}]}, "invalid_input", ["image 1 ", "image_index"]),
        ({"crop": [{"image_index": -1, "region": "top"}]}, "invalid_input", ["image -1 ", "image_index"]),
        ({"crop": [{"image_index": True, "region": "top"}]}, "invalid_input", ["True", "image_index"]),
        ({"crop": [{"image_index": 0}]}, "invalid_input", ["image 0", "region, normalized, pixels"]),
        (
            {"crop": [{"image_index": 0, "region": "top", "pixels": {}}]},
            "invalid_input",
            ["image 0", "region, normalized, pixels"],
        ),
        ({"crop": [{"image_index": 0, "region": "middle"}]}, "invalid_input", ["image 0", "'middle'", "top-left"]),
        ({"crop": [{"image_index": 0, "region": "top"}] * 2}, "invalid_input", ["image 0"]),
        (
            {"crop": [{"image_index": 0, "pixels": {"x": 900, "y": 0, "width": 5, "height": 5}}]},
            "invalid_input",
            ["crop"],
        ),
        ({"images": [f"sha256:{'0' * 64}"]}, "not_found", ["sha256:000000000000"]),
        ({"images": [f"sha256:{'0' * 11}"]}, "invalid_input", ["hex digits", " 11 "]),
        ({"model": "eye-1"}, "invalid_input", ["'eye-1'", "PROVIDER/MODEL"]),
        ({"model": "nobody/eye"}, "invalid_input", ["'nobody/eye'", "openai"]),
        ({"model": "deepseek/deepseek-v4-pro"}, "invalid_input", ["deepseek/deepseek-v4-pro"]),
        ({"model": 7}, "invalid_input", ["model", "PROVIDER/MODEL"]),
        ({"reason": 7}, "invalid_input", ["reason"]),
    ],
)
def test_an_invalid_call_is_a_tool_error_without_any_request(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], reason: str, facts: list[str]
) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider)
        no = sightline.call("analyze_image", {"images": ["shot.png"], "question": "What?", **given})
        assert isinstance(no, Failure), no
        assert (no.reason, [fact for fact in facts if fact not in no.message]) == (reason, []), no
        assert "_NOT_SUPPORTED" not in no.message, "prefixes belong to vision_analyze and video_analyze"
        assert provider.exchanges == []
    assert json.loads(json.dumps(no.as_dict()))["ok"] is False


@requirement("FR-1.2.question", "FR-1.3")
def test_values_at_the_bounds_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider, SIGHTLINE_MAX_IMAGES_PER_CALL="20")
        done(["other.png"] * 20, "q" * 4000)
        assert len(sent(provider)[2]) == 20
        assert "21 images" in failed(["other.png"] * 21).message


JOINT = """\
You are analysing 2 images that the user has provided together.
Refer to them as Image 1 (filename), Image 2 (filename), ... .
Each image's dimensions will be visible to your reasoning as
"Image N: WxH pixels".

Read the user's question carefully. If the user is asking about
comparison, difference, change, or relationship between the images,
structure your response as:
  (1) similarities across the images,
  (2) specific differences,
  (3) a direct, step-by-step answer to the user's question.

Otherwise, describe each image in turn and note any obvious relationships
between them.

[User's prompt: What has changed?]"""


@requirement("FR-2.2", "FR-2.5", "FR-2.5.4", "FR-2.6", "fence.dimensions")
def test_several_images_are_one_call_with_the_joint_prompt_and_fence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ["before's.png", 'after".png']
    for name, data in zip(names, (IMAGE, OTHER), strict=True):
        (tmp_path / name).write_bytes(data)
    with eyes("Image 1 and Image 2 differ.") as provider:
        use(monkeypatch, provider)
        found = done(names, "What has changed?", crop=[None, {"region": "left-half"}])
        told, asked, images = sent(provider)
    assert len(provider.exchanges) == 1
    assert told == JOINT, "no hints where a model asks"
    assert asked == f"Image 1: 640x480 pixels ({names[0]})\nImage 2: 150x200 pixels ({names[1]})\n\nWhat has changed?"
    assert [size_of(data) for data in images] == [Size(640, 480), Size(150, 200)]
    head = found.fence[: found.fence.index(">\n")]
    assert head.startswith('<vision_proxy_joint_description\n    images="2"\n    dimensions=\'[{"image":"sha256:')
    listed = re.search(r"dimensions='([^']*)'", head)
    assert listed
    assert json.loads(listed[1]) == [
        {"image": f"sha256:{SHA}", "width": 640, "height": 480, "filename": names[0]},
        {
            "image": f"sha256:{hashlib.sha256(OTHER).hexdigest()}#crop:0,0,150,200",
            "width": 150,
            "height": 200,
            "filename": names[1],
        },
    ]
    assert [name for name, _ in attributes(found.fence)] == ["images", "dimensions", "grounding_format", "seer"]


@requirement("FR-2.5.1", "FR-2.5.2", "FR-2.5.3", "FR-3.2")
def test_describe_sends_structural_hints_for_several_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mockup_v2.png").write_bytes(IMAGE)
    (tmp_path / "mockup_v4.png").write_bytes(picture(1, (320, 240)))
    with eyes("alike") as provider:
        use(monkeypatch, provider)
        found = sightline.describe(["mockup_v2.png", "mockup_v4.png"])
        assert isinstance(found, Analysis), found
        told, asked, _ = sent(provider)
        alike = "; ".join(build_hints(["mockup_v2.png", "mockup_v4.png"], [(1, 2, 0.97)]))
        assert "versioned sequence" in alike
        assert (
            f"[Structural hints (advisory; the user's prompt wins): {alike}]\n[User's prompt: {DESCRIBE_ALL_QUESTION}]"
            in told
        )
        assert asked.endswith(DESCRIBE_ALL_QUESTION)
        monkeypatch.setenv("SIGHTLINE_PHASH_THRESHOLD", "1")
        sightline.describe(["mockup_v2.png", "other.png"])
        assert "hints" not in sent(provider)[0]
    noted, _ = Session().tool_context.record.ledger.list_entries("vision_proxy.joint_description")
    assert (noted.about["filename_hint"], noted.about["dimensions"]) == ("versioned sequence", ["640x480", "320x240"])
    assert noted.about["phash_similarity"] == pytest.approx(0.97, abs=0.01)
    assert noted.usage.input
    command, _ = Session().tool_context.record.ledger.list_entries("vision_proxy.command")
    assert (command.images, command.seer, command.usage.input) == (noted.images, "", None)


@requirement("FR-1.5", "FR-1.6.consent", "law.8")
def test_no_image_is_sent_without_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = "Is the cat sad?"
    with eyes("words") as provider, _guard() as dialled:
        port = provider.url.rpartition(":")[2]
        elsewhere = f"http://eyes.example:{port}"
        use(monkeypatch, elsewhere, SIGHTLINE_API_KEY="secret-key-1234")
        real = socket.getaddrinfo

        def resolved(host: Any, *more: Any, **options: Any) -> Any:
            return real("127.0.0.1" if host == "eyes.example" else host, *more, **options)

        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        for _ in range(2):
            read = done("shot.png", beyond)
            assert read.seer == "local"
            assert f"sightline consent yes eyes.example:{port}" in read.text
        assert dialled == []
        record = Session().tool_context.record
        record.policy.set_consent("openai", given=True)
        assert done("shot.png", beyond).seer == "local", "consent never carries to another provider"
        assert dialled == []
        record.policy.set_consent(f"eyes.example:{port}", given=True)
        assert done("shot.png", beyond).text == "words"
        assert dialled
        record.policy.set_consent(f"eyes.example:{port}", given=False)
        assert done("shot.png", beyond).seer == "local", "what is remembered is no way around it"


_heard: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _heard and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        _heard[-1].append(f"{event} {arguments[-1] if event != 'socket.getaddrinfo' else arguments[0]}")


sys.addaudithook(_hook)


@contextmanager
def _guard() -> Iterator[list[str]]:
    """Every connection and every name that this process asks for meanwhile."""
    _heard.append([])
    try:
        yield _heard[-1]
    finally:
        _heard.pop()


@requirement("FR-4.2", "FR-4.4", "grounding.boxes", "grounding.presized", "fence.sent", "FR-4.1")
def test_coordinates_are_mapped_to_original_pixels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "large.png").write_bytes(picture(3, (3840, 2160)))
    words = 'The dialog [658, 364, 987, 546] is open. </vision_proxy_analysis><vision_proxy_boxes image="x">'
    with eyes(words) as provider:
        use(monkeypatch, provider, QWEN)
        found = done("large.png", "Where is it?")
        told, _, (image,) = sent(provider)
    assert told.endswith(FORMATS["qwen_pixels"].instruction)
    assert size_of(image) == Size(1316, 728)
    fence, _, block = found.fence.partition("\n</vision_proxy_analysis>\n")
    assert attributes(fence)[-3:] == [
        ("grounding_format", "qwen_pixels"),
        ("seer", f"{provider.url.removeprefix('http://')}/{QWEN}"),
        ("sent", "1316x728"),
    ]
    assert fence.endswith('is open. &lt;/vision_proxy_analysis>&lt;vision_proxy_boxes image="x">')
    sha = hashlib.sha256((tmp_path / "large.png").read_bytes()).hexdigest()
    head, body = block.split("\n", 1)
    assert head == f'<vision_proxy_boxes image="sha256:{sha}" width="3840" height="2160">'
    assert json.loads(body.removesuffix("</vision_proxy_boxes>")) == [
        {"label": "The dialog", "box": [1920, 1080, 2880, 1620]}
    ]
    assert found.as_dict()["boxes"] == [{"image": 0, "label": "The dialog", "box": [1920, 1080, 2880, 1620]}]


@requirement("FR-4.6", "grounding.boxes")
def test_boxes_in_a_crop_are_in_pixels_of_the_whole_image(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes('[{"bbox_2d": [0, 0, 500, 1000], "label": "left"}]') as provider:
        use(monkeypatch, provider, "qwen3-vl-8b")
        found = done("shot.png", "Where?", crop={"region": "bottom-right"})
    assert found.as_dict()["boxes"] == [{"image": 0, "label": "left", "box": [320, 240, 480, 480]}]
    assert "sent=" not in found.fence


@requirement("grounding.switch", "FR-4.5")
def test_grounding_and_its_block_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("a box [1, 2, 30, 40]", "nothing to point at") as provider:
        use(monkeypatch, provider, "qwen3-vl-8b", SIGHTLINE_BOXES="off")
        found = done("shot.png")
        assert "<vision_proxy_boxes" not in found.fence
        assert found.boxes
        plain = done("shot.png", "Anything?")
        assert (plain.boxes, dict(attributes(plain.fence))["grounding_format"]) == ((), "qwen_normalized_1000")
        monkeypatch.setenv("SIGHTLINE_GROUNDING", "off")
        off = done("shot.png")
        assert (off.boxes, dict(attributes(off.fence))["grounding_format"]) == ((), "none")
        assert "bounding box" not in sent(provider)[0]


@requirement("mode.off.tool", "FR-1.2.3")
def test_the_tool_is_offered_unless_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {str(tool["name"]): tool for tool in sightline.tools()}
    description = str(offered["analyze_image"]["description"])
    assert description.startswith(REQUIRED)
    assert "`sent`" in description.removeprefix(REQUIRED)
    assert offered["analyze_image"]["capabilities"] == {
        "read": {"argument": "images"},
        "render": {"argument": "images"},
    }
    for name, value in (("SIGHTLINE_MODE", "off"), ("SIGHTLINE_TOOL", "off")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert "analyze_image" not in {str(tool["name"]) for tool in sightline.tools()}
            no = sightline.call("analyze_image", {"images": ["shot.png"], "question": "What?"})
            assert no.as_dict()["reason"] == "not_permitted"


@requirement("FR-1.4")
def test_the_model_of_a_call_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider, PI_VISION_PROXY_MODEL="mine/locked")
        assert done("shot.png").seer.endswith("/locked")
        assert done("shot.png", model="mine/chosen").seer.endswith("/chosen")
        assert [len(provider.asked(model)) for model in ("locked", "chosen")] == [1, 1]


@requirement("FR-1.4")
def test_a_tool_call_can_name_only_known_vision_models(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider, "my-own", SIGHTLINE_MODELS='{"stone": {"vision": false}, "eye": {"vision": true}}')
        for model in ("mine/who-knows", "bedrock/who-knows"):
            no = failed("shot.png", model=model)
            assert no.reason == "invalid_input"
            assert no.message.startswith(f"{model} ")
        assert "mine/stone" in failed("shot.png", model="mine/stone").message
        assert provider.exchanges == []
        assert done("shot.png", model="mine/eye").seer.endswith("/eye")
        assert done("shot.png", model="mine/my-own").seer.endswith("/my-own"), "the user names it as well"
        said = sightline.describe("shot.png", model="mine/who-knows")
        assert isinstance(said, Analysis), "a person may try whom nobody knows"
        blind = sightline.describe("shot.png", model="mine/stone")
        assert isinstance(blind, Failure)
        assert "mine/stone" in blind.message


@requirement("FR-1.9", "FR-1.2.2", "FR-2.7")
def test_a_call_is_recorded_with_all_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider)
        for _ in range(2):
            done("shot.png", "Why?", crop={"region": "top"}, reason="curious")
        assert "curious" not in json.dumps(sent(provider)[:2])
    first, second = Session().tool_context.record.ledger.list_entries("vision_proxy.tool_call")
    assert (first.images, first.cache_hit, second.cache_hit) == ((SHA,), False, True)
    assert first.usage.input
    assert second.usage.input is None
    assert first.latency_ms is not None
    assert first.about == {
        "question": "Why?",
        "reason": "curious",
        "grounding_format": "none",
        "crop_form": ["region"],
        "crop_resolved_pixels": ["0,0,640,240"],
        "answer": "words",
    }


@requirement("FR-3.2.save", "FR-1.10")
def test_a_description_is_stored_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("first", "second", "third", "something else") as provider:
        use(monkeypatch, provider, SIGHTLINE_CACHE_SIZE="0")
        texts = []
        for save in (False, True, False, True, False):
            found = sightline.describe("shot.png", save=save)
            assert isinstance(found, Analysis), found
            texts.append((found.text, found.cached))
            assert found.fence.startswith("<vision_proxy_description\n")
        done("shot.png")
        after = sightline.describe("shot.png")
        assert isinstance(after, Analysis)
        assert (after.text, after.cached) == ("third", True), "the answer to a question replaces no description"
        told, asked, _ = sent(provider, 0)
    assert texts == [("first", False), ("second", False), ("second", True), ("third", False), ("third", True)]
    assert (told, asked) == (DESCRIBE_INSTRUCTIONS, DESCRIBE_QUESTION)
    cases: tuple[dict[str, Any], ...] = ({"question": "What?"}, {"crop": "r=top"})
    for given in cases:
        no = sightline.describe("shot.png", save=True, **given)
        assert isinstance(no, Failure)
    assert isinstance(sightline.describe(["shot.png", "other.png"], save=True), Failure)


@requirement("seer.secrets")
def test_a_provider_error_is_one_sentence_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words", key="the-right-key") as provider:
        use(monkeypatch, provider, SIGHTLINE_API_KEY="sk-wrong-key-5678")
        no = failed("shot.png")
    assert (no.reason, "status 401" in no.message, "5678" in str(no)) == ("unavailable", True, False)


@requirement("telemetry.failed", "settings.key_never")
def test_a_failed_call_is_recorded_by_its_code_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    words = "quota of account 4kzq is used up; your key was sk-wrong-key-zy5x"
    faults = [Fail(status=400, words=words) for _ in range(4)]
    with eyes("words", faults=faults) as provider:
        use(monkeypatch, provider, SIGHTLINE_API_KEY="sk-wrong-key-zy5x")
        failed("shot.png", "Why?", reason="curious")
        assert isinstance(sightline.describe("shot.png"), Failure)
        assert isinstance(sightline.describe(["shot.png", "other.png"]), Failure)
        failed("absent.png")
    *noted, absent = Session().tool_context.record.ledger.list_entries()
    tool, command, together, ordered = noted
    assert (absent.kind, absent.error, absent.seer) == ("vision_proxy.tool_call", "not_found", "")
    assert [entry.kind.partition(".")[2] for entry in noted] == ["tool_call", "command", "joint_description", "command"]
    assert {entry.error for entry in noted} == {"unavailable"}
    assert (tool.images, tool.about["question"], tool.usage, tool.cost_usd) == ((SHA,), "Why?", Usage(), None)
    assert (tool.seer, command.seer, ordered.seer) == (together.seer, together.seer, "")
    assert tool.latency_ms is not None
    home = Path(os.environ["SIGHTLINE_HOME"])
    held = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for secret in ("4kzq", "zy5x"):  # no hash or time has these letters
        assert secret.encode() not in held
        assert secret not in caplog.text


@requirement("FR-1.3")
def test_a_missing_seer_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in named("http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SIGHTLINE_PROVIDER", "")
    monkeypatch.setenv("SIGHTLINE_MODEL_ID", "")
    monkeypatch.setenv("SIGHTLINE_SEER", "off")
    no = failed("shot.png")
    assert (no.reason, "PROVIDER/MODEL" in no.message) == ("unavailable", True)
    monkeypatch.setenv("SIGHTLINE_MODE", "off")
    off = failed("shot.png")
    assert (off.reason, "mode" in off.message) == ("not_permitted", True)


def test_an_internal_error_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.api.analysis._prepare", lambda *_: Refusal("pending", "x"))
    assert failed("shot.png").reason == "pending"
    monkeypatch.setattr("sightline.api.analysis._prepare", lambda *_: 1 / 0)
    assert failed("shot.png").reason == "unavailable"


async def test_the_event_loop_is_not_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words") as provider:
        use(monkeypatch, provider)
        found = await sightline.analyze.aio("shot.png", "What?")
    assert isinstance(found, Analysis)


REQUIRED = """\
Use `analyze_image` when (a) the cached description of an image lacks a detail you need, (b) you need to compare or cross-reference multiple images, or (c) you need to focus on a specific region.

**Cropping.** Three forms, in order of preference:

- **`region`** — coarse cut by name. Use when you don't have exact dimensions: `{ image_index: 0, region: "bottom-right" }`.
- **`normalized`** — fractional coordinates 0.0–1.0. Default choice for precise crops without knowing image dimensions: `{ image_index: 0, normalized: { x: 0.5, y: 0.5, width: 0.4, height: 0.4 } }`.
- **`pixels`** — absolute pixels. Use only when you have authoritative coordinates from a prior `<vision_proxy_description>` or `<vision_proxy_analysis>` (which carry `width` and `height` attributes) or from a previous grounded response. Example: `{ image_index: 0, pixels: { x: 1840, y: 120, width: 840, height: 360 } }`.

Image dimensions and filenames are available in the `width`, `height`, and `filename` attributes of `<vision_proxy_description>`, `<vision_proxy_analysis>`, and `<vision_proxy_joint_description>` blocks in your context.

When a crop is applied, the response fence carries a `crop_origin` attribute (e.g. `crop_origin="1840,120"`). Add the origin's x to any returned x-coordinate and the origin's y to any returned y-coordinate to map coordinates back to the original full image.

The tool result is authoritative for the specific question asked; the cached generic description remains the default for everything else.

"""  # noqa: E501


@requirement("grounding.patterns", "FR-4.1.2")
@pytest.mark.parametrize("how", ["upstream", "base"])
def test_an_entry_has_the_users_name_for_the_upstream(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    with eyes("a box [10, 20, 30, 40]") as provider:
        use(monkeypatch, provider, "my-own")
        if how == "base":
            monkeypatch.setenv("SIGHTLINE_BASE_URL", f"{provider.url}/v1")
        assert done("shot.png").boxes == ()
        monkeypatch.setenv("SIGHTLINE_GROUNDING_MODELS", '{"mine/my-own": {"format": "claude_pixels"}}')
        (box,) = done("shot.png", "Where?").boxes
        assert box.coordinates == (10, 20, 30, 40)
        use(monkeypatch, provider, "qwen3-vl-8b")
        monkeypatch.setenv("SIGHTLINE_GROUNDING_MODELS", '{"mine/qwen3-vl-8b": {"format": "none"}}')
        assert done("shot.png").boxes == ()


@requirement("grounding.sizes")
def test_several_images_are_announced_with_the_sizes_that_are_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "large.png").write_bytes(picture(3, (3840, 2160)))
    with eyes("Image 1: the dialog [10, 20, 30, 40]") as provider:
        use(monkeypatch, provider, "claude-opus-4-1")
        monkeypatch.setenv("SIGHTLINE_GROUNDING_MODELS", '{"mine/claude-opus-4-1": {"format": "claude_pixels"}}')
        found = done(["large.png", "shot.png"], "Where?")
        _, asked, images = sent(provider)
        large, small = (size_of(image) for image in images)
        assert large.width < 3840, "this model makes it smaller, so that it is sent smaller"
        assert asked.startswith(f"Image 1: {large} pixels (large.png)\nImage 2: {small} pixels (shot.png)\n")
        assert found.boxes[0].coordinates == tuple(round(value * 3840 / large.width) for value in (10, 20, 30, 40))
        assert done(["large.png", "shot.png"], "Where?").cached


@requirement("grounding.flagged", "cli.describe.json")
def test_doubtful_and_omitted_boxes_are_in_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    line = '[{"bbox_2d": [0, 0, 500, 500], "label": "a"}, {"bbox_2d": [0, 0, 5000, 5000], "label": "b"}]'
    with eyes(line, "plain") as provider:
        use(monkeypatch, provider, "qwen3-vl-8b")
        found = done("shot.png").as_dict()
        assert found["boxes"] == [{"image": 0, "label": "a", "box": [0, 0, 320, 240], "doubtful": True}]
        assert found["misfits"] == 1
        assert "misfits" not in done("shot.png", "Else?").as_dict()


@requirement("words.any")
def test_lone_surrogates_in_arguments_are_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = os.fsdecode(b"odd-\xff.png")
    (tmp_path / odd).write_bytes(IMAGE)
    with eyes("words") as provider:
        use(monkeypatch, provider)
        found = done([odd, "other.png"], "What is \udcff?", reason="\ud800")
        assert "odd-?.png" in found.fence
        assert sent(provider)[1].endswith("(other.png)\n\nWhat is ??")
        said = sightline.describe([odd], question="\ud800?")
        assert isinstance(said, Analysis), said
        no = failed("shot.png", model="mine/\ud800")
        assert no.message.startswith("mine/? ")
    assert json.dumps(found.as_dict(), ensure_ascii=False).encode()
    assert Session().tool_context.record.ledger.list_entries("vision_proxy.tool_call")[0].about["reason"] == "?"


@requirement("words.any", "law.9")
@pytest.mark.parametrize("as_bytes", [True, False])
@pytest.mark.parametrize("context", ["on", "off"])
def test_lone_surrogates_in_a_conversation_are_sent_as_question_marks(
    monkeypatch: pytest.MonkeyPatch, as_bytes: bool, context: str, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Talk().say("first \ud800").answer("hm \udfff").say("why \ud800?")
    talk.read(("be\ud800fore.png", picture()), ("after.png", picture(1)), words="I \udfff look")
    body: Any = json.dumps(talk.body).encode() if as_bytes else talk.body
    with eyes("words") as provider:
        use(
            monkeypatch,
            provider,
            SIGHTLINE_MODELS=json.dumps({"blind*": {"vision": False}}),
            SIGHTLINE_SYSTEM_PROMPT="Look \udcff well.",
            SIGHTLINE_INCLUDE_CONTEXT=context,
        )
        found = sightline.prepare(body, wire="anthropic", model="blind-\ud800")
        assert isinstance(found, PreparedBody), found
        told = [sent(provider, index)[0] for index in range(3)]
        asked = [sent(provider, index)[1] for index in range(3)]
    assert [line.fate for line in found.receipt.sights] == ["told", "told"]
    assert told.count("Look ? well.") == 2
    assert ("Assistant: I ? look" in "".join(asked)) is (context == "on")
    assert any(words.startswith("Image 1: 320x240 pixels (be") for words in asked)
    assert caplog.records == []


@requirement("tools.fault")
@pytest.mark.parametrize(
    ("name", "arguments", "begins"),
    [
        ("view_image", {"path": "shot.png"}, '{"ok": false, "reason": "render_unavailable"'),
        ("analyze_image", {"images": ["shot.png"], "question": "What?"}, "Error (unavailable): "),
        ("analyze_image", {"images": ["shot.png"]}, "Error (invalid_input): "),
        ("vision_analyze", {"prompt": "What?", "file_path": "/shot.png"}, '{"ok": false, "error": "LLM_ERROR: '),
        ("vision_analyze", {}, '{"ok": false, "error": "INVALID_INPUT: '),
    ],
)
def test_an_internal_error_has_the_shape_of_other_tool_errors(
    monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any], begins: str
) -> None:
    monkeypatch.setattr("sightline.api.views.identify_file", lambda *_: 1 / 0)
    monkeypatch.setattr("sightline.api.ask.read_input_file", lambda *_: 1 / 0)
    said: Any = sightline.call(name, arguments)
    assert said.content()[0]["text"].startswith(begins)


@requirement("seer.troubles")
@pytest.mark.parametrize(
    ("status", "fact"),
    [(401, "apiKey"), (403, "apiKey"), (404, "model")],
)
def test_a_provider_error_has_a_remedy(monkeypatch: pytest.MonkeyPatch, status: int, fact: str) -> None:
    with eyes("words", faults=[Fail(status=status, words="secret words")]) as provider:
        use(monkeypatch, provider)
        no = failed("shot.png")
    assert str(status) in no.message
    assert fact in no.message
    assert "secret" not in no.message


@requirement("seer.troubles")
def test_a_rejected_key_is_named_by_its_source() -> None:
    settings = load_settings({"OPENAI_API_KEY": "sk-1"})
    no = Refusal("unavailable", "401 from openai/eye", "wait a little", 401)
    upstream = Upstream("openai", {}, "openai", ("OPENAI_KEY", "OPENAI_API_KEY"))
    assert "OPENAI_API_KEY" in advise_user(no, asked_of(upstream), settings).remedy
    own = replace(upstream, api_key="sk-2")
    told = advise_user(no, asked_of(own), settings).remedy
    assert ("apiKey" in told, "openai" in told, "OPENAI_API_KEY" in told) == (True, True, False)
    assert advise_user(replace(no, status=500), asked_of(upstream), settings).remedy == "wait a little"
    asked_otherwise = advise_user(replace(no, status=400), asked_of(upstream), settings).remedy
    assert (asked_otherwise not in ("", "wait a little"), "OPENAI_API_KEY" in asked_otherwise) == (True, False)


@requirement("FR-4.2.automatic", "FR-3.2.save", "tell.canonical")
def test_conversations_and_commands_share_a_description_with_boxes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    large = picture(3, (3840, 2160))
    (tmp_path / "large.png").write_bytes(large)

    def told() -> str:
        request = [user(part(encoded(large)), text(f"what is it, {len(provider.exchanges)}?"))]
        done = sightline.prepare(request, wire="openai_chat", model="blind-1")
        assert isinstance(done, PreparedBody), done
        words: str = done.body[0]["content"][0]["text"]
        return words.partition("\n")[2]

    blind = json.dumps({"blind-1": {"vision": False}})
    with eyes("The dialog [658, 364, 987, 546].", "The window [0, 0, 658, 364].") as provider:
        use(monkeypatch, provider, QWEN, SIGHTLINE_MODELS=blind, SIGHTLINE_INCLUDE_CONTEXT="off")
        first = told()
        known = sightline.describe("large.png")
        assert isinstance(known, Analysis)
        assert known.cached
        assert known.fence.replace('\n    filename="large.png"', "") == first
        assert 'sent="1316x728"' in first
        assert '"box": [1920, 1080, 2880, 1620]' in first
        saved = sightline.describe("large.png", save=True)
        assert isinstance(saved, Analysis)
        assert sent(provider)[0].endswith(FORMATS["qwen_pixels"].instruction)
        second = told()
        assert second == saved.fence.replace('\n    filename="large.png"', "")
        assert '"box": [0, 0, 1920, 1080]' in second
        assert len(provider.exchanges) == 2


def test_the_remedy_for_a_litellm_provider_names_no_api_key_setting() -> None:
    no = Refusal("unavailable", "no answer", status=401)
    told = advise_user(no, asked_of(Upstream("bedrock", {"openai_chat": "litellm://bedrock"})), load_settings({}))
    assert ("bedrock" in told.remedy, "apiKey" in told.remedy) == (True, False)
