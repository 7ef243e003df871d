"""A conversation with an agent of the OpenAI Agents SDK."""

import asyncio
import base64
import json
from typing import Any

from agents import (
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from tests.e2e.adapters.driver import load_example, main

set_tracing_disabled(True)


class AgentsConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.items: list[Any] = []
        self.client = AsyncOpenAI(base_url=f"{given['url']}/v1", api_key="k", max_retries=0)
        self.is_chat = given["wire"] == "openai_chat"
        set_default_openai_client(self.client)
        set_default_openai_api("chat_completions" if self.is_chat else "responses")
        self.example = load_example("agent_openai_agents.py")  # whose configuration keeps the client and the API
        self.loop = asyncio.new_event_loop()

    def say(self, task: str, model: str, image: bytes | None) -> str:
        return self.loop.run_until_complete(self.say_async(task, model, image))

    async def say_async(self, task: str, model: str, image: bytes | None) -> str:
        example = self.example
        kind = OpenAIChatCompletionsModel if self.is_chat else OpenAIResponsesModel
        agent = example["build"](model if "by name" in self.given["options"] else kind(model, self.client))
        content: list[Any] = [{"type": "input_text", "text": task}]
        if image:
            url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
            content.append({"type": "input_image", "image_url": url, "detail": "auto"})
        said = [*self.items, {"role": "user", "content": content}]
        if self.given["stream"]:
            done = Runner.run_streamed(agent, said, run_config=example["RUN"], max_turns=50)
            async for _event in done.stream_events():
                pass
        else:
            done = await Runner.run(agent, said, run_config=example["RUN"], max_turns=50)
        self.items = done.to_input_list()
        return str(done.final_output)

    def count_images(self) -> int:
        return json.dumps(self.items, default=str).count('"data:image/')


main(AgentsConversation)
