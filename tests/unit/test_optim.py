# SPDX-License-Identifier: BSD-3-Clause
"""Updates: values by hand and against torch, containers, scalars of every kind, dtypes, programs, messages."""

import collections

import numpy as np
import pytest
from accelerated import dlaccelerate
from peers import pytorch
from programs import program_of

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, DTypeError

Layer = collections.namedtuple("Layer", "weights bias")


def params_of(rng, dtype="float64"):
    def array(*shape, format=None):
        return tj.dlarray(rng.standard_normal(shape).astype(dtype), format)

    return {"dense": Layer(array(3, 4, format="CU"), array(3)), "scale": [array(), None]}


def leaves(tree):
    return [leaf._data for leaf in tj.tree.flatten(tree)[0]]


def same(first, second, **tolerance):
    for a, b in zip(leaves(first), leaves(second), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, **tolerance)


def test_adam_by_hand():
    # Two steps of Kingma and Ba's algorithm for one parameter, in decimals.
    p, m, v = tj.adamupdate(tj.dlarray(1.0), tj.dlarray(0.5), None, [], 1, 0.1)
    assert (m.item(), v.item()) == (pytest.approx(0.05), pytest.approx(0.00025))
    assert p.item() == pytest.approx(1 - 0.1 * 0.5 / (0.5 + 1e-8), rel=1e-14)
    p, m, v = tj.adamupdate(p, tj.dlarray(-0.1), m, v, 2, 0.1)
    assert (m.item(), v.item()) == (pytest.approx(0.035), pytest.approx(0.00025975))
    corrected = (0.035 / 0.19) / (np.sqrt(0.00025975 / 0.001999) + 1e-8)
    assert p.item() == pytest.approx(1 - 0.1 * 0.5 / (0.5 + 1e-8) - 0.1 * corrected, rel=1e-13)


def test_epsilon_is_added_after_the_correction():
    p, _, _ = tj.adamupdate(tj.dlarray(1.0), tj.dlarray(0.5), None, None, 1, 0.1, 0.9, 0.999, 1.5)
    assert p.item() == pytest.approx(1 - 0.1 * 0.5 / (0.5 + 1.5), rel=1e-14)


def test_sgdm_by_hand():
    p, vel = tj.sgdmupdate(tj.dlarray(1.0), tj.dlarray(0.5), None)
    assert (p.item(), vel.item()) == (pytest.approx(0.995), pytest.approx(-0.005))
    p, vel = tj.sgdmupdate(p, tj.dlarray(0.5), vel)
    assert (p.item(), vel.item()) == (pytest.approx(0.9855), pytest.approx(-0.0095))


def test_rmsprop_by_hand():
    p, v = tj.rmspropupdate(tj.dlarray(1.0), tj.dlarray(0.5), None)
    assert v.item() == pytest.approx(0.025)
    assert p.item() == pytest.approx(1 - 0.001 * 0.5 / (np.sqrt(0.025) + 1e-8), rel=1e-14)
    p2, v = tj.rmspropupdate(p, tj.dlarray(-1.0), v, 0.1, 0.5, 0.25)
    assert v.item() == pytest.approx(0.5125)
    assert p2.item() == pytest.approx(p.item() + 0.1 / (np.sqrt(0.5125) + 0.25), rel=1e-14)


def test_without_decay_the_step_is_the_sign():
    p, _, _ = tj.adamupdate(tj.dlarray([1.0, 1.0]), tj.dlarray([3.0, -7.0]), None, None, 5, 0.1, 0, 0.0, 0)
    np.testing.assert_allclose(p._data, [0.9, 1.1])


@pytest.mark.parametrize("name", ["adam", "sgdm", "rmsprop"])
def test_against_torch(name, rng):
    torch = pytorch()
    params = {"w": tj.dlarray(rng.standard_normal((3, 4))), "b": tj.dlarray(rng.standard_normal(3))}
    tensors = [torch.nn.Parameter(torch.tensor(leaf.copy())) for leaf in leaves(params)]
    optimizer = {
        "adam": lambda: torch.optim.Adam(tensors, 0.01, (0.8, 0.99), 1e-3),
        "sgdm": lambda: torch.optim.SGD(tensors, 0.01, momentum=0.8),
        "rmsprop": lambda: torch.optim.RMSprop(tensors, 0.01, alpha=0.8, eps=1e-3),
    }[name]()
    state = (None, None) if name == "adam" else (None,)
    for step in range(1, 6):
        grads = tj.tree.map(lambda p: tj.dlarray(rng.standard_normal(p.shape)), params)
        for tensor, grad in zip(tensors, leaves(grads), strict=True):
            tensor.grad = torch.tensor(grad)
        optimizer.step()
        if name == "adam":
            params, *state = tj.adamupdate(params, grads, *state, step, 0.01, 0.8, 0.99, 1e-3)
        elif name == "sgdm":
            params, *state = tj.sgdmupdate(params, grads, *state, 0.01, 0.8)
        else:
            params, *state = tj.rmspropupdate(params, grads, *state, 0.01, 0.8, 1e-3)
    for tensor, leaf in zip(tensors, leaves(params), strict=True):
        np.testing.assert_allclose(leaf, tensor.detach().numpy(), rtol=1e-12)


