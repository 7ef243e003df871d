"""The OpenAI Responses wire: where images stand in a request, and how their fates are written there.

A conversation is a flat list of items here: what the assistant thinks, says and calls are items of their own, and a
thought must stay directly before what it led to. An output takes images; where an upstream's does not, they move
into a user message behind the run of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from sightline.model import marks
from sightline.model.edit import Edit, Insert, Replace
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Opaque, Source
from sightline.wire.inline import address
from sightline.wire.lowering import Block, Dialect, block, has_pixels, in_place, moved, result
from sightline.wire.reader import Reader, is_said
from sightline.wire.rescue import announces, worded
from sightline.wire.shape import Texts, at, entries, items, parsed, text_in, word_in

PATHS = ("/v1/responses", "/responses", "/v1/responses/compact", "/responses/compact")
COUNTS = ("/v1/responses/input_tokens", "/responses/input_tokens")
HEAD = ("tools", "instructions")
ITEMS = "input"

# In a message an image has to name its detail, in an output it need not; this is what is taken where none is named.
_DETAIL: Block = {"detail": "auto"}
_ELSEWHERE = ("previous_response_id", "conversation")  # what names a part of the conversation that OpenAI holds
_LISTS = ("function_call_output", "custom_tool_call_output")  # of the outputs that may be text, those that need not
_SPOKEN = ("reasoning", "image_generation_call", "web_search_call", "file_search_call", "code_interpreter_call")


def read(tree: Json, texts: Texts) -> Scene:
    reader = Reader(texts)
    if isinstance(words := at(tree, ITEMS), str):
        reader.message("user", opens=is_said([words]))
    run: list[Call] = []  # the calls of the outputs that stand just before
    announced = False  # … one of which says that images will follow without a word
    for i, item in enumerate(items(tree, ITEMS)):
        if _is_output(item):
            announced = _output(reader, (ITEMS, i, "output"), item) or announced
            run.append(reader.called(item, "call_id"))
            continue
        _item(reader, (ITEMS, i, "content"), item, run, announced)
        run, announced = [], False
    partial = any(at(tree, key) is not None for key in _ELSEWHERE)
    model, stream = word_in(tree, "model", texts), at(tree, "stream") is True
    return reader.scene(model, stream=stream, tools=_tools(tree, texts), partial=partial)


def _kind(item: Json) -> str:
    """Messages may come without a type."""
    return text_in(item, "type") or ("message" if at(item, "role") is not None else "")


def _is_output(item: Json) -> bool:
    return _kind(item).endswith("_output")


def _is_call(item: Json) -> bool:
    return _kind(item).endswith("_call") and isinstance(at(item, "call_id"), str)


def _item(reader: Reader, place: Path, item: Json, run: list[Call], announced: bool) -> None:
    if _is_call(item):
        reader.message("assistant")
        arguments = parsed(text_in(item, "arguments"), reader.texts)
        reader.calling(word_in(item, "call_id", reader.texts), word_in(item, "name", reader.texts), arguments)
    elif _kind(item) in _SPOKEN or at(item, "role") == "assistant":
        reader.message("assistant")
    elif _kind(item) == "message" and at(item, "role") == "user":
        reader.heard(place, at(item, "content"), _images(item, reader.texts), run, announced=announced)
    else:
        reader.message("other")
        for j, source in _images(item, reader.texts):
            reader.pasted((*place, j), source)


def _output(reader: Reader, place: Path, item: Json) -> bool:
    """What a tool brought; whether it says that its images stand in the following message."""
    reader.message("tool")
    call = reader.called(item, "call_id")
    output = at(item, "output")
    if _kind(item) == "computer_call_output":
        if isinstance(output, dict) and (source := _source(output, reader.texts)):
            reader.brought(place, source, call, fixed=True)
    elif isinstance(output, str):
        reader.said(place, output, call)
        return announces(output)
    for k, part in entries(output):
        if (source := _source(part, reader.texts)) is not None:
            reader.brought((*place, k), source, call)
        elif part.get("type") == "input_text":
            reader.said((*place, k, "text"), text_in(part, "text"), call)
    return any(announces(text_in(part, "text")) for _, part in entries(output))


def _images(item: Json, texts: Texts) -> list[tuple[int, Source]]:
    found = ((j, _source(part, texts)) for j, part in entries(at(item, "content")))
    return [(j, source) for j, source in found if source is not None]


def _source(part: Block, texts: Texts) -> Source | None:
    if part.get("type") not in ("input_image", "computer_screenshot"):
        return None
    match part:
        case {"image_url": str(url)}:
            return address(url, texts)
        case {"file_id": str(reference)}:
            return Opaque(reference)
        case _:
            return None


def _tools(tree: Json, texts: Texts) -> Iterator[str]:
    """The names of the tools: at the top, in items that bring more of them, and inside namespaces."""
    brought = (item.get("tools") for _, item in entries(at(tree, ITEMS)) if _kind(item) == "additional_tools")
    for tools in (at(tree, "tools"), *brought):
        for _, tool in entries(tools):
            for each in (tool, *(inner for _, inner in entries(tool.get("tools")))):
                yield word_in(each, "name", texts)


def _recoded(old: Block, mime: str, data: str) -> Block:
    return {**old, "image_url": f"data:{mime};base64,{data}"}


DIALECT = Dialect(
    words=lambda text: {"type": "input_text", "text": text},
    pixels=lambda mime, data: _recoded({"type": "input_image", **_DETAIL}, mime, data),
    recoded=_recoded,
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.tool_images != "native"
    held = [sight for sight in scene.sights if sight.held and not sight.fixed]
    edits = in_place([sight for sight in scene.sights if not sight.held or sight.fixed], tree, DIALECT)
    for message, group in groupby(held, key=lambda sight: sight.message):
        if _is_text(message, tree):
            edits.append(_in_words((ITEMS, message, "output"), list(group), tree))
        else:
            edits += result((ITEMS, message, "output"), list(group), tree, DIALECT, hoist=hoist)
    leaving = [sight for sight in held if (hoist or _is_text(sight.message, tree)) and has_pixels(sight)]
    for end, run in groupby(leaving, key=lambda sight: _run_end(sight, tree)):
        if profile.tool_images == "bridge":
            edits.append(Insert((ITEMS, end), _message("assistant", marks.BRIDGE)))
        shown = moved(_in_call_order(list(run), tree), tree, DIALECT)
        edits.append(Insert((ITEMS, end), _message("user", [_detailed(part) for part in shown])))
    return edits


def _is_text(message: int, tree: Json) -> bool:
    """Is an output a text that must stay one?"""
    item = at(tree, ITEMS, message)
    return _kind(item) not in _LISTS and isinstance(at(item, "output"), str)


def _in_words(place: Path, sights: list[Sight], tree: Json) -> Edit:
    """A text whose images are gone from it: what stands for each is said in its very place."""
    said = (marks.MARKER if has_pixels(sight) else text_in(block(sight, tree, DIALECT), "text") for sight in sights)
    words = {sight.within or (): each for sight, each in zip(sights, said, strict=True)}
    return Replace(place, worded(text_in(at(tree, *place[:-1]), "output"), words))


def _detailed(part: Json) -> Json:
    if isinstance(part, dict) and part.get("type") == "input_image" and part.get("detail") is None:
        return {**part, **_DETAIL}
    return part


def _message(role: str, content: Json) -> Json:
    return {"type": "message", "role": role, "content": content}


def _run_end(sight: Sight, tree: Json) -> int:
    """The index just after the run of outputs in which a sight stands."""
    end = sight.message
    while _is_output(at(tree, ITEMS, end)):
        end += 1
    return end


def _in_call_order(sights: list[Sight], tree: Json) -> list[Sight]:
    made = (item for item in items(tree, ITEMS)[: sights[0].message] if _is_call(item))
    order = {text_in(item, "call_id"): index for index, item in enumerate(made)}
    return sorted(sights, key=lambda sight: order.get(sight.call.id if sight.call else "", len(order)))
