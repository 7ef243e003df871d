"""Tool calls that read a file: which file, and whether the result is its text.

What an agent reads as text stays exact, because the agent may write it back. So nothing is taken out of the result of a
call that reads a file whose name is not an image's, even if the file contains an image as base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sightline.model.scene import Json, ToolCall
from sightline.wire.json_tree import Texts, get_name, get_text

_PATH_KEYS = ("file_path", "filePath", "filepath", "absolute_path", "path", "filename", "file")
_LIST_KEYS = ("paths", "files", "file_paths", "filePaths", "filepaths")
_COMMAND_KEYS = ("command", "cmd")
IMAGE_EXTENSIONS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif",
    ".ico", ".psd", ".svg",
)  # fmt: skip
# Files that aren't text: what a tool returns for them isn't their content.
_BINARY_EXTENSIONS = (
    ".pdf", ".doc", ".docx", ".ppt", ".pptx", ".xls", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".zip", ".gz", ".tar",
    ".mp4", ".mov", ".webm", ".mkv", ".avi", ".m4v", ".mp3", ".wav", ".exe", ".bin", ".wasm", ".sqlite", ".db",
)  # fmt: skip
# Words in the name of a tool that does something else with a file than read it.
_OTHER_VERBS = frozenset(
    "run exec execute render rasterize screenshot snapshot shot capture plot draw chart paint diagram visualize "
    "preview generate convert transform compile export thumbnail crop resize print".split()
)
_list_words = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])").findall
# Programs that print a file as it is, or a part of it.
_READERS = frozenset("cat head tail less more bat batcat nl sed awk jq yq grep rg type gc get-content strings".split())
_HARMLESS = _READERS | frozenset("cd echo pwd ls sort uniq cut tr wc set export true".split())
_SHELLS = frozenset("bash sh zsh dash pwsh powershell cmd".split())
_split_commands = re.compile(r"&&|\|\||[;|\n]").split
_MAX_COMMAND = 4096


def find_file_path(arguments: Json, texts: Texts) -> str | None:
    """Return the path of the file that the arguments of a tool call name, if they name one."""
    if not isinstance(arguments, dict):
        return None
    for key in _PATH_KEYS:
        if key in arguments and (path := get_name(arguments, key, texts)):
            return path
    return None


def names_image_file(path: str | None) -> bool:
    return (path or "").lower().endswith(IMAGE_EXTENSIONS)


def reads_text_file(call: ToolCall | None) -> bool:
    """Return whether the result of a call is the text of a file.

    A call that names a file reads it, unless the tool's name says that it does something else with it.
    """
    if call is None:
        return False
    if _OTHER_VERBS.intersection(word.lower() for word in _list_words(call.name)):
        return False
    paths = [*_list_paths(call), *_list_printed_files(call.arguments)]
    return any(not path.lower().endswith(IMAGE_EXTENSIONS + _BINARY_EXTENSIONS) for path in paths)


def _list_paths(call: ToolCall) -> Iterator[str]:
    if call.path:
        yield call.path
    for key in _LIST_KEYS:
        listed = call.arguments.get(key)
        for one in listed if isinstance(listed, list) else ():
            path = one if isinstance(one, str) else get_text(one, "path")
            if path:
                yield path


def _list_printed_files(arguments: Mapping[str, Json]) -> Iterator[str]:
    """Yield the files that a shell command prints, if it does nothing else, such as `cat notes.json`."""
    for key in _COMMAND_KEYS:
        command = _join_command(arguments.get(key))
        parts = [part.split() for part in _split_commands(command) if part.strip()]
        if parts and all(_get_program(part) in _HARMLESS for part in parts):
            readers = (part for part in parts if _get_program(part) in _READERS)
            yield from (files[-1].strip("'\"") for part in readers if (files := [*filter(_may_be_file, part[1:])]))


def _may_be_file(word: str) -> bool:
    """Return whether a word of a command is neither an option nor a redirection."""
    return not word.startswith("-") and "<" not in word and ">" not in word


def _join_command(command: Json) -> str:
    """Return a command as one text; some tools take a list, and a shell takes it as its last argument."""
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        is_shell = bool(words) and _get_program(words) in _SHELLS
        command = words[-1] if is_shell else " ".join(words)
    return command if isinstance(command, str) and len(command) <= _MAX_COMMAND else ""


def _get_program(words: list[str]) -> str:
    return words[0].replace("\\", "/").rpartition("/")[2].lower()
