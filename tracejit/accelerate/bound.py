# SPDX-License-Identifier: BSD-3-Clause
"""Bound methods that can be made again of their parts, an object and a function.

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
    """The attributes that a bound method has, __self__ and __func__; other functions lack them."""

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
