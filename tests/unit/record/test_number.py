# SPDX-License-Identifier: BSD-3-Clause
"""A number argument that takes a third value is an input of the trace, and behaves as Python's number does."""

# ruff: noqa: E711 - each case is a function of its own, of the same look

import copy
import json
import math
import operator
import pickle
import warnings

import numpy as np
import pytest
from counted_runs import counts_runs
from effort import sweep
from hypothesis import given, settings
from hypothesis import strategies as st
from numbers_in_turn import FLOATS, X, assert_same, follow

import tracejit as tj
from tracejit import RetraceWarning, dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.record.number import Number

N = dlarray(np.array([3, -4], np.int32))


INTEGERS = [1, 2, 3, 4, 5, 6, 7, 8]


class TestBecomesAnInput:
    def test_at_the_third_value(self):
        fun = follow(lambda x, k: x * k, FLOATS, X)
        # Two by value, then recorded with an input, and confirmed.
        assert (fun.stats.traces, fun.stats.hits) == (4, 4)
        assert "k: a float that varies" in fun.explain()

    def test_at_once_for_arrays_of_other_sizes(self):
        fun = dlaccelerate(lambda x, k: x * k)
        sizes = [4, 4, 4, 4, 4, 3, 3, 3, 4, 5, 5, 5]
        for n, size in enumerate(sizes):
            np.testing.assert_array_equal(fun(np.ones(size), n), np.full(size, n))
        # Two by value, and for each size one with an input, and one that confirms it.
        assert (fun.stats.traces, fun.stats.hits) == (8, 4)
        assert fun.stats.misses["signature"] == 5

    def test_unless_one_of_these_needs_the_number(self):
        fun = dlaccelerate(lambda x, k: x * (len(range(k)) if len(x) == 3 else k))
        for size in (4, 4, 4, 4, 3, 3, 3, 3, 5, 5):
            k = fun.stats.calls + 1
            np.testing.assert_allclose(fun(np.ones(size), k), np.full(size, k), rtol=1e-15)
        assert "k: 10" in fun.explain()

    def test_and_two_values_stay_what_they_are(self):
        fun = follow(lambda x, k: x * k, [0.5, 0.25] * 5, X)
        assert fun.occupancy == 4.0 and "that varies" not in fun.explain()

    def test_each_number_by_itself(self):
        fun = follow(lambda x, a, b: x * a + b, [(0.1 * n, 2) for n in range(8)], X)
        assert "a: a float that varies, b: 2" in fun.explain()

    def test_in_containers_and_keywords(self):
        fun = dlaccelerate(lambda x, options, *, rate=1.0: x * options["k"] + rate)
        for n in range(8):
            found = fun(X, {"k": n}, rate=0.1 * n)
            assert found.dtype == np.float32
            np.testing.assert_allclose(
                tj.extractdata(found), tj.extractdata(X) * n + np.float32(0.1 * n), rtol=1e-6
            )
        assert fun.stats.hits > 2

    def test_integers_that_fit_no_64_bits_select_by_value(self):
        follow(lambda x, k: (x, k + 1), [1, 2, 3, 4, 2**70, -(2**70), 5, 2**63 - 1, -(2**63)], X)

    def test_booleans_do_not_vary(self):
        fun = follow(lambda x, k: (x, k), [True, False, True, False, True], X)
        assert fun.occupancy == 4.0

    def test_the_name_of_the_key_and_clear_cache(self):
        fun = follow(lambda x, k: x * k, FLOATS, X)
        fun.clear_cache()
        fun(X, 0.3)
        assert "k: 0.3" in fun.explain()

    def test_within_an_evaluation(self):
        fun = dlaccelerate(lambda x, k: (x**2 * k, k * 2))
        for k in FLOATS:
            grad, double = dlfeval(lambda x, k=k: (dlgradient(fun(x, k)[0].sum(), x), fun(x, k)[1]), X)
            np.testing.assert_allclose(tj.extractdata(grad), 2 * k * tj.extractdata(X), rtol=1e-6)
            assert type(double) is float and double == 2 * k

    def test_a_training_loop(self):
        def step(w, mean, square, iteration, rate):
            w, mean, square = tj.adamupdate(w, w * 2, mean, square, iteration, rate)
            return w, mean, square, iteration + 1

        accelerated = dlaccelerate(step)
        mine = theirs = (X, X * 0, X * 0, 1)
        for n in range(12):
            mine, theirs = accelerated(*mine, 0.1 / (n + 1)), dlfeval(step, *theirs, 0.1 / (n + 1))
            assert_same(mine, theirs)
        assert accelerated.stats.hits >= 6


