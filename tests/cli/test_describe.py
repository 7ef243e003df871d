"""`sightline describe` and `redescribe`, as a person types them, against a provider on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from PIL import Image

from sightline.cli.terminal import IMAGE_SUFFIXES, format_dollars
from tests.api.eyes import eyes, named, sent
from tests.cli.command import ALONE, assert_refused, sightline, typed
from tests.engine.parts import picture
from tests.reader.pictures import SAMPLES
from tests.requirements import requirement

IMAGE = picture(1, (640, 480))
SHA = hashlib.sha256(IMAGE).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shot.png").write_bytes(IMAGE)
    (tmp_path / "other.png").write_bytes(picture(2, (300, 200)))
    return tmp_path


@requirement("cli.describe", "FR-3.5", "FR-3.6")
def test_stdout_has_the_answer_and_stderr_names_the_seer(folder: Path) -> None:
    with eyes("A red square.\x1b[31m\nSecond line.") as provider:
        ended = sightline("describe", "shot.png", env=named(provider), folder=folder)
    assert (ended.code, ended.out) == (0, "A red square.?[31m\nSecond line.\n")
    seer = f"mine/eye-1 ({provider.url.removeprefix('http://')})"
    assert re.fullmatch(rf"sightline: shot\.png by {re.escape(seer)}, [\d,]+ [a-z ]+, [\d,]+ [a-z ]+\n", ended.err)
    listed = sightline("vision-proxy", "list", folder=folder)
    (line,) = listed.out.splitlines()
    assert line.startswith(f"[Vision Proxy] sha256:{SHA} ")
    assert f" {provider.url.removeprefix('http://')}/eye-1" in line


@requirement("cli.describe", "cli.describe.json")
def test_json_output_has_exactly_the_documented_fields(folder: Path) -> None:
    with eyes('{"bbox_2d": [0, 0, 500, 500], "label": "half"}') as provider:
        env = named(provider, "qwen3-vl-8b")
        ended = sightline(
            *("describe", "shot.png", "--question", "Where?", "--crop", "0:r=right", "--json"), env=env, folder=folder
        )
    assert (ended.code, ended.err) == (0, "")
    found = ended.json
    assert list(found) == [
        *("ok", "images", "question", "seer", "text", "fence", "boxes", "usage", "cost_usd", "cached"),
    ]
    assert found["images"] == [f"sha256:{SHA}#crop:320,0,320,480"]
    assert found["boxes"] == [{"image": 0, "label": "half", "box": [320, 0, 480, 240]}]
    assert (found["question"], found["cost_usd"], found["cached"]) == ("Where?", None, False)
    assert found["fence"].startswith("<vision_proxy_analysis\n")
    assert found["fence"].endswith("</vision_proxy_boxes>")
    assert set(found["usage"]) == {"input", "output", "cached"}


@requirement("cli.overlay", "cli.overlay.format", "boxes.one_way")
def test_the_overlay_shows_the_boxes_of_the_answer(folder: Path) -> None:
    with eyes('[{"bbox_2d": [250, 250, 750, 750], "label": "middle"}]') as provider:
        env = named(provider, "qwen3-vl-8b")
        words = ("describe", "shot.png", "--question", "Where?", "--overlay", "where.png")
        ended = sightline(*words, env=env, folder=folder)
        assert ended.code == 0
        looked, drawn = ended.err.splitlines()
        assert re.search(r"\b1 box \(--boxes ", looked)
        assert re.fullmatch(r"sightline: .*where\.png", drawn)
        with Image.open(folder / "where.png") as made:
            assert made.size == (640, 480)
            assert made.convert("RGB").getpixel((157, 117)) == (214, 24, 31)
        assert_refused(sightline(*words, env=env, folder=folder), "where.png", "--force")
        unnamed = sightline(*words[:-1], "where.xyz", env=env, folder=folder)
        assert_refused(unnamed, "where.xyz", "--overlay", IMAGE_SUFFIXES)
        two = sightline("describe", "shot.png", "other.png", "--overlay", "x.png", env=env, folder=folder)
        assert_refused(two, "--overlay")
        assert len(provider.exchanges) == 1, "who refuses afterwards has paid for nothing"
        again = sightline(*words[:-1], "where.jpg", "--boxes", env=env, folder=folder)
        assert again.code == 0
        *_, legend, middle = again.out.splitlines()
        assert "[x1, y1, x2, y2]" in legend
        assert re.fullmatch(r"1\. middle .*\[160, 120, 480, 360\]", middle)
        assert "--boxes" not in again.err
        with Image.open(folder / "where.jpg") as made:
            assert (made.format, made.size) == ("JPEG", (640, 480))
        (folder / "where.png").write_text("mine")
        assert sightline(*words, "--force", env=env, folder=folder).code == 0
        with Image.open(folder / "where.png") as made:
            assert made.format == "PNG"


@requirement("FR-3.2", "FR-2.2")
def test_several_images_are_described_in_one_call(folder: Path) -> None:
    with eyes("both") as provider:
        ended = sightline("describe", "shot.png", "other.png", "--json", env=named(provider), folder=folder)
        assert ended.json["fence"].startswith("<vision_proxy_joint_description\n")
        told, _, images = sent(provider)
    assert (len(provider.exchanges), len(images)) == (1, 2)
    assert told.startswith("You are analysing 2 images")


@requirement("consent.kept", "FR-3.2.save")
def test_a_failed_save_is_not_reported_as_saved(folder: Path, home: Path) -> None:
    with eyes("first", "second") as model:
        assert sightline("describe", "shot.png", env=named(model), folder=folder).code == 0
        for path in (home / "record").rglob("*"):
            path.chmod(0o500 if path.is_dir() else 0o400)
        (home / "record").chmod(0o500)
        ended = sightline("redescribe", "shot.png", env=named(model), folder=folder, powerless=True)
    assert (ended.code, ended.out) == (1, "")
    assert "could not be saved" in ended.err


@requirement("FR-3.3", "FR-3.2.save")
def test_redescribe_asks_again_and_saves_the_answer(folder: Path) -> None:
    with eyes("first", "second") as provider:
        env = named(provider)
        for words, text, cached in (
            (("redescribe", "shot.png"), "first", False),
            (("describe", "shot.png"), "first", True),
            (("redescribe", f"sha256:{SHA[:12]}"), "second", False),
            (("describe", f"sha256:{SHA}"), "second", True),
        ):
            found = sightline(*words, "--json", env=env, folder=folder).json
            assert (found["text"], found["cached"]) == (text, cached)
        refused: tuple[tuple[str, ...], ...] = (
            ("describe", "shot.png", "--save", "--question", "What?"),
            ("describe", "shot.png", "--save", "--crop", "0:r=top"),
            ("describe", "shot.png", "other.png", "--save"),
            ("redescribe", f"sha256:{SHA}#crop:0,0,5,5"),
        )
        for typed_words in refused:
            option = "--save" if "--save" in typed_words else "redescribe"
            assert_refused(sightline(*typed_words, env=env, folder=folder), option)
        assert len(provider.exchanges) == 2


@requirement("cli.one_line", "mode.off.commands")
def test_a_refusal_is_one_line_with_a_remedy(folder: Path) -> None:
    with eyes("words") as provider:
        env = named(provider)
        for words, code, fact in (
            (("describe", "absent.png"), "not_found", "absent.png"),
            (("describe", "shot.png", "--crop", "1:r=top"), "invalid_input", "image 1"),
            (("describe", "shot.png", "--crop", "0:r=top n=0,0,1,1"), "invalid_input", "'0:r=top n=0,0,1,1'"),
            (("describe", "shot.png", "--question", ""), "invalid_input", "question"),
            (("describe", "shot.png", "--question", "q" * 4001), "invalid_input", "4,001"),
            (("describe", "shot.png", "--model", "eye"), "invalid_input", "'eye'"),
        ):
            assert_refused(sightline(*words, env=env, folder=folder), fact)
            assert sightline(*words, "--json", env=env, folder=folder).json["reason"] == code
        off = {**env, "SIGHTLINE_MODE": "off"}
        for verb in ("describe", "redescribe"):
            assert_refused(sightline(verb, "shot.png", env=off, folder=folder), "mode")
        assert provider.exchanges == []
    refusal = sightline("describe", "absent.png", "--json", env=named(provider), folder=folder)
    assert (refusal.code, refusal.json["reason"]) == (1, "not_found")


@requirement("FR-3.4", "cli.progress")
def test_a_terminal_asks_for_consent_and_shows_progress(folder: Path) -> None:
    env = {**named("http://eyes.invalid:9"), "SIGHTLINE_API_KEY": "k"}
    code, heard = typed(["describe", "shot.png"], b"n\n", env, folder)
    assert (code, " local" in heard) == (0, True), "the local reader needs no consent"
    assert " …\r\x1b[K" in heard
    assert "to mine (eyes.invalid:9) " in heard
    assert "sightline consent yes eyes.invalid:9" in heard
    assert json.loads(sightline("consent", "list", "--json").out)["consents"] == {}
    code, heard = typed(["describe", "shot.png"], b"y\n", env, folder)
    assert (code, "mine/eye-1 (eyes.invalid:9)" in heard) == (1, True)
    assert json.loads(sightline("consent", "list", "--json").out)["consents"] == {"eyes.invalid:9": True}


@requirement("cli.overlay")
def test_the_overlay_of_the_reader_frames_lines_without_covering_them(folder: Path) -> None:
    shot = Image.open(SAMPLES / "form.png").convert("RGB")
    shot.save(folder / "form.png")
    ended = sightline("describe", "form.png", "--json", "--overlay", "o.png", env=ALONE, folder=folder)
    assert (ended.code, ended.err) == (0, "")
    made = Image.open(folder / "o.png").convert("RGB")
    boxes = [tuple(each["box"]) for each in ended.json["boxes"]]
    assert len(boxes) > 10
    frames = {(x - 3, y - 3) for x, y, _, _ in boxes}
    assert all(made.getpixel(corner) != shot.getpixel(corner) for corner in frames)
    lines = [tuple(each["box"]) for each in ended.json["boxes"] if each["label"] in ended.json["text"].splitlines()]
    assert len(lines) > 10
    assert all(made.crop(box).tobytes() == shot.crop(box).tobytes() for box in lines)


@requirement("seer.local", "seer.local.answers")
def test_the_local_reader_answers_any_question_without_key_or_network(folder: Path) -> None:
    (folder / "form.png").write_bytes((SAMPLES / "form.png").read_bytes())
    ended = sightline("describe", "form.png", "--question", "What is the value of the VAT number field?",
                      env=ALONE, folder=folder)  # fmt: skip
    assert ended.code == 0
    assert '"GB 294 8371 06"' in ended.out
    assert ended.err.startswith(f"sightline: form.png by local, {format_dollars(0)}")
    assert sightline("usage", folder=folder).out.endswith(f", {format_dollars(0)}\n")
    other = sightline("describe", "form.png", "--question", "What breed is the dog?", env=ALONE, folder=folder)
    assert (other.code, "GB 294 8371 06" in other.out) == (0, True)


@requirement("cli.overlay.first")
def test_an_unwritable_overlay_is_refused_before_any_call(folder: Path) -> None:
    with eyes('[{"bbox_2d": [250, 250, 750, 750], "label": "middle"}]') as provider:
        env = named(provider, "qwen3-vl-8b")
        words = ("describe", "shot.png", "--question", "Where?", "--overlay")
        (folder / "shut").mkdir(mode=0o500)
        for target in ("absent/where.png", "shot.png/where.png", "shut/where.png"):
            no = sightline(*words, target, env=env, folder=folder, powerless=True)
            assert_refused(no, target, "--overlay")
        assert provider.exchanges == []
        long = "n" * 300 + ".png"  # which only the disk itself refuses
        for more, first in (((), '[{"bbox_2d"'), (("--json",), '{"ok": true, "images": ')):
            ended = sightline(*words, long, *more, env=env, folder=folder)
            assert (ended.code, ended.out.startswith(first)) == (1, True), ended
            assert long not in ended.out
            assert long in ended.err.splitlines()[-1]
            assert ended.err.count("\n") == (1 if more else 2)


@requirement("grounding.flagged", "cli.overlay")
def test_doubtful_and_omitted_boxes_are_reported(folder: Path) -> None:
    line = '[{"bbox_2d": [250, 250, 750, 750], "label": "middle"}, {"bbox_2d": [0, 0, 9999, 5], "label": "b"}]'
    with eyes(line) as provider:
        words = ("describe", "shot.png", "--question", "Where?", "--boxes", "--overlay")
        ended = sightline(*words, "doubt.png", env=named(provider, "qwen3-vl-8b"), folder=folder)
        assert re.search(r"^1\. middle .*\[160, 120, 480, 360\] \(\w+\)\n", ended.out, re.MULTILINE)
        assert ", 1 place " in ended.err
    with eyes('[{"bbox_2d": [250, 250, 750, 750], "label": "middle"}]') as provider:
        sightline(*words, "sure.png", env=named(provider, "qwen3-vl-8b"), folder=folder)
    doubtful, sure = (Image.open(folder / name).convert("RGB").tobytes() for name in ("doubt.png", "sure.png"))
    assert doubtful != sure, "what is doubtful is drawn as such"


@requirement("grounding.flagged")
def test_boxes_without_an_image_number_are_reported(folder: Path) -> None:
    with eyes('{"bbox_2d": [250, 250, 750, 750], "label": "middle"}') as provider:
        words = ("describe", "shot.png", "other.png", "--boxes")
        ended = sightline(*words, env=named(provider, "qwen3-vl-8b"), folder=folder)
    assert ", 1 place " in ended.err
    assert "[250, 250, 750, 750]" not in ended.out.replace('"bbox_2d": [250, 250, 750, 750]', "")


@requirement("cli.describe", "FR-3.1")
@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("describe", "shot.png", "--crop", "7:r=top"), "sightline describe --help)"),
        (("redescribe", "shot.png", "--model", "eye"), "sightline redescribe --help)"),
        (("vision-proxy", "mode", "of"), "sightline vision-proxy mode "),
        (("vision-proxy", "describe"), "sightline vision-proxy describe "),
    ],
)
def test_usage_errors_show_the_shell_form_of_a_command(folder: Path, words: tuple[str, ...], usage: str) -> None:
    assert_refused(sightline(*words, folder=folder), usage)


@requirement("words.any")
def test_arguments_that_are_not_utf_8_are_accepted(folder: Path) -> None:
    odd = os.fsdecode(b"odd-\xff.png")
    (folder / odd).write_bytes(IMAGE)
    with eyes("words") as provider:
        for question in ([], ["--question", os.fsdecode(b"\xff?")]):
            ended = sightline("describe", odd, "other.png", *question, env=named(provider), folder=folder)
            assert (ended.code, ended.out) == (0, "words\n")
            assert "odd-?.png" in ended.err
        assert len(provider.exchanges) == 2


@pytest.mark.parametrize(
    ("cost", "said"), [(0.00004, r"[a-z ]+\$0\.0001"), (0.0001, r"\$0\.0001"), (12.5, r"\$12\.5000")]
)
def test_a_cost_of_zero_is_free_and_a_small_cost_is_not(cost: float, said: str) -> None:
    assert re.fullmatch(said, format_dollars(cost))
    assert re.fullmatch(r"[a-z ]+", format_dollars(0.0))


@requirement("cli.person")
def test_the_file_that_fails_is_named(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"\0\1\2 words")
    for refs, about in ((("nope.png",), "nope.png"), (("shot.png", "nope.png"), "nope.png"), (("a.bin",), "a.bin")):
        ended = sightline("describe", *refs, "--question", "what?", env=ALONE, folder=folder)
        assert_refused(ended, f"sightline: {about}: ")
        assert "read_file" not in ended.err


@requirement("cli.person")
def test_a_crop_of_a_single_image_needs_no_index(folder: Path) -> None:
    with eyes("a corner") as provider:
        ended = sightline("describe", "shot.png", "--crop", "r=top-left", env=named(provider, "eye"), folder=folder)
        assert (ended.code, "a corner" in ended.out) == (0, True), ended
    two = sightline("describe", "shot.png", "shot.png", "--crop", "r=top-left", env=ALONE, folder=folder)
    assert_refused(two, "'r=top-left'", "sightline describe --help")


@requirement("cli.stdin.once")
def test_standard_input_is_one_image() -> None:
    assert_refused(sightline("describe", "-", "-"), "standard input")
