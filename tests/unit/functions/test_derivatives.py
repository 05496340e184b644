# SPDX-License-Identifier: BSD-3-Clause
"""Forward mode, Jacobians, divergences, Laplacians and Hessians, against formulas and against one another."""

import numpy as np
import pytest

import tracejit as tj
from tracejit import (
    ArgumentError,
    DimsError,
    GradientError,
    dlaccelerate,
    dlarray,
    dlfeval,
    dlgradient,
    dlmap,
    nn,
)
from tracejit.record.recorder import Recorder

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 4))
B = RNG.standard_normal((4, 3))
X = RNG.standard_normal((3, 5))  # three coordinates of five observations
V = RNG.standard_normal((3, 5))


def layer(x):
    """Return tanh(A' x), of four channels."""
    return tj.tanh(A.T @ x)


LAYER = np.tanh(A.T @ X)
SLOPE = 1 - LAYER**2
JACOBIAN = SLOPE[:, None] * A.T[..., None]  # (channels, coordinates, observations)


def ready(fun, *args):
    """Return what a function gives evaluated and, recorded twice and replayed, accelerated; both are equal."""
    first = dlfeval(fun, *args)
    accelerated = dlaccelerate(fun)
    for _ in range(3):
        again = accelerated(*args)
    assert accelerated.stats.hits == 1
    for one, other in zip(tj.tree.flatten(first)[0], tj.tree.flatten(again)[0], strict=True):
        assert one.format == other.format and one.dtype == other.dtype
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-14)
    return first


