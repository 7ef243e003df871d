"""An OpenAI Agents SDK agent that can view image files. Needs: pip install openai-agents

python examples/agent_openai_agents.py "What is wrong in screenshot.png?"
"""

import sys

from agents import Agent, RunConfig, Runner

from sightline.surfaces.adapters.openai_agents import prepare_input, sightline_tools


def build(model):
    return Agent(name="Assistant", model=model, tools=sightline_tools())


RUN = RunConfig(call_model_input_filter=prepare_input())

if __name__ == "__main__":
    print(Runner.run_sync(build("gpt-5.4"), sys.argv[1], run_config=RUN).final_output)
