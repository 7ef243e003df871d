"""The Gemini wire: where images stand in a request, and how their fates are written there.

Fields come in camelCase or, from Python, in snake_case, sometimes both in one block; base64 may be URL-safe. An image
that a tool brought stands inside its function response or, up to Gemini 2.5, beside it in the same content.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import unquote, urlsplit

from sightline.model.edit import Edit, Insert
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Link, Opaque, Source
from sightline.wire import rescue
from sightline.wire.endpoint import Endpoint
from sightline.wire.gemini_names import CACHED, CALL, COUNTED, DATA, DECLARED, FILE, MIME, RESPONSE, URI, key_of, under
from sightline.wire.gemini_response import nameless, rebuilt
from sightline.wire.inline import inline, picture_in
from sightline.wire.lowering import Block, Dialect, has_pixels, in_place, moved
from sightline.wire.reader import Reader, is_said
from sightline.wire.shape import Texts, at, entries, items, text_in, value_in, word_in

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
