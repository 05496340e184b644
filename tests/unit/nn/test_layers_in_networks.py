# SPDX-License-Identifier: BSD-3-Clause
"""Every layer as a network of its own: replays, gradients, orders of axes, files, drawings, data that do not fit."""

import pickle
from typing import Any

import numpy as np
import pytest
from network_layers import LAYERS, STEPS, VECTOR, names
from numpy.testing import assert_allclose, assert_array_equal

import tracejit as tj
from tracejit import nn
from tracejit.errors import TraceJitError

SLOPE = tj.dlnetwork([nn.FullyConnected(4), nn.Tanh()], initialize=False)
ALL = [
    *LAYERS,
    (nn.PositionEmbedding(4, 9), (STEPS,)),
    (nn.SinusoidalPositionEncoding(4), (STEPS,)),
    (nn.NeuralODE(SLOPE, (0, 1), relative_tolerance=1e-8, absolute_tolerance=1e-9), (VECTOR,)),
]
LENGTH = 4  # of axes of unknown size that are not observations
OBSERVATIONS = 3

each_layer = pytest.mark.parametrize(
    ("layer", "layouts"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if type(case[0]) is nn.NeuralODE else [])
        for case, name in zip(ALL, names(ALL), strict=True)
    ],
)


def network(layer: Any, layouts: Any) -> tj.dlnetwork:
    """Return a network of one layer."""
    return tj.dlnetwork([layer], *data(layouts), seed=0)


def data(layouts: Any, seed: int = 0, dtype: Any = None) -> list[tj.dlarray]:
    """Return arrays of the layouts' sizes; integers are small enough to count what there is."""
    rng = np.random.default_rng(seed)
    arrays = []
    for layout in layouts:
        size = [
            (OBSERVATIONS if label == "B" else LENGTH) if size is None else size
            for size, label in zip(layout.size, layout.format, strict=True)
        ]
        if layout.dtype.kind == "f":
            values = rng.standard_normal(size).astype(layout.dtype if dtype is None else dtype)
        else:
            values = rng.integers(0, 2, size).astype(layout.dtype)
        arrays.append(tj.dlarray(values, layout.format))
    return arrays


def called(net: tj.dlnetwork, function: str, inputs: Any, **options: Any) -> list[Any]:
    """Return all that forward or predict returns, as NumPy's arrays, with the same random numbers in each call."""
    with tj.rng(3):
        returned = getattr(net, function)(*inputs, **options)
    return [np.asarray(leaf) for leaf in tj.tree.flatten(returned)[0]]


def compare(found: list[Any], wanted: list[Any], rtol: float = 1e-5, atol: float = 1e-5) -> None:
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted, strict=True):
        assert one.dtype == two.dtype and one.shape == two.shape
        assert_allclose(one, two, rtol=rtol, atol=atol)


@each_layer
@pytest.mark.parametrize("function", ["predict", "forward"])
def test_replays_are_what_the_layer_gives(layer: Any, layouts: Any, function: str) -> None:
    net = network(layer, layouts)
    for seed in range(4):
        inputs = data(layouts, seed)
        compare(called(net, function, inputs), called(net, function, inputs, acceleration="none"))


@each_layer
def test_gradients_by_differences(layer: Any, layouts: Any) -> None:
    net = tj.dlupdate(lambda p: p.astype(np.float64), network(layer, layouts))
    inputs = data(layouts, dtype=np.float64)

    def outputs(net: Any, *inputs: Any) -> Any:
        with tj.rng(3):
            *results, _ = net.forward(*inputs)
        return [result for result in results if result.dtype.kind == "f"]

    if any(x.dtype.kind == "f" for x in inputs) or len(net.learnables):
        tj.testing.check_gradients(outputs, net, *inputs)


