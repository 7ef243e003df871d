"""The table of well-known upstreams. It is out of date within weeks, so settings and rejections override it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sightline.model.image import compute_base64_length
from sightline.model.profile import ImageLimits
from sightline.profiles import (
    GIF,
    JPEG,
    MIB,
    PNG,
    WEBP,
    CachePriceRule,
    Preset,
    build_bases,
    build_blind_rules,
    build_seeing_rules,
    build_uncertain_rules,
    open_weights,
)

# Anthropic's rejections count an "MB" as 1024 * 1024 ("exceeds 5 MB maximum: … > 5242880 bytes"), and they
# count base64 text; so its 10 MB and 32 MB are taken the same way. Over 20 images, each edge is at most 2000.
_ANTHROPIC_LIMITS = ImageLimits(
    encoded_bytes=10 * MIB, edge=8000, crowd=20, crowd_edge=2000, count=100, request_bytes=32 * MIB
)

_OPENAI_LIMITS = ImageLimits(still=True, count=1500, request_bytes=512 * MIB)

_GEMINI_LIMITS = ImageLimits(formats=(PNG, JPEG, WEBP, "image/heic", "image/heif"), count=3600, request_bytes=100 * MIB)

_XAI_LIMITS = ImageLimits(formats=(PNG, JPEG), encoded_bytes=compute_base64_length(20 * MIB))

ANTHROPIC = Preset(
    name="anthropic",
    bases={"anthropic": "https://api.anthropic.com", "openai_chat": "https://api.anthropic.com/v1"},
    addresses=("api.anthropic.com",),
    key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    rules=build_seeing_rules("claude-*"),
    sibling="claude-haiku-5-5",
    limits=_ANTHROPIC_LIMITS,
    cache=(
        CachePriceRule("claude-fable-5-1*", 1.25, 0.025),
        CachePriceRule("claude-mythos-5-1*", 1.25, 0.025),
        CachePriceRule("claude-opus-5-5*", 1.25, 0.05),
        CachePriceRule("claude-sonnet-5-5*", 1.25, 0.05),
        CachePriceRule("*", 1.25, 0.1),
    ),
)

OPENAI = Preset(
    name="openai",
    bases={"openai_chat": "https://api.openai.com/v1", "openai_responses": "https://api.openai.com/v1"},
    addresses=("api.openai.com",),
    key_variables=("OPENAI_API_KEY",),
    rules=(
        *build_blind_rules("*audio*", "o1-mini*", "o3-mini*", "*codex-spark*", "gpt-oss*"),
        *build_blind_rules("gpt-3.5*", "gpt-4", "gpt-4-0*", "gpt-5.5-cyber*", "gpt-rosalind-*"),
        *build_seeing_rules("gpt-4o*", "gpt-4.1*", "gpt-5*", "gpt-6*", "chat-latest"),
        *build_seeing_rules("o1", "o1-pro*", "o3", "o3-pro*", "o4-mini*"),
    ),
    sibling="gpt-6-luna",
    limits=_OPENAI_LIMITS,
    cache=(
        CachePriceRule("gpt-6.1-sol*", 1.25, 0.05, 1800),
        CachePriceRule("gpt-6*", 1.25, 0.1, 1800),
        CachePriceRule("gpt-5.6*", 1.25, 0.1, 1800),
        CachePriceRule("gpt-5*", 1, 0.1, 600),
        CachePriceRule("gpt-4o*", 1, 0.5, 600),
        CachePriceRule("*", 1, 0.25, 600),
    ),
)

CHATGPT = Preset(
    name="chatgpt",
    bases={"openai_responses": "https://chatgpt.com/backend-api/codex"},
    addresses=("chatgpt.com/backend-api",),
    rules=(*build_blind_rules("*codex-spark*"), *build_seeing_rules("gpt-5*", "gpt-6*")),
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
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    rules=(
        *build_blind_rules("*-tts*", "*embedding*", "lyria*"),
        *build_seeing_rules("gemini-*", "gemma-3*", "gemma-4*"),
    ),
    sibling="gemini-3.8-flash",
    limits=_GEMINI_LIMITS,
    cache=(CachePriceRule("gemini-4-argon*", 1, 0.05, 600), CachePriceRule("*", 1, 0.1, 600)),
)

XAI = Preset(
    name="xai",
    bases={"openai_chat": "https://api.x.ai/v1", "openai_responses": "https://api.x.ai/v1"},
    addresses=("api.x.ai", "*.api.x.ai"),
    key_variables=("XAI_API_KEY",),
    rules=(
        *build_seeing_rules("grok-4*", "grok-build*"),
        *build_uncertain_rules("grok-code-fast*"),
        *build_blind_rules("grok-3*"),
    ),
    sibling="grok-4.3",
    limits=_XAI_LIMITS,
    cache=(CachePriceRule("grok-4.6*", 1, 0.25), CachePriceRule("grok-4.7*", 1, 0.25), CachePriceRule("*", 1, 0.16)),
)


OPENROUTER = Preset(
    name="openrouter",
    bases=build_bases("https://openrouter.ai/api"),
    addresses=("openrouter.ai",),
    key_variables=("OPENROUTER_API_KEY",),
    # No rows: it publishes each model's inputs, and says in its rejection when no provider takes images.
    sibling="z-ai/glm-5.3-flash",
    bearer=True,
)

# Its requests are signed, so the proxy cannot forward them: the preset is for programs that call Bedrock themselves.
# 3.75 MB of an image are 5 MiB of base64; for Claude, the other limits are Anthropic's.
BEDROCK = Preset(
    name="bedrock",
    bases={},
    addresses=("bedrock-runtime.*.amazonaws.com",),
    rules=(
        *build_blind_rules(
            "*gpt-oss*", "*qwen3-coder*", "deepseek*", "*.deepseek*", "*kimi-k2-thinking*", "*nova-micro*"
        ),
        *build_seeing_rules(
            "anthropic.claude*", "*.anthropic.claude*", "amazon.nova*", "*.amazon.nova*", "qwen.qwen3-vl*"
        ),
    ),
    limits=ImageLimits(encoded_bytes=5 * MIB, edge=8000, crowd=20, crowd_edge=2000, count=100),
    cache=(CachePriceRule("*anthropic.claude*", 1.25, 0.1), CachePriceRule("*", 1, 0.25)),
)

GROQ = Preset(
    name="groq",
    bases={
        "openai_chat": "https://api.groq.com/openai/v1",
        "openai_responses": "https://api.groq.com/openai/v1",
    },
    addresses=("api.groq.com",),
    key_variables=("GROQ_API_KEY",),
    rules=(
        *build_seeing_rules("qwen/qwen3.6-27b", "qwen/qwen3.8-27b"),
        *build_blind_rules("openai/gpt-oss-*", "llama-3*", "groq/compound*"),
    ),
    sibling="qwen/qwen3.8-27b",
    limits=ImageLimits(encoded_bytes=4 * MIB, count=5, request_bytes=20 * MIB),
    cache=(CachePriceRule("openai/gpt-oss-*", 1, 0.5, 7200), CachePriceRule("*", 1, 1, 7200)),
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
    bases=build_bases("https://ollama.com"),
    addresses=("ollama.com",),
    key_variables=("OLLAMA_API_KEY",),
    rules=(*build_seeing_rules(*_OLLAMA_SEEING), *build_blind_rules(*_OLLAMA_BLIND)),
    sibling="glm-5.3-flash",
    limits=ImageLimits(formats=(PNG, JPEG, WEBP)),
    bearer=True,
    stateless=True,
)

# Only names that have no vision in any build are listed, and the cloud models that a signed-in local server forwards.
OLLAMA = Preset(
    name="ollama",
    bases=build_bases("http://localhost:11434"),
    addresses=("localhost:11434",),
    rules=(
        *build_seeing_rules(*(f"{pattern}cloud" for pattern in _OLLAMA_SEEING)),
        *build_blind_rules(*(f"{pattern}cloud" for pattern in _OLLAMA_BLIND), sibling="glm-5.3-flash:cloud"),
        *build_blind_rules("gpt-oss*", "qwen3-coder*"),
    ),
    limits=ImageLimits(formats=(PNG, JPEG, WEBP)),
    stateless=True,
)

LMSTUDIO = Preset(
    name="lmstudio",
    bases=build_bases("http://localhost:1234"),
    addresses=("localhost:1234",),
    key_variables=("LM_API_TOKEN",),
    limits=ImageLimits(formats=(PNG, JPEG, WEBP)),
)

LLAMACPP = Preset(
    name="llamacpp",
    bases=build_bases("http://localhost:8080"),
    addresses=("localhost:8080",),
    limits=ImageLimits(formats=(PNG, JPEG, GIF, "image/bmp")),  # what stb_image reads, not WebP
)

VLLM = Preset(
    name="vllm",
    bases=build_bases("http://localhost:8000"),
    addresses=("localhost:8000",),
)


CHECKED_ON = "2026-11-15"
"""The day on which this table was checked against the providers' pages and public tables."""

PRESET_ALIASES: Mapping[str, str] = MappingProxyType({"google": "gemini"})
"""Other names for presets, which some agents and settings use."""

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
