# SPDX-License-Identifier: BSD-3-Clause
"""Layers of one's own: fields, labels, state, errors, backward, soundness, checklayer."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tracejit as tj
from tracejit import nn

RNG = np.random.default_rng(0)
X = tj.dlarray(RNG.standard_normal((5, 4)).astype(np.float32), "BC")
FEATURES = nn.DataLayout((None, 4), "BC")
FACTOR = 2.0


class Scale(nn.Layer, nn.Formattable, nn.Acceleratable):
    factor = nn.Learnable()

    def initialize(self, layout: Any) -> None:
        if self.factor is None:
            self.factor = tj.full((layout.size_of("C"),), 3.0, np.float32)

    def predict(self, x: Any) -> Any:
        return x * self.factor


class Counting(nn.Layer, nn.Formattable, nn.Acceleratable):
    count = nn.State()

    def __init__(self) -> None:
        self.count = tj.zeros(1, np.float32)

    def predict(self, x: Any) -> Any:
        return x + self.count

    def forward(self, x: Any) -> Any:
        return x, self.count + 1

    def reset_state(self) -> None:
        self.count = tj.zeros(1, np.float32)


class Reading(nn.Layer, nn.Formattable, nn.Acceleratable):
    def predict(self, x: Any) -> Any:
        return x * FACTOR


class Masked(nn.Layer, nn.Formattable, nn.Acceleratable):
    def __init__(self, mask: Any) -> None:
        self.parts = {"mask": mask, "scale": 2.0}

    def predict(self, x: Any) -> Any:
        return x * self.parts["mask"] * self.parts["scale"]


class Plain(nn.Layer):
    """A layer without labels: adds its own number to each channel of an image."""

    def predict(self, x: Any) -> Any:
        assert x.format is None
        return x + np.arange(x.shape[2], dtype=np.float32)[:, None]


class Squared(nn.Layer, nn.Formattable):
    """A layer with a backward of its own."""

    weight = nn.Learnable()
    wrong = 1.0

    def __init__(self, wrong: float = 1.0) -> None:
        self.weight = tj.full((1,), 2.0, np.float32)
        self.wrong = wrong

    def predict(self, x: Any) -> Any:
        return self.weight * x**2

    def backward(self, x: Any, y: Any, dy: Any) -> Any:
        return 2 * self.weight * x * dy * self.wrong, (x**2 * dy).sum().reshape(1)


def of(*layers: Any) -> tj.dlnetwork:
    return tj.dlnetwork([nn.FeatureInput(4), *layers], seed=0)


def test_fields_are_the_arrays_of_the_network() -> None:
    net = of(Scale())
    for _ in range(4):
        assert_allclose(net.predict(X), 3 * np.asarray(X))
    double = net.with_learnables({"layer": {"factor": np.full(4, 2.0, np.float32)}})
    for _ in range(4):
        assert_allclose(double.predict(X), 2 * np.asarray(X))
    assert isinstance(Scale.factor, nn.Learnable) and Scale().factor is None


def test_state_is_returned_by_forward() -> None:
    net = of(Counting())
    for count in range(5):
        assert_allclose(net.predict(X), np.asarray(X) + count)
        _, state = net.forward(X)
        net = net.with_state(state)
        assert state["layer", "count"].tolist() == [count + 1]
    assert net.reset_state().state["layer", "count"].tolist() == [0]
    assert net.state["layer", "count"].tolist() == [5]


def test_what_predict_reads_elsewhere_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    net = of(Reading())
    for factor in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert_allclose(net.predict(X), factor * np.asarray(X), rtol=1e-6)


def test_a_network_read_from_a_global_is_followed() -> None:
    holder = {"net": of(Scale())}

    @tj.dlaccelerate
    def apply(x: Any) -> Any:
        return holder["net"].predict(x)

    for factor in (3.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 5.0):
        holder["net"] = holder["net"].with_learnables({"layer": {"factor": np.full(4, factor, np.float32)}})
        assert_allclose(apply(X), factor * np.asarray(X), rtol=1e-6)


def test_arrays_among_other_attributes_are_constants_of_the_network() -> None:
    mask = np.array([1.0, 0.0, 1.0, 0.0], np.float32)
    layer = Masked(mask)
    net = of(layer)
    assert len(net.learnables) == 0 and net.layer("layer").parts["mask"].tolist() == mask.tolist()
    for _ in range(4):
        assert_allclose(net.predict(X), 2 * np.asarray(X) * mask)
    layer.parts["scale"] = 7.0  # nobody else's attribute is the network's
    assert_allclose(net.predict(X), 2 * np.asarray(X) * mask)
    assert of(Masked(1 - mask))._fixed is net._fixed


def test_names_of_inputs_and_outputs_may_be_assigned() -> None:
    class Split(nn.Layer, nn.Formattable, nn.Acceleratable):
        def __init__(self) -> None:
            self.output_names = ["low", "high"]

        def predict(self, x: Any) -> Any:
            return x[:, :2], x[:, 2:]

    net = tj.dlnetwork([nn.FeatureInput(4), Split()])
    assert (Split().num_outputs, Split().input_names) == (2, ("in",))
    assert net.output_names == ("layer/low", "layer/high") and net.layer("layer").output_names == (
        "low",
        "high",
    )
    for _ in range(3):
        low, high = net.predict(X)
        assert_array_equal(np.concatenate([low, high], axis=1), X)
    assert tj.checklayer(Split(), FEATURES).failed == ()


def test_layers_without_labels_see_one_order_of_axes() -> None:
    images = RNG.standard_normal((2, 3, 4, 3)).astype(np.float32)
    net = tj.dlnetwork([nn.ImageInput((3, 4, 3)), Plain()])
    for order, format in (((0, 1, 2, 3), "BSSC"), ((0, 3, 1, 2), "BCSS"), ((1, 2, 3, 0), "SSCB")):
        moved = tj.dlarray(np.ascontiguousarray(images.transpose(order)), format)
        y = net.predict(moved)
        assert y.format == format
        assert_allclose(y, (images + np.arange(3, dtype=np.float32)).transpose(order), rtol=1e-6)


def test_an_error_names_the_layer_and_leaves_the_network() -> None:
    class Failing(nn.Layer, nn.Formattable, nn.Acceleratable):
        limit = 3

        def predict(self, x: Any) -> Any:
            if x.shape[x.format.index("B")] > self.limit:
                raise RuntimeError("too many observations")
            return x + 1

    net = of(Failing())
    before = net.predict(X[:2])
    with pytest.raises(RuntimeError, match="too many") as caught:
        net.predict(X)
    assert "in predict of layer 'layer' (Failing) of a network" in caught.value.__notes__
    assert_array_equal(net.predict(X[:2]), before)


def test_layers_that_are_not_acceleratable_run_between_those_that_are() -> None:
    calls = []

    class Counted(nn.Layer, nn.Formattable):
        def predict(self, x: Any) -> Any:
            calls.append(1)
            return x * 2

    net = of(nn.Relu(), Counted(), nn.Tanh(), nn.FullyConnected(2))
    runs = net._fixed.functions
    expected = net.predict(X, acceleration="none")
    calls.clear()
    for _ in range(5):
        assert_allclose(net.predict(X), expected, rtol=1e-5, atol=1e-6)
    assert len(calls) == 5
    (plan,) = runs.values()
    assert [(len(segment.layers), segment.accelerated) for segment, _ in plan] == [
        (2, True),
        (1, False),
        (2, True),
    ]
    assert all(compute.hit_rate > 50 for segment, compute in plan if segment.accelerated)


class TestBackward:
    def slopes(self, net: Any, x: Any) -> Any:
        loss = (net.predict(x) * 3).sum()
        return tj.dlgradient(loss, (net.learnables, x))

    def test_is_called_in_place_of_the_derivative_of_predict(self) -> None:
        table, dx = tj.dlfeval(self.slopes, of(Squared(wrong=10.0)), X)
        assert_allclose(dx, 10 * 2 * 2 * np.asarray(X) * 3, rtol=1e-5)
        assert_allclose(table["layer", "weight"], [3 * (np.asarray(X) ** 2).sum()], rtol=1e-5)

    def test_in_an_accelerated_function(self) -> None:
        accelerated = tj.dlaccelerate(self.slopes)
        for scale in (1.0, 2.0, 3.0, 4.0):
            x = X * scale
            _, dx = accelerated(of(Squared()), x)
            assert_allclose(dx, 12 * np.asarray(x), rtol=1e-5)
        assert accelerated.hit_rate > 0

    @pytest.mark.parametrize("data", [X, X.T], ids=["BC", "CB"])
    @pytest.mark.parametrize("is_turned", [False, True])
    def test_labels_of_arrays_and_gradients(self, data: Any, is_turned: bool) -> None:
        class Labelled(nn.Layer, nn.Formattable):
            weight = nn.Learnable()

            def __init__(self) -> None:
                self.weight = tj.dlarray(np.arange(1, 5, dtype=np.float32), "C")
                self.mask = tj.dlarray(np.array([1, 0, 1, 1], np.float32), "C")

            def predict(self, x: Any) -> Any:
                assert self.weight.format == self.mask.format == "C"
                return x * self.weight * self.mask

            def backward(self, x: Any, y: Any, dy: Any) -> Any:
                dx = dy * self.weight * self.mask
                return dx.T if is_turned else dx, (dy * x * self.mask).sum(axis=x.format.index("B"))

        net = of(Labelled())
        factor = np.array([1, 0, 3, 4], np.float32)
        accelerated = tj.dlaccelerate(self.slopes)
        for _ in range(4):
            for table, dx in (tj.dlfeval(self.slopes, net, data), accelerated(net, data)):
                of_rows = np.asarray(dx) if data.format == "BC" else np.asarray(dx).T
                assert_allclose(of_rows, np.broadcast_to(3 * factor, X.shape), rtol=1e-6)
                expected = 3 * np.asarray(X).sum(axis=0) * np.array([1, 0, 1, 1])
                assert_allclose(table["layer", "weight"], expected, rtol=1e-5)
        assert_allclose(tj.stripdims(net.predict(X)), np.asarray(X) * factor)

    def test_the_number_of_gradients(self) -> None:
        class Short(Squared):
            def backward(self, x: Any, y: Any, dy: Any) -> Any:
                return dy

        with pytest.raises(
            tj.ArgumentError,
            match=r"layer 'layer' \(Short\) returned 1 gradient; expected one for each of 1 input and 1 l",
        ):
            tj.dlfeval(self.slopes, of(Short()), X)

    def test_a_gradient_of_a_wrong_size(self) -> None:
        class Wrong(Squared):
            def backward(self, x: Any, y: Any, dy: Any) -> Any:
                return dy, dy if self.wrong else None

        with pytest.raises(
            tj.DimsError,
            match=r"^backward: layer 'layer' \(Wrong\) returned a gradient of size 5\(B\) x 4\(C\) float32 by "
            r"learnable 1, which is 1 float32 and whose gradient is needed; return an array of its size, zeros",
        ):
            tj.dlfeval(self.slopes, of(Wrong()), X)
        with pytest.raises(tj.GradientError, match="returned no gradient by learnable 1, which is 1 float32"):
            tj.dlfeval(self.slopes, of(Wrong(0)), X)

    @pytest.mark.parametrize("value", [{1, 2}, {"a": [1, {2}]}, np.ones(2) * 1j, bytearray(b"a")], ids=repr)
    def test_attributes_of_any_kind(self, value: Any) -> None:
        layer = Squared()
        layer.value = value  # type: ignore[attr-defined]
        for net in (of(layer), of(layer, nn.Tanh()).remove_layers("tanh").initialize()):
            for _ in range(3):
                _, dx = tj.dlfeval(self.slopes, net, X)
                assert_allclose(dx, 12 * np.asarray(X), rtol=1e-5)

    def test_an_error_names_the_layer(self) -> None:
        class Failing(Squared):
            def backward(self, x: Any, y: Any, dy: Any) -> Any:
                raise RuntimeError("no slope")

        accelerated = tj.dlaccelerate(self.slopes)
        for run in (lambda net: tj.dlfeval(self.slopes, net, X), lambda net: accelerated(net, X)):
            with pytest.raises(RuntimeError, match="no slope") as caught:
                run(of(Failing()))
            assert "in backward of layer 'layer' (Failing) of a network" in caught.value.__notes__


class TestCheckLayer:
    def outcome(self, layer: Any, check: str, *layouts: Any) -> tuple[str, str]:
        report = tj.checklayer(layer, *(layouts or (FEATURES,)))
        (found,) = [row for row in report.checks if check in row.check]
        return found.outcome, found.reason

    @pytest.mark.parametrize(
        "layer", [Scale(), Counting(), Squared(), nn.BatchNormalization(), nn.Dropout()], ids=repr
    )
    def test_good_layers_pass(self, layer: Any) -> None:
        report = tj.checklayer(layer, FEATURES)
        assert report.failed == () and report and len(report.passed) >= 8, report
        assert f"{len(report.passed)} passed, 0 failed" in repr(report)

    def test_example_data(self) -> None:
        assert tj.checklayer(Scale(), X)

    def test_a_wrong_backward(self) -> None:
        outcome, reason = self.outcome(Squared(wrong=1.01), "gradients")
        assert outcome == "failed" and "for input in, differences give" in reason

    def test_random_numbers_in_predict(self) -> None:
        class Noisy(nn.Layer, nn.Formattable):
            def predict(self, x: Any) -> Any:
                return x + tj.rand(x.shape, like=x)

        assert self.outcome(Noisy(), "equal inputs")[0] == "failed"

    def test_a_dtype_that_does_not_follow(self) -> None:
        class Single(nn.Layer, nn.Formattable):
            def predict(self, x: Any) -> Any:
                return x.astype(np.float32)

        assert self.outcome(Single(), "dtype") == ("failed", "float64 gives float32")

    def test_an_assignment_in_predict(self) -> None:
        class Remembering(nn.Layer, nn.Formattable):
            def predict(self, x: Any) -> Any:
                self.last = x
                return x

        assert "last is assigned" in self.outcome(Remembering(), "changes no attribute")[1]

    def test_sizes_that_depend_on_nothing(self) -> None:
        class Three(nn.Layer, nn.Formattable):
            def predict(self, x: Any) -> Any:
                return tj.dlarray(np.zeros((3, 4), np.float32), "BC") * x.sum()

        outcome, reason = self.outcome(Three(), "sizes for one")
        assert outcome == "failed" and "is 3 for 1 observations, expected 1" in reason

    def test_a_layer_that_cannot_be_initialised(self) -> None:
        outcome, reason = self.outcome(nn.Convolution2d(3, 2), "initialize")
        assert outcome == "failed" and "Convolution2d" in reason
        assert self.outcome(nn.Convolution2d(3, 2), "predict returns") == ("skipped", "initialize failed")


class WritingUncompiled(nn.Layer, nn.Formattable):
    """A layer that writes into its arrays."""

    weight, count = nn.Learnable(), nn.State()

    def __init__(self) -> None:
        self.weight, self.count = tj.ones(1, np.float32), tj.ones(1, np.float32)
        self.constant = np.ones(4, np.float32)

    def predict(self, x: Any) -> Any:
        self.weight *= 2
        self.count += 1
        self.constant *= 3
        return x * self.weight * self.count * self.constant

    def reset_state(self) -> None:
        self.count[:] = 0


class Writing(WritingUncompiled, nn.Acceleratable):
    pass


class TestANetworkIsAValue:
    def test_arrays_of_the_layer_are_copied(self) -> None:
        factor = np.full(4, 3.0, np.float32)
        labelled = tj.dlarray(np.full(4, 2.0, np.float32), "C")
        layers = [Scale(), Masked(labelled)]
        layers[0].factor = factor
        net = tj.dlnetwork([nn.FeatureInput(4), layers[0]]).add_layers(layers[1])
        net = net.connect_layers("layer", "layer_1").initialize()
        loaded = net.with_learnables({"layer": {"factor": factor}})
        expected = np.asarray(net.predict(X)).copy()
        factor[:], labelled[:] = 0, 0
        assert_array_equal(net.predict(X), expected)
        assert_array_equal(loaded.predict(X), expected)

    @pytest.mark.parametrize("kind", [Writing, WritingUncompiled])
    def test_what_a_layer_writes_into_its_arrays_is_lost(self, kind: Any) -> None:
        net = of(kind())
        accelerated = tj.dlaccelerate(lambda net, x: net.predict(x))
        for call in (
            net.predict,
            lambda x: net.predict(x, acceleration="none"),
            lambda x: net.forward(x)[0],
            lambda x: accelerated(net, x),
            tj.dlaccelerate(lambda x: net.predict(x)),
            lambda x: tj.dlfeval(lambda net, x: net.predict(x), net, x),
        ):
            for _ in range(4):
                assert_allclose(call(X), np.asarray(X) * 12, rtol=1e-6)
        assert net.reset_state().state["layer", "count"].tolist() == [0]
        assert net.state["layer", "count"].tolist() == [1]
        assert net.learnables["layer", "weight"].tolist() == [1]
        assert net.layer("layer").constant.tolist() == [1, 1, 1, 1]

    def test_a_class_of_ours_that_writes(self) -> None:
        class Doubled(nn.FullyConnected):
            def predict(self, x: Any) -> Any:
                self.weights *= 2
                return super().predict(x)

        net = of(Doubled(2, weights=np.ones((2, 4), np.float32)))
        for acceleration in ("auto", "none"):
            for _ in range(4):
                y = net.predict(X, acceleration=acceleration)
                assert_allclose(y, 2 * np.asarray(X) @ np.ones((4, 2)), rtol=1e-5, atol=1e-6)
        assert not nn.FullyConnected.may_write and np.all(np.asarray(net.learnables["fc", "weights"]) == 1)

    def test_gradients_of_a_layer_that_writes(self) -> None:
        def slopes(net: Any, x: Any) -> Any:
            return tj.dlgradient(net.predict(x).sum(), net.learnables)["layer", "weight"]

        accelerated = tj.dlaccelerate(slopes)
        for _ in range(4):
            assert_allclose(accelerated(of(Writing()), X), [12 * np.asarray(X).sum()], rtol=1e-5)
