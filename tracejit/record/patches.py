# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy, and of Python's `math`, that are replaced while something is recorded.

NumPy uses no protocol when it makes an array of numbers (np.zeros(3)), so it cannot be told that the array will hold
traced values. While a recording is open, in any thread, the names in NumPy's namespace stand for replacements. These do
the same as NumPy's functions, except where a user's code calls them in a thread that records (user_calls.py).

Note [lists of traced arrays]
np.diag([x, y]) asks its arguments for protocols, and a list has none: NumPy would make an ndarray of the list, which
would lose the trace. So all functions that ask for protocols are replaced too. They get an array in place of the list,
in any code, as np.array(list) makes one. What stands for a ufunc has the attributes of the ufunc, and is an instance of
np.ufunc for isinstance().
"""

import os
import sys
from collections.abc import Callable, Collection
from functools import update_wrapper
from typing import Any, ClassVar

import numpy as np

from tracejit.record import methods_in_c, monitor
from tracejit.record.conversion import LISTS
from tracejit.record.current import thread
from tracejit.record.exchanged_methods import ExchangedMethod, has_usual_classes
from tracejit.record.imports import Finder
from tracejit.record.namespaces import Namespace, UserNamespaces
from tracejit.record.user_calls import NUMPY, OWN, call_of_user, is_file_of_library
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple


class Patched:
    """A function of NumPy, or its substitute in a user's code that is recorded.

    It equals NumPy's and has its hash, so that tables of functions (Numba's, tracejit's) find it.
    """

    is_made_for_users = True

    def __init__(self, module: Any, name: str, instead: Callable[..., Any]) -> None:
        original = getattr(module, name)
        update_wrapper(self, original, updated=() if isinstance(original, type) else ("__dict__",))
        self.module = module
        self.name = name
        self._original = original
        self._instead = instead

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is None:
            return self._original(*args, **kwargs)
        call = call_of_user(sys._getframe(1), self)
        if call is None:
            return self._original(*args, **kwargs)
        with monitor.paused():
            return self._instead(self._original, call.is_kept, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __reduce__(self) -> Any:
        return (_of_numpy, (self.module.__name__, self.name))

    def __repr__(self) -> str:
        return repr(self._original)


class ListTaker(Patched):
    """A function of NumPy that gets arrays in place of lists that hold traced ones (Note [lists of traced arrays]).

    It gets arrays in place of numbers, too, that are computed from arrays: nobody asks these for a protocol either.
    """

    is_made_for_users = False
    taken: ClassVar[set[type]] = {*LISTS, np.poly1d}
    written: ClassVar[dict[Any, str]] = {}  # the names of arguments that functions write
    unasked: ClassVar[set[Any]] = set()  # functions that ask no protocols of some arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None:
            if "out" in kwargs or self._original in self.written:
                with monitor.paused():
                    args, kwargs = _with_outputs(self._original, args, kwargs)
            for given in (*args, *kwargs.values()):
                if type(given) in self.taken or self._original in self.unasked:
                    with monitor.paused():
                        args, kwargs = self._instead(self._original, args, kwargs)
                    break
        return self._original(*args, **kwargs)


class UfuncTaker(ListTaker):
    """A ufunc that gets arrays in place of lists that hold traced ones, as its methods do."""

    taken: ClassVar[set[type]] = {*LISTS}

    __class__ = property(lambda self: np.ufunc, vars(object)["__class__"].__set__)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._original, name)
        if thread.recorder is None or name not in ("reduce", "accumulate", "outer", "reduceat", "at"):
            return attribute

        def method(*args: Any, **kwargs: Any) -> Any:
            with monitor.paused():
                args, kwargs = self._instead(self._original, args, kwargs)
            return attribute(*args, **kwargs)

        def at(array: Any, key: Any, *rest: Any, **kwargs: Any) -> Any:
            with monitor.paused():
                array = _output_of_method(array, key, rest)
            if type(key) is not tuple:
                return method(array, key, *rest, **kwargs)
            # An index for each axis, which is no list of numbers. NumPy does not ask the indices who answers.
            numpys = (np.ndarray, np.generic)
            with monitor.paused():
                rest, kwargs = self._instead(self._original, rest, kwargs)
            for part in key:
                if hasattr(type(part), "__array_ufunc__") and not issubclass(type(part), numpys):
                    return part.__array_ufunc__(self._original, "at", array, key, *rest, **kwargs)
            return attribute(array, key, *rest, **kwargs)

        return at if name == "at" else method


# What the user's code is told of their types.
ListTaker.__name__ = ListTaker.__qualname__ = "_ArrayFunctionDispatcher"
UfuncTaker.__name__ = UfuncTaker.__qualname__ = "ufunc"
ListTaker.__module__ = UfuncTaker.__module__ = "numpy"


class Asked(Patched):
    """A function of NumPy that asks for no protocol, and is replaced where any code calls it with our arrays."""

    is_made_for_users = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None:
            with monitor.paused():
                result = self._instead(self._original, *args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._original(*args, **kwargs)


class AskedByUser(Asked):
    """A function that is replaced where the user's code calls it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None and not monitor.is_library(sys._getframe(1).f_code.co_filename):
            return super().__call__(*args, **kwargs)
        return self._original(*args, **kwargs)


