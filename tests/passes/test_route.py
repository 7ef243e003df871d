"""Routing turns with new images to another model, and which messages that model wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.model.scene import Message, Role, Scene, Sight
from sightline.passes.tell import choose_route
from tests.passes.scenes import inline
from tests.requirements import requirement

ROLES: tuple[Role, ...] = ("user", "assistant", "tool")


def talk(written: str) -> Scene:
    """Build a scene. U: user, P: user with an image, A: assistant, T: tool, S: tool with an image."""
    roles: dict[str, Role] = {"U": "user", "P": "user", "A": "assistant", "T": "tool", "S": "tool"}
    messages = tuple(Message(roles[each], opens_turn=each in "UP") for each in written)
    pictures = [index for index, each in enumerate(written) if each in "PS"]
    sights = (Sight(("m", index), inline(str(index)), "user", message=index) for index in pictures)
    return Scene("main", tuple(sights), messages=messages)


@requirement("mode.route")
def test_a_turn_goes_to_the_image_model_from_its_first_image_on() -> None:
    ways = {
        written: choose_route(talk(written), "eyes").model
        for written in ("U", "P", "UAT", "UAS", "UASAT", "PAU", "PAUAS")
    }
    assert ways == {
        "U": "main", "P": "eyes", "UAT": "main", "UAS": "eyes", "UASAT": "eyes", "PAU": "main", "PAUAS": "eyes",
    }  # fmt: skip
    assert choose_route(talk("P"), "eyes").is_rerouted
    assert not choose_route(talk("U"), "eyes").is_rerouted


@requirement("mode.route.reasoning")
def test_messages_of_the_other_model_are_foreign() -> None:
    assert choose_route(talk("UATASATU"), "eyes").foreign_messages == {5}, (
        "what the one that sees said behind the image"
    )
    assert choose_route(talk("UATASAT"), "eyes").foreign_messages == {1, 3}, (
        "what the other had said in the same turn before it"
    )
    assert choose_route(talk("UAPA" + "U" + "AS"), "eyes").foreign_messages == {1, 5}
    assert choose_route(talk("UAPAU"), "eyes").turn_start == 4


@requirement("law.2", "mode.route.reasoning")
@given(st.text("UPATS", min_size=1, max_size=20), st.integers(1, 20))
def test_the_routing_of_earlier_messages_does_not_change(written: str, cut: int) -> None:
    whole, part = choose_route(talk(written), "eyes"), choose_route(talk(written[:cut]), "eyes")
    speaks = {index for index, each in enumerate(written[:cut]) if each == "A"}

    def by_eyes(strangers: frozenset[int], model: str) -> set[int]:
        theirs = strangers & speaks
        return speaks - theirs if model == "eyes" else set(theirs)

    assert by_eyes(whole.foreign_messages, whole.model) == by_eyes(part.foreign_messages, part.model)
