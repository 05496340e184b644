# SPDX-License-Identifier: BSD-3-Clause
"""Call paths of compiled traces that draw from generators of NumPy's and Python's."""

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def held(seed: int) -> SimpleNamespace:
    rng, spare = np.random.default_rng(seed), random.Random(seed)
    return SimpleNamespace(rng=rng, spare=spare, at=np.zeros(3), path=[], table=np.ones(3))


FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "small": ("return x + o.rng.normal(size=3)", ("np.ones(3)",)),
    "several": ("return x * o.rng.random() + o.rng.integers(5), o.rng.random()", ("np.ones(3)", "tj.ones(3)")),
    "containers": ("return {'y': x['a'] + o.rng.normal()}", ("{'a': np.ones(3)}",)),
    "large": ("return x + o.rng.standard_normal(x.shape)", ("np.zeros(300_000)",)),
    "guarded": ("return x if o.rng.random() < 0.5 else -x", ("np.ones(3)",)),
    "large and guarded": ("return x + 1 if o.rng.random() < 0.5 else -x", ("np.zeros(300_000)",)),
    "an index": ("return x[o.rng.integers(3)]", ("np.arange(3.0)",)),
    "stored": ("o.at = o.at * 0.5 + o.rng.normal(size=3)\n    return o.at.sum() + x[0]", ("np.ones(3)",)),
    "appended": ("o.path.append(float(x[0] * o.rng.random()))\n    return x", ("np.ones(3)",)),
    "captured": ("return o.table * o.rng.normal() + x", ("np.ones(3)",)),
    "written": ("o.table *= o.rng.random()\n    x[0] = o.rng.random()\n    return x", ("np.ones(3)",)),
    "of Python": ("return x * o.spare.random() + o.spare.gauss(0.0, 1.0)", ("np.ones(3)",)),
    "both": ("return (x if o.spare.random() < 0.5 else -x) + o.rng.normal()", ("np.ones(3)",)),
    "with a draw of tracejit": ("return x + tj.rand(3) * o.rng.normal()", ("np.ones(3)",)),
    "strided": ("return x + o.rng.normal()", ("np.ones(6)[::2]", "np.ones(3)")),
    "sizes by turns": ("return x + o.rng.normal(size=len(x))", ("np.ones(3)", "np.ones(4)", "np.ones(5)")),
    "types by turns": ("return x * o.rng.normal()", ("np.ones(3)", "np.ones(3, np.float32)", "np.ones((1, 3))")),
    "numbers": ("return o.rng.normal(x, 1.0)", ("0.5", "1.5", "2.5", "3.5")),
}  # fmt: skip


def states(o: SimpleNamespace) -> tuple[Any, ...]:
    return o.rng.bit_generator.state, o.spare.getstate()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_draw_what_the_plain_function_draws(name: str) -> None:
    body, arguments = FUNCTIONS[name]
    found = []
    for accelerated in (lambda fun: fun, tj.dlaccelerate(audit=False)):
        o = held(4)
        names: dict[str, Any] = {"o": o, "np": np, "tj": tj}
        exec(f"def function(x):\n    {body}\n", names)
        function = accelerated(names["function"])
        results = []
        with tj.rng(3):
            for n in range(30):
                if n == 20:
                    o.rng = np.random.default_rng(n)
                if n == 24:
                    o.table = np.full(3, 2.0)
                x = eval(arguments[n % len(arguments)], names)
                result = function(x)
                results.append((tj.tree.map(np.asarray, result), np.array(o.at), [*o.path], states(o)))
        found.append(results)
    for (want, *others, known), (got, *ours, seen) in zip(*found, strict=True):
        for have, expected in zip(tj.tree.flatten(got)[0], tj.tree.flatten(want)[0], strict=True):
            np.testing.assert_allclose(have, expected, rtol=2e-6 if expected.dtype == np.float32 else 1e-13)
        for have, expected in zip(ours, others, strict=True):
            np.testing.assert_allclose(have, expected, rtol=1e-6)
        assert seen == known
    assert function.stats.hits >= 18
    assert function.stats.uncompiled == 0


def test_a_path_without_guards_notes_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracejit.record import generator_draws

    noted: list[Any] = []
    rng = np.random.default_rng(0)
    step = tj.dlaccelerate(lambda x: x + rng.normal(size=3), audit=False)
    chosen = tj.dlaccelerate(lambda x: x if rng.random() < 2.0 else -x, audit=False)
    for _ in range(4):
        step(np.ones(3)), chosen(np.ones(3))
    copy_of = generator_draws.copy_of
    monkeypatch.setattr(
        generator_draws, "copy_of", lambda generator: (noted.append(generator), copy_of(generator))[1]
    )
    for _ in range(5):
        step(np.ones(3))
    assert noted == []
    for _ in range(5):
        chosen(np.ones(3))
    assert noted == [rng] * 5
    assert (step.stats.hits, chosen.stats.hits) == (7, 7)
