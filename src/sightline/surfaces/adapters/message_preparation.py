"""The messages of a framework, prepared as `sightline.prepare` prepares those of a request, and tools for its models.

An adapter writes each message of its framework as one of Chat Completions. They are prepared together, and each comes
back with the object that it was written from: an unchanged message is that object itself, so that nothing that only the
framework knows is lost, and its own history is never changed.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sightline.api import Failure, Session, call, tools
from sightline.api.body_preparation import PreparedBody, prepare
from sightline.model.records import Receipt
from sightline.vision.background_loop import run_in_thread

_log = logging.getLogger("sightline")
_NUMBER = "_sightline_number"  # the key of a message's number: what has none was added
# Of OpenAI, Anthropic, LiteLLM, LangChain and Google.
_ADDRESS_VARIABLES = ("{}_BASE_URL", "{}_API_BASE", "{}_API_URL", "GOOGLE_{}_BASE_URL")
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,")

M = TypeVar("M")
ChatMessage = dict[str, Any]
ChatPart = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where messages go: it decides what becomes of their images."""

    model: str
    upstream: str = ""  # the provider's name or its address; an unknown name is treated as an API like OpenAI's


@dataclass(frozen=True, slots=True)
class PreparedMessage(Generic[M]):
    """A message as it is sent."""

    original: M | None  # what it was written from; None: it was added
    role: str
    content: Any  # of Chat Completions: a text, or a list of parts
    changed: bool

    @property
    def parts(self) -> list[ChatPart]:
        """The content as parts."""
        return [text_part(self.content)] if isinstance(self.content, str) else list(self.content or ())


def prepare_messages(
    messages: Sequence[tuple[M, ChatMessage]], destination: Destination, session: Session | None
) -> list[PreparedMessage[M]] | None:
    """Prepare messages, each given with the object that it was written from; None: nothing has to be changed."""
    numbered = [{**message, _NUMBER: number} for number, (_, message) in enumerate(messages)]
    done = prepare_body(numbered, "openai_chat", destination, session)
    if not done.changed:
        return None
    unchanged = {id(message) for message in numbered}
    return [
        PreparedMessage(
            messages[message[_NUMBER]][0] if _NUMBER in message else None,
            message["role"],
            message.get("content"),
            id(message) not in unchanged,
        )
        for message in done.body
    ]


async def prepare_messages_async(
    messages: Sequence[tuple[M, ChatMessage]], destination: Destination, session: Session | None
) -> list[PreparedMessage[M]] | None:
    """Do what `prepare_messages` does without holding up the event loop."""
    return await run_in_thread(prepare_messages, messages, destination, session)


def prepare_body(body: Any, wire: str, destination: Destination, session: Session | None) -> PreparedBody:
    """Prepare a body or its messages. If that fails, log why and return it unchanged: the framework has to send it."""
    upstream = _find_address(destination.upstream) or None
    done = prepare(body, wire=wire, model=destination.model, upstream=upstream, session=session)
    if isinstance(done, Failure) and upstream is not None:  # a provider that has no preset
        done = prepare(body, wire=wire, model=destination.model, session=session)
    if isinstance(done, Failure):
        _log.warning("the images of a request were left as they are: %s", done)
        return PreparedBody(body, Receipt(destination.upstream, destination.model, notes=(str(done),)))
    return done


def _find_address(upstream: str) -> str:
    """Return the address that the environment gives SDKs for a provider, or else the upstream as it is.

    The provider's key is then the key for that address: it must not go to the provider itself, and neither must images.
    """
    if "://" in upstream:
        return upstream
    name = upstream.upper().replace("-", "_")
    return next((address for form in _ADDRESS_VARIABLES if (address := os.environ.get(form.format(name)))), upstream)


def text_part(text: str) -> ChatPart:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def image_part(data: bytes | str, mime: str) -> ChatPart:
    """Return an image, given as bytes or as base64, as a part of a message."""
    encoded = data if isinstance(data, str) else base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{encoded}"}}


def read_image_part(part: ChatPart) -> tuple[str, str] | None:
    """Return the type and the base64 of an image in a part, or None for a part of another kind or with an address."""
    url = part.get("image_url", {}).get("url", "") if part.get("type") == "image_url" else ""
    found = _DATA_URL.match(url)
    return (found[1], url[found.end() :]) if found else None


@dataclass(frozen=True, slots=True)
class PerceptionTool:
    """One tool that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]  # a JSON Schema
    session: Session

    def run(self, /, **arguments: Any) -> list[ChatPart]:
        """Call the tool and return its result as parts of Chat Completions: the text first, then the image."""
        return call(self.name, arguments, session=self.session).content("openai")

    async def run_async(self, /, **arguments: Any) -> list[ChatPart]:
        """Do what `run` does without holding up the event loop."""
        return await self._call(arguments)

    async def run_json(self, text: str) -> list[ChatPart]:
        """Do what `run_async` does with arguments as the model wrote them, which may be no JSON at all."""
        try:
            arguments = json.loads(text or "{}")
        except (ValueError, RecursionError):
            arguments = None
        return await self._call(arguments)

    async def _call(self, arguments: Any) -> list[ChatPart]:
        result = await call.aio(self.name, arguments, session=self.session)
        return result.content("openai")


def list_perception_tools(session: Session | None) -> list[PerceptionTool]:
    """Return the tools that a session offers."""
    opened = session or Session()
    return [
        PerceptionTool(each["name"], each["description"], each["parameters"], opened) for each in tools(session=opened)
    ]
