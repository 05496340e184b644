# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy, and of Python's `math`, that are replaced while something is recorded.

NumPy uses no protocol when it makes an array of numbers (np.zeros(3)), so it cannot be told that the array will hold
traced values. While a recording is open, in any thread, the names in NumPy's namespace stand for replacements. These do
the same as NumPy's functions, except where a user's code calls them in a thread that records.

Note [calls of users]
Code in C that calls np.asarray has no frame. So the caller's frame may be that of a user's code which called a function
of NumPy's generators, whose C code takes its arguments apart. Therefore the user's frame must be at a call whose callee
reads ``np.asarray``, an attribute of a name that holds NumPy, or ``asarray``, a name that was imported into a module of
users. Calls in other forms get NumPy's own array.

Note [lists of traced arrays]
np.diag([x, y]) asks its arguments for protocols, and a list has none: NumPy would make an ndarray of the list, which
would lose the trace. So all functions that ask for protocols are replaced too. They get an array in place of the list,
in any code, as np.array(list) makes one. What stands for a ufunc has the attributes of the ufunc, and is an instance of
np.ufunc for isinstance().
"""

import dis
import gc
import os
import sys
from collections.abc import Callable
from functools import cached_property, lru_cache, update_wrapper
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, ClassVar

import numpy as np

from tracejit.record import monitor
from tracejit.record.current import thread
from tracejit.record.namespaces import Namespace, UserNamespaces
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple


class Patched:
    """A function of NumPy, or its substitute in a user's code that is recorded.

    It equals NumPy's and has its hash, so that tables of functions (Numba's, tracejit's) find it.
    """

    def __init__(self, module: Any, name: str, instead: Callable[..., Any]) -> None:
        original = getattr(module, name)
        update_wrapper(self, original)
        self.module = module
        self.name = name
        self._original = original
        self._instead = instead

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is None:
            return self._original(*args, **kwargs)
        call = _call_of_user(sys._getframe(1), self.name)
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

    taken: ClassVar[set[type]] = {list, tuple}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None:
            for given in (*args, *kwargs.values()):
                if type(given) in self.taken:
                    with monitor.paused():
                        args, kwargs = self._instead(self._original, args, kwargs)
                    break
        return self._original(*args, **kwargs)


class UfuncTaker(ListTaker):
    """A ufunc that gets arrays in place of lists that hold traced ones, as its methods do."""

    taken: ClassVar[set[type]] = {list, tuple}

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


class Asked(Patched):
    """A function of NumPy that asks for no protocol, and is replaced where any code calls it with our arrays."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None:
            with monitor.paused():
                result = self._instead(self._original, *args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._original(*args, **kwargs)


class NumbersTaker(Asked):
    """A function of numbers, which is replaced where code calls it with other things than numbers.

    SciPy's code, and Python's own, gets plain numbers, whose types it may ask for.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is not None:
            for given in args:
                if type(given) not in _NUMBERS:
                    file = sys._getframe(1).f_code.co_filename
                    if monitor.is_library(file) and not file.startswith((_NUMPY, _OWN)):
                        break
                    return super().__call__(*args, **kwargs)
        return self._original(*args, **kwargs)


_NUMBERS = frozenset({float, int, bool, np.float64, np.float32, np.int64})


def _of_numpy(module: str, name: str) -> Any:
    return original(getattr(sys.modules[module], name))


class UserCall(NamedTuple):
    """A call ``np.function(...)`` or ``function(...)`` in a user's code.

    name          the first name that it reads
    of_module     whether this is the name of the module
    is_kept       whether the result is returned, or kept in a global name, an attribute or a container, at once
    is_returned   whether it is returned
    """

    name: str
    of_module: bool
    is_kept: bool
    is_returned: bool


def _call_of_user(frame: Any, name: str) -> UserCall | None:
    """Return the call of a function of NumPy that a user's code is at, or None (Note [calls of users])."""
    if _is_of_library(frame.f_code) or not _is_for_user(frame):
        return None
    call = _call_at(frame.f_code, frame.f_lasti, name)
    if call is not None:
        for names in (frame.f_locals, frame.f_globals):
            if call.name in names:
                meaning = names[call.name]
                is_ours = (
                    meaning is np if call.of_module else type(meaning) is Patched and meaning.name == name
                )
                return call._replace(is_kept=_is_kept(call, frame)) if is_ours else None
    return None


@lru_cache(maxsize=4096)
def _is_of_library(code: CodeType) -> bool:
    """Return whether code is that of a library; numpy.polynomial, in Python, is recorded as a user's code is."""
    return not code.co_filename.startswith(_RECORDED) and _is_file_of_library(code.co_filename)


def _is_file_of_library(file: str) -> bool:
    return bool(_PACKAGES.intersection(file.split(os.sep))) or monitor.is_library(file)


_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_RECORDED = os.path.join(_NUMPY, "polynomial") + os.sep
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _is_for_user(frame: Any) -> bool:
    """Return whether code is a user's, or that of numpy.polynomial which a user's code has called.

    Libraries call it for tables of their own, also while they are imported.
    """
    while frame is not None and frame.f_code.co_filename.startswith((_RECORDED, _OWN)):
        if frame.f_code.co_name == "<module>":
            return False
        frame = frame.f_back
    return frame is not None and not _is_of_library(frame.f_code)


def _is_kept(call: UserCall, frame: Any) -> bool:
    """Return whether the result of a call is kept, or is made in a function whose results a cache keeps.

    A function that returns it to the user's code gives it to that; one that a library calls, to the library.
    """
    if call.is_kept and (not call.is_returned or frame.f_back is None or _is_of_library(frame.f_back.f_code)):
        return True
    while frame.f_back is not None:
        caller = frame.f_back.f_code
        if _is_of_library(caller):
            return bool(caller is _PROPERTY)
        if _is_cached(frame):
            return True
        frame = frame.f_back
    return False


_CACHE = type(lru_cache(len))
_PROPERTY = cached_property.__get__.__code__


def _is_cached(frame: Any) -> bool:
    """Return whether functools.lru_cache keeps the results of the function of a frame, which does not tell."""
    name = frame.f_code.co_name
    known = [frame.f_back.f_locals.get(name), frame.f_globals.get(name)]
    owner = frame.f_globals.get(frame.f_code.co_qualname.rpartition(".")[0])
    if isinstance(owner, type):
        known.append(vars(owner).get(name))
    return any(type(thing) is _CACHE for thing in known) or _has_cache(frame.f_code)


@lru_cache(maxsize=1024)
def _has_cache(code: CodeType) -> bool:
    """Return whether the collector knows an lru_cache of a function with a code, under whatever name."""
    functions = [function for function in gc.get_referrers(code) if type(function) is FunctionType]
    return any(type(wrapper) is _CACHE for function in functions for wrapper in gc.get_referrers(function))


_PACKAGES = frozenset({"site-packages", "dist-packages"})


@lru_cache(maxsize=1024)
def _call_at(code: CodeType, at: int, function: str) -> UserCall | None:
    """Return the call of a function at an instruction of a code, or None if it is none."""
    instructions = list(dis.get_instructions(code))
    number = next((i for i, instruction in enumerate(instructions) if instruction.offset == at), None)
    call = None if number is None else instructions[number].positions
    if number is None or call is None or call.lineno is None:
        return None
    # Python writes code twice that may be reached in two ways (of finally, of the condition of while); the copy that is
    # running is the last before the call. The names of keywords are a constant at the place of the call.
    loads = [
        instruction
        for instruction in instructions[:number]
        if instruction.opname.startswith("LOAD_")
        and instruction.opname != "LOAD_CONST"
        and _begin(instruction.positions) == _begin(call)
    ]
    of_module = bool(loads) and _is_attribute(loads[-1])
    callee = loads[-2:] if of_module else loads[-1:]
    if not callee or _is_attribute(callee[0]) or not isinstance(callee[0].argval, str):
        return None
    if of_module and callee[1].argval != function:
        return None
    follows = instructions[number + 1].opname
    return UserCall(callee[0].argval, of_module, follows in _KEEPS, follows == "RETURN_VALUE")


def _is_attribute(instruction: dis.Instruction) -> bool:
    return instruction.opname.endswith(("ATTR", "METHOD"))


_KEEPS = frozenset({"RETURN_VALUE", "STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR"})


def _begin(positions: Any) -> Any:
    """Return the line and column at which an expression begins."""
    return None if positions is None else (positions.lineno, positions.col_offset)


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


def take_lists(number: type, instead: Callable[..., Any]) -> None:
    """Have NumPy's other functions replaced that ask protocols of arrays, while something is recorded.

    Args:
        number: the class of numbers that are traced.
        instead: is called with NumPy's function, the tuple of its arguments and the dict of those by name, if there is
            a list among them, or such a number and the function is no ufunc, and returns the arguments that NumPy's
            function gets.
    """
    ListTaker.taken.add(number)
    for module in (np, np.linalg, np.fft, np.lib.stride_tricks):
        for name, function in [*vars(module).items()]:
            if type(function) is _PROTOCOL and type(_patched.get(function)) not in (Patched, Asked):
                _put(_patched.get(function) or ListTaker(module, name, instead), name)
            elif type(function) is np.ufunc:
                _put(_patched.get(function) or UfuncTaker(module, name, instead), name)


def answer(module: Any, name: str, instead: Callable[..., Any]) -> None:
    """Have a function of NumPy that asks no protocol replaced while something is recorded, in any code.

    Args:
        module: of the function.
        name: of the function.
        instead: is called with NumPy's function and the arguments; it may return NotImplemented.
    """
    _put(Asked(module, name, instead), name)


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
    _waiting[name] = install


_waiting: dict[str, Callable[[], object]] = {}


def _put(patched: Patched, name: str) -> None:
    names = vars(patched.module)
    if not any(module.names is names for module in _modules):
        _modules.append(Namespace(names))
    module = next(module for module in _modules if module.names is names)
    module.originals[name], module.patched[name] = patched._original, patched
    _patched[patched._original] = patched


_PROTOCOL = type(np.sum)


def replace_method(owner: type, name: str, instead: Callable[..., Any]) -> None:
    """Have a method of a class of NumPy replaced while something is recorded.

    Args:
        owner: the class.
        name: of the method.
        instead: is called with NumPy's method and the arguments, in a thread that records.
    """
    method = getattr(owner, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs) if thread.recorder is None else instead(method, *args, **kwargs)

    _methods.append(_Method(owner, name, method, update_wrapper(patched, method)))


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


def original(function: Any) -> Any:
    """Return the function of NumPy that stands outside of recordings where `function` does inside one."""
    return function._original if isinstance(function, Patched) else function


def _patch_of(function: Any) -> tuple[Any, Patched] | None:
    """Return the function of NumPy that is given, and what stands for it in recordings; None for anything else."""
    if type(function) not in _KINDS or function not in _patched:
        return None
    return original(function), _patched[function]


def is_patched(function: Any) -> bool:
    """Return whether a function of NumPy is one that is replaced while something is recorded."""
    return type(function) in _KINDS and function in _patched


def begin(recording: object, names: dict[str, Any] | None) -> None:
    """Replace the functions while a recording is open: in NumPy, and among global names of users.

    These are those of the recorded function, and of modules that are no library's.
    """
    for name in [name for name in _waiting if name in sys.modules]:
        install = _waiting.pop(name, None)  # another thread may begin, too
        if install is not None:
            install()
    with _lock:
        if not _open:
            _users.look()
        _open.add(id(recording))
        others = (*_namespaces, *[user.names for user in _users.namespaces])
        if names is not None and not any(names is other for other in others):
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
            _exchange(False)
            for method in _methods:
                method.put(False)
            _namespaces.clear()


def _exchange(is_open: bool) -> None:
    """Exchange functions; what somebody else has put in the place of one stays."""
    for namespace in (*_modules, *_users.namespaces):
        if namespace.originals:
            namespace.put(is_open)
    for names in _namespaces:
        for name, function in [*names.items()]:
            if type(function) in _KINDS:
                if not is_open:
                    names[name] = original(function)
                elif function in _patched:
                    names[name] = _patched[function]


_KINDS = frozenset(
    {
        Patched,
        ListTaker,
        UfuncTaker,
        Asked,
        NumbersTaker,
        BuiltinFunctionType,
        FunctionType,
        _PROTOCOL,
        np.ufunc,
    }
)
_namespaces: list[dict[str, Any]] = []
_users = UserNamespaces(_patch_of, _is_file_of_library)


def _in_child() -> None:
    """Restore the functions in a forked child, which does not have the threads that recorded."""
    if thread.recorder is None:
        for recording in [*_open]:
            _end(recording)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
