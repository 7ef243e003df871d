"""How each agent is pointed here, and how it is told that its model sees.

`$P` stands for the proxy's address, `$N` for a provider by our name for it, `$M` for a model, `$K` for the variable
that holds the provider's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Agent:
    name: str  # of its command
    title: str
    point: str = ""  # how it is pointed here, in one short line; empty: `once` is one
    once: str = ""  # one run, nothing of the user's changed
    file: str = ""  # where it is pointed for good …
    lines: str = ""  # … and what goes in there
    sees: str = ""  # how it learns that its model takes images; empty: it sends them anyway
    note: str = ""
    mcp: str = ""  # how it gets the tools over MCP; empty: it takes none
    provider: str = ""  # the one that the lines speak of where nobody names another
    model: str = ""  # likewise; empty: they speak of none

    def at(self, address: str, provider: str = "", model: str = "", key: str = "KEY") -> Agent:
        """The same with the address of a running proxy, for a provider and a model."""
        known = {"$P": address, "$N": provider or self.provider, "$M": model or self.model, "$K": key}

        def said(text: str) -> str:
            for mark, value in known.items():
                text = text.replace(mark, value)
            return text

        return replace(self, **{name: said(getattr(self, name)) for name in ("point", "once", "lines", "note")})

    @property
    def brief(self) -> str:
        return self.point or self.once


def omits(name: str, model: str) -> str:
    """What a person does about an agent that leaves images out for a model."""
    title = AGENTS[name].title if name in AGENTS else name
    return (
        f"{title} leaves images out before they get here, because it takes {model or 'its model'} for blind;"
        f" `sightline setup {name}` shows how it is told that the model sees"
    )


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            "Claude Code",
            mcp="claude mcp add --scope user sightline -- sightline mcp",
            point="sightline run -- claude, or ANTHROPIC_BASE_URL=$P/u/NAME",
            once="""claude --settings '{"env":{"ANTHROPIC_BASE_URL":"$P/u/$N"}}'""",
            file="~/.claude/settings.json",
            lines='{"env": {"ANTHROPIC_BASE_URL": "$P/u/$N"}}',
            provider="anthropic",
            note="--upstream names another provider: deepseek, zai, moonshot, …"
            " `sightline run -- claude` does all of it by itself and keeps the provider you already use."
            " A project's own .claude/settings.json that sets ANTHROPIC_BASE_URL wins over yours.",
        ),
        Agent(
            "codex",
            "Codex",
            mcp="codex mcp add sightline -- sightline mcp",
            point="sightline run -- codex, or codex -c openai_base_url=$P/u/openai/v1",
            once="codex -c model_provider=sightline -c 'model_providers.sightline="
            '{name="Sightline",base_url="$P/u/$N/v1",wire_api="responses",requires_openai_auth=true}\'',
            file="~/.codex/config.toml",
            lines='model_provider = "sightline"  # above the first table\n'
            "[model_providers.sightline]\n"
            'name = "Sightline"\n'
            'base_url = "$P/u/$N/v1"\n'
            'wire_api = "responses"\n'
            "requires_openai_auth = true",
            provider="openai",
            note="OPENAI_BASE_URL is ignored by it. With a ChatGPT login base_url is $P/u/chatgpt, without /v1."
            " A model that Codex knows as blind needs input_modalities in a model_catalog_json.",
        ),
        Agent(
            "qwen",
            "Qwen Code",
            mcp="qwen mcp add -s user sightline sightline mcp",
            once="OPENAI_BASE_URL=$P/u/$N/v1 qwen --auth-type openai",
            file="~/.qwen/settings.json",
            lines='{"modelProviders": {"openai": [{"id": "$M", "baseUrl": "$P/u/$N/v1", "envKey": "$K",\n'
            '  "generationConfig": {"modalities": {"image": true}}}]}}',
            sees="modalities.image in the entry of the model, or"
            ' {"model": {"generationConfig": {"modalities": {"image": true}}}} without entries',
            note="A model that stands in modelProviders ignores the variable and the flag: change its baseUrl"
            " there. $P/u/NAME/v1 reaches the provider NAME.",
            provider="dashscope",
            model="MODEL",
        ),
        Agent(
            "pi",
            "pi",
            point='"baseUrl": "$P/u/NAME/v1" of the provider in ~/.pi/agent/models.json',
            file="~/.pi/agent/models.json",
            lines='{"providers": {"$N": {"baseUrl": "$P/u/$N/v1",\n'
            '  "modelOverrides": {"$M": {"input": ["text", "image"]}}}}}',
            provider="zai",
            model="glm-5.3",
            sees='"input" in modelOverrides of each model; `pi --list-models` shows it under images',
            note="No variable points it elsewhere. baseUrl alone keeps its models and your login.",
        ),
        Agent(
            "opencode",
            "opencode",
            mcp="opencode mcp add sightline -- sightline mcp",
            point='"baseURL": "$P/u/NAME/v1" of the provider in opencode.json',
            once="OPENCODE_CONFIG_CONTENT='"
            '{"provider":{"$N":{"options":{"baseURL":"$P/u/$N/v1"},"models":{"$M":'
            '{"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}\' opencode',
            file="~/.config/opencode/opencode.json",
            lines='{"provider": {"$N": {"options": {"baseURL": "$P/u/$N/v1"},\n'
            '  "models": {"$M": {"attachment": true,\n'
            '    "modalities": {"input": ["text", "image"], "output": ["text"]}}}}}}',
            sees='"attachment" and "modalities" of each model',
            provider="deepseek",
            model="deepseek-v4-pro",
            note="Its provider `anthropic` takes $P/u/anthropic/v1, with /v1 as well.",
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            mcp="gemini mcp add -s user sightline sightline mcp",
            point="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
            once="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
            file="~/.gemini/.env",
            lines="GOOGLE_GEMINI_BASE_URL=$P/u/$N",
            provider="gemini",
            note="Needs a saved security.auth.selectedType; without one it stops with exit 41.",
        ),
        Agent(
            "cline",
            "Cline CLI",
            mcp="cline mcp add --yes sightline -- sightline mcp",
            point="cline auth -p openai -k KEY -m $M -b $P/u/$N/v1",
            once="cline auth --data-dir DIR -p openai -k KEY -m $M -b $P/u/$N/v1; cline --data-dir DIR PROMPT",
            file="~/.cline/data/settings/providers.json, written by",
            lines="cline auth -p openai -k KEY -m $M -b $P/u/$N/v1",
            provider="openai",
            model="MODEL",
            note="OPENAI_BASE_URL is ignored by it, and only OpenAI-compatible providers can be pointed.",
        ),
        Agent(
            "copilot",
            "Copilot CLI",
            mcp="copilot mcp add sightline -- sightline mcp",
            point="COPILOT_PROVIDER_BASE_URL=$P/u/NAME/v1 copilot, with a key of your own",
            once="COPILOT_PROVIDER_BASE_URL=$P/u/NAME/v1 COPILOT_PROVIDER_TYPE=openai"
            " COPILOT_PROVIDER_WIRE_API=completions COPILOT_PROVIDER_API_KEY=KEY COPILOT_MODEL=MODEL copilot",
            note="With a key of your own only; with the GitHub login nothing can be pointed. Pictures that its"
            " own view tool opens never leave it; attached ones do.",
        ),
    )
}
