"""`prepare` and `hoist`: do to a request body in a program what the proxy does to one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast, final

from sightline.api.failure import Failure
from sightline.api.session import Session
from sightline.engine import PreparedRequest as Done
from sightline.engine import Reading
from sightline.engine.inline_images import probe_inline
from sightline.model.facts import Facts, Retention, Rules
from sightline.model.image import ImageInfo
from sightline.model.profile import Profile, RequestOrigin, Upstream, WireName
from sightline.model.records import Receipt
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource, Json, Scene, Shown, Sight
from sightline.passes.show import label
from sightline.runtime import Runtime, get_shared_runtime
from sightline.settings import Settings, find_key, load_settings
from sightline.settings.upstreams import find_owner, get_consent_name, is_known_upstream, resolve_upstream
from sightline.sources.files import PathPolicy
from sightline.vision.background_loop import run_blocking, with_async
from sightline.wire import CONTENTS, GEMINI, WIRES, Codec
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import PlainTexts, enumerate_objects, get_at

_ALL: tuple[Codec, ...] = (*WIRES, *CONTENTS)
CODECS: Mapping[str, Codec] = {each.name: each for each in _ALL}
_ALIASES: Mapping[str, str] = {"openai": "openai_chat"}

# The types of parts that only one wire has.
_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("tool-call", "tool-result", "file"), "model_message"),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking"), "anthropic"),
    **dict.fromkeys(("input_text", "input_image", "input_file", "output_text"), "openai_responses"),
    **dict.fromkeys(("image_url", "input_audio"), "openai_chat"),
}


def find_codec(name: str | None, body: object) -> Codec | Refusal:
    """Return the codec of this name, or without a name that of the wire whose shape the body has."""
    if name is None and isinstance(body, bytes | bytearray):
        return Refusal("invalid_input", "the wire of bytes has to be named", f"use one of {', '.join(CODECS)}")
    found = CODECS.get(recognize_wire(body) if name is None else _ALIASES.get(name, name))
    if found is None:
        return Refusal("invalid_input", f"there is no wire {name!r:.60}", f"use one of {', '.join(CODECS)}")
    return found


def recognize_wire(body: object) -> str:
    """Return the name of the wire whose shape a body has; Chat Completions if it could be several."""
    for key, name in (("contents", "gemini"), ("input", "openai_responses"), ("prompt", "acp"), ("content", "mcp")):
        if isinstance(body, dict) and isinstance(body.get(key), list):
            return name
    messages = body.get("messages") if isinstance(body, dict) else body
    signs = (sign for _, message in enumerate_objects(messages) if (sign := _recognize_message(message)) is not None)  # type: ignore[arg-type]
    return next(signs, "openai_chat")


def _recognize_message(message: dict[str, Json]) -> str | None:
    if isinstance(message.get("parts"), list):
        return "gemini"
    if isinstance(message.get("type"), str):
        return "openai_responses"
    if "tool_calls" in message or "tool_call_id" in message:
        return "openai_chat"
    for _, part in enumerate_objects(message.get("content")):
        kind = part.get("type")
        if kind == "image":
            return "anthropic" if isinstance(get_at(part, "source"), dict) else "model_message"
        if isinstance(kind, str) and kind in _PARTS:
            return _PARTS[kind]
    return None


T = TypeVar("T")
_HOIST = Profile("", "openai_chat", "", tool_images="hoist")


def hoist(messages: T, *, wire: str | None = None) -> T:
    """Move every image in a tool result into a user message after the run of results.

    It reads no files, asks no model and stores nothing. It doesn't change your object, and returns it itself if there
    is nothing to move. An unknown `wire` is a ValueError.

    messages: those of Chat Completions, Anthropic Messages, Responses, Gemini or the AI SDK, or a body with them.
    wire: "anthropic", "openai_chat", "openai_responses", "gemini" or "model_message"; recognized if left out.
    """
    found = find_codec(wire, messages)
    if isinstance(found, Refusal):
        raise ValueError(str(found))
    bare = isinstance(messages, list)
    tree: Any = {found.messages_key: messages} if bare else messages
    scene = found.read(tree, PlainTexts())
    sights = tuple(met for sight in scene.sights if (met := _show(sight)) is not None)
    if not any(sight.is_in_tool_result for sight in sights):
        return messages
    labelled = label(replace(scene, sights=sights), Facts(), Rules(_HOIST))
    assert isinstance(labelled, Scene), "a label needs no facts"
    edits = found.lower(labelled, tree, _HOIST)
    after: Any = graft(tree, edits)
    return (after[found.messages_key] if bare else after) if edits else messages


def _show(sight: Sight) -> Sight | None:
    """Return the sight as it is shown, or None for a text that only begins like an image."""
    if (
        not sight.is_in_tool_result
        or not isinstance(sight.source, InlineSource)
        or (sight.path_in_text is None and sight.source.declared_mime)
    ):
        return sight.with_fate(Shown())
    seen = probe_inline(sight.source)
    if isinstance(seen, ImageInfo):
        return sight.with_fate(Shown() if seen.mime == sight.source.declared_mime else Shown(seen.mime))
    return sight.with_fate(Shown()) if sight.path_in_text is None else None


hoist_tool_result_images = hoist


_log = logging.getLogger(__name__)
_UNREADABLE = "the body can't be parsed as JSON and written back without loss; it was left unchanged"
_BROKEN = "Sightline failed because of a bug in itself; the body was left as it is"
_NO_MODEL = (
    "the model is not known, so images of tools were put beside their results, where every Gemini model takes them"
)


@final
@dataclass(frozen=True, slots=True)
class PreparedBody:
    """A body that is ready to be sent: the same object if nothing had to be changed."""

    body: Any
    receipt: Receipt
    changed: bool = False

    def __str__(self) -> str:
        return str(self.receipt)

    def __repr__(self) -> str:
        return f"<PreparedBody {'changed' if self.changed else 'unchanged'}: {self.receipt}>"


def find_runtime(settings: Settings | None = None, path_policy: PathPolicy | None = None) -> Runtime | Refusal:
    """Return the runtime for the current settings. See `get_shared_runtime` for `path_policy`."""
    runtime = get_shared_runtime(settings or load_settings(), path_policy=path_policy)
    if isinstance(runtime, Refusal):
        return runtime
    return runtime.providers.configured if isinstance(runtime.providers.configured, Refusal) else runtime


def parse_retention(settings: Settings, word: str | None) -> Retention | Refusal:
    """Return the retention that a word means; None: the one of the settings."""
    if word is None:
        return settings.retention
    key = find_key("retention")
    assert not isinstance(key, Refusal)
    value = key.kind.parse(word)
    return key.kind.refuse_value(key.name, value) or settings.override({key.name: value}).retention


@dataclass(frozen=True, slots=True)
class BodySender:
    """Who has a body prepared, and sends it to its upstream afterwards."""

    scope: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # with its own credential, if it has sent one
    is_owner: bool = False  # of the settings: naming an upstream permits using the user's key for it


@with_async
def prepare(
    body: Any,
    *,
    wire: str | None = None,
    model: str | None = None,
    upstream: str | None = None,
    retention: str | None = None,
    references: bool = False,
    session: Session | None = None,
) -> PreparedBody | Failure:
    """Change a request body as the proxy would, but offer no tools: return a PreparedBody, or a Failure.

    body: a dict, a list, or JSON as bytes. If it can't be parsed, it is returned unchanged, with a note.
    wire: "anthropic", "openai_chat", "openai_responses", "gemini", "model_message", "mcp" or "acp"; required
        for bytes, otherwise recognized if left out.
    model: the model that it goes to, if the body doesn't name it.
    upstream: the provider that it goes to; if left out, the owner of the wire.
    retention: "auto", "turns:N" or "off" instead of the setting of this name.
    references: add `[image sha256:…]` beside pasted images, as the proxy does.
    session: the settings and record to use, and the files that paths in the body can refer to; without one, the
        user's own.
    """
    context = session.tool_context if session else None
    at = find_runtime(context.settings, context.policy) if context else find_runtime()
    if isinstance(at, Refusal):
        return Failure(at)
    sender = BodySender(at.record.compute_scope(""), is_owner=context is None or context.is_owner)
    read = read_given_body(at, body, wire)
    if read is None:
        return PreparedBody(body, Receipt(upstream or "", model or "", notes=(_UNREADABLE,)))
    if isinstance(read, Refusal):
        return Failure(read)
    return run_blocking(prepare_reading(at, read, sender, model, upstream, retention, references=references))


@dataclass(frozen=True, slots=True)
class BodyReading:
    """A body that was read, as it was given."""

    body: Any
    reading: Reading
    lead: bytes | None  # what was put before a bare list to make it a body; None: the body is objects

    def write(self, done: Done) -> Any:
        """Return the prepared body in the form in which it was given."""
        if self.lead is None:
            tree: Any = done.tree
            return tree[done.reading.wire.messages_key] if isinstance(self.body, list) else tree
        text = b"".join(done.body)
        return text[len(self.lead) : -1] if self.lead else text


def read_given_body(
    at: Runtime, body: Any, wire: str | None, *, heavy: bool = False, caller: str = ""
) -> BodyReading | Refusal | None:
    """Read a body; None if it can't be read. This may take long; see `Reading` for `heavy` and `caller`."""
    shape = find_codec(wire, body)
    if isinstance(shape, Refusal) or not isinstance(body, bytes | bytearray | dict | list):
        return shape if isinstance(shape, Refusal) else None
    lead: bytes | None = None
    if not isinstance(body, bytes | bytearray):
        tree = cast("Json", {shape.messages_key: body} if isinstance(body, list) else body)
        reading: Reading | None = at.engine.read_objects(tree, shape, heavy=heavy, caller=caller)
    else:
        lead = b'{"%b":' % shape.messages_key.encode() if body.lstrip()[:1] == b"[" else b""
        reading = at.engine.read(b"".join([lead, body, b"}"]) if lead else body, shape)
    return None if reading is None else BodyReading(body, reading, lead)


