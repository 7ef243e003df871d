"""The texts of a conversation's messages: commands that a person typed, and notes of a client about an image.

A command is the first text of a user's message; texts that the client adds around it are skipped. Sightline answers
it in the model's place, and removes both from later requests, so that the model never sees them.

Only a plain text block of the user's own message can be a command. A message counts as the user's own only if all its
blocks are known to be harmless: text, images and documents, with the fields that such blocks have, and client texts in
known tags. Anything else may be a tool's result, or text that a program has written beside one, and a tool must never
be able to run a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from sightline.model.fence import replace_surrogates
from sightline.model.labels import is_label
from sightline.model.scene import Json
from sightline.wire.json_document import JsonDocument
from sightline.wire.json_tree import Block, Texts, enumerate_objects, get_at, get_list, get_text, get_value

_long_run = re.compile(r"[A-Za-z0-9+/=_-]{256,}+")  # no word is that long
_TEXT_TYPES = ("", "text", "input_text", "output_text")  # the types of text blocks, over all wires


def list_message_texts(message: Json, texts: Texts) -> list[str]:
    """Return the texts of a message, each with an ellipsis instead of the payloads in it."""
    content = get_value(message, "content") if get_value(message, "parts") is None else get_value(message, "parts")
    if isinstance(content, str):
        return [_shorten_payloads(content, texts)]
    blocks = (
        block
        for _, block in enumerate_objects(content)
        if get_text(block, "type") in _TEXT_TYPES and not block.get("thought")
    )
    return [_shorten_payloads(text, texts) for block in blocks if (text := get_text(block, "text"))]


def _shorten_payloads(text: str, texts: Texts) -> str:
    lifted = re.sub(re.escape(texts.token) + r"\d+;", "…", text) if texts.token in text else text
    return replace_surrogates(_long_run.sub("…", lifted))


# Commands

ParseCommand = Callable[[str], str | None]
"""Returns the command that a text is, if it is one."""
Elements = tuple[int | Block, ...]
"""The elements of a `Rebuild`."""

_IGNORED_ROLES = ("system", "developer")  # messages that a client adds after the person's
_MODEL_ROLES = ("assistant", "model")
# Tags around texts of clients. Other tags may be around what a tool returned: <bash-stdout>, <tool_result> …
_CLIENT_TAGS = (
    "system[_-]reminder|environment_(?:context|details)|user_instructions|session_context|current_datetime|image"
)
_match_client_tag = re.compile(rf"</?(?:{_CLIENT_TAGS})\b(?!-)|\[Image\b").match
_match_other_tag = re.compile(rf"\s*</?(?!(?:{_CLIENT_TAGS})\b(?!-))[A-Za-z]", re.IGNORECASE).match
_names_tool = re.compile(r"tool|call|function", re.IGNORECASE).search  # in the name of a field of a message
# The time before the user's words in the same text. No content of a file is in it, which could close the tag itself.
_match_preface = re.compile(r"\s*<current_datetime>[\w:.+\s-]{1,64}</current_datetime>").match

_TYPED_TEXT = ("text", "input_text")  # the types of a text block, on the wires whose blocks have a type
_UNTYPED = (None,)  # Gemini's parts have none
_ATTACHMENT_TYPES = ("image", "image_url", "input_image", "document", "file", "input_file")  # harmless, too
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

# Where a request can require data instead of text, and the values that do so.
_DATA_REQUIREMENTS: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (
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
_SCHEMA_KEYS = (
    "responseSchema",
    "responseJsonSchema",
    "_responseJsonSchema",
    "response_schema",
    "response_json_schema",
)


def requires_data(tree: Json) -> bool:
    """Return whether a request requires JSON or a call as its answer: a program sent it, and can't use words."""
    if any(get_at(tree, *place) in values for place, values in _DATA_REQUIREMENTS):
        return True
    settings = get_value(tree, "generationConfig") or get_value(tree, "generation_config")
    return any(get_value(settings, name) is not None for name in _SCHEMA_KEYS)


def find_newest_command(messages: Json, parse_command: ParseCommand) -> str | None:
    """Return the command that this request is, if it is one."""
    for message in reversed(messages) if isinstance(messages, list) else ():
        if not _is_object(message):
            return None
        if not _is_client_message(message):
            return _find_command(message, parse_command)[1]
    return None