class TestForwardMode:
    def test_jvp_and_vjp(self):
        y, along = ready(lambda x, v: tj.jvp(layer, (x,), (v,)), X, V)
        np.testing.assert_allclose(y, LAYER, rtol=1e-14)
        np.testing.assert_allclose(along, np.einsum("cdb,db->cb", JACOBIAN, V), rtol=1e-12)
        ct = RNG.standard_normal((4, 5))
        _, (back,) = ready(lambda x, ct: tj.vjp(layer, (x,), ct), X, ct)
        np.testing.assert_allclose(back, np.einsum("cdb,cb->db", JACOBIAN, ct), rtol=1e-12)
        np.testing.assert_allclose((along._data * ct).sum(), (back._data * V).sum())

    def test_several_arguments_and_containers(self):
        def fun(params, x):
            return {"u": params["w"] * x, "loss": (params["w"] ** 2).sum() + params["b"]}

        params, directions = {"w": dlarray([1.0, 2.0]), "b": 3.0}, {"w": [1.0, 10.0], "b": 0.5}
        y, along = tj.jvp(fun, (params, 4.0), (directions, 1.0))
        assert y["u"].tolist() == [4.0, 8.0]
        assert along["u"].tolist() == [5.0, 42.0] and along["loss"].item() == 42.5
        _, (by_params, by_x) = tj.vjp(fun, (params, 4.0), {"u": [1.0, 1.0], "loss": 2.0})
        assert by_params["w"].tolist() == [8.0, 12.0] and by_params["b"].item() == 2.0 and by_x.item() == 3.0

    def test_dljvp_of_what_does_not_depend_is_zero_and_labels_are_kept(self):
        def fun(x, z):
            return tj.dljvp((x * 2, z + 1), x, x)

        doubled, none = ready(fun, dlarray(X, "CB"), dlarray(np.ones(2, np.float32)))
        np.testing.assert_array_equal(doubled, 2 * X)
        assert doubled.format == "CB" and none.dtype == np.float32 and none.tolist() == [0.0, 0.0]

    def test_along_what_depends_on_another_variable(self):
        # By x, and by y = x^2 that is computed of it: both directions count, as both gradients do.
        def fun(x):
            y = x**2
            return tj.dljvp(x * y, {"x": x, "y": y}, {"x": 1.0, "y": 10.0}), dlgradient(x * y, x, y)

        along, (by_x, by_y) = dlfeval(fun, 3.0 * tj.ones(()))
        assert along.item() == by_x.item() + 10 * by_y.item() == 27.0 + 30.0

    @pytest.mark.parametrize("order", ["ff", "fr", "rf", "rr"])
    def test_second_derivatives_in_all_orders(self, order):
        one = dlarray(np.ones(4))

        def forward(fun):
            return lambda x: tj.jvp(fun, (x,), (one,))[1]

        def reverse(fun):
            return lambda x: tj.vjp(fun, (x,), one)[1][0]

        fun = lambda x: tj.sin(x) ** 3 / x
        for mode in order:
            fun = (forward if mode == "f" else reverse)(fun)
        x = np.linspace(0.5, 2.0, 4)
        s, c = np.sin(x), np.cos(x)
        exact = (6 * s * c**2 - 3 * s**3) / x - 6 * s**2 * c / x**2 + 2 * s**3 / x**3
        np.testing.assert_allclose(ready(fun, x), exact, rtol=1e-12)

    def test_directions_of_an_inner_derivative_are_not_those_of_the_outer(self):
        # d/dx (x d/dy (x + y)) is 1: the inner derivative is 1, not 2.
        def outer(x):
            return x * tj.jvp(lambda y: x + y, (1.0,), (1.0,))[1]

        assert tj.jvp(outer, (5.0,), (1.0,))[1].item() == 1.0

    def test_accelerated_functions_inside(self):
        inner = dlaccelerate(lambda x: tj.tanh(x) * x)
        for _ in range(4):  # recorded, confirmed, replayed: then it is one op of the trace around it
            _, along = tj.jvp(lambda x: inner(x) * 2, (X,), (V,))
        t = np.tanh(X)
        np.testing.assert_allclose(along, 2 * V * (t + X * (1 - t**2)), rtol=1e-12)
        curved = tj.hvp(lambda x: inner(x).sum(), X, V)
        np.testing.assert_allclose(curved, V * (1 - t**2) * (2 - 2 * X * t), rtol=1e-12)
        jacobian = tj.jacobian(inner, X[0])
        np.testing.assert_allclose(jacobian, np.diag((t + X * (1 - t**2))[0]), rtol=1e-12)
        laplacian = dlfeval(lambda x: tj.dllaplacian(inner(x), x, 0), X[:1])
        np.testing.assert_allclose(laplacian, ((1 - t**2) * (2 - 2 * X * t))[:1], rtol=1e-12)

    def test_written_arrays(self):
        def fun(x):
            y = x * 1.0
            y[0] = x[1] ** 2
            y += x
            return y

        _, along = tj.jvp(fun, ([1.0, 2.0],), ([1.0, 10.0],))
        assert along.tolist() == [41.0, 20.0]

    def test_programs_are_those_of_forward_mode_by_hand(self):
        weights = [RNG.standard_normal(size) for size in ((6, 3), (6, 6), (2, 6))]

        def by_hand(x, v):
            for w in weights[:-1]:
                x, v = w @ x, w @ v
                x = tj.tanh(x)
                v = (1 - x**2) * v
            return weights[-1] @ x, weights[-1] @ v

        def network(x):
            for w in weights[:-1]:
                x = tj.tanh(w @ x)
            return weights[-1] @ x

        def derived(x, v):
            return tj.jvp(network, (x,), (v,))

        counts = []
        for fun in (by_hand, derived):
            accelerated = dlaccelerate(fun)
            found = [accelerated(X, V) for _ in range(3)][-1]
            counts.append((accelerated.stats.launches, accelerated.stats.kernels))
            np.testing.assert_allclose(found[1], dlfeval(by_hand, X, V)[1], rtol=1e-12)
        assert counts[0] == counts[1]

    def test_functions_with_a_backward_function_of_their_own(self):
        @tj.custom_gradient
        def softplus(x):
            return tj.log(1 + tj.exp(x)), x

        @softplus.backward
        def _(x, dy):
            return 10 * dy * tj.sigmoid(x)

        x, v = RNG.standard_normal((2, 4))
        s = 1 / (1 + np.exp(-x))
        _, along = ready(lambda x, v: tj.jvp(lambda x: softplus(x) * x, (x,), (v,)), x, v)
        np.testing.assert_allclose(along, (10 * s * x + np.log(1 + np.exp(x))) * v, rtol=1e-12)
        product = ready(lambda x, v: tj.hvp(lambda x: softplus(x).sum(), x, v), x, v)
        np.testing.assert_allclose(product, 10 * s * (1 - s) * v, rtol=1e-12)

    def test_complex_numbers(self):
        a = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
        z, v = RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))

        def fun(z):
            w = a @ (z**2) * np.conj(z)
            return w, np.abs(w) + np.real(w) * np.imag(z), np.exp(1j * np.real(w)) / z

        found = ready(lambda z, v: tj.jvp(fun, (z,), (v,))[1], z, v)
        for along, up, down in zip(
            found, dlfeval(fun, z + 1e-6 * v), dlfeval(fun, z - 1e-6 * v), strict=True
        ):
            np.testing.assert_allclose(along, (up - down) / 2e-6, rtol=1e-6, atol=1e-7)
        equal = dlmap(lambda z: fun(z)[0], over=0)(np.stack([z, v]))
        np.testing.assert_allclose(equal, np.stack([dlfeval(fun, each)[0] for each in (z, v)]), rtol=1e-12)

    def test_products_with_hessians(self):
        w = {"a": dlarray(A), "b": dlarray(B)}
        v = {"a": RNG.standard_normal(A.shape), "b": RNG.standard_normal(B.shape)}

        def loss(w, x):
            return ((w["b"].T @ tj.tanh(w["a"].T @ x)) ** 2).sum()

        found = ready(lambda w, v, x: tj.hvp(loss, w, v, x), w, v, X)
        step = 1e-5
        moved = [{k: dlarray(w[k]._data + s * v[k]) for k in w} for s in (step, -step)]
        up, down = (dlfeval(lambda w: dlgradient(loss(w, X), w), each) for each in moved)
        for name in w:
            np.testing.assert_allclose(
                found[name], (up[name] - down[name]) / (2 * step), rtol=1e-7, atol=1e-7
            )


