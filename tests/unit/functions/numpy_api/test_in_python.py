# SPDX-License-Identifier: BSD-3-Clause
"""Functions without an op: NumPy's own run, uncompiled and in programs; nobody differentiates them."""

import numpy as np
import pytest

import tracejit as tj
from tracejit import tree
from tracejit.errors import ArgumentError, GradientError

X = np.linspace(0.5, 3.0, 6)
CALLS = {
    "eigvals": lambda x: np.linalg.eigvals(np.array([[0.0, 1.0], [-1.0, 0.0]]) * x[:1]),
    "qr": lambda x: np.linalg.qr(x.reshape(3, 2), mode="complete"),
    "roots": lambda x: np.roots([1.0, -5.0, 6.0] * x[:1]),
}
IS_DISPATCHED = type(np.polynomial.polynomial.polygrid2d) is type(np.sum)  # from 2.4 on
if IS_DISPATCHED:
    CALLS["polynomial"] = lambda x: np.polynomial.polynomial.polygrid2d(x, x[:2], [[1.0, 2.0], [3.0, 4.0]])


def leaves(result):
    return [np.asarray(leaf) for leaf in tree.flatten(result)[0]]


@pytest.mark.whole("each is a case of its own")
@pytest.mark.parametrize("name", CALLS)
def test_results_are_numpys(name):
    call = CALLS[name]
    expected = leaves(call(X * 2))
    accelerated = tj.dlaccelerate(lambda x: call(x * 2))
    for result in (call(tj.dlarray(X * 2)), *[accelerated(X) for _ in range(4)]):
        found = leaves(result)
        assert len(found) == len(expected)
        assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert accelerated.stats.hits == 2


def inverted(x):
    return np.linalg.eig(x[:4].reshape(2, 2)).eigenvectors.real


def test_results_have_no_labels():
    assert np.linalg.qr(tj.dlarray(X.reshape(2, 3), "CB")).Q.format is None


def test_nobody_differentiates_them():
    def fun(x):
        loss = (np.fft.fftfreq(6) * np.linalg.svd(x.reshape(2, 3) * 1j)[0][0, 0]).real.sum() + (x**2).sum()
        return tj.dlgradient(loss, x)

    with pytest.raises(GradientError, match=r"np\.linalg\.svd.*DifferentiableFunction"):
        tj.dlfeval(fun, X + 3)
    slope = tj.dlfeval(
        lambda x: tj.dlgradient((np.linalg.svd(x.reshape(2, 3) * 1j)[1] > 0).sum() + x.sum(), x), X + 3
    )
    assert slope.tolist() == [1.0] * 6


def test_with_a_gradient_of_one_s_own():
    @tj.custom_gradient
    def inverse(a):
        y = np.linalg.tensorinv(a, ind=1)
        return y, y

    @inverse.backward
    def _(y, dy):
        return -(y.T @ dy @ y.T)

    def slope(function):
        return lambda a: tj.dlgradient((function(a) ** 3).sum(), a)

    fun, a = tj.dlaccelerate(slope(inverse)), X[:4].reshape(2, 2)
    expected = tj.dlfeval(slope(np.linalg.inv), a)
    for _ in range(3):
        assert np.allclose(fun(a), expected)


def test_numbers_that_vary():
    def call(x, k):
        return np.linalg.tensorsolve([[k, 1.0], [2.0, -k]], x[:2])

    fun = tj.dlaccelerate(call)
    for k in (0.0, 1.0, 2.0, 3.5, 4.0, 0.0, 1.0):
        assert np.array_equal(np.asarray(fun(X, k)), call(X, k))


@pytest.mark.parametrize(
    "find", [lambda p: np.linalg.qr(p)[1], lambda p: np.linalg.eig(p @ p.T + np.eye(2))[0]]
)
def test_state_that_varies(find):
    """A square root of a covariance, which each step replaces: the function ran uncompiled."""

    class Root:
        def __init__(self):
            self.p = np.array([[2.0, 0.5], [0.5, 1.0]])

        def step(self, q):
            self.p = find(self.p) * 0.25 + q * np.eye(2)
            return self.p.sum()

    mine, theirs = Root(), Root()
    accelerated = tj.dlaccelerate(mine.step)
    for q in (0.5, 0.25, 1.0, 0.75, 0.5, 1.5, 0.125, 2.0, 0.5, 0.25, 0.75, 1.25):
        assert float(accelerated(q)) == pytest.approx(theirs.step(q), rel=1e-12)
        np.testing.assert_allclose(mine.p, theirs.p, rtol=1e-12)
    assert accelerated.stats.hits >= 4
    assert not accelerated.stats.uncompiled


