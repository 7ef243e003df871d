"""The face that speaks the Gemini API: strict about requests, exact about frames.

The model and the wish for a stream stand in the path of this wire; `addressed` puts them into the body, where the
other wires have them. Both spellings of a key are taken, as the real provider takes them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.scripted.server import Exchange
from tests.scripted.talk import Asked, Json, No, Picture, Said, pieces

PART = "inline_data"
PRELUDE: tuple[bytes, ...] = ()
_PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)\Z")
_DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")
_BESIDE = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})
_RESPONSE = frozenset({"id", "name", "response", "parts", "willContinue", "scheduling"})
_BLOB = frozenset({"mimeType", "data", "displayName"})
_TEXT_RESULTS = re.compile(r"gemini-(?:1|2)[.\d]*(?:-|\Z)").match
_ONEOF = "required oneof field 'data' must have one initialized field"
_STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
}  # fmt: skip


def verb(path: str) -> str:
    """What a path of this wire asks for; empty for a path that is not of this wire."""
    found = _PATH.search(path)
    return found["verb"] if found else ""


def model(path: str) -> str | None:
    """The model that a path names."""
    found = _PATH.search(path)
    return found["model"] if found else None


def addressed(exchange: Exchange, body: Json) -> Json:
    """The body with what its address says."""
    return {**body, "model": model(exchange.path), "stream": verb(exchange.path).startswith("stream")}


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _spelt(value: Any) -> Any:
    """Keys in camel case, whichever spelling came; what a tool or a model says is left as it is."""
    if isinstance(value, list):
        return [_spelt(one) for one in value]
    if not isinstance(value, dict):
        return value
    own = {"args", "response"}
    return {_camel(key): inner if key in own else _spelt(inner) for key, inner in value.items()}


def read(body: Json, *, counting: bool = False, lenient: bool = False) -> Asked | No:
    """The request as a model meets it, or the first rule of the wire that it breaks."""
    contents = _spelt(body.get("contents"))
    if isinstance(contents, dict):
        contents = [contents]
    if not isinstance(contents, list) or not contents or not all(isinstance(one, dict) for one in contents):
        return No(400, "* GenerateContentRequest.contents: contents is not specified")
    broken = next(filter(None, (_broken_content(f"contents[{n}]", one) for n, one in enumerate(contents))), None)
    broken = broken or _broken_pairing(contents)
    if not broken and not lenient and _TEXT_RESULTS(body["model"]) and any(_nested(contents)):
        broken = No(400, "Multimodal function responses are not supported for this model.")
    declared = [each for tool in _spelt(body.get("tools") or ()) for each in tool.get("functionDeclarations") or ()]
    return broken or Asked(
        model=body["model"],
        stream=body.get("stream") is True,
        wants_usage=True,
        pictures=tuple(_pictures(contents)),
        words=tuple(_words(contents)),
        tools=frozenset(str(each.get("name")) for each in declared),
        steps=sum(bool(_of(content, "functionCall")) for content in contents),
    )


def _of(content: Json, key: str) -> list[Json]:
    return [part[key] for part in content["parts"] if key in part]


def _nested(contents: list[Json]) -> Iterator[Json]:
    return (part for one in contents for answer in _of(one, "functionResponse") for part in answer.get("parts") or ())


def _broken_content(where: str, content: Json) -> No | None:
    if content.get("role", "user") not in {"user", "model", "function"}:
        return No(400, "Please use a valid role: user, model.")
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        return No(400, f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.")
    return next(filter(None, (_broken_part(f"{where}.parts[{n}]", part) for n, part in enumerate(parts))), None)


def _broken_part(where: str, part: object) -> No | None:
    if not isinstance(part, dict):
        return No(400, f"Invalid value at '{where}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)")
    held = [key for key in part if key in _DATA]
    if strange := next((key for key in part if key not in _DATA and key not in _BESIDE), None):
        return _unknown(strange, where)
    if len(held) != 1:
        return No(400, f"* GenerateContentRequest.{where}.data: {_ONEOF}")
    inside = part[held[0]]
    if held[0] == "text":
        return None if isinstance(inside, str) else No(400, f"Invalid value at '{where}.text' (TYPE_STRING)")
    if held[0] == "inlineData":
        return _broken_blob(f"{where}.inline_data", inside)
    if held[0] == "functionResponse":
        return _broken_response(f"{where}.function_response", inside)
    return None


def _broken_response(where: str, response: Any) -> No | None:
    if strange := next((key for key in response if key not in _RESPONSE), None):
        return _unknown(strange, where)
    if not response.get("name"):
        return No(400, f"* GenerateContentRequest.{where}.name: Name cannot be empty.")
    if not isinstance(response.get("response"), dict):
        return No(400, f"Invalid value at '{where}.response' (type.googleapis.com/google.protobuf.Struct)")
    for number, part in enumerate(response.get("parts") or ()):
        place = f"{where}.parts[{number}]"
        if not isinstance(part, dict) or list(part) != ["inlineData"]:
            return No(400, f"* GenerateContentRequest.{place}.data: {_ONEOF}")
        if broken := _broken_blob(f"{place}.inline_data", part["inlineData"]):
            return broken
    return None


def _broken_blob(where: str, blob: Any) -> No | None:
    if strange := next((key for key in blob if key not in _BLOB), None):
        return _unknown(strange, where)
    if not isinstance(blob.get("data"), str):
        return No(400, f"Invalid value at '{where}.data' (TYPE_BYTES)")
    return None


def _unknown(key: str, where: str) -> No:
    return No(400, f"Invalid JSON payload received. Unknown name \"{key}\" at '{where}': Cannot find field.")


def _broken_pairing(contents: list[Json]) -> No | None:
    """A turn of calls is followed at once by a turn with as many responses, and by nothing else."""
    asked: list[Json] = []
    for number, content in enumerate(contents):
        calls, answers = _of(content, "functionCall"), _of(content, "functionResponse")
        if answers and not asked:
            return No(400, "Please ensure that function response turn comes immediately after a function call turn.")
        if asked and len(answers) != len(asked):
            return No(
                400,
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
        if {one.get("id") for one in answers} - {one.get("id") for one in asked}:
            return No(400, "Please ensure that each function response has the id of a function call.")
        if calls and (number == 0 or contents[number - 1].get("role") == "model"):
            return No(
                400,
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn.",
            )
        asked = calls
    return None


def _blobs(contents: list[Json]) -> Iterator[tuple[str, Json, bool]]:
    for number, content in enumerate(contents):
        for at, part in enumerate(content["parts"]):
            where = f"contents[{number}].parts[{at}]"
            if "inlineData" in part:
                yield f"{where}.inline_data", part["inlineData"], False
            for inner, nested in enumerate(part.get("functionResponse", {}).get("parts") or ()):
                yield f"{where}.function_response.parts[{inner}].inline_data", nested["inlineData"], True


def _pictures(contents: list[Json]) -> Iterator[Picture]:
    for where, blob, of_tool in _blobs(contents):
        kind = str(blob.get("mimeType"))
        if not kind.startswith(("text/", "audio/", "video/", "application/")):
            yield Picture(where, kind, _standard(blob["data"]), of_tool)


def _standard(data: str) -> str:
    """Base64 in its first alphabet and padded; this provider takes both alphabets and either ending."""
    bare = data.rstrip("=").translate(str.maketrans("-_", "+/"))
    return bare + "=" * (-len(bare) % 4)


def _words(contents: list[Json]) -> Iterator[str]:
    for content in contents:
        if content.get("role") != "model":
            yield from (part["text"] for part in content["parts"] if "text" in part)
            yield from (text for one in _of(content, "functionResponse") for text in _texts(one["response"]))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def index(picture: Picture) -> int:
    """The number of the content that a picture stands in."""
    return int(picture.where[len("contents[") :].partition("]")[0])


def error(no: No) -> Json:
    """A refusal in this wire's shape."""
    status = _STATUSES.get(no.status, "UNKNOWN")
    return no.shape or {"error": {"code": no.status, "message": no.message, "status": status}}