class TestJacobians:
    @pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
    def test_of_a_function(self, mode):
        for fun, x, shape in (
            (lambda x: tj.tanh(x @ A) * x[0], RNG.standard_normal(3), (4, 3)),
            (lambda x: x[:, :1] * 2, np.ones((2, 3)), (2, 1, 2, 3)),
            (lambda x: x.sum(), np.ones((2, 3)), (2, 3)),
            (lambda x: tj.stack([x, x**2]), np.array(3.0), (2,)),
            (lambda x: tj.ones(2) + 0 * x.sum(), np.ones(0), (2, 0)),
            (lambda x: x[:0] * 2, np.ones(2), (0, 2)),
        ):
            found = ready(lambda x, fun=fun: tj.jacobian(fun, x, mode=mode), x)
            assert found.shape == shape
            for at in np.ndindex(x.shape):
                step = np.zeros(x.shape)
                step[at] = 1e-6
                column = (dlfeval(fun, x + step) - dlfeval(fun, x - step)) / 2e-6
                np.testing.assert_allclose(found[(..., *at)], column, atol=1e-9)

    def test_further_arguments_and_what_does_not_depend(self):
        assert tj.jacobian(lambda x, k: x * k, [1.0, 2.0], 3).tolist() == [[3.0, 0.0], [0.0, 3.0]]
        for mode in ("forward", "reverse"):
            assert (
                tj.jacobian(lambda x: tj.ones(2) * 2 + tj.floor(x), [1.5, 2.5], mode=mode).tolist()
                == [[0.0] * 2] * 2
            )

    @pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
    def test_of_containers(self, mode):
        p = {"w": A, "b": np.float32([0.5, 1.5, -1.0, 2.0]), "unused": [np.ones(2), np.ones(0)]}

        def fun(p, x):
            return tj.tanh(x @ p["w"]) * p["b"], {"sum": (p["w"] ** 2).sum()}

        first, second = ready(lambda p, x: tj.jacobian(fun, p, x, mode=mode), p, X[:, 0])
        y = np.tanh(X[:, 0] @ A)
        by_w = X[:, 0][None, :, None] * np.diag((1 - y**2) * p["b"])[:, None]
        np.testing.assert_allclose(first["w"], by_w, rtol=1e-6)
        np.testing.assert_allclose(first["b"], np.diag(y), rtol=1e-6)
        np.testing.assert_allclose(second["sum"]["w"], 2 * A)
        assert second["sum"]["b"].tolist() == [0.0] * 4 and first["unused"][0].tolist() == [[0.0] * 2] * 4
        assert first["unused"][1].shape == (4, 0) and second["sum"]["unused"][1].shape == (0,)
        if mode == "reverse":
            assert first["b"].dtype == np.float32

    def test_of_a_network(self):
        net = tj.dlnetwork([nn.FeatureInput(2), nn.FullyConnected(3)], seed=0)
        x = dlarray(np.ones((1, 2), np.float32), "BC")
        found = ready(lambda net, x: tj.jacobian(lambda net: net.predict(x), net), net, x)
        assert found["fc", "weights"].shape == (1, 3, 3, 2)
        np.testing.assert_allclose(found["fc", "bias"][0], np.eye(3))

    def test_nested_lists_of_numbers_are_one_array(self):
        assert tj.jacobian(lambda x: x.sum(axis=0), [[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2, 2)
        assert tj.jacobian(lambda x: x[0] * x[1]["a"], [2.0, {"a": [3.0]}])[0].tolist() == [3.0]

    def test_by_slices_of_an_axis(self):
        found = ready(lambda x: tj.dljacobian(layer(x), x, 0), X)
        np.testing.assert_allclose(found, JACOBIAN, rtol=1e-12)
        one = ready(lambda x: tj.dljacobian(layer(x)[:1], x, 0), X)
        np.testing.assert_allclose(one, JACOBIAN[0], rtol=1e-12)
        labelled = ready(lambda x: tj.dljacobian(tj.tanh(x), x, "C"), dlarray(X, "CB"))
        assert labelled.format == "UCB"
        np.testing.assert_allclose(labelled, np.eye(3)[..., None] * (1 - np.tanh(X) ** 2)[None], rtol=1e-12)
        images = ready(lambda x: tj.dljacobian(x.sum(axis=(0, 1)) ** 2, x, 0), np.ones((2, 2, 3, 4)))
        assert images.shape == (3, 2, 2, 3, 4) and images[1].sum(axis=(0, 1, 3)).tolist() == [0.0, 128.0, 0.0]
        assert dlfeval(lambda x: tj.dljacobian(tj.floor(x), x, 0), X).tolist() == np.zeros((3, 3, 5)).tolist()

    def test_the_number_of_ops_does_not_depend_on_sizes(self):
        def count(n):
            x = dlarray(RNG.standard_normal((n, 5)))
            w = RNG.standard_normal((n, n))
            with Recorder("f") as recorder:
                x = recorder.input(x)
                u = tj.tanh(w @ x)
                tj.dljacobian(u, x, 0)
                tj.dldivergence(u, x, 0)
                tj.dllaplacian(u, x, 0)
            return len(recorder.graph.nodes)

        assert count(3) == count(20)


class TestSecondDerivatives:
    def test_divergence(self):
        weights = RNG.standard_normal((4, 3))
        found = ready(lambda x: tj.dldivergence(weights.T @ layer(x), x, 0), X)
        np.testing.assert_allclose(found[0], np.einsum("cd,cdb->b", weights, JACOBIAN), rtol=1e-12)
        gradient = ready(lambda x: tj.dldivergence(tj.dljacobian(layer(x)[:1], x, 0), x, 0), X)
        exact = (-2 * LAYER * SLOPE * (A**2).sum(0)[:, None])[:1]
        np.testing.assert_allclose(gradient, exact, rtol=1e-12)
        none = dlfeval(lambda x: tj.dldivergence(tj.floor(x), x, "C"), dlarray(X, "CB"))
        assert none.format == "CB" and none.tolist() == [[0.0] * 5]

    def test_laplacian(self):
        exact = -2 * LAYER * SLOPE * (A**2).sum(0)[:, None]
        found = ready(lambda x: tj.dllaplacian(layer(x), x, 0), X)
        np.testing.assert_allclose(found, exact, rtol=1e-12)
        turned = ready(lambda x: tj.dllaplacian(layer(x.T).T, x, "C"), dlarray(X.T.copy(), "BC"))
        np.testing.assert_allclose(turned, exact.T, rtol=1e-12)
        linear = dlfeval(lambda x: tj.dllaplacian(x * 2, x, 0), X)
        assert linear.tolist() == np.zeros((3, 5)).tolist()

    @pytest.mark.parametrize(
        "fun",
        [
            lambda x: x[:1] * x[1:2] / (1 + x[2:] ** 2),
            lambda x: tj.concatenate([tj.exp(x[:1]), x[1:2] ** 3, tj.sin(x[2:] * x[:1])]).sum(
                axis=0, keepdims=True
            ),
            lambda x: tj.softmax(x, axis=0)[1:2] * tj.sqrt(1 + x[:1] ** 2),
            lambda x: tj.maximum(x, 0.3 * x**2).prod(axis=0, keepdims=True),
            lambda x: tj.arctan2(x[:1], x[1:2]) + tj.where(x[2:] > 0, x[:1] ** 2, x[1:2] ** 3),
            lambda x: (
                np.cumprod(x, axis=0)[2:]
                + np.sort(x, axis=0)[1:2] ** 2
                + tj.logsumexp(x, axis=0, keepdims=True)
            ),
        ],
    )
    def test_laplacian_is_the_divergence_of_the_gradient(self, fun):
        def both(x):
            u = fun(x)
            return tj.dllaplacian(u, x, 0), tj.dldivergence(dlgradient(u.sum(), x), x, 0)

        found, expected = dlfeval(both, X)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)

    def test_gradient_of_a_laplacian(self):
        def loss(a, x):
            lap = tj.dllaplacian(tj.tanh(a.T @ x), x, 0)
            return (lap**2).mean(), dlgradient((lap**2).mean(), a)

        _, gradient = ready(loss, A, X)
        v = RNG.standard_normal(A.shape)
        up, down = (dlfeval(loss, A + s * v, X)[0] for s in (1e-5, -1e-5))
        np.testing.assert_allclose((gradient._data * v).sum(), (up - down).item() / 2e-5, rtol=1e-7)

    def test_hessian(self):
        matrix = RNG.standard_normal((4, 4))
        quadratic = lambda x: x @ (matrix @ x) / 2
        found = ready(lambda x: tj.hessian(quadratic, x), np.ones(4))
        np.testing.assert_allclose(found, (matrix + matrix.T) / 2, rtol=1e-12)
        square = ready(lambda x: tj.dlhessian((x**3).sum(), x), dlarray(X[:2, :2], "CB"))
        np.testing.assert_allclose(square._data.reshape(4, 4), np.diag(6 * X[:2, :2].ravel()), rtol=1e-12)
        assert dlfeval(lambda x: tj.dlhessian(x.sum(), x), np.ones(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]

    def test_hessian_of_containers(self):
        p = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([[1.0, 4.0]]), "c": np.ones(1)}

        def loss(p):
            return (p["a"] ** 2).sum() * (p["b"] ** 3).sum()

        found = ready(lambda p: tj.hessian(loss, p), p)
        a, b = p["a"], p["b"]
        np.testing.assert_allclose(found["a"]["a"], 2 * np.eye(3) * (b**3).sum())
        np.testing.assert_allclose(found["a"]["b"], 6 * a[:, None, None] * b**2)
        np.testing.assert_allclose(found["b"]["a"], 6 * (b**2)[..., None] * a)
        np.testing.assert_allclose(found["b"]["b"].reshape(2, 2), np.diag(6 * b[0]) * (a**2).sum())
        assert found["a"]["c"].tolist() == [[0.0]] * 3 and found["c"]["c"].tolist() == [[0.0]]
        assert tj.hessian(lambda p: p[0].sum(), (np.ones(0), np.ones(0)))[0][1].shape == (0, 0)

    def test_of_logaddexp_where_operands_are_equal(self):
        found = tj.hessian(lambda x: np.logaddexp(x[0], x[1]), np.ones(2))
        np.testing.assert_allclose(found, [[0.25, -0.25], [-0.25, 0.25]], rtol=1e-14)
        found = tj.hessian(lambda x: np.logaddexp2(x[0], x[1]), np.ones(2))
        np.testing.assert_allclose(found, np.log(2) * np.array([[0.25, -0.25], [-0.25, 0.25]]), rtol=1e-14)
        values = np.array([-np.inf, -np.inf, np.inf, np.inf, np.nan, 0.0, 1e300, -40.0])
        others = np.array([-np.inf, np.inf, np.inf, 1.0, 1.0, np.nan, -1e300, 0.0])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                dlfeval(lambda x, y: np.logaddexp(x, y), values, others), np.logaddexp(values, others)
            )

    def test_mixed_dtypes(self):
        x = np.ones(3, np.float32)
        assert tj.hessian(lambda x: (x**2).sum(), x).dtype == np.float32
        assert tj.jacobian(lambda x: x.astype(np.float64) ** 2, x, mode="reverse").dtype == np.float32


