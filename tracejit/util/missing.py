# SPDX-License-Identifier: BSD-3-Clause
"""The error for names that packages of tracejit lack, although SciPy's package of the same name may have them."""

import difflib
from collections.abc import Callable, Sequence
from typing import NoReturn

from tracejit.util.compositions import INSTEAD

_SOLVERS = "solvers of scipy.integrate call an accelerated function like any other, as in scipy.integrate.quad(f, 0, 1)"


def refusal(package: str, names: Sequence[str]) -> Callable[[str], NoReturn]:
    """Return the function ``__getattr__`` of a package.

    Args:
        package: the package's name, such as "stats".
        names: its public names.
    """

    def refuse(name: str) -> NoReturn:
        """Raise the error for a name that the package lacks.

        Raises:
            AttributeError: naming a similar name, or what works in place of SciPy's function.
        """
        if name.startswith("_"):
            raise AttributeError(f"module 'tracejit.{package}' has no attribute {name!r}")
        raise AttributeError(f"tj.{package}.{name}: there is no such name; {_remedy(package, name, names)}.")

    return refuse


def _remedy(package: str, name: str, names: Sequence[str]) -> str:
    theirs = f"scipy.{package}.{name}"
    if theirs in INSTEAD:
        return INSTEAD[theirs]
    near = difflib.get_close_matches(name, names, 1, 0.75)
    if package == "integrate" and not near:
        return _SOLVERS
    start = f"tj.{package}.{near[0]} is similar, and " if near else ""
    return (
        f"{start}tj.{package}.__all__ lists those there are. If SciPy has it, forward of a tj.DifferentiableFunction "
        f"can call {theirs}, in replays too; its backward gives the derivative"
    )
