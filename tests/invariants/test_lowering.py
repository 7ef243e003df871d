"""Lowering keeps a conversation intact, whatever it looks like and whatever fates its images get."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import SHOWN_BELOW
from sightline.model.scene import Fate, Refitted, Shown
from sightline.wire import ANTHROPIC, OPENAI_CHAT
from tests.invariants.conversations import Conversation, chats, fates, talks
from tests.requirements import requirement
from tests.wire.bodies import HOISTING, SEEING, body, lower_body, read


def drawn(talk: Conversation, data: st.DataObject) -> list[Fate]:
    return data.draw(fates(len(talk.payloads)), label="fates")


def have_pixels(talk: Conversation, met: Sequence[Fate]) -> list[str]:
    """Return the payloads that must be in the body, in order."""
    told = zip(talk.payloads, met, strict=True)
    return [_payload(text, fate) for text, fate in told if isinstance(fate, Shown | Refitted)]


def _payload(text: str, fate: Fate) -> str:
    return "cmVmaXR0ZWQ=" if isinstance(fate, Refitted) else text


def pictures(parts: Any) -> list[str]:
    """Return the payloads of a list of parts or blocks."""
    if not isinstance(parts, list):
        return []
    found = []
    for each in parts:
        match each:
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                found.append(url.partition(",")[2])
            case {"type": "image", "source": {"data": str(data)}}:
                found.append(data)
            case {"type": "tool_result", "content": inner}:
                found += pictures(inner)
    return found


def runs(messages: list[Any]) -> Iterator[tuple[list[str], list[Any], Any]]:
    """Yield each assistant message's calls, the tool messages after it, and the message after those."""
    for index, message in enumerate(messages):
        if calls := message.get("tool_calls"):
            end = index + 1
            while end < len(messages) and messages[end]["role"] == "tool":
                end += 1
            following = messages[end] if end < len(messages) else {}
            yield [call["id"] for call in calls], messages[index + 1 : end], following


@requirement("hoist.after_run", "hoist.parallel", "hoist.one_marker", "lower.no_text", "hoist.named")
@given(chats(), st.data())
def test_chat_images_follow_the_results_in_call_order(talk: Conversation, data: st.DataObject) -> None:
    met = drawn(talk, data)
    after: Any = lower_body(OPENAI_CHAT, body(*talk.messages), met)
    before_runs, after_runs = list(runs(talk.messages)), list(runs(after["messages"]))
    fate_of = dict(zip(talk.payloads, met, strict=True))
    for (calls, old, _), (same_calls, new, following) in zip(before_runs, after_runs, strict=True):
        assert same_calls == calls
        assert [m["tool_call_id"] for m in new] == [m["tool_call_id"] for m in old]
        moved: dict[str, list[str]] = {}
        for was, now in zip(old, new, strict=True):
            pixels = [_payload(p, fate_of[p]) for p in pictures(was["content"]) if has_pixels(fate_of[p])]
            moved[was["tool_call_id"]] = pixels
            assert pictures(now["content"]) == []
            assert json.dumps(now).count(SHOWN_BELOW) == (1 if pixels else 0)
        expected = [payload for call in calls for payload in moved[call]]
        if expected:
            assert following["role"] == "user"
            assert pictures(following["content"]) == expected
            named = [p["text"] for p in following["content"] if p["type"] == "text"]
            assert named == [f"[image from the tool call {call} (read)]" for call in calls for _ in moved[call]]


def has_pixels(fate: Fate) -> bool:
    return isinstance(fate, Shown | Refitted)


@given(chats(), st.data())
def test_chat_lowering_adds_only_image_messages(talk: Conversation, data: st.DataObject) -> None:
    after: Any = lower_body(OPENAI_CHAT, body(*talk.messages), drawn(talk, data))
    stayed = [m for m in after["messages"] if "[image from the tool call" not in json.dumps(m)]
    assert [speaker(m) for m in stayed] == [speaker(m) for m in talk.messages]
    for was, now in zip(talk.messages, stayed, strict=True):
        if not pictures(was.get("content")):
            assert now == was


def speaker(message: Any) -> tuple[Any, ...]:
    return message["role"], message.get("tool_call_id"), message.get("tool_calls")


@given(chats(), st.data())
def test_chat_pixels_are_shown_exactly_once(talk: Conversation, data: st.DataObject) -> None:
    met = drawn(talk, data)
    after: Any = lower_body(OPENAI_CHAT, body(*talk.messages), met)
    shown = [payload for m in after["messages"] for payload in pictures(m.get("content"))]
    assert sorted(shown) == sorted(have_pixels(talk, met))


@requirement("hoist.idempotent")
@given(chats(), st.data())
def test_chat_lowering_twice_changes_nothing(talk: Conversation, data: st.DataObject) -> None:
    once = lower_body(OPENAI_CHAT, body(*talk.messages), drawn(talk, data))
    again = read(OPENAI_CHAT, once)
    assert not any(sight.is_in_tool_result for sight in again.scene.sights)
    assert lower_body(OPENAI_CHAT, once, [Shown()] * len(again.scene.sights), HOISTING) == once


@requirement("lower.native")
@given(talks(), st.data())
def test_messages_lowering_keeps_every_block_in_its_place(talk: Conversation, data: st.DataObject) -> None:
    met = drawn(talk, data)
    after: Any = lower_body(ANTHROPIC, body(*talk.messages), met, SEEING)
    assert [outline(m) for m in after["messages"]] == [outline(m) for m in talk.messages]
    assert [p for m in after["messages"] for p in pictures(m["content"])] == have_pixels(talk, met)
    again = read(ANTHROPIC, after)
    assert lower_body(ANTHROPIC, after, [Shown()] * len(again.scene.sights), SEEING) == after


def outline(value: Any) -> Any:
    """Return a message without the content of images and of the texts that replace them."""
    match value:
        case {"type": "image" | "text"}:
            return "image or words"
        case dict():
            return {key: outline(each) for key, each in value.items()}
        case list():
            return [outline(each) for each in value]
        case _:
            return value
