"""One request body through the whole pipeline: what a proxy would send on, and why."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast, final

from sightline.api.results import Refused
from sightline.engine import Engine, Reading
from sightline.engine import Prepared as Done
from sightline.engine.images import probed
from sightline.model.facts import Facts
from sightline.model.fate import Shown
from sightline.model.image import Picture
from sightline.model.profile import Profile, WireName
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Json, Scene, Sight
from sightline.model.source import Inline
from sightline.model.upstream import Upstream, Visitor
from sightline.passes.label import label
from sightline.runtime import Runtime, shared_runtime
from sightline.settings import Settings, find, load
from sightline.settings.upstreams import owner, reached, receiver
from sightline.vision.bridge import both, wait
from sightline.wire import GEMINI, WIRES
from sightline.wire.codec import Codec
from sightline.wire.contents import CONTENTS
from sightline.wire.jsonedits import graft
from sightline.wire.shape import Whole, at, entries

_ALL: tuple[Codec, ...] = (*WIRES, *CONTENTS)
CODECS: Mapping[str, Codec] = {each.name: each for each in _ALL}

# The parts of a message that only one shape has.
_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("tool-call", "tool-result", "file"), "model_message"),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking"), "anthropic"),
    **dict.fromkeys(("input_text", "input_image", "input_file", "output_text"), "openai_responses"),
    **dict.fromkeys(("image_url", "input_audio"), "openai_chat"),
}


def codec(name: str | None, body: object) -> Codec | Refusal:
    """The one of this name; without a name, the one whose shape the body has."""
    if name is None and isinstance(body, bytes | bytearray):
        return Refusal(
            "invalid_input", "bytes are not looked into to find their wire", f"name one of {', '.join(CODECS)}"
        )
    found = CODECS.get(recognised(body) if name is None else name)
    if found is None:
        return Refusal("invalid_input", f"there is no wire {name!r:.60}", f"one of {', '.join(CODECS)}")
    return found


def recognised(body: object) -> str:
    """Messages that nothing tells apart are those of Chat Completions."""
    for key, name in (("contents", "gemini"), ("input", "openai_responses"), ("prompt", "acp"), ("content", "mcp")):
        if isinstance(body, dict) and isinstance(body.get(key), list):
            return name
    held = body.get("messages") if isinstance(body, dict) else body
    signs = (sign for _, message in entries(held) if (sign := _sign(message)) is not None)  # type: ignore[arg-type]
    return next(signs, "openai_chat")


def _sign(message: dict[str, Json]) -> str | None:
    if isinstance(message.get("parts"), list):
        return "gemini"
    if isinstance(message.get("type"), str):
        return "openai_responses"
    if "tool_calls" in message or "tool_call_id" in message:
        return "openai_chat"
    for _, part in entries(message.get("content")):
        kind = part.get("type")
        if kind == "image":
            return "anthropic" if isinstance(at(part, "source"), dict) else "model_message"
        if isinstance(kind, str) and kind in _PARTS:
            return _PARTS[kind]
    return None


T = TypeVar("T")
_HOIST = Profile("", "openai_chat", "", tool_images="hoist")


def hoist(messages: T, *, wire: str | None = None) -> T:
    """The messages with every image that stands in a tool's result shown in a user message after the run of results.

    Nothing is read, asked or remembered; what is given stays as it is, and is itself the answer where there is nothing
    to move. Whoever calls this sends on what comes back: a `wire` that there is none of is a ValueError.

    messages: those of Chat Completions, Anthropic Messages, Responses, Gemini or the AI SDK, or a body with them.
    wire: their shape, "anthropic", "openai_chat", "openai_responses", "gemini" or "model_message"; else recognised.
    """
    found = codec(wire, messages)
    if isinstance(found, Refusal):
        raise ValueError(str(found))
    bare = isinstance(messages, list)
    tree: Any = {found.items: messages} if bare else messages
    scene = found.read(tree, Whole())
    sights = tuple(met for sight in scene.sights if (met := _shown(sight)) is not None)
    if not any(sight.held for sight in sights):
        return messages
    labelled = label(replace(scene, sights=sights), Facts(), Rules(_HOIST))
    assert isinstance(labelled, Scene), "a label needs no facts"
    edits = found.lower(labelled, tree, _HOIST)
    after: Any = graft(tree, edits)
    return (after[found.items] if bare else after) if edits else messages


def _shown(sight: Sight) -> Sight | None:
    """None for a text that only begins like an image, and stays what it is."""
    if not sight.held or not isinstance(sight.source, Inline) or (sight.within is None and sight.source.declared):
        return sight.meets(Shown())
    seen = probed(sight.source)
    if isinstance(seen, Picture):
        return sight.meets(Shown() if seen.mime == sight.source.declared else Shown(seen.mime))
    return sight.meets(Shown()) if sight.within is None else None


hoist_tool_result_images = hoist


_log = logging.getLogger(__name__)
_UNREADABLE = "this is no JSON that can be read and written back; it was left as it is"
_BROKEN = "something went wrong inside Sightline; the body was left as it is"
_NO_MODEL = "no model is named, so images of tools stand beside their results, where every Gemini model takes them"


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """A body as it is to be sent: the same object where nothing was to be changed."""

    body: Any
    receipt: Receipt
    changed: bool = False


def find_runtime(settings: Settings | None = None, retention: str | None = None) -> Runtime | Refusal:
    """Return what prepares bodies, by the settings as they are now; `retention` stands for the setting of this name."""
    known = _with_retention(settings or load(), retention)
    runtime = known if isinstance(known, Refusal) else shared_runtime(known)
    if isinstance(runtime, Refusal):
        return runtime
    return runtime.providers.own if isinstance(runtime.providers.own, Refusal) else runtime


def _with_retention(settings: Settings, word: str | None) -> Settings | Refusal:
    if word is None:
        return settings
    key = find("retention")
    assert not isinstance(key, Refusal)
    value = key.kind.read(word)
    if fault := key.kind.fault(value):
        return Refusal("invalid_input", f"retention: {fault}", f"allowed: {key.kind.allowed}")
    return settings.override({key.name: value})


@both
def prepare(
    body: Any,
    *,
    wire: str | None = None,
    model: str | None = None,
    upstream: str | None = None,
    retention: str | None = None,
    references: bool = False,
    through: Runtime | None = None,
) -> Prepared | Refused:
    """A request body through all that the proxy does to one, without tools of ours: a Prepared, or a Refused.

    body: an object, a list, or the bytes of one. What cannot be read comes back as it is, with a note.
    wire: its shape, "anthropic", "openai_chat", "openai_responses", "gemini", "model_message", "mcp" or "acp"; the
        shape of objects is else recognised.
    model: to which it goes, where it does not say so itself.
    upstream: the provider that it goes to; else the owner of the wire.
    retention: "auto", "turns:N" or "off" instead of the setting of this name.
    references: a pasted image gets its `[image sha256:…]` beside it, as it does on the proxy.
    through: where bodies are prepared; else by the user's settings.
    """
    at = through or find_runtime(retention=retention)
    shape = at if isinstance(at, Refusal) else codec(wire, body)
    if isinstance(at, Refusal) or isinstance(shape, Refusal):
        return Refused(cast("Refusal", shape))
    reading, lead = _read(at.engine, body, shape)
    if reading is None:
        return Prepared(body, Receipt(upstream or "", model or "", notes=(_UNREADABLE,)))
    there = _addressed(at, shape, model or reading.scene.model, upstream)
    if isinstance(there, Refusal):
        return Refused(there)
    visitor, name = there
    try:
        scene = replace(reading.scene, model=name)
        done = wait(at.engine.prepare(replace(reading, scene=scene), visitor, references=references))
        written = _written(done, body, lead) if done.edits else body
    except Exception:  # noqa: BLE001, whatever it was: the caller has a body to send
        _log.warning("a fault of Sightline's own", exc_info=True)
        return Prepared(body, Receipt(visitor.upstream.name, name, notes=(_BROKEN,)))
    receipt = done.receipt
    if shape is GEMINI and not name and any(sight.held for sight in done.scene.sights):
        receipt = replace(receipt, notes=(*receipt.notes, _NO_MODEL))
    return Prepared(written, receipt, changed=bool(done.edits))


def _read(engine: Engine, body: object, shape: Codec) -> tuple[Reading | None, bytes | None]:
    """What stands in a body, and what was put before a bare list so that it is a body."""
    if not isinstance(body, bytes | bytearray | dict | list):
        return None, None
    if not isinstance(body, bytes | bytearray):
        tree = cast("Json", {shape.items: body} if isinstance(body, list) else body)
        return engine.read_objects(tree, shape), None
    if body.lstrip()[:1] != b"[":
        return engine.read(body, shape), b""
    lead = b'{"%b":' % shape.items.encode()
    return engine.read(b"".join([lead, body, b"}"]), shape), lead


def _written(done: Done, body: object, lead: bytes | None) -> object:
    if lead is None:
        tree: Any = done.tree
        return tree[done.reading.wire.items] if isinstance(body, list) else tree
    text = b"".join(done.body)
    return text[len(lead) : -1] if lead else text


def _addressed(at: Runtime, shape: Codec, model: str, name: str | None) -> tuple[Visitor, str] | Refusal:
    """To whom the body goes, and under which name the model is known there."""
    wire = next((each.name for each in WIRES if each is shape), None)
    if name is not None:
        there = reached(at.settings, name)
        if isinstance(there, Refusal):
            return there
    elif wire is not None:
        there = at.directory.owners[wire]
    else:
        there, model = owner(model, at.directory.named)
    spoken = wire or _spoken(there)
    if shape.name == "model_message":  # it does not say which wire its SDK will speak
        there = replace(there, hoist=True)
    return Visitor(there, spoken, at.record.scope_of(""), _lent(at, there, spoken, named=name is not None)), model


def _spoken(there: Upstream) -> WireName:
    return "openai_chat" if "openai_chat" in there.bases else next(iter(there.bases), "openai_chat")


def _lent(at: Runtime, there: Upstream, wire: WireName, *, named: bool) -> tuple[tuple[str, str], ...]:
    """The user's key, for an upstream that the caller has named or the user has agreed to."""
    key = there.api_key or at.settings.variable(there.key_variables)
    if not key or not (named or at.record.policy.read_consents().get(receiver(there), False)):
        return ()
    return (there.credential(wire, key),)
