# SPDX-License-Identifier: BSD-3-Clause
"""The ufuncs of scipy.special on arrays: by an elementwise op where there is one, otherwise by SciPy's own loops."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError
from tracejit.functions import elementwise
from tracejit.functions.formats import in_dtype
from tracejit.ops.special import RESULTS, RULES
from tracejit.ops.ufunc_loops import PREFIX, loop_for, ufunc_of
from tracejit.record import recorder

ALIASES = {"digamma": "psi", "jn": "jv"}

OWN: dict[str, Callable[..., dlarray]] = {
    "cbrt": elementwise.cbrt,
    "erf": elementwise.erf,
    "exp2": elementwise.exp2,
    "expit": lambda x: apply("sigmoid", x),
    "expm1": elementwise.expm1,
    "log1p": elementwise.log1p,
    "round": elementwise.rint,
}
"""Functions that are elementwise ops, which share loops with others."""

OPERANDS: dict[str, int] = {**{name: len(rules) for name, rules in RULES.items()}, **dict.fromkeys(OWN, 1)}
"""The number of operands of each function."""
NAMES = tuple(sorted(name for name in {*OPERANDS, *ALIASES} if not name.startswith("_")))


def results_of(name: str) -> int:
    """Return the number of results of a function."""
    return RESULTS.get(name, 1)


def call(name: str, operands: tuple[Any, ...]) -> Any:
    """Return a function of operands, element by element.

    Args:
        name: of the function in scipy.special.
        operands: dlarrays, ndarrays or numbers. Formatted ones are aligned by label.

    Returns:
        dlarray of the broadcast sizes, or a tuple of them; dtypes as SciPy's.
    """
    arrays: list[Any] = []
    dtypes: list[Any] = []
    title = f"special.{name.removeprefix('_riemann').removeprefix('_')}"
    for x in operands:
        array = as_array(x, title)
        arrays.append(array)
        kind = x._kind if recorder.is_number(x) else type(x)
        dtypes.append(kind if kind in (int, float) else array.dtype)
    loop, _ = loop_for(name, tuple(dtypes))
    arrays = [in_dtype(array, dtype) for array, dtype in zip(arrays, loop, strict=True)]
    own = OWN.get(name)
    return own(*arrays) if own is not None else apply(PREFIX + name, *recorder.align(arrays))


def _is(ufunc: np.ufunc, name: str) -> bool:
    try:
        return ufunc_of(name) is ufunc
    except ArgumentError:  # another version of SciPy
        return False


@cache
def name_of(ufunc: np.ufunc) -> str | None:
    """Return the name of one of SciPy's ufuncs, None for any other ufunc."""
    name = ufunc.__name__
    for known in (name, *OPERANDS):
        if known in OPERANDS and _is(ufunc, known):
            return known
    return None


def answer(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the function that stands for one of SciPy's ufuncs, None for any other ufunc."""
    name = name_of(ufunc)
    return None if name is None else lambda *operands: call(name, operands)
