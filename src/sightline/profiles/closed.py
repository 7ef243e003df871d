"""Presets of the makers of closed models."""

from __future__ import annotations

from sightline.model.image import base64_length
from sightline.model.profile import Limits
from sightline.profiles.preset import (
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
