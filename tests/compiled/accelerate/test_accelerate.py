# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions on the CPU backend: the executor checks what the call path hands over."""

import either_backend
import numpy as np
import pytest
from accelerated import dlaccelerate, hidden, in_threads, vector

from tracejit import (
    OutputsDifferWarning,
    dlarray,
    dlfeval,
    dlgradient,
)


def run_in_threads(fun):
    def work(n):
        for i in range(12):
            size = (n + i) % 4 + 1
            x = np.full(size, float(n))
            y, grad = fun(dlarray(x), 2.0)
            assert y.tolist() == [2.0 * n] * size and grad.tolist() == [4.0 * n] * size

    in_threads(work, 8)


class TestCompiled:
    """On the CPU backend: the executor checks what the call path hands over. Few kernels, as each is compiled."""

    def test_any_arguments(self):
        either_backend.check_other_arguments()

    def test_a_function_that_runs_over_a_dict_sees_its_order(self):
        either_backend.check_order_of_dicts()

    def test_a_place_out_of_range_is_an_error_in_a_replay_too(self):
        either_backend.check_places_out_of_range()

    def test_layouts(self):
        fun = dlaccelerate(lambda x: x * 2)
        base = np.arange(24.0)
        raw = np.zeros(3 * 8 + 1, np.uint8)
        unaligned = raw[1:].view(np.float64)
        unaligned[...] = base[:3]
        tagged = np.dtype("f8", metadata={"a": 1})
        arrays = [
            base[:3], base[::2][:3], base[::-1][:3], np.broadcast_to(base[1], (3,)), unaligned,
            base[:3].astype(">f8"), base[:0], base[:0:2], np.asarray(base[:3], dtype=tagged),
        ]  # fmt: skip
        for _ in range(3):
            for array in arrays:
                before = array.copy()
                for _ in range(3):
                    assert fun(array).tolist() == (array * 2).tolist()
                np.testing.assert_array_equal(array, before)
        assert fun.stats.traces == 5

    def test_outputs_are_fresh(self):
        fun = dlaccelerate(lambda x: {"y": x * 2, "x": x, "again": x})
        x = np.ones(2)
        seen = [x]
        for _ in range(4):
            out = fun(x)
            assert out["y"].tolist() == [2.0, 2.0] and out["x"].tolist() == out["again"].tolist() == [
                1.0,
                1.0,
            ]
            for array in out.values():
                assert not any(np.shares_memory(array._data, other) for other in seen)
                seen.append(array._data)
                array._data[...] = 7

    @pytest.mark.filterwarnings("ignore:.* while it is recorded only")
    def test_escaped_arrays(self):
        kept = []
        fun = dlaccelerate(lambda x: kept.append(x) or x * 2)
        fun(vector(1))
        for _ in range(3):
            fun(vector(1))
            assert fun(kept[0]).item() == 2.0

    def test_evicted_and_cleared_traces_are_gone(self):
        factor = 2.0
        fun = dlaccelerate(lambda x: x * factor, cache_size=1)
        for _ in range(3):
            assert fun(vector(1)).item() == 2.0
        factor = 3.0
        fun.clear_cache()
        for _ in range(3):
            assert fun(vector(1)).item() == 3.0
        factor = 4.0
        fun(vector(1, 2))
        assert fun(vector(1)).item() == 4.0

    def test_settings_count_at_once(self):
        factor = hidden(2.0)
        fun = dlaccelerate(lambda x: x * factor.get())
        for _ in range(3):
            fun(vector(1))
        factor.set(3.0)
        fun.check_mode = "tolerance"
        with pytest.warns(OutputsDifferWarning):
            assert fun(vector(1)).item() == 2.0
        fun.enabled = False
        assert fun(vector(1)).item() == 3.0
        fun.enabled, fun.check_mode = True, "none"
        assert fun(vector(1)).item() == 2.0 and fun.stats.calls == 5

    def test_inside_dlfeval(self):
        fun = dlaccelerate(lambda x: x * 2)
        for _ in range(3):
            fun(vector(1))
            y, grad = dlfeval(lambda x: (fun(x), dlgradient(fun(x).sum(), x)), vector(1))
            assert y.tolist() == grad.tolist() == [2.0]

    @pytest.mark.filterwarnings("ignore:.* is recorded in most calls")
    def test_many_threads(self):
        fun = dlaccelerate(lambda x, k: (x * k, dlgradient((x**2).sum() * k, x)), cache_size=3)
        run_in_threads(fun)
        assert fun.stats.calls == 8 * 12