class TestPromotion:
    @pytest.mark.sampled
    @pytest.mark.parametrize("numbers", [FLOATS, INTEGERS])
    @pytest.mark.parametrize("array", [X, N, dlarray([1.0, 2.0]), dlarray([True, False])])
    @pytest.mark.parametrize(
        "op",
        [operator.add, operator.sub, operator.mul, operator.truediv, np.maximum, operator.lt, operator.eq],
    )
    def test_with_arrays(self, numbers, array, op):
        if op is operator.sub and array.dtype == bool:
            pytest.skip("not defined")
        fun = follow(lambda x, k: (op(x, k), op(k, x)), numbers, array)
        assert fun.stats.hits > 0 or array is N

    def test_small_integers_overflow_as_numpy_says(self):
        small = dlarray(np.array([1, 2], np.int8))
        follow(lambda x, k: x + k, [1, 2, 3, 4, 100, 1000, -1000, 5], small)

    @pytest.mark.parametrize(
        "fun",
        [
            lambda x, k: np.where(x > 0, k, 0.0) * x,
            lambda x, k: tj.clip(x, -k, k),
            lambda x, k: tj.leakyrelu(x, abs(k)),
            lambda x, k: tj.full_like(x, k),
            lambda x, k: x**k if k > 0 else x,
            lambda x, k: abs(x) ** k,
            lambda x, k: k * x @ x,
            lambda x, k: tj.exp(k) * x,
            lambda x, k: np.multiply(k, x),
            lambda x, k: x * (k * np.ones(2, np.float32)),
            lambda x, k: dlarray(k) * x,
            lambda x, k: tj.dlgradient((x**2 * k).sum(), x) if False else x * k,
            lambda x, k: tj.stack([x[0], x[1] * k]),
        ],
    )
    def test_in_functions(self, fun):
        follow(fun, FLOATS, X)

    def test_an_element_is_set(self):
        def fun(x, k):
            x[0] = k
            return x

        follow(fun, FLOATS, X)


