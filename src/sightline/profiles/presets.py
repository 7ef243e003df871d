"""The table of well-known upstreams. Catalogues age in weeks: a user's word and a rejection outrank it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sightline.profiles import closed, hosts, open_weights
from sightline.profiles.preset import Preset

READ_ON = "2026-11-15"
"""The day on which the providers' pages and the public tables behind this one were read."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            closed.ANTHROPIC,
            closed.OPENAI,
            closed.CHATGPT,
            closed.GEMINI,
            open_weights.DEEPSEEK,
            open_weights.ZAI,
            open_weights.ZAI_CODING,
            open_weights.MOONSHOT,
            open_weights.KIMI_CODING,
            open_weights.MINIMAX,
            open_weights.DASHSCOPE,
            open_weights.DASHSCOPE_CODING,
            hosts.OPENROUTER,
            hosts.BEDROCK,
            closed.XAI,
            open_weights.MISTRAL,
            hosts.GROQ,
            hosts.OLLAMA,
            hosts.OLLAMA_CLOUD,
            hosts.LMSTUDIO,
            hosts.LLAMACPP,
            hosts.VLLM,
        )
    }
)
