"""A LangChain agent that can view image files. Needs: pip install langchain langchain-openai

python examples/agent_langchain.py "What is wrong in screenshot.png?"
"""

import sys

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model

from sightline.surfaces.adapters.langchain import SightlineMiddleware, sightline_tools


def build(model):
    return create_agent(model, tools=sightline_tools(), middleware=[SightlineMiddleware()])


if __name__ == "__main__":
    agent = build(init_chat_model("openai:gpt-5.4"))
    print(agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})["messages"][-1].text)
