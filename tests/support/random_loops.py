# SPDX-License-Identifier: BSD-3-Clause
"""Random loops: kept as loops in an accelerated function, with the results and derivatives of the loop in Python."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj

SIZES = {"h": (2, 3), "c": (2, 3), "v": (3,), "s": ()}


class Case:
    """A loop with its operands.

    Attributes:
        loss: takes the operands (params, carry, xs) and returns a number.
        operands: params, the first carry and xs.
        length: the number of steps.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.length = self.rng.choice([3, 4, 7])
        self.reverse = self.rng.random() < 0.3
        self.names = self.rng.sample(list(SIZES), self.rng.randint(1, 3))
        self.checkpoints = self.rng.random() < 0.2
        self.nests = self.rng.random() < 0.25
        self.draws = self.rng.random() < 0.2
        self.lines = [self.rng.randrange(9) for _ in range(self.rng.randint(1, 5))]
        self.choices = [self.rng.random() for _ in range(40)]
        params = {"w": self.array(3, 3), "u": self.array(4, 3), "b": self.array(3)}
        carry = {name: self.array(*SIZES[name]) for name in self.names}
        xs = {"x": self.array(self.length, 2, 4), "t": self.array(self.length)}
        self.operands = params, carry, xs

    def array(self, *shape: int) -> tj.dlarray:
        return tj.dlarray(self.numbers.uniform(-0.9, 0.9, shape))

    def step(self, params: Any, carry: Any, x: Any) -> Any:
        """Return the carry and the results of a step."""
        choices = iter(self.choices)
        names = self.names
        carry = dict(carry)
        z = x["x"] @ params["u"]
        for line in self.lines:
            name = names[int(next(choices) * len(names))]
            other = carry[names[int(next(choices) * len(names))]]
            value = carry[name]
            if line == 0:
                z = tj.tanh(z @ params["w"] + other)
            elif line == 1:
                value = self.fit(tj.sin(value) * x["t"], name)
            elif line == 2:
                value = self.fit(value * 0.5 + z * z, name)
            elif line == 3:
                z = z + other * params["b"]
            elif line == 4:
                value = self.fit(tj.sigmoid(other + z[0]), name)
            elif line == 5:
                z = tj.concatenate([z[:, 1:], z[:, :1]], axis=1) * x["t"]
            elif line == 6:
                value, z = self.fit(z, name), z * 0.7 + value
            elif line == 7:
                value = value + 0.1
            else:
                z = tj.maximum(z, other) + z.mean(axis=0)
            carry[name] = value
        if self.nests:

            def inner(total: Any, part: Any) -> Any:
                total = tj.tanh(total + part @ params["w"] * x["t"])
                return total, total.sum()

            last, sums = tj.dlscan(inner, carry[names[0]] * 0.5 + z, tj.stack([z, z * 2.0, -z, z + 1.0]))
            z = z * last.mean() + sums.mean()
        if self.draws:
            z = tj.dropout(z, 0.3) + tj.rand(2, 3) * 0.1
        result = {"z": z, "last": carry[names[0]], "t": x["t"] * 1.0}
        return carry, result

    def fit(self, value: Any, name: str) -> Any:
        """Return a value in the size of a carry."""
        shape = SIZES[name]
        if value.ndim > len(shape):
            return value.mean(axis=tuple(range(value.ndim - len(shape))))
        return tj.broadcast_to(value, shape) * 1.0

    def loss(self, params: Any, carry: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            return self.step(params, carry, x)

        fun: Callable[..., Any] = tj.dlcheckpoint(step) if self.checkpoints else step
        last, results = tj.dlscan(fun, carry, xs, reverse=self.reverse)
        total = sum((array**2).sum() for array in last.values())
        weights = tj.arange(1.0, self.length + 1.0)
        return total + (results["z"].mean(axis=(1, 2)) * weights).sum() + (results["last"] ** 2).mean()


def first(case: Case) -> Callable[..., Any]:
    """Return a function of the operands that gives the loss and its gradients by all of them."""

    def fun(*operands: Any) -> Any:
        loss = case.loss(*operands)
        return loss, tj.dlgradient(loss, operands)

    return fun


def second(case: Case) -> Callable[..., Any]:
    """Return a function of the operands that differentiates a function of the gradients again."""

    def fun(*operands: Any) -> Any:
        gradients = tj.dlgradient(case.loss(*operands), operands)
        leaves = tj.tree.flatten(gradients)[0]
        total = sum((leaf**2).sum() for leaf in leaves)
        return total, tj.dlgradient(total, operands)

    return fun


def check(seed: int, twice: bool) -> tj.AcceleratedFunction:
    """Check that three accelerated calls give what the loop in Python does; return the accelerated function."""
    case = Case(seed)
    fun = second(case) if twice else first(case)
    accelerated = tj.dlaccelerate(fun)
    for _ in range(3):
        state = tj.rng()
        expected = tj.dlfeval(fun, *case.operands)
        tj.rng(state)
        found = accelerated(*case.operands)
        for one, other in zip(*(tj.tree.flatten(each)[0] for each in (found, expected)), strict=True):
            scale = max(1.0, float(np.abs(np.asarray(other)).max(initial=0.0)))
            np.testing.assert_allclose(
                np.asarray(one) / scale, np.asarray(other) / scale, rtol=1e-9, atol=1e-11
            )
    return accelerated
