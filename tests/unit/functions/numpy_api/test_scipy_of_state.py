# SPDX-License-Identifier: BSD-3-Clause
"""State that is handed to SciPy's functions and to methods of generators as it is: what a step puts there is computed.

An array of the state is traced only once an operation has taken it, and these functions ask no array for a protocol.
"""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.distance
import scipy.special
import scipy.stats
from scipy.linalg import solve_banded
from scipy.ndimage import laplace
from scipy.special import expit, softmax

import tracejit as tj

CALLS = 14
MATRIX = (
    np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 0.0], [2.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 2.0]]) / 5
)
NAMES: dict[str, Any] = {
    "np": np, "scipy": scipy, "softmax": softmax, "expit": expit, "laplace": laplace, "solve_banded": solve_banded,
    "A": MATRIX, "I": np.arange(4), "X": np.arange(4.0),
    "BANDS": np.array([[0.0, 1.0, 1.0, 1.0], [4.0, 4.0, 4.0, 4.0], [1.0, 1.0, 1.0, 0.0]]),
    "SPARSE": scipy.sparse.csr_array(MATRIX), "COLUMNS": scipy.sparse.csc_array(MATRIX + 2 * np.eye(4)),
    "OLD": scipy.sparse.csr_matrix(MATRIX),
    "FACTORS": scipy.sparse.linalg.splu(scipy.sparse.csc_array(MATRIX + 2 * np.eye(4))),
    "SPLINE": scipy.interpolate.CubicSpline(np.linspace(-9, 9, 30), np.sin(np.linspace(-9, 9, 30))),
    "LINE": scipy.interpolate.interp1d(np.linspace(-99, 99, 30), np.cos(np.linspace(-9, 9, 30))),
    "TREE": scipy.spatial.KDTree(MATRIX), "OLD_TREE": scipy.spatial.cKDTree(MATRIX),
    "HALVED": np.vectorize(lambda x: 0.5 * x + 1),
}  # fmt: skip
FUNCTIONS = [
    "softmax($)", "scipy.special.softmax($)", "expit($)", "$ - scipy.special.logsumexp($)",
    "0.5 * solve_banded((1, 1), BANDS, $) + 1", "0.5 * scipy.linalg.solveh_banded(BANDS[:2], $) + 1",
    "scipy.linalg.expm(0.1 * A) @ $", "scipy.signal.lfilter([0.5], [1.0, 0.2], $)",
    "scipy.signal.fftconvolve($, [0.2, 0.3, 0.2], mode='same')", "scipy.signal.medfilt($, 3)",
    "scipy.signal.convolve($, [0.2, 0.3, 0.2], mode='same')", "scipy.signal.savgol_filter($, 3, 1)",
    "scipy.signal.convolve2d($.reshape(2, 2), np.ones((3, 3)) / 9, mode='same').ravel()", "0.3 * scipy.fft.dct($)",
    "scipy.fft.fft($).real * 0.2", "scipy.interpolate.interp1d(X, $)(X * 0.9)",
    "scipy.interpolate.CubicSpline(X, $)(X * 0.9)", "0.5 * scipy.integrate.cumulative_trapezoid($, initial=0) + 1",
    "0.1 * $ + scipy.integrate.simpson($)", "SPARSE @ $", "OLD * $", "SPARSE.dot($)", "FACTORS.solve($)",
    "0.1 * scipy.sparse.linalg.spsolve(COLUMNS, $)", "$ + 0.1 * laplace($)", "0.1 * laplace($)",
    "scipy.ndimage.gaussian_filter($, 1.0)", "scipy.ndimage.gaussian_filter1d($, 1.0)",
    "scipy.ndimage.convolve1d($, [0.2, 0.3, 0.2])", "0.1 * scipy.spatial.distance.cdist([$], A)[0]",
    "scipy.stats.norm.cdf($)", "0.1 * scipy.stats.norm.logpdf($)", "0.1 * scipy.stats.rankdata($)",
    "scipy.stats.zscore($ + X)", "0.9 * A[TREE.query($)[1]]", "0.9 * A[OLD_TREE.query($)[1]]", "SPLINE($)", "LINE($)",
    "HALVED($)", "A.dot($)", "0.1 * A[X.searchsorted($) % 4, I]",
]  # fmt: skip
WAYS = {
    "assigned": "self.u = {}",
    "in place": "self.u[:] = {}",
    "added": "self.u += 0.1 * ({})",
    "method": "self.u = {}",
    "returned": "r = {}; self.u = 0.9 * r; return r",
    "read": "return {}",
}
# The calls that are recorded: those that find that an ndarray varies, that exchange it, and for the dlarray that a
# replay assigns; then the one that confirms, and an audit.
HITS = {"assigned": 8, "method": 8, "returned": 8, "in place": 11, "added": 11, "read": 7}


