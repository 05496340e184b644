# SPDX-License-Identifier: BSD-3-Clause
"""A step whose page tests look at, and the page of a function that ran."""

from typing import Any

import numpy as np

from tracejit import dlaccelerate, dlarray, dlgradient, tanh
from tracejit.view import data, live

rate = 0.5


def step(w: dlarray, x: dlarray) -> tuple[dlarray, dlarray]:
    h = tanh(x @ w)
    loss = (h * rate).sum()
    if loss > 1e6:
        loss = loss * 0.5
    return loss, dlgradient(loss, w)


FILE = step.__code__.co_filename
LINE = step.__code__.co_firstlineno


def stepped(calls: int = 4, rows: int = 5) -> Any:
    accelerated = dlaccelerate(step)
    for _ in range(calls):
        accelerated(dlarray(np.ones((3, 2), np.float32)), dlarray(np.ones((rows, 3), np.float32), "BC"))
    return accelerated


def page_of(accelerated: Any) -> data.Page:
    return live.page(accelerated._running())
