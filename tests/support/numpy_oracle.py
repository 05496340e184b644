# SPDX-License-Identifier: BSD-3-Clause
"""Calls of numpy_grid.py, computed by NumPy and by dlarrays: uncompiled, recorded and replayed, and differentiated."""

import ast
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from bad_arguments import KINDS
from numpy_grid import BY_FUNCTION, values

import tracejit as tj
from tracejit import dlarray

ARRAYS = (values(0), values(1))
STEP = 1e-6  # of central differences


def names_in(call: str) -> list[str]:
    """Return the names of the arrays in a call."""
    code = compile(call, "call", "eval")
    names = set(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):  # of a lambda
            names |= set(constant.co_names)
    return [name for name in ARRAYS[0] if name in names]


def computed(call: str, arrays: dict[str, Any]) -> Any:
    """Return the value of a call, or the error that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(call, {"np": np, **arrays})


def expected(call: str, arrays: dict[str, Any]) -> Any:
    """Return the value of a call by NumPy, None where NumPy refuses the operands."""
    try:
        return computed(call, arrays)
    except (TypeError, ValueError):
        return None


def chosen(call: str, seed: int) -> dict[str, Any]:
    return {name: ARRAYS[seed][name] for name in names_in(call)}


def wrapped(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: dlarray(array.copy()) for name, array in arrays.items()}


def assert_same(have: Any, want: Any, what: str) -> None:
    """Compare sizes, dtypes and numbers: floats to a few units in the last place, everything else exactly."""
    if isinstance(want, (tuple, list)):
        assert len(have) == len(want), what
        for number, (part, wanted) in enumerate(zip(have, want, strict=True)):
            assert_same(part, wanted, f"{what}[{number}]")
        return
    if not isinstance(want, (np.ndarray, np.generic)):
        assert have == want, what
        return
    found = tj.extractdata(have) if isinstance(have, dlarray) else np.asarray(have)
    assert found.dtype == want.dtype, what
    assert found.shape == want.shape, what
    if want.dtype.kind in "fc":
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(found, want, rtol=64 * eps, atol=16 * eps, err_msg=what)
    else:
        np.testing.assert_array_equal(found, want, err_msg=what)


def check_uncompiled(call: str) -> None:
    """Compare a call on dlarrays with NumPy; what NumPy refuses, dlarrays refuse."""
    arrays = chosen(call, 0)
    want = expected(call, arrays)
    if want is not None:
        assert_same(computed(call, wrapped(arrays)), want, call)
        return
    try:
        computed(call, wrapped(arrays))
    except (TypeError, ValueError):
        return
    raise AssertionError(f"NumPy refuses {call}")


def check_replayed(call: str) -> None:
    """Compare a call that is recorded, confirmed with other numbers, and replayed, with NumPy."""
    arrays = [chosen(call, seed) for seed in (0, 1, 1, 1)]
    wanted = [expected(call, given) for given in arrays]
    if any(want is None for want in wanted):
        return
    step = tj.dlaccelerate(lambda **given: eval(call, {"np": np, **given}))
    for given, want in zip(arrays, wanted, strict=True):
        assert_same(step(**wrapped(given)), want, call)
    assert step.hit_rate > 0, call


def check_variant(call: str, variant: dict[str, Any]) -> None:
    """Compare a call on other arrays with NumPy: dlarrays give the same numbers, or refuse."""
    arrays = {name: variant[name] for name in names_in(call)}
    try:
        want = computed(call, arrays)
    except Exception:
        return
    try:
        have = computed(call, wrapped(arrays))
    except tj.TraceJitError:
        return
    assert_same(have, want, call)


FORMATS = (None, "B", "CB", "SCB")


def check_labels(call: str) -> None:
    """Compare a call with NumPy for each of its arrays as the one that has labels."""
    arrays = chosen(call, 0)
    want = expected(call, arrays)
    for name, array in arrays.items():
        if want is not None:
            labelled = dlarray(array.copy(), FORMATS[array.ndim])
            assert_same(
                computed(call, {**wrapped(arrays), name: labelled}), want, f"{call} with labels of {name}"
            )


ENDLESS = (
    "iterator without end",
    "endless sequence",
    "generator",
    "long range",
)  # NumPy iterates over them itself


def check_arguments(name: str, every: int) -> int:
    """Put kinds of objects into the arguments of calls of a function, after the first; return how many are refused."""
    refused = 0
    for call in BY_FUNCTION[name][:2]:
        node = ast.parse(call, mode="eval").body
        if not isinstance(node, ast.Call):
            continue
        arrays = wrapped(ARRAYS[0])
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        given = [eval(compile(ast.Expression(part), "call", "eval"), {"np": np, **arrays}) for part in parts]
        words = [keyword.arg or "" for keyword in node.keywords]
        for place in range(1, len(given)):
            for kind in [kind for kind in KINDS if kind not in ENDLESS][place::every]:
                changed = [*given[:place], KINDS[kind](), *given[place + 1 :]]
                count = len(node.args)
                try:
                    getattr(np, name)(*changed[:count], **dict(zip(words, changed[count:], strict=True)))
                except tj.TraceJitError as error:
                    assert str(error)[-1] in ".?" and len(str(error)) < 900, (call, place, kind)
                    refused += 1
    return refused


def floats(result: Any) -> list[Any]:
    """Return the floating-point arrays in a result."""
    if isinstance(result, (tuple, list)):
        return [part for inner in result for part in floats(inner)]
    is_float = isinstance(result, (dlarray, np.ndarray, np.floating)) and result.dtype.kind == "f"
    return [result] if is_float else []


def gradients(call: str) -> tuple[float, float] | None:
    """Return a directional derivative of a call, by dlgradient and by differences; None where it has none.

    Of results in float64 of operands in float64 that are finite.
    """
    arrays = chosen(call, 0)
    wrt = [name for name, array in arrays.items() if array.dtype == np.float64]
    if not wrt or any(not np.isfinite(arrays[name]).all() for name in wrt if name != "Z"):
        return None
    results = floats(expected(call, arrays))
    if not results or any(part.dtype != np.float64 or not np.isfinite(part).all() for part in results):
        return None
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=np.shape(part)) for part in results]
    by = {name: rng.normal(size=arrays[name].shape) for name in wrt}

    def total(parts: list[Any]) -> Any:
        return sum((part * weight).sum() for part, weight in zip(parts, weights, strict=True))

    def moved(step: float) -> Any:
        return {name: array + step * by[name] if name in by else array for name, array in arrays.items()}

    def loss(*given: Any) -> Any:
        parts = floats(computed(call, {**arrays, **dict(zip(wrt, given, strict=True))}))
        return tj.dlgradient(total(parts), list(given))

    differences = total(floats(computed(call, moved(STEP)))) - total(floats(computed(call, moved(-STEP))))
    try:
        found = tj.dlfeval(loss, *[dlarray(arrays[name]) for name in wrt])
    except tj.GradientError:  # nothing depends on the operands
        return 0.0, float(differences / (2 * STEP))
    products = [np.nansum(tj.extractdata(g) * by[name]) for g, name in zip(found, wrt, strict=True)]
    return float(sum(products)), float(differences / (2 * STEP))


def check_gradient(call: str) -> bool:
    """Compare the derivative of a call with differences, and return whether there is one that is not 0."""
    pair = gradients(call)
    if pair is None:
        return False
    found, wanted = pair
    assert abs(found - wanted) <= 1e-5 * max(1.0, abs(found), abs(wanted)), (call, found, wanted)
    return found != 0.0


Check = Callable[[str], Any]
