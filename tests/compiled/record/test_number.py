# SPDX-License-Identifier: BSD-3-Clause
"""Number arguments of compiled programs."""

import numpy as np
import pytest
from numbers_in_turn import FLOATS, X, follow


class TestBecomesAnInput:
    def test_compiled(self):
        fun = follow(lambda x, k, n: (x * k - n, n + 1, k), [(k, i) for i, k in enumerate(FLOATS * 2)], X)
        assert fun.stats.hits == 12
        fun(X, 1.0, 2**70)
        assert fun(X, 5.0, 3)[1] == 4

    @pytest.mark.parametrize(
        "kind", [np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint64]
    )
    def test_numbers_of_numpy(self, kind):
        numbers = [kind(i) for i in (1, 2, 3, 4, 50, 6, 7, 0)]
        fun = follow(lambda x, k: (x * k, k - 2, {"k": k * k}, k // 3, k % 5, 7 // k), numbers * 2, X)
        assert fun.stats.hits == 12
        # The path compares types: an equal number of another type has another trace.
        for other in (7, 7.0, np.int64(7), np.float64(7), np.uint64(7)):
            assert type(fun(X, other)[1]) is type(other - 2)

    @pytest.mark.parametrize("result", [lambda x, k: x * k, lambda x, k: (x, k * 2), lambda x, k: [x[0] + k]])
    def test_a_number_of_numpy_that_stays(self, result):
        for number in (
            np.float64(0.5),
            np.float32(2),
            np.int64(3),
            np.float64(0.0),
            np.float64("nan"),
            np.bool_(True),
        ):
            follow(result, [number] * 6, X)

    @pytest.mark.parametrize(
        "kind", [np.float64, np.float32, np.int64, np.int32, np.int8, np.uint8, np.uint64]
    )
    def test_numbers_of_numpy_at_their_limits(self, kind):
        """They wrap around and divide by zero as NumPy's do."""

        def fun(x, k):
            return (
                x * k, k + 1, 1 - k, k * 2.5, 1 / k, k // 2, 7 // k, k % 3, 7.5 % k, -k, abs(k), k * k * k * k, k - 3,
                np.minimum(k, 1), np.float32(2) * k, k / k, k.item() + 1, k < 1, k == 2, divmod(k, 3), -k // 3, -k % 3,
            )  # fmt: skip

        numbers = [1, 2, 3, 4, 50, 7, 0, 127, 5]
        if np.dtype(kind).kind == "f":
            numbers += [np.inf, -np.inf, np.nan, 1e30, -0.0, 0.1, -1.0]
        else:
            numbers += [np.iinfo(kind).max, np.iinfo(kind).min, np.iinfo(kind).max // 2]
        hits = follow(fun, [kind(n) for n in numbers] * 2, X, max_variants=50).stats.hits
        assert hits > (1 if kind is np.uint64 else 10)  # k.item() of that is needed
