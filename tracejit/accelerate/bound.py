# SPDX-License-Identifier: BSD-3-Clause
"""The parts of bound methods, an object and a function, which the class of methods makes a method of again.

``weakref.WeakMethod(obj.step)`` keeps weak references to both, and calls the class of the method with them later.
"""

import inspect
import types
from typing import TYPE_CHECKING, Any


class OfMethods(type):
    """The class of a class whose instances are functions, or methods where they are made of one and an object."""

    if not TYPE_CHECKING:

        def __call__(cls, function, *instance, **options):
            """Return a new instance; of a function and an object, the method that the object has."""
            if not instance:
                return super().__call__(function, **options)
            if isinstance(function, cls):
                return function.__get__(*instance)
            return super().__call__(types.MethodType(function, *instance), **options)

        @property
        def __signature__(cls):
            """The parameters of the constructor, which inspect.signature() asks for."""
            own = inspect.signature(cls.__init__)
            return own.replace(parameters=[*own.parameters.values()][1:])


class BoundMethod:
    """The parts of a bound method, of which other functions have none."""

    __slots__ = ()

    @property
    def __self__(self) -> Any:
        """The object that the method belongs to."""
        return self._method().__self__

    @property
    def __func__(self) -> Any:
        """The function of the class."""
        method, unbound = self._method(), getattr(self, "_unbound", None)
        return method.__func__ if unbound is None else unbound

    def _method(self) -> types.MethodType:
        """Return the underlying method.

        Raises:
            AttributeError: if the underlying function is no method.
        """
        function = getattr(self, "_function", None)
        if not isinstance(function, types.MethodType):
            raise AttributeError("the underlying function is no bound method")
        return function
