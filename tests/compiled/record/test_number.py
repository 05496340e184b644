# SPDX-License-Identifier: BSD-3-Clause
"""Number arguments of compiled programs."""

from numbers_in_turn import FLOATS, X, follow


class TestBecomesAnInput:
    def test_compiled(self):
        fun = follow(lambda x, k, n: (x * k - n, n + 1, k), [(k, i) for i, k in enumerate(FLOATS * 2)], X)
        assert fun.stats.hits == 12
        fun(X, 1.0, 2**70)
        assert fun(X, 5.0, 3)[1] == 4
