"""How to start opencode behind the proxy, and how to set it up.

OPENCODE_CONFIG_CONTENT is merged over the user's and the project's files.

It has no record of trusted folders, so the files of a project decide nothing, unless the user names one of them in
OPENCODE_CONFIG, or their folder in OPENCODE_CONFIG_DIR. OPENCODE_DISABLE_PROJECT_CONFIG makes it read none of them.
Where its arguments name another folder, that is the project. It is made with Bun, which loads the `.env` files of the
folder where it starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import Any

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest, choose_from_table
from sightline.agents.launch import (
    NETWORK,
    PROVIDERS,
    Launch,
    LaunchContext,
    Steering,
    choose_version,
    describe_ignored_settings,
    find_address,
    find_bun_steering,
    find_options,
    find_steering_settings,
    is_dotenv,
    refuse_project,
    select_code,
    unset_variables,
)
from sightline.agents.settings_files import get_object, merge, parse_json
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_CONTENT = "OPENCODE_CONFIG_CONTENT"
_VISION_SETTINGS = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
_FILES = ("opencode.json", "opencode.jsonc")
_SCREEN = ("tui.json", "tui.jsonc")  # the settings of its screen, which can load plugins
# Folders in .opencode: of code that it loads, and of texts with front matter that may name a model.
_CODE = ("plugin", "plugins", "tool", "tools")
_MARKDOWN = ("agent", "agents", "mode", "modes", "command", "commands")
_OPEN_FOLDERS_LATER = ("acp", "serve", "web", "pr")
_COMMANDS = (
    *("completion", "acp", "mcp", "attach", "run", "debug", "providers", "auth", "agent", "upgrade", "uninstall"),
    *("serve", "web", "models", "stats", "export", "import", "github", "pr", "session", "plugin", "plug", "db"),
)
_TAKE_A_VALUE = (
    *("-m", "--model", "-s", "--session", "--prompt", "--agent", "--port", "--hostname", "--log-level"),
    *("--mdns-domain", "--cors", "--replay-limit"),
)
_NAMED, _NO_PROJECT = "OPENCODE_CONFIG", "OPENCODE_DISABLE_PROJECT_CONFIG"
_FOLDER = "OPENCODE_CONFIG_DIR"
_STEERING_SETTINGS = (
    *("plugin", "mcp", "lsp", "formatter"),  # programs that it runs
    *("provider", "enabled_providers", "disabled_providers", "share", "autoshare", "enterprise"),
)
_STEERING_VARIABLES = rf"(?i){NETWORK}|{PROVIDERS}|OPENCODE_\w+"
_ROLES = ("agent", "mode", "command")  # each of which may name a model, and with it a provider
_REFERENCE = re.compile(r"\{(env|file):([^}]+)\}")
# Its own providers, by our names for them.
_BUILT_IN: Mapping[str, str] = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "gemini",
    "groq": "groq",
    "mistral": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "openrouter": "openrouter",
    "xai": "xai",
    "zai": "zai",
    "zai-coding-plan": "zai-coding",
}
_NPMS: Mapping[str, WireName] = {"anthropic": "anthropic", "google": "gemini"}
_UNKNOWN_MODEL = "that cannot be read here"
_FRONT_MATTER = re.compile(r"\A\ufeff?---(?!-)([^\r\n]*)(.*?)(?:\n---|\Z)", re.DOTALL)
_HIDES_MODEL = re.compile(r"\\(?:[xuU]|\r?\n)|(?:^|[\s{\[,:?-])(?:[&*!](?=[\w<!])|\?(?=\s))", re.MULTILINE)
_NAMES_MODEL = re.compile(r"""\bmodel["']?\s*:\s*["']?([^\s"',}#]*)""")


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    given = parse_json(context.env.get(_CONTENT) or "{}")
    if given is None:
        return Refusal("invalid_input", f"{_CONTENT} is not JSON", "correct it or unset it")
    flag = next(find_options(argv, "-m", "--model"), "")
    is_later = _opens_folders_later(argv, context)
    in_config = [] if is_later else _find_in_config(argv, context)
    loaded = find_bun_steering(context, "opencode", _STEERING_VARIABLES)
    if code := select_code(loaded):
        return refuse_project(
            "opencode", code, "move this file away, or start opencode in another folder", ignorable=False
        )
    if (steering := [*in_config, *loaded]) and not context.has_upstream:
        return refuse_project("opencode", steering, _say_trust(steering[0]))
    config = merge(_read_config(context), _resolve_addresses(given, context.folder, context))
    model = flag or config.get("model")
    chosen, _, model_id = model.partition("/") if isinstance(model, str) else ("", "", "")
    named: dict[str, tuple[WireName, str]] = {}
    providers = {
        name: _point_provider(
            name, get_object(config, "provider", name), context, named, model_id if name == chosen else ""
        )
        for name in sorted(
            {*get_object(config, "provider"), *_BUILT_IN, *([chosen] if chosen and context.has_upstream else [])}
        )
    }
    content = merge(given, {"provider": {name: settings for name, settings in providers.items() if settings}})
    env = {**unset_variables(context.env, loaded), _CONTENT: json.dumps(content, ensure_ascii=False)}
    if chosen and not providers.get(chosen):
        return Refusal(
            "unsupported_type",
            f"the address of opencode's provider {chosen} is not known",
            "add --upstream NAME, or give it options.baseURL in opencode.json",
        )
    if "PWD" in env:
        env["PWD"] = str(context.folder)  # opencode prefers it to the folder where it is started
    if in_config or is_later:
        env[_NO_PROJECT] = "1"
    later = f"opencode reads no settings of projects: {_NO_PROJECT}=1" if is_later else ""
    note = "; ".join(filter(None, (later, describe_ignored_settings("opencode", steering))))
    return Launch(tuple(argv), env, {}, named, note=note)


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return what the projects that opencode is started in say about where keys and images go."""
    return [*_find_in_config(argv, context), *find_bun_steering(context, "opencode", _STEERING_VARIABLES)]


def _find_in_config(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return what the settings, texts and code of projects that opencode itself reads say about that."""
    flag = next(find_options(argv, "-m", "--model"), "")
    found = (
        each
        for folder in _list_folders(argv, context)
        for each in _list_steering(replace(context, folder=folder), flag)
    )
    return [*dict.fromkeys(found)]


