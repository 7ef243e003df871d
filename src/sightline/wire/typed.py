"""Commands that a person has typed into a conversation: the newest one, and earlier ones with their answers.

A command is the first thing that a user's message says; what a client adds around the person's words is passed over.
Whoever answers it here answers in the model's place; the model itself never gets to know of either.

Only a plain text block of the user's own message is a command. A message is the user's own only if all its blocks are
known to be harmless: text, images and documents, with the fields that such blocks have, and texts of clients in tags
that are known. Anything else may be what a tool returned, or text that a program has written beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from sightline.model.marks import leads
from sightline.model.scene import Json
from sightline.wire.shape import at, text_in

CommandIn = Callable[[str], str | None]
"""The command that a text is, if it is one."""
Elements = tuple[int | dict[str, Json], ...]

_PASSED_OVER = ("system", "developer")  # what a client adds behind the person's words
_MODELS = ("assistant", "model")
# Tags around what clients write by themselves. Other tags may hold what a tool returned: <bash-stdout>, <tool_result> …
_CLIENT_TAGS = (
    "system[_-]reminder|environment_(?:context|details)|user_instructions|session_context|current_datetime|image"
)
_opened = re.compile(rf"</?(?:{_CLIENT_TAGS})\b(?!-)|\[Image\b").match
_other_tag = re.compile(rf"\s*</?(?!(?:{_CLIENT_TAGS})\b(?!-))[A-Za-z]", re.IGNORECASE).match
_of_tool = re.compile(r"tool|call|function", re.IGNORECASE).search  # in the name of a field of a message
# The hour before the user's words in the same text. Nothing from a file is in it, which could close the tag itself.
_prefaced = re.compile(r"\s*<current_datetime>[\w:.+\s-]{1,64}</current_datetime>").match

_TEXT = ("text", "input_text")  # the types of a text block, on the wires whose blocks have a type
_UNTYPED = (None,)  # Gemini's parts have none
_ATTACHED = ("image", "image_url", "input_image", "document", "file", "input_file")  # types of other harmless blocks
_TEXT_FIELDS = frozenset({"type", "text", "cache_control", "annotations", "citations", "_meta"})
_BLOCK_FIELDS = (
    _TEXT_FIELDS
    | {"source", "image_url", "detail", "title", "context"}  # of an image or a document
    | {"file", "file_id", "file_url", "file_data", "filename"}  # of a file
)
_PART_FIELDS = frozenset(
    {"text", "inlineData", "inline_data", "fileData", "file_data", "thoughtSignature", "thought_signature"}
    | {"videoMetadata", "video_metadata", "mediaResolution", "media_resolution"}
)

_DATA: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (  # where a request demands data, and the words for it there
    (("response_format", "type"), ("json_object", "json_schema")),
    (("text", "format", "type"), ("json_object", "json_schema")),
    (("output_format", "type"), ("json_schema",)),
    (("output_config", "format", "type"), ("json_schema",)),
    (("generationConfig", "responseMimeType"), ("application/json", "text/x.enum")),
    (("generation_config", "response_mime_type"), ("application/json", "text/x.enum")),
    (("tool_choice",), ("required",)),
    (("tool_choice", "type"), ("tool", "any", "function", "custom")),
    (("toolConfig", "functionCallingConfig", "mode"), ("ANY",)),
    (("tool_config", "function_calling_config", "mode"), ("ANY",)),
)
_SCHEMAS = ("responseSchema", "responseJsonSchema", "_responseJsonSchema", "response_schema", "response_json_schema")


def demands_data(tree: Json) -> bool:
    """Does a request want JSON or a call for its answer? A program asks then, which words would only confuse."""
    if any(at(tree, *place) in words for place, words in _DATA):
        return True
    settings = at(tree, "generationConfig") or at(tree, "generation_config")
    return any(at(settings, name) is not None for name in _SCHEMAS)


def newest(items: Json, command_in: CommandIn) -> str | None:
    """The command that this request is, if it is one."""
    for item in reversed(items) if isinstance(items, list) else ():
        if not _is_item(item):
            return None
        if not _is_added(item):
            return _command(item, command_in)[1]
    return None


def without(items: Json, command_in: CommandIn) -> Elements | None:
    """The messages without commands and their answers, as a list is made anew; None: there are none.

    What else stands in a command's message stays. So does a command that a model has answered, which knows it then,
    and the newest one.
    """
    if not isinstance(items, list):
        return None
    left: dict[int, int | dict[str, Json] | None] = {}
    asked: dict[int, dict[str, Json] | None] = {}  # a command whose answer has not come yet, and what else stands there
    for number, item in enumerate(items):
        if not _is_item(item):
            asked = {}
        elif _role(item) == "user" and not _is_added(item):
            left |= asked
            asked = {number: _rest(item, command_in)} if _command(item, command_in)[1] is not None else {}
        elif asked and not _is_added(item):
            left |= {**asked, number: None} if _is_ours(item, command_in) else {}
            asked = {}
    if not left:
        return None
    kept = (left.get(number, number) for number in range(len(items)))
    return tuple(each for each in kept if each is not None)


def _is_item(item: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(item, dict)


def _role(item: Mapping[str, Json]) -> Json:
    """Gemini's user need not say who speaks."""
    return item.get("role", "user" if "parts" in item else None)


