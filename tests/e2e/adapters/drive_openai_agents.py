"""A conversation with an agent of the OpenAI Agents SDK."""

import asyncio
import base64
import json
from typing import Any

from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from tests.e2e.adapters.driver import load_example, main

example = load_example("agent_openai_agents.py")
set_tracing_disabled(True)


class AgentsConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.items: list[Any] = []

    def say(self, task: str, model: str, image: bytes | None) -> str:
        return asyncio.run(self.say_async(task, model, image))

    async def say_async(self, task: str, model: str, image: bytes | None) -> str:
        client = AsyncOpenAI(base_url=f"{self.given['url']}/v1", api_key="k", max_retries=0)
        chat = self.given["wire"] == "openai_chat"
        agent = example["build"]((OpenAIChatCompletionsModel if chat else OpenAIResponsesModel)(model, client))
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
