# SPDX-License-Identifier: BSD-3-Clause
"""The global names of modules among which functions of NumPy are exchanged while something is recorded.

Note [versions of dicts]
Some 350 names are exchanged at the beginning and the end of each recording, each only if it still means what was put
there last. CPython numbers the changes of all dicts. Where a dict still has the number of our own last change, nobody
else has put anything there, and the names need not be compared. A process may have many hundred modules of users, each
of which is looked at for each recording, so where the number of a dict lies is found once.
"""

import ctypes
import sys
import weakref
from collections.abc import Callable
from operator import is_
from types import ModuleType
from typing import Any

PatchOf = Callable[[Any], tuple[Any, Any] | None]


class Namespace:
    """The global names of a module, and functions that are exchanged there, by name."""

    __slots__ = ("changes", "names", "originals", "patched", "version")

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.changes = _changes(names)
        self.originals: dict[str, Any] = {}
        self.patched: dict[str, Any] = {}
        self.version = 0

    def put(self, is_open: bool) -> None:
        old, new = (self.originals, self.patched) if is_open else (self.patched, self.originals)
        is_known = self.version and self.changes.value == self.version  # Note [versions of dicts]
        if is_known or all(map(is_, map(self.names.get, old), old.values())):
            self.names.update(new)
            self.version = self.changes.value
            return
        for name, function in old.items():
            if self.names.get(name) is function:
                self.names[name] = new[name]
        self.version = 0  # what somebody else has put there is compared again


class UserNamespace(Namespace):
    """The global names of a module of users, and functions of NumPy that were imported into it."""

    __slots__ = ("module",)

    def __init__(self, module: ModuleType) -> None:
        super().__init__(vars(module))
        self.module = weakref.ref(module)

    def look(self, patch_of: PatchOf) -> None:
        """Look for the functions again, because names may have changed."""
        version = self.changes.value
        found = {name: patch_of(value) for name, value in [*self.names.items()]}
        patches = {name: patch for name, patch in found.items() if patch is not None}
        self.originals = {name: function for name, (function, _) in patches.items()}
        self.patched = {name: patched for name, (_, patched) in patches.items()}
        # Those that were imported while something was recorded are compared when they are put back.
        is_clean = all(map(is_, map(self.names.get, self.originals), self.originals.values()))
        self.version = version if is_clean else 0


class UserNamespaces:
    """The global names of all modules of users.

    Args:
        patch_of: takes what a name means; returns the function of NumPy and what is put in its place, or None.
        is_of_library: whether a file is that of a library.

    Attributes:
        namespaces: of all these modules.
        with_functions: those of them that have functions of NumPy.
    """

    def __init__(self, patch_of: PatchOf, is_of_library: Callable[[str], bool]) -> None:
        self.namespaces: list[UserNamespace] = []
        self.with_functions: list[UserNamespace] = []
        self._patch_of = patch_of
        self._is_of_library = is_of_library
        self._known: dict[str, int] = {}  # the ids of the modules that were looked at, by name
        self._version = 0
        self._places: set[int] = set()  # of the dicts of these modules

    def has(self, names: dict[str, Any]) -> bool:
        """Return whether names are those of one of these modules."""
        return id(names) in self._places

    def look(self) -> None:
        """Look for modules and names that are new."""
        version = _changes(sys.modules).value
        is_new = not version or version != self._version
        if is_new:
            self._version = version
            known, found = {}, {}
            before = {id(user.module()): user for user in self.namespaces}
            for name, module in [*sys.modules.items()]:
                known[name] = id(module)
                if id(module) in before:
                    found[id(module)] = before[id(module)]
                elif self._known.get(name) != id(module) and self._is_of_user(name, module):
                    found[id(module)] = UserNamespace(module)
            self.namespaces = [*found.values()]
            self._known = known
            self._places = {id(user.names) for user in self.namespaces}
        changed = [user for user in self.namespaces if not user.version or user.changes.value != user.version]
        for user in changed:
            user.look(self._patch_of)
        if changed or is_new:
            self.with_functions = [user for user in self.namespaces if user.originals]

    def _is_of_user(self, name: str, module: Any) -> bool:
        if type(module) is not ModuleType or name.partition(".")[0] == "tracejit":
            return False
        file = vars(module).get("__file__")
        return name == "__main__" if type(file) is not str else not self._is_of_library(file)


def _changes(names: dict[str, Any]) -> ctypes.c_uint64:
    """Return what has the number of the last change of a dict while it lives, or 0 (Note [versions of dicts])."""
    return ctypes.c_uint64.from_address(id(names) + _PLACE_OF_VERSION) if _HAS_VERSION else ctypes.c_uint64()


_PLACE_OF_VERSION = 3 * ctypes.sizeof(ctypes.c_void_p)


def _has_version() -> bool:
    """Return whether dicts have such numbers, as those of CPython up to 3.13 have, with a global lock."""
    has_lock = getattr(sys, "_is_gil_enabled", None)
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 14) or (has_lock and not has_lock()):
        return False
    names: dict[str, Any] = {"name": 0}
    place = id(names) + _PLACE_OF_VERSION
    before = ctypes.c_uint64.from_address(place).value
    names["name"] = 1
    return ctypes.c_uint64.from_address(place).value > before > 0


_HAS_VERSION = _has_version()
