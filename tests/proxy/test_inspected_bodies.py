"""Bodies that are searched for commands and for notes of clients: each has a mark by which that is known."""

from __future__ import annotations

import pytest

from sightline.commands import NAME
from sightline.surfaces.proxy.app import _INSPECTED_MARKS
from sightline.wire import message_texts
from sightline.wire.message_texts import has_marks

_NOTES = [*message_texts._OMISSION_NOTES, "[tool output omitted]", "[image, vision content was removed - x]"]


@pytest.mark.parametrize("text", [NAME, NAME.replace("/", "\\/"), *_NOTES])
def test_a_body_with_a_command_or_a_note_has_a_mark(text: str) -> None:
    assert has_marks(b'{"messages":[{"content":"%b"}]}' % text.encode(), _INSPECTED_MARKS)


def test_a_body_without_them_has_none() -> None:
    assert not has_marks(b'{"messages":[{"content":"What is in this picture?"}]}', _INSPECTED_MARKS)
