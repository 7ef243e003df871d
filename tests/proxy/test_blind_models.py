"""A text-only model gets descriptions of its images, and requests go on if no seer can describe them."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import openai
import pytest
from PIL.Image import Exif

from sightline.reader.sections import NOTE
from tests.proxy.clients import KEY, WIRES, ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.reader.pictures import SAMPLES
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Fail
from tests.scripted.models import IGNORES, WORDINGS
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

COLOURS = some_colours(11)
PICTURE = paint_quadrants(COLOURS)
QUADRANTS = describe_quadrants(COLOURS)
NOT_ABOUT_IMAGES = ("data_policy", "other")
EVERY_WAY = pytest.mark.parametrize(("wire", "stream"), [(wire, stream) for wire in WIRES for stream in (False, True)])


def fence_in(body: bytes) -> str:
    found = re.search(r"<vision_proxy_description.*?</vision_proxy_description>", str(json.loads(body)), re.DOTALL)
    assert found, body
    return found[0].replace("\\n", "\n")


@EVERY_WAY
@requirement("tell.sibling", "tell.fence", "seer.names_itself", "upstream.client_key", "route.served")
def test_a_blind_model_gets_a_description_by_its_sibling(tmp_path: Path, wire: str, stream: bool) -> None:
    ask, pasted, _ = WIRES[wire]
    model = {"messages": "claude-opus-x", "chat": "deepseek-v4-pro"}[wire]
    with deepseek(key=KEY) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        said = ask(f"{proxy.url}/u/deepseek", model, pasted(PICTURE), stream=stream)
        assert f"I was told: image 1 of 1: {QUADRANTS}" in said
        fence = fence_in(provider.asked(model)[-1].body)
    assert re.fullmatch(
        r"<vision_proxy_description\n"
        r'    image="sha256:[0-9a-f]{64}"\n    width="320"\n    height="240"\n'
        r'    grounding_format="none"\n    seer="deepseek/deepseek-flash">\n'
        r".*\n</vision_proxy_description>",
        fence,
        re.DOTALL,
    )


@EVERY_WAY
@requirement("tell.tool", "fence.basename")
def test_tool_images_are_described_with_their_file_names(tmp_path: Path, wire: str, stream: bool) -> None:
    ask, _, read = WIRES[wire]
    model = {"messages": "claude-opus-x", "chat": "deepseek-v4-pro"}[wire]
    other = some_colours(12)
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        said = ask(f"{proxy.url}/u/deepseek", model, read(PICTURE, paint_quadrants(other)), stream=stream)
        assert QUADRANTS in said
        assert describe_quadrants(other) in said
        assert 'filename="shot0.png"' in fence_in(provider.asked(model)[-1].body)


@requirement("profile.by_upstream", "mode.fallback", "tell.switch")
def test_the_same_name_is_blind_on_one_upstream_and_sees_on_another(tmp_path: Path) -> None:
    with (
        deepseek() as blind,
        Provider() as seeing,
        sightline(tmp_path, f"deepseek={blind.url}", f"anthropic={seeing.url}") as proxy,
    ):
        told = ask_messages(f"{proxy.url}/u/deepseek", "claude-opus-x", pasted_message(PICTURE))
        sibling = ask_messages(f"{proxy.url}/u/deepseek", "claude-sonnet-x", pasted_message(PICTURE))
        seen = ask_messages(f"{proxy.url}/u/anthropic", "claude-opus-x", pasted_message(PICTURE))
    assert told.startswith("I was told: ")
    assert sibling == seen == f"image 1 of 1: {QUADRANTS}"


@pytest.mark.parametrize("wording", sorted(WORDINGS.keys() - set(NOT_ABOUT_IMAGES)))
@pytest.mark.parametrize("wire", WIRES)
@requirement("recover.blind", "seer.loopback")
def test_a_rejection_in_any_wording_teaches_that_a_model_is_blind(tmp_path: Path, wire: str, wording: str) -> None:
    ask, pasted, _ = WIRES[wire]
    with (
        Provider((("*", wording),)) as blind,
        Provider((("qwen3-vl:8b", "sees"),)) as local,
        sightline(
            tmp_path, blind.url, env={"SIGHTLINE_UPSTREAMS": json.dumps({"ollama": {"baseUrl": local.url}})}
        ) as proxy,
    ):
        for rejected in (1, 1):  # learnt once, known from then on
            assert f"I was told: image 1 of 1: {QUADRANTS}" in ask(proxy.url, "text-only", pasted(PICTURE))
            assert sum(b"base64" in one.body for one in blind.exchanges) == rejected
        assert len(local.asked("qwen3-vl:8b")) == 2, "asked once what it can do, and once to look"


@pytest.mark.parametrize("wording", NOT_ABOUT_IMAGES)
@requirement("recover.not_images")
def test_a_rejection_for_another_reason_is_relayed(tmp_path: Path, wording: str) -> None:
    with Provider((("*", wording),)) as provider, sightline(tmp_path, provider.url) as proxy:
        with pytest.raises(openai.APIStatusError) as error:
            ask_chat(proxy.url, "some-model", pasted_chat(PICTURE))
        assert error.value.status_code == WORDINGS[wording].status
        assert all(b"base64" in one.body for one in provider.exchanges)


@requirement("record.paid_once", "law.10")
def test_a_description_survives_a_restart_and_is_paid_once(tmp_path: Path) -> None:
    with deepseek() as provider:
        bodies = []
        for _ in range(2):
            with sightline(tmp_path, f"deepseek={provider.url}") as proxy:
                ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE))
                bodies.append(provider.asked("deepseek-v4-pro")[-1].body)
        assert len(provider.asked("deepseek-flash")) == 1
        assert bodies[0] == bodies[1]


@requirement("record.scope", "seer.credential")
def test_descriptions_are_not_shared_between_keys(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        for key in ("sk-one", "sk-two", "sk-one"):
            ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE), key=key)
        assert [one.header("authorization") for one in provider.asked("deepseek-flash")] == [
            ["Bearer sk-one"],
            ["Bearer sk-two"],
        ]


@requirement("tell.nobody")
def test_an_image_becomes_one_sentence_without_a_seer(tmp_path: Path) -> None:
    off = {"SIGHTLINE_SEER": "off"}
    with Provider((("*", "ollama"),)) as provider, sightline(tmp_path, provider.url, env=off) as proxy:
        assert ask_messages(proxy.url, "text-only", pasted_message(PICTURE)) == "I see no image."
        sent = json.loads(provider.exchanges[-1].body)["messages"][0]["content"][0]["text"]
    assert (sent[0], sent[-1], NOT_SHOWN in sent) == ("[", "]", True)


@requirement("seer.local", "seer.local.says")
def test_the_local_reader_reads_once_if_there_is_no_other_seer(tmp_path: Path) -> None:
    picture = (SAMPLES / "dialog.png").read_bytes()
    with Provider((("*", "ollama"),)) as provider, sightline(tmp_path, provider.url, patience=120) as proxy:
        for _ in range(2):
            said = ask_messages(proxy.url, "text-only", pasted_message(picture))
            assert "0x80070070" in said
            assert said.count(NOTE) == 1
        assert b'seer=\\"local\\"' in provider.exchanges[-1].body
        assert provider.exchanges[-1].body == provider.exchanges[-2].body, "what was said is said again"


@requirement("tell.failure", "fault.remembered")
@pytest.mark.usefixtures("no_local_reader")
def test_a_failing_seer_becomes_one_sentence_without_secrets(tmp_path: Path) -> None:
    faults = [Fail(model="deepseek-flash", status=400)]
    with deepseek(faults=faults) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        for _ in range(2):  # the failure is remembered for a while: clients repeat themselves
            ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE))
        assert len(provider.asked("deepseek-flash")) == 1
        sent = provider.asked("deepseek-v4-pro")[-1].body.decode()
    assert re.search(r"deepseek/deepseek-flash [^\]]*\b400\b", sent)
    assert KEY not in sent


@requirement("mode.always")
def test_mode_always_describes_images_for_seeing_models(tmp_path: Path) -> None:
    with (
        deepseek() as provider,
        sightline(tmp_path, f"deepseek={provider.url}", env={"SIGHTLINE_MODE": "always"}) as proxy,
    ):
        said = ask_messages(f"{proxy.url}/u/deepseek", "claude-sonnet-x", pasted_message(PICTURE))
    assert said.startswith("I was told: ")


@requirement("mode.off")
def test_mode_off_describes_nothing_and_keeps_the_session_alive(tmp_path: Path) -> None:
    with (
        deepseek() as provider,
        sightline(tmp_path, f"deepseek={provider.url}", env={"SIGHTLINE_MODE": "off"}) as proxy,
    ):
        said = ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE))
        assert said == "I see no image."
        assert provider.asked("deepseek-flash") == []


@requirement("seer.consent", "law.8")
def test_a_named_seer_elsewhere_gets_no_image_before_the_user_consents(tmp_path: Path) -> None:
    named = {"SIGHTLINE_MODEL": "openai/gpt-6-luna", "OPENAI_API_KEY": "sk-elsewhere"}
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}", env=named) as proxy:
        ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE))
        assert [b"base64" in one.body for one in provider.exchanges] == [False]
        assert b"sightline consent yes openai" in provider.exchanges[0].body


@requirement("seer.loopback.cloud")
def test_a_cloud_model_of_ollama_is_not_local(tmp_path: Path) -> None:
    with (
        Provider((("*", "ollama"),)) as blind,
        Provider((("qwen3-vl:235b-cloud", "sees"), ("eye:cloud", "sees"))) as local,
        sightline(
            tmp_path,
            blind.url,
            patience=120,
            env={"SIGHTLINE_UPSTREAMS": json.dumps({"ollama": {"baseUrl": local.url}})},
        ) as proxy,
    ):
        assert NOTE in ask_messages(proxy.url, "text-only", pasted_message(PICTURE))
        assert not any(b"base64" in one.body for one in local.exchanges)


@requirement("record.scope")
def test_every_header_that_carries_a_credential_makes_a_scope(tmp_path: Path) -> None:
    body = json.dumps({"model": "deepseek-v4-pro", "messages": pasted_chat(PICTURE)}).encode()
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        for key in ("one", "two", "one"):
            for name in ("api-key", "x-api-key", "x-goog-api-key"):
                exchange(proxy.url, "/u/deepseek/v1/chat/completions", body, headers=[(name, f"{name}-{key}")])
        looks = provider.asked("deepseek-flash")
    assert len(looks) == 6


@requirement("fit.upright_looks")
def test_a_rotated_photo_is_described_upright(tmp_path: Path) -> None:
    turned = Exif()
    turned[274] = 6
    clockwise = (COLOURS[1], COLOURS[3], COLOURS[0], COLOURS[2])
    stored = paint_quadrants(clockwise, (240, 320), "jpeg", quality=95, exif=turned)
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        said = ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(stored, "image/jpeg"))
        assert QUADRANTS in said
        assert 'width="320"' in fence_in(provider.asked("deepseek-v4-pro")[-1].body)


@requirement("seer.fallback")
def test_a_local_model_describes_when_the_sibling_fails(tmp_path: Path) -> None:
    with (
        deepseek(faults=[Fail(model="deepseek-flash", status=401)]) as provider,
        Provider((("qwen3-vl:8b", "sees"),)) as local,
        sightline(
            tmp_path,
            f"deepseek={provider.url}",
            env={"SIGHTLINE_UPSTREAMS": json.dumps({"ollama": {"baseUrl": local.url}})},
        ) as proxy,
    ):
        said = ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE))
        assert QUADRANTS in said
        assert b"ollama/qwen3-vl:8b" in provider.asked("deepseek-v4-pro")[-1].body


@requirement("mode.always")
def test_mode_always_lets_a_seeing_model_describe_for_itself(tmp_path: Path) -> None:
    with (
        deepseek() as provider,
        sightline(tmp_path, f"deepseek={provider.url}", env={"SIGHTLINE_MODE": "always"}) as proxy,
    ):
        said = ask_chat(f"{proxy.url}/u/deepseek", "deepseek-flash", pasted_chat(PICTURE))
    assert said.startswith(f"I was told: image 1 of 1: {QUADRANTS}")


@requirement("tell.count")
def test_counting_tokens_never_pays_for_a_description(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        import anthropic

        with anthropic.Anthropic(base_url=f"{proxy.url}/u/deepseek", api_key=KEY, max_retries=0) as client:
            count = client.messages.count_tokens(model="claude-opus-x", messages=pasted_message(PICTURE))  # type: ignore[arg-type]
        assert 500 < count.input_tokens < 800
        assert len(provider.exchanges) == 1
        assert b"base64" not in provider.exchanges[0].body


@requirement("tell.prefix")
def test_a_description_is_the_same_in_every_later_request(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        history = pasted_message(PICTURE)
        for turn in range(3):
            ask_messages(f"{proxy.url}/u/deepseek", "claude-opus-x", history)
            history = [*history, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"{turn}?"}]
        sent = [json.loads(one.body)["messages"] for one in provider.asked("claude-opus-x")]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))


@requirement("profile.discovered")
def test_a_model_that_its_upstream_lists_as_blind_gets_descriptions(tmp_path: Path) -> None:
    """Its server drops images without a word, so that no rejection teaches it."""
    with Provider((("stone", IGNORES),)) as provider, sightline(tmp_path, f"ollama={provider.url}/v1") as proxy:
        for number in range(50):  # the listing is fetched in the background: the first requests may go out before it
            ask_chat(f"{proxy.url}/u/ollama", "stone", pasted_chat(PICTURE, words=f"what is it, {number}?"))
            if b"data:image/png" not in provider.asked("stone")[-1].body:
                break
        shown = [each for each in provider.exchanges if each.path == "/api/show" and each.header("authorization")]
        assert len(shown) == 1
        assert fence_in(provider.asked("stone")[-1].body)
