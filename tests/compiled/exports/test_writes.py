# SPDX-License-Identifier: BSD-3-Clause
"""Exported functions that write into their arguments write into those of the caller."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def step(p: Any, m: Any, g: Any) -> Any:
    m += 0.5 * (g - m)
    p -= 0.1 * m
    return (p * p).sum()


def clipped(p: Any, g: Any) -> None:
    if (g * g).sum() > 1.0:
        p[0] = -1.0
    else:
        p -= g


def reloaded(function: Any, folder: Path, *given: tuple[Any, ...]) -> Any:
    accelerated = tj.dlaccelerate(function)
    for args in given:
        for _ in range(3):
            accelerated(*[np.array(array) for array in args])
    exported = tj.export(accelerated, folder / "f.tj")
    return tj.load(folder / "f.tj", sha256=exported.sha256)


def test_the_arguments_of_the_caller_are_written(tmp_path: Path) -> None:
    loaded = reloaded(step, tmp_path, (np.ones(20), np.ones(20), np.ones(20)))
    assert str(loaded.signature[0]).endswith("-> scalar float64; writes p, m")
    assert "input[1]: 20 float64, written" in loaded.source()
    have = [np.random.default_rng(i).standard_normal(20) for i in range(3)]
    want = [array.copy() for array in have]
    for _ in range(5):
        np.testing.assert_allclose(loaded(*have).item(), step(*want), rtol=1e-12)
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    odd = [array.astype(">f8") for array in have]
    loaded(*odd)
    step(*want)
    np.testing.assert_allclose(odd[0], want[0], rtol=1e-12)


def test_arguments_of_an_export_are_not_written(tmp_path: Path) -> None:
    given = [np.ones(20) for _ in range(3)]
    tj.export(tj.dlaccelerate(step), tmp_path / "f.tj", args=tuple(given))
    assert all((array == 1).all() for array in given)


def test_guards_hold_before_anything_is_written(tmp_path: Path) -> None:
    small, large = np.full(4, 0.1), np.full(4, 9.0)
    loaded = reloaded(clipped, tmp_path, (np.ones(4), small))
    p = np.ones(4)
    for _ in range(3):
        with pytest.raises(tj.RetraceError):
            loaded(p, large)
        assert (p == p[0]).all()
        loaded(p, small)
    np.testing.assert_allclose(p, 0.7)
    both = reloaded(clipped, tmp_path / "both", (np.ones(4), small), (np.ones(4), large))
    for _ in range(3):
        both(p, small)
        both(p, large)
    np.testing.assert_allclose(p, [-1.0, 0.4, 0.4, 0.4])


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    loaded = reloaded(step, tmp_path, (np.ones(4), np.ones(4), np.ones(4)))
    memory = np.ones(20)
    for _ in range(3):
        loaded(memory[:4], memory[4:8], memory[8:12])
        kept = memory.copy()
        for wrong in ((memory[:4], memory[3:7], memory[8:12]), (memory[:4], memory[4:8], memory[:4])):
            with pytest.raises(
                tj.WriteError, match="step: it writes p, m; one of them is read-only, or shares memory"
            ):
                loaded(*wrong)
        frozen = memory[:4]
        frozen.flags.writeable = False
        with pytest.raises(tj.WriteError):
            loaded(frozen, memory[4:8], memory[8:12])
        assert (memory == kept).all()
