# SPDX-License-Identifier: BSD-3-Clause
"""Parts of arrays by numbers that vary are what NumPy gives, and replay without a new trace for each number."""

import numpy as np
import pytest
from effort import sweep
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlgradient, tree

A = np.arange(40.0).reshape(10, 4)
EVERY = range(-14, 14)
ROWS = [0, 1, 2, 3, 4, -1, -10, 9, 10, -11, 5, 6]
COLUMNS = [0, 1, 2, 3, -1, -2, 4, -5, 2, 1]
PAIRS = [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2), (6, 0), (-2, -2), (3, 3), (4, -3), (9, 9), (1, 2)]


def outcome(fun, *args):
    """Return the arrays that a call gives, or whether an index was out of range."""
    try:
        leaves, _ = tree.flatten(fun(*args))
    except IndexError:
        return "IndexError"
    return [np.array(leaf) for leaf in leaves]


def follow(fun, numbers, *arrays, kind=dlarray, **options):
    """Compare calls with numbers in turn with NumPy; the function may write into its arguments."""
    accelerated = dlaccelerate(fun, audit=False, **options)
    for number in numbers:
        number = number if type(number) is tuple else (number,)
        given, own = [kind(a.copy()) for a in arrays], [a.copy() for a in arrays]
        found, expected = outcome(accelerated, *given, *number), outcome(fun, *own, *number)
        assert type(found) is type(expected) and len(found) == len(expected)
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(have, want, strict=True)
        for have, want in zip(given, own, strict=True):
            if expected != "IndexError":  # what was written before the error, NumPy has written
                np.testing.assert_array_equal(np.array(have), want, strict=True)
    assert not accelerated.stats.uncompiled
    return accelerated


