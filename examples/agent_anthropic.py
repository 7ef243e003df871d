"""An agent on Anthropic's Messages API that can view image files. Needs: pip install anthropic

python examples/agent_anthropic.py "What is wrong in screenshot.png?"
"""

import sys

import anthropic

import sightline


def run(client: anthropic.Anthropic, model: str, task: str) -> str:
    messages = [{"role": "user", "content": task}]
    while True:
        answer = client.messages.create(
            model=model, max_tokens=4096, messages=messages, tools=sightline.tools(format="anthropic")
        )
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in answer.content if block.type == "text")
        messages.append({"role": "assistant", "content": answer.content})
        results = [(call.id, sightline.call(call.name, call.input).content("anthropic")) for call in calls]
        blocks = [{"type": "tool_result", "tool_use_id": name, "content": content} for name, content in results]
        messages.append({"role": "user", "content": blocks})


if __name__ == "__main__":
    print(run(anthropic.Anthropic(), "claude-opus-4-7", sys.argv[1]))
