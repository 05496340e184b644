# SPDX-License-Identifier: BSD-3-Clause
"""Networks as values: construction, tables, changes, errors, containers."""

import copy
import pickle
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tracejit as tj
from tracejit import nn

RNG = np.random.default_rng(0)
X = tj.dlarray(RNG.standard_normal((5, 4)).astype(np.float32), "BC")


def small(**options) -> tj.dlnetwork:
    layers = [
        nn.FeatureInput(4),
        nn.FullyConnected(3),
        nn.BatchNormalization(),
        nn.Relu(),
        nn.FullyConnected(2),
    ]
    return tj.dlnetwork(layers, seed=0, **options)


def arrays(tree) -> list:
    return [np.asarray(leaf) for leaf in tj.tree.flatten(tree)[0]]


class TestConstruction:
    def test_layers_get_names_and_arrays(self):
        net = small()
        assert [layer.name for layer in net.layers] == ["input", "fc", "batchnorm", "relu", "fc_1"]
        assert net.connections[:2] == [("input", "fc"), ("fc", "batchnorm")]
        assert (net.input_names, net.output_names, net.initialized) == (("input",), ("fc_1",), True)
        assert net.learnables.layer == ("fc", "fc", "batchnorm", "batchnorm", "fc_1", "fc_1")
        assert net.learnables["fc"]["weights"].shape == (3, 4)
        assert net.state.parameter == ("trained_mean", "trained_variance")
        assert {array.dtype for array in net.learnables.value} == {np.dtype(np.float32)}

    def test_a_seed_gives_the_same_numbers_and_leaves_the_generator_alone(self):
        with tj.rng(5):
            before = tj.rng()
            first, second = small(), small()
            assert first == second and tj.rng() == before
            assert first.initialize() == first  # nothing is left to set
        other = tj.dlnetwork(small(initialize=False).layers, seed=1)
        assert other != first

    def test_what_is_set_stays(self):
        weights = RNG.standard_normal((3, 4)).astype(np.float32)
        net = tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(3, weights=weights)])
        assert_array_equal(net.learnables["fc", "weights"], weights)

    def test_sizes_come_from_example_data_or_a_layout(self):
        layers = [nn.FullyConnected(3), nn.Tanh()]
        assert not tj.dlnetwork(layers).initialized
        for example in (X, nn.DataLayout((None, 4), "BC")):
            net = tj.dlnetwork(layers, example, seed=0)
            assert net.predict(X).shape == (5, 3)
            assert repr(net.summary().layers[0].outputs) == "(?(B) x 3(C),)"

    def test_arrays_may_be_lists(self):
        net = tj.dlnetwork([nn.FeatureInput(2), nn.FullyConnected(1, weights=[[1.0, 2.0]], bias=(3.0,))])
        assert net.learnables["fc", "weights"].shape == (1, 2) and len(net.learnables) == 2
        assert net.predict(tj.dlarray([[1.0, 1.0]], "BC")).tolist() == [[6.0]]

    def test_the_layer_that_was_given_is_not_changed(self):
        layer = nn.FullyConnected(3)
        tj.dlnetwork([nn.FeatureInput(4), layer])
        assert layer.weights is None and layer.name == ""

    def test_the_order_of_the_data_makes_no_difference(self):
        images = RNG.standard_normal((2, 3, 6, 5)).astype(np.float32)
        layers = [nn.ImageInput((6, 5, 3)), nn.Convolution2d(3, 4), nn.MaxPooling2d(2), nn.FullyConnected(2)]
        net = tj.dlnetwork(layers, seed=0)
        expected = net.predict(tj.dlarray(images, "BCSS"), acceleration="none")
        for order, format in (((2, 3, 1, 0), "SSCB"), ((0, 2, 3, 1), "BSSC"), ((1, 2, 3, 0), "CSSB")):
            moved = tj.dlarray(np.ascontiguousarray(images.transpose(order)), format)
            found = net.predict(moved, acceleration="none")
            assert found.format == format.replace("S", "")
            assert_allclose(tj.extractdata(found).T if found.format == "CB" else found, expected, atol=1e-5)


