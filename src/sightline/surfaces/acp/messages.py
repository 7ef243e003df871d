"""The messages that are edited, as text: what is put into one, and every other letter of it as it was."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sightline.model.capability import AudioCapability, ImageCapability
from sightline.model.edit import Edit, Insert, Replace
from sightline.model.scene import Json, Path
from sightline.wire.jsonedits import locate, patched
from sightline.wire.jsontext import lift

COMMAND = "vision-proxy"
_LONG = 64 * 1024  # bytes
_V1, _V2 = ("result", "agentCapabilities"), ("result", "capabilities")
_PROMPT_V2 = (*_V2, "session", "prompt")


def read(line: bytes) -> dict[str, Any] | None:
    """A message as objects; None: it is none, and nobody here has anything to say about it.

    Of a long one, what is base64 in it may be missing: to read it all would hold up everybody else.
    """
    if len(line) > _LONG:
        document = lift(line, f"sightline-{secrets.token_hex(8)}-")
        return document.tree if document is not None and isinstance(document.tree, dict) else None
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def within(value: object, *way: str) -> Any:
    for name in way:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def takes_images(message: Mapping[str, Any]) -> bool:
    """Does an agent say, in its answer to `initialize`, that prompts may hold images?"""
    if _is_draft(message):
        return isinstance(within(message, *_PROMPT_V2, "image"), dict)
    return within(message, *_V1, "promptCapabilities", "image") is True


def named(message: Mapping[str, Any]) -> str:
    """What an agent calls itself."""
    info = within(message, "result", "agentInfo") or within(message, "result", "info")
    name = within(info, "name")
    return name if isinstance(name, str) else ""


def advertised(line: bytes, images: ImageCapability | None = None, audio: AudioCapability | None = None) -> bytes:
    """An answer to `initialize` that says what images, and what sound, are taken; what is None is not handled here."""
    for kind, flag, said in (("image", "image", images), ("audio", "audio", audio)):
        if said is not None:
            for place, value in _places(read(line) or {}, kind, flag, said.as_dict()):
                line = _put(line, place, value)
    return line


def _places(
    message: Mapping[str, Any], kind: str, flag: str, said: dict[str, Json]
) -> list[tuple[tuple[str, ...], Json]]:
    """Wherever clients look for it. What an agent says there beyond our fields stays."""
    key = f"{kind}Capability"
    draft = (*_PROMPT_V2, flag, "_meta", key)
    stable = (*_V1, "_meta", key)
    places = [("result", "_meta", key), draft if _is_draft(message) else stable]
    found: list[tuple[tuple[str, ...], Json]] = [
        (place, {**(within(message, *place) if isinstance(within(message, *place), dict) else {}), **said})
        for place in places
    ]
    if not _is_draft(message) and within(message, *_V1, "promptCapabilities", flag) is not True:
        found.append(((*_V1, "promptCapabilities", flag), True))
    return found


def _is_draft(message: Mapping[str, Any]) -> bool:
    """The second version of the protocol, which is a draft, has other names for the same."""
    result = within(message, "result")
    return isinstance(within(result, "capabilities"), dict) and within(result, "agentCapabilities") is None


def with_server(line: bytes, server: dict[str, Json]) -> bytes:
    """A request for a session that brings one more MCP server, unless it does so already."""
    params = within(read(line), "params")
    servers = within(params, "mcpServers")
    if not isinstance(params, dict) or (servers is not None and not isinstance(servers, list)):
        return line
    if any(_is_ours(each, str(server["name"])) for each in servers or ()):
        return line
    if servers is None:
        return _put(line, ("params", "mcpServers"), [server])
    return _patched(line, [Insert(("params", "mcpServers", len(servers)), server)])


def _is_ours(server: object, name: str) -> bool:
    """By its name, or as whoever has set it up by hand would start it."""
    if not isinstance(server, dict):
        return False
    command, args = server.get("command"), server.get("args")
    words = [each for each in (command, *(args if isinstance(args, list) else ())) if isinstance(each, str)]
    starts = any(word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe") == "sightline" for word in words)
    return server.get("name") == name or (starts and "mcp" in words)


def with_command(line: bytes) -> bytes:
    """A list of commands with ours among them."""
    update = within(read(line), "params", "update")
    commands = within(update, "availableCommands")
    if within(update, "sessionUpdate") != "available_commands_update" or not isinstance(commands, list):
        return line
    if any(within(each, "name") == COMMAND for each in commands):
        return line
    return _patched(line, [Insert(("params", "update", "availableCommands", len(commands)), offered())])


def offered() -> dict[str, Json]:
    return {
        "name": COMMAND,
        "description": "Sightline: describe images, say who looks and where images may be sent",
        "input": {"hint": "status | describe PATH-OR-SHA256 | model PROVIDER/MODEL | consent yes | mode always | …"},
    }


def update(session: str, said: Mapping[str, Json]) -> bytes:
    params: dict[str, Json] = {"sessionId": session, "update": {**said}}
    return _written({"jsonrpc": "2.0", "method": "session/update", "params": params}) + b"\n"


def token(line: bytes) -> bytes:
    """The id of a request, to the letter: whoever asked may know it by no other."""
    text = line.decode("utf-8")
    slot = locate(text, [("id",)])["id",]
    return text[slot.start : slot.end].encode("utf-8")


def result(request: bytes, value: Mapping[str, Json]) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (request, _written(value))


def error(request: bytes, code: int, message: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (request, _written({"code": code, "message": message}))


def _written(value: Mapping[str, Json]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:  # half a letter, which only an escape can write
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _put(line: bytes, place: tuple[str, ...], value: Json) -> bytes:
    """A value at a place, with the objects on the way to it that are not there yet."""
    at: Any = read(line)
    for depth, name in enumerate(place):
        rest = place[depth + 1 :]
        inner = value
        for missing in reversed(rest):
            inner = {missing: inner}
        here: Path = place[: depth + 1]
        if name not in at:
            return _patched(line, [Insert(here, inner)])
        if not rest or not isinstance(at[name], dict):
            return line if at[name] == inner else _patched(line, [Replace(here, inner)])
        at = at[name]
    return line


def _patched(line: bytes, edits: Sequence[Edit]) -> bytes:
    return patched(line.decode("utf-8"), edits).encode("utf-8")
