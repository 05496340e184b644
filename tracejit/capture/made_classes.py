# SPDX-License-Identifier: BSD-3-Clause
"""The classes that a call makes itself.

A replay makes such a class in the same way. It finds neither the class of the recording nor the arrays of the call that
this may hold. What its body and its methods read, they read of the functions around them, and of its bases.
"""

import types
from collections.abc import Mapping
from typing import Any

from tracejit.capture.values import is_atom
from tracejit.record.monitor import is_user_class


class MadeClasses:
    """The classes that a call makes, told by the namespaces that the bodies of class statements have filled."""

    def __init__(self) -> None:
        self._bodies: list[Mapping[str, Any]] = []

    def add(self, namespace: Mapping[str, Any]) -> None:
        """Note the namespace that the body of a class statement is going to fill."""
        self._bodies.append(namespace)

    def __contains__(self, value: object) -> bool:
        if not self._bodies or not isinstance(value, type):
            return False
        own = vars(value)
        return any(
            body.get("__qualname__") == value.__qualname__ and _is_filled_by(own, body)
            for body in self._bodies
        )

    def outer_bases(self, kind: type) -> list[type]:
        """Return the bases of a class of the call that were there before, each of which brings its own bases."""
        bases: list[type] = []
        for base in kind.__mro__:
            is_known = any(issubclass(known, base) for known in bases)
            if not is_known and is_user_class(base) and base not in self:
                bases.append(base)
        return bases


def _is_filled_by(own: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether what a class holds is what the body of a class statement has made.

    The statement may have made another class before the call, with functions of its own.
    """
    made = {
        name: value
        for name, value in body.items()
        if not is_atom(value) and (type(value) is types.FunctionType or not name.startswith("__"))
    }
    held = {name: own.get(name) for name in made}
    return bool(made) and all(
        held[name] is value or getattr(held[name], "__func__", None) is value for name, value in made.items()
    )