def drop_commands(messages: Json, parse_command: ParseCommand, is_answer: Callable[[str], bool]) -> Elements | None:
    """Return the messages without commands and their answers, as elements of a `Rebuild`; None if there are none.

    Other content of a command's message stays. So does the newest command, and a command that a model has answered:
    the model knows about that one. `is_answer` recognizes the text of an answer to a command.
    """
    if not isinstance(messages, list):
        return None
    replaced: dict[int, int | Block | None] = {}
    pending: dict[int, Block | None] = {}  # a command whose answer hasn't come yet, and the rest of its message
    for index, message in enumerate(messages):
        if not _is_object(message):
            pending = {}
        elif _get_role(message) == "user" and not _is_client_message(message):
            replaced |= pending
            is_command = _find_command(message, parse_command)[1] is not None
            pending = {index: _drop_command(message, parse_command)} if is_command else {}
        elif pending and not _is_client_message(message):
            replaced |= {**pending, index: None} if _is_command_answer(message, is_answer) else {}
            pending = {}
    if not replaced:
        return None
    kept = (replaced.get(index, index) for index in range(len(messages)))
    return tuple(element for element in kept if element is not None)


def _is_object(message: Json) -> TypeGuard[Block]:
    return isinstance(message, dict)


def _get_role(message: Mapping[str, Json]) -> Json:
    """Return the role of a message; Gemini's user may come without one."""
    return message.get("role", "user" if "parts" in message else None)


def _is_client_message(message: Mapping[str, Json]) -> bool:
    """Return whether the client itself wrote this message, so that it doesn't start a turn of the user."""
    if _get_role(message) in _IGNORED_ROLES:
        return True
    texts = [text for _, text in _enumerate_texts(message)]
    return _get_role(message) == "user" and len(texts) == _count_parts(message) > 0 and all(map(_is_client_text, texts))


def _is_client_text(text: str) -> bool:
    """Return whether a text is a reminder between tags, or a line about a pasted image."""
    bare = text.strip()
    return not bare or (bare[-1] in ">]" and _match_client_tag(bare) is not None)


def is_plain_text(block: Json, types: Sequence[Json] = ("text",)) -> bool:
    """Return whether a block is text as a user types it.

    Its type is exactly that of a text block, it has no field that such blocks don't have, it isn't addressed to the
    model alone (`annotations.audience`), and no program has attached `_meta` of its own to it.
    """
    if not isinstance(block, dict) or block.get("type") not in types or not isinstance(block.get("text"), str):
        return False
    if not _list_fields(block) <= (_PART_FIELDS if types == _UNTYPED else _TEXT_FIELDS):
        return False
    notes = block.get("annotations") or {}
    audience = notes.get("audience") if isinstance(notes, dict) else ()
    is_for_user = audience is None or (isinstance(audience, list) and "user" in audience)
    return is_for_user and not block.get("_meta") and not block.get("thought")


def _is_from_user(message: Mapping[str, Json]) -> bool:
    """Return whether a message is the user's own: of the user's role, and with harmless blocks alone."""
    if _get_role(message) != "user" or message.get("type", "message") != "message" or any(map(_names_tool, message)):
        return False
    content = _get_content(message)
    if isinstance(content, str):
        return not _is_program_text(content)
    return isinstance(content, list) and all(_is_harmless(part, typed="content" in message) for part in content)


def _is_harmless(part: Json, *, typed: bool) -> bool:
    """Return whether a part is text, an image or a document, and doesn't mention a tool.

    `typed` is False for parts of Gemini, which have fields but no type.
    """
    if not isinstance(part, dict) or (typed and part.get("type") not in (*_TYPED_TEXT, *_ATTACHMENT_TYPES)):
        return False
    fields = _list_fields(part)
    known = fields <= (_BLOCK_FIELDS if typed else _PART_FIELDS)
    return bool(fields) and known and not _is_program_text(get_text(part, "text"))


def _list_fields(block: Mapping[str, Json]) -> set[str]:
    """Return the fields of a block that have a value."""
    return {name for name, value in block.items() if value is not None and value is not False}


def _is_program_text(text: str) -> bool:
    """Return whether a text begins like one that a program has moved out of a tool's result."""
    return is_label(text) or _match_other_tag(text) is not None


def _find_command(message: Mapping[str, Json], parse_command: ParseCommand) -> tuple[int, str | None]:
    """Return the index of the part that is a command, and the command; None if the message is none."""
    texts = (each for each in _enumerate_texts(message) if not _is_client_text(each[1]))
    index, text = next(texts, (0, "")) if _is_from_user(message) else (0, "")
    content = _get_content(message)
    types = _TYPED_TEXT if "content" in message else _UNTYPED
    if not isinstance(content, str) and not is_plain_text(get_at(content, index), types):
        return 0, None
    preface = _match_preface(text)
    return index, parse_command(text[preface.end() :] if preface else text)


