# SPDX-License-Identifier: BSD-3-Clause
"""Call paths: containers of arguments and results."""

import collections
import dataclasses
import math

import either_backend
import numpy as np
import pytest
from accelerated import dlaccelerate, vector

from tracejit import (
    dlarray,
    dlfeval,
    tree,
)


@dataclasses.dataclass
class State:
    w: object
    name: str = "state"


Pair = collections.namedtuple("Pair", "a b")


class TestContainers:
    def test_a_function_that_runs_over_a_dict_sees_its_order(self):
        either_backend.check_order_of_dicts()

    @pytest.mark.parametrize(
        "make",
        [
            lambda x: x, lambda x: [x], lambda x: (x,), lambda x: {"a": x}, lambda x: Pair(x, [x, None]),
            lambda x: State(x), lambda x: {"b": [x, {"c": (x, 1.5, "s")}], "a": None}, lambda x: [[], {}, (), x],
            lambda x: collections.OrderedDict(z=x, a=x), lambda x: {3: x, "a": x, None: x}, lambda x: [x] * 30,
            lambda x: {"it's": x, 'a "b"': 0.0, "\n": -0.0, "nan": math.nan}, lambda x: {True: x, 1.5: x},
        ],
    )  # fmt: skip
    def test_in_and_out(self, make):
        accelerated = dlaccelerate(lambda given_: tree.map(lambda leaf: leaf * 2, given_))
        double = lambda leaf: leaf._data * 2 if isinstance(leaf, dlarray) else leaf * 2
        for n in range(4):
            given_ = make(vector(n, 1))
            result = accelerated(given_)
            expected = tree.map(double, given_)
            assert repr(tree.map(lambda r: getattr(r, "_data", r), result)) == repr(expected)
        assert accelerated.hit_rate == 75.0

    @pytest.mark.parametrize(
        "constant",
        [
            None,
            3,
            2.5,
            True,
            "text",
            np.float32(2),
            [],
            {},
            (1, [2]),
            {"b": 1, "a": None},
            len,
            np.dtype("f4"),
            slice(1),
        ],
    )
    def test_constants_as_results(self, constant):
        accelerated = dlaccelerate(lambda x: constant)
        for _ in range(4):
            result = accelerated(vector(1))
            assert result == constant and type(result) is type(constant)
        assert dlfeval(lambda x: accelerated(x), vector(1)) == constant

    def test_values_as_arguments(self):
        accelerated = dlaccelerate(lambda x, k: k)
        values = [0, 1, True, 1.0, 0.0, -0.0, math.nan, math.inf, "1", b"1", 1j, np.float32(1), np.int64(1), None, len,
                  np.dtype("f4"), (), frozenset([1])]  # fmt: skip
        for _ in range(4):
            for value in values:
                assert repr(accelerated(vector(1), value)) == repr(value)
        # The third float of a kind becomes an input, and so do those that follow.
        assert accelerated.stats.traces < len(values)

    @pytest.mark.slow
    def test_other_arguments_than_a_call_path_expects(self):
        either_backend.check_other_arguments()

    def test_containers_are_new_each_time(self):
        accelerated = dlaccelerate(lambda x, p: {"list": [x], "p": p})
        given_ = {"k": vector(1)}
        for _ in range(4):
            result = accelerated(vector(1), given_)
            assert len(result["list"]) == 1 and list(result["p"]) == ["k"] and result["p"] is not given_
            result["list"].append(1)
            result["p"]["other"] = 1
        assert list(given_) == ["k"]

    def test_what_is_put_into_containers_and_arrays_is_there(self):
        def fun(params, x):
            params["w"] = params["w"] * 2
            params["new"] = x
            x += 1
            return params, x

        x = np.ones(1)
        accelerated = dlaccelerate(fun)
        for call in range(4):
            params = {"w": vector(1)}
            result, plus = accelerated(params, x)
            assert [result["w"].item(), plus.item(), result["new"].item()] == [2.0, call + 2.0, call + 2.0]
            assert result is params and list(params) == ["w", "new"] and x.item() == call + 2.0
