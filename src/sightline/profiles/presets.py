"""The table of well-known upstreams. It is out of date within weeks, so settings and rejections override it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sightline.model.image import FlatSizing, compute_base64_length
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
)

# Anthropic's rejections count an "MB" as 1024 * 1024 ("exceeds 5 MB maximum: … > 5242880 bytes"), and they
# count base64 text; so its 10 MB and 32 MB are taken the same way. Over 20 images, each edge is at most 2000.
_ANTHROPIC_LIMITS = ImageLimits(
    encoded_bytes=10 * MIB, edge=8000, crowd=20, crowd_edge=2000, count=100, request_bytes=32 * MIB
)

_OPENAI_LIMITS = ImageLimits(still=True, count=1500, request_bytes=512 * MIB)

_GEMINI_LIMITS = ImageLimits(formats=(PNG, JPEG, WEBP, "image/heic", "image/heif"), count=3600, request_bytes=100 * MIB)

_XAI_LIMITS = ImageLimits(formats=(PNG, JPEG), encoded_bytes=compute_base64_length(20 * MIB))

# "15 images or more": a crowd is more than 14. The 32 MiB are of the decoded file.
_DEEPSEEK_LIMITS = ImageLimits(
    encoded_bytes=compute_base64_length(32 * MIB), edge=8192, crowd=14, crowd_edge=4096, count=600,
    request_bytes=48 * MIB,
)  # fmt: skip

_GLM_LIMITS = ImageLimits(formats=(PNG, JPEG), encoded_bytes=compute_base64_length(5 * MIB), edge=6000)

_QWEN_LIMITS = ImageLimits(formats=(PNG, JPEG, WEBP), encoded_bytes=10 * MIB)

_MISTRAL_LIMITS = ImageLimits(still=True, encoded_bytes=compute_base64_length(10 * MIB))

_HOURS = 4 * 3600.0  # "hours to days"

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

# The makers of open models, and their coding plans.

DEEPSEEK = Preset(
    name="deepseek",
    bases={
        "anthropic": "https://api.deepseek.com/anthropic",
        "openai_chat": "https://api.deepseek.com",
        "openai_responses": "https://api.deepseek.com",
    },
    addresses=("api.deepseek.com",),
    key_variables=("DEEPSEEK_API_KEY",),
    rules=(
        # Its Anthropic endpoint serves opus names by deepseek-v4-pro, all other claude by deepseek-flash.
        *build_blind_rules("claude-opus*", wires=("anthropic",)),
        *build_seeing_rules("claude*", wires=("anthropic",)),
        *build_blind_rules("deepseek-v4-pro*"),
        *build_seeing_rules("deepseek-flash*", "deepseek-v4-flash*", "deepseek-v4.1-flash*"),
    ),
    sibling="deepseek-flash",
    limits=_DEEPSEEK_LIMITS,
    sizing=FlatSizing(1024),  # also where it goes by a claude name
    cache=(
        CachePriceRule("deepseek-v4-pro*", 1, 0.033, _HOURS),
        CachePriceRule("claude-opus*", 1, 0.033, _HOURS),
        CachePriceRule("*", 1, 0.02, _HOURS),
    ),
    stateless=True,
)

_GLM_EYES = build_seeing_rules("glm-5.3-flash*", "glm-5v*", "glm-4.6v*", "glm-4.5v*", "glm-4v*")

ZAI = Preset(
    name="zai",
    bases={"anthropic": "https://api.z.ai/api/anthropic", "openai_chat": "https://api.z.ai/api/paas/v4"},
    # A coding plan and a pay-as-you-go key share /api/anthropic. Assuming pay-as-you-go, an image for a model that sees
    # only on the plan is described, which always works. The other way round it would be rejected.
    addresses=("api.z.ai", "open.bigmodel.cn"),
    key_variables=("ZAI_API_KEY", "Z_AI_API_KEY", "ZHIPU_API_KEY", "ZHIPUAI_API_KEY", "GLM_API_KEY"),
    rules=(
        *_GLM_EYES,
        *build_blind_rules("glm-5.3", "glm-5.2*", "glm-5.1*", "glm-5", "glm-5-turbo*", "glm-5-code*"),
        *build_blind_rules("glm-4.7*", "glm-4.6*", "glm-4.5*", "glm-4-32b*"),
        *build_uncertain_rules("claude*"),  # served by a GLM model; by which one is not published
    ),
    sibling="glm-5.3-flash",
    limits=_GLM_LIMITS,
    cache=(
        CachePriceRule("glm-5.3-flash*", 1, 0.2),
        CachePriceRule("glm-5", 1, 0.2),
        CachePriceRule("glm-4*", 1, 0.183),
        CachePriceRule("*", 1, 0.186),
    ),
    bearer=True,
)

ZAI_CODING = replace(
    ZAI,
    name="zai-coding",
    bases={
        "anthropic": "https://api.z.ai/api/anthropic",
        "openai_chat": "https://api.z.ai/api/coding/paas/v4",
        "openai_responses": "https://api.z.ai/api/v1",
    },
    addresses=("api.z.ai/api/coding", "api.z.ai/api/v1", "open.bigmodel.cn/api/coding"),
    rules=(
        *build_seeing_rules("glm-5.3-flash*"),
        *build_seeing_rules("glm-5-turbo*", "glm-4.7*"),  # the plan serves these names by glm-5.3-flash
        *build_blind_rules("glm-5.3", "glm-5.2*", "glm-5.1*"),
        *build_uncertain_rules("claude*"),
    ),
    tool_images={"openai_responses": "hoist"},  # an image inside function_call_output stays unseen there
    cache=(),  # a quota, not a price
)

MOONSHOT = Preset(
    name="moonshot",
    bases=build_bases("https://api.moonshot.ai", "/anthropic"),
    addresses=("api.moonshot.ai", "api.moonshot.cn"),
    key_variables=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
    rules=(
        *build_seeing_rules("kimi-k3*", "kimi-k2.7-code*", "kimi-k2.6*", "kimi-k2.5*", "moonshot-v1-*-vision-preview"),
        *build_blind_rules("kimi-k2", "kimi-k2-*", "moonshot-v1-*"),
    ),
    sibling="kimi-k2.6",
    cache=(
        CachePriceRule("kimi-k3*", 1, 0.1),
        CachePriceRule("kimi-k2.7-code*", 1, 0.2),
        CachePriceRule("*", 1, 0.17),
    ),
)

KIMI_CODING = Preset(
    name="kimi-coding",
    bases={"anthropic": "https://api.kimi.com/coding", "openai_chat": "https://api.kimi.com/coding/v1"},
    addresses=("api.kimi.com/coding", "api.kimi.ai/coding"),
    key_variables=("KIMI_API_KEY",),
    rules=(
        *build_seeing_rules("kimi-for-coding*", "kimi-k2.5*", "kimi-k2.6*", "kimi-k2.7-code*", "k2p5*", "k2p6*"),
        *build_uncertain_rules("k3*", "kimi-k3*"),  # has refused images on this host while the same model saw elsewhere
        *build_blind_rules("kimi-k2-*"),
    ),
    sibling="kimi-for-coding",
)

MINIMAX = Preset(
    name="minimax",
    bases=build_bases("https://api.minimax.io", "/anthropic"),
    addresses=("api.minimax.io", "api.minimaxi.com"),
    key_variables=("MINIMAX_API_KEY",),
    rules=(*build_seeing_rules("minimax-m3*"), *build_blind_rules("minimax-m2*", "minimax-m1*")),
    sibling="MiniMax-M3",
    cache=(
        CachePriceRule("minimax-m3*", 1, 0.2),
        CachePriceRule("minimax-m2.7*", 1, 0.2),
        CachePriceRule("*", 1, 0.1),
    ),
)

DASHSCOPE = Preset(
    name="dashscope",
    bases={
        "anthropic": "https://dashscope-intl.aliyuncs.com/apps/anthropic",
        "openai_chat": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    },
    addresses=tuple(f"{host}.aliyuncs.com" for host in ("dashscope", "dashscope-intl", "dashscope-us", "*.maas")),
    key_variables=("DASHSCOPE_API_KEY", "QWEN_API_KEY", "MODELSTUDIO_API_KEY"),
    rules=(
        *build_seeing_rules("qwen*-vl*", "qvq*", "qwen*-omni*"),
        *build_seeing_rules("qwen3.8-max*", "qwen3.8-flash*", "qwen3.7-plus*", "qwen3.7-flash*"),
        *build_seeing_rules("qwen3.6-plus*", "qwen3.5-plus*", "kimi-k2.5*", "kimi-k2.6*", "kimi-k2.7*", "kimi-k3*"),
        *build_blind_rules("qwen3.7-max*", "qwen3-max*", "qwen3-coder*", "qwen3-next*", "qwen-max*", "qwen-plus*"),
        *build_blind_rules("qwen-turbo*", "qwen-flash*", "qwen-coder*", "qwq*"),
        # Hosts of others' models: deepseek-v4-flash is an older, blind version here.
        *build_blind_rules("deepseek-v4-*", "minimax-m2*"),
        *build_seeing_rules("glm-5.3-flash*", "glm-*v", "glm-*v-*"),
        *build_blind_rules("glm-*"),
    ),
    sibling="qwen3.8-flash",
    limits=_QWEN_LIMITS,
    cache=(
        CachePriceRule("qwen3.8-flash*", 1.33, 0.107),
        CachePriceRule("qwen3.8-max*", 1.25, 0.125),
        CachePriceRule("*", 1.25, 0.1),
    ),
)

DASHSCOPE_CODING = replace(
    DASHSCOPE,
    name="dashscope-coding",
    bases={
        "anthropic": "https://coding-intl.dashscope.aliyuncs.com/apps/anthropic",
        "openai_chat": "https://coding-intl.dashscope.aliyuncs.com/v1",
    },
    addresses=("coding-intl.dashscope.aliyuncs.com", "coding.dashscope.aliyuncs.com"),
    key_variables=("ALIBABA_CODING_PLAN_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"),
    sibling="qwen3.6-plus",  # the plan has no qwen3.8-flash
    cache=(),
)

MISTRAL = Preset(
    name="mistral",
    bases={"openai_chat": "https://api.mistral.ai/v1"},
    addresses=("api.mistral.ai",),
    key_variables=("MISTRAL_API_KEY",),
    rules=(
        *build_seeing_rules("labs-devstral-small-2512", "mistral-large-*", "mistral-medium-*", "mistral-small-*"),
        *build_seeing_rules("ministral-*", "magistral-*-latest", "mistral-vibe-cli*"),
        *build_seeing_rules("pixtral*", limits=replace(_MISTRAL_LIMITS, count=8)),
        *build_blind_rules("codestral*", "devstral*", "mistral-code*", "open-mistral-nemo*", "mistral-tiny*"),
        *build_blind_rules("voxtral*", "zai-glm-*", "glm-5-2"),
    ),
    sibling="mistral-small-latest",
    limits=_MISTRAL_LIMITS,
    cache=(CachePriceRule("*", 1, 0.1),),
    tool_images={"openai_chat": "bridge"},  # code 3230: Unexpected role 'user' after role 'tool'
)

# Others' models: routers, clouds and local servers.

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
    bases={"openai_chat": "https://api.groq.com/openai/v1", "openai_responses": "https://api.groq.com/openai/v1"},
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

VLLM = Preset(name="vllm", bases=build_bases("http://localhost:8000"), addresses=("localhost:8000",))


CHECKED_ON = "2026-11-15"
"""The day on which this table was checked against the providers' pages and public tables."""

PRESET_ALIASES: Mapping[str, str] = MappingProxyType({"google": "gemini"})
"""Other names for presets, which some agents and settings use."""

_ALL = (
    ANTHROPIC, OPENAI, CHATGPT, GEMINI, DEEPSEEK, ZAI, ZAI_CODING, MOONSHOT, KIMI_CODING, MINIMAX, DASHSCOPE,
    DASHSCOPE_CODING, OPENROUTER, BEDROCK, XAI, MISTRAL, GROQ, OLLAMA, OLLAMA_CLOUD, LMSTUDIO, LLAMACPP, VLLM,
)  # fmt: skip
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})
