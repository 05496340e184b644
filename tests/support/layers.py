# SPDX-License-Identifier: BSD-3-Clause
"""A layer as users write it, whose attributes the tests of captured state change."""

import numpy as np

from tracejit import dlarray


class Layer:
    rate = 1.0

    def __init__(self, seed=0):
        self.w = dlarray(np.arange(3.0) + seed)
        self.k = 2.0
        self.count = 0
        self.history = []
        self.parts = {"b": np.ones(3)}

    def __call__(self, x):
        return x * self.w + self.k * self.rate

    def double(self, x):
        return self(x) * self.factor + self.parts["b"]

    @property
    def factor(self):
        return self.k + 1
