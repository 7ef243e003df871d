"""The perception tools for adapters: what a framework needs to declare each one, and calls of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sightline.api import Session, call, tools
from sightline.surfaces.adapters.message_preparation import ChatPart


@dataclass(frozen=True, slots=True)
class PerceptionTool:
    """One tool that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]  # a JSON Schema
    session: Session

    def run(self, /, **arguments: Any) -> list[ChatPart]:
        """Call the tool and return its result as parts of Chat Completions: the text first, then the image."""
        return call(self.name, arguments, session=self.session).content("openai")

    async def run_async(self, /, **arguments: Any) -> list[ChatPart]:
        """Do what `run` does without holding up the event loop."""
        return await self._call(arguments)

    async def run_json(self, text: str) -> list[ChatPart]:
        """Do what `run_async` does with arguments as the model wrote them, which may be no JSON at all."""
        try:
            arguments = json.loads(text or "{}")
        except (ValueError, RecursionError):
            arguments = None
        return await self._call(arguments)

    async def _call(self, arguments: Any) -> list[ChatPart]:
        result = await call.aio(self.name, arguments, session=self.session)
        return result.content("openai")


def list_perception_tools(session: Session | None) -> list[PerceptionTool]:
    """Return the tools that a session offers."""
    opened = session or Session()
    return [
        PerceptionTool(each["name"], each["description"], each["parameters"], opened) for each in tools(session=opened)
    ]
