"""Values: equal by fields and class, without other attributes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from sightline.model.facts import CompareFile, Facts, Keep, Need, Needs, Probe
from sightline.model.scene import InlineSource, LinkSource, Shown, Sight
from sightline.model.value import value_class

IMAGE = InlineSource("image/png", b"iVBORw0KGgo=")


def test_values_are_equal_by_fields_and_class() -> None:
    assert Probe(IMAGE) == Probe(InlineSource("image/png", b"iVBORw0KGgo="))
    assert len({Probe(IMAGE), Probe(IMAGE), Keep(IMAGE), CompareFile("/a.png", IMAGE, 3)}) == 3
    kinds: list[Need] = [Probe(IMAGE), Keep(IMAGE)]
    assert kinds[0] != kinds[1], "or the answer to one would be taken for the answer to the other"


def test_a_value_has_no_other_attributes() -> None:
    sight = Sight(("messages", 0), LinkSource("https://a/b.png"), "user")
    assert replace(sight, fate=Shown()) == sight.with_fate(Shown())
    assert replace(sight, fate=Shown()) != sight
    with pytest.raises(AttributeError):
        sight.colour = "red"  # type: ignore[attr-defined]


def test_get_all_returns_all_facts_or_the_missing_needs() -> None:
    needs = {"here": CompareFile("/a.png", IMAGE, 1), "there": CompareFile("/b.png", IMAGE, 1)}
    assert Facts().get_all(needs, bool) == Needs(frozenset(needs.values()))
    some = Facts({needs["here"]: False})
    assert some.get_all(needs, bool) == Needs(frozenset({needs["there"]})), "an answer may well be no"
    assert some.with_facts({needs["there"]: True}).get_all(needs, bool) == {"here": False, "there": True}


@value_class
class Coin:
    """A value with each kind of field."""

    size: int
    sides: tuple[str, ...] = ()
    owner: str = field(default="", compare=False)
    ledger: bytes = field(default=b"", compare=False, repr=False)
    marks: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FrozenCoin:
    """The same as a dataclass."""

    size: int
    sides: tuple[str, ...] = ()
    owner: str = field(default="", compare=False)
    ledger: bytes = field(default=b"", compare=False, repr=False)


@value_class
class Token:
    """A value without fields."""


@value_class
class Wallet:
    """A value with methods of its own."""

    coins: list[int]

    def __repr__(self) -> str:
        return "Wallet"

    def __hash__(self) -> int:
        return 7


def test_methods_of_a_value_do_what_those_of_a_dataclass_do() -> None:
    one, other = Coin(2, ("a",), "me", b"x"), Coin(2, ("a",), "you")
    assert one == other
    assert hash(one) == hash(other) == hash(FrozenCoin(2, ("a",)))
    assert repr(one) == repr(FrozenCoin(2, ("a",), "me")).removeprefix("Frozen")
    others: list[object] = [2, FrozenCoin(2, ("a",)), Coin(3)]
    assert one not in others
    assert (Token() == Token(), repr(Token()), len({Token(), Token()})) == (True, "Token()", 1)


@value_class
class Purse:
    """A value that checks its fields."""

    coins: int = 1

    def __post_init__(self) -> None:
        if self.coins < 0:
            raise ValueError("a purse holds no debts")


def test_a_value_is_created_like_a_dataclass() -> None:
    one = Coin(2, owner="me")
    assert (one.size, one.sides, one.owner, one.ledger, one.marks) == (2, (), "me", b"", [])
    one.marks.append("old")
    assert (Coin(2).marks, Coin(2, marks=["new"]).marks) == ([], ["new"]), "each has a list of its own"
    assert (Purse().coins, replace(Purse(), coins=2).coins) == (1, 2)
    with pytest.raises(ValueError, match="debts"):
        Purse(-3)
    with pytest.raises(TypeError, match="size"):
        Coin()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="weight"):
        Coin(2, weight=3)  # type: ignore[call-arg]


@value_class
class Stamp:
    """A value with a field that its caller doesn't give."""

    number: int
    prints: list[str] = field(default_factory=list, init=False)


def test_a_field_that_is_not_given_is_set_from_its_default() -> None:
    assert (Stamp(3).number, Stamp(3).prints) == (3, [])
    with pytest.raises(TypeError, match="positional"):
        Stamp(3, [])  # type: ignore[call-arg]


def test_a_value_keeps_its_own_methods() -> None:
    assert (repr(Wallet([1])), hash(Wallet([1]))) == ("Wallet", 7)
    assert Wallet([1]) == Wallet([1])
    assert Wallet([1]) != Wallet([2])
