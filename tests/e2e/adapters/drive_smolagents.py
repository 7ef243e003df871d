"""A conversation with an agent of smolagents."""

import io
from typing import Any

from PIL import Image
from smolagents import OpenAIModel

from tests.e2e.adapters.driver import load_example, main

build = load_example("agent_smolagents.py")["build"]


class SmolConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.agent: Any = None

    def say(self, task: str, model: str, image: bytes | None) -> str:
        chat = OpenAIModel(model, api_base=f"{self.given['url']}/v1", api_key="k")
        if self.agent is None:
            self.agent = build(chat)
        else:
            self.agent.model = type(self.agent.model)(chat)
        images = [Image.open(io.BytesIO(image))] if image else None
        return str(self.agent.run(task, images=images, reset=False, max_steps=50))

    def count_images(self) -> int:
        """Return the views in the agent's memory: it keeps them as text."""
        steps = self.agent.memory.steps
        return sum(str(getattr(step, "observations", "")).count('"shown":') for step in steps)


main(SmolConversation)
