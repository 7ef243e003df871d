"""A conversation with an agent on LiteLLM."""

import asyncio
import json
from typing import Any

from tests.e2e.adapters.driver import load_example, main

run = load_example("agent_litellm.py")["run"]


class LiteLlmConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.messages: list[Any] = []

    def say(self, task: str, model: str, image: bytes | None) -> str:
        provider = {"anthropic": "anthropic", "gemini": "gemini"}.get(self.given["wire"], "openai")
        base = self.given["url"] + ("/v1" if provider == "openai" else "")
        answer, self.messages = asyncio.run(run(task, model=f"{provider}/{model}", api_base=base, api_key="k"))
        return str(answer)

    def count_images(self) -> int:
        return json.dumps(self.messages).count('"data:image/')


main(LiteLlmConversation)