@pytest.mark.slow
@each_layer
def test_an_accelerated_step_has_the_same_gradients(layer: Any, layouts: Any) -> None:
    def step(net: Any, inputs: Any) -> Any:
        *results, _ = net.forward(*inputs)
        loss = sum((result**2).sum() for result in results if result.dtype.kind == "f")
        floating = [x for x in inputs if x.dtype.kind == "f"]
        return loss, tj.dlgradient(loss, (net.learnables, floating))

    net, accelerated = network(layer, layouts), tj.dlaccelerate(step)
    for seed in range(3):
        inputs = data(layouts, seed)
        with tj.rng(3):
            found = tj.tree.flatten(accelerated(net, inputs))[0]
        with tj.rng(3):
            wanted = tj.tree.flatten(tj.dlfeval(step, net, inputs))[0]
        compare([*map(np.asarray, found)], [*map(np.asarray, wanted)], rtol=2e-4, atol=1e-4)
    assert accelerated.stats.hits == 1


@each_layer
def test_the_order_of_axes_makes_no_difference(layer: Any, layouts: Any) -> None:
    net, inputs = network(layer, layouts), data(layouts)
    turned = []
    for x in inputs:
        order = sorted(range(x.ndim), key=lambda axis: ("TBCS".index(x.format[axis]), axis))
        format = "".join(x.format[axis] for axis in order)
        turned.append(tj.dlarray(np.ascontiguousarray(np.asarray(x).transpose(order)), format))
    with tj.rng(3):
        *wanted, _ = net.forward(*inputs)
    with tj.rng(3):
        *found, _ = net.forward(*turned)
    if "Dropout" in type(layer).__name__:
        return  # random numbers are drawn in the order of the axes
    for one, two in zip(found, wanted, strict=True):
        assert sorted(one.format) == sorted(two.format)
        places = [[axis for axis, other in enumerate(one.format) if other == label] for label in two.format]
        order = [own[two.format[:axis].count(two.format[axis])] for axis, own in enumerate(places)]
        assert_allclose(np.asarray(one).transpose(order), two, rtol=1e-4, atol=1e-5)


@each_layer
def test_files_and_copies(layer: Any, layouts: Any) -> None:
    net, inputs = network(layer, layouts), data(layouts)
    copy = pickle.loads(pickle.dumps(net))
    assert copy == net and repr(copy) == repr(net)
    # The steps of a solver are accelerated: those of the second network, which is equal, are replayed.
    rounding = 1e-5 if isinstance(layer, nn.NeuralODE) else 0.0
    compare(called(copy, "predict", inputs), called(net, "predict", inputs), rtol=rounding, atol=rounding)
    again = net.with_learnables(net.learnables.to_dict()).with_state(net.state.to_dict())
    assert again == net
    assert net.initialize(seed=1) == net  # what is set stays


@each_layer
def test_arrays_of_files_have_no_labels(layer: Any, layouts: Any) -> None:
    net, inputs = network(layer, layouts), data(layouts)
    learnables, state = (
        {name: {key: np.array(value) for key, value in own.items()} for name, own in table.to_dict().items()}
        for table in (net.learnables, net.state)
    )
    assert net.with_learnables(learnables).with_state(state) == net
    assert tj.dlupdate(np.asarray, net) == net
    bare = tj.tree.map(np.asarray, net)  # no network sees these arrays before its layers do
    compare(called(bare, "predict", inputs), called(net, "predict", inputs), rtol=1e-5, atol=1e-5)


@each_layer
def test_what_is_shown(layer: Any, layouts: Any) -> None:
    net = network(layer, layouts)
    (name,) = [own.name for own in net.layers]
    text, drawing = str(net.summary()), net.plot()
    assert name in text and type(layer).__name__ in text and type(layer).__name__ in repr(net.layers[0])
    assert f'"{name}"' in drawing.dot and name in drawing._repr_svg_() and name in net._repr_html_()
    total = sum(np.asarray(value).size for value in net.learnables.value)
    assert f"{total} learnable element" in text
    results = net.predict(*data(layouts))
    for result in results if isinstance(results, tuple) else (results,):
        sizes = [
            f"{'?' if label == 'B' else size}({label})"
            for size, label in zip(result.shape, result.format, strict=True)
        ]
        assert all(size in text or f"?({size[-2]})" in text for size in sizes)


