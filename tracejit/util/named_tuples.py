# SPDX-License-Identifier: BSD-3-Clause
"""Named tuples that take a tenth of the time to define.

``typing.NamedTuple`` compiles the text of a constructor for each class and makes five methods, which takes 0.85 million
instructions; the classes that `import tracejit` defines took a third of its time. Here a constructor is the code
object of a constructor for as many fields, with other names, and the methods are shared. Type checkers read
``typing.NamedTuple``.
"""

import sys
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 14):  # which keeps annotations as functions
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414  # the others import it from here
else:
    from _collections import _tuplegetter

    class _Methods(tuple):
        """The methods that all named tuples share."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Any:
            instance = tuple.__new__(cls, values)
            if len(instance) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(instance)}")
            return instance

        def _replace(self, /, **others: Any) -> Any:
            instance = self._make(map(others.pop, self._fields, self))
            if others:
                error = (
                    TypeError if sys.version_info >= (3, 13) else ValueError
                )  # as in collections.namedtuple
                raise error(f"Got unexpected field names: {list(others)!r}")
            return instance

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            fields = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)]
            return f"{type(self).__name__}({', '.join(fields)})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    class _NamedTupleMeta(type):
        """Turns the annotations of a class into fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
            types = body.get("__annotations__", {})
            fields = tuple(types)
            defaults = {field: body[field] for field in fields if field in body}
            if fields[len(fields) - len(defaults) :] != tuple(defaults):
                raise TypeError(f"{name}: a field without a default follows one that has a default")
            constructor = FunctionType(
                _constructor(len(fields)).replace(co_varnames=("_cls", *fields)),
                {"_new": tuple.__new__, "__builtins__": {}, "__name__": body["__module__"]},
                "__new__",
                tuple(defaults.values()),
            )
            constructor.__annotations__ = dict(types)
            constructor.__qualname__ = f"{name}.__new__"
            added = {
                "__doc__": f"{name}({', '.join(fields)})",
                "__slots__": (),
                "__new__": constructor,
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            }
            for number, field in enumerate(fields):
                body[field] = _tuplegetter(number, f"Alias for field number {number}")
            others = tuple([base for base in bases if base is not _Base])
            return type(name, (_Methods, *others), {**added, **body, "__slots__": ()})

    @lru_cache(None)
    def _constructor(count: int) -> CodeType:
        """Return the code of the constructor of a tuple of so many fields."""
        names = "".join([f"f{number}, " for number in range(count)])
        text = f"lambda _cls, {names}: _new(_cls, ({names}))"
        code: CodeType = eval(
            compile(text, "<tracejit>", "eval")
        ).__code__  # no code of a user, which is watched
        return code.replace(co_name="__new__")

    _Base = type.__new__(_NamedTupleMeta, "_Base", (), {})

    class _Definition:
        """A stand-in for the base of a class that is a named tuple."""

        def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
            return (_Base,)

    NamedTuple = _Definition()
