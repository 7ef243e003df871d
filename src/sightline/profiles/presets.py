"""The table of well-known upstreams. Catalogues age in weeks: a user's word and a rejection outrank it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sightline.model.image import base64_length
from sightline.model.profile import Limits
from sightline.profiles import open_weights
from sightline.profiles.preset import (
    GIF,
    JPEG,
    MIB,
    PNG,
    WEBP,
    Cached,
    Preset,
    blind,
    seeing,
    uncertain,
)

# Anthropic's rejections count an "MB" as 1024 * 1024 ("exceeds 5 MB maximum: … > 5242880 bytes"), and they
# count base64 text; so its 10 MB and 32 MB are taken the same way. Over 20 images, each edge is at most 2000.
_ANTHROPIC_LIMITS = Limits(
    encoded_bytes=10 * MIB, edge=8000, crowd=20, crowd_edge=2000, count=100, request_bytes=32 * MIB
)

_OPENAI_LIMITS = Limits(still=True, count=1500, request_bytes=512 * MIB)

_GEMINI_LIMITS = Limits(formats=(PNG, JPEG, WEBP, "image/heic", "image/heif"), count=3600, request_bytes=100 * MIB)

_XAI_LIMITS = Limits(formats=(PNG, JPEG), encoded_bytes=base64_length(20 * MIB))

ANTHROPIC = Preset(
    name="anthropic",
    bases={"anthropic": "https://api.anthropic.com", "openai_chat": "https://api.anthropic.com/v1"},
    addresses=("api.anthropic.com",),
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    rows=seeing("claude-*"),
    sibling="claude-haiku-5-5",
    limits=_ANTHROPIC_LIMITS,
    cache=(
        Cached("claude-fable-5-1*", 1.25, 0.025),
        Cached("claude-mythos-5-1*", 1.25, 0.025),
        Cached("claude-opus-5-5*", 1.25, 0.05),
        Cached("claude-sonnet-5-5*", 1.25, 0.05),
        Cached("*", 1.25, 0.1),
    ),
)

OPENAI = Preset(
    name="openai",
    bases={"openai_chat": "https://api.openai.com/v1", "openai_responses": "https://api.openai.com/v1"},
    addresses=("api.openai.com",),
    keys=("OPENAI_API_KEY",),
    rows=(
        *blind("*audio*", "o1-mini*", "o3-mini*", "*codex-spark*", "gpt-oss*"),
        *blind("gpt-3.5*", "gpt-4", "gpt-4-0*", "gpt-5.5-cyber*", "gpt-rosalind-*"),
        *seeing("gpt-4o*", "gpt-4.1*", "gpt-5*", "gpt-6*", "chat-latest"),
        *seeing("o1", "o1-pro*", "o3", "o3-pro*", "o4-mini*"),
    ),
    sibling="gpt-6-luna",
    limits=_OPENAI_LIMITS,
    cache=(
        Cached("gpt-6.1-sol*", 1.25, 0.05, 1800),
        Cached("gpt-6*", 1.25, 0.1, 1800),
        Cached("gpt-5.6*", 1.25, 0.1, 1800),
        Cached("gpt-5*", 1, 0.1, 600),
        Cached("gpt-4o*", 1, 0.5, 600),
        Cached("*", 1, 0.25, 600),
    ),
)

CHATGPT = Preset(
    name="chatgpt",
    bases={"openai_responses": "https://chatgpt.com/backend-api/codex"},
    addresses=("chatgpt.com/backend-api",),
    rows=(*blind("*codex-spark*"), *seeing("gpt-5*", "gpt-6*")),
    sibling="gpt-6-luna",
    limits=_OPENAI_LIMITS,
    bearer=True,
)

GEMINI = Preset(
    name="gemini",
    bases={
        "gemini": "https://generativelanguage.googleapis.com",
        "openai_chat": "https://generativelanguage.googleapis.com/v1beta/openai",
    },
    addresses=("generativelanguage.googleapis.com",),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    rows=(*blind("*-tts*", "*embedding*", "lyria*"), *seeing("gemini-*", "gemma-3*", "gemma-4*")),
    sibling="gemini-3.8-flash",
    limits=_GEMINI_LIMITS,
    cache=(Cached("gemini-4-argon*", 1, 0.05, 600), Cached("*", 1, 0.1, 600)),
)

XAI = Preset(
    name="xai",
    bases={"openai_chat": "https://api.x.ai/v1", "openai_responses": "https://api.x.ai/v1"},
    addresses=("api.x.ai", "*.api.x.ai"),
    keys=("XAI_API_KEY",),
    rows=(*seeing("grok-4*", "grok-build*"), *uncertain("grok-code-fast*"), *blind("grok-3*")),
    sibling="grok-4.3",
    limits=_XAI_LIMITS,
    cache=(Cached("grok-4.6*", 1, 0.25), Cached("grok-4.7*", 1, 0.25), Cached("*", 1, 0.16)),
)


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


READ_ON = "2026-11-15"
"""The day on which the providers' pages and the public tables behind this one were read."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            ANTHROPIC,
            OPENAI,
            CHATGPT,
            GEMINI,
            open_weights.DEEPSEEK,
            open_weights.ZAI,
            open_weights.ZAI_CODING,
            open_weights.MOONSHOT,
            open_weights.KIMI_CODING,
            open_weights.MINIMAX,
            open_weights.DASHSCOPE,
            open_weights.DASHSCOPE_CODING,
            OPENROUTER,
            BEDROCK,
            XAI,
            open_weights.MISTRAL,
            GROQ,
            OLLAMA,
            OLLAMA_CLOUD,
            LMSTUDIO,
            LLAMACPP,
            VLLM,
        )
    }
)