class TestForward:
    def test_agrees_with_the_functions(self):
        net = small()
        p, s = net.learnables, net.state
        y = tj.fullyconnect(X, p["fc", "weights"], p["fc", "bias"])
        y, mean, variance = tj.batchnorm(
            y, p["batchnorm", "offset"], p["batchnorm", "scale"], *s.value, mean_decay=0.1
        )
        expected = tj.fullyconnect(tj.relu(y), p["fc_1", "weights"], p["fc_1", "bias"])
        for acceleration in ("none", "auto", "auto", "auto"):
            found, state = net.forward(X, acceleration=acceleration)
            assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            assert_allclose(state["batchnorm", "trained_mean"], mean, rtol=1e-5, atol=1e-6)
            assert_allclose(state["batchnorm", "trained_variance"], variance, rtol=1e-5)
        trained = net.with_state(state)
        assert_array_equal(trained.state.value[0], state.value[0])
        assert net != trained and not np.allclose(net.predict(X), trained.predict(X))

    def test_outputs_of_layers_by_name(self):
        net = small()
        hidden, y = net.predict(X, outputs=["relu", "fc_1"])
        assert_allclose(y, net.predict(X), rtol=1e-6)
        assert hidden.shape == (5, 3) and (np.asarray(hidden) >= 0).all()
        assert net.predict(X, outputs="batchnorm").shape == (5, 3)

    def test_dropout_is_for_training(self):
        net = tj.dlnetwork([nn.FeatureInput(4), nn.Dropout(0.5)])
        assert_array_equal(net.predict(X), X)
        y, _ = net.forward(X)
        kept = np.asarray(y) != 0
        assert 0 < kept.sum() < kept.size
        assert_allclose(np.asarray(y)[kept], 2 * np.asarray(X)[kept])

    def test_several_inputs_and_outputs(self):
        net = tj.dlnetwork([nn.FeatureInput(4, name="a"), nn.FullyConnected(3, name="f")], initialize=False)
        net = net.add_layers([nn.FeatureInput(2, name="b"), nn.FullyConnected(3, name="g")])
        net = net.add_layers([nn.Addition(2, name="sum"), nn.Relu(name="r")]).add_layers(nn.Tanh(name="t"))
        for pair in (("f", "sum/in1"), ("g", "sum/in2"), ("sum", "t")):
            net = net.connect_layers(*pair)
        net = net.initialize(seed=0)
        assert net.input_names == ("a", "b") and sorted(net.output_names) == ["r", "t"]
        b = X[:, :2]
        outputs = dict(zip(net.output_names, net.predict(X, b), strict=True))
        assert_allclose(np.maximum(outputs["t"], 0) > 0, np.asarray(outputs["r"]) > 0)


