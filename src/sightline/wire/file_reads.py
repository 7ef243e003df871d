"""Tool calls that read a file: which file, and whether the result is its text.

What an agent reads as text stays exact, because the agent may write it back. So nothing is taken out of the result of a
call that reads a file whose name is not an image's, even if the file contains an image as base64.

There are too many tools and programs to know which of them print a file. So a call that names a text file anywhere in
its arguments, its command or its code is taken to read it, with three exceptions:

- It also names an image, or has a word such as `screenshot`: the result is that image.
- It runs a script or a program of the project. Its files are what the script is given, not what is printed: of
  `python shoot.py b.json` nothing is known. A known program such as `cat` reads a script, and so does code that has
  the script's name as a string.
- A tool that runs or converts files is given a file that can be run or rendered, such as a page or a notebook.

A search in files and a difference print parts of them. A file without a suffix may be anything, unless the tool's name
says that it reads files, or is `read` and the path has a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
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
_COMMAND_KEYS = frozenset("command cmd commandline program".split())
_ARGUMENT_KEYS = frozenset("args argv arguments".split())  # of a program
_SEARCH_KEYS = frozenset("pattern regex includepattern filepattern glob".split())  # of a search in files
_CODE_KEYS = frozenset("code script source input javascript python expression function".split())
IMAGE_EXTENSIONS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif",
    ".ico", ".psd", ".svg", ".apng", ".jxl", ".jp2", ".dng", ".cr2", ".nef", ".arw", ".tga", ".xcf", ".icns", ".cur",
    ".exr", ".ppm", ".pgm", ".pbm", ".pnm",
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
# Files that can be run: a command that names one runs it, unless it is a known reader.
_PROGRAM_EXTENSIONS = (
    ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd",
    ".exe", ".jar", ".r", ".jl", ".go", ".lua", ".java", ".swift", ".pyz",
)  # fmt: skip
# Files that tools turn into images or run.
_RENDERED_EXTENSIONS = (
    *_PROGRAM_EXTENSIONS, ".html", ".htm", ".xhtml", ".md", ".mdx", ".rst", ".ipynb", ".tex", ".css", ".jsx", ".tsx",
    ".vue", ".svelte", ".dot", ".mmd", ".puml", ".typ",
)  # fmt: skip
# Other text files. Their names are recognized among words without a folder before them.
_TEXT_EXTENSIONS = (
    *_RENDERED_EXTENSIONS, ".json", ".jsonl", ".ndjson", ".json5", ".jsonc", ".geojson", ".har", ".txt",
    ".csv", ".tsv", ".log", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env", ".properties",
    ".lock", ".sql", ".b64", ".base64", ".hex", ".diff", ".patch", ".srt", ".vtt", ".bib", ".adoc", ".scss", ".sass",
    ".eml", ".mhtml", ".plist", ".tf", ".proto", ".graphql", ".cc", ".cpp", ".hpp", ".rs",
    ".kt", ".scala",
)  # fmt: skip
# Words of a tool's name, a command or code that make an image of a file; and words of a tool's name that may.
_IMAGE_VERBS = frozenset(
    "render rasterize screenshot shot plot draw chart paint diagram visualize thumbnail crop resize".split()
)
_OTHER_VERBS = frozenset("run exec execute snapshot capture generate convert transform compile".split())
# Words of a tool's name for what is no text, and for text.
_MEDIA_WORDS = frozenset("image images picture media photo binary visual pixel page".split())
_FILE_WORDS = frozenset("file files code codebase".split())
_list_words = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])").findall
# Programs that print a file as it is, or a part of it.
_READERS = frozenset(
    "cat tac head tail less more bat batcat nl sed awk jq yq grep rg type gc get-content strings git hg svn jj"
    " diff".split()
)
_SCRIPTED = frozenset("sed awk jq yq grep rg git hg svn jj".split())  # their first argument is no file
_HARMLESS = frozenset("cd echo pwd ls set export true".split())  # they print no file
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
# A here-document, which is given to a program like a word in quotes.
_replace_here_documents = re.compile(
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n(?P<text>.*?)(?:\n[ \t]*(?P=end)(?=\s|\Z)|\Z)",
    re.DOTALL,
).sub
_find_image_verb = re.compile("|".join(sorted(_IMAGE_VERBS)), re.IGNORECASE).search
_find_words = re.compile(r"[^\s'\"`(),;|&<>=\[\]]+").finditer
_drop_addresses = re.compile(r"\b(?:https?|wss?|ftp):\S+").sub
_match_path = re.compile(r"(?:file://|[a-z]:[\\/]|~?/|\.{1,2}[\\/]).*[^./\\]\.[a-z]\w{0,7}\Z", re.DOTALL).match
# What runs the script that is named next, in code.
_runs_next = re.compile(
    r"\b(?:require|import|from|source|run|exec\w*|spawn\w*|system|popen)[\s(\[]*(?:['\"]\w+['\"],\s*)*['\"`]\Z",
    re.IGNORECASE,
).search
_NEARBY = 48
_QUOTES = ("'", '"', "`")
_CODE_BRACKETS = ("(", "[", ",")
_is_redirection = re.compile(r"\d*&?[<>][<>&|]*").fullmatch
_is_setting = re.compile(r"\w+=").match
_is_number = re.compile(r"\+?[\d.]+[a-zA-Z]?").fullmatch
_is_command_option = re.compile(r"-[a-z]*c|/c|-command", re.IGNORECASE).fullmatch
_is_decode_option = re.compile(r"-[a-z]*d|-D|--decode").fullmatch
_MAX_COMMAND = 4096
_MAX_DEPTH = 4  # of arguments
_MAX_SHELLS = 3  # inside each other
_PLAIN_TEXTS = PlainTexts()

_Use = tuple[str, bool]
"""A word of a command or code, and whether it is a text file that is opened."""


def find_file_path(arguments: Json, texts: Texts) -> str | None:
    """Return the path of the file that the arguments of a tool call name, if they name one."""
    if not isinstance(arguments, dict):
        return None
    # As `_simplify`, written out: this runs for each argument of each call.
    ranked = [(rank, key) for key in arguments if (rank := _PATH_KEYS.get(key.replace("_", "").lower())) is not None]
    for rank, key in sorted(ranked):
        path = get_name(arguments, key, texts)
        is_elsewhere = rank == _PATH_KEYS["uri"] and "://" in path and not path.startswith("file:")
        if path and not is_elsewhere:
            return path
    return None


def names_image_file(path: str | None) -> bool:
    return (path or "").lower().endswith(IMAGE_EXTENSIONS)


class FileRead(IntEnum):
    """Whether the result of a call is the text of a file."""

    NO = 0
    LIKELY = 1  # an unknown tool or program that was given a text file
    CERTAIN = 2


def classify_file_read(call: ToolCall | None) -> FileRead:
    """Return whether the result of a call is the text of a file.

    A call that names a file reads it, unless the tool's name says that it does something else with it. A name without a
    suffix, such as `dashboard`, may be anything. A call that runs a command reads the files that the command prints,
    whatever the tool's name.
    """
    if call is None:
        return FileRead.NO
    words = {word.lower() for word in _list_words(call.name)}
    makes_image = "read" not in words and not words.isdisjoint(_IMAGE_VERBS)
    may_render = "read" not in words and not words.isdisjoint(_OTHER_VERBS)
    paths = [] if makes_image else [path for path in _list_paths(call) if _has_suffix(path) and _names_text_file(path)]
    if paths and not may_render:
        return FileRead.CERTAIN
    if any(not _can_be_rendered(path) for path in paths):
        return FileRead.LIKELY
    if commands := [*_list_commands(call.arguments)]:
        return max(map(_classify_command, commands))
    searches = _prints_files(words, call) or any(_simplify(key) in _SEARCH_KEYS for key in call.arguments)
    opened = [] if makes_image or searches else [*_list_opened(call.arguments, may_render=may_render)]
    opens_text = bool(opened) and all(is_text for _, is_text in opened)
    return FileRead.LIKELY if opens_text or (searches and not makes_image) else FileRead.NO


def _prints_files(words: set[str], call: ToolCall) -> bool:
    """Return whether a tool's name says that it prints files or parts of them, whatever the names of the files."""
    if not words.isdisjoint(_MEDIA_WORDS):
        return False
    is_about_files = not words.isdisjoint(_FILE_WORDS)
    if not words.isdisjoint({"grep", "diff"}) or (is_about_files and not words.isdisjoint({"search", "find"})):
        return True
    path = call.path or ""
    is_in_folder = "/" in path or "\\" in path
    reads = "read" in words and (is_about_files or (len(words) == 1 and is_in_folder))
    return reads and bool(path) and _names_text_file(path)