def _drop_command(message: Block, parse_command: ParseCommand) -> Block | None:
    """Return a message without the command in it; None if nothing is left."""
    key = "content" if "content" in message else "parts"
    parts, (index, _) = message.get(key), _find_command(message, parse_command)
    rest = [part for i, part in enumerate(parts) if i != index] if isinstance(parts, list) else []
    return {**message, key: rest} if rest else None


def _is_command_answer(message: Mapping[str, Json], is_answer: Callable[[str], bool]) -> bool:
    """Return whether a message of the model has nothing but the text of an answer to a command."""
    texts = [text for _, text in _enumerate_texts(message)]
    only_text = len(texts) == _count_parts(message) > 0 and not message.get("tool_calls")
    return _get_role(message) in _MODEL_ROLES and only_text and is_answer(texts[0])


def _get_content(message: Mapping[str, Json]) -> Json:
    return message.get("content", message.get("parts"))


def _count_parts(message: Mapping[str, Json]) -> int:
    content = _get_content(message)
    return len(content) if isinstance(content, list) else int(isinstance(content, str))


def _enumerate_texts(message: Mapping[str, Json]) -> Iterator[tuple[int, str]]:
    """Yield the texts of a message with the indexes of their parts."""
    content = _get_content(message)
    for index, part in enumerate(content if isinstance(content, list) else [content]):
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield index, text


# Notes of clients in the place of an image that they left out, because they believe that their model is blind.

# A body that has none of these isn't searched.
_COMMON_WORDS = ("not support ", "[tool output omitted]", "vision content was removed")
NOTE_MARKS = tuple(words.encode() for words in _COMMON_WORDS)
_OMISSION_NOTES: Mapping[str, str] = {
    "view_image is not allowed because you do not support image inputs": "codex",
    "image content omitted because you do not support image input": "codex",
    "does not support image input. The read_file tool cannot process": "qwen",
    "tool image omitted: model does not support images": "pi",
    "Cannot read image (this model does not support image input)": "opencode",
    "an image that was omitted as the model does not support vision": "goose",
}
# Notes that are the whole text: their words alone may mean anything.
_match_whole_note = re.compile(
    r"\s*(?:(?P<openai_agents>\[tool output omitted\])"
    r"|(?P<fast_agent>\[(?:\w+, )*vision content was removed - [^\[\]]{1,200} does not support this content type\]))\s*"
).fullmatch
_MAX_NOTE = 1000  # characters: a longer text only quotes the note
_CLIENT_ROLES = ("user", "tool", "function")  # messages that a client writes itself


def has_marks(text: bytes | bytearray, marks: Sequence[bytes]) -> bool:
    """Return whether any of these is in a text. `find` takes half the time of `in`, which first expects a number."""
    return max(map(text.find, marks)) >= 0


def find_omission_note(document: JsonDocument, messages_key: str) -> str | None:
    """Return the client that has left an image out of this body, by the name of its command."""
    if not has_marks(document.skeleton, NOTE_MARKS):
        return None
    messages = filter(_is_from_client, get_list(document.tree, messages_key))
    texts = (text for message in messages for text in _list_strings(message))
    short = (text for text in texts if len(text) <= _MAX_NOTE and any(words in text for words in _COMMON_WORDS))
    return next((client for text in short if (client := _find_note_writer(text))), None)


def _find_note_writer(text: str) -> str | None:
    """Return the client that writes this note, or None."""
    if whole_note := _match_whole_note(text):
        return (whole_note.lastgroup or "").replace("_", "-")
    return next((client for note, client in _OMISSION_NOTES.items() if note in text), None)


def _is_from_client(message: Json) -> bool:
    """Return whether this is a user's message or a tool's result. A model or a system prompt may only quote a note."""
    if not isinstance(message, dict):
        return False
    if "role" in message:
        return message["role"] in _CLIENT_ROLES
    kind = message.get("type", "_output")
    return isinstance(kind, str) and kind.endswith("_output")


def _list_strings(value: Json) -> Iterator[str]:
    """Yield every string below a value."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict(members):
                left.extend(members.values())
            case list(elements):
                left.extend(elements)