class TestChanges:
    def test_a_layer_is_replaced_by_several(self):
        net = small().replace_layer("relu", [nn.Tanh(), nn.FullyConnected(3, name="more")])
        assert [layer.name for layer in net.layers] == ["input", "fc", "batchnorm", "tanh", "more", "fc_1"]
        assert not net.initialized
        done = net.initialize(seed=3)
        assert_array_equal(done.learnables["fc", "weights"], small().learnables["fc", "weights"])
        assert done.replace_layer("tanh", nn.Relu()).layer("tanh").__class__ is nn.Relu

    def test_connections_are_made_and_removed(self):
        net = small()
        cut = net.disconnect_layers("relu", "fc_1")
        assert ("relu", "fc_1") not in cut.connections and ("relu", "fc_1") in net.connections
        again = cut.connect_layers("relu", "fc_1").initialize()
        assert_array_equal(again.predict(X), net.predict(X))
        fewer = net.remove_layers(["fc_1", "relu"])
        assert fewer.output_names == ("batchnorm",) and len(fewer.connections) == 2

    def test_tied_learnables_are_one(self):
        net = tj.dlnetwork(
            [nn.FeatureInput(4), nn.FullyConnected(4, name="a"), nn.FullyConnected(4, name="b")], seed=0
        )
        tied = net.tie(("a", "weights"), ("b", "weights"))
        assert len(tied.learnables) == 3 and tied.layer("b").weights is tied.layer("a").weights
        w, bias = tied.learnables["a", "weights"], tied.learnables["a", "bias"]

        def loss(w):
            y = tj.fullyconnect(tj.fullyconnect(X, w, bias), w, bias)
            return tj.dlgradient(y.sum(), w)

        def of_network(net):
            return tj.dlgradient(net.predict(X).sum(), net.learnables)

        found = tj.dlfeval(of_network, tied)
        assert_allclose(found["a", "weights"], tj.dlfeval(loss, w), rtol=1e-5)
        assert tied.replace_layer("b", nn.FullyConnected(4)).initialize(seed=1).learnables.layer == (
            "a",
            "a",
            "b",
            "b",
        )

    def test_several_ties(self):
        a, b, c = (("a", "weights"), ("b", "weights"), ("c", "weights"))
        layers = [nn.FullyConnected(4, name=name) for name in "abc"]
        net = tj.dlnetwork([nn.FeatureInput(4), *layers], seed=0)
        for tied in (net.tie(b, c).tie(a, b), net.tie(a, b).tie(a, c), net.tie(a, c).tie(b, a)):
            assert [row for row in tied.learnables._fixed.names if row[1] == "weights"] == [a]
            w = np.asarray(tied.learnables[a])
            assert_allclose(tied.predict(X), np.asarray(X) @ w.T @ w.T @ w.T, rtol=1e-5, atol=1e-6)
            rest = tied.remove_layers("a")
            assert rest.layer("b").weights is rest.layer("c").weights
        with pytest.raises(tj.ArgumentError, match=r"tie: a/weights is given twice; pass two rows of net\.l"):
            net.tie(a, a)
        with pytest.raises(tj.ArgumentError, match=r"tie: there is no learnable \['a', 'weights'\]; pass"):
            net.tie([*a], b)

    def test_frozen_layers_stay(self):
        net = small().freeze("fc").with_learn_rate_factor("fc_1", "bias", 2)
        assert net.learn_rate_factors.value == (0, 0, 1, 1, 1, 2)
        gradients = tj.tree.map(tj.ones_like, net.learnables)
        moved, velocity = tj.sgdmupdate(net, gradients, None, 0.5)
        for (layer, parameter, new), old in zip(moved.learnables, net.learnables.value, strict=True):
            factor = {"fc": 0, "fc_1": 2 if parameter == "bias" else 1}.get(layer, 1)
            assert_allclose(new, np.asarray(old) - 0.5 * factor)
        assert not np.any(velocity["fc", "weights"]) and np.all(velocity["fc_1", "weights"])
        free = net.unfreeze()
        assert set(free.learn_rate_factors.value) == {1.0}
        assert free.l2_factors.to_dict()["fc"] == {"weights": 1.0, "bias": 0.0}
        assert free.with_l2_factor("fc", "bias", 3).l2_factors["fc", "bias"] == 3

    def test_layers_of_an_inner_network_are_frozen(self):
        block = tj.dlnetwork([nn.FullyConnected(4, name="dense"), nn.Relu()], initialize=False)
        outer = nn.Network(tj.dlnetwork([nn.Network(block, name="inner")], initialize=False), name="outer")
        net = tj.dlnetwork([nn.FeatureInput(4), outer, nn.FullyConnected(2)], seed=0)
        assert net.freeze("outer").learn_rate_factors.value == (0, 0, 1, 1)
        frozen = net.freeze()
        assert frozen.learn_rate_factors.value == (0, 0, 0, 0)
        moved, _ = tj.sgdmupdate(frozen, tj.tree.map(tj.ones_like, net.learnables), None, 0.5)
        assert moved == frozen and frozen.unfreeze("outer").learn_rate_factors.value == (1, 1, 0, 0)
        one = net.with_learn_rate_factor("outer", "inner/dense/bias", 2)
        one = one.with_l2_factor("outer", "inner/dense/bias", 3)
        assert one.learn_rate_factors["outer", "inner/dense/bias"] == 2
        assert one.l2_factors.value == (1, 3, 1, 0)


