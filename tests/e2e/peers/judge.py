"""Reads request bodies with the packages of providers and peers, in an environment where only those are.

Bodies come as lines of JSON, `{"name", "wire", "body"}`; a verdict goes out for each, `{"name", "faults": [...]}`.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no table is fetched

from anthropic.types import MessageParam
from google.genai.types import Content
from litellm.litellm_core_utils.prompt_templates.factory import anthropic_messages_pt
from litellm.llms.anthropic.pass_through.adapters.transformation import LiteLLMAnthropicMessagesAdapter
from litellm.llms.vertex_ai.gemini.transformation import _gemini_convert_messages_with_history
from litellm.responses.litellm_completion_transformation.transformation import LiteLLMCompletionResponsesConfig
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

CHAT = TypeAdapter(list[ChatCompletionMessageParam])
RESPONSES = TypeAdapter(list[ResponseInputItemParam])
MESSAGES = TypeAdapter(list[MessageParam])


def chat(body: Any) -> Iterator[tuple[str, Any]]:
    yield "openai", forced(CHAT.validate_python(body["messages"]))
    yield "LiteLLM to Messages", anthropic_messages_pt(copied(body["messages"]), "claude-opus-5-5", "anthropic")
    yield "LiteLLM to Gemini", _gemini_convert_messages_with_history(copied(body["messages"]), "gemini-3.8-flash")


def responses(body: Any) -> Iterator[tuple[str, Any]]:
    yield "openai", forced(RESPONSES.validate_python(body["input"]))
    config = LiteLLMCompletionResponsesConfig()
    yield "LiteLLM to Chat", config.transform_responses_api_input_to_messages(copied(body["input"]), {})


def messages(body: Any) -> Iterator[tuple[str, Any]]:
    # Claude Code sends system messages amid the others, under a beta that the package does not know.
    known = [message for message in body["messages"] if message["role"] != "system"]
    yield "anthropic", forced(MESSAGES.validate_python(known))
    adapter = LiteLLMAnthropicMessagesAdapter()
    yield "LiteLLM to Chat", adapter.translate_anthropic_messages_to_openai(copied(known), "gpt-6")


def gemini(body: Any) -> Iterator[tuple[str, Any]]:
    yield "google-genai", [Content.model_validate(content) for content in body["contents"]]


READERS: dict[str, Callable[[Any], Iterator[tuple[str, Any]]]] = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic": messages,
    "gemini": gemini,
}


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def forced(value: Any) -> Any:
    """Pydantic reads an iterable when it is walked, and complains only then."""
    if isinstance(value, dict):
        return {key: forced(item) for key, item in value.items()}
    if isinstance(value, str | bytes | int | float | type(None)):
        return value
    return [forced(item) for item in value]


def faults(wire: str, body: Any) -> list[str]:
    read = []
    try:
        read += [who for who, _ in READERS[wire](body)]
    except Exception as trouble:  # noqa: BLE001, whatever a reader raises is its verdict
        return [f"{wire}: {type(trouble).__name__}: {str(trouble)[:400]}"]
    return [] if read else [f"{wire}: nobody has read it"]


for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({"name": case["name"], "faults": faults(case["wire"], case["body"])}), flush=True)
