# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that NumPy makes in a recorded function, and NumPy's functions that write into arrays; NumPy is the oracle."""

import dataclasses
import functools
import pickle
import sys
import warnings

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.record import patches

X = np.array([0.25, 1.5, 3.0])
zeros = np.zeros
array = np.array


def element_by_element(x):
    out = np.zeros(3)
    out[1] = x[0] * 2
    out[0] = 3.0
    return out


def like_the_argument(x):
    out = np.empty_like(x)
    out[:] = x
    out += 1
    return out


def of_an_ndarray(x):
    known = np.arange(3.0)
    out = np.zeros_like(known)
    out[1:] = x[:2]
    other = np.full_like(known, 2.0)
    other *= x
    return out, other


def rotation(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.array([[c, -s], [s, c]]) @ x[:2], np.array([x[1], -x[0]]), np.array([x, [1, 2, 3]], np.float32)


def kalman(x):
    step = np.array([[1.0, 0.1, 0], [0, 1.0, 0], [0, 0, 1]])
    covariance = np.eye(3)
    for _ in range(3):
        covariance = step @ covariance @ step.T + np.diag(x)
    return covariance


def list_of_buffers(x):
    stages = [np.zeros(3) for _ in range(4)]
    for i, stage in enumerate(stages):
        stage[:] = x * (i + 1)
        if i:
            stage += stages[i - 1]
    return stages


def view_of_a_buffer(x):
    table = np.zeros((2, 3))
    row = table[0]
    row[:] = 5
    row[1] = x[0]
    table[1] = table[0] * 2
    column = table.T[2]
    column -= x[:2]
    return table, row, column


def handed_to_a_helper(x):
    def fill(target, value):
        target[1:] = value
        return target[0]

    out = np.ones(4)
    first = fill(out, x)
    return out, first


def steers_python(x):
    counts = np.zeros(3, int)
    counts[1] += 2
    for i in range(counts[1]):
        x = x + counts[i]
    mask = np.zeros(3, bool)
    mask[:2] = True
    weights = np.array([0.5, 2.0])
    if weights[1] > 1:
        x = x * weights[0]
    return x[mask]


def mixed_lists(x):
    return np.stack([1.0, x[0]]), np.concatenate([[1.0], x, [2]]), np.vstack([x, [1, 2, 3]])


def out_arguments(x):
    out = np.ones(3)
    np.add(x, 1, out=out)
    np.multiply(out, 2, out=out, where=x > 0.5)
    total = np.zeros(())
    np.sum(x, out=total)
    both = np.empty((2, 3))
    np.clip(x, 0.5, 2.0, both[0])
    np.concatenate([x[:1], x[1:]], out=both[1])
    return out, total, both


def added_at(x):
    out = np.zeros(4)
    np.add.at(out, [0, 1, 1], x)
    np.subtract.at(out, np.array([3, 3]), x[:2])
    np.add.at(out, slice(1, 3), x[0])
    table = np.zeros((2, 3))
    np.add.at(table, ([0, 0, 1], [1, 1, 2]), x)
    np.add.at(table, table > 1, 1.0)
    return out, table


def copied(x):
    out = np.zeros((2, 3))
    np.copyto(out, x)
    np.copyto(out[1], 7.0, where=x > 1)
    return out


def diagonals(x):
    square, tall, cube = np.zeros((3, 3)), np.zeros((7, 3)), np.zeros((2, 2, 2))
    np.fill_diagonal(square, x)
    np.fill_diagonal(tall, x[0], wrap=True)
    np.fill_diagonal(cube, x[1])
    np.fill_diagonal(square[:2, :2], 4)
    return square, tall, cube


def put_at_places(x):
    table = np.ones((2, 3))
    np.put_along_axis(table, np.array([[1], [2]]), x[:2, None], 1)
    np.put(table, [0, -1], x)
    np.put(table, [7, -9], x, mode="wrap")
    np.put(table, [99], x, mode="clip")
    np.putmask(table, table > 1, x)
    np.place(table, table < 1, x[1:])
    return table


def imported_by_name(x):
    out = zeros((2, 2))
    out[0] = x[:2]
    out[1] = array([x[1], 1.0])
    return out


def with_keywords(x):
    out, half, other = np.zeros(shape=3), np.ones(3, dtype=np.float32), np.full(3, fill_value=x[0])
    out[1:], half[:2] = x[:2], 0.25
    return out, half * 2, other, zeros(shape=2) + x[1], np.array([x[0], 2.0], dtype=np.float64, copy=True)


def in_code_that_python_writes_twice(x):
    while np.array([x[0] - 9.0, x[1]])[0] < 0:
        x = x + 4.0
    try:
        out = x * 2
    finally:
        table = np.zeros(3)
        table[0] = x[2]
    with np.errstate(all="ignore"):
        other = np.ones(2)
        other[1] = x[1]
    return out, table, other


def called_through_a_list(x):
    return [*map(zeros, (2, 3))][1] + x


PROGRAMS = [
    element_by_element, like_the_argument, of_an_ndarray, rotation, kalman, list_of_buffers, view_of_a_buffer,
    handed_to_a_helper, steers_python, imported_by_name, with_keywords,
    in_code_that_python_writes_twice, called_through_a_list, mixed_lists, out_arguments, added_at, copied, diagonals,
    put_at_places,
]  # fmt: skip


def flat(result):
    return [np.array(part) for part in (result if isinstance(result, (tuple, list)) else [result])]


def assert_same(result, expected):
    for have, want in zip(flat(result), flat(expected), strict=True):
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(have, want, rtol=1e-14)


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_does_what_it_does_in_numpy(program):
    accelerated = dlaccelerate(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(dlfeval(program, X), program(X))
        for n in range(4):
            assert_same(accelerated(X + n / 8), program(X + n / 8))
    assert accelerated.stats.hits == 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_numpy_by_differences(program):
    def loss(x):
        return sum(
            (np.sin(part) * np.arange(1.0, part.size + 1).reshape(part.shape)).sum() for part in flatten(x)
        )

    def flatten(x):
        result = program(x)
        return result if isinstance(result, (tuple, list)) else [result]

    (gradient,) = dlfeval(lambda x: (dlgradient(loss(x) + 0 * x.sum(), x),), X)
    step = 1e-6
    differences = [(loss(X + step * row) - loss(X - step * row)) / (2 * step) for row in np.eye(3)]
    if program is rotation:  # part of it is float32
        np.testing.assert_allclose(gradient.tolist(), differences, atol=0.5)
    else:
        np.testing.assert_allclose(gradient.tolist(), differences, rtol=1e-6, atol=1e-8)


def test_numbers_that_vary_fill_a_matrix():
    def program(x, dt):
        return np.array([[1.0, dt], [0.0, 1.0]]) @ x, dt * np.ones(2)

    accelerated = dlaccelerate(program)
    for n in range(8):
        assert_same(accelerated(X[:2], n / 4), program(X[:2], n / 4))
    assert accelerated.stats.hits >= 2


def test_results_that_hold_nothing_traced_are_ndarrays():
    def program(x):
        table = np.zeros(2)
        table[1] = 3.0
        return table, x

    for result in (dlfeval(program, X), *[dlaccelerate(program)(X) for _ in range(3)]):
        assert type(result[0]) is np.ndarray and result[0].tolist() == [0.0, 3.0]


def test_what_is_kept_between_calls_stays_an_ndarray():
    @functools.lru_cache
    def table(n):
        return np.ones(n)

    accelerated = dlaccelerate(lambda x: x * table(3)[::2].sum())
    assert [accelerated(X).tolist() for _ in range(4)] == [(X * 2).tolist()] * 4
    assert type(table(3)) is np.ndarray and accelerated.stats.hits == 2


def test_code_in_c_gets_arrays_of_numpy():
    # PCG64 calls np.asarray and takes the ndarray apart.
    assert isinstance(dlfeval(lambda x: np.random.default_rng(3).normal(), X), float)
    assert dlfeval(lambda x: np.asarray(list(map(np.ones, (2, 3)))[1]).tolist(), X) == [1.0] * 3


@pytest.mark.parametrize(
    "make", [lambda: next(map(np.zeros, [3])), lambda: np.random.default_rng(1).normal(size=3)]
)
def test_an_ndarray_that_the_function_makes_takes_traced_values(make):
    def program(x):
        out = make()
        out[:] = x * 2
        out[0] = x[1]
        return out[1:], np.sqrt(np.abs(out))

    def in_place(x):
        out = make()
        out += x
        np.multiply(out, x, out=out)
        return out.sum()

    for function in (program, in_place):
        assert_same(dlfeval(function, X), function(X))
        accelerated = dlaccelerate(function)
        for n in range(4):
            assert_same(accelerated(X + n), function(X + n))
        assert accelerated.stats.hits == 2


def test_other_dtypes_are_left_to_numpy():
    def program(x):
        return np.zeros(2, complex), np.array(["a", "b"]), np.empty(2, object), np.array(3)

    assert [type(part) for part in dlfeval(program, X)] == [np.ndarray] * 4


def test_functions_of_numpy_that_are_unknown_take_constants():
    def program(x):
        table = np.eye(3)
        table[0] = [1.0, 2.0, 3.0]
        return x @ np.linalg.inv(table), np.logaddexp(table, 1.0)

    assert_same(dlfeval(program, X), program(X))


class TestPatches:
    def test_numpy_is_itself_outside(self):
        before = {name: getattr(np, name) for name in patches._modules[0].names}
        dlfeval(lambda x: dlfeval(lambda y: y + np.zeros(3), x), X)
        with pytest.raises(ZeroDivisionError):
            dlfeval(lambda x: 1 // 0, X)
        assert before == {name: getattr(np, name) for name in patches._modules[0].names}
        assert not any(isinstance(function, patches.Patched) for function in (*before.values(), zeros, array))

    def test_a_patched_function_passes_for_the_original(self):
        seen = dlfeval(lambda x: [np.zeros], X)[0]
        assert seen == np.zeros and hash(seen) == hash(np.zeros) and repr(seen) == repr(np.zeros)
        assert {np.zeros: 1}[seen] == 1 and patches.original(seen) is np.zeros and seen.__name__ == "zeros"
        assert pickle.loads(pickle.dumps(seen)) is np.zeros and seen(2).tolist() == [0.0, 0.0]

    def test_functions_that_take_lists_pass_for_the_originals(self):
        seen = dlfeval(lambda x: [np.sum, np.linalg.norm, np.concat], X)
        for function, own in zip(seen, (np.sum, np.linalg.norm, np.concatenate), strict=True):
            assert function == own and hash(function) == hash(own) and patches.original(function) is own
            assert pickle.loads(pickle.dumps(function)) is own and own is not function

    def test_names_that_another_module_has_imported(self, monkeypatch, tmp_path):
        (tmp_path / "steps_of_users.py").write_text(
            "from numpy import array, dot, zeros\n"
            "from numpy.linalg import norm\n"
            "def run(x, n):\n"
            "    states = zeros((n, 3))\n"
            "    for k in range(n):\n"
            "        states[k] = k * x\n"
            "    return states, array([x[0], 2.0]), dot([x[0], x[1]], [1.0, 2.0]), norm([x[0], x[1]])\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "steps_of_users", raising=False)

        def late(x):
            from steps_of_users import run  # in a recording, at first

            return run(x, 2)

        def known(x):
            return sys.modules["steps_of_users"].run(x, 3)

        for program in (late, known):
            accelerated = dlaccelerate(program)
            for n in range(4):
                assert_same(dlfeval(program, X + n), program(X + n))
                assert_same(accelerated(X + n), program(X + n))
            assert accelerated.stats.hits == 2
            steps = sys.modules["steps_of_users"]
            assert [type(vars(steps)[name]) for name in ("array", "zeros")] == [type(np.zeros)] * 2
        steps.zeros = np.ones  # which nobody puts back
        assert_same(accelerated(X), known(X))
        assert steps.zeros is np.ones
        del sys.modules["steps_of_users"]
        assert_same(dlfeval(lambda x: x + np.zeros(3), X), X)

    def test_what_somebody_else_puts_there_stays(self, monkeypatch):
        own = lambda *args: dlarray([7.0])
        monkeypatch.setattr(np, "zeros", own)
        assert dlfeval(lambda x: np.zeros(3).tolist(), X) == [7.0]
        assert np.zeros is own


@functools.lru_cache
def cosines(n):
    table = np.zeros((n, n))
    for k in range(n):
        table[k] = np.cos(np.arange(n) * k)
    return table


class Weights:
    @functools.cached_property
    def table(self):
        table = np.ones(3)
        table[0] = 2.0
        return table


weights = Weights()


@pytest.mark.parametrize("program", [lambda x: cosines(3) @ x, lambda x: weights.table * x])
def test_what_a_cache_of_functools_keeps_stays_an_ndarray(program):
    cosines.cache_clear()
    accelerated = dlaccelerate(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = [accelerated(X + n) for n in range(4)]
    assert_same(results, [program(X + n) for n in range(4)])
    assert type(cosines(3)) is np.ndarray and accelerated.stats.hits > 0


@dataclasses.dataclass
class State:
    total: object = dataclasses.field(default_factory=lambda: np.zeros(3))


def test_a_function_may_return_a_buffer_at_once():
    def made(n):
        return np.zeros(n), np.ones(n)

    def blank(n):
        return np.empty(n)

    def program(x):
        state, (first, second), third = State(), made(3), blank(3)
        state.total += x
        first[0] = x[1]
        second *= x
        third[:] = x
        return state.total, first, second, third

    assert_same(dlfeval(program, X), program(X))


def test_a_number_may_be_a_buffer():
    def program(x):
        total = np.array(0.0)
        total += x.sum()
        return total

    assert_same(dlfeval(program, X), program(X))


def test_what_numpy_does_with_constants_need_not_be_supported():
    def program(x):
        table = np.ones((3, 3))
        table[0, 1] = 4.0
        np.multiply.at(table, ([0, 0], [1, 1]), 3.0)
        return x * table, np.add.outer(table[0], table[1]), np.sqrt(table, dtype=np.float32), x[range(2)]

    assert_same(dlfeval(program, X), program(X))


def test_a_constant_matrix_stays_one_whatever_the_index():
    def program(x):
        matrix = np.zeros((3, 3))
        matrix[range(3), range(3)] = 2.0
        matrix[0, [1, 2]] = 1
        other = np.eye(3)
        other[other == 0] = 0.25
        np.fill_diagonal(other, 3.0)
        return np.linalg.inv(matrix) @ x, np.linalg.inv(other) @ x

    accelerated = dlaccelerate(program)
    assert_same(dlfeval(program, X), program(X))
    for n in range(4):
        assert_same(accelerated(X + n), program(X + n))
    assert accelerated.stats.hits == 2


TABLE = np.array([1.0, 2.0, 4.0, 8.0])
COUNTS = np.array([1, 2, 4, 8])
LEARNED = tj.dlarray(TABLE)
# What fills an ndarray that NumPy makes unseen with what a buffer has got from captured ndarrays.
INTO_NDARRAYS = {
    "in place": "rows = np.linspace(0, 1, 4)\nrows += c\nreturn rows * x",
    "an element": "rows = np.linspace(0, 1, 4)\nrows[1] = np.sqrt(np.sum(c))\nreturn rows * x",
    "a slice": "rows = np.linspace(0, 1, 4)\nrows[1:] = c[1:]\nreturn rows * x",
    "out": "rows = np.linspace(0, 1, 4)\nnp.multiply(c, 2, out=rows)\nreturn rows * x",
    "integers": "n = np.zeros(4, int)\nn[1:] += COUNTS[1:]\nrows = np.arange(4) * 1\nrows += n\nreturn rows * x",
}


@pytest.mark.parametrize("body", INTO_NDARRAYS.values(), ids=INTO_NDARRAYS)
def test_what_is_computed_of_ndarrays_alone_goes_into_an_ndarray(body):
    """Uncompiled as in accelerated functions, which may have to go on uncompiled."""
    lines = [
        "c = np.zeros(4)",
        "c[:-1] += TABLE[1:] - TABLE[:-1]",
        "c[np.arange(4) > 2] = 3.0",
        *body.split("\n"),
    ]
    names = dict(globals())
    exec("def program(x):\n" + "".join(f"    {line}\n" for line in lines), names)
    program = names["program"]
    x = np.arange(1.0, 5.0)
    accelerated = dlaccelerate(program)
    for n in range(4):
        assert_same(dlfeval(program, x + n), program(x + n))
        assert_same(accelerated(x + n), program(x + n))

    def slope(x):
        return tj.dlgradient(program(x).sum(), x)

    np.testing.assert_allclose(dlfeval(slope, dlarray(x)), program(np.ones(4)))


@pytest.mark.parametrize("value", [lambda x: x, lambda x: LEARNED * x])
@pytest.mark.parametrize("is_kept", [False, True])
def test_what_has_a_derivative_loses_none_in_an_ndarray(value, is_kept):
    """It has one where nobody else can read the ndarray; else the numbers are NumPy's, and a derivative is refused."""
    kept = []

    def program(x):
        c = np.zeros(4)
        c += value(x)
        rows = np.linspace(0, 1, 4)
        if is_kept:
            kept.append(rows)
        rows += c
        return rows

    def total(x):
        return (np.sqrt(program(x)) * x).sum()

    def slope(x):
        return tj.dlgradient(total(x), x)

    x = np.arange(1.0, 5.0)
    assert_same(dlfeval(program, x), np.linspace(0, 1, 4) + tj.extractdata(tj.dlarray(value(x))))
    for run in (lambda x: dlfeval(slope, x), dlaccelerate(slope)):
        if is_kept:
            with pytest.raises(tj.GradientError, match="depends on x was written into the ndarray rows at"):
                run(tj.dlarray(x))
        else:
            shifted = [(total(x + unit) - total(x - unit)) / 2e-6 for unit in 1e-6 * np.eye(4)]
            np.testing.assert_allclose(run(tj.dlarray(x)), [float(part) for part in shifted], rtol=1e-7)


@pytest.mark.parametrize("values", [lambda: LEARNED, lambda: tj.dlarray(TABLE)])
def test_what_depends_on_captured_dlarrays_goes_into_an_ndarray(values):
    def program(x):
        rows = np.linspace(0, 1, 4)
        rows += values()
        return rows * x

    def slope(x):
        return tj.dlgradient(program(x).sum(), LEARNED)

    want = (np.linspace(0, 1, 4) + TABLE) * 2
    assert_same(dlfeval(program, np.full(4, 2.0)), want)
    if values() is LEARNED:
        assert dlfeval(slope, tj.dlarray(np.arange(4.0))).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_an_accelerated_function_that_goes_on_uncompiled_does_what_its_recording_did():
    field = np.zeros(4)
    names = {"np": np, "field": field, "TABLE": TABLE}
    exec("def step():\n    c = np.zeros(4)\n    c[1:] += TABLE[1:]\n    global field\n    field += c", names)
    step = dlaccelerate(names["step"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for _ in range(5):
            step()
    assert field.tolist() == [0.0, 10.0, 20.0, 40.0]
