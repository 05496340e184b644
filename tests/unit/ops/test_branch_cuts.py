# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of complex functions on both sides of their cuts, which the sign of a zero part tells apart."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj

REAL = [-30.0, -2.0, -1.1, 1.1, 2.0, 30.0]
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], list[float], bool]] = {
    **{name: (getattr(np, name), REAL, False) for name in ("arcsin", "arccos", "arctanh")},
    **{name: (getattr(np, name), REAL, True) for name in ("arcsinh", "arctan")},
    "arccosh": (np.arccosh, [-30.0, -2.0, -1.1, -0.5, 0.5], False),
    **{name: (getattr(np, name), [-30.0, -0.5], False) for name in ("sqrt", "log", "log2", "log10")},
    "log1p": (np.log1p, [-30.0, -1.5], False),
    **{f"power {p}": (lambda z, p=p: z**p, [-30.0, -0.5], False) for p in (0.5, 1 / 3, -1.5, 0.3 + 2j)},
    "float_power": (lambda z: np.float_power(z, 0.7), [-30.0, -0.5], False),
}
"""Functions, places on an axis where they are cut, and whether that is the imaginary one."""


def slope(function: Callable[[np.ndarray], np.ndarray], z: np.ndarray, along: complex) -> np.ndarray:
    """Return the derivative of a function by differences along a direction."""
    h = 1e-4 * along
    near = [function(z + k * h) for k in (-2, -1, 1, 2)]
    return (8 * (near[2] - near[1]) - near[3] + near[0]) / (12 * h)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_sides(name: str, dtype: Any) -> None:
    """The derivatives of arcsin, arccos, arcsinh and arccosh had the other sign on one side."""
    function, places, is_imaginary = FUNCTIONS[name]
    sides = [(place, side) for place in places for side in (1.0, -1.0)]
    along = 1j if is_imaginary else 1.0
    on_cut = np.array([complex(0 * s, x) if is_imaginary else complex(x, 0 * s) for x, s in sides], dtype)
    beside = np.array([complex(1e-12 * s, x) if is_imaginary else complex(x, 1e-12 * s) for x, s in sides])
    assert [math.copysign(1.0, z.real if is_imaginary else z.imag) for z in on_cut] == [s for _, s in sides]

    def gradients(z: Any) -> Any:
        first = tj.dlgradient(np.real(function(z)).sum(), z)
        return first, tj.dlgradient(np.real(first).sum(), z)

    want = slope(function, beside, along)
    wanted = [want.conj(), slope(lambda z: slope(function, z, along), beside, along).conj()]
    replayed = dlaccelerate(gradients)
    for run in (lambda z: tj.dlfeval(gradients, z), replayed, replayed):
        for order, have in enumerate(run(on_cut)):
            rtol = 1e-4 if order or dtype is np.complex64 else 1e-8
            assert have.dtype == dtype
            np.testing.assert_allclose(tj.extractdata(have), wanted[order], rtol=rtol, atol=rtol * 1e-2)
