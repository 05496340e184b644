# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a dlarray outside the function has elements of its own, in the calls that record it as in replays."""

import copy
from typing import Any

import numpy as np
import pytest

import tracejit as tj

COPIES = (
    "w.copy()", "np.copy(w)", "np.array(w)", "w.flatten()", "+w", "w.astype(w.dtype)", "np.roll(w, 0)",
    "np.concatenate([w])", "np.tile(w, 1)", "copy.copy(w)", "copy.deepcopy(w)", "w.T.copy()",
)  # fmt: skip


class Box:
    kept: Any = None


def made(body: str, w: Any) -> tuple[Any, Any]:
    names: dict[str, Any] = {"np": np, "copy": copy, "w": w, "box": Box()}
    exec(f"def program(x):\n    {body}", names)
    return names["program"], names["box"]


@pytest.mark.parametrize("dtype", [float, int])
@pytest.mark.parametrize("code", COPIES)
def test_returned(code: str, dtype: type) -> None:
    w = tj.dlarray(np.ones((2, 3), dtype))
    program, _ = made(f"return {code}, x * 1", w)
    accelerated = tj.dlaccelerate(program)
    for call in range(4):
        w[...] = call
        found, _ = accelerated(np.ones(2))
        w += 10
        assert np.all(np.asarray(found) == call)
    assert accelerated.stats.hits == 2


@pytest.mark.parametrize("code", COPIES)
def test_kept_before_a_write(code: str) -> None:
    w = tj.dlarray(np.ones((2, 3)))
    program, box = made(f"global w; box.kept = {code}; w *= 2; return x * 1", w)
    accelerated = tj.dlaccelerate(program)
    for call in range(4):
        accelerated(np.ones(2))
        assert np.all(np.asarray(box.kept) == 2.0**call)
        assert np.all(np.asarray(w) == 2.0 ** (call + 1))
        w += 0.0
        assert np.all(np.asarray(box.kept) == 2.0**call)


def test_kept_in_an_evaluation() -> None:
    w = tj.dlarray(np.ones(3))
    program, box = made("box.kept = w.copy()", w)
    tj.dlfeval(program, np.ones(2))
    w += 1
    assert box.kept.tolist() == [1.0, 1.0, 1.0]
