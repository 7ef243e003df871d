"""Collects what a receipt keeps of a request: references into its parsed body, which are read later.

This runs for every request with images, so it copies only the beginning of texts, and hashes nothing:
`TraceParts.build` does, in the store's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from sightline.engine.requests import Reading
from sightline.model.facts import ConversationHistory, Facts, RecallHistory
from sightline.model.records import format_pointer
from sightline.model.request_trace import MAX_PLACES, EditedPlace, RequestTrace, TraceParts
from sightline.model.scene import Edit, Insert, Json, JsonPath, Rebuild, Remove, Replace, Retired, Scene
from sightline.wire.json_edits import WrittenLabel
from sightline.wire.json_tree import get_at, get_list

_MAX_STRING = 8192  # characters of a value that is kept until the receipt is written
_MAX_ITEMS = 32  # of a list or an object in it


def collect_trace(reading: Reading, scene: Scene, edits: Sequence[Edit], facts: Facts) -> TraceParts:
    """Return what the receipt of a request keeps besides the fates of its images."""
    opening = [message.opens_turn for message in scene.messages]
    turns = opening.count(True)
    first = opening.index(True) if turns else 0
    messages = get_list(reading.tree, reading.wire.messages_key)
    sent_before = scene.count_sent_messages()
    history = facts.get(RecallHistory(), ConversationHistory)
    known = history if isinstance(history, ConversationHistory) else None
    is_cold = known is not None and len(opening) - 1 in known.cold_messages
    retired = {s.place for s in scene.sights if type(s.fate) is Retired and s.fate.message >= sent_before}
    opened = messages[first] if first < len(messages) else None
    trace = RequestTrace(
        "",
        known.chain if known else "",
        turns,
        len(opening),
        0 if is_cold else sent_before,
        known.head_tokens + sum(known.tokens) if known else None,
    )
    new = _list_new_edits(edits, reading, sent_before, retired)
    return TraceParts(shrink_value(opened) if reading.heavy else opened, new, trace)


def _list_new_edits(
    edits: Sequence[Edit], reading: Reading, sent_before: int, retired: AbstractSet[JsonPath]
) -> list[EditedPlace | tuple[str, Json, Json]]:
    """Return the edits of new messages, and those that retire images now.

    Other edits of earlier messages are in the receipts of earlier requests.
    """
    key = reading.wire.messages_key
    found: list[EditedPlace | tuple[str, Json, Json]] = []
    for edit in edits:
        place = edit.place
        if place not in retired and (key not in place or _find_message(edit, place.index(key)) < sent_before):
            continue
        if type(edit) is Insert and type(edit.value) is WrittenLabel:
            found.append(EditedPlace(format_pointer(place), "", edit.value.json))
        else:
            before, after = _find_values(edit, reading.tree)
            found.append((format_pointer(place), shrink_value(before), shrink_value(after)))
        if len(found) == MAX_PLACES:
            break
    return found


def shrink_value(value: Json) -> Json:
    """Return the beginning of a value: receipts wait in memory until they are written, and must not hold images."""
    if value is None:
        return None
    if isinstance(value, str):
        return value[:_MAX_STRING]
    if isinstance(value, dict):
        items = value.items() if len(value) <= _MAX_ITEMS else islice(value.items(), _MAX_ITEMS)
        return {key: shrink_value(each) for key, each in items}
    return [shrink_value(each) for each in value[:_MAX_ITEMS]] if isinstance(value, list) else value


def _find_message(edit: Edit, at: int) -> int:
    """Return the index of the first message that an edit changes."""
    if len(edit.place) > at + 1:
        index = edit.place[at + 1]
        return index if isinstance(index, int) else 0
    if isinstance(edit, Rebuild):  # of the list of messages: those before the first new element stay
        return next((i for i, element in enumerate(edit.elements) if not isinstance(element, int)), 0)
    return 0


def _find_values(edit: Edit, tree: Json) -> tuple[Json, Json]:
    """Return the changed values before and after an edit: of a list, only the elements that are replaced."""
    match edit:
        case Insert(value=value):
            return None, value
        case Replace(place=place, value=value):
            return get_at(tree, *place), value
        case Remove(place=place):
            return get_at(tree, *place), None
        case Rebuild(place=place, elements=elements):
            present = get_at(tree, *place)
            kept = {element for element in elements if isinstance(element, int)}
            old = [each for index, each in enumerate(present) if index not in kept] if isinstance(present, list) else []
            return list(old) or None, [each for each in elements if isinstance(each, dict)]