class TestPythonArithmetic:
    @pytest.mark.sampled(by=lambda case: type(case["numbers"][0]))
    @pytest.mark.parametrize("numbers", [FLOATS, INTEGERS])
    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: k + 1, lambda k: 1 - k, lambda k: k * 2.5, lambda k: 1 / k, lambda k: k / 3, lambda k: k // 2,
            lambda k: 7 // k, lambda k: k % 2, lambda k: 7.5 % k, lambda k: divmod(k, 2), lambda k: divmod(7, k),
            lambda k: k**2, lambda k: 0.9**k, lambda k: 2**k, lambda k: k**0.5, lambda k: -k, lambda k: +k, abs,
            lambda k: 1 - 0.9**k, lambda k: 0.1 / (1 + k * 0.5), lambda k: math.sqrt(abs(k)), lambda k: round(k, 1),
            lambda k: int(k), lambda k: float(k), lambda k: complex(k), lambda k: bool(k), lambda k: str(k), repr,
            lambda k: f"{k:.3f}", lambda k: hash(k), lambda k: k == 2, lambda k: k != 2, lambda k: k < 1,
            lambda k: k >= 1, lambda k: 0.5 if k > 0.4 else k, lambda k: min(k, 1), lambda k: max(k, 0.3),
            lambda k: k == None,
            lambda k: k in (1, 2), lambda k: np.sqrt(abs(k)), lambda k: np.exp(-k), lambda k: 2 * np.log(abs(k)) + 1,
            lambda k: np.sqrt(abs(k)) / 0 if k < 0 else np.sqrt(k) ** 2, lambda k: np.arctan2(k, 1),
            lambda k: np.float32(k), lambda k: k.real, lambda k: k.conjugate() + 1,
            lambda k: isinstance(k, float), lambda k: isinstance(k, int), lambda k: copy.copy(k), copy.deepcopy,
            lambda k: pickle.loads(pickle.dumps(k)), lambda k: pow(k, 2), lambda k: math.floor(k), lambda k: k * True,
            lambda k: [k] * 2, lambda k: sum([k, k, 1.0]), lambda k: k * np.float64(2), lambda k: k / np.float64(4),
            lambda k: math.trunc(k), lambda k: k if k else 1, lambda k: -k % 3, lambda k: k < np.float32(1),
        ],
    )  # fmt: skip
    def test_results(self, numbers, fun):
        follow(lambda x, k: (x, fun(k)), numbers, X)

    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: range(k), lambda k: [0] * k, lambda k: list(range(9))[k], lambda k: k & 3, lambda k: 3 | k,
            lambda k: k ^ 1, lambda k: k << 2, lambda k: 1 << k, lambda k: k >> 1, lambda k: ~k, lambda k: 5 & k,
            lambda k: k | 1, lambda k: 3 ^ k, lambda k: 64 >> k, lambda k: pow(k, 3, 5), lambda k: math.factorial(k),
            lambda k: operator.index(k), lambda k: k.bit_length(), lambda k: "ab" * k, lambda k: k**-1,
            lambda k: np.sqrt(k),
        ],
    )  # fmt: skip
    def test_integers(self, fun):
        follow(lambda x, k: (x, fun(k)), INTEGERS, X)

    @pytest.mark.sampled(by=lambda case: type(case["numbers"][0]))
    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: 1 / k, lambda k: 1 // k, lambda k: 1 % k, lambda k: k**-1, lambda k: k**0.5, lambda k: 1e200**k,
            lambda k: k**400, lambda k: math.sqrt(k), lambda k: k * 2**60, lambda k: k * 10**400, lambda k: k / 10**400,
            lambda k: k + "a", lambda k: k < "a", lambda k: k + 2**62, lambda k: k / (2**60 + 1),
            lambda k: k < 2**62 + 1,
            lambda k: k @ k, lambda k: k[0], lambda k: len(k), lambda k: range(k),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize(
        "numbers", [[1.0, 2.0, 3.0, 0.0, -0.0, -4.0, 1e300, -1e300, math.inf, -math.inf, math.nan, 5.0],
                    [1, 2, 3, 0, -4, 2**62, -(2**62), 2**31, 2**53 + 1, 10**30, 2**63, 5]],
    )  # fmt: skip
    def test_errors_and_edges(self, numbers, fun):
        follow(lambda x, k: (x, fun(k)), numbers, X)

    @settings(max_examples=sweep(15, 100, sample=5))
    @given(
        st.lists(st.sampled_from("+-*/%p<n12m"), min_size=1, max_size=6),
        st.lists(
            st.tuples(st.integers(-5, 5), st.sampled_from([0.5, -2.0, 3.25, 0.0, 7.0])),
            min_size=6,
            max_size=8,
        ),
    )
    def test_random_expressions(self, steps, numbers):
        def fun(x, i, r):
            a, b = i, r
            for step in steps:
                if step == "+":
                    a, b = a + b, a
                elif step == "-":
                    a = b - a
                elif step == "*":
                    a, b = b, a * b
                elif step == "/":
                    a = b / a if a else b
                elif step == "%":
                    a = a % b if b else a // 3
                elif step == "p":
                    a = abs(a) ** 0.5
                elif step == "<":
                    a, b = (b, a) if a < b else (a, -b)
                elif step == "n":
                    b = -b + 1
                elif step == "1":
                    a = a + i
                elif step == "2":
                    b = 2 * b - r
                else:
                    a = max(a, b, 1)
            return x * a + b, a, b

        follow(fun, numbers, X)


