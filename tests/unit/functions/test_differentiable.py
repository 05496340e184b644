# SPDX-License-Identifier: BSD-3-Clause
"""DifferentiableFunction: what forward and backward get, what they may return, and the gradients."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError, GradientError

RNG = np.random.default_rng(7)


class Mixed(tj.DifferentiableFunction):
    """Two outputs of two inputs: a product with broadcasting, and a sine; everything that backward may get is noted."""

    def __init__(self, inputs=True, outputs=True, memory=1):
        super().__init__(
            2, save_inputs_for_backward=inputs, save_outputs_for_backward=outputs, num_memory_values=memory
        )
        self.got = []

    def forward(self, x, w):
        assert type(x) is np.ndarray and type(w) is np.ndarray
        self.x, self.w = x, w  # kept: they stay as they are
        return (x * w, np.sin(x), *[np.cos(x), x.size][: self.num_memory_values])

    def backward(self, dy, dz, need, *saved):
        self.got.append((need, len(saved)))
        x, w = saved[:2] if self.save_inputs_for_backward else (self.x, self.w)
        if self.save_outputs_for_backward:
            at = 2 * self.save_inputs_for_backward
            assert np.array_equal(saved[at], x * w) and np.array_equal(saved[at + 1], np.sin(x))
        cos = saved[-self.num_memory_values] if self.num_memory_values else np.cos(x)
        return dy * w + dz * cos if need[0] else None, (dy * x).sum(0) if need[1] else None


def composed(x, w):
    return x * w, tj.sin(x)


def losses(function, wanted):
    def fun(x, w):
        y, z = function(x * 2, tj.exp(w))
        loss = (y * y).sum() + (z * x).sum()
        return loss, tj.dlgradient(loss, *[(x, w)[i] for i in wanted])

    return fun


@pytest.mark.parametrize("wanted", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("saved", [*itertools.product((False, True), (False, True), (0, 1, 2))])
def test_gradients_are_those_of_the_composition(saved, wanted):
    function = Mixed(*saved)
    x, w = tj.dlarray(RNG.standard_normal((3, 4)), "CB"), tj.dlarray(RNG.standard_normal(4))
    expected = tj.dlfeval(losses(composed, wanted), tj.stripdims(x), w)
    fun = losses(function, wanted)
    accelerated = tj.dlaccelerate(fun)
    for call in (lambda: tj.dlfeval(fun, x, w), *[lambda: accelerated(x, w)] * 4):
        function.got.clear()
        loss, gradients = call()
        assert np.allclose(loss, expected[0])
        for found, right in zip(
            *[g if len(wanted) > 1 else (g,) for g in (gradients, expected[1])], strict=True
        ):
            assert np.allclose(np.asarray(found), np.asarray(right))
        parts = 2 * saved[0] + 2 * saved[1] + saved[2]
        assert function.got == [((0 in wanted, 1 in wanted), parts)]
    assert accelerated.stats.hits == 2


def test_formats_are_stripped_and_numbers_are_arrays():
    class Add(tj.DifferentiableFunction):
        def forward(self, x, y):
            return x + y

    found = Add()(tj.dlarray(np.ones((2, 3)), "CB"), 2)
    assert found.format is None and found.tolist() == [[3.0] * 3] * 2
    assert type(Add()(1, 2)) is tj.dlarray


class Keeps(tj.DifferentiableFunction):
    """Returns its input, and keeps what it got."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        self.kept += [x, x[1:]]
        return x

    def backward(self, dy, need):
        return dy


def test_what_is_kept_and_what_is_returned_share_no_memory():
    keeps = Keeps()

    @tj.dlaccelerate
    def fun(x):
        return keeps(x * 2), x

    results = [fun(np.full(3, float(i)))[0] for i in range(6)]
    for i in range(6):
        assert results[i].tolist() == [2.0 * i] * 3
        assert keeps.kept[2 * i].tolist() == [2.0 * i] * 3 and keeps.kept[2 * i + 1].tolist() == [2.0 * i] * 2
    x = tj.dlarray(np.ones(3))
    same = keeps(x)
    same[0] = 5.0
    assert x.tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="read-only"):
        keeps.kept[-2][0] = 1.0