def test_containers_keep_structure_labels_and_contents(rng):
    params = params_of(rng, "float32")
    before = [leaf.copy() for leaf in leaves(params)]
    grads = tj.tree.map(tj.ones_like, params)
    for updated in (
        tj.adamupdate(params, grads, None, None, 1),
        tj.sgdmupdate(params, grads, []),
        tj.rmspropupdate(params, grads, None),
    ):
        for tree in updated:
            assert type(tree["dense"]) is Layer and tree["scale"][1] is None
            assert tree["dense"].weights.format == "CU" and tree["dense"].bias.format is None
            assert {leaf.dtype for leaf in leaves(tree)} == {np.dtype(np.float32)}
    for leaf, old in zip(leaves(params), before, strict=True):
        np.testing.assert_array_equal(leaf, old)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalars_of_every_kind_give_the_same(dtype, rng):
    params = params_of(rng, dtype)
    grads, m, v = (
        tj.tree.map(lambda p: tj.dlarray(rng.uniform(0.1, 1, p.shape), p.format), params) for _ in range(3)
    )
    expected = tj.adamupdate(params, grads, m, v, 7, 0.01, 0.9, 0.99, 1e-6)
    assert {leaf.dtype for tree in expected for leaf in leaves(tree)} == {np.dtype(dtype)}
    tolerance = {"rtol": 4 * np.finfo(dtype).eps}
    for kind in (np.float64, tj.dlarray, lambda x: np.array([x]), lambda x: tj.dlarray([[x]], "BC")):
        options = [kind(x) for x in (0.01, 0.9, 0.99, 1e-6)]
        for step in (7, 7.0, np.int32(7), np.array(7), tj.dlarray(7), tj.dlarray(np.uint8(7))):
            results = tj.adamupdate(params, grads, m, v, step, *options)
            traced = tj.dlfeval(tj.adamupdate, params, grads, m, v, step, *options)
            for have in (results, traced):
                same(have, expected, **tolerance)
        same(
            tj.sgdmupdate(params, grads, m, *options[:2]),
            tj.sgdmupdate(params, grads, m, 0.01, 0.9),
            **tolerance,
        )
        same(
            tj.rmspropupdate(params, grads, v, options[0], options[2], options[3]),
            tj.rmspropupdate(params, grads, v, 0.01, 0.99, 1e-6),
            **tolerance,
        )


def test_first_steps_in_float32_are_exact_to_rounding():
    # 1 - 0.999**t loses five digits in float32; the corrections are computed in float64.
    g = tj.dlarray(np.array([0.3], np.float32))
    for step in (1, tj.dlarray(np.int64(1)), tj.dlarray(np.float32(1))):
        p, _, _ = tj.adamupdate(tj.dlarray(np.zeros(1, np.float32)), g, None, None, step, 1.0)
        np.testing.assert_allclose(p._data, [-1], rtol=3e-7)


def test_a_late_iteration_has_no_correction():
    late = tj.adamupdate(tj.dlarray(1.0), tj.dlarray(0.5), None, None, 10**6, 0.1)[0]
    assert late.item() == pytest.approx(1 - 0.1 * 0.05 / (np.sqrt(0.00025) + 1e-8), rel=1e-13)


def test_an_update_can_be_differentiated():
    def tuned(rate):
        p = tj.dlarray([1.0, 2.0])
        p, _vel = tj.sgdmupdate(p, 2 * p, None, rate)
        loss = (p**2).sum()
        return tj.dlgradient(loss, rate)

    # loss = 5 (1 - 2 rate)**2
    assert tj.dlfeval(tuned, tj.dlarray(0.1)).item() == pytest.approx(-20 * 0.8)


def test_each_update_is_one_kernel(rng):
    params = {"w": tj.dlarray(rng.standard_normal((3, 4))), "b": tj.dlarray(rng.standard_normal(5))}
    moments = tj.tree.map(abs, params)

    def step(params, grads, m, v, iteration, rate):
        return tj.adamupdate(params, grads, m, v, iteration, rate)

    program = program_of(step, params, params, moments, moments, tj.dlarray(3), tj.dlarray(0.1))
    assert len(program.rows) == 3  # the scalars, and a loop for each array
    assert len(program.kernels) == 2
    assert len(program_of(tj.sgdmupdate, params, params, moments).rows) == 2
    assert len(program_of(tj.rmspropupdate, params, params, moments).rows) == 2


