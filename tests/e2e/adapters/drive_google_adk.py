"""A conversation with an agent of Google's Agent Development Kit."""

import asyncio
import os
from typing import Any

from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from tests.e2e.adapters.driver import load_example, main

build = load_example("agent_google_adk.py")["build"]


class AdkConversation:
    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        os.environ |= {"GOOGLE_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": given["url"]}
        self.runner: Any = None
        self.session: Any = None

    def open_model(self, name: str) -> Any:
        if self.given["wire"] == "gemini":
            return Gemini(model=name)
        from google.adk.models.lite_llm import LiteLlm

        return LiteLlm(f"openai/{name}", api_base=f"{self.given['url']}/v1", api_key="k")

    def say(self, task: str, model: str, image: bytes | None) -> str:
        return asyncio.run(self.say_async(task, model, image))

    async def say_async(self, task: str, model: str, image: bytes | None) -> str:
        if self.runner is None:
            self.runner = InMemoryRunner(build(self.open_model(model)), app_name="tests")
            self.session = await self.runner.session_service.create_session(app_name="tests", user_id="u")
        self.runner.agent.model = self.open_model(model)
        parts = [types.Part(text=task)]
        if image:
            parts.append(types.Part.from_bytes(data=image, mime_type="image/png"))
        how = RunConfig(streaming_mode=StreamingMode.SSE if self.given["stream"] else StreamingMode.NONE)
        answer = ""
        async for event in self.runner.run_async(
            user_id="u",
            session_id=self.session.id,
            new_message=types.Content(role="user", parts=parts),
            run_config=how,
        ):
            if event.is_final_response() and event.content:
                answer = "".join(part.text or "" for part in event.content.parts)
        self.session = await self.runner.session_service.get_session(
            app_name="tests", user_id="u", session_id=self.session.id
        )
        return answer

    def count_images(self) -> int:
        return sum(each.model_dump_json(by_alias=True).count('"mimeType":"image/') for each in self.session.events)


main(AdkConversation)
