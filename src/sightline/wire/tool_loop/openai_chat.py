"""Calls of ours on the Chat Completions wire.

An answer is one message here, in which all words stand together; its blocks are ours: a thought, words, calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from sightline.model.edit import Edit, Insert, Replace
from sightline.model.scene import Json
from sightline.wire.shape import at, entries, items, text_in, value_in
from sightline.wire.sse import write_event
from sightline.wire.tool_loop.leg import (
    OTHER,
    Atom,
    Block,
    Called,
    Leg,
    Offer,
    Past,
    Result,
    Run,
    Thought,
    Words,
    arguments,
    known_by,
    mapping,
    seen,
    summed,
)
from sightline.wire.tool_loop.listener import StreamListener
from sightline.wire.tool_loop.weaving import in_order, laid, spoken
from sightline.wire.tool_loop.weaving import woven as cut

ITEMS = "messages"
_OUTPUT = ("completion_tokens", "completion_tokens_details")
_THOUGHTS = ("reasoning_content", "reasoning")  # words that clients send back, or do not
_MORE = "more"  # the block of what else stands in a message, such as reasoning_details
_CUT = ("length", "content_filter")  # ends in which nobody is called
_KEPT = ("role", "content", "tool_calls", *_THOUGHTS)


def reads(block: Block) -> Atom:
    if "content" in block:
        return Words(text_in(block, "content"))
    if isinstance(function := block.get("function"), dict):
        return Called(text_in(block, "id"), text_in(function, "name"), arguments(function.get("arguments")))
    return next((Thought(text_in(block, key)) for key in _THOUGHTS if key in block), OTHER)


def has_room(tree: Json) -> bool:
    tools, messages = value_in(tree, "tools"), items(tree, ITEMS)
    asked = bool(messages) and value_in(messages[-1], "role") != "assistant"
    once = value_in(tree, "n") in (None, 1)
    return bool(tools) and isinstance(tools, list) and asked and once


def is_free(tree: Json) -> bool:
    return value_in(tree, "tool_choice") in (None, "auto")


def offer(tree: Json, offered: Sequence[Offer]) -> list[Edit]:
    place = ("tools", len(items(tree, "tools")))
    return [Insert(place, {"type": "function", "function": _function(one)}) for one in offered]


def _function(one: Offer) -> Block:
    return {"name": one.name, "description": one.description, "parameters": one.schema}


def result(call: Called, got: Result) -> Block:
    parts: list[Json] = [{"type": "text", "text": got.text}]
    for mime, data in got.images:
        parts.append({"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}})
    return {"role": "tool", "tool_call_id": call.id, "content": parts if got.images else got.text}


def grown(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (ITEMS, len(items(tree, ITEMS)))
    return [
        Insert(place, each) for leg, results in legs for each in (_message({"role": "assistant"}, leg.said), *results)
    ]


def _message(base: Block, blocks: Sequence[Block]) -> Block:
    """One message of these; what else the client has in it stays."""
    made: Block = {key: value for key, value in base.items() if key not in _KEPT or key == "role"}
    text = "".join(text_in(block, "content") for block in blocks if "content" in block)
    made["content"] = text or None
    for block in blocks:
        made |= {key: block[key] for key in _THOUGHTS if key in block}
        made |= mapping(block.get(_MORE))
    calls: list[Json] = [block for block in blocks if "function" in block]
    return {**made, "tool_calls": calls} if calls else made


def runs(tree: Json) -> list[Run]:
    return spoken(
        [
            _parts(message) if isinstance(message, dict) and message.get("role") == "assistant" else None
            for message in items(tree, ITEMS)
        ]
    )


def _more(message: Block) -> list[Block]:
    """What a message says that nobody here knows, as it came."""
    more: Block = {key: each for key, each in message.items() if key not in _KEPT and each is not None}
    return [{_MORE: more}] if more else []


def _parts(message: Block) -> list[Block]:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [text_in(part, "text") for _, part in entries(content)]
    calls = [call for _, call in entries(message.get("tool_calls"))]
    thoughts: list[Block] = [{key: message[key]} for key in _THOUGHTS if text_in(message, key)]
    words: list[Block] = [{"content": "".join(texts)}] if any(texts) else []
    return [*thoughts[:1], *words, *calls]


def woven(tree: Json, run: Run, pasts: Sequence[Past], results: Sequence[Block]) -> list[Edit] | None:
    """What an assistant said, again in as many messages as there were legs, with our results between and behind."""
    if known_by(pasts) != seen(run.blocks, reads) or len(results) != len(pasts[-1].asks):
        return None
    last = pasts[-1]
    edits = _again(tree, run, pasts) if run.end - run.start == 1 else _apart(tree, run, pasts)
    if edits is None or not last.asks:
        return edits
    theirs = [*takewhile(lambda each: value_in(each, "role") == "tool", items(tree, ITEMS)[run.end :])]
    if not theirs:
        return None
    behind = [Insert((ITEMS, run.end + min(before, len(theirs))), made) for before, made in in_order(last, results)]
    return [*edits, *behind]


def _again(tree: Json, run: Run, pasts: Sequence[Past]) -> list[Edit]:
    """One message, in which the words and thoughts of all legs stand together: each gets its own again."""
    *inner, last = pasts
    turns: list[Block] = []
    thinks = _thinks(run.blocks, pasts)
    for past in inner:
        asked = [block for block, _ in past.asks]
        turns += [_message({"role": "assistant"}, [*_spoken(past, thinks), *asked]), *past.results]
    calls = [block for block in run.blocks if "function" in block]
    for block, place in reversed(last.asks):
        calls.insert(place.calls, block)
    kept = [] if thinks else [block for block in run.blocks if isinstance(reads(block), Thought)]
    whole = _message(mapping(at(tree, ITEMS, run.start)), [*kept, *_spoken(last, thinks), *calls])
    first, *others = [*turns, whole]
    return [Replace((ITEMS, run.start), first), *(Insert((ITEMS, run.end), each) for each in others)]


def _apart(tree: Json, run: Run, pasts: Sequence[Past]) -> list[Edit] | None:
    """Several messages, which stay apart: the words in one, say, and each call in another."""
    thinks = _thinks(run.blocks, pasts)
    pairs = [pair for pair in zip(run.blocks, run.owners, strict=True) if not isinstance(reads(pair[0]), Thought)]
    spoke = replace(run, blocks=[block for block, _ in pairs], owners=[owner for _, owner in pairs])
    legs = cut(spoke, [past.without(thoughts=True, others=True) for past in pasts], reads, _split)
    if legs is None:
        return None

    def made(owner: int | None, said: list[Block], last: bool) -> Block:
        if owner is None or not last:
            return _message({"role": "assistant"}, said)
        kept = [] if thinks else [block for block in run.held(owner) if isinstance(reads(block), Thought)]
        return _message(mapping(at(tree, ITEMS, owner)), [*kept, *said])

    for leg, past in zip(legs, pasts, strict=True):
        leg[:0] = [(block, None) for block in _thought(past, thinks)]
    return laid(ITEMS, run if thinks else spoke, legs, [past.results for past in pasts[:-1]], made)


def _split(block: Block, letters: int) -> tuple[Block, Block]:
    text = text_in(block, "content")
    return {"content": text[:letters]}, {"content": text[letters:]}


def _thinks(blocks: Sequence[Block], pasts: Sequence[Past]) -> str:
    """The key of the thoughts, where they stand together as they came: then each leg gets its own again."""
    said = next((block for block in blocks if isinstance(reads(block), Thought)), None)
    if said is None:
        return ""
    ((key, whole),) = said.items()
    return key if whole == "".join(past.thinking for past in pasts) else ""


def _spoken(past: Past, thinks: str) -> list[Block]:
    return [*_thought(past, thinks), {"content": past.text}]


def _thought(past: Past, thinks: str) -> list[Block]:
    return [{thinks: past.thinking}] if thinks and past.thinking else []


class Listener(StreamListener):
    reads = staticmethod(reads)
    beginnings = ("tool_calls",)

    def __init__(self, names: frozenset[str]) -> None:
        self._head: Block = {}  # what every chunk of the first leg says alike
        self._introduced = False  # it was said who speaks
        super().__init__(names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._texts: dict[str, list[str]] = {}  # the words and thoughts of this leg
        self._others: Block = {}  # … and what else was said in it
        self._given: dict[int, list[str]] = {}  # the arguments of its calls
        self._at: dict[int, int] = {}  # by the number that the upstream gives it: the call that grows
        self._unnamed: dict[int, Block] = {}  # calls whose names have not come yet
        self._numbers: dict[int, int] = {}
        self._counted = False  # the client is told what was used in a chunk of its own

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop not in _CUT

    def finish(self) -> bytes:
        told = super().finish()
        if self._counted and not self.goes_on:  # some end without a word
            self.ending += self._usage_told()
        return told

    def _end_stream(self, raw: bytes) -> bytes:
        return self._end_with(self._usage_told() + raw)

    def _read(self, value: Block, raw: bytes) -> bytes:
        if value.get("error"):
            self.failed = True
            return raw
        if not self._head:
            self._head = {key: value[key] for key in ("id", "created", "model") if key in value}
        self._usage |= mapping(value.get("usage"))
        choice = next((each for _, each in entries(value.get("choices"))), None)
        if choice is None:
            return self._beside(value, raw)
        delta, stop = mapping(choice.get("delta")), choice.get("finish_reason")
        kept = self._grown(delta)
        if stop:
            self._stop = str(stop)
        if stop and self.goes_on:  # some say their last words together with the end
            return self._told(value, {**choice, "finish_reason": None}, kept, b"")
        told = self._told(value, choice, kept, raw if kept == delta else b"")
        if value.get("usage") and not told:  # LiteLLM counts beside a choice that says nothing
            self._counted = True
        return self._end_with(told) if stop else told

    def _beside(self, value: Block, raw: bytes) -> bytes:
        """A chunk without a choice: what was used, or nothing of weight."""
        if not value.get("usage"):
            return b"" if self.earlier_legs else raw
        if not self.earlier_legs and not self.calls_ours:
            return raw
        self._counted = True  # told with the last of it
        return b""

    def _usage_told(self) -> bytes:
        """All that the legs have used, where the client asked for it."""
        if not self._counted:
            return b""
        self._counted = False
        chunk: Block = {"object": "chat.completion.chunk", "choices": [], "usage": _merged(self._usages)}
        return write_event("", {**self._head, **chunk})

    def _told(self, value: Block, choice: Block, kept: Block, raw: bytes) -> bytes:
        """The chunk without what is ours; nothing, if that was all of it."""
        if raw and not self.earlier_legs and not self._our_calls:
            self._introduced = self._introduced or "role" in kept
            return raw
        stop = choice.get("finish_reason")
        kept = {key: each for key, each in kept.items() if key != "role"}
        if not self._introduced:
            kept = {"role": "assistant", **kept}
        if not stop and not {key: each for key, each in kept.items() if key != "role" and each not in (None, "")}:
            return b""
        self._introduced = True
        usage: Block = {"usage": _merged(self._usages)} if value.get("usage") and stop else {}
        return write_event("", {**value, **self._head, "choices": [{**choice, "delta": kept}], **usage})

    def _grown(self, delta: Block) -> Block:
        """What of a delta is for the client; all of it is part of the leg."""
        for key, more in delta.items():
            if key in ("content", *_THOUGHTS):
                self._texts.setdefault(key, []).append(more if isinstance(more, str) else "")
            elif key not in _KEPT and more is not None:
                old = self._others.get(key)
                self._others[key] = [*old, *more] if isinstance(old, list) and isinstance(more, list) else more
        made = entries(delta.get("tool_calls"))
        if not made:
            return delta
        theirs: list[Json] = [kept for _, call in made if (kept := self._call(call)) is not None]
        rest = {key: each for key, each in delta.items() if key != "tool_calls"}
        return {**rest, "tool_calls": theirs} if theirs else rest

    def _call(self, call: Block) -> Block | None:
        """A piece of a call, with the number that the client knows it by; None: it is ours, or nobody knows yet."""
        number = self._number(call)
        self._given.setdefault(number, []).append(text_in(call.get("function"), "arguments"))
        made = self._blocks_by_number.setdefault(number, {"id": "", "type": "function"})
        function = {**mapping(made.get("function")), **_named(mapping(call.get("function")))}
        made |= {key: each for key, each in call.items() if key not in ("index", "function") and each}
        made["function"] = function
        if number not in self._numbers and number not in self._our_calls:
            call = _joined(self._unnamed.pop(number, {}), call)
            if not function.get("name"):
                self._unnamed[number] = call
                return None
            self._decided(number, text_in(function, "name"))
        return None if number in self._our_calls else {**call, "index": self._numbers[number]}

    def _number(self, call: Block) -> int:
        """Of all calls of this leg; one with another id is another one, whatever its own number says."""
        index = call.get("index")
        index = index if isinstance(index, int) else len(self._blocks_by_number)
        at = self._at.get(index)
        name = text_in(call, "id")
        if at is None or (name and text_in(self._blocks_by_number.get(at), "id") not in ("", name)):
            at = self._at[index] = len(self._blocks_by_number)
        return at

    def _decided(self, number: int, name: str) -> None:
        """Note whose call it is, ours or the client's, now that its name is known."""
        if name in self.names:
            self._our_calls.add(number)
        else:
            self._calls_client = True
            self._numbers[number] = len(self._numbers)

    def _blocks(self) -> list[Block]:
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        thoughts: list[Block] = [{key: texts[key]} for key in _THOUGHTS if texts.get(key)]
        words: list[Block] = [{"content": texts["content"]}] if texts.get("content") else []
        more: list[Block] = [{_MORE: self._others}] if self._others else []
        return [*more, *thoughts[:1], *words, *(self._whole(number) for number in sorted(self._blocks_by_number))]

    def whole(self, before: Block) -> Block:
        message = _message({"role": "assistant"}, self._blocks())
        choice: Block = {"index": 0, "message": message, "finish_reason": self._stop or "stop"}
        return {**before, "choices": [choice], "usage": self._usage}

    def _whole(self, number: int) -> Block:
        call = self._blocks_by_number[number]
        given = "".join(self._given.get(number, ()))
        return {**call, "function": {**mapping(call.get("function")), "arguments": given}}


