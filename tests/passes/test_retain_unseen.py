"""What an image weighs that only the provider can measure: as much as one of 1024×1024, wherever weights decide."""

from __future__ import annotations

from sightline.model.facts import History, Kept
from sightline.model.fate import Retired
from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.profile import CachePrice, Profile
from sightline.model.rules import Rules
from sightline.model.scene import Call, Message, Scene, Sight
from sightline.model.sizing import Patches
from sightline.model.source import Inline, Link, Opaque, Source
from sightline.passes.retain import retain
from tests.passes.scenes import Table, inline, name_of

LAWS = Rules(Profile("up", "anthropic", "m", sizing=Patches(None, None), cache=CachePrice(1.0, 0.3)))
VIEWS = 12
PASTED = "pasted"


def measured(source: Inline) -> Picture:
    return Picture("image/png", Size(1024, 1024) if name_of(source) == PASTED else Size(960, 960), 5000)


def left(pasted: Source, words: int) -> int:
    """How many have left where so many words and an image of the user's stand behind most of them."""
    messages = [Message("user", opens=True)]
    sights = []
    for _ in range(VIEWS):
        messages += [Message("assistant"), Message("tool")]
        path = f"/{len(messages)}.png"
        place = ("messages", len(messages) - 1, "content", 0)
        sights.append(Sight(place, inline(path), "tool", Call("c", "Read", path), len(messages) - 1))
    sights.insert(9, Sight(("messages", 19, "content", 0), pasted, "user", message=19))
    scene = Scene("m", tuple(sights), messages=(*messages, Message("assistant")), tools=frozenset({"Read"}))
    lengths = [words if index == 20 else 0 for index in range(len(scene.messages))]
    table = Table(measured, history=History(tuple(lengths)), kept=Kept("5" * 64, measured(inline())))
    return sum(isinstance(fate, Retired) for fate in table.fates(scene, LAWS, by=retain))


def test_it_weighs_as_much_as_one_of_a_thousand_pixels_a_side() -> None:
    words = range(4700, 5100, 10)
    known = [left(inline(PASTED), each) for each in words]
    assert set(known) == {0, 4}, "a few words more decide"
    for unseen in (Link("https://a.example/b.png"), Opaque("file_1")):
        assert [left(unseen, each) for each in words] == known
