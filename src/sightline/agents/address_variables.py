"""The environment variables that redirect a program to the proxy, for programs that have no file in this package.

Each variable leads where it led before, so that a key goes to no other provider: to the address that it had, or to the
usual provider of its API if no variable for that API is set. Only `--upstream` changes that, for the APIs that the
upstream has: the key of another API's provider must not be sent there.

Where the variables are read: the SDKs of OpenAI, Anthropic and Google (google-genai), LangChain and LiteLLM read the
first group of each API; goose reads `…_HOST`; kimi-cli reads `KIMI_BASE_URL`, Kimi Code `KIMI_MODEL_BASE_URL`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sightline.agents.launch import USUAL_PROVIDERS, Launch, LaunchContext, choose_version, resolve_upstream
from sightline.agents.project_files import Steering, find_steering_variables
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal


@dataclass(frozen=True, slots=True)
class AddressGroup:
    """Variables with the same meaning, of which a program may read any."""

    variables: tuple[str, ...]
    api: WireName
    version: str = ""  # what the address ends with
    is_default: bool = True  # set even if the environment has none of them: their usual address is known


_OPENAI_APIS: tuple[WireName, ...] = ("openai_chat", "openai_responses")
_GROUPS = (
    AddressGroup(("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), "anthropic"),
    AddressGroup(("OPENAI_BASE_URL", "OPENAI_API_BASE"), "openai_chat", "/v1"),
    AddressGroup(("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"), "gemini"),
    AddressGroup(("ANTHROPIC_HOST",), "anthropic", is_default=False),
    AddressGroup(("OPENAI_HOST",), "openai_chat", is_default=False),
    AddressGroup(("KIMI_BASE_URL",), "openai_chat", "/v1", is_default=False),
    AddressGroup(("KIMI_MODEL_BASE_URL",), "openai_chat", "/v1", is_default=False),
)
_GOOSE_PATH = "OPENAI_BASE_PATH"
_CHAT_PATH = "v1/chat/completions"
# Programs that keep an address in files of their own, which one of these variables overrides.
_HAVE_SETTINGS = re.compile(r"(?:aider|goose|kimi(?:-cli)?)(?:\.exe)?\Z", re.IGNORECASE)
_NAMES = re.compile("|".join(name for group in _GROUPS for name in group.variables))


def point_by_variables(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    """Return the program with every variable that holds an address pointed at the proxy, and a note about it.

    Refuse if that could send a key to another provider: the program, or a `.env` file, has an address of its own.
    """
    program = Path(argv[0]).name
    has_settings = _HAVE_SETTINGS.match(program) is not None
    if not context.has_upstream and (refusal := _refuse_hidden_address(program, context, has_settings=has_settings)):
        return refusal
    hidden = {found.setting for found in _find_hidden_addresses(context)}
    launch, named = Launch(tuple(argv), dict(context.env)), []
    for group in _GROUPS:
        group = replace(group, api=_find_api(group, context.env))
        is_hidden = has_settings or not hidden.isdisjoint(group.variables)
        variables = _choose_variables(group, context, is_hidden=is_hidden)
        for variable in variables:
            launch = _point(launch, variable, group, context)
        if group.is_default or not context.has_upstream:  # a note of one line
            named += variables[:1]
    others = " and similar variables" if context.has_upstream else ""
    note = (
        f"{program} is redirected to Sightline by {', '.join(named)}{others}; if it reads none of them, nothing changes"
    )
    return replace(launch, env=_complete(launch.env), note=note)


def _refuse_hidden_address(program: str, context: LaunchContext, *, has_settings: bool) -> Refusal | None:
    """Return the refusal of a program whose provider may be in a file that isn't read here."""
    if has_settings and not any(map(context.env.get, _list_variables())):
        return Refusal(
            "invalid_input",
            f"{program} may have the address of its provider in its own settings, which a variable would override",
            f"name the provider: sightline run --upstream NAME -- {program} …",
        )
    for found in _find_hidden_addresses(context):
        return Refusal(
            "not_permitted",
            f"{found.file} sets {found.setting}, and overriding it could send a key to another provider",
            "name the provider with --upstream NAME in front of `--`, or set the variable yourself",
        )
    return None


