"""The Gemini wire: where images stand in a request, and how their fates are written there.

Fields come in camelCase or, from Python, in snake_case, sometimes both in one block; base64 may be URL-safe. An image
that a tool brought stands inside its function response or, up to Gemini 2.5, beside it in the same content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from urllib.parse import unquote, urlsplit

from sightline.model import marks
from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.fate import Refused, Repeated, Retired, Told
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Link, Opaque, Source
from sightline.wire import rescue
from sightline.wire.codec import Endpoint
from sightline.wire.inline import inline, picture_in
from sightline.wire.jsonedits import graft
from sightline.wire.lowering import Block, Dialect, as_sent, block, has_pixels, in_place, moved
from sightline.wire.reader import Reader, is_said
from sightline.wire.shape import Texts, at, entries, items, text_in, value_in, word_in

Names = tuple[str, str]  # of one field, in either style
DATA = ("inlineData", "inline_data")
FILE = ("fileData", "file_data")
MIME = ("mimeType", "mime_type")
URI = ("fileUri", "file_uri")
NAME = ("displayName", "display_name")
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
DECLARED = ("functionDeclarations", "function_declarations")
CACHED = ("cachedContent", "cached_content")
COUNTED = ("generateContentRequest", "generate_content_request")


def key_of(holder: Json, names: Names) -> str:
    """The name under which a block has a field; the usual one, if it has none."""
    camel, snake = names
    return snake if isinstance(holder, dict) and snake in holder and camel not in holder else camel


def under(holder: Json, names: Names) -> Json:
    if not isinstance(holder, dict):
        return None
    camel, snake = names
    return holder[camel] if camel in holder else holder.get(snake)


_WORDS = "image"  # the key of a tool's response for words about images that had a part of their own


def _name(part: Json) -> str:
    blob = under(part, DATA)
    return text_in(blob, key_of(blob, NAME))


def nameless(part: Json) -> Json:
    """A part of a content has no name to be referred to by; only one inside a response has."""
    blob = under(part, DATA)
    if not isinstance(part, dict) or not isinstance(blob, dict) or under(blob, NAME) is None:
        return part
    return {**part, key_of(part, DATA): {key: value for key, value in blob.items() if key not in NAME}}


def rebuilt(place: Path, sights: Sequence[Sight], tree: Json, dialect: Dialect, *, hoist: bool) -> list[Edit]:
    """Edits for a function response whose images become words, leave it, or come out of its texts."""
    old = at(tree, *place)
    assert isinstance(old, dict)
    names = [_name(part) for part in items(old, "parts")]
    references = _references(old.get("response")) if any(names) else {}
    gone: dict[Path, list[str]] = {}  # what is said where a part that is gone was referred to
    parts: list[int | Block] = []
    loose: list[str] = []  # words for which the response has no place yet
    standing = {sight.place: sight for sight in sights if sight.within is None}
    for k, name in enumerate(names):
        sight = standing.get((*place, "parts", k))
        if sight is None or (has_pixels(sight) and not hoist):
            parts.append(k if sight is None or as_sent(sight) else block(sight, tree, dialect))
            continue
        told = _told(sight)
        ways = references.get(name, [])
        for way in ways:
            gone.setdefault(way, []).append(told or rescue.HERE)
        loose += [told] if told and (not ways or () in ways) else []
    inner: list[Edit] = [Replace(way, "\n".join(said)) for way, said in gone.items() if way]
    for leaf, group in groupby((s for s in sights if s.within is not None), key=lambda s: s.place):
        here = list(group)
        kept, beside = _apart(at(tree, *leaf), here)
        inner.append(Replace(leaf[len(place) + 1 :], kept))
        loose += beside
        parts += [block(sight, tree, dialect) for sight in here if has_pixels(sight) and not hoist]
    if hoist and any(map(has_pixels, sights)):
        loose.append(marks.BESIDE)
    spoken = _instead(place, loose) if () in gone else _spoken(place, old, inner, loose)
    return [*spoken, *_parts(place, old, parts)]


def _instead(place: Path, words: Sequence[str]) -> list[Edit]:
    """What a tool says was nothing but a reference to a part that is gone."""
    return [Replace((*place, "response"), {_WORDS: _listed(words)})]


def _parts(place: Path, old: Block, parts: list[int | Block]) -> list[Edit]:
    """The data of a function response."""
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


def _told(sight: Sight) -> str:
    """The words that a sight became; none, if it has pixels still."""
    return sight.fate.words if isinstance(sight.fate, Told | Retired | Refused) else ""


def _apart(leaf: Json, sights: Sequence[Sight]) -> tuple[str, list[str]]:
    """A text of a response without the images that were written into it; and words that must stand outside of it."""
    assert isinstance(leaf, str)
    pieces = rescue.pieces(leaf, sights)
    first = pieces[0]
    met = [sight for sight in sights if not isinstance(sight.fate, Repeated)]
    if isinstance(first, str) and pieces[1:] == met and rescue.is_data(first):
        return first, [told for sight in met if (told := _told(sight))]
    return "\n".join(each if isinstance(each, str) else _told(each) or rescue.HERE for each in pieces), []


def _spoken(place: Path, old: Block, inner: Sequence[Edit], words: Sequence[str]) -> list[Edit]:
    """A part of a function response can only be data, so words stand in what the tool says, under a key of their own.

    That is any object: a key more is always legal there, and what the tool itself says stays as it is.
    """
    here: Path = (*place, "response")
    answer = old.get("response")
    said = _listed(words) if words else None
    if isinstance(answer, dict) or said is None:
        edits: list[Edit] = [replace(edit, place=(*here, *edit.place)) for edit in inner]
        return [*edits, Insert((*here, _free(answer)), said)] if said is not None else edits
    if "response" not in old:
        return [Insert(here, {_WORDS: said})]
    return [Replace(here, {_WORDS: said} if answer is None else {"output": graft(answer, inner), _WORDS: said})]


def _listed(words: Sequence[str]) -> Json:
    return words[0] if len(words) == 1 else list[Json](words)


def _free(said: Json) -> str:
    key = _WORDS
    while isinstance(said, dict) and key in said:
        key += "_"
    return key


def _references(value: Json) -> dict[str, list[Path]]:
    """Where a response refers to its parts, by their names: nothing may refer to what is gone."""
    found: dict[str, list[Path]] = {}
    for way, name in _referring(value, ()):
        found.setdefault(name, []).append(way)
    return found


def _referring(value: Json, way: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case {"$ref": str(name), **others} if name and not others:
            yield way, name
        case list() if len(way) < rescue.DEEPEST:
            for index, item in enumerate(value):
                yield from _referring(item, (*way, index))
        case dict() if len(way) < rescue.DEEPEST:
            for key, item in value.items():
                yield from _referring(item, (*way, key))


HEAD = ("tools", "systemInstruction", "system_instruction")
ITEMS = "contents"
_asks = re.compile(
    r"(?P<version>/v\d\w*)?(?:/[^/:]+)*?/(?:models|tunedModels)/(?P<model>[^/:]+)"
    r":(?P<verb>generateContent|streamGenerateContent|countTokens)"
).fullmatch
_GOOGLES = ("googleapis.com", "google.com")  # where a file is kept under the client's own account
_HOLDER = 5  # steps to a function response: contents, content, parts, part, functionResponse


def match(path: str) -> Endpoint | None:
    """A path of this wire, which names the model and whether the answer is a stream; one without a version gets one."""
    found = _asks(unquote(path))
    if found is None:
        return None
    verb = found["verb"]
    whole = path if found["version"] else f"/v1beta{path}"
    return Endpoint(whole, verb == "countTokens", found["model"], verb == "streamGenerateContent")


@dataclass(slots=True)
class _Listener:
    """A reader that also knows which calls wait for an answer: nobody has to name a call here."""

    reader: Reader
    waiting: list[Call] = field(default_factory=list)
    nameless: dict[str, int] = field(default_factory=dict)

    def calling(self, made: Block) -> None:
        name = word_in(made, "name", self.reader.texts)
        own = word_in(made, "id", self.reader.texts)
        if not own:
            self.nameless[name] = self.nameless.get(name, 0) + 1
            own = f"{name}#{self.nameless[name]}"
        self.reader.calling(own, name, made.get("args"))
        self.waiting.append(self.reader.calls[own])

    def answered(self, response: Block) -> Call:
        """The call that a response answers: by its id, else the first of its name that waits."""
        own, name = word_in(response, "id", self.reader.texts), word_in(response, "name", self.reader.texts)
        known = self.reader.calls.get(own) if own else next((c for c in self.waiting if c.name == name), None)
        if known in self.waiting:
            self.waiting.remove(known)
        return known or Call(own, name)


def read(tree: Json, texts: Texts) -> Scene:
    root: Path = (key_of(tree, COUNTED),) if isinstance(under(tree, COUNTED), dict) else ()
    body = at(tree, *root)
    listener = _Listener(Reader(texts))
    run: list[Call] = []  # the calls that the content just before answers
    for i, content in enumerate(items(body, ITEMS)):
        place = (*root, ITEMS, i, "parts")
        if value_in(content, "role") == "model":
            _model(listener, content)
            run = []
        else:
            run = _content(listener, place, content, run)
    # A count of a request inside a request: what is kept of earlier ones hangs on bodies of the usual shape.
    partial = bool(root) or under(body, CACHED) is not None
    tools = (under(tool, DECLARED) for _, tool in entries(at(body, "tools")))
    names = (word_in(each, "name", texts) for declared in tools for _, each in entries(declared))
    model = word_in(body, "model", texts).removeprefix("models/")
    return listener.reader.scene(model, stream=False, tools=names, partial=partial)


def _model(listener: _Listener, content: Json) -> None:
    if not listener.reader.messages or listener.reader.messages[-1].role != "assistant":
        listener.waiting.clear()  # who has not been answered by now will not be
    listener.reader.message("assistant")
    for _, part in entries(value_in(content, "parts")):
        if isinstance(made := under(part, CALL), dict):
            listener.calling(made)


def _content(listener: _Listener, place: Path, content: Json, run: list[Call]) -> list[Call]:
    """What a user or tools say; the calls that are answered in it."""
    reader, parts = listener.reader, value_in(content, "parts")
    blocks = entries(parts)
    responses = {j: held for j, part in blocks if isinstance(held := under(part, RESPONSE), dict)}
    if not responses:
        reader.heard(place, parts, blocks, _source, run, announced=False)
        return []
    reader.message("tool", opens=is_said(text_in(part, "text") for _, part in blocks))
    answered: list[Call] = []
    owner: Call | None = None  # whose images stand beside its response, until somebody speaks
    for j, part in blocks:
        if (response := responses.get(j)) is not None:
            owner = listener.answered(response)
            answered.append(owner)
            _result(reader, (*place, j, key_of(part, RESPONSE)), response, owner)
        elif (source := _source(part, reader.texts)) is not None:
            reader.stands((*place, j), source, at(parts, j - 1), owner)
        elif is_said([text_in(part, "text")]):
            owner = None
    return answered


def _result(reader: Reader, place: Path, response: Block, call: Call) -> None:
    for way, leaf in rescue.strings(response.get("response")):
        reader.said((*place, "response", *way), leaf, call)
    for k, part in entries(response.get("parts")):
        if (source := _source(part, reader.texts)) is not None:
            reader.brought((*place, "parts", k), source, call)


def _source(part: Block, texts: Texts) -> Source | None:
    blob = under(part, DATA)
    if isinstance(data := value_in(blob, "data"), str):
        declared = text_in(blob, key_of(blob, MIME)).strip().lower()
        if declared.startswith("image/"):
            return inline(declared, data, texts)
        return picture_in(data, texts) if declared in ("", "application/octet-stream") else None
    # A file without a type may be anything: a video, most often.
    if (file := under(part, FILE)) is None:
        return None
    if isinstance(uri := under(file, URI), str) and text_in(file, key_of(file, MIME)).startswith("image/"):
        return Link(uri) if _is_public(uri) else Opaque(uri)
    return None


def _is_public(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and not any(f".{host}".endswith(f".{own}") for own in _GOOGLES)


def _recoded(old: Block, mime: str, data: str) -> Block:
    key = key_of(old, DATA)
    blob = old.get(key)
    held = blob if isinstance(blob, dict) else {}
    return {**old, key: {**held, key_of(held, MIME): mime, "data": data}}


def _words(text: str) -> Block:
    return {"text": text}


_STYLES = [
    Dialect(_words, lambda mime, data: {"inlineData": {"mimeType": mime, "data": data}}, _recoded),
    Dialect(_words, lambda mime, data: {"inline_data": {"mime_type": mime, "data": data}}, _recoded),
]


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.tool_images != "native"
    edits = in_place([sight for sight in scene.sights if not sight.held], tree, _STYLES[0])
    held = [sight for sight in scene.sights if sight.held]
    for place, group in groupby(held, key=_response_of):
        brought = list(group)
        dialect = _STYLES[RESPONSE.index(str(place[-1]))]
        if all(sight.within is None and has_pixels(sight) and not hoist for sight in brought):
            edits += in_place(brought, tree, dialect)
            continue
        edits += rebuilt(place, brought, tree, dialect, hoist=hoist)
        leaving = [sight for sight in brought if hoist and has_pixels(sight)]
        beside = (*place[:-2], int(place[-2]) + 1)
        edits += [Insert(beside, nameless(each)) for each in moved(leaving, tree, dialect)]
    return edits


def _response_of(sight: Sight) -> Path:
    """The place of the function response that holds a sight."""
    return sight.place[:_HOLDER] if sight.place[0] == ITEMS else sight.place[: _HOLDER + 1]
