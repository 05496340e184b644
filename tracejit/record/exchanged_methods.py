# SPDX-License-Identifier: BSD-3-Clause
"""Methods of NumPy's classes that are exchanged while something is recorded.

NumPy's classes are written in C, and their attributes cannot be set. So the function for ``ndarray[key]`` in the
structure of the class is exchanged for the one that Python gives a class whose ``__getitem__`` is written in Python,
and ``__getitem__`` in its dict for a function of ours. A method that is called by its name is exchanged in the dict
alone. Where the structure is not as expected (another Python than CPython, one without a global lock) nothing is
exchanged.
"""

import ctypes
import gc
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

from tracejit.util.locks import new_lock

_WORD = ctypes.sizeof(ctypes.c_void_p)
_MAPPING = 14 * _WORD  # tp_as_mapping in a PyTypeObject
_WRAPPED = 6 * _WORD  # d_wrapped in a PyWrapperDescrObject
_Word = ctypes.c_size_t


class ExchangedMethod:
    """A method of a class of NumPy's, and what is called in its place.

    Args:
        kind: the class.
        name: the name of the method.
        place: of its function in PyMappingMethods, in words; None for a method that is called by its name only.
        instead: the function that is called while something is recorded.
    """

    def __init__(self, kind: type, name: str, place: int | None, instead: Callable[..., Any]) -> None:
        self.kind = kind
        self._name = name
        self._place = place
        self._instead = instead
        self.original: Any = vars(kind)[name]
        self._names: dict[str, Any] = gc.get_referents(kind.__dict__)[0]

    def put(self, is_open: bool) -> bool:
        """Set what is called, for Python's code and for C's; return whether that was another function."""
        function, word = (self._instead, self._of_python) if is_open else (self.original, self._of_numpy)
        if self._names[self._name] is function and (self._place is None or self.word.value == word):
            return False
        self._names[self._name] = function
        if self._place is not None:
            self.word.value = word
        return True

    def _word_of(self, kind: type) -> Any:
        """Return the place in memory of the function of a class."""
        assert self._place is not None
        return _Word.from_address(_Word.from_address(id(kind) + _MAPPING).value + self._place * _WORD)

    @cached_property
    def word(self) -> Any:
        """The place in memory of the function that C's code calls."""
        return self._word_of(self.kind)

    @cached_property
    def _of_python(self) -> int:
        kind = type("_Indexed", (), {self._name: self._instead})
        return 0 if self._place is None else int(self._word_of(kind).value)

    @cached_property
    def _of_numpy(self) -> int:
        return 0 if self._place is None else int(_Word.from_address(id(self.original) + _WRAPPED).value)

    @cached_property
    def is_expected(self) -> bool:
        """True if the class has the structure that is expected; to be asked before anything is exchanged."""
        names = gc.get_referents(self.kind.__dict__)
        is_dict = len(names) == 1 and type(names[0]) is dict and names[0].get(self._name) is self.original
        if not is_dict or self._place is None:
            return is_dict
        is_wrapper = type(self.original).__name__ == "wrapper_descriptor"
        return is_wrapper and bool(self.word.value == self._of_numpy != 0)


class Exchangeable(Protocol):
    """One or several methods of a class that are exchanged at once."""

    @property
    def kind(self) -> type:
        """The class."""

    @property
    def is_expected(self) -> bool:
        """True if the class has the structure that is expected."""

    def put(self, is_open: bool) -> bool:
        """Set what is called; return whether that was another function."""


class ExchangedMethods:
    """Methods that are exchanged together, and the blocks in which they are.

    Args:
        methods: the methods.
    """

    def __init__(self, methods: Sequence[Exchangeable]) -> None:
        self._methods = methods
        self._open: set[int] = set()
        self._lock = new_lock()

    def begin(self, block: int) -> None:
        """Exchange the methods for a block."""
        with self._lock:
            self._open.add(block)
            self._put(True)

    def end(self, block: int) -> None:
        """Put the methods back, if this was the last block that was open; may be called twice."""
        with self._lock:
            self._open.discard(block)
            if not self._open:
                self._put(False)

    def put_new(self) -> None:
        """Exchange methods that have been added, if a block is open."""
        with self._lock:
            if self._open:
                self._put(True)

    def end_all(self) -> None:
        """End all blocks."""
        for block in [*self._open]:
            self.end(block)

    def _put(self, is_open: bool) -> None:
        for kind in {method.kind for method in self._methods if method.put(is_open)}:
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))

    @cached_property
    def is_possible(self) -> bool:
        """True if the classes have the structure that is expected."""
        return has_usual_classes() and all(method.is_expected for method in self._methods)


def has_usual_classes() -> bool:
    """Return whether Python is one whose classes have the structure that is expected."""
    has_lock = getattr(sys, "_is_gil_enabled", None)
    is_other = sys.implementation.name != "cpython" or sys.version_info >= (3, 14)
    return not is_other and (has_lock is None or bool(has_lock()))
