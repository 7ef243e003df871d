"""A conversation with an agent on LiteLLM."""

import asyncio
import base64
import json
from typing import Any

import litellm

from tests.e2e.adapters.driver import load_example, main

run = load_example("agent_litellm.py")["run"]


class LiteLlmConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.messages: list[Any] = []

    def say(self, task: str, model: str, image: bytes | None) -> str:
        provider = {"anthropic": "anthropic", "gemini": "gemini"}.get(self.given["wire"], "openai")
        base = self.given["url"] + ("/v1" if provider == "openai" else "")
        content: list[Any] = [{"type": "text", "text": task}]
        if image:
            url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
            content.append({"type": "image_url", "image_url": {"url": url}})
        self.messages.append({"role": "user", "content": content})
        how = {"model": f"{provider}/{model}", "api_base": base, "api_key": "k"}
        if self.given["stream"] and len(self.messages) > 1:
            return asyncio.run(self.stream(how))
        return str(asyncio.run(run(self.messages, **how)))

    async def stream(self, how: dict[str, Any]) -> str:
        """Ask once more by a stream; the tools were called in the first turn."""
        chunks = [each async for each in await litellm.acompletion(messages=self.messages, stream=True, **how)]
        answer = "".join(each.choices[0].delta.content or "" for each in chunks)
        self.messages.append({"role": "assistant", "content": answer})
        return answer

    def count_images(self) -> int:
        return json.dumps(self.messages).count('"data:image/')


main(LiteLlmConversation)