def _find_command(argv: Sequence[str]) -> str:
    """Return the first word that is neither an option nor the value of one."""
    words = iter(argv[1:])
    for word in words:
        if word in _TAKE_A_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            return word
    return ""


def _opens_folders_later(argv: Sequence[str], context: LaunchContext) -> bool:
    """Return whether its clients name the folders, or it fetches one: none can be checked before it is started.

    A user who has set the variable has decided about the settings of projects.
    """
    return _find_command(argv) in _OPEN_FOLDERS_LATER and not context.env.get(_NO_PROJECT)


def _list_folders(argv: Sequence[str], context: LaunchContext) -> list[Path]:
    """Return the folders that it may work in, as written and with links followed.

    Without a command, a word names the folder of the project. Words that are values of options count too: no folder is
    called like them, or else it is checked needlessly.
    """
    command = _find_command(argv)
    if command == "run":
        named = [*find_options(argv, "--dir")] or ["."]
    else:
        words = [] if command in _COMMANDS else [word for word in argv[1:] if not word.startswith("-")]
        named = [".", *words]
    paths = [Path(normpath(context.folder / name)) for name in named]
    return [*dict.fromkeys(each for path in paths for each in (path, context.real_path(path)))]


def _say_trust(found: Steering) -> str:
    file = found.file
    if is_dotenv(found):
        return f"set {found.setting} yourself in the environment"
    if file.name in _FILES:
        return f"set {_NAMED}={file} if you trust that file"
    folder = next((each for each in file.parents if each.name == ".opencode"), file.parent)
    return f"set {_FOLDER}={folder} if you trust that folder"


def _read_config(context: LaunchContext) -> dict[str, Any]:
    """Return the settings of the user's own files, the later ones merged over the earlier."""
    config: dict[str, Any] = {}
    for each in _read_files(context):
        config = merge(config, each)
    return config


