"""An image that only the provider can measure counts as one of 1024×1024 pixels."""

from __future__ import annotations

from sightline.model.facts import ConversationHistory, KeptImage, Rules
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo, PatchSizing
from sightline.model.profile import CachePrice, Profile
from sightline.model.scene import (
    InlineSource,
    LinkSource,
    Message,
    OpaqueSource,
    Retired,
    Scene,
    Sight,
    Source,
    ToolCall,
)
from sightline.passes.retain import retain
from tests.passes.scenes import Table, inline, name_of

LAWS = Rules(Profile("up", "anthropic", "m", sizing=PatchSizing(None, None), cache=CachePrice(1.0, 0.3)))
VIEWS = 12
PASTED = "pasted"


def measured(source: InlineSource) -> ImageInfo:
    return ImageInfo("image/png", Size(1024, 1024) if name_of(source) == PASTED else Size(960, 960), 5000)


def left(pasted: Source, words: int) -> int:
    """Return how many images are removed with so much text and a user's image behind most of them."""
    messages = [Message("user", opens_turn=True)]
    sights = []
    for _ in range(VIEWS):
        messages += [Message("assistant"), Message("tool")]
        path = f"/{len(messages)}.png"
        place = ("messages", len(messages) - 1, "content", 0)
        sights.append(Sight(place, inline(path), "tool", ToolCall("c", "Read", path), len(messages) - 1))
    sights.insert(9, Sight(("messages", 19, "content", 0), pasted, "user", message=19))
    scene = Scene("m", tuple(sights), messages=(*messages, Message("assistant")), tools=frozenset({"Read"}))
    lengths = [words if index == 20 else 0 for index in range(len(scene.messages))]
    table = Table(measured, history=ConversationHistory(tuple(lengths)), kept=KeptImage("5" * 64, measured(inline())))
    return sum(isinstance(fate, Retired) for fate in table.fates(scene, LAWS, by=retain))


def test_an_unmeasured_image_counts_as_1024_pixels_a_side() -> None:
    words = range(4700, 5100, 10)
    known = [left(inline(PASTED), each) for each in words]
    assert set(known) == {0, 4}, "a few words more decide"
    for unseen in (LinkSource("https://a.example/b.png"), OpaqueSource("file_1")):
        assert [left(unseen, each) for each in words] == known
