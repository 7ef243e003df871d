"""Presets of the makers of open models, and of their coding plans."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.image import FlatSizing, compute_base64_length
from sightline.model.profile import ImageLimits
from sightline.profiles import (
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

# "15 images or more": a crowd is more than 14. The 32 MiB are of the decoded file.
_DEEPSEEK_LIMITS = ImageLimits(
    encoded_bytes=compute_base64_length(32 * MIB),
    edge=8192,
    crowd=14,
    crowd_edge=4096,
    count=600,
    request_bytes=48 * MIB,
)

_GLM_LIMITS = ImageLimits(formats=(PNG, JPEG), encoded_bytes=compute_base64_length(5 * MIB), edge=6000)

_QWEN_LIMITS = ImageLimits(formats=(PNG, JPEG, WEBP), encoded_bytes=10 * MIB)

_MISTRAL_LIMITS = ImageLimits(still=True, encoded_bytes=compute_base64_length(10 * MIB))

_HOURS = 4 * 3600.0  # "hours to days"

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
    addresses=(
        "dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
        "dashscope-us.aliyuncs.com",
        "*.maas.aliyuncs.com",
    ),
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