def _named(function: Block) -> Block:
    """What a piece says of a function beside its arguments; a name that comes again is the same one."""
    return {key: each for key, each in function.items() if key != "arguments" and each}


def _joined(before: Block, call: Block) -> Block:
    """Two pieces of one streamed call as one."""
    if not before:
        return call
    first, then = mapping(before.get("function")), mapping(call.get("function"))
    given = text_in(first, "arguments") + text_in(then, "arguments")
    return {**before, **_named(call), "function": {**first, **_named(then), "arguments": given}}


def said(answer: Json) -> list[Block]:
    message = at(answer, "choices", 0, "message")
    return [*_more(message), *_parts(message)] if isinstance(message, dict) else []


def calls(answer: Json) -> bool:
    return at(answer, "choices", 0, "finish_reason") not in _CUT


def whole(answers: Sequence[Block], names: frozenset[str]) -> Block:
    """All legs as one answer, without our calls."""
    kept = [block for answer in answers for block in said(answer) if not _is_ours(block, names)]
    message, choice = at(answers[-1], "choices", 0, "message"), mapping(at(answers[-1], "choices", 0))
    thinking = "".join(atom.text for block in kept if isinstance(atom := reads(block), Thought))
    key = next((key for block in kept for key in _THOUGHTS if key in block), "")
    shown = [block for block in kept if not isinstance(reads(block), Thought)]
    thoughts: list[Block] = [{key: thinking}] if key else []
    visible = _message(mapping(message), [*thoughts, *shown])
    head: Block = {each: answers[0][each] for each in ("id", "created") if each in answers[0]}
    usage: Block = {}
    if any("usage" in answer for answer in answers):
        usage = {"usage": _merged([mapping(answer.get("usage")) for answer in answers])}
    return {**answers[-1], **head, "choices": [{**choice, "message": visible}], **usage}


def _is_ours(block: Block, names: frozenset[str]) -> bool:
    return text_in(block.get("function"), "name") in names


def _merged(usages: Sequence[Block]) -> Block:
    return summed(usages, _OUTPUT, "total_tokens", "prompt_tokens")
