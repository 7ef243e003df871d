"""A class decorator for values, of which every request creates many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, make_dataclass
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[T]) -> type[T]:
    """Declare a dataclass that type checkers treat as frozen.

    At run time nothing prevents changes: with `frozen=True` creating an instance takes five times as long. The methods
    do what those of a dataclass do, but only `__init__` is compiled from text, when the first instance is created.
    Compiling all methods of all classes would be a third of the proxy's start.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__  # else `dataclass` inspects the signature and writes it there
    declared: Any = dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    own = vars(declared)
    for name, method in _build_methods(declared, fields(declared)).items():
        if own.get(name) is None:  # None: a class with its own `__eq__` has no hash
            setattr(declared, name, method)
    return cast("type[T]", declared)


def _build_methods(cls: Any, declared: tuple[Field[Any], ...]) -> dict[str, Callable[..., object]]:
    shown = [each.name for each in declared if each.repr]
    read = _build_getter([each.name for each in declared if each.compare])
    read_hashed = _build_getter([each.name for each in declared if (each.compare if each.hash is None else each.hash)])

    def initialize(self: object, *args: object, **kwargs: object) -> None:
        cls.__init__ = compiled = _compile_init(cls, declared)  # which takes the place of this function
        compiled(self, *args, **kwargs)

    def write(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"

    def equals(self: object, other: object) -> object:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    def compute_hash(self: object) -> int:
        return hash(read_hashed(self))

    return {"__init__": initialize, "__repr__": write, "__eq__": equals, "__hash__": compute_hash}


def _build_getter(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else type


def _compile_init(cls: Any, declared: tuple[Field[Any], ...]) -> Callable[..., object]:
    """Return the `__init__` of a dataclass with the same fields."""
    own: dict[str, Any] = {"__doc__": cls.__doc__}
    if hasattr(cls, "__post_init__"):
        own["__post_init__"] = cls.__post_init__
    parts = [(each.name, None, _copy_field(each)) for each in declared]
    compiled: Any = make_dataclass(cls.__name__, parts, namespace=own, repr=False, eq=False, match_args=False)
    return cast("Callable[..., object]", compiled.__init__)


def _copy_field(declared: Field[Any]) -> Any:
    return field(
        default=declared.default, default_factory=declared.default_factory, init=declared.init, kw_only=declared.kw_only
    )  # fmt: skip
