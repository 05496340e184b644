# SPDX-License-Identifier: BSD-3-Clause
"""Assignments to attributes, items and names: what the state around a function is after each of its calls."""

import collections
import itertools
import types

import numpy as np
import pytest
from assigning_programs import (
    CASES,
    PLACES,
    STATEMENTS,
    VALUES,
    Model,
    assert_close,
    follow,
    generated,
    plain,
)
from effort import sweep

import tracejit as tj

# With ndarrays these take more recordings, or NumPy computes what they assign.
OF_DLARRAYS = {"views", "swap_only", "inplace_then", "counter", "ring", "best", "matrix"}


@pytest.mark.parametrize("name", [*CASES])
def test_dlarrays(name):
    follow(CASES[name], most=6 if name == "best" else 3)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_DLARRAYS])
def test_ndarrays_become_dlarrays(name):
    """The first call finds ndarrays, later calls the dlarrays that it left; nothing is retraced after that."""
    follow(CASES[name], kind=lambda data: data, most=4)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*CASES])
def test_inside_an_evaluation(name):
    follow(CASES[name], outer=True, most=6 if name == "best" else 3)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*CASES])
def test_checked(name):
    def checked(function):
        return tj.dlaccelerate(function, check_mode="tolerance")

    step, state = CASES[name](lambda function: function, lambda data: data)
    fast, fast_state = CASES[name](checked, tj.dlarray)
    for n in range(6):
        x = np.arange(3.0) + n
        assert_close(plain(fast(x.copy())), plain(step(x.copy())))
        assert_close(plain(fast_state()), plain(state()))


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*CASES])
def test_uncompiled(name):
    step, state = CASES[name](lambda function: function, lambda data: data)
    fast, fast_state = CASES[name](lambda function: tj.dlaccelerate(function, enabled=False), tj.dlarray)
    for n in range(4):
        x = np.arange(3.0) + n
        assert_close(plain(fast(x.copy())), plain(step(x.copy())))
        assert_close(plain(fast_state()), plain(state()))


GRID = [*itertools.product(PLACES, STATEMENTS)]


