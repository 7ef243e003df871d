"""What starting an agent needs: the context it is started in, the resulting launch, its options and its addresses.

Files of a project may decide where an agent sends keys and images. A cloned repository can bring settings that name
another endpoint, key, proxy or provider, or programs that the agent runs with the user's keys in their environment.
They count only where the agent's own record in the user's home folder trusts that folder. Elsewhere they are refused,
unless the user says with `--upstream` where requests go: then the agent is started so that it does not read them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sightline.agents.settings_files import get_object, parse_dotenv, parse_json
from sightline.model.profile import USUAL_WIRES, WireName, is_loopback, is_versioned
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

ReadText = Callable[[Path], str | None]
"""The text of a file, or None when it cannot be read."""
ListFiles = Callable[[Path], Sequence[Path] | None]
"""All files below a folder, or None when there are too many to look at."""

FILES = "{sightline-files}"
"""In arguments and variables, the placeholder for a private folder that is removed when the agent ends."""
# The names of the usual providers: with `--upstream`, an address without a name leads to that upstream.
USUAL_PROVIDERS: Mapping[WireName, str] = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}
_THIS_MACHINE = ("127.0.0.1", "localhost")


@value_class
class Launch:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # it holds the user's keys
    # What the agent would have asked, for each API: an address, or the name of an upstream.
    former_upstreams: Mapping[WireName, str] = field(default_factory=dict)
    named_upstreams: Mapping[str, tuple[WireName, str]] = field(
        default_factory=dict
    )  # providers that it reaches as /u/NAME
    files: Mapping[str, str] = field(default_factory=dict, repr=False)  # written below FILES: they may hold keys
    note: str = ""


def _list_no_files(folder: Path) -> Sequence[Path]:
    """Return no files: the caller gives no way to list them."""
    return ()


def _normalize(path: Path) -> Path:
    return Path(normpath(path))


@value_class
class LaunchContext:
    """Where an agent is started."""

    env: Mapping[str, str] = field(repr=False)
    address: str  # of the proxy
    folder: Path  # where the agent works
    read: ReadText
    upstream: str = ""  # the name of the upstream that the user named; no provider of its APIs keeps its own address
    upstream_apis: tuple[WireName, ...] = USUAL_WIRES  # that this upstream gets the requests of
    is_upstream_known: bool = False  # it has no other APIs
    real_home: Path | None = None  # the home folder with links followed
    list_files: ListFiles = _list_no_files
    serve_port: int = 0  # where `sightline serve` listens unless the user says otherwise
    real_path: Callable[[Path], Path] = _normalize  # where a path leads when all links in it are followed

    @property
    def has_upstream(self) -> bool:
        """Whether the user named an upstream."""
        return bool(self.upstream)

    def uses_upstream(self, api: WireName) -> bool:
        """Return whether requests of an API go to the upstream that the user named: otherwise a key of another
        provider could be sent there."""
        return self.has_upstream and api in self.upstream_apis

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or self.env.get("USERPROFILE") or "~")

    def read_json(self, *names: str | Path) -> dict[str, Any]:
        """Read an object from a file; one that cannot be read is empty."""
        return parse_json(self.read(self.folder / Path(*names)) or "") or {}

    def read_toml(self, *names: str | Path) -> dict[str, Any]:
        try:
            return tomllib.loads(self.read(self.folder / Path(*names)) or "")
        except (ValueError, RecursionError):
            return {}

    def read_dotenv(self, *names: str | Path) -> dict[str, str]:
        return parse_dotenv(self.read(self.folder / Path(*names)) or "")

    @property
    def folder_chain(self) -> tuple[Path, ...]:
        """The folder where the agent works, and those around it."""
        return (self.folder, *self.folder.parents)

    @property
    def repository(self) -> tuple[Path, ...]:
        """The folder where the agent works and those around it, up to the repository's root; empty: there is none."""
        marks = (".git/HEAD", ".git")
        for number, folder in enumerate(self.folder_chain):
            if any(self.read(folder / mark) is not None for mark in marks):
                return self.folder_chain[: number + 1]
        return ()

    @property
    def at_home(self) -> bool:
        """Whether the agent works in the home folder itself, whose files are the user's own and not a project's."""
        return self.folder in (self.home, self.real_home)

    def trusts(self, rules: Path) -> bool:
        """Return whether a record of trusted folders, as Gemini CLI and Qwen Code keep it, trusts this folder.

        The nearest rule counts. Of two rules for one folder, the one that does not trust it counts.
        """
        said: dict[Path, bool] = {}
        for path, level in self.read_json(rules).items():
            folder = Path(path).parent if level == "TRUST_PARENT" else Path(path)
            said[folder] = said.get(folder, True) and level in ("TRUST_FOLDER", "TRUST_PARENT")
        return next((said[folder] for folder in self.folder_chain if folder in said), False)


