# SPDX-License-Identifier: BSD-3-Clause
"""Errors in accelerated functions, and values that steer Python."""

import pickle
import queue
import re

import numpy as np
import pytest
from accelerated import dlaccelerate, vector
from messages_record import private

import tracejit as tj
from tracejit import (
    ArgumentError,
    DimsError,
    GradientError,
    TraceError,
    dlarray,
    dlfeval,
    dlgradient,
)
from tracejit.record import recorder


def escaping(kept):
    def fun(x):
        kept.put(x * 2)
        kept.put(x)
        return x + 1

    return fun


class TestValuesThatSteerPython:
    def test_sizes_and_arrays_outside_the_trace_are_fine(self):
        flag = dlarray(1.0)

        def fun(x):
            y = sum([part * len(x) for part in x]) if flag and x.ndim == 2 and x.shape[1] else x
            first, *_ = x
            return [y, first, x * x.size, x is None, repr(x)[-6:]]

        accelerated = dlaccelerate(fun)
        for shape in ((2, 3), (3,)):
            for _ in range(3):
                expected = dlfeval(fun, np.ones(shape))
                found = accelerated(np.ones(shape))
                assert [r.tolist() for r in found[:3]] == [r.tolist() for r in expected[:3]]
                assert found[3:] == [False, "traced"]

    def test_masks_that_keep_the_size(self):
        def fun(x):
            x[x > 1] = 0.0
            return np.where(x < 0, -x, x), x

        accelerated = dlaccelerate(fun)
        for numbers in ((1, 2, -3), (5, -6, 7), (-1, -1, -1)):
            expected = dlfeval(fun, vector(*numbers))
            assert [r.tolist() for r in accelerated(vector(*numbers))] == [r.tolist() for r in expected]

    def test_functions_of_numpy_that_are_not_supported(self):
        with pytest.raises(ArgumentError, match=r"np\..*: not supported on dlarrays"):
            dlaccelerate(np.isnat)(vector(1, 2))


class TestErrors:
    def test_leave_the_cache_as_it_was(self):
        fail = True

        @dlaccelerate
        def fun(x):
            if fail:
                raise KeyError("no")
            return x * 2

        for _ in range(2):
            with pytest.raises(KeyError, match="no"):
                fun(vector(1))
            assert fun.occupancy == 0.0 and fun.stats.traces == 0 and recorder.recorder() is None
        fail = False
        for _ in range(3):
            assert fun(vector(1)).item() == 2.0 and fun.occupancy == 2.0
        fail = True
        for x in (vector(1), vector(1, 2)):
            with pytest.raises(KeyError):
                fun(x)
        fail = False
        hits = fun.stats.hits
        assert fun(vector(1)).item() == 2.0 and fun.occupancy == 2.0 and fun.stats.hits == hits + 1

    def test_inside_dlfeval_leave_it_open(self):
        @dlaccelerate
        def fun(x):
            raise KeyError("no")

        def outer(x):
            with pytest.raises(KeyError):
                fun(x)
            return dlgradient((x * x).sum(), x)

        assert dlfeval(outer, vector(3)).item() == 6.0

    def test_of_an_op_name_the_sizes(self):
        with pytest.raises(DimsError, match="add: operands of sizes 2 and 3 do not align"):
            dlaccelerate(lambda x, y: x + y)(vector(1, 2), vector(1, 2, 3))

    def test_dlgradient_of_a_constant(self):
        with pytest.raises(GradientError, match="y is an untraced scalar dlarray float64"):
            dlaccelerate(lambda x: dlgradient(dlarray(1.0), x))(vector(1))
        with pytest.raises(
            GradientError, match="x is an untraced 1 dlarray float64 that the function copied"
        ):
            dlaccelerate(lambda x: dlgradient(x.sum(), private(tj.ones(1))))(vector(1))

    def test_iterators_as_results(self):
        for fun in (
            lambda x: (a for a in x),
            lambda x: [map(abs, x)],
            lambda x: {"k": zip(x, x, strict=True)},
        ):
            with pytest.raises(
                ArgumentError, match=r"the result contains a .* can be iterated over only once"
            ):
                dlaccelerate(fun)(vector(1, 2))

    @pytest.mark.filterwarnings("ignore:.* while it is recorded only")
    def test_kept_arrays(self):
        """They are untraced afterwards: the caller's own argument, and an array of its own."""
        kept = queue.Queue()
        fun = dlaccelerate(escaping(kept))
        uses = [
            lambda x: (x + 1).item(), lambda x: x[0].item() + 1, lambda x: x.sum().item() + 1,
            lambda x: float(x[0]) + 1, lambda x: x.tolist()[0] + 1, lambda x: fun(x).item(),
            lambda x: dlaccelerate(lambda y: y + x)(vector(1)).item(),
            lambda x: dlfeval(lambda y: y + 1, x).item(), lambda x: tj.extractdata(x)[0] + 1,
            lambda x: pickle.loads(pickle.dumps(x)).item() + 1, lambda x: np.asarray(x)[0] + 1,
            lambda x: dlarray(x, "B").item() + 1, lambda x: dlarray([x])[0].item() + 1,
        ]  # fmt: skip
        for run in (fun, lambda x: dlfeval(lambda x: fun(x), x)):
            for use in uses:
                fun.clear_cache()
                kept.queue.clear()
                run(vector(1))
                made, argument = kept.queue
                assert (use(made), use(argument)) == (3.0, 2.0)
                assert repr(made) == "1 dlarray float64\n[2.]"

    @pytest.mark.filterwarnings("ignore:.* while it is recorded only")
    def test_arrays_that_are_kept_of_a_recording_inside_an_evaluation(self):
        kept = queue.Queue()
        fun = dlaccelerate(escaping(kept))

        def outer(x):
            fun(x)
            return kept.queue[0] + x

        place = f"{re.escape(__file__)}:{escaping.__code__.co_firstlineno + 2}"
        with pytest.raises(
            TraceError, match=rf"made at {place} while escaping.*inside .*outer, where it has no"
        ):
            dlfeval(outer, vector(1))
        assert (kept.queue[0] + 1).item() == 3.0  # that evaluation has ended

    def test_a_traced_array_of_the_evaluation_around(self):
        def outer(x):
            return dlaccelerate(lambda y: y * x)(vector(2))

        assert dlfeval(outer, vector(1)).item() == 2.0
        assert dlaccelerate(outer)(vector(3)).item() == 6.0  # traced through: one trace
