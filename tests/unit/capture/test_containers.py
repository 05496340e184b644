# SPDX-License-Identifier: BSD-3-Clause
"""Containers that a function reads: each change is seen, and what does not change costs no trace."""

import collections

import numpy as np
from counted_runs import counts_runs
from namespaces import Namespace, follow

from tracejit import dlaccelerate, dlarray

X = np.array([1.0, 2.0, 3.0])


class TestContainers:
    def test_an_item_of_a_dict(self):
        settings = {"rate": 2.0, "other": 1}
        module = Namespace("def f(x): return x * C['rate']", C=settings)
        follow(module["f"], lambda: settings.update(rate=3.0), traces=4)
        follow(module["f"], lambda: settings.update(other=3), lambda: settings.update(new=3), traces=2)

    def test_an_item_by_a_computed_key(self):
        settings = {"a": 2.0, "b": 1}
        module = Namespace("key = 'a'\ndef f(x): return x * C[key]", C=settings)
        follow(
            module["f"], lambda: settings.update(a=3.0), module.set(key="b"), lambda: settings.update(b=9.0)
        )

    def test_get_with_a_default(self):
        settings = {}
        module = Namespace("def f(x): return x * C.get('rate', 1.0)", C=settings)
        follow(module["f"], lambda: settings.update(rate=3.0), settings.clear)

    def test_a_key_that_is_missing(self):
        settings = {}
        module = Namespace(
            "def f(x):\n    try:\n        return x * C['k']\n    except KeyError:\n        return x",
            C=settings,
        )
        follow(module["f"], lambda: settings.update(k=3.0), settings.clear)

    def test_membership(self):
        names = set()
        module = Namespace("def f(x): return x * 2 if 'double' in names else x", names=names)
        follow(module["f"], lambda: names.add("double"), names.clear)

    def test_a_list_of_arrays(self):
        weights = [np.ones(3), np.full(3, 2.0)]
        module = Namespace("def f(x):\n    for w in ws:\n        x = x * w\n    return x", ws=weights)
        follow(
            module["f"],
            lambda: weights[0].fill(5.0),
            lambda: weights.__setitem__(1, np.full(3, 7.0)),
            traces=2,
        )
        follow(module["f"], lambda: weights.append(np.full(3, 4.0)), weights.pop, weights.reverse)

    def test_a_dict_of_arrays(self):
        weights = {"w": np.ones(3), "b": dlarray(np.zeros(3))}
        source = "def f(x):\n    for name, w in ws.items():\n        x = x * w + len(name)\n    return x"
        module = Namespace(source, ws=weights)
        follow(module["f"], lambda: weights.update(w=np.full(3, 3.0)), traces=2)
        follow(module["f"], lambda: weights.update(long=np.ones(3)), lambda: weights.pop("b"))

    def test_the_order_of_keys(self):
        weights = {"a": 1.0, "b": 2.0}
        module = Namespace(
            "def f(x):\n    for v in ws.values():\n        x = x / 2 + v\n    return x", ws=weights
        )
        follow(module["f"], lambda: weights.update(a=weights.pop("a")))

    def test_named_tuples_and_deques(self):
        pair = collections.namedtuple("pair", "w b")
        queue = collections.deque([1.0, 2.0])
        module = Namespace("def f(x): return x * p.w + p[1] + sum(q)", p=pair(np.ones(3), 2.0), q=queue)
        follow(module["f"], module.set(p=pair(np.ones(3), 3.0)), lambda: queue.append(5.0))

    def test_nested(self):
        tree = {"layers": [{"w": np.ones(3), "k": 1}, {"w": np.ones(3), "k": 2}]}
        source = (
            "def f(x):\n    for layer in t['layers']:\n        x = x * layer['w'] * layer['k']\n    return x"
        )
        module = Namespace(source, t=tree)
        follow(
            module["f"],
            lambda: tree["layers"][1].update(k=5),
            lambda: tree["layers"][0]["w"].fill(3.0),
            lambda: tree.update(layers=tree["layers"][:1]),
        )

    def test_many_numbers(self):
        table = list(map(float, range(1000)))
        module = Namespace("def f(x): return x * sum(table)", table=table)
        follow(module["f"], lambda: table.__setitem__(999, 0.5), traces=4)

    def test_a_container_of_itself(self):
        loop = [1.0]
        loop.append(loop)
        module = Namespace("def f(x): return x * loop[1][1][0]", loop=loop)
        follow(module["f"], lambda: loop.__setitem__(0, 4.0))

    @counts_runs
    def test_what_is_only_appended_to(self):
        history, seen, log = [], set(), {}
        source = "def f(x):\n    history.append(1)\n    seen.add(len(text))\n    log[text] = 1\n    return x"
        module = Namespace(source, history=history, seen=seen, log=log, text="a")
        accelerated = dlaccelerate(module["f"])
        for _ in range(5):
            history.append(2)
            seen.add(3)
            log["other"] = 4
            accelerated(X)
        assert accelerated.stats.traces == 3  # the first one has put something new into the set
