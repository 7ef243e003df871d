"""Google's own package in front of a proxy: google_genai.py BASE MODEL PICTURE SHAPE STREAM; prints what was said."""

import sys
from pathlib import Path

from google.genai import Client, types

base, model, picture, shape, stream = sys.argv[1:]
client = Client(api_key="sk-test", http_options=types.HttpOptions(base_url=base))
image = types.Part.from_bytes(data=Path(picture).read_bytes(), mime_type="image/png")
words = types.Part.from_text(text="Name its four quadrants")
call = types.FunctionCall(name="read", args={"path": picture}, id="call-1")
contents = {
    "attached": [types.Content(role="user", parts=[words, image])],
    "sibling": [
        types.Content(role="user", parts=[words]),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(
            role="user",
            parts=[
                types.Part(
                    function_response=types.FunctionResponse(name="read", id="call-1", response={"output": "a picture"})
                ),
                image,
            ],
        ),
    ],
}[shape]
config = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name="read", description="reads")])]
)
if stream == "stream":
    pieces = client.models.generate_content_stream(model=model, contents=contents, config=config)
    print("".join(piece.text or "" for piece in pieces))
else:
    print(client.models.generate_content(model=model, contents=contents, config=config).text)