def _read_files(context: LaunchContext) -> Iterator[dict[str, Any]]:
    """Yield the settings of every file of the user's, the one that counts last."""
    home = Path(context.env.get("XDG_CONFIG_HOME") or context.home / ".config") / "opencode"
    for name in ("config.json", *_FILES):
        yield _read_file(home / name, context)
    if own := context.env.get(_NAMED):
        yield _read_file(Path(own), context)
    beside = [
        folder for folder in context.repository or context.folder_chain if folder in (context.home, context.real_home)
    ]
    beside.append(context.home / ".opencode")
    if own := context.env.get(_FOLDER):
        beside.append(context.folder / own)
    for folder in beside:
        for name in _FILES:
            yield _read_file(folder / name, context)


def _list_project_files(context: LaunchContext) -> Iterator[Path]:
    """Yield every file that it reads in a project, up to the root of the repository or of the disk.

    One that the user names is left out.
    """
    named = context.folder / context.env[_NAMED] if context.env.get(_NAMED) else None
    for folder in _list_project_folders(context):
        yield from (file for file in (folder / name for name in _FILES) if file != named)


def _list_project_folders(context: LaunchContext) -> Iterator[Path]:
    """Yield every folder of a project that it reads settings in, but for one that the user names."""
    if context.env.get(_NO_PROJECT, "").lower() in ("1", "true"):
        return
    named = context.folder / context.env[_FOLDER] if context.env.get(_FOLDER) else None
    for folder in context.repository or context.folder_chain:
        if folder not in (context.home, context.real_home):
            yield from (each for each in (folder, folder / ".opencode") if each != named)


def _check_markdown(context: LaunchContext, provider: str) -> Iterator[Steering]:
    """Yield the agents, modes and commands of a project, in Markdown, that name a model of another provider, and the
    code that it loads from a project."""
    for folder in _list_project_folders(context):
        if folder.name != ".opencode":
            continue
        for name in _CODE + _MARKDOWN:
            files = context.list_files(folder / name)
            if files is None:
                yield Steering(folder / name, "more files than can be checked")
            for file in files or ():
                if name in _CODE and file.suffix in (".ts", ".js"):
                    yield Steering(file, "code that opencode loads")
                elif file.suffix == ".md" and (model := _find_model(context.read(file) or "")) not in ("", provider):
                    yield Steering(file, f"the model provider {model}")


