# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions keep the parameters and the result of what they wrap.

Lines with "type: ignore" are mistakes that a type checker has to find: an ignore without an error is an error.
"""

from collections.abc import Callable
from typing import NamedTuple, TypedDict, assert_type

import tracejit as tj
from tracejit import AcceleratedFunction, dlarray


class Params(TypedDict):
    """The parameters of a layer."""

    w: dlarray
    b: dlarray


class State(NamedTuple):
    """The state of a solver."""

    u: dlarray
    t: float


@tj.dlaccelerate
def loss(params: Params, x: dlarray, *, decay: float = 0.0) -> dlarray:
    """Return a number that is to be small."""
    return tj.mse(x @ params["w"] + params["b"], x) + decay


@tj.dlaccelerate(cache_size=10, check_mode="sample")
def step(params: Params, x: dlarray, rate: float) -> tuple[dlarray, Params]:
    """Return the loss and the next parameters."""
    found = loss(params, x, decay=rate)
    gradient = tj.dlgradient(found, params)
    assert_type(gradient, Params)
    return found, {"w": params["w"] - rate * gradient["w"], "b": params["b"] - rate * gradient["b"]}


@tj.dlaccelerate()
def advance(state: State) -> State:
    """Return the next state of a solver."""
    return State(state.u * 2, state.t + 1)


def plain(x: dlarray, n: int = 2) -> list[dlarray]:
    """Return copies."""
    return [x * 1.0 for _ in range(n)]


def results(params: Params, x: dlarray) -> None:
    """Check what calls return."""
    assert_type(loss(params, x), dlarray)
    assert_type(loss(params, x, decay=0.1), dlarray)
    assert_type(loss(params=params, x=x), dlarray)
    assert_type(step(params, x, 0.1), tuple[dlarray, Params])
    assert_type(advance(State(x, 0.0)), State)
    copies = tj.dlaccelerate(plain)
    assert_type(copies(x), list[dlarray])
    assert_type(copies(x, n=3), list[dlarray])
    assert_type(tj.dlaccelerate(plain, enabled=False)(x, 4), list[dlarray])
    assert_type(tj.dlaccelerate(confirm=0)(plain)(x), list[dlarray])
    doubled = tj.dlaccelerate(lambda x: 2 * x)
    doubled(x)
    takes_a_function(loss.function)
    takes_a_function(loss)
    takes_an_accelerated_function(copies)


def takes_a_function(function: Callable[[Params, dlarray], dlarray]) -> None:
    """Take a function of the type of `loss`."""


def takes_an_accelerated_function(function: AcceleratedFunction[[dlarray, int], list[dlarray]]) -> None:
    """Take an accelerated function of the type of `plain`."""


def attributes(params: Params, x: dlarray) -> None:
    """Check what an accelerated function has besides."""
    assert_type(loss.hit_rate, float)
    assert_type(loss.occupancy, float)
    assert_type(loss.enabled, bool)
    assert_type(loss.cache_size, int)
    assert_type(loss.source(), str)
    assert_type(loss.stats.kernels, int)
    loss.check_mode = "tolerance"
    loss.clear_cache()
    tj.clear_cache(step)


def mistakes(params: Params, x: dlarray) -> None:
    """Make each mistake that the types are there for."""
    loss()  # type: ignore[call-arg]
    loss(params)  # type: ignore[call-arg]
    loss(params, x, 0.5)  # type: ignore[call-arg]
    loss(params, x, deecay=0.5)  # type: ignore[call-arg]
    loss(params, "x")  # type: ignore[arg-type]
    step(params, x, rate="fast")  # type: ignore[arg-type]
    step(x, params, 0.1)  # type: ignore[arg-type]
    advance(x)  # type: ignore[arg-type]
    number: int = loss(params, x)  # type: ignore[assignment]
    name: str = step(params, x, 0.1)[1]["w"]  # type: ignore[assignment]
    print(number, name)
    tj.dlaccelerate(plain)(x, "3")  # type: ignore[arg-type]
    tj.dlaccelerate(confirm=0)(plain)()  # type: ignore[call-arg]
    tj.dlaccelerate(3)  # type: ignore[call-overload]
    tj.dlaccelerate(plain, cache_sise=3)  # type: ignore[call-overload]
    tj.clear_cache(plain)  # type: ignore[arg-type]
    loss.cache_size = "large"  # type: ignore[assignment]
    loss.hit_rate = 3.0  # type: ignore[misc]
    takes_an_accelerated_function(loss)  # type: ignore[arg-type]
