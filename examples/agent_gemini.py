"""An agent on the Gemini API that can view image files. Needs no SDK, and the key in GEMINI_API_KEY.

python examples/agent_gemini.py "What is wrong in screenshot.png?"
"""

import json
import os
import sys
import urllib.request

import sightline


def run(base: str, key: str, model: str, task: str) -> str:
    contents = [{"role": "user", "parts": [{"text": task}]}]
    while True:
        body = json.dumps({"contents": contents, "tools": sightline.tools(format="gemini")}).encode()
        headers = {"content-type": "application/json", "x-goog-api-key": key}
        request = urllib.request.Request(f"{base}/v1beta/models/{model}:generateContent", body, headers)
        with urllib.request.urlopen(request) as answer:
            content = json.load(answer)["candidates"][0]["content"]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if not calls:
            return "".join(part.get("text", "") for part in content["parts"])
        parts = []
        for call in calls:  # images go beside the response, where every Gemini model sees them
            text, *images = sightline.call(call["name"], call.get("args", {})).content("gemini")
            named = {key: call[key] for key in ("id", "name") if key in call}
            parts += [{"functionResponse": {**named, "response": {"result": text["text"]}}}, *images]
        contents += [content, {"role": "user", "parts": parts}]


if __name__ == "__main__":
    print(run("https://generativelanguage.googleapis.com", os.environ["GEMINI_API_KEY"], "gemini-2.5-pro", sys.argv[1]))
