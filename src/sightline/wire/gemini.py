"""The Gemini wire: where images are in a request, how their fates are written, and its errors.

Fields come in camelCase or, from Python, in snake_case, sometimes both in one block; base64 may be URL-safe. An image
of a tool is inside its function response or, up to Gemini 2.5, beside it in the same content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from urllib.parse import unquote, urlsplit

import orjson

from sightline.model import labels
from sightline.model.profile import Profile
from sightline.model.scene import (
    Edit,
    InlineSource,
    Insert,
    Json,
    JsonPath,
    LinkSource,
    OpaqueSource,
    Rebuild,
    Refused,
    Remove,
    Repeated,
    Replace,
    Retired,
    Scene,
    Sight,
    Source,
    Told,
    ToolCall,
)
from sightline.wire import text_images
from sightline.wire.image_blocks import build_inline, find_foreign_source, parse_image_string
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import (
    Block,
    Texts,
    enumerate_objects,
    get_at,
    get_known,
    get_list,
    get_name,
    get_text,
    get_value,
)
from sightline.wire.lowering import (
    BlockFormat,
    build_block,
    build_hoisted_blocks,
    can_stay,
    get_note,
    has_pixels,
    lower_in_messages,
    lower_in_place,
)
from sightline.wire.scene_reader import MIN_TEXT, Endpoint, SceneReader, is_from_person

FieldNames = tuple[str, str]  # of one field: camelCase, snake_case
DATA = ("inlineData", "inline_data")
FILE = ("fileData", "file_data")
MIME = ("mimeType", "mime_type")
URI = ("fileUri", "file_uri")
NAME = ("displayName", "display_name")
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
DECLARATIONS = ("functionDeclarations", "function_declarations")
CACHED_CONTENT = ("cachedContent", "cached_content")
COUNTED_REQUEST = ("generateContentRequest", "generate_content_request")


def find_key(holder: Json, names: FieldNames) -> str:
    """Return the name under which a block has a field; the camelCase one if it has none."""
    camel, snake = names
    return snake if isinstance(holder, dict) and snake in holder and camel not in holder else camel


def get_field(holder: Json, names: FieldNames) -> Json:
    if not isinstance(holder, dict):
        return None
    camel, snake = names
    return holder[camel] if camel in holder else holder.get(snake)


HEAD_KEYS = ("tools", "systemInstruction", "system_instruction")
MESSAGES_KEY = "contents"
_match_path = re.compile(
    r"(?P<version>/v\d\w*)?(?:/[^/:]+)*?/(?:models|tunedModels)/(?P<model>[^/:]+)"
    r":(?P<verb>generateContent|streamGenerateContent|countTokens)"
).fullmatch
# Files there belong to the client's account: only Google can read them.
_GOOGLE_HOSTS = ("googleapis.com", "google.com")
_RESPONSE_DEPTH = 5  # steps to a function response: contents, content, parts, part, functionResponse


def match_path(path: str) -> Endpoint | None:
    """Return what a path says: the model, and whether the answer is a stream. A path without a version gets one."""
    found = _match_path(unquote(path))
    if found is None:
        return None
    verb = found["verb"]
    upstream_path = path if found["version"] else f"/v1beta{path}"
    return Endpoint(upstream_path, verb == "countTokens", found["model"], verb == "streamGenerateContent")


@dataclass(slots=True)
class _CallTracker:
    """Matches responses with calls, which need not have an id on this wire."""

    reader: SceneReader
    waiting: list[ToolCall] = field(default_factory=list)
    unnamed_counts: dict[str, int] = field(default_factory=dict)

    def add_call(self, call: Block) -> None:
        name = get_name(call, "name", self.reader.texts)
        own = get_name(call, "id", self.reader.texts)
        if not own:
            self.unnamed_counts[name] = self.unnamed_counts.get(name, 0) + 1
            own = f"{name}#{self.unnamed_counts[name]}"
        self.reader.add_call(own, name, call.get("args"))
        self.waiting.append(self.reader.calls[own])

    def find_answered_call(self, response: Block) -> ToolCall:
        """Return the call that a response answers: by its id, else the first unanswered one of its name."""
        own, name = get_name(response, "id", self.reader.texts), get_name(response, "name", self.reader.texts)
        known = self.reader.calls.get(own) if own else next((c for c in self.waiting if c.name == name), None)
        if known in self.waiting:
            self.waiting.remove(known)
        return known or ToolCall(own, name)


def read(tree: Json, texts: Texts) -> Scene:
    root: JsonPath = (find_key(tree, COUNTED_REQUEST),) if isinstance(get_field(tree, COUNTED_REQUEST), dict) else ()
    body = get_at(tree, *root)
    tracker = _CallTracker(SceneReader(texts))
    run: list[ToolCall] = []  # the calls that were answered in the content just before
    for i, content in enumerate(get_list(body, MESSAGES_KEY)):
        fields = content if isinstance(content, dict) else {}
        parts = fields.get("parts")
        if fields.get("role") == "model":
            _read_model(tracker, parts)
            run = []
        else:
            run = _read_content(tracker, (*root, MESSAGES_KEY, i, "parts"), parts, run)
    # With `root` this is a count of a request inside a request. The record only knows bodies of the usual shape.
    partial = bool(root) or get_field(body, CACHED_CONTENT) is not None
    declared_tools = get_value(body, "tools")
    tools = (get_field(tool, DECLARATIONS) for _, tool in enumerate_objects(declared_tools))
    names = (get_name(each, "name", texts) for declared in tools for _, each in enumerate_objects(declared))
    model = get_name(body, "model", texts).removeprefix("models/")
    return tracker.reader.build_scene(
        model, stream=False, tools=names, partial=partial, declared_tools=(declared_tools,)
    )


def _read_model(tracker: _CallTracker, parts: Json) -> None:
    if not tracker.reader.messages or tracker.reader.messages[-1].role != "assistant":
        tracker.waiting.clear()  # calls that have no answer by now won't get one
    tracker.reader.begin_message("assistant")
    for _, part in enumerate_objects(parts):
        if isinstance(call := get_field(part, CALL), dict):
            tracker.add_call(call)


def _read_content(tracker: _CallTracker, place: JsonPath, parts: Json, calls: list[ToolCall]) -> list[ToolCall]:
    """Read the parts of a user or of tools; return the calls whose images may follow them."""
    reader, blocks = tracker.reader, enumerate_objects(parts)
    responses = {
        j: function_response for j, part in blocks if isinstance(function_response := get_field(part, RESPONSE), dict)
    }
    if not responses:
        return reader.read_user_message(place, parts, blocks, _find_source, calls)
    reader.begin_message("tool", opens=is_from_person(get_text(part, "text") for _, part in blocks))
    answered: list[ToolCall] = []
    owner: ToolCall | None = None  # images beside its response belong to it, until a text of a person
    for j, part in blocks:
        if (response := responses.get(j)) is not None:
            owner = tracker.find_answered_call(response)
            answered.append(owner)
            _read_response(reader, (*place, j, find_key(part, RESPONSE)), response, owner)
        elif (source := _find_source(part, reader.texts)) is not None:
            reader.add_user_image((*place, j), source, get_at(parts, j - 1), owner)
        elif is_from_person([get_text(part, "text")]):
            owner = None
    return answered


def _read_response(reader: SceneReader, place: JsonPath, response: Block, call: ToolCall) -> None:
    result = response.get("response")
    for way, leaf in text_images.walk_strings(result):
        if len(leaf) < MIN_TEXT:
            continue
        holder = get_known(result, way[:-1])
        is_field = isinstance(holder, dict) and find_foreign_source(holder, reader.texts) is not None
        reader.read_tool_text((*place, "response", *way), leaf, call, is_field=is_field)
    for k, part in enumerate_objects(response.get("parts")):
        if (source := _find_source(part, reader.texts)) is not None:
            reader.add_tool_image((*place, "parts", k), source, call)


def _find_source(part: Block, texts: Texts) -> Source | None:
    if len(part) == 1 and "text" in part:
        return None
    blob = get_field(part, DATA)
    if isinstance(data := get_value(blob, "data"), str):
        declared = get_text(blob, find_key(blob, MIME)).strip().lower()
        if declared.startswith("image/"):
            return build_inline(declared, data, texts)
        return parse_image_string(data, texts) if declared in ("", "application/octet-stream") else None
    # A file without a type may be anything; most often it is a video.
    if (file := get_field(part, FILE)) is None:
        foreign = find_foreign_source(part, texts)
        return foreign if isinstance(foreign, InlineSource) else None
    if isinstance(uri := get_field(file, URI), str) and get_text(file, find_key(file, MIME)).startswith("image/"):
        return LinkSource(uri) if _is_public(uri) else OpaqueSource(uri)
    return None


def _is_public(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and not any(f".{host}".endswith(f".{own}") for own in _GOOGLE_HOSTS)


def _replace_image(old: Block, mime: str, data: str) -> Block:
    key = find_key(old, DATA)
    blob = old.get(key)
    fields = blob if isinstance(blob, dict) else {}
    return {**old, key: {**fields, find_key(fields, MIME): mime, "data": data}}


def _is_own_part(part: Json) -> bool:
    return get_field(part, DATA) is not None or get_field(part, FILE) is not None


def _build_text(text: str) -> Block:
    return {"text": text}


def _build_format(data: str, mime_type: str) -> BlockFormat:
    """Return how parts are written with these names of fields."""
    return BlockFormat(
        _build_text,
        lambda mime, payload: {data: {mime_type: mime, "data": payload}},
        _replace_image,
        _is_own_part,
        has_cache_marks=False,
    )


_BLOCKS = [_build_format("inlineData", "mimeType"), _build_format("inline_data", "mime_type")]


BLOCKS = _BLOCKS[0]


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.moves_tool_images
    edits = lower_in_messages([sight for sight in scene.sights if not sight.is_in_tool_result], tree, _BLOCKS[0])
    in_results = [sight for sight in scene.sights if sight.is_in_tool_result]
    for place, group in groupby(in_results, key=_get_response_place):
        group_sights = list(group)
        dialect = _BLOCKS[RESPONSE.index(str(place[-1]))]
        stay = all(sight.path_in_text is None and has_pixels(sight) and not hoist for sight in group_sights)
        if stay and not any(map(get_note, group_sights)):
            edits += lower_in_place(group_sights, tree, dialect)
            continue
        edits += _lower_response(place, group_sights, tree, dialect, hoist=hoist)
        leaving = [sight for sight in group_sights if hoist and has_pixels(sight)]
        beside = (*place[:-2], int(place[-2]) + 1)
        edits += [Insert(beside, _drop_display_name(each)) for each in build_hoisted_blocks(leaving, tree, dialect)]
    return edits


def _get_response_place(sight: Sight) -> JsonPath:
    """Return the place of the function response that contains a sight."""
    return sight.place[:_RESPONSE_DEPTH] if sight.place[0] == MESSAGES_KEY else sight.place[: _RESPONSE_DEPTH + 1]


# Function responses

_WORDS_KEY = "image"  # the key of a tool's response for words about images that had a part of their own


def _get_display_name(part: Json) -> str:
    blob = get_field(part, DATA)
    return get_text(blob, find_key(blob, NAME))


def _drop_display_name(part: Json) -> Json:
    """Return a part without its display name: only a part inside a response may have one, to be referred to."""
    blob = get_field(part, DATA)
    if not isinstance(part, dict) or not isinstance(blob, dict) or get_field(blob, NAME) is None:
        return part
    return {**part, find_key(part, DATA): {key: value for key, value in blob.items() if key not in NAME}}


def _lower_response(
    place: JsonPath, sights: Sequence[Sight], tree: Json, blocks: BlockFormat, *, hoist: bool
) -> list[Edit]:
    """Return the edits for a function response whose images become words, leave it, or are inside its texts."""
    old = get_at(tree, *place)
    assert isinstance(old, dict)
    names = [_get_display_name(part) for part in get_list(old, "parts")]
    references = _find_references(old.get("response")) if any(names) else {}
    replaced: dict[JsonPath, list[str]] = {}  # by the place of a reference to a part that is gone: words instead of it
    parts: list[int | Block] = []
    loose: list[str] = []  # words that have no place in the response yet
    by_place = {sight.place: sight for sight in sights if sight.path_in_text is None}
    for k, name in enumerate(names):
        sight = by_place.get((*place, "parts", k))
        if sight is None or (has_pixels(sight) and not hoist):
            parts.append(
                k
                if sight is None or can_stay(sight, get_at(tree, *sight.place), blocks)
                else build_block(sight, tree, blocks)
            )
            loose += [note] if sight is not None and (note := get_note(sight)) else []
            continue
        words = _get_words(sight)
        ways = references.get(name, [])
        for way in ways:
            replaced.setdefault(way, []).append(words or text_images.PLACEHOLDER)
        loose += [words] if words and (not ways or () in ways) else []
    inner: list[Edit] = [Replace(way, "\n".join(words)) for way, words in replaced.items() if way]
    for leaf, group in groupby((s for s in sights if s.path_in_text is not None), key=lambda s: s.place):
        text_sights = list(group)
        kept, beside = _split_text(get_at(tree, *leaf), text_sights)
        inner.append(Replace(leaf[len(place) + 1 :], kept))
        loose += beside
        parts += [build_block(sight, tree, blocks) for sight in text_sights if has_pixels(sight) and not hoist]
    if hoist and any(map(has_pixels, sights)):
        loose.append(labels.SHOWN_BESIDE)
    edits = _replace_answer(place, loose) if () in replaced else _add_words(place, old, inner, loose)
    return [*edits, *_rebuild_parts(place, old, parts)]


def _replace_answer(place: JsonPath, words: Sequence[str]) -> list[Edit]:
    """Replace a response that was nothing but a reference to a part that is gone."""
    return [Replace((*place, "response"), {_WORDS_KEY: _join_words(words)})]


def _rebuild_parts(place: JsonPath, old: Block, parts: list[int | Block]) -> list[Edit]:
    """Return the edits for the `parts` of a function response."""
    before = old.get("parts")
    if isinstance(before, list):
        if not parts and len(old) > 1:
            return [Remove((*place, "parts"))] if before else []
        return [Rebuild((*place, "parts"), tuple(parts))] if parts != [*range(len(before))] else []
    written = [each for each in parts if isinstance(each, dict)]
    if not written:
        return []
    value: list[Json] = [*written]
    return [Replace((*place, "parts"), value) if "parts" in old else Insert((*place, "parts"), value)]


def _get_words(sight: Sight) -> str:
    """Return the words that a sight became; an empty text if it still has pixels."""
    return sight.fate.text if isinstance(sight.fate, Told | Retired | Refused) else ""


def _split_text(leaf: Json, sights: Sequence[Sight]) -> tuple[str, list[str]]:
    """Return a text of a response without the images in it, and words that must be outside of it."""
    assert isinstance(leaf, str)
    pieces = text_images.split_at_images(leaf, sights)
    first = pieces[0]
    kept_sights = [sight for sight in sights if not isinstance(sight.fate, Repeated)]
    if isinstance(first, str) and pieces[1:] == kept_sights and text_images.is_json_container(first):
        return first, [words for sight in kept_sights if (words := _get_words(sight))]
    return "\n".join(
        each if isinstance(each, str) else _get_words(each) or text_images.PLACEHOLDER for each in pieces
    ), []


def _add_words(place: JsonPath, old: Block, inner: Sequence[Edit], words: Sequence[str]) -> list[Edit]:
    """Return the edits that put words into the `response` object, under a key of their own.

    They can't be among the parts, which must be data. The object may have any keys, and the tool's own ones stay.
    """
    text_sights: JsonPath = (*place, "response")
    answer = old.get("response")
    value = _join_words(words) if words else None
    if isinstance(answer, dict) or value is None:
        edits: list[Edit] = [replace(edit, place=(*text_sights, *edit.place)) for edit in inner]
        return [*edits, Insert((*text_sights, _find_free_key(answer)), value)] if value is not None else edits
    if "response" not in old:
        return [Insert(text_sights, {_WORDS_KEY: value})]
    return [
        Replace(
            text_sights, {_WORDS_KEY: value} if answer is None else {"output": graft(answer, inner), _WORDS_KEY: value}
        )
    ]


def _join_words(words: Sequence[str]) -> Json:
    return words[0] if len(words) == 1 else list[Json](words)


def _find_free_key(value: Json) -> str:
    key = _WORDS_KEY
    while isinstance(value, dict) and key in value:
        key += "_"
    return key


def _find_references(value: Json) -> dict[str, list[JsonPath]]:
    """Return where a response refers to its parts, by their names: nothing may refer to a part that is gone."""
    found: dict[str, list[JsonPath]] = {}
    for way, name in _walk_references(value, ()):
        found.setdefault(name, []).append(way)
    return found


def _walk_references(value: Json, way: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    match value:
        case {"$ref": str(name), **others} if name and not others:
            yield way, name
        case list() if len(way) < text_images.MAX_DEPTH:
            for index, item in enumerate(value):
                yield from _walk_references(item, (*way, index))
        case dict() if len(way) < text_images.MAX_DEPTH:
            for key, item in value.items():
                yield from _walk_references(item, (*way, key))


# Errors


def make_error(code: int, status: str) -> Callable[[str], Json]:
    return lambda message: {"error": {"code": code, "message": message, "status": status}}


def write_error(message: str) -> bytes:
    """Return an error for a stream: bare, as Google itself sends it. One of its SDKs reads it only without `data:`.

    Another SDK counts braces to find the end, so those of the message are escaped.
    """
    before, _, after = orjson.dumps(make_error(503, "UNAVAILABLE")("")).partition(b'""')
    quoted = orjson.dumps(message).replace(b"{", rb"\u007b").replace(b"}", rb"\u007d")
    return before + quoted + after + b"\n\n"
