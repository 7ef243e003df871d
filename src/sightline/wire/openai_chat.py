"""The OpenAI Chat Completions wire: where images stand in a request, and how their fates are written there.

A tool message of this wire carries text alone. An image in one moves into a user message of its own, after the
last tool message of the run (never between two of them: each call must be answered before anybody else speaks).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import assert_never

from sightline.model.edit import Edit, Insert, Replace
from sightline.model.fate import Fate, Refitted, Refused, Shown, Told
from sightline.model.fence import one_line
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Scene, Sight
from sightline.model.source import Inline, Opaque, Source
from sightline.wire.inline import address
from sightline.wire.shape import TextOf, at, bytes_of, entries, filename_in, text_in, word_in

PATHS = ("/v1/chat/completions", "/chat/completions")
MARKER = "[image shown in the following message]"
_LONGEST_ARGUMENTS = 65536
BRIDGE = "I will look at the images that the tools brought."


def read(tree: Json, text_of: TextOf) -> Scene:
    sights: list[Sight] = []
    calls: dict[str, tuple[Call, str | None]] = {}
    for i, message in entries(at(tree, "messages")):
        for _, made in entries(message.get("tool_calls")):
            call = Call(word_in(made, "id", text_of), word_in(made.get("function"), "name", text_of))
            calls[call.id] = call, filename_in(_arguments(made, text_of), bytes_of)
        role = message.get("role")
        if role == "assistant":
            continue
        for j, part in entries(message.get("content")):
            if part.get("type") != "image_url" or (source := _source(part, text_of)) is None:
                continue
            place = ("messages", i, "content", j)
            if role == "tool":
                name = word_in(message, "tool_call_id", text_of)
                call, filename = calls.get(name, (Call(name), None))
                sights.append(Sight(place, source, "tool", call, filename))
            else:
                sights.append(Sight(place, source, "user"))
    return Scene(word_in(tree, "model", text_of), tuple(sights), at(tree, "stream") is True)


def _arguments(call: dict[str, Json], text_of: TextOf) -> Json:
    """Arguments are JSON inside a string of JSON; long ones hold a file, not its name."""
    text = text_of(text_in(call.get("function"), "arguments"))
    if len(text) > _LONGEST_ARGUMENTS:
        return None
    try:
        found: Json = json.loads(bytes(text) or b"null")
    except (ValueError, RecursionError):
        return None
    return found


def _source(part: dict[str, Json], text_of: TextOf) -> Source | None:
    match part.get("image_url"):
        case str(url) | {"url": str(url)}:
            return address(url, text_of)
        case {"file_id": str(reference)}:
            return Opaque(reference)
        case _:
            return None


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoisted = [s for s in scene.sights if s.role == "tool" and profile.tool_images != "native" and _has_pixels(s)]
    tool_messages = {sight.place[:2] for sight in hoisted}
    edits: list[Edit] = [
        Replace(sight.place, part)
        for sight in scene.sights
        if sight.place[:2] not in tool_messages and (part := _part(sight, tree)) is not None
    ]
    edits += [Replace((*place, "content"), _emptied(place, scene, hoisted, tree)) for place in sorted(tool_messages)]
    for end, run in groupby(hoisted, key=lambda sight: _run_end(sight, tree)):
        if profile.tool_images == "bridge":
            edits.append(Insert(("messages", end), {"role": "assistant", "content": BRIDGE}))
        edits.append(Insert(("messages", end), {"role": "user", "content": _shown(run, tree)}))
    return edits


def _has_pixels(sight: Sight) -> bool:
    return isinstance(sight.fate, Shown | Refitted)


def _part(sight: Sight, tree: Json) -> Json:
    """The part that takes the place of a sight's own; None where it stays as it is."""
    part = at(tree, *sight.place)
    assert isinstance(part, dict)
    fate: Fate | None = sight.fate
    match fate:
        case None | Shown(mime=None):
            return None
        case Shown(mime=mime):
            assert isinstance(sight.source, Inline)
            url = at(part, "image_url", "url") or part.get("image_url")
            assert isinstance(url, str)
            return _with_url(part, f"data:{mime};base64,{url.partition(',')[2]}")
        case Refitted(image=image):
            return _with_url(part, image.data_url)
        case Told(words=words) | Refused(words=words):
            return _marked({"type": "text", "text": words}, part)
        case _:
            assert_never(fate)


def _with_url(part: dict[str, Json], url: str) -> Json:
    old = part.get("image_url")
    return {**part, "image_url": {**old, "url": url} if isinstance(old, dict) else url}


def _marked(replacement: dict[str, Json], part: dict[str, Json]) -> dict[str, Json]:
    """Some compatible providers take a cache mark on a part: it stays with whatever stands there."""
    return {**replacement, "cache_control": part["cache_control"]} if "cache_control" in part else replacement


def _emptied(place: tuple[str | int, ...], scene: Scene, hoisted: list[Sight], tree: Json) -> Json:
    """A tool message's content without its pixels: what else it held, then one marker."""
    leaving = {sight.place[3]: sight for sight in hoisted if sight.place[:2] == place}
    staying = {sight.place[3]: sight for sight in scene.sights if sight.place[:2] == place}
    content = at(tree, *place, "content")
    assert isinstance(content, list)
    kept: list[Json] = []
    marker: dict[str, Json] = {"type": "text", "text": MARKER}
    for j, part in enumerate(content):
        if j in leaving:
            assert isinstance(part, dict)
            marker = _marked(marker, part)
        elif j in staying:
            kept.append(_part(staying[j], tree) or part)
        else:
            kept.append(part)
    return [*kept, marker]


def _run_end(sight: Sight, tree: Json) -> int:
    """The index just after the run of tool messages in which a sight stands."""
    end = sight.place[1]
    assert isinstance(end, int)
    while at(tree, "messages", end, "role") == "tool":
        end += 1
    return end


def _shown(run: Iterable[Sight], tree: Json) -> Json:
    """The content of the user message for one run: images in the order of their calls, each named."""
    sights = list(run)
    order = _call_order(sights[0], tree)
    content: list[Json] = []
    for sight in sorted(sights, key=lambda s: order.get(s.call.id if s.call else "", len(order))):
        call = sight.call or Call("")
        named = f" ({one_line(call.name)})" if call.name else ""
        words = f"[image from the tool call {one_line(call.id)}{named}]"
        shown = _part(sight, tree) or at(tree, *sight.place)
        assert isinstance(shown, dict)
        # The cache mark stays behind, on the marker: it says where the client's own prefix ends.
        bare = {key: value for key, value in shown.items() if key != "cache_control"}
        content += [{"type": "text", "text": words}, bare]
    return content


def _call_order(sight: Sight, tree: Json) -> dict[str, int]:
    start = sight.place[1]
    assert isinstance(start, int)
    while start > 0 and at(tree, "messages", start, "role") == "tool":
        start -= 1
    made = entries(at(tree, "messages", start, "tool_calls"))
    return {text_in(call, "id"): index for index, call in made}
