# SPDX-License-Identifier: BSD-3-Clause
"""The assertions of np.testing in recorded code: NumPy compares the values, and their agreement is a guard.

A call with values that do not agree is recorded again, where NumPy raises its error.
Labels: there are no results.
"""

import sys
from collections.abc import Callable
from typing import Any

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise, reductions
from tracejit.functions.numpy_api.lists import as_array_of_list
from tracejit.record import patches, recorder
from tracejit.record.guards import Decides


def _value(x: Any) -> Any:
    if isinstance(x, dlarray):
        return x._data if x._data.ndim else x._data[()]
    return x._number if recorder.is_number(x) else x


def _agrees(name: str, agree: Callable[..., Any]) -> Callable[..., Any]:
    """Return what answers an assertion; `agree` gives the elements where two operands agree."""

    def answer(original: Callable[..., Any], x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        x, y = as_array_of_list(x), as_array_of_list(y)
        if not any(isinstance(part, dlarray) for part in (x, y)):
            return NotImplemented
        original(_value(x), _value(y), *args, **kwargs)
        first, second = as_array(x, name, "actual"), as_array(y, name, "desired")
        same = agree(
            first, second, *args, **{key: part for key, part in kwargs.items() if key in _TOLERANCES}
        )
        recorder.need_value(reductions.all(same), name, Decides.TRUTH)
        return None

    return answer


_TOLERANCES = ("rtol", "atol", "decimal", "significant")


def _both_nan(x: dlarray, y: dlarray) -> dlarray:
    return elementwise.not_equal(x, x) & elementwise.not_equal(y, y)


def _equal(x: dlarray, y: dlarray, *_: Any) -> dlarray:
    return elementwise.equal(x, y) | _both_nan(x, y)


def _close(x: dlarray, y: dlarray, rtol: float = 1e-7, atol: float = 0, *_: Any) -> dlarray:
    near = elementwise.abs(x - y) <= atol + rtol * elementwise.abs(y)
    return near | _equal(x, y)


def _almost(decimal: int) -> Callable[..., dlarray]:
    def agree(x: dlarray, y: dlarray, decimal: int = decimal, *_: Any) -> dlarray:
        return (elementwise.abs(x - y) < 1.5 * 10.0**-decimal) | _equal(x, y)

    return agree


def _less(x: dlarray, y: dlarray, *_: Any) -> dlarray:
    return elementwise.less(x, y) | _both_nan(x, y)


def install() -> None:
    """Have the assertions answered while something is recorded."""
    for name, agree in (
        ("assert_allclose", _close),
        ("assert_array_equal", _equal),
        ("assert_equal", _equal),
        ("assert_array_less", _less),
        ("assert_almost_equal", _almost(7)),
        ("assert_array_almost_equal", _almost(6)),
    ):
        patches.answer(sys.modules["numpy.testing"], name, _agrees(f"np.testing.{name}", agree))