def _names_text_file(path: str) -> bool:
    return not path.lower().endswith(IMAGE_EXTENSIONS + _BINARY_EXTENSIONS)


def _can_be_rendered(path: str) -> bool:
    return path.lower().endswith(_RENDERED_EXTENSIONS)


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


def _list_opened(arguments: Mapping[str, Json], *, may_render: bool, depth: int = _MAX_DEPTH) -> Iterator[_Use]:
    """Yield what the arguments of a call do with files, whatever their keys: those that are a path, or are code.

    `may_render`: the tool doesn't read a file that can be rendered or run.
    """
    for key, value in arguments.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield from _list_opened(one, may_render=may_render, depth=depth - 1) if depth else ()
            elif not isinstance(one, str) or "." not in one or len(one) > _MAX_COMMAND:
                continue
            elif any(blank in one for blank in " \t\n"):
                yield from _list_uses(one) if _simplify(key) in _CODE_KEYS else ()
            elif _simplify(key) not in _ARGUMENT_KEYS and not (may_render and _can_be_rendered(one)):
                yield from (use for use in _list_uses(one) if use[1] or names_image_file(one))


def _list_uses(text: str) -> Iterator[_Use]:
    """Yield what code, or a command, does with files: it opens a text file, or uses an image or runs a script."""
    text = _drop_addresses(" ", text) if "://" in text else text
    has_verb = _find_image_verb(text) is not None
    for found in _find_words(text):
        word = found[0]
        if "." in word and (is_text := _opens_text_file(word.lower(), text, found.start(), found.end())) is not None:
            yield word, is_text
        elif has_verb and text[max(0, found.start() - 1) : found.start()] not in _QUOTES and _has_image_verb(word):
            yield word, False