def find_options(argv: Sequence[str], *names: str) -> Iterator[str]:
    """Yield the values of these options, in order; `--` ends them."""
    words = iter(argv[1:])
    for word in words:
        name, equals, text = word.partition("=")
        if word == "--":
            return
        if word in names:
            yield next(words, "")
        elif equals and name in names:
            yield text


def remove_options(argv: Sequence[str], *names: str) -> list[str]:
    """Return the arguments without these options and their values."""
    rest, words = list(argv[:1]), iter(argv[1:])
    for word in words:
        if word in names:
            next(words, "")
        elif word.partition("=")[0] not in names:
            rest.append(word)
        if word == "--":  # from here on it is the prompt
            rest.extend(words)
    return rest


def find_address(upstream: object) -> str:
    """Return an upstream's address, or its name if the address is one that `setup` has written; empty: no address."""
    return (
        resolve_upstream(upstream) if isinstance(upstream, str) and upstream.startswith(("http://", "https://")) else ""
    )


def resolve_upstream(url: str) -> str:
    """Return the upstream's name if `setup` has written the address, so that the proxy doesn't ask itself."""
    where = _split_url(url)
    name = re.match(r"/u/([^/]+)", where[1])
    return name[1] if name and is_loopback(where[0]) else url


def _split_url(url: str) -> tuple[str, str]:
    try:
        where = urlsplit(url)
    except ValueError:
        return "", ""
    return where.hostname or "", where.path


def choose_version(theirs: str, version: str) -> str:
    """Return what follows our address: the version, unless the address in its place has none."""
    return version if not theirs or "://" not in theirs or is_versioned(theirs) else ""


def describe_project_upstream(url: str, file: str) -> str:
    """Return the note that a file of the project, and not the user, names the upstream."""
    return f"requests go to {url}, as {file} of this project says" if url and file else ""


def refuse_own_address(started: Launch, context: LaunchContext) -> Launch | Refusal:
    """Refuse an agent that already uses `sightline serve`: only the user knows which upstream that forwards to."""
    own = re.compile(rf"https?://[^/]*:{context.serve_port}(?:/|\Z)")
    for url in (*started.former_upstreams.values(), *(url for _, url in started.named_upstreams.values())):
        if own.match(url) and is_loopback(_split_url(url)[0]):
            return Refusal(
                "invalid_input",
                f"{url} is the address of `sightline serve`, so the provider is not known",
                "add --upstream NAME, or start the agent without `sightline run`",
            )
    return started


def refuse_upstream(context: LaunchContext, title: str) -> Refusal:
    """Return the refusal of an upstream without the API that an agent, or a provider of it, uses."""
    return Refusal(
        "unsupported_type",
        f"{context.upstream} is not known to have the API that {title} uses",
        "name another provider with --upstream; or, if it has that API, its address for it in the setting `upstreams`",
    )


def bypass_web_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with NO_PROXY set, so that requests to this machine don't go through a web proxy.

    It is set even if no variable names a web proxy, because the agent may find one in a file.
    """
    known = [name.strip() for both in ("NO_PROXY", "no_proxy") for name in env.get(both, "").split(",")]
    past = ",".join(dict.fromkeys(filter(None, [*known, *([] if "*" in known else _THIS_MACHINE)])))
    return {**env, "NO_PROXY": past, "no_proxy": past}


# Files of a project


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


def find_steering_settings(file: Path, text: str, keys: Iterable[str], env: str = "") -> Iterator[Steering]:
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
        if env and re.fullmatch(env, name):
            yield Steering(file, name)


def _may_steer(text: str, keys: Iterable[str], env: str) -> bool:
    """Tell whether a text that is no JSON names one of the settings, or could hide one.

    An escape hides letters, and so does another encoding: UTF-16 read as UTF-8 has NULs or replacement characters.
    """
    words = {word for key in keys for word in key.split(".")}
    if any(sign in text for sign in ("\\u", "\0", "\ufffd")):
        return True
    return any(word in words or (env and re.fullmatch(env, word)) for word in re.findall(r"\w+", text))


def find_steering_variables(context: LaunchContext, file: Path, names: str) -> Iterator[Steering]:
    """Yield the variables of a `.env` file that decide where keys and images go; the environment wins over them."""
    lines = (context.read(context.folder / file) or "").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    for name in dict.fromkeys(_ASSIGNED.findall(text)):
        if re.fullmatch(names, name) and not context.env.get(name):
            yield Steering(file, name)


def find_bun_steering(context: LaunchContext, title: str, names: str) -> list[Steering]:
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