KINDS = [np.float64, np.float32, np.int64, np.int32, np.int8, np.uint8, np.uint64]


def of_kind(kind, numbers=(0.5, 0.25, 2.0, 3.0, -1.5, 0.0, 7.0, 0.1)):
    """Return numbers of NumPy that overflow, wrap around and divide by zero."""
    if np.dtype(kind).kind == "f":
        return [kind(number) for number in numbers]
    return [kind(abs(int(4 * n)) if np.dtype(kind).kind == "u" else int(4 * n)) for n in numbers]


class TestComplex:
    """1j * k is a complex number that is computed from a number which varies."""

    @pytest.mark.sampled(by=lambda case: type(case["numbers"][0]))
    @pytest.mark.parametrize("numbers", [FLOATS, INTEGERS, *map(of_kind, (np.float64, np.float32, np.int64))])
    @pytest.mark.parametrize(
        "fun",
        [
            lambda x, k: x * (1j * k), lambda x, k: x * np.exp(2j * np.pi * k), lambda x, k: np.exp(1j * k * x),
            lambda x, k: x / (k + 1j), lambda x, k: x * -(k - 2j), lambda x, k: x * (1j * k + k).real + (2j * k).imag,
            lambda x, k: x * np.real(np.exp(1j * k)) + np.abs(1j * k), lambda x, k: x * np.conj(1j * k + 1),
            lambda x, k: np.array([1j * k, k]) * x, lambda x, k: np.exp(1j * k * np.arange(2.0)) * x,
            lambda x, k: np.full(2, 1j * k) * x, lambda x, k: np.where(x > 0, 1j * k, x),
            lambda x, k: x * (1j * np.sqrt(abs(k))) * np.float64(2), lambda x, k: x if 1j * k else -x,
            lambda x, k: np.linalg.solve(np.eye(2) + 1j * k * np.diag([1.0, 2.0]), x),
            lambda x, k: x * (2 if isinstance(1j * k, complex) else 3), lambda x, k: x.real.astype(complex) * (k * 1j),
            lambda x, k: sum([1j * k, k, 1.0]) * x,
        ],
    )  # fmt: skip
    def test_is_replayed(self, numbers, fun):
        assert follow(fun, numbers, X).stats.hits >= 2

    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: 1j * k, lambda k: abs(1j * k), lambda k: (1j * k) ** 2, lambda k: (1j * k) ** k,
            lambda k: 1j * k == 0.5j, lambda k: 1j * k < 2, lambda k: int(1j * k), lambda k: float(1j * k),
            lambda k: complex(1j * k, k), lambda k: {1j * k: 2}[1j * k], lambda k: f"{1j * k}", lambda k: str(k - 1j),
            lambda k: 1 / (1j * (k - 2.0)), lambda k: (1j * k) // 2, lambda k: (1j * k) % 2, lambda k: round(1j * k),
            lambda k: (1j * k).conjugate(), lambda k: pickle.loads(pickle.dumps(1j * k)), lambda k: -(1j * k),
        ],
    )  # fmt: skip
    def test_what_needs_the_number_gets_it(self, fun):
        follow(lambda x, k: (x * k, fun(k)), FLOATS, X)

    def test_a_real_array_refuses_it(self):
        def fun(x, k):
            filled = np.zeros(2)
            filled[0] = 1j * k
            return filled * x

        follow(fun, FLOATS, X)

    def test_that_is_kept_is_a_true_number(self):
        kept = []

        def fun(x, k):
            kept.append(1j * k)
            return x * (1j * k)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.LostChangeWarning)
            accelerated = dlaccelerate(fun)
            for k in FLOATS:
                accelerated(X, k)
                assert type(kept[-1]) is complex and kept[-1] == 1j * k


