# SPDX-License-Identifier: BSD-3-Clause
"""The state of objects of the standard library, whose code is not watched or is written in C.

For each class there are the attributes that hold its state, or a function that describes its state as a tuple of atoms
and of objects that count by identity. Classes are listed by name, so that nothing is imported.
"""

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.capture.values import same_elements
from tracejit.record.monitor import is_user_class
from tracejit.util.text import module_of

EVERY = "*"  # attribute of an object
# Methods that write to an object without telling of its state.
WRITING = frozenset({
    "put", "put_nowait", "write", "writelines", "flush", "close", "set", "clear", "acquire", "release", "notify",
    "notify_all", "add", "append", "update", "start", "setLevel", "addHandler", "debug", "info", "warning", "error",
    "exception", "critical", "log",
})  # fmt: skip
# Functions that read attributes of their arguments by names that they compute, by module and name, where nothing shows
# which arguments they get (asked.py): something holds them, or they are written in C.
_READING = frozenset({
    *[("builtins", name) for name in ("getattr", "hasattr", "vars", "dir")],
    ("_pickle", "dumps"), ("_pickle", "dump"), ("reprlib", "repr"),
})  # fmt: skip
GETTERS = (operator.attrgetter, operator.methodcaller)
"""Classes of objects that read attributes of others, by names that the code says where it makes them (scanner.py)."""
_INNER: dict[str, tuple[str, ...]] = {
    "collections.UserString": ("data",),
    "_weakrefset.WeakSet": ("data",),
    "queue.Queue": ("queue", "maxsize"),
    "threading.Event": ("_flag",),
    "threading.Semaphore": ("_value",),
    "threading.Barrier": ("_parties", "_state", "_count"),
    "threading.Thread": ("_name", "_daemonic"),
    "configparser.RawConfigParser": ("_sections", "_defaults", "default_section"),
    "configparser.SectionProxy": ("_parser", "_name"),
    "shelve.Shelf": ("dict",),
    "string.Template": ("template",),
    "sched.scheduler": ("_queue",),
    "email.message.Message": ("_headers", "_payload"),
    "statistics.NormalDist": ("_mu", "_sigma"),
    "tempfile._TemporaryFileWrapper": ("file",),
    "tempfile.SpooledTemporaryFile": ("_file",),
    "argparse.Namespace": (EVERY,),
    "types.SimpleNamespace": (EVERY,),
    "_thread._local": (EVERY,),
}


def reads_attributes(value: Any) -> bool:
    """Return whether something is a function that reads attributes of its arguments by names that it computes."""
    return (getattr(value, "__module__", None), getattr(value, "__name__", None)) in _READING


def _of_file(file: Any) -> tuple[Any, ...]:
    if file.closed:
        return (True,)
    contents = file.getvalue() if hasattr(file, "getvalue") else None
    return (False, file.tell() if file.seekable() else None, contents)


def _of_logger(logger: Any) -> tuple[Any, ...]:
    levels = logger.getEffectiveLevel(), logger.manager.disable, logger.disabled
    return (*levels, logger.propagate, logger.hasHandlers(), *logger.handlers)


def _of_hash(digest: Any) -> tuple[Any, ...]:
    return (digest.copy().digest() if digest.digest_size else digest.copy().digest(32),)


_STATES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "_io._IOBase": _of_file,
    "logging.Logger": _of_logger,
    "_queue.SimpleQueue": lambda queue: (queue.qsize(),),
    "_thread.lock": lambda lock: (lock.locked(),),
    "_thread.RLock": lambda lock: (repr(lock),),
    "mmap.mmap": lambda memory: (True,) if memory.closed else (False, memory.tell(), len(memory)),
    "weakref.finalize": lambda final: (final.alive,),
    "decimal.Context": lambda context: (repr(context),),
    "sqlite3.Connection": lambda connection: (connection.total_changes,),
    "_csv.reader": lambda reader: (reader.line_num,),
    "_hashlib.HASH": _of_hash,
    "_hashlib.HASHXOF": _of_hash,
    "_blake2.blake2b": _of_hash,
    "_blake2.blake2s": _of_hash,
    "numpy.flatiter": lambda elements: (elements.index, elements.base.tobytes()),
    "numpy.void": lambda record: (record.tobytes(),),
    "scipy.spatial.transform._rotation.Rotation": lambda o: (
        o.as_quat().tobytes(),
    ),  # in C, before SciPy 1.17
}
_CODE = (
    type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial, np.ufunc, np.vectorize
)  # fmt: skip
_DISTRIBUTIONS = "scipy.stats._distn_infrastructure"
_PACKAGES = frozenset({"numpy", "scipy"})
_ON_THE_WAY = frozenset(
    {"_thread.lock", "_thread.RLock", "logging.Logger"}
)  # of little effect where they are passed


def is_code(value: Any) -> bool:
    """Return whether something is code: a function, a method, a class, or a distribution that SciPy has."""
    names = _names(type(value)) if module_of(type(value)).startswith("scipy.stats.") else ()
    return isinstance(value, _CODE) or (
        f"{_DISTRIBUTIONS}.rv_generic" in names and f"{_DISTRIBUTIONS}.rv_sample" not in names
    )


def has_code_in(kind: type) -> bool:
    """Return whether methods of objects of a class are code of Python, NumPy or SciPy, which is not watched.

    Classes of the user's that derive from one of Python's, such as abc.ABC, are not among them, nor those of tracejit,
    which tell what they read, nor arrays, whose attributes are known, nor mocks, which make any
    attribute that they are asked for.
    """
    bases = [base for base in kind.__mro__ if not is_user_class(base)]
    modules = {module_of(base) for base in bases}
    packages = {module.partition(".")[0] for module in modules}
    if "tracejit" in packages or issubclass(kind, np.ndarray) or "unittest.mock" in modules:
        return False
    return len(bases) == len(kind.__mro__) or not packages.isdisjoint(_PACKAGES)


def inner_of(kind: type) -> tuple[str, ...]:
    """Return the attributes that hold the state of objects of a class; EVERY for all of them."""
    return next((_INNER[name] for name in _names(kind) if name in _INNER), ())


def has_state(kind: type, is_asked: bool) -> bool:
    """Return whether state_of() describes objects of a class.

    Args:
        kind: the class.
        is_asked: whether a method that can tell of the state is called; otherwise the object is read in any way.
    """
    return any(name in _STATES and (is_asked or name not in _ON_THE_WAY) for name in _names(kind))


def state_of(value: Any) -> tuple[Any, ...]:
    """Return the state of an object, () if no function describes it."""
    describe = next((_STATES[name] for name in _names(type(value)) if name in _STATES), None)
    try:
        return () if describe is None else describe(value)
    except Exception as error:  # of a file that is detached, or cannot tell its position
        return (type(error).__name__,)


def has_state_still(value: Any, state: tuple[Any, ...]) -> bool:
    """Return whether an object has a state that it had before."""
    return same_elements(state, state_of(value))


def _names(kind: type) -> list[str]:
    return [f"{module_of(base)}.{base.__qualname__}" for base in kind.__mro__]