@pytest.mark.sampled(by=lambda case: case["place"])
@pytest.mark.parametrize(("place", "statement"), GRID)
def test_generated(place, statement):
    values, number = [*VALUES], GRID.index((place, statement))
    both = "array", values[number % len(values)]
    turn = (number + number // len(STATEMENTS)) % 2
    for chosen in {*sweep(both[turn : turn + 1], both)}:
        follow(generated(place, statement, chosen), calls=9, most=6)


X = np.array([0.5, -1.5, 2.0])


class TestErrors:
    def test_an_error_leaves_the_object_as_it_was(self):
        model = Model(u=tj.dlarray(np.zeros(3)), items={"v": 1.0}, rows=[tj.dlarray(X)])
        before = dict(vars(model)), dict(model.items), [*model.rows]

        def step(x):
            model.u = model.u + x
            model.new = x * 2
            model.items["v"] = x
            model.items["w"] = x
            model.rows[0] = model.u
            raise ValueError("stop")

        fast = tj.dlaccelerate(step)
        for _ in range(3):
            with pytest.raises(ValueError, match="stop"):
                fast(X)
            after = dict(vars(model)), dict(model.items), [*model.rows]
            assert [[*part] for part in after] == [[*part] for part in before]
            assert all(a is b for a, b in zip(after[0].values(), before[0].values(), strict=True))
            assert model.rows[0] is before[2][0]

    def test_an_error_after_replays(self):
        model = Model(u=tj.dlarray(np.zeros(3)))

        @tj.dlaccelerate
        def step(x):
            model.u = model.u + x
            if model.u.sum() > 4.0:
                raise ValueError("stop")
            return model.u

        for _ in range(4):
            step(X)
        u = model.u
        with pytest.raises(ValueError, match="stop"):
            step(X)
        assert model.u is u and u.tolist() == (4 * X).tolist()

    def test_an_object_that_no_replay_can_make(self):
        model = Model(inner=None)

        @tj.dlaccelerate
        def step(x):
            model.inner = Model(u=x * 2)
            return x + 1

        with pytest.warns(
            tj.NotAcceleratedWarning, match="an object that holds arrays of the call to closure model.inner"
        ):
            for n in range(4):
                step(X + n)
                assert model.inner.u.tolist() == (2 * (X + n)).tolist()

    def test_assigned_in_one_of_two_calls(self):
        model, turns = Model(u=tj.dlarray(X)), iter([1, 0] * 10)

        @tj.dlaccelerate
        def step(x):
            if next(turns):
                model.u = x * 2
            return x * 2

        with pytest.warns(tj.NotAcceleratedWarning):
            for n in range(6):
                before = model.u
                step(X + n)
                assert (model.u.tolist() == (2 * (X + n)).tolist()) if n % 2 == 0 else model.u is before


def test_numbers_that_vary():
    model = Model(rate=1.0, history=[])

    @tj.dlaccelerate
    def step(x, rate):
        model.rate = rate * 0.5
        return x * rate

    for n in range(8):
        step(X, 1.0 + n / 8)
        assert type(model.rate) is float and model.rate == (1.0 + n / 8) * 0.5
    assert step.stats.hits > 0


def test_two_keys_of_one_object():
    model = Model(u=tj.dlarray(np.zeros(3)))

    @tj.dlaccelerate
    def step(x, scale):
        model.u = model.u * scale + x.sum()
        return model.u

    expected = np.zeros(3)
    for n in range(12):
        x = np.ones(2 + n % 2)
        expected = expected * (1 + n % 2) + x.sum()
        assert step(x, 1 + n % 2).tolist() == expected.tolist() == model.u.tolist()
    assert step.stats.hits == 8


def test_shapes_that_take_turns():
    """What other traces of a key need is compared with the state before the call."""
    model = Model(a=tj.dlarray(np.zeros(2)), b=tj.dlarray(np.zeros(3)))

    @tj.dlaccelerate
    def step(x):
        model.a, model.b = model.b + x, model.a * 2 + x
        return model.a.sum()

    a, b = np.zeros(2), np.zeros(3)
    for n in range(10):
        a, b = b + n, a * 2 + n
        assert step(np.array([float(n)])).item() == a.sum()
        assert model.b.tolist() == b.tolist()
    assert step.stats.hits >= 5


def test_the_other_method_sees_it():
    class Sim:
        def __init__(self):
            self.u = tj.dlarray(np.zeros(3))

        @tj.dlaccelerate
        def step(self, x):
            self.u = self.u + x
            return self.u.sum()

        @tj.dlaccelerate
        def energy(self):
            return (self.u**2).sum()

    sim = Sim()
    for n in range(1, 7):
        assert sim.step(X).item() == pytest.approx(n * X.sum())
        assert sim.energy().item() == pytest.approx(((n * X) ** 2).sum())
    assert sim.step.stats.hits == sim.energy.stats.hits == 4


def test_results_do_not_share_memory_with_what_is_stored():
    model = Model(u=tj.dlarray(np.zeros(3)))

    @tj.dlaccelerate
    def step(x):
        model.u = model.u + x
        return model.u

    kept = []
    for n in range(1, 7):
        kept.append(step(X))
        assert model.u.tolist() == (n * X).tolist()
    assert [array.tolist() for array in kept] == [(n * X).tolist() for n in range(1, 7)]


def test_what_is_assigned_has_the_labels_of_the_array():
    model = Model(u=None)

    @tj.dlaccelerate
    def step(x):
        model.u = x * 2
        return x

    for _ in range(4):
        step(tj.dlarray(X, "B"))
        assert model.u.format == "B"


def test_a_container_that_holds_one_array_twice():
    model = Model(pair=None)

    @tj.dlaccelerate
    def step(x):
        u = x * 2
        model.pair = (u, [u, 1, "a"], None)
        return x

    for n in range(5):
        step(X + n)
        first, (second, *rest), none = model.pair
        assert (
            first is second and first.tolist() == (2 * (X + n)).tolist() and rest == [1, "a"] and none is None
        )


def test_in_a_function_that_is_accelerated_inside():
    model = Model(u=tj.dlarray(np.zeros(3)))
    inner = tj.dlaccelerate(lambda x: setattr(model, "u", model.u + x))

    @tj.dlaccelerate
    def outer(x):
        inner(x)
        inner(2 * x)
        return model.u * 2

    for n in range(1, 6):
        assert outer(X).tolist() == (6 * n * X).tolist()
        assert model.u.tolist() == (3 * n * X).tolist()
    assert outer.stats.hits == 3


def test_gradients_within_an_evaluation():
    """What a replay stores is on the tape of the evaluation around it."""
    model = Model(u=tj.dlarray(X))
    inner = tj.dlaccelerate(lambda x: setattr(model, "u", model.u * x))

    def loss(x):
        model.u = tj.dlarray(X)
        inner(x)
        inner(x)
        return tj.dlgradient(model.u.sum(), x)

    for n in range(5):
        np.testing.assert_allclose(tj.extractdata(tj.dlfeval(loss, X + n)), 2 * X * (X + n))
    assert inner.stats.hits > 0
    assert model.u.tolist() == (X * (X + 4) ** 2).tolist()


class Keyed(dict):
    pass


@pytest.mark.parametrize(
    "made",
    [
        "collections.deque([y * 2, y], 3)", "types.SimpleNamespace(a=y * 2, b={'c': y})", "Keyed(a=y, b=1)",
        "collections.defaultdict(list, a=y * 2)",
    ],
)  # fmt: skip
def test_containers_that_functions_take_apart_are_assigned_by_each_call(made):
    names = {"np": np, "collections": collections, "types": types, "Keyed": Keyed}
    exec(
        f"def renew(self, x):\n    y = x + self.n\n    self.p = {made}\n    return y.sum()\n"
        "def use(self, x):\n    p = self.p\n"
        "    held = p.values() if isinstance(p, dict) else vars(p).values() if hasattr(p, 'b') else p\n"
        "    return [a * x if hasattr(a, 'shape') else a for a in held]\n",
        names,
    )
    models = []
    for wrap in (lambda function: function, tj.dlaccelerate):
        model = type("Kind", (), {name: wrap(names[name]) for name in ("renew", "use")})()
        model.found, model.n = [], 1.0
        for call in range(6):
            model.renew(X + call)
            model.found.append([type(model.p), tj.tree.leaves(model.use(np.array(2.0 + call)))])
            model.p, model.kept = None, model.p
        models.append(model)
    for have, want in zip(models[1].found, models[0].found, strict=True):
        assert have[0] is want[0]
        assert [np.asarray(a).tolist() for a in have[1]] == [np.asarray(a).tolist() for a in want[1]]
    assert models[1].renew.stats.hits == 4
    assert getattr(models[1].kept, "default_factory", None) is getattr(
        models[0].kept, "default_factory", None
    )
    assert getattr(models[1].kept, "maxlen", None) == getattr(models[0].kept, "maxlen", None)


@pytest.mark.parametrize("zeros", [np.zeros, tj.zeros, lambda n: [tj.zeros(n), {"a": np.ones(n)}]])
def test_constant_arrays_that_are_only_assigned(zeros):
    """Each call assigns new ones, which the code around it may write."""
    model = Model(u=None)

    @tj.dlaccelerate
    def reset(x):
        model.u = zeros(3)
        return x * 2

    for _ in range(5):
        reset(X)
        first = model.u[0] if isinstance(model.u, list) else model.u
        assert first.tolist() == [0.0] * 3
        first += 1.0
    assert reset.stats.hits == 3


def test_a_trace_that_is_replayed_at_once_and_audited():
    model = Model(u=tj.dlarray(np.zeros(3)))

    def step(x):
        model.u = model.u * 0.5 + x
        return model.u

    expected = np.zeros(3)
    for fast, hits in ((tj.dlaccelerate(step, confirm=0), 67), (tj.dlaccelerate(step), 66)):
        for n in range(70):
            expected = expected * 0.5 + (X + n)
            np.testing.assert_allclose(tj.extractdata(fast(X + n)), expected, rtol=1e-12)
            np.testing.assert_allclose(tj.extractdata(model.u), expected, rtol=1e-12)
        assert fast.stats.hits == hits


# What a method makes of a buffer, of which no argument and no attribute is a part.
MADE = [
    "y.copy()", "np.copy(y)", "np.array(y.T)", "y.T.copy()", "y[0].copy()", "np.ascontiguousarray(y.T)", "y.flatten()",
    "y.copy('F')", "[y.copy(), y[0]]", "y[::-1].copy()", "y.T", "y[0]", "y.reshape(3, 2)", "y * 2", "y.sum(0)",
    "y[0, 1]", "np.zeros(()).copy()", "np.linspace(0, 1, 4)[1:]", "np.broadcast_to(y, (2, 2, 3))",
    "tj.dlarray(y.T)", "y[None]",
]  # fmt: skip


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("fill", "takes"), [("y[0, 1] = 5.0", False), ("y[0, 1] = 5.0", True), ("y += x", True)]
)
def test_what_is_made_of_a_buffer_is_assigned_by_each_call(made, fill, takes):
    names = {"np": np, "tj": tj}
    exec(
        f"def reset(self{', x' if takes else ''}):\n    y = np.ones((2, 3))\n    {fill}\n    self.p = {made}\n",
        names,
    )
    mine, theirs = type("Mine", (), {"reset": tj.dlaccelerate(names["reset"])})(), Model()
    for n in range(6):
        given = [np.arange(3.0) + n] if takes else []
        mine.reset(*given)
        names["reset"](theirs, *given)
        for have, want in zip(tj.tree.leaves(mine.p), tj.tree.leaves(theirs.p), strict=True):
            np.testing.assert_array_equal(np.asarray(have), want)
        mine.p = None  # which a replay has to replace
    assert mine.reset.stats.hits >= 3


@pytest.mark.parametrize(
    "made", ["Model()", "{1, 2}", "collections.UserList([1])", "np.random.default_rng(0)"]
)
def test_a_new_object_is_assigned_by_each_call(made):
    """No replay can make it: the function runs uncompiled. An object that is made once costs a recording."""
    names = {"np": np, "collections": collections, "Model": Model}
    exec(f"def renew(self, x):\n    self.p = {made}\n    return x * 2\n", names)
    exec(f"def once(self, x):\n    if self.q is None: self.q = {made}\n    return x * 2\n", names)
    kind = type("Kind", (), {name: tj.dlaccelerate(names[name]) for name in ("renew", "once")})
    model = kind()
    model.q = None
    with pytest.warns(
        tj.NotAcceleratedWarning, match=r"it assigns an object that it makes to self\.p at .*Assign it out"
    ):
        for n in range(6):
            assert model.renew(np.full(2, float(n))).tolist() == [2.0 * n] * 2
            assert model.p is not None
            model.p = None
    for n in range(6):
        model.once(np.full(2, float(n)))
    assert model.once.stats.hits == 3
