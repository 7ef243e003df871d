"""Edits for a request that goes to another model than the client named.

The name of the model changes, and reasoning that the other model has signed or encrypted is removed: a provider rejects
it, or can't read it, when it comes from another model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from sightline.model.facts import Routing
from sightline.model.scene import Edit, Insert, Json, JsonPath, Rebuild, Remove, Replace
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import enumerate_objects, get_at, get_list, get_text, get_value

_model_in_path = re.compile(r"/(?:models|tunedModels)/[^/:?]+?(?=:|%3[Aa])")
_NO_WORDS = "[no words]"  # for a message that was nothing but reasoning: a message must not be empty
_SIGNATURES = ("thoughtSignature", "thought_signature")
_CALLS = ("functionCall", "function_call")
# From its third generation on, Gemini rejects a call without a signature. `_NO_SIGNATURE` is what it accepts instead.
_is_unsigned_model = re.compile(r"(?:models/)?gemini-[12][.-]").match
_NO_SIGNATURE = "skip_thought_signature_validator"


def rewrite_url(wire: str, url: str, routing: Routing) -> str:
    """Return the URL for the model: on Gemini's wire the path names it."""
    if wire != "gemini" or not routing.is_rerouted:
        return url
    name = quote(routing.model.removeprefix("models/"), safe="")
    return _model_in_path.sub(lambda _: f"/models/{name}", url, count=1)


def reroute(wire: str, tree: Json, edits: Sequence[Edit], routing: Routing) -> list[Edit]:
    """Return the edits of a request and those that make it fit for the model that it goes to."""
    renamed = [*edits, *_rename_model(tree, routing)]
    return _CLEANERS[wire](tree, renamed, routing) if routing.foreign_messages else renamed


def _rename_model(tree: Json, routing: Routing) -> list[Edit]:
    old = get_value(tree, "model")
    if not routing.is_rerouted or not isinstance(old, str):  # Gemini's clients name it in the path only
        return []
    lead = "models/" if old.startswith("models/") else ""
    return [Replace(("model",), lead + routing.model.removeprefix(lead))]


def _clean_anthropic(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    changed: list[int] = []
    for index in sorted(routing.foreign_messages):
        place: JsonPath = ("messages", index, "content")
        content = get_at(tree, *place)
        if not isinstance(content, list):
            continue
        kept = [number for number, block in enumerate(content) if not _is_signed_thinking(block)]
        if len(kept) < len(content):
            changed.append(index)
            edits.append(Rebuild(place, (*kept,) if kept else ({"type": "text", "text": _NO_WORDS},)))
    # With thinking enabled, every message of the turn must have its thinking. So it is disabled if any lost it.
    in_turn = (
        any(index > routing.turn_start for index in changed)
        and get_text(get_value(tree, "thinking"), "type") == "enabled"
    )
    return [*edits, *_disable_thinking(tree)] if in_turn else edits


def _is_signed_thinking(block: Json) -> bool:
    kind = get_text(block, "type")
    return kind == "redacted_thinking" or (kind == "thinking" and bool(get_value(block, "signature")))


def _disable_thinking(tree: Json) -> list[Edit]:
    """Return the edits that turn thinking off, and drop the options that need it."""
    edits: list[Edit] = [Replace(("thinking",), {"type": "disabled"})]
    managed = get_at(tree, "context_management", "edits")
    kept = [
        index for index, each in enumerate_objects(managed) if not get_text(each, "type").startswith("clear_thinking")
    ]
    if isinstance(managed, list) and len(kept) < len(managed):
        edits.append(Rebuild(("context_management", "edits"), tuple(kept)))
    return edits


def _clean_chat(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    for index in sorted(routing.foreign_messages):
        message = get_at(tree, "messages", index)
        if any(_is_signed_detail(detail) for _, detail in enumerate_objects(get_value(message, "reasoning_details"))):
            edits.append(Remove(("messages", index, "reasoning_details")))
        for number, call in enumerate_objects(get_value(message, "tool_calls")):
            place: JsonPath = ("messages", index, "tool_calls", number, "extra_content", "google")
            edits += _remove_signature(get_at(call, "extra_content", "google"), place, routing, is_call=True)
    return edits


def _is_signed_detail(detail: Json) -> bool:
    return get_text(detail, "type") == "reasoning.encrypted" or bool(get_value(detail, "signature"))


def _clean_responses(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    items = get_list(tree, "input")
    removed = {index for index in routing.foreign_messages if _is_encrypted(items[index])}
    for index in sorted(removed):
        following = index + 1
        # An item that followed reasoning must not keep its id: the provider would look for that reasoning.
        while following in routing.foreign_messages and get_text(items[following], "type") != "reasoning":
            item = items[following]
            if isinstance(item, dict) and "id" in item and len(item) > 1:
                edits.append(Remove(("input", following, "id")))
            following += 1
    return _remove_elements("input", items, removed, edits) if removed else edits


def _is_encrypted(item: Json) -> bool:
    return get_text(item, "type") == "reasoning" and bool(get_value(item, "encrypted_content"))


def _remove_elements(key: str, old: Sequence[Json], removed: set[int], edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits with one more effect: some elements of a list are removed.

    All edits of that list and below it become one `Rebuild`, because an element can't be removed by an edit of its own.
    """
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
        if index == len(old) or index in removed:
            continue
        element = graft(old[index], below[index]) if index in below else index
        elements += [element] if isinstance(element, int | dict) else []
    return [*(edit for edit in edits if edit.place[0] != key), Rebuild((key,), tuple(elements))]


def _clean_gemini(tree: Json, edits: list[Edit], routing: Routing) -> list[Edit]:
    for index in sorted(routing.foreign_messages):
        for number, part in enumerate_objects(get_at(tree, "contents", index, "parts")):
            is_call = any(key in part for key in _CALLS)
            edits += _remove_signature(part, ("contents", index, "parts", number), routing, is_call=is_call)
    return edits


def _remove_signature(holder: Json, place: JsonPath, routing: Routing, *, is_call: bool) -> list[Edit]:
    keys = [key for key in _SIGNATURES if isinstance(holder, dict) and key in holder]
    if not keys:
        return []
    if is_call and not _is_unsigned_model(routing.model):
        return [Replace((*place, key), _NO_SIGNATURE) for key in keys]
    if isinstance(holder, dict) and len(holder) == len(keys):  # it is nothing but a signature
        return [Replace(place, {"text": ""} if place[0] == "contents" else {})]
    return [Remove((*place, key)) for key in keys]


_CLEANERS: Mapping[str, Callable[[Json, list[Edit], Routing], list[Edit]]] = {
    "anthropic": _clean_anthropic,
    "openai_chat": _clean_chat,
    "openai_responses": _clean_responses,
    "gemini": _clean_gemini,
}
REROUTED_WIRES = frozenset(_CLEANERS)
