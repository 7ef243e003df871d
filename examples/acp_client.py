"""Sends one picture to an ACP agent, in the size that the agent says it takes: acp_client.py PICTURE AGENT ARGS…"""

import asyncio
import sys
from base64 import b64encode
from pathlib import Path

import acp

import sightline


class Client:
    async def session_update(self, session_id, update, **_):
        print(getattr(getattr(update, "content", None), "text", ""), end="")


async def main(picture: bytes, command: str, *args: str) -> None:
    async with acp.spawn_agent_process(Client(), command, *args) as (agent, _):
        about = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities={})
        capability = sightline.read_image_capability(about.model_dump(by_alias=True))
        image = sightline.fit_for(capability, picture)
        if warning := sightline.may_send(capability, getattr(image, "data", None)).warning:
            sys.exit(warning)
        block = acp.image_block(b64encode(image.data).decode(), image.mime)
        session = await agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[block, acp.text_block("What is it?")])


asyncio.run(main(Path(sys.argv[1]).read_bytes(), *sys.argv[2:]))
