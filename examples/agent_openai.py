"""An agent on OpenAI's Chat Completions that can view image files. Needs: pip install openai

python examples/agent_openai.py "What is wrong in screenshot.png?"
"""

import json
import sys

import openai

import sightline


def run(client: openai.OpenAI, model: str, task: str) -> str:
    messages = [{"role": "user", "content": task}]
    while True:
        # A tool message can't hold images there: `hoist` moves them into a user message after it.
        answer = client.chat.completions.create(
            model=model, messages=sightline.hoist(messages), tools=sightline.tools(format="openai")
        )
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = sightline.call(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content("openai")})


if __name__ == "__main__":
    print(run(openai.OpenAI(), "gpt-5.4", sys.argv[1]))
