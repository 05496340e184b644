# SPDX-License-Identifier: BSD-3-Clause
"""A class with accelerated methods of each kind."""

from accelerated import dlaccelerate


class Model:
    factor = 3.0

    def __init__(self, factor):
        self.factor = factor

    @dlaccelerate
    def scaled(self, x):
        return x * self.factor

    @classmethod
    @dlaccelerate
    def of_class(cls, x):
        return x * cls.factor

    @staticmethod
    @dlaccelerate
    def static(x):
        return x * 2

    def __call__(self, x):
        return x + self.factor