class TestRead:
    @pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.int8])
    def test_a_row(self, kind):
        fun = follow(lambda x, i: x[i] * 2, [kind(i) for i in ROWS], A)
        assert (fun.stats.traces, fun.stats.hits) == (4, 6)  # the calls that raise are none

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("fun", "sizes"),
        [
            (lambda x, i: x[i : i + 3] * 2, 4), (lambda x, i: x[i : i + 6 : 2] * 2, 4),
            (lambda x, i: x[i - 2 : 2 * i], 0),
            (lambda x, i: x[i : i + 1] + 1, 2), (lambda x, i: x[i + 4 : i : 1], 0),
            (lambda x, i: x[i : i + 100 : 3], 0),
        ],
    )  # fmt: skip
    def test_a_window(self, fun, sizes):
        """Clipped at both ends, with bounds that count from the end; each size has a trace."""
        accelerated = follow(fun, [*EVERY, *EVERY], A, max_variants=50)
        assert sizes == 0 or accelerated.stats.kept == sizes + 2  # two by value
        assert accelerated.stats.hits >= 25

    @pytest.mark.parametrize(
        "fun",
        [
            lambda x, i: x[..., i] + x[..., None, i].sum(), lambda x, i: x[None, :, i, None], lambda x, i: x[1:3, i],
            lambda x, i: x[:4, i] * x[i], lambda x, i: x[i][i], lambda x, i: x[i, i], lambda x, i: x[::-1, i],
            lambda x, i: x[2, ..., i : i + 1], lambda x, i: x.T[i], lambda x, i: x[i : i + 2][0],
            lambda x, i: x[i - 1, 0],
        ],
    )  # fmt: skip
    def test_beside_other_entries(self, fun):
        assert follow(fun, [*COLUMNS, *COLUMNS], A).stats.hits >= 8

    @pytest.mark.parametrize("end", [(), (1,), (..., 1)])
    def test_one_element_is_a_number(self, end):
        """It shares no memory, in the recording either."""

        def fun(x, i):
            y = x[(i, *end)]
            y += 1
            z = x[(i, *end)]
            x[(i, *end)] = 7.0
            return y, z, x.copy(), x[(i, *end)]

        for array in (A, A[:, 0]):
            if array.ndim > len(end):
                assert follow(fun, [*range(5), 0, 5, 6], array).stats.hits == 4

    def test_one_element_is_an_array_of_numpy(self):
        accelerated = dlaccelerate(lambda x, i: x[i])
        assert [np.asarray(accelerated(A[:, 0], i)).shape for i in range(6)] == 6 * [()]

    def test_two_numbers(self):
        assert follow(lambda x, i, j: (x[i, j : j + 1], x[i : i + 1, j]), PAIRS * 2, A).stats.hits >= 8
        assert follow(lambda x, i, j: x[i:j], [(i, i + 3) for i in range(7)], A).stats.hits == 3

    def test_beside_index_arrays(self):
        places = np.array([2, 0, 1])
        fun = follow(
            lambda x, p, i: (x[i, p], x[p, i], x[i, :, None], x[p][i]), [0, 1, 2, -1, -2, 1], A, places
        )
        assert fun.stats.hits == 2

    def test_sizes_that_depend_on_the_number_select_by_value(self):
        for fun in (
            lambda x, i: x[:i],
            lambda x, i: x[i:],
            lambda x, i: x[i : i + 4 : i],
            lambda x, i: x[i:8],
        ):
            assert follow(fun, [1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5], A).stats.hits == 2

    def test_errors(self):
        for fun in (
            lambda x, i: x[i, i, i],
            lambda x, i: x[..., i, ...],
            lambda x, i: x[i, 7],
            lambda x, i: x[4:9][i],
        ):
            follow(fun, [5, 6, 7, 8, 5, 6], A)
        accelerated = dlaccelerate(lambda x, i: x[i])
        for i in (1, 2, 3, 4):
            accelerated(A, i)
        with pytest.raises(tj.BoundsError, match="an index is out of range in a replay of take"):
            accelerated(A, 10)
        for i in (0.5, 1.5, 2.5):
            with pytest.raises(tj.ArgumentError, match="is not an index"):
                accelerated(A, i)

    def test_a_guard_comes_before_an_index_out_of_range(self):
        assert (
            follow(lambda x, i: x[i] if i < 10 else x[0], [0, 1, 2, 3, 10, 11, 12, 13, 4], A).stats.hits >= 2
        )

    def test_labels_stay(self):
        fun = dlaccelerate(lambda x, i: (x[i], x[i : i + 2], x[:, i], x[:, i : i + 2]))
        for i in (0, 1, 2, 0, 1, 2):
            formats = [part.format for part in fun(dlarray(A, "BC"), i)]
            assert formats == ["C", "BC", "B", "BC"]

    def test_batches_of_an_epoch(self):
        def step(w, inputs, targets, i):
            x, y = inputs[i : i + 4], targets[i : i + 4]
            loss = ((x @ w - y) ** 2).sum()
            return loss, w - 1e-4 * dlgradient(loss, w)

        targets, w = A @ [1.0, -2.0, 3.0, 0.5], np.zeros(4)
        fun = dlaccelerate(step, audit=False)
        mine = w
        for i in [0, 4, 8] * 10:
            x, y = A[i : i + 4], targets[i : i + 4]
            loss, mine = fun(mine, A, targets, i)
            np.testing.assert_allclose(float(loss), ((x @ w - y) ** 2).sum(), rtol=1e-12)
            w = w - 1e-4 * 2 * (x @ w - y) @ x
            np.testing.assert_allclose(tj.extractdata(mine), w, rtol=1e-9)
        # Two batches by value, and the last one, which is the third: it is shorter.
        assert fun.stats.kept == 3 and fun.stats.hits == 24

    def test_by_a_permutation(self):
        def step(x, order, i):
            return x[order[i : i + 4]].sum(0)

        order = np.random.default_rng(0).permutation(10)
        assert follow(step, [0, 4, 8] * 5, A, order).stats.hits >= 9