def test_dlupdate(rng):
    params = params_of(rng)
    doubled = tj.dlupdate(lambda p: 2 * p, params)
    same(doubled, tj.tree.map(lambda p: p + p, params))
    total, difference = tj.dlupdate(lambda p, q: (p + q, p - q), params, doubled)
    same(total, tj.tree.map(lambda p: 3 * p, params))
    same(difference, tj.tree.map(lambda p: -p, params))
    assert type(total["dense"]) is Layer
    assert tj.dlupdate(lambda p: p, {}) == {}


def test_messages(rng):
    p = {"w": tj.dlarray(np.ones((2, 3))), "b": tj.dlarray(np.ones(2))}
    with pytest.raises(ArgumentError, match=r"^adamupdate: grads does not match params: grads has the keys "
                       r"\['w'\], params has the keys \['b', 'w'\]\. They"):  # fmt: skip
        tj.adamupdate(p, {"w": p["w"]}, None, None, 1)
    with pytest.raises(
        ArgumentError,
        match=r"^sgdmupdate: vel does not match params: vel\['b'\] is a list, "
        r"params\['b'\] is an array\. They",
    ):
        tj.sgdmupdate(p, p, {"w": p["w"], "b": [p["b"]]})
    with pytest.raises(ArgumentError, match=r"^rmspropupdate: grads does not match params: grads is None, "
                       r"params is a dict\."):  # fmt: skip
        tj.rmspropupdate(p, None, None)
    with pytest.raises(
        ArgumentError, match=r"^sgdmupdate: vel does not match params: vel is a number, params is a dict\."
    ):
        tj.sgdmupdate(p, p, 0.0)
    with pytest.raises(ArgumentError, match=r": vel has 1 element, params has 2 elements\."):
        tj.sgdmupdate([p["w"], p["b"]], [p["w"], p["b"]], [p["w"]])
    with pytest.raises(
        DimsError,
        match=r"^adamupdate: grads\['w'\] is of size 3x2, but params\['w'\] is of size 2x3; they must",
    ):
        tj.adamupdate(p, {**p, "w": p["w"].T}, None, None, 1)
    with pytest.raises(
        DimsError, match=r"^adamupdate: avg_g\['b'\] is of size 2\(B\), but params\['b'\] is of size 2; they"
    ):
        tj.adamupdate(p, p, {**p, "b": tj.dlarray(p["b"], "B")}, None, 1)
    with pytest.raises(DTypeError, match=r"^sgdmupdate: params\[1\] holds int64, expected floating point"):
        tj.sgdmupdate([p["w"], tj.dlarray([1])], [p["w"], tj.dlarray([1])], None)
    for step in (0, -1, 0.5, np.nan):
        with pytest.raises(ArgumentError, match=r"^adamupdate: iteration counts from 1, found "):
            tj.adamupdate(p, p, None, None, step)
    with pytest.raises(
        ArgumentError, match=r"^rmspropupdate: learn_rate must be a number or a scalar array, not 'fast"
    ):
        tj.rmspropupdate(p, p, None, "fast")
    with pytest.raises(DimsError, match=r"^sgdmupdate: momentum is of size 2; expected a scalar"):
        tj.sgdmupdate(p, p, None, 0.1, [0.9, 0.9] * tj.dlarray(1.0))
    with pytest.raises(
        ArgumentError, match=r"^adamupdate: decay factors must be at least 0 and less than 1, found -0.5"
    ):
        tj.adamupdate(p, p, None, None, 1, 0.1, -0.5)
    with pytest.raises(
        ArgumentError, match=r"^adamupdate: decay factors must be at least 0 and less than 1, found 1.0"
    ):
        tj.adamupdate(p, p, None, None, 1, 0.1, 1)
    with pytest.raises(
        ArgumentError,
        match=r"^dlupdate: trees\[1\] does not match trees\[0\]: trees\[1\] has the keys "
        r"\['w'\], trees\[0\] has the keys \['b', 'w'\]\.",
    ):
        tj.dlupdate(lambda p, q: p, p, {"w": p["w"]})
    with pytest.raises(ArgumentError, match=r"^dlupdate: fun must be a function, not dict"):
        tj.dlupdate(p)
    with pytest.raises(ArgumentError, match=r"^dlupdate: there is nothing to update"):
        tj.dlupdate(abs)
    with pytest.raises(
        ArgumentError,
        match=r"^dlupdate: fun must return the same number of results for each leaf; found "
        r"a single result and a tuple of 2\.$",
    ):
        tj.dlupdate(lambda p: (p, p) if p.ndim == 2 else p, p)


