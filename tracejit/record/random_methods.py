# SPDX-License-Identifier: BSD-3-Clause
"""Methods of NumPy's and Python's generators of random numbers, which ask tracejit first while something is recorded.

Note [random methods]
``rng.normal()`` asks no array for a protocol, and gives a new number in each call. So while something is recorded, the
methods of generators are exchanged in the dicts of their classes, and the functions of ``np.random`` and ``random``,
which are methods of one generator each, by their names (patches.py). If the user's code calls one,
functions/numpy_api/draws.py is asked; code of libraries gets the method itself.
"""

import gc
import sys
import types
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from tracejit.record import methods_in_c, monitor, patches
from tracejit.record.current import thread
from tracejit.record.exchanged_methods import has_usual_classes
from tracejit.record.namespaces import Namespace

Instead = Callable[[Any, str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

# Functions of np.random that call another one.
_ALIASES = {"sample": "random_sample", "ranf": "random_sample"}


class _RandomMethods:
    """The methods of a class, and what is called in their places."""

    is_expected = True  # or there would be none

    def __init__(self, kind: type, names: Sequence[str], instead: Instead) -> None:
        self.kind = kind
        self._is_open = False
        self._namespace = Namespace(gc.get_referents(kind.__dict__)[0])
        self._inherited: dict[str, Any] = {}
        for name in names:
            own = self._namespace.names.get(name)
            method = getattr(kind, name) if own is None else own
            if own is None:
                self._inherited[name] = _asking(name, method, instead)
            else:
                self._namespace.originals[name] = own
                self._namespace.patched[name] = _asking(name, method, instead)

    def put(self, is_open: bool) -> bool:
        """Exchange the methods, or put the class's own back; return whether others were there."""
        if is_open == self._is_open:
            return False
        self._is_open = is_open
        names = self._namespace.names
        if not is_open:
            for name, method in self._inherited.items():
                if names.get(name) is method:
                    del names[name]
        self._namespace.put(is_open)
        if is_open:
            names.update(self._inherited)
        return True


def install(module: str, classes: Sequence[str], names: Sequence[str], instead: Instead) -> None:
    """Have methods ask while something is recorded; called once for a module.

    Args:
        module: the name of the module of the classes.
        classes: the names of the classes.
        names: of the methods, which a class may lack.
        instead: is called with the generator, the name and the function of a method, and its arguments; it may return
            NotImplemented.
    """
    patches.when_imported(module, lambda: _install(sys.modules[module], classes, names, instead))


def _install(
    module: types.ModuleType, classes: Sequence[str], names: Sequence[str], instead: Instead
) -> None:
    if not has_usual_classes():
        return
    kinds = tuple([getattr(module, name) for name in classes])
    for kind in kinds:
        own = gc.get_referents(kind.__dict__)
        if any(type(part) is dict for part in own[:1]):
            methods_in_c.add(_RandomMethods(kind, [name for name in names if hasattr(kind, name)], instead))
    for name in (*names, *_ALIASES):
        function = vars(module).get(_ALIASES.get(name, name)) or vars(module).get(name)
        if type(getattr(function, "__self__", None)) in kinds and name in vars(module):
            patches.answer_user(module, name, _answering(function, instead))


def _asking(name: str, original: Callable[..., Any], instead: Instead) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if thread.recorder is None:
            return original(self, *args, **kwargs)
        result = NotImplemented
        if not monitor.is_library(sys._getframe(1).f_code.co_filename):
            with monitor.paused():
                result = instead(self, name, original, args, kwargs)
        if result is NotImplemented:
            result = original(self, *args, **kwargs)
        leave(self)
        return result

    return update_wrapper(method, original)


def leave(generator: Any) -> None:
    """Note the state in which a call of the recorded code has left a generator: what differs later drew elsewhere."""
    current = thread.recorder
    if current is not None and current.accelerating and current.state.generators is not None:
        current.state.generators.leaves(generator)


def _answering(function: Any, instead: Instead) -> Callable[..., Any]:
    generator, name = function.__self__, function.__name__
    original = getattr(type(generator), name)
    original = getattr(original, "__wrapped__", original)

    def answer(_: Any, *args: Any, **kwargs: Any) -> Any:
        result = instead(generator, name, original, args, kwargs)
        if result is NotImplemented:
            result = original(generator, *args, **kwargs)
        leave(generator)
        return result

    return answer
