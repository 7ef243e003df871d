"""What an editor's user reads of the relay: answers to commands, and lines on stderr."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.acp.editing import SEES, acting, editor, image, text
from tests.golden.wording import Case

_TYPED = (
    "status",
    "mode always",
    "off",
    "context off",
    "tool on",
    "max-batch 2",
    "cache-size 9999",
    "consent",
    "consent yes openai",
    "consent no openai",
    "consent yes nobody",
    "model zai/glm-5.3v",
    "model nobody/x",
    "grounding-models add a/qwen3-vl",
    "grounding-models remove never/there",
    "grounding-models reset",
    "list",
    "nonsense",
    "describe absent.png",
)


def _commands(folder: Path) -> str:
    lines = []
    with editor(*acting(initialize=SEES)) as ours:
        session = ours.open(folder)
        ours.ask("_any")
        for update in ours.updates:
            offers = update["params"]["update"].get("availableCommands", ())
            lines += [f"offered: {offer['name']}: {offer['description']} {offer.get('input')}" for offer in offers]
        for words in _TYPED:
            ours.updates.clear()
            ours.prompt(session, text(f"/vision-proxy {words}"))
            lines += [f"-- /vision-proxy {words}", ours.said()]
    return "\n".join(lines)


def _unknown_model(folder: Path) -> str:
    """A prompt with an image, where the settings name a provider that is none."""
    env = {"SIGHTLINE_MODEL": "no-such-provider/eye"}
    with editor(*acting(initialize=SEES), env=env, stderr=subprocess.PIPE) as ours:
        ours.ask("initialize", {"protocolVersion": 1})
        ours.prompt(ours.session(folder), image((folder / "shot.png").read_bytes()))
        ours.leave()
        assert ours.process.stderr
        return ours.process.stderr.read().decode()


def _refusing(model: str, folder: Path) -> str:
    """An agent that refuses a prompt because of its image."""
    lab = {**SEES, "agentInfo": {"name": "the lab", "version": "1"}}
    no = "400: This model does not support image input."
    acts = acting(refuses=no, initialize=lab, session={"models": {"currentModelId": model}})
    with editor(*acts, stderr=subprocess.PIPE) as ours:
        ours.prompt(ours.open(folder), image((folder / "shot.png").read_bytes()))
        ours.leave()
        assert ours.process.stderr
        return ours.process.stderr.read().decode()


CASES: dict[str, Case] = {
    "commands": _commands,
    "a provider that is not known": _unknown_model,
    "an agent whose model refuses images": lambda folder: _refusing("some-model", folder),
    "an agent that refuses images and names no model": lambda folder: _refusing("", folder),
}
