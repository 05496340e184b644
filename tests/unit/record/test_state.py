# SPDX-License-Identifier: BSD-3-Clause
"""What a trace reads besides arguments is fetched at each call, before anything is launched."""

import numpy as np
import pytest

import tracejit as tj
from tracejit import config
from tracejit.record import state
from tracejit.traces import record


class Reads(state.State):
    """Reads one array, by reference, as long as `valid`."""

    fetches = accepts = True

    def __init__(self, array):
        self.array, self.layouts, self.names, self.valid = array, (None,), ("weights",), True
        self.found = None
        self.replays = 0

    def value(self, builder, data):
        if data is not self.array:
            return None
        if self.found is None:
            self.found = builder.input(tj.aval.Aval(data.shape, None, data.dtype), data)
        return self.found

    def fetch(self):
        return (self.array,) if self.valid else None

    def accepted(self):
        self.replays += 1


@pytest.mark.parametrize("backend", ["python", "cpu"])
def test_an_array_that_is_read_is_an_input(backend, monkeypatch):
    monkeypatch.setattr(config.settings, "backend", backend)
    weights = np.array([1.0, 2.0])
    made = []
    monkeypatch.setattr(record, "CapturedState", lambda *_: made.append(Reads(weights)) or made[-1])
    scaled = tj.dlaccelerate(lambda x: x * weights + weights, confirm=0)
    for n in range(5):
        weights[...] = n
        assert scaled(np.ones(2)).tolist() == [2.0 * n] * 2
    assert len(made) == 1 and made[0].replays == 4
    made[0].valid = False
    assert scaled(np.ones(2)).tolist() == [8.0, 8.0]
    assert len(made) == 2 and made[0].replays == 4