async def prepare_reading(
    at: Runtime,
    read: BodyReading,
    sender: BodySender,
    model: str | None = None,
    upstream: str | None = None,
    retention: str | None = None,
    *,
    references: bool = False,
) -> PreparedBody | Failure:
    """Do what `prepare` does to a body that was read. Work on a heavy one is done in a thread."""
    reading, shape = read.reading, read.reading.wire
    kept = parse_retention(at.settings, retention)
    there = _find_upstream(at, shape, model or reading.scene.model, upstream, sender)
    if isinstance(kept, Refusal) or isinstance(there, Refusal):
        return Failure(cast("Refusal", kept if isinstance(kept, Refusal) else there))
    origin, name = there
    try:
        named = replace(reading, scene=replace(reading.scene, model=name))
        done = await at.engine.prepare(named, origin, references=references, retention=kept)
        written = await at.engine.offload(reading, read.write, done) if done.edits else read.body
    except Exception:  # noqa: BLE001, fail open: the caller has a body to send
        _log.warning("a bug in Sightline", exc_info=True)
        return PreparedBody(read.body, Receipt(origin.upstream.name, name, notes=(_BROKEN,)))
    receipt = done.receipt
    if shape is GEMINI and not name and any(sight.is_in_tool_result for sight in done.scene.sights):
        receipt = replace(receipt, notes=(*receipt.notes, _NO_MODEL))
    return PreparedBody(written, receipt, changed=bool(done.edits))


