"""A chat of Google's own package in front of a proxy: google_genai_chat.py BASE MODEL STREAM WORDS...; prints what was
said. What was streamed is kept by it as one content a chunk."""

import sys

from google.genai import Client, types

base, model, stream, *asked = sys.argv[1:]
client = Client(api_key="sk-test", http_options=types.HttpOptions(base_url=base))
read = types.FunctionDeclaration(name="Read", description="Reads a file.")
chat = client.chats.create(
    model=model, config=types.GenerateContentConfig(tools=[types.Tool(function_declarations=[read])])
)
for words in asked:
    if stream == "stream":
        print("".join(piece.text or "" for piece in chat.send_message_stream(words)))
    else:
        print(chat.send_message(words).text)