def test_attributes_are_read_at_each_call_and_the_instance_is_guarded():
    class Scale(tj.DifferentiableFunction):
        def __init__(self, by):
            super().__init__()
            self.by = by
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.by

        def backward(self, dy, need):
            return dy * self.by

    holder = {"scale": Scale(2.0)}

    @tj.dlaccelerate
    def slope(x):
        return tj.dlgradient((holder["scale"](x) ** 2).sum(), x)

    def right(by):
        before = holder["scale"].calls
        found = slope(np.ones(2)).tolist()
        assert holder["scale"].calls == before + 1
        return found == [2 * by * by] * 2

    assert all(right(2.0) for _ in range(4))
    assert slope.stats.hits == 2
    holder["scale"].by = 3.0
    assert right(3.0)
    assert slope.stats.hits == 3
    holder["scale"] = Scale(5.0)
    assert all(right(5.0) for _ in range(4))
    for other in (copy.copy(holder["scale"]), copy.deepcopy(holder["scale"])):
        other.by = 7.0
        holder["scale"] = other
        assert all(right(7.0) for _ in range(3))


class Plain(tj.DifferentiableFunction):
    by = 2.0

    def forward(self, x):
        return x * self.by

    def backward(self, dy, need):
        return dy * self.by


def test_pickles():
    function = Plain()
    function(np.ones(2))
    again = pickle.loads(pickle.dumps(function))
    again.by = 3.0
    assert tj.dlfeval(lambda x: tj.dlgradient(again(x).sum(), x), np.ones(2)).tolist() == [3.0, 3.0]
    assert function(np.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_dtypes(dtype):
    class Count(tj.DifferentiableFunction):
        def forward(self, x, n):
            return x * 2, np.asarray(n.sum())

        def backward(self, dy, dn, need, *_):
            assert need == (True, False)
            return dy.astype(np.float64) * 2, None

    count = Count(2)
    n = np.ones(3, dtype)

    @tj.dlaccelerate
    def fun(x):
        y, total = count(x, n if dtype in ("int32", "bool") else n.astype("int64"))
        return tj.dlgradient(y.sum(), x), total

    for _ in range(3):
        slope, total = fun(np.ones(2, np.float32))
        assert slope.dtype == np.float32 and slope.tolist() == [2.0, 2.0] and total.item() == 3


def test_results_of_another_size_are_recorded_again():
    class Positive(tj.DifferentiableFunction):
        def forward(self, x):
            return x[x > 0]

    positive = Positive()
    fun = tj.dlaccelerate(lambda x: positive(x) * 2)
    with pytest.warns(tj.TraceJitWarning) as caught:
        for k in (2, 2, 2, 3, 1):
            x = np.full(4, -1.0)
            x[:k] = 1.0
            assert fun(x).tolist() == [2.0] * k
    assert "operation 1, Positive, gave 2 float64, now gives 3 float64 at" in str(caught[0].message)
    assert "It has been recorded again. Likely cause: values decide its dtype or its size. Let" in str(
        caught[0].message
    )


def test_an_object_that_is_made_in_each_call():
    class Twice(tj.DifferentiableFunction):
        def forward(self, x):
            return 2 * x

    fun = tj.dlaccelerate(lambda x: Twice()(x))
    fun(np.ones(2))
    with pytest.warns(tj.NotAcceleratedWarning, match="operation 1, Twice, was that of another object at"):
        assert fun(np.ones(2)).tolist() == [2.0, 2.0]


def test_errors_that_the_code_handles():
    class Root(tj.DifferentiableFunction):
        def forward(self, x):
            if x.min() < 0:
                raise ValueError("negative")
            return np.sqrt(x)

    root = Root()

    def careful(x):
        try:
            return root(x)
        except ValueError:
            return x * 0

    fun = tj.dlaccelerate(careful)
    for _ in range(3):
        assert fun(np.full(2, 4.0)).tolist() == [2.0, 2.0]
    with pytest.warns(tj.ChangedTraceWarning):
        assert fun(np.full(2, -4.0)).tolist() == [0.0, 0.0]


def test_second_derivatives_are_refused():
    def curvature(x):
        slope = tj.dlgradient((Plain()(x) ** 2).sum(), x)
        return tj.dlgradient(slope.sum(), x)

    with pytest.raises(GradientError, match="Plain: backward is Python code"):
        tj.dlfeval(curvature, np.ones(2))


def test_a_loop_calls_one_instance_several_times():
    plain = Plain()

    @tj.dlaccelerate
    def fun(x):
        y = x
        for _ in range(4):
            y = plain(y) + 1
        return y, tj.dlgradient(y.sum(), x)

    for _ in range(4):
        y, slope = fun(np.ones(3))
        assert y.tolist() == [31.0] * 3 and slope.tolist() == [16.0] * 3
    assert fun.stats.hits == 2
    assert fun.source().count("def Plain_host") == 1


def test_without_inputs():
    with pytest.raises(ArgumentError, match="without inputs"):
        Plain()()


def test_complex_numbers():
    class Turn(tj.DifferentiableFunction):
        def forward(self, x):
            return x * 1j

        def backward(self, dy, need):
            return dy * -1j

    turn = Turn()

    def slope(function):
        return lambda x: tj.dlgradient((abs(function(x * (1 + 2j)) + x) ** 2).sum(), x)

    for x in (np.linspace(0.5, 2.0, 4), np.linspace(0.5, 2.0, 4) * (1 - 1j)):
        expected = tj.dlfeval(slope(lambda x: x * 1j), tj.dlarray(x))
        fun = tj.dlaccelerate(slope(turn))
        for _ in range(4):
            found = fun(tj.dlarray(x))
            assert found.dtype == expected.dtype and np.allclose(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize(
    "derive",
    [
        lambda f, x: tj.jvp(f, (x,), (np.ones(3),)),
        tj.jacobian,
        lambda f, x: tj.hessian(lambda x: (f(x) ** 2).sum(), x),
    ],
    ids=["jvp", "jacobian", "hessian"],
)
def test_derivatives_of_other_kinds_are_refused(derive):
    with pytest.raises(GradientError, match="Plain: backward is Python code"):
        derive(Plain(), np.ones(3))


def test_what_forward_changes_is_changed_once_by_replays():
    """A replay calls it, so that what it counts is no assignment of the recording."""
    counts = {"forward": 0, "step": 0}

    class Twice(tj.DifferentiableFunction):
        last = 0.0

        def forward(self, x):
            counts["forward"] += 1
            self.last = float(x[0])
            return 2 * x

    twice = Twice()

    @tj.dlaccelerate
    def step(x):
        counts["step"] += 1
        return twice(x) + 1

    for call in range(1, 8):
        assert step(np.full(2, float(call))).tolist() == [2.0 * call + 1] * 2
        assert counts == {"forward": call, "step": call} and twice.last == call
    assert step.stats.hits == 5


def test_a_number_that_forward_and_the_recorded_code_change_is_not_replayed():
    counts = {"calls": 0}

    class Twice(tj.DifferentiableFunction):
        def forward(self, x):
            counts["calls"] += 1
            return 2 * x

    twice = Twice()

    @tj.dlaccelerate
    def step(x):
        counts["calls"] += 10
        return twice(x)

    with pytest.warns(tj.NotAcceleratedWarning, match="what replays change in two ways"):
        for call in range(1, 6):
            step(np.ones(2))
            assert counts["calls"] == 11 * call
