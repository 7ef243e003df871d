"""A scripted provider: Anthropic Messages, OpenAI Chat and Responses, Gemini and Ollama on one loopback address.

A request is answered from the pixels in image position and the words of users and tools, by the rules of the
wire and the limits of the provider. Every other route is echoed, so that pass-through can be asserted.
As a command it prints one JSON line with its address and serves until it is ended:

    python -m tests.scripted.provider --preset deepseek
    python -m tests.scripted.provider --blind ollama --call 'Read={"file_path": "/tmp/a.png"}'
"""

import argparse
import json
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs

from tests.scripted import chat, gemini, messages, ollama, responses
from tests.scripted.faults import Break, Fail, Fault, Page, Refuse
from tests.scripted.limits import (
    ANTHROPIC,
    BEDROCK,
    DEEPSEEK_CHAT,
    DEEPSEEK_MESSAGES,
    GEMINI,
    OPENAI,
    RESPONSES,
    Limits,
    inspect,
)
from tests.scripted.models import ALL_SEE, DEEPSEEK, IGNORES, SEES, WORDINGS, Models, refusal, sees
from tests.scripted.replies import Face, body_of, echo, failed, failure, packed, refuse, stream, whole
from tests.scripted.server import Exchange, Reply, Server
from tests.scripted.talk import Asked, Call, Json, Mind, No, Said, Script, speak

ToolImages = Literal["by wire", "taken", "dropped", "refused"]
"""What becomes of an image in a tool's result: what the wire lays down, or what some providers do on any wire."""


