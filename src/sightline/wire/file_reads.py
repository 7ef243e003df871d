"""Tool calls that read a file: which file, and whether the result is its text.

What an agent reads as text stays exact, because the agent may write it back. So nothing is taken out of the result of a
call that reads a file whose name is not an image's, even if the file contains an image as base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from sightline.model.scene import Json, ToolCall
from sightline.wire.json_tree import PlainTexts, Texts, get_name

# Keys of arguments, in lower case and without underscores; the first path key that is there names the file.
_PATH_KEYS = {
    key: rank
    for rank, key in enumerate(
        "filepath absolutepath path filename file targetfile relativepath notebookpath abspath documentpath uri".split()
    )
}
_LIST_KEYS = frozenset("paths files filepaths file".split())
_COMMAND_KEYS = frozenset("command cmd commandline".split())
IMAGE_EXTENSIONS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif",
    ".ico", ".psd", ".svg",
)  # fmt: skip
# Files that aren't text: what a tool returns for them isn't their content.
_BINARY_EXTENSIONS = (
    ".pdf", ".doc", ".docx", ".ppt", ".pptx", ".xls", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".zip", ".gz", ".tar",
    ".mp4", ".mov", ".webm", ".mkv", ".avi", ".m4v", ".mp3", ".wav", ".exe", ".bin", ".wasm", ".sqlite", ".db",
)  # fmt: skip
_TEXT_NAMES = frozenset(
    "makefile dockerfile jenkinsfile gemfile rakefile procfile vagrantfile readme license copying notice authors "
    "changelog contributing codeowners".split()
)
# Words in the name of a tool that does something else with the file at a path than read it.
_OTHER_VERBS = frozenset(
    "run exec execute render rasterize screenshot snapshot shot capture plot draw chart paint diagram visualize "
    "generate convert transform compile thumbnail crop resize".split()
)
_list_words = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])").findall
# Programs that print a file as it is, or a part of it.
_READERS = frozenset(
    "cat tac head tail less more bat batcat nl sed awk jq yq grep rg type gc get-content strings git diff".split()
)
_SCRIPTED = frozenset("sed awk jq yq grep rg git".split())  # their first argument is no file
_HARMLESS = _READERS | frozenset("cd echo pwd ls sort uniq cut tr wc set export true".split())
_SHELLS = frozenset("bash sh zsh dash pwsh powershell cmd".split())
_PREFIXES = frozenset("sudo env command timeout nohup time { }".split())  # another command follows them
_list_tokens = re.compile(
    r"""\#[^\n]*                                                    # a comment
    | \d*&?[<>][<>&|]*                                              # a redirection
    | (?:'[^']*'|"(?:\\.|[^"\\])*+"|\\.|[^\s'"\\;&|<>()])++         # a word
    | [;&|()\n]                                                     # between two commands
    """,
    re.VERBOSE | re.DOTALL,
).findall
_is_redirection = re.compile(r"\d*&?[<>][<>&|]*").fullmatch
_is_setting = re.compile(r"\w+=").match
_is_number = re.compile(r"\+?[\d.]+[a-zA-Z]?").fullmatch
_is_command_option = re.compile(r"-[a-z]*c|/c|-command", re.IGNORECASE).fullmatch
_MAX_COMMAND = 4096
_MAX_SHELLS = 3  # inside each other
_PLAIN_TEXTS = PlainTexts()


def find_file_path(arguments: Json, texts: Texts) -> str | None:
    """Return the path of the file that the arguments of a tool call name, if they name one."""
    if not isinstance(arguments, dict):
        return None
    ranked = [(rank, key) for key in arguments if (rank := _PATH_KEYS.get(_simplify(key))) is not None]
    for rank, key in sorted(ranked):
        path = get_name(arguments, key, texts)
        is_elsewhere = rank == _PATH_KEYS["uri"] and "://" in path and not path.startswith("file:")
        if path and not is_elsewhere:
            return path
    return None


def names_image_file(path: str | None) -> bool:
    return (path or "").lower().endswith(IMAGE_EXTENSIONS)


def reads_text_file(call: ToolCall | None) -> bool:
    """Return whether the result of a call is the text of a file.

    A call that names a file reads it, unless the tool's name says that it does something else with it. A name without a
    suffix, such as `dashboard`, may be anything. A call that runs a command reads the files that the command prints,
    whatever the tool's name.
    """
    if call is None:
        return False
    does_other = _OTHER_VERBS.intersection(word.lower() for word in _list_words(call.name))
    if not does_other and any(_has_suffix(path) and _names_text_file(path) for path in _list_paths(call)):
        return True
    commands = (value for key, value in call.arguments.items() if _simplify(key) in _COMMAND_KEYS)
    return any(_names_text_file(path) for command in commands for path in _list_printed_files(command) or ())


def _names_text_file(path: str) -> bool:
    return not path.lower().endswith(IMAGE_EXTENSIONS + _BINARY_EXTENSIONS)


def _has_suffix(path: str) -> bool:
    """Return whether a path has a suffix, or is one of the usual text files without one."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return "." in name or name.lower() in _TEXT_NAMES