class AskedClass(Asked):
    """A class that is replaced where it is called with our arrays; it is the class for everything else."""

    def __init__(
        self, module: Any, name: str, instead: Callable[..., Any], attribute: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(module, name, instead)
        self._attribute = attribute

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        if self._attribute is None or thread.recorder is None:
            return found
        return self._attribute(name, found)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._original)

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, self._original)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (self._original,)


class NumbersTaker(Asked):
    """A function of numbers, which is replaced where code calls it with other things than numbers.

    SciPy's code, and Python's own, gets plain numbers, whose types it may ask for.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None:
            for given in args:
                if type(given) not in _NUMBERS:
                    file = sys._getframe(1).f_code.co_filename
                    if monitor.is_library(file) and not file.startswith((NUMPY, OWN)):
                        break
                    return super().__call__(*args, **kwargs)
        return self._original(*args, **kwargs)


_NUMBERS = frozenset({float, int, bool, np.float64, np.float32, np.int64})


def _of_numpy(module: str, name: str) -> Any:
    return original(getattr(sys.modules[module], name))


_lock = new_lock()
_patched: dict[Any, Patched] = {}
_modules: list[Namespace] = []
_methods: list[Any] = []
_open: set[int] = set()


def replace(name: str, instead: Callable[..., Any]) -> None:
    """Have a function of NumPy replaced while something is recorded.

    Args:
        name: of the function.
        instead: is called with NumPy's function, whether the result is kept (UserCall), and the arguments.
    """
    _put(Patched(np, name, instead), name)


def take_lists(number: type, instead: Callable[..., Any], unasked: Collection[Any]) -> None:
    """Have NumPy's other functions replaced that ask protocols of arrays, while something is recorded.

    Args:
        number: the class of numbers that are traced.
        instead: is called with NumPy's function, the tuple of its arguments and the dict of those by name, if there is
            a list among them, or such a number and the function is no ufunc, and returns the arguments that NumPy's
            function gets.
        unasked: functions of NumPy that ask no protocols of some arguments, and are replaced whatever they get.
    """
    ListTaker.taken.add(number)
    ListTaker.unasked.update(unasked)
    for module in (np, np.linalg, np.fft, np.lib.stride_tricks):
        for name, function in [*vars(module).items()]:
            if type(function) is _PROTOCOL and type(_patched.get(function)) not in (Patched, Asked):
                _put(_patched.get(function) or ListTaker(module, name, instead), name)
            elif type(function) is np.ufunc:
                _put(_patched.get(function) or UfuncTaker(module, name, instead), name)


def take_outputs(
    written: dict[Any, str],
    replaced: Callable[[Any, Any, dict[str, Any]], tuple[Any, dict[str, Any]]],
    of_method: Callable[..., Any],
) -> None:
    """Have ndarrays replaced that calls of NumPy's functions write traced values into; called once.

    Args:
        written: the names of the first arguments of functions that write these.
        replaced: is called with a function, its arguments and those by name, and returns those that it gets.
        of_method: is called with the arguments of ``ufunc.at``, and returns the array that it gets.
    """
    global _with_outputs, _output_of_method
    ListTaker.written.update(written)
    _with_outputs, _output_of_method = replaced, of_method


_with_outputs: Callable[[Any, Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
_output_of_method: Callable[..., Any]


def answer(module: Any, name: str, instead: Callable[..., Any], is_alias: bool = False) -> None:
    """Have a function of NumPy that asks no protocol replaced while something is recorded, in any code.

    Args:
        module: of the function.
        name: of the function.
        instead: is called with NumPy's function and the arguments; it may return NotImplemented.
        is_alias: whether this is a second name of a function that is replaced by another name where an object holds it.
    """
    _put(Asked(module, name, instead), name, is_alias)


def answer_user(module: Any, name: str, instead: Callable[..., Any]) -> None:
    """Have a function replaced while something is recorded, in the user's code.

    Args:
        module: of the function.
        name: of the function.
        instead: is called with the function and the arguments; it may return NotImplemented.
    """
    _put(AskedByUser(module, name, instead), name)


def answer_class(
    module: Any, name: str, instead: Callable[..., Any], attribute: Callable[[str, Any], Any] | None = None
) -> None:
    """Have a class replaced while something is recorded, where its objects are made by the name in its module.

    Args:
        module: of the class.
        name: of the class.
        instead: is called with the class and the arguments; it may return NotImplemented.
        attribute: is called with the name of an attribute and the class's own, such as another function that makes
            objects, and returns what stands for it.
    """
    _put(AskedClass(module, name, instead, attribute), name)


def answer_numbers(module: Any, name: str, instead: Callable[..., Any]) -> None:
    """Have a function of numbers replaced while something is recorded, in any code.

    Args:
        module: of the function.
        name: of the function.
        instead: is called with the function and its arguments, of which one at least is no number; it may return
            NotImplemented.
    """
    _put(NumbersTaker(module, name, instead), name)


def when_imported(name: str, install: Callable[[], object]) -> None:
    """Have functions replaced of a module that few programs import, once it is there and something is recorded."""
    _waiting.setdefault(name, []).append(install)


_waiting: dict[str, list[Callable[[], object]]] = {}


def _imported(name: str) -> None:
    """Have the functions of a module replaced that is imported."""
    known = len(_modules)
    for install in _waiting.pop(name, ()):  # another thread may begin, too
        install()
    for module in _modules[known:] if _open else ():
        module.put(True)


_finder = Finder(_waiting.__contains__, _imported)


def _put(patched: Patched, name: str, is_alias: bool = False) -> None:
    names = vars(patched.module)
    if not any(module.names is names for module in _modules):
        _modules.append(Namespace(names))
    module = next(module for module in _modules if module.names is names)
    module.originals[name], module.patched[name] = patched._original, patched
    _KINDS.add(type(patched._original))
    if not is_alias:
        _patched[patched._original] = patched


_PROTOCOL = type(np.sum)


def replace_method(owner: type, name: str, instead: Callable[..., Any]) -> None:
    """Have a method of a class of NumPy replaced while something is recorded.

    Args:
        owner: the class.
        name: of the method.
        instead: is called with NumPy's method and the arguments, in a thread that records.

    A class whose attributes cannot be set keeps its method in a Python whose classes have an unknown structure.
    """
    method = getattr(owner, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs) if thread.recorder is None else instead(method, *args, **kwargs)

    if not owner.__flags__ & _IMMUTABLE:
        _methods.append(_Method(owner, name, method, update_wrapper(patched, method)))
    elif has_usual_classes():
        methods_in_c.add(ExchangedMethod(owner, name, None, update_wrapper(patched, method)))


_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class _Method(NamedTuple):
    owner: type
    name: str
    original: Callable[..., Any]
    patched: Callable[..., Any]

    def put(self, is_open: bool) -> None:
        """Put the method for a recording, or that of NumPy, in its place; what somebody else has put there stays."""
        old, new = (self.original, self.patched) if is_open else (self.patched, self.original)
        if getattr(self.owner, self.name) is old:
            setattr(self.owner, self.name, new)


def replace_objects(kind: type, make: Callable[[Any], Patched | None]) -> None:
    """Have the objects of a class replaced that names in modules of users, and objects of users, lead to.

    Args:
        kind: the class.
        make: returns what stands for an object of the class, or None for one that stays.
    """
    _KINDS.add(kind)
    _makers[kind] = make


_makers: dict[type, Callable[[Any], Patched | None]] = {}


def forget(function: Any) -> None:
    """Forget what stands for an object, which something may still hold; another is made when it is needed."""
    _patched.pop(function, None)


def original(function: Any) -> Any:
    """Return the function of NumPy that stands outside of recordings where `function` does inside one."""
    return function._original if isinstance(function, Patched) else function


def _patch_of(function: Any) -> tuple[Any, Patched] | None:
    """Return the function of NumPy that is given, and what stands for it in recordings; None for anything else."""
    if not is_patched(function):
        return None
    return original(function), _patched[function]


def standing_for(function: Any) -> Any:
    """Return what stands for a function while something is recorded: the function itself, unless it is replaced."""
    return _patched[function] if is_patched(function) else function


def is_patched(function: Any) -> bool:
    """Return whether a function is one that is replaced while something is recorded."""
    kind = type(function)
    if kind in _makers and function not in _patched:
        made = _makers[kind](function)
        if made is not None:
            _KINDS.add(type(made))
            _patched[function] = made
    return kind in _KINDS and function in _patched


def begin(recording: object, names: dict[str, Any] | None) -> None:
    """Replace the functions while a recording is open: in NumPy, and among global names of users.

    These are those of the recorded function, and of modules that are no library's.
    """
    for name in [name for name in _waiting if name in sys.modules]:
        _imported(name)
    with _lock:
        if not _open:
            _users.look()
            _finder.begin()
        _open.add(id(recording))
        if names is not None and not _users.has(names) and not any(names is other for other in _namespaces):
            _namespaces.append(names)
        _exchange(True)
        for method in _methods:
            method.put(True)


def end(recording: object) -> None:
    """Restore the functions, if this was the last recording that was open; may be called twice."""
    _end(id(recording))


def _end(recording: int) -> None:
    with _lock:
        _open.discard(recording)
        if not _open:
            _finder.end()
            _exchange(False)
            for method in _methods:
                method.put(False)
            _namespaces.clear()


def _exchange(is_open: bool) -> None:
    """Exchange functions; what somebody else has put in the place of one stays."""
    for namespace in (*_modules, *_users.with_functions):
        if namespace.originals:
            namespace.put(is_open)
    for names in _namespaces:
        for name, function in [*names.items()]:
            if type(function) in _KINDS:
                if not is_open:
                    if (
                        original(function) is not function
                    ):  # a name that another thread removes must not come back
                        names[name] = original(function)
                elif is_patched(function):
                    names[name] = _patched[function]


# Of replacements, and of what they replace.
_KINDS: set[type] = {Patched, ListTaker, UfuncTaker, Asked, AskedByUser, AskedClass, NumbersTaker}
_namespaces: list[dict[str, Any]] = []
_users = UserNamespaces(_patch_of, is_file_of_library)


def _in_child() -> None:
    """Restore the functions in a forked child, which does not have the threads that recorded."""
    if thread.recorder is None:
        for recording in [*_open]:
            _end(recording)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
