"""One request body through the whole pipeline: what a proxy would send on, and why."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast, final

from sightline.dial import Dialler
from sightline.engine import Engine, Reading, SeersOf
from sightline.engine import Prepared as Done
from sightline.engine.local import local_seer
from sightline.look.both import both
from sightline.look.doors import opened, reading, workers
from sightline.look.loop import at_end, wait
from sightline.look.results import Refused
from sightline.look.shapes import codec
from sightline.look.upstreams import directory, owner, reached, receiver
from sightline.look.whole import engine, named_seer, proxies, seers
from sightline.model.ports import Seer, Store
from sightline.model.profile import Profile, WireName
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.upstream import Directory, Upstream, Visitor
from sightline.seers.choice import Seers
from sightline.settings import Settings, find, load
from sightline.wire import GEMINI, WIRES
from sightline.wire.codec import Codec

_log = logging.getLogger(__name__)
_DESKS = 8  # kept for as many different settings
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


@dataclass(frozen=True, slots=True)
class Desk:
    """Where bodies are prepared: what was found out about an image there is not found out again."""

    settings: Settings
    directory: Directory
    record: Store
    engine: Engine = field(repr=False)


_desks: list[Desk] = []
os.register_at_fork(after_in_child=_desks.clear)


def desk(settings: Settings | None = None, retention: str | None = None) -> Desk | Refusal:
    """The user's own, by the settings as they are now; `retention` stands for the setting of this name."""
    known = _with_retention(settings or load(), retention)
    if isinstance(known, Refusal):
        return known
    found = next((each for each in _desks if each.settings == known), None)
    if found is None:
        made = _desk(known)
        if isinstance(made, Refusal):
            return made
        _desks[_DESKS - 1 :] = []
        _desks.insert(0, made)
        found = made
    return found


def _with_retention(settings: Settings, word: str | None) -> Settings | Refusal:
    if word is None:
        return settings
    key = find("retention")
    assert not isinstance(key, Refusal)
    value = key.kind.read(word)
    if fault := key.kind.fault(value):
        return Refusal("invalid_input", f"retention: {fault}", f"allowed: {key.kind.allowed}")
    return replace(settings, values={**settings.values, key.name: value})


def _desk(settings: Settings) -> Desk | Refusal:
    found = directory(settings)
    named = found if isinstance(found, Refusal) else named_seer(settings, found)
    if isinstance(found, Refusal) or isinstance(named, Refusal):
        return cast("Refusal", named)
    record = opened(settings.folder, settings.record)
    dialler = Dialler(proxies(settings.environment))
    at_end(dialler.close)
    asked = seers(settings, found, named, record, dialler, local_seer(settings.data, reading()))
    return Desk(settings, found, record, engine(settings, record, _trusted(asked), workers(), found))


def _trusted(asked: Seers) -> SeersOf:
    """The upstream's own seeing model looks only where the caller has lent a credential for it."""

    async def of(visitor: Visitor, profile: Profile) -> Sequence[Seer | Refusal]:
        lent = bool(visitor.headers) or visitor.upstream.on_loopback
        return await asked.of(visitor, profile if lent else replace(profile, sibling=None))

    return of


@both
def prepare(
    body: Any,
    *,
    wire: str | None = None,
    model: str | None = None,
    upstream: str | None = None,
    retention: str | None = None,
    references: bool = False,
    through: Desk | None = None,
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
    at = through or desk(retention=retention)
    shape = at if isinstance(at, Refusal) else codec(wire, body)
    if isinstance(at, Refusal) or isinstance(shape, Refusal):
        return Refused.of(cast("Refusal", shape))
    reading, lead = _read(at.engine, body, shape)
    if reading is None:
        return Prepared(body, Receipt(upstream or "", model or "", notes=(_UNREADABLE,)))
    there = _addressed(at, shape, model or reading.scene.model, upstream)
    if isinstance(there, Refusal):
        return Refused.of(there)
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


def _addressed(at: Desk, shape: Codec, model: str, name: str | None) -> tuple[Visitor, str] | Refusal:
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


def _lent(at: Desk, there: Upstream, wire: WireName, *, named: bool) -> tuple[tuple[str, str], ...]:
    """The user's key, for an upstream that the caller has named or the user has agreed to."""
    key = there.api_key or at.settings.variable(there.key_variables)
    if not key or not (named or at.record.policy.read_consents().get(receiver(there), False)):
        return ()
    return (there.credential(wire, key),)