def test_a_scale_of_losses_adapts_itself() -> None:
    def step(w, x, scaling):
        def gradients(w, x, scaling):
            return tj.dlgradient(scaling.scaled(tj.sum(w.astype(np.float16) * x)), w)

        grads, finite, new = scaling.unscaled(tj.dlfeval(gradients, w, x, scaling), interval=2)
        return scaling.chosen(finite, w - 0.5 * grads, w), finite, new

    accelerated = dlaccelerate(step)
    small = np.array([2.0**-24, 2.0**-20], np.float16)
    endless = np.array([1.0, np.inf], np.float16)
    for call in (step, accelerated):
        w, scaling = tj.dlarray(np.ones(2, np.float32)), tj.LossScale.of(4.0)
        states = []
        for x in (small, small, small, endless, endless, small):
            before = tj.extractdata(w)
            w, finite, scaling = call(w, tj.dlarray(x), scaling)
            states.append((bool(finite), float(scaling.scale), int(scaling.steps)))
            if finite:
                np.testing.assert_allclose(tj.extractdata(w), before - 0.5 * x.astype(np.float32), rtol=1e-6)
            else:
                np.testing.assert_array_equal(tj.extractdata(w), before)
        assert states == [
            (True, 4.0, 1), (True, 8.0, 0), (True, 8.0, 1), (False, 4.0, 0), (False, 2.0, 0), (True, 2.0, 1),
        ]  # fmt: skip
        assert isinstance(scaling, tj.LossScale)
    assert accelerated.hit_rate > 80


def test_a_scale_that_would_overflow_stays() -> None:
    scaling = tj.LossScale.of(2.0**127)
    _, finite, scaling = scaling.unscaled([tj.dlarray(np.ones(2, np.float32))], interval=1)
    assert bool(finite) and float(scaling.scale) == 2.0**127


GRADIENTS = {"w": np.array([[3.0, -4.0]]), "b": [np.array([0.3], np.float32), np.zeros(2)]}


class TestClipping:
    def scaled(self, *scales):
        w, (b, zeros) = GRADIENTS["w"], GRADIENTS["b"]
        return {"w": w * scales[0], "b": [(b * scales[1]).astype(np.float32), zeros]}

    @pytest.mark.parametrize(
        ("threshold", "method", "scales"),
        [
            (1.0, "l2norm", (0.2, 1.0)),
            (0.1, "l2norm", (0.02, 1 / 3)),
            (1.0, "global-l2norm", (1 / np.sqrt(25.09),) * 2),
            (6.0, "global-l2norm", (1.0, 1.0)),
            (np.inf, "global-l2norm", (1.0, 1.0)),
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda x: x, tj.dlarray])
    def test_by_norms(self, threshold, method, scales, wrap):
        if threshold == np.inf and wrap is tj.dlarray:
            return  # a number only
        accelerated = dlaccelerate(lambda g, most: tj.clipgradients(g, most, method))
        for clip in (
            lambda g, most: tj.clipgradients(g, most, method),
            accelerated,
            accelerated,
            accelerated,
        ):
            same(
                clip(GRADIENTS, wrap(threshold)),
                tj.tree.map(tj.dlarray, self.scaled(*scales)),
                rtol=1e-6,
            )

    def test_by_elements(self):
        for most in (2.0, tj.dlarray(2.0)):
            found = tj.clipgradients(GRADIENTS, most, "absolute-value")
            assert found["w"].tolist() == [[2.0, -2.0]] and found["b"][0].dtype == np.float32
            assert found["b"][0].tolist() == GRADIENTS["b"][0].tolist()

    def test_against_torch(self, rng):
        torch = pytorch()
        gradients = [rng.standard_normal(5), rng.standard_normal((2, 3))]
        tensors = [torch.nn.Parameter(torch.zeros(g.shape, dtype=torch.float64)) for g in gradients]
        for tensor, g in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(g)
        torch.nn.utils.clip_grad_norm_(tensors, 0.7)
        for g, tensor in zip(tj.clipgradients(gradients, 0.7, "global-l2norm"), tensors, strict=True):
            np.testing.assert_allclose(g, tensor.grad.numpy(), rtol=1e-5)  # torch adds 1e-6 to the norm

    def test_of_a_network(self):
        net = tj.dlnetwork([tj.nn.FeatureInput(2), tj.nn.FullyConnected(1)], seed=0)
        gradients = tj.dlupdate(lambda w: 0 * w + 2, net.learnables)
        found = tj.clipgradients(gradients, 1.0, "global-l2norm")
        assert type(found) is tj.nn.LearnablesTable
        np.testing.assert_allclose(found["fc", "bias"], 1 / np.sqrt(3), rtol=1e-6)

    def test_squares_that_overflow_float32(self):
        g = tj.dlarray(np.full(2, 1e30, np.float32))
        np.testing.assert_allclose(tj.clipgradients(g, 1.0), np.full(2, np.sqrt(0.5)), rtol=1e-6)
