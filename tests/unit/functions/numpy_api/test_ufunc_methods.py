# SPDX-License-Identifier: BSD-3-Clause
"""Methods and options of ufuncs, and reductions with options: NumPy's numbers, dtypes and errors, in replays too."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
UFUNCS = sorted(
    {
        u
        for u in vars(np).values()
        if type(u) is np.ufunc and u.nin == 2 and u.nout == 1 and u.signature is None
    }
    - {np.nextafter},
    key=lambda ufunc: ufunc.__name__,
)
QUIRKS = (np.power, np.arctan2)  # whose vector loops give other numbers in NumPy's reductions than one by one
DTYPES = ("?", "i1", "u2", "i8", "f2", "f4", "f8", "c16")
ROWS = np.array([[-3, 2, 5], [4, 1, -2], [1, 3, 3], [2, 2, 1]])
METHODS: dict[str, Callable[[np.ufunc, Any], Any]] = {
    "reduce": lambda u, x: u.reduce(x, axis=0),
    "reduce from a number": lambda u, x: u.reduce(x, axis=0, initial=1),
    "reduce one row": lambda u, x: u.reduce(x[:1], axis=0),
    "reduce one row from nothing": lambda u, x: u.reduce(x[:1], axis=0, initial=None),
    "reduce no axis": lambda u, x: u.reduce(x, axis=()),
    "reduce no axis from a number": lambda u, x: u.reduce(x, axis=(), initial=1),
    "reduce a number from a number": lambda u, x: u.reduce(x[0, 0, ...], axis=None, initial=1),
    "reduce all": lambda u, x: u.reduce(x, axis=None),
    "reduce all from a number": lambda u, x: u.reduce(x[:3], axis=None, initial=1, keepdims=True),
    "reduce no rows": lambda u, x: u.reduce(x[:0], axis=0),
    "reduce no rows from a number": lambda u, x: u.reduce(x[:0], axis=0, initial=1),
    "reduce no rows from nothing": lambda u, x: u.reduce(x[:0], axis=0, initial=None),
    "reduce in float64": lambda u, x: u.reduce(x, axis=0, dtype=np.float64),
    "accumulate": lambda u, x: u.accumulate(x, axis=1),
    "accumulate no rows": lambda u, x: u.accumulate(x[:0]),
    "reduceat": lambda u, x: u.reduceat(x, [0, 2, 1, 3]),
    "reduceat of nothing": lambda u, x: u.reduceat(x, []),
    "outer in float64": lambda u, x: u.outer(x[0], x[1, :2], dtype=np.float64),
}


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        return function(x)
    except (TypeError, ValueError, OverflowError) as error:
        return error


def check(case: Any, want: Any, found: Any) -> None:
    if isinstance(want, Exception):
        assert isinstance(found, (TypeError, ValueError)), (case, found)
        return
    if isinstance(found, tj.DTypeError) and "16 bits" in str(found):
        return
    assert not isinstance(found, Exception), (case, found)
    assert (found.dtype, found.shape) == (want.dtype, want.shape), case
    tolerance = {2: 4e-3, 4: 1e-5}.get(want.dtype.itemsize if want.dtype.kind == "f" else 8, 1e-12)
    np.testing.assert_allclose(
        np.asarray(found).astype(complex), np.asarray(want).astype(complex), rtol=tolerance, err_msg=str(case)
    )


@pytest.mark.sampled
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_method(ufunc: np.ufunc) -> None:
    for (name, call), dtype in itertools.product(METHODS.items(), DTYPES):
        if dtype == "c16" and name in ("reduce in float64", "outer in float64"):
            continue  # imaginary parts are not dropped
        x = (ROWS + (1j if dtype == "c16" else 0)).astype(dtype)
        if dtype == "f2" and ufunc in (np.multiply, np.logaddexp, np.logaddexp2, np.power, np.float_power):
            x = x / x.dtype.type(4)
        if ufunc in (np.left_shift, np.right_shift):
            x = abs(x)
        want = outcome(lambda x, call=call: call(ufunc, x), x)
        found = outcome(lambda x, call=call: call(ufunc, x), tj.dlarray(x))
        if ufunc in QUIRKS and not isinstance(want, Exception):
            assert (found.dtype, found.shape) == (want.dtype, want.shape), (name, dtype)
            continue
        check((ufunc.__name__, name, dtype), want, found)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_in_replays(name: str) -> None:
    call = METHODS[name]
    ufuncs = (np.hypot, np.logical_xor, np.bitwise_xor, np.gcd, np.true_divide, np.fmax)

    def function(x: Any) -> list[Any]:
        return [
            call(u, x) * 2
            for u in ufuncs
            if not isinstance(outcome(lambda x, u=u: call(u, x), ROWS), Exception)
        ]

    fast = tj.dlaccelerate(function)
    for shift in (0, 0, 0, 2):
        for found, want in zip(fast(tj.dlarray(ROWS + shift)), function(ROWS + shift), strict=True):
            check(name, want, found)


SPREAD = np.array([[3.5, 1e6, 70000.0, -2.5], [0.25, 7.0, 1e-9, 60000.0]])


@pytest.mark.parametrize(
    "name", ["log10", "sin", "cbrt", "arcsinh", "log1p", "fmod", "remainder", "arctan2", "subtract"]
)
def test_operands_are_cast_to_the_loop_that_dtype_asks_for(name: str) -> None:
    """np.log10 of 10**6 in float16 is infinite, because that number is."""
    ufunc = getattr(np, name)
    calls = [
        lambda x, dtype=dtype: ufunc(*[x, x[::-1]][: ufunc.nin], dtype=dtype)
        for dtype in (np.float16, np.float32)
    ]
    for array, call in itertools.product((SPREAD, SPREAD.astype(int), SPREAD.astype(np.uint16)), calls):
        fast = tj.dlaccelerate(call)
        for found in (call(tj.dlarray(array)), *[fast(tj.dlarray(array)) for _ in range(4)]):
            check(name, call(array), found)


def test_spacing_in_16_bits_is_refused() -> None:
    with pytest.raises(tj.DTypeError, match="spacing: not supported for numbers of 16 bits"):
        np.spacing(tj.dlarray(SPREAD), dtype=np.float16)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe", "any"])
def test_casting(casting: str) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.add(x, x, casting=casting),
        lambda x: np.add(x, np.float32(1.5), casting=casting),
        lambda x: np.multiply(x, x, dtype=np.float32, casting=casting),
        lambda x: np.left_shift(x, x, dtype=np.int64, casting=casting),
        lambda x: np.floor_divide(x, x, dtype=np.int32, casting=casting),
        lambda x: np.clip(x, x, x, dtype=np.float32, casting=casting),
        lambda x: x.clip(x, x, dtype=np.float64, casting=casting),
        lambda x: np.clip(x, x, np.float32(2.5), dtype=np.int64, casting=casting),
    ]
    for number, call in enumerate(calls):
        for dtype in ("i4", "u8", "f4", "f8"):
            x = np.array([1, 2, 5], dtype)
            want = outcome(call, x)
            check((number, dtype), want, outcome(call, tj.dlarray(x)))


def test_options_that_no_function_has() -> None:
    with pytest.raises(tj.ArgumentError, match=r"np\.clip: where= is not supported on dlarrays"):
        np.clip(tj.dlarray([1.0]), 0, 1, where=[True])


HALVES = np.array([1.5, 2.5, 65000.0, 65000.0], np.float16)
REDUCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "mean of 16 bits in float32": (lambda x: np.mean(x, dtype=np.float32), HALVES),
    "mean method of 16 bits in float32": (lambda x: x.mean(dtype=np.float32), HALVES),
    "mean of chosen ones of 16 bits": (lambda x: np.mean(x, where=x > 2), HALVES),
    "mean of chosen ones as integers": (lambda x: np.mean(x, dtype=int, where=x > 1), ROWS),
    "nanmean as bools": (lambda x: np.nanmean(x, axis=0, dtype=bool), ROWS),
    "var in complex numbers": (lambda x: np.var(x, axis=0, dtype=complex), ROWS),
    "std of complex numbers in complex numbers": (lambda x: np.std(x * 1j, dtype=complex), ROWS),
    "nanvar of chosen columns": (lambda x: np.nanvar(x, axis=0, where=[True, False, True], ddof=2), ROWS),
    "nanstd of chosen columns": (lambda x: np.nanstd(x, axis=1, where=[True, False, True]), ROWS),
    "nanstd of nothing": (lambda x: np.nanstd(x, axis=-1, where=False), ROWS),
    "maximum in float32": (lambda x: np.maximum.reduce(x, dtype=np.float32), ROWS),
    "sum from infinity": (lambda x: np.sum(x, initial=np.inf), ROWS),
    "max from NaN": (lambda x: np.max(x, initial=np.nan), ROWS),
    "sum from half a number": (lambda x: np.sum(x, axis=0, initial=2.5), ROWS),
    "var by both": (lambda x: np.var(x, ddof=1, correction=1), ROWS),
    "nanmean of floats as integers": (lambda x: np.nanmean(x, dtype=int), ROWS / 2),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction(name: str) -> None:
    function, array = REDUCTIONS[name]
    want = outcome(function, array)
    fast = tj.dlaccelerate(function)
    for run in (function, fast, fast, fast, fast):
        found = outcome(run, tj.dlarray(array))
        pairs = zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]
        for part, wanted in pairs:
            check(name, wanted, part)


@pytest.mark.parametrize(
    "function",
    [
        np.nanmean,
        lambda x: np.average(x, weights=x / 64, returned=True)[0],
        lambda x: np.nanvar(x / 128),
        lambda x: np.var(x / 128, where=x > 2),
    ],
)
def test_16_bits_are_rounded_once(function: Callable[[Any], Any]) -> None:
    """A sum that float16 cannot hold does not make an average infinite."""
    found = function(tj.dlarray(HALVES))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, function(HALVES.astype(np.float32)), rtol=1e-3)


def test_deviations_as_integers_are_refused() -> None:
    with pytest.raises(tj.ArgumentError, match=r"np\.var: dtype=int64 would cut off the mean"):
        np.var(tj.dlarray(ROWS), dtype=int)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4"])
def test_fractions_that_are_added_to_integers(ufunc: np.ufunc, dtype: str) -> None:
    """Each sum is cut off before the next."""

    def function(x: Any, value: Any) -> Any:
        ufunc.at(x, [0, 0, 0, 1, -1], value)
        return x

    fast = tj.dlaccelerate(function)
    for value in (1.5, 2.0, np.array([0.5, 0.5, 2.5, 1.0, 3.0]), 3):
        want = function(np.array([9, 3, 4], dtype), value)
        for run in (function, fast, fast, fast, fast):
            assert run(tj.dlarray(np.array([9, 3, 4], dtype)), value).tolist() == want.tolist()


SUMS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "sum of float32 in float64": (
        lambda x, out: np.sum(x, axis=1, out=out),
        SPREAD.astype("f4") / 3,
        np.zeros(2),
    ),
    "sum method": (lambda x, out: x.sum(axis=1, out=out), SPREAD.astype("f4") / 3, np.zeros(2)),
    "sum by position": (lambda x, out: np.sum(x, 1, None, out), SPREAD.astype("f4") / 3, np.zeros(2)),
    "sum of what wraps": (lambda x, out: np.sum(x, axis=0, out=out), np.full((4, 1), 2**62), np.zeros(1)),
    "running sum of 16 bits": (lambda x, out: np.cumsum(x, out=out), HALVES, np.zeros(4)),
    "running product of what wraps": (lambda x, out: np.cumprod(x, out=out), np.full(4, 2**40), np.zeros(4)),
    "product in complex numbers": (lambda x, out: np.prod(x, axis=0, out=out), ROWS, np.zeros(3, complex)),
    "nansum": (lambda x, out: np.nansum(x, axis=1, out=out), SPREAD.astype("f4") / 3, np.zeros(2)),
    "sum of bools in bools": (lambda x, out: np.sum(x, axis=0, out=out), ROWS > 2, np.zeros(3, bool)),
    "reduce": (lambda x, out: np.subtract.reduce(x, axis=1, out=out), SPREAD.astype("f4") / 3, np.zeros(2)),
    "accumulate": (
        lambda x, out: np.add.accumulate(x, 1, out=out),
        SPREAD.astype("f4") / 3,
        np.zeros((2, 4)),
    ),
    "reduceat": (
        lambda x, out: np.add.reduceat(x, [0, 2], 1, out=out),
        SPREAD.astype("f4") / 3,
        np.zeros((2, 2)),
    ),
    "reduce of chosen elements": (
        lambda x, out: np.add.reduce(x, axis=0, out=out, where=[True, False, True]),
        ROWS[:3],
        np.full(3, 7),
    ),
    "maximum of chosen elements": (
        lambda x, out: np.maximum.reduce(x, axis=1, out=out, initial=0, where=x < 3),
        ROWS[:3],
        np.full(3, 7),
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_array_that_is_written_decides_the_dtype_of_a_sum(name: str) -> None:
    function, array, out = SUMS[name]
    want = out.copy()
    function(array, want)
    fast = tj.dlaccelerate(function)
    for run in (function, fast, fast, fast, fast):
        found = tj.dlarray(out.copy())
        result = run(tj.dlarray(array), found)
        assert run is fast or result is found
        assert found.dtype == want.dtype
        np.testing.assert_allclose(tj.extractdata(found), want, rtol=1e-14)


@pytest.mark.parametrize("ufunc", [np.positive, np.conjugate, np.negative, np.sin])
def test_the_array_that_is_written_is_the_result(ufunc: np.ufunc) -> None:
    out = tj.dlarray(np.array(0.0))
    assert ufunc(tj.dlarray(np.array(1.5)), out=out) is out
    assert np.round(tj.dlarray(np.array(1.5)), out=out) is out


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
def test_ufuncs_with_an_op_for_an_axis_take_any_number_of_elements(ufunc: np.ufunc) -> None:
    x = np.sin(np.arange(30_000.0))
    np.testing.assert_allclose(tj.dlfeval(ufunc.accumulate, x), ufunc.accumulate(x), rtol=1e-12)
    np.testing.assert_allclose(tj.dlfeval(ufunc.reduce, x), ufunc.reduce(x), atol=1e-9)


W = np.arange(9.0).reshape(3, 3) - 4
ON_NDARRAYS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: W.sum(where=x > 0),
    "prod": lambda x: W.prod(axis=0, where=x > 0),
    "max": lambda x: W.max(axis=1, where=x > 0, initial=-9.0),
    "any": lambda x: (W > 0).any(where=x > 0),
    "all": lambda x: (W > 0).all(axis=0, where=x > 0),
    "reduce": lambda x: np.add.reduce(W, where=x > 0),
    "mean of all": lambda x: W.mean(where=x > 0),
    "mean": lambda x: W.mean(axis=1, where=x > 0),
    "mean of float32": lambda x: W.astype(np.float32).mean(axis=1, where=x > 0),
    "mean of integers": lambda x: W.astype(int).mean(axis=1, where=x > 0),
    "var": lambda x: W.var(axis=1, where=x > 0),
    "var, keepdims": lambda x: W.var(axis=1, where=x > 0, keepdims=True),
    "std": lambda x: W.std(axis=0, where=(x > 0)[:, None]),
    "clip": lambda x: W.clip(x - 2, x),
    "clip by numbers": lambda x: W.clip(x.min(), x.max()),
    "clip below": lambda x: W.clip(x.min()),
}


@pytest.mark.parametrize("name", [*ON_NDARRAYS])
def test_methods_of_ndarrays_take_traced_options(name):
    function = ON_NDARRAYS[name]
    accelerated = tj.dlaccelerate(function)
    for n in range(6):
        x = np.array([1.0, 0.5 * n - 2.0, 3.0]) - n / 4
        want = function(x)
        for found in (tj.dlfeval(function, x), accelerated(x)):
            np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)
            assert (np.asarray(found).dtype, found.shape) == (want.dtype, want.shape)
    assert accelerated.stats.hits == 4


def test_the_clip_method_of_an_ndarray_has_a_derivative():
    function = lambda x: (W.clip(x[0], x[1]) ** 2).sum()
    gradient = tj.dlfeval(lambda x: tj.dlgradient(function(x), x), np.array([-1.5, 2.5]))
    assert gradient.tolist() == [2 * -1.5 * 3, 2 * 2.5 * 2]


KEYS: dict[str, Callable[[Any, Any, int], Any]] = {
    "two arrays": lambda i, j, k: (i, j),
    "one beside places": lambda i, j, k: (np.array([0, 1, 1]), i),
    "one beside a list": lambda i, j, k: ([0, 1, 1], i),
    "a list of traced places": lambda i, j, k: ([i[0], 1], [2, j[1]]),
    "a number": lambda i, j, k: (i, 1),
    "a number of NumPy first": lambda i, j, k: (np.int64(1), j),
    "a number that varies": lambda i, j, k: (k, j),
    "two numbers": lambda i, j, k: (i[0], j.argmax()),
    "a slice": lambda i, j, k: (slice(1, 3), i),
    "an ellipsis": lambda i, j, k: (..., i),
    "a mask": lambda i, j, k: (i > 0, 1),
    "the places of a mask": lambda i, j, k: np.nonzero(i[:, None] > j),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("ufunc", ["add", "subtract", "maximum"])
@pytest.mark.parametrize("is_made", [False, True], ids=["argument", "made inside"])
def test_at_an_index_for_each_axis(ufunc: str, key: Callable[..., Any], is_made: bool) -> None:
    """A tuple of traced places is no list of numbers: it would be one array of places along the first axis."""

    def written(x: Any, k: int) -> Any:
        i, j = (x[:, 0] > 0).astype(int), np.argsort(x[:, 1])
        target = np.zeros((3, 4)) if is_made else x
        getattr(np, ufunc).at(target, key(i, j, k), 1.5)  # by its name in NumPy, where it is replaced
        return target

    function, rng = tj.dlaccelerate(written, max_variants=20), np.random.default_rng(0)
    for k in (0, 1, 2, 1):
        x = rng.standard_normal((3, 4))
        want = written(x.copy(), k)
        for found in (function(tj.dlarray(x.copy()), k), tj.dlfeval(written, tj.dlarray(x.copy()), k)):
            np.testing.assert_array_equal(tj.extractdata(found), want)
