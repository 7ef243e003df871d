"""What a model takes beside text, for whoever asks it by name: the user's word, known ids, else nothing.

A proxied model is taken as seeing until it says no, because its client sent it an image. Here nobody has: a model
that is not known to see is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sightline.model.profile import WireName
from sightline.profiles.families import bare, matches
from sightline.profiles.lookup import profile

Kind = Literal["vision", "pdf", "video", "audio"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
_BOTH = frozenset[Kind]({"vision", "pdf"})
# These hold whatever the table says of the day.
_SURE: Mapping[str, frozenset[Kind]] = {
    "claude-opus-4-7": _BOTH,
    "claude-sonnet-4-6": _BOTH,
    "gpt-5": _BOTH,
    "gpt-5-mini": _BOTH,
    "gemini-2.5-pro": _BOTH,
    "gemini-2.5-flash": _BOTH,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What the user says of the models that match a pattern."""

    pattern: str
    kinds: Mapping[Kind, bool]


def takes(kind: Kind, model: str, hosts: Sequence[str], said: Sequence[Said], table: Mapping[str, str]) -> bool:
    """Whether a model takes this kind of thing.

    `hosts` are the names of its provider, the preset's among them; `table` gives the kinds of exact ids, in words.
    """
    known_as = (model, *(f"{host}/{model}" for host in hosts))
    for each in said:
        if kind in each.kinds and any(matches(each.pattern, name) for name in known_as):
            return each.kinds[kind]
    rows = (profile(host, wire, model).vision for host in hosts for wire in _WIRES)
    seen = next((each for each in rows if each is not None), None)
    if seen is False and kind != "audio":  # a model that sees nothing reads no pages and no frames either
        return False
    return (seen is True and kind == "vision") or _listed(kind, model, hosts, table)


def _listed(kind: Kind, model: str, hosts: Sequence[str], table: Mapping[str, str]) -> bool:
    exact = model.strip().lower().removeprefix("models/")
    if kind in _SURE.get(exact, ()):
        return True
    names = dict.fromkeys([exact, bare(model), exact.partition(":")[0]])
    placed = [f"{host}/{name}" for host in hosts for name in names]
    found = next((table[name] for name in [*placed, *names] if name in table), "")
    return kind in found.split()