def test_seeds():
    y = dlfeval(lambda x: dlgradient(layer(x), x, seed=np.ones((4, 5), np.float32)), X)
    np.testing.assert_allclose(y, JACOBIAN.sum(0), rtol=1e-12)
    pair = dlfeval(lambda x: dlgradient(x * 2, x, x, seed=x), dlarray([1.0, 3.0]))
    assert [g.tolist() for g in pair] == [[2.0, 6.0]] * 2


def test_ops_without_forward_mode_name_their_function():
    x = dlarray(np.ones((2, 3, 4)), "CBT")
    args = [np.ones(shape) for shape in ((2, 3), (2, 3), (8, 2), (8, 2), (8,))]

    def fun(x):
        h, c = (dlarray(a, "CB") for a in args[:2])
        return tj.lstm(x, h, c, *args[2:])

    with pytest.raises(GradientError, match=r"^lstm: there are no derivatives in forward mode"):
        tj.jvp(fun, (x,), (x,))


@pytest.mark.parametrize("layer", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("wrt", range(4))
def test_gradients_of_recurrent_layers_have_no_derivative_in_forward_mode(layer, wrt):
    rows = {"lstm": 8, "gru": 6, "rnn": 2}[layer]
    arrays = [np.ones(shape) for shape in ((1, 3, 2), (rows, 2), (rows, 2), (rows,))]

    def fun(a):
        x, *weights = [*arrays[:wrt], a, *arrays[wrt + 1 :]]
        states = (None, None) if layer == "lstm" else (None,)
        y, *_ = getattr(tj, layer)(x, *states, *weights, data_format="BTC")
        return y.sum()

    # The adjoint reads gates and cells, whose tangents are not known: they are not 0.
    for derivative in (lambda: tj.hvp(fun, arrays[wrt], arrays[wrt]), lambda: tj.hessian(fun, arrays[wrt])):
        with pytest.raises(GradientError, match=rf"^{layer}: there are no derivatives in forward mode"):
            derivative()


@pytest.mark.parametrize(
    ("fun", "error", "text"),
    [
        (lambda: tj.dljvp(dlarray(X), dlarray(X), X), GradientError, "dljvp: nothing is being recorded"),
        (lambda: tj.jvp(layer, X, (X,)), ArgumentError, "jvp: primals must be a tuple"),
        (lambda: tj.jvp(layer, (X,), (X, X)), ArgumentError, "v must have an array for each of x"),
        (lambda: tj.jvp(layer, (X,), (X[:2],)), DimsError, r"dljvp: v\[0\] has size 2x5, but x\[0\] has 3x5"),
        (lambda: tj.vjp(layer, (X,), X), DimsError, "vjp: cotangents has size 3x5, but"),
        (
            lambda: dlfeval(lambda x: dlgradient(x, x, seed=x[:1]), X),
            DimsError,
            "dlgradient: seed has size 1x5",
        ),
        (lambda: tj.jacobian(layer, X, mode="both"), ArgumentError, "jacobian: mode must be"),
        (
            lambda: tj.hessian(layer, X),
            GradientError,
            "dlhessian: y is 4x5 dlarray float64, expected a traced scalar",
        ),
        (
            lambda: dlfeval(lambda x: tj.dllaplacian(layer(x)[0], x, 0), X),
            DimsError,
            "Keep the axis of channels",
        ),
        (lambda: dlfeval(lambda x: tj.dldivergence(layer(x), x, 0), X), DimsError, "the sizes must be equal"),
        (
            lambda: dlfeval(lambda x: tj.dljacobian(layer(x), [x], 0), X),
            ArgumentError,
            "expected one traced dlarray",
        ),
    ],
)
def test_errors(fun, error, text):
    with pytest.raises(error, match=text):
        fun()


@pytest.mark.parametrize(
    "copy",
    [np.copy, lambda x: np.array(x), lambda x: x.copy(), lambda x: x.flatten(), lambda x: x.astype(float)],
)
def test_a_copy_is_a_variable_of_its_own(copy):
    def first(x):
        y = copy(x)
        total = (x * y * y).sum()
        return dlgradient(total, x), dlgradient(total, y)

    def second(x):
        y = copy(x)
        slope = dlgradient((x**3).sum() + (y**2).sum(), x)
        return dlgradient((slope * slope).sum(), x), dlgradient((slope * slope).sum(), y)

    x = np.arange(3.0)
    slope = 3 * x**2 + 2 * x
    for program, expected in (
        (first, (3 * x**2, 2 * x**2)),
        (second, (2 * slope * (6 * x + 2), 2 * slope * 2)),
    ):
        accelerated = dlaccelerate(program)
        for found in (dlfeval(program, x), *(accelerated(x) for _ in range(3))):
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(ours), theirs)


