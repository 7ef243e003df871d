"""Who takes a request, where turns with new images have a model of their own, and who wrote what stands in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.model.scene import Message, Role, Scene, Sight
from sightline.passes.together import route
from tests.passes.scenes import inline
from tests.requirements import requirement

ROLES: tuple[Role, ...] = ("user", "assistant", "tool")


def talk(written: str) -> Scene:
    """U: a user speaks, P: with a picture, A: the assistant, T: a tool, S: one that brings a picture."""
    roles: dict[str, Role] = {"U": "user", "P": "user", "A": "assistant", "T": "tool", "S": "tool"}
    messages = tuple(Message(roles[each], opens=each in "UP") for each in written)
    pictures = [index for index, each in enumerate(written) if each in "PS"]
    sights = (Sight(("m", index), inline(str(index)), "user", message=index) for index in pictures)
    return Scene("main", tuple(sights), messages=messages)


@requirement("mode.route")
def test_a_turn_goes_to_the_image_model_from_its_first_image_on() -> None:
    ways = {
        written: route(talk(written), "eyes").model for written in ("U", "P", "UAT", "UAS", "UASAT", "PAU", "PAUAS")
    }
    assert ways == {
        "U": "main", "P": "eyes", "UAT": "main", "UAS": "eyes", "UASAT": "eyes", "PAU": "main", "PAUAS": "eyes",
    }  # fmt: skip
    assert route(talk("P"), "eyes").elsewhere
    assert not route(talk("U"), "eyes").elsewhere


@requirement("mode.route.reasoning")
def test_each_of_both_models_is_a_stranger_to_the_other() -> None:
    assert route(talk("UATASATU"), "eyes").strangers == {5}, "what the one that sees said behind the image"
    assert route(talk("UATASAT"), "eyes").strangers == {1, 3}, "what the other had said in the same turn before it"
    assert route(talk("UAPA" + "U" + "AS"), "eyes").strangers == {1, 5}
    assert route(talk("UAPAU"), "eyes").turn == 4


@requirement("law.2", "mode.route.reasoning")
@given(st.text("UPATS", min_size=1, max_size=20), st.integers(1, 20))
def test_however_a_conversation_goes_on_its_beginning_is_divided_the_same_way(written: str, cut: int) -> None:
    whole, part = route(talk(written), "eyes"), route(talk(written[:cut]), "eyes")
    speaks = {index for index, each in enumerate(written[:cut]) if each == "A"}

    def by_eyes(strangers: frozenset[int], model: str) -> set[int]:
        theirs = strangers & speaks
        return speaks - theirs if model == "eyes" else set(theirs)

    assert by_eyes(whole.strangers, whole.model) == by_eyes(part.strangers, part.model)