def _opens_text_file(word: str, text: str, start: int, end: int) -> bool | None:
    """Return whether a word of code opens a text file; False if it uses an image or runs a script; None if neither."""
    if word.endswith(IMAGE_EXTENSIONS):
        return False
    if text[end : end + 1] == "(" or not _names_known_file(word):
        return None
    before = text[max(0, start - 1) : start]
    if word.endswith(_PROGRAM_EXTENSIONS):
        return before in _QUOTES and not _runs_next(text, max(0, start - _NEARBY), start)
    return None if before in _CODE_BRACKETS else True  # an attribute is not a file: `print(response.json)`


def _has_image_verb(name: str) -> bool:
    return not _IMAGE_VERBS.isdisjoint(map(str.lower, _list_words(name)))


def _names_known_file(word: str) -> bool:
    """Return whether a word is certainly the name of a text file: by its suffix, or by its folder."""
    return word.endswith(_TEXT_EXTENSIONS) or bool(_match_path(word) and _names_text_file(word))


def _classify_command(command: Json, shells: int = _MAX_SHELLS) -> FileRead:
    """Return whether a shell command prints text files, such as `cat notes.json`."""
    kind = FileRead.NO
    names_files = "." in str(command)
    for words in _split_command(command):
        program = _get_program(words[0])
        if program in _SHELLS:
            inner = _classify_command(_get_inner_command(words), shells - 1) if shells else FileRead.NO
            if not inner:
                return inner
            kind = max(kind, inner)
            continue
        is_reader = program in _READERS
        files = [*_list_files(words)] if is_reader else []
        printed = files[1:] or files if program in _SCRIPTED else files
        if any(_names_text_file(path) for path in printed):
            kind = FileRead.CERTAIN
        uses = [*_list_command_uses(program, words)] if names_files or kind else []
        if not all(is_text for _, is_text in uses):
            return FileRead.NO
        kind = max(kind, FileRead.LIKELY if uses else kind)
    return kind


def _list_command_uses(program: str, words: Sequence[str]) -> Iterator[_Use]:
    """Yield what one command does with files, apart from what a known program prints."""
    if _is_own_program(words[0]) or (program == "base64" and not any(map(_is_decode_option, words))):
        yield program, False
    prints = program in _READERS or program in _HARMLESS
    for word in words:
        bare = _unquote(word)
        prints = prints or bare in _READERS  # run by another program, as by `xargs cat`
        has_command = "$(" in bare or "`" in bare
        if not prints or has_command:
            yield from _list_uses(bare)
        elif program not in _READERS and program not in _HARMLESS and _names_known_file(bare.lower()):
            yield bare, True


def _split_command(command: Json) -> Iterator[list[str]]:
    """Yield the words of each command of a pipeline or a list, without prefixes, comments and redirections."""
    tokens = [word for word in command if isinstance(word, str)] if isinstance(command, list) else [command]
    if len(tokens) == 1:
        text = tokens[0]
        text = text if isinstance(text, str) and len(text) <= _MAX_COMMAND else ""
        tokens = _list_tokens(_replace_here_documents(_quote_here_document, text) if "<<" in text else text)
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


def _list_commands(arguments: Mapping[str, Json]) -> Iterator[Json]:
    """Yield the commands that a call runs, each with the arguments that are given apart from it."""
    lists = [value for key, value in arguments.items() if _simplify(key) in _ARGUMENT_KEYS and isinstance(value, list)]
    for key, value in arguments.items():
        if value and _simplify(key) in _COMMAND_KEYS:
            yield [value, *lists[0]] if lists and isinstance(value, str) else value
        elif key == "commands" and isinstance(value, list):
            yield "\n".join(each for each in value if isinstance(each, str))


def _quote_here_document(found: re.Match[str]) -> str:
    text = found["text"].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"{found["rest"]}\n'


def _get_inner_command(words: list[str]) -> str:
    """Return the command that a shell is given, as in `bash -c "cat notes.json"`."""
    option = next((i for i, word in enumerate(words) if _is_command_option(word)), 0)
    return _unquote(" ".join(words[option + 1 :] if option else words[1:][-1:]))


def _unquote(word: str) -> str:
    is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
    return word[1:-1].replace('\\"', '"') if is_quoted else word


def _is_own_program(word: str) -> bool:
    """Return whether a command is a program of the project, such as `./shoot`, and none that is installed."""
    folder = word.strip("'\"").replace("\\", "/").rpartition("/")[0].lower()
    return bool(folder) and not folder.endswith("bin") and not _names_known_file(word.strip("'\"").lower())


def _get_program(word: str) -> str:
    return word.strip("'\"").replace("\\", "/").rpartition("/")[2].lower()
