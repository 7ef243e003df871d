"""The OpenAI Responses wire: where images stand in a request, and how their fates are written there.

A conversation is a flat list of items here: what the assistant thinks, says and calls are items of their own, and a
thought must stay directly before what it led to. An output takes images; where an upstream's does not, they move
into a user message behind the run of outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from sightline.model import marks
from sightline.model.edit import Edit, Insert
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Opaque, Source
from sightline.wire.inline import address, pictured
from sightline.wire.lowering import Block, Dialect, by_run, has_pixels, in_place, in_words, moved, result
from sightline.wire.reader import Reader, is_said
from sightline.wire.rescue import announces
from sightline.wire.shape import Texts, at, entries, items, parsed, text_in, value_in, word_in

PATHS = ("/v1/responses", "/responses", "/v1/responses/compact", "/responses/compact")
COUNTS = ("/v1/responses/input_tokens", "/responses/input_tokens")
HEAD = ("tools", "instructions")
ITEMS = "input"

# In a message an image has to name its detail, in an output it need not; this is what is taken where none is named.
_DETAIL: Block = {"detail": "auto"}
_ELSEWHERE = ("previous_response_id", "conversation")  # what names a part of the conversation that OpenAI holds
_LISTS = ("function_call_output", "custom_tool_call_output")  # of the outputs that may be text, those that need not
_FILE = "input_file"
_REMOTE = "mcp_call"  # a call with what came of it, made by the provider itself
_STREAMS = ("stdout", "stderr")  # the texts of what a shell brought
_SPOKEN = ("reasoning", "image_generation_call", "web_search_call", "file_search_call", "code_interpreter_call")


def read(tree: Json, texts: Texts) -> Scene:
    reader = Reader(texts)
    if isinstance(words := at(tree, ITEMS), str):
        reader.message("user", opens=is_said([words]))
    run: list[Call] = []  # the calls of the outputs that stand just before
    announced = False  # … one of which says that images will follow without a word
    offered = [at(tree, "tools")]
    for i, item in enumerate(items(tree, ITEMS)):
        kind = _kind(item)
        if kind == "additional_tools":
            offered.append(value_in(item, "tools"))
        if kind.endswith("_output"):
            run.append(reader.called(item, "call_id"))
            announced = _output(reader, (ITEMS, i, "output"), kind, item, run[-1]) or announced
            continue
        _item(reader, (ITEMS, i, "content"), kind, item, run, announced)
        run, announced = [], False
    partial = any(at(tree, key) is not None for key in _ELSEWHERE)
    model, stream = word_in(tree, "model", texts), at(tree, "stream") is True
    return reader.scene(model, stream=stream, tools=_tools(offered, texts), partial=partial)


def _kind(item: Json) -> str:
    """The type of an item; a message may come without one."""
    return text_in(item, "type") or ("message" if value_in(item, "role") is not None else "")


def _is_output(item: Json) -> bool:
    return _kind(item).endswith("_output")


def _is_call(item: Json) -> bool:
    return _kind(item).endswith("_call") and isinstance(value_in(item, "call_id"), str)


def _is_spoken(item: Json) -> bool:
    return _is_call(item) or _kind(item) in (*_SPOKEN, _REMOTE) or at(item, "role") == "assistant"


def _item(reader: Reader, place: Path, kind: str, item: Json, run: list[Call], announced: bool) -> None:
    if kind.endswith("_call") and _is_call(item):
        reader.message("assistant")
        arguments = parsed(text_in(item, "arguments"), reader.texts)
        reader.calling(word_in(item, "call_id", reader.texts), word_in(item, "name", reader.texts), arguments)
    elif kind == _REMOTE:
        reader.message("assistant")
        own, arguments = word_in(item, "id", reader.texts), parsed(text_in(item, "arguments"), reader.texts)
        reader.calling(own, word_in(item, "name", reader.texts), arguments)
        reader.said((*place[:-1], "output"), text_in(item, "output"), reader.calls[own])
    elif (role := value_in(item, "role")) == "assistant" or kind in _SPOKEN:
        reader.message("assistant")
    elif role == "user" and kind == "message":
        content = value_in(item, "content")
        reader.heard(place, content, entries(content), _source, run, announced=announced)
    else:
        reader.message("other")
        for j, part in entries(value_in(item, "content")):
            if (source := _source(part, reader.texts)) is not None:
                reader.pasted((*place, j), source)


def _output(reader: Reader, place: Path, kind: str, item: Json, call: Call) -> bool:
    """What a tool brought; whether it says that its images stand in the following message."""
    reader.message("tool")
    output = value_in(item, "output")
    if kind == "computer_call_output":
        if isinstance(output, dict) and (source := _source(output, reader.texts)):
            reader.brought(place, source, call, fixed=True)
    elif isinstance(output, str):
        reader.said(place, output, call)
        return announces(output)
    elif kind == "shell_call_output":
        for k, part in entries(output):
            for stream in _STREAMS:
                reader.said((*place, k, stream), text_in(part, stream), call)
        return False
    announced = False
    for k, part in entries(output):
        if (source := _source(part, reader.texts)) is not None:
            reader.brought((*place, k), source, call)
        elif part.get("type") == "input_text":
            reader.said((*place, k, "text"), text_in(part, "text"), call)
        announced = announced or announces(text_in(part, "text"))
    return announced


def _source(part: Block, texts: Texts) -> Source | None:
    kind = part.get("type")
    if kind == _FILE:
        return pictured(part.get("file_data"), texts)
    if kind not in ("input_image", "computer_screenshot"):
        return None
    if isinstance(url := part.get("image_url"), str):
        return address(url, texts)
    if isinstance(reference := part.get("file_id"), str):
        return Opaque(reference)
    return None


def _tools(offered: Sequence[Json], texts: Texts) -> Iterator[str]:
    """The names of the tools: at the top, in items that bring more of them, and inside namespaces.

    A call names what is inside a namespace without it; with it, as other wires write it, one knows whose tool it is.
    """
    for tools in offered:
        for _, tool in entries(tools):
            yield (space := word_in(tool, "name", texts))
            for _, inner in entries(tool.get("tools")):
                yield (name := word_in(inner, "name", texts))
                yield f"{space.rstrip('_')}__{name}"


def _recoded(old: Block, mime: str, data: str) -> Block:
    return {**old, "file_data" if old.get("type") == _FILE else "image_url": f"data:{mime};base64,{data}"}


DIALECT = Dialect(
    words=lambda text: {"type": "input_text", "text": text},
    pixels=lambda mime, data: _recoded({"type": "input_image", **_DETAIL}, mime, data),
    recoded=_recoded,
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.tool_images != "native"
    held = [sight for sight in scene.sights if sight.held and not sight.fixed]
    edits = in_place([sight for sight in scene.sights if not sight.held or sight.fixed], tree, DIALECT)
    said = items(tree, ITEMS)
    leaving: list[Sight] = []
    for message, group in groupby(held, key=lambda sight: sight.message):
        brought, is_text = list(group), _is_text(said[message])
        if is_text:
            edits += in_words(brought, tree, DIALECT)
        else:
            edits += result((ITEMS, message, "output"), brought, tree, DIALECT, hoist=hoist)
        leaving += filter(has_pixels, brought) if hoist or is_text else ()
    order = _call_order(said) if len(leaving) > 1 else {}
    for end, run in by_run(leaving, lambda message: _run_end(message, said)):
        if profile.tool_images == "bridge":
            edits.append(Insert((ITEMS, end), _message("assistant", marks.BRIDGE)))
        shown = moved(_in_call_order(run, order), tree, DIALECT)
        edits.append(Insert((ITEMS, end), _message("user", [_detailed(part) for part in shown])))
    return edits


def _is_text(item: Json) -> bool:
    """Is it an output of texts that must stay such?"""
    kind = _kind(item)
    return kind == "shell_call_output" or (kind not in _LISTS and isinstance(value_in(item, "output"), str))


def _detailed(part: Json) -> Json:
    if isinstance(part, dict) and part.get("type") == "input_image" and part.get("detail") is None:
        return {**part, **_DETAIL}
    return part


def _message(role: str, content: Json) -> Json:
    return {"type": "message", "role": role, "content": content}


def _run_end(message: int, said: Sequence[Json]) -> int:
    """The index just after the run of outputs in which this one stands, or that was called together with it."""
    end = message
    if _kind(said[end]) == _REMOTE:
        end += 1
        spoken = _past(_is_spoken, said, end)
        end = spoken if spoken < len(said) and _is_output(said[spoken]) else end
    return _past(_is_output, said, end)


def _past(passes: Callable[[Json], bool], said: Sequence[Json], start: int) -> int:
    return next((index for index in range(start, len(said)) if not passes(said[index])), len(said))


def _call_order(said: Sequence[Json]) -> dict[str, int]:
    """Of calls with one id the first counts, so that no later one moves what was sent before."""
    order: dict[str, int] = {}
    for item in said:
        if _is_call(item):
            order.setdefault(text_in(item, "call_id"), len(order))
    return order


def _in_call_order(sights: list[Sight], order: Mapping[str, int]) -> list[Sight]:
    return sorted(sights, key=lambda sight: order.get(sight.call.id if sight.call else "", len(order)))
