# SPDX-License-Identifier: BSD-3-Clause
"""Values without words and names that are none fail no call, and nothing that looks into functions."""

import logging
from typing import Any

import numpy as np
import pytest

import tracejit as tj


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


def called(function: Any, *args: Any) -> Any:
    """Accelerate a function that doubles X, call it until it is replayed, and look at all that is known of it."""
    made = tj.dlaccelerate(function)
    for _ in range(4):
        (result,) = made(*args)
        assert result.tolist() == [2.0, 2.0, 2.0]
    assert made.stats.hits == 2
    assert ": hit. The call was replayed" in str(made.explain())
    assert made._repr_html_()
    return made


@pytest.fixture(autouse=True, params=["NOTSET", "DEBUG"])
def level(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(getattr(logging, request.param), "tracejit")


@pytest.mark.parametrize(("name", "error"), [("int", "ValueError"), ("Silent", "RuntimeError")])
class TestWithoutRepr:
    def test_an_argument(self, name: str, error: str, tmp_path: Any) -> None:
        made = called(lambda x, other: [x * 2], X, HERE[name])
        assert f"other: <{name} without repr: {error}>" in str(made.explain())
        made.view(tmp_path / "page.html")

    def test_another_value(self, name: str, error: str) -> None:
        made = called(lambda x, other: [x * 2], X, HERE[name])
        made(X, "text")
        assert f"other was <{name} without repr: {error}>, is 'text'" in str(made.explain())

    def test_a_value_that_is_read(self, name: str, error: str) -> None:
        value = HERE[name]
        called(lambda x: [x * 2] if value else None, X)

    def test_a_key(self, name: str, error: str) -> None:
        made = called(lambda d: [d[HERE[name]] * 2], {HERE[name]: X})
        assert f"d[<{name} without repr: {error}>]: 3 float64" in str(made.explain())
        made({HERE[name]: X, "a": X})
        assert f"has the keys [<{name} without repr: {error}>] in" in str(made.explain())

    def test_a_key_of_what_is_read(self, name: str, error: str) -> None:
        table = {HERE[name]: 2.0}
        called(lambda x: [x * table[HERE[name]]], X)


ODD = [
    '"""\n1 / 0\n"""',
    '"""',
    "a\nb",
    "\r1 / 0",
    "a\0b",
    "\x1b[31m",
    "caf\udce9",
    "\ud800",
    "back\\",
    "\u2028",
    '"',
    "",
]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_function_of_any_name(name: str) -> None:
    def double(x: Any) -> Any:
        return [x * 2]

    double.__qualname__ = name
    compile(called(double, X).source(), "source", "exec")


@pytest.mark.parametrize(
    "file", ["a\n1 / 0\n.py", "\r1 / 0.py", "caf\udce9.py", '"""\n1 / 0\n"""', "back\\"], ids=ascii
)
def test_a_file_of_any_name(file: str) -> None:
    names: dict[str, Any] = {}
    exec(compile("def double(x):\n    return [x * 2]\n", file, "exec"), names)
    compile(called(names["double"], X).source(), "source", "exec")