def _find_upstream(
    at: Runtime, shape: Codec, model: str, name: str | None, sender: BodySender
) -> tuple[RequestOrigin, str] | Refusal:
    """Return the upstream that the body goes to, and the name of the model there."""
    wire = next((each.name for each in WIRES if each is shape), None)
    if name is not None:
        found = resolve_upstream(at.settings, name, at.directory)
        if isinstance(found, Refusal):
            return found
        there = found
    elif wire is not None:
        if wire not in at.directory.defaults:
            return Refusal("invalid_input", f"no upstream takes requests of {wire}", "name one as upstream")
        there = at.directory.defaults[wire]
    else:
        there, model = find_owner(model, at.directory.by_name)
    chosen_wire = wire or _choose_wire(there)
    is_known = sender.is_owner or is_known_upstream(there, at.directory)
    if not is_known:  # only the client knows this address: nothing is sent there
        there = replace(there, bases={})
    if shape.name == "model_message":  # it does not say which wire its SDK will speak
        there = replace(there, hoist=True)
    may_use_key = sender.is_owner and name is not None
    headers = sender.headers if is_known else ()
    headers = headers or _find_credential(at, there, chosen_wire, may_use_key=may_use_key)
    return RequestOrigin(there, chosen_wire, sender.scope, headers, needs_credential=True), model


def _choose_wire(there: Upstream) -> WireName:
    return "openai_chat" if "openai_chat" in there.bases else next(iter(there.bases), "openai_chat")


def _find_credential(at: Runtime, there: Upstream, wire: WireName, *, may_use_key: bool) -> tuple[tuple[str, str], ...]:
    """Return the user's key, for an upstream that the user has named in a program or consented to."""
    key = there.api_key or at.settings.find_variable(there.key_variables)
    if not key or not (may_use_key or at.record.policy.read_consents().get(get_consent_name(there), False)):
        return ()
    return (there.build_credential(wire, key),)
