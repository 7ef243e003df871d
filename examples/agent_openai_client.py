"""OpenAI's own SDK, with images prepared before they are sent. Needs: pip install openai

python examples/agent_openai_client.py screenshot.png "What is wrong here?"
"""

import base64
import sys
from pathlib import Path

from openai import OpenAI

import sightline


def run(client, model, path, question):
    url = f"data:image/png;base64,{base64.b64encode(Path(path).read_bytes()).decode()}"
    parts = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": url}}]
    answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": parts}])
    return answer.choices[0].message.content


if __name__ == "__main__":
    print(run(OpenAI(http_client=sightline.http_client()), "gpt-5.4", sys.argv[1], sys.argv[2]))