GRIDS = [
    lambda x, k: np.linspace(0, k, 2) * x, lambda x, k: np.linspace(k, k + 1, 2) * x,
    lambda x, k: np.linspace(1, 2, 2) * k * x, lambda x, k: np.linspace(start=k, stop=1, num=2, endpoint=False) * x,
    lambda x, k: [t * x for t in np.linspace(0, k, 2, retstep=True)],
    lambda x, k: np.linspace(0, k, 2, dtype=np.float32) * x, lambda x, k: np.linspace(np.zeros(2), k, 3) @ x,
    lambda x, k: np.linspace([0, k], 1, 3) @ x, lambda x, k: np.logspace(0, k, 2) * x,
    lambda x, k: np.geomspace(0.5 + abs(k), 10, 2) * x, lambda x, k: sum(t * x for t in np.linspace(0, k, 3)),
    lambda x, k: np.meshgrid(np.linspace(0, k, 2), np.arange(2.0))[0] * x,
]  # fmt: skip


class TestGrids:
    """A grid between numbers that vary is traced; NumPy makes any other."""

    @pytest.mark.sampled(by=lambda case: type(case["numbers"][0]))
    @pytest.mark.parametrize("fun", GRIDS)
    @pytest.mark.parametrize("numbers", [FLOATS, INTEGERS])
    def test_of_numbers(self, numbers, fun):
        assert follow(fun, numbers, X).stats.hits == 4

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("fun", GRIDS)
    @pytest.mark.parametrize("kind", [np.float64, np.float32, np.int32])
    def test_of_numbers_of_numpy(self, kind, fun):
        follow(fun, of_kind(kind), X)

    def test_of_constants_is_an_ndarray(self):
        kinds = []

        def grid(x, k):
            kinds.append(type(np.linspace(0, 1, 2)))
            return x * k

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.LostChangeWarning)
            follow(grid, FLOATS, X)
        assert set(kinds) == {np.ndarray}


