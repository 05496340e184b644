# SPDX-License-Identifier: BSD-3-Clause
"""Dtypes and values of results of what NumPy calls, for arguments of every dtype: NumPy's own, or an exception."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy_calls import CALLS, wrap

from tracejit import TraceJitError, dlarray, dlfeval
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.functions.numpy_api import table

DTYPES = [str(dtype) for dtype in SUPPORTED_DTYPES]
MATRIX = np.array([[0, 1, 2], [3, 1, 5]])
NUMBERS = (True, 2, 2.0, np.float32(2), np.int8(2), np.uint64(2))

# The exceptions: what NumPy gives, and what dlarrays give. docs/from_jax_torch.md names them.
WITHOUT_ERROR = {  # functions of bools for which NumPy raises an error, and the result here
    "positive": "+x is x",
    "round": "x, which has no places after the point",
}


def outcome(call: Callable[[], Any]) -> Any:
    """Return the results of a call as a list, or the error that it raises."""
    try:
        with np.errstate(all="ignore"):
            result = call()
    except Exception as error:
        return error
    return list(result) if isinstance(result, (tuple, list)) else [result]


pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")


def compare(name: str, expected: Any, actual: Any, place: str) -> None:
    """Check that results have the values and dtypes of NumPy's, and that errors are ours."""
    if isinstance(actual, Exception):
        assert isinstance(expected, Exception) and isinstance(actual, TraceJitError), f"{place}: {actual!r}"
        return
    if isinstance(expected, Exception):
        assert name in WITHOUT_ERROR, f"{place}: NumPy raises {expected!r}"
        return
    for result, wanted in zip(actual, map(np.asarray, expected), strict=True):
        assert type(result) is dlarray
        assert result.dtype == wanted.dtype, f"{place}: {result.dtype}, NumPy {wanted.dtype}"
        tolerance = {np.float16: 2e-3, np.float32: 1e-5}.get(wanted.dtype.type, 1e-12)
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=tolerance, atol=tolerance, err_msg=place)


def operands(ufunc: np.ufunc) -> Iterator[tuple[Any, ...]]:
    """Return operands of every dtype, and for two also numbers of Python and NumPy."""
    data = MATRIX[:, :2] if ufunc is np.matmul else MATRIX
    for dtype in DTYPES:
        array = data.astype(dtype)
        if ufunc.nin == 1:
            yield (array,)
            continue
        yield from ((array, data.astype(other)) for other in DTYPES)
        if ufunc is not np.matmul:
            yield from ((array, number) for number in NUMBERS)
            yield from ((number, array) for number in NUMBERS)


@pytest.mark.sampled
@pytest.mark.parametrize("ufunc", table.UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc(ufunc: np.ufunc) -> None:
    for given in operands(ufunc):
        place = f"{ufunc.__name__} of {[getattr(x, 'dtype', type(x).__name__) for x in given]}"
        compare(
            ufunc.__name__, outcome(partial(ufunc, *given)), outcome(partial(ufunc, *map(wrap, given))), place
        )


@pytest.mark.parametrize("ufunc", table.REDUCTIONS, ids=lambda ufunc: ufunc.__name__)
def test_a_reduction(ufunc: np.ufunc) -> None:
    for dtype in DTYPES:
        data = MATRIX.astype(dtype)
        expected, actual = outcome(partial(ufunc.reduce, data)), outcome(partial(ufunc.reduce, dlarray(data)))
        compare(ufunc.__name__, expected, actual, f"{ufunc.__name__}.reduce of {dtype}")


def converted(x: Any, dtype: str) -> Any:
    """Return an argument with its floating-point arrays in another dtype."""
    if isinstance(x, np.ndarray):
        return np.abs(np.round(x)).astype(dtype) if x.dtype.kind == "f" else x
    return type(x)(converted(part, dtype) for part in x) if isinstance(x, (list, tuple)) else x


@pytest.mark.sampled
@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
def test_a_function(function: Callable[..., Any]) -> None:
    for args, options in CALLS[function]:
        for dtype in DTYPES:
            given = [converted(x, dtype) for x in args]
            expected = outcome(partial(function, *given, **options))
            eager = outcome(partial(function, *map(wrap, given), **options))
            recorded = outcome(partial(dlfeval, partial(function, **options), *given))
            for actual in (eager, recorded):
                compare(function.__name__, expected, actual, f"{function.__name__} of {dtype}")


def test_operators_of_bools() -> None:
    data = np.array([True, False])
    x = dlarray(data)
    for call in (lambda x: x**2, lambda x: x + x, lambda x: x * 3, lambda x: x / 2, lambda x: abs(x), lambda x: x % 2,
                 lambda x: x // 2, lambda x: ~x, lambda x: x & x, lambda x: 2**x, lambda x: x**x):  # fmt: skip
        expected, result = call(data), call(x)
        assert result.dtype == expected.dtype
        assert result.tolist() == expected.tolist()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_a_diagonal_has_the_dtype_of_its_matrix(dtype: str, shape: tuple[int, ...]) -> None:
    data = np.ones(shape, dtype)
    for k in (-1, 0, 2):
        result = np.diag(dlarray(data), k)
        assert result.dtype == data.dtype and result.tolist() == np.diag(data, k).tolist()
