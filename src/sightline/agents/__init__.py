"""The coding agents that Sightline knows: one file each, and the list of them.

To add an agent, write its file with an `AGENT` in it, and add it to the list.
"""

from __future__ import annotations

from collections.abc import Mapping

from sightline.agents import claude, cline, codex, copilot, gemini, opencode, pi, qwen
from sightline.agents.agent import CodingAgent

AGENTS: Mapping[str, CodingAgent] = {
    agent.name: agent
    for agent in (
        claude.AGENT,
        codex.AGENT,
        qwen.AGENT,
        pi.AGENT,
        opencode.AGENT,
        gemini.AGENT,
        cline.AGENT,
        copilot.AGENT,
    )
}


# Programs that Sightline doesn't set up, and what to change in them.
_REMEDIES = {
    "openai-agents": "it sends no image of a tool over Chat Completions, so use its Responses model",
    "fast-agent": "declare the model in its model overlay as one that takes images",
    "goose": "declare the model in its provider's settings as one that takes images",
}


def explain_omission(name: str, model: str) -> str:
    """Return what the user can do about a client that leaves images out for a model."""
    if name in _REMEDIES:
        return f"{name} leaves images out before they get here; {_REMEDIES[name]}"
    title = AGENTS[name].title if name in AGENTS else name
    return (
        f"{title} leaves images out before they get here, because it thinks that {model or 'its model'} can't see them;"
        f" run `sightline setup {name}` to see how to tell it that the model can"
    )