@pytest.mark.skipif(IS_DISPATCHED, reason="NumPy before 2.4")
def test_polynomials_that_do_not_dispatch():
    """Values of theirs that are traced would become numbers in the middle."""
    fun = tj.dlaccelerate(
        lambda x: np.polynomial.polynomial.polygrid2d(x * 2, x[:2], [[1.0, 2.0], [3.0, 4.0]])
    )
    with pytest.raises(tj.TraceError, match="would silently drop its derivative"):
        fun(X)


def test_sizes_that_depend_on_values():
    fun = tj.dlaccelerate(lambda x: np.roots(x).sum())
    with pytest.warns(tj.TraceJitWarning, match=r"np\.roots"):
        for first in (1.0, 1.0, 1.0, 0.0, 1.0, 0.0):
            x = np.array([first, -3.0, 2.0])
            assert np.allclose(fun(x), np.roots(x).sum())


def test_an_error_of_numpy():
    fun = tj.dlaccelerate(lambda x: np.linalg.tensorinv(x, ind=1))
    for _ in range(3):
        assert fun(np.eye(2) * 2).tolist() == [[0.5, 0.0], [0.0, 0.5]]
    with pytest.raises(np.linalg.LinAlgError):
        fun(np.zeros((2, 2)))
    assert fun(np.eye(2)).tolist() == np.eye(2).tolist()


def test_what_stays_refused():
    made = lambda x: np.frompyfunc(abs, 1, 1)(x)
    for run in (made, tj.dlaccelerate(made)):
        with pytest.raises(ArgumentError, match=r"supported|cannot"):
            run(tj.dlarray(X))


@pytest.mark.parametrize(
    "text",
    ["x[1:]", "x.T", "x.reshape(-1)", "x.copy()", "np.array(x)", "np.asarray(x)", "x + 0", "x.astype(float)",
     "x[[0, 1]]", "x[x > 0]", "x.ravel()", "x.flatten()", "np.ascontiguousarray(x.T)", "x[0]", "np.diagonal(x)",
     "np.zeros(3)", "np.broadcast_to(x, (2, *x.shape))", "np.split(x, [1])[1]", "abs(x)", "x.reshape(-1)[::2].copy()"],
)  # fmt: skip
def test_memory_is_shared_as_numpys_is(text):
    matrix = np.outer(X, X)
    plain = eval(f"lambda x: (np.shares_memory(x, {text}), np.may_share_memory({text}, x))", {"np": np})
    accelerated = tj.dlaccelerate(plain)
    for run in (plain, lambda x: plain(tj.dlarray(x)), lambda x: tj.dlfeval(plain, x), *[accelerated] * 4):
        assert run(matrix) == plain(matrix)
    assert accelerated.stats.hits == 2


def test_memory_of_arrays_from_outside_may_be_other_memory_in_the_next_call():
    shared = tj.dlaccelerate(lambda x, y: np.shares_memory(x, y))
    with pytest.warns(
        tj.NotAcceleratedWarning, match=r"np\.shares_memory asks about two arrays from outside"
    ):
        assert [shared(X, y) for y in (X, X.copy(), X, X.copy())] == [True, False, True, False]


def test_memory_is_asked_about_where_nothing_is_recorded():
    x = tj.dlarray(X)
    assert np.shares_memory(x, x[1:]) and not np.may_share_memory(x, X + 1)
    drawn = np.random.default_rng(0).permutation(x)
    assert np.asarray(drawn).tolist() == np.random.default_rng(0).permutation(X).tolist()


@pytest.mark.parametrize(
    "text", ["x == None", "x != None", "x == 'a'", "x != 'a'", "x[0] == None", "x[0] != 'a'"]
)
def test_what_is_no_number_equals_none(text):
    plain = eval(f"lambda x: {text}")
    expected = np.asarray(plain(X)).tolist()
    for run in (lambda x: plain(tj.dlarray(x)), tj.dlaccelerate(plain)):
        assert [np.asarray(run(X)).tolist() for _ in range(3)] == [expected] * 3