def error_event(no: No) -> bytes:
    """A refusal in the middle of a stream."""
    return _data(error(no))


def count(asked: Asked) -> Json:
    """The answer of countTokens."""
    return {"totalTokens": asked.tokens}


def _chunk(asked: Asked, said: Said, parts: Sequence[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    counted = {"promptTokenCount": asked.tokens, "candidatesTokenCount": said.tokens}
    return {
        "candidates": [{**candidate, "finishReason": "STOP"} if last else candidate],
        "usageMetadata": {**counted, "totalTokenCount": asked.tokens + said.tokens},
        "modelVersion": asked.model,
        "responseId": "scripted",
    }


def _parts_said(asked: Asked, said: Said) -> list[Json]:
    calls = [
        {"functionCall": {"id": f"fc-{asked.steps:02}-{n:02}", "name": call.name, "args": dict(call.arguments)}}
        for n, call in enumerate(said.calls)
    ]
    return [{"text": said.text}] * bool(said.text) + calls


def whole(asked: Asked, said: Said) -> Json:
    """The answer to `generateContent`."""
    return _chunk(asked, said, _parts_said(asked, said), last=True)


def events(asked: Asked, said: Said) -> list[bytes]:
    """The answer to `streamGenerateContent?alt=sse`, framed as the real provider frames it."""
    texts: list[Json] = [{"text": piece} for piece in pieces(said.text)]
    parts = texts + [part for part in _parts_said(asked, said) if "text" not in part]
    return [_data(_chunk(asked, said, [part], last=n == len(parts))) for n, part in enumerate(parts, 1)]


def array(events: Sequence[bytes]) -> list[bytes]:
    """The same without `alt=sse`: one JSON array, element by element."""
    bare = [event.removeprefix(b"data: ").strip() for event in events]
    return [b"[" + bare[0], *(b",\r\n" + one for one in bare[1:]), b"]"]


def _data(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n".encode()
