"""Models of providers that no wire of ours reaches, as Bedrock and Vertex: asked through LiteLLM, where that is there.

The library takes a Chat Completions body and finds the credentials itself, where each provider usually has them.
It takes seconds to load and many packages to install: it is an extra, and nothing of it is loaded before it is used.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import orjson

from sightline.model.ports import Reply
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream

# As the library names them; those that have models which see, and no wire of our own.
PROVIDERS = frozenset(
    """azure azure_ai bedrock cloudflare cohere databricks deepinfra fireworks_ai github_copilot hosted_vllm huggingface
    hyperbolic lambda_ai nebius novita nscale nvidia_nim oci ovhcloud perplexity replicate sagemaker sambanova scaleway
    snowflake together_ai vercel_ai_gateway vertex_ai volcengine watsonx xinference""".split()
)
_LIBRARY = "litellm"


def upstream(provider: str) -> Upstream:
    """Whoever it is: an address that is nowhere, so that nobody takes it for this machine."""
    return Upstream(provider, {"openai_chat": f"{_LIBRARY}://{provider}"})


def installed() -> bool:
    return find_spec(_LIBRARY) is not None


def missing(provider: str) -> Refusal | None:
    if installed():
        return None
    what = f"{provider} is asked through LiteLLM, which is not installed"
    return Refusal("unavailable", what, "the user runs: pip install 'sightline[providers]'")


class Library:
    """Implements the port `Http` for the addresses above: an answer of the library is that of a server."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> Reply | Refusal:
        asked = {name: value for name, value in orjson.loads(body).items() if not name.startswith("stream")}
        asked["model"] = f"{urlsplit(url).hostname}/{asked['model']}"
        return await asyncio.to_thread(_completed, asked, seconds)


def _completed(asked: dict[str, Any], seconds: float) -> Reply | Refusal:
    # Its prices are read from its own files, or it would ask somebody for them as soon as it is loaded.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm

        litellm.suppress_debug_info = True
        answer = litellm.completion(**asked, timeout=seconds, num_retries=0, drop_params=True)
        return Reply(200, (), orjson.dumps(answer.model_dump(mode="json")))
    except Exception as trouble:  # noqa: BLE001, every provider fails in a way of its own
        status = getattr(trouble, "status_code", None)
        if not isinstance(status, int):
            return Refusal("unavailable", "the library could not ask", "see whether the provider's credentials are set")
        return Reply(status, (), str(trouble).encode())  # it is read for its cause, and shown to nobody
