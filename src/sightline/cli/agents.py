"""How each agent is pointed here, and how it is told that its model sees.

`$P` stands for the proxy's address, `$B` for the one that an agent is given, `$N` for a provider as the agent calls
it, `$M` for a model, `$K` for the variable that holds the provider's key, `$L` for the key in Copilot's file, `$A` for
how Codex logs in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Aim:
    """Whom an agent asks through us."""

    upstream: str  # by our name
    provider: str = ""  # by the agent's; empty: the same
    version: str = ""  # what follows our address
    key: str = ""  # the variable that holds the key; empty: none is needed
    login: bool = False  # the agent's own login is the key


@dataclass(frozen=True, slots=True)
class Agent:
    name: str  # of its command
    title: str
    point: str = ""  # how it is pointed here, in one short line; empty: `once` is one
    once: str = ""  # one run, nothing of the user's changed
    file: str = ""  # where it is pointed for good …
    moved: tuple[str, str] = ("", "")  # … the variable that says otherwise, and the file below what that names …
    named: str = ""  # … one that names the file itself …
    lines: str = ""  # … and what goes in there; without a file, the command that does it
    use: str = ""  # what is to be said to it then; empty: nothing
    sees: str = ""  # how it learns that its model takes images; empty: it sends them anyway
    note: str = ""
    mcp: str = ""  # how it gets the tools over MCP; empty: it takes none
    usual: Aim = Aim("NAME", version="/v1", key="KEY")  # whom the lines speak of where nobody names another
    model: str = ""  # likewise; empty: they speak of none

    def at(self, address: str, aim: Aim | None = None, model: str = "") -> Agent:
        """The same with the address of a running proxy, for a provider and a model."""
        aim = aim or self.usual
        known = {
            "$P": address,
            "$B": f"{address}/u/{aim.upstream}{aim.version}",
            "$N": json.dumps(aim.provider or aim.upstream)[1:-1],  # as it stands between quotes
            "$M": json.dumps(model or self.model)[1:-1],
            "$K": aim.key,
            ", $L": f', "apiKey": "{aim.key}"' if aim.key else "",
            ",$A": "".join(f",{each.replace(' ', '')}" for each in _login(aim)),
            "\n$A": "".join(f"\n{each}" for each in _login(aim)),
        }

        def said(text: str) -> str:
            for mark, value in known.items():
                text = text.replace(mark, value)
            return text

        point, once, lines, use, note = map(said, (self.point, self.once, self.lines, self.use, self.note))
        return replace(self, point=point, once=once, lines=lines, use=use, note=note)

    def file_in(self, env: Mapping[str, str]) -> Path | None:
        """Where its file is for a user of this environment."""
        variable, below = self.moved
        if not self.file:
            return None
        if self.named and env.get(self.named):
            return Path(env[self.named]).absolute()
        return Path(env[variable], below) if env.get(variable) else Path(self.file).expanduser()

    @property
    def brief(self) -> str:
        return self.point or self.once


def _login(aim: Aim) -> list[str]:
    if aim.login:
        return ["requires_openai_auth = true"]
    return [f'env_key = "{aim.key}"'] if aim.key else []


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
            once="""claude --settings '{"env":{"ANTHROPIC_BASE_URL":"$B"}}'""",
            file="~/.claude/settings.json",
            moved=("CLAUDE_CONFIG_DIR", "settings.json"),
            lines='{"env": {"ANTHROPIC_BASE_URL": "$B"}}',
            usual=Aim("anthropic"),
            note="--upstream names another provider, whose key then stands in ANTHROPIC_AUTH_TOKEN."
            " `sightline run -- claude` does all of it by itself and keeps the provider you already use."
            " A project's own .claude/settings.json that sets ANTHROPIC_BASE_URL wins over yours.",
        ),
        Agent(
            "codex",
            "Codex",
            mcp="in ~/.codex/config.toml:\n"
            "[mcp_servers.sightline]\n"
            'command = "sightline"\n'
            'args = ["mcp"]\n'
            "required = true # or the first turn does not wait for it",
            point="sightline run -- codex, or codex -c openai_base_url=$P/u/openai/v1",
            once="codex -c model_provider=sightline -c 'model_providers.sightline="
            '{name="Sightline",base_url="$B",wire_api="responses",$A}\'',
            file="~/.codex/config.toml",
            moved=("CODEX_HOME", "config.toml"),
            lines='model_provider = "sightline"  # above the first table\n'
            "[model_providers.sightline]\n"
            'name = "Sightline"\n'
            'base_url = "$B"\n'
            'wire_api = "responses"'
            "\n$A",
            usual=Aim("openai", version="/v1", login=True),
            note="OPENAI_BASE_URL is ignored by it. With a ChatGPT login base_url is $P/u/chatgpt, without /v1."
            " A model that Codex knows as blind needs input_modalities in a model_catalog_json.",
        ),
        Agent(
            "qwen",
            "Qwen Code",
            mcp="qwen mcp add -s user sightline sightline mcp",
            once="OPENAI_BASE_URL=$B qwen --auth-type openai",
            file="~/.qwen/settings.json",
            moved=("QWEN_HOME", "settings.json"),
            lines='{"modelProviders": {"openai": [{"id": "$M", "baseUrl": "$B", "envKey": "$K",\n'
            '  "generationConfig": {"modalities": {"image": true}}}]}}',
            sees="modalities.image in the entry of the model, or"
            ' {"model": {"generationConfig": {"modalities": {"image": true}}}} without entries',
            note="A model that stands in modelProviders ignores the variable and the flag: change its baseUrl"
            " there. $P/u/NAME/v1 reaches the provider NAME.",
            usual=Aim("dashscope", version="/v1", key="DASHSCOPE_API_KEY"),
            model="MODEL",
        ),
        Agent(
            "pi",
            "pi",
            point='"baseUrl": "$P/u/NAME/v1" of the provider in ~/.pi/agent/models.json',
            file="~/.pi/agent/models.json",
            moved=("PI_CODING_AGENT_DIR", "models.json"),
            lines='{"providers": {"$N": {"baseUrl": "$B",\n  "modelOverrides": {"$M": {"input": ["text", "image"]}}}}}',
            usual=Aim("zai-coding", "zai", "/v1"),
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
            '{"provider":{"$N":{"options":{"baseURL":"$B"},"models":{"$M":'
            '{"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}\' opencode',
            file="~/.config/opencode/opencode.json",
            moved=("XDG_CONFIG_HOME", "opencode/opencode.json"),
            lines='{"provider": {"$N": {"options": {"baseURL": "$B"},\n'
            '  "models": {"$M": {"attachment": true,\n'
            '    "modalities": {"input": ["text", "image"], "output": ["text"]}}}}}}',
            sees='"attachment" and "modalities" of each model',
            usual=Aim("deepseek", version="/v1"),
            model="deepseek-v4-pro",
            note="Its provider `anthropic` takes $P/u/anthropic/v1, with /v1 as well.",
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            mcp="gemini mcp add -s user sightline sightline mcp",
            point="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
            once="GOOGLE_GEMINI_BASE_URL=$B gemini",
            file="~/.gemini/.env",
            moved=("GEMINI_CLI_HOME", ".gemini/.env"),
            lines="GOOGLE_GEMINI_BASE_URL=$B",
            usual=Aim("gemini"),
            note="Needs a saved security.auth.selectedType; without one it stops with exit 41."
            " It reads the file only in folders that it trusts.",
        ),
        Agent(
            "cline",
            "Cline CLI",
            mcp="in ~/.cline/data/settings/cline_mcp_settings.json:\n"
            '{"mcpServers": {"sightline": {"command": "sightline", "args": ["mcp"], "timeout": 120}}}',
            point="cline auth -p openai -k KEY -m $M -b $B",
            once="cline auth --data-dir DIR -p openai -k KEY -m $M -b $B; cline --data-dir DIR PROMPT",
            lines="cline auth -p openai -k KEY -m $M -b $B",
            usual=Aim("openai", version="/v1"),
            model="MODEL",
            note="OPENAI_BASE_URL is ignored by it, and only OpenAI-compatible providers can be pointed.",
        ),
        Agent(
            "copilot",
            "Copilot CLI",
            mcp="copilot mcp add sightline -- sightline mcp",
            point="sightline run -- copilot, or COPILOT_PROVIDER_BASE_URL=$P/u/NAME/v1",
            once="COPILOT_PROVIDER_BASE_URL=$B COPILOT_PROVIDER_TYPE=openai"
            " COPILOT_PROVIDER_WIRE_API=completions COPILOT_PROVIDER_API_KEY=KEY COPILOT_MODEL=$M copilot",
            file="~/.copilot/providers.json",
            moved=("COPILOT_HOME", "providers.json"),
            named="COPILOT_PROVIDERS_CONFIG",
            lines='{"providers": [{"name": "$N", "baseUrl": "$B", $L}],\n'
            '  "models": [{"id": "$M", "provider": "$N", "capabilities": {"supports": {"vision": true}}}]}',
            use="choose the model by --model $N/$M",
            model="MODEL",
            sees='"capabilities": {"supports": {"vision": true}} of the model in that file; pointed by the variables,'
            " it sends attached images and none of tools",
            note="With a key of your own only; with the GitHub login nothing can be pointed."
            " The variables win over the file. `sightline run -- copilot` makes it send every image, by either.",
        ),
    )
}
