# SPDX-License-Identifier: BSD-3-Clause
"""Options, and axes in any order, that NumPy's own tests use: the same numbers and dtypes, also in replays."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

A = np.random.default_rng(0).normal(size=(3, 3, 4))
W = np.random.default_rng(1).uniform(0.5, 1.5, size=(3, 3))
N = np.array([127, 39, 93, 87, 46])

Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "average by weights of axes out of order": (lambda a, w: np.average(a, axis=(1, 0), weights=w), (A, W)),
    "average by weights of two lengths": (lambda a, w: np.average(a, axis=(2, 1), weights=w), (A, A[0].T ** 2)),
    "average by weights of negative axes": (
        lambda a, w: np.average(a, axis=(-1, 0), weights=w, returned=True, keepdims=True),
        (A, A[:, 0].T ** 2),
    ),
    **{
        f"apply_along_axis of rows without elements, {along.__name__}": (
            lambda x, along=along: np.apply_along_axis(along, 0, x),
            (np.zeros((0, 3)),),
        )
        for along in (np.sum, np.sort)
    },
    **{
        f"{name} into integers by unsafe casts": (written, (10 * A[0], N[:3].astype(np.uint8)))
        for name, written in {
            "add": lambda a, n: np.add(abs(a[0, :3]), n, out=n.copy(), casting="unsafe"),
            "multiply where": lambda a, n: np.multiply(n, 1.5, out=n.copy(), where=a[0, :3] > 0, casting="unsafe"),
            "sin": lambda a, n: np.sin(n / 100, out=n.copy(), casting="unsafe"),
            "divmod": lambda a, n: np.divmod(abs(a[:, 0]), 2.5, out=(n.copy(), n.copy()), casting="unsafe"),
            "add of a dtype": lambda a, n: np.add(n, n, out=n.copy(), dtype=np.float32, casting="unsafe"),
            "concatenate": lambda a, n: np.concatenate([n[:1], abs(a[0, :2])], out=n.copy(), casting="unsafe"),
            "clip": lambda a, n: np.clip(abs(a[0, :3]), 1, 50, out=n.copy(), casting="unsafe"),
            "einsum": lambda a, n: np.einsum("i->i", abs(a[0, :3]), out=n.copy(), casting="unsafe"),
        }.items()
    },
    "gradient along axes out of order": (lambda a, x: np.gradient(a, 2.0, x, axis=(1, 0)), (A, np.array([0.0, 1, 4]))),
    "gradient along a negative axis first": (lambda a: np.gradient(a, 2, 3, axis=(-1, 0)), (A,)),
    "gradient along axes in a list": (lambda a: np.gradient(a, 2, 3, axis=[1, 0]), (A,)),  # type: ignore[arg-type]
    **{
        f"quantile {q} by weights of axes out of order": (
            lambda a, w, q=q: np.quantile(a, q, axis=(1, 0), weights=w, method="inverted_cdf"),
            (A, W),
        )
        for q in (0.1, 0.3, 0.5, 0.9)
    },
    "median over axes out of order": (lambda a: np.median(a, axis=(2, 0)), (A,)),
    **{f"nanquantile {q} of integers": (lambda n, q=q: np.nanquantile(n, q), (N,)) for q in (0, 1, np.array([0, 1]))},
    "nanquantile 1 of bytes along an axis": (lambda n: np.nanquantile(n, 1, axis=0), (N.astype(np.uint8),)),
    "nanquantiles 0 and 1 with NaN": (
        lambda x: np.nanquantile(x, np.array([0, 1]), axis=-1),
        (np.where(A > 1, np.nan, A).astype(np.float32),),
    ),
    "quantile by a truth": (lambda x: np.quantile(x, True), (A.astype(np.float32),)),
    **{
        f"vecdot with {options}": (lambda a, b, options=options: np.vecdot(a, b, **options), (A, A[:, :1]))
        for options in (
            {"axis": 0, "keepdims": True},
            {"keepdims": True},
            {"axes": [0, 0]},
            {"axes": [(0,), 0, ()]},
            {"axes": [2, -1, 1], "keepdims": True},
            {"axis": -1, "dtype": np.complex128},
        )
    },
    "vecdot along an axis into an array": (lambda a: np.vecdot(a, a, axis=0, out=np.zeros((3, 4))), (A,)),
    "matmul of other axes": (lambda a, w: np.matmul(a, w, axes=[(2, 0), (0, 1), (0, -1)]), (A, W)),
    **(
        {
            "matvec of other axes": (lambda a, v: np.matvec(a, v, axes=[(-1, -2), -2, -1]), (A[0], W[:, :1])),
            "vecmat of other axes": (lambda v, a: np.vecmat(v, a, axes=[0, (2, 0), 1]), (A[0, 0], A)),
        }
        if hasattr(np, "matvec")  # NumPy 2.2
        else {}
    ),
    **(
        {
            f"trim_zeros {trim} of axes {axis} of {title}": (
                lambda x, trim=trim, axis=axis: np.trim_zeros(x, trim, axis=axis),
                (x,),
            )
            for title, x in (
                ("a table", np.pad(np.eye(2, 3), ((1, 2), (2, 1)))),
                ("a vector", np.array([0.0, 1.0, 0.0])),
                ("zeros", np.zeros((2, 3))),
                ("nothing", np.zeros((0, 3))),
                ("a number", np.array(0.0)),
            )
            for trim in ("fb", "f", "b")
            for axis in (None, (), (0,), (-1, 0), 0)
            if x.ndim > 1 or axis in (None, ()) or (x.ndim and axis in ((0,), 0))
        }
        if "axis" in inspect.signature(np.trim_zeros).parameters  # NumPy 2.2
        else {}
    ),
    **{
        f"{name} in order {order} of {title}, shape {shape}": (
            lambda x, name=name, order=order, shape=shape: [
                made := getattr(np, name)(x, *([2.5] if name == "full_like" else []), order=order, shape=shape),
                np.array([made.flags.c_contiguous, made.flags.f_contiguous]),
            ],
            (x,),
        )
        for name in ("zeros_like", "ones_like", "full_like")
        for order in "KACF"
        for title, x in (("a table", A[0]), ("columns", A[0].T.copy().T), ("turned axes", A.transpose(1, 2, 0)))
        for shape in (None, (5, 2), (2, 3, 4))
    },
    **{
        f"copy in order {order} of {title}": (
            lambda x, order=order: [
                made := np.copy(x, order=order),
                np.array([made.flags.c_contiguous, made.flags.f_contiguous]),
            ],
            (x,),
        )
        for order in "KACF"
        for title, x in (("a table", A[0]), ("columns", A[0].T.copy().T), ("turned axes", A.transpose(1, 2, 0)))
    },
    "a copy that may be of a subclass": (lambda x: np.copy(x, subok=True), (A,)),
    "empty_like in order": (lambda x: np.empty_like(x, order="F").shape[0] + x, (A,)),
    "geomspace between complex numbers": (lambda x: np.geomspace(x, 8j, 4), (np.array([1j, -2 + 1j]),)),
    "geomspace of a complex dtype": (lambda x: np.geomspace(x[0], -4.0, 5, dtype=complex), (np.array([1.0]),)),
    "geomspace of complex numbers to real ones along an axis": (
        lambda x: np.geomspace(x, np.array([8.0, 2.0]), 4, axis=-1, endpoint=False),
        (np.array([1j, -2 + 1j], np.complex64),),
    ),
    "logspace of bases": (lambda b: np.logspace(1, 2, 6, base=b), (np.array([1, 2]),)),
    "logspace of bases along an axis": (
        lambda a, b: np.logspace(a, 2, 6, base=b, axis=-1),
        (np.array([1.0, 0.0]), np.array([[1.0, 2.0], [3.0, 4.0]])),
    ),
    "insert where a mask with an end says": (
        lambda x: np.insert(x, np.array([True, False, False, False, False, True]), x[:2]),
        (N,),
    ),
    "allclose by tolerances of elements": (lambda x: np.allclose(x, x + 1, atol=[1, 1, 1, 2, 2]), (N / 2,)),
    "allclose by relative tolerances": (lambda x: np.allclose(x, x + 1, rtol=np.full(5, 1e-3)), (N / 2,)),
    **{
        f"a polynomial {title}": (function, (np.array([1.0, 2.0, 3.0]).astype(dtype),))
        for dtype in (float, int)
        for title, function in (
            (f"times an element, {np.dtype(dtype)}", lambda c: (np.poly1d(c) * c[0])(0.5)),
            (f"by an element, {np.dtype(dtype)}", lambda c: (np.poly1d([1.0, 2.0]) / c[2]).coeffs),
            (f"plus an element, {np.dtype(dtype)}", lambda c: (np.poly1d(c) + c[0])(0.5)),
            (f"of a list, {np.dtype(dtype)}", lambda c: np.poly1d([1.0, c[0]])(c)),
            (f"of roots in a tuple, {np.dtype(dtype)}", lambda c: np.poly1d((1.0, c[0]), True)(c)),
        )
    },
    "moveaxis by a range": (lambda a: np.moveaxis(a, range(3), range(2, -1, -1)), (A,)),
}  # fmt: skip


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in tj.tree.flatten(result)[0]]


def copied(arguments: tuple[Any, ...]) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, arguments = CASES[name]
    expected = leaves(function(*copied(arguments)))
    accelerated = tj.dlaccelerate(function)
    for run in (lambda *args: tj.dlfeval(function, *args), *[accelerated] * 4):
        found = leaves(run(*copied(arguments)))
        assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in expected]
        for have, want in zip(found, expected, strict=True):
            near = 1e-12 if want.dtype.itemsize >= 8 and want.dtype.kind != "c" else 1e-6
            np.testing.assert_allclose(have, want, rtol=near, atol=near / 100)
    assert accelerated.stats.hits > 1


def test_weights_of_a_quantile_are_compared_in_its_precision() -> None:
    """The sum of two weights of five is 0.4, which in float32 is above 0.4 in float64."""
    x = np.array([15, 20, 35, 40, 50], np.float32)
    for dtype in (np.float32, np.float64):
        found = tj.dlfeval(
            lambda x, w: np.quantile(x, 0.4, weights=w, method="inverted_cdf"), x, np.ones(5, dtype)
        )
        assert found.item() == 20.0


@pytest.mark.parametrize("casting", ["safe", "no", "equiv"])
def test_a_rule_of_casts_holds_for_the_array_that_is_written(casting: Any) -> None:
    for x in (A, tj.dlarray(A)):
        with pytest.raises(TypeError):
            np.add(x, x, out=np.zeros(A.shape, np.float32), casting=casting)
        assert np.add(x, x, out=np.zeros(A.shape), casting=casting)[0, 0, 0] == 2 * A[0, 0, 0]