def _find_hidden_addresses(context: LaunchContext) -> Iterator[Steering]:
    """Yield the variables that a `.env` file sets and the environment doesn't."""
    for folder in context.repository or (context.folder,):
        yield from find_steering_variables(context, folder / ".env", _NAMES)


def _list_variables() -> list[str]:
    return [name for group in _GROUPS for name in group.variables]


def _choose_variables(group: AddressGroup, context: LaunchContext, *, is_hidden: bool) -> list[str]:
    """Return the variables of a group to set: all that lead to the upstream, else those that are set, else the usual.

    If the address may be in a file (`is_hidden`), none is set that would override it.
    """
    if _leads_to_upstream(group, context):
        return list(group.variables)
    given = [name for name in group.variables if context.env.get(name)]
    return given or (list(group.variables) if group.is_default and not is_hidden else [])


def _leads_to_upstream(group: AddressGroup, context: LaunchContext) -> bool:
    """Return whether the user named an upstream, and it has the API of a group."""
    apis = _OPENAI_APIS if group.api in _OPENAI_APIS else (group.api,)
    return context.has_upstream and not set(apis).isdisjoint(context.upstream_apis)


def _find_api(group: AddressGroup, env: Mapping[str, str]) -> WireName:
    """Return the API of a group, which for Kimi Code another variable names."""
    is_anthropic = group.variables == ("KIMI_MODEL_BASE_URL",) and env.get("KIMI_MODEL_PROVIDER_TYPE") == "anthropic"
    return "anthropic" if is_anthropic else group.api


def _point(launch: Launch, variable: str, group: AddressGroup, context: LaunchContext) -> Launch:
    """Return the launch with one variable pointed at the proxy, and the upstream that it named before."""
    version = group.version if group.api in _OPENAI_APIS else ""
    is_ours = _leads_to_upstream(group, context)
    theirs = "" if is_ours else _find_theirs(variable, context.env)
    former, named, base = launch.former_upstreams, launch.named_upstreams, context.address
    if theirs and group.is_default and group.api not in former and not context.has_upstream:
        apis = _OPENAI_APIS if group.api in _OPENAI_APIS else (group.api,)
        former = {**former, **dict.fromkeys(apis, theirs)}
    elif theirs and theirs != former.get(group.api):
        name = variable.lower().replace("_", "-")
        named = {**named, name: (group.api, theirs)}
        base = f"{context.address}/u/{name}"
    elif context.has_upstream and not is_ours:
        base = f"{context.address}/u/{USUAL_PROVIDERS[group.api]}"
    address = base + choose_version(theirs, version) if version else base
    return replace(launch, env={**launch.env, variable: address}, former_upstreams=former, named_upstreams=named)


def _find_theirs(variable: str, env: Mapping[str, str]) -> str:
    """Return the upstream that a variable names: an address, or a name if `setup` has written it."""
    address = resolve_upstream(env.get(variable, ""))
    if variable == "OPENAI_HOST" and "://" in address and (path := env.get(_GOOSE_PATH, "").strip("/")) != _CHAT_PATH:
        return f"{address.rstrip('/')}/{path}".removesuffix("/chat/completions").rstrip("/")
    return address


def _complete(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with what belongs to the addresses: goose's path, and that Kimi's model takes images."""
    more: dict[str, str] = {}
    if env.get("OPENAI_HOST"):
        more[_GOOSE_PATH] = _CHAT_PATH
    known = env.get("KIMI_MODEL_CAPABILITIES", "")
    if known and "image_in" not in known:
        more["KIMI_MODEL_CAPABILITIES"] = f"{known},image_in"
    return {**env, **more}