class State:
    """A vector, and a generator of random numbers."""

    def __init__(self, u: Any, generator: Any = np.random.default_rng) -> None:
        self.u = u
        self.rng = generator(3)

    def get(self) -> Any:
        return self.u

    step: Any
    plain: Any


def program(text: str, names: dict[str, Any]) -> type[State]:
    """Return a class whose methods `step` and `plain` do what a text says."""
    names = dict(names)
    exec(f"def plain(self):\n    {text}", names)
    return type("Program", (State,), {"plain": names["plain"], "step": tj.dlaccelerate(names["plain"])})


def check_same(have: State, want: State, call: int, changes: bool = False) -> None:
    """Compare a call with the one of plain Python."""
    found, expected = have.step(), want.plain()
    if changes:
        have.u[call % 4] = want.u[call % 4] = 0.01 + 0.02 * call
    np.testing.assert_allclose(np.asarray(have.u), want.u, rtol=1e-9, atol=1e-12)
    assert have.u.dtype == want.u.dtype
    if expected is not None:
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-12)
        assert np.asarray(found).dtype == np.asarray(expected).dtype


def started(kind: str) -> Any:
    u = np.array([0.1, 0.4, 0.2, 0.3])
    return tj.dlarray(u) if kind == "dlarray" else u


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["ndarray", "dlarray"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_scipy(function: str, way: str, kind: str) -> None:
    text = WAYS[way].format(function.replace("$", "self.get()" if way == "method" else "self.u"))
    kinds = program(text, NAMES)
    have, want = kinds(started(kind)), kinds(started("ndarray"))
    for call in range(CALLS):
        check_same(have, want, call, changes=way == "read")
    assert have.step.stats.hits == (HITS[way] if kind == "ndarray" else 11)
    assert have.step.stats.uncompiled == 0


DRAWS = {
    "self.rng.beta($, $)": "abs", "self.rng.poisson($) * 1.0": "abs", "self.rng.normal($, 1)": "abs",
    "self.rng.normal(0, $)": "abs", "self.rng.dirichlet($)": "abs", "0.1 * self.rng.binomial(5, $)": "shares",
    "self.rng.gamma($)": "abs", "self.rng.gamma(2.0, $)": "abs", "self.rng.standard_gamma($)": "abs",
    "self.rng.multivariate_normal($, np.eye(4))": "abs", "self.rng.choice(4, p=$) * np.ones(4)": "shares",
    "self.rng.choice($, 4)": "abs", "self.rng.permutation($)": "abs", "self.rng.exponential($)": "abs",
    "self.rng.uniform(0, $)": "abs", "self.rng.vonmises(0, $)": "abs",
}  # fmt: skip
ROUNDED = {"abs": "0.5 * np.abs(x) + 0.2", "shares": "(np.abs(x) + 0.1) / (np.abs(x) + 0.1).sum()"}
DRAWING = {
    "assigned": "x = {}; self.u = {}; return x",
    "in place": "x = {}; self.u[:] = {}; return x",
    "method": "x = {}; self.u = {}; return x",
    "item": "x = {}; self.u[1] += 0.01 * x[0] ** 2; self.u /= self.u.sum(); return x",
}


def state_of(generator: Any) -> str:
    return str(
        generator.bit_generator.state if hasattr(generator, "bit_generator") else generator.get_state()
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("draw", "way", "kind", "generator"),
    [
        (draw, way, kind, (np.random.default_rng, np.random.RandomState)[number % 2])
        for number, (draw, way, kind) in enumerate(
            itertools.product(DRAWS, DRAWING, ("ndarray", "dlarray", "ndarray"))
        )
    ],
)
def test_draws(draw: str, way: str, kind: str, generator: Any) -> None:
    """The numbers, and the state of the generator, are NumPy's."""
    asked = draw.replace("$", "self.get()" if way == "method" else "self.u")
    kinds = program(DRAWING[way].format(asked, ROUNDED[DRAWS[draw]]), NAMES)
    have, want = kinds(started(kind), generator), kinds(started("ndarray"), generator)
    for call in range(CALLS):
        check_same(have, want, call)
        assert state_of(have.rng) == state_of(want.rng)
    changes = kind == "ndarray" and way in ("assigned", "method")
    assert have.step.stats.hits == (10 if changes else 11)
    assert have.step.stats.uncompiled == 0


PROGRAMS = {
    "shuffled": ("self.rng.shuffle(self.u)", 9),
    "picked": ("k = self.rng.choice(4, p=self.u); self.u[k] += 0.1; self.u /= self.u.sum(); return k", 11),
    "imported function": ("from scipy.special import expit as f; self.u += f(self.u)", 11),
    "imported module": ("import scipy.special as s; self.u += s.expit(self.u)", 11),
    "imported and assigned": ("from scipy.special import softmax as f; self.u = f(self.u)", 8),
    "places": ("self.u = np.argsort(A @ self.u) % 4 * 1.0", 8),
    "rows": ("self.u = (A + A[self.u.astype(int) % 4, I]).argmax(0) + 0.0", 8),
    "part": (
        "r = softmax(self.u[1:]); self.u[0] += r[1]; q = softmax(self.u[::-1]); self.u[1:] = q[:3]; return q",
        11,
    ),
    "written between": (
        "r = softmax(self.u); self.u[1] = 5.0; q = softmax(self.u); self.u[:] = r; return q",
        11,
    ),
    "overwritten": ("self.u = scipy.signal.detrend(self.u + X**2, overwrite_data=True)", 8),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    text, hits = PROGRAMS[name]
    kinds = program(text, NAMES)
    have, want = kinds(started("ndarray")), kinds(started("ndarray"))
    for call in range(CALLS):
        check_same(have, want, call)
        assert state_of(have.rng) == state_of(want.rng)
    assert (have.step.stats.hits, have.step.stats.uncompiled) == (hits, 0)


def test_places_in_an_ndarray_by_a_dlarray() -> None:
    """An array of places that a replay has assigned indexes an ndarray."""

    def step(self: Any) -> Any:
        found = MATRIX[self.u, np.arange(4)]
        self.u = (MATRIX + found).argmax(0)
        return found

    kinds = type("Program", (State,), {"plain": step, "step": tj.dlaccelerate(step)})
    have, want = kinds(np.arange(4)), kinds(np.arange(4))
    for call in range(CALLS):
        check_same(have, want, call)
    assert (have.step.stats.hits, have.step.stats.uncompiled) == (8, 0)


def test_solvers_that_are_made_in_the_first_call() -> None:
    class Heat(State):
        factors = None
        matrix = NAMES["COLUMNS"]

        def solver(self) -> Any:
            if self.factors is None:
                self.factors = scipy.sparse.linalg.splu(self.matrix)
            return self.factors

        def plain(self) -> None:
            self.u = self.solver().solve(self.u) + 1

        step = tj.dlaccelerate(plain)

    have, want = Heat(started("ndarray")), Heat(started("ndarray"))
    for call in range(CALLS):
        check_same(have, want, call)
    assert have.step.stats.hits >= CALLS // 2
    assert have.step.stats.uncompiled == 0


@pytest.mark.parametrize(
    "step",
    [
        "new = self.R.max(0); d = np.abs(new - self.u).max(); self.u = new; return d",
        "new = self.R.argmax(0); d = np.array_equal(new, self.u); self.u = new * 1.0; return d",
        "new = self.R.argmax(0); d = (new != self.u).sum(); self.u = new * 1.0; return d",
    ],
)
def test_what_numpy_computes_of_an_array_from_outside(step: str) -> None:
    """An ndarray that is set before each call varies, if what NumPy computes of it is put into an input."""
    kinds = program(step, NAMES)
    have, want = kinds(started("ndarray")), kinds(started("ndarray"))
    for call in range(30):
        have.R = want.R = np.random.default_rng(call // 3).normal(size=(3, 4))  # type: ignore[attr-defined]
        check_same(have, want, call)
    assert have.step.stats.hits >= 18
    assert have.step.stats.uncompiled == 0


ONCE = {
    "solve_ivp": "self.u = scipy.integrate.solve_ivp(lambda t, y: self.counted(-y), (0, 0.1), self.u).y[:, -1]",
    "minimize": "self.u = scipy.optimize.minimize("
    "lambda x: self.counted((x - 0.5) ** 2).sum(), self.u, method='Nelder-Mead', options={'maxiter': 3}).x + 0.0",
    "generic_filter": "self.u = 0.9 * scipy.ndimage.generic_filter(self.u, lambda w: self.counted(w).max(), 3)",
    "bootstrap": "r = scipy.stats.bootstrap((self.u,), np.mean, n_resamples=5, rng=self.rng, vectorized=False)\n"
    "    self.u = 0.9 * self.u; return r.standard_error",
}


class Counting(State):
    """State with the number of calls of a function."""

    calls = 0

    def counted(self, x: Any) -> Any:
        self.calls += 1
        return x


@pytest.mark.parametrize("kind", ["ndarray", "dlarray"])
@pytest.mark.parametrize("name", ONCE)
def test_functions_of_users_and_draws_are_made_once(name: str, kind: str) -> None:
    """What SciPy's code calls, and draws, is not called and drawn again where a way of recording it fails."""
    kinds = type("Counting", (Counting,), {**vars(program(ONCE[name], NAMES))})
    have, want = kinds(started(kind)), kinds(started("ndarray"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(6):
            check_same(have, want, call)
            assert have.calls == want.calls
            assert state_of(have.rng) == state_of(want.rng)


@pytest.mark.parametrize("kind", [scipy.spatial.KDTree, scipy.spatial.cKDTree])
class TestTrees:
    """Trees that were made outside of the function."""

    POINTS = np.eye(3)

    def test_queries(self, kind: Any) -> None:
        tree = kind(self.POINTS)
        found = tj.dlaccelerate(lambda x: tree.query(x)[0].sum())
        for n in range(5):
            x = np.full((2, 3), 0.1 * n)
            assert found(x) == tree.query(x)[0].sum()
        assert found.stats.hits == 3

    @pytest.mark.parametrize("x", [np.full(3, 0.5), np.full((2, 3), 0.5)])
    def test_neighbours_are_of_the_values(self, kind: Any, x: np.ndarray) -> None:
        """How many there are depends on the values, which select a trace."""
        tree = kind(self.POINTS)
        plain = lambda x: len(np.hstack([*tree.query_ball_point(x, 1.0), []])) * x
        found = tj.dlaccelerate(plain)
        for scale in [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 0.2]:
            np.testing.assert_array_equal(found(x * scale), plain(x * scale))
        assert found.stats.hits == 2

    def test_numbers_of_neighbours_are_computed(self, kind: Any) -> None:
        tree = kind(self.POINTS)
        found = tj.dlaccelerate(lambda x: tree.query_ball_point(x, 1.0, return_length=True) * 2)
        for n in range(5):
            x = np.full((2, 3), 0.2 * n)
            np.testing.assert_array_equal(found(x), tree.query_ball_point(x, 1.0, return_length=True) * 2)
        assert found.stats.hits == 3