def changed(layouts: Any) -> list[tuple[str, list[tj.dlarray]]]:
    """Return data that mostly do not fit, with what is wrong with them: of one input at a time."""
    found = []
    for number, layout in enumerate(layouts):
        inputs = data(layouts)
        x = inputs[number]
        others: list[tuple[str, Any]] = [
            ("no labels", np.asarray(x)),
            ("an axis more", tj.dlarray(np.asarray(x)[None], "U" + x.format)),
        ]
        for axis, label in enumerate(layout.format):
            if label != "B":
                more = np.concatenate([np.asarray(x), np.asarray(x).take([0], axis)], axis)
                others.append((f"{label} larger by one", tj.dlarray(more, x.format)))
                others.append((f"{label} of size 1", tj.dlarray(np.asarray(x).take([0], axis), x.format)))
            others.append((f"no {label}", tj.dlarray(np.asarray(x).take([], axis), x.format)))
            less = x.format[:axis] + x.format[axis + 1 :]
            others.append((f"without {label}", tj.dlarray(np.asarray(x).take(0, axis), less)))
        others.append(("bools", tj.dlarray(np.asarray(x) > 0, x.format)))
        others.append(("complex", tj.dlarray(np.asarray(x) * (1 + 1j), x.format)))
        for what, other in others:
            found.append((f"{what}, input {number}", [*inputs[:number], other, *inputs[number + 1 :]]))
    return found


@each_layer
def test_data_that_do_not_fit_give_an_error_that_names_the_layer(layer: Any, layouts: Any) -> None:
    net = network(layer, layouts)
    (name,) = [own.name for own in net.layers]
    wrong = []
    for number, (what, inputs) in enumerate(changed(layouts)):
        function = ("predict", "forward")[number % 2]
        try:
            plain = called(net, function, inputs, acceleration="none")
        except TraceJitError as error:
            if f"{name!r}" not in str(error) or type(layer).__name__ not in str(error):
                wrong.append(f"{what}: {error}")
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {error}")
        else:
            compare(called(net, function, inputs), plain)
    assert not wrong, "\n".join(wrong)


@each_layer
def test_layouts_that_do_not_fit_give_an_error_that_names_the_layer(layer: Any, layouts: Any) -> None:
    empty = tj.dlnetwork([layer], initialize=False)
    (name,) = [own.name for own in empty.layers]
    wrong = []
    for what, inputs in changed(layouts):
        try:
            empty.initialize(*inputs)
        except TraceJitError as error:
            if f"{name!r}" not in str(error):
                wrong.append(f"{what}: {error}")
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


@each_layer
def test_the_number_of_inputs(layer: Any, layouts: Any) -> None:
    net, inputs = network(layer, layouts), data(layouts)
    for given in (inputs[1:], [*inputs, inputs[0]]):
        with pytest.raises(tj.errors.ArgumentError, match=r"the network has \d+ inputs?: "):
            net.predict(*given)


@each_layer
def test_data_may_change_their_number_of_observations(layer: Any, layouts: Any) -> None:
    net, inputs = network(layer, layouts), data(layouts)
    first = [x.format.index("B") for x in inputs]
    one = [tj.dlarray(np.asarray(x).take([0], axis), x.format) for x, axis in zip(inputs, first, strict=True)]
    results = net.predict(*inputs)
    single = net.predict(*one)
    for x, y in zip(
        *[part if isinstance(part, tuple) else (part,) for part in (results, single)], strict=True
    ):
        if "B" in x.format:
            axis = x.format.index("B")
            assert_allclose(np.asarray(x).take([0], axis), y, rtol=1e-4, atol=1e-5)
        else:
            assert_array_equal(x, y)
