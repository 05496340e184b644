# SPDX-License-Identifier: BSD-3-Clause
"""A finder of modules that tells of imports by code that is recorded."""

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


class Finder:
    """A finder of modules, in front of Python's, that has something done once one of some modules was imported.

    Args:
        is_awaited: returns whether a module of a name is one of them.
        then: is called with its name once the code of such a module has run.
    """

    def __init__(self, is_awaited: Callable[[str], bool], then: Callable[[str], object]) -> None:
        self._is_awaited = is_awaited
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return Python's own specification of a module that is awaited, None for others."""
        spec = PathFinder.find_spec(name, path, target) if self._is_awaited(name) else None
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_tell(module: Any) -> None:
            run(module)
            self._then(name)

        spec.loader.exec_module = run_and_tell  # type: ignore[method-assign]
        return spec

    def begin(self) -> None:
        """Look at imports from now on."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Look at no more imports; may be called twice."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
