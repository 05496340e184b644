# SPDX-License-Identifier: BSD-3-Clause
"""The functions of the Python array API standard on dlarrays: ``tj.xp``, which ``dlarray.__array_namespace__`` returns.

In: dlarrays, and numbers beside them. Out: dlarrays with NumPy's numbers, recorded and replayed like all others.
May import: functions/.

Code for any library of the standard takes its functions from its arrays:

Examples:
    >>> import numpy as np, tracejit as tj
    >>> x = tj.xp.asarray([3.0, 4.0])
    >>> xp = x.__array_namespace__()
    >>> xp.linalg.vector_norm(x).item()
    5.0
"""

import math

import numpy as np

from tracejit import special  # noqa: F401
from tracejit.xp import creation, elementwise, fft, functions, linalg  # noqa: F401
from tracejit.xp.arrays import beyond_standard
from tracejit.xp.info import __array_namespace_info__, named_dtypes  # noqa: F401

__array_api_version__ = "2025.12"
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

globals().update(named_dtypes())
for _module in (creation, elementwise, functions):
    _names = [
        name
        for name, value in vars(_module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == _module.__name__
    ]
    globals().update({name: getattr(_module, name) for name in _names})
bool = np.dtype("bool")

_OTHERS = ("math", "np", "beyond_standard", "creation", "elementwise", "functions", "special")
__all__ = [name for name in sorted(globals()) if not name.startswith("_") and name not in _OTHERS]


__getattr__ = beyond_standard(__name__, np)


def __dir__() -> list[str]:
    """Return the names of the standard."""
    return [*__all__, "__array_api_version__", "__array_namespace_info__"]
