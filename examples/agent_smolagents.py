"""A smolagents agent that can view image files. Needs: pip install "smolagents[openai]"

python examples/agent_smolagents.py "What is wrong in screenshot.png?"
"""

import sys

from smolagents import OpenAIModel, ToolCallingAgent

from sightline.surfaces.adapters.smolagents import SightlineModel, sightline_tools


def build(model):
    return ToolCallingAgent(tools=sightline_tools(), model=SightlineModel(model), verbosity_level=0)


if __name__ == "__main__":
    print(build(OpenAIModel("gpt-5.4")).run(sys.argv[1]))
