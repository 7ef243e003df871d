"""An agent on LiteLLM, for any provider, that can view image files. Needs: pip install litellm

python examples/agent_litellm.py "What is wrong in screenshot.png?"
"""

import asyncio
import json
import sys

import litellm

import sightline
from sightline.surfaces.adapters.litellm import SightlineCallback

litellm.callbacks = [SightlineCallback()]


async def run(messages, **how):
    while True:
        answer = await litellm.acompletion(messages=messages, tools=sightline.tools(format="openai"), **how)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            result = await sightline.call.aio(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content("openai")})


if __name__ == "__main__":
    print(asyncio.run(run([{"role": "user", "content": sys.argv[1]}], model="openai/gpt-5.4")))
