"""vLLM, which doesn't say which models see; and loopback models that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.model.ports import HttpReply
from sightline.model.refusal import Refusal
from sightline.vision.chooser import Chooser
from sightline.vision.seers.openai import ChatSeer
from tests.requirements import requirement
from tests.vision.http import Asked, ScriptedHttp, reply
from tests.vision.test_chooser import names, profile, seers_of, visitor

HERE = {"vllm": "http://localhost:8000/v1"}


def server(*models: Any) -> ScriptedHttp:
    def answers(asked: Asked) -> HttpReply | Refusal:
        assert asked.url == "http://localhost:8000/v1/models"
        return reply(body={"object": "list", "data": list(models)})

    return ScriptedHttp(by_url=answers)


def model(name: str, root: str = "", owner: str = "vllm") -> dict[str, Any]:
    return {"id": name, "object": "model", "owned_by": owner, "root": root or name, "max_model_len": 32768}


async def found(*models: Any) -> list[str]:
    chosen = Chooser(server(*models), read_consent=lambda provider: False, loopback=HERE)
    return names(await seers_of(chosen, visitor(), profile(None)))


@requirement("seer.loopback.vllm")
@pytest.mark.parametrize(
    "name",
    """Qwen/Qwen3-VL-8B-Instruct Qwen/Qwen2.5-VL-72B-Instruct-AWQ Qwen/Qwen3.5-27B Qwen/Qwen2.5-Omni-7B
    OpenGVLab/InternVL3-8B llava-hf/llava-1.5-7b-hf mistralai/Pixtral-12B-2409 google/gemma-3-27b-it google/gemma-4-12b
    mistralai/Mistral-Small-3.2-24B-Instruct-2506 meta-llama/Llama-3.2-11B-Vision-Instruct
    meta-llama/Llama-4-Scout-17B-16E-Instruct allenai/Molmo2-8B openbmb/MiniCPM-V-4_5 zai-org/GLM-4.5V
    moonshotai/Kimi-VL-A3B-Instruct deepseek-ai/deepseek-vl2 microsoft/Phi-4-multimodal-instruct""".split(),
)
async def test_a_model_with_the_name_of_a_vision_model_is_used(name: str) -> None:
    assert await found(model(name)) == [f"vllm/{name}"]


@requirement("seer.loopback.vllm")
@pytest.mark.parametrize(
    "name",
    """Qwen/Qwen3-8B Qwen/Qwen3-Coder-30B-A3B-Instruct Qwen/Qwen3-VL-Embedding-8B meta-llama/Llama-3.3-70B-Instruct
    google/gemma-3-1b-it google/gemma-2-9b-it mistralai/Mistral-7B-Instruct-v0.3 openai/gpt-oss-20b zai-org/GLM-5.3
    deepseek-ai/DeepSeek-V3 moonshotai/Kimi-K2-Instruct microsoft/phi-4 meta-llama/Llama-Guard-4-12B
    jinaai/jina-reranker-m0-vl""".split(),
)
async def test_a_model_with_another_name_is_not_used(name: str) -> None:
    assert await found(model(name)) == []


@requirement("seer.loopback.vllm")
async def test_a_renamed_model_is_recognized_by_its_weights() -> None:
    chosen = Chooser(server(model("eye", "Qwen/Qwen3-VL-8B-Instruct"), model("ear", "/models/whisper")),
                   read_consent=lambda provider: False, loopback=HERE)  # fmt: skip
    (seer,) = await seers_of(chosen, visitor(), profile(None))
    assert isinstance(seer, ChatSeer)
    assert (seer.name, seer.model, seer.url) == ("vllm/eye", "eye", "http://localhost:8000/v1/chat/completions")
    assert seer.headers == {}


@requirement("seer.loopback.vllm")
async def test_another_server_on_the_port_is_not_mistaken_for_vllm() -> None:
    seeing = "Qwen/Qwen3-VL-8B-Instruct"
    odd: tuple[Any, ...] = (
        model(seeing, owner="openai"),
        {"id": seeing},
        {"id": 7, "owned_by": "vllm"},
        None,
        [],
        seeing,
    )
    assert await found(*odd) == []
    assert await found(*odd, {**model(seeing), "root": None}) == [f"vllm/{seeing}"]


@requirement("seer.loopback.again")
async def test_the_loopback_search_is_repeated_after_a_while() -> None:
    now = 1000.0
    served = ["Qwen/Qwen3-VL-8B-Instruct"]
    http = ScriptedHttp(by_url=lambda asked: reply(body={"data": [model(name) for name in served]}))
    chosen = Chooser(http, read_consent=lambda provider: False, loopback=HERE, clock=lambda: now)
    before = names(await seers_of(chosen, visitor(), profile(None)))
    served[:] = ["google/gemma-3-27b-it"]
    now += 299
    assert names(await seers_of(chosen, visitor(), profile(None))) == before
    now += 1
    assert names(await seers_of(chosen, visitor(), profile(None))) == ["vllm/google/gemma-3-27b-it"]
    assert len(http.asked) == 2
