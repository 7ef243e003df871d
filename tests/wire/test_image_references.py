"""The reference beside an image is not the text of a person: it opens no turn, and makes no image a tool's."""

from __future__ import annotations

import pytest

from sightline.model.labels import build_reference
from sightline.wire import WIRES, Wire
from tests.engine.parts import picture
from tests.proxy.four_wires import answered, asked, parts, request
from tests.requirements import requirement
from tests.wire.bodies import read

NAME = build_reference("7" * 64)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@requirement("refer.once")
def test_a_reference_beside_an_image_changes_nothing(wire: Wire) -> None:
    named = asked(wire.name, NAME, picture())
    bare = asked(wire.name, "", picture())
    assert parts(wire.name, named)[-1]["text"] == NAME
    before = [asked(wire.name, "Look."), *answered(wire.name, "At what?")]
    one, two = (read(wire, request(wire.name, "m", [*before, each])).scene for each in (named, bare))
    assert one.messages == two.messages
    assert [(sight.role, sight.call) for sight in one.sights] == [("user", None)]
    assert one.sights == two.sights
