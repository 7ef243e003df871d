"""A conversation with an agent of Pydantic AI."""

import asyncio
import base64
from pathlib import Path
from typing import Any

from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from tests.e2e.adapters.driver import load_example, main

build = load_example("agent_pydantic_ai.py")["build"]


def read_page() -> dict[str, Any]:
    """Return a web page, with a screenshot."""
    return {"title": "Home", "screenshot": base64.b64encode(Path("shot0.png").read_bytes()).decode()}


class PydanticConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.messages: list[Any] = []

    def say(self, task: str, model: str, image: bytes | None) -> str:
        prompt = [task, BinaryContent(data=image, media_type="image/png")] if image else task
        agent = build(self.open_model(model))
        if "data" in self.given["options"]:
            agent.tool_plain(read_page)
        how = {"message_history": self.messages, "usage_limits": UsageLimits(request_limit=None)}
        if self.given["stream"]:
            return asyncio.run(self.stream(agent, prompt, how))
        done = asyncio.run(agent.run(prompt, **how)) if self.given["asynchronous"] else agent.run_sync(prompt, **how)
        self.messages = done.all_messages()
        return str(done.output)

    async def stream(self, agent: Any, prompt: Any, how: dict[str, Any]) -> str:
        async with agent.run_stream(prompt, **how) as done:
            answer = str(await done.get_output())
            self.messages = done.all_messages()
            return answer

    def open_model(self, name: str) -> Any:
        url, key = self.given["url"], "k"
        match self.given["wire"]:
            case "anthropic":
                return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key))
            case "gemini":
                return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key=key))
            case wire:
                kind = OpenAIResponsesModel if wire == "openai_responses" else OpenAIChatModel
                return kind(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key))

    def count_images(self) -> int:
        return str(ModelMessagesTypeAdapter.dump_json(self.messages)).count('"kind":"binary"')


main(PydanticConversation)