class Provider:
    """One scripted provider; enter it (`with` or `async with`) to serve, read `exchanges` for what came."""

    def __init__(
        self,
        models: Models = ALL_SEE,
        *,
        messages_limits: Limits = ANTHROPIC,
        chat_limits: Limits = OPENAI,
        responses_limits: Limits = RESPONSES,
        gemini_limits: Limits = GEMINI,
        tool_images: ToolImages = "by wire",
        context: int | None = None,
        mind: Mind = speak,
        script: Script = (),
        faults: Iterable[Fault | None] = (),
        key: str | None = None,
        gzip: bool = False,
        inside: bool = False,
        streams: bool = True,
        port: int = 0,
    ) -> None:
        self.models = models
        self.messages_limits = messages_limits
        self.chat_limits = chat_limits
        self.responses_limits = responses_limits
        self.gemini_limits = gemini_limits
        self.tool_images = tool_images
        self.context = context  # tokens that a model takes; None: any number
        self.mind = mind
        self.script = script
        self.faults = deque(faults)  # None lets one request pass unharmed
        self.key = key
        self.gzip = gzip
        self.inside = inside  # its no to a stream stands in the stream, behind a status of 200
        self.streams = streams  # else it answers in one piece, whatever was asked for
        self.exchanges: list[Exchange] = []
        self.heard: Callable[[Exchange, Reply], None] = lambda exchange, reply: None
        self._server = Server(self._answer, self._refuses, port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def asked(self, model: str) -> list[Exchange]:
        """The requests that named this model."""
        return [one for one in self.exchanges if (gemini.model(one.path) or body_of(one).get("model")) == model]

    def _refuses(self) -> bool:
        first = self.faults[0] if self.faults else None
        if isinstance(first, Refuse) and first.strikes(None):
            self.faults.popleft()
            return True
        return False

    def _next_fault(self, model: str | None) -> Fault | None:
        for place, fault in enumerate(self.faults):
            if fault is None or fault.strikes(model):
                del self.faults[place]
                return fault
        return None

    def _answer(self, exchange: Exchange) -> Reply:
        self.exchanges.append(exchange)
        reply = self._routed(exchange)
        if exchange.method == "HEAD":
            reply = replace(reply, parts=())
        if self.gzip and any("gzip" in value for value in exchange.header("accept-encoding")):
            reply = packed(reply)
        self.heard(exchange, reply)
        return reply

    def _routed(self, exchange: Exchange) -> Reply:
        asks = exchange.method == "POST"
        if asks and exchange.path.endswith("/v1/messages"):
            return self._model(exchange, messages, self.messages_limits)
        if asks and exchange.path.endswith("/chat/completions"):
            return self._model(exchange, chat, self.chat_limits)
        if asks and exchange.path.endswith("/responses"):
            return self._model(exchange, responses, self.responses_limits)
        if asks and gemini.verb(exchange.path).lower().endswith("generatecontent"):
            return self._model(exchange, gemini, self.gemini_limits)
        if asks and exchange.path == "/api/chat":
            return self._model(exchange, ollama, self.chat_limits)
        fault = self._next_fault(None)
        if isinstance(fault, Fail):
            return failed(messages, fault)
        return replace(self._other(exchange), fault=fault)

    def _other(self, exchange: Exchange) -> Reply:
        match exchange.method, exchange.path:
            case "POST", path if path.endswith("/v1/messages/count_tokens"):
                asked = messages.read(body_of(exchange), counting=True)
                return refuse(messages, asked) if isinstance(asked, No) else whole(messages.count(asked))
            case "POST", path if gemini.verb(path) == "countTokens":
                asked = gemini.read(gemini.addressed(exchange, body_of(exchange)), counting=True)
                return refuse(gemini, asked) if isinstance(asked, No) else whole(gemini.count(asked))
            case "GET", "/api/tags":
                return whole(ollama.tags(self.models))
            case "POST", "/api/show":
                shown = ollama.show(self.models, body_of(exchange))
                return refuse(chat, shown) if isinstance(shown, No) else whole(shown)
            case "GET", path if path.endswith("/models"):
                data = [{"id": name, "object": "model"} for name in ollama.names(self.models)]
                return whole({"object": "list", "data": data, **echo(exchange)})
        # Two cookies, because a header that comes twice must pass twice.
        return whole(echo(exchange), headers=(("set-cookie", "first=1"), ("set-cookie", "second=2")))

    def _model(self, exchange: Exchange, face: Face, limits: Limits) -> Reply:
        body = body_of(exchange)
        if face is gemini and body:
            body = gemini.addressed(exchange, body)
        fault = self._next_fault(body.get("model"))
        if isinstance(fault, Fail):
            return failed(face, fault)
        if isinstance(fault, Page):
            return Reply(fault.status, (("content-type", fault.kind), *fault.headers), (fault.body,))
        outcome = self._refusal(exchange, body, limits) or self._think(face, body, limits)
        if isinstance(outcome, No) and self.inside and body.get("stream"):
            return replace(stream([*face.PRELUDE, face.error_event(outcome)]), fault=fault)
        if isinstance(outcome, No):
            return replace(refuse(face, outcome), fault=fault)
        asked, said = outcome
        if not asked.stream or not self.streams:
            return replace(whole(face.whole(asked, said)), fault=fault)
        events = face.events(asked, said)
        if isinstance(fault, Break):
            events[fault.after :] = [face.error_event(failure(529))]
        if face is gemini and b"alt=sse" not in exchange.query:
            return replace(stream(gemini.array(events)), headers=(("content-type", "application/json"),), fault=fault)
        return replace(stream(events), fault=fault)

    def _refusal(self, exchange: Exchange, body: Json, limits: Limits) -> No | None:
        """What a provider refuses before it has read the conversation."""
        in_query = parse_qs(exchange.query.decode("latin-1")).get("key", [])
        names = ("x-api-key", "authorization", "x-goog-api-key")
        credentials = [*in_query, *(one for name in names for one in exchange.header(name))]
        if self.key is not None and not any(one.removeprefix("Bearer ") == self.key for one in credentials):
            return failure(401)
        if limits.request is not None and len(exchange.body) > limits.request:
            return limits.no("request", status=413)
        return None if body else No(400, "The request body is not valid JSON: expected an object")

    def _think(self, face: Face, body: Json, limits: Limits) -> tuple[Asked, Said] | No:
        asked = face.read(body, lenient=self.tool_images != "by wire")
        if isinstance(asked, No):
            return asked
        if self.context is not None and asked.tokens > self.context:
            return No(400, _OVERFLOW.format(limit=self.context, size=asked.tokens), code="context_length_exceeded")
        if self.tool_images == "refused" and any(picture.of_tool for picture in asked.pictures):
            return No(422, "Input should be a valid string")
        what = sees(self.models, asked.model)
        if what == IGNORES:
            asked, what = replace(asked, pictures=()), SEES
        elif self.tool_images == "dropped":
            asked = replace(asked, pictures=tuple(one for one in asked.pictures if not one.of_tool))
        if what is None:
            return No(404, f"The model `{asked.model}` does not exist.", "not_found_error", "model_not_found")
        if asked.pictures and what != SEES:
            return refusal(what, face.PART, face.index(asked.pictures[0]))
        seen = inspect(asked.pictures, limits)
        return seen if isinstance(seen, No) else (asked, self.mind(asked, seen, self.script))


_OVERFLOW = "This model's maximum context length is {limit} tokens. However, your messages resulted in {size} tokens."


def deepseek(**options: Any) -> Provider:
    """A provider like DeepSeek: `claude-opus*` and `deepseek-v4-pro` are blind, their siblings see."""
    return Provider(DEEPSEEK, messages_limits=DEEPSEEK_MESSAGES, chat_limits=DEEPSEEK_CHAT, **options)


@contextmanager
def nobody_listens() -> Iterator[str]:
    """An address of loopback that refuses connections and stays ours meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


_PRESETS = {
    "seeing": (ALL_SEE, ANTHROPIC, OPENAI),
    "bedrock": (ALL_SEE, BEDROCK, OPENAI),
    "deepseek": (DEEPSEEK, DEEPSEEK_MESSAGES, DEEPSEEK_CHAT),
}


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.scripted.provider",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--preset", choices=sorted(_PRESETS), default="seeing")
    parser.add_argument("--blind", choices=sorted(WORDINGS), help="every model is blind, in these words")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="PATTERN=WHAT",
        help="'sees' or a wording; before the preset's",
    )
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="calls of the first answer, in parallel",
    )
    parser.add_argument("--key", help="the only credential that is let in")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, help="each exchange as one JSON line of this file")
    return parser.parse_args(given)


def _calls(given: list[str]) -> list[Call]:
    pairs = (call.partition("=") for call in given)
    return [Call(name, json.loads(arguments or "{}")) for name, _, arguments in pairs]


def _logged(file: Path, exchange: Exchange, reply: Reply) -> None:
    line = {
        **echo(exchange),
        "status": reply.status,
        "reply": b"".join(reply.parts).decode("utf-8", "replace"),
    }
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def main(given: list[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT."""
    options = _arguments(given)
    models, messages_limits, chat_limits = _PRESETS[options.preset]
    if options.blind:
        models = (("*", options.blind),)
    own = [(pattern, what) for pattern, _, what in (one.rpartition("=") for one in options.model)]
    provider = Provider(
        (*own, *models),
        messages_limits=messages_limits,
        chat_limits=chat_limits,
        script=[_calls(options.call)] if options.call else (),
        key=options.key,
        gzip=options.gzip,
        port=options.port,
    )
    if options.log:
        provider.heard = lambda exchange, reply: _logged(options.log, exchange, reply)
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the server's thread, which inherits it
    with provider:
        print(json.dumps({"url": provider.url}), flush=True)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