class TestAsAContainer:
    def test_updates_give_networks_and_tables(self):
        net = small()
        gradients = tj.tree.map(tj.ones_like, net.learnables)
        after, mean, square = tj.adamupdate(net, gradients, None, None, 1)
        plain, *moments = tj.adamupdate(net.learnables.to_dict(), gradients.to_dict(), None, None, 1)
        for row in after.learnables:
            assert_array_equal(row.value, plain[row.layer][row.parameter])
        assert type(mean) is type(net.learnables) and arrays(mean)[0].shape == (3, 4)
        assert_array_equal(mean["fc", "bias"], moments[0]["fc"]["bias"])
        assert after.state.value == net.state.value  # the same arrays
        rms, _ = tj.rmspropupdate({"of": net}, {"of": gradients}, None)
        assert type(rms["of"]) is tj.dlnetwork and square["fc", "bias"].shape == (3,)
        double = tj.dlupdate(lambda p: p.astype(np.float64), net)
        assert type(double) is tj.dlnetwork and double.learnables.value[0].dtype == np.float64
        decayed = tj.dlupdate(lambda g, p, f: g + 0.1 * f * p, gradients, net, net.l2_factors)
        assert_allclose(decayed["fc", "weights"], 1 + 0.1 * np.asarray(net.learnables["fc", "weights"]))

    def test_gradients(self):
        def slopes(net, x):
            y, _ = net.forward(x)
            loss = (y * y).sum()
            return tj.dlgradient(loss, net), tj.dlgradient(loss, net.learnables)

        first, second = tj.dlfeval(slopes, small(), X)
        assert type(first) is type(second) is type(small().learnables)
        for a, b in zip(arrays(first), arrays(second), strict=True):
            assert_array_equal(a, b)
        net = small(initialize=False).initialize(seed=0)
        net = tj.dlupdate(lambda p: p.astype(np.float64), net)
        tj.testing.check_gradients(
            lambda learnables, x: (net.with_learnables(learnables).forward(x)[0] ** 2).sum(),
            net.learnables,
            X.astype(float),
        )

    def test_copies_and_pickles_meet_the_same_traces(self):
        net = small()
        for other in (pickle.loads(pickle.dumps(net)), copy.copy(net), copy.deepcopy(net), small()):
            assert other == net and other._fixed is net._fixed
        table = pickle.loads(pickle.dumps(net.state))
        assert table._fixed is net.state._fixed
        assert small(initialize=False)._fixed is not net._fixed

    def test_a_change_shares_arrays(self):
        net = small()
        _, state = net.forward(X)
        assert all(
            a is b for a, b in zip(net.with_state(state).learnables.value, net.learnables.value, strict=True)
        )
        assert net.freeze("fc").learnables.value[0] is net.learnables.value[0]

    def test_a_step_keeps_one_trace_for_each_size(self):
        @tj.dlaccelerate
        def step(net, velocity, x):
            y, state = net.forward(x)
            loss = (y * y).mean()
            gradients = tj.dlgradient(loss, net.learnables)
            net, velocity = tj.sgdmupdate(net.with_state(state), gradients, velocity, 0.01)
            return loss, net, velocity

        net = small()
        velocity = tj.tree.map(tj.zeros_like, net.learnables)
        expected, expected_velocity = net, velocity
        for _ in range(4):
            for x in (X, X[:2]):
                loss, net, velocity = step(net, velocity, x)
                wanted, expected, expected_velocity = tj.dlfeval(
                    step.function, expected, expected_velocity, x
                )
                assert_allclose(loss, wanted, rtol=1e-4)
        assert step.occupancy == 4 and step.stats.hits == 4
        for a, b in zip(arrays(net), arrays(expected), strict=True):
            assert_allclose(a, b, rtol=1e-4, atol=1e-6)

    def test_a_network_with_other_layers_has_its_own_trace(self):
        @tj.dlaccelerate
        def apply(net, x):
            return net.predict(x)

        relu = tj.dlnetwork([nn.FeatureInput(4), nn.Relu()])
        tanh = tj.dlnetwork([nn.FeatureInput(4), nn.Tanh()])
        for _ in range(4):
            assert_allclose(apply(relu, X), np.maximum(X, 0))
            assert_allclose(apply(tanh, X), np.tanh(X), rtol=1e-6)

    def test_differences_are_told(self):
        first = tj.tree.flatten(small())[1]
        second = tj.tree.flatten(tj.dlnetwork([nn.FeatureInput(4)]))[1]
        text = tj.tree.difference(first, second, "net")
        assert text == (
            "net is a network of 5 layers, 'input' to 'fc_1' in one and a network of 1 layer, 'input' to 'input' in "
            "the other"
        )
        assert tj.tree.paths(first, "net")[0] == "net.learnables['fc', 'weights']"