class TestNumbersOfNumPy:
    """They vary like Python's, and are promoted by NumPy's rules: float32 array * float64 is float64."""

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("array", [X, N, dlarray([1.0, 2.0]), dlarray([True, False])])
    @pytest.mark.parametrize("kind", KINDS)
    def test_with_arrays(self, kind, array):
        fun = follow(lambda x, k: (x * k, k * x, x + k, k - x * k, k < x), of_kind(kind), array)
        assert (fun.stats.traces, fun.stats.hits) == (4, 4)
        assert f"{kind.__name__} that varies" in fun.explain()

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: k + 1, lambda k: 1 - k, lambda k: k * 2.5, lambda k: 1 / k, lambda k: k // 2, lambda k: 7 // k,
            lambda k: k % 2, lambda k: 7.5 % k, lambda k: divmod(k, 2), lambda k: -k, abs, lambda k: +k,
            lambda k: k < 1, lambda k: k == 2, lambda k: 0.5 if k > 1 else k, lambda k: max(k, 1), lambda k: k / k,
            lambda k: np.minimum(k, 1), lambda k: np.add(k, k), lambda k: np.float32(2) * k, lambda k: k + True,
            lambda k: np.isfinite(k), lambda k: (k.dtype, k.shape, k.ndim, k.size),
            lambda k: k is None, lambda k: k == None, lambda k: k == "a", lambda k: np.multiply(k, 2.5) if k < 9 else k,
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("kind", KINDS)
    def test_arithmetic(self, kind, fun):
        accelerated = follow(lambda x, k: (x, fun(k)), of_kind(kind), X)
        # What it compares with or divides by may give it several traces.
        assert accelerated.stats.hits >= 2 and "that varies" in accelerated.explain()

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_item(self, kind):
        accelerated = follow(lambda x, k: (x, k.item() + 1), of_kind(kind), X)
        # A uint64 need not fit the int64 in which Python's integers vary.
        assert (accelerated.stats.hits >= 2) is (kind is not np.uint64)

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.float32, np.float64, bool, complex])
    @pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
    def test_another_dtype(self, kind, dtype):
        accelerated = follow(lambda x, k: x * np.floor(k).astype(dtype), of_kind(kind), X)
        assert (accelerated.stats.hits >= 2) is (dtype not in (bool, complex))

    def test_the_whole_part_of_a_float(self):
        """np.int64 takes it as int() does: a number that has none is an error."""
        numbers = (0.5, -1.5, 2.7, 3.5, 1e10, math.nan, 5.5, math.inf, 6.5, -1e19, 7.25, 8.5)
        accelerated = follow(lambda x, k: x * np.int64(k), numbers, X)
        assert accelerated.stats.hits >= 4

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize(
        "fun", [lambda k: k**2, lambda k: 2.5**k, np.sqrt, np.exp, lambda k: np.arctan2(k, 1)]
    )
    @pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
    def test_functions(self, kind, fun):
        follow(lambda x, k: (x, fun(k)), of_kind(kind), X)

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize(
        "fun",
        [
            int, float, str, repr, hash, round, lambda k: f"{k}", lambda k: k + 300, lambda k: k & 1, lambda k: 1 << k,
            lambda k: k < 10**30, lambda k: k == 10**30, lambda k: k < np.uint64(3), lambda k: k * np.uint64(3),
            lambda k: np.where(k > 1, k, 0), lambda k: k.astype(np.float32),
            lambda k: [0] * k,
            lambda k: np.power(k, 2), lambda k: k * np.bool_(True), lambda k: np.power(k, -1), lambda k: k.nothing,
            math.sqrt, lambda k: math.ldexp(1.0, int(k)), lambda k: k.tolist(), lambda k: np.asarray(k).dtype,
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("kind", KINDS)
    def test_what_needs_them(self, kind, fun):
        follow(lambda x, k: (x, fun(k)), of_kind(kind), X)

    def test_equal_numbers_of_other_types_have_traces_of_their_own(self):
        numbers = [
            kind(n) for n in (2, 3, 4, 5, 6) for kind in (float, np.float64, np.float32, int, np.int64)
        ]
        fun = follow(lambda x, k: x * k, numbers * 2, X)
        assert fun.stats.hits >= 25

    def test_a_python_number_beside_them(self):
        for kind in KINDS:
            pairs = [(k, n) for n, k in enumerate(of_kind(kind))]
            follow(lambda x, k, n: (x * k + n, k + n, n * k, k < n, n - 0.5 * k), pairs, X)

    def test_eighty_times_from_a_solver(self):
        fun = dlaccelerate(lambda t, y: np.stack([y[1], -y[0] + 0.1 * np.cos(t)]))
        for t in np.linspace(0, 1, 80):
            found = fun(t, np.array([1.0, t]))
            np.testing.assert_allclose(tj.extractdata(found), [t, -1 + 0.1 * np.cos(t)], rtol=1e-12)
        # Two by value, one with an input, one that confirms it, two audits.
        assert fun.stats.traces <= 6 and fun.stats.hits >= 74


class TestNeeded:
    def test_selects_by_its_value_again(self):
        fun = follow(lambda x, n: sum([x * i for i in range(n)], x), [2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4, 5], X)
        # 2, 3 by value; 4 finds out; then all by value, two recordings each.
        assert fun.stats.hits == 3 and "n: 5" in fun.explain()

    def test_explained(self):
        fun = follow(lambda x, n: x * complex(n).real, [2.0, 3.0, 4.0], X)
        where = f"{__file__}:{fun.function.__code__.co_firstlineno}"
        assert (
            f"but complex() at {where} needs n as a Python number, so its value selects the trace again."
            in fun.explain()
        )

    def test_another_argument_goes_on_varying(self):
        fun = follow(
            lambda x, n, k: x * k * len(range(n)),
            [(1 + n % 3, 0.1 * n) for n in range(30)],
            X,
            max_variants=50,
        )
        assert "n: 3, k: a float that varies" in fun.explain() and fun.stats.hits > 10

    def test_a_number_that_is_needed_and_keeps_changing(self):
        fun = dlaccelerate(lambda x, rate: x * complex(rate).real)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(20):
                fun(X, float(n))
        (warning,) = caught
        assert warning.category is RetraceWarning and warning.filename == __file__
        assert str(warning.message) == (
            f"{fun.__qualname__} is recorded again for each value of rate, because complex() at {__file__}:"
            f"{fun.function.__code__.co_firstlineno} needs it as a Python number. Pass it as a dlarray, or use "
            "operators and functions of math, NumPy or tracejit, which take it as it is. If a trace for each value is "
            "intended, raise max_variants."
        )

    @pytest.mark.parametrize("kind", [complex, np.complex128, np.complex64])
    def test_a_complex_number_that_keeps_changing(self, kind):
        def scale(x, z, n=1.0):
            return x * z * n

        fun = dlaccelerate(scale)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(20):
                fun(X, kind(complex(n, 1)))
        (warning,) = caught
        assert warning.category is RetraceWarning
        assert "again for each value of z, because a complex number is a constant" in str(warning.message)
        for n in range(6):  # as the warning says
            found = fun(X, dlarray(kind(complex(n, 1))))
            np.testing.assert_allclose(np.asarray(found), np.asarray(X) * complex(n, 1), rtol=1e-6)
        assert fun.stats.hits == 4

    def test_a_complex_number_that_recurs_is_no_reason_to_warn(self):
        fun = dlaccelerate(lambda x, z, rate: x * z * rate)
        for n in range(60):
            fun(X, complex(n % 4, 1), 0.5 * n)
        assert fun.stats.hits > 40

    def test_a_few_values_that_recur_are_no_reason_to_warn(self):
        fun = dlaccelerate(lambda x, n: x * len(range(n)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(20):
                for n in range(8):
                    fun(X, n)
        assert fun.stats.hits > 100

    def test_after_the_evaluation_it_is_a_true_number(self):
        kept = []
        fun = dlaccelerate(
            lambda x, k, n: [[kept.insert(99, part) for part in (k, n, {k: k + 1}, -n)], x * k - n][1]
        )
        for n, k in enumerate(FLOATS[:3]):
            fun(X, k, n)
        assert (
            kept[-4:] == [0.125, 2, {0.125: 1.125}, -2]
            and json.dumps(kept[-4:]) == '[0.125, 2, {"0.125": 1.125}, -2]'
        )
        assert [type(each) for each in kept[-4:]] == [float, int, dict, int]
        assert pickle.loads(pickle.dumps(kept)) == kept and math.ldexp(kept[-4], kept[-3]) == 0.5
        assert f"something that outlives the call at {__file__}:" in fun.explain()
        for k in FLOATS:
            fun(X, k, 2)
        assert kept[-4:] == [3.0, 2, {3.0: 4.0}, -2]

    @pytest.mark.parametrize("kind", [*KINDS, float, int])
    @counts_runs
    def test_of_each_type(self, kind):
        kept = []
        fun = dlaccelerate(lambda x, k: [kept.append(k), kept.append(+k), x * k][-1])
        for number in of_kind(kind) if kind in KINDS else [kind(n) for n in (1, 2, 3, -4, 1 << 40)]:
            fun(X, number)
            assert [type(each) for each in kept[-2:]] == [kind] * 2
            assert repr(kept[-2:]) == repr([number] * 2)
            assert (
                kind(str(kept[-1].item() if kind in KINDS else kept[-1])) == number
                and kept[-1] + 1 == number + 1
            )

    def test_where_objects_are_laid_out_differently(self, monkeypatch):
        """It stays what it is, and says so."""
        monkeypatch.setattr("tracejit.record.become.is_possible", lambda: False)
        kept = []
        fun = dlaccelerate(lambda x, k: kept.insert(len(kept), k) or x * k)
        for k in FLOATS[:3]:
            fun(X, k)
        assert type(kept[-1]) is Number
        for use in (float, repr, lambda k: k + 1, lambda k: k < 1):
            with pytest.raises(
                tj.TraceError, match="is used after that call; on this Python it cannot be kept"
            ):
                use(kept[-1])

    def test_an_error_takes_true_numbers_along(self):
        def fun(x, k):
            if k > 2:
                raise ValueError(k, k + 1)
            return x * k

        accelerated = dlaccelerate(fun)
        for k in (0.5, 0.25, 0.125, 1.0):
            accelerated(X, k)
        with pytest.raises(ValueError, match=r"3\.0, 4\.0") as caught:
            accelerated(X, 3.0)
        assert [type(part) for part in caught.value.args] == [float, float]
        frame = caught.value.__traceback__
        while frame.tb_next:
            frame = frame.tb_next
        assert type(frame.tb_frame.f_locals["k"]) is float

    def test_cycles_of_functions_keep_nothing(self):
        def fun(x, k):
            def power(n):
                return x if n == 0 else power(n - 1) * k

            return power(3)

        assert follow(fun, FLOATS, X).stats.hits == 4

    def test_its_class_is_that_of_the_number(self):
        with pytest.raises(TypeError, match="the class of a number cannot be set"):
            vars(Number)["__class__"].fset(object(), int)


class TestHugeIntegers:
    """Integers of more than 64 bits are compared and divided by as in NumPy; other operations are errors, at once."""

    OPERATORS = (operator.add, operator.mul, operator.mod, operator.floordiv, operator.truediv, operator.pow,
                 operator.lt, operator.ge, operator.eq, operator.ne, operator.and_)  # fmt: skip

    @pytest.mark.sampled
    @pytest.mark.parametrize("op", OPERATORS)
    @pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64, np.float64, np.float32])
    def test_as_numpy(self, op, dtype):
        for huge in (1 << 70, -(1 << 70), 1 << 2000):
            for swap in (False, True):

                def apply(x, huge=huge, swap=swap):
                    return op(huge, x) if swap else op(x, huge)

                x = np.arange(1, 4, dtype=dtype)
                try:
                    with np.errstate(all="ignore"):
                        expected = apply(x)
                except (OverflowError, TypeError):
                    with pytest.raises((TypeError, OverflowError)):
                        apply(dlarray(x))
                    continue
                found = tj.extractdata(apply(dlarray(x)))
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_as_arguments_that_change(self):
        n = dlarray(np.arange(3))
        follow(lambda x, k: (x < k, x / k), [1, 2, 3, 4, 1 << 70, 5, 1 << 80, 6, -(1 << 70)], n)
        follow(lambda x, k: x + k, [1, 2, 3, 4, 1 << 70, 5, 1 << 80, 6, -(1 << 70)], n)
        follow(lambda x, k: x % (k + (1 << 70)), [1, 2, 3, 4, 5, 6], n)


class TestMethods:
    def test_it_has_the_methods_of_its_type(self):
        """What a number of Python or NumPy answers to, a number that varies answers to."""
        others = {
            "__array_namespace__", "__array_wrap__", "__buffer__", "__ceil__", "__class_getitem__", "__floor__",
            "__getformat__", "__getnewargs__", "__setstate__",
        }  # fmt: skip
        for kind in (int, float, np.float64, np.float32, np.int64, np.uint8):
            methods = {name for name in dir(kind) if name.startswith("__") and callable(getattr(kind, name))}
            assert methods - set(dir(Number)) <= others

    def test_it_is_indexed(self):
        fun = tj.dlaccelerate(lambda k, x: (k[()] * x, k[...] + x))
        for k in range(5):
            first, second = fun(np.float64(k), np.ones(2))
            assert first.tolist() == [k, k] and second.tolist() == [k + 1, k + 1]

    def test_it_is_no_sequence(self):
        def fun(k, x):
            try:
                return [*k, x]
            except TypeError:
                return k * x

        fun = tj.dlaccelerate(fun)
        for k in range(5):
            assert fun(np.float64(k), np.ones(1)).tolist() == [k]
        assert fun.stats.hits == 1  # two values are recorded, the third is an input and confirmed

    def test_an_index_that_numpy_refuses(self):
        for kind, text in ((np.float64, "invalid index to scalar variable"), (float, "not subscriptable")):
            fun = tj.dlaccelerate(lambda k, x: k[0] * x)
            for k in range(4):
                with pytest.raises((IndexError, TypeError), match=text):
                    fun(kind(k), np.ones(1))
