# SPDX-License-Identifier: BSD-3-Clause
"""Operands in forms that NumPy tells apart: its numbers, sizes and dtypes, also in replays, and its errors."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

POINTS = np.random.default_rng(0).normal(size=(60, 2))
X, Y = np.ascontiguousarray(POINTS.T)
C = np.array([3.0, 0.0, 1.0])
Q = np.poly1d([1.0, 2.0])

TABLE = np.arange(6.0).reshape(2, 3)
HOLES = np.array([1.0, 2.0, np.nan, 7.0, 11.0, 16.0, 22.0])

Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "numbers of bins for each axis in an array": (lambda r, b: np.histogramdd(r, bins=b), (POINTS, np.array([4, 5]))),
    "numbers of bins in an array that the function makes": (
        lambda r: np.histogramdd(r, bins=np.array([4, 5]))[0],
        (POINTS,),
    ),
    "edges for each axis in an array": (
        lambda r, b: np.histogramdd(r, bins=b),
        (POINTS, np.array([[-1.0, 0.0, 1.0], [0.0, 1.0, 2.0]])),
    ),
    "one number of bins in an array": (lambda r, b: np.histogramdd(r, bins=b), (POINTS, np.array(4))),
    **{
        f"bins of two axes: {bins}": (lambda x, y, b: np.histogram2d(x, y, bins=b), (X, Y, bins))
        for bins in (
            np.array([3, 4]),
            np.array([-1.0, 0.0, 1.0]),
            np.array([[-1.0, 0.0, 1.0], [0.0, 1.0, 2.0]]),
            [np.array([-1.0, 1.0, 2.0]), 4],
            [3, 4],
            5,
        )
    },
    "a polynomial of a polynomial": (lambda c: np.polyval(c, Q).coeffs, (C,)),
    "a polynomial at a place": (lambda c: np.polyval(np.poly1d(c), 2.0), (C,)),
    **{
        f"{name} of a polynomial and coefficients": (
            lambda c, name=name: [getattr(np, name)(c, Q)(0.5), getattr(np, name)(Q, c).coeffs],
            (C,),
        )
        for name in ("polyadd", "polysub", "polymul")
    },
    "polydiv of a polynomial and coefficients": (lambda c: [part(0.5) for part in np.polydiv(c, Q)], (C,)),
    "polyder of a polynomial": (lambda c: np.polyder(np.poly1d(c))(0.5), (C,)),
    "polyint of a polynomial": (lambda c: np.polyint(np.poly1d(c)).coeffs, (C,)),
    **{
        f"gradient {title}, order {order}": (lambda f, x, order=order: np.gradient(f, x, edge_order=order), (f, x))
        for order in (1, 2)
        for title, f, x in (
            ("with NaN and places as far apart", HOLES, np.arange(7.0)),
            ("with NaN and integer places", HOLES, np.arange(7)),
            ("with NaN and other places", HOLES, np.arange(7.0) ** 2),
            ("with infinities and places as far apart", np.where(np.isnan(HOLES), np.inf, HOLES), np.arange(7.0) / 4),
        )
    },
    "gradient along two axes": (
        lambda f, x: np.gradient(f, x, x[:3]),
        (np.outer(HOLES, np.array([1.0, 2.0, 4.0])), np.arange(7.0)),
    ),
    **{
        f"poly of {title}": (np.poly, (zeros,))
        for title, zeros in (
            ("pairs of conjugates", np.array([1 + 2j, 1 - 2j, 3])),
            ("pairs of conjugates in single precision", np.array([1 + 2j, 1 - 2j], np.complex64)),
            ("complex numbers", np.array([1 + 2j, 1 - 3j])),
            ("numbers of 16 bits", np.array([1.0, 2.0], np.float16)),
            ("single precision", np.array([1.0, 2.0], np.float32)),
            ("integers", np.array([1, 2])),
            ("a matrix", np.array([[1.0, 2.0], [3.0, 4.0]])),
            ("a matrix with complex eigenvalues", np.array([[0.0, 2.0], [-3.0, 0.0]])),
        )
    },
    "covariances of no variables beside others": (lambda a, b: np.cov(a, b), (np.zeros((0, 3)), np.eye(3))),
    "correlations of no variables beside others": (lambda a, b: np.corrcoef(a, b), (np.zeros((0, 3)), np.eye(3))),
    "covariances of variables beside none": (lambda a, b: np.cov(a, b), (np.eye(3), np.zeros((0, 3)))),
    "correlations of complex numbers": (np.corrcoef, (np.array([[1, 2j, 3], [2, 1, 1j]]),)),
    "covariances in single precision": (lambda a: np.cov(a, dtype=np.float32), (POINTS,)),
    "take into an array of integers": (lambda x: np.take(x, [0, 1], out=np.zeros(2, int)), (TABLE,)),
    "compress into an array of integers": (
        lambda x: np.compress([True, False, True], x, axis=1, out=np.zeros((2, 2), int)),
        (TABLE,),
    ),
    "take at bools": (lambda x: np.take(x, x > 1), (TABLE,)),
    "take at bools, clipped": (lambda x: np.take(x, x[0] > 1, axis=1, mode="clip"), (TABLE,)),
    "dot into an array of its dtype": (lambda x: np.dot(x, x.T, out=np.zeros((2, 2))), (TABLE,)),
    "einsum into wider numbers": (lambda x: np.einsum("ij->i", x, out=np.zeros(2, complex)), (TABLE,)),
    "einsum into narrower numbers, as asked for": (
        lambda x: np.einsum("ij->i", x, out=np.zeros(2, np.float32), casting="same_kind"),
        (TABLE,),
    ),
    "unravel_index of bools": (lambda x: np.unravel_index(x > 1, (2, 3)), (TABLE,)),
    "ravel_multi_index of bools": (lambda x: np.ravel_multi_index((x > 1, x > 2), (2, 3)), (TABLE,)),
    "put of nothing": (lambda x: [np.put(x, [0, 1], []), x][1], (TABLE,)),
    "putmask of nothing": (lambda x: [np.putmask(x, x > 1, []), x][1], (TABLE,)),
    "place of a list": (lambda x: [np.place(x, x > 1, [7]), x][1], (TABLE.astype(np.float32),)),
    "place of narrower numbers": (lambda x: [np.place(x, x > 1, np.ones(2, np.int8)), x][1], (TABLE,)),
    "nanmean of a number along its axis": (lambda x: np.nanmean(x[0, 1], axis=0), (TABLE,)),
    "nanstd of a number along its axis": (lambda x: np.nanstd(x[0, 1], axis=-1), (TABLE,)),
    "nanvar of a number along its axis": (lambda x: np.nanvar(x[0, 1], axis=0), (TABLE,)),
    "squeeze of a number along its axis": (lambda x: np.squeeze(x[0, 1], axis=0), (TABLE,)),
    "array by its name": (lambda x: np.array(object=x), (TABLE,)),
    "array of a list by its name": (lambda x: np.array(object=[x[0, 0], 2.0]), (TABLE,)),
    "array of a list with a largest number of axes": (lambda x: np.array([x[0], x[1]], ndmax=2), (TABLE,)),
    **{
        f"{name} by its name": (lambda x, name=name: getattr(np, name)(a=x), (TABLE,))
        for name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require")
    },
    "polymul of nothing": (np.polymul, (C[:0], C[:0])),
    **{f"add with order {order}": (lambda x, order=order: np.add(x, x.T.T, order=order), (TABLE,)) for order in "CAK"},
    **{
        f"{ufunc.__name__} of chosen ones of {dtype}, axis {axis}": (
            lambda x, m, ufunc=ufunc, axis=axis: ufunc.reduce(x, axis=axis, where=m),
            (TABLE.astype(dtype), TABLE % 2 > 0),
        )
        for ufunc, dtypes in (
            (np.bitwise_and, ("int64", "uint8", "bool")),
            (np.bitwise_or, ("int64",)),
            (np.bitwise_xor, ("int8",)),
            (np.logical_xor, ("float64", "bool")),
            (np.gcd, ("int64",)),
            (np.hypot, ("float64",)),
            (np.logaddexp, ("float32",)),
        )
        for dtype in dtypes
        for axis in (0, 1, None)
    },
    "fmax of chosen ones": (lambda x: np.fmax.reduce(x, axis=1, where=x > 3, initial=2.0), (TABLE,)),
    "roots of a polynomial": (lambda c: np.sort_complex(np.roots(np.poly1d(c))), (C,)),
}  # fmt: skip


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in tj.tree.flatten(result)[0]]


def copied(arguments: tuple[Any, ...]) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]


@pytest.mark.filterwarnings("ignore:Implicit casting of output:DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, arguments = CASES[name]
    with np.errstate(all="ignore"):
        expected = leaves(function(*copied(arguments)))
        accelerated = tj.dlaccelerate(function)
        runs = [lambda *args: tj.dlfeval(function, *args), *[accelerated] * 4]
        for run in runs:
            found = leaves(run(*copied(arguments)))
            assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in expected]
            for have, want in zip(found, expected, strict=True):
                near = 1e-12 if want.dtype.itemsize >= 8 and want.dtype.kind != "c" else 1e-6
                np.testing.assert_allclose(have, want, rtol=near, atol=near / 100)
    assert accelerated.stats.hits > 1


def _exact(name: str, out: np.ndarray, shape: tuple[int, ...], dtype: str = "float64") -> str:
    return (
        f"{name}: the result is {dtype} of size {shape}, but out is {out.dtype} of size {out.shape}; pass an array of "
        "the same dtype and size."
    )


SQUARES = [np.zeros((2, 2), dtype) for dtype in (np.float32, int, complex)]
CHANGED = ("take into", "compress into")
OUTPUTS: list[tuple[str, Callable[..., Any], np.ndarray, str]] = [
    *[("dot", lambda x, out: np.dot(x, x.T, out=out), out, _exact("np.dot", out, (2, 2))) for out in SQUARES],
    *[("the method dot", lambda x, out: x.dot(x.T, out=out), out, _exact("np.dot", out, (2, 2))) for out in SQUARES],
    (
        "dot of integers",
        lambda x, out: np.dot(x.astype(int), x.T.astype(int), out=out),
        np.zeros((2, 2)),
        _exact("np.dot", np.zeros((2, 2)), (2, 2), "int64"),
    ),
    (
        "multi_dot",
        lambda x, out: np.linalg.multi_dot([x, x.T, x], out=out),
        np.zeros((2, 3), np.float32),
        _exact("np.linalg.multi_dot", np.zeros((2, 3), np.float32), (2, 3)),
    ),
    (
        "take",
        lambda x, out: np.take(x, [0, 1], out=out),
        np.zeros(2, complex),
        "np.take: the result is float64, but out is complex128; pass an array of float64.",
    ),
    (
        "compress",
        lambda x, out: np.compress([True, False, True], x, axis=1, out=out),
        np.zeros((2, 2), complex),
        "np.compress: the result is float64, but out is complex128; pass an array of float64.",
    ),
    (
        "einsum",
        lambda x, out: np.einsum("ij->i", x, out=out),
        np.zeros(2, np.float32),
        "np.einsum: the result is float64, but out is float32; pass an array of float64.",
    ),
]  # fmt: skip
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "vectors of two lengths": (
        lambda x, y: np.histogram2d(x, y),
        (X, Y[:9]),
        "np.histogram2d: x and y have 60 and 9 elements, expected the same number.",
    ),
    "one entry of bins for two axes": (
        lambda x, y: np.histogram2d(x, y, bins=[4]),
        (X, Y),
        "np.histogramdd: bins and range have 1 and 2 entries, expected 2, one for each axis.",
    ),
    **{
        f"{name} in {dtype.__name__}": (
            lambda x, name=name, dtype=dtype: getattr(np, name)(x, dtype=dtype),
            (X,),
            f"np.cov: dtype is {np.dtype(dtype)}, which holds no mean; pass a dtype of floating point.",
        )
        for name in ("cov", "corrcoef")
        for dtype in (int, bool)
    },
    "the gradient of bools": (
        lambda x: np.gradient(x > 0),
        (X,),
        "np.gradient: f holds bools, whose difference NumPy does not define; cast it (f.astype(int)).",
    ),
    "poly of no vector": (
        np.poly,
        (POINTS,),
        "np.poly: seq_of_zeros has shape (60, 2), expected a vector, or a square matrix that is not empty.",
    ),
    **{
        f"{name} into an array of {out.dtype} and {out.ndim} axes": (
            lambda x, y, call=call, out=out: call(x, out.copy()),
            (TABLE, TABLE),
            message,
        )
        for name, call, out, message in OUTPUTS
    },
    **{
        f"place of {vals.dtype} in {dtype}": (
            lambda x, y, vals=vals, dtype=dtype: np.place(x.astype(dtype), x > 1, vals),
            (TABLE, TABLE),
            f"np.place: vals are {vals.dtype}, which {dtype} numbers cannot hold in full; cast them first "
            f"(vals.astype(np.{dtype})).",
        )
        for vals in (np.array([1.5]), np.array([1]), np.array([1j]))
        for dtype in ("int8", "float32")
    },
    "place of a complex number": (
        lambda x, y: np.place(x, x > 1, 1j),  # type: ignore[arg-type]
        (TABLE, TABLE),
        "np.place: vals is complex, and float64 numbers are real; pass vals.real.",
    ),
    "putmask of a complex number": (
        lambda x, y: np.putmask(x, x > 1, 1j),
        (TABLE, TABLE),
        "np.putmask: values is complex, and float64 numbers are real; pass values.real.",
    ),
    "place of nothing": (
        lambda x, y: np.place(x, x > 1, []),
        (TABLE, TABLE),
        "np.place: vals is empty; pass at least one value.",
    ),
    "ravel_multi_index of floats": (
        lambda x, y: np.ravel_multi_index((x, y), (9, 9)),
        (TABLE, TABLE),
        "np.ravel_multi_index: an index has dtype float64, expected integers; round and cast it.",
    ),
    "ravel_multi_index of more indices than axes": (
        lambda x, y: np.ravel_multi_index((x > 1, x > 1, x > 1), (9, 9)),
        (TABLE, TABLE),
        "np.ravel_multi_index: there are 3 indices for 2 axes, and order is 'C' ('C' or 'F').",
    ),
    "correlate of a number": (
        lambda x, y: np.correlate(x[0, 1], y[0]),
        (TABLE, TABLE),
        "np.correlate: a is a number, expected a vector.",
    ),
    "correlate with a number": (
        lambda x, y: np.correlate(x[0], y[0, 1]),
        (TABLE, TABLE),
        "np.correlate: v is a number, expected a vector.",
    ),
    "take_along_axis at floats": (
        lambda x, y: np.take_along_axis(x, y, 1),
        (TABLE, TABLE),
        "take_along_axis: index has dtype float64, expected integers. Round and cast it (index.astype(np.int64)), or "
        "turn a mask into indices with nonzero.",
    ),
    "sosfilt with a first coefficient that is not 1": (
        lambda x, y: tj.signal.sosfilt(np.array([[1.0, 0, 0, 2, 0, 0]]), x),
        (TABLE, TABLE),
        "signal.sosfilt: sos[:, 3] must be 1 in each section; divide the coefficients by it (sos / sos[:, 3:4]).",
    ),
    "fmax of chosen ones, without a start": (
        lambda x: np.fmax.reduce(x, where=x > 1),
        (TABLE,),
        "np.fmax.reduce: where= needs an operand that changes nothing, which there is not without initial=; use "
        "where(condition, x, y) to select.",
    ),
    "lists that are nested too deep": (
        lambda x: np.array([[x[0], x[1]]], ndmax=1),
        (TABLE,),
        "np.array: lists are nested to 3 axes, expected at most 1, which is ndmax.",
    ),
    "a rule for bins of two axes": (
        lambda x, y: np.histogram2d(x, y, bins=["auto", "auto"]),
        (X, Y),
        "np.histogramdd: bins=['auto', 'auto'] is a rule, which histograms of one axis take; pass numbers, or edges.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_numpy(name: str) -> None:
    if name.startswith(CHANGED) and np.lib.NumpyVersion(np.__version__) >= "2.5.0":
        pytest.skip("NumPy 2.5 warns of other dtypes there")
    function, arguments, message = REFUSED[name]
    with pytest.raises(Exception) as numpys:  # of any class
        function(*copied(arguments))
    kind = next(kind for kind in numpys.type.__mro__ if kind.__module__ in ("builtins", "numpy.linalg"))
    for run in (tj.dlaccelerate(function), lambda *args: tj.dlfeval(function, *args)):
        with pytest.raises(kind) as ours:
            run(*copied(arguments))
        assert isinstance(ours.value, tj.TraceJitError)
        assert str(ours.value).partition("\n")[0] == message


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("dtype", [int, float])
def test_a_matrix_shows_no_traced_array(dtype: Any) -> None:
    whole, blocks = (
        "asmatrix: not supported on dlarrays; use the array itself",
        "bmat: not supported on dlarrays; join",
    )
    for given, message in (
        (lambda x: np.asmatrix(x), whole),
        (lambda x: np.asmatrix([x, x]), whole),
        (lambda x: np.bmat(x), blocks),
        (
            lambda x: np.bmat([[x[None], x[None]]]),
            f"{blocks} blocks with np.block, and @ for products of matrices.",
        ),
    ):
        with pytest.raises(tj.ArgumentError, match=f"^np.{re.escape(message)}"):
            tj.dlaccelerate(given)(np.arange(4).astype(dtype))


WHOLE: dict[str, tuple[Callable[[Any, Any], Any], list[Any]]] = {
    "split": (lambda x, n: np.split(x, n, axis=1), [[1, 3], [2, 2]]),
    "array_split": (lambda x, n: np.array_split(x, n, axis=1), [[1, 3], [0, 2]]),
    "hsplit": (lambda x, n: np.hsplit(x, n), [[1, 3], [2, 3]]),
    "vsplit": (lambda x, n: np.vsplit(x, n), [[1, 2], [2]]),
    "the method reshape": (lambda x, n: x.reshape(n), [[2, 6], [6, 2], [-1, 2]]),
    "reshape": (lambda x, n: np.reshape(x, n), [[2, 6], [12]]),
    "tile": (lambda x, n: np.tile(x, n), [[2, 1], [1, 2]]),
    "roll": (lambda x, n: np.roll(x, n, axis=(0, 1)), [[1, 2], [0, 3]]),
    "roll along axes": (lambda x, n: np.roll(x, 1, axis=n), [[0, 1], [1]]),
    "pad": (lambda x, n: np.pad(x, n), [[1, 2], [0, 1]]),
    "pad by pairs": (lambda x, n: np.pad(x, n, mode="edge"), [[[1, 2], [0, 1]], [[0, 0], [2, 1]]]),
    "transpose": (lambda x, n: x.transpose(n), [[1, 0], [0, 1]]),
    "moveaxis": (lambda x, n: np.moveaxis(x, n, [1, 0]), [[0, 1], [1, 0]]),
    "moveaxis to": (lambda x, n: np.moveaxis(x, [1, 0], n), [[0, 1], [1, 0]]),
    "broadcast_to": (lambda x, n: np.broadcast_to(x, n), [[2, 3, 4], [1, 3, 4]]),
    "resize": (lambda x, n: np.resize(x, n), [[2, 2], [5]]),
    "zeros": (lambda x, n: np.zeros(n) + x[0, 0], [[2, 3], [4]]),
    "unravel_index": (lambda x, n: np.unravel_index(5, n), [[3, 4], [4, 3]]),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_integers_in_an_array(name: str) -> None:
    """Sizes, cuts, shifts and axes may be the elements of an argument, which are guards, or of an array made inside."""
    function, values = WHOLE[name]
    x, y = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4) ** 2
    inside = tj.dlaccelerate(lambda x: function(x, np.array(values[0])))
    step = tj.dlaccelerate(function)
    for array in (x, y, x, y):
        want = leaves(function(array, np.array(values[0])))
        for have in (inside(array), tj.dlfeval(function, array, np.array(values[0]))):
            assert [part.tolist() for part in leaves(have)] == [part.tolist() for part in want]
        for n in map(np.array, values):
            have, want = leaves(step(array, n)), leaves(function(array, n))
            assert [part.tolist() for part in have] == [part.tolist() for part in want]
    assert step.stats.hits >= 1 and inside.stats.hits >= 1