def _simplify(key: str) -> str:
    return key.replace("_", "").lower()


def _list_paths(call: ToolCall) -> Iterator[str]:
    if call.path:
        yield call.path
    inner = call.arguments.get("args")
    for arguments in (call.arguments, inner if isinstance(inner, dict) else {}):
        for key, value in arguments.items():
            holds_paths = _simplify(key) in _LIST_KEYS
            if holds_paths or key == "operations":
                for one in value if isinstance(value, list) else [value]:
                    path = one if isinstance(one, str) and holds_paths else find_file_path(one, _PLAIN_TEXTS)
                    if path:
                        yield path


def _list_printed_files(command: Json, shells: int = _MAX_SHELLS) -> list[str] | None:
    """Return the files that a shell command prints, such as `cat notes.json`; None if it does anything else."""
    found: list[str] = []
    for words in _split_command(command):
        program = _get_program(words[0])
        if program in _SHELLS:
            printed = _list_printed_files(_get_inner_command(words), shells - 1) if shells else None
            if printed is None:
                return None
            found += printed
        elif program in _READERS:
            files = [*_list_files(words)]
            found += files[1:] or files if program in _SCRIPTED else files
        elif program not in _HARMLESS:
            return None
    return found


def _split_command(command: Json) -> Iterator[list[str]]:
    """Yield the words of each command of a pipeline or a list, without prefixes, comments and redirections."""
    tokens = [word for word in command if isinstance(word, str)] if isinstance(command, list) else [command]
    if len(tokens) == 1:
        text = tokens[0]
        tokens = _list_tokens(text) if isinstance(text, str) and len(text) <= _MAX_COMMAND else []
    words: list[str] = []
    is_target = False  # of a redirection
    for token in (*tokens, ";"):
        if not token.strip(";&|()\n"):
            if words := _drop_prefixes(words):
                yield words
            words, is_target = [], False
        elif _is_redirection(token):
            is_target = not token.endswith("<") or token.endswith("<<")
        elif is_target:
            is_target = False
        elif not token.startswith("#"):
            words.append(token)


def _drop_prefixes(words: list[str]) -> list[str]:
    """Return the words of a command without what runs it or is set for it, such as `sudo` and `LANG=C`."""
    start, is_prefixed = 0, False
    while start < len(words):
        word = words[start]
        if is_prefixed and word == "-u":  # of sudo and env; a name follows it
            start += 1
        elif _get_program(word) in _PREFIXES:
            is_prefixed = True
        elif not _is_setting(word) and not (is_prefixed and (word.startswith("-") or _is_number(word))):
            break
        start += 1
    return words[start:]


def _list_files(words: list[str]) -> Iterator[str]:
    """Yield the arguments of a command that are neither options nor the number of one, such as in `head -n 40`."""
    for before, word in pairwise(words):
        if not word.startswith("-") and not (before.startswith("-") and _is_number(word)):
            yield word.strip("'\"\\")


def _get_inner_command(words: list[str]) -> str:
    """Return the command that a shell is given, as in `bash -c "cat notes.json"`."""
    option = next((i for i, word in enumerate(words) if _is_command_option(word)), 0)
    inner = " ".join(words[option + 1 :] if option else words[1:][-1:])
    is_quoted = len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\""
    return inner[1:-1].replace('\\"', '"') if is_quoted else inner


def _get_program(word: str) -> str:
    return word.strip("'\"").replace("\\", "/").rpartition("/")[2].lower()
