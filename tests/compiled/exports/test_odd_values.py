# SPDX-License-Identifier: BSD-3-Clause
"""Exported functions with a default value that has no repr."""

import logging
import types
from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import ExportError


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __eq__(self, other: object) -> bool:
        return type(other) is Silent

    def __hash__(self) -> int:
        return 1


HUGE = 10**5000  # more digits than Python writes


HERE = {"int": HUGE, "Silent": Silent()}


X = np.ones(3)


@pytest.fixture(autouse=True, params=["NOTSET", "DEBUG"])
def level(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(getattr(logging, request.param), "tracejit")


@pytest.mark.parametrize(("name", "error"), [("int", "ValueError"), ("Silent", "RuntimeError")])
class TestWithoutRepr:
    def test_a_default(self, name: str, error: str, tmp_path: Any) -> None:
        def double(x: Any, other: Any = HERE[name]) -> Any:
            return x * 2

        tj.export(tj.dlaccelerate(double), tmp_path / "double.tj", args=(X,))
        loaded = tj.load(tmp_path / "double.tj")
        assert str(loaded.__signature__) == f"(x, other=<{name} without repr: {error}>)"


def test_an_integer_that_cannot_be_written(tmp_path: Any) -> None:
    with pytest.raises(ExportError, match="other is an int with more digits than Python converts"):
        tj.export(tj.dlaccelerate(lambda x, other: x * 2), tmp_path / "double.tj", args=(X, HUGE))
    with pytest.raises(ExportError, match="hold an int with more digits than Python converts"):
        tj.export(tj.dlaccelerate(lambda d: d[HUGE] * 2), tmp_path / "double.tj", args=({HUGE: X},))


@pytest.mark.parametrize("made", [deque([1.0]), defaultdict(int, w=1.0), types.SimpleNamespace(w=1.0)])
def test_containers_that_functions_take_apart_are_refused(made: Any, tmp_path: Any) -> None:
    with pytest.raises(
        tj.ExportError,
        match=f"a {type(made).__name__} .*, of a class that is not written; pass its arrays in a dict",
    ):
        tj.export(tj.dlaccelerate(lambda p: sum(tj.tree.leaves(p))), tmp_path / "folder", args=(made,))
