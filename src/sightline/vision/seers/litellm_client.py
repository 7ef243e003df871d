"""Providers that Sightline has no API for, such as Bedrock and Vertex: asked through LiteLLM if it is installed.

LiteLLM takes a Chat Completions body and finds each provider's credentials itself. It is an optional extra, because it
installs many packages, and it is imported on first use, because that takes seconds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import orjson

from sightline.model.ports import HttpReply
from sightline.model.profile import Upstream
from sightline.model.refusal import Refusal

# By LiteLLM's names: those that have vision models, and no API in `seers/`.
LITELLM_PROVIDERS = frozenset(
    """azure azure_ai bedrock cloudflare cohere databricks deepinfra fireworks_ai github_copilot hosted_vllm huggingface
    hyperbolic lambda_ai nebius novita nscale nvidia_nim oci ovhcloud perplexity replicate sagemaker sambanova scaleway
    snowflake together_ai vercel_ai_gateway vertex_ai volcengine watsonx xinference""".split()
)
_LIBRARY = "litellm"


def make_upstream(provider: str) -> Upstream:
    """Return an upstream with an address that can't be dialled, so that it never counts as loopback."""
    return Upstream(provider, {"openai_chat": f"{_LIBRARY}://{provider}"})


def is_installed() -> bool:
    return find_spec(_LIBRARY) is not None


def check_installation(provider: str) -> Refusal | None:
    if is_installed():
        return None
    what = f"{provider} needs LiteLLM, which is not installed"
    return Refusal("unavailable", what, "run: pip install 'sightline[providers]'")


class LitellmClient:
    """The port `HttpSender` for the addresses of `make_upstream`: LiteLLM answers in place of a server."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> HttpReply | Refusal:
        arguments = {name: value for name, value in orjson.loads(body).items() if not name.startswith("stream")}
        arguments["model"] = f"{urlsplit(url).hostname}/{arguments['model']}"
        return await asyncio.to_thread(_complete, arguments, seconds)


def _complete(arguments: dict[str, Any], seconds: float) -> HttpReply | Refusal:
    # Without this it downloads its price list as soon as it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm

        litellm.suppress_debug_info = True
        answer = litellm.completion(**arguments, timeout=seconds, num_retries=0, drop_params=True)
        return HttpReply(200, (), orjson.dumps(answer.model_dump(mode="json")))
    except Exception as error:  # noqa: BLE001, each provider's library raises exceptions of its own
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            return Refusal("unavailable", "LiteLLM could not ask the provider", "check the provider's credentials")
        return HttpReply(status, (), str(error).encode())  # searched for the cause, never shown
