# SPDX-License-Identifier: BSD-3-Clause
"""The condition of powers of integers: no exponent is negative, or NumPy raises an error."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.record import recorder
from tracejit.record.conversion import impossible
from tracejit.record.demands import demand

_WHAT = "the sign of an integer's exponent"


def check(operands: Sequence[Any], result: Aval) -> None:
    """Raise NumPy's error unless exponents that vary are all at least 0, which is then a guard.

    A caller that catches the error goes on as these exponents decide: so the guard has either outcome.

    Args:
        operands: the integers, and their exponents.
        result: the size and the dtype; NumPy looks at no exponent where it is empty.
    """
    exponents = operands[1]
    is_fixed = exponents._value is not None and exponents._value.is_constant
    if is_fixed or exponents._data.dtype.kind != "i" or 0 in result.shape:
        return
    holds = recorder.apply("greater_equal", exponents, 0)
    if holds._data.ndim:
        holds = recorder.apply("all", holds, axes=tuple(range(holds._data.ndim)), keepdims=False)
    demand(holds, _WHAT, partial(_refuse, result))


def _refuse(result: Aval) -> None:
    try:
        np.array(1) ** np.array(-1)
    except ValueError as error:
        raise impossible("power", result, error) from error