def test_numbers_of_repetitions_vary():
    accelerated = tj.dlaccelerate(lambda x, counts: np.repeat(x, counts, axis=1) * 2)
    rng = np.random.default_rng(0)
    for n in range(12):
        x, counts = (
            rng.normal(size=(2, 4)),
            rng.permutation([0, 3, 1, 2]) if n % 4 else np.array([5, 0, 0, 0]),
        )
        assert accelerated(x, counts).tolist() == (np.repeat(x, counts, axis=1) * 2).tolist()
    assert accelerated.stats.hits >= 6 and accelerated.stats.uncompiled == 0
    slope = tj.dlfeval(
        lambda x, c: tj.dlgradient((np.repeat(x, c) ** 2).sum(), x), X, np.array([1, 0, 2, 0, 1, 1])
    )
    assert np.asarray(slope).tolist() == (2 * X * [1, 0, 2, 0, 1, 1]).tolist()


def test_a_number_that_varies_fills_an_array_without_axes():
    accelerated = tj.dlaccelerate(lambda x, s: np.full_like(x.sum(), s))
    assert [accelerated(X, n / 2).item() for n in range(6)] == [n / 2 for n in range(6)]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sqrt(x, out=np.zeros(3), where=x > 0), lambda x: np.divide(1, x, out=np.zeros(3), where=x != 0),
        lambda x: np.log(x, out=np.ones(3), where=x > 0), lambda x: np.arccosh(x, out=np.zeros(3), where=x > 1),
        lambda x: np.power(x, 0.5, out=x * 3, where=x > 0),
    ],
)  # fmt: skip
def test_where_an_ufunc_computes_nothing_there_is_no_derivative(call):
    x, step = np.array([-1.0, 0.0, 4.0]), 1e-6
    slope = tj.dlfeval(lambda x: tj.dlgradient(call(x).sum(), x), x)
    with np.errstate(all="ignore"):
        sides = [[call(x + sign * step * one).sum() for one in np.eye(3)] for sign in (1, -1)]
    expected = (np.array(sides[0]) - sides[1]) / (2 * step)
    expected[1] = slope[1]  # where the condition changes
    np.testing.assert_allclose(slope, expected, rtol=1e-6)
    assert np.isfinite(np.asarray(slope)).all()


def square(x):
    return x.reshape(2, 3).T @ x.reshape(2, 3) + np.eye(3)


WEIGHTS = np.linspace(-1.0, 2.0, 12)
DIFFERENTIABLE = {
    "tall": lambda x: np.linalg.qr(x.reshape(3, 2)),
    "wide": lambda x: np.linalg.qr(x.reshape(2, 3)),
    "square": lambda x: np.linalg.qr(square(x)),
    "complete": lambda x: np.linalg.qr(square(x), mode="complete"),
    "many": lambda x: np.linalg.qr(np.stack([square(x), square(x * x)])),
    "R alone": lambda x: [np.linalg.qr(x.reshape(3, 2)).R],
    "real roots": lambda x: [np.roots([1.0, -6.0, 0.0] + x[:3] * [0.0, 1.0, 3.0])],
    "complex roots": lambda x: [(r := np.roots(x[:4] + 2)).real, r.imag],
    "tensorsolve": lambda x: [np.linalg.tensorsolve(np.eye(6).reshape(2, 3, 6) * x, x.reshape(2, 3))],
    "axes": lambda x: [
        np.linalg.tensorsolve((np.eye(6) + np.outer(x, x)).reshape(6, 2, 3), x.reshape(2, 3), axes=(0,))
    ],
    "tensorinv": lambda x: [np.linalg.tensorinv((np.eye(6) + np.outer(x, x)).reshape(2, 3, 6), ind=2)],
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    """First and second, by differences, in both modes; replays."""

    def loss(x):
        return sum(
            (part * part * WEIGHTS[: part.shape[-1]]).sum() + part.sum() for part in DIFFERENTIABLE[name](x)
        )

    by, h = np.cos(np.arange(6.0)), 1e-4

    def along(fun):
        near = [np.asarray(fun(tj.dlarray(X + k * h * by))) for k in (-2, -1, 1, 2)]
        return (8 * (near[2] - near[1]) - near[3] + near[0]) / (12 * h)

    def slope(x):
        return tj.dlgradient(loss(x), x)

    first = np.asarray(tj.dlfeval(slope, X))
    assert np.allclose(first @ by, along(loss), rtol=1e-7, atol=1e-7)
    if name != "real roots":  # whose square has a kink beside it
        second = along(lambda x: tj.dlfeval(slope, x))
        assert np.allclose(
            tj.dlfeval(lambda x: tj.dlgradient((slope(x) * by).sum(), x), X), second, atol=1e-6
        )
    assert np.allclose(tj.jvp(loss, (X,), (by,))[1], first @ by, rtol=1e-9)
    fun = tj.dlaccelerate(slope)
    for _ in range(3):
        assert np.allclose(fun(X), first, rtol=1e-10, atol=1e-12)
