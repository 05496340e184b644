# SPDX-License-Identifier: BSD-3-Clause
"""The errors for names that tracejit and its packages lack, although other libraries may have them."""

import difflib
from collections.abc import Callable, Sequence
from typing import NoReturn

from tracejit.util.compositions import INSTEAD
from tracejit.util.other_names import FUNCTIONS, LAYERS

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


def unknown_function(name: str, names: Sequence[str], layers: Sequence[str]) -> AttributeError:
    """Return the error for a name that tracejit itself lacks.

    Args:
        name: which somebody looked for.
        names: the public names.
        layers: those of the package nn, if it may be MATLAB's name of a layer.
    """
    advice = (
        FUNCTIONS.get(name)
        or LAYERS.get(name)
        or _spelt("nn.", _layer(name), layers, 1.0)
        or _spelt("tj.", name, names)
        or "dir(tracejit) lists those there are"
    )
    return AttributeError(f"tj.{name}: there is no such name; {advice}.")


def unknown_layer(name: str, layers: Sequence[str]) -> AttributeError:
    """Return the error for a name that the package nn lacks.

    Args:
        name: which somebody looked for.
        layers: the public names.
    """
    advice = (
        _spelt("nn.", name, layers, 1.0)
        or LAYERS.get(name)
        or _spelt("nn.", _layer(name), layers)
        or "dir(tracejit.nn) lists those there are"
    )
    return AttributeError(f"nn.{name}: there is no such name; {advice}.")


def _layer(name: str) -> str:
    """Return MATLAB's name of a layer without the word: ``relu`` of ``reluLayer``."""
    return name.removesuffix("Layer")


def _spelt(start: str, name: str, names: Sequence[str], least: float = 0.75) -> str | None:
    """Return that a name is spelt in another way, or None if none is near; the case of letters does not count.

    Args:
        start: what the name stands behind, such as ``nn.``.
        name: which somebody looked for.
        names: those there are.
        least: how near a name must be, 1 for the same letters.
    """
    by_letters = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), by_letters, 1, least)
    if not near:
        return None
    found = f"{start}{by_letters[near[0]]}"
    return f"the name is {found}" if near[0] == name.lower() else f"{found} is similar"
