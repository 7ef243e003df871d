"""A conversation with an agent of LangChain."""

import asyncio
import base64
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from tests.e2e.adapters.driver import load_example, main

build = load_example("agent_langchain.py")["build"]


class LangChainConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.messages: list[Any] = []
        self.loop = asyncio.new_event_loop()  # models keep connections in it

    def say(self, task: str, model: str, image: bytes | None) -> str:
        content: list[Any] = [{"type": "text", "text": task}]
        if image:
            content.append({"type": "image", "base64": base64.b64encode(image).decode(), "mime_type": "image/png"})
        agent = build(self.open_model(model))
        state = {"messages": [*self.messages, {"role": "user", "content": content}]}
        named = {"model": model, "model_provider": "openai", "base_url": f"{self.given['url']}/v1", "api_key": "k"}
        how: Any = {"recursion_limit": 200, "configurable": named}
        if self.given["asynchronous"]:
            done = self.loop.run_until_complete(agent.ainvoke(state, how))
        elif self.given["stream"]:
            *_, done = agent.stream(state, how, stream_mode="values")
        else:
            done = agent.invoke(state, how)
        self.messages = done["messages"]
        return str(self.messages[-1].text)

    def open_model(self, name: str) -> Any:
        url, key = self.given["url"], "k"
        if "configurable" in self.given["options"]:
            return init_chat_model(configurable_fields=("model", "model_provider", "base_url", "api_key"))
        match self.given["wire"]:
            case "anthropic":
                return ChatAnthropic(model=name, base_url=url, api_key=key, max_retries=0)
            case "gemini":
                return ChatGoogleGenerativeAI(model=name, base_url=url, google_api_key=key, max_retries=1)
            case wire:
                responses = wire == "openai_responses"
                return ChatOpenAI(
                    model=name, base_url=f"{url}/v1", api_key=key, max_retries=0, use_responses_api=responses
                )

    def count_images(self) -> int:
        parts = [part for each in self.messages if isinstance(each.content, list) for part in each.content]
        return sum(isinstance(part, dict) and part.get("type") in ("image", "image_url") for part in parts)


main(LangChainConversation)
