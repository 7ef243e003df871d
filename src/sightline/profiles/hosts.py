"""Presets of hosts and local servers, which serve others' models."""

from __future__ import annotations

from sightline.model.profile import Limits
from sightline.profiles.preset import GIF, JPEG, MIB, PNG, WEBP, Cached, Preset, blind, seeing

OPENROUTER = Preset(
    name="openrouter",
    bases={
        "anthropic": "https://openrouter.ai/api",
        "openai_chat": "https://openrouter.ai/api/v1",
        "openai_responses": "https://openrouter.ai/api/v1",
    },
    addresses=("openrouter.ai",),
    keys=("OPENROUTER_API_KEY",),
    # No rows: it publishes each model's inputs, and says in its rejection when no provider takes images.
    sibling="z-ai/glm-5.3-flash",
    bearer=True,
)

# Its requests are signed, so no address of it is asked: it is known for those who call it themselves. 3.75 MB of an
# image are 5 MiB of base64; where Claude is served there, the rest is as at Anthropic.
BEDROCK = Preset(
    name="bedrock",
    bases={},
    addresses=("bedrock-runtime.*.amazonaws.com",),
    rows=(
        *blind("*gpt-oss*", "*qwen3-coder*", "deepseek*", "*.deepseek*", "*kimi-k2-thinking*", "*nova-micro*"),
        *seeing("anthropic.claude*", "*.anthropic.claude*", "amazon.nova*", "*.amazon.nova*", "qwen.qwen3-vl*"),
    ),
    limits=Limits(encoded_bytes=5 * MIB, edge=8000, crowd=20, crowd_edge=2000, count=100),
    cache=(Cached("*anthropic.claude*", 1.25, 0.1), Cached("*", 1, 0.25)),
)

GROQ = Preset(
    name="groq",
    bases={
        "openai_chat": "https://api.groq.com/openai/v1",
        "openai_responses": "https://api.groq.com/openai/v1",
    },
    addresses=("api.groq.com",),
    keys=("GROQ_API_KEY",),
    rows=(
        *seeing("qwen/qwen3.6-27b", "qwen/qwen3.8-27b"),
        *blind("openai/gpt-oss-*", "llama-3*", "groq/compound*"),
    ),
    sibling="qwen/qwen3.8-27b",
    limits=Limits(encoded_bytes=4 * MIB, count=5, request_bytes=20 * MIB),
    cache=(Cached("openai/gpt-oss-*", 1, 0.5, 7200), Cached("*", 1, 1, 7200)),
)

_OLLAMA_SEEING = (
    *("glm-5.3-flash*", "kimi-k3*", "kimi-k2.6*", "kimi-k2.5*", "minimax-m3*", "qwen3.5*"),
    *("qwen3-vl*", "gemma4*", "mistral-large-3*", "ministral-3*"),
)
_OLLAMA_BLIND = (
    *("glm-5.3*", "glm-5.2*", "glm-5.1*", "glm-4.7*", "deepseek-v4-pro*", "kimi-k2:1t*"),
    *("gpt-oss*", "qwen3-coder*", "minimax-m2*", "nemotron-3*", "devstral-2*"),
)

OLLAMA_CLOUD = Preset(
    name="ollama-cloud",
    bases={
        "anthropic": "https://ollama.com",
        "openai_chat": "https://ollama.com/v1",
        "openai_responses": "https://ollama.com/v1",
    },
    addresses=("ollama.com",),
    keys=("OLLAMA_API_KEY",),
    rows=(*seeing(*_OLLAMA_SEEING), *blind(*_OLLAMA_BLIND)),
    sibling="glm-5.3-flash",
    limits=Limits(formats=(PNG, JPEG, WEBP)),
    bearer=True,
    stateless=True,
)

# A local server knows best what it has loaded, so only names that are blind in every build are listed; and
# the names of cloud models, which a signed-in local server passes on, with their sibling in the cloud.
OLLAMA = Preset(
    name="ollama",
    bases={
        "anthropic": "http://localhost:11434",
        "openai_chat": "http://localhost:11434/v1",
        "openai_responses": "http://localhost:11434/v1",
    },
    addresses=("localhost:11434",),
    rows=(
        *seeing(*(f"{pattern}cloud" for pattern in _OLLAMA_SEEING)),
        *blind(*(f"{pattern}cloud" for pattern in _OLLAMA_BLIND), sibling="glm-5.3-flash:cloud"),
        *blind("gpt-oss*", "qwen3-coder*"),
    ),
    limits=Limits(formats=(PNG, JPEG, WEBP)),
    stateless=True,
)

LMSTUDIO = Preset(
    name="lmstudio",
    bases={
        "anthropic": "http://localhost:1234",
        "openai_chat": "http://localhost:1234/v1",
        "openai_responses": "http://localhost:1234/v1",
    },
    addresses=("localhost:1234",),
    keys=("LM_API_TOKEN",),
    limits=Limits(formats=(PNG, JPEG, WEBP)),
)

LLAMACPP = Preset(
    name="llamacpp",
    bases={
        "anthropic": "http://localhost:8080",
        "openai_chat": "http://localhost:8080/v1",
        "openai_responses": "http://localhost:8080/v1",
    },
    addresses=("localhost:8080",),
    limits=Limits(formats=(PNG, JPEG, GIF, "image/bmp")),  # what stb_image reads, which WebP is not
)

VLLM = Preset(
    name="vllm",
    bases={
        "anthropic": "http://localhost:8000",
        "openai_chat": "http://localhost:8000/v1",
        "openai_responses": "http://localhost:8000/v1",
    },
    addresses=("localhost:8000",),
)
