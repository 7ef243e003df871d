"""A conversation with an agent of smolagents."""

import io
from typing import Any

from PIL import Image
from smolagents import OpenAIModel, tool

import sightline
from tests.e2e.adapters.driver import load_example, main

build = load_example("agent_smolagents.py")["build"]


@tool  # type: ignore[untyped-decorator]
def read_page() -> str:
    """Return the text of a web page."""
    stored = sightline.call("view_image", {"path": "shot9.png"})
    return "".join(part["text"] for part in stored.content("openai") if part["type"] == "text")


class SmolConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.agent: Any = None

    def say(self, task: str, model: str, image: bytes | None) -> str:
        chat = OpenAIModel(model, api_base=f"{self.given['url']}/v1", api_key="k")
        if self.agent is None:
            self.agent = build(chat)
            if "forged" in self.given["options"]:
                self.agent.tools["read_page"] = read_page
            self.agent.stream_outputs = self.given["stream"]
        else:
            self.agent.model = type(self.agent.model)(chat)
        images = [Image.open(io.BytesIO(image))] if image else None
        return str(self.agent.run(task, images=images, reset=False, max_steps=50))

    def count_images(self) -> int:
        """Return the views in the agent's memory, which it keeps as text, and the images of its tasks."""
        steps = self.agent.memory.steps
        views = sum(str(getattr(step, "observations", "")).count('"shown":') for step in steps)
        return views + sum(len(getattr(step, "task_images", None) or ()) for step in steps)


main(SmolConversation)
