# SPDX-License-Identifier: BSD-3-Clause
"""Traps: what a function deletes outside, and the order in which dicts are left."""

import collections
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

MODULE = """
class Thing:
    q = 1.0

    def __init__(self):
        self.a, self.x, self.z = 1.0, np.ones(2), 2.0


class Slotted:
    __slots__ = ("x",)


g, o, slotted, module = 1.0, Thing(), Slotted(), types.ModuleType("m")
items, few = kind(a=1.0, x=np.ones(2), z=2.0), kind(b=0.0, q=0.0)
things = [o]


def make(accelerated):
    c = 1.0

    @accelerated
    def program(x):
        BODY
        return x * 2

    def outside():
        try:
            here = c
        except NameError:
            here = None
        return [vars(o), "q" in vars(Thing), getattr(slotted, "x", None), vars(module).get("x"), items, few,
                globals().get("g"), here]

    def restore(call):
        nonlocal c
        c = 2.0
        globals()["g"] = 3.0
        o.x = slotted.x = module.x = items["x"] = np.array([1.0, call])
        Thing.q = 3.0
        if call in (4, 6):
            items.clear()
            items.update(x=np.ones(2), a=0.5)
            few.clear()
        if call == 8:
            few.pop("q", None)

    return program, outside, restore
"""
BODIES = (
    "del o.x",
    "x = x * o.x; del o.x",
    "delattr(o, 'x')",
    "try: del o.x\n        except AttributeError: x = x + 1",
    "if hasattr(o, 'x'): del o.x",
    "for thing in things: del thing.x",
    "for thing in things:\n            try: del thing.x\n            except AttributeError: x = x + 1",
    "o.x = x + o.x; y = o.x * 2; del o.x; x = x + y",
    "del o.x; o.x = x",
    "o.__dict__.pop('x')",
    "vars(o).pop('x', None)",
    "del slotted.x",
    "del Thing.q",
    "del module.x",
    "global g; del g",
    "nonlocal c; del c",
    "del items['x']",
    "x = x * items.pop('x')",
    "items.pop('x', None)",
    "try: del items['x']\n        except KeyError: x = x + 1",
    "if 'x' in items: del items['x']",
    "v = items.pop('x'); items['x'] = v + x",
    "items.clear()",
    "few['q'] = x; few['b'] = x + 1",
    "few['b'] = x; few['q'] = x + 1",
    "few.update(q=x, b=x + 1)",
    "few.update(z=x); few.setdefault('w', 2.0)",
    "few.update(z=x); few['w'] = 2.0; few['v'] = x",
)  # fmt: skip


def frozen(value: Any) -> Any:
    """Return a value with its arrays as lists, and its keys in their order."""
    if isinstance(value, (np.ndarray, tj.dlarray)):
        return np.asarray(value).tolist()
    if isinstance(value, dict):
        return [(key, frozen(part)) for key, part in value.items()]
    return [frozen(part) for part in value] if isinstance(value, list) else value


def followed(
    body: str, kind: type, lost: tuple[int, ...], accelerated: Callable[[Any], Any]
) -> tuple[list[Any], Any]:
    """Return what was outside after each of 10 calls, before some of which nothing was restored."""

    names: dict[str, Any] = {"np": np, "types": types, "kind": kind}
    exec(MODULE.replace("BODY", body), names)
    program, outside, restore = names["make"](accelerated)
    found = []
    for call in range(10):
        if call not in lost:
            restore(call)
        try:
            result = program(np.full(2, float(call)))
        except (AttributeError, KeyError, NameError) as error:
            result = type(error).__name__
        found.append([frozen(result), frozen(outside())])
    return found, program


def kinds(body: str) -> tuple[type, ...]:
    return (dict, collections.OrderedDict) if "items" in body or "few" in body else (dict,)


@pytest.mark.sampled
@pytest.mark.parametrize("lost", [(), (5, 7), (1, 2, 8, 9)])
@pytest.mark.parametrize(("body", "kind"), [(body, kind) for body in BODIES for kind in kinds(body)])
def test_what_is_deleted_is_deleted_by_replays(body: str, kind: type, lost: tuple[int, ...]) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, _ = followed(body, kind, lost, tj.dlaccelerate(audit=False))
    assert found == followed(body, kind, lost, lambda fun: fun)[0]
    assert not [each for each in told if issubclass(each.category, tj.LostChangeWarning)]


@pytest.mark.sampled
@pytest.mark.parametrize("body", BODIES[:1] + BODIES[11:17])
def test_a_deletion_needs_no_recording(body: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", tj.TraceJitWarning)
        _, program = followed(body, dict, (), tj.dlaccelerate(audit=False))
    assert program.stats.hits >= 4


@pytest.mark.parametrize(
    "body", ["del d['f']; d['f'] = 3.0", "del d['n'], d['f']; d['n'] = 3.0; d['f'] = 4.0"]
)
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_a_key_that_comes_back_goes_behind_keys_that_were_added_outside(body: str, kind: type) -> None:
    found: list[list[list[str]]] = []
    for accelerated in (tj.dlaccelerate, lambda fun: fun):
        names: dict[str, Any] = {"d": kind(n=1.0, f=2.0)}
        exec(f"def program(x):\n    {body}\n    return x * 1", names)
        program = accelerated(names["program"])
        found.append([])
        for call in range(10):
            if call % 5 == 4:
                names["d"][f"new{call}"] = 0.0
            program(np.ones(2))
            found[-1].append([*names["d"]])
        if accelerated is tj.dlaccelerate:
            assert program.stats.hits >= 3
    assert found[0] == found[1]