class TestShown:
    def test_tables(self):
        text = repr(small().learnables)
        assert text.startswith("LearnablesTable of 6 rows\nlayer") and "3x4 float32" in text
        assert "<table" in small().state._repr_html_() and "<table" in small()._repr_html_()
        assert "not initialised" in small(initialize=False)._repr_html_()
        assert "initialized: True" in repr(small())

    def test_summary(self):
        summary = small().summary()
        assert (summary.learnables, summary.state) == (3 * 4 + 3 + 6 + 2 * 3 + 2, 6)
        assert summary.bytes == 4 * (summary.learnables + summary.state)
        assert summary.activation_bytes == 4 * (4 + 3 + 3 + 3 + 2)
        assert ["fc", "FullyConnected", "3(C)", "x", "?(B)", "15"] in [
            line.split() for line in repr(summary).splitlines()
        ]
        assert "5 layers, 29 learnable elements" in summary._repr_html_()

    def test_plot(self, tmp_path):
        net = tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(4), nn.Addition(2)], initialize=False)
        drawing = net.connect_layers("input", "addition/in2").initialize(seed=0).plot()
        assert '"input" -> "addition";' in drawing.dot and drawing.dot.count("label=") == 3
        tree = ET.fromstring(drawing.save(tmp_path / "net.svg").read_text())
        assert len(tree.findall("{http://www.w3.org/2000/svg}rect")) == 3
        assert drawing.save(tmp_path / "net.dot").read_text() == repr(drawing)
        assert drawing._repr_svg_() == drawing.svg


@pytest.mark.parametrize("kind", ["glorot", "he", "orthogonal", "narrow-normal", "zeros", "ones"])
def test_initialisers(kind):
    net = tj.dlnetwork([nn.FeatureInput(100), nn.FullyConnected(50, weights_initializer=kind)], seed=0)
    weights = np.asarray(net.learnables["fc", "weights"], float)
    deviation = {
        "glorot": (2 / 150) ** 0.5,
        "he": (2 / 100) ** 0.5,
        "orthogonal": 0.1,
        "narrow-normal": 0.01,
    }.get(kind, 0)
    assert_allclose(weights.std(), deviation, rtol=0.05, atol=1e-12)
    assert_allclose(weights.mean(), kind == "ones", atol=0.01)
    if kind == "orthogonal":
        assert_allclose(weights @ weights.T, np.eye(50), atol=1e-5)
    if kind == "glorot":
        assert np.abs(weights).max() <= (6 / 150) ** 0.5


@pytest.mark.slow
def test_a_direction_may_be_a_network():
    net = small()
    step = tj.dlupdate(lambda p: p + 1, net)
    change = tj.jvp(lambda net: net.predict(X), (net,), (step,))[1]
    want = tj.jvp(lambda net: net.predict(X), (net,), (step.learnables,))[1]
    assert_allclose(change, want, rtol=1e-5)
    energy = lambda net: (tj.stripdims(net.predict(X)) ** 2).sum()
    have, want = (arrays(tj.hvp(energy, net, direction)) for direction in (step, step.learnables))
    for one, other in zip(have, want, strict=True):
        assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    with pytest.raises(tj.ArgumentError, match="in the same containers"):
        tj.hvp(energy, net, net.freeze("fc").state)
