# SPDX-License-Identifier: BSD-3-Clause
"""Named tuples do what those of typing do."""

import copy
import inspect
import pickle
import typing
from typing import Any, Generic, TypeVar

import pytest

from tracejit.util.named_tuples import NamedTuple

T = TypeVar("T")


class Ours(NamedTuple):
    """A place."""

    name: str
    size: "int"
    parts: tuple[int, ...] = ()
    origin: Any = None

    @property
    def twice(self) -> int:
        return 2 * self.size

    def __str__(self) -> str:
        return f"{self.name} of {self.size}"


class Theirs(typing.NamedTuple):
    """A place."""

    name: str
    size: "int"
    parts: tuple[int, ...] = ()
    origin: Any = None

    @property
    def twice(self) -> int:
        return 2 * self.size

    def __str__(self) -> str:
        return f"{self.name} of {self.size}"


class Pair(NamedTuple, Generic[T]):
    first: T
    second: T


class Nothing(NamedTuple):
    pass


USES: dict[str, Any] = {
    "constructor": lambda cls: tuple(cls("a", 1)),
    "keywords": lambda cls: tuple(cls(size=1, name="a", origin=3)),
    "fields": lambda cls: (cls._fields, cls.__match_args__, cls._field_defaults),
    "attributes": lambda cls: (cls("a", 1).size, cls("a", 1).parts, cls("a", 1).twice, str(cls("a", 1))),
    "replace": lambda cls: tuple(cls("a", 1)._replace(size=2)),
    "make": lambda cls: tuple(cls._make(iter(["a", 1, (), None]))),
    "dict": lambda cls: cls("a", 1)._asdict(),
    "repr": lambda cls: repr(cls("a", 1, (1,))).removeprefix(cls.__name__),
    "equal": lambda cls: (cls("a", 1) == ("a", 1, (), None), hash(cls("a", 1)), cls("a", 1) < cls("b", 0)),
    "copy": lambda cls: (copy.copy(cls("a", 1)).size, type(copy.deepcopy(cls("a", 1))) is cls),
    "pickle": lambda cls: type(pickle.loads(pickle.dumps(cls("a", 1)))) is cls,
    "signature": lambda cls: [
        (p.name, p.default, p.kind) for p in inspect.signature(cls).parameters.values()
    ],
    "annotations": lambda cls: (cls.__annotations__.keys(), typing.get_type_hints(cls)["size"]),
    "documentation": lambda cls: (cls.__doc__, cls.name.__doc__, cls.__module__, cls.__slots__),
    "new": lambda cls: (cls.__new__.__name__, cls.__new__.__qualname__.removeprefix(cls.__name__)),
}
MISTAKES: dict[str, Any] = {
    "too few": lambda cls: cls("a"),
    "too many": lambda cls: cls("a", 1, (), None, 3),
    "unknown": lambda cls: cls("a", 1, other=2),
    "unknown in replace": lambda cls: cls("a", 1)._replace(other=2),
    "wrong count": lambda cls: cls._make("ab"),
    "assignment": lambda cls: setattr(cls("a", 1), "name", "b"),
    "new attribute": lambda cls: setattr(cls("a", 1), "other", "b"),
}


@pytest.mark.parametrize("use", USES)
def test_uses(use: str) -> None:
    assert USES[use](Ours) == USES[use](Theirs)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    errors = []
    for cls in (Ours, Theirs):
        with pytest.raises((TypeError, ValueError, AttributeError)) as error:
            MISTAKES[mistake](cls)
        errors.append((type(error.value), str(error.value).replace(cls.__name__, "")))
    assert errors[0] == errors[1]


def test_a_field_without_a_default_after_one_with_a_default() -> None:
    with pytest.raises(TypeError, match="default"):

        class Wrong(NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]


def test_patterns() -> None:
    match Ours("a", 1):
        case Ours(name, size=1):
            assert name == "a"
        case _:
            pytest.fail("a named tuple is matched by position and by name")


def test_generic_and_empty() -> None:
    assert Pair[int](1, 2) == (1, 2) and Pair[int](1, 2).second == 2
    assert Nothing() == () and repr(Nothing()) == "Nothing()"