class TestWrite:
    """A write through a part reaches the array, and the part sees what is written into the array."""

    def test_a_row(self):
        def fun(x, i):
            x[i] = 7
            return x.sum()

        assert follow(fun, ROWS, A).stats.hits == 6  # the calls that raise are none

    def test_windows(self):
        def fun(x, i):
            x[i : i + 3] += 7
            x[i, 1:3] = 3
            return x * 1

        assert follow(fun, [0, 1, 2, 3, 4, 5, -4, -5, 6], A).stats.hits >= 4

    def test_through_the_part(self):
        def fun(x, i):
            part = x[i : i + 3]
            part *= 2
            part[0] = 5
            part[1:][0, 0] -= 1
            return part

        assert follow(fun, [0, 1, 2, 3, 4, 5, 6, -3, 7], A).stats.hits >= 4

    def test_below_the_part(self):
        def fun(x, i):
            row, column, both = x[i], x[:, i], x[i : i + 2][1]
            x[i] = 0
            x[i + 1, 1] = 5
            x += 1
            return row, column, both

        assert follow(fun, [0, 1, 2, 3, -3, -4, 2, 3], A).stats.hits == 4

    def test_a_swap(self):
        def fun(x, i, j):
            x[i], x[j] = x[j].copy(), x[i].copy()
            x[:, [0, 1]] = x[:, [1, 0]]
            return x[i, j]

        assert follow(fun, [(0, 1), (1, 2), (2, 3), (3, 3), (4, 2), (6, 1), (7, 2)], A).stats.hits == 3

    def test_a_swap_by_views(self):
        def fun(x, i, j):
            x[i], x[j] = x[j], x[i]
            return x.sum()

        follow(fun, [(0, 1), (1, 2), (2, 3), (3, 3), (4, 2), (6, 1), (7, 2)], A)

    def test_what_numpy_copies_is_no_view(self):
        def fun(x, i):
            column = x[:, i]
            folded, turned = column.reshape(5, 2), x[i : i + 2].T.reshape(8)
            folded[0] = 9
            turned[0] = 8
            return column, folded, turned

        follow(fun, [0, 1, 2, 3, 0, 1, 2, 3], A)

    def test_a_buffer_of_the_function(self):
        def fun(x, i):
            out = x * 0
            out[i] = x[i]
            out[i : i + 2][1] += 1
            return out

        assert follow(fun, [0, 1, 2, 3, 4, 5], A).stats.hits >= 2

    def test_gradients(self):
        def fun(x, i):
            def slopes(x):
                y = x * 2
                y[i] = y[i + 1] * x[i]
                part = y[i : i + 3]
                part *= x[i + 1 : i + 4]
                return dlgradient((y**2 * np.arange(6.0)).sum(), x)

            return tj.dlfeval(slopes, x)

        fast = dlaccelerate(fun)
        for i in (0, 1, 2, 0, 1, 2, 2, 2):
            x = np.array([0.5, -1.0, 2.0, 1.5, -0.5, 3.0])
            found = tj.extractdata(fast(dlarray(x), i))

            def loss(x, i=i):
                y = x * 2
                y[i] = y[i + 1] * x[i]
                y[i : i + 3] *= x[i + 1 : i + 4]
                return (y**2 * np.arange(6.0)).sum()

            steps = 1e-6 * np.eye(6)
            np.testing.assert_allclose(
                found, [(loss(x + h) - loss(x - h)) / 2e-6 for h in steps], rtol=1e-6, atol=1e-6
            )
        assert fast.stats.hits == 2


entry = st.sampled_from(
    ["i", "j", "i:i+2", "j:j+3", "i:j", "i:i+4:2", "...", ":", "1", "None", "-1", "1:3", "j-1", "::2"]
)
number = st.integers(-7, 7)
what = st.sampled_from(["read", "write", "add", "through"])


class TestGenerated:
    @settings(max_examples=sweep(40, 2000, sample=3))
    @given(
        st.lists(entry, min_size=1, max_size=4),
        st.lists(st.tuples(what, st.integers(0, 3)), min_size=1, max_size=4),
        st.lists(st.tuples(number, number), min_size=6, max_size=9),
    )  # fmt: skip
    def test_random_keys(self, keys, steps, numbers):
        def fun(x, i, j):
            names = {"i": i, "j": j}
            results = []
            for step, which in steps:
                key = eval(f"slices[{keys[which % len(keys)]}]", {"slices": np.index_exp}, names)
                if step == "read":
                    results.append(x[key] * 1)
                elif step == "write":
                    x[key] = -1.0
                elif step == "add":
                    x[key] += 10.0
                else:
                    part = x[key]
                    part *= 2.0 + which
                    results.append(part)
            return [*results, x.sum()]

        follow(fun, numbers, np.arange(24.0).reshape(4, 2, 3), max_variants=100)
