# SPDX-License-Identifier: BSD-3-Clause
"""dlmap against a loop over the observations, evaluated and accelerated."""

import numpy as np
import pytest

import tracejit as tj
from tracejit import (
    ArgumentError,
    DimsError,
    TraceError,
    WriteError,
    dlaccelerate,
    dlarray,
    dlfeval,
    dlgradient,
    dlmap,
)
from tracejit.record.recorder import Recorder

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, (5, 3))
Y = RNG.uniform(0.5, 1.5, (5, 3))
W = RNG.standard_normal((4, 3))
PLACES = np.array([[0, 2], [1, 1], [2, 0], [0, 0], [-1, 1]])


def equal(found, expected):
    """Compare what dlmap gives with the stack of what a loop gives."""
    found, expected = (tj.tree.flatten(each)[0] for each in (found, expected))
    for have, want in zip(found, expected, strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(have, want, rtol=1e-11, atol=1e-13)


def loop(fun, *columns):
    """Return the stack of what a function gives of each observation."""
    each = [dlfeval(fun, *observation) for observation in zip(*columns, strict=True)]
    return tj.tree.map(lambda *parts: np.stack([np.asarray(part) for part in parts]), *each)


def descended(w):
    """Return a parameter after some steps of descent."""
    for _ in range(3):
        w = w - 0.1 * dlgradient(((W @ w - 1) ** 2).sum(), w)
    return w


FUNCTIONS = {
    "elementwise": lambda x, y: tj.exp(x) * y + x[0],
    "reductions": lambda x, y: {
        "sum": x.sum(),
        "max": tj.max(x * y, keepdims=True),
        "dot": x @ y,
        "std": tj.std(x),
    },
    "products": lambda x, y: (W @ x, tj.outer(x, y), tj.outer(x, y) @ W.T, x @ W.T),
    "movement": lambda x, y: (
        tj.concatenate([x, y])[::-2],
        x[None],
        tj.roll(x, 1),
        tj.pad(y, 1),
        tj.stack([x, y]).T,
    ),
    "writes": lambda x, y: written(x, y),
    "choices": lambda x, y: tj.where(x > y, x, 2 * y) + tj.maximum(x, 1.0),
    "sorting": lambda x, y: (np.sort(x), np.argsort(y), tj.cumsum(x), np.cumprod(y), np.median(x)),
    "gathering": lambda x, y: (
        x[tj.argmax(y)] + tj.take(y, tj.argsort(x) if hasattr(tj, "argsort") else [0, 1, 2])
    ),
    "gradient": lambda x, y: dlgradient((tj.tanh(W @ x) ** 2).sum() * y[0], x, y),
    "descent": lambda x, y: descended(x) * y,
    "hessian": lambda x, y: tj.hessian(lambda x: (tj.sin(x) * y).prod(), x),
    "solving": lambda x, y: tj.solve(tj.outer(x, x) + np.eye(3), y) + tj.det(tj.outer(y, y) + np.eye(3)),
    "same for all": lambda x, y: (tj.ones(2) * 3, 1.5, x),
    "convolution": lambda x, y: tj.dlconv(dlarray(tj.stack([x, y]), "CS"), np.ones((2, 2, 3)), 0.0),
    "normalised": lambda x, y: tj.softmax(x, axis=0) * tj.logsumexp(y),
    "jvp": lambda x, y: tj.jvp(lambda x: W @ (x * x), (x,), (y,)),
}


def written(x, y):
    x = x.copy()
    x[1:] += y[1:]
    buffer = np.zeros((2, 3))
    buffer[0] = x
    x[0] = 7.0
    return x, buffer


class TestAgainstALoop:
    @pytest.mark.whole("each of its own")
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_of_two_arguments(self, name):
        fun = FUNCTIONS[name]
        if name == "convolution":
            fun = lambda x, y: tj.dlconv(
                dlarray(tj.stack([x, y]), "CS"), np.ones((2, 2, 3)), 0.0, weights_format="SCU"
            )
        expected = loop(fun, X, Y)
        mapped = dlmap(fun, over=0)
        equal(mapped(X, Y), expected)
        accelerated = dlaccelerate(mapped)
        for _ in range(3):
            found = accelerated(X, Y)
        equal(found, expected)
        assert accelerated.stats.hits == 1

    def test_places_that_differ(self):
        def fun(x, at):
            y = x[at]
            x = x.copy()
            x[at] = y * 2
            return y, x, tj.dlgradient((x[at] ** 2).sum(), x)

        equal(dlmap(fun, over=0)(X, PLACES), loop(fun, X, PLACES))

    def test_parameters_are_the_same_for_all(self):
        def loss(params, x):
            return ((params["w"] @ x - params["b"]) ** 2).sum()

        params = {"w": dlarray(W), "b": dlarray(np.ones(4))}
        mapped = dlmap(loss, over=(None, 0))
        equal(mapped(params, X), np.array([dlfeval(loss, params, x).item() for x in X]))

        def total(params, x):
            return dlgradient(mapped(params, x).sum(), params)

        def plain(params, x):
            return dlgradient(((x @ params["w"].T - params["b"]) ** 2).sum(), params)

        equal(dlfeval(total, params, X), dlfeval(plain, params, X))
        # A gradient for each observation.
        per = dlmap(lambda p, x: dlgradient(loss(p, x), p), over=(None, 0))(params, X)
        assert per["w"].shape == (5, 4, 3)
        np.testing.assert_allclose(per["w"]._data.sum(0), dlfeval(plain, params, X)["w"], rtol=1e-12)

    def test_nested(self):
        points = RNG.standard_normal((4, 3))

        def kernel(x, y):
            return tj.exp(-((x - y) ** 2).sum())

        matrix = dlmap(lambda x: dlmap(lambda y: kernel(x, y), over=0)(points), over=0)
        expected = np.exp(-((X[:, None] - points) ** 2).sum(-1))
        equal(matrix(X), expected)
        accelerated = dlaccelerate(matrix)
        for _ in range(3):
            found = accelerated(X)
        equal(found, expected)
        with Recorder("f") as recorder:
            matrix(recorder.input(dlarray(X)))
        assert len(recorder.graph.nodes) < 30  # not once for each observation

    def test_a_guard_behind_what_was_for_the_first_observation(self):
        """Two recordings differ by the guard, not by the node behind it: no fall back to uncompiled code."""
        accelerated = dlaccelerate(lambda x: dlmap(lambda row: (row > 0) * x[x > 0].sum(), over=0)(x))
        for positive in (4, 2, 4, 2, 4):
            x = np.where(np.arange(6) < positive, 1.5, -1.0).reshape(2, 3)
            equal(accelerated(x), (x > 0) * x[x > 0].sum())
        assert (accelerated.stats.hits, accelerated.stats.uncompiled) == (1, 0)

    def test_accelerated_functions_inside_are_traced_through(self):
        inner = dlaccelerate(lambda x: tj.tanh(x).sum())
        for _ in range(3):
            inner(X[0])
        equal(dlmap(inner, over=0)(X), np.tanh(X).sum(1))
        assert inner.stats.hits == 1

    def test_an_operation_without_a_rule_is_repeated(self):
        def fun(x):
            return tj.take(x, tj.randperm(3), axis=0).sum() + 1

        np.testing.assert_allclose(dlmap(fun, over=0)(X), X.sum(1) + 1, rtol=1e-12)

    @pytest.mark.parametrize("axis", [0, 1])
    def test_gradients_by_what_the_observations_were_taken_from(self, axis):
        """Each reaches its own observation of the array around the map, in its own place."""

        def fun(x):
            y = x * 2.0
            one = lambda a: dlgradient((a**2 * x[0, 0]).sum(), (x, y))
            return dlmap(one, over=axis)(y), one, y

        accelerated = dlaccelerate(lambda x: fun(x)[0])
        for _ in range(3):
            found = accelerated(X)

        def looped(x):
            _, one, y = fun(x)
            return [one(y[i] if axis == 0 else y[:, i]) for i in range(y.shape[axis])]

        each = dlfeval(looped, X)
        expected = [np.stack([np.asarray(part) for part in parts], axis) for parts in zip(*each, strict=True)]
        equal(found, expected)
        equal(dlfeval(lambda x: fun(x)[0], X), expected)


class TestAxes:
    def test_labels(self):
        scale = dlarray(np.array([1.0, 2.0, 3.0]), "C")
        fun = dlmap(lambda x, s: (x * s, x.sum(), tj.stripdims(x), x[None] * 1))
        for labels, x in (("BC", X), ("CB", X.T)):
            product, total, plain, wide = fun(dlarray(x, labels), scale)
            assert (product.format, total.format, plain.format) == (labels, "B", None)
            np.testing.assert_allclose(product, x * (scale._data if labels == "BC" else scale._data[:, None]))
            np.testing.assert_allclose(total, X.sum(1))
            np.testing.assert_array_equal(plain, x)
            assert wide.shape == ((5, 1, 3) if labels == "BC" else (1, 5, 3))

    def test_the_axis_in_the_middle_and_over_time(self):
        x = dlarray(RNG.standard_normal((3, 5, 2)), "CBT")
        found = dlmap(lambda x: tj.cumsum(x, "T"))(x)
        assert found.format == "CBT"
        np.testing.assert_allclose(found, np.cumsum(x._data, 2))
        found = dlmap(lambda x: x.sum(axis="C"), over="T")(x)
        assert found.format == "BT"
        np.testing.assert_allclose(found, x._data.sum(0))

    def test_numbers_and_tuples_of_axes(self):
        found = dlmap(lambda x, y, z: x * y + z, over=(1, 0, None))(X.T, Y, 1.0)
        np.testing.assert_allclose(found, (X * Y + 1).T)
        assert dlmap(lambda x: x * 2, over=-1)([[1.0, 2.0]]).tolist() == [[2.0, 4.0]]


class TestRandomNumbers:
    def test_each_observation_draws_its_own(self):
        def noisy(x):
            return x + tj.rand(3) + tj.randn(3)

        def run():
            with tj.rng(1):
                return dlmap(noisy, over=0)(np.zeros((200, 3))), tj.rand(1), tj.rng()

        found, _, state = run()
        assert len(np.unique(found._data)) == 600
        assert 0.3 < found.mean().item() < 0.7 and 0.8 < found.std().item() < 1.3
        assert state.position > 200 * 3  # later draws have numbers of their own
        again, _, _ = run()
        np.testing.assert_array_equal(found, again)
        accelerated = dlaccelerate(dlmap(noisy, over=0))
        seen = [accelerated(np.zeros((4, 3)))._data for _ in range(4)]
        assert len(np.unique(seen)) == 48 and accelerated.stats.hits == 2

    def test_the_same_numbers_replayed(self):
        fun = dlaccelerate(dlmap(lambda x: tj.dropout(x, 0.5), over=0))
        plain = dlmap(lambda x: tj.dropout(x, 0.5), over=0)
        for _ in range(4):
            with tj.rng(3):
                found = fun(X)
            with tj.rng(3):
                np.testing.assert_array_equal(found, plain(X))

    @pytest.mark.parametrize(
        "fun",
        [
            tj.dlcheckpoint(lambda x: tj.dropout(x, 0.5)),
            tj.dlcheckpoint(lambda x: x + tj.rand(3, generator=tj.Generator(7))),
            lambda x: tj.dlscan(lambda c, s: (tj.dropout(c, 0.2) + s, c), x, np.zeros(5))[0],
            lambda x: tj.dlscan(lambda c, s: (c, tj.rand(3)), 0.0, np.zeros(5))[1] + x,
            lambda x: dlmap(tj.dlcheckpoint(lambda y: y + tj.rand(3)), over=0)(x),
        ],
    )
    def test_steps_and_checkpoints_draw_for_each_observation(self, fun):
        plain = dlmap(fun, over=0)
        accelerated = dlaccelerate(plain)
        for _ in range(4):
            with tj.rng(3):
                found, state = accelerated(np.ones((70, 3))), tj.rng()
            with tj.rng(3):
                np.testing.assert_array_equal(found, plain(np.ones((70, 3))))
                assert state == tj.rng()
        assert len(np.unique(np.asarray(found).reshape(70, -1), axis=0)) > 5
        assert accelerated.stats.hits == 2


KEPT = []
OUTSIDE = dlarray(np.zeros(3))


def branching(x):
    return x if x.sum() > 3 else -x


def keeping(x):
    KEPT[:] = [x * 2, (x * 2)[1:]]
    return x


def writing(x):
    OUTSIDE[0] = x[0]
    return x


def writing_its_argument(x):
    x += 1
    return x


class TestErrors:
    @pytest.mark.parametrize("accelerate", [False, True])
    @pytest.mark.parametrize(
        ("fun", "error", "text"),
        [
            (branching, TraceError, r"^dlmap: bool\(\) needs the value .* branching is recorded once"),
            (lambda x: float(x[0]), TraceError, r"^dlmap: float\(\) needs the value"),
            (lambda x: tj.rand(1).item(), TraceError, r"^dlmap: item\(\) needs the value"),
            (lambda x: tj.extractdata(x), TraceError, "^dlmap: extractdata needs the value"),
            (lambda x: x[x > 1], TraceError, "^dlmap: .* needs the value"),
            (writing, WriteError, "^dlmap: writing writes into an array that it did not make"),
            (writing_its_argument, WriteError, "^dlmap: writing_its_argument writes into an array"),
            (lambda x: "text", ArgumentError, "^dlmap: the function returns a str"),
        ],
    )
    def test_of_the_function(self, fun, error, text, accelerate):
        mapped = dlmap(fun, over=0)
        with pytest.raises(error, match=text):
            (dlaccelerate(mapped) if accelerate else mapped)(X)
        assert OUTSIDE.tolist() == [0.0] * 3

    def test_values_that_are_the_same_for_all_may_decide(self):
        def fun(x, n):
            return x * 2 if n > 1 else x

        np.testing.assert_array_equal(dlmap(fun, over=(0, None))(X, dlarray(2.0)), 2 * X)

    def test_an_array_made_around_a_map_is_a_constant(self):
        @dlaccelerate
        def steps(w, x):
            def step(x, weight):
                slopes = dlmap(lambda x: tj.jacobian(lambda x: x @ w, x).sum(), over=0)(x)
                return x + weight * slopes[:, None], None

            return tj.dlscan(step, x, np.arange(4.0))[0]

        w = W[:3]
        for scale in (1, 1, 2, 3):
            np.testing.assert_allclose(steps(w, scale * X), scale * X + 6 * w.sum())
        assert steps.stats.hits == 2

    @pytest.mark.parametrize("wrap", [lambda f: f, lambda f: lambda x: dlfeval(f, x)])
    def test_arrays_that_are_kept(self, wrap):
        wrap(dlmap(keeping, over=0))(X)
        for kept in KEPT:
            with pytest.raises(
                TraceError, match="while keeping was evaluated is used after that evaluation ended"
            ):
                kept + 1

    def test_a_singular_matrix_among_the_observations(self):
        matrices = np.stack([np.eye(2), np.ones((2, 2))])
        solve = dlmap(lambda a: tj.solve(a, np.ones(2)), over=0)
        with pytest.raises(np.linalg.LinAlgError, match=r"^solve: "):
            solve(matrices)
        accelerated = dlaccelerate(solve)
        for _ in range(3):
            accelerated(matrices[:1].repeat(2, 0) * 2)
        with pytest.raises(np.linalg.LinAlgError, match=r"^solve: "):
            accelerated(matrices)

    @pytest.mark.parametrize(
        ("call", "error", "text"),
        [
            (lambda: dlmap(3), ArgumentError, "dlmap: fun must be a function"),
            (lambda: dlmap(abs, over="BC"), ArgumentError, "dlmap: over must be a label"),
            (lambda: dlmap(abs, over=(True,)), ArgumentError, "dlmap: over must be a label"),
            (
                lambda: dlmap(abs, over=(0, 1))(X),
                ArgumentError,
                "over has 2 entries, but the call has 1",
            ),
            (lambda: dlmap(abs)(X), DimsError, "no argument has an axis of observations"),
            (lambda: dlmap(abs, over=2)(X), DimsError, "dlmap: axis 2 is out of range"),
            (lambda: dlmap(np.add, over=0)(X, X[:2]), DimsError, "have 5 and 2 observations"),
            (lambda: dlmap(abs, over=0)(X[:0]), DimsError, "have 0 and 0 observations"),
        ],
    )
    def test_of_the_call(self, call, error, text):
        with pytest.raises(error, match=text):
            call()
