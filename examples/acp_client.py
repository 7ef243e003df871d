"""Sends one picture to an ACP agent, in the size that it takes. Needs: pip install agent-client-protocol."""

import asyncio
import sys
from pathlib import Path

import acp

import sightline


class Client:
    async def session_update(self, session_id, update, **_):
        print(getattr(getattr(update, "content", None), "text", ""), end="")


async def main(picture: bytes, command: str, *args: str) -> None:
    async with acp.spawn_agent_process(Client(), command, *args) as (agent, _):
        about = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities={})
        if not about.agent_capabilities.prompt_capabilities.image:
            sys.exit("not sent: this agent takes no images (start it behind `sightline acp --`)")
        capability = sightline.read_image_capability(about.model_dump(by_alias=True))
        image = await sightline.fit_for.aio(capability, picture)
        if not (sending := image and sightline.may_send(capability, image.data)):
            sys.exit(f"not sent: {sending}")
        session = await agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])
        block = acp.image_block(image.base64, image.mime)
        await agent.prompt(session_id=session.session_id, prompt=[block, acp.text_block("What is it?")])


if len(sys.argv) < 3 or not Path(sys.argv[1]).is_file():
    sys.exit("usage: acp_client.py PICTURE AGENT [ARGUMENT ...]")
asyncio.run(main(Path(sys.argv[1]).read_bytes(), *sys.argv[2:]))
