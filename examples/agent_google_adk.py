"""An agent for Google's Agent Development Kit that can view image files. Needs: pip install google-adk

python examples/agent_google_adk.py "What is wrong in screenshot.png?"
"""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

from sightline.surfaces.adapters.google_adk import prepare_request, sightline_tools


def build(model):
    return LlmAgent(name="assistant", model=model, tools=sightline_tools(), before_model_callback=prepare_request())


async def main(task):
    events = await InMemoryRunner(build("gemini-2.5-pro")).run_debug(task, quiet=True)
    print("".join(part.text or "" for part in events[-1].content.parts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