def _find_model(text: str) -> str:
    """Return the provider of the model that a Markdown file names, `UNKNOWN` if that is uncertain, or nothing."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return ""
    language, matter = found[1].strip(), found[2]
    providers = {model.partition("/")[0] for model in _NAMES_MODEL.findall(matter)} - {""}
    if language not in ("", "yaml") or _HIDES_MODEL.search(matter) or len(providers) > 1:
        return _UNKNOWN_MODEL
    return next(iter(providers), "")


def _list_steering(context: LaunchContext, flag: str) -> Iterator[Steering]:
    """Yield what a project says about where keys and images go; `flag` is the model that the user has typed."""
    upstream = _get_provider(flag or _read_config(context).get("model"))
    for file in _list_project_files(context):
        text = _replace_references(context.read(file) or "", _build_resolver(file.parent, context))
        yield from find_steering_settings(file, text, _STEERING_SETTINGS)
        settings = parse_json(text) or {}
        models = {"small_model": settings.get("small_model"), **({} if flag else {"model": settings.get("model")})}
        models |= {
            f"{role}.{name}": get_object(settings, role, name).get("model")
            for role in _ROLES
            for name in get_object(settings, role)
        }
        yield from (Steering(file, key) for key, model in models.items() if _get_provider(model) not in ("", upstream))
    for file in (folder / name for folder in _list_project_folders(context) for name in _SCREEN):
        yield from find_steering_settings(file, context.read(file) or "", ("plugin",))
    yield from _check_markdown(context, upstream)


def _replace_references(text: str, refer: Callable[[re.Match[str]], str]) -> str:
    """Replace all references in a file by what they refer to: one may be part of a name as well."""
    return _REFERENCE.sub(lambda found: json.dumps(refer(found))[1:-1], text)


def _get_provider(model: object) -> str:
    return model.partition("/")[0] if isinstance(model, str) else ""


def _read_file(file: Path, context: LaunchContext) -> dict[str, Any]:
    return _resolve_addresses(context.read_json(file), (context.folder / file).parent, context)


def _resolve_addresses(config: dict[str, Any], folder: Path, context: LaunchContext) -> dict[str, Any]:
    """Replace references in addresses; a file is named relative to the file that refers to it."""
    referred = _build_resolver(folder, context)
    urls = {
        name: get_object(config, "provider", name, "options").get("baseURL") for name in get_object(config, "provider")
    }
    known = {
        name: {"options": {"baseURL": _REFERENCE.sub(referred, url)}}
        for name, url in urls.items()
        if isinstance(url, str) and find_address(_REFERENCE.sub(referred, url))
    }
    return merge(config, {"provider": known}) if known else config


def _build_resolver(folder: Path, context: LaunchContext) -> Callable[[re.Match[str]], str]:
    """Return a function that resolves a reference to a variable, or to a file relative to this folder."""

    def refer(found: re.Match[str]) -> str:
        kind, name = found[1], found[2].strip()
        if kind == "env":
            return context.env.get(name, "")
        path = context.home / name[2:] if name.startswith("~/") else folder / name
        return (context.read(path) or "").strip()

    return refer


def _get_api(name: str, settings: Mapping[str, Any]) -> WireName:
    npm = str(settings.get("npm", name))
    return next((api for word, api in _NPMS.items() if word in npm), "openai_chat")


def _get_version(name: str, settings: Mapping[str, Any]) -> str:
    """Return what follows the address that a provider gets."""
    return "/v1beta" if _get_api(name, settings) == "gemini" else "/v1"


def _point_provider(
    name: str, settings: Mapping[str, Any], context: LaunchContext, named: dict[str, tuple[WireName, str]], model: str
) -> dict[str, Any]:
    """Return the settings of a provider: its address here, and that its models take images."""
    known, version = _BUILT_IN.get(name, ""), _get_version(name, settings)
    claimed = get_object(settings, "options").get("baseURL")
    upstream = find_address(claimed)
    api = _get_api(name, settings)
    if context.uses_upstream(api):
        where = ""
    elif upstream:
        key = f"opencode-{len(named) + 1}"
        named[key] = (api, upstream)
        where = f"/u/{key}"
        version = choose_version(upstream, version) if api == "openai_chat" else version
    elif known and not claimed:
        where = f"/u/{known}"
    else:  # unknown address: it stays as it is
        return {}
    models = dict.fromkeys({*get_object(settings, "models"), *([model] if model else [])}, _VISION_SETTINGS)
    provider: dict[str, Any] = {"options": {"baseURL": context.address + where + version}}
    return {**provider, "models": models} if models else provider


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    own = get_object(_read_config(request.context), "provider")
    bases = {name: find_address(get_object(own, name, "options").get("baseURL")) for name in own}
    return choose_from_table(request, _BUILT_IN, bases, lambda name: _get_version(name, get_object(own, name)))


AGENT = CodingAgent(
    "opencode",
    "opencode",
    start=start,
    packages=("opencode-ai",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="opencode mcp add sightline -- sightline mcp",
    short_hint='"baseURL": "$P/u/NAME/v1" of the provider in opencode.json',
    one_run="OPENCODE_CONFIG_CONTENT='"
    '{"provider":{"$N":{"options":{"baseURL":"$B"},"models":{"$M":'
    '{"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}\' opencode',
    file="~/.config/opencode/opencode.json",
    moved_by=("XDG_CONFIG_HOME", "opencode/opencode.json"),
    file_lines='{"provider": {"$N": {"options": {"baseURL": "$B"},\n'
    '  "models": {"$M": {"attachment": true,\n'
    '    "modalities": {"input": ["text", "image"], "output": ["text"]}}}}}}',
    vision_hint='"attachment" and "modalities" of each model',
    default_target=ProviderTarget("deepseek", version="/v1"),
    default_model="deepseek-v4-pro",
    key_hint="opencode needs the key of $U: run `opencode auth login` if it does not have it yet.",
    note="Its provider `anthropic` takes $P/u/anthropic/v1, with /v1 as well.",
)
