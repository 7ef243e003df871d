"""Random conversations on two wires: text, images, parallel calls, results in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.model.scene import Fate, Refitted, Refused, Shown, Told
from tests.wire.bodies import block, calling, image, part, result, text, tool, user
from tests.wire.json_texts import base64_like

IMAGE, WORDS, NULL = "image", "words", "null"
contents = st.lists(st.sampled_from([IMAGE, IMAGE, WORDS, NULL]), max_size=4)


@dataclass
class Conversation:
    messages: list[Any] = field(default_factory=list)
    payloads: list[str] = field(default_factory=list)

    def payload(self) -> str:
        """Return unique base64 text; every third one is long enough to be lifted out."""
        number = len(self.payloads)
        self.payloads.append(f"{number:08d}" + base64_like(9_000 if number % 3 == 0 else 40, number))
        return self.payloads[-1]

    def filled(self, kinds: list[str], picture: Callable[[str], Any]) -> list[Any]:
        others = {WORDS: text("words"), NULL: None}
        return [picture(self.payload()) if kind == IMAGE else others[kind] for kind in kinds]


@st.composite
def chats(draw: st.DrawFn) -> Conversation:
    """Draw a conversation on the Chat Completions wire."""
    talk = Conversation()
    ids = count()
    for kind in draw(st.lists(st.sampled_from(["user", "assistant", "calls"]), max_size=6)):
        if kind == "user":
            talk.messages.append(user(*talk.filled(draw(contents), part)))
        elif kind == "assistant":
            talk.messages.append({"role": "assistant", "content": "words"})
        else:
            calls = [f"call_{next(ids)}" for _ in range(draw(st.integers(1, 3)))]
            talk.messages.append(calling(*calls))
            for call in draw(st.permutations(calls)):
                plain = {"role": "tool", "tool_call_id": call, "content": "words"}
                parts = draw(st.none() | contents)
                talk.messages.append(plain if parts is None else tool(call, *talk.filled(parts, part)))
    return talk


@st.composite
def talks(draw: st.DrawFn) -> Conversation:
    """Draw a conversation on the Messages wire."""
    talk = Conversation()
    ids = count()
    for kind in draw(st.lists(st.sampled_from(["user", "calls"]), max_size=6)):
        if kind == "user":
            talk.messages.append(user(*talk.filled(draw(contents), block)))
            continue
        calls = [f"toolu_{next(ids)}" for _ in range(draw(st.integers(1, 3)))]
        uses = [{"type": "tool_use", "id": call, "name": "read", "input": {}} for call in calls]
        talk.messages.append({"role": "assistant", "content": uses})
        answers = [result(call, *talk.filled(draw(contents), block)) for call in draw(st.permutations(calls))]
        talk.messages.append(user(*answers, text("words")))
    return talk


@st.composite
def fates(draw: st.DrawFn, number: int) -> list[Fate]:
    no = Refusal("corrupt", "it is broken")
    kinds: list[Fate] = [
        Shown(),
        Shown("image/gif"),
        Refitted(image(b"refitted"), "too large"),
        Told("[told]", "up/eye"),
        Refused("[refused]", no),
    ]
    return draw(st.lists(st.sampled_from(kinds), min_size=number, max_size=number))
