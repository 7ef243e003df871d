"""A Pydantic AI agent that can view image files. Needs: pip install pydantic-ai

python examples/agent_pydantic_ai.py "What is wrong in screenshot.png?"
"""

import sys

from pydantic_ai import Agent

from sightline.surfaces.adapters.pydantic_ai import Sightline


def build(model):
    return Agent(model, capabilities=[Sightline()])


if __name__ == "__main__":
    print(build("openai:gpt-5.4").run_sync(sys.argv[1]).output)
