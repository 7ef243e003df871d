"""Edits of messages: only what is added changes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sightline.model.media_capability import (
    AudioCapability,
    ImageCapability,
    read_audio_capability,
    read_image_capability,
)
from sightline.surfaces.acp.messages import (
    add_command,
    add_server,
    advertise,
    build_command_offer,
    get_agent_name,
    parse_message,
    takes_images,
)
from tests.acp.test_lines import JSON
from tests.requirements import requirement

OURS = ImageCapability(5_242_880, 8000, 524_288, auto_handles_oversized=True, auto_handles_wrong_model=True)
SERVER: dict[str, Any] = {"name": "sightline", "command": "/bin/sightline", "args": ["mcp"], "env": []}
META = st.fixed_dictionaries({}, optional={"imageCapability": JSON, "x": JSON})
CAPABILITIES = st.fixed_dictionaries(
    {},
    optional={
        "promptCapabilities": st.none() | st.fixed_dictionaries({}, optional={"image": JSON, "audio": JSON}),
        "_meta": st.none() | META,
        "loadSession": st.booleans(),
    },
)
DRAFT: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "session": st.fixed_dictionaries(
            {}, optional={"prompt": st.fixed_dictionaries({}, optional={"image": st.just({}) | st.none()})}
        )
    },
)
RESULTS = st.fixed_dictionaries(
    {"protocolVersion": st.just(1)},
    optional={"agentCapabilities": CAPABILITIES | JSON, "capabilities": DRAFT, "_meta": META, "agentInfo": JSON},
)
SPACED = st.sampled_from([None, 1])


def line(message: object, indent: int | None = None) -> bytes:
    """Return a message as clients write it, with or without spaces."""
    separators = (",", ":") if indent is None else (", ", " : ")
    return json.dumps(message, ensure_ascii=False, separators=separators).encode("utf-8", "surrogatepass") + b"\n"


def place(message: dict[str, Any], *way: str) -> Any:
    found: Any = message
    for step in way:
        found = found[step]
    return found


@given(RESULTS, SPACED)
@requirement("capability.advertised")
def test_the_capability_is_added_in_every_place_and_all_else_stays(result: dict[str, Any], spaces: int | None) -> None:
    before = {"jsonrpc": "2.0", "id": 1, "result": result}
    after = parse_message(advertise(line(before, spaces), OURS))
    assert after is not None
    said = OURS.as_dict()
    assert said.items() <= place(after, "result", "_meta", "imageCapability").items()
    draft = isinstance(result.get("capabilities"), dict) and result.get("agentCapabilities") is None
    own = ("session", "prompt", "image", "_meta") if draft else ("_meta",)
    holder = "capabilities" if draft else "agentCapabilities"
    assert said.items() <= place(after, "result", holder, *own, "imageCapability").items()
    assert takes_images(after)
    assert read_image_capability(after) == OURS
    if not draft and isinstance(result.get("agentCapabilities"), dict):
        kept = {key: each for key, each in result["agentCapabilities"].items() if key == "loadSession"}
        assert kept.items() <= after["result"]["agentCapabilities"].items()
    assert advertise(line(after), OURS) == line(after), "what is said already is not said again"


@given(RESULTS, SPACED)
@requirement("capability.audio.advertised")
def test_audio_is_advertised_only_if_it_is_handled(result: dict[str, Any], spaces: int | None) -> None:
    before = line({"jsonrpc": "2.0", "id": 1, "result": result}, spaces)
    assert advertise(before, None, None) == before
    images = parse_message(advertise(before, OURS))
    assert images is not None
    assert read_audio_capability(images) == read_audio_capability(parse_message(before))
    sound = AudioCapability(1000, 60_000, auto_handles_oversized=False)
    heard = parse_message(advertise(before, None, sound))
    assert read_audio_capability(heard) == sound
    assert place(heard or {}, "result", "_meta", "audioCapability")["maxDurationMs"] == 60_000


def test_other_fields_of_an_agents_capability_stay() -> None:
    capability = {"maxBytes": 10_380_902, "maxImagesPerTurn": 4}
    before = {"id": 1, "result": {"agentCapabilities": {"_meta": {"imageCapability": capability}}}}
    after = parse_message(advertise(line(before), OURS)) or {}
    assert place(after, "result", "agentCapabilities", "_meta", "imageCapability") == {
        "maxImagesPerTurn": 4,
        **OURS.as_dict(),
    }


@given(st.lists(st.fixed_dictionaries({"name": st.text(max_size=9)}), max_size=3) | st.none(), SPACED, JSON)
@requirement("acp.server")
def test_a_session_gets_our_server_once(servers: list[Any] | None, spaces: int | None, more: Any) -> None:
    params = {"cwd": "/a", "x": more} | ({} if servers is None else {"mcpServers": servers})
    before = line({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}, spaces)
    once = add_server(before, SERVER)
    assert (parse_message(once) or {})["params"] == {**params, "mcpServers": [*(servers or []), SERVER]}
    assert add_server(once, SERVER) == once


def test_a_server_that_the_user_has_set_up_is_ours_under_any_name() -> None:
    for command, args in (
        ("sightline", ["mcp"]),
        ("/opt/venv/bin/sightline", ["mcp", "--x"]),
        ("uvx", ["sightline", "mcp"]),
        ("C:\\bin\\sightline.exe", ["mcp"]),
    ):
        servers = [{"name": "eyes", "command": command, "args": args, "env": []}]
        before = line({"id": 1, "method": "session/new", "params": {"mcpServers": servers}})
        assert add_server(before, SERVER) == before
    other = line({"id": 1, "method": "session/new", "params": {"mcpServers": [{"name": "a", "command": "sightline"}]}})
    assert add_server(other, SERVER) != other


@given(st.lists(st.fixed_dictionaries({"name": st.text(max_size=9), "x": JSON}), max_size=3), SPACED)
@requirement("acp.commands")
def test_a_list_of_commands_gets_ours_once(commands: list[Any], spaces: int | None) -> None:
    update = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    params = {"sessionId": "s", "update": update}
    before = line({"jsonrpc": "2.0", "method": "session/update", "params": params}, spaces)
    once = add_command(before)
    assert (parse_message(once) or {})["params"]["update"]["availableCommands"] == [*commands, build_command_offer()]
    assert add_command(once) == once


def test_an_agent_is_known_by_the_name_it_gives_itself() -> None:
    assert (
        get_agent_name({"result": {"agentInfo": {"name": "a"}}})
        == get_agent_name({"result": {"info": {"name": "a"}}})
        == "a"
    )
    assert get_agent_name({"result": {"agentInfo": {"name": 3}}}) == get_agent_name({"result": None}) == ""


@requirement("load.lines")
def test_a_message_of_too_many_values_is_not_read() -> None:
    line = b'{"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[%b]}}\n'
    assert parse_message(line % (b"{}," * 100_000 + b"{}")) is not None
    assert parse_message(line % (b"{}," * 300_000 + b"{}")) is None
