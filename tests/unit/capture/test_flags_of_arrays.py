# SPDX-License-Identifier: BSD-3-Clause
"""Flags and bases of captured ndarrays: where a function reads them, each kind of memory has a trace."""

import numpy as np
import pytest

import tracejit as tj

X = np.ones(2)


def locked():
    array = np.ones(3)
    array.flags.writeable = False
    return array


MADE = {
    "plain": lambda: np.ones(3),
    "locked": locked,
    "a part": lambda: np.ones(6)[:3],
    "with gaps": lambda: np.ones(6)[::2],
    "unaligned": lambda: np.frombuffer(b"x" + np.ones(3).tobytes(), float, offset=1),
}


class Holder:
    """An object with an array."""

    w = None


def told(array):
    return 1.0 if array.flags.writeable else 2.0


BODIES = [
    "1.0 if w.flags.writeable else 2.0", "1.0 if w.flags['W'] else 2.0", "1.0 if w.flags.owndata else 2.0",
    "w.flags.num", "1.0 if w.base is None else 2.0", "told(w)", "told(s.w)", "told(ws[0])", "sum(map(told, ws))",
    "1.0 if getattr(w, 'flags').aligned else 2.0", "w.sum() if w.flags.writeable else 2.0",
    "(lambda v: 1.0 if v.base is None else 2.0)(s.w)", "(w * x[0]).sum() if w.flags.c_contiguous else 3.0",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_what_flags_tell(body):
    s = Holder()
    names = {"s": s, "ws": [None], "told": told, "w": None}
    plain = eval(f"lambda x: x + ({body})", names)
    accelerated = tj.dlaccelerate(plain)
    for kind in [*MADE, *MADE, "plain", "a part", "locked"]:
        names["w"] = s.w = names["ws"][0] = MADE[kind]()
        for _ in range(3):
            assert accelerated(X).tolist() == plain(X).tolist()
    assert accelerated.stats.uncompiled == 0 and accelerated.stats.hits > 20


def test_an_array_is_locked():
    names = {"w": np.ones(3), "told": told}
    accelerated = tj.dlaccelerate(eval("lambda x: x * told(w)", names))
    for locks in (False, True, False):
        names["w"].flags.writeable = not locks
        for _ in range(4):
            assert accelerated(X).tolist() == [1.0 + locks] * 2
    assert (accelerated.occupancy, accelerated.stats.uncompiled) == (2.0, 0)
