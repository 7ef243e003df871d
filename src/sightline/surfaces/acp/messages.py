"""Edits and builds the JSON-RPC messages of ACP as text. Every character that is not edited stays as it was."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sightline.model.media_capability import AudioCapability, ImageCapability
from sightline.model.scene import Edit, Insert, Json, JsonPath, Replace
from sightline.wire.json_document import lift
from sightline.wire.json_edits import locate_values, patch_text

COMMAND = "vision-proxy"
_LARGE = 64 * 1024  # bytes
_V1, _V2 = ("result", "agentCapabilities"), ("result", "capabilities")
_PROMPT_V2 = (*_V2, "session", "prompt")


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """The beginning of a message that was exchanged earlier in a session."""

    role: Literal["user", "assistant"]
    text: str


def parse_message(line: bytes) -> dict[str, Any] | None:
    """Parse a message; None: it is no JSON object.

    Long base64 in a large message is replaced by placeholders, because parsing all of it would delay other lines.
    """
    if len(line) > _LARGE:
        document = lift(line, f"sightline-{secrets.token_hex(8)}-")
        return document.tree if document is not None and isinstance(document.tree, dict) else None
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def get_member(value: object, *way: str) -> Any:
    for name in way:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def read_words(params: Mapping[str, Any]) -> str:
    """Return the text of a prompt."""
    blocks = params.get("prompt")
    texts = [get_member(block, "text") for block in (blocks if isinstance(blocks, list) else ())]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def takes_images(message: Mapping[str, Any]) -> bool:
    """Return whether an agent says, in its response to `initialize`, that prompts may contain images."""
    if _is_draft(message):
        return isinstance(get_member(message, *_PROMPT_V2, "image"), dict)
    return get_member(message, *_V1, "promptCapabilities", "image") is True


def takes_embedded_files(message: Mapping[str, Any]) -> bool:
    """Return whether an agent says that prompts may contain files; the draft of version 2 is taken to say so."""
    return _is_draft(message) or get_member(message, *_V1, "promptCapabilities", "embeddedContext") is True


def get_agent_name(message: Mapping[str, Any]) -> str:
    """Return the name that an agent gives itself, or an empty text."""
    info = get_member(message, "result", "agentInfo") or get_member(message, "result", "info")
    name = get_member(info, "name")
    return name if isinstance(name, str) else ""


def advertise(line: bytes, images: ImageCapability | None = None, audio: AudioCapability | None = None) -> bytes:
    """Return a response to `initialize` with these capabilities added; None: nothing is said about that kind."""
    for kind, capability in (("image", images), ("audio", audio)):
        if capability is not None:
            for place, value in _find_places(parse_message(line) or {}, kind, capability.as_dict()):
                line = _set_value(line, place, value)
    return line


def _find_places(
    message: Mapping[str, Any], kind: str, capability: dict[str, Json]
) -> list[tuple[tuple[str, ...], Json]]:
    """Return every place where clients look for a capability, with its value. The agent's own fields there stay."""
    key, is_draft = f"{kind}Capability", _is_draft(message)
    places = [("result", "_meta", key), (*_PROMPT_V2, kind, "_meta", key) if is_draft else (*_V1, "_meta", key)]
    found: list[tuple[tuple[str, ...], Json]] = []
    for place in places:
        present = get_member(message, *place)
        found.append((place, {**(present if isinstance(present, dict) else {}), **capability}))
    if not is_draft and get_member(message, *_V1, "promptCapabilities", kind) is not True:
        found.append(((*_V1, "promptCapabilities", kind), True))
    return found


def _is_draft(message: Mapping[str, Any]) -> bool:
    """Return whether a response is of version 2 of the protocol, a draft that has other names for the same things."""
    result = get_member(message, "result")
    return isinstance(get_member(result, "capabilities"), dict) and get_member(result, "agentCapabilities") is None


def add_server(line: bytes, server: dict[str, Json]) -> bytes:
    """Return a request for a session with one more MCP server, unless it has that server already."""
    params = get_member(parse_message(line), "params")
    servers = get_member(params, "mcpServers")
    if not isinstance(params, dict) or (servers is not None and not isinstance(servers, list)):
        return line
    if any(_is_ours(each, str(server["name"])) for each in servers or ()):
        return line
    if servers is None:
        return _set_value(line, ("params", "mcpServers"), [server])
    return _patch(line, [Insert(("params", "mcpServers", len(servers)), server)])


def _is_ours(server: object, name: str) -> bool:
    """Recognize our server by its name, or by the command that a user would configure for it."""
    if not isinstance(server, dict):
        return False
    command, args = server.get("command"), server.get("args")
    words = [each for each in (command, *(args if isinstance(args, list) else ())) if isinstance(each, str)]
    starts = any(word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe") == "sightline" for word in words)
    return server.get("name") == name or (starts and "mcp" in words)


def add_command(line: bytes) -> bytes:
    """Return an update with our command added to its list of commands."""
    update = get_member(parse_message(line), "params", "update")
    commands = get_member(update, "availableCommands")
    if get_member(update, "sessionUpdate") != "available_commands_update" or not isinstance(commands, list):
        return line
    if any(get_member(each, "name") == COMMAND for each in commands):
        return line
    return _patch(line, [Insert(("params", "update", "availableCommands", len(commands)), build_command_offer())])


def build_command_offer() -> dict[str, Json]:
    return {
        "name": COMMAND,
        "description": "Sightline: describe images, choose the vision model, and say where images may be sent",
        "input": {"hint": "status | describe PATH-OR-SHA256 | model PROVIDER/MODEL | consent yes | mode always | …"},
    }


def build_update(session: str, update: Mapping[str, Json]) -> bytes:
    params: dict[str, Json] = {"sessionId": session, "update": {**update}}
    return _write_json({"jsonrpc": "2.0", "method": "session/update", "params": params}) + b"\n"


def get_raw_id(line: bytes) -> bytes:
    """Return the id of a request exactly as it is written: the editor may compare it as text."""
    text = line.decode("utf-8")
    slot = locate_values(text, [("id",)])["id",]
    return text[slot.start : slot.end].encode("utf-8")


def build_result(request: bytes, value: Mapping[str, Json]) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (request, _write_json(value))


def build_error(request: bytes, code: int, message: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (request, _write_json({"code": code, "message": message}))


def _write_json(value: Mapping[str, Json]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can represent
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _set_value(line: bytes, place: tuple[str, ...], value: Json) -> bytes:
    """Set a value, and create the objects on the way to it that don't exist yet."""
    at: Any = parse_message(line)
    for depth, name in enumerate(place):
        rest = place[depth + 1 :]
        inner = value
        for missing in reversed(rest):
            inner = {missing: inner}
        here: JsonPath = place[: depth + 1]
        if name not in at:
            return _patch(line, [Insert(here, inner)])
        if not rest or not isinstance(at[name], dict):
            return line if at[name] == inner else _patch(line, [Replace(here, inner)])
        at = at[name]
    return line


def _patch(line: bytes, edits: Sequence[Edit]) -> bytes:
    return patch_text(line.decode("utf-8"), edits).encode("utf-8")
