"""How to start Gemini CLI behind the proxy, and how to set it up.

An environment variable sets its address, and overrides every file. But if no login is saved, that variable also changes
how Gemini CLI logs in.

It reads only the nearest `.env` file. In a project that it doesn't trust, it reads only keys from there. A flag, a
variable or a user setting makes it trust every project. It records trusted folders in trustedFolders.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest
from sightline.agents.launch import (
    CODE_SETTINGS,
    FILES,
    NETWORK,
    Launch,
    LaunchContext,
    Steering,
    describe_ignored_settings,
    describe_project_upstream,
    find_steering_settings,
    find_steering_variables,
    refuse_project,
    resolve_upstream,
)
from sightline.agents.settings_files import get_object, merge
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

_URL_VARIABLE, _HOME_VARIABLE = "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"
_API_KEY_LOGINS = ("", "gemini-api-key", "gateway")
_LOGIN_VARIABLES = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
_TRUST_REMEDY = "start gemini in this folder, trust it when asked or with /permissions, then run this again"
_NO_LOGIN_NOTE = "no login of Gemini CLI is saved, so it uses GEMINI_API_KEY, and its history is kept for this run only"
_PROJECT_SETTINGS = Path(".gemini/settings.json")
_DOTENVS = (".gemini/.env", ".env")
_STEERING_SETTINGS = (*CODE_SETTINGS, "security.auth", "selectedAuthType", "telemetry", "proxy")
_STEERING_VARIABLES = rf"(?i){NETWORK}|(?:GEMINI|GOOGLE|CODE_ASSIST)_(?!MODEL\Z)\w+"
_ALWAYS_READ = "GEMINI_API_KEY|GOOGLE_API_KEY|GOOGLE_CLOUD_PROJECT|GOOGLE_CLOUD_LOCATION"


@value_class
class _Files:
    """What Gemini CLI reads in the folder where it is started."""

    dotenv: Path  # the one `.env` file that it reads
    is_own: bool  # that file is the user's, not a project's
    is_trusted: bool  # trustedFolders.json lists the folder
    steering: tuple[Steering, ...]  # what a project decides that isn't listed there

    @property
    def ignorable(self) -> bool:
        """Whether all of it is in the `.env` file; the settings file of a project can't be ignored."""
        return all(each.file == self.dotenv for each in self.steering)


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    if (login := _find_login(context)) not in _API_KEY_LOGINS:
        return Refusal(
            "unsupported_type",
            f"Gemini CLI is logged in with {login}, which can't go through a proxy",
            "choose an API key with /auth in Gemini CLI, or unset the variable",
        )
    files = _find_files(argv, context)
    if files.steering and not (context.has_upstream and files.ignorable):
        return refuse_project("Gemini CLI", files.steering, _TRUST_REMEDY, ignorable=files.ignorable)
    former_upstream, note = _find_upstream(context, files)
    # A variable that is set, even to an empty string, is not read from a file.
    user_variables = context.read_dotenv(_get_home(context) / _DOTENVS[0])
    ignored = {each.setting: user_variables.get(each.setting, "") for each in files.steering}
    env = {**context.env, **ignored, _URL_VARIABLE: context.address}
    former_upstreams: Mapping[WireName, str] = {"gemini": former_upstream} if former_upstream else {}
    if login:
        return Launch(tuple(argv), env, former_upstreams, note=note)
    settings = merge(_read_settings(context), {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    temporary_files = {".gemini/settings.json": json.dumps(settings)}
    notes = "; ".join(filter(None, (note, _NO_LOGIN_NOTE)))
    return Launch(tuple(argv), {**env, _HOME_VARIABLE: FILES}, former_upstreams, files=temporary_files, note=notes)


def _find_login(context: LaunchContext) -> str:
    """Return the saved login, or the one that the environment chooses, or an empty string."""
    saved = get_object(_read_settings(context), "security", "auth").get("selectedType")
    return str(saved or next((name for name in _LOGIN_VARIABLES if context.env.get(name) == "true"), ""))


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return what an untrusted project sets about where keys and images go."""
    return [*_find_files(argv, context).steering]


def _get_home(context: LaunchContext) -> Path:
    return Path(context.env.get(_HOME_VARIABLE) or context.home)


def _read_settings(context: LaunchContext) -> dict[str, Any]:
    return context.read_json(_get_home(context) / ".gemini" / "settings.json")


def _find_upstream(context: LaunchContext, files: _Files) -> tuple[str, str]:
    """Return the upstream that Gemini CLI uses now, and a note about the project."""
    is_trusted = files.is_trusted or files.is_own
    dotenv = context.read_dotenv(files.dotenv if is_trusted else _get_home(context) / _DOTENVS[0])
    variable = context.env.get(_URL_VARIABLE)
    upstream = resolve_upstream(variable if variable is not None else dotenv.get(_URL_VARIABLE, ""))
    if variable is None and files.is_trusted and not files.is_own:
        return upstream, describe_project_upstream(upstream, str(files.dotenv))
    return upstream, describe_ignored_settings("Gemini CLI", files.steering)


def _find_files(argv: Sequence[str], context: LaunchContext) -> _Files:
    home = _get_home(context)
    record = context.env.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or home / ".gemini" / "trustedFolders.json"
    is_trusted, skips_trust = context.trusts(Path(record)), _skips_trust(argv, context)
    names = _DOTENVS if is_trusted or skips_trust else _DOTENVS[1:]
    files = [*(folder / name for folder in context.folder_chain for name in names), *(home / name for name in _DOTENVS)]
    dotenv = next((file for file in files if context.read(file) is not None), home / _DOTENVS[0])
    homes = [folder for folder in (home, context.home, context.real_home) if folder is not None]
    is_own = dotenv in {folder / name for folder in homes for name in _DOTENVS}
    steering = () if is_trusted else _list_steering(context, None if is_own else dotenv, skips_trust=skips_trust)
    return _Files(dotenv, is_own, is_trusted, tuple(steering))


def _skips_trust(argv: Sequence[str], context: LaunchContext) -> bool:
    """Return whether Gemini CLI trusts every project, whether or not it is listed."""
    has_flag = any(word.partition("=")[0] in ("--skip-trust", "--skipTrust") for word in argv)
    is_requested = has_flag or context.env.get("GEMINI_CLI_TRUST_WORKSPACE") == "true"
    return is_requested or get_object(_read_settings(context), "security", "folderTrust").get("enabled") is False


def _list_steering(context: LaunchContext, dotenv: Path | None, *, skips_trust: bool) -> Iterator[Steering]:
    """Yield what an untrusted project sets about where keys and images go."""
    if skips_trust and not context.at_home:
        yield from find_steering_settings(
            _PROJECT_SETTINGS, context.read(context.folder / _PROJECT_SETTINGS) or "", _STEERING_SETTINGS
        )
    if dotenv is not None:
        yield from find_steering_variables(context, dotenv, _STEERING_VARIABLES if skips_trust else _ALWAYS_READ)


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    started = request.agent.launch(["gemini"], request.context)
    if isinstance(started, Refusal):
        return started
    if not _find_login(request.context):
        return Refusal(
            "unsupported_type",
            "Gemini CLI has no saved login, and would exit with code 41",
            "choose an API key with /auth in Gemini CLI first",
        )
    now = request.find_upstream(started.former_upstreams.get("gemini", request.agent.default_target.upstream))
    if request.upstream and request.upstream != now:
        return request.refuse_key("the key of Gemini CLI", now)
    return now if isinstance(now, Refusal) else ProviderTarget(now)


AGENT = CodingAgent(
    "gemini",
    "Gemini CLI",
    start=start,
    api="gemini",
    packages=("@google/gemini-cli",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="gemini mcp add -s user sightline sightline mcp",
    short_hint="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
    one_run="GOOGLE_GEMINI_BASE_URL=$B gemini",
    file="~/.gemini/.env",
    moved_by=("GEMINI_CLI_HOME", ".gemini/.env"),
    file_lines="GOOGLE_GEMINI_BASE_URL=$B",
    default_target=ProviderTarget("gemini"),
    note="Needs a saved security.auth.selectedType; without one it exits with code 41."
    " It reads the file only in folders that it trusts.",
)