@pytest.mark.parametrize("run", [lambda f: f, tj.dlaccelerate])
def test_functions_that_write_their_arguments_have_derivatives_by_what_these_were(run):
    def written(q):
        q /= np.sqrt((q**2).sum())
        return q[0] * 2 + q[1]

    def replaced(p):
        p["a"] = p["a"] * 2
        p["b"] *= p["a"]
        return (p["b"] ** 2).sum()

    def pure(q):
        return (q[0] * 2 + q[1]) / np.sqrt((q**2).sum())

    x, v = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    derivatives = {
        "jacobian": lambda f, q: tj.jacobian(f, q),
        "rows": lambda f, q: tj.jacobian(f, q, mode="reverse"),
        "hessian": lambda f, q: tj.hessian(f, q),
        "hvp": lambda f, q: tj.hvp(f, q, v),
        "vjp": lambda f, q: tj.vjp(f, (q,), 2.0)[1][0],
        "jvp": lambda f, q: tj.jvp(f, (q,), (v,))[1],
    }
    for derivative in derivatives.values():
        function = run(lambda q, derivative=derivative: derivative(written, q))
        expected = np.asarray(derivative(pure, x))
        for _ in range(4):
            np.testing.assert_allclose(np.asarray(function(x.copy())), expected, rtol=1e-12)
    by = tj.jacobian(replaced, {"a": 2.0, "b": [1.0, 2.0]})
    assert (by["a"].item(), by["b"].tolist()) == (80.0, [32.0, 64.0])
