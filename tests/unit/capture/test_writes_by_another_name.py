# SPDX-License-Identifier: BSD-3-Clause
"""Writes of NumPy by another name, and parts that varying numbers name: what follows has the elements."""

from typing import Any

import numpy as np
import pytest
from effort import by_turns

import tracejit as tj

FIRST = ["pass", "s.m[:] = s.w", "s.m[:] = s.w * ix[0]", "s.m += x", "s.m[1] = x[0]"]
BY_ANOTHER_NAME = [
    "np.add(s.v, s.b, out=s.v)", "s.v.fill(7)", "np.copyto(s.v, 7.0, where=s.b > 0)", "s.h[:] = 5", "s.v.sort()",
    "np.multiply(s.h, 2, out=s.h)", "s.v[::-1][0] = 3", "s.v += s.b", "s.v.flat[2] = 9",
]  # fmt: skip
THEN = [
    "np.put(s.m, ix, 1)", "s.m.put(ix, 3)", "np.copyto(s.w, s.m)", "s.w[:] = s.m", "s.w = s.m.copy()", "return s.m",
    "return s.m.copy()", "return np.array(s.m)", "return s.m[1:]", "s.w[:] = s.m[::-1]", "return s.m[1]",
    "return [t * 2 for t in s.m]", "s.q[1] = s.m", "s.q[ix[0] % 3] = s.m", "return s.m.reshape(2, 2)",
    "return np.roll(s.m, 0)", "y = s.m.copy(); y[0] = x[0]; return y", "s.m[::2] = x[:2]", "s.m[ix] = x[:1]",
    "s.m, s.w = s.w, s.m", "s.m[:], s.w[:] = s.w.copy(), s.m.copy()", "return x.dot(s.m)", "np.add.at(s.m, ix, x[0])",
    "s.m.sort()", "s.m[:] = s.m[::-1]", "return float(s.m[1]) * x", "return s.m.tolist()",
    "return np.where(s.m > 0, x, s.m)", "return s.m if x[0] > 0.5 else x", "s.m[s.m > x[0]] = 0", "s.v = s.w[:]",
    "return s.m, s.v", "return s.v", "return s.v * x",
]  # fmt: skip
PARTS = [
    "s.q[j][:] = x[0]", "s.q[j][2] -= x[0]", "s.q[j] -= x[0]", "r = s.q[j]; r += x; return r", "s.q[j][:] = 0.5",
    "s.z[0] = x; r = s.q[j]; r += x; return r", "s.q[0] = x; r = s.q[j][1:]; r[0] = 9; return r",
    "s.q[0] = x; r = s.q[:, j]; r[0] = 9; return r", "s.q[0] = x; r = s.q[j, 1:]; r[0] = 9; return r",
    "r = s.q[j:j + 1]; r[0] = 9; return r", "s.q[0] = x; r = s.q[..., j]; r[0] = 9; return r",
    "s.q.T[j] += x[:3]", "s.q[1:][j % 2] += x", "s.q[:, ::-1][j] += x", "s.q.reshape(4, 3)[j] += x[:3]",
    "s.m.reshape(2, 2)[j % 2] += x[:2]", "r = s.q[j]; r[1:] = x[1:]; r *= 2; return s.q[j]",
    "r = s.q[np.argmax(x[:3])]; r += x", "r = s.q[:, np.argmin(x)]; r[:] = x[:3]; return s.q.sum()",
    "s.q[j][:2], s.z[j][:2] = s.z[j][2:].copy(), s.q[j][:2].copy()", "s.q[j].fill(0.5)", "s.q[j].sort()",
    "np.add(s.q[j], x, out=s.q[j])", "np.put(s.q[j], [1], x[0])", "for r in (s.q[j], s.z[0]): r -= x",
    "y = x.reshape(2, 2); y[j % 2][0] = 5; return y",
]  # fmt: skip
PLACES = {
    "a number": lambda n: n % 3,
    "a scalar": lambda n: np.int64(n % 3),
    "an array": lambda n: np.array(n % 3),
}


class State:
    """What a program reads and writes."""

    def __init__(self) -> None:
        self.w, self.m, self.b = np.arange(4.0), np.zeros(4), np.array([0.0, 1, 0, 1])
        self.q, self.z = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
        self.v, self.h = self.m[:], self.m[1:3]


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def check(statements: str, argument: str, place: Any, accelerated: Any = tj.dlaccelerate) -> None:
    """Compare calls of a program with NumPy's."""
    names: dict[str, Any] = {"np": np}
    exec("def step(s, x, " + argument + "):\n    " + statements.replace("\n", "\n    "), names)
    step, have, want = names["step"], State(), State()
    function = accelerated(lambda x, at: step(have, x, at))
    for n in range(5):
        x = np.random.default_rng(n).random(4)
        expected = step(want, x.copy(), place(n))
        found = function(x, place(n))
        for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(mine, float), np.asarray(theirs, float), rtol=1e-12)
        for name in vars(want):
            np.testing.assert_allclose(getattr(have, name), getattr(want, name), rtol=1e-12, err_msg=name)


@pytest.mark.sampled
@pytest.mark.parametrize(("other", "then", "first"), by_turns(BY_ANOTHER_NAME, THEN, FIRST))
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
def test_what_follows_a_write_by_another_name(other: str, then: str, first: str) -> None:
    check("\n".join((first, other, then)), "ix", lambda n: np.array([n % 4]))


@pytest.mark.parametrize("accelerated", [tj.dlaccelerate, lambda fun: lambda *given: tj.dlfeval(fun, *given)])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("statements", PARTS)
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning", "ignore::tracejit.ChangedTraceWarning")
def test_parts_at_places_that_vary(statements: str, place: Any, accelerated: Any) -> None:
    check(statements, "j", place, accelerated)
