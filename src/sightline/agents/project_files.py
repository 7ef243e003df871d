"""Files of a project that decide where an agent sends keys and images, and whether the user trusts the project.

A cloned repository can bring settings that name another endpoint, key, proxy or provider, or programs that the agent
runs with the user's keys in their environment. They count only where the agent's own record in the user's home folder
trusts that folder. Elsewhere they are refused, unless the user says with `--upstream` where requests go: then the agent
is started so that it does not read them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sightline.agents.launch import LaunchContext
from sightline.agents.settings_files import get_object, parse_json
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

NETWORK = r"\w*PROXY|(?:NODE(?!_ENV\Z)|BUN|SSL|LD|DYLD|GIT)_\w+|PYTHON\w+|PATH|SHELL|ENV|BASH_ENV"
"""Variables that reroute the traffic of any program, or make it run other code, which can read its keys."""
PROVIDERS = (
    r"(?:ANTHROPIC|OPENAI|OPENROUTER|GEMINI|GROQ|MISTRAL|DEEPSEEK|MOONSHOT|KIMI|MINIMAX|XAI|ZAI|ZHIPU|DASHSCOPE|CEREBRAS"
    r"|TOGETHER|FIREWORKS|HF|COPILOT|AI_GATEWAY|AZURE|AWS|VERTEX|CLOUDFLARE|GOOGLE_(?:API|GENERATIVE|GEMINI|VERTEX|CLOUD"
    r"|APPLICATION))_(?!MODEL\Z)\w+"
)
"""Variables with the addresses and keys of providers, for agents that ask many of them."""
DOTENVS = (
    *(".env", ".env.local"),
    *(f".env.{mode}{local}" for mode in ("development", "production", "test") for local in ("", ".local")),
)
"""Files of variables that a program made with Bun loads from the folder where it starts, by itself."""
CODE_SETTINGS = ("hooks", "mcpServers", "tools.discoveryCommand", "tools.callCommand")
"""Settings of several agents that name programs to run: these get the agent's environment, with its keys."""
BUN_SETTINGS = Path("bunfig.toml")
_BUN_CODE = ("preload", "define", "loader", "env")
# Like dotenv's own pattern, in which \s matches line breaks and no-break spaces, also before the equals sign.
_ASSIGNED = re.compile(r"(?:\A|\n)\s*(?:export\s+)?([\w.-]+)(?:\s*=|:\s)")


@value_class
class Steering:
    """A setting of a project that decides where keys or images go."""

    file: Path
    setting: str
    is_code: bool = False  # the agent runs the file


def refuse_project(title: str, found: Iterable[Steering], trust: str, *, ignorable: bool = True) -> Refusal:
    """Return the refusal of a project that steers an agent.

    `trust` says how the user trusts the folder. `ignorable`: with --upstream the agent can be kept from reading it.
    """
    first = next(iter(found))
    return Refusal(
        "not_permitted",
        f"{first.file} of this project sets {first.setting}, which decides where {title} sends your key and images,"
        f" and {title} has no record that you trust this folder",
        f"add --upstream NAME in front of `--` to ignore it, or {trust}" if ignorable else trust,
    )


def describe_ignored_settings(title: str, found: Iterable[Steering]) -> str:
    """Return the note for a run in which settings of the project are not read."""
    names = ", ".join(dict.fromkeys(f"{each.setting} in {each.file}" for each in found))
    return f"{title} does not read the settings of this project: {names}" if names else ""


def build_warning(title: str, found: Iterable[Steering]) -> str:
    """Return the warning for a program that may start an agent which reads settings of the project."""
    names = ", ".join(dict.fromkeys(f"{each.setting} in {each.file}" for each in found))
    return f"if it starts {title}, this project decides where your key and images go: {names}"


def find_steering_settings(
    file: Path, text: str, keys: Iterable[str], env: re.Pattern[str] | None = None
) -> Iterator[Steering]:
    """Yield the settings in a JSON file of a project that decide where keys and images go.

    `keys` are names with dots for objects in objects; `env` matches variables that the file sets under `env`. What
    cannot be parsed here but may be readable to the agent is searched as text.
    """
    tree = parse_json(text)
    if tree is None:
        if _may_steer(text, keys, env):
            yield Steering(file, "something that cannot be read here")
        return
    for key in keys:
        *above, last = key.split(".")
        if get_object(tree, *above).get(last):
            yield Steering(file, key)
    for name in get_object(tree, "env") if env else ():
        if env and env.fullmatch(name):
            yield Steering(file, name)


def _may_steer(text: str, keys: Iterable[str], env: re.Pattern[str] | None) -> bool:
    """Tell whether a text that is no JSON names one of the settings, or could hide one.

    An escape hides letters, and so does another encoding: UTF-16 read as UTF-8 has NULs or replacement characters.
    """
    words = {word for key in keys for word in key.split(".")}
    if any(sign in text for sign in ("\\u", "\0", "\ufffd")):
        return True
    return any(word in words or (env and env.fullmatch(word)) for word in re.findall(r"\w+", text))


def find_steering_variables(context: LaunchContext, file: Path, names: re.Pattern[str]) -> Iterator[Steering]:
    """Yield the variables of a `.env` file that decide where keys and images go; the environment wins over them."""
    lines = (context.read(context.folder / file) or "").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    for name in dict.fromkeys(_ASSIGNED.findall(text)):
        if names.fullmatch(name) and not context.env.get(name):
            yield Steering(file, name)


def find_bun_steering(context: LaunchContext, title: str, names: re.Pattern[str]) -> list[Steering]:
    """Return what a program made with Bun loads from the folder where it starts that decides where keys and images go.

    Bun does so before the program's own code runs: no setting of the program switches it off.
    """
    if context.at_home:
        return []
    found = [each for name in DOTENVS for each in find_steering_variables(context, Path(name), names)]
    return [*found, *find_bun_code(context, BUN_SETTINGS, title)]


def find_bun_code(context: LaunchContext, file: Path, title: str) -> list[Steering]:
    """Return the settings file of Bun if it makes a program run code of the project."""
    if not _runs_code(context.read(context.folder / file) or ""):
        return []
    return [Steering(file, f"code that {title} runs", is_code=True)]


def _runs_code(bun_settings: str) -> bool:
    try:
        settings = tomllib.loads(bun_settings)
    except (ValueError, RecursionError):
        return True  # Bun may be able to read it
    return any(settings.get(name) for name in _BUN_CODE)


def select_code(found: Iterable[Steering]) -> list[Steering]:
    """Return what the agent runs regardless of its arguments and environment."""
    return [each for each in found if each.is_code]


def unset_variables(env: Mapping[str, str], found: Iterable[Steering]) -> dict[str, str]:
    """Return the environment for an agent that takes none of these variables from a `.env` file.

    A variable that is set, even to an empty text, is not read from a file.
    """
    return {**env, **{each.setting: "" for each in found if is_dotenv(each)}}


def is_dotenv(found: Steering) -> bool:
    return found.file.name.startswith(".env")


def find_project_code(context: LaunchContext, folder: Path, title: str) -> Iterator[Steering]:
    """Yield the files in a folder of a project that the agent runs: they get its environment, with its keys."""
    files = context.list_files(folder)
    if files is None:
        yield Steering(folder, "more files than can be checked", is_code=True)
    yield from (Steering(file, f"code that {title} runs", is_code=True) for file in files or ())
