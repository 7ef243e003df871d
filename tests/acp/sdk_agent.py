"""An agent on the Python SDK that repeats its prompt in its reply; an argument gives its `_meta`."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from base64 import b64decode
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
)
from PIL import Image


class Agent:
    """Says that it takes images, but gives none to its model, which is blind."""

    def on_connect(self, conn: Any) -> None:
        self._editor = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        able = AgentCapabilities(prompt_capabilities=PromptCapabilities(image=True, embedded_context=True))
        return InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=able,
            agent_info=Implementation(name="lab", version="1"),
            field_meta=json.loads(sys.argv[1]) if sys.argv[1:] else None,
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> NewSessionResponse:
        self._servers = [server.name for server in mcp_servers or ()]
        return NewSessionResponse(session_id="s1")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        words = [block.text if block.type == "text" else sized(block.data) for block in prompt]
        told = acp.update_agent_message(acp.text_block("\n".join([*self._servers, *words])))
        await self._editor.session_update(session_id=session_id, update=told)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None: ...


def sized(data: str) -> str:
    with Image.open(io.BytesIO(b64decode(data))) as seen:
        return f"[{seen.width}x{seen.height} in {len(data)} letters]"


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Agent()))  # type: ignore[arg-type] # it answers what these tests ask
