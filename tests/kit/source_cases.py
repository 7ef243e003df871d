"""A source kind: the references that name it, and those that are refused."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from sightline.model.refusal import Refusal
from sightline.sources import Reference, parse_reference

NAMES = tuple(kind.__name__ for kind in get_args(Reference))


def run(name: str, given: Any) -> Any:
    """`given`: references. One of another kind than `name` is an error of the case, unless it is refused."""
    return [_read(name, each) for each in given]


def _read(name: str, text: str) -> Any:
    found = parse_reference(text)
    if isinstance(found, Refusal):
        return {"refusal": found.code}
    assert type(found).__name__ == name, text
    return asdict(found)