def _is_added(item: Mapping[str, Json]) -> bool:
    """Has a client written this message by itself? Then it is no turn of the person's."""
    if _role(item) in _PASSED_OVER:
        return True
    texts = [text for _, text in _texts(item)]
    return _role(item) == "user" and len(texts) == _size(item) > 0 and all(map(_added, texts))


def _added(text: str) -> bool:
    """Reminders, marks of pasted images: a text between tags, or a line about an image."""
    bare = text.strip()
    return not bare or (bare[-1] in ">]" and _opened(bare) is not None)


def is_plain_text(block: Json, types: Sequence[Json] = ("text",)) -> bool:
    """Return whether a block is text as a user types it: its type is exactly that of a text block, it has no field that
    such blocks don't have, it is not addressed to the model alone (`annotations.audience`), and no program has attached
    `_meta` of its own to it."""
    if not isinstance(block, dict) or block.get("type") not in types or not isinstance(block.get("text"), str):
        return False
    if not _list_fields(block) <= (_PART_FIELDS if types == _UNTYPED else _TEXT_FIELDS):
        return False
    notes = block.get("annotations") or {}
    audience = notes.get("audience") if isinstance(notes, dict) else ()
    is_for_user = audience is None or (isinstance(audience, list) and "user" in audience)
    return is_for_user and not block.get("_meta") and not block.get("thought")


def _is_own(item: Mapping[str, Json]) -> bool:
    """Return whether a message is the user's own: of the user's role, and with harmless blocks alone."""
    if _role(item) != "user" or item.get("type", "message") != "message" or any(map(_of_tool, item)):
        return False
    content = _content(item)
    if isinstance(content, str):
        return not _is_of_program(content)
    return isinstance(content, list) and all(_is_harmless(part, typed="content" in item) for part in content)


def _is_harmless(part: Json, *, typed: bool) -> bool:
    """Return whether a part is text, an image or a document, and says nothing of a tool.

    Parts of Gemini have fields but no type.
    """
    if not isinstance(part, dict) or (typed and part.get("type") not in (*_TEXT, *_ATTACHED)):
        return False
    fields = _list_fields(part)
    known = fields <= (_BLOCK_FIELDS if typed else _PART_FIELDS)
    return bool(fields) and known and not _is_of_program(text_in(part, "text"))


def _list_fields(block: Mapping[str, Json]) -> set[str]:
    """Return the fields of a block that say something."""
    return {name for name, value in block.items() if value is not None and value is not False}


def _is_of_program(text: str) -> bool:
    """Return whether a text begins like one that a program has moved out of the result of a tool."""
    return leads(text) or _other_tag(text) is not None


def _command(item: Mapping[str, Json], command_in: CommandIn) -> tuple[int, str | None]:
    """Return the number of the part that is a command, and the command; None: the message is none."""
    said = (each for each in _texts(item) if not _added(each[1]))
    number, text = next(said, (0, "")) if _is_own(item) else (0, "")
    content = _content(item)
    types = _TEXT if "content" in item else _UNTYPED
    if not isinstance(content, str) and not is_plain_text(at(content, number), types):
        return 0, None
    preface = _prefaced(text)
    return number, command_in(text[preface.end() :] if preface else text)


def _rest(item: dict[str, Json], command_in: CommandIn) -> dict[str, Json] | None:
    """A message without the command in it; None: nothing is left."""
    key = "content" if "content" in item else "parts"
    parts, (number, _) = item.get(key), _command(item, command_in)
    left = [part for i, part in enumerate(parts) if i != number] if isinstance(parts, list) else []
    return {**item, key: left} if left else None


def _is_ours(item: Mapping[str, Json], command_in: CommandIn) -> bool:
    """Words alone, which begin as all answers to a command do."""
    texts = [text for _, text in _texts(item)]
    only_words = len(texts) == _size(item) > 0 and not item.get("tool_calls")
    return _role(item) in _MODELS and only_words and command_in(texts[0]) is not None


def _content(item: Mapping[str, Json]) -> Json:
    return item.get("content", item.get("parts"))


def _size(item: Mapping[str, Json]) -> int:
    content = _content(item)
    return len(content) if isinstance(content, list) else int(isinstance(content, str))


def _texts(item: Mapping[str, Json]) -> Iterator[tuple[int, str]]:
    """The texts of a message, with the numbers of their parts."""
    content = _content(item)
    for number, part in enumerate(content if isinstance(content, list) else [content]):
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield number, text
