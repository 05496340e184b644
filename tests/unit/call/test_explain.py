# SPDX-License-Identifier: BSD-3-Clause
"""explain(): keys of calls in words."""

import gc
import re
import weakref

import numpy as np
import pytest
from accelerated import dlaccelerate, vector

from tracejit import (
    dlarray,
)


def explained(fun, *calls):
    """Return what explain() says after the last of some calls."""
    for arguments in calls:
        fun(*arguments)
    return fun.explain()


class TestExplain:
    def fun(self, **options):
        def step(x, k=1.0, *rest, **more):
            return 0

        step.__qualname__ = "step"
        return dlaccelerate(step, **options)

    def test_before_and_after_clearing(self):
        fun = self.fun()
        assert fun.explain() == "step has not been called yet."
        fun(vector(1))
        fun.clear_cache()
        assert fun.explain() == "step has not been called since its cache was cleared."

    def test_first_call(self):
        assert explained(self.fun(), (dlarray(np.zeros((2, 3), np.float32), "CB"), "text", vector(1))) == (
            "step: miss. A new trace was recorded for x: 2(C) x 3(B) float32, k: 'text', argument 3: 1 float64, "
            "because there was none yet."
        )

    def test_hit(self):
        assert explained(self.fun(), (vector(1), 0.5), (vector(1), 0.5)) == (
            "step: hit. The call was replayed from the trace for x: 1 float64, k: 0.5."
        )

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            ((vector(1),), (vector(1, 2),), "x was 1 float64, is 2 float64."),
            ((vector(1),), (dlarray([1]),), "x was 1 float64, is 1 int64."),
            ((vector(1),), (dlarray([1.0], "C"),), r"x was 1 float64, is 1\(C\) float64."),
            ((vector(1, 2),), (vector(1, 2, 3)[::2],), r"x was 2 float64, is 2 float64 with strides \(2,\)."),
            (({"a": vector(1)},), ({"a": vector(1, 2)},), r"x\['a'\] was 1 float64, is 2 float64."),
            (({"it was": vector(1)},), ({"it was": vector(1, 2)},), r"x\['it was'\] was 1 float64, is 2 float64."),
            ((vector(1), "mean"), (vector(1), "sum"), "k was 'mean', is 'sum'.$"),
            ((vector(1), 0.5), (vector(1), 0.25), "k was 0.5, is 0.25. A number that takes a third value"),
            ((vector(1), np.float32(1)), (vector(1), 2), r"k was np.float32\(1.0\), is 2. Each type has a trace"),
            ((vector(1), True), (vector(1), False), "k was True, is False.$"),
            ((vector(1), 0.5), (vector(1, 2), 0.25), "x was 1 float64, is 2 float64; k was 0.5, is 0.25.$"),
            ((vector(1), 1, 2), (vector(1), 1, 3), "argument 3 was 2, is 3."),
        ],
    )  # fmt: skip
    def test_misses(self, before, after, text):
        assert re.search(
            rf"step: miss. .*, because, compared with the nearest trace, {text}",
            explained(self.fun(), before, after),
        )

    def test_a_keyword(self):
        fun = self.fun()
        fun(vector(1), scale=1)
        fun(vector(1), scale=2)
        assert "scale was 1, is 2" in fun.explain()

    def test_the_nearest_trace(self):
        text = explained(self.fun(), (vector(1, 2), "b"), (vector(1), "a"), (vector(1, 2), "a"))
        assert text.endswith("nearest trace, x was 1 float64, is 2 float64.")  # the later one of two

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            (([vector(1)],), ([vector(1)] * 2,), r"\[0\]\[0\] has 1 elements in one and 2 in the other"),
            (({"a": vector(1)},), ({"b": vector(1)},), r"has the keys \['a'\] in one and \['b'\] in the other"),
            ((vector(1),), ((vector(1),),), "is a single value in one and a tuple in the other"),
        ],
    )  # fmt: skip
    def test_containers(self, before, after, text):
        assert re.search(
            f"because the arguments have a different structure: .*{text}",
            explained(self.fun(), before, after),
        )

    def test_evicted(self):
        fun = self.fun(cache_size=1)
        assert (
            "because its trace had been evicted: more than cache_size (1) signatures are in use"
            in explained(fun, (vector(1),), (vector(1, 2),), (vector(1),))
        )
        fun.clear_cache()
        assert explained(fun, (vector(1, 2),)).endswith("because there was none yet.")

    def test_after_an_error(self):
        fun = dlaccelerate(lambda x: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            fun(vector(1))
        assert "miss. The function raised an error for x: 1 float64, and no trace was kept." in fun.explain()

    def test_many_arguments(self):
        fun = dlaccelerate(lambda *arrays: arrays[0])
        assert "argument 11: 1 float64, and 9 more, because" in explained(fun, [vector(1)] * 20)

    def test_of_many_arguments_those_first_that_differ_among_keys(self):
        fun = dlaccelerate(lambda *arrays: arrays[0])
        other = [vector(1)] * 19 + [vector(1, 2)]
        last = explained(fun, [vector(1)] * 20, other, other)
        assert "the trace for argument 20: 2 float64, argument 1: 1 float64, " in last
        assert last.endswith(", argument 10: 1 float64, and 9 more.")
        arguments = [key.arguments.partition(", ")[0] for key in fun.explain().keys]
        assert arguments == ["argument 20: 1 float64", "argument 20: 2 float64"]

    def test_no_arguments(self):
        assert explained(dlaccelerate(lambda: 3), (), ()).endswith("from the trace for no arguments.")

    def test_keeps_no_array_alive(self):
        fun = self.fun()
        for _ in range(2):
            data = np.ones(3)
            gone = weakref.ref(data)
            fun(data)
            del data
            gc.collect()
            assert gone() is None


class TestKeysOfDicts:
    def test_the_dict_whose_order_changed_is_named(self):
        fun = dlaccelerate(
            lambda params, state: [x * 2.0 for x in params["layer"].values()] + [*state.values()]
        )
        x = np.ones(2)
        fun({"layer": {"w": x, "b": x}}, {"m": x, "v": x})
        fun({"layer": {"b": x, "w": x}}, {"m": x, "v": x})
        expected = "because params['layer'] has the keys ['b', 'w'], had ['w', 'b']: a function that iterates"
        assert expected in fun.explain()

    def test_keys_of_other_types(self):
        fun = dlaccelerate(lambda table: [x * 2.0 for x in table.values()])
        fun({1: np.ones(2)})
        fun({True: np.ones(2)})
        assert "because table has the keys [True], had [1]" in fun.explain()


class TestOneLine:
    """What explain() says of one thing is one line, whatever its repr()."""

    def test_of_a_method_that_is_replaced(self):
        class Model:
            @dlaccelerate
            def step(self, x):
                return x * 2

        model = Model()
        fun = dlaccelerate(lambda x: model.step(x))
        fun(np.ones(2))
        Model.step = dlaccelerate(lambda self, x: x * 3)
        assert fun(np.ones(2)).tolist() == [3.0, 3.0]
        assert fun.explain().splitlines()[0].endswith("because Model.step is no longer accelerated step.")

    def test_of_an_argument_and_of_state(self):
        class Long:
            def __eq__(self, other):
                return type(other) is Long

            def __hash__(self):
                return 1

            def __repr__(self):
                return "Long(\n    1,\n)"

        kept = [np.float64(1), Long()]
        fun = dlaccelerate(lambda x, long: x * 2 if kept[1] else x)
        fun(np.ones(2), Long())
        kept[1] = 2.0
        fun(np.ones(2), Long())
        fun(np.ones(2), 1)
        assert "Long( 1, )" in fun.explain() and "Long(\n" not in fun.explain()
