"""How each agent is pointed here, and how it is told that its model sees. `$P` stands for the proxy's address."""

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

    def at(self, address: str) -> Agent:
        """The same with the address of a running proxy."""
        said = {name: getattr(self, name).replace("$P", address) for name in ("point", "once", "lines", "note")}
        return replace(self, **said)

    @property
    def brief(self) -> str:
        return self.point or self.once


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            "Claude Code",
            point="sightline run -- claude, or ANTHROPIC_BASE_URL=$P/u/NAME",
            once="""claude --settings '{"env":{"ANTHROPIC_BASE_URL":"$P/u/NAME"}}'""",
            file="~/.claude/settings.json",
            lines='{"env": {"ANTHROPIC_BASE_URL": "$P/u/NAME"}}',
            note="NAME is your provider: anthropic, deepseek, zai, moonshot, …"
            " `sightline run -- claude` does all of it by itself and keeps the provider you already use."
            " A project's own .claude/settings.json that sets ANTHROPIC_BASE_URL wins over yours.",
        ),
        Agent(
            "codex",
            "Codex",
            point="codex -c openai_base_url=$P/u/openai/v1",
            once="codex -c model_provider=sightline -c 'model_providers.sightline="
            '{name="Sightline",base_url="$P/u/openai/v1",wire_api="responses",requires_openai_auth=true}\'',
            file="~/.codex/config.toml",
            lines='model_provider = "sightline"  # above the first table\n'
            "[model_providers.sightline]\n"
            'name = "Sightline"\n'
            'base_url = "$P/u/openai/v1"\n'
            'wire_api = "responses"\n'
            "requires_openai_auth = true",
            note="OPENAI_BASE_URL is ignored by it.",
        ),
        Agent(
            "qwen",
            "Qwen Code",
            once="OPENAI_BASE_URL=$P/u/NAME/v1 qwen --auth-type openai",
            file="~/.qwen/settings.json",
            lines='{"modelProviders": {"openai": [{"id": "MODEL", "baseUrl": "$P/u/dashscope/v1",'
            ' "envKey": "DASHSCOPE_API_KEY",\n'
            '  "generationConfig": {"modalities": {"image": true}}}]}}',
            sees="modalities.image in the entry of the model, or"
            ' {"model": {"generationConfig": {"modalities": {"image": true}}}} without entries',
            note="A model that stands in modelProviders ignores the variable and the flag: change its baseUrl"
            " there. $P/u/NAME/v1 reaches the provider NAME.",
        ),
        Agent(
            "pi",
            "pi",
            point='"baseUrl": "$P/u/NAME/v1" of the provider in ~/.pi/agent/models.json',
            file="~/.pi/agent/models.json",
            lines='{"providers": {"zai": {"baseUrl": "$P/u/zai/v1",\n'
            '  "modelOverrides": {"glm-5.3": {"input": ["text", "image"]}}}}}',
            sees='"input" in modelOverrides of each model; `pi --list-models` shows it under images',
            note="No variable points it elsewhere. baseUrl alone keeps its models and your login.",
        ),
        Agent(
            "opencode",
            "opencode",
            point='"baseURL": "$P/u/NAME/v1" of the provider in opencode.json',
            once="OPENCODE_CONFIG_CONTENT='"
            '{"provider":{"deepseek":{"options":{"baseURL":"$P/u/deepseek/v1"},"models":{"deepseek-v4-pro":'
            '{"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}\' opencode',
            file="~/.config/opencode/opencode.json",
            lines='{"provider": {"deepseek": {"options": {"baseURL": "$P/u/deepseek/v1"},\n'
            '  "models": {"deepseek-v4-pro": {"attachment": true,\n'
            '    "modalities": {"input": ["text", "image"], "output": ["text"]}}}}}}',
            sees='"attachment" and "modalities" of each model',
            note="Its provider `anthropic` takes $P/u/anthropic/v1, with /v1 as well.",
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            point="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
            once="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
            file="~/.gemini/.env",
            lines="GOOGLE_GEMINI_BASE_URL=$P/u/gemini",
            note="Needs a saved security.auth.selectedType; without one it stops with exit 41.",
        ),
        Agent(
            "cline",
            "Cline CLI",
            point="cline auth -p openai -k KEY -m MODEL -b $P/u/NAME/v1",
            once="cline auth --data-dir DIR -p openai -k KEY -m MODEL -b $P/u/NAME/v1; cline --data-dir DIR PROMPT",
            file="~/.cline/data/settings/providers.json, written by",
            lines="cline auth -p openai -k KEY -m MODEL -b $P/u/NAME/v1",
            note="OPENAI_BASE_URL is ignored by it, and only OpenAI-compatible providers can be pointed.",
        ),
        Agent(
            "copilot",
            "Copilot CLI",
            point="COPILOT_PROVIDER_BASE_URL=$P/u/NAME/v1 copilot, with a key of your own",
            once="COPILOT_PROVIDER_BASE_URL=$P/u/NAME/v1 COPILOT_PROVIDER_TYPE=openai"
            " COPILOT_PROVIDER_WIRE_API=completions COPILOT_PROVIDER_API_KEY=KEY COPILOT_MODEL=MODEL copilot",
            note="With a key of your own only; with the GitHub login nothing can be pointed. Pictures that its"
            " own view tool opens never leave it; attached ones do.",
        ),
    )
}
