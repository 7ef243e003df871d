"""A request for another model than the client named: its name, and no reasoning that only its author can read.

Providers sign or encrypt what a model thought, and refuse it, or take it for noise, when it comes to another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.rules import Routing
from sightline.model.scene import Json, Path
from sightline.wire.jsonedits import graft
from sightline.wire.shape import at, entries, items, text_in, value_in

_in_path = re.compile(r"/(?:models|tunedModels)/[^/:?]+?(?=:|%3[Aa])")
_SILENT = "[no words]"  # where a message was nothing but thoughts: none may be empty
_SIGNATURES = ("thoughtSignature", "thought_signature")
_CALLS = ("functionCall", "function_call")
# From the third generation on Gemini refuses a call without a signature, but for one that says that there is none.
_old = re.compile(r"(?:models/)?gemini-[12][.-]").match
_UNSIGNED = "skip_thought_signature_validator"


def address(wire: str, url: str, routing: Routing) -> str:
    """Where it is sent: on Gemini's wire the model stands in the path."""
    if wire != "gemini" or not routing.elsewhere:
        return url
    name = quote(routing.model.removeprefix("models/"), safe="")
    return _in_path.sub(lambda _: f"/models/{name}", url, count=1)


def routed(wire: str, tree: Json, edits: Sequence[Edit], routing: Routing) -> list[Edit]:
    """The edits of a request, and those that make it one for the model it goes to."""
    done = [*edits, *_named(tree, routing)]
    return _WITHOUT[wire](tree, done, routing) if routing.strangers else done


def _named(tree: Json, routing: Routing) -> list[Edit]:
    old = value_in(tree, "model")
    if not routing.elsewhere or not isinstance(old, str):  # where it stands in the path, most say it there alone
        return []
    lead = "models/" if old.startswith("models/") else ""
    return [Replace(("model",), lead + routing.model.removeprefix(lead))]


def _anthropic(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    left: list[int] = []
    for index in sorted(routing.strangers):
        place: Path = ("messages", index, "content")
        content = at(tree, *place)
        if not isinstance(content, list):
            continue
        kept = [number for number, block in enumerate(content) if not _is_sealed(block)]
        if len(kept) < len(content):
            left.append(index)
            edits.append(Rebuild(place, (*kept,) if kept else ({"type": "text", "text": _SILENT},)))
    # Whoever is told to think in a turn must have thought in all of it.
    amid = any(index > routing.turn for index in left) and text_in(value_in(tree, "thinking"), "type") == "enabled"
    return [*edits, *_thoughtless(tree)] if amid else edits


def _is_sealed(block: Json) -> bool:
    kind = text_in(block, "type")
    return kind == "redacted_thinking" or (kind == "thinking" and bool(value_in(block, "signature")))


def _thoughtless(tree: Json) -> list[Edit]:
    """Without thinking, and without what is only for those who think."""
    edits: list[Edit] = [Replace(("thinking",), {"type": "disabled"})]
    managed = at(tree, "context_management", "edits")
    kept = [index for index, each in entries(managed) if not text_in(each, "type").startswith("clear_thinking")]
    if isinstance(managed, list) and len(kept) < len(managed):
        edits.append(Rebuild(("context_management", "edits"), tuple(kept)))
    return edits


def _chat(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    for index in sorted(routing.strangers):
        message = at(tree, "messages", index)
        if any(_is_secret(detail) for _, detail in entries(value_in(message, "reasoning_details"))):
            edits.append(Remove(("messages", index, "reasoning_details")))
        for number, call in entries(value_in(message, "tool_calls")):
            place: Path = ("messages", index, "tool_calls", number, "extra_content", "google")
            edits += _unsigned(at(call, "extra_content", "google"), place, routing, called=True)
    return edits


def _is_secret(detail: Json) -> bool:
    return text_in(detail, "type") == "reasoning.encrypted" or bool(value_in(detail, "signature"))


def _responses(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    said = items(tree, "input")
    gone = {index for index in routing.strangers if _is_encrypted(said[index])}
    for index in sorted(gone):
        following = index + 1
        # What a thought led to is known by its id to have come with one.
        while following in routing.strangers and text_in(said[following], "type") != "reasoning":
            item = said[following]
            if isinstance(item, dict) and "id" in item and len(item) > 1:
                edits.append(Remove(("input", following, "id")))
            following += 1
    return _without("input", said, gone, edits) if gone else edits


def _is_encrypted(item: Json) -> bool:
    return text_in(item, "type") == "reasoning" and bool(value_in(item, "encrypted_content"))


def _without(key: str, old: Sequence[Json], gone: Iterable[int], edits: Sequence[Edit]) -> list[Edit]:
    """The edits, after which some elements of a list are gone, too: those of the list in one with all within it."""
    leaving = set(gone)
    below: dict[int | str, list[Edit]] = {}
    added: dict[int | str, list[Json]] = {}
    for edit in edits:
        if edit.place[0] != key:
            continue
        if isinstance(edit, Insert) and len(edit.place) == 2:
            added.setdefault(edit.place[1], []).append(edit.value)
        else:
            below.setdefault(edit.place[1], []).append(replace(edit, place=edit.place[2:]))
    elements: list[int | dict[str, Json]] = []
    for index in range(len(old) + 1):
        elements += [each for each in added.get(index, ()) if isinstance(each, dict)]
        if index == len(old) or index in leaving:
            continue
        made = graft(old[index], below[index]) if index in below else index
        elements += [made] if isinstance(made, int | dict) else []
    return [*(edit for edit in edits if edit.place[0] != key), Rebuild((key,), tuple(elements))]


def _gemini(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    for index in sorted(routing.strangers):
        for number, part in entries(at(tree, "contents", index, "parts")):
            called = any(key in part for key in _CALLS)
            edits += _unsigned(part, ("contents", index, "parts", number), routing, called=called)
    return edits


def _unsigned(holder: Json, place: Path, routing: Routing, *, called: bool) -> list[Edit]:
    held = [key for key in _SIGNATURES if isinstance(holder, dict) and key in holder]
    if not held:
        return []
    if called and not _old(routing.model):
        return [Replace((*place, key), _UNSIGNED) for key in held]
    if isinstance(holder, dict) and len(holder) == len(held):  # it was nothing but a signature
        return [Replace(place, {"text": ""} if place[0] == "contents" else {})]
    return [Remove((*place, key)) for key in held]


_WITHOUT: Mapping[str, Callable[[Json, list[Edit], Routing], list[Edit]]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _gemini,
}
WIRES = frozenset(_WITHOUT)
